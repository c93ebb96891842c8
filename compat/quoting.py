"""Strings as Redis shows them in MONITOR and its logs: in double quotes, escaped."""

from __future__ import annotations

from typing import Final

_ESCAPED: Final = {
    0x22: b'\\"',
    0x5C: b"\\\\",
    0x0A: b"\\n",
    0x0D: b"\\r",
    0x09: b"\\t",
    0x07: b"\\a",
    0x08: b"\\b",
}
_SHOWN: Final = [
    _ESCAPED.get(char, b"%c" % char if 0x20 <= char < 0x7F else b"\\x%02x" % char)
    for char in range(256)
]


def quoted(text: bytes) -> bytes:
    """``text`` in double quotes, what cannot be printed as ``\\xHH``."""
    return b'"' + b"".join([_SHOWN[char] for char in text]) + b'"'
