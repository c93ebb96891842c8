"""What deleted keys take, while another region has not heard of it."""

from __future__ import annotations

import gc
import tracemalloc
from pathlib import Path

import pytest

from headrace.regions.exchange.heartbeats import KEYS_AT_ONCE, Stability
from headrace.regions.knowledge.stability import Beat
from headrace.storage import keyspace
from support.client import WireError
from support.mesh import Mesh, RegionProcess, wait_until
from support.regions import RegionInProcess

KEYS = 1300
IS_COMPILED = not keyspace.__file__.endswith(".py")
MOST_BYTES = 270 if IS_COMPILED else 450  # an object takes more where it is not compiled


def add_and_delete(region: RegionInProcess, keys: int, adds: int) -> None:
    """Let a region have keys that go again."""
    for number in range(keys):
        key = f"key:{keys}:{number:06}"
        for _ in range(adds):
            region("XADD", key, "*", "f", "v")
        assert region("DEL", key) == 1
        for piece in region.server.data.unused:
            while not piece.free_some(1000):
                pass
        region.server.data.unused.clear()
        if number % 100 == 0:
            region.journal.write()
            region.journal.written(0)
    region.journal.write()
    region.journal.written(0)


@pytest.mark.parametrize("adds", [1, 3])
def test_a_deleted_key_takes_little_until_all_have_heard_of_it(tmp_path: Path, adds: int) -> None:
    region = RegionInProcess(tmp_path, 1)
    region.backlog.most_bytes = 1 << 16
    region.region.peers.add(2)
    region.region.learned(b"2.0", 1)
    add_and_delete(region, 10, adds)
    tracemalloc.start(1)
    try:
        before, _ = tracemalloc.get_traced_memory()
        add_and_delete(region, KEYS, adds)
        gc.collect()
        used, _ = tracemalloc.get_traced_memory()
        used -= region.backlog.size_bytes  # which has a bound of its own
    finally:
        tracemalloc.stop()
    assert len(region.server.data.tombstones) == KEYS + 10
    assert (used - before) / KEYS < MOST_BYTES
    assert region.server.account.tombstones_bytes() / (KEYS + 10) > MOST_BYTES / 3
    known = region.region.known()
    region.region.synced = known
    region.region.beats = {number: Beat(0, known, 0) for number in (1, 2)}
    stability = Stability(region.server)
    for _ in range(KEYS // KEYS_AT_ONCE + 1):
        assert len(region.server.data.tombstones)
        stability.look(0)
    assert not len(region.server.data.tombstones)


def figure(region: RegionProcess, section: str, name: str) -> int:
    return int(region.info(section)[name])


def test_maxmemory_sees_deleted_keys_and_they_can_go_from_there(three_regions: Mesh) -> None:
    """Who has too much to remember refuses clients, but still learns that others know of it."""
    one, two, three = (three_regions[number] for number in (1, 2, 3))
    three_regions.wait_until_level()
    three.kill()
    at_first = figure(one, "memory", "used_memory")
    one.call("CONFIG", "SET", "maxmemory", str(at_first + 100_000))
    with two.client() as client:
        for number in range(KEYS):
            client.call_parsed("XADD", f"key:{number}", "*", "f", "v")
            client.call_parsed("DEL", f"key:{number}")
    wait_until(lambda: figure(one, "activeactive", "aa_graves") == KEYS, one)
    tombstones_bytes = figure(one, "activeactive", "aa_graves_bytes")
    assert tombstones_bytes > 150 * KEYS
    assert figure(one, "memory", "used_memory") > at_first + 0.9 * tombstones_bytes
    assert figure(one, "memory", "used_memory_overhead") > at_first + 0.9 * tombstones_bytes
    stats = one.call("MEMORY", "STATS")
    assert isinstance(stats, list)
    assert stats[stats.index(b"aa.graves") + 1] == tombstones_bytes
    with pytest.raises(WireError, match="OOM"):
        one.xadd("s")
    three.start_again()
    wait_until(lambda: figure(one, "activeactive", "aa_graves") == 0, one)
    one.xadd("s")
    three_regions.wait_until_level()
