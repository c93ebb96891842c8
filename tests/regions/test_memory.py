"""What deleted keys take, while another region has not heard of it."""

from __future__ import annotations

import gc
import tracemalloc
from pathlib import Path

import pytest

from headrace.server.regions.stability import KEYS_AT_ONCE, Stability
from headrace.storage import keyspace
from headrace.storage.regions.beats import Beat
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
    assert len(region.server.data.graves) == KEYS + 10
    assert (used - before) / KEYS < MOST_BYTES
    known = region.region.known()
    region.region.synced = known
    region.region.beats = {number: Beat(0, known, 0) for number in (1, 2)}
    stability = Stability(region.server)
    for _ in range(KEYS // KEYS_AT_ONCE + 1):
        assert len(region.server.data.graves)
        stability.look(0)
    assert not len(region.server.data.graves)
