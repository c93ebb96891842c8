"""The demo of regions: what its verdict finds, and a short run of all of it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("rich", reason="rich is not installed: headrace[demo]")

from support import build
from two_regions.verdict import doubled, lost, same_ids

pytestmark = pytest.mark.once

ONE, TWO = ("writer-1", "1"), ("writer-2", "1")


def test_what_the_verdict_finds() -> None:
    whole = [("1-1", ONE), ("1-2", TWO)]
    told = {ONE: "1-1", TWO: "1-2"}
    assert (lost([whole, whole], told), same_ids(whole), doubled(whole)) == (0, 0, 0)
    assert lost([whole, whole[:1]], told) == 1, "it is missing in one region"
    assert lost([whole, [("1-1", ONE), ("2-2", TWO)]], told) == 1, "it has another ID there"
    assert same_ids([("1-1", ONE), ("1-1", TWO)]) == 1
    assert doubled([("1-1", ONE), ("2-1", ONE)]) == 1


def run(*arguments: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    variables = build.environment()
    paths = (str(build.ROOT / "examples"), variables.get("PYTHONPATH", ""))
    return subprocess.run(
        [sys.executable, "-P", "-m", "two_regions.demo", "--rate", "50", *arguments],
        env={**variables, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        input=typed,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=300,
    )


def test_the_demo() -> None:
    demo = run("--seconds", "10")
    assert demo.returncode == 0, demo.stdout
    assert "All is as promised." in demo.stdout
    assert "and its disk is lost" in demo.stdout


def test_every_plug_is_pulled_by_hand() -> None:
    lines = ["cut 1 2", "cut 3", "cut 4", "wait 1", "lose 3", "start 3", "kill 2", "lose 2"]
    lines += ["deaf 1", "heal", "start 2", "wait 1", "move 2", "kill 1", "pull", "wait 1", "end"]
    demo = run("--by-hand", typed="\n".join(lines))
    assert demo.returncode == 0, demo.stdout
    assert "? cut 4: there is no region 4" in demo.stdout
    assert "? lose 2: it is not running" in demo.stdout
    assert "? pull" in demo.stdout
    assert "entries that nobody could fetch" in demo.stdout
    assert "went with a disk before anybody could fetch them" in demo.stdout
    assert "All is as promised." in demo.stdout
