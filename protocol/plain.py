"""Requests in the canonical form, and nothing else, fast: the fast way of the compiled build.

``take_words`` is for a request of which only some words have come in.

In a pipeline, and from a client that asks for the same again and again, most words stood at the
same place of the request before: the command, a key, an option. Such a word is recognised by its
bytes on the wire, header and line end included. It is not made anew, and its hash is known, which
makes looking it up cheaper. The words at the front are compared all at once, as many as the last
request shared with the one before it. Of another word that is as long the header is known, and only
its end is looked at.

The request before is the last one with as many words. A client that reads, works and acknowledges
sends three kinds of requests in turn, and mostly they differ in their number of words.

Source: networking.c, processMultibulkBuffer.
"""

from __future__ import annotations

from typing import Final

from librt.strings import read_i16_le, read_i32_le, read_i64_le
from mypy_extensions import i64

STAR: Final = 0x2A
DOLLAR: Final = 0x24
_CR: Final = 0x0D
_LF: Final = 0x0A
_ZERO: Final = 0x30
_DIGITS: Final = 7  # of a number, at most
_WORD_BYTES: Final = 6  # of a word on the wire, at least
_REQUEST_BYTES: Final = 4  # of a request, at least
_REPEATED_BYTES: Final = 72  # of a word on the wire, at most, to be compared
_KEPT_BYTES: Final = 2048  # of the last request of a chunk, at most, to be kept
_KEPT_WORDS: Final = 64  # as well: each takes some forty bytes beside its own
_PLACES: Final = 8  # for requests of different widths; all except the last are small:
_ASIDE_BYTES: Final = 256  # of such a one, at most
_ASIDE_WORDS: Final = 16
_BYTES_AT_ONCE: Final = 8
# Of the first four bytes of a header line, in the order of the bytes: the lowest comes first.
_ALL_BUT_SECOND: Final[i64] = 0xFFFF00FF
_FIRST_AND_LAST: Final[i64] = 0xFF0000FF
_STAR_AND_END: Final[i64] = 0x0A0D002A
_DOLLAR_AND_END: Final[i64] = 0x0A0D0024
_DOLLAR_AND_CR: Final[i64] = 0x0D000024
_END: Final[i64] = 0x0A0D
_FOUR_BYTES: Final[i64] = 0xFFFFFFFF
_FIVE_BYTES: Final[i64] = 0xFFFFFFFFFF
_ONE_WORD: Final = [b""]


class _Known:
    """A request that has been taken; the next one of as many words is compared with it.

    Invariant: ``words`` are those of the request that stands in ``wire`` from ``began`` to
    ``ended``, except while it is being taken. Where ``wire`` is empty, ``words`` mean nothing.
    """

    def __init__(self) -> None:
        self.words: list[bytes] = []
        self.wire = b""
        self.began: i64 = 0
        self.ended: i64 = 0
        self.leading: i64 = 0  # words at its front that the request before it had, too
        self.leading_bytes: i64 = 0  # from its start to the end of these

    def forget(self) -> None:
        """Forget the request."""
        self.words = []
        self.wire = b""
        self.began = 0
        self.ended = 0
        self.leading = 0
        self.leading_bytes = 0

    def take(self, chunk: bytes, total: i64, at: i64, taken: i64) -> i64:
        """Make it the request of as many words in ``chunk`` from ``total`` on; return its end.

        At ``at`` stands its word ``taken``, the first that is not known to be the same. Returns -1,
        and knows nothing then, where it is no such request or not whole.
        """
        size: i64 = len(chunk)
        words = self.words
        count: i64 = len(words)
        wire = self.wire
        may_repeat = len(wire) > 0
        before_at = self.began + at - total
        while taken < count:
            if at + _WORD_BYTES > size:
                self.forget()
                return -1
            if may_repeat:
                length: i64 = len(words[taken])
                front: i64 = 4 if length < 10 else 5 if length < 100 else 6
                width = front + length + 2
                if width <= _REPEATED_BYTES:
                    if at + width <= size:
                        last = width - _BYTES_AT_ONCE
                        tail = read_i64_le(chunk, at + last)
                        if tail == read_i64_le(wire, before_at + last) and _is_same(
                            chunk, at, wire, before_at, width
                        ):
                            at += width
                            before_at += width
                            if taken == self.leading:
                                self.leading += 1
                                self.leading_bytes = at - total
                            taken += 1
                            continue
                        # Another word that is as long has the same header, of four bytes or five,
                        # and ends at the same place.
                        if (
                            last >= 0
                            and tail >> 48 == _END
                            and (read_i64_le(chunk, at) ^ read_i64_le(wire, before_at))
                            & (_FOUR_BYTES if front == 4 else _FIVE_BYTES)
                            == 0
                        ):
                            words[taken] = chunk[at + front : at + front + length]
                            at += width
                            before_at += width
                            taken += 1
                            continue
                elif width > 1000:
                    may_repeat = False
                before_at += width
            first, end = _word(chunk, at, size)
            if end < 0:
                self.forget()
                return -1
            words[taken] = chunk[first:end]
            at = end + 2
            taken += 1
        self.wire, self.began, self.ended = chunk, total, at
        return at

    def detach(self, chunk: bytes) -> None:
        """Drop ``chunk``: keep a copy of the request if it is small, else forget it."""
        if self.wire is not chunk:
            return
        size = self.ended - self.began
        if size > _KEPT_BYTES or len(self.words) > _KEPT_WORDS:
            self.forget()
        elif size < len(chunk):
            self.wire = chunk[self.began : self.ended]
            self.began = 0
            self.ended = size

    def put_aside(self, chunk: bytes) -> None:
        """Drop as ``detach``, while requests of another width come: many clients may do so."""
        self.detach(chunk)
        if len(self.wire) > _ASIDE_BYTES or len(self.words) > _ASIDE_WORDS:
            self.forget()


