"""Regions in one process, each with a clock, a file and clients of its own.

What goes from one to another goes when a test says so: a ``Link`` takes letters, in order, and
delivers them in order, as a connection does.
"""

from __future__ import annotations

import itertools
from collections import deque
from pathlib import Path

import hiredis

import headrace.regions.wing
import headrace.server.commands.families  # noqa: F401  # the commands
from headrace.persistence.aof.reader import AofReader
from headrace.regions.exchange.effects import (
    apply_local,
    apply_record,
    begin_region,
    publish_all,
    region_of,
)
from headrace.regions.exchange.heartbeats import look_at_promises, note_promise
from headrace.regions.exchange.intake import Intake
from headrace.regions.exchange.peer_connection import Provider
from headrace.regions.files.backlog import Backlog, Batch
from headrace.regions.files.journal import Journal
from headrace.regions.files.pieces import Piece
from headrace.regions.knowledge.records import is_numbered
from headrace.server.clients.session import Peer, Session
from headrace.server.clock import Clock
from headrace.server.config.config import Config
from headrace.server.dispatch.dispatcher import Dispatcher
from headrace.server.dispatch.execute import execute
from headrace.server.dispatch.serving import serve_ready
from headrace.server.durability.durability import Durability
from headrace.server.loading.loader import Replayer
from headrace.server.state import Server
from headrace.storage.sharing import AA, FROM, MODES
from headrace.storage.vectors import Numbers
from headrace.storage.vectors import region_of as region_in
from support.client import Argument

Words = list[bytes]
START_MS = 1_760_000_000_000
_files = itertools.count(1)


class SetClock(Clock):
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.ms = START_MS
        self._back_ms = 0
        super().__init__()

    def read_ns(self) -> int:
        return self.ms * 1_000_000

    def monotonic_ms(self) -> int:
        return self.ms + self._back_ms

    def set_back(self, ms: int) -> None:
        """As an operator does; what nobody sets goes on."""
        self.ms -= ms
        self._back_ms += ms


class Client:
    """A client of a region."""

    def __init__(self, region: NearRegion, number: int) -> None:
        self._region = region
        self._session = Session(number, region.server.data.dbs[0], 0, Peer())
        self._session.resp3 = False
        self._reader = hiredis.Reader()

    def call(self, *words: Argument) -> object:
        """The reply; None where there is none yet, or where it is nil."""
        region = self._region
        region.server.clock.refresh()
        argv = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        execute(region.dispatcher, self._session, [argv], 0, 1)
        region.server.changes.end_command()
        region.keep_promises()
        return self.reply()

    def reply(self) -> object:
        """A reply that has come since."""
        self._reader.feed(b"".join(self._session.out))
        self._session.out.clear()
        found = self._reader.gets()
        return None if found is False else found

    @property
    def waits(self) -> bool:
        return self._session.waiter is not None


class Letter:
    """What one answer to a PULL says, where it is the last of several."""

    def __init__(self, epoch: int, batches: list[Batch], known: Numbers, promise_ms: int) -> None:
        self.epoch = epoch
        self.batches = batches
        self.known = known
        self.promise_ms = promise_ms


class Link:
    """What one region is told by another, in order.

    Attributes:
        relays: also of what the source has from others.
    """

    def __init__(self, source: NearRegion, target: NearRegion) -> None:
        self.source = source
        self.target = target
        self.relays = True
        self._places: Numbers = {}
        self._letters: deque[Letter] = deque()

    def post(self) -> None:
        """The source says what it has now."""
        source = self.source
        region = source.region
        source.publish()
        source.look_at_promises()
        source.write()
        batches: list[Batch] = []
        for origin in source.backlog.origins():
            if not self.relays and region_in(origin) != region.id:
                continue
            number = self._places.get(origin, 0)
            while (batch := source.backlog.after(origin, number, 1 << 20)) is not None:
                batches.append(batch)
                number = batch.next - 1
            self._places[origin] = number
        promise_ms = region.tells_promise_ms()
        self._letters.append(Letter(region.epoch, batches, region.known(), promise_ms))

    def replace(self, region: NearRegion, twin: NearRegion) -> None:
        """A region was started again: connections to it are, too."""
        if region is self.source:
            self.source = twin
            self._letters.clear()
        elif region is self.target:
            self.target = twin
            self._letters.clear()
        else:
            return
        self._places = self.target.region.known()

    def deliver(self) -> bool:
        """The target takes the next letter, if there is one."""
        if not self._letters:
            return False
        letter = self._letters.popleft()
        for batch in letter.batches:
            self.target.take(batch)
        source = self.source.region.id
        region = self.target.region
        note_promise(region, source, letter.epoch, letter.known, letter.promise_ms)
        self.target.look_at_promises()
        return True


