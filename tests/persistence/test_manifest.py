"""The manifest: read exactly, written all or nothing."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.persistence.aof.manifest import BASE, INCR, AofFile, Manifest, parse
from headrace.persistence.errors import PersistenceError

NAME = b"appendonly.aof.manifest"
WHOLE = b"""# a comment
file appendonly.aof.2.base.aof seq 2 type b
file appendonly.aof.1.incr.aof seq 1 type h
file appendonly.aof.2.incr.aof seq 2 type i
file appendonly.aof.3.incr.aof seq 3 type i startoffset 17
"""


def test_all_kinds_are_read_and_written_again() -> None:
    manifest = parse(WHOLE, NAME)
    assert manifest.base is not None
    assert (manifest.base.name, manifest.base_seq) == (b"appendonly.aof.2.base.aof", 2)
    assert [file.name for file in manifest.history] == [b"appendonly.aof.1.incr.aof"]
    assert [file.seq for file in manifest.incrs] == [2, 3]
    assert manifest.incr_seq == 3
    assert parse(manifest.encode(), NAME).encode() == manifest.encode()


def test_keys_are_found_in_any_order_and_case() -> None:
    manifest = parse(b"TYPE i Seq 7 FILE x.incr.aof\r\n", NAME)
    assert manifest.incrs[0].seq == 7


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "is empty"),
        (b"\n", "pairs"),
        (b"file a seq 1 type i", "no end"),
        (b"file a seq 1\n", "pairs"),
        (b"file a seq 1 type i more\n", "pairs"),
        (b"file a seq 1 seq 2 type i\n", "twice"),
        (b"file a seq 1 type i\n\n", "line 2"),
        (b"file a/b seq 1 type i\n", "plain file name"),
        (b"file .. seq 1 type i\n", "plain file name"),
        (b'file "" seq 1 type i\n', "plain file name"),
        (b"file a seq 0 type i\n", "above 0"),
        (b"file a seq -1 type i\n", "above 0"),
        (b"file a seq 1x type i\n", "above 0"),
        (b"file a seq 1 type x\n", "b, i, h or k"),
        (b"file a seq 1 type incr\n", "b, i, h or k"),
        (b'file "a seq 1 type i\n', "pairs"),
        (b"file a seq 2 type i\nfile b seq 2 type i\n", "must rise"),
        (b"file a seq 2 type i\nfile b seq 1 type i\n", "must rise"),
        (b"file a seq 1 type b\nfile b seq 2 type b\n", "base file already"),
        (b"file a seq 1 type h\nfile a seq 2 type i\n", "twice"),
        (b"file " + b"a" * 1100 + b" seq 1 type i\n", "too long"),
    ],
)
def test_anything_else_is_refused(text: bytes, reason: str) -> None:
    with pytest.raises(PersistenceError, match=reason):
        parse(text, NAME)


@given(st.binary(min_size=1, max_size=40).filter(lambda n: not set(n) & set(b"/\\\0\n")))
def test_any_file_name_survives(name: bytes) -> None:
    if name in (b".", b".."):
        return
    manifest = Manifest()
    manifest.base = AofFile(name, 1, BASE)
    assert parse(manifest.encode(), NAME).encode() == manifest.encode()
    again = parse(manifest.encode(), NAME).base
    assert again is not None
    assert again.name == name


@given(st.binary(max_size=200))
def test_no_bytes_make_it_fail_otherwise(text: bytes) -> None:
    with contextlib.suppress(PersistenceError):
        parse(text, NAME)


def test_a_new_base_retires_what_came_before() -> None:
    manifest = parse(WHOLE, NAME)
    last = manifest.add_incr(b"x")
    base = manifest.add_base(b"x", b"aof", 1)
    assert (last.name, last.kind) == (b"x.4.incr.aof", INCR)
    assert base.name == b"x.3.base.aof"
    assert manifest.to_load() == [base, last]
    assert [file.name for file in manifest.history] == [
        b"appendonly.aof.1.incr.aof",
        b"appendonly.aof.2.base.aof",
        b"appendonly.aof.2.incr.aof",
        b"appendonly.aof.3.incr.aof",
    ]


def test_it_is_replaced_as_a_whole(tmp_path: Path) -> None:
    folder = bytes(tmp_path)
    parse(WHOLE, NAME).store(folder, NAME)
    parse(b"file b seq 1 type i\n", NAME).store(folder, NAME)
    assert [path.name for path in tmp_path.iterdir()] == [NAME.decode()]
    assert (tmp_path / NAME.decode()).read_bytes() == b"file b seq 1 type i\n"
