"""Strings of an RDB file become integers exactly where they spell one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headrace.persistence.forms.table import rdb_values
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
    reader = RdbReader(os.fsencode(path), IntoDatabases([db]), rdb_values(), {}, 1)
    while reader.step():
        pass
    reader.close()
    found = db.get(b"k", 1)
    assert (type(found), found) == (type(value), value)
