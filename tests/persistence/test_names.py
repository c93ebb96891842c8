"""Names of keys are told apart, whether they are all in memory or for the most part in a file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headrace.persistence.check import NOWHERE, MetNames


@pytest.mark.parametrize("count", [10, 300_000])
def test_the_first_name_that_comes_again_is_found(tmp_path: Path, count: int) -> None:
    folder = os.fsencode(tmp_path)
    met = MetNames(folder)
    for number in range(count):
        assert met.note(number % 3, b"key:%d" % number, number) == NOWHERE
    assert met.doubled() == NOWHERE
    met.note(1, b"key:0", count)  # of another database
    assert met.doubled() == NOWHERE
    met.note(2, b"key:5", count + 1)
    met.note(0, b"key:9", count + 2)
    assert met.doubled() == count + 1
    assert os.listdir(tmp_path) == []  # what lies there has no name
    met.close()


def test_one_name_again_and_again_comes_up_soon(tmp_path: Path) -> None:
    met = MetNames(os.fsencode(tmp_path))
    found = [met.note(0, b"", offset) for offset in range(1000)]
    met.close()
    assert set(found) == {NOWHERE, 1}
    assert found.index(1) < 700
