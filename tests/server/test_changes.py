"""The one door for changes: whoever subscribes gets all of them, whoever else does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import headrace.server.commands.families  # noqa: F401  (importing it fills the command table)
from headrace.persistence.aof.file import AppendOnlyFile
from headrace.persistence.log import Log
from headrace.protocol.requests import RequestParser
from headrace.server.changes.changes import Change, Listener
from headrace.server.clients.session import NOBODY, Session
from headrace.server.config.config import Config
from headrace.server.dispatch.dispatcher import Dispatcher
from headrace.server.dispatch.execute import execute
from headrace.server.durability.durability import Durability
from headrace.server.settings import Settings
from headrace.server.state import Server
from headrace.storage.keyspace import Keyspace

LINES = [
    "SET text a",
    "SET text b",
    "APPEND text c",
    "INCRBY number 5",
    "SET number 7 EX 100",
    "EXPIRE text 50",
    "PERSIST text",
    "MSET one 1 two 2",
    "GETSET one 3",
    "XADD s 1-0 f v",
    "XADD s * f v",
    "XADD s MAXLEN 1 * f v",
    "XADD sent IDMP p i * f v",
    "XADD sent IDMP p i * f v",
    "XGROUP CREATE s g 0",
    "XREADGROUP GROUP g c STREAMS s >",
    "XPENDING s g",
    "XGROUP CREATECONSUMER s g d",
    "XAUTOCLAIM s g d 0 0",
    "XCLAIM s g c 0 1-0",
    "XGROUP SETID s g $",
    "XTRIM s MAXLEN 0",
    "XSETID s 9999999999999-0",
    "MULTI",
    "SET in-multi x",
    "XADD s * f v",
    "XADD s * f w",
    "EXEC",
    "RENAME text words",
    "COPY words copied",
    "MOVE copied 1",
    "DEL one two",
    "UNLINK sent none",
    "SELECT 1",
    "FLUSHDB",
    "SELECT 0",
    "SWAPDB 0 1",
    "GET nothing",
    "XADD wrong",
    "FLUSHALL",
]


class Collector(Log):
    """Takes records, and is no file."""

    def __init__(self) -> None:
        self.units: list[list[tuple[int, list[bytes]]]] = []
        self._unit: list[tuple[int, list[bytes]]] = []

    def append(self, db: int, record: list[bytes]) -> bool:
        self._unit.append((db, list(record)))
        return len(self._unit) == 1

    def append_wire(self, db: int, parts: list[bytes]) -> bool:
        parser = RequestParser()
        parser.feed(b"".join(parts))
        (record,) = parser.take()
        return self.append(db, record)

    def end_command(self) -> bool:
        if not self._unit:
            return False
        self.units.append(self._unit)
        self._unit = []
        return True

    def stamp_next(self, second: int) -> None:
        pass


class Witness(Listener):
    """Hears of changes to keys."""

    def __init__(self) -> None:
        self.heard_of: list[tuple[int, bytes, bytes]] = []
        self.replaced: list[int] = []

    def heard(self, change: Change) -> None:
        self.heard_of.append((change.db, change.key, change.event.name))

    def database_replaced(self, db: Keyspace, replaced_by: Keyspace | None, now_ms: int) -> None:
        self.replaced.append(db.index)


class House:
    """A server without a process around it, and one client."""

    def __init__(self) -> None:
        self.server = Server(Config())
        Settings(self.server)
        durability = Durability(self.server)
        self.files = durability.files
        self._dispatcher = Dispatcher(self.server, durability)
        self._session = Session(1, self.server.data.dbs[0], 0, NOBODY)

    def run(self, *lines: str) -> None:
        for line in lines:
            self.server.clock.refresh()
            execute(self._dispatcher, self._session, [line.encode().split()], 0, 1)

    def run_together(self, *lines: str) -> None:
        requests = [line.encode().split() for line in lines]
        execute(self._dispatcher, self._session, requests, 0, len(requests))


def as_the_file_has_them(path: Path) -> list[list[tuple[int, list[bytes]]]]:
    """The units of an append-only file: a transaction is one."""
    parser = RequestParser()
    parser.feed(path.read_bytes())
    units: list[list[tuple[int, list[bytes]]]] = []
    db = 0
    unit: list[tuple[int, list[bytes]]] | None = None
    while requests := parser.take():
        for words in requests:
            if words[0] == b"SELECT":
                db = int(words[1])
            elif words[0] == b"MULTI":
                unit = []
            elif words[0] == b"EXEC":
                assert unit is not None
                units.append(unit)
                unit = None
            elif unit is not None:
                unit.append((db, words))
            else:
                units.append([(db, words)])
    return units


def test_a_log_has_what_the_append_only_file_has(tmp_path: Path) -> None:
    house = House()
    path = tmp_path / "records.aof"
    aof = AppendOnlyFile(os.fsencode(path), 0, 0)
    house.files.record_to(aof)
    log = Collector()
    house.server.changes.add_log(log)
    house.run(*LINES)
    house.run_together(*["XADD many * f v"] * 40)
    house.run("XGROUP CREATE many g 0", "XREADGROUP GROUP g c STREAMS many >")
    aof.write()
    aof.close()
    assert log.units == as_the_file_has_them(path)
    assert len(log.units) > 60


@pytest.mark.parametrize("together", [False, True])
def test_a_log_needs_no_other(together: bool) -> None:
    found = []
    for others in (0, 2):
        house = House()
        log = Collector()
        for each in [log, *[Collector() for _ in range(others)]]:
            house.server.changes.add_log(each)
        run = house.run_together if together else house.run
        run(*LINES)
        found.append([[record[0] for _, record in unit] for unit in log.units])
        house.server.changes.remove_log(log)
        assert house.server.changes.recorded == (others > 0)
    assert found[0] == found[1]
    assert len(found[0]) > 25


def test_a_listener_hears_of_every_event() -> None:
    house = House()
    witness = Witness()
    house.server.changes.listen(witness, True)
    house.run(*LINES)
    names = [name for _, _, name in witness.heard_of]
    for name in (
        *("new", "set", "append", "incrby", "expire", "persist", "overwritten", "del"),
        *("xadd", "xtrim", "xgroup-create", "xgroup-createconsumer", "xgroup-setid", "xsetid"),
        *("rename_from", "rename_to", "copy_to", "move_from", "move_to"),
    ):
        assert name.encode() in names, name
    assert (1, b"copied", b"move_to") in witness.heard_of
    assert witness.replaced.count(1) >= 2
    house.server.changes.listen(witness, False)
    before = len(witness.heard_of)
    house.run("SET text again")
    assert len(witness.heard_of) == before


class Leaver(Witness):
    """Ends its own subscription and that of another at the first change."""

    def __init__(self, house: House, other: Listener) -> None:
        super().__init__()
        self._changes = house.server.changes
        self._other = other

    def heard(self, change: Change) -> None:
        super().heard(change)
        self._changes.listen(self._other, False)
        self._changes.listen(self, False)


def test_who_ends_a_subscription_takes_no_change_from_the_others() -> None:
    house = House()
    first, last = Witness(), Witness()
    leaver = Leaver(house, first)
    for listener in (first, leaver, last):
        house.server.changes.listen(listener, True)
    house.run("SET text a", "DEL text")
    names = [name for _, _, name in last.heard_of]
    assert names == [b"new", b"set", b"del"]
    assert [name for _, _, name in leaver.heard_of] == [b"new"]
    house.server.changes.listen(last, False)
    assert not house.server.changes.has_listeners


def test_keys_that_expired_are_reported_before_the_change_at_hand() -> None:
    house = House()
    log = Collector()
    house.server.changes.add_log(log)
    house.run("PSETEX short 1 v")
    due_ms = house.server.clock.now_ns // 1_000_000 + 2
    while house.server.clock.refresh() <= due_ms:
        pass
    house.run("MSET a 1 short 2")
    (unit,) = log.units[1:]
    assert [record[0] for _, record in unit] == [b"DEL", b"MSET"]
    assert unit[0][1] == [b"DEL", b"short"]
