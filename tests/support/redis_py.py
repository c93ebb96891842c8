"""What the tests of redis-py share."""

from __future__ import annotations

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
