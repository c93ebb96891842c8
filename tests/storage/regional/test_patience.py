"""A stream whose deadline another region has set: it is hidden before it is removed."""

from __future__ import annotations

import pytest

from headrace.regions.knowledge.region import Region
from headrace.regions.lanes.remembered import NO_DEADLINE, Setting
from headrace.regions.lanes.stream import PATIENCE_MS, RegionalStream
from headrace.storage.entry import NO_EXPIRY
from headrace.storage.keyspace import Keyspace
from headrace.storage.value import Expiring

LATE_MS = 10 + PATIENCE_MS  # up to which a key with the deadline 10 is hidden


def expiring(*keys: bytes) -> tuple[Keyspace, RegionalStream]:
    """A keyspace of region 1 in which region 2 gave these keys the deadline 10; the last stream."""
    db = Keyspace(0, [], [], Expiring())
    db.keep_expired()
    for key in keys:
        stream = RegionalStream(Region(1), 100, 100)
        stream.add_ttl(Setting((b"2.0", 1), 1, 10))
        db.put(key, stream, 0)
        db.expire_at(key, 10)
    return db, stream


def test_a_deadline_of_another_region_hides_a_stream_first() -> None:
    db, stream = expiring(b"a", b"b")
    assert db.get(b"b", 10) is stream
    assert db.expire_due(15, 100) == 2
    assert db.get(b"b", LATE_MS) is None
    assert db.expire_due(LATE_MS, 100) == 0
    assert db.expired == []
    assert len(db) == 2
    assert db.expire_due(LATE_MS + 1, 100) == 2
    assert db.expired == [(0, b"a"), (0, b"b")]
    assert not len(db)


def test_a_deadline_that_was_set_here_removes_it() -> None:
    db, stream = expiring(b"a", b"b")
    stream.add_ttl(Setting((b"1.7", 1), 2, 10))
    assert db.get(b"b", 11) is None
    assert db.expired == [(0, b"b")]


def test_who_set_the_deadline_may_change_while_a_stream_is_hidden() -> None:
    db, stream = expiring(b"k")
    db.expire_due(15, 100)
    stream.add_ttl(Setting((b"3.0", 1), 2, 500))
    db.expire_at(b"k", 500)
    assert db.get(b"k", 20) is stream
    for now_ms in (LATE_MS + 1, 500 + PATIENCE_MS):
        db.expire_due(now_ms, 100)
        assert db.get(b"k", now_ms) is None
    assert db.expired == []
    db.expire_due(501 + PATIENCE_MS, 100)
    assert db.expired == [(0, b"k")]


def test_a_hidden_stream_that_is_met_late_goes() -> None:
    db, stream = expiring(b"k")
    assert db.get(b"k", LATE_MS) is None
    assert db.names() == [b"k"]
    assert db.get(b"k", LATE_MS + 1) is None
    assert db.expired == [(0, b"k")]
    assert db.expired_values == {b"k": stream}


@pytest.mark.parametrize("deadline_ms", [NO_EXPIRY, 10, 10**9])
def test_a_hidden_stream_whose_deadline_is_put_off_is_there_again(deadline_ms: int) -> None:
    db, stream = expiring(b"k")
    db.expire_due(15, 100)
    assert db.get(b"k", 15) is None
    stream.add_ttl(Setting((b"2.0", 2), 2, NO_DEADLINE))
    db.persist(b"k")
    assert db.get(b"k", 15) is stream
    if deadline_ms != NO_EXPIRY:
        stream.add_ttl(Setting((b"2.0", 3), 3, deadline_ms))
        db.expire_at(b"k", deadline_ms)
    while db.expire_due(LATE_MS + 1, 100):
        pass
    gone = deadline_ms == 10
    assert (db.get(b"k", LATE_MS + 1) is None) == gone
    assert db.expired == ([(0, b"k")] if gone else [])


def test_a_hidden_stream_gives_way_to_another_value() -> None:
    db, _ = expiring(b"k")
    db.expire_due(15, 100)
    db.put(b"k", b"string", 15)
    assert db.expired == [(0, b"k")]
    assert db.get(b"k", 15) == b"string"
    while db.expire_due(LATE_MS + 1, 100):
        pass
    assert db.expired == [(0, b"k")]


def test_hidden_streams_of_one_page_do_not_hold_up_the_keys_behind_them() -> None:
    db, _ = expiring(*[b"hidden %d" % number for number in range(300)])
    for number in range(2000):
        db.put(b"%d" % number, number, 0)
        db.expire_at(b"%d" % number, 10)
    goes = 0
    while db.expire_due(15, 100) >= 100:
        goes += 1
    assert goes < 40
    assert len(db) == 300
    assert (
        len(db.late) <= 900
    )  # some twice, where the time of a key that moved to their page was over
