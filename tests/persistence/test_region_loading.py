"""The files of a region are loaded: counted, applied, or refused; and who wrote them is known."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import headrace.regions.wing
import headrace.server.commands.families  # noqa: F401  (its commands are run again)
from headrace.persistence.errors import CorruptAOF, PersistenceError
from headrace.protocol.client import request
from headrace.regions.exchange.retention import LogManager, log_of
from headrace.regions.files.identity import Life, boot_id, last_life
from headrace.regions.files.journal import Journal
from headrace.regions.knowledge.region import Region
from headrace.server.config.config import Config
from headrace.server.durability.durability import Durability
from headrace.server.loading.loader import SLICE_NS, Loader
from headrace.server.loading.starting import load_folder
from headrace.server.state import Server
from support.region_door import NotingDoor
from support.region_files import (
    EXEC,
    LOCAL,
    MULTI,
    Story,
    add,
    commands,
    commit,
    open_journal,
    region_one,
    removal,
    requests,
    units,
    xadd,
)
from support.tools import tool
from support.waiting import DEADLINE_S

HEAD = request([b"AA", b"FILE", b"1", b"orders", b"1", b"0", b"0", b"n0", b"boot", b"1:2"])
SELECT = request([b"SELECT", b"0"])
PLACE = [b"AA", b"PLACE", b"s", b"g"]


def counting(origin: bytes, number: int) -> bytes:
    return request([b"AA", b"FROM", origin, b"%d" % number])


def load(paths: list[Path], region: Region | None) -> NotingDoor | None:
    """Load files, as the region or as a server without regions."""
    server = Server(Config())
    door = None if region is None else NotingDoor(region)
    size = sum(path.stat().st_size for path in paths)
    names = [bytes(path) for path in paths]
    loader = Loader(server, Durability(server), names, size, False, door)
    while loader.load_slice(SLICE_NS):
        pass
    return door


def loaded(paths: list[Path], region: Region | None = None) -> NotingDoor:
    door = load(paths, region or Region(1))
    assert door is not None
    return door


@pytest.mark.parametrize("seed", range(8))
def test_all_records_are_applied_in_order(tmp_path: Path, seed: int) -> None:
    story = Story(seed, tmp_path / "x.incr.aof")
    story.locals = ([b"XACK", b"s", b"g", b"1-1"], PLACE)
    story.run(150)
    door = loaded(story.paths)
    for origin, sent in story.sent.items():
        assert door.records.get(origin, []) == [words for unit in sent for words in unit]
    assert door.region.count == story.region.count
    assert door.region.database == b"orders"
    assert door.region.nonce == b"n0"
    assert (PLACE in door.local) == any(PLACE in commands(path) for path in story.paths)


def test_the_log_knows_which_file_holds_what(tmp_path: Path) -> None:
    story = Story(3, tmp_path / "x.incr.aof")
    story.locals = ([b"XACK", b"s", b"g", b"1-1"], PLACE)
    story.run(250)
    assert len(story.paths) > 1
    server = Server(Config())
    names = [bytes(path) for path in story.paths]
    door = NotingDoor(Region(1))
    loader = Loader(server, Durability(server), names, 0, False, door)
    while loader.load_slice(SLICE_NS):
        pass
    for found, path in zip(door.files, story.paths, strict=True):
        known = story.kept.find(bytes(path))
        assert known is not None
        assert (found.first, found.last) == (known.first, known.last)
        assert found.sendable_bytes == path.stat().st_size
    story.journal.close()


def test_a_file_torn_anywhere_holds_what_was_whole(tmp_path: Path) -> None:
    """Cut at every byte of its last part: numbers and records are those of the units before."""
    story = Story(11, tmp_path / "x.incr.aof")
    story.locals = (LOCAL, PLACE)
    story.sizes = (0, 5, 100)
    story.odd_values = 0
    story.run(90)
    story.journal.close()
    path = story.paths[-1]
    data = path.read_bytes()
    torn = tmp_path / "torn.aof"
    units_at = [(0, 0)]  # where a unit ends: how many records of all origins there are
    offset = 0
    count = 0
    inside = False
    for words in requests_of(data):
        offset += len(words)
        name = requests(words)[0] if words.startswith(b"*") else [b"#"]
        inside = name == [b"MULTI"] or (inside and name != [b"EXEC"])
        count += name[0] == b"XADD" or name[:2] == [b"AA", b"XDEL"]
        if not inside and name != [b"#"]:
            units_at.append((offset, count))
    assert offset == len(data)
    before = loaded(story.paths[:-1]) if len(story.paths) > 1 else None
    for size in range(max(0, len(data) - 2000), len(data) + 1):
        torn.write_bytes(data[:size])
        region = Region(1)
        if before is not None:
            region.count = before.region.count
            region.numbers = dict(before.region.numbers)
        door = loaded([torn], region)
        good, records = max(unit for unit in units_at if unit[0] <= size)
        assert sum(len(each) for each in door.records.values()) == records
        assert good <= torn.stat().st_size <= size
        known = dict(region.numbers)
        known[b"1.0"] = region.count
        for origin, each in door.records.items():
            sent = [words for unit in story.sent[origin] for words in unit]
            assert sent[known[origin] - len(each) : known[origin]] == each
        again = open_journal(torn, region)
        add(again, xadd(7))
        commit(again)
        again.close()
        if size % 50 == 0:
            assert commands_loaded(torn, before, region.count)


def requests_of(data: bytes) -> list[bytes]:
    """The bytes of each request and comment."""
    found = []
    at = 0
    while at < len(data):
        start = at
        if data[at : at + 1] == b"#":
            at = data.index(b"\n", at) + 1
        else:
            end = data.index(b"\r\n", at)
            left = int(data[at + 1 : end])
            at = end + 2
            for _ in range(left):
                end = data.index(b"\r\n", at)
                at = end + 2 + int(data[at + 1 : end]) + 2
        found.append(data[start:at])
    return found


def commands_loaded(path: Path, before: NotingDoor | None, count: int) -> bool:
    """Return whether a file that was mended and written to loads again, up to this record."""
    region = Region(1)
    if before is not None:
        region.count = before.region.count
        region.numbers = dict(before.region.numbers)
    return loaded([path], region).region.count == count


# What is refused


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        (counting(b"1.0", 2), "AA FROM 1.0 1, for so many are known, not 2"),
        (counting(b"1.0", 1) + request(xadd(1)) + counting(b"1.0", 1), "AA FROM 1.0 2"),
        (counting(b"1.0", 1) + request(xadd(1)) + counting(b"1.0", 3), "AA FROM 1.0 2"),
        (counting(b"2.0", 7), "AA FROM 2.0 6"),
        (counting(b"1.0", 0), "an origin and a number"),
        (counting(b"16.0", 1), "an origin and a number"),
        (counting(b"1", 1), "an origin and a number"),
        (request([b"AA", b"FROM", b"1.0"]), "an origin and a number"),
        (request([b"AA", b"FROM", b"1.0", b"x"]), "an origin and a number"),
        (request(xadd(1)), "AA FROM before the first numbered record"),
        (request(removal(1)), "AA FROM before the first numbered record"),
        (counting(b"1.0", 1) + request([b"AA", b"BEAT", b"x"]), "AA BEAT is unknown"),
        (request([b"AA", b"BEAT", b"x"]), "AA FROM before"),
        (HEAD.replace(b"$1\r\n0\r\n$1\r\n0\r\n", b"$1\r\nx\r\n$1\r\n0\r\n"), "x is no number"),
        (HEAD.replace(b"FILE\r\n$1\r\n1", b"FILE\r\n$1\r\n2"), "version 2"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path: Path, rest: bytes, expected: str) -> None:
    path = tmp_path / "x.aof"
    path.write_bytes(HEAD + SELECT + rest)
    region = Region(1)
    region.numbers[b"2.0"] = 5
    server = Server(Config())
    door = NotingDoor(region)
    door.refused = b"BEAT"
    loader = Loader(server, Durability(server), [bytes(path)], 0, False, door)
    with pytest.raises(CorruptAOF, match=expected) as caught:
        loader.load_slice(SLICE_NS)
    assert str(path) in str(caught.value)
    assert HEAD + SELECT + rest[: caught.value.offset - len(HEAD + SELECT)]
    assert caught.value.offset >= len(HEAD + SELECT)


def test_a_damage_is_named_with_its_offset(tmp_path: Path) -> None:
    path = tmp_path / "x.aof"
    good = HEAD + SELECT + counting(b"1.0", 1) + request(xadd(1))
    path.write_bytes(good + MULTI + counting(b"1.0", 9) + request(xadd(1)) + EXEC)
    with pytest.raises(CorruptAOF) as caught:
        loaded([path])
    assert caught.value.offset == len(good)


def test_other_regions_and_databases_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.aof"
    path.write_bytes(HEAD + SELECT)
    with pytest.raises(PersistenceError, match=r"belongs to region 1 of orders.* is region 2 of"):
        loaded([path], Region(2))
    region = Region(1)
    region.database = b"others"
    with pytest.raises(
        PersistenceError, match=r"belongs to region 1 of orders.*region 1 of others"
    ):
        loaded([path], region)


def test_a_server_without_regions_refuses(tmp_path: Path) -> None:
    path = tmp_path / "x.aof"
    path.write_bytes(HEAD + SELECT + counting(b"1.0", 1) + request(xadd(1)))
    with pytest.raises(PersistenceError, match=r"belongs to region 1 of orders: set aa-region-id"):
        load([path], None)
    path.write_bytes(SELECT + counting(b"1.0", 1))
    with pytest.raises(PersistenceError, match=r"belongs to a region: set aa-region-id"):
        load([path], None)


def test_a_real_server_without_regions_refuses(tmp_path: Path) -> None:
    folder = tmp_path / "appendonlydir"
    folder.mkdir()
    manifest = b"file appendonly.aof.1.incr.aof seq 1 type i\n"
    (folder / "appendonly.aof.manifest").write_bytes(manifest)
    (folder / "appendonly.aof.1.incr.aof").write_bytes(HEAD + SELECT)
    socket = str(tmp_path / "socket")
    files = ("--appendonly", "yes", "--dir", str(tmp_path))
    started = tool(*files, "--port", "0", "--unixsocket", socket)
    assert started.returncode == 1
    assert b"belongs to region 1 of orders: set aa-region-id to load it" in started.stdout


def test_records_of_the_time_before_go_the_usual_way(tmp_path: Path) -> None:
    """A server that was alone becomes a region."""
    old = tmp_path / "old.aof"
    old.write_bytes(SELECT + request(xadd(5)) + request([b"SET", b"a", b"1"]))
    new = tmp_path / "new.aof"
    new.write_bytes(HEAD + SELECT + counting(b"1.0", 1) + request(xadd(9)))
    server = Server(Config())
    door = NotingDoor(Region(1))
    loader = Loader(server, Durability(server), [bytes(old), bytes(new)], 0, False, door)
    while loader.load_slice(SLICE_NS):
        pass
    assert set(server.data.dbs[0].names()) == {b"s", b"a"}
    assert door.records == {b"1.0": [xadd(9)]}


def test_a_new_epoch_begins_with_a_file(tmp_path: Path) -> None:
    first = tmp_path / "1.aof"
    first.write_bytes(HEAD + SELECT + counting(b"1.0", 1) + request(xadd(5)))
    second = tmp_path / "2.aof"
    head = request([b"AA", b"FILE", b"1", b"orders", b"1", b"4", b"2", b"n4", b"boot", b"1:2"])
    second.write_bytes(head + SELECT + counting(b"1.4", 1) + request(xadd(6)) + request(xadd(7)))
    region = loaded([first, second]).region
    assert (region.origin, region.generation, region.nonce) == (b"1.4", 2, b"n4")
    assert region.known() == {b"1.0": 1, b"1.4": 2}
    with pytest.raises(CorruptAOF, match="an epoch of 4 at least, not 0"):
        loaded([second, first])


# The tools


def test_check_aof_counts(tmp_path: Path) -> None:
    path = tmp_path / "x.aof"
    good = HEAD + SELECT + counting(b"1.0", 5) + request(xadd(1)) + counting(b"2.0", 8)
    good += request(xadd(2)) + counting(b"1.0", 6) + request(LOCAL) + request(removal(3))
    path.write_bytes(good)
    checked = tool("check-aof", str(path))
    assert checked.returncode == 0
    assert b"valid" in checked.stdout
    assert b"9 commands, records of regions up to 1.0=6,2.0=8" in checked.stdout
    path.write_bytes(good + counting(b"1.0", 8))
    checked = tool("check-aof", str(path))
    assert checked.returncode == 1
    assert b"damaged at offset %d: expected AA FROM 1.0 7, not 8" % len(good) in checked.stdout
    # A copy of everything has been joined: what is known of others has jumped.
    joined = request([b"AA", b"JOINED", b"copy"]) + request(removal(3)) + counting(b"2.0", 50)
    path.write_bytes(good + joined + request(xadd(4)) + counting(b"1.0", 8))
    checked = tool("check-aof", str(path))
    assert checked.returncode == 0, checked.stdout
    assert b"up to 1.0=7,2.0=50" in checked.stdout


def test_export_refuses_a_file_that_lacks_what_came_before(tmp_path: Path) -> None:
    path = tmp_path / "x.aof"
    path.write_bytes(HEAD + SELECT + counting(b"1.0", 5) + request(xadd(1)))
    exported = tool("export", "--to", "resp", "--from", str(path), str(tmp_path / "out.aof"))
    assert exported.returncode == 1
    assert b"known, not 5" in exported.stderr
    assert not (tmp_path / "out.aof").exists()


# A whole start


class Side:
    """A server that is a region, on a folder."""

    def __init__(self, path: Path) -> None:
        config = Config()
        config.dir = bytes(path)
        config.appendonly = True
        self.path = path / "appendonlydir"
        self.server = Server(config)
        self.server.clock.refresh()
        self.durability = Durability(self.server)
        self.region = Region(1)
        self.door = NotingDoor(self.region)

    async def start(self) -> None:
        await load_folder(self.server, self.durability, self.door)

    @property
    def journal(self) -> Journal:
        aof = self.durability.files.aof
        assert isinstance(aof, Journal)
        return aof

    def add(self, *words: list[bytes]) -> None:
        add(self.journal, *words)
        self.durability.committer.end_turn()

    def life(self) -> Life:
        (life,) = self.door.lives
        assert life is not None
        return life

    def end(self, in_order: bool = True) -> None:
        if in_order:
            assert self.durability.committer.close()
        else:
            assert self.durability.committer.settle()
            self.durability.committer.close_files()
        self.durability.files.worker.close()


def test_a_region_is_known_by_its_folder(tmp_path: Path) -> None:
    async def lives() -> None:
        first = Side(tmp_path)
        await first.start()
        assert first.door.lives == [None]
        first.region.database = b"orders"
        first.add(xadd(1))
        first.end()

        second = Side(tmp_path)
        await second.start()
        life = second.life()
        assert (life.is_same_file, life.is_same_boot, life.is_closed) == (True, True, True)
        assert life.identity.boot == boot_id()
        assert second.region.count == 1
        second.add(xadd(2))
        second.end(in_order=False)

        third = Side(tmp_path)
        await third.start()
        life = third.life()
        assert (life.is_same_file, life.is_same_boot, life.is_closed) == (True, True, False)
        log = log_of(third.durability.files)
        assert log is not None
        assert log.reach(b"1.0") == 1
        batch = log.read(b"1.0", 1, 1000)
        assert batch is not None
        assert batch.payload == request(xadd(2))
        third.end()

    asyncio.run(lives())


def test_a_copied_folder_is_known_as_such(tmp_path: Path) -> None:
    async def lives() -> None:
        first = Side(tmp_path / "a")
        os.mkdir(tmp_path / "a")
        await first.start()
        first.add(xadd(1))
        first.end()
        await asyncio.to_thread(shutil.copytree, tmp_path / "a", tmp_path / "b")
        second = Side(tmp_path / "b")
        await second.start()
        life = second.life()
        assert (life.is_same_file, life.is_same_boot, life.is_closed) == (False, True, True)
        second.end()

    asyncio.run(lives())


def test_another_boot_is_known_as_such(tmp_path: Path) -> None:
    path = tmp_path / "x.aof"
    journal = open_journal(path, region_one())
    add(journal, xadd(1))
    commit(journal)
    journal.close()
    with path.open("r+b") as file:
        text = file.read().replace(boot_id(), b"0" * len(boot_id()))
        file.seek(0)
        file.write(text)
    empty = tmp_path / "y.aof"
    empty.write_bytes(b"")
    life = last_life([bytes(path), bytes(empty)])
    assert life is not None
    assert (life.is_same_file, life.is_same_boot, life.is_closed) == (True, False, False)


def test_a_mark_cannot_be_forged_or_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "x.aof"
    journal = open_journal(path, region_one())
    forged = request([b"AA", b"CLOSED", b""])
    add(journal, [b"XADD", b"s", b"1-1", b"f", forged[:-2]])
    commit(journal)
    assert path.read_bytes().endswith(forged)
    life = last_life([bytes(path)])
    assert life is not None
    assert not life.is_closed
    journal.sync()
    journal.mark_closed()
    life = last_life([bytes(path)])
    assert life is not None
    assert life.is_closed
    journal.close()


def test_who_was_no_region_has_no_life(tmp_path: Path) -> None:
    path = tmp_path / "x.aof"
    for text in (SELECT + request(xadd(1)), b"", b"#TS:1\r\n", HEAD[:20], b"\0" * 100):
        path.write_bytes(text)
        assert last_life([bytes(path)]) is None
    path.write_bytes(HEAD.replace(b"FILE\r\n$1\r\n1", b"FILE\r\n$1\r\n2"))
    with pytest.raises(PersistenceError, match="version 2"):
        last_life([bytes(path)])


def test_a_new_epoch_of_a_running_region(tmp_path: Path) -> None:
    async def lives() -> None:
        side = Side(tmp_path)
        await side.start()
        side.add(xadd(1))
        log_manager = LogManager(side.server.config, side.durability)
        assert log_manager.begin_epoch(3, 1, b"n3")
        side.add(xadd(2))
        side.end()
        again = Side(tmp_path)
        await again.start()
        assert again.life().identity.epoch == 3
        assert again.life().is_closed
        assert again.region.origin == b"1.3"
        assert again.region.known() == {b"1.0": 1, b"1.3": 1}
        again.end()

    asyncio.run(lives())


def test_a_rewrite_keeps_what_others_need(tmp_path: Path) -> None:
    async def lives() -> None:
        side = Side(tmp_path)
        await side.start()
        files = side.durability.files
        log = log_of(files)
        assert log is not None

        async def rewrite() -> None:
            assert side.durability.rewriting.begin()
            await until(lambda: files.job is None)

        side.add(xadd(1), xadd(2))
        await rewrite()
        side.add(xadd(3))
        await rewrite()
        side.add(xadd(4))
        assert files.directory is not None
        manifest = files.directory.manifest
        assert [file.last for file in manifest.kept] == [{b"1.0": 2}, {b"1.0": 3}]
        assert log.reach(b"1.0") == 1
        batch = log.read(b"1.0", 0, 1000)
        assert batch is not None
        assert units(batch.payload) == [[xadd(1), xadd(2)]]
        LogManager(side.server.config, side.durability).acknowledged({b"1.0": 2})
        await until(lambda: log.reach(b"1.0") == 3)
        side.end()
        names = {path.name for path in side.path.glob("*.incr.aof")}
        assert "appendonly.aof.1.incr.aof" not in names
        assert "appendonly.aof.2.incr.aof" in names

    asyncio.run(lives())


async def until(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline_s
        await asyncio.sleep(0.001)
