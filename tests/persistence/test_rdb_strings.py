"""Strings of an RDB file: integers exactly where they spell one, and compressed ones."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from headrace.persistence.forms.table import forms
from headrace.persistence.rdb.primitives import expand
from headrace.persistence.rdb.reader import RdbReader
from headrace.persistence.taker import IntoDatabases
from support.snapshots import databases


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"42", 42),
        (b"-9223372036854775808", -(2**63)),
        (b"9223372036854775807", 2**63 - 1),
        (b"9223372036854775808", b"9223372036854775808"),
        (b"007", b"007"),
        (b"-0", b"-0"),
        (b"--5", b"--5"),
        (b"-", b"-"),
        (b"", b""),
        (b"5-", b"5-"),
        (b" 5", b" 5"),
    ],
)
@pytest.mark.parametrize("form", ["short", "long"])
def test_a_string_of_an_rdb_file(tmp_path: Path, text: bytes, value: object, form: str) -> None:
    path = tmp_path / "dump.rdb"
    size = bytes([len(text)]) if form == "short" else b"\x80" + len(text).to_bytes(4, "big")
    path.write_bytes(b"REDIS0011\x00\x01k" + size + text + b"\xff" + bytes(8))
    (db,) = databases(1)
    reader = RdbReader(os.fsencode(path), IntoDatabases([db]), forms(), {}, 1)
    while reader.step():
        pass
    reader.close()
    found = db.get(b"k", 1)
    assert (type(found), found) == (type(value), value)


def copy(length: int, distance: int) -> bytes:
    """Return what stands for bytes to be copied, by LZF."""
    high, low = divmod(distance - 1, 256)
    short = length - 2
    return bytes([short << 5 | high, low] if short < 7 else [7 << 5 | high, short - 7, low])


@pytest.mark.parametrize("distance", [1, 2, 3, 5, 8, 9, 31, 32, 100, 263, 264, 265, 300])
@pytest.mark.parametrize("length", [3, 8, 9, 10, 31, 64, 263, 264])
def test_what_is_copied_may_overlap_what_it_makes(length: int, distance: int) -> None:
    text = os.urandom(320)
    packed = b"".join(bytes([31]) + text[at : at + 32] for at in range(0, 320, 32))
    wanted = bytearray(text)
    for _ in range(2 * length):  # byte by byte, as the format is defined
        wanted.append(wanted[-distance])
    assert expand(packed + copy(length, distance) * 2, len(wanted)) == bytes(wanted)


def test_a_run_of_one_byte_is_expanded_as_fast_as_another_text() -> None:
    text = b"".join(b"\x1f" + bytes(32) for _ in range(10))
    costs = []
    for distance in (1, 300):
        packed = text + copy(264, distance) * 4000
        before_s = time.process_time()
        assert expand(packed, 320 + 264 * 4000) == bytes(320 + 264 * 4000)
        costs.append(time.process_time() - before_s)
    assert costs[0] < 8 * costs[1] + 0.01
