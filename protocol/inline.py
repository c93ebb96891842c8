"""Words of an inline request, with the quoting rules that Redis gives them.

Words are separated by white space, but a vertical tab or a form feed in a word is part of it. A NUL
ends the line. Inside double quotes ``\\n \\r \\t \\b \\a``, ``\\xHH`` and an
escaped character are understood; inside single quotes only ``\\'``. A closing quote must be
followed by white space or the end.
"""

from __future__ import annotations

from typing import Final

_ESCAPES: Final = {ord("n"): 10, ord("r"): 13, ord("t"): 9, ord("b"): 8, ord("a"): 7}
_SPACES: Final = b" \t\n\r\v\f"
_ENDS: Final = b" \t\n\r\0"  # of a word without quotes
_HEX: Final = b"0123456789abcdefABCDEF"


def split_words(line: bytes) -> list[bytes] | None:
    """The words of ``line``; None when its quotes do not balance."""
    words: list[bytes] = []
    position = 0
    size = len(line)
    while True:
        while position < size and line[position] in _SPACES:
            position += 1
        if position >= size or not line[position]:
            return words
        word = bytearray()
        position = _read_word(line, position, word)
        if position < 0:
            return None
        words.append(bytes(word))


def _read_word(line: bytes, position: int, word: bytearray) -> int:
    """Read one word into ``word``; the position after it, or -1 for unbalanced quotes."""
    size = len(line)
    while position < size:
        char = line[position]
        if char in _ENDS:
            return position
        if char == 0x22:
            return _read_double_quoted(line, position + 1, word)
        if char == 0x27:
            return _read_single_quoted(line, position + 1, word)
        word.append(char)
        position += 1
    return position


def _read_double_quoted(line: bytes, position: int, word: bytearray) -> int:
    size = len(line)
    while position < size:
        char = line[position]
        if char == 0x5C and line[position + 1 : position + 2] == b"x":
            digits = line[position + 2 : position + 4]
            if len(digits) == 2 and digits[0] in _HEX and digits[1] in _HEX:
                word.append(int(digits, 16))
                position += 4
                continue
        if char == 0x5C and position + 1 < size:
            escaped = line[position + 1]
            word.append(_ESCAPES.get(escaped, escaped))
            position += 2
        elif char == 0x22:
            return _end_of_quoted(line, position + 1)
        else:
            word.append(char)
            position += 1
    return -1


def _read_single_quoted(line: bytes, position: int, word: bytearray) -> int:
    size = len(line)
    while position < size:
        char = line[position]
        if char == 0x5C and line[position + 1 : position + 2] == b"'":
            word.append(0x27)
            position += 2
        elif char == 0x27:
            return _end_of_quoted(line, position + 1)
        else:
            word.append(char)
            position += 1
    return -1


def _end_of_quoted(line: bytes, position: int) -> int:
    if position < len(line) and line[position] and line[position] not in _SPACES:
        return -1
    return position
