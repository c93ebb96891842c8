"""Packed replies: values of many parts, made part by part with no object for each.

A command says which parts there are, in order; how they look on the wire is known here alone:

    out = Packer(resp3)
    out.array(2)
    out.id(5, 1)
    out.text(b"consumer")
    return out.packed()

What follows ``array``, ``set`` and ``map`` are their items, as many as was said.

A client is sent a packed reply as it is. A script is not: it wants lists, strings and numbers, and
gets them from ``unpacked``.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter
from mypy_extensions import i64, mypyc_attr

from headrace.protocol.doubles import write_double
from headrace.protocol.replies import (
    NULL_ARRAY,
    Attributed,
    BigNumber,
    Decimal,
    ErrorReply,
    Map,
    Packed,
    PackedReplies,
    Push,
    Replies,
    Set,
    Status,
    Verbatim,
    encode,
    write_reply,
)
from headrace.protocol.wire import (
    array_header,
    bulk,
    bulk_header,
    id_line,
    id_lines,
    integer,
    map_header,
    null,
    null_array,
    set_header,
    write_bulk,
    write_id,
    write_integer,
)

NOT_SHOWN: Final = -1  # for an idle time: an entry is shown without it
_PAIR: Final = array_header(2)
_FOUR: Final = array_header(4)
_NEVER_DELIVERED: Final = integer(0) + integer(0)


class Constant:
    """A value that is added again and again, as the names in a map are; alike in both protocols."""

    def __init__(self, value: object) -> None:
        self.wire: Final = encode(value)


@mypyc_attr(acyclic=True, free_list_len=1)  # one after the other: the next takes its place
class Packer:
    """Makes one packed reply, or several in a row."""

    _out: BytesWriter
    _resp3: bool

    def __init__(self, resp3: bool) -> None:
        self._out = BytesWriter()
        self._resp3 = resp3

    def packed(self) -> Packed:
        """Return the one reply that was made."""
        return Packed(self._out.getvalue())

    def replies(self) -> PackedReplies:
        """Return the replies that were made, each of them whole."""
        return PackedReplies(self._out.getvalue())

    def wire_bytes(self) -> int:
        """Return the length in bytes so far, as it is sent."""
        return len(self._out)

    def array(self, size: int) -> None:
        """Begin an array of so many items."""
        self._out.write(array_header(size))

    def map(self, size: int) -> None:
        """Begin a map of so many names and values."""
        self._out.write(map_header(size, self._resp3))

    def set(self, size: int) -> None:
        """Begin a set of so many items."""
        self._out.write(set_header(size, self._resp3))

    def strings(self, packed: bytes) -> None:
        """Add strings that are kept one behind the other, each as it is sent."""
        self._out.write(packed)

    def text(self, data: bytes) -> None:
        """Add a bulk string."""
        write_bulk(self._out, data)

    def constant(self, value: Constant) -> None:
        """Add a constant."""
        self._out.write(value.wire)

    def number(self, number: int) -> None:
        """Add an integer."""
        write_integer(self._out, number)

    def big_number(self, number: int) -> None:
        """Add an integer of any size."""
        self._out.write(encode(BigNumber(number), self._resp3))

    def big_digits(self, digits: bytes) -> None:
        """Add an integer of any size, written out already."""
        if self._resp3:
            self._out.write(b"(" + digits + b"\r\n")
        else:
            write_bulk(self._out, digits)

    def reply(self, value: object) -> None:
        """Add any reply value."""
        self._out.write(encode(value, self._resp3))

    def numbers(self, number: int, count: int) -> None:
        """Add an integer so many times."""
        self._out.write(integer(number) * count)

    def double(self, value: float) -> None:
        """Add a double."""
        write_double(self._out, value, self._resp3)

    def null(self) -> None:
        """Add what stands for no value."""
        self._out.write(null(self._resp3))

    def null_array(self) -> None:
        """Add what stands for no array."""
        self._out.write(null_array(self._resp3))

    def id(self, ms: int, seq: int) -> None:
        """Add the ID of an entry."""
        write_id(self._out, ms, seq)

    def deleted_entry(self, ms: int, seq: int) -> None:
        """Add an entry that has no fields any more: its ID and no array."""
        self.array(2)
        self.id(ms, seq)
        self.null_array()

    def add(self, other: Packer) -> None:
        """Add all that another packer has made."""
        self._out.write(other._out.getvalue())

    def entries(
        self,
        ms: list[int],
        seq: list[int],
        names: list[bytes] | None,
        values: list[bytes],
        rows: list[list[bytes]],
        dead: bytearray | None,
        low: i64,
        high: i64,
        reverse: bool,
        idle_ms: int,
        deliveries: int,
    ) -> None:
        """Add entries, each of them ``[ID, [field, value, ...]]``.

        Args:
            ms, seq: the IDs of a run of entries.
            names: the field names that all share; ``values`` then holds their values in a row.
                None: ``rows`` holds the fields and values of each.
            dead: not 0 for each one that is left out; None: for none.
            low, high: those from ``low`` up to and without ``high``.
            reverse: the last one first.
            idle_ms, deliveries: shown behind the fields, unless the first is ``NOT_SHOWN``.
        """
        out = self._out
        head = _PAIR
        tail = b""
        if idle_ms != NOT_SHOWN:
            head = _FOUR
            tail = _NEVER_DELIVERED
            if idle_ms or deliveries:
                tail = integer(idle_ms) + integer(deliveries)
        before_values = [] if names is None else _names.before_values(names)
        step: i64 = -1 if reverse else 1
        number: i64 = high - 1 if reverse else low
        end: i64 = low - 1 if reverse else high
        while number != end:
            if dead is not None and dead[number]:
                number += step
                continue
            out.write(head)
            write_id(out, ms[number], seq[number])
            if names is None:
                row = rows[number]
                out.write(array_header(len(row)))
                for element in row:
                    write_bulk(out, element)
            else:
                place: i64 = number * len(before_values)
                for before in before_values:
                    out.write(before)
                    write_bulk(out, values[place])
                    place += 1
            if tail:
                out.write(tail)
            number += step


def entry_bytes(
    ms: int, seq: int, row: list[bytes], idle_ms: int = NOT_SHOWN, deliveries: int = 0
) -> int:
    """Return the length in bytes of an entry that ``Packer.entries`` adds with this row."""
    total = len(_PAIR) + len(id_line(ms, seq)) + len(array_header(len(row)))
    for word in row:
        total += len(bulk_header(len(word))) + len(word) + 2
    if idle_ms == NOT_SHOWN:
        return total
    return total + len(integer(idle_ms)) + len(integer(deliveries))


def deleted_entry_bytes(ms: int, seq: int, resp3: bool) -> int:
    """Return the length in bytes of an entry that ``Packer.deleted_entry`` adds."""
    return len(_PAIR) + len(id_line(ms, seq)) + len(null_array(resp3))


class _Names:
    """Writes field names; keeps what it wrote last, because most entries of a stream share it."""

    def __init__(self) -> None:
        self._names: list[bytes] = []
        self._written: list[bytes] = []

    def before_values(self, names: list[bytes]) -> list[bytes]:
        """Return what stands before each value of an entry whose fields have these names."""
        if names is not self._names and names != self._names:
            written = [bulk(name) for name in names]
            written[0] = array_header(2 * len(names)) + written[0]
            self._names = names
            self._written = written
        return self._written


_names: Final = _Names()


class PackedArray:
    """Makes an array of whole replies, each of them packed as it is added.

    What a reply was made of may change before the next one is added, and so may the protocol.
    """

    def __init__(self, size: int) -> None:
        self._pieces: Final = [array_header(size)]
        self._counted: i64 = 0  # pieces, of ``_bytes`` in all
        self._bytes: i64 = 0

    def add(self, reply: object, resp3: bool) -> None:
        """Add one reply."""
        write_reply(self._pieces, reply, resp3)

    def add_all(self, replies: PackedReplies) -> None:
        """Add the replies to several requests."""
        self._pieces.append(replies.wire)

    def wire_bytes(self) -> i64:
        """Return the length in bytes so far."""
        while self._counted < len(self._pieces):
            self._bytes += len(self._pieces[self._counted])
            self._counted += 1
        return self._bytes

    def packed(self) -> Packed:
        """Return the array, of which all was added."""
        return Packed(b"".join(self._pieces))


class ArraysOfStrings:
    """Makes several replies, each an array of strings that are kept one behind the other.

    ``pieces`` has the replies: strings are added to it behind ``array``, each as it is sent.
    """

    def __init__(self) -> None:
        self.pieces: Final[list[bytes]] = []
        self._counted: i64 = 0  # pieces, of ``_bytes`` in all
        self._bytes: i64 = 0

    def array(self, size: int) -> None:
        """Begin an array of so many strings."""
        self.pieces.append(array_header(size))

    def wire_bytes(self) -> i64:
        """Return the length in bytes so far."""
        while self._counted < len(self.pieces):
            self._bytes += len(self.pieces[self._counted])
            self._counted += 1
        return self._bytes

    def replies(self) -> PackedReplies:
        """Return the replies that were made."""
        return PackedReplies(b"".join(self.pieces))


def packed_strings(count: int, pieces: list[bytes]) -> Packed:
    """Return an array of ``count`` strings kept one behind the other, each as it is sent."""
    if len(pieces) == 1:
        return Packed(array_header(count) + pieces[0])
    pieces.insert(0, array_header(count))
    return Packed(b"".join(pieces))


def packed_pairs(packed: bytes, start: i64, count: int, resp3: bool) -> Packed:
    """Return a map of strings that are kept one behind the other, from a place in ``packed`` on."""
    return Packed(b"%b%b" % (map_header(count, resp3), packed[start:]))


def packed_id(ms: int, seq: int) -> Packed:
    """Return the ID of an entry as a reply."""
    return Packed(id_line(ms, seq))


def ids_in_sequence(ms: int, seq: int, count: int, step: int = 1) -> PackedReplies:
    """Return ``count`` IDs, each a reply: the first (ms, seq), the others ``step`` seqs apart."""
    return PackedReplies(id_lines(ms, seq, count, step))


def packed_replies(replies: list[object], resp3: bool) -> PackedReplies:
    """Return the replies to several requests, packed for one version of the protocol."""
    return PackedReplies(encode(Replies(replies), resp3))


def repeated(status: Status, count: int) -> PackedReplies:
    """Return the same reply to ``count`` requests."""
    return PackedReplies(status.line * count)


_NO_STREAMS: Final = array_header(0)
_NO_STREAMS_RESP3: Final = map_header(0, True)
_ZERO: Final = 0x30


@mypyc_attr(acyclic=True, free_list_len=1)
class StreamsReply(Packer):
    """Makes the reply: a map from key to entries in RESP3, in RESP2 an array of pairs.

    ``streams`` says how many streams there are; before the first one nothing may be added.
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
        """Return the whole reply, which is not empty."""
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
    """MAXSIZE: the length from which on nothing more is put into the reply of a read.

    Bytes are counted as they stand on the wire, except for the header of the whole: what comes
    before the entries of a stream, the entries, and then the length of their array. The entry that
    reaches the limit is given, and one entry is given in any case. ``most`` is at least 1 byte.
    """

    def __init__(self, most: int, resp3: bool) -> None:
        self._most: Final = most
        self._resp3: Final = resp3
        self._bytes = 0
        self._given = False

    def is_reached(self) -> bool:
        """Return whether nothing more may be added."""
        return self._given and self._bytes >= self._most

    def left(self) -> int:
        """Return how many bytes may still be added, or 1 where the next entry is the last."""
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


