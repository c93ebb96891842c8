"""Regions for tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.mesh import Mesh


@pytest.fixture
def two_regions() -> Iterator[Mesh]:
    """Two regions that pull from each other."""
    with Mesh(2) as mesh:
        yield mesh
        for region in mesh.regions.values():
            region.check_log()


@pytest.fixture
def three_regions() -> Iterator[Mesh]:
    """Three regions, each of which pulls from the others."""
    with Mesh(3) as mesh:
        yield mesh
        for region in mesh.regions.values():
            region.check_log()
