"""Records of other regions are applied and kept: whole units, in slices, and nothing of garbage."""

from __future__ import annotations

from pathlib import Path

import pytest

import headrace.regions.wing
import headrace.server.commands.families  # noqa: F401  (fills the tables)
from headrace.persistence.aof.reader import AofReader
from headrace.protocol.client import request
from headrace.regions.exchange.effects import begin_region, region_of
from headrace.regions.exchange.intake import Intake
from headrace.regions.exchange.peer_connection import Provider
from headrace.regions.files.backlog import Backlog
from headrace.regions.files.journal import Journal
from headrace.regions.files.pieces import Piece
from headrace.regions.knowledge.region import Region
from headrace.regions.lanes.stream import RegionalStream
from headrace.server.config.config import Config
from headrace.server.dispatch.dispatcher import Dispatcher
from headrace.server.durability.durability import Durability
from headrace.server.settings import Settings
from headrace.server.state import Server

ORIGIN = b"2.0"
FOR_EVER_NS = 10**12


class Listening(Provider):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.consumed_pieces: list[Piece] = []
        self.reasons: list[str] = []
        self.is_over = False

    def consumed(self, piece: Piece) -> None:
        self.consumed_pieces.append(piece)

    def spoiled(self, reason: str) -> None:
        self.reasons.append(reason)

    def dropped(self, reason: str) -> None:
        self.reasons.append(reason)

    def is_outlived(self) -> bool:
        return self.is_over


class Bench:
    """A region in this process, with a file."""

    def __init__(self, folder: Path) -> None:
        config = Config()
        config.aa_region_id = 1
        config.appendonly = True
        self.server = Server(config)
        Settings(self.server)
        self.durability = Durability(self.server)
        self.dispatcher = Dispatcher(self.server, self.durability)
        begin_region(self.server)
        self.region.begin_epoch(0, 0, b"nonce")
        self.path = bytes(folder / "a.incr.aof")
        self.backlog = Backlog()
        self.journal = Journal(self.path, 0, 0, self.region, self.backlog)
        self.durability.files.record_to(self.journal)
        self.intake = Intake(self.dispatcher)
        self.provider = Listening()

    @property
    def region(self) -> Region:
        return region_of(self.server)

    def offer(self, first: int, *parts: bytes, count: int = 0, origin: bytes = ORIGIN) -> None:
        count = count or sum([part.count(b"XADD") + part.count(b"TRIM") for part in parts])
        self.intake.offer(Piece(origin, first, count, 0, b"".join(parts)), self.provider)

    def run(self) -> None:
        while self.intake.step(FOR_EVER_NS):
            pass

    def file(self) -> list[list[bytes]]:
        """The commands of the file, but for who wrote it and SELECT."""
        self.journal.write()
        self.journal.written(1000)
        reader = AofReader(self.path, b"a.incr.aof")
        found: list[list[bytes]] = []
        while (command := reader.next()) is not None:
            found.append(command)
        reader.close()
        return [words for words in found if words[0] != b"SELECT" and words[1:2] != [b"FILE"]]

    def length(self, key: bytes = b"s") -> int:
        value = self.server.data.dbs[0].get(key, 0)
        if value is None:
            return 0
        assert isinstance(value, RegionalStream)
        return value.length


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def xadd(number: int, key: bytes = b"s", size: int = 1) -> bytes:
    words = [b"XADD", key, b"%d-2" % number, b"f", b"v" * size]
    if number == 1:
        words[2:2] = [b"NEWLANE", b"1"]
    return request(words)


MULTI = request([b"MULTI"])
EXEC = request([b"EXEC"])


def test_records_are_applied_and_kept_as_they_came(bench: Bench) -> None:
    bench.offer(1, xadd(1), xadd(2))
    bench.offer(3, xadd(3))
    bench.run()
    assert bench.length() == 3
    assert bench.region.known() == {ORIGIN: 3}
    assert len(bench.provider.consumed_pieces) == 2
    records = bench.file()
    assert records[0] == [b"AA", b"FROM", b"1.0", b"1"]
    assert records[1] == [b"AA", b"FROM", ORIGIN, b"1"]
    assert [words[-1] for words in records[2:]] == [b"v"] * 3
    batch = bench.backlog.after(ORIGIN, 0, 10_000)
    assert batch is not None
    assert batch.payload == xadd(1) + xadd(2) + xadd(3)


def test_what_is_known_is_skipped(bench: Bench) -> None:
    bench.offer(1, xadd(1), xadd(2))
    bench.run()
    bench.offer(1, xadd(1), xadd(2), xadd(3))
    bench.offer(2, xadd(2), xadd(3))
    bench.offer(4, xadd(4))
    bench.run()
    assert bench.length() == 4
    assert bench.region.known() == {ORIGIN: 4}
    assert not bench.provider.reasons
    assert bench.intake.place(ORIGIN) == 4


def test_nothing_is_taken_from_a_life_that_is_over(bench: Bench) -> None:
    """Another connection brings again what stands on it."""
    later = Listening()
    bench.offer(1, xadd(1))
    bench.run()
    bench.offer(2, xadd(2))
    bench.intake.offer(Piece(ORIGIN, 3, 1, 0, xadd(3)), later)
    bench.intake.offer(Piece(b"3.0", 1, 1, 0, xadd(1, b"t")), later)
    bench.provider.is_over = True
    bench.run()
    assert bench.region.known() == {ORIGIN: 1, b"3.0": 1}
    assert bench.intake.place(ORIGIN) == 1
    assert len(bench.provider.reasons) == len(later.reasons) == 1
    bench.intake.offer(Piece(ORIGIN, 2, 2, 0, xadd(2) + xadd(3)), later)
    bench.run()
    assert bench.length() == 3