_STAR: Final = 0x2A
_DOLLAR: Final = 0x24
_COLON: Final = 0x3A
_MINUS: Final = 0x2D
_CR: Final = 0x0D
_AGGREGATES: Final = b"*~>"
_PAIRS: Final = b"%|"
_LENGTHS: Final = b"$="


def unpacked(reply: object) -> object:
    """Return ``reply`` with every packed part replaced by the values it stands for.

    It is written to the same bytes as before, in the protocol for which it was packed. Arrays are
    lists, bulk strings ``bytes`` and integers ``int``; the rest is as ``replies`` names it, where a
    RESP3 double has become a ``Decimal``.
    """
    if isinstance(reply, Packed):
        return _Reader(reply.wire).value()
    if isinstance(reply, PackedReplies):
        return Replies(all_unpacked(reply))
    if isinstance(reply, list | tuple):
        return [unpacked(item) for item in reply]
    if isinstance(reply, Map):
        return Map([(unpacked(name), unpacked(value)) for name, value in reply.pairs])
    if isinstance(reply, Set):
        return Set([unpacked(item) for item in reply.items])
    if isinstance(reply, Push):
        return Push([unpacked(item) for item in reply.items])
    if isinstance(reply, Replies):
        return Replies([unpacked(item) for item in reply.items])
    if isinstance(reply, Attributed):
        pairs = [(unpacked(name), unpacked(value)) for name, value in reply.attributes]
        return Attributed(pairs, unpacked(reply.reply))
    return reply


