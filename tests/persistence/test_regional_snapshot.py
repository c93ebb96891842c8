"""Snapshots of regions: whose they are, and their streams, come back exactly."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headrace.regions.wing  # noqa: F401  (importing it registers regions)
from headrace.persistence.check import SnapshotCheck, snapshot_loader
from headrace.persistence.errors import PersistenceError, SnapshotError
from headrace.persistence.forms.dump import BadPayload, load_own
from headrace.persistence.forms.form import Unsound
from headrace.persistence.forms.records import CHECKSUM
from headrace.persistence.forms.table import check
from headrace.persistence.snapshot.decode import KEEP_ALL, Decoder, SnapshotLoader
from headrace.persistence.snapshot.encoder import SnapshotEncoder
from headrace.persistence.snapshot.file import PREAMBLE
from headrace.regions.knowledge.region import Region, region_as
from headrace.regions.knowledge.stability import Beat
from headrace.regions.lanes.stream import RegionalStream
from headrace.storage.freezing import Freezing
from headrace.storage.keyspace import Keyspace
from headrace.storage.sharing import SEMI_STRICT
from support.lanes import Juggler, plain_lanes, random_stream, regional
from support.snapshots import CREATED_MS, databases, records_of, sealed, snapshot

LATE_MS = 2**63 - 1


def a_region() -> Region:
    """A region that has been through something."""
    region = Region(1)
    region.database = b"orders"
    region.begin_epoch(3, 2, b"nonce")
    region.caught = b"nonces"
    region.count = 70
    region.numbers = {b"1.0": 5, b"2.0": 17, b"3.9": 2**50}
    region.last_lane = 80
    region.promise_ms = 1_763_692_800_000
    region.joined = {3, 5}
    region.forgotten = {4: 6}
    region.beats = {1: Beat(3, {b"1.3": 60}, 7), 2: Beat(0, {b"2.0": 16, b"1.3": 1}, 99)}
    region.promises = {2: 50, 3: 60}
    region.versions = {2: 1, 3: 4}
    region.nonces = {b"2.0": b"one", b"3.9": b"anothers"}
    return region


def plain_region(region: Region) -> object:
    beats = {
        number: (beat.epoch, beat.numbers, beat.promise_ms) for number, beat in region.beats.items()
    }
    return (
        (region.id, region.database, region.origin, region.epoch, region.generation),
        (region.nonce, region.caught, region.count, region.numbers, region.last_lane),
        (region.promise_ms, region.joined, region.forgotten, beats, region.promises),
        (region.nonces, region.versions),
    )


def saved(keyspaces: list[Keyspace], region: Region) -> bytes:
    """The bytes of a region's snapshot."""
    return snapshot(keyspaces, True, region)


def finish(loader: SnapshotLoader) -> None:
    """Load all there is."""
    try:
        while loader.step():
            pass
    finally:
        loader.close()


def load(path: Path, region: Region | None = None) -> tuple[list[Keyspace], Decoder]:
    keyspaces = databases(2)
    decoder = Decoder(keyspaces, LATE_MS, KEEP_ALL)
    decoder.accept_region(region)
    finish(SnapshotLoader(os.fsencode(path), decoder))
    return keyspaces, decoder


def plain(keyspaces: list[Keyspace]) -> dict[tuple[int, bytes], object]:
    found: dict[tuple[int, bytes], object] = {}
    for db in keyspaces:
        for entry in db.every():
            value = regional(entry.value, Region(1))
            found[db.index, entry.key] = (int(entry.expire_ms), plain_lanes(value))
    return found


def some(random: Random, region: Region, steps: int) -> list[Keyspace]:
    """Streams of which some are gone, and a few keys that expire."""
    keyspaces = databases(2)
    for number in range(3):
        stream = random_stream(random, region, steps)
        key = b"s%d" % number
        if stream.exists():
            keyspaces[0].put(key, stream, 1)
            if number == 1:
                keyspaces[0].expire_at(key, 2_000_000_000_000)
        else:
            keyspaces[1].put(key, stream, 1)
    return keyspaces


