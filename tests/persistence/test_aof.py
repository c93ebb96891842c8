"""Appending: what is written, and what a disk that refuses leaves behind."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from persistence.aof import AppendOnlyFile
from protocol.replies import request


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.incr.aof"


@contextmanager
def file_limit(size: int) -> Iterator[None]:
    """Let the system refuse to make any file longer than this; the write that meets it is short."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_select_only_where_the_database_changes(path: Path) -> None:
    aof = AppendOnlyFile(bytes(path), 0, 0)
    aof.append(0, [b"SET", b"a", b"1"])
    aof.append(0, [b"SET", b"b", b"2"])
    aof.append(9, [b"DEL", b"a"])
    aof.write()
    aof.append(9, [b"DEL", b"b"])
    assert aof.pending
    assert aof.buffer_bytes == len(request([b"DEL", b"b"]))
    aof.write()
    assert aof.buffer_bytes == 0
    expected = [
        [b"SELECT", b"0"],
        [b"SET", b"a", b"1"],
        [b"SET", b"b", b"2"],
        [b"SELECT", b"9"],
        [b"DEL", b"a"],
        [b"DEL", b"b"],
    ]
    assert path.read_bytes() == b"".join(request(command) for command in expected)
    assert aof.size_bytes == path.stat().st_size
    assert aof.synced_bytes == 0
    aof.sync()
    assert aof.synced_bytes == aof.size_bytes
    aof.close()


def test_a_transaction_stands_between_multi_and_exec(path: Path) -> None:
    aof = AppendOnlyFile(bytes(path), 0, 0)
    aof.annotate = True
    aof.begin()
    aof.append(0, [b"DEL", b"a"])
    aof.append(1, [b"DEL", b"b"])
    aof.commit()
    aof.write()
    aof.close()
    stamp, _, rest = path.read_bytes().partition(b"\r\n")
    assert stamp.startswith(b"#TS:1")
    commands = [[b"MULTI"], [b"SELECT", b"0"], [b"DEL", b"a"], [b"SELECT", b"1"], [b"DEL", b"b"]]
    assert rest == b"".join(request(command) for command in [*commands, [b"EXEC"]])


def test_opening_again_selects_again(path: Path) -> None:
    for _ in range(2):
        aof = AppendOnlyFile(bytes(path), 0, 0)
        aof.append(0, [b"DEL", b"a"])
        aof.write()
        aof.close()
    once = request([b"SELECT", b"0"]) + request([b"DEL", b"a"])
    assert path.read_bytes() == once + once


def test_an_incomplete_write_is_cut_off_and_can_be_tried_again(path: Path) -> None:
    aof = AppendOnlyFile(bytes(path), 0, 0)
    aof.append(0, [b"SET", b"a", b"1"])
    aof.write()
    good = path.read_bytes()
    aof.append(0, [b"SET", b"b", b"x" * 1000])
    aof.append(0, [b"DEL", b"a"])
    for room in (0, 1, 17, 900):
        with file_limit(len(good) + room), pytest.raises(OSError, match="File too large"):
            aof.write()
        assert path.read_bytes() == good
        assert aof.pending
        assert aof.size_bytes == len(good)
    aof.write()
    rest = request([b"SET", b"b", b"x" * 1000]) + request([b"DEL", b"a"])
    assert path.read_bytes() == good + rest
    aof.close()


def test_switching_starts_from_nothing(path: Path) -> None:
    aof = AppendOnlyFile(bytes(path), 0, 0)
    aof.append(3, [b"DEL", b"a"])
    aof.write()
    other = path.with_name("y.incr.aof")
    aof.switch(bytes(other), path.stat().st_size)
    aof.append(3, [b"DEL", b"b"])
    aof.write()
    aof.close()
    assert other.read_bytes() == request([b"SELECT", b"3"]) + request([b"DEL", b"b"])
    assert aof.total_bytes == path.stat().st_size + other.stat().st_size
