"""The runner of Redis's own tests, and the list of those that we do not pass."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from support.build import ROOT
from support.process import Process, RedisProcess
from support.redis_suite.__main__ import UNITS, compare
from support.redis_suite.expected import known, table
from support.redis_suite.units import BETWEEN, FAILED, IGNORED, PASSED, SETTINGS, Outcome, run

pytestmark = pytest.mark.once


@pytest.fixture(scope="session")
def suite() -> Path:
    """The sources of Redis."""
    folder = Path(os.environ.get("HEADRACE_SUITE") or ROOT / ".judges-suite")
    if not (folder / "tests").exists():
        pytest.skip("the sources of Redis are not there: `make redis-suite` fetches them")
    if shutil.which("tclsh") is None:
        pytest.skip("tclsh is not there")
    return folder


@pytest.mark.since(8, 0)
def test_a_unit_goes_on_after_errors(suite: Path, judge: str, tmp_path: Path) -> None:
    """Errors between tests, in tests, and a transaction that a failed one has left open."""
    copy = tmp_path / "suite"
    shutil.copytree(suite / "tests", copy / "tests", ignore=shutil.ignore_patterns("tmp"))
    (copy / "tests/tmp").mkdir()
    (copy / "tests/unit/ours.tcl").write_text("""
    start_server {tags {"ours"} overrides {nosuch 1}} {
        r nosuchcommand x
        test {first} { r multi; r nosuchcommand2 }
        test {second} { r set k v } {OK}
        test {third} { assert_equal [r get k] w }
        tags {external:skip} { test {fourth} { error "not for us" } }
        error "between"
        test {fifth} { r get k } {v}
    }
    """)

    def server() -> Process:
        return RedisProcess(*SETTINGS, program=judge)

    outcomes = run(copy, server, "unit/ours", [])
    unset = (
        "config set nosuch 1: ERR Unknown option or number of arguments for CONFIG SET - 'nosuch'"
    )
    assert [(status, name) for status, name, _ in outcomes] == [
        (BETWEEN, unset),
        (BETWEEN, "ERR unknown command 'nosuchcommand', with args beginning with: 'x'"),
        (FAILED, "first"),
        (PASSED, "second"),
        (FAILED, "third"),
        (IGNORED, "Not supported on external server"),
        (BETWEEN, "between"),
        (PASSED, "fifth"),
    ]
    assert outcomes[2].reason.startswith("ERR unknown command 'nosuchcommand2'")
    assert outcomes[4].reason.startswith("Expected 'v' to be equal to 'w'")


def test_the_tests_that_we_do_not_pass_are_told() -> None:
    assert table() in (ROOT / "docs" / "differences.md").read_text(), f"tell this:\n{table()}"
    for unit in UNITS:
        ours_alone = [why for why in known(unit).values() if "Redis 8.10" not in why]
        assert len(ours_alone) <= 8, unit


def test_what_only_the_real_server_passes() -> None:
    ours = [Outcome(PASSED, "a"), Outcome(FAILED, "b", "why"), Outcome(PASSED, "twice")]
    real = [Outcome(PASSED, name) for name in ("a", "b", "c", "twice", "twice")]
    found = compare("unit/none", ours, real)
    assert (found.ours, found.real, found.known) == (2, 5, [])
    assert found.missed == [("b", "why"), ("c", "was not run"), ("twice", "was not run")]
