"""A region of the simulator runs on files of an earlier time, and finds that out."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from simulator.scenarios import Scenario, entry_ids
from simulator.stage import Stage, staged

PEERS = b"2 127.0.0.1 7402, 3 127.0.0.1 7403"


@pytest.fixture
def stage() -> Iterator[Stage]:
    with staged(Scenario("later lives", "", 3, "strict", "")) as stage:
        yield stage


def add(stage: Stage, number: int) -> bytes:
    found = stage.call(number, "client", [b"XADD", b"s", b"*", b"f", b"v"])
    assert isinstance(found, bytes)
    return found


def ids(stage: Stage, number: int) -> list[bytes]:
    found = stage.call(number, "client", [b"XRANGE", b"s", b"-", b"+"])
    assert isinstance(found, list)
    return [entry[0] for entry in found]


@pytest.mark.parametrize("deleted", [False, True])
def test_it_goes_on_as_another_one_that_knows_all(stage: Stage, deleted: bool) -> None:
    one = stage.regions[1]
    first = [add(stage, 1) for _ in range(3)]
    stage.sync([1, 2, 3])
    aof = one.durability.files.aof
    assert aof is not None
    size = aof.size_bytes
    if deleted:
        stage.call(1, "client", [b"DEL", b"s"])
    last = [add(stage, 1) for _ in range(2)]
    stage.sync([1, 2])
    stage.network.ended(1)
    one.kill()
    os.truncate(aof.path, size)
    one.lost_end(size)
    one.settings["aa-peers"] = b""
    stage.start(1)
    assert not one.obstacle()
    assert ids(stage, 1) == first
    stage.call(1, "client", [b"CONFIG", b"SET", b"aa-peers", PEERS])
    stage.resume()
    stage.elapse(1000)
    assert one.regions.region.generation == 1
    stage.settle(1)
    assert not one.obstacle()
    last.append(add(stage, 1))
    stage.sync([1, 2, 3])
    expected = last if deleted else first + last
    assert [ids(stage, number) for number in (1, 2, 3)] == [expected] * 3
    known = [region.regions.region.known() for region in stage.regions.values()]
    assert known[0] == known[1] == known[2]


def lose_disk(stage: Stage) -> None:
    stage.network.ended(1)
    stage.regions[1].kill()
    stage.regions[1].lose_disk()
    stage._lost()


@pytest.mark.parametrize("written", [True, False])
def test_its_epoch_is_above_all_that_others_have_met(stage: Stage, written: bool) -> None:
    """Nobody takes anything of an epoch once there was a later one, so none may begin below it."""
    one = stage.regions[1]
    add(stage, 2)
    stage.sync([1, 2, 3])
    lose_disk(stage)
    stage.start(1)
    stage.settle(1)
    if written:
        add(stage, 1)
        stage.sync([1, 2, 3])
    before = one.regions.region.epoch
    lose_disk(stage)
    stage.set_clock(1, stage.time.now_ms - 3_600_000)
    stage.cut()
    stage.start(1)
    assert one.regions.region.epoch < before
    stage.heal()
    stage.settle(1)
    assert not one.obstacle()
    assert one.regions.region.epoch > before
    last = add(stage, 1)
    stage.sync([1, 2, 3])
    found = ids(stage, 1)
    assert last in found
    assert [ids(stage, number) for number in (2, 3)] == [found] * 2
    stage.set_clock(1, stage.time.now_ms)
    for region in stage.regions.values():
        region.resume()
    reading = [b"XREAD", b"COUNT", b"9", b"STABLE", b"STREAMS", b"s", b"0"]
    stable: object = None
    for _ in range(50):
        stage.elapse(100)
        stable = stage.call(2, "client", reading)
        if last in entry_ids(stable):
            return
    raise AssertionError(f"{last!r} is not stable: {stable}")
