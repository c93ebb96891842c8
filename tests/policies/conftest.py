"""Servers whose groups have policies."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from conftest import Factory

from support.client import RawClient
from support.policy_calls import AHEAD_MS, ALL
from support.process import Process


@pytest.fixture
def own(fresh_server: Factory) -> Process:
    return fresh_server(*ALL)


@pytest.fixture
def group(own: Process) -> Iterator[RawClient]:
    """A client of a server with a stream ``s`` and its group ``g``, and a frozen clock."""
    with own.client() as client:
        client.call("DEBUG", "CLOCK", "FREEZE")
        client.call("DEBUG", "CLOCK", "MOVE-TO", AHEAD_MS)
        client.call("XGROUP", "CREATE", "s", "g", 0, "MKSTREAM")
        yield client
