"""Fixtures for clients: redis-py in both protocols, and what its replies have in common."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import redis
import redis.asyncio

from support.process import ServerProcess
from support.redis_py import Client


@pytest.fixture(params=[2, 3], ids=["RESP2", "RESP3"])
def protocol(request: pytest.FixtureRequest) -> int:
    number: int = request.param
    return number


@pytest.fixture
def r(server: ServerProcess, protocol: int) -> Iterator[Client]:
    """The blocking client."""
    with redis.Redis(port=server.port, protocol=protocol, decode_responses=True) as client:
        yield client


@pytest.fixture
def other(server: ServerProcess, protocol: int) -> Iterator[Client]:
    """A second blocking client, which is always the same connection."""
    with redis.Redis(
        port=server.port, protocol=protocol, decode_responses=True, single_connection_client=True
    ) as client:
        yield client


@pytest.fixture
async def ar(server: ServerProcess, protocol: int) -> AsyncIterator[Client]:
    """The asynchronous client."""
    async with redis.asyncio.Redis(
        port=server.port, protocol=protocol, decode_responses=True
    ) as client:
        yield client
