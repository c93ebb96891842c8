"""Snapshots: what is written comes back exactly, and damage is refused with file and offset."""

from __future__ import annotations

import os
import re
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.persistence.errors import PersistenceError, SnapshotError
from headrace.persistence.forms.dump import (
    OWN_FOOTER_BYTES,
    BadPayload,
    has_own_footer,
    load_own,
)
from headrace.persistence.forms.records import CHECKSUM, OLDEST_VERSION, REGIONAL_VERSION, VERSION
from headrace.persistence.forms.stream.form import check_stream
from headrace.persistence.snapshot.decode import KEEP_ALL, Decoder, SnapshotLoader
from headrace.persistence.snapshot.file import FRAME_HEAD, PREAMBLE
from headrace.storage.keyspace import Keyspace
from headrace.storage.stream.appending import NodeLimits
from headrace.storage.stream.groups import Group
from headrace.storage.stream.stream import Stream
from support.build import ROOT
from support.snapshots import (
    CREATED_MS,
    databases,
    make_stream,
    odd_databases,
    odd_streams,
    own_payload,
    plain,
    plain_stream,
    sealed,
    snapshot,
)

LATE_MS = 2**63 - 1  # whatever happened, it was before


def load(
    path: Path, drop_before_ms: int = KEEP_ALL, count: int = 16
) -> tuple[list[Keyspace], Decoder]:
    dbs = databases(count)
    decoder = Decoder(dbs, LATE_MS, drop_before_ms)
    loader = SnapshotLoader(os.fsencode(path), decoder)
    try:
        while loader.step():
            pass
        assert loader.loaded_bytes == loader.size_bytes
    finally:
        loader.close()
    return dbs, decoder


def frames(data: bytes) -> list[bytes]:
    """The frames of a snapshot, whole."""
    found = []
    at = PREAMBLE.size
    while at < len(data):
        size = FRAME_HEAD.unpack_from(data, at)[0] + FRAME_HEAD.size + CHECKSUM.size
        found.append(data[at : at + size])
        at += size
    return found


def frame(number: int, payload: bytes) -> bytes:
    return sealed(FRAME_HEAD.pack(len(payload), number) + payload)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "dump.hrs"


def refusal(path: Path, data: bytes) -> PersistenceError:
    """Loading ``data`` fails, and the reason names the file."""
    path.write_bytes(data)
    with pytest.raises(PersistenceError) as caught:
        load(path)
    assert str(path) in str(caught.value)
    return caught.value


def test_everything_comes_back(path: Path) -> None:
    dbs = odd_databases()
    before = plain(dbs)
    path.write_bytes(snapshot(dbs))
    loaded, decoder = load(path)
    assert plain(loaded) == before
    assert (decoder.version, decoder.created_ms) == (b"0.1.0", CREATED_MS)
    assert decoder.keys == len(before)
    for db in loaded:
        for entry in db.every():
            if isinstance(entry.value, Stream):
                check_stream(entry.value)
    again = path.with_suffix(".again")
    again.write_bytes(snapshot(loaded))
    assert plain(load(again)[0]) == before


def test_the_bytes_are_what_they_were() -> None:
    """Without regions, what is written stays the same."""
    recorded = Path(__file__).parent / "recorded-format-3.hrs"
    assert snapshot(odd_databases()) == recorded.read_bytes()


def test_what_was_loaded_goes_on_as_if_nothing_had_happened(path: Path) -> None:
    """Appending, trimming, deleting and claiming do the same before and after."""
    dbs = odd_databases()
    path.write_bytes(snapshot(dbs))
    outcomes = []
    for side in (dbs, load(path)[0]):
        told: list[object] = []
        for key in sorted(odd_streams()):
            stream = side[0][b"s:" + key].value
            assert isinstance(stream, Stream)
            told.append(stream.trim_to_length(stream.length - 2, True, 0, True))
            for number in range(5):
                if stream.last_ms < 2**64 - 1:
                    stream.append(2**40 + number, 0, [b"a", b"12345"], 0, NodeLimits(4096, 3))
            told.append(stream.delete(9, 1))
            told.append(stream.trim_below(3, 0, False, 0, True))
            for group in stream.groups.values():
                consumer = group.create_consumer(b"late", 1)
                nack = group.pel.from_id(7, 0, 1)
                if nack:
                    group.assign(nack[0], consumer, 950)
                told.append(group.ack(8, 0))
            told.append(plain_stream(stream))
        outcomes.append(told)
    assert outcomes[0] == outcomes[1]


