"""When numbered records may leave: the committer says what has been written, and synced."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.protocol.client import request
from headrace.regions.files.backlog import Backlog
from headrace.regions.files.journal import Journal, JournalLog
from headrace.regions.knowledge.region import Region
from headrace.server.config.config import Config
from headrace.server.durability.commit import PATIENCE_S
from headrace.server.durability.durability import Durability
from headrace.server.state import Server
from support.file_limit import file_limit
from support.waiting import DEADLINE_S

LONG = request([b"XACK", b"s", b"g", *(b"%d-1" % number for number in range(100))])


class Side:
    """A server whose append-only file is a journal."""

    def __init__(self, path: Path, policy: bytes) -> None:
        config = Config()
        config.appendfsync = policy
        self.server = Server(config)
        self.server.clock.refresh()
        self.durability = Durability(self.server)
        self.committer = self.durability.committer
        self.region = Region(1)
        self.backlog = Backlog()
        self.kept = JournalLog(self.region, self.backlog)
        self.journal = Journal(bytes(path), 0, 0, self.region, self.backlog, self.kept)
        self.durability.files.record_to(self.journal)

    def add(self) -> None:
        self.journal.append(0, [b"XADD", b"s", b"%d-1" % (self.region.count + 1), b"f", b"v"])
        self.journal.end_command()

    @property
    def sent(self) -> int:
        """Return how many records may leave."""
        return self.backlog.next(b"1.0") - 1

    async def until(self, condition: Callable[[], bool]) -> None:
        deadline_s = time.monotonic() + DEADLINE_S
        while not condition():
            assert time.monotonic() < deadline_s
            await asyncio.sleep(0.001)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.incr.aof"


@pytest.mark.parametrize("policy", [b"always", b"everysec", b"no"])
def test_records_leave_at_the_end_of_a_turn(path: Path, policy: bytes) -> None:
    async def turns() -> None:
        side = Side(path, policy)
        side.add()
        assert side.sent == 0
        side.committer.end_turn()
        await side.until(lambda: side.sent == 1)
        found = side.backlog.after(b"1.0", 0, 100)
        assert found is not None
        assert found.ms == side.server.clock.now_ns // 1_000_000
        assert side.committer.close()

    asyncio.run(turns())


def test_records_leave_when_the_thread_has_written_them(path: Path) -> None:
    async def turns() -> None:
        side = Side(path, b"everysec")
        side.add()
        side.journal.append_wire(0, [LONG])
        side.add()
        side.committer.end_turn()
        side.add()  # while the thread writes: it is not taken
        assert side.committer.busy
        assert side.sent == 0
        await side.until(lambda: side.sent == 3)
        assert side.committer.close()

    asyncio.run(turns())


def test_replies_leave_while_the_disk_is_stuck_and_records_do_not(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``PATIENCE_S``: after that replies leave though nothing has been written."""
    go_on = threading.Event()
    write = os.write

    def slow(fd: int, data: bytes) -> int:
        if threading.current_thread() is not threading.main_thread():
            assert go_on.wait(DEADLINE_S)
        return write(fd, data)

    monkeypatch.setattr(os, "write", slow)

    async def turns() -> None:
        side = Side(path, b"everysec")
        side.add()
        side.journal.append_wire(0, [LONG])
        side.committer.end_turn()
        started_s = time.monotonic()
        await side.until(lambda: time.monotonic() > started_s + 2 * PATIENCE_S)
        assert side.committer.busy
        assert side.sent == 0
        go_on.set()
        await side.until(lambda: side.sent == 1)
        assert side.committer.close()

    asyncio.run(turns())


def test_what_the_disk_refused_leaves_when_it_is_written(path: Path) -> None:
    async def turns() -> None:
        side = Side(path, b"everysec")
        with file_limit(side.journal.size_bytes + 10):
            side.add()
            side.committer.end_turn()
            side.add()
            side.committer.end_turn()
            assert side.durability.files.write_error
            assert side.sent == 0
        await side.until(lambda: side.sent == 2)
        found = side.backlog.after(b"1.0", 0, 1000)
        assert found is not None
        assert found.count == 2
        assert side.committer.close()
        sent.append(found.payload)

    sent: list[bytes] = []
    asyncio.run(turns())
    assert sent[0] in path.read_bytes()


@pytest.mark.parametrize("policy", [b"always", b"everysec"])
def test_records_may_have_to_wait_for_the_sync(
    path: Path, policy: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    sides: list[Side] = []
    seen: list[int] = []
    sync = os.fdatasync

    def noting(fd: int) -> None:
        seen.extend([side.sent for side in sides])
        sync(fd)

    monkeypatch.setattr(os, "fdatasync", noting)

    async def turns() -> None:
        side = Side(path, policy)
        sides.append(side)
        side.kept.sends_synced = True
        side.add()
        side.committer.end_turn()
        await side.until(lambda: side.sent == 1)
        assert seen[0] == 0
        side.add()
        assert side.committer.settle()
        assert side.sent == 2
        assert side.committer.close()

    asyncio.run(turns())
