"""Connections between regions: bytes that come late, come in pieces, or do not come at all.

A connection is in order, as TCP is. What is lost is its end: where a link is cut, some of what was
on its way arrives, at any byte, and the rest never does. Either side hears of that at once, or not
for a long time.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from functools import partial
from typing import Final

from headrace.regions.exchange.peer_connection import PeerConnection
from headrace.server.links.link import Link
from simulator.process import Client, Process
from simulator.resp import Incomplete, read_record
from simulator.virtual import Time


class Events:
    """What happens later, in the order of its time."""

    def __init__(self, time: Time) -> None:
        self.time: Final = time
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0

    def after(self, delay_ms: int, what: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._heap, (self.time.now_ms + delay_ms, self._count, what))

    def run_until(self, until_ms: int) -> None:
        """Let time go by until then."""
        heap = self._heap
        time = self.time
        while heap and heap[0][0] <= until_ms:
            due_ms, _, what = heapq.heappop(heap)
            if due_ms > time.now_ms:
                time.now_ms = due_ms
            what()
        if until_ms > time.now_ms:
            time.now_ms = until_ms


class Caller(Client):
    """The asked side of a connection: what it is asked runs there, its answers go back."""

    def __init__(self, process: Process, line: Line) -> None:
        super().__init__(process)
        self.line = line
        self.of_region = True
        self._bytes = b""

    def flush(self) -> None:
        session = self.session
        session.flush_pending = False
        if session.out:
            wire = b"".join(session.out)
            session.out.clear()
            self.line.answered(wire)

    def send(self, wire: bytes) -> None:
        if wire:
            self.line.answered(wire)

    def resume_soon(self) -> None:
        self.line.world_soon(self.go_on)

    def close(self) -> None:
        self.line.broken()

    def abort(self) -> None:
        self.line.broken()

    def feed(self, data: bytes) -> None:
        """Bytes of requests have come."""
        self._bytes += data
        self.go_on()

    def go_on(self) -> None:
        """Run what can be run."""
        if self.session.closed or not self._process.running:
            return
        requests = []
        at = 0
        try:
            while not self._process.is_held(self):
                words, at = read_record(self._bytes, at)
                requests.append(words)
                self._bytes = self._bytes[at:]
                at = 0
                self._process.ask(self, [words])
        except Incomplete:
            pass


class Line(Link):
    """One connection: from a region that asks to one that is asked."""

    def __init__(
        self, network: Network, asking: int, asked: int, connection: PeerConnection
    ) -> None:
        self.network = network
        self.asking = asking
        self.asked = asked
        self.connection = connection
        self.open = True
        self.silent = False  # nothing arrives any more, and nobody knows
        self.caller: Caller | None = None
        self._chance = random.Random(network.chance.getrandbits(64))
        self._last = [0, 0]  # when the last bytes arrive, in each direction

    def world_soon(self, what: Callable[[], None]) -> None:
        self.network.events.after(0, what)

    def begin(self) -> None:
        """The connection is made, if the other side is there."""
        asked = self.network.processes[self.asked]
        asking = self.network.processes[self.asking]
        if not self.open or not asking.running:
            return
        if not asked.running or not self.network.is_up(self.asking, self.asked):
            self.open = False
            with asking.entered():
                self.connection.lost("no connection")
            return
        self.caller = Caller(asked, self)
        asked.adopt(self.caller)
        with asking.entered():
            self.connection.connected(self, asking.clock.monotonic_ms())

    # Link

    def send(self, wire: bytes) -> None:
        self._carry(wire, 0, self._asked_gets)

    def close(self) -> None:
        """The asking side closes it."""
        if self.open:
            self.open = False
            self.network.events.after(self._delay(0), self._hang_up)

    def answered(self, wire: bytes) -> None:
        kind = self._chance.random()
        if kind >= self.network.lossy:
            self._carry(wire, 1, self._asking_gets)
        elif kind * 2 < self.network.lossy:
            self._carry(wire + wire, 1, self._asking_gets)

    def broken(self) -> None:
        """The connection ends; the asking side hears of that."""
        if self.open:
            self.open = False
            self.network.events.after(self._delay(1), self._lost)
            self.network.events.after(0, self._hang_up)

    def cut(self, silently: bool) -> None:
        """The link between both is cut."""
        if silently:
            self.silent = True
        else:
            self.broken()

    # What arrives

    def _carry(self, wire: bytes, direction: int, arrive: Callable[[bytes], None]) -> None:
        """Send bytes, perhaps in several pieces, which arrive in order."""
        torn = self.network.torn
        if torn and len(wire) > 1 and self._chance.random() < torn:
            at = self._chance.randrange(1, len(wire))
            self._carry_piece(wire[:at], direction, arrive)
            wire = wire[at:]
        self._carry_piece(wire, direction, arrive)

    def _carry_piece(self, piece: bytes, direction: int, arrive: Callable[[bytes], None]) -> None:
        now_ms = self.network.time.now_ms
        due_ms = self._last[direction] = max(now_ms + self._delay(direction), self._last[direction])
        self.network.events.after(due_ms - now_ms, partial(self._piece, piece, arrive))

    def _delay(self, direction: int) -> int:
        low, high = self.network.delays_ms[self.asking, self.asked][direction]
        return low if low == high else low + int(self._chance.random() * (high - low + 1))

    def _piece(self, piece: bytes, arrive: Callable[[bytes], None]) -> None:
        if self.silent or not self.network.is_up(self.asking, self.asked):
            self.silent = True
            return
        arrive(piece)

    def _asked_gets(self, data: bytes) -> None:
        if self.caller is not None and self.open and self.network.processes[self.asked].running:
            self.caller.feed(data)

    def _asking_gets(self, data: bytes) -> None:
        process = self.network.processes[self.asking]
        if self.open and process.running:
            with process.entered():
                self.connection.received(data, process.clock.monotonic_ms())

    def _hang_up(self) -> None:
        process = self.network.processes[self.asked]
        if self.caller is not None and process.running and not self.caller.session.closed:
            with process.entered():
                process.server.session_closed(self.caller.session)

    def _lost(self) -> None:
        process = self.network.processes[self.asking]
        if process.running and not self.connection.over:
            with process.entered():
                self.connection.lost("the connection was lost")


class Network:
    """All links.

    Attributes:
        delays_ms: from the shortest to the longest, of each direction of each pair.
        torn: how often bytes arrive in two pieces.
        lossy: how often an answer is lost, or comes twice, though a connection is to see to that.
        down: the links, as (who asks, who is asked), that carry nothing.
    """

    def __init__(
        self, events: Events, processes: dict[int, Process], chance: random.Random
    ) -> None:
        self.events: Final = events
        self.time: Final = events.time
        self.processes: Final = processes
        self.chance: Final = chance
        self.torn = chance.choice((0.0, 0.05, 0.5))
        self.lossy = chance.choice((0.0, 0.0, 0.02, 0.15))
        self.delays_ms: dict[tuple[int, int], tuple[tuple[int, int], tuple[int, int]]] = {}
        self.down: set[tuple[int, int]] = set()
        self._lines: list[Line] = []
        for asking in processes:
            for asked in processes:
                if asking != asked:
                    self.delays_ms[asking, asked] = (self._some_delay(), self._some_delay())

    def _some_delay(self) -> tuple[int, int]:
        low = self.chance.choice((0, 0, 1, 20, 80))
        return low, low + self.chance.choice((0, 1, 10, 300))

    def is_up(self, asking: int, asked: int) -> bool:
        return (asking, asked) not in self.down

    @property
    def is_cut(self) -> bool:
        """Return whether some link carries nothing."""
        return bool(self.down)

    def connect(self, asking: int, asked: int, connection: PeerConnection) -> None:
        """Make a connection, which takes its time."""
        line = Line(self, asking, asked, connection)
        self._lines = [each for each in self._lines if each.open]
        self._lines.append(line)
        self.events.after(line._delay(0), line.begin)

    def partition(self, down: set[tuple[int, int]]) -> None:
        """These links carry nothing from now on, the others do."""
        for line in self._lines:
            pair = (line.asking, line.asked)
            if pair in down and pair not in self.down:
                line.cut(self.chance.random() < 0.5)
        self.down = down

    def ended(self, number: int) -> None:
        """A process has ended: its connections break."""
        for line in self._lines:
            if line.asked == number:
                line.caller = None
                line.broken()
            elif line.asking == number and line.open:
                line.open = False
                self.events.after(0, line._hang_up)
