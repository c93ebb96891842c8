"""What the tests of redis-py share."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

# The library types a reply as that of the blocking or of the asynchronous client, which no code can
# use as it is.
Client = Any
Entries = list[tuple[str, dict[str, str]]]


def by_stream(reply: Any) -> dict[str, Entries]:
    """XREAD's reply in one shape: redis-py gives a list of pairs in RESP2, a dict in RESP3."""
    if isinstance(reply, dict):
        return {name: batches[0] for name, batches in reply.items()}
    return dict(reply)


def wait_until(condition: Callable[[], object], timeout_s: float = 5.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)
