"""Streams that change in any way while a query reads them; a model knows what is lost."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from support.client import RawClient
from support.process import Process
from support.spark_query import Query

pytestmark = pytest.mark.once

Step = tuple[str, int]
Steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(1, 25)),
        st.tuples(st.just("trim"), st.integers(0, 30)),
        st.tuples(st.just("delete"), st.integers(1, 5)),
        st.tuples(st.just("batch"), st.integers(0, 12)),
        st.tuples(st.just("restart"), st.just(0)),
        st.tuples(st.just("anew"), st.integers(-60, 30)),
        st.tuples(st.just("keep"), st.just(0)),
        st.tuples(st.just("put back"), st.just(0)),
    ),
    min_size=1,
    max_size=14,
)


class Model:
    """The stream as it is, every entry with a value of its own.

    Attributes:
        there: the ID and the value of every entry.
        last, top: the last ID; the last ID that ever was.
        added, removed: as the server counts.
        seen_added, seen_removed: what they were when the query last looked.
        new: whether it was made anew since.
        replaced, deleted: whether the stream was ever replaced, or entries deleted by name.
    """

    def __init__(self, client: RawClient) -> None:
        self.client = client
        self.there: dict[int, str] = {}
        self.last = 0
        self.top = 0
        self.number = 0
        self.added = self.removed = self.seen_added = self.seen_removed = 0
        self.new = False
        self.replaced = False
        self.deleted = False
        self.kept: tuple[bytes, dict[int, str], tuple[int, int, int]] | None = None

    def add(self, count: int) -> None:
        for _ in range(count):
            self.last += 1
            self.number += 1
            self.added += 1
            self.there[self.last] = f"n{self.number}"
            self.client.call("XADD", "s", f"{self.last}-1", "f", self.there[self.last])
        self.top = max(self.top, self.last)

    def trim(self, length: int) -> set[str]:
        gone = sorted(self.there)[: max(0, len(self.there) - length)]
        self.client.call("XTRIM", "s", "MAXLEN", length)
        self.removed += len(gone)
        return {self.there.pop(each) for each in gone}

    def delete(self, count: int) -> None:
        """By name: some in the middle, so that an older one lives."""
        for each in sorted(self.there)[1 : 1 + 2 * count : 2]:
            self.client.call("XDEL", "s", f"{each}-1")
            self.deleted = True
            self.removed += 1
            del self.there[each]

    def anew(self, offset: int) -> set[str]:
        gone = set(self.there.values())
        self.client.call("DEL", "s")
        self.there = {}
        self.last = max(0, self.last + offset)
        self.replaced = self.new = True
        self.added = self.removed = 0
        self.kept = None  # of another stream: put back, it would be one more new one
        self.add(3)
        return gone

    def keep(self) -> None:
        payload = self.client.call_parsed("DUMP", "s")
        if isinstance(payload, bytes):
            self.kept = payload, dict(self.there), (self.last, self.added, self.removed)

    def put_back(self) -> set[str]:
        """Later entries have IDs above all that ever were, as clocks see to it."""
        if self.kept is None:
            return set()
        payload, there, (self.last, self.added, self.removed) = self.kept
        gone = set(self.there.values()) - set(there.values())
        self.there = dict(there)
        assert self.client.call_parsed("RESTORE", "s", 0, payload, "REPLACE") == b"OK"
        self.last = max(self.last, self.top)
        self.replaced = True
        return gone

    def first(self) -> str:
        """The value of the first entry."""
        return self.there[min(self.there)] if self.there else ""

    def look(self, counted: bool) -> None:
        """Remember what a look tells; not if the counters happen to hide that it was replaced.

        Args:
            counted: whether the server counts ranges.
        """
        hidden = self.removed >= self.seen_added if counted else self.removed > self.seen_removed
        assume(not (self.new and hidden))
        self.seen_added, self.seen_removed, self.new = self.added, self.removed, False


@pytest.fixture
def live(every_server: Process) -> Process:
    """Each server in turn."""
    return every_server


class Told(logging.Handler):
    """What was logged."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


@pytest.fixture
def told() -> Iterator[Told]:
    handler = Told()
    logging.getLogger("pyspark_headrace").addHandler(handler)
    yield handler
    logging.getLogger("pyspark_headrace").removeHandler(handler)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=Steps, parts=st.integers(1, 3))
def test_never_in_silence_and_nothing_twice(
    live: Process, told: Told, steps: list[Step], parts: int
) -> None:
    options = {"failOnDataLoss": "false", "minPartitions": parts, "startingOffsets": "earliest"}
    told.texts.clear()
    with live.client() as client, ExitStack() as ending:
        client.call("DEL", "s")
        model = Model(client)
        model.add(1)
        query = Query(live, **options)
        ending.callback(query.close)
        counted = query.server.offers_ranks()
        model.look(counted)
        lost: set[str] = set()
        unseen: set[str] = set()  # what came and went since the last look
        back: set[str] = set()
        unknown: set[str] = set()  # came back, and nothing tells that they had been there
        seen = set(model.there.values())
        first = model.first()
        is_back = False  # an earlier state was put back since the last look
        for what, number in steps:
            gone: set[str] = set()
            if what == "add":
                model.add(number)
            elif what == "trim":
                gone = model.trim(number)
                if is_back and first not in model.there.values():
                    unknown |= set(model.there.values())
            elif what == "delete":
                model.delete(number)
            elif what == "anew":
                gone = model.anew(number)
            elif what == "keep":
                model.keep()
            elif what == "put back":
                # What nobody saw, nobody misses: the counters are set back with the entries.
                if model.kept is not None:
                    lost -= unseen
                    # Entries that were deleted by name are back, and taken for read.
                    back |= set(model.kept[1].values()) - set(model.there.values())
                    if first not in model.kept[1].values():
                        unknown |= set(model.kept[1].values())
                    is_back = True
                gone = model.put_back() & seen
            elif what == "restart":
                before = query
                query = Query(live, before.checkpoint, **options)
                ending.callback(query.close)
                query.read, query.values = before.read, before.values
            else:
                model.look(counted)
                query.step(number)
                seen = set(model.there.values())
                first = model.first()
                is_back = False
                unseen.clear()
            unseen |= gone - seen
            lost |= gone - set(query.values.get("s", []))
        model.look(counted)
        query.run(11)
        values = query.values.get("s", [])
        told_of = [text for text in told.texts if "reading on" in text]
        twice = [each for each in values if values.count(each) > 1 and each not in unknown]
        assert not twice, "something was read twice"
        # What was told as lost may have come back.
        missing = set(model.there.values()) - set(values) - lost - back
        assert not missing, "something that is there was not read"
        lost -= set(values)
        if lost - unknown:
            assert told_of, "in silence"
        if not lost and not model.replaced and not model.deleted:
            assert not told_of, "a false alarm"
