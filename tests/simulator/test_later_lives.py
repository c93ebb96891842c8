"""A region of the simulator runs on files of an earlier time, and finds that out."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from simulator import determinism
from simulator.disks import folder
from simulator.scenarios import Scenario
from simulator.stage import Stage

PEERS = b"2 127.0.0.1 7402, 3 127.0.0.1 7403"


@pytest.fixture
def stage() -> Iterator[Stage]:
    determinism.prepare()
    root = Path(tempfile.mkdtemp(prefix="headrace-scenario-", dir=folder()))
    stage = Stage(Scenario("later lives", "", 3, "strict", ""), root)
    try:
        yield stage
    finally:
        stage.close()
        shutil.rmtree(root, ignore_errors=True)


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
