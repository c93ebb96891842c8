"""Databases full of odd values, as snapshots and as plain data to compare."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

from xxhash import xxh3_64_intdigest

from headrace.persistence.forms.records import CHECKSUM, NO_DEADLINE, VERSION, Records
from headrace.persistence.forms.table import form_of
from headrace.persistence.snapshot.encoder import SnapshotEncoder
from headrace.regions.knowledge.region import Region
from headrace.storage.faces import frozen
from headrace.storage.freezing import Freezing
from headrace.storage.keyspace import Keyspace
from headrace.storage.stream.appending import NodeLimits
from headrace.storage.stream.block import Block
from headrace.storage.stream.groups import Group
from headrace.storage.stream.run import ID_MAX
from headrace.storage.stream.stream import Stream
from headrace.storage.value import Expiring

CREATED_MS = 1_763_692_800_000
Entries = Iterable[tuple[int, int, list[bytes]]]


def databases(count: int = 16) -> list[Keyspace]:
    expiring = Expiring()
    return [Keyspace(index, [], [], expiring) for index in range(count)]


def records_of(value: object) -> bytes:
    """The records of a value, one behind the other."""
    records = Records()
    writer = form_of(value).writer(records)
    walk = writer.add(b"", frozen(value), NO_DEADLINE)
    while walk is not None and walk.step():
        pass
    writer.flush()
    records.flush()
    return b"".join([piece for payload in records.payloads for piece in payload])


def own_payload(value: object) -> bytes:
    """Return what DUMP answered before it answered as Redis does."""
    body = records_of(value) + struct.pack("<H", VERSION)
    return body + CHECKSUM.pack(xxh3_64_intdigest(body))


def make_stream(entries: Entries, node_entries: int = 3) -> Stream:
    stream = Stream(100, 100)
    for ms, seq, words in entries:
        stream.append(ms, seq, words, 0, NodeLimits(4096, node_entries))
    return stream


def odd_streams() -> dict[bytes, Stream]:
    """Streams with everything that a stream can have."""
    like = make_stream((n, 0, [b"a", b"%d" % n, b"b", b""]) for n in range(1, 12))
    holes = make_stream(((n, n % 2, [b"f", b"v" * n]) for n in range(1, 30)), 10)
    for number in (2, 3, 11, 12, 13, 14, 15, 16, 28, 29):
        holes.delete(number, number % 2)
    holes.trim_to_length(15, False, 0, True)
    mixed = make_stream((5, n, [b"n", b"1"] * (1 + n % 3)) for n in range(8))
    greatest = make_stream([(0, 1, [b"", b""]), (ID_MAX, ID_MAX, [b"\0\xff", b"\r\n"])])
    emptied = make_stream([(7, 7, [b"a", b"b"])])
    emptied.delete(7, 7)
    bare = Stream(7, 9)
    bare.iids_added, bare.iids_duplicates = 4, 5
    ghost = make_stream([(1, 0, [b"a", b"1"]), (2, 0, [b"a", b"2"])], 5)
    ghost.delete(2, 0)
    ghost.trim_below(2, 0, False, 0, True)  # leaves a node with nothing alive in it
    read = make_stream((n, 0, [b"n", b"%d" % n]) for n in range(1, 40))
    read.groups = {group.name: group for group in odd_groups()}
    once = make_stream([(n, 0, [b"n", b"%d" % n]) for n in range(1, 9)])
    once.iids_added = 9
    once.delete(3, 0)
    for number in range(1, 9):
        pid = b"p\0" if number % 2 else b"q" * 300
        once.record_iid(pid, b"%d" % number, number, 0, number if number < 5 else 4000 - number)
    once.record_iid(b"p\0", b"\r\n", ID_MAX, ID_MAX, 2**50)
    even = make_stream(
        (
            n,
            0,
            [
                b"a",
                b"x%02d" % n,
                b"b",
                b"%d" % n,
                b"c",
                b"y" * n,
                b"d",
                b"up",
                b"e",
                b"at 18:00:%02d" % n,
            ],
        )
        for n in range(1, 12)
    )
    return {
        b"like": like, b"even": even, b"holes": holes, b"mixed": mixed, b"greatest": greatest,
        b"emptied": emptied, b"bare": bare, b"ghost": ghost, b"read": read, b"once": once,
        b"": like.copy(),
    }  # fmt: skip


def odd_groups() -> list[Group]:
    group = Group(b"g\n", 30, 0, 30)
    group.max_pending = 99
    ada, bob = group.create_consumer(b"ada", 5), group.create_consumer(b"", 6)
    group.create_consumer(b"idle", 7)
    bob.active_ms = 8
    for number in range(1, 25):
        group.deliver(number, 0, ada if number % 3 else bob, 1000 + number // 5)
    for number, count in ((4, 2**63 - 1), (9, 7)):
        nack = group.pel.get(number, 0)
        assert nack is not None
        group.assign(nack, bob, 900)
        nack.count = count
    for number in (8, 2, 20):
        nack = group.pel.get(number, 0)
        assert nack is not None
        group.release(nack)
    gone = group.pel.from_id(5, 0, 2)
    group.by_time.move_to_end(gone)
    return [group, Group(b"new", 0, 0, -1), Group(b"", ID_MAX, ID_MAX, 2**62)]


def odd_databases() -> list[Keyspace]:
    """Keys of every kind, in three databases."""
    dbs = databases()
    dbs[0].put(b"text", b"\0\r\n\xff", 1)
    dbs[0].put(b"", b"", 1)
    dbs[0].put(b"raw", bytearray(b"appended"), 1)
    for key, number in ((b"least", -(2**63)), (b"most", 2**63 - 1), (b"zero", 0)):
        dbs[0].put(key, number, 1)
    for key, stream in odd_streams().items():
        dbs[0].put(b"s:" + key, stream, 1)
    for key in (b"text", b"zero", b"s:like"):
        dbs[0].expire_at(key, 2_000_000_000_000 + len(key))
    dbs[9].put(b"text", b"of another database", 1)
    dbs[9].put(b"old", b"x", 1)
    dbs[9].expire_at(b"old", 1000)
    dbs[15].put(b"s", make_stream([(1, 1, [b"f", b"v"])]), 1)
    return dbs


def snapshot(dbs: list[Keyspace], is_base: bool = False, region: Region | None = None) -> bytes:
    """The bytes of a snapshot; the tombstones of a region are the last keyspace."""
    freezing = Freezing(dbs, 1 + max(int(db.epoch) for db in dbs))
    databases = len(dbs) - (region is not None)
    encoder = SnapshotEncoder(b"0.1.0", CREATED_MS, is_base, databases, region)
    encoder.begin()
    while not freezing.is_done():
        for key in freezing.next_keys(100):
            more = encoder.add(key)
            while more:
                more = encoder.more()
            freezing.release(key, [])
    encoder.finish()
    freezing.end([])
    return b"".join(encoder.take())


def sealed(body: bytes) -> bytes:
    """Bytes with their checksum behind them."""
    return body + CHECKSUM.pack(xxh3_64_intdigest(body))


# What there is, as plain data


def plain(dbs: list[Keyspace]) -> dict[tuple[int, bytes], object]:
    found: dict[tuple[int, bytes], object] = {}
    for db in dbs:
        for entry in db.every():
            assert type(db[entry.key].value) is type(entry.value)
            value: object = entry.value
            if isinstance(value, Stream):
                value = plain_stream(value)
            elif isinstance(value, bytearray):
                value = bytes(value)
            found[db.index, entry.key] = (int(entry.expire_ms), value)
        deadlines = sum(1 for entry in db.every() if entry.expire_ms >= 0)
        assert db.volatile == deadlines
    return found


def names_of_node(block: Block) -> list[bytes]:
    """The field names that Redis's node stores once."""
    run = block.run
    assert run is not None
    return run.names_of_node


