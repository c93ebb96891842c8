"""The rules of one group: which of its entries may go out now, and if not, when or after what.

An entry that was looked at and may not go out yet is *set aside*: it is pending in its group,
without a consumer and with no delivery counted, so that it is in every file and at every replica.
Its ``delivery_ms`` is the moment from which on it may go out, which also is its place in the
group's order by time: that order is the heap of all that is to come. An entry that is to be tried
again later stands there in the same way, with the deliveries it has had. One that waits for another
with the same value of the ``order-key`` is ``HELD``.

What can be found again from that and from the entries themselves is kept beside it, for speed:

- ``ready``: a heap of IDs that may go out now, or could when they were put there; ``late``: those
  that a consumer has not acknowledged in time.
- ``lines``: for each value of the order key the number of entries that are out, ready, delayed or
  to be tried again (one, while the policy stands), and behind it those that are held, in order.
- ``kept``: by consumer, those not acknowledged in time while a connection holds its name
  (``keep-alive``).

``derive`` finds it, after a start, a change of policies, or what else ``reset`` is called for.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from typing import Final, NamedTuple

from headrace.policies.policy import Policy, value_of
from headrace.server.clients.session import Session
from headrace.storage.stream.entry_log import EntryLog
from headrace.storage.stream.groups import UNLIMITED, Group, Rules, has_unread
from headrace.storage.stream.pel import HELD, Nack
from headrace.storage.stream.run import Run, is_below
from headrace.storage.stream.stream import Stream

ID = tuple[int, int]
LATE_COUNTED: Final = 10_000
DUE_FEW: Final = 64  # entries that come due together
NO_ROW: Final[list[bytes]] = []


class Note(NamedTuple):
    """Keeps what dead letters say of an entry, and no pending entry has a place for.

    Attributes:
        first_ms, last_ms: when it was delivered first and last, 0 if not known.
        redrives: how often it was put back.
        consumer: who held it last; empty if not known.
    """

    first_ms: int
    last_ms: int
    redrives: int
    consumer: bytes


UNKNOWN_NOTE: Final = Note(0, 0, 0, b"")


class Holder:
    """The connections that hold the name of one consumer: they have read under it, and are open.

    Attributes:
        since_ms: since when connections have held it, with no gap longer than the grace.
        left_ms: when the last of them was found closed; 0 while there is one.
    """

    def __init__(self, since_ms: int) -> None:
        self.sessions: Final[dict[int, Session]] = {}
        self.since_ms = since_ms
        self.left_ms = 0

    def is_left(self) -> bool:
        """Return whether no connection is open any more; closed ones are forgotten."""
        for number in [each for each, session in self.sessions.items() if session.closed]:
            del self.sessions[number]
        return not self.sessions


class Acked:
    """Keeps what the groups of a stream have acknowledged lately, because it may have to go.

    Attributes:
        scope: of the stream.
        places: since the last look at the stream; is_dirty: the next one is asked for.
    """

    def __init__(self, scope: tuple[int, bytes, bytes | None], dirty: list[Acked]) -> None:
        self.scope: Final = scope
        self.places: list[ID] = []
        self.is_dirty = False
        self._dirty: Final = dirty

    def touch(self) -> None:
        """Have the stream looked at."""
        if not self.is_dirty:
            self.is_dirty = True
            self._dirty.append(self)


class Line:
    """The entries with one value of the order key: how many are on their way, and which wait."""

    def __init__(self) -> None:
        self.busy = 0
        self.waiting: deque[Nack] | None = None

    def wait(self, nack: Nack) -> None:
        """Put an entry behind all others."""
        if self.waiting is None:
            self.waiting = deque()
        self.waiting.append(nack)


class GroupRules(Rules):
    """The rules of a group.

    Args:
        policy: what holds for it; db, key: where its stream is; version: of the book.
        notes: of its entries; blocked: values of the order key that are held by hand, or by a dead
            entry; acked: takes what is acknowledged, where that is to go.

    Attributes:
        stale: all is to be derived anew.
        held, delayed, backing, due: how many pending entries wait for another one, for their
            moment, or to be tried again, and for how many that has come.
        overdue: those that consumers have not acknowledged in time.
        dying: those whose dead letter could not be written, with the reason of their death, and
            how often they were delivered.
        dead_lettered, expired: how many entries of the group were, since the start.
        changed: other policies held before.
        is_here: the group was read in this region when it was attended last.
        scans_on: there are new entries that a request has not come to.
        holders: the connections that hold each consumer's name, by that name; before ``known_ms``
            there may have been others.
        used_ms: when the group was last used, 0 if that is not known.
    """

    def __init__(
        self,
        policy: Policy,
        db: int,
        key: bytes,
        version: int,
        notes: dict[ID, Note],
        blocked: set[bytes],
        acked: Acked | None,
    ) -> None:
        super().__init__()
        self.policy: Final = policy
        self.keeps_order = policy.order_key != b""
        self.db: Final = db
        self.key: Final = key
        self.version = version
        self.notes: Final = notes
        self.blocked: Final = blocked
        self.acked: Final = acked
        self.holders: dict[bytes, Holder] = {}
        self.known_ms = 0
        self.used_ms = 0
        self.kept: dict[bytes, deque[ID]] = {}
        self.stale = True
        self.held = 0
        self.delayed = 0
        self.backing = 0
        self.due = 0
        self.overdue: set[ID] = set()
        self.dying: dict[ID, tuple[bytes, int]] = {}
        self.ready: list[ID] = []
        self.late: list[ID] = []
        self.lines: dict[bytes, Line] = {}
        self.values: dict[ID, bytes] = {}  # of those that are on their way
        self.freed: list[bytes] = []  # values whose next entry is to be found
        self.seen_ms = 0  # moments up to here have been seen to
        self.waited_ms = 0  # deliveries up to here have been waited for long enough
        self.scans_on = False
        self.changed = False
        self.is_here = True
        self.dead_lettered = 0
        self.expired = 0
        self._counts = True

    def take_over(self, former: GroupRules) -> None:
        """Go on with what former rules of the group have counted, and have not ended."""
        self.dead_lettered = former.dead_lettered
        self.expired = former.expired
        self.dying = former.dying
        self.used_ms = former.used_ms
        if former.policy.keeps_alive and (former.db, former.key) == (self.db, self.key):
            self.holders = former.holders
            self.known_ms = former.known_ms
        self.changed = True

    def acts_by_itself(self) -> bool:
        """Return whether something happens in time though no client reads."""
        policy = self.policy
        gives_up = policy.ack_wait_ms > 0 and (policy.delivery_limit > 0 or policy.delays_all)
        return gives_up or bool(self.dying)

    def hold(self, value: bytes) -> None:
        """Hold what has this value of the order key."""
        if value not in self.blocked:
            self.blocked.add(value)
            line = self.lines.get(value)
            if line is None:
                line = self.lines[value] = Line()
            line.busy += 1

    # As core asks

    def room(self, group: Group) -> int:
        policy = self.policy
        if policy.looks or policy.pause_until_ms > self.seen_ms:
            return 0
        most = policy.max_pending or group.max_pending
        if not most:
            return UNLIMITED
        return max(0, most - group.pel.size + self.held + self.delayed + self.backing)

    def room_for_more(self, group: Group) -> int:
        """Return how many more entries consumers may hold by ``max-pending``."""
        most = self.policy.max_pending or group.max_pending
        return max(0, most - group.pel.size + group.zone) if most else UNLIMITED

    def has_room_for(self, group: Group, consumer: bytes) -> bool:
        most = self.policy.max_per_consumer
        if not most:
            return True
        found = group.consumers.get(consumer)
        return found is None or found.pel.size < most

    def is_late(self, group: Group, consumer: bytes, now_ms: int) -> bool:
        found = group.consumers.get(consumer)
        wait_ms = self.policy.ack_wait_ms
        if found is None or not wait_ms or not found.pel.size:
            return False
        nacks = found.pel.from_id(0, 0, 0)
        return any(self.is_ready(nack, now_ms) for nack in nacks)

    def delivered_before(self, nack: Nack) -> None:
        self.waited_ms = min(self.waited_ms, int(nack.delivery_ms) - 1)

    def window_left(self) -> int:
        """Return how many more entries may be set aside."""
        return max(0, self.policy.window - self.held - self.delayed - self.backing)

    def may_give(self, log: EntryLog, group: Group, now_ms: int) -> bool:
        policy = self.policy
        if policy.pause_until_ms > now_ms:
            return False
        if self.stale or self.freed or policy.pause_until_ms > self.seen_ms:
            return True
        if self.late or self._left(now_ms):
            return True
        if self.room_for_more(group) == 0:
            return self._expired(group, now_ms)
        if self.ready or self._expired(group, now_ms):
            return True
        if policy.looks and has_unread(log, group) and self.window_left():
            return True
        return any(
            nack.consumer is None for nack in group.by_time.from_time(self.seen_ms, now_ms, 0)
        )

    def _expired(self, group: Group, now_ms: int) -> bool:
        """Return whether a consumer has not acknowledged an entry in time."""
        wait_ms = self.policy.ack_wait_ms
        if not wait_ms:
            return False
        late = group.by_time.from_time(self.waited_ms, now_ms - wait_ms, 0)
        return any(nack.consumer is not None for nack in late)

    def next_ms(self, group: Group, now_ms: int) -> int:
        policy = self.policy
        if policy.pause_until_ms > now_ms:
            return policy.pause_until_ms
        if self.scans_on or self.stale:
            return now_ms + 1
        found = self._leaving_ms()
        coming = group.by_time.from_time(max(self.seen_ms, now_ms), HELD - 1, 1)
        for nack in coming:
            if nack.consumer is None:
                found = min(found, int(nack.order_ms)) if found else int(nack.order_ms)
                break
        if policy.ack_wait_ms:
            delivered_ms = self._delivered_first(group, now_ms)
            if delivered_ms:
                moment_ms = delivered_ms + policy.ack_wait_ms
                return min(found, moment_ms) if found else moment_ms
        return found

    def _delivered_first(self, group: Group, now_ms: int) -> int:
        """Return when the first was delivered that is not waited for yet; 0: there is none."""
        most = 64
        while True:
            some = group.by_time.from_time(self.waited_ms, now_ms, most)
            for nack in some:
                if nack.consumer is not None:
                    return int(nack.order_ms)
            if len(some) < most:
                return 0
            most *= 8

    def backing_off(self) -> int:
        """Return how many entries are to be tried again later, without those that are dying."""
        return max(0, self.backing - len(self.dying))

    def leaves(self, nack: Nack, dropped: bool) -> None:
        if nack.consumer is not None:
            if self.overdue:
                self.overdue.discard((nack.ms, nack.seq))
            if self.policy.dead_letter_key and not dropped:
                self.note(nack)
        elif self._counts:
            self._count(nack, -1)
        if dropped:
            place = (nack.ms, nack.seq)
            value = self.values.pop(place, None)
            if value is not None:
                line = self.lines[value]
                line.busy -= 1
                if line.waiting is None and not line.busy:
                    del self.lines[value]
                else:
                    self.freed.append(value)
            if self.notes:
                self.notes.pop(place, None)
            if self.dying:
                self.dying.pop(place, None)
            if self.acked is not None:
                self.acked.places.append(place)
                self.acked.touch()

    def moment_ms(self, log: EntryLog, nack: Nack) -> int:
        if nack.delivery_ms == HELD:  # for what it waits is found again; 1 is of what was put back
            return max(2, self.policy.due_ms(row_of(log, nack.ms, nack.seq), nack.ms))
        return max(0, int(nack.delivery_ms))

    def reset(self) -> None:
        self.stale = True

    def note(self, nack: Nack) -> Note:
        """Note who holds an entry, and since when; return the note."""
        assert nack.consumer is not None
        place = (nack.ms, nack.seq)
        last_ms = int(nack.delivery_ms)
        former = self.notes.get(place, UNKNOWN_NOTE)
        first_ms = former.first_ms or (last_ms if nack.count < 2 else 0)
        note = Note(first_ms, last_ms, former.redrives, nack.consumer.name)
        self.notes[place] = note
        return note

    # Consumers whose names are held

    def is_there(self, consumer: bytes, since_ms: int, now_ms: int) -> bool:
        """Return whether a consumer has been there since a moment, by ``keep-alive``."""
        if not self.policy.keeps_alive:
            return False
        holder = self.holders.get(consumer)
        if holder is None:  # it may come back, after a start
            return since_ms <= self.known_ms and now_ms < self.known_ms + self.policy.grace_ms
        left_ms = holder.left_ms
        return since_ms >= holder.since_ms and (
            not left_ms or now_ms < left_ms + self.policy.grace_ms
        )

    def is_kept(self, nack: Nack, now_ms: int) -> bool:
        """Return whether the idle time of a pending entry does not count."""
        holder = nack.consumer
        return holder is not None and self.is_there(holder.name, int(nack.delivery_ms), now_ms)

    def held_by(self, consumer: bytes, session: Session, now_ms: int) -> bool:
        """Note that a connection holds a name; return whether no one was known to hold it."""
        holder = self.holders.get(consumer)
        is_new = holder is None
        if holder is None:
            goes_on = now_ms < self.known_ms + self.policy.grace_ms
            holder = self.holders[consumer] = Holder(0 if goes_on else now_ms)
        elif holder.left_ms:
            if now_ms >= holder.left_ms + self.policy.grace_ms:
                holder.since_ms = now_ms
            holder.left_ms = 0
        holder.sessions[session.id] = session
        return is_new

    def _left(self, now_ms: int) -> bool:
        """Return whether the idle time of an entry counts again that did not."""
        return bool(self.kept) and 0 < self._leaving_ms() <= now_ms

    def _leaving_ms(self) -> int:
        """Return when the idle times of a consumer that has left count again; 0: none has."""
        moments: list[int] = []
        for name in self.kept:
            holder = self.holders.get(name)
            left_ms = self.known_ms if holder is None else holder.left_ms
            if left_ms:
                moments.append(left_ms + self.policy.grace_ms)
        return min(moments) if moments else 0

    def keep(self, nack: Nack) -> None:
        """Note an entry that was not acknowledged in time, but whose consumer is there."""
        assert nack.consumer is not None
        name = nack.consumer.name
        if name not in self.kept:
            self.kept[name] = deque()
        self.kept[name].append((nack.ms, nack.seq))

    def kept_no_more(self, group: Group, now_ms: int) -> list[Nack]:
        """Return those whose consumers have left since they were not acknowledged in time."""
        found: list[Nack] = []
        for name in list(self.kept):
            places = self.kept[name]
            while places:
                nack = group.pel.get(places[0][0], places[0][1])
                if nack is not None and nack.consumer is not None and nack.consumer.name == name:
                    if self.is_kept(nack, now_ms):
                        break
                    if self.is_ready(nack, now_ms):
                        found.append(nack)
                places.popleft()
            if not places:
                del self.kept[name]
        return found

    # Pending entries without a consumer

    def _count(self, nack: Nack, change: int) -> None:
        if not nack.delivery_ms:
            return
        if not nack.count:
            self.undelivered += change
        if nack.delivery_ms == HELD:
            self.held += change
        elif nack.delivery_ms > self.seen_ms:
            if nack.count:
                self.backing += change
            else:
                self.delayed += change
        else:
            self.due += change

    def place(self, group: Group, nack: Nack, until_ms: int) -> None:
        """Let an entry go out again from a moment on; it loses its consumer."""
        group.release(nack, until_ms)
        self.enters(nack)

    def enters(self, nack: Nack) -> None:
        """Count an entry that has just lost its consumer, or never had one."""
        self._count(nack, 1)
        if 0 < nack.delivery_ms <= self.seen_ms:
            heappush(self.ready, (nack.ms, nack.seq))

    def set_aside(
        self, stream: Stream, group: Group, ms: int, seq: int, row: list[bytes], now_ms: int
    ) -> Nack | None:
        """Make an entry that was never given pending, ready or not; None where it is pending."""
        found = group.pel.get(ms, seq)
        if found is not None:
            if found.consumer is None or not _has_namesakes(stream, group, ms, seq):
                return None
            found.count = 0  # another region has given its ID to another entry: it goes out anew
            self.place(group, found, now_ms)
            return found
        until_ms = self._entry_until(ms, seq, row, now_ms)
        nack = group.add_pending(ms, seq, None, until_ms)
        nack.count = 0
        if until_ms == HELD:
            value = self.policy.order_of(row)
            assert value is not None
            self.lines[value].wait(nack)
        self.enters(nack)
        return nack

    def _entry_until(self, ms: int, seq: int, row: list[bytes], now_ms: int) -> int:
        """Return when an entry may go out, and put it on its way if nothing is before it."""
        policy = self.policy
        value = policy.order_of(row)
        if value is not None:
            line = self.lines.get(value)
            if line is None:
                line = self.lines[value] = Line()
            if line.busy or line.waiting:
                return HELD
            self._occupy(line, value, (ms, seq))
        return max(policy.due_ms(row, ms), now_ms)

    def goes_at_once(self, group: Group, run: Run, number: int, now_ms: int) -> bool:
        """Return whether a new entry may go out as it is; then its value is on its way."""
        policy = self.policy
        ms, seq = run.ms[number], run.seq[number]
        last = group.pel.last()
        if last is not None and not is_below(last.ms, last.seq, ms, seq):
            return False
        waits = policy.deliver_at_field or policy.deliver_delay_ms
        if waits and policy.due_ms(run.row(number), ms) > now_ms:
            return False
        if not policy.order_key:
            return True
        value = value_in(run, number, policy.order_key)
        if value is None:
            return True
        if value in self.lines:
            return False
        line = self.lines[value] = Line()
        line.busy = 1
        self.values[ms, seq] = value
        return True

    def _occupy(self, line: Line, value: bytes, place: ID) -> None:
        if place not in self.values:
            line.busy += 1
            self.values[place] = value

    # Time

    def free_lines(self, stream: Stream, group: Group, now_ms: int) -> None:
        """Let the next entries of the values go out whose former ones have gone."""
        while self.freed:
            value = self.freed.pop()
            line = self.lines.get(value)
            if line is not None:
                self._advance(stream, group, value, line, now_ms)

    def _advance(self, stream: Stream, group: Group, value: bytes, line: Line, now_ms: int) -> None:
        waiting = line.waiting
        while waiting and line.busy <= 0:
            nack = waiting.popleft()
            if nack.delivery_ms != HELD or group.pel.get(nack.ms, nack.seq) is not nack:
                continue
            row = row_of(stream, nack.ms, nack.seq)
            self._occupy(line, value, (nack.ms, nack.seq))
            self.place(group, nack, max(self.policy.due_ms(row, nack.ms), now_ms))
        if line.busy <= 0 and not waiting:
            del self.lines[value]

    def catch_up(self, stream: Stream, group: Group, now_ms: int) -> None:
        """See to what time and other commands have brought, or find everything anew."""
        if self.stale or now_ms < self.seen_ms:
            self.derive(stream, group, now_ms)
        self.see_to(group, now_ms)
        self.free_lines(stream, group, now_ms)

    def see_to(self, group: Group, now_ms: int) -> None:
        """Make ready what was to go out by now."""
        if now_ms <= self.seen_ms:
            return
        if not self.delayed and not self.backing:
            self.seen_ms = now_ms
            return
        due: list[ID] = []
        for nack in group.by_time.from_time(self.seen_ms, now_ms, 0):
            if nack.consumer is not None:
                continue
            if nack.count:
                self.backing -= 1
            else:
                self.delayed -= 1
            due.append((nack.ms, nack.seq))
        self.seen_ms = now_ms
        self.due += len(due)
        if len(due) < DUE_FEW:
            for place in due:
                heappush(self.ready, place)
        else:  # what is in order is a heap, and two that are in order are soon one
            due.sort()
            self.ready.sort()
            self.ready += due
            self.ready.sort()

    def count_ready(self, group: Group, now_ms: int) -> int:
        """Return how many pending entries may go out now.

        Of those that have become late since the last request to read, ``LATE_COUNTED`` count.
        """
        ready = self.due + len(self.overdue)
        policy = self.policy
        if policy.redelivers:  # also what was released without a moment
            ready += group.zone - self.held - self.delayed - self.backing - self.due
        if not policy.ack_wait_ms:
            return ready
        late_ms = now_ms - policy.ack_wait_ms
        some = group.by_time.from_time(self.waited_ms, late_ms, LATE_COUNTED)
        late = {(nack.ms, nack.seq) for nack in some if self._is_late(nack, now_ms)}
        for places in self.kept.values():  # whose consumers may have left
            for place in places:
                nack = group.pel.get(place[0], place[1])
                if nack is not None and self._is_late(nack, now_ms):
                    late.add(place)
        return ready + len(late - self.overdue)

    def _is_late(self, nack: Nack, now_ms: int) -> bool:
        return nack.consumer is not None and self.is_ready(nack, now_ms)

    def not_in_time(self, group: Group, now_ms: int) -> list[Nack]:
        """Return those that consumers have not acknowledged in time, each of them once."""
        wait_ms = self.policy.ack_wait_ms
        if not wait_ms or now_ms - wait_ms <= self.waited_ms:
            return []
        found = group.by_time.from_time(self.waited_ms, now_ms - wait_ms, 0)
        self.waited_ms = now_ms - wait_ms
        return [nack for nack in found if nack.consumer is not None]

    def next_ready(self, group: Group, now_ms: int, only_late: bool) -> Nack | None:
        """Take the pending entry with the lowest ID that may go out now; None: there is none.

        ``only_late``: those that no consumer holds stay.
        """
        while self.late or (self.ready and not only_late):
            late_first = bool(self.late) and (
                only_late or not self.ready or self.late[0] < self.ready[0]
            )
            ms, seq = heappop(self.late if late_first else self.ready)
            nack = group.pel.get(ms, seq)
            if nack is None or late_first is (nack.consumer is None):
                continue
            if self.is_ready(nack, now_ms):
                return nack
        return None

    def put_back(self, nack: Nack) -> None:
        """Let what ``next_ready`` has returned be ready again."""
        place = (nack.ms, nack.seq)
        if nack.consumer is None:
            heappush(self.ready, place)
        else:
            heappush(self.late, place)
            self.overdue.add(place)

    def is_ready(self, nack: Nack, now_ms: int) -> bool:
        """Return whether a pending entry may go out by ``>`` now."""
        if nack.consumer is not None:
            wait_ms = self.policy.ack_wait_ms
            is_late = wait_ms > 0 and nack.delivery_ms <= now_ms - wait_ms
            return is_late and not self.is_kept(nack, now_ms)
        if not nack.delivery_ms:
            return self.policy.redelivers
        return nack.delivery_ms <= now_ms

    # All of it anew

    def derive(self, stream: Stream, group: Group, now_ms: int) -> None:
        """Find everything anew, and moments, too, if ``changed``. O(pending entries)."""
        self.stale = False
        self._counts = False
        self.held = self.delayed = self.backing = self.due = self.undelivered = 0
        self.overdue = set()
        self.ready = []
        self.late = []
        self.kept = {}
        self.lines = {}
        self.values = {}
        self.freed = []
        self.seen_ms = now_ms
        self.waited_ms = 0  # what is late is seen to once more
        for value in self.blocked:
            line = self.lines[value] = Line()
            line.busy = 1
        aside: list[Nack] = []
        for nack in group.pel.from_id(0, 0, 0):
            if nack.is_aside() or (self.policy.looks and not nack.count and not nack.consumer):
                aside.append(nack)  # the moment of one may be lost in a file of another server
            else:
                self._derive_delivered(stream, nack, now_ms)
        for nack in aside:
            self._derive_aside(stream, group, nack, now_ms)
        for place in [each for each in self.notes if group.pel.get(each[0], each[1]) is None]:
            del self.notes[place]  # of a stream that was there before, or acknowledged meanwhile
        self.changed = False
        self._counts = True

    def _derive_delivered(self, stream: Stream, nack: Nack, now_ms: int) -> None:
        if self.policy.order_key:
            value = self.policy.order_of(row_of(stream, nack.ms, nack.seq))
            if value is not None:
                line = self.lines.get(value)
                if line is None:
                    line = self.lines[value] = Line()
                self._occupy(line, value, (nack.ms, nack.seq))
        if nack.consumer is None:
            self._count(nack, 1)
        if nack.consumer is None and self.is_ready(nack, now_ms):
            self.put_back(nack)

    def _derive_aside(self, stream: Stream, group: Group, nack: Nack, now_ms: int) -> None:
        row = row_of(stream, nack.ms, nack.seq)
        until_ms = self._entry_until(nack.ms, nack.seq, row, now_ms)
        keeps = nack.delivery_ms and not (self.changed and row)
        if keeps and HELD not in (until_ms, nack.delivery_ms):
            until_ms = int(nack.delivery_ms)
        rests = until_ms > now_ms or nack.delivery_ms > now_ms
        if not nack.delivery_ms or (rests and nack.delivery_ms != until_ms):
            group.release(nack, until_ms)
        if until_ms == HELD:
            value = self.policy.order_of(row)
            assert value is not None
            self.lines[value].wait(nack)
        self._count(nack, 1)
        if nack.delivery_ms <= now_ms:
            heappush(self.ready, (nack.ms, nack.seq))


def rules_of(group: Group) -> GroupRules | None:
    """Return the rules of a group that was attended; None where it has no policies."""
    rules = group.rules
    return rules if isinstance(rules, GroupRules) else None


def row_of(stream: EntryLog, ms: int, seq: int) -> list[bytes]:
    """Return the fields and values of an entry in a row; none where it was deleted."""
    part = stream.one(ms, seq)
    return NO_ROW if part is None else part.run.row(part.low)


def _has_namesakes(stream: Stream, group: Group, ms: int, seq: int) -> bool:
    if group.places is None:
        return False
    part = stream.one(ms, seq)
    return part is not None and len(group.places.with_namesakes(stream, part)) > 1


def value_in(run: Run, number: int, field: bytes) -> bytes | None:
    """Return the first value of a field of an entry, without making its row where it can be had."""
    names = run.names
    if names is None:
        return value_of(run.rows[number], field)
    for at, name in enumerate(names):
        if name == field:
            return run.flat[number * len(names) + at]
    return None


def has_own(group: Group) -> bool:
    """Return whether a group has entries that are to go out by themselves. O(pending entries)."""
    if not group.zone:
        return False
    return any(
        nack.consumer is None and nack.delivery_ms > 0 for nack in group.pel.from_id(0, 0, 0)
    )
