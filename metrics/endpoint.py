"""The port at which metrics are scraped: HTTP, spoken by h11, on the server's own event loop.

A scrape is gathered in slices between which all other work goes on, by one task at a time. A slice
is bounded by a number of rows (``metrics.streams``) and takes under 2 ms.

Who connects has ``REQUEST_S`` seconds for a request and ``ANSWER_S`` for reading the answer, and
may be silent for ``IDLE_S`` between two requests; then the connection is closed. A request has
``REQUEST_BYTES`` at most in front of its body, which is thrown away. There are ``VISITORS``
connections at most. What is no HTTP is answered by 400, and the connection is closed.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine, Iterator
from typing import Final, cast

import h11

from headrace.metrics.delay import LoopDelay
from headrace.metrics.page import Page
from headrace.metrics.server import report_server
from headrace.metrics.streams import Finder, StreamReporter
from headrace.server.clients.session import NOBODY, Session
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.dispatcher import Dispatcher
from headrace.server.gate import HALF_JOINED, LOADING_DATA
from headrace.server.net.listeners import BAD_PORT, Port, bind_all

log: Final = logging.getLogger("headrace")

VISITORS: Final = 16  # each may hold a page, which has megabytes where there are many streams
REQUEST_BYTES: Final = 16 * 1024
REQUEST_S: Final = 10.0
ANSWER_S: Final = 15.0
IDLE_S: Final = 300.0
PATH: Final = b"/metrics"
_TEXT: Final = "text/plain; charset=utf-8"
_ADVICE: Final = b"Metrics are at /metrics.\n"


class Endpoint:
    """The metrics of one server, and who asks for them.

    Attributes:
        visitors: those that are connected.
    """

    def __init__(self, dispatcher: Dispatcher) -> None:
        server = dispatcher.server
        nobody = Session(0, server.data.dbs[0], server.clock.started_ms, NOBODY)
        self._call: Final = Call(server, dispatcher.durability, nobody)
        self._config: Final = server.config
        self._port: Final = Port(server.config, lambda: Visitor(self))
        self._finder: Final = Finder(server.data.dbs)
        self._delay: Final = LoopDelay()
        self._one_at_a_time: Final = asyncio.Lock()
        self._tasks: Final[set[asyncio.Task[None]]] = set()
        self._scrapes = 0
        self._seconds = 0.0  # that the last scrape took
        self._longest_s = 0.0  # its longest slice
        self.visitors: Final[set[Visitor]] = set()

    def open(self) -> str | None:
        """Listen as the configuration says now, or no more; return why that cannot be, or None."""
        self._port.close()
        config = self._config
        config.on_change["metrics-port"] = config.on_change["metrics-bind"] = self.open
        try:
            self._port.take(bind_all(config, config.metrics_port, config.metrics_bind))
        except OSError as error:
            log.warning("%s", error)
            return BAD_PORT
        if config.metrics_port:
            self._delay.start()
        else:
            self.close()
        self.begin(self._port.serve())
        return None

    async def close_at_the_end(self) -> None:
        """Close all when the loop is about to end, which cancels what is still under way."""
        try:
            await asyncio.Event().wait()
        finally:
            self.close()

    def close(self) -> None:
        """Listen no more, and part with all visitors."""
        self._port.close()
        self._delay.stop()
        for visitor in list(self.visitors):
            visitor.close()

    def begin(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Run something beside all else, and keep it alive until it ends."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def scrape(self, accept: str) -> Page:
        """Return a page in the format that fits the header ``accept``."""
        async with self._one_at_a_time:
            started_s = time.perf_counter()
            page = Page(accept)
            longest_s = 0.0
            begun_s = started_s
            for _ in self._slices(page):
                longest_s = max(longest_s, time.perf_counter() - begun_s)
                await asyncio.sleep(0)
                self._call.now_ms = self._call.server.clock.refresh()
                begun_s = time.perf_counter()
            self._scrapes += 1
            self._seconds = time.perf_counter() - started_s
            self._longest_s = longest_s
            return page

    def _slices(self, page: Page) -> Iterator[None]:
        call = self._call
        yield from report_server(call, page)
        finder = self._finder
        if not call.server.gate.reasons & (LOADING_DATA | HALF_JOINED):
            patterns = self._config.metrics_streams.split()
            yield from finder.search(patterns, self._config.metrics_streams_max)
            yield from StreamReporter(call, finder, page, self._config.metrics_consumers).report()
        self._delay.report(page)
        page.add("headrace_metrics_streams", "", len(finder.found))
        page.add("headrace_metrics_streams_left_out", "", int(finder.left_out))
        page.add("headrace_metrics_scrapes_total", "", self._scrapes)
        page.add("headrace_metrics_scrape_seconds", "", self._seconds)
        page.add("headrace_metrics_longest_slice_seconds", "", self._longest_s)


class Visitor(asyncio.Protocol):
    """One connection: its requests are answered one after another."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint: Final = endpoint
        self._http: Final = h11.Connection(h11.SERVER, max_incomplete_event_size=REQUEST_BYTES)
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._request: h11.Request | None = None
        self._answering: asyncio.Task[None] | None = None
        self._may_write: Final = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for a request, unless there are too many connections."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is of a class of its own
        self._may_write.set()
        if len(self._endpoint.visitors) >= VISITORS:
            self._refuse(503, b"Too many connections.\n")
            return
        self._endpoint.visitors.add(self)
        self._close_after(REQUEST_S)

    def connection_lost(self, reason: Exception | None) -> None:
        """Forget all about it."""
        self._endpoint.visitors.discard(self)
        self._transport = None
        if self._timer is not None:
            self._timer.cancel()
        if self._answering is not None:
            self._answering.cancel()

    def pause_writing(self) -> None:
        """Wait with more, because the peer does not read."""
        self._may_write.clear()

    def resume_writing(self) -> None:
        """Go on."""
        self._may_write.set()

    def data_received(self, data: bytes) -> None:
        """Answer what is asked for."""
        is_idle = self._request is None and self._answering is None
        if is_idle and self._http.trailing_data == (b"", False):
            self._close_after(REQUEST_S)  # the first bytes of a request
        self._http.receive_data(data)
        self._go_on()

    def eof_received(self) -> bool:
        """Close the connection when what was asked for is answered."""
        self._http.receive_data(b"")
        self._go_on()
        return self._answering is not None

    def close(self) -> None:
        """End the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    def _close_after(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, self.close)

    def _go_on(self) -> None:
        """Take what h11 has understood, up to a whole request."""
        try:
            while self._answering is None and self._transport is not None:
                event = self._http.next_event()
                if isinstance(event, h11.Request):
                    self._request = event
                elif isinstance(event, h11.EndOfMessage) and self._request is not None:
                    self._begin(self._request)
                elif not isinstance(event, h11.Data):
                    if isinstance(event, h11.ConnectionClosed):
                        self._transport.close()
                    break  # else more bytes are needed
        except h11.RemoteProtocolError as error:
            self._refuse(error.error_status_hint, b"This is no request that is understood.\n")

    def _begin(self, request: h11.Request) -> None:
        self._request = None
        assert self._transport is not None
        self._transport.pause_reading()  # what comes meanwhile waits in the socket
        self._close_after(ANSWER_S)
        self._answering = self._endpoint.begin(self._answer(request))

    async def _answer(self, request: h11.Request) -> None:
        try:
            if request.target.partition(b"?")[0] != PATH:
                self._say(404, _ADVICE)
            elif request.method not in (b"GET", b"HEAD"):
                self._say(405, b"GET reads them.\n", allow="GET, HEAD")
            else:
                accept = b",".join(value for name, value in request.headers if name == b"accept")
                page = await self._endpoint.scrape(accept.decode("latin-1"))
                await self._send(page, request.method == b"HEAD")
        except h11.LocalProtocolError:  # the connection is lost, or the peer has broken it
            self.close()
        except Exception:
            log.exception("Metrics could not be gathered")
            self.close()
        self._answering = None
        self._end_answer()

    async def _send(self, page: Page, head_only: bool) -> None:
        self._write(h11.Response(status_code=200, headers=[("Content-Type", page.content_type)]))
        for piece in page.pieces() if not head_only else ():
            self._write(h11.Data(data=piece))
            await self._may_write.wait()
            await asyncio.sleep(0)
        self._write(h11.EndOfMessage())

    def _end_answer(self) -> None:
        """Wait for the next request, where the connection may go on."""
        if self._transport is None:
            return
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            self._transport.close()
            return
        self._http.start_next_cycle()
        self._close_after(IDLE_S)
        self._transport.resume_reading()
        self._go_on()

    def _refuse(self, status: int, body: bytes) -> None:
        """Answer, and close the connection."""
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self._say(status, body, connection="close")
        if self._transport is not None:
            self._transport.close()

    def _say(self, status: int, body: bytes, **headers: str) -> None:
        all_headers = [
            ("Content-Type", _TEXT),
            ("Content-Length", str(len(body))),
            *headers.items(),
        ]
        self._write(h11.Response(status_code=status, headers=all_headers))
        self._write(h11.Data(data=body))
        self._write(h11.EndOfMessage())

    def _write(self, event: h11.Event) -> None:
        data = self._http.send(event)
        if self._transport is not None and data:
            self._transport.write(data)
