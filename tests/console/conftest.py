"""Servers with streams, and consoles that show them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from support import judges
from support.process import RedisProcess, ServerProcess

for missing in ("httpx", "itsdangerous", "jinja2", "redis", "starlette", "uvicorn"):
    pytest.importorskip(missing, reason="only with the extra `console`")

from support.consoles import Console, Shop, furnish  # noqa: E402


def _oldest() -> str:
    program = judges.JUDGES[-1].program()
    if program is None:
        pytest.skip("no Redis 7.0 here")
    return program


@pytest.fixture(scope="module")
def _shops() -> Iterator[dict[str, Shop]]:
    shops: dict[str, Shop] = {}
    yield shops
    for shop in shops.values():
        try:
            shop.console.__exit__(None, None, None)
        finally:
            shop.server.discard()


@pytest.fixture(params=["ours", pytest.param("redis-7.0", marks=pytest.mark.once)])
def shop(request: pytest.FixtureRequest, _shops: dict[str, Shop]) -> Shop:
    """A shop on our server, and on the oldest Redis; fresh streams for each test."""
    return _shop(request.param, _shops)


@pytest.fixture
def our_shop(_shops: dict[str, Shop]) -> Shop:
    """A shop on our server alone."""
    return _shop("ours", _shops)


def _shop(name: str, shops: dict[str, Shop]) -> Shop:
    if name not in shops:
        ours = name == "ours"
        server = ServerProcess("--save", "") if ours else RedisProcess(program=_oldest())
        server.start()
        console = Console(f"redis://127.0.0.1:{server.port}")
        shops[name] = Shop(server, console.__enter__(), ours)
    found = shops[name]
    with found.server.client() as client:
        client.call("FLUSHALL")
        furnish(client, found.ours)
    return found


@pytest.fixture
def show() -> Iterator[Callable[..., Console]]:
    """Starts consoles of the test's own; see ``Console`` for the arguments."""
    started: list[Console] = []

    def start(url: str, *options: str, password: str = "", verify: str = "") -> Console:
        console = Console(url, *options, password=password, verify=verify)
        started.append(console.__enter__())
        return console

    yield start
    for console in started:
        console.__exit__(None, None, None)
