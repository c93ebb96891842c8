"""The reply of XREAD and XREADGROUP: streams and their entries; and how much it may come to."""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter
from mypy_extensions import mypyc_attr

from headrace.protocol.packing import Packer
from headrace.protocol.replies import Packed
from headrace.protocol.wire import array_header, bulk, map_header, write_bulk

_PAIR: Final = array_header(2)
_NO_STREAMS: Final = array_header(0)
_NO_STREAMS_RESP3: Final = map_header(0, True)
_ZERO: Final = 0x30


@mypyc_attr(acyclic=True, free_list_len=1)
class StreamsReply(Packer):
    """Makes the reply: a map from key to entries in RESP3, in RESP2 an array of pairs.

    Attributes:
        streams: how many streams there are; before the first one nothing may be added.
    """

    def __init__(self, resp3: bool) -> None:
        # Without the base class's: many a read finds nothing, and needs no buffer.
        self._resp3 = resp3
        self.streams = 0

    def begin(self, key: bytes, entries: int) -> None:
        """Begin a stream of which so many entries will be added."""
        if not self.streams:
            self._out = BytesWriter()
            self._out.write(_NO_STREAMS_RESP3 if self._resp3 else _NO_STREAMS)
        self.streams += 1
        if not self._resp3:
            self._out.write(_PAIR)
        write_bulk(self._out, key)
        self._out.write(array_header(entries))

    def whole(self) -> Packed:
        """All of it, which is not nothing."""
        if self.streams < 10:
            self._out[1] = _ZERO + self.streams
            return Packed(self._out.getvalue())
        if self._resp3:
            header = map_header(self.streams, True)
        else:
            header = array_header(self.streams)
        return Packed(header + self._out.getvalue()[len(_NO_STREAMS) :])


@mypyc_attr(acyclic=True)
class SizeLimit:
    """MAXSIZE: from which length on nothing more is put into the reply of a read.

    Its bytes are counted as they stand on the wire, except for the header of the whole: what comes
    before the entries of a stream, the entries, and then the length of their array. The entry that
    reaches the limit is given, and one entry is given in any case.

    Args:
        most: the limit in bytes, at least 1.
    """

    def __init__(self, most: int, resp3: bool) -> None:
        self._most: Final = most
        self._resp3: Final = resp3
        self._bytes = 0
        self._given = False

    def is_reached(self) -> bool:
        """Whether nothing more may be added."""
        return self._given and self._bytes >= self._most

    def left(self) -> int:
        """How many bytes may still be added, or 1 where the next entry is the last."""
        return max(1, self._most - self._bytes)

    def begin(self, key: bytes) -> None:
        """Count what stands before the entries of a stream."""
        self._bytes += len(bulk(key)) + (0 if self._resp3 else len(_PAIR))

    def give(self, wire_bytes: int) -> None:
        """Count an entry that is given."""
        self._bytes += wire_bytes
        self._given = True

    def end(self, entries: int) -> None:
        """Count the header of the array of a stream's entries."""
        self._bytes += len(array_header(entries))