def plain_block(block: Block) -> object:
    run = block.entries()
    dead = block.dead or bytes(len(run.ms))
    rows = [
        (run.ms[number], run.seq[number], list(run.row(number)), dead[number])
        for number in range(len(run.ms))
    ]
    ends = (block.first_ms, block.first_seq, block.last_ms, block.last_seq)
    return ends, block.total, block.live, block.node_bytes, block.is_open(), rows


def plain_stream(stream: Stream) -> tuple[Any, ...]:
    return (
        (stream.length, stream.last_ms, stream.last_seq, stream.first_id()),
        (stream.max_deleted_ms, stream.max_deleted_seq, stream.entries_added),
        (stream.idmp_duration_s, stream.idmp_maxsize, stream.iids_added, stream.iids_duplicates),
        [plain_block(block) for block in stream.index.blocks if block.live],
        (stream.index.entries, stream.index.live_blocks, stream.node_count()),
        None if stream.tail is None else (plain_block(stream.tail), names_of_node(stream.tail)),
        [plain_group(group) for group in stream.groups.values()],
        (list(stream.idmp_records()), 0 if stream.idmp is None else stream.idmp.count),
    )


def plain_group(group: Group) -> tuple[Any, ...]:
    rows = [
        (nack.ms, nack.seq, nack.delivery_ms, nack.count, nack.order_ms,
         None if nack.consumer is None else nack.consumer.name)
        for chunk in group.by_time.chunks
        for nack in chunk.live()
    ]  # fmt: skip
    ids = [(nack.ms, nack.seq) for chunk in group.pel.chunks for nack in chunk.live()]
    assert ids == sorted((ms, seq) for ms, seq, *_ in rows)
    members = [
        (member.name, member.seen_ms, member.active_ms,
         [(nack.ms, nack.seq) for chunk in member.pel.chunks for nack in chunk.live()])
        for member in group.consumers.values()
    ]  # fmt: skip
    facts = (group.name, group.last_ms, group.last_seq, group.entries_read)
    return facts, group.max_pending, group.zone, group.pel.size, members, rows
