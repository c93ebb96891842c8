"""What the tests of the simulator, and those by it, have in common."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from simulator import determinism


@pytest.fixture(autouse=True)
def _prepared() -> Iterator[None]:
    with determinism.prepared():
        yield
