"""Requests on their way: written in windows, two at a time, and written again when need be.

While the server works on one window, the next one is on its way. A window whose replies have not
all come when the connection breaks is sent again from its first missing reply on; what the server
had done of it, it does twice, unless each request says who it is (see ``identity``).
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, cast

import hiredis

from pyspark_headrace.client import PASSING, Client
from pyspark_headrace.connection import Connection
from pyspark_headrace.errors import ServerError, UnreachableError
from pyspark_headrace.resp import MOST_DELAY_MS, Link

log = logging.getLogger("pyspark_headrace")

MOST_WINDOWS: Final = 2
ANY_ID: Final = b"$1\r\n*\r\n"  # the word before the fields
Request = tuple[bytes, bytes]  # the stream, and the words as they go out


class Pipe:
    """Sends requests in order and hands out their replies.

    Args:
        on_reply: called for each reply that is none of error, with its stream.
        repeatable: whether a request that is sent twice counts once.
    """

    def __init__(
        self,
        connection: Connection,
        on_reply: Callable[[bytes, bytes], None],
        repeatable: bool,
    ) -> None:
        self._connection: Final = connection
        self._on_reply: Final = on_reply
        self._repeatable: Final = repeatable
        self._client: Client | None = None
        self._flying: deque[Sequence[Request]] = deque()
        self._again: list[Request] = []  # refused for the moment
        self._trouble: ServerError | None = None
        self._failures = 0

    def push(self, window: Sequence[Request]) -> None:
        """Send a window; waits for an older one where two are on their way.

        Raises:
            ServerError: the server refuses a request, for good.
            UnreachableError: it did not come back in time.
        """
        self._flying.append(window)
        self._send(window)
        while len(self._flying) >= MOST_WINDOWS:
            self._settle()
        if self._again:
            self.drain()

    def drain(self) -> None:
        """Wait for all replies."""
        while self._flying or self._again:
            while self._flying:
                self._settle()
            if self._again and self._trouble is not None:
                self._pause(self._trouble)
                window, self._again = self._again, []
                self._flying.append(window)
                self._send(window)

    def close(self) -> None:
        """End the connection."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _send(self, window: Sequence[Request]) -> None:
        try:
            if self._client is None:
                self._client = Client(self._connection)
            self._client.send(b"".join([words for _, words in window]))
        except (OSError, ServerError) as error:
            self._recover(error)

    def _settle(self) -> None:
        """Read the replies to the oldest window."""
        window = self._flying[0]
        refused: list[Request] = []
        done = 0
        try:
            assert self._client is not None
            for request in window:
                reply = self._client.read()
                done += 1
                if not isinstance(reply, ServerError):
                    self._on_reply(request[0], cast("bytes", reply))
                elif reply.code in PASSING:
                    refused.append(request)
                    self._trouble = reply
                else:
                    stream = request[0].decode("utf-8", "replace")
                    raise ServerError(f"{reply} (stream {stream})")
        except (OSError, hiredis.ProtocolError) as error:
            self._flying[0] = [*refused, *window[done:]]
            if done > len(refused):
                self._failures = 0
            self._recover(error)
            return
        self._flying.popleft()
        self._again += refused
        if len(refused) < len(window):
            self._failures = 0

    def _recover(self, error: Exception) -> None:
        """Connect again, and send again what was not answered."""
        while True:
            self.close()
            if isinstance(error, ServerError) and error.code not in PASSING:
                raise error
            self._pause(error)
            try:
                self._client = Client(self._connection)
                for window in self._flying:
                    self._client.send(b"".join([words for _, words in window]))
            except (OSError, ServerError) as again:
                error = again
                continue
            rows = sum(map(len, self._flying))
            if not self._repeatable:
                log.warning("%d rows are sent again; some may be there twice now", rows)
            return

    def _pause(self, error: Exception) -> None:
        """Wait before the next try, longer each time."""
        connection = self._connection
        self._failures += 1
        trouble = str(error) or type(error).__name__
        if self._failures > connection.retries:
            raise UnreachableError(
                f"{connection.where()} did not take rows in {self._failures} tries: {trouble}. "
                "A restarted query writes this batch again"
            ) from None
        delay_ms = min(connection.retry_ms << (self._failures - 1), MOST_DELAY_MS)
        log.warning("%s: %s; trying again in %d ms", connection.where(), trouble, delay_ms)
        time.sleep(delay_ms / 1000)


class RoutedPipe:
    """Sends requests to the nodes of a cluster, a window at a time, and hands out their replies.

    Rows of a stream that has moved to another node are sent there. When a connection breaks, what
    was sent on it and is of this window is sent again as a whole.

    Args:
        on_reply: see ``Pipe``.
    """

    def __init__(self, link: Link, on_reply: Callable[[bytes, bytes], None]) -> None:
        self._link: Final = link
        self._on_reply: Final = on_reply

    def push(self, window: Sequence[Request]) -> None:
        """Send a window, and wait for its replies.

        Raises:
            ServerError: a node refuses a request, for good.
            UnreachableError: it did not come back in time.
        """
        streams = [stream for stream, _ in window]
        replies = self._link.ask([words for _, words in window], lambda: streams, once=True)
        for stream, reply in zip(streams, replies, strict=True):
            if isinstance(reply, ServerError):
                raise ServerError(f"{reply} (stream {stream.decode('utf-8', 'replace')})")
            self._on_reply(stream, cast("bytes", reply))

    def drain(self) -> None:
        """Nothing is on its way."""

    def close(self) -> None:
        """Whoever owns the link ends it."""