def test_expired_keys_are_left_out_where_nothing_follows(path: Path) -> None:
    path.write_bytes(snapshot(odd_databases()))
    loaded, decoder = load(path, drop_before_ms=1001)
    assert (9, b"old") not in plain(loaded)
    assert decoder.expired == 1
    assert (9, b"old") in plain(load(path, drop_before_ms=1000)[0])


def test_many_frames(path: Path) -> None:
    """Values larger than a frame, more keys than one holds, and a table cut into several."""
    dbs = databases()
    dbs[0].put(b"large", b"x" * 5_000_000, 1)
    dbs[0].put(b"k" * 70_000, 1, 1)
    for number in range(30_000):
        dbs[0].put(b"key:%d" % number, b"value:%d" % number, 1)
    stream = make_stream(((1, n, [b"f", b"%-600d" % n]) for n in range(4000)), 100)
    group = stream.groups[b"g"] = Group(b"g", 1, 4000, 4000)
    members = [group.create_consumer(b"c%d" % n, 1) for n in range(3000)]
    for number in range(4000):
        group.deliver(1, number, members[number % 3000], number)
    dbs[3].put(b"s", stream, 1)
    data = snapshot(dbs)
    assert len(frames(data)) > 3
    path.write_bytes(data)
    assert plain(load(path)[0]) == plain(dbs)


words = st.lists(st.binary(max_size=5), min_size=1, max_size=3)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2**33), words), max_size=40),
    st.lists(st.integers(0, 39), max_size=20),
    st.integers(1, 8),
)
def test_any_stream_round_trips(
    steps: list[tuple[int, int, list[bytes]]], deleted: list[int], node_entries: int
) -> None:
    stream = Stream(100, 100)
    ids = []
    ms = seq = 0
    for delta, more, names in steps:
        ms, seq = (ms + delta, more) if delta else (ms, seq + 1 + more)
        row = [word for name in names for word in (name, b"v")]
        stream.append(ms, seq, row, 0, NodeLimits(4096, node_entries))
        ids.append((ms, seq))
    for number in deleted:
        if number < len(ids):
            stream.delete(*ids[number])
    data = own_payload(stream)
    assert has_own_footer(data)
    twin = load_own(data, LATE_MS)
    assert isinstance(twin, Stream)
    assert plain_stream(twin) == plain_stream(stream)
    assert own_payload(twin) == data


# Damage


def small() -> list[Keyspace]:
    """One of each record."""
    dbs = databases()
    dbs[0].put(b"k", b"v", 1)
    dbs[0].put(b"n", 1, 1)
    dbs[2].put(b"mk", b"v", 1)
    dbs[2].put(b"mn", 2, 1)
    for key in (b"mk", b"mn"):
        dbs[2].expire_at(key, 2**41)
    stream = make_stream(((n, 0, [b"f", b"v"]) for n in range(1, 6)), 2)
    stream.delete(2, 0)
    group = stream.groups[b"g"] = Group(b"g", 3, 0, 3)
    group.deliver(1, 0, group.create_consumer(b"c", 1), 1)
    dbs[2].put(b"s", stream, 1)
    return dbs


def test_every_flipped_bit_is_refused(path: Path) -> None:
    data = snapshot(small())
    for place in range(len(data)):
        for bit in range(8):
            damaged = bytearray(data)
            damaged[place] ^= 1 << bit
            error = refusal(path, bytes(damaged))
            assert isinstance(error, SnapshotError) or place < 8, error


def test_every_truncation_is_refused(path: Path) -> None:
    data = snapshot(small())
    for length in range(len(data)):
        error = refusal(path, data[:length])
        assert isinstance(error, SnapshotError)
        assert error.offset <= length
        assert f"offset {error.offset}" in str(error)


def test_bytes_behind_the_end_are_refused(path: Path) -> None:
    data = snapshot(small())
    for more in (b"\0", b"x" * 100, frame(1, b"")):
        assert isinstance(refusal(path, data + more), SnapshotError)
    twice = data + frame(1, frames(data)[0][FRAME_HEAD.size : -CHECKSUM.size])
    assert "nothing behind the last record" in str(refusal(path, twice))


def test_frames_must_be_there_in_order(path: Path) -> None:
    dbs = databases()
    for number in range(40):
        dbs[0].put(b"%d" % number, b"x" * 100_000, 1)
    data = snapshot(dbs)
    head, parts = data[: PREAMBLE.size], frames(data)
    assert len(parts) >= 4
    a, b, c, *rest = parts
    for order in ([a, c, b, *rest], [a, c, *rest], [a, b, b, c, *rest], [b, c, *rest], parts[:-1]):
        error = refusal(path, head + b"".join(order))
        assert isinstance(error, SnapshotError)


