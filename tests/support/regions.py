"""Regions in one process: real servers with real files, whose records are carried by hand."""

from __future__ import annotations

from pathlib import Path

import hiredis

import headrace.regions.wing
import headrace.server.commands.families  # noqa: F401  (importing it fills the command table)
from headrace.regions.exchange.effects import apply_record, begin_region, emit, region_of
from headrace.regions.files.backlog import Backlog
from headrace.regions.files.journal import Journal
from headrace.regions.knowledge.records import is_numbered
from headrace.regions.lanes.stream import RegionalStream
from headrace.server.clients.session import Peer, Session
from headrace.server.config.config import Config
from headrace.server.config.parameters import BY_NAME
from headrace.server.dispatch.dispatcher import Dispatcher
from headrace.server.dispatch.execute import execute
from headrace.server.durability.durability import Durability
from headrace.server.settings import Settings
from headrace.server.state import Server
from support.lanes import regional

Record = tuple[bytes, int, list[bytes]]  # origin, number, words


def units(payload: bytes) -> list[list[bytes]]:
    """The requests that stand one behind the other."""
    reader = hiredis.Reader()
    reader.feed(payload)
    found: list[list[bytes]] = []
    while True:
        words = reader.gets()
        if words is False:
            return found
        found.append(words)


class RegionInProcess:
    """One region.

    Args:
        folder: where its file lies.
        number: of the region.
        settings: parameters besides those that every region here has.
    """

    def __init__(self, folder: Path, number: int, **settings: str) -> None:
        config = Config()
        parameters = {
            "aa-region-id": str(number),
            "appendonly": "yes",
            "aa-ack-interval-ms": "0",
            **{name.replace("_", "-"): value for name, value in settings.items()},
        }
        for name, value in parameters.items():
            row = BY_NAME[name.encode()]
            config.store(row, row.read([value.encode()], config.value(row)))
        self.server = Server(config)
        Settings(self.server)
        begin_region(self.server)
        durability = Durability(self.server)
        self.dispatcher = Dispatcher(self.server, durability)
        region = region_of(self.server)
        self.region = region
        self.backlog = Backlog()
        path = str(folder / f"region-{number}.aof").encode()
        self.journal = Journal(path, 0, 0, region, self.backlog)
        durability.files.record_to(self.journal)
        self._session = Session(1, self.server.data.dbs[0], 0, Peer())

    def __call__(self, *words: bytes | str | int) -> object:
        """The reply to a request; one text is split at its blanks."""
        if len(words) == 1:
            words = tuple(str(words[0]).split())
        request = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        self.server.clock.refresh()
        execute(self.dispatcher, self._session, [request], 0, 1)
        reader = hiredis.Reader()
        for piece in self._session.out:
            reader.feed(piece)
        self._session.out.clear()
        return reader.gets()

    def stream(self, key: bytes) -> RegionalStream:
        """The state of a key, there or not."""
        found = self.server.data.dbs[0].peek(key) or self.server.data.tombstones[key]
        return regional(found.value, self.region)

    def records(self) -> list[Record]:
        """All records that this region may give away, in order."""
        self.journal.write()
        self.journal.written(0)
        found: list[Record] = []
        for origin in self.backlog.origins():
            number = self.backlog.reach(origin) - 1
            while True:
                batch = self.backlog.after(origin, number, 1 << 20)
                if batch is None:
                    break
                numbered = [words for words in units(batch.payload) if is_numbered(words)]
                assert len(numbered) == batch.count
                found += [(origin, batch.first + at, words) for at, words in enumerate(numbered)]
                number = batch.next - 1
        return found

    def take(self, records: list[Record]) -> None:
        """Apply records of others: those that are the next ones of their origins."""
        for origin, number, words in records:
            if number == self.region.number_of(origin) + 1:
                for following in apply_record(self.server, origin, number, words, False):
                    emit(self.server, following)
                self.server.changes.end_command()


def synchronize(*regions: RegionInProcess) -> None:
    """Carry all records everywhere, and those that this leads to."""
    while True:
        before = [region.region.known() for region in regions]
        for region in regions:
            for other in regions:
                if other is not region:
                    region.take(other.records())
        if [region.region.known() for region in regions] == before:
            return