def all_unpacked(replies: PackedReplies) -> list[object]:
    """Return each of several replies in a row."""
    reader = _Reader(replies.wire)
    found: list[object] = []
    while not reader.is_at_end():
        found.append(reader.value())
    return found


def bulk_text(wire: bytes) -> bytes | None:
    """Return the string that a packed reply is; None of any other reply."""
    if wire[0] != _DOLLAR or wire[1] == _MINUS:
        return None
    return wire[wire.index(b"\r\n") + 2 : -2]


def flat_items(wire: bytes, null: object = None) -> list[object] | None:
    """Return the items of a packed array of strings, integers and nulls; None of any other reply.

    It gives what ``unpacked`` gives, in a third of the time. ``null`` stands for a null.
    """
    if wire[0] != _STAR or wire[1] == _MINUS:
        return None
    at: i64 = 1
    left: i64 = 0
    while wire[at] != _CR:
        left = 10 * left + wire[at] - _ZERO
        at += 1
    at += 2
    found: list[object] = []
    while left > 0:
        left -= 1
        kind = wire[at]
        at += 1
        size: i64 = 0
        if kind == _DOLLAR and wire[at] == _MINUS:
            found.append(null)
            at += 4
        elif kind == _DOLLAR:
            while wire[at] != _CR:
                size = 10 * size + wire[at] - _ZERO
                at += 1
            at += 2
            found.append(wire[at : at + size])
            at += size + 2
        elif kind == _COLON:
            while wire[at + size] != _CR:
                size += 1
            found.append(int(wire[at : at + size]))
            at += size + 2
        else:
            return None
    return found


