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
def test_a_string_of_an_rdb_file(tmp_path: Path, text: bytes, value: object) -> None:
    path = tmp_path / "dump.rdb"
    path.write_bytes(b"REDIS0011\x00\x01k" + bytes([len(text)]) + text + b"\xff" + bytes(8))
    (db,) = databases(1)
    reader = RdbReader(os.fsencode(path), IntoDatabases([db]), rdb_values(), {}, 1)
    while reader.step():
        pass
    reader.close()
    found = db.get(b"k", 1)
    assert (type(found), found) == (type(value), value)
