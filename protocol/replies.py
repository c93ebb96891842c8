"""Reply values, and their bytes in RESP2 and RESP3.

A command answers with a plain Python value; this module alone knows how it looks on the wire:

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
``Encoded``         already on the wire: sent as it is
``NO_REPLY``        nothing is sent
==================  =======================  =======================
"""

from __future__ import annotations

from math import copysign, isinf, isnan
from typing import Final

from librt.strings import BytesWriter, write_i16_le, write_i32_le
from mypy_extensions import i16, i32, i64, mypyc_attr


class Status:
    """A simple string such as ``+OK``; ``line`` holds its bytes with the line end."""

    def __init__(self, text: bytes) -> None:
        self.line: Final = b"+" + text + b"\r\n"


class ErrorReply:
    """An error line, ``CODE text`` without the leading dash; line breaks become spaces."""

    def __init__(self, text: bytes) -> None:
        if 0x0A in text or 0x0D in text:
            text = text.replace(b"\r", b" ").replace(b"\n", b" ")
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


@mypyc_attr(acyclic=True)
class Encoded:
    """Bytes that are a whole reply, or several, already."""

    def __init__(self, wire: bytes) -> None:
        self.wire: Final = wire


OK: Final = Status(b"OK")
QUEUED: Final = Status(b"QUEUED")
PONG: Final = Status(b"PONG")
NULL_ARRAY: Final = NullArray()
NO_REPLY: Final = NoReply()

# ``*0\r\n`` and ``$0\r\n`` with the lowest byte first; a digit is added to the second byte.
_STAR_LINE: Final[i64] = 0x0A0D302A
_DOLLAR_LINE: Final[i64] = 0x0A0D3024
_END_OF_LINE: Final[i16] = 0x0A0D
_COLON: Final = 0x3A
PIECE_BYTES: Final = 16 * 1024  # of a reply that are copied together, about
_BULK_HEADERS: Final = [b"$%d\r\n" % n for n in range(1024)]
_ARRAY_HEADERS: Final = [b"*%d\r\n" % n for n in range(256)]
DECIMALS: Final = [b"%d" % n for n in range(1000)]
THOUSANDTHS: Final = [b"%03d" % n for n in range(1000)]
WORD_MAX: Final = 2**62 - 1  # what is above may be no machine word
_INTEGERS: Final = [b":%d\r\n" % n for n in range(1024)]


def bulk(data: bytes) -> bytes:
    """One bulk string, whole."""
    size = len(data)
    if size < 1024:
        return b"%b%b\r\n" % (_BULK_HEADERS[size], data)
    return b"$%d\r\n%b\r\n" % (size, data)


def write_bulk(out: BytesWriter, data: bytes) -> None:
    """Append ``bulk(data)`` to ``out``."""
    size: i64 = len(data)
    if size < 10:
        write_i32_le(out, i32(_DOLLAR_LINE + (size << 8)))
    else:
        out.write(bulk_header(int(size)))
    out.write(data)
    write_i16_le(out, _END_OF_LINE)


def write_integer(out: BytesWriter, number: int) -> None:
    """Append an integer to ``out``."""
    if 0 <= number < 1024:
        out.write(_INTEGERS[number])
    else:
        out.append(_COLON)
        if 0 <= number <= WORD_MAX:
            _write_digits(out, number)
        else:
            out.write(b"%d" % number)
        write_i16_le(out, _END_OF_LINE)