class _Reader:
    """Reads values one after the other from what this module has written."""

    def __init__(self, wire: bytes) -> None:
        self._wire: Final = wire
        self._at = 0

    def is_at_end(self) -> bool:
        return self._at == len(self._wire)

    def value(self) -> object:
        kind = self._wire[self._at]
        line = self._line()
        if kind == _COLON:
            return int(line)
        if kind in _LENGTHS:
            return self._string(kind, int(line))
        if kind in _AGGREGATES:
            return self._items(kind, int(line))
        if kind in _PAIRS:
            pairs = [(self.value(), self.value()) for _ in range(int(line))]
            return Map(pairs) if kind == _PAIRS[0] else Attributed(pairs, self.value())
        return _of_line(kind, line)

    def _line(self) -> bytes:
        end = self._wire.index(b"\r\n", self._at)
        line = self._wire[self._at + 1 : end]
        self._at = end + 2
        return line

    def _string(self, kind: int, size: int) -> object:
        if size < 0:
            return None
        data = self._wire[self._at : self._at + size]
        self._at += size + 2
        return data if kind == _DOLLAR else Verbatim(data[4:], data[:3])

    def _items(self, kind: int, size: int) -> object:
        if size < 0:
            return NULL_ARRAY
        items = [self.value() for _ in range(size)]
        if kind == _STAR:
            return items
        return Set(items) if kind == _AGGREGATES[1] else Push(items)


def _of_line(kind: int, line: bytes) -> object:
    mark = bytes([kind])
    if mark == b"+":
        return Status(line)
    if mark == b"-":
        return ErrorReply(line)
    if mark == b"#":
        return line == b"t"
    if mark == b",":
        return Decimal(line)
    if mark == b"(":
        return BigNumber(int(line))
    assert mark == b"_", mark
    return None
