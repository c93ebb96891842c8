"""Pieces of an origin's records, as they travel: some whole commands or transactions, in order."""

from __future__ import annotations

import zlib
from typing import Final

from xxhash import xxh3_64

from headrace.storage.vectors import NUMBER_MAX, BadVector, check_origin

DEFLATED: Final = 1  # a flag: the payload is compressed
COMPRESS_FROM_BYTES: Final = 4096
_LEVEL: Final = 1
_ITEMS: Final = 7
TIME_MAX_MS: Final = 2**53
PULL_BYTES: Final = 256 * 1024  # that one PULL asks for, while there is much to come


class BadPiece(ValueError):
    """The data that has arrived is no piece; the text says why."""


class Piece:
    """Records ``first`` to ``first + count - 1`` of an origin.

    Args:
        ms: when the last of them was written, by the sender's clock.
        payload: the commands as they stand in the file, none of them cut in the middle.
    """

    def __init__(self, origin: bytes, first: int, count: int, ms: int, payload: bytes) -> None:
        self.origin: Final = origin
        self.first: Final = first
        self.count: Final = count
        self.ms = ms
        self.payload: Final = payload

    @property
    def last(self) -> int:
        """Number of its last record."""
        return self.first + self.count - 1

    def item(self, compress: bool) -> list[object]:
        """Return it as it stands in a reply."""
        payload = self.payload
        flags = 0
        if compress and len(payload) > COMPRESS_FROM_BYTES:
            smaller = zlib.compress(payload, _LEVEL)
            if len(smaller) < len(payload):
                payload = smaller
                flags = DEFLATED
        checksum = _checksum(self.origin, self.first, self.count, self.ms, flags, payload)
        return [self.origin, self.first, self.count, self.ms, flags, payload, checksum]


def read_piece(items: list[object], most_bytes: int) -> Piece:
    """Return the piece that an item of a reply stands for.

    Its uncompressed payload has at most ``most_bytes``. Raises BadPiece if it is damaged, or none
    of ours.
    """
    if len(items) < _ITEMS:
        raise BadPiece("a piece has too few items")
    origin, first, count, ms, flags, payload, checksum = items[:_ITEMS]
    if not (
        isinstance(origin, bytes)
        and isinstance(first, int)
        and isinstance(count, int)
        and isinstance(ms, int)
        and isinstance(flags, int)
        and isinstance(payload, bytes)
        and isinstance(checksum, bytes)
    ):
        raise BadPiece("an item of a piece is of another kind")
    if checksum != _checksum(origin, first, count, ms, flags, payload):
        raise BadPiece("the checksum of a piece is another one")
    if first < 1 or count < 1 or first + count > NUMBER_MAX or not 0 <= ms <= TIME_MAX_MS:
        raise BadPiece("a number of a piece is out of range")
    if flags not in (0, DEFLATED):
        raise BadPiece("a piece has flags that are not known")
    try:
        check_origin(origin)
    except BadVector:
        raise BadPiece("the origin of a piece is none") from None
    if flags == DEFLATED:
        payload = _inflated(payload, most_bytes)
    if len(payload) > most_bytes:
        raise BadPiece("a piece is too long")
    return Piece(origin, first, count, ms, payload)


def _checksum(origin: bytes, first: int, count: int, ms: int, flags: int, payload: bytes) -> bytes:
    """Return the XXH3 of all fields of a piece, in their order."""
    digest = xxh3_64(b"%b %d %d %d %d\n" % (origin, first, count, ms, flags))
    digest.update(payload)
    return b"%016x" % digest.intdigest()


def _inflated(payload: bytes, most_bytes: int) -> bytes:
    inflater = zlib.decompressobj()
    try:
        data = inflater.decompress(payload, most_bytes + 1)
    except zlib.error:
        raise BadPiece("a piece cannot be decompressed") from None
    if not inflater.eof and len(data) <= most_bytes:
        raise BadPiece("a compressed piece is torn")
    return data
