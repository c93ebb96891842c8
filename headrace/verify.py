"""``headrace verify``: a proxy that sends what a client sends to two servers, and compares.

The client gets our replies, once the other server has answered, too. IDs that a server makes are
translated, so that what a client does with one of ours happens to the other server's. Where the
order of a reply is free it does not matter, and what tells the time may differ by two seconds.
What a server chooses by chance, or says of itself, is not compared.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import sys
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import hiredis

from headrace.protocol.requests import ProtocolError, RequestParser
from headrace.testing import HeadraceServer

LATE_S: Final = 5.0  # so much later the other server may answer
TOLERANCE: Final = 2000  # milliseconds, or seconds
SHOWN: Final = 300  # characters of a reply
UNORDERED: Final = frozenset(b"smembers hkeys hvals keys sinter sunion sdiff pubsub".split())
PAIRED: Final = frozenset(b"hgetall config".split())
TIMED: Final = frozenset(
    b"ttl pttl expiretime pexpiretime httl hpttl hexpiretime hpexpiretime xpending xinfo object "
    b"lastsave".split()
)
NOT_COMPARED: Final = frozenset(
    b"info time randomkey srandmember hrandfield zrandmember spop client hello command scan sscan "
    b"hscan zscan memory debug slowlog latency monitor acl role module dump shutdown".split()
)
MAKES_IDS: Final = frozenset(b"xadd xautoclaim xreadgroup xread xrange xrevrange".split())
SUBSCRIBING: Final = frozenset(
    b"subscribe psubscribe ssubscribe unsubscribe punsubscribe sunsubscribe".split()
)


class Address:
    """Reads where the other server is from a URL such as ``redis://user:password@host:6379``."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme != "redis" or not parts.hostname or parts.path not in ("", "/", "/0"):
            raise ValueError(f"{url} is not redis://host:port")
        self.host: Final = parts.hostname
        self.port: Final = parts.port or 6379
        user = [unquote(parts.username)] if parts.username else []
        self.login: Final = [*user, unquote(parts.password)] if parts.password else []


class Verdict:
    """Holds what was compared, and the first difference."""

    def __init__(self) -> None:
        self.compared = 0
        self.passed_over = 0
        self.difference = ""

    def differ(self, words: list[bytes], ours: object, theirs: object) -> None:
        """Note a difference, if it is the first."""
        if not self.difference:
            shown = " ".join(_word(word) for word in words)
            self.difference = f"{shown}\n  ours:   {_shown(ours)}\n  theirs: {_shown(theirs)}"
            print(f"The servers differ:\n{self.difference}", file=sys.stderr)


def _packed(words: Sequence[str | bytes]) -> bytes:
    request: Any = tuple(words)
    packed: bytes = hiredis.pack_command(request)
    return packed


def _word(word: bytes) -> str:
    text = word.decode("utf-8", "backslashreplace")
    return shlex.quote(text if len(text) <= SHOWN else f"{text[:SHOWN]}…")


def _shown(reply: object) -> str:
    text = str(reply) if isinstance(reply, hiredis.ReplyError) else repr(reply)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


