"""DEBUG DIGEST: a fingerprint of the data, the same that Redis computes for the same data.

SHA-1 of each part, mixed so that the order of keys does not matter while that of entries does.
Source: debug.c, computeDatasetDigest and xorObjectDigest.
"""

from __future__ import annotations

from hashlib import sha1
from typing import Final

from headrace.storage.keyspace import NO_EXPIRY, Entry, Keyspace
from headrace.storage.stream.ids import ID_MAX, following
from headrace.storage.stream.stream import Stream
from headrace.storage.value import string_bytes

_SIZE: Final = 20
_TYPE_STRING: Final = (0).to_bytes(4, "big")
_TYPE_STREAM: Final = (6).to_bytes(4, "big")
_EXPIRES: Final = b"!!expire!!"
_PAGE: Final = 1000  # entries looked at together


class Digest:
    """A digest that parts are added to."""

    def __init__(self) -> None:
        self.value = 0

    def toggle(self, part: bytes) -> None:
        """Add a part whose place does not matter."""
        self.value ^= int.from_bytes(sha1(part, usedforsecurity=False).digest(), "big")

    def mix(self, part: bytes) -> None:
        """Add a part whose place matters."""
        self.toggle(part)
        digest = sha1(self.value.to_bytes(_SIZE, "big"), usedforsecurity=False).digest()
        self.value = int.from_bytes(digest, "big")

    def hexadecimal(self) -> bytes:
        """Forty digits."""
        return b"%040x" % self.value


def add_value(digest: Digest, entry: Entry) -> None:
    """Add the value of a key, and that it expires where it does."""
    value = entry.value
    if isinstance(value, Stream):
        digest.mix(_TYPE_STREAM)
        _add_stream(digest, value)
    else:
        digest.mix(_TYPE_STRING)
        digest.mix(string_bytes(value) or b"")
    if entry.expire_ms != NO_EXPIRY:
        digest.toggle(_EXPIRES)


def _add_stream(digest: Digest, stream: Stream) -> None:
    start = (0, 0)
    left = stream.length
    while left > 0:
        for part in stream.parts(start, (ID_MAX, ID_MAX), _PAGE, False):
            run = part.run
            dead = part.dead
            for number in range(part.low, part.high):
                if dead is not None and dead[number]:
                    continue
                ms = run.ms[number]
                seq = run.seq[number]
                digest.mix(b"%d.%d" % (ms, seq))
                for word in run.row(number):
                    digest.mix(word)
                start = following(ms, seq)
                left -= 1


def value_digest(entry: Entry | None) -> bytes:
    """The digest of one value, as DEBUG DIGEST-VALUE shows it; all zeros when it is not there."""
    digest = Digest()
    if entry is not None:
        add_value(digest, entry)
    return digest.hexadecimal()


def data_digest(databases: list[Keyspace]) -> bytes:
    """The digest of all data."""
    total = Digest()
    for db in databases:
        if not len(db):
            continue
        total.mix(db.index.to_bytes(4, "big"))
        for entry in db.slots:
            digest = Digest()
            digest.mix(entry.key)
            add_value(digest, entry)
            total.toggle(digest.value.to_bytes(_SIZE, "big"))
    return total.hexadecimal()
