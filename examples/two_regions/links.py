"""The links between regions: a small proxy for each direction, so that it can be cut."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from types import TracebackType
from typing import Self

CHUNK = 65536


class Link:
    """What one region pulls through from another one.

    Args:
        target: the port of the region that is asked.

    Attributes:
        port: where the region that asks has to connect to.
        is_cut: nothing gets through, and connections are refused.
        carried: bytes that came back from the region that is asked.
    """

    def __init__(self, target: int) -> None:
        self.target = target
        self.is_cut = False
        self.carried = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self._writers: set[asyncio.StreamWriter] = set()

    async def serve(self) -> None:
        """Take connections until it is cancelled."""
        server = await asyncio.start_server(self._passed_on, sock=self.listener)
        async with server:
            await server.serve_forever()

    def break_off(self) -> None:
        """End the connections that there are."""
        for writer in list(self._writers):
            writer.transport.abort()

    async def _passed_on(self, asks: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        self._writers.add(answers)
        try:
            if not self.is_cut:
                await self._both_ways(asks, answers)
        except OSError:
            pass  # the other side is gone
        finally:
            self._writers.discard(answers)
            answers.transport.abort()

    async def _both_ways(self, asks: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        source, there = await asyncio.open_connection("127.0.0.1", self.target)
        self._writers.add(there)
        try:
            ways = [
                asyncio.create_task(self._copy(asks, there)),
                asyncio.create_task(self._copy(source, answers, counted=True)),
            ]
            _, pending = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in pending:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
        finally:
            self._writers.discard(there)
            there.transport.abort()

    async def _copy(
        self, source: asyncio.StreamReader, to: asyncio.StreamWriter, *, counted: bool = False
    ) -> None:
        while data := await source.read(CHUNK):
            if self.is_cut:
                return
            to.write(data)
            await to.drain()
            if counted:
                self.carried += len(data)


class Links:
    """All links, in a thread of their own.

    Args:
        ports: where each region is asked by others, by its number.
    """

    def __init__(self, ports: dict[int, int]) -> None:
        self.all = {
            (asking, asked): Link(ports[asked])
            for asking in ports
            for asked in ports
            if asking != asked
        }
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._tasks.cancel)
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._tasks = asyncio.gather(*[self._serve(link) for link in self.all.values()])
        with contextlib.suppress(asyncio.CancelledError):
            self._loop.run_until_complete(self._tasks)
        self._loop.close()

    async def _serve(self, link: Link) -> None:
        await link.serve()

    def cut(self, *pairs: tuple[int, int]) -> None:
        """Cut links, each named by the region that asks and the one that is asked."""
        for pair in pairs:
            self.all[pair].is_cut = True
            self._loop.call_soon_threadsafe(self.all[pair].break_off)

    def heal(self) -> None:
        """Let everything through again."""
        for link in self.all.values():
            link.is_cut = False

    def around(self, region: int) -> list[tuple[int, int]]:
        """The links from and to a region."""
        return [pair for pair in self.all if region in pair]
