"""Makes fixtures: of a server with other parameters, and of clients with other databases."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable, Generator
from typing import TYPE_CHECKING, Any

import pytest

from headrace.testing import HeadraceServer, Parameter, ServerError

if TYPE_CHECKING:
    import redis
    import redis.asyncio

Fixture = Callable[..., Any]

try:
    from pytest_asyncio import fixture

    _async_fixture: Fixture = fixture
except ImportError:  # anyio takes coroutines that are plain fixtures
    _async_fixture = pytest.fixture


def headrace_proc(port: int | None = None, **parameters: Parameter) -> Fixture:
    """Return a fixture for the session: a server on a port, or on a free one."""

    @pytest.fixture(scope="session")
    def proc(request: pytest.FixtureRequest) -> Generator[HeadraceServer]:
        chosen = port or int(_setting(request, "port") or 0)
        executable = _setting(request, "exec") or None
        options: dict[str, Any] = {**parameters, "executable": executable, "port": chosen}
        with HeadraceServer(**options) as server:
            yield server

    return proc


def headracedb(process: str, dbnum: int = 0, decode: bool | None = None) -> Fixture:
    """Return a fixture for a test: a client of the server that the fixture ``process`` is.

    ``dbnum`` is the database; with ``decode`` its replies are text.
    """

    @pytest.fixture
    def db(request: pytest.FixtureRequest) -> Generator[redis.Redis]:
        server: HeadraceServer = request.getfixturevalue(process)
        _clean(server)
        with server.client(db=dbnum, decode_responses=bool(decode)) as client:
            yield client
        _clean(server)

    return db


def headracedb_async(process: str, dbnum: int = 0, decode: bool | None = None) -> Fixture:
    """Return a fixture as ``headracedb`` does, of a client of redis.asyncio."""

    @_async_fixture
    async def db(request: pytest.FixtureRequest) -> AsyncGenerator[redis.asyncio.Redis]:
        server: HeadraceServer = request.getfixturevalue(process)
        _clean(server)
        client = server.async_client(db=dbnum, decode_responses=bool(decode))
        yield client
        with contextlib.suppress(RuntimeError):  # the test had an event loop of its own
            await client.aclose()
        _clean(server)

    made: Fixture = db
    return made


def _setting(request: pytest.FixtureRequest, name: str) -> str:
    found = request.config.getoption(f"--headrace-{name}")
    return str(found or request.config.getini(f"headrace_{name}") or "")


def _clean(server: HeadraceServer) -> None:
    """Bring a server back to its start; of another one than Headrace, its data alone."""
    server.start()
    try:
        server.clean()
    except ServerError as error:
        if "unknown" not in str(error).lower() and "DEBUG command not allowed" not in str(error):
            server.restart(crash=True)  # a test has taken the rights to clean
            server.clean()
            return
        for words in (("FLUSHALL",), ("FUNCTION", "FLUSH"), ("SCRIPT", "FLUSH")):
            server.call(*words)
