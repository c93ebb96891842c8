"""The wing behind its face; importing this module registers all that is in it."""

from __future__ import annotations

from typing import Final

from headrace.persistence.aof.directory import RecordCount
from headrace.regions.commands import (  # noqa: F401  (each registers what it does)
    aa,
    info,
    keys,
    replication,
    streams,
)
from headrace.regions.exchange.effects import alone, begin_region, publish_all, region_of
from headrace.regions.exchange.recovery import EffectLoader, RegionStart
from headrace.regions.exchange.regions import Regions
from headrace.regions.exchange.sockets import SocketConnector
from headrace.regions.files import region_form, stream_form  # noqa: F401  (these, too)
from headrace.regions.files.identity import owner_of
from headrace.regions.files.log_file import OriginCount
from headrace.server.active_active import ActiveActive, RegionAtWork
from headrace.server.dispatch.dispatcher import Dispatcher
from headrace.server.links.link import Encrypt
from headrace.server.loading.loader import RegionFiles
from headrace.server.state import Server
from headrace.storage.value import Value


class _AtWork(RegionAtWork):
    def __init__(self, dispatcher: Dispatcher, encrypt: Encrypt) -> None:
        server = dispatcher.server
        self._dispatcher: Final = dispatcher
        self._connector: Final = SocketConnector(server.config, server.clock, encrypt)
        self._regions: Final = Regions(dispatcher, self._connector)

    def files(self) -> RegionFiles:
        return RegionStart(self._dispatcher.server, self._regions)

    def open(self) -> None:
        self._regions.open()
        self._connector.start(self._regions)

    def close(self) -> None:
        self._connector.stop()

    def publish(self) -> None:
        publish_all(self._dispatcher)


class Wing(ActiveActive):
    """All parts that regions bring with them."""

    def work(self, dispatcher: Dispatcher, encrypt: Encrypt) -> RegionAtWork:
        begin_region(dispatcher.server)
        return _AtWork(dispatcher, encrypt)

    def files_alone(self, server: Server) -> RegionFiles:
        return EffectLoader(server, region_of(server))

    def leave(self, server: Server, files: RegionFiles) -> None:
        assert isinstance(files, EffectLoader)
        files.take_up()
        db = server.data.dbs[0]
        now_ms = server.clock.now_ns // 1_000_000
        for entry in db.every():
            value = entry.value
            if isinstance(value, Value):
                db.put(entry.key, alone(value), now_ms)

    def owner_of(self, paths: list[bytes]) -> tuple[int, bytes] | None:
        return owner_of(paths)

    def count(self) -> RecordCount:
        return OriginCount()