class _Side:
    """A connection to one of the servers, and its replies."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader: Final = reader
        self.writer: Final = writer
        self._replies: Final = hiredis.Reader()
        self._raw: Final = RawReplies()

    async def next(self) -> tuple[bytes, Any]:
        """Return the next reply, as it came and as an object. Raises: EOFError."""
        while (raw := self._raw.take()) is None:
            data = await self._reader.read(65536)
            if not data:
                raise EOFError
            self._raw.feed(data)
        self._replies.feed(raw)
        return raw, self._replies.gets()


class RawReplies:
    """Cuts bytes into whole replies."""

    def __init__(self) -> None:
        self._buffer = b""

    def feed(self, data: bytes) -> None:
        """Add what has arrived."""
        self._buffer += data

    def take(self) -> bytes | None:
        """Take out the first reply; None while it is not whole."""
        end = self._end(0)
        if end < 0:
            return None
        raw, self._buffer = self._buffer[:end], self._buffer[end:]
        return raw

    def _end(self, at: int) -> int:
        """Return where the reply at a place ends; -1 where it is not whole."""
        line = self._buffer.find(b"\r\n", at)
        if line < 0:
            return -1
        kind = self._buffer[at : at + 1]
        end = line + 2
        if kind in b"$=!":
            size = int(self._buffer[at + 1 : line])
            end += size + 2 if size >= 0 else 0
            return end if end <= len(self._buffer) else -1
        if kind in b"*~>%|":
            pairs = 2 if kind in b"%|" else 1
            left = int(self._buffer[at + 1 : line]) * pairs + (kind == b"|")
            while left > 0 and end >= 0:
                end = self._end(end)
                left -= 1
        return end


class Session:
    """One client, with its connections to both servers."""

    def __init__(self, verdict: Verdict, ids: dict[bytes, bytes]) -> None:
        self._verdict: Final = verdict
        self._ids: Final = ids  # theirs, by ours
        self._asked: Final[deque[list[bytes]]] = deque()
        self._queued: list[list[bytes]] | None = None  # since MULTI

    async def serve(
        self, ours: _Side, theirs: _Side, reader: asyncio.StreamReader, out: asyncio.StreamWriter
    ) -> None:
        """Pass on until one of all has left."""
        async with asyncio.TaskGroup() as group:
            sending = group.create_task(self._send(reader, ours, theirs))
            answering = group.create_task(self._answer(ours, theirs, out))
            await asyncio.wait([sending, answering], return_when=asyncio.FIRST_COMPLETED)
            sending.cancel()
            answering.cancel()

    async def _send(self, reader: asyncio.StreamReader, ours: _Side, theirs: _Side) -> None:
        parser = RequestParser()
        while data := await reader.read(65536):
            parser.feed(data)
            try:
                requests = parser.take()
            except ProtocolError:
                ours.writer.write(data)
                theirs.writer.write(data)
                return
            for words in requests:
                self._asked.append(words)
                ours.writer.write(_packed(words))
                translated = [self._translated(word) for word in words]
                theirs.writer.write(_packed(translated))
        if self._asked:
            await asyncio.sleep(LATE_S)

    def _translated(self, word: bytes) -> bytes:
        found = self._ids.get(word.removeprefix(b"("))
        return word if found is None else word[: word.startswith(b"(")] + found

    async def _answer(self, ours: _Side, theirs: _Side, out: asyncio.StreamWriter) -> None:
        with contextlib.suppress(EOFError, ConnectionError):
            while True:
                raw, reply = await ours.next()
                words = [b"a message"]
                pushed = isinstance(reply, hiredis.PushNotification)
                first = reply[0] if isinstance(reply, list) and reply else None
                confirms = isinstance(first, bytes) and first in SUBSCRIBING
                if self._asked and (confirms or not pushed):
                    words = self._asked.popleft()
                    if words[0].lower() in SUBSCRIBING and len(words) > 2:
                        self._asked.appendleft([words[0], *words[2:]])
                try:
                    _, other = await asyncio.wait_for(theirs.next(), LATE_S)
                except TimeoutError:
                    self._verdict.differ(words, reply, "no reply")
                    return
                self._look(words, reply, other)
                out.write(raw)
                await out.drain()

    def _look(self, words: list[bytes], ours: Any, theirs: Any) -> None:
        name = words[0].lower()
        if name == b"multi":
            self._queued = []
        elif name in (b"exec", b"discard"):
            queued, self._queued = self._queued or [], None
            are_lists = isinstance(ours, list) and isinstance(theirs, list)
            if are_lists and len(ours) == len(theirs) == len(queued):
                for each, one, other in zip(queued, ours, theirs, strict=True):
                    self._compare(each, one, other)
                return
        elif self._queued is not None:
            self._queued.append(words)
        self._compare(words, ours, theirs)

    def _compare(self, words: list[bytes], ours: object, theirs: object) -> None:
        name = words[0].lower()
        if name in NOT_COMPARED:
            self._verdict.passed_over += 1
            return
        self._verdict.compared += 1
        if name in MAKES_IDS:
            self._learn(ours, theirs)
        if not self._are_alike(name, ours, theirs):
            self._verdict.differ(words, ours, theirs)

    def _learn(self, ours: object, theirs: object) -> None:
        """Remember which ID of theirs stands where one of ours does."""
        if isinstance(ours, bytes) and isinstance(theirs, bytes):
            if _is_id(ours) and _is_id(theirs):
                self._ids.setdefault(ours, theirs)
        elif isinstance(ours, dict) and isinstance(theirs, dict):
            self._learn([*ours.values()], [*theirs.values()])
        elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
            for one, other in zip(ours, theirs, strict=True):
                self._learn(one, other)

    def _are_alike(self, name: bytes, ours: object, theirs: object) -> bool:
        if isinstance(ours, list) and isinstance(theirs, list):
            if len(ours) != len(theirs):
                return False
            if name in PAIRED and len(ours) % 2 == 0:
                return _pairs(ours) == _pairs(theirs)
            if name in UNORDERED:
                return sorted(map(repr, ours)) == sorted(map(repr, theirs))
            pairs = zip(ours, theirs, strict=True)
            return all(self._are_alike(name, one, other) for one, other in pairs)
        if isinstance(ours, dict) and isinstance(theirs, dict):
            if name in UNORDERED | PAIRED:
                return ours == theirs
            return self._are_alike(name, [*ours.items()], [*theirs.items()])
        if isinstance(ours, tuple) and isinstance(theirs, tuple):
            return self._are_alike(name, [*ours], [*theirs])
        if isinstance(ours, hiredis.ReplyError) and isinstance(theirs, hiredis.ReplyError):
            return str(ours) == str(theirs)
        if isinstance(ours, bytes) and self._ids.get(ours, ours) == theirs:
            return True
        if isinstance(ours, int) and isinstance(theirs, int) and name in TIMED:
            return abs(ours - theirs) <= TOLERANCE and (ours < 0) == (theirs < 0)
        return type(ours) is type(theirs) and ours == theirs


def _pairs(flat: list[Any]) -> list[str]:
    return sorted(repr(pair) for pair in zip(flat[::2], flat[1::2], strict=True))


def _is_id(text: bytes) -> bool:
    ms, dash, seq = text.partition(b"-")
    return bool(dash) and ms.isdigit() and seq.isdigit()


async def _connected(address: Address) -> _Side:
    side = _Side(*await asyncio.open_connection(address.host, address.port))
    if address.login:
        side.writer.write(_packed(["AUTH", *address.login]))
        await side.next()
    return side


class Proxy:
    """Listens for clients, and compares what both servers answer them."""

    def __init__(self, ours: Address, theirs: Address, verdict: Verdict) -> None:
        self._ours: Final = ours
        self._theirs: Final = theirs
        self._verdict: Final = verdict
        self._ids: Final[dict[bytes, bytes]] = {}

    async def refusal(self) -> str:
        """Return why the other server cannot be compared; empty if it can."""
        try:
            side = await _connected(self._theirs)
            side.writer.write(_packed(["INFO", "keyspace"]))
            _, found = await side.next()
            side.writer.close()
        except (OSError, EOFError) as error:
            reason = str(error) or "it has closed the connection"
            return f"The other server does not answer: {reason}"
        if not isinstance(found, bytes):
            return f"The other server refuses to be compared: {found}"
        return "The other server has keys: it has to be empty" if b"keys=" in found else ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one client."""
        sides: list[_Side] = []
        try:
            for address in (self._ours, self._theirs):
                sides.append(await _connected(address))
            session = Session(self._verdict, self._ids)
            await session.serve(sides[0], sides[1], reader, writer)
        except (OSError, EOFError) as error:
            print(f"A connection has ended: {error}", file=sys.stderr)
        except asyncio.CancelledError:
            pass  # the proxy ends
        finally:
            for end in [writer, *[side.writer for side in sides]]:
                end.close()


