"""A copy is half joined when the files are to be written anew, and then there is a crash."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Iterator
from typing import cast

import pytest

from headrace.persistence.aof.manifest import Manifest
from headrace.storage.stream.stream import Stream
from simulator.region import Region
from simulator.scenarios import NEEDS_NETWORK, WAITS, Refused, Scenario, run
from simulator.stage import Stage, staged

KEYS = 40
STEP_NS = 500  # for one thing to be done, or a few


@pytest.fixture
def stage() -> Iterator[Stage]:
    with staged(Scenario("half joined", "", 3, "strict", "")) as stage:
        yield stage


def call(stage: Stage, number: int, *words: str) -> object:
    return stage.call(number, "client", [word.encode() for word in words])


def lengths(stage: Stage, number: int) -> list[int]:
    """Return how long the streams are, though clients may not see it."""
    db = stage.regions[number].server.data.dbs[0]
    found = [db.peek(b"k%d" % key) for key in range(KEYS)]
    values = [None if entry is None else entry.value for entry in found]
    return [value.length if isinstance(value, Stream) else 0 for value in values]


def manifest_of(region: Region) -> Manifest:
    directory = region.durability.files.directory
    assert directory is not None
    return directory.manifest


def base_seq(region: Region) -> int:
    base = manifest_of(region).base
    return 0 if base is None else base.seq


def half_join(stage: Stage, one: Region, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let region 1 take a copy of region 2, and stop when it has joined about half of its keys."""
    ticks = itertools.count(0, STEP_NS - 1)
    join = importlib.import_module("headrace.regions.exchange.copy_join")
    monkeypatch.setattr(join, "perf_counter_ns", lambda: next(ticks))
    one.apply = lambda: None  # type: ignore[method-assign]  # from here on this test does that
    stage.heal()
    one.resume()
    copying = one.regions.full_copy
    for _ in range(200):
        stage.elapse(50)
        if copying.join is not None:
            break
    assert copying.join is not None
    for _ in range(100_000):
        with one.entered():
            copying.step(STEP_NS)
        joined = sum(length == 2 for length in lengths(stage, 1))
        if joined >= KEYS // 2:
            break
    assert KEYS // 2 <= joined < KEYS
    assert copying.join is not None


def ready_to_join(stage: Stage) -> Region:
    """Region 2 has entries of regions 2 and 3 that region 1 gets by a copy."""
    for key in range(KEYS):
        call(stage, 1, "XADD", f"k{key}", "*", "f", "v")
    stage.sync([1, 2, 3])
    for key in range(KEYS):
        call(stage, 3, "XADD", f"k{key}", "*", "f", "v")
    stage.sync([2, 3])
    run(Scenario("", "", 3, "strict", "cut\nfill 2\n", frozenset((NEEDS_NETWORK,))), stage)
    return stage.regions[1]


def go_on(stage: Stage, one: Region) -> None:
    """Let it join the rest."""
    del one.apply
    with one.entered():
        one.regions.rest_or_go_on()
        one.loop.call_soon(one.apply)
    stage.resume()
    for _ in range(100):
        stage.elapse(100)
        if lengths(stage, 1) == [2] * KEYS and not one.obstacle():
            break


READS = (
    "XLEN k1",
    "XRANGE k1 - +",
    "XREAD STREAMS k1 0",
    "XREAD BLOCK 0 STREAMS k1 $",
    "XREADGROUP GROUP g c STREAMS k1 >",
    "XINFO STREAM k1",
    "EXISTS k1",
    "DBSIZE",
    "KEYS *",
    "SCAN 0",
    "DUMP k1",
    "AA DIGEST k1",
    "AA STREAM k1",
    "AA MOVE k1 g 2",
    "EXEC",
)


def test_nobody_reads_a_half_joined_state(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    one = ready_to_join(stage)
    call(stage, 1, "MULTI")
    call(stage, 1, "XLEN", "k1")
    waiting = [b"XREAD", b"BLOCK", b"0", b"STREAMS", b"k0", b"k%d" % (KEYS - 1), b"$", b"$"]
    assert stage.call(1, "waiting", waiting) is WAITS
    half_join(stage, one, monkeypatch)
    for words in READS:
        client = "client" if words == "EXEC" else "reader"
        refused = stage.call(1, client, words.encode().split())
        assert isinstance(refused, Refused), words
        assert b"AASYNCING" in refused.text, words
    assert stage.call(1, "reader", [b"PING"]) == b"PONG"
    assert stage.call(1, "reader", [b"INFO"])
    assert stage.reply(1, "waiting") is WAITS
    go_on(stage, one)
    assert len(cast("list[object]", stage.reply(1, "waiting"))) == 2
    assert call(stage, 1, "XLEN", "k1") == 2


@pytest.mark.parametrize("crash", [True, False])
def test_a_base_never_holds_a_half_joined_state(
    stage: Stage, crash: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = ready_to_join(stage)
    half_join(stage, one, monkeypatch)
    before = base_seq(one)
    assert call(stage, 1, "BGREWRITEAOF") is not None
    stage.elapse(1000)
    assert base_seq(one) == before
    assert stage.call(1, "client", [b"SAVE"]) != b"OK"
    if crash:
        stage.network.ended(1)
        one.kill()
        del one.apply
        stage.cut()
        stage.start(1)
        assert lengths(stage, 1) == [1] * KEYS
        stage.heal()
    else:
        go_on(stage, one)
    stage.resume()
    for _ in range(100):
        stage.elapse(100)
        if lengths(stage, 1) == [2] * KEYS and base_seq(one) > before:
            break
    stage.sync([1, 2, 3])
    digests = [call(stage, number, "AA", "DIGEST") for number in (1, 2, 3)]
    assert digests[0] == digests[1] == digests[2]
    assert base_seq(one) > before
    assert not one.obstacle()
    for region in stage.regions.values():
        assert region.regions.checks.mismatches == 0
