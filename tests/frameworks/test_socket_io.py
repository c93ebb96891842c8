"""Socket.IO servers that find each other through Redis, when one is killed and when Redis is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from frameworks.conftest import FOLDER
from frameworks.workplace import Workplace

from support.process import ServerProcess

pytestmark = [pytest.mark.once, pytest.mark.slow]


@pytest.mark.parametrize("adapter", ["pubsub", "sharded", "streams"])
def test_rooms_span_servers(
    adapter: str,
    node_modules: Path,
    fresh_server: Callable[..., ServerProcess],
    tmp_path: Path,
) -> None:
    server = fresh_server("--appendonly", "yes", "--appendfsync", "always")
    place = Workplace(
        ["node", FOLDER / "node/with_socket_io.js"],
        server.port,
        tmp_path / "told",
        NODE_PATH=str(node_modules),
        HEADRACE_ADAPTER=adapter,
    )
    with place.worker(0):
        with place.worker(1) as other:
            place.produce(1, 2)
            place.wait_for("heard-1", 1)
            other.kill()
            other.wait()
        server.restart(crash=True)
        place.produce(2, 1)
        place.wait_for("heard-0", 2)
        with place.worker(1):
            place.produce(3, 2)
            place.wait_for("room-1", 2)
            place.wait_for("heard-0", 3)
    assert place.numbers("heard-0") == [1, 2, 3]
    assert place.numbers("heard-1") == [1, 3]
    assert place.numbers("room-0") == [2]
    assert place.numbers("room-1") == [1, 3]
