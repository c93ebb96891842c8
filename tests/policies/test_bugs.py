"""Bugs that are planted in policies are found; ``make policy-mutants`` looks for all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.policy_mutants import bugs, copy, look

BUGS = bugs()


def test_bugs_can_be_planted(tmp_path: Path) -> None:
    copy(tmp_path)
    assert len(BUGS) >= 20
    for bug in BUGS.values():
        source = (tmp_path / bug.file).read_text()
        assert source.count(bug.old) == 1, bug.old


@pytest.mark.once
def test_one_is_found() -> None:
    assert look(BUGS["the delivery limit is one too high"], 4000) != ""