def _write_digits(out: BytesWriter, number: i64) -> None:
    if number < 1000:
        out.write(DECIMALS[number])
    else:
        _write_digits(out, number // 1000)
        out.write(THOUSANDTHS[number % 1000])


def decimal(number: i64) -> bytes:
    """The digits of a number that is not below 0."""
    if number < 1000:
        return DECIMALS[number]
    return decimal(number // 1000) + THOUSANDTHS[number % 1000]


def null(resp3: bool) -> bytes:
    """What stands for no value."""
    return b"_\r\n" if resp3 else b"$-1\r\n"


def map_header(size: int, resp3: bool) -> bytes:
    """The line that opens a map of ``size`` pairs, which follow flat."""
    return b"%%%d\r\n" % size if resp3 else array_header(2 * size)


def bulk_header(size: int) -> bytes:
    """The line that opens a bulk string of ``size`` bytes."""
    return _BULK_HEADERS[size] if size < 1024 else b"$%d\r\n" % size


def array_header(size: int) -> bytes:
    """The line that opens an array of ``size`` items."""
    return _ARRAY_HEADERS[size] if size < 256 else b"*%d\r\n" % size


def request(argv: list[bytes]) -> bytes:
    """A request as a client, the AOF or a replica would send it: an array of bulk strings."""
    out = BytesWriter()
    write_request(out, argv)
    return out.getvalue()


def write_request(out: BytesWriter, argv: list[bytes]) -> None:
    """Append ``request(argv)`` to ``out``."""
    count: i64 = len(argv)
    if count < 10:
        write_i32_le(out, i32(_STAR_LINE + (count << 8)))
    else:
        out.write(array_header(int(count)))
    for argument in argv:
        write_bulk(out, argument)


_WHOLE: Final = float(1 << 62)


def double(value: float) -> bytes:
    """A double as the fewest digits that tell it from all others; ``inf``, ``-inf``, ``nan``.

    Whole numbers are written as integers up to 2 ** 62, as Redis does since 7.2; powers of ten
    beyond as its fpconv_dtoa writes them out: seven zeros at most.
    """
    if isinf(value):
        return b"inf" if value > 0 else b"-inf"
    if isnan(value):
        return b"nan"
    if -_WHOLE <= value <= _WHOLE and value.is_integer():
        return b"%d" % int(value)
    sign = b"-" if copysign(1.0, value) < 0 else b""
    mantissa, _, power = repr(abs(value)).encode().partition(b"e")
    whole, _, fraction = mantissa.partition(b".")
    exponent = int(power or b"0") - len(fraction)
    digits = (whole + fraction).lstrip(b"0")
    size = len(digits)
    digits = digits.rstrip(b"0")
    exponent += size - len(digits)
    if not digits:
        return sign + b"0"
    return sign + _write_out(digits, exponent)


def _write_out(digits: bytes, exponent: int) -> bytes:
    """``digits`` times ten to the ``exponent``."""
    size = len(digits)
    leading = exponent + size - 1  # power of ten of the first digit
    if exponent >= 0 and leading < size + 7:
        return digits + b"0" * exponent
    if -7 < exponent < 0 or (exponent < 0 and abs(leading) < 4):
        point = size + exponent
        if point <= 0:
            return b"0." + b"0" * -point + digits
        return digits[:point] + b"." + digits[point:]
    mantissa = digits[:1] + b"." + digits[1:] if size > 1 else digits
    return b"%be%b%d" % (mantissa, b"-" if leading < 0 else b"+", abs(leading))


def write_reply(out: list[bytes], reply: object, resp3: bool) -> int:
    """Append the wire form of ``reply`` to ``out``, in one or more pieces in order; its length.

    ``NO_REPLY`` has none.
    """
    if isinstance(reply, Encoded):
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
    pieces = _Pieces(out)
    pieces.write(reply, resp3)
    pieces.end()
    return pieces.size


def _atom(reply: object, resp3: bool) -> bytes | None:
    """The wire form of a reply that is one short line; None for all others."""
    if isinstance(reply, Status):
        return reply.line
    if isinstance(reply, int):
        if resp3 and isinstance(reply, bool):
            return b"#t\r\n" if reply else b"#f\r\n"
        return _INTEGERS[reply] if 0 <= reply < 1024 else b":%d\r\n" % reply
    if reply is None:
        return null(resp3)
    if isinstance(reply, NullArray):
        return b"_\r\n" if resp3 else b"*-1\r\n"
    if isinstance(reply, ErrorReply):
        return b"-" + reply.text + b"\r\n"
    return None


class _Pieces:
    """A reply of several parts on its way to ``out``; a long part goes by itself, uncopied."""

    def __init__(self, out: list[bytes]) -> None:
        self.size = 0
        self._out: Final = out
        self._piece = BytesWriter()

    def end(self) -> None:
        """Move what is in the piece at hand to ``out``."""
        if len(self._piece):
            self._append(self._piece.getvalue())
            self._piece = BytesWriter()

    def _append(self, wire: bytes) -> None:
        self._out.append(wire)
        self.size += len(wire)

    def write(self, reply: object, resp3: bool) -> None:
        piece = self._piece
        if isinstance(reply, bytes):
            self._write_bulk(reply)
        elif isinstance(reply, list):
            self._write_items(array_header(len(reply)), reply, resp3)
        elif isinstance(reply, Encoded):
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
            header = (b"~%d\r\n" if resp3 else b"*%d\r\n") % len(reply.items)
            self._write_items(header, reply.items, resp3)
        elif isinstance(reply, Push):
            header = (b">%d\r\n" if resp3 else b"*%d\r\n") % len(reply.items)
            self._write_items(header, reply.items, resp3)
        elif isinstance(reply, Replies):
            self._write_items(b"", reply.items, resp3)
        else:
            self._piece.write(_rare(reply, resp3))


def _rare(reply: object, resp3: bool) -> bytes:
    if isinstance(reply, float):
        text = double(reply)
        return b"," + text + b"\r\n" if resp3 else bulk(text)
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
    """The whole wire form of one reply."""
    out: list[bytes] = []
    write_reply(out, reply, resp3)
    return b"".join(out)
