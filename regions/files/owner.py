"""Which region files belong to, if they do."""

from __future__ import annotations

from typing import Final

from headrace.persistence.errors import os_refusal
from headrace.persistence.snapshot.decode import KEEP_ALL, Decoder
from headrace.persistence.snapshot.file import is_rdb_file, is_snapshot
from headrace.persistence.snapshot.loader import SnapshotLoader
from headrace.regions.files.identity import read_identity

_STEPS: Final = 3  # a frame is read, and then its first records: a header, and a region's


Owner = tuple[int, bytes]  # its number, and what it is a region of


def owner_of(paths: list[bytes]) -> Owner | None:
    """The region that the first of these files belongs to that is a region's; None without one.

    Raises:
        PersistenceError: one of them cannot be read.
    """
    for path in paths:
        found = _owner(path)
        if found is not None:
            return found
    return None


def _owner(path: bytes) -> Owner | None:
    if is_rdb_file(path):
        return None
    if is_snapshot(path):
        return _owner_of_snapshot(path)
    try:
        identity = read_identity(path)
    except OSError as error:
        raise os_refusal(path, "read", error) from error
    return None if identity is None else (identity.region, identity.database)


def _owner_of_snapshot(path: bytes) -> Owner | None:
    decoder = Decoder([], 0, KEEP_ALL)
    decoder.accept_databases()
    decoder.accept_region(None)
    loader = SnapshotLoader(path, decoder)
    try:
        for _ in range(_STEPS):
            if not loader.step():
                break
        region = decoder.region
        return None if region is None else (region.id, region.database)
    finally:
        loader.close()