class NearRegion:
    """One region, with a client that ``call`` uses."""

    def __init__(
        self, number: int, folder: Path, mode: bytes = b"strict", others: tuple[int, ...] = ()
    ) -> None:
        config = Config()
        config.aa_region_id = number
        config.appendonly = True
        config.aa_ack_interval_ms = 0
        self.clock = SetClock()
        self.server = Server(config, self.clock)
        region = region_of(self.server)
        self.region = region
        region.mode = MODES[mode]
        region.peers = set(others)
        begin_region(self.server)
        self.durability = Durability(self.server)
        self.dispatcher = Dispatcher(self.server, self.durability)
        self.intake = Intake(self.dispatcher)
        self._folder = folder
        self.paths: list[Path] = []
        self.backlog = Backlog()
        self.open_file()
        self._clients = itertools.count(1)
        self._client = self.client()

    def open_file(self) -> None:
        """Record to a new file from now on."""
        path = self._folder / f"{self.region.id}-{next(_files)}.aof"
        self.path = path
        self.paths.append(path)
        self.journal = Journal(bytes(path), 0, 0, self.region, self.backlog)
        self.durability.files.record_to(self.journal)

    def client(self) -> Client:
        return Client(self, next(self._clients))

    def call(self, *words: Argument) -> object:
        if len(words) == 1:
            assert isinstance(words[0], str)
            return self._client.call(*words[0].split())
        return self._client.call(*words)

    def look_at_promises(self) -> None:
        look_at_promises(self.dispatcher)
        self.keep_promises()

    def keep_promises(self) -> None:
        """The disk has what has been recorded of them."""
        self.region.synced_promise_ms = self.region.kept_promise_ms

    def serve(self) -> None:
        """Run the requests of clients whose keys are ready."""
        serve_ready(self.dispatcher)

    def publish(self) -> None:
        """Make the effects that were put off."""
        publish_all(self.dispatcher)

    def write(self) -> None:
        self.journal.write()
        self.journal.written(self.clock.ms)

    def take(self, batch: Batch) -> None:
        """Apply what is new, and keep it."""
        if batch.next > self.intake.place(batch.origin) + 1:
            piece = Piece(batch.origin, batch.first, batch.count, batch.ms, batch.payload)
            self.intake.offer(piece, _PROVIDER)
            assert not self.intake.step(10_000_000_000)


class _Trusting(Provider):
    """Whoever gives what makes sense."""

    def consumed(self, piece: Piece) -> None:
        pass

    def spoiled(self, reason: str) -> None:
        raise AssertionError(reason)


_PROVIDER = _Trusting()


def linked(regions: list[NearRegion]) -> list[Link]:
    """Links from each to each other."""
    return [Link(one, other) for one in regions for other in regions if one is not other]


def named(links: list[Link]) -> dict[tuple[int, int], Link]:
    """Them by the numbers of source and target."""
    return {(link.source.region.id, link.target.region.id): link for link in links}


def sync(links: list[Link]) -> None:
    """Deliver all there is, until nobody has anything new."""
    while True:
        before = [link.target.region.known() for link in links]
        for link in links:
            link.post()
            while link.deliver():
                pass
        if before == [link.target.region.known() for link in links]:
            return


def replayed(region: NearRegion, folder: Path, keeps_backlog: bool = True) -> NearRegion:
    """A region that has loaded the file of another one, which goes on to be.

    Args:
        keeps_backlog: it has the same records for others, as it would find them in its files.
    """
    region.write()
    twin = NearRegion(region.region.id, folder)
    twin.region.mode = region.region.mode
    twin.region.peers = region.region.peers.copy()
    twin.clock.ms = region.clock.ms
    twin.clock.refresh()
    twin.durability.files.record_to(None)
    replayer = Replayer(twin.server, twin.durability)
    for path in region.paths:
        _replay(twin, replayer, path)
    twin.paths = region.paths.copy()
    if keeps_backlog:
        twin.backlog = region.backlog
    twin.open_file()
    return twin


def _replay(twin: NearRegion, replayer: Replayer, path: Path) -> None:
    reader = AofReader(bytes(path), b"x.aof")
    origin, number = b"", 0
    while (words := reader.next()) is not None:
        if words[0] == AA and words[1] == FROM:
            origin, number = words[2], int(words[3])
        elif is_numbered(words):
            assert number == twin.region.number_of(origin) + 1
            apply_record(twin.server, origin, number, words, True)
            number += 1
        elif words[0] == AA and words[1] != b"FILE":
            apply_local(twin.server, words)
        elif words[0] not in (b"MULTI", b"EXEC", AA):
            assert not replayer.run(words)
    reader.close()