def test_a_transaction_is_kept_as_one(bench: Bench) -> None:
    bench.offer(1, MULTI, xadd(1), xadd(2), EXEC, xadd(3))
    bench.run()
    assert bench.length() == 3
    assert [words[0] for words in bench.file()[2:]] == [
        b"MULTI",
        b"XADD",
        b"XADD",
        b"EXEC",
        b"XADD",
    ]


def test_slices_end_between_units(bench: Bench) -> None:
    count = 100
    bench.offer(1, *[xadd(number) for number in range(1, count + 1)])
    steps = 1
    while bench.intake.step(0):
        assert bench.region.number_of(ORIGIN) == bench.length()
        assert bench.intake.place(ORIGIN) == count
        steps += 1
    assert steps > 3
    assert bench.length() == count
    assert len([words for words in bench.file() if words[0] == b"XADD"]) == count


def test_pieces_of_several_origins(bench: Bench) -> None:
    bench.offer(1, xadd(1))
    bench.offer(1, xadd(1, b"t"), origin=b"3.0")
    bench.offer(2, xadd(2))
    bench.run()
    assert bench.length(b"s") == 2
    assert bench.length(b"t") == 1
    counting = [words[2:] for words in bench.file() if words[:2] == [b"AA", b"FROM"]]
    assert counting == [
        [b"1.0", b"1"],
        [ORIGIN, b"1"],
        [b"3.0", b"1"],
        [ORIGIN, b"2"],
    ]


@pytest.mark.parametrize(
    ("payload", "count", "reason"),
    [
        (b"garbage", 1, "no records"),
        (b"*1\r\n$4\r\nXA", 1, "torn"),
        (xadd(1), 2, "another number"),
        (xadd(1) + xadd(2), 1, "another number"),
        (request([b"FLUSHALL"]), 1, "no other region sends"),
        (request([b"AA", b"FROM", b"1.0", b"7"]), 1, "no other region sends"),
        (request([b"AA", b"FILE", b"1"]), 1, "no other region sends"),
        (request([b"AA", b"PLACE", b"s"]), 1, "no other region sends"),
        (request([b"SELECT", b"1"]), 1, "no other region sends"),
        (b"#TS:1\r\n" + xadd(1), 1, "no other region sends"),
        (MULTI + xadd(1), 1, "no end"),
        (EXEC + xadd(1), 1, "no other region sends"),
        (MULTI + EXEC + xadd(1), 1, "no other region sends"),
        (MULTI + MULTI + xadd(1) + EXEC, 1, "no other region sends"),
        (b"*2\r\n$2000000000\r\nXADD", 1, "torn"),
        (b"*0\r\n", 1, "no records"),
        (b"*-1\r\n", 1, "no records"),
    ],
)
def test_nothing_of_garbage_is_applied(
    bench: Bench, payload: bytes, count: int, reason: str
) -> None:
    bench.offer(1, payload, count=count)
    bench.offer(1 + count, xadd(9), count=1)
    bench.run()
    assert reason in bench.provider.reasons[0]
    assert bench.length() == 0
    assert bench.region.known() == {}
    assert bench.intake.is_empty
    assert bench.intake.place(ORIGIN) == 0
    assert not [words for words in bench.file() if words[0] == b"XADD"]


@pytest.mark.parametrize(
    "words",
    [
        [b"XADD"],
        [b"XADD", b"s"],
        [b"XADD", b"s", b"*", b"f", b"v"],
        [b"XADD", b"s", b"2-2", b"f"],
        [b"AA", b"DEL", b"s", b"x", b"y"],
        [b"AA", b"TRIM", b"s", b"2.0"],
        [b"AA", b"XDEL", b"s"],
        [b"AA", b"BEAT", b"x", b"1"],
        [b"AA", b"FORGET", b"16", b"0"],
        [b"AA", b"JOIN", b"0"],
    ],
)
def test_a_record_that_means_nothing_stops_there(bench: Bench, words: list[bytes]) -> None:
    bench.offer(1, xadd(1), request(words), xadd(3), count=3)
    bench.offer(4, xadd(4))
    bench.run()
    assert "record 2 of 2.0 cannot be applied" in bench.provider.reasons[0]
    assert bench.region.known() == {ORIGIN: 1}
    assert bench.length() == 1
    kept = [each for each in bench.file() if each[0] == b"XADD"]
    assert len(kept) == 1
    bench.offer(2, xadd(2), xadd(3))  # what it should have been
    bench.run()
    assert bench.region.known() == {ORIGIN: 3}


def test_a_broken_transaction_leaves_file_and_state_alike(bench: Bench) -> None:
    bad = request([b"AA", b"DEL", b"s", b"x", b"y"])
    bench.offer(1, xadd(1), MULTI, xadd(2), xadd(3), bad, EXEC, count=4)
    bench.run()
    assert "record 4" in bench.provider.reasons[0]
    assert bench.region.known() == {ORIGIN: 3}
    assert bench.length() == len([words for words in bench.file() if words[0] == b"XADD"]) == 3
