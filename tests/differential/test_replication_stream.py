"""The stream of records that replicas get, beside a real Redis: command for command.

The append-only file has the same records. Both servers play the cases of
``support/records/cases.txt`` for a replica that only reads.
"""

from __future__ import annotations

import pytest
from conftest import Factory

from support.following import digest, have_all, is_up
from support.process import Process
from support.records.cases import CASES
from support.records.reader import Stage
from support.waiting import wait_until

pytestmark = [pytest.mark.once, pytest.mark.judge, pytest.mark.since(8, 10)]

# What is recorded otherwise, and why; behind it stand the cases.
READ = "XADD k 1-1 f v;XGROUP CREATE k g 0;XREADGROUP GROUP g c STREAMS k >"
KEPT = {
    "a consumer that a claim makes is there after a crash even if it was given nothing": (
        f"{READ} => XCLAIM k g d 100000 1-1",
        f"{READ};XDEL k 1-1 => XCLAIM k g d 0 1-1",
        f"{READ};XDEL k 1-1 => XAUTOCLAIM k g d 0 0",
        "XADD k 1-1 f v;XGROUP CREATE k g 0 => XCLAIM k g d 0 1-1",
        "XADD k 1-1 f v;XGROUP CREATE k g 0 => XAUTOCLAIM k g d 0 0",
    ),
    "servers before Redis 8.4 do not know the command, or the condition": (
        "SET k v => SET k w IFEQ v",
        "SET k v => SET k w IFEQ v PXAT @100000",
        "SET k v => SET k w IFEQ v GET",
        "SET k v => SET k w IFDNE 0123456789abcdef",
        "SET k v => DELEX k",
        "SET k v => delex k",
        "SET k v => MSETEX 1 k w PXAT 1",
        "MSETEX 2 a 1 b 2 EX 100",
        "MSETEX 2 a 1 b 2 NX PX 100000",
        "MSETEX 2 a 1 b 2",
        "MSETEX 2 a 1 b 2 PX 100000 NX",
        "MSETEX 2 a 1 b 2 EXAT @s100",
        "MSETEX 2 a 1 a 2 pxat @100000",
        "MSETEX 2 a 1 b 2 EX 100 EX 200",
        "MSET a 1 b 2 => MSETEX 2 a 1 b 2 XX",
        "MSET a 1 b 2 => MSETEX 2 a 1 b 2 XX KEEPTTL",
        "MSETEX 1 a 1 KEEPTTL",
        "MSETEX 2 a 1 b 2 PXAT @100000",
        "MSETEX 2 a 1 b 2 PXAT 1",
    ),
    "here a hash that was imported is one like any other": (
        "HIMPORT PREPARE n f g;HIMPORT SET k n 1 2",
    ),
    "a string has become longer though no number was written": (
        "BITFIELD k OVERFLOW FAIL INCRBY u8 0 500",
    ),
}
LAZY = ("lazyfree-lazy-expire", "lazyfree-lazy-server-del", "lazyfree-lazy-user-del")


@pytest.fixture
def master(fresh_server: Factory) -> Process:
    process = fresh_server(
        "--enable-debug-command", "yes", "--save", "", "--repl-timeout", "3600",
        "--appendonly", "yes", "--appendfsync", "no",
    )  # fmt: skip
    process.call("DEBUG", "SET-ACTIVE-EXPIRE", 0)
    return process


@pytest.fixture
def judging(fresh_redis: Factory) -> Process:
    process = fresh_redis("--repl-diskless-sync", "no", "--repl-timeout", "3600")
    process.call("DEBUG", "SET-ACTIVE-EXPIRE", 0)
    return process


def kept(family: str) -> set[str]:
    """The cases of a family that are recorded otherwise."""
    named = {text for texts in KEPT.values() for text in texts}
    return {case.text for case in CASES[family] if case.text in named}


def differing(ours: Process, real: Process, family: str) -> dict[str, str]:
    """The cases of a family that are not recorded alike, and how they are."""
    found: dict[str, str] = {}
    with Stage(ours) as our_stage, Stage(real) as real_stage:
        for case in CASES[family]:
            our_records = our_stage.play(case)
            real_records = real_stage.play(case)
            if our_records != real_records:
                found[case.text] = f"\n  ours {our_records}\n  real {real_records}"
    return found


@pytest.mark.parametrize("family", CASES)
def test_records(master: Process, judging: Process, family: str) -> None:
    found = differing(master, judging, family)
    assert set(found) == kept(family), "\n".join(f"{text}: {how}" for text, how in found.items())


@pytest.mark.parametrize("parameter", LAZY)
def test_what_is_freed_lazily(master: Process, judging: Process, parameter: str) -> None:
    for each in (master, judging):
        each.call("CONFIG", "SET", parameter, "yes")
    assert set(differing(master, judging, "lazy freeing")) == kept("lazy freeing")


@pytest.mark.parametrize("family", CASES)
def test_a_real_replica_and_the_file_have_the_same(
    master: Process, judging: Process, family: str
) -> None:
    judging.call("REPLICAOF", "127.0.0.1", master.port)
    wait_until(lambda: is_up(judging))
    with Stage(master) as stage:
        for case in CASES[family]:
            stage.play(case)
            if "set_repl" in case.text:
                continue  # the script wants them to differ
            wait_until(lambda: have_all(master, judging))
            before = digest(master)
            assert digest(judging) == before, case.text
            master.call("DEBUG", "LOADAOF")
            assert digest(master) == before, case.text