class PlainParser:
    """Finds requests at the start of a chunk; knows those before of a few widths.

    Invariants: ``_known`` is one of ``_by_width`` from the first request on. Between two calls all
    of these stand in a ``wire`` of their own.
    """

    def __init__(self) -> None:
        self._known = _Known()  # the last one
        self._by_width: list[_Known | None] = [None] * _PLACES

    def take(self, chunk: bytes, requests: list[list[bytes]]) -> i64:
        """Append whole canonical requests at the start of ``chunk``; return where they end."""
        size: i64 = len(chunk)
        known = self._known
        total: i64 = 0
        others = False  # of this chunk have had another width than the last one
        while total + _REQUEST_BYTES <= size:
            # Nearly all numbers have one digit or two: four bytes show the whole line.
            at: i64 = total + 4
            head = i64(read_i32_le(chunk, total))
            count: i64 = ((head >> 8) & 0xFF) - _ZERO
            if head & _ALL_BUT_SECOND != _STAR_AND_END or not 0 <= count <= 9:
                if head & 0xFF != STAR:
                    break
                count, at = _number(chunk, total + 1, size)
            if count <= 0 or count * _WORD_BYTES > size - at:
                break
            if count != len(known.words):
                others = True
                known = self._of_width(count)
            leading_bytes = known.leading_bytes
            if total == 0 and chunk == known.wire:
                end = size
            elif (
                leading_bytes
                and total + leading_bytes <= size
                and _is_same(chunk, total, known.wire, known.began, leading_bytes)
            ):
                end = known.take(chunk, total, total + leading_bytes, known.leading)
            else:
                known.leading = 0
                known.leading_bytes = 0
                end = known.take(chunk, total, at, 0)
            if end < 0:
                break
            requests.append(known.words.copy())
            total = end
        if others:
            for other in self._by_width:
                if other is not None and other is not known:
                    other.put_aside(chunk)
        known.detach(chunk)
        self._known = known
        return total

    def _of_width(self, count: i64) -> _Known:
        """Return the known request of ``count`` words; two widths may have to share a place."""
        place = count % _PLACES
        known = self._by_width[place]
        if known is None:
            known = _Known()
            self._by_width[place] = known
        if len(known.words) != count:
            known.forget()
            known.words = _ONE_WORD * int(count)
        return known


def take_words(chunk: bytes, words: list[bytes], most: int) -> tuple[i64, i64]:
    """Append up to ``most`` whole canonical words at the start of ``chunk`` to ``words``.

    Returns: where they end, and how long they are together.
    """
    size: i64 = len(chunk)
    left: i64 = most
    at: i64 = 0
    length: i64 = 0
    while left and at + _WORD_BYTES <= size:
        first, end = _word(chunk, at, size)
        if end < 0:
            break
        words.append(chunk[first:end])
        length += end - first
        at = end + 2
        left -= 1
    return at, length


def _word(chunk: bytes, at: i64, size: i64) -> tuple[i64, i64]:
    """Return where the word of the header at ``at`` starts and ends in ``size`` bytes; -1: none."""
    head = i64(read_i32_le(chunk, at))
    length: i64 = ((head >> 8) & 0xFF) - _ZERO
    second: i64 = ((head >> 16) & 0xFF) - _ZERO
    if head & _ALL_BUT_SECOND == _DOLLAR_AND_END and 0 <= length <= 9:
        at += 4
    elif (
        head & _FIRST_AND_LAST == _DOLLAR_AND_CR
        and chunk[at + 4] == _LF
        and 0 < length <= 9
        and 0 <= second <= 9
    ):
        length = 10 * length + second
        at += 5
    elif head & 0xFF == DOLLAR:
        length, at = _number(chunk, at + 1, size)
    else:
        return at, -1
    end = at + length
    if length < 0 or end + 1 >= size or read_i16_le(chunk, end) != _END:
        return at, -1
    return at, end


def _is_same(chunk: bytes, at: i64, other: bytes, other_at: i64, width: i64) -> bool:
    """Return whether the same ``width`` bytes, at least 6, stand at both places.

    They are compared eight at once, the last ones first: those of a short word reach back to the
    line end before it.
    """
    last = width - _BYTES_AT_ONCE
    if read_i64_le(chunk, at + last) != read_i64_le(other, other_at + last):
        return False
    step: i64 = 0
    while step < last:
        if read_i64_le(chunk, at + step) != read_i64_le(other, other_at + step):
            return False
        step += _BYTES_AT_ONCE
    return True


def _number(chunk: bytes, at: i64, size: i64) -> tuple[i64, i64]:
    """Return the number of a line at ``at`` in ``size`` bytes, and the next line's start, or -1."""
    first = at
    number: i64 = 0
    while at + 1 < size:
        char: i64 = chunk[at]
        if char == _CR:
            if at == first or chunk[at + 1] != _LF or (chunk[first] == _ZERO and at > first + 1):
                break
            return number, at + 2
        if char < _ZERO or char > _ZERO + 9 or at >= first + _DIGITS:
            break
        number = number * 10 + char - _ZERO
        at += 1
    return -1, at
