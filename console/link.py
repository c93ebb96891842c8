"""The connection to the server: replies as they come, what it can do, and what it refuses.

Commands go out in pipelines, as RESP2, which every server speaks. An error reply is a value like
any other (``redis.ResponseError``), so that a user with half the rights sees the other half. What
a user may not run at all is remembered for a minute and not asked for again.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from redis import exceptions
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

Request = Sequence[bytes | str | int]
Error = exceptions.ResponseError

TIMEOUT_S: Final = 5.0
ABOUT_S: Final = 10.0
DENIED_S: Final = 60.0
CONNECTIONS: Final = 12
# What not every server has, and who has it.
OPTIONAL: Final = {
    "XNACK": "Redis 8.8 and Headrace have it",
    "XPOLICY": "it is Headrace's",
    "XREDRIVE": "it is Headrace's",
    "XCOUNT": "it is Headrace's",
}


class Unreachable(Exception):
    """The server does not answer. The text says why."""


@dataclass(frozen=True, slots=True)
class About:
    """The server as it describes itself.

    Attributes:
        name: ``Headrace``, ``Redis`` or ``Valkey``.
        missing: the commands of ``OPTIONAL`` that it does not have.
        info: the fields of INFO; empty where the user may not ask.
    """

    name: str
    version: str
    missing: frozenset[str]
    info: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.name} {self.version}".strip()


def pairs(reply: Any) -> dict[bytes, Any]:
    """Return a flat list of names and values as a mapping; an empty one for anything else."""
    return dict(zip(reply[::2], reply[1::2], strict=False)) if isinstance(reply, list) else {}


def info_fields(text: Any) -> dict[str, str]:
    """Return the fields of a reply to INFO or CLUSTER INFO; none for anything else."""
    if not isinstance(text, bytes):
        return {}
    lines = [line.partition(":") for line in text.decode("utf-8", "replace").splitlines()]
    return {name: value for name, colon, value in lines if colon}


class Link:
    """One server, through a pool of connections.

    Args:
        url: ``redis://``, ``rediss://`` or ``unix://``, as redis-py takes it.
        encryption: redis-py's ``ssl_`` arguments, for ``rediss://``.
    """

    def __init__(self, url: str, **encryption: Any) -> None:
        self._pool: Final = BlockingConnectionPool.from_url(
            url,
            protocol=2,
            max_connections=CONNECTIONS,
            timeout=TIMEOUT_S,
            socket_timeout=TIMEOUT_S,
            socket_connect_timeout=TIMEOUT_S,
            retry=Retry(NoBackoff(), 0),
            **encryption,
        )
        self._redis: Final = Redis(connection_pool=self._pool)
        self._redis.response_callbacks.clear()
        self._denied: Final[dict[str, tuple[float, Error]]] = {}
        self._about: About | None = None
        self._about_s = 0.0
        self._asking: Final = asyncio.Lock()
        arguments = self._pool.connection_kwargs
        place = arguments.get("path") or f"{arguments.get('host')}:{arguments.get('port', 6379)}"
        database = arguments.get("db") or 0
        self.shown: Final = f"{place}/{database}" if database else str(place)  # no password

    async def close(self) -> None:
        """Close all connections."""
        await self._redis.aclose()
        await self._pool.aclose()

    async def ask(self, *requests: Request) -> list[Any]:
        """Return the replies to commands in one pipeline, error replies among them.

        A connection that had ended is replaced once, for reading alone: whether a write has
        happened is not known. Raises Unreachable.
        """
        return await self._send(requests, tries=2)

    async def change(self, *requests: Request) -> list[Any]:
        """Return the replies to commands that write, error replies among them.

        Raises Unreachable; what was sent before may have happened, then.
        """
        return await self._send(requests, tries=1)

    async def one(self, *words: bytes | str | int) -> Any:
        """Return the reply to one command that reads; an error reply is returned, too."""
        return (await self.ask(words))[0]

    async def _send(self, requests: Sequence[Request], tries: int) -> list[Any]:
        refused = [self._refusal(each) if self._denied else None for each in requests]
        sent = [each for each, error in zip(requests, refused, strict=True) if error is None]
        replies = iter(await self._replies(sent, tries) if sent else [])
        found: list[Any] = []
        for error in refused:
            reply = error or next(replies)
            if error is None and isinstance(reply, exceptions.NoPermissionError):
                self._note(reply)
            found.append(reply)
        return found

    async def _replies(self, sent: list[Request], tries: int) -> list[Any]:
        while True:
            tries -= 1
            try:
                async with self._redis.pipeline(transaction=False) as pipeline:
                    for request in sent:
                        pipeline.execute_command(*request)
                    return list(await pipeline.execute(raise_on_error=False))
            except exceptions.TimeoutError:
                raise Unreachable(f"it did not answer within {TIMEOUT_S:.0f} s") from None
            except (
                exceptions.AuthenticationError,
                exceptions.AuthenticationWrongNumberOfArgsError,
            ):
                raise Unreachable("it does not take the user and password of --url") from None
            except (exceptions.RedisError, OSError) as error:
                self._about = None
                if not tries or not isinstance(error, exceptions.ConnectionError):
                    raise Unreachable(str(error) or type(error).__name__) from None

    def _refusal(self, request: Request) -> Error | None:
        command = str(request[0]).lower()
        for name in (command, f"{command}|{request[1]!s}".lower() if request[1:] else ""):
            since_s, error = self._denied.get(name, (0.0, None))
            if error is not None and time.monotonic() - since_s < DENIED_S:
                return error
        return None

    def _note(self, error: Error) -> None:
        if found := re.search(r"run the '([^']+)'", str(error)):
            self._denied[found[1].lower()] = (time.monotonic(), error)

    async def about(self) -> About:
        """Return what the server says of itself, not older than some seconds.

        Raises Unreachable.
        """
        async with self._asking:
            if self._about is None or time.monotonic() - self._about_s > ABOUT_S:
                self._about = await self._describe()
                self._about_s = time.monotonic()
            return self._about

    async def _describe(self) -> About:
        info, hello, known = await self.ask(("INFO",), ("HELLO",), ("COMMAND", "INFO", *OPTIONAL))
        fields = info_fields(info)
        said = pairs(hello)
        name, version = "Redis", fields.get("redis_version", "")
        for other in ("headrace", "valkey"):
            if f"{other}_version" in fields:
                name, version = other.capitalize(), fields[f"{other}_version"]
        if not fields and isinstance(said.get(b"version"), bytes):
            name = said.get(b"server", b"redis").decode("utf-8", "replace").capitalize()
            version = said[b"version"].decode("utf-8", "replace")
        missing: set[str] = set()
        if isinstance(known, list):
            rows = zip(OPTIONAL, known, strict=False)
            missing = {command for command, row in rows if not row}
            if not fields and not missing:
                name, version = "Headrace", ""
        return About(name, version, frozenset(missing), fields)

    def lack(self, about: About, command: str) -> str:
        """Return why a command cannot be used, as a sentence; empty if it can, as far as known."""
        if command in about.missing:
            return f"{about} has no {command}; {OPTIONAL[command]}."
        error = self._refusal((command,))
        return f"The user of --url may not run {command}." if error is not None else ""
