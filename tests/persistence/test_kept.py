"""The log of a region in files: what is kept for other regions, and what they get of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headrace.persistence.aof.directory import AofDirectory
from headrace.persistence.aof.manifest import KEPT, parse
from headrace.persistence.errors import CorruptAOF, PersistenceError
from headrace.protocol.client import request
from headrace.regions.files.backlog import Backlog
from headrace.regions.files.journal import Journal, JournalLog
from headrace.regions.files.log_file import MARK_BYTES, LogFile, index
from headrace.regions.files.region_log import RegionLog
from support.region_files import (
    LOCAL,
    Story,
    Unit,
    add,
    commands,
    commit,
    region_one,
    units,
    xadd,
)


def log_of(paths: list[Path], indexed: bool = False) -> RegionLog:
    """A log of files of which nothing is known but from and up to where they go."""
    log = JournalLog(region_one(), Backlog())
    for path in paths:
        found = LogFile(bytes(path))
        found.sendable_bytes = path.stat().st_size
        index(found)
        file = found
        if not indexed:
            file = LogFile(bytes(path))
            file.sendable_bytes = found.sendable_bytes
            file.first = found.first
            file.last = found.last
        log.add(file)
    return log


def check_log(
    log: RegionLog, origin: bytes, sent: list[Unit], number: int, most_bytes: int
) -> None:
    """What comes behind a number is what was sent behind it, unit for unit."""
    flat = [(unit, place) for unit in sent for place in range(len(unit))]
    longest = max(sum(len(request(words)) for words in unit) for unit in sent) + 100
    at = number
    while (batch := log.read(origin, at, most_bytes)) is not None:
        assert batch.origin == origin
        assert batch.first <= at + 1 < batch.next
        assert flat[batch.first - 1][1] == 0  # a unit begins there,
        assert batch.first + len(flat[at][0]) > at + 1  # and it is the one that is wanted
        assert len(batch.payload) <= max(most_bytes, longest)
        known = batch.first - 1
        for unit in units(batch.payload):
            for place, words in enumerate(unit):
                assert flat[known] == (unit, place)
                assert words == unit[place]
                known += 1
        assert known == batch.next - 1
        for offset, first in batch.cuts:
            assert flat[first - 1][1] == 0
            assert units(batch.payload[offset:])[0] == flat[first - 1][0]
        at = known
    assert at == len(flat)


@pytest.mark.parametrize("seed", range(16))
def test_all_numbered_records_are_found_in_order(tmp_path: Path, seed: int) -> None:
    story = Story(seed, tmp_path / "x.incr.aof")
    story.sizes = (0, 5, 100, 3000) if seed % 2 else (100, 9000, 30_000)
    story.run(200 if seed % 2 else 400)
    logs = [story.kept, log_of(story.paths, True), log_of(story.paths)]
    for origin, sent in story.sent.items():
        count = sum(len(unit) for unit in sent)
        if not count:
            continue
        for log in logs:
            log.backlog.begin(origin, count + 1)
            assert log.reach(origin) == 1
            for most_bytes, number in (
                (1, max(0, count - 20)),
                (5000, count // 2),
                (100_000, 0),
                (100_000, min(1, count - 1)),
                (1 << 30, count // 3),
                (1 << 30, count - 1),
            ):
                check_log(log, origin, sent, number, most_bytes)
            assert log.read(origin, count, 1000) is None
    story.journal.close()


@pytest.mark.parametrize("seed", range(2))
def test_any_record_can_be_the_first(tmp_path: Path, seed: int) -> None:
    story = Story(seed, tmp_path / "x.incr.aof")
    story.run(60)
    for log in (story.kept, log_of(story.paths)):
        for origin, sent in story.sent.items():
            for number in range(sum(len(unit) for unit in sent)):
                check_log(log, origin, sent, number, 4000)
    story.journal.close()


def test_much_of_others_is_passed_over(tmp_path: Path) -> None:
    region = region_one()
    log = JournalLog(region, Backlog())
    journal = Journal(bytes(tmp_path / "x"), 0, 0, region, log.backlog, log)
    for number in range(1, 41):
        add(journal, xadd(number))
        for _ in range(20):
            first = region.numbers.get(b"2.0", 0) + 1
            region.learned(b"2.0", first)
            journal.append_received(b"2.0", first, 1, request(xadd(first, 8000)))
            journal.end_command()
        commit(journal)
    assert journal.size_bytes > 40 * MARK_BYTES
    places = journal.index.places[b"1.0"]
    assert len(places.numbers) == 40
    fds = os.listdir("/proc/self/fd")
    read = os.pread
    asked: list[int] = []

    def counting(fd: int, size: int, offset: int) -> bytes:
        asked.append(offset)
        return read(fd, size, offset)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "pread", counting)
        batch = log.read(b"1.0", 36, 1 << 20)
    assert batch is not None
    assert (batch.first, batch.count) == (37, 4)
    assert min(asked) >= places.offsets[36]
    assert os.listdir("/proc/self/fd") == fds
    journal.close()


def test_nothing_is_read_that_may_not_be_sent(tmp_path: Path) -> None:
    region = region_one()
    log = JournalLog(region, Backlog())
    log.sends_synced = True
    journal = Journal(bytes(tmp_path / "x"), 0, 0, region, log.backlog, log)
    add(journal, xadd(1))
    commit(journal)
    journal.sync()
    journal.synced()
    add(journal, xadd(2))
    commit(journal)
    batch = log.read(b"1.0", 0, 1000)
    assert batch is not None
    assert batch.payload == request(xadd(1))
    assert log.read(b"1.0", 1, 1000) is None
    journal.sync()
    journal.synced()
    batch = log.read(b"1.0", 1, 1000)
    assert batch is not None
    assert batch.payload == request(xadd(2))
    journal.close()


def test_a_gap_ends_what_can_be_reached(tmp_path: Path) -> None:
    """A copy of everything was joined: records in between were never here one by one."""
    region = region_one()
    log = JournalLog(region, Backlog())
    path = tmp_path / "x"
    journal = Journal(bytes(path), 0, 0, region, log.backlog, log)
    for first in (1, 2, 50, 51):
        journal.append_received(b"2.0", first, 1, request(xadd(first)))
        journal.end_command()
        commit(journal)
    for each in (log, log_of([path])):
        each.backlog.begin(b"2.0", 52)
        assert each.reach(b"2.0") == 50
        assert each.read(b"2.0", 1, 1000) is None
        batch = each.read(b"2.0", 49, 1000)
        assert batch is not None
        assert (batch.first, batch.count) == (50, 2)
    journal.close()


def test_a_damaged_file_is_reported(tmp_path: Path) -> None:
    story = Story(1, tmp_path / "x.incr.aof")
    story.run(100)
    path = story.paths[-1]
    data = bytearray(path.read_bytes())
    log = log_of([path])
    data[len(data) // 2 :] = b"\0" * (len(data) - len(data) // 2)
    path.write_bytes(data)
    with pytest.raises(CorruptAOF):
        log.read(b"1.0", story.region.count - 1, 1000)
    story.journal.close()


# Which files are kept


class Folder:
    """An append-only folder of a region that is written anew now and then."""

    def __init__(self, path: Path) -> None:
        self.path = path / "appendonlydir"
        self.region = region_one()
        self.log = JournalLog(self.region, Backlog())
        self.directory = AofDirectory(bytes(path), b"appendonlydir", b"a")
        self.directory.open()
        self.directory.log = self.log
        self.directory.load_kept()
        journal = self.directory.open_last()
        assert isinstance(journal, Journal)
        self.journal = journal

    def add(self, count: int, size: int = 100) -> None:
        for _ in range(count):
            add(self.journal, xadd(self.region.count + 1, size))
        commit(self.journal)
        self.journal.sync()

    def rewrite(self) -> None:
        path = self.directory.add_incr()
        self.journal.switch(path, 0)
        temporary = Path(os.fsdecode(self.directory.temporary_base()))
        temporary.write_bytes(b"")
        self.directory.adopt_base(bytes(temporary), b"aof", 1)

    def kept(self) -> list[tuple[bytes, bytes]]:
        """The kept files by the disk: name, and the numbers of their line."""
        manifest = parse((self.path / "a.manifest").read_bytes(), b"a.manifest")
        on_disk = {name.name for name in self.path.glob("*.incr.aof")}
        named = {os.fsdecode(file.name) for file in [*manifest.kept, *manifest.incrs]}
        assert on_disk == named
        return [(file.name, file.line().partition(b"first ")[2]) for file in manifest.kept]

    def close(self) -> None:
        self.journal.close()
        self.directory.close()


def test_files_are_kept_until_all_have_them(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.add(10)
    folder.rewrite()
    folder.add(5)
    folder.rewrite()
    assert folder.kept() == [
        (b"a.1.incr.aof", b"1.0=1 last 1.0=10\n"),
        (b"a.2.incr.aof", b"1.0=11 last 1.0=15\n"),
    ]
    assert folder.log.reach(b"1.0") == 1
    folder.log.acknowledged = {b"1.0": 9}
    assert not folder.directory.has_needless()
    folder.directory.drop_kept()
    assert len(folder.kept()) == 2
    folder.log.acknowledged = {b"1.0": 12}
    assert folder.directory.has_needless()
    folder.directory.drop_kept()
    assert folder.kept() == [(b"a.2.incr.aof", b"1.0=11 last 1.0=15\n")]
    assert folder.log.reach(b"1.0") == 11
    assert folder.log.read(b"1.0", 9, 1000) is None
    folder.log.acknowledged = {b"1.0": 16}
    folder.add(3)
    folder.rewrite()
    assert folder.kept() == [(b"a.3.incr.aof", b"1.0=16 last 1.0=18\n")]
    folder.close()


def test_nothing_is_kept_for_nobody(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.log.is_kept = False
    folder.add(10)
    folder.rewrite()
    assert folder.kept() == []
    assert folder.log.reach(b"1.0") == 11
    folder.close()


def test_a_file_of_local_records_alone_is_not_kept(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    add(folder.journal, LOCAL)
    commit(folder.journal)
    folder.journal.sync()
    folder.rewrite()
    assert folder.kept() == []
    folder.close()


def test_the_oldest_files_go_when_there_is_too_much(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    for _ in range(4):
        folder.add(10, 1000)
        folder.rewrite()
    assert [name for name, _ in folder.kept()] == [b"a.%d.incr.aof" % seq for seq in (1, 2, 3, 4)]
    folder.log.most_bytes = 25_000
    folder.add(10, 1000)
    folder.rewrite()
    assert [name for name, _ in folder.kept()] == [b"a.4.incr.aof", b"a.5.incr.aof"]
    assert folder.log.reach(b"1.0") == 31
    folder.close()


def test_kept_files_are_read_after_another_start(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    sent: list[Unit] = []
    for _ in range(3):
        folder.add(10)
        folder.rewrite()
    folder.close()
    sent = [[xadd(number, 100)] for number in range(1, 31)]
    again = Folder(tmp_path)
    again.log.backlog.begin(b"1.0", 31)
    assert again.log.reach(b"1.0") == 1
    for number in (0, 9, 10, 25):
        check_log(again.log, b"1.0", sent, number, 500)
    (again.path / "a.2.incr.aof").unlink()  # by somebody else
    assert again.log.read(b"1.0", 15, 1000) is None
    again.close()
    third = Folder(tmp_path)
    third.log.backlog.begin(b"1.0", 31)
    assert third.log.reach(b"1.0") == 21
    third.close()


def test_a_start_begins_a_new_file_and_drops_those_without_records(tmp_path: Path) -> None:
    for _ in range(3):
        folder = Folder(tmp_path)
        names = [file.name for file in folder.directory.manifest.incrs]
        folder.directory.delete_history()
        folder.close()
    assert names == [b"a.3.incr.aof"]
    folder = Folder(tmp_path)
    folder.add(1)
    folder.close()
    folder = Folder(tmp_path)
    names = [file.name for file in folder.directory.manifest.incrs]
    assert names == [b"a.4.incr.aof", b"a.5.incr.aof"]
    folder.directory.delete_history()
    assert folder.kept() == []
    assert commands(folder.path / "a.4.incr.aof")[-1] == xadd(1, 100)
    folder.close()


def test_lines_of_kept_files() -> None:
    text = b"file a.1.incr.aof seq 1 type k first 1.0=1,2.7=5 last 1.0=10,2.7=5\n"
    text += b"file a.2.incr.aof seq 2 type i\n"
    manifest = parse(text, b"a.manifest")
    (kept,) = manifest.kept
    assert (kept.name, kept.kind) == (b"a.1.incr.aof", KEPT)
    assert kept.first == {b"1.0": 1, b"2.7": 5}
    assert kept.last == {b"1.0": 10, b"2.7": 5}
    assert manifest.encode() == text
    assert manifest.copy().encode() == text
    assert [file.name for file in manifest.to_load()] == [b"a.2.incr.aof"]
    numbers = b",".join(b"%d.%d=1" % (region, epoch) for region in (1, 2) for epoch in range(200))
    line = b"file x seq 1 type k first %b last %b\n" % (numbers, numbers)
    assert parse(line, b"a.manifest").encode() == line


@pytest.mark.parametrize("rest", [b"", b" first 1.0=1", b" first x last 1.0=1", b" first - last 0"])
def test_lines_of_kept_files_that_say_too_little(rest: bytes) -> None:
    with pytest.raises(PersistenceError, match="numbers of records"):
        parse(b"file a.1.incr.aof seq 1 type k%b\n" % rest, b"a.manifest")
