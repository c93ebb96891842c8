"""Handshakes under way: how many of them go on at once, and when the patience ends.

A handshake takes one or two milliseconds of the one thread, which signs with the private key then.
A thousand clients that come together would keep all others waiting for a second or two. So
handshakes stand in line, and only ``max-new-tls-connections-per-cycle`` of them are taken a step
further in a turn of the event loop. The time that one stands in line does not count against it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from headrace.server.config.config import Config

PATIENCE_S: Final = 10.0  # for which the peer may keep a handshake waiting, in all


class Handshaking:
    """A connection whose handshake is under way.

    Attributes:
        in_line_since: when it began to stand in line, by the event loop's clock; 0: it does not.
    """

    def __init__(self) -> None:
        self.in_line_since = 0.0

    def step(self) -> None:
        """Take the handshake further by what has arrived."""
        raise NotImplementedError

    def give_up(self, reason: str) -> None:
        """Close the connection, because the handshake has failed."""
        raise NotImplementedError


class Handshakes:
    """All handshakes of one kind of connection, the oldest first."""

    def __init__(self, config: Config) -> None:
        self._config: Final = config
        self._under_way: Final[dict[Handshaking, float]] = {}  # with the times of their ends
        self._waiting: Final[deque[Handshaking]] = deque()
        self._scheduled = False
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._under_way)

    def begin(self, connection: Handshaking) -> None:
        """Have one more."""
        loop = asyncio.get_running_loop()
        self._under_way[connection] = loop.time() + PATIENCE_S
        if self._timer is None:
            self._timer = loop.call_later(PATIENCE_S, self._look)

    def end(self, connection: Handshaking) -> None:
        """Forget one, which is complete, or has failed."""
        self._under_way.pop(connection, None)

    def all(self) -> list[Handshaking]:
        """Each of them."""
        return list(self._under_way)

    def oldest(self) -> Handshaking | None:
        """The one that began first."""
        for connection in self._under_way:
            return connection
        return None

    def wait_for_turn(self, connection: Handshaking) -> None:
        """Take this one further when it is its turn."""
        loop = asyncio.get_running_loop()
        connection.in_line_since = loop.time()
        self._waiting.append(connection)
        if not self._scheduled:
            self._scheduled = True
            loop.call_soon(self._turn)

    def _turn(self) -> None:
        waiting = self._waiting
        loop = asyncio.get_running_loop()
        for _ in range(self._config.max_new_tls_connections_per_cycle):
            while waiting:
                connection = waiting.popleft()
                if connection in self._under_way:
                    self._under_way[connection] += loop.time() - connection.in_line_since
                    connection.in_line_since = 0.0
                    connection.step()
                    break
        self._scheduled = len(waiting) > 0
        if self._scheduled:
            loop.call_soon(self._turn)

    def _look(self) -> None:
        """Give up those that take too long."""
        self._timer = None
        loop = asyncio.get_running_loop()
        now = loop.time()
        for connection, until in list(self._under_way.items()):
            if connection.in_line_since:
                continue
            if until > now:
                self._timer = loop.call_later(until - now, self._look)
                break
            connection.give_up("the handshake took too long")
        if self._timer is None and self._under_way:  # all of them stand in line
            self._timer = loop.call_later(PATIENCE_S, self._look)