def test_a_newer_format_is_named(path: Path) -> None:
    data = snapshot(small())
    head = PREAMBLE.pack(b"HEADRACE", REGIONAL_VERSION + 1, 0, 0)[:16]
    error = refusal(path, sealed(head) + data[PREAMBLE.size :])
    assert "written by a newer version of Headrace" in str(error)


@pytest.mark.parametrize("version", range(OLDEST_VERSION, VERSION))
def test_the_formats_before_are_read(path: Path, version: int) -> None:
    """They are ours but for what we have more."""
    dbs = small()
    head = PREAMBLE.pack(b"HEADRACE", version, 0, 0)[:16]
    path.write_bytes(sealed(head) + snapshot(dbs)[PREAMBLE.size :])
    assert plain(load(path)[0]) == plain(dbs)
    value = own_payload(b"text")
    before = sealed(value[:-OWN_FOOTER_BYTES] + struct.pack("<H", version))
    assert has_own_footer(before)
    assert load_own(before, LATE_MS) == b"text"


def test_other_files_are_named(path: Path) -> None:
    assert "headrace import" in str(refusal(path, b"REDIS0010\xfa\tredis-ver"))
    assert "no snapshot" in str(refusal(path, b"*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n"))


def test_a_database_that_is_not_there_is_named(path: Path) -> None:
    path.write_bytes(snapshot(odd_databases()))
    with pytest.raises(PersistenceError, match="database 15, and there are only 10: raise"):
        load(path, count=10)


def test_records_that_no_server_writes_are_refused(path: Path) -> None:
    """With a right checksum; whatever is in a payload, it is refused or means something."""
    data = snapshot(small())
    payload = frames(data)[0][FRAME_HEAD.size : -CHECKSUM.size]
    head = data[: PREAMBLE.size]
    good = 0
    refusals: list[str] = []
    for place in range(len(payload)):
        for value in (0, 1, 0x7F, 0x80, 0xC0, 0xCF, 0xFF):
            changed = payload[:place] + bytes([value]) + payload[place + 1 :]
            path.write_bytes(head + frame(0, changed))
            try:
                load(path)
                good += 1
            except PersistenceError as error:
                refusals.append(str(error))
    assert good
    assert refusals
    assert [text for text in refusals if str(path) not in text] == []


# One value


def test_values_go_there_and_back() -> None:
    for value in (b"", b"text", 0, -(2**63), 2**63 - 1, *odd_streams().values()):
        data = own_payload(value)
        assert has_own_footer(data)
        back = load_own(data, LATE_MS)
        if isinstance(value, Stream):
            assert isinstance(back, Stream)
            assert plain_stream(back) == plain_stream(value)
        else:
            assert back == value
            assert type(back) is type(value)


def test_a_damaged_value_has_no_footer() -> None:
    data = own_payload(odd_streams()[b"read"])
    for place in range(len(data)):
        damaged = bytearray(data)
        damaged[place] ^= 0x40
        assert not has_own_footer(bytes(damaged))
    for length in range(len(data)):
        assert not has_own_footer(data[:length])


@pytest.mark.parametrize("limits", [(0, 100), (86_401, 100), (100, 0), (100, 10_001)])
def test_limits_of_iids_that_no_command_sets(limits: tuple[int, int]) -> None:
    with pytest.raises(BadPayload, match="limits of iids that can be set"):
        load_own(own_payload(Stream(*limits)), LATE_MS)


IDS = b"\x9a\x05\x00" + b"\x01\x00" * 4  # 5-0 to 9-0
DIGITS = [b"0", b"1", b"2", b"3", b"4"]


