"""Waiting for what a consumer group has to give, as its readers do.

An entry goes to one reader only. So readers are served one by one, while the group has an entry
that it has not given to anybody, or one that has been idle for as long as a reader with CLAIM asks
for. Where the stream or the group is missing, the next reader is run as well, and gets the error.

Time alone makes pending entries old enough to be claimed, so there is an alarm for each idle time
that readers ask for. What is delivered from now on is younger than what is pending, but XCLAIM can
make it older. While nothing is pending, no alarm is needed: whatever becomes pending while somebody
waits makes the key ready.
"""

from __future__ import annotations

from typing import Final

from headrace.server.waiting.arrivals import Arrivals
from headrace.server.waiting.blocking import Blocking
from headrace.server.waiting.waiters import Alarm, ExclusiveLine, Interest, Line, Queue, Waiter
from headrace.storage.stream.delivery import claimable_since, has_new
from headrace.storage.stream.groups import HERE, NEVER, Group
from headrace.storage.stream.stream import Stream


class EntryForGroup(Interest):
    """An entry for a consumer of a group.

    Args:
        claim_ms: how long pending entries must be idle to be given; negative is never.
    """

    def __init__(self, group: bytes, consumer: bytes, claim_ms: int) -> None:
        super().__init__(_line_name(group), True)
        self.group: Final = group
        self.consumer: Final = consumer
        self.claim_ms: Final = claim_ms

    def new_line(self, queue: Queue) -> Line:
        """A line at a key where nobody waits for this yet."""
        return GroupReaders(queue, self)


class GroupReaders(ExclusiveLine):
    """Those who read for one group at one key."""

    def __init__(self, queue: Queue, interest: EntryForGroup) -> None:
        super().__init__(queue, interest)
        self._group: Final = interest.group
        self._arrivals: Final = Arrivals()
        self._claimers: dict[int, Arrivals] | None = None  # by the idle time they ask for
        self._alarms: dict[int, Alarm] = {}  # for such an idle time
        self._alarmed_ms = 0  # the time of delivery they are set for; never a later one

    def add(self, waiter: Waiter, number: int) -> None:
        """Let a waiter stand at the end."""
        self._arrivals.add(waiter)
        claim_ms = _interest(waiter).claim_ms
        if claim_ms >= 0:
            if self._claimers is None:
                self._claimers = {}
            same = self._claimers.get(claim_ms)
            if same is None:
                same = self._claimers[claim_ms] = Arrivals()
            same.add(waiter)

    def remove(self, waiter: Waiter, number: int) -> None:
        """Let a waiter go, if it stands here."""
        if not self._arrivals.remove(waiter) or self._claimers is None:
            return
        claim_ms = _interest(waiter).claim_ms
        if claim_ms >= 0:
            same = self._claimers[claim_ms]
            same.remove(waiter)
            if not same.waiters:
                del self._claimers[claim_ms]
                alarm = self._alarms.pop(claim_ms, None)
                if alarm is not None:
                    alarm.is_set = False

    def is_empty(self) -> bool:
        """Whether nobody waits."""
        return not self._arrivals.waiters

    def waiters(self) -> list[Waiter]:
        """All of them."""
        return list(self._arrivals.waiters.values())

    def consumers(self) -> set[bytes]:
        """As whom they read. Complexity: O(waiters)."""
        return {_interest(waiter).consumer for waiter in self._arrivals.waiters.values()}

    def next(self, value: object | None, now_ms: int) -> Waiter | None:
        """Who is to be served next; None when the group has nothing to give."""
        stream = value if isinstance(value, Stream) else None
        group = None if stream is None else stream.groups.get(self._group)
        if stream is None or group is None or has_new(stream, group):
            return self._arrivals.first()
        if group.places is not None and group.places.elsewhere(stream) != HERE:
            return self._arrivals.first()  # it is answered so
        if not self._claimers:
            return None
        since_ms = claimable_since(stream, group)
        return None if since_ms == NEVER else self._first_claimer(now_ms - since_ms)

    def _first_claimer(self, idle_ms: int) -> Waiter | None:
        """Who came first of those that take what has been idle for ``idle_ms``."""
        found: Waiter | None = None
        if self._claimers is not None:
            for claim_ms, same in self._claimers.items():
                if claim_ms <= idle_ms:
                    waiter = same.first()
                    if waiter is not None and (found is None or waiter.ticket < found.ticket):
                        found = waiter
        return found

    def ripens(self) -> bool:
        """Whether somebody waits for what is pending to be old enough to be claimed."""
        return bool(self._claimers)

    def new_alarms(self, value: object | None, now_ms: int) -> list[Alarm]:
        """Alarms for those who claim and have none, or need an earlier one."""
        found: list[Alarm] = []
        group = value.groups.get(self._group) if isinstance(value, Stream) else None
        if self._claimers is None or not isinstance(value, Stream) or group is None:
            return found
        since_ms = claimable_since(value, group)
        if since_ms == NEVER:
            return found
        earlier = since_ms < self._alarmed_ms
        if not earlier and len(self._alarms) == len(self._claimers):
            return found
        self._alarmed_ms = since_ms
        for claim_ms in self._claimers:
            alarm = self._alarms.get(claim_ms)
            moment_ms = max(since_ms + claim_ms, now_ms + 1)
            if alarm is None or (earlier and moment_ms < alarm.moment_ms):
                if alarm is not None:
                    alarm.is_set = False
                alarm = self._alarms[claim_ms] = Alarm(self, claim_ms, moment_ms)
                found.append(alarm)
        return found

    def rang(self, alarm: Alarm) -> None:
        """One of the alarms has come, and is not set any more."""
        del self._alarms[alarm.number]


def group_readers(blocking: Blocking, db: int, key: bytes, group: Group) -> GroupReaders | None:
    """The readers who wait for a group of the stream at a key, if there are any."""
    line = blocking.line(db, key, _line_name(group.name))
    return line if isinstance(line, GroupReaders) else None


def _line_name(group: bytes) -> bytes:
    """Each group has a line of its own."""
    return b"group " + group


def _interest(waiter: Waiter) -> EntryForGroup:
    interest = waiter.parked.interest
    assert isinstance(interest, EntryForGroup)
    return interest