def verify(url: str, port: int, commands: str, program: list[str]) -> int:
    """Compare a fresh Headrace with the server at ``url``; return the exit code."""
    theirs = Address(url)
    verdict = Verdict()
    lines = commands and (sys.stdin.read() if commands == "-" else Path(commands).read_text())
    with HeadraceServer() as server:
        proxy = Proxy(Address(server.url), theirs, verdict)
        code = asyncio.run(_verify(proxy, port, lines.splitlines(), program))
    if verdict.compared or verdict.passed_over:
        outcome = "the servers differ" if verdict.difference else "no difference"
        print(f"{verdict.compared} replies compared, {verdict.passed_over} were not: {outcome}")
    return 1 if verdict.difference else code


async def _verify(proxy: Proxy, port: int, commands: list[str], program: list[str]) -> int:
    reason = await proxy.refusal()
    if reason:
        print(reason, file=sys.stderr)
        return 2
    listener = await asyncio.start_server(proxy.serve, "127.0.0.1", port)
    port = listener.sockets[0].getsockname()[1]
    async with listener:
        if commands:
            return await _play(port, commands)
        if program:
            url = f"redis://127.0.0.1:{port}"
            variables = {**os.environ, "REDIS_URL": url, "HEADRACE_URL": url}
            process = await asyncio.create_subprocess_exec(*program, env=variables)
            return await process.wait()
        print(f"Clients of redis://127.0.0.1:{port} are compared; Ctrl-C ends that.", flush=True)
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return 0


async def _play(port: int, lines: list[str]) -> int:
    """Send commands, one in each line, as redis-cli takes them."""
    side = _Side(*await asyncio.open_connection("127.0.0.1", port))
    for line in lines:
        words = shlex.split(line, comments=True)
        if words:
            side.writer.write(_packed(words))
            with contextlib.suppress(EOFError):
                await side.next()
    side.writer.close()
    return 0