@pytest.mark.parametrize(
    ("ids", "values", "texts"),
    [
        (IDS, b"\x93\x91\xc4\x01a\x95\x00\x01\x02\x03\x04\x91\x00", DIGITS),
        (b"\xdc\0\x0a\xd0\x05\xd3" + bytes(8) + b"\x01\xcc\x00" * 4, b"", DIGITS),
        (b"\xdd\0\0\0\x0a" + IDS[1:], b"", DIGITS),
        (IDS, b"\xdc\0\x03\x91\xc4\x01a\x95\x00\x01\x02\x03\x04\x91\x00", DIGITS),
        (IDS, b"\x93\x91\xc6\0\0\0\x01a\xdc\0\x05\x00\xd1\0\x01\x02\x03\x04\x91\x00", DIGITS),
        (IDS, b"\x95\x91\xc4\x01a\x91\x01\xc4\x0501234\x90\x90", DIGITS),
        (IDS, b"\xdc\0\x05\x91\xc4\x01a\x91\xcc\x01\xc5\0\x0501234\xdc\0\0\x90", DIGITS),
        (IDS, b"\x95\x91\xc4\x01a\x91\0\xc4\0\x95\x00\x01\x02\x03\x04\x91\x00", DIGITS),
        (IDS, b"\x93\x91\xc4\x01a\x95" + b"\xca\0\0\0\0" * 5 + b"\x91\x00", [b"0.0"] * 5),
        (IDS, b"\x93\x91\xc4\x01a\x95\xc3\xc3\xc3\xc3\xc3\x91\x00", [b"true"] * 5),
    ],
)
def test_a_payload_that_others_spelled_is_read_in_part(
    ids: bytes, values: bytes, texts: list[bytes]
) -> None:
    """What RESTORE takes can be read like any other, a few entries of a block too."""
    stream = Stream(100, 100)
    for number in range(5):
        stream.append(5 + number, 0, [b"a", b"%d" % number], 0, NodeLimits(0, 5))
    stream.append(10, 0, [b"a", b"tail"], 0, NodeLimits(0, 5))
    (block,) = stream.index.blocks
    block.payload = ids + (values or block.payload[block.ids_bytes :])
    block.ids_bytes = len(ids)
    back = load_own(own_payload(stream), LATE_MS)
    assert isinstance(back, Stream)
    for number in range(5):
        (part,) = back.parts((5 + number, 0), (5 + number, 0), 1, False)
        assert part.run.row(part.low) == [b"a", texts[number]]


def test_a_payload_that_is_nested_without_end_is_refused() -> None:
    stream = make_stream(((5 + number, 0, [b"a", b"x"]) for number in range(6)), 5)
    (block,) = stream.index.blocks
    block.payload = IDS + b"\x91" * 5000 + b"\x90"
    block.ids_bytes = len(IDS)
    with pytest.raises(BadPayload, match="block 0 cannot be decoded"):
        load_own(own_payload(stream), LATE_MS)


@pytest.mark.parametrize("kind", [b"read", b"even"])
def test_a_value_that_no_server_writes_is_refused_or_sound(kind: bytes) -> None:
    """Each byte changed under a right checksum: what is taken can be worked with."""
    body = own_payload(odd_streams()[kind])[: -CHECKSUM.size]
    refused = 0
    for place in range(len(body) - 2):
        for value in (0, 1, 0x7F, 0x90, 0xC0, 0xCF, 0xFF):
            data = sealed(body[:place] + bytes([value]) + body[place + 1 :])
            assert has_own_footer(data)
            try:
                back = load_own(data, LATE_MS)
            except BadPayload:
                refused += 1
                continue
            assert isinstance(back, (Stream, bytes, int))
            if isinstance(back, Stream):
                plain_stream(back)
                own_payload(back)
    assert refused


# The documentation


def test_the_documented_example_is_exact(path: Path) -> None:
    page = (ROOT / "docs/snapshot-format.md").read_text()
    block = page.partition("```text\n")[2].partition("```")[0]
    documented = b""
    for line in block.splitlines():
        match = re.match(r" *(\d+)  ((?:[0-9a-f]{2} ?)+)(?:   *|$)", line)
        assert match is not None, line
        assert int(match[1]) == len(documented), line
        documented += bytes.fromhex(match[2])
    dbs = databases()
    dbs[0].put(b"k", b"v", 1)
    dbs[0].put(b"n", 41, 1)
    dbs[0].expire_at(b"n", 1_763_693_000_000)
    stream = make_stream(((5, n, [b"a", b"%d" % (n + 1)]) for n in range(3)), 2)
    stream.delete(5, 1)
    group = stream.groups[b"g"] = Group(b"g", 5, 0, 1)
    group.deliver(5, 0, group.create_consumer(b"c", 9), 9)
    dbs[0].put(b"s", stream, 1)
    before = plain(dbs)
    assert snapshot(dbs).hex(" ") == documented.hex(" ")
    path.write_bytes(documented)
    assert plain(load(path)[0]) == before


def test_numbers_are_little_endian() -> None:
    data = snapshot(databases())
    assert data[8:12] == b"\3\0\0\0"
    assert struct.unpack_from("<QI", data, 24) == (len(data) - 24 - 12 - 8, 0)
