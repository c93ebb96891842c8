"""All that depends on time, on a server whose clock is moved, beside a model in plain Python."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from headrace.testing import HeadraceServer
from support.campaigns import drawn

STEPS = drawn(25_000)
KEYS = [f"k{number}" for number in range(40)]
FIELDS = ["f0", "f1", "f2"]
NEVER = 1 << 60


class Model:
    """Strings, fields of hashes, idempotent producers and pending entries, with their times."""

    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms
        self.deadlines: dict[str, int] = {}
        self.fields: dict[str, dict[str, int]] = {}
        self.added: dict[str, tuple[str, int]] = {}  # by iid: the ID of its entry, and when
        self.delivered: dict[str, int] = {}  # when, by the IDs of pending entries

    def go_to(self, now_ms: int) -> list[tuple[int, str]]:
        """Return what has expired until then, with its moment: keys, and hashes by their names."""
        self.now_ms = now_ms
        gone = [(at, key) for key, at in self.deadlines.items() if at < now_ms]
        for _, key in gone:
            del self.deadlines[key]
        for key, fields in list(self.fields.items()):
            gone += [(at, key) for at in {at for at in fields.values() if at < now_ms}]
            self.fields[key] = {name: at for name, at in fields.items() if at >= now_ms}
            if not self.fields[key]:
                del self.fields[key]
        return sorted(gone)


class Machine:
    """Takes random steps with a server and the model, and compares them."""

    def __init__(self, server: HeadraceServer, chance: Random) -> None:
        self.call: Any = server.call
        self.chance = chance
        client: Any = server.client(decode_responses=True)
        self.client = client  # who drops it hangs up
        self.events = client.pubsub()
        self.events.psubscribe("__keyevent@0__:*expired")
        assert self.events.get_message(timeout=10)["type"] == "psubscribe"
        self.model = Model(server.call("DEBUG", "CLOCK", "FREEZE"))
        for words in ("XGROUP CREATE s g $ MKSTREAM", "XCFGSET s IDMP-DURATION 50"):
            self.call(*words.split())

    def step(self) -> None:
        chance = self.chance
        kinds = [self.put, self.put_hash, self.expire, self.add, self.deliver, self.move, self.look]
        chance.choice(kinds)()

    def put(self) -> None:
        key, ms = self.chance.choice(KEYS), self.chance.choice([0, 1, 5, 100, 3000, 60_000])
        self.model.fields.pop(key, None)
        self.call("SET", key, "v", *(["PX", ms] if ms else []))
        self.model.deadlines[key] = self.model.now_ms + ms if ms else NEVER

    def put_hash(self) -> None:
        key, name = self.chance.choice(KEYS), self.chance.choice(FIELDS)
        self.call("DEL", *([key] if key in self.model.deadlines else ["none"]))
        self.model.deadlines.pop(key, None)
        ms = self.chance.choice([1, 7, 250, 40_000])
        self.call("HSET", key, name, "v")
        assert self.call("HPEXPIRE", key, ms, "FIELDS", 1, name) == [1]
        self.model.fields.setdefault(key, {})[name] = self.model.now_ms + ms

    def expire(self) -> None:
        key, ms = self.chance.choice(KEYS), self.chance.choice([1, 30, 900, 20_000])
        there = self.model.deadlines.get(key)
        if key in self.model.fields:
            return
        if self.chance.random() < 0.3:
            had_one = there is not None and there != NEVER
            assert self.call("PERSIST", key) == int(had_one)
            if had_one:
                self.model.deadlines[key] = NEVER
            return
        assert self.call("PEXPIRE", key, ms) == int(there is not None)
        if there is not None:
            self.model.deadlines[key] = self.model.now_ms + ms

    def add(self) -> None:
        """Add with an iid: within the 50 seconds it is the same entry, later another one."""
        model, iid = self.model, str(self.chance.randrange(20))
        found = self.call("XADD", "s", "IDMP", "p", iid, "*", "f", "v").decode()
        before = model.added.get(iid)
        if before is not None and model.now_ms - before[1] < 50_000:
            assert found == before[0]
        elif before is None or model.now_ms - before[1] > 51_000:  # it is kept by the second
            assert before is None or found != before[0]
            model.added[iid] = (found, model.now_ms)
            assert int(found.partition("-")[0]) == model.now_ms
        elif found != before[0]:
            model.added[iid] = (found, model.now_ms)

    def deliver(self) -> None:
        model = self.model
        reply = self.call("XREADGROUP", "GROUP", "g", "c", "COUNT", 2, "STREAMS", "s", ">")
        for entry_id, _ in reply[0][1] if reply else []:
            model.delivered[entry_id.decode()] = model.now_ms
        if self.chance.random() < 0.4 and model.delivered:
            entry_id = self.chance.choice(list(model.delivered))
            assert self.call("XACK", "s", "g", entry_id) == 1
            del model.delivered[entry_id]

    def move(self) -> None:
        ms = self.chance.choice([0, 1, 2, 10, 333, 5000, 70_000])
        now_ms = self.call("DEBUG", "CLOCK", "SHIFT", ms)
        assert now_ms == self.model.now_ms + ms
        wanted = self.model.go_to(now_ms)
        found = [self.events.get_message(timeout=10)["data"] for _ in wanted]
        moments: dict[int, set[str]] = {}
        for at, key in wanted:
            moments.setdefault(at, set()).add(key)
        for keys in moments.values():  # those of one moment may come in any order
            assert set(found[: len(keys)]) == keys
            del found[: len(keys)]

    def look(self) -> None:
        model = self.model
        key = self.chance.choice(KEYS)
        at = model.deadlines.get(key)
        if key in model.fields:
            wanted = {name: at - model.now_ms for name, at in model.fields[key].items()}
            wanted = {name: ms or -2 for name, ms in wanted.items()}  # as HPTTL of Redis
            found = self.call("HPTTL", key, "FIELDS", len(wanted), *wanted)
            assert dict(zip(wanted, found, strict=True)) == wanted
            assert self.call("HLEN", key) == len(wanted)
        else:
            wanted_ms = -2 if at is None else -1 if at == NEVER else at - model.now_ms
            assert self.call("PTTL", key) == wanted_ms
        if model.delivered:
            entry_id = self.chance.choice(list(model.delivered))
            row = self.call("XPENDING", "s", "g", entry_id, entry_id, 1)[0]
            assert row[2] == model.now_ms - model.delivered[entry_id]


@pytest.fixture(scope="module")
def server() -> Iterator[HeadraceServer]:
    with HeadraceServer(notify_keyspace_events="KEA") as server:
        yield server


@pytest.mark.parametrize("seed", range(4))
def test_nothing_differs_from_the_model(server: HeadraceServer, seed: int) -> None:
    server.clean()
    machine = Machine(server, Random(seed))
    for _ in range(STEPS):
        machine.step()
    assert machine.events.get_message(timeout=0.2) is None
    machine.events.close()
