"""What is due next is known, however often it changes, and nothing is done for all in one piece."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Iterator

import pytest

from headrace.storage.collection import SmallLimits
from headrace.storage.due import pair_of
from headrace.storage.entry import PartDeadlines
from headrace.storage.hash.hash import Hash
from headrace.storage.keyspace import Keyspace
from headrace.storage.value import NO_PART, Expiring

MANY = 50_000
LIMITS = SmallLimits(10, 64)
SMALL_SHARE = 1 / 100  # of all steps together: were one of them for all, it would be a tenth


def test_pairs_compare_as_they_are_due() -> None:
    moments = [0, 1, 255, 256, 2**31, 2**32, 2**62, 2**63 - 1]
    pairs = [pair_of(moment, name) for moment in moments for name in (b"", b"\x00", b"a", b"b")]
    assert pairs == sorted(pairs)
    assert pair_of(-5, b"a") == pair_of(0, b"a")


def test_parts_are_due_in_order_whatever_changes() -> None:
    drawn = random.Random(1)
    parts = PartDeadlines()
    known: dict[bytes, int] = {}
    for now_ms in range(20_000):
        key = b"%d" % drawn.randrange(400)
        moment_ms = now_ms + drawn.randrange(1, 3000)
        if drawn.random() < 0.2:
            moment_ms = NO_PART
            known.pop(key, None)
        else:
            known[key] = moment_ms
        parts.watch(key, moment_ms)
        due = None
        while due is None and parts.is_due(now_ms):
            due = parts.next_due(now_ms)
        earliest = min(known.values(), default=now_ms)
        assert (due is not None) == (earliest < now_ms)
        if due is not None:
            assert known.pop(due) == earliest
            parts.watch(due, NO_PART)
        assert parts.pairs.size < 2 * parts.count() + 70
    assert parts.count() == len(known)
    assert all(parts.moment_of(key) == moment_ms for key, moment_ms in known.items())


Step = Callable[[int, int], None]


def of_keys() -> tuple[Step, Callable[[int], int]]:
    db = Keyspace(0, [], [], Expiring())
    for number in range(MANY):
        db.put(b"%d" % number, 0, 0)

    def change(number: int, moment_ms: int) -> None:
        db.expire_at(b"%d" % number, moment_ms)

    return change, lambda now_ms: db.expire_due(now_ms, 100)


def of_fields() -> tuple[Step, Callable[[int], int]]:
    value = Hash()
    for number in range(MANY):
        value.put(b"%d" % number, b"v", LIMITS)
    timed = value.be_timed()

    def change(number: int, moment_ms: int) -> None:
        timed.expire_at(b"%d" % number, moment_ms)
        assert 0 < value.first_ms() <= moment_ms

    def expire(now_ms: int) -> int:
        found = len(timed.take_due(now_ms, 100))
        return found + (0 < value.first_ms() < now_ms)

    return change, expire


def of_hashes() -> tuple[Step, Callable[[int], int]]:
    parts = PartDeadlines()

    def change(number: int, moment_ms: int) -> None:
        parts.watch(b"%d" % number, moment_ms)

    def expire(now_ms: int) -> int:
        key = parts.next_due(now_ms)
        if key is not None:
            parts.watch(key, NO_PART)
        return int(parts.is_due(now_ms))

    return change, expire


def steps(change: Step, expire: Callable[[int], int]) -> Iterator[float]:
    """Return how long each takes: all are put off, again and again, the first in the order last."""
    for turn in range(1, 5):
        for number in reversed(range(MANY)):
            started = time.thread_time()
            change(number, turn * 1_000_000 + number)
            yield time.thread_time() - started
    while True:
        started = time.thread_time()
        more = expire(9_000_000)
        yield time.thread_time() - started
        if not more:
            break


@pytest.mark.once
@pytest.mark.parametrize("make", [of_keys, of_fields, of_hashes])
def test_no_step_is_long(make: Callable[[], tuple[Step, Callable[[int], int]]]) -> None:
    gc.disable()
    try:
        for _ in range(3):  # a busy machine may make a step look long
            taken = list(steps(*make()))
            if max(taken) < SMALL_SHARE * sum(taken):
                return
    finally:
        gc.enable()
    pytest.fail(f"a step of {max(taken) * 1000:.1f} ms of {sum(taken) * 1000:.1f} ms")


def longest_of(change: Step) -> float:
    """Return how long the longest step takes while there become many."""
    longest = 0.0
    for number in range(200_000):
        started = time.thread_time()
        change(number, number * 7919 % 1_000_003 + 1)
        longest = max(longest, time.thread_time() - started)
    return longest


@pytest.mark.once
def test_no_step_is_long_while_they_become_many() -> None:
    """As one of a dict is, which moves all that it has at once, and takes twenty times as long."""
    all_at_once: dict[bytes, int] = {}

    def put(number: int, moment_ms: int) -> None:
        all_at_once[b"%d" % number] = moment_ms

    gc.disable()
    try:
        for _ in range(3):  # a busy machine may make a step look long
            longest = longest_of(of_hashes()[0])
            all_at_once.clear()
            of_dict = longest_of(put)
            if longest < of_dict / 4:
                return
    finally:
        gc.enable()
    pytest.fail(f"a step of {longest * 1000:.1f} ms, of a dict {of_dict * 1000:.1f} ms")
