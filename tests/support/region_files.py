"""Files of a region as tests write and read them, and random stories of what stands in there."""

from __future__ import annotations

import random
import time
from pathlib import Path

from headrace.persistence.aof.reader import AofReader
from headrace.protocol.client import request
from headrace.protocol.requests import RequestParser
from headrace.regions.files.backlog import Backlog, Batch, joined
from headrace.regions.files.journal import Journal, JournalLog
from headrace.regions.knowledge.records import is_numbered
from headrace.regions.knowledge.region import Region
from support.file_limit import file_limit

Words = list[bytes]
Unit = list[Words]
MULTI = request([b"MULTI"])
EXEC = request([b"EXEC"])
LOCAL = [b"XACK", b"s", b"g", b"1-1"]


def region_one(count: int = 0) -> Region:
    region = Region(1)
    region.database = b"orders"
    region.nonce = b"n0"
    region.count = count
    return region


def xadd(number: int, size: int = 3) -> Words:
    return [b"XADD", b"s", b"%d-1" % number, b"f", b"v" * size]


def removal(number: int) -> Words:
    return [b"AA", b"XDEL", b"s", b"1.0.1", b"%d-1" % number]


def requests(data: bytes) -> list[Words]:
    parser = RequestParser(1 << 30)
    parser.feed(data)
    found: list[Words] = []
    while some := parser.take():
        found += some
    return found


def units(data: bytes) -> list[Unit]:
    """The units of a payload, which must hold nothing but numbered records."""
    found: list[Unit] = []
    bracket: Unit | None = None
    for words in requests(data):
        if words == [b"MULTI"]:
            assert bracket is None
            bracket = []
        elif words == [b"EXEC"]:
            assert bracket
            found.append(bracket)
            bracket = None
        else:
            assert is_numbered(words), words
            if bracket is None:
                found.append([words])
            else:
                bracket.append(words)
    assert bracket is None
    return found


def commands(path: Path) -> list[Words]:
    """Return what stands in a file behind the line that says whose it is."""
    reader = AofReader(bytes(path), b"x.aof")
    found = []
    while (words := reader.next()) is not None:
        found.append(words)
    assert not reader.torn
    reader.close()
    assert found[0][:2] == [b"AA", b"FILE"]
    return found[1:]


def all_after(backlog: Backlog, origin: bytes, number: int, most_bytes: int = 1 << 30) -> Batch:
    found = []
    while (batch := backlog.after(origin, number, most_bytes)) is not None:
        assert batch.first <= number + 1 <= batch.first + batch.count - 1
        found.append(batch)
        number = batch.next - 1
    return joined(found)


def open_journal(path: Path, region: Region, backlog: Backlog | None = None) -> Journal:
    return Journal(bytes(path), 0, 0, region, backlog or Backlog())


def add(journal: Journal, *records: Words) -> None:
    """Add what one command did."""
    for record in records:
        journal.append(0, record)
    journal.end_command()


def commit(journal: Journal, now_ms: int = 1) -> None:
    journal.write()
    journal.written(now_ms)


class Story:
    """Random changes of a region, and what its peers have to get in the end."""

    def __init__(self, seed: int, path: Path) -> None:
        self.random = random.Random(seed)
        self.path = path
        self.region = region_one()
        self.backlog = Backlog(1 << 30)
        self.kept = JournalLog(self.region, self.backlog)
        self.journal = Journal(bytes(path), 0, 0, self.region, self.backlog, self.kept)
        self.sent: dict[bytes, list[Unit]] = {b"1.0": [], b"2.0": [], b"3.2": []}
        self.paths = [path]
        self.locals: tuple[Words, ...] = (
            *([b"XACK", b"s", b"g", b"1-1"], [b"AA", b"PLACE", b"s"]),
            *([b"AA", b"MADE", b"x"], [b"aa", b"x"]),
        )
        self.sizes: tuple[int, ...] = (0, 5, 100, 3000)  # of values
        self.odd_values = 0.2  # how many values look like commands

    def record(self) -> Words:
        rng = self.random
        if rng.random() < 0.6:
            size = rng.choice(self.sizes)
            value = (
                rng.randbytes(size)
                if rng.random() >= self.odd_values
                else MULTI + EXEC + b"\r\n*1\r\n"
            )
            return [b"XADD", b"s", b"%d-1" % rng.randrange(1 << 40), b"f", value]
        return removal(rng.randrange(100))

    def local(self) -> Words:
        return self.random.choice(self.locals)

    def command(self) -> None:
        """One command of a client."""
        own: Unit = []
        for _ in range(self.random.choice((1, 1, 1, 2, 3, 6))):
            if self.random.random() < 0.7:
                own.append(self.record())
                self.journal.append(0, own[-1])
            else:
                self.journal.append(0, self.local())
            if self.random.random() < 0.1:
                self.journal.stamp_next(int(time.time()))
        self.journal.end_command()
        if own:
            self.sent[b"1.0"].append(own)

    def arrival(self) -> None:
        """A unit of a peer, perhaps with what it makes necessary here."""
        origin = self.random.choice((b"2.0", b"3.2"))
        unit = [self.record() for _ in range(self.random.choice((1, 1, 2, 4)))]
        wire = b"".join(request(words) for words in unit)
        if len(unit) > 1:
            wire = MULTI + wire + EXEC
        first = sum(len(each) for each in self.sent[origin]) + 1
        self.journal.append_received(origin, first, len(unit), wire)
        self.sent[origin].append(unit)
        if self.random.random() < 0.3:
            self.command()
        self.journal.end_command()

    def commit(self) -> None:
        """Write, though the disk may refuse to."""
        if self.random.random() < 0.2:
            room = self.random.randrange(200)
            try:
                with file_limit(self.journal.size_bytes + room):
                    self.journal.write()
            except OSError:
                return
        else:
            self.journal.write()
        self.journal.written(1)

    def switch(self) -> None:
        self.journal.write()
        self.journal.written(1)
        self.journal.sync()
        self.path = self.path.with_name(f"{len(self.paths)}.incr.aof")
        self.paths.append(self.path)
        self.journal.switch(bytes(self.path), 0)

    def run(self, steps: int) -> None:
        for _ in range(steps):
            what = self.random.random()
            if what < 0.5:
                self.command()
            elif what < 0.8:
                self.arrival()
            elif what < 0.82:
                self.journal.append_wire(0, [request([b"XACK", b"s", b"g", *([b"1-1"] * 50)])])
            elif what < 0.84:
                self.switch()
            else:
                self.commit()
        self.journal.write()
        self.journal.written(1)
        self.journal.sync()
        self.journal.synced()
