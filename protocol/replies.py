"""Reply values, and their bytes in RESP2 and RESP3.

A command answers with a value. This is how each looks on the wire:

==================  =======================  =======================
value               RESP2                    RESP3
==================  =======================  =======================
``bytes``           ``$n`` bulk string       the same
``int``             ``:n`` integer           the same
``list``, ``tuple`` ``*n`` array             the same
``None``            ``$-1``                  ``_``
``NULL_ARRAY``      ``*-1``                  ``_``
``Status``          ``+text``                the same
``ErrorReply``      ``-CODE text``           the same
``bool``            ``:1`` or ``:0``         ``#t`` or ``#f``
``float``           bulk string              ``,`` double
``Decimal(digits)`` bulk string              ``,`` double
``Map(pairs)``      flat array of 2n items   ``%n`` map
``Set(items)``      array                    ``~n`` set
``Push(items)``     array                    ``>n`` push
``BigNumber``       bulk string              ``(`` big number
``Verbatim``        bulk string              ``=n`` with a format
``Replies(items)``  each item in turn: a request that is answered more than once
``Attributed``      the reply alone          ``|n`` map before it
``Packed``          one reply, written as it was made; ``unpacking`` reads it
``PackedReplies``   several of those
``NO_REPLY``        nothing is sent
==================  =======================  =======================
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter
from mypy_extensions import mypyc_attr

from headrace.protocol.doubles import double
from headrace.protocol.wire import (
    array_header,
    bulk,
    bulk_header,
    integer,
    map_header,
    null,
    null_array,
    set_header,
    write_bulk,
    write_integer,
)


class Status:
    """A simple string such as ``+OK``; ``line`` holds its bytes with the line end."""

    def __init__(self, text: bytes) -> None:
        self.line: Final = b"+" + text + b"\r\n"


class ErrorReply:
    """An error line, ``CODE text`` without the leading dash.

    Line breaks in it become spaces, those at its end go, as in Redis.
    """

    def __init__(self, text: bytes) -> None:
        if 0x0A in text or 0x0D in text:
            text = text.rstrip(b"\r\n").replace(b"\r", b" ").replace(b"\n", b" ")
        self.text: Final = text


class NullArray:
    """The array that is absent; its only instance is ``NULL_ARRAY``."""


class NoReply:
    """Says that nothing is to be sent; its only instance is ``NO_REPLY``."""


class Map:
    """Pairs in order; duplicate keys are allowed, as the wire allows them."""

    def __init__(self, pairs: list[tuple[object, object]]) -> None:
        self.pairs: Final = pairs


class Set:
    """Items that a RESP3 client may read as a set."""

    def __init__(self, items: list[object]) -> None:
        self.items: Final = items


class Push:
    """An out-of-band message: pub/sub, invalidation."""

    def __init__(self, items: list[object]) -> None:
        self.items: Final = items


class BigNumber:
    """An integer of any size."""

    def __init__(self, value: int) -> None:
        self.value: Final = value


class Decimal:
    """A fraction that is written out already, with more digits than a float may hold."""

    def __init__(self, digits: bytes) -> None:
        self.digits: Final = digits


class Verbatim:
    """Text with a three-letter format, ``txt`` or ``mkd``."""

    def __init__(self, text: bytes, kind: bytes = b"txt") -> None:
        self.text: Final = text
        self.kind: Final = kind


class Replies:
    """Several replies in a row: what SUBSCRIBE answers to its several channels."""

    def __init__(self, items: list[object]) -> None:
        self.items: Final = items


class Attributed:
    """A reply with attributes for a RESP3 client."""

    def __init__(self, attributes: list[tuple[object, object]], reply: object) -> None:
        self.attributes: Final = attributes
        self.reply: Final = reply


@mypyc_attr(acyclic=True, free_list_len=1)
class Packed:
    """A value of many parts, packed as it is sent in ``wire``; a ``Packer`` makes it."""

    def __init__(self, wire: bytes) -> None:
        self.wire: Final = wire


@mypyc_attr(acyclic=True, free_list_len=1)
class PackedReplies:
    """The replies to several requests in a row, kept as ``Packed`` keeps one."""

    def __init__(self, wire: bytes) -> None:
        self.wire: Final = wire


OK: Final = Status(b"OK")
QUEUED: Final = Status(b"QUEUED")
PONG: Final = Status(b"PONG")
NULL_ARRAY: Final = NullArray()
NO_REPLY: Final = NoReply()
NO_REPLIES: Final = PackedReplies(b"")

PIECE_BYTES: Final = 16 * 1024  # of a reply that are copied together, about


def write_reply(out: list[bytes], reply: object, resp3: bool) -> int:
    """Append the wire form of ``reply``, none of ``NO_REPLY``, to ``out``; return its length."""
    if isinstance(reply, Packed):
        wire: bytes | None = reply.wire
    elif isinstance(reply, bytes):
        wire = bulk(reply)
    elif reply is NO_REPLY:
        return 0
    else:
        wire = _atom(reply, resp3)
    if wire is not None:
        out.append(wire)
        return len(wire)
    return _pieces.write_to(out, reply, resp3)


def _atom(reply: object, resp3: bool) -> bytes | None:
    """Return the wire form of a reply that is one short line; None for all others."""
    if isinstance(reply, Status):
        return reply.line
    if isinstance(reply, int):
        if resp3 and isinstance(reply, bool):
            return b"#t\r\n" if reply else b"#f\r\n"
        return integer(reply)
    if reply is None:
        return null(resp3)
    if isinstance(reply, NullArray):
        return null_array(resp3)
    if isinstance(reply, ErrorReply):
        return b"-" + reply.text + b"\r\n"
    return _double(reply, resp3) if isinstance(reply, float) else None


def _double(value: float, resp3: bool) -> bytes:
    text = double(value)
    return b",%b\r\n" % text if resp3 else bulk(text)


_NOWHERE: Final[list[bytes]] = []


class _Pieces:
    """A reply of several parts on its way to ``out``; a long part goes by itself, uncopied."""

    def __init__(self) -> None:
        self.size = 0
        self._out = _NOWHERE
        self._piece = BytesWriter()

    def write_to(self, out: list[bytes], reply: object, resp3: bool) -> int:
        """Append a reply to ``out``; return its length."""
        self.size = 0
        self._out = out
        self._piece.truncate(0)  # of one that could not be written
        self.write(reply, resp3)
        self.end()
        self._out = _NOWHERE
        return self.size

    def end(self) -> None:
        piece = self._piece
        if len(piece):
            self._append(piece.getvalue())
            if len(piece) < 2 * PIECE_BYTES:
                piece.truncate(0)
            else:
                self._piece = BytesWriter()

    def _append(self, wire: bytes) -> None:
        self._out.append(wire)
        self.size += len(wire)

    def write(self, reply: object, resp3: bool) -> None:
        piece = self._piece
        if isinstance(reply, bytes):
            self._write_bulk(reply)
        elif isinstance(reply, int) and not (resp3 and isinstance(reply, bool)):
            write_integer(piece, reply)
        elif isinstance(reply, list):
            self._write_items(array_header(len(reply)), reply, resp3)
        elif isinstance(reply, Packed):
            self._write_wire(reply.wire)
        elif isinstance(reply, Map):
            piece.write(map_header(len(reply.pairs), resp3))
            for name, value in reply.pairs:
                self.write(name, resp3)
                self.write(value, resp3)
        else:
            atom = _atom(reply, resp3)
            if atom is not None:
                piece.write(atom)
            elif not isinstance(reply, NoReply):
                self._write_rare(reply, resp3)

    def _write_bulk(self, data: bytes) -> None:
        if len(data) < PIECE_BYTES:
            write_bulk(self._piece, data)
            if len(self._piece) >= PIECE_BYTES:
                self.end()
        else:
            self._piece.write(bulk_header(len(data)))
            self._write_wire(data)
            self._piece.write(b"\r\n")

    def _write_wire(self, wire: bytes) -> None:
        if len(wire) < PIECE_BYTES:
            self._piece.write(wire)
        else:
            self.end()
            self._append(wire)

    def _write_items(self, header: bytes, items: list[object], resp3: bool) -> None:
        self._piece.write(header)
        for item in items:
            self.write(item, resp3)

    def _write_rare(self, reply: object, resp3: bool) -> None:
        if isinstance(reply, tuple):
            self.write(list(reply), resp3)
        elif isinstance(reply, Set):
            self._write_items(set_header(len(reply.items), resp3), reply.items, resp3)
        elif isinstance(reply, Push):
            header = (b">%d\r\n" if resp3 else b"*%d\r\n") % len(reply.items)
            self._write_items(header, reply.items, resp3)
        elif isinstance(reply, Replies):
            self._write_items(b"", reply.items, resp3)
        elif isinstance(reply, PackedReplies):
            self._write_wire(reply.wire)
        elif isinstance(reply, Attributed):
            if resp3:
                self._piece.write(b"|%d\r\n" % len(reply.attributes))
                for name, value in reply.attributes:
                    self.write(name, True)
                    self.write(value, True)
            self.write(reply.reply, resp3)
        else:
            self._piece.write(_rare(reply, resp3))


_pieces: Final = _Pieces()  # one reply is written at a time


def _rare(reply: object, resp3: bool) -> bytes:
    if isinstance(reply, Decimal):
        return b"," + reply.digits + b"\r\n" if resp3 else bulk(reply.digits)
    if isinstance(reply, Verbatim):
        if resp3:
            return b"=%d\r\n%b:%b\r\n" % (len(reply.text) + 4, reply.kind, reply.text)
        return bulk(reply.text)
    if isinstance(reply, BigNumber):
        digits = b"%d" % reply.value
        return b"(" + digits + b"\r\n" if resp3 else bulk(digits)
    raise TypeError(f"not a reply value: {type(reply).__name__}")


def encode(reply: object, resp3: bool = False) -> bytes:
    """Return the whole wire form of one reply."""
    out: list[bytes] = []
    write_reply(out, reply, resp3)
    return b"".join(out)
