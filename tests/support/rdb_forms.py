"""Forms of values in RDB that no server of today writes: made by hand, as older ones wrote them."""

from __future__ import annotations

import struct

from headrace.persistence.rdb.crc64 import crc64
from support.interchange import length, string

__all__ = ["intset", "length", "payload", "sealed", "string", "ziplist", "zipmap"]


def payload(kind: int, body: bytes, version: int = 6) -> bytes:
    """Return what DUMP would have answered."""
    return sealed(bytes([kind]) + body + struct.pack("<H", version))


def sealed(body: bytes) -> bytes:
    return body + struct.pack("<Q", crc64(body, 0))


def ziplist(entries: list[bytes]) -> bytes:
    """Texts and integers of all kinds that a ziplist has."""
    body = b""
    before = b""
    at = 10
    for entry in entries:
        at += len(before)
        packed = bytes([len(before)]) if len(before) < 254 else b"\xfe" + _u32(len(before))
        before = packed + _ziplist_entry(entry)
        body += before
    return struct.pack("<IIH", len(body) + 11, at, len(entries)) + body + b"\xff"


def _u32(number: int) -> bytes:
    return struct.pack("<I", number)


def _ziplist_entry(entry: bytes) -> bytes:
    if entry.removeprefix(b"-").isdigit() and b"%d" % int(entry) == entry and len(entry) < 20:
        number = int(entry)
        if 0 <= number <= 12:
            return bytes([0xF1 + number])
        for kind, size in ((0xFE, 1), (0xC0, 2), (0xF0, 3), (0xD0, 4), (0xE0, 8)):
            if -(2 ** (8 * size - 1)) <= number < 2 ** (8 * size - 1):
                return bytes([kind]) + number.to_bytes(size, "little", signed=True)
    if len(entry) < 64:
        return bytes([len(entry)]) + entry
    if len(entry) < 1 << 14:
        return bytes([0x40 | len(entry) >> 8, len(entry) & 0xFF]) + entry
    return b"\x80" + struct.pack(">I", len(entry)) + entry


def zipmap(pairs: list[bytes], unused: int = 0) -> bytes:
    body = b""
    for place, text in enumerate(pairs):
        body += bytes([len(text)]) if len(text) < 254 else b"\xfe" + _u32(len(text))
        if place % 2:
            body += bytes([unused])
        body += text + (bytes(unused) if place % 2 else b"")
    return bytes([min(len(pairs) // 2, 254)]) + body + b"\xff"


def intset(numbers: list[int], width: int) -> bytes:
    letter = {2: "h", 4: "i", 8: "q"}[width]
    return struct.pack(f"<II{len(numbers)}{letter}", width, len(numbers), *sorted(numbers))
