"""The IDMP map: what it knows, when it forgets, and that moving it about changes nothing."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from headrace.storage.stream.idmp import HASH_BITS, SHORT_BYTES, IdmpMap, iid_of, text_of
from headrace.storage.stream.run import ID_MAX
from headrace.storage.stream.stream import Stream
from headrace.storage.value import Expiring

PIDS = [b"p", b"q", b"\x00"]
IIDS = [b"%d" % number for number in range(12)]
IIDS += [b"\x00", b"\x00\x00", b"\xff" * 8, b"\xff" * 16, b"long" * 50, b"long" * 51]
IIDS += [b"the ends alike, not the middle", b"the ends alike, bUt the middle"]
pids = st.sampled_from(PIDS)
iids = st.sampled_from(IIDS)
steps_ms = st.integers(0, 700)
ALL_DUE = 1 << 60


class Known:
    """One iid as the model has it."""

    def __init__(self, iid: bytes, ms: int, seq: int, added_ms: int) -> None:
        self.iid = iid
        self.ms = ms
        self.seq = seq
        self.added_ms = added_ms

    def record(self, pid: bytes) -> tuple[bytes, bytes, int, int, int]:
        return pid, self.iid, self.ms, self.seq, self.added_ms


class Model:
    """What an IDMP map is, without thought for cost: a list for each producer."""

    def __init__(self, duration_ms: int, maxsize: int) -> None:
        self.duration_ms = duration_ms
        self.maxsize = maxsize
        self.lists: dict[bytes, list[Known]] = {}

    def find(self, pid: bytes, iid: bytes, now_ms: int) -> tuple[int, int] | None:
        for known in self.lists.get(pid, []):
            if known.iid == iid and known.added_ms + self.duration_ms > now_ms:
                return known.ms, known.seq
        return None

    def record(self, pid: bytes, known: Known) -> None:
        kept = [other for other in self.lists.get(pid, []) if other.iid != known.iid]
        self.lists[pid] = [*kept, known][-self.maxsize :]

    def expire(self, now_ms: int) -> None:
        """From the front only: one that is younger keeps those behind it."""
        for pid, known in list(self.lists.items()):
            while known and known[0].added_ms + self.duration_ms <= now_ms:
                del known[0]
            if not known:
                del self.lists[pid]

    def records(self) -> list[tuple[bytes, bytes, int, int, int]]:
        return [known.record(pid) for pid, rows in self.lists.items() for known in rows]


def by_producer(
    records: list[tuple[bytes, bytes, int, int, int]],
) -> dict[bytes, list[tuple[bytes, bytes, int, int, int]]]:
    found: dict[bytes, list[tuple[bytes, bytes, int, int, int]]] = {}
    for record in records:
        found.setdefault(record[0], []).append(record)
    return found


class IdmpMachine(RuleBasedStateMachine):
    """A stream's map beside the model; time goes on, and now and then it steps back."""

    @initialize(duration_s=st.integers(1, 3), maxsize=st.integers(1, 9))
    def start(self, duration_s: int, maxsize: int) -> None:
        self.now_ms = 1_000_000
        self.expiring = Expiring()
        self.stream = Stream(duration_s, maxsize)
        self.stream.attach(self.expiring)
        self.model = Model(1000 * duration_s, maxsize)
        self.stepped_back = False

    @rule(pid=pids, iid=iids, seq=st.sampled_from([0, 1, 2**54 - 1, 2**54, 2**63, ID_MAX]))
    def record(self, pid: bytes, iid: bytes, seq: int) -> None:
        self.stream.record_iid(pid, iid, self.now_ms, seq, self.now_ms)
        self.model.record(pid, Known(iid, self.now_ms, seq, self.now_ms))

    @rule(pid=pids, iid=iids, ms=st.sampled_from([0, 1, 999_999, 2**62, 2**63, ID_MAX]))
    def record_with_odd_time(self, pid: bytes, iid: bytes, ms: int) -> None:
        self.stream.record_iid(pid, iid, ms, 7, self.now_ms)
        self.model.record(pid, Known(iid, ms, 7, self.now_ms))

    @rule(pid=pids, iid=iids)
    def find(self, pid: bytes, iid: bytes) -> None:
        found = self.stream.known_id(pid, iid, self.now_ms)
        assert found == self.model.find(pid, iid, self.now_ms)

    @rule(step_ms=steps_ms)
    def time_passes(self, step_ms: int) -> None:
        self.now_ms += step_ms

    @rule(step_ms=st.integers(1, 300))
    def time_steps_back(self, step_ms: int) -> None:
        self.now_ms -= step_ms
        self.stepped_back = True

    @rule(most=st.integers(1, 5))
    def expire(self, most: int) -> None:
        """In slices; then everything that is due by the second is gone."""
        while self.expiring.expire(self.now_ms, most) >= most:
            pass
        if not self.stepped_back:
            self.model.expire(self.now_ms // 1000 * 1000)
            self.compare_up_to_the_second()

    def compare_up_to_the_second(self) -> None:
        """Who is looked at in a second loses all that is due by then; others lose nothing."""
        held = by_producer(list(self.stream.idmp_records()))
        for pid, rows in by_producer(self.model.records()).items():
            left = held.get(pid, [])
            assert left == rows[len(rows) - len(left) :]
            missing = rows[: len(rows) - len(left)]
            assert all(row[4] + self.model.duration_ms <= self.now_ms for row in missing)
        assert held.keys() <= self.model.lists.keys()
        for pid in list(self.model.lists):
            self.model.lists[pid] = [Known(*row[1:]) for row in held.get(pid, [])]
            if not held.get(pid):
                del self.model.lists[pid]

    @rule()
    def everything_expires(self) -> None:
        while self.expiring.expire(ALL_DUE, 3) >= 3:
            pass
        self.model.lists.clear()
        assert list(self.stream.idmp_records()) == []
        assert len(self.expiring) == 0

    @rule()
    def another_takes_over(self) -> None:
        """A copy, or what was restored, goes on in the stream's place; the old one is freed."""
        old = self.stream
        self.stream = old.copy()
        self.stream.attach(self.expiring)
        while not old.free_some(2):
            pass

    @rule()
    def restore(self) -> None:
        records = list(self.stream.idmp_records())
        twin = Stream(self.stream.idmp_duration_s, self.stream.idmp_maxsize)
        for pid, iid, ms, seq, added_ms in records:
            twin.record_iid(pid, iid, ms, seq, added_ms)
        assert list(twin.idmp_records()) == records
        twin.attach(self.expiring)
        while not self.stream.free_some(2):
            pass
        self.stream = twin

    @rule(duration_s=st.integers(1, 3), maxsize=st.integers(1, 9))
    def limits_change(self, duration_s: int, maxsize: int) -> None:
        same = (1000 * duration_s, maxsize) == (self.model.duration_ms, self.model.maxsize)
        old = self.stream.limit_idmp(duration_s, maxsize)
        if old is not None:
            assert not same
            while not old.free_some(1):
                pass
        if not same:
            self.model = Model(1000 * duration_s, maxsize)

    @invariant()
    def agrees(self) -> None:
        records = list(self.stream.idmp_records())
        if not self.stepped_back:
            assert by_producer(records) == by_producer(self.model.records())
        idmp = self.stream.idmp
        if idmp is None:
            assert self.stepped_back or not self.model.lists
            return
        assert idmp.count == len(records)
        assert all(producer.count for producer in idmp.producers.values())
        assert len(self.expiring) == len(idmp.producers)
        for producer in idmp.producers.values():
            rows = list(producer.records())
            assert producer.entry_id(producer.oldest()) == rows[0][1:3]
            assert producer.entry_id(producer.newest()) == rows[-1][1:3]

    @rule()
    def forget_the_step(self) -> None:
        """From here on the model is what there is."""
        self.model.lists.clear()
        for record in self.stream.idmp_records():
            self.model.lists.setdefault(record[0], []).append(Known(*record[1:]))
        self.stepped_back = False


TestIdmpMachine = IdmpMachine.TestCase
TestIdmpMachine.settings = settings(max_examples=60, stateful_step_count=60)


@pytest.mark.parametrize("maxsize", [1, 2, 3, 100, 1000])
def test_the_oldest_leave(maxsize: int) -> None:
    idmp = IdmpMap(1000, maxsize)
    for number in range(3 * maxsize):
        idmp.record(b"p", iid_of(b"%d" % number), number, 0, number)
    assert idmp.count == maxsize
    kept = range(2 * maxsize, 3 * maxsize)
    assert [record[1] for record in idmp.records()] == [b"%d" % number for number in kept]
    for number in range(3 * maxsize):
        found = idmp.find(b"p", iid_of(b"%d" % number), 0)
        assert found == ((number, 0) if number in kept else None)


@pytest.mark.parametrize("seq", [7, 2**22 - 1, 2**22, 2**64 - 1])
@pytest.mark.parametrize("others", [100, 5000])
def test_recorded_again_in_any_order(others: int, seq: int) -> None:
    """What is recorded again leaves a hole; holes are closed and nothing is lost or doubled.

    With few others than fit in the map most are met again in it, with many most when they had left.
    """
    chance = random.Random(3)
    idmp = IdmpMap(100_000, 500)
    expected: dict[bytes, int] = {}
    for number in range(20_000):
        iid = b"%d" % chance.randrange(500 + others)
        found = idmp.find(b"p", iid_of(iid), 0)
        assert found == ((expected[iid], seq) if iid in expected else None)
        idmp.record(b"p", iid_of(iid), number, seq, number)
        expected.pop(iid, None)
        expected[iid] = number
        if len(expected) > 500:
            del expected[next(iter(expected))]
    assert [record[1:3] for record in idmp.records()] == list(expected.items())


@pytest.mark.parametrize("size", [*range(1, 20), 23, 24, 25, 36, 1000])
def test_written_and_read(size: int) -> None:
    """All sizes, and bytes of which the highest bit is set; no two are told to be the same."""
    texts = [bytes([fill]) * size for fill in (0, 1, 127, 128, 255)]
    texts += [bytes((7 * number + start) % 256 for number in range(size)) for start in (0, 130)]
    for text in texts:
        assert text_of(iid_of(text)) == text
        assert 0 <= iid_of(text)[4] < 2**HASH_BITS
    assert len({iid_of(text) for text in texts}) == len(set(texts))
    assert len({iid_of(b"\0" * number) for number in range(1, SHORT_BYTES + 3)}) == SHORT_BYTES + 2


@given(st.lists(st.binary(min_size=1, max_size=3), max_size=400), st.integers(1, 50))
def test_any_iids(words: list[bytes], maxsize: int) -> None:
    idmp = IdmpMap(1000, maxsize)
    known: dict[bytes, int] = {}
    for number, word in enumerate(words):
        assert idmp.find(b"p", iid_of(word), 0) == ((known[word], 0) if word in known else None)
        known.pop(word, None)
        known[word] = number
        if len(known) > maxsize:
            del known[next(iter(known))]
        idmp.record(b"p", iid_of(word), number, 0, number)
    assert [record[1] for record in idmp.records()] == list(known)


def test_expiry_looks_at_nobody_before_it_is_time() -> None:
    expiring = Expiring()
    idmp = IdmpMap(10_000, 100)
    idmp.attach(expiring)
    for number in range(50):
        idmp.record(b"p%d" % number, iid_of(b"i"), 5_000, 0, 5_000)
    assert expiring.expire(14_999, 1000) == 0
    assert expiring.expire(15_000, 1000) == 100  # each producer, and each iid
    assert idmp.count == 0
    assert not idmp.producers


def test_expiry_in_slices() -> None:
    expiring = Expiring()
    idmp = IdmpMap(1000, 1000)
    idmp.attach(expiring)
    for number in range(1000):
        idmp.record(b"p", iid_of(b"%d" % number), number, 0, number)
    slices = 0
    while expiring.expire(1_990, 100) >= 100:
        slices += 1
    assert slices > 8
    assert [record[1] for record in idmp.records()] == [b"%d" % n for n in range(991, 1000)]


def test_a_freed_map_is_not_watched() -> None:
    expiring = Expiring()
    stream = Stream(1, 100)
    stream.attach(expiring)
    for number in range(100):
        stream.record_iid(b"p%d" % number, b"i", 0, 1, 0)
    assert len(expiring) == 100
    while not stream.free_some(10):
        pass
    assert len(expiring) == 0
    assert expiring.expire(ALL_DUE, 10) == 0


def test_nobody_is_left_of_a_stream_that_was_never_in_a_database() -> None:
    stream = Stream(1, 100)
    stream.record_iid(b"p", b"i", 0, 1, 0)
    while not stream.free_some(10):
        pass
    assert list(stream.idmp_records()) == []
