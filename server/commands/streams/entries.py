"""How entries of streams look in replies: ``[ID, [field, value, ...]]``, alike in RESP2 and RESP3.

They are written one after the other into one buffer; nothing is made for each of them.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter
from mypy_extensions import i64, mypyc_attr

from headrace.compat.stream_ids import write_id
from headrace.protocol.replies import Encoded, array_header, bulk, write_bulk
from headrace.storage.stream.part import Part

PAIR: Final = b"*2\r\n"
_NO_STREAMS: Final = b"*0\r\n"
_NO_STREAMS_RESP3: Final = b"%0\r\n"
_ZERO: Final = 0x30


@mypyc_attr(acyclic=True)
class StreamsReply:
    """The reply of a read, as it grows: streams, each with its entries.

    Attributes:
        out: where the entries of the stream at hand are to be written; not before there is one.
        streams: how many streams there are.
    """

    out: BytesWriter

    def __init__(self, resp3: bool) -> None:
        self.streams = 0
        self._resp3: Final = resp3

    def begin(self, key: bytes, entries: int) -> None:
        """Begin a stream of which so many entries will be written."""
        if not self.streams:  # many a read finds nothing, and needs no buffer
            self.out = BytesWriter()
            self.out.write(_NO_STREAMS_RESP3 if self._resp3 else _NO_STREAMS)
        self.streams += 1
        if not self._resp3:
            self.out.write(PAIR)
        write_bulk(self.out, key)
        self.out.write(array_header(entries))

    def whole(self) -> Encoded:
        """All of it, which is not nothing: a map in RESP3, in RESP2 an array of pairs."""
        if self.streams < 10:
            self.out[1] = _ZERO + self.streams
            return Encoded(self.out.getvalue())
        header = b"%%%d\r\n" % self.streams if self._resp3 else array_header(self.streams)
        return Encoded(header + self.out.getvalue()[len(_NO_STREAMS) :])


@mypyc_attr(acyclic=True)
class SizeLimit:
    """MAXSIZE: from which length on nothing more is put into the reply of a read.

    Its bytes are counted as they stand on the wire, all but the header of the whole: what comes
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

    def begin(self, key: bytes) -> None:
        """Count what stands before the entries of a stream."""
        self._bytes += len(bulk(key)) + (0 if self._resp3 else len(PAIR))

    def give(self, wire_bytes: int) -> None:
        """Count an entry that is given."""
        self._bytes += wire_bytes
        self._given = True

    def end(self, entries: int) -> None:
        """Count the header of the array of a stream's entries."""
        self._bytes += len(array_header(entries))


def entries_reply(parts: list[Part], reverse: bool) -> Encoded:
    """The array of all entries of ``parts``."""
    out = BytesWriter()
    write_entries_reply(out, parts, reverse)
    return Encoded(out.getvalue())


def write_entries_reply(out: BytesWriter, parts: list[Part], reverse: bool) -> None:
    """Append ``entries_reply`` to ``out``."""
    out.write(array_header(count_entries(parts)))
    write_entries(out, parts, reverse)


def write_entries(
    out: BytesWriter, parts: list[Part], reverse: bool, head: bytes = PAIR, tail: bytes = b""
) -> None:
    """Append the wire form of all entries of ``parts`` to ``out``.

    Args:
        head, tail: what stands before the ID and after the fields of each entry.
    """
    for part in parts:
        dead = part.dead
        run = part.run
        all_ms = run.ms
        all_seq = run.seq
        flat = run.flat
        names = run.names
        before_values = [] if names is None else _names.before_values(names)
        step: i64 = -1 if reverse else 1
        number: i64 = part.high - 1 if reverse else part.low
        end: i64 = part.low - 1 if reverse else part.high
        while number != end:
            if dead is not None and dead[number]:
                number += step
                continue
            out.write(head)
            write_id(out, all_ms[number], all_seq[number])
            if names is None:
                row = run.rows[number]
                out.write(array_header(len(row)))
                for element in row:
                    write_bulk(out, element)
            else:
                place: i64 = number * len(before_values)
                for before in before_values:
                    out.write(before)
                    write_bulk(out, flat[place])
                    place += 1
            if tail:
                out.write(tail)
            number += step


class _Names:
    """Writes field names; what was written last is kept, for most entries of a stream share it."""

    def __init__(self) -> None:
        self._names: list[bytes] = []
        self._written: list[bytes] = []

    def before_values(self, names: list[bytes]) -> list[bytes]:
        """What stands before each value of an entry whose fields have these names."""
        if names is not self._names and names != self._names:
            written = [bulk(name) for name in names]
            written[0] = array_header(2 * len(names)) + written[0]
            self._names = names
            self._written = written
        return self._written


_names: Final = _Names()


def count_entries(parts: list[Part]) -> int:
    """How many live entries ``parts`` hold."""
    count = 0
    for part in parts:
        count += part.live()
    return count


def within(parts: list[Part], size: SizeLimit, head: bytes = PAIR, tail: bytes = b"") -> list[Part]:
    """Those entries of ``parts`` that are to be given; they are counted as given.

    Args:
        head, tail: as for ``write_entries``.
    """
    kept: list[Part] = []
    for part in parts:
        for number in range(part.low, part.high):
            if part.dead is not None and part.dead[number]:
                continue
            if size.is_reached():
                if number > part.low:
                    kept.append(Part(part.run, part.dead, part.low, number))
                return kept
            out = BytesWriter()
            write_entries(out, [Part(part.run, None, number, number + 1)], False, head, tail)
            size.give(len(out))
        kept.append(part)
    return kept
