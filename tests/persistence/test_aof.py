"""Appending: what is written, and what a disk that refuses leaves behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.persistence.aof.file import AppendOnlyFile
from headrace.protocol.client import request
from support.file_limit import file_limit


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.incr.aof"


def add(aof: AppendOnlyFile, db: int, *records: list[bytes]) -> None:
    """Add what one command did."""
    for record in records:
        aof.append(db, record)
    aof.end_command()


def test_select_only_where_the_database_changes(path: Path) -> None:
    aof = AppendOnlyFile(bytes(path), 0, 0)
    add(aof, 0, [b"SET", b"a", b"1"])
    add(aof, 0, [b"SET", b"b", b"2"])
    add(aof, 9, [b"DEL", b"a"])
    aof.write()
    add(aof, 9, [b"DEL", b"b"])
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


def test_what_is_not_synced_of_one_file_is_synced_before_the_next_one_gets_anything(
    path: Path,
) -> None:
    aof = AppendOnlyFile(bytes(path), 0, 0)
    add(aof, 0, [b"SET", b"a", b"1"])
    aof.write()
    end = aof.end
    next_path = path.with_name("y.incr.aof")
    aof.switch(bytes(next_path), aof.size_bytes)
    assert not aof.is_synced()
    assert not aof.has_synced(end)
    add(aof, 0, [b"SET", b"a", b"2"])
    aof.write()
    assert aof.has_synced(end)
    assert not aof.has_synced(aof.end)
    assert not aof.is_synced()
    aof.sync()
    assert aof.is_synced()
    third_path = path.with_name("z.incr.aof")
    assert aof.has_synced(aof.end)
    aof.switch(bytes(third_path), 2 * aof.size_bytes)
    assert aof.is_synced()  # nothing was left
    add(aof, 0, [b"SET", b"a", b"3"])
    aof.write()
    aof.switch(bytes(path.with_name("zz.incr.aof")), 0)
    assert not aof.is_synced()
    aof.sync()
    assert aof.is_synced()
    for written, value in ((path, b"1"), (next_path, b"2"), (third_path, b"3")):
        assert written.read_bytes() == request([b"SELECT", b"0"]) + request([b"SET", b"a", value])
    aof.close()


def test_what_one_command_did_stands_between_multi_and_exec(path: Path) -> None:
    aof = AppendOnlyFile(bytes(path), 0, 0)
    aof.annotate = True
    aof.append(0, [b"DEL", b"a"])
    aof.append(1, [b"DEL", b"b"])
    aof.append(1, [b"DEL", b"c"])
    aof.end_command()
    aof.end_command()
    add(aof, 1, [b"DEL", b"d"])
    aof.write()
    aof.close()
    stamp, _, rest = path.read_bytes().partition(b"\r\n")
    assert stamp.startswith(b"#TS:1")
    assert rest == b"".join(
        request(command)
        for command in (
            [b"MULTI"],
            [b"SELECT", b"0"],
            [b"DEL", b"a"],
            [b"SELECT", b"1"],
            [b"DEL", b"b"],
            [b"DEL", b"c"],
            [b"EXEC"],
            [b"DEL", b"d"],
        )
    )


def test_a_write_in_the_middle_of_a_command_ends_what_it_did_so_far(path: Path) -> None:
    aof = AppendOnlyFile(bytes(path), 0, 0)
    aof.append(0, [b"DEL", b"a"])
    aof.append(0, [b"DEL", b"b"])
    aof.write()
    assert path.read_bytes().endswith(request([b"DEL", b"b"]) + request([b"EXEC"]))
    before = path.stat().st_size
    add(aof, 0, [b"DEL", b"c"])
    aof.write()
    assert path.read_bytes()[before:] == request([b"DEL", b"c"])
    aof.close()


def test_records_can_be_added_while_others_are_written(path: Path) -> None:
    aof = AppendOnlyFile(bytes(path), 0, 0)
    add(aof, 0, [b"DEL", b"a"])
    aof.take()
    add(aof, 0, [b"DEL", b"b"])
    aof.write_taken()
    first = request([b"SELECT", b"0"]) + request([b"DEL", b"a"])
    assert path.read_bytes() == first
    assert aof.pending
    aof.write()
    assert path.read_bytes() == first + request([b"DEL", b"b"])
    aof.close()


def test_opening_again_selects_again(path: Path) -> None:
    for _ in range(2):
        aof = AppendOnlyFile(bytes(path), 0, 0)
        add(aof, 0, [b"DEL", b"a"])
        aof.write()
        aof.close()
    once = request([b"SELECT", b"0"]) + request([b"DEL", b"a"])
    assert path.read_bytes() == once + once


def test_an_incomplete_write_is_cut_off_and_can_be_tried_again(path: Path) -> None:
    aof = AppendOnlyFile(bytes(path), 0, 0)
    add(aof, 0, [b"SET", b"a", b"1"])
    aof.write()
    good = path.read_bytes()
    add(aof, 0, [b"SET", b"b", b"x" * 1000])
    add(aof, 0, [b"DEL", b"a"])
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


def test_a_record_in_parts_is_written_whole_and_in_order(path: Path) -> None:
    aof = AppendOnlyFile(bytes(path), 0, 0)
    add(aof, 0, [b"SET", b"a", b"1"])
    aof.write()
    good = path.read_bytes()
    add(aof, 0, [b"SET", b"b", b"1"])
    with file_limit(len(good)), pytest.raises(OSError, match="File too large"):
        aof.write()
    long = request([b"DEL", *(b"k%d" % number for number in range(1000))])
    add(aof, 0, [b"SET", b"c", b"1"])
    aof.append_wire(0, [long[:100], long[100:5000], long[5000:]])
    add(aof, 0, [b"DEL", b"d"])
    rest = request([b"SET", b"b", b"1"]) + request([b"SET", b"c", b"1"])
    rest += long + request([b"DEL", b"d"])
    for room in (0, 50, 100, 3000, len(rest) - 1):
        assert aof.much_pending or room > 0
        assert aof.buffer_bytes == len(rest)
        with file_limit(len(good) + room), pytest.raises(OSError, match="File too large"):
            aof.write()
        # The end of a record that is whole, of which the rest is not lost.
        written = path.read_bytes()
        assert written in (good, good + rest[: -len(request([b"DEL", b"d"]))])
        assert aof.pending
        assert aof.size_bytes == len(written)
        if written != good:
            rest = rest[len(written) - len(good) :]
            good = written
    aof.write()
    assert path.read_bytes() == good + rest
    assert aof.size_bytes == path.stat().st_size
    assert aof.buffer_bytes == 0
    aof.close()


def test_a_long_record_can_be_added_while_another_is_written(path: Path) -> None:
    aof = AppendOnlyFile(bytes(path), 0, 0)
    first, second = (request([name, b"x" * 100]) for name in (b"DEL", b"UNLINK"))
    aof.append_wire(0, [first[:20], first[20:]])
    large = [aof.much_pending]
    aof.take()
    large.append(aof.much_pending)
    aof.append_wire(0, [second[:20], second[20:]])
    large.append(aof.much_pending)
    assert large == [True, False, True]
    aof.write_taken()
    written = request([b"SELECT", b"0"]) + first
    assert path.read_bytes() == written
    aof.write()
    assert path.read_bytes() == written + second
    aof.close()


def test_switching_starts_from_nothing(path: Path) -> None:
    aof = AppendOnlyFile(bytes(path), 0, 0)
    add(aof, 3, [b"DEL", b"a"])
    aof.write()
    other = path.with_name("y.incr.aof")
    aof.switch(bytes(other), path.stat().st_size)
    add(aof, 3, [b"DEL", b"b"])
    aof.write()
    aof.close()
    assert other.read_bytes() == request([b"SELECT", b"3"]) + request([b"DEL", b"b"])
    assert aof.total_bytes == path.stat().st_size + other.stat().st_size
