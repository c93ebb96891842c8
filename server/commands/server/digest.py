"""DEBUG DIGEST: a fingerprint of the data, the same that Redis computes for the same data.

The order of keys does not matter, while that of a stream's entries does: see ``storage.digest``.
Source: debug.c, computeDatasetDigest and xorObjectDigest.
"""

from __future__ import annotations

from typing import Final

from headrace.protocol.doubles import in_digits
from headrace.storage.digest import DIGEST_BYTES, Digest
from headrace.storage.entry import NO_EXPIRY, Entry
from headrace.storage.faces import face
from headrace.storage.keyspace import Keyspace

_EXPIRES: Final = b"!!expire!!"


def _add_value(digest: Digest, entry: Entry) -> None:
    """Add the value of a key, and that it expires where it does."""
    face(entry.value).add_to(digest)
    if entry.expire_ms != NO_EXPIRY:
        digest.toggle(_EXPIRES)


def value_digest(entry: Entry | None) -> bytes:
    """The digest of one value, as DEBUG DIGEST-VALUE shows it; all zeros when it is not there."""
    digest = Digest(in_digits)
    if entry is not None:
        _add_value(digest, entry)
    return digest.hexadecimal()


def data_digest(databases: list[Keyspace]) -> bytes:
    """The digest of all data."""
    total = Digest()
    for db in databases:
        if not len(db):
            continue
        total.mix(db.index.to_bytes(4, "big"))
        for entry in db.every():
            digest = Digest(in_digits)
            digest.mix(entry.key)
            _add_value(digest, entry)
            total.toggle(digest.value.to_bytes(DIGEST_BYTES, "big"))
    return total.hexadecimal()
