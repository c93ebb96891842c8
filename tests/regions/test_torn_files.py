"""A region's file that a crash has cut anywhere: what is loaded is what was whole, and no more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import headrace.regions.wing  # noqa: F401  (importing it registers regions)
from headrace.persistence.aof.reader import AofReader
from headrace.regions.exchange.effects import apply_local, apply_record, begin_region, region_of
from headrace.regions.exchange.intake import Intake
from headrace.regions.exchange.peer_connection import Provider
from headrace.regions.exchange.recovery import RecordLoader
from headrace.regions.files.pieces import Piece
from headrace.regions.knowledge.region import Region
from headrace.regions.lanes.fingerprint import fingerprint
from headrace.server.config.config import Config
from headrace.server.durability.durability import Durability
from headrace.server.loading.loader import SLICE_NS, Loader
from headrace.server.state import Server
from headrace.storage.entry import Entry
from headrace.storage.vectors import Numbers
from support.lanes import regional
from support.regions import RegionInProcess

LAST_BYTES = 1500
State = tuple[Numbers, dict[bytes, bytes], dict[bytes, bytes]]


class Trusting(Provider):
    """Sends what is right."""

    def consumed(self, piece: Piece) -> None:
        pass

    def spoiled(self, reason: str) -> None:
        raise AssertionError(reason)


class Door(RecordLoader):
    """Applies records."""

    def __init__(self, server: Server) -> None:
        super().__init__(region_of(server))
        self.server = server

    def apply(self, origin: bytes, number: int, words: list[bytes]) -> str:
        apply_record(self.server, origin, number, words, True)
        return ""

    def apply_local(self, words: list[bytes]) -> str:
        apply_local(self.server, words)
        return ""


def carry(source: RegionInProcess, target: RegionInProcess) -> None:
    """Let a region have all that another one has written, by way of its file."""
    source.journal.write()
    source.journal.written(1)
    intake = Intake(target.dispatcher)
    provider = Trusting()
    for origin in source.backlog.origins():
        batch = source.backlog.after(origin, target.region.number_of(origin), 1 << 20)
        if batch is not None:
            piece = Piece(batch.origin, batch.first, batch.count, 1, batch.payload)
            intake.offer(piece, provider)
    while intake.step(10**12):
        pass


def state_of(path: Path, data: bytes) -> State:
    """Return what a start makes of a file that is cut there."""
    path.write_bytes(data)
    config = Config()
    config.aa_region_id = 1
    config.appendonly = True
    server = Server(config)
    begin_region(server)
    paths = [bytes(path)]
    loader = Loader(server, Durability(server), paths, len(data), False, Door(server))
    while loader.load_slice(SLICE_NS):
        pass
    region = region_of(server)
    return (
        region.known(),
        fingerprints(server.data.dbs[0].every(), region),
        fingerprints(server.data.tombstones.every(), region),
    )


def fingerprints(entries: Iterator[Entry], region: Region) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    for entry in entries:
        found[entry.key] = fingerprint(regional(entry.value, region), True)
    return found


def unit_ends(path: Path) -> list[int]:
    """Return where a command or a transaction of a file ends."""
    reader = AofReader(bytes(path), b"x.aof")
    ends = [0]
    inside = False
    while (words := reader.next()) is not None:
        inside = words == [b"MULTI"] or (inside and words != [b"EXEC"])
        if not inside:
            ends.append(reader.offset)
    reader.close()
    return ends


def test_what_is_loaded_is_what_was_whole(tmp_path: Path) -> None:
    one = RegionInProcess(tmp_path, 1, aa_xadd_id_mode="semi-strict")
    two = RegionInProcess(tmp_path, 2, aa_xadd_id_mode="semi-strict")
    for region in (one, two):
        region("XADD s 100 f v")
        region("XGROUP CREATE s g 0")
        region("XADD gone 100 f v")
    carry(two, one)
    carry(one, two)
    for turn in range(3):
        one(f"XADD s * f {turn}")
        two(f"XADD s * f {turn}")
        one("MULTI")
        one(f"XADD s * in {turn}")
        one(f"XADD t MAXLEN 1 * in {turn}")
        one("XDEL s 100-1")
        one("EXEC")
        two("MULTI")
        two(f"XADD s * in {turn}")
        two("XTRIM s MAXLEN 5")
        two("EXEC")
        two(f"XADD s IDMP p {turn} * f v")
        one(f"XADD s IDMP p {turn} * f v")
        carry(two, one)
        one("XREADGROUP GROUP g c STREAMS s >")
        one("XACK s g 100-1 100-2")
        one("DEL gone")
        carry(one, two)
    one.journal.write()
    path = tmp_path / "region-1.aof"
    data = path.read_bytes()
    ends = unit_ends(path)
    assert ends[-1] == len(data)
    torn = tmp_path / "torn.aof"
    whole = state_of(torn, data)
    assert whole[0] == one.region.known()
    assert whole[1] == fingerprints(one.server.data.dbs[0].every(), one.region)
    known: dict[int, State] = {}
    for size in range(len(data) - LAST_BYTES, len(data) + 1):
        end = max(end for end in ends if end <= size)
        if end not in known:
            known[end] = state_of(torn, data[:end])
        assert state_of(torn, data[:size]) == known[end]
    assert len(known) > 5
    assert len({tuple(state[0].items()) for state in known.values()}) >= 5