@settings(max_examples=150)
@given(seed=st.integers(0, 2**32), steps=st.integers(0, 120))
def test_any_streams_come_back(
    seed: int, steps: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    random = Random(seed)
    region = Region(1)
    keyspaces = some(random, region, steps)
    path = tmp_path_factory.mktemp("regional") / "dump.hrs"
    path.write_bytes(saved(keyspaces, region))
    loaded, decoder = load(path)
    assert plain(loaded) == plain(keyspaces)
    assert plain_region(region_as(decoder.region)) == plain_region(region)
    for db in loaded:
        for entry in db.every():
            check(regional(entry.value, region))
    again = path.with_suffix(".again")
    again.write_bytes(saved(loaded, region_as(decoder.region)))
    assert plain(load(again)[0]) == plain(keyspaces)


@pytest.mark.parametrize("seed", range(20))
def test_what_was_loaded_goes_on_as_if_nothing_had_happened(path: Path, seed: int) -> None:
    """The same happens to a stream and to the one that was loaded, and they stay equal."""
    region = Region(1)
    region.mode = SEMI_STRICT
    juggler = Juggler(Random(seed), region)
    for _ in range(150):
        juggler.step()
    keyspaces = databases(2)
    keyspaces[0].put(b"s", juggler.stream, 1)
    path.write_bytes(saved(keyspaces, region))
    loaded, decoder = load(path)
    other = region_as(decoder.region)
    other.mode = SEMI_STRICT
    twin = Juggler(Random(0), other)
    value = loaded[0][b"s"].value
    assert isinstance(value, RegionalStream)
    twin.stream = value
    twin.last, twin.lane, twin.now_ms = juggler.last.copy(), juggler.lane.copy(), juggler.now_ms
    for one in (juggler, twin):
        one.random = Random(-seed)
        for _ in range(100):
            one.step()
    assert plain_lanes(twin.stream) == plain_lanes(juggler.stream)


@pytest.mark.parametrize("seed", range(20))
def test_a_stream_is_written_as_it_was_however_it_changes(path: Path, seed: int) -> None:
    """A frozen stream is read in small pieces while everything happens to the stream itself."""
    random = Random(seed)
    region = Region(1)
    region.mode = SEMI_STRICT
    juggler = Juggler(random, region)
    for _ in range(200):
        juggler.step()
    keyspaces = databases(2)
    keyspaces[0].put(b"s", juggler.stream, 1)
    before = plain(keyspaces)
    freezing = Freezing(keyspaces, 1)
    encoder = SnapshotEncoder(b"0.1.0", CREATED_MS, True, 1, region)
    encoder.begin()
    keyspaces[0].before_change(b"s")
    unused: list[object] = []
    while not freezing.is_done():
        for key in freezing.next_keys(1):
            more = encoder.add(key)
            while more:
                for _ in range(random.randrange(4)):
                    juggler.step()
                more = encoder.more()
            freezing.release(key, unused)  # type: ignore[arg-type]
    encoder.finish()
    freezing.end(unused)  # type: ignore[arg-type]
    path.write_bytes(b"".join(encoder.take()))
    assert plain(load(path)[0]) == before


def test_a_region_comes_back(path: Path) -> None:
    region = a_region()
    path.write_bytes(saved(databases(2), region))
    mine = Region(1)
    mine.database = b"orders"
    _, decoder = load(path, mine)
    assert decoder.region is mine
    assert plain_region(mine) == plain_region(region)
    assert path.read_bytes()[8] == 4


def test_another_region_is_refused(path: Path) -> None:
    path.write_bytes(saved(databases(2), a_region()))
    for number, database in ((2, b"orders"), (1, b"others")):
        other = Region(number)
        other.database = database
        with pytest.raises(PersistenceError, match="that of region 1 of b'orders'"):
            load(path, other)


def test_a_server_without_regions_refuses_it(path: Path) -> None:
    path.write_bytes(saved(databases(2), a_region()))
    loader = SnapshotLoader(os.fsencode(path), Decoder(databases(2), LATE_MS, KEEP_ALL))
    with pytest.raises(PersistenceError, match="headrace export"):
        finish(loader)


def test_every_flipped_bit_is_refused(path: Path) -> None:
    region = Region(1)
    data = saved(some(Random(4), region, 25), region)
    for at in range(PREAMBLE.size, len(data), 7):
        broken = bytearray(data)
        broken[at] ^= 1 << at % 8
        path.write_bytes(bytes(broken))
        with pytest.raises(SnapshotError):
            load(path)


def test_every_truncation_is_refused(path: Path) -> None:
    region = Region(1)
    data = saved(some(Random(4), region, 25), region)
    for size in range(PREAMBLE.size, len(data), 5):
        path.write_bytes(data[:size])
        with pytest.raises(PersistenceError):
            load(path)


def test_no_payload_of_dump_holds_one() -> None:
    body = records_of(random_stream(Random(1), Region(1), 50)) + b"\3\0"
    with pytest.raises(BadPayload, match="no stream of lanes"):
        load_own(sealed(body), LATE_MS)


@pytest.mark.parametrize("seed", range(150))
def test_records_that_no_server_writes_are_refused_or_sound(path: Path, seed: int) -> None:
    """Bytes that differ, with checksums that are right: nothing but an error, or what is sound."""
    random = Random(seed)
    region = Region(1)
    data = bytearray(saved(some(random, region, 60), region))
    size = len(data) - PREAMBLE.size - 12 - CHECKSUM.size
    for _ in range(random.randrange(1, 4)):
        data[PREAMBLE.size + 12 + random.randrange(size)] ^= 1 << random.randrange(8)
    body = bytes(data[PREAMBLE.size : -CHECKSUM.size])
    path.write_bytes(bytes(data[: PREAMBLE.size]) + sealed(body))
    try:
        loaded, _ = load(path)
    except PersistenceError:
        return
    for db in loaded:
        for entry in db.every():
            value = regional(entry.value, region)
            with contextlib.suppress(Unsound):
                check(value)
                plain_lanes(value)


def test_a_check_looks_at_all_of_it(path: Path) -> None:
    region = a_region()
    keyspaces = some(Random(8), region, 80)
    path.write_bytes(saved(keyspaces, region))
    loader, found = snapshot_loader(os.fsencode(path))
    finish(loader)
    assert isinstance(found, SnapshotCheck)
    assert found.keys == sum(len(db) for db in keyspaces)
    assert plain_region(region_as(found.region)) == plain_region(region)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "dump.hrs"
