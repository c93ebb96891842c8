"""The costs of types beside real servers: what is measured, and what is said of it."""

from __future__ import annotations

import sys

import pytest

from bench.peers import OURS, Peer, Server
from bench.type_workloads import KINDS, WORKLOADS
from bench.types import cpu_of, line, memory_of
from support import build

pytestmark = pytest.mark.once


def test_a_ratio_stands_beside_its_bar() -> None:
    told: dict[str, float | str] = {OURS: 300.0, "a": 400.0, "b": 500.0, "c": "ERR"}
    assert line("set", "SADD", told, 0.7, ["a", "b", "c"]).endswith(" 0.75, bar 0.70  OVER")
    assert line("set", "SADD", told, 0.8, ["b", "c"]).endswith(" 0.60, bar 0.80")
    assert line("set", "SADD", {**told, OURS: "ERR no"}, 0.8, ["a"]).endswith("  ERR no")


@pytest.fixture
def peer(monkeypatch: pytest.MonkeyPatch) -> Peer:
    for name, value in build.environment().items():
        monkeypatch.setenv(name, value)
    return Peer(OURS, (sys.executable, "-P", "-m", "headrace"))


@pytest.mark.slow
def test_a_command_and_a_key_cost_something(peer: Peer) -> None:
    get = next(workload for workload in WORKLOADS if workload.name == "GET")
    with Server(peer) as server:
        told = cpu_of(get, [server], 100, 1)
    assert isinstance(told[OURS], float), told
    assert 100 < told[OURS] < 100_000
    string = next(kind for kind in KINDS if kind.family == "string")
    with Server(peer) as server:
        held = memory_of(string, server, 0, 20_000)
    assert isinstance(held, float), held
    assert 20 < held < 2_000
