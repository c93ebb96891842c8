"""The example consumer of the first specification, in its spellings, with redis-py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis

from support.process import ServerProcess

pytestmark = pytest.mark.once

IDLE_MS = 50
Fields = dict[str, str]


@pytest.fixture(params=[2, 3])
def r(request: pytest.FixtureRequest, server: ServerProcess) -> Iterator[redis.Redis]:
    client = redis.Redis(port=server.port, decode_responses=True, protocol=request.param)
    yield client
    client.close()


def execute(r: redis.Redis, *words: object) -> Any:
    """A command that redis-py has no method for."""
    return r.execute_command(*words)  # type: ignore[no-untyped-call]


class Consumer:
    """Reads with XREAD-GROUP, works, acknowledges with its own name, recovers from others."""

    def __init__(self, r: redis.Redis, name: str, work: Callable[[str, Fields], None]) -> None:
        self.r = r
        self.name = name
        self.work = work

    def read(self, after: str) -> list[tuple[str, Fields]]:
        reply = execute(
            self.r,
            *("XREAD-GROUP", "BLOCK", 100, "GROUP", "mygroup", "NAME", self.name),
            *("COUNT", 10, "STREAMS", "mystream", after),
        )
        if not reply:
            return []
        entries = reply["mystream"] if isinstance(reply, dict) else reply[0][1]
        assert isinstance(entries, list)
        return [
            (entry_id, dict(zip(row[::2], row[1::2], strict=True))) for entry_id, row in entries
        ]

    def process(self, entry_id: str, fields: Fields) -> None:
        self.work(entry_id, fields)
        acked = execute(self.r, "XACK", "mystream", "mygroup", self.name, entry_id)
        assert acked == 1

    def finish_own(self) -> None:
        """What this name was given and never acknowledged, after a crash of ours."""
        after = "0"
        while entries := self.read(after):
            for entry_id, fields in entries:
                self.process(entry_id, fields)
            after = entries[-1][0]

    def recover(self) -> None:
        """Claim what others have held for too long."""
        least, most, count = execute(self.r, "XGROUP", "PENDING", "mystream", "mygroup")
        if not count:
            return
        rows = execute(self.r, "XGROUP", "GET-PENDING", "mystream", "mygroup", least, most, count)
        for entry_id, consumer, idle_s, deliveries in rows:
            if consumer == self.name or deliveries > 5:
                continue
            assert idle_s >= 0
            claimed = execute(
                self.r, "XGROUP", "CLAIM", "mystream", "mygroup", self.name, IDLE_MS, entry_id
            )
            for claimed_id in claimed:
                found: Any = self.r.xrange("mystream", claimed_id, claimed_id)
                self.process(claimed_id, found[0][1])

    def run(self) -> None:
        """Until nothing comes any more."""
        self.finish_own()
        while entries := self.read(">"):
            for entry_id, fields in entries:
                self.process(entry_id, fields)


class WorkerDiedError(Exception):
    """Stands for the end of a worker's process."""


def test_the_example_consumer(r: redis.Redis, server: ServerProcess) -> None:
    execute(r, "XGROUP", "CREATE", "mystream", "mygroup", "0", "MKSTREAM")
    added = [r.xadd("mystream", {"number": number}) for number in range(35)]
    done: list[str] = []

    def work(entry_id: str, fields: Fields) -> None:
        done.append(entry_id)

    def work_and_die(entry_id: str, fields: Fields) -> None:
        if len(done) == 13:
            raise WorkerDiedError
        done.append(entry_id)

    with pytest.raises(WorkerDiedError):
        Consumer(r, "alice", work_and_die).run()
    assert len(done) == 13
    Consumer(r, "bob", work).run()
    assert execute(r, "XGROUP", "PENDING", "mystream", "mygroup")[2] == 7
    with server.client() as clock:
        clock.call("DEBUG", "SLEEP", (IDLE_MS + 10) / 1000)
    Consumer(r, "bob", work).recover()
    assert sorted(done) == sorted(added)
    assert execute(r, "XGROUP", "PENDING", "mystream", "mygroup") == [None, None, 0]


def test_a_consumer_that_comes_back_finishes_its_own(r: redis.Redis) -> None:
    execute(r, "XGROUP", "CREATE", "mystream", "mygroup", "0", "MKSTREAM")
    added = [r.xadd("mystream", {"number": number}) for number in range(12)]
    done: list[str] = []
    alice = Consumer(r, "alice", lambda entry_id, fields: done.append(entry_id))
    assert len(alice.read("$")) == 10  # what is new to the group; then the crash
    alice.run()
    assert done == added
