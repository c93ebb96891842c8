"""The wing behind its face: it is imported with the first ``metrics-port``."""

from __future__ import annotations

from typing import Final

from headrace.metrics.endpoint import Endpoint
from headrace.server.dispatch.dispatcher import Dispatcher

_begun: Final[list[Endpoint]] = []  # one at the most


def begin(dispatcher: Dispatcher) -> str | None:
    """Listen as the configuration of a server says; return why that cannot be, or None."""
    if not _begun:
        endpoint = Endpoint(dispatcher)
        endpoint.begin(endpoint.close_at_the_end())
        _begun.append(endpoint)
    return _begun[0].open()
