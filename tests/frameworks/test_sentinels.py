"""ioredis under sentinels: what it was answered is there after a failover."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import Factory
from frameworks.conftest import FOLDER

from support import judges
from support.following import AT_ONCE, is_up
from support.sentinel_rounds import OURS, cut, scene
from support.sentinels import lost, watched
from support.waiting import wait_until

pytestmark = [pytest.mark.once, pytest.mark.slow]


class Told:
    """What the program has told so far."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.touch()

    def values(self, word: str) -> list[bytes]:
        lines = self._path.read_bytes().splitlines()
        return [line.partition(b" ")[2] for line in lines if line.startswith(word.encode() + b" ")]

    def wait_for_more(self) -> None:
        before = len(self.values("promised"))
        wait_until(lambda: len(self.values("promised")) > before + 10)


@contextmanager
def writer(modules: Path, told: Path, ports: list[int]) -> Iterator[Told]:
    environment = {
        **os.environ,
        "NODE_PATH": str(modules),
        "HEADRACE_TOLD": str(told),
        "HEADRACE_SENTINELS": ",".join(map(str, ports)),
    }
    kept = Told(told)
    program = subprocess.Popen(["node", FOLDER / "node/with_sentinels.js"], env=environment)
    try:
        yield kept
    finally:
        program.kill()
        program.wait()


def test_nothing_is_lost_that_ioredis_was_promised(
    node_modules: Path, fresh_server: Factory, tmp_path: Path
) -> None:
    """A planned failover loses nothing at all, and a kill nothing that WAIT has counted."""
    options = ("--appendonly", "yes", "--save", "", *AT_ONCE)
    master, *replicas = servers = [fresh_server(*options) for _ in range(3)]
    for each in replicas:
        each.call("REPLICAOF", "127.0.0.1", master.port)
    wait_until(lambda: all(is_up(each) for each in replicas))
    with watched(servers, [judges.program_of("redis-8.10")] * 3) as those:
        ports = [each.port for each in those.sentinels]
        with writer(node_modules, tmp_path / "told", ports) as told:
            told.wait_for_more()
            those.fail_over()
            planned = those.wait_for_other(master)
            told.wait_for_more()
            wait_until(those.follow_one)
            assert lost(told.values("added"), planned) == []
            planned.kill()
            new = those.wait_for_other(planned)
            told.wait_for_more()
        assert lost(told.values("promised"), new) == []


def test_ioredis_goes_on_when_the_master_is_cut_off(node_modules: Path, tmp_path: Path) -> None:
    """What WAIT has counted is there, although the old master had taken more."""
    with scene([OURS], judges.program_of("redis-8.10"), by_links=True) as those:
        ports = [each.port for each in those.sentinels]
        old = those.agreed()
        assert old is not None
        with writer(node_modules, tmp_path / "told", ports) as told:
            told.wait_for_more()
            new = cut(those, old)
            told.wait_for_more()
            wait_until(those.are_in_place)
        assert lost(told.values("promised"), new) == []
