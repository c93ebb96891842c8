"""A group with policies, as plainly as it can be said: nothing is kept that can be looked for.

It says what each command answers, so that a server can be compared with it. Complexity does not
matter here: every question walks over all entries.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

ID = tuple[int, int]
UNITS: Final = {"ms": 1, "s": 1000, "m": 60_000}
NEVER: Final = 1 << 62
COUNT_MAX: Final = 2**63 - 1


def duration(word: str) -> int:
    digits = word.rstrip("abcdefghijklmnopqrstuvwxyz")
    return int(digits) * UNITS[word[len(digits) :] or "ms"]


@dataclass
class Pending:
    """A pending entry: ``at_ms`` is when its consumer got it, or from when on it goes out (0: by
    a claim alone) if there is none."""

    consumer: str | None
    at_ms: int
    count: int
    redrives: int = 0
    ticket: int = 0  # of entries delivered in one millisecond, the one delivered first dies first

    def is_aside(self) -> bool:
        return self.consumer is None and self.count == 0 and self.at_ms > 0


@dataclass
class Holder:
    """The connection under a consumer's name: since when, and when it closed (0: it is open)."""

    since_ms: int
    left_ms: int = 0


@dataclass
class Model:
    """One stream with one group, and the stream of its dead letters."""

    policy: dict[str, str]
    now_ms: int
    entries: dict[ID, dict[str, str]] = field(default_factory=dict)
    unread: list[ID] = field(default_factory=list)
    pending: dict[ID, Pending] = field(default_factory=dict)
    dead: list[tuple[ID, int, str, int]] = field(default_factory=list)
    held_keys: set[str] = field(default_factory=set)
    tickets: int = 0
    holders: dict[str, Holder] = field(default_factory=dict)
    known_ms: int = 0  # from when on it is known who holds a name

    # What policies say

    def number(self, name: str) -> int:
        return int(self.policy.get(name, "0"))

    def ms(self, name: str) -> int:
        return duration(self.policy.get(name, "0"))

    def looks(self) -> bool:
        names = "order-key deliver-at-field deliver-delay message-ttl message-ttl-field".split()
        return any(name in self.policy for name in names)

    def redelivers(self) -> bool:
        return any(n in self.policy for n in ("ack-wait", "retry-delay", "retry-delay-min"))

    def delay_ms(self, count: int, failed: bool) -> int:
        if count < 1 or (not failed and self.policy.get("retry-delay-type") != "all"):
            return 0
        if "retry-delay" in self.policy:
            delays = [duration(word) for word in self.policy["retry-delay"].split(",")]
            return delays[min(count, len(delays)) - 1]
        least = self.ms("retry-delay-min")
        return min(least * count, self.ms("retry-delay-max") or NEVER)

    def is_dead(self, count: int) -> bool:
        return 0 < self.number("delivery-limit") <= count

    def key_of(self, place: ID) -> str | None:
        name = self.policy.get("order-key")
        return None if name is None else self.entries.get(place, {}).get(name)

    def due_ms(self, place: ID) -> int:
        fields = self.entries[place]
        at = fields.get(self.policy.get("deliver-at-field", "-"))
        if at is not None and at.isdigit():
            return int(at)
        delay_ms = self.ms("deliver-delay")
        return place[0] + delay_ms if delay_ms else 0

    def expires_ms(self, place: ID) -> int:
        fields = self.entries.get(place, {})
        lives = fields.get(self.policy.get("message-ttl-field", "-"))
        if lives is not None and lives.isdigit():
            return place[0] + int(lives)
        return place[0] + self.ms("message-ttl") if "message-ttl" in self.policy else NEVER

    # What may go out

    def is_held(self, place: ID) -> bool:
        """Whether an entry that was never given waits for another one with its key."""
        key = self.key_of(place)
        if key is None or not self.pending[place].is_aside():
            return False
        if key in self.held_keys:
            return True
        for other in sorted(self.pending):
            is_before = not self.pending[other].is_aside() or other < place
            if other != place and is_before and self.key_of(other) == key:
                return True
        return False

    def is_ready(self, place: ID) -> bool:
        pending = self.pending[place]
        if pending.consumer is not None:
            return self.late_ms(pending) <= self.now_ms
        if pending.is_aside():
            return not self.is_held(place) and pending.at_ms <= self.now_ms
        return pending.at_ms <= self.now_ms if pending.at_ms else self.redelivers()

    # Who is there

    def kept_until_ms(self, pending: Pending) -> int:
        """Until when the idle time of an entry does not count; 0: it counts."""
        if "keep-alive" not in self.policy or pending.consumer is None:
            return 0
        grace_ms = self.ms("keep-alive-grace")
        holder = self.holders.get(pending.consumer)
        if holder is None:
            return self.known_ms + grace_ms if pending.at_ms <= self.known_ms else 0
        if pending.at_ms < holder.since_ms:
            return 0
        return holder.left_ms + grace_ms if holder.left_ms else NEVER

    def late_ms(self, pending: Pending) -> int:
        """From when on an entry was not acknowledged in time."""
        wait_ms = self.ms("ack-wait")
        return max(pending.at_ms + wait_ms, self.kept_until_ms(pending)) if wait_ms else NEVER

    def comes(self, consumer: str) -> None:
        """A connection reads under a name."""
        grace_ms = self.ms("keep-alive-grace")
        holder = self.holders.get(consumer)
        if holder is None:
            goes_on = self.now_ms < self.known_ms + grace_ms
            self.holders[consumer] = Holder(0 if goes_on else self.now_ms)
        elif holder.left_ms:
            if self.now_ms >= holder.left_ms + grace_ms:
                holder.since_ms = self.now_ms
            holder.left_ms = 0

    def leaves(self, consumer: str) -> None:
        if consumer in self.holders:  # one that has not read since the start is not known
            self.holders[consumer].left_ms = self.now_ms

    def reloads(self) -> None:
        self.holders.clear()
        self.known_ms = self.now_ms

    # Bounds of the stream

    def done(self) -> list[ID]:
        """The oldest entries that have been read and acknowledged, up to the first that was not."""
        found: list[ID] = []
        for place in sorted(self.entries):
            if place in self.unread or place in self.pending:
                break
            found.append(place)
        return found

    def _remove(self, places: list[ID]) -> None:
        for place in places:
            del self.entries[place]
            self.pending.pop(place, None)

    def has_room(self) -> bool:
        """Whether an entry may be added, after what need not stay has gone."""
        most = self.number("max-len")
        if self.policy.get("overflow") != "reject" or not most:
            return True
        self._remove(self.done()[: max(0, len(self.entries) + 1 - most)])
        return len(self.entries) < most

    def drop_acked(self) -> None:
        if "retention" in self.policy:
            places = [each for each in self.entries if each not in self.unread]
            self._remove([each for each in places if each not in self.pending])

    def _drop_old(self) -> None:
        self._remove([each for each in self.entries if self._ages(each) <= self.now_ms])

    def _ages(self, place: ID) -> int:
        return place[0] + self.ms("max-age") if "max-age" in self.policy else NEVER

    def paused(self) -> bool:
        return self.number("pause-until") > self.now_ms

    def held_by(self, consumer: str | None) -> int:
        if consumer is None:
            return sum(1 for each in self.pending.values() if each.consumer is not None)
        return sum(1 for each in self.pending.values() if each.consumer == consumer)

    def rests(self, place: ID) -> bool:
        """Whether an entry waits for another, for its moment, or to be tried again."""
        pending = self.pending[place]
        if pending.consumer is not None:
            return False
        if pending.is_aside():
            return self.is_held(place) or pending.at_ms > self.now_ms
        return pending.at_ms > self.now_ms

    # What happens

    def add(self, place: ID, fields: dict[str, str]) -> None:
        self.entries[place] = fields
        self.unread.append(place)
        most = self.number("max-len")
        if most and self.policy.get("overflow") != "reject":
            self._remove(sorted(self.entries)[: max(0, len(self.entries) - most)])

    def die(self, place: ID, reason: str, count: int | None = None) -> None:
        pending = self.pending.pop(place)
        key = self.key_of(place)
        if "dead-letter-key" in self.policy and place in self.entries:
            times = pending.count if count is None else count
            self.dead.append((place, times, reason, pending.redrives))
        if key is not None and self.policy.get("order-on-dead") == "hold":
            self.held_keys.add(key)

    def advance(self, to_ms: int) -> None:
        """Let time pass; what happens by itself happens in its order."""
        wait_ms = self.ms("ack-wait")
        delays_all = self.policy.get("retry-delay-type") == "all"
        acts = wait_ms and ("delivery-limit" in self.policy or delays_all)
        while True:
            due = [(self._ages(each), 0, each) for each in self.entries if self._ages(each) < NEVER]
            due += [
                (self.late_ms(each), each.ticket, place)
                for place, each in self.pending.items()
                if acts and each.consumer is not None and not self._stays_late(each)
            ]
            if not due or min(due)[0] > to_ms:
                break
            self.now_ms = max(self.now_ms, min(due)[0])
            if min(due)[1]:
                self._not_in_time(min(due)[2])
            else:
                self._drop_old()
        self.now_ms = to_ms

    def _stays_late(self, pending: Pending) -> bool:
        """Whether nothing happens by itself when an entry is late, but that it is ready."""
        return not self.is_dead(pending.count) and not self.delay_ms(pending.count, False)

    def _not_in_time(self, place: ID) -> None:
        pending = self.pending[place]
        if self.is_dead(pending.count):
            self.die(place, "delivery limit")
        else:
            pending.consumer = None
            pending.at_ms = self.now_ms + self.delay_ms(pending.count, False)

    def read(self, consumer: str, count: int) -> list[ID]:
        """XREADGROUP with ``>``."""
        if "keep-alive" in self.policy:
            self.comes(consumer)
        if self.paused():
            return []
        found: list[ID] = []
        most = self.number("max-pending")
        room = max(0, most - self.held_by(None)) if most else NEVER
        each_most = self.number("max-pending-per-consumer")
        own_room = max(0, each_most - self.held_by(consumer)) if each_most else NEVER
        while len(found) < count:
            place = self._next(consumer, found, room, own_room)
            if place is None:
                if not self.looks() or room == 0 or own_room == 0 or not self._scan():
                    break
                continue
            pending = self.pending[place]
            if place not in self.entries:
                del self.pending[place]
            elif self.expires_ms(place) <= self.now_ms:
                self.die(place, "expired")
            elif self.is_dead(pending.count):
                self.die(place, "delivery limit")
            else:
                found.append(place)
                room -= pending.consumer is None
                own_room -= pending.consumer != consumer
        found += self._read_new(consumer, count - len(found), len(found), own_room)
        for place in found:
            pending = self.pending.setdefault(place, Pending(None, 0, 0))
            self._give(pending, consumer)
            pending.count = min(COUNT_MAX, pending.count + 1)
        return found

    def _give(self, pending: Pending, consumer: str) -> None:
        self.tickets += 1
        pending.consumer, pending.at_ms, pending.ticket = consumer, self.now_ms, self.tickets

    def _next(self, consumer: str, found: list[ID], room: int, own_room: int) -> ID | None:
        for place in sorted(self.pending):
            pending = self.pending[place]
            if place in found or not self.is_ready(place):
                continue
            if pending.consumer is None and (room == 0 or own_room == 0):
                continue
            if own_room == 0 and pending.consumer != consumer:
                continue
            return place
        return None

    def _scan(self) -> bool:
        while self.unread:
            place = self.unread.pop(0)
            if place in self.entries:
                self.pending[place] = Pending(None, max(self.now_ms, self.due_ms(place)), 0)
                return True
        return False

    def _read_new(self, consumer: str, count: int, chosen: int, own_room: int) -> list[ID]:
        found: list[ID] = []
        most = self.number("max-pending")
        room = NEVER
        if most:
            out = sum(1 for place in self.pending if not self.rests(place))
            room = max(0, most - out)
        while not self.looks() and self.unread and len(found) < min(count, room, own_room):
            place = self.unread.pop(0)
            if place in self.entries:
                found.append(place)
        return found

    def ack(self, place: ID) -> int:
        return 0 if self.pending.pop(place, None) is None else 1

    def ack_fenced(self, place: ID, consumer: str, count: int) -> int:
        pending = self.pending.get(place)
        if pending is None or pending.consumer != consumer or pending.count != count:
            return 0
        return self.ack(place)

    def nack(self, mode: str, place: ID) -> int:
        pending = self.pending.get(place)
        if pending is None or pending.is_aside():
            return 0
        count = pending.count
        pending.consumer, pending.at_ms = None, 0
        if mode == "silent":
            pending.count = max(0, count - 1)
        elif mode == "fatal":
            pending.count = COUNT_MAX
        gives_up = "delivery-limit" in self.policy or "dead-letter-key" in self.policy
        if mode == "fatal" and gives_up:
            self.die(place, "rejected", count)
        elif mode == "fail" and self.is_dead(count):
            self.die(place, "delivery limit")
        elif self.redelivers() or (self.looks() and not pending.count):
            delay_ms = self.delay_ms(pending.count, True) if mode == "fail" else 0
            pending.at_ms = self.now_ms + delay_ms
        return 1

    def nack_in(self, place: ID, ms: int) -> int:
        pending = self.pending.get(place)
        if pending is None or pending.is_aside():
            return 0
        if self.is_dead(pending.count):
            self.die(place, "delivery limit")
        else:
            pending.consumer, pending.at_ms = None, self.now_ms + ms
            pending.count = max(1, pending.count)
        return 1

    def claim(self, consumer: str, least_ms: int, place: ID, just_id: bool, forces: bool) -> bool:
        """XCLAIM of one entry, and XAUTOCLAIM; whether it was claimed."""
        pending = self.pending.get(place)
        if pending is None:
            return False
        if place not in self.entries:
            del self.pending[place]
            return False
        if pending.consumer is not None and self.now_ms - pending.at_ms < least_ms:
            return False
        renews = forces or (just_id and pending.consumer == consumer)
        is_own = pending.consumer == consumer or least_ms == 0
        if not renews and not is_own and self.kept_until_ms(pending) > self.now_ms:
            return False
        if not renews and self.is_dead(pending.count):
            self.die(place, "delivery limit")
            return False
        if pending.is_aside() and self.is_held(place):
            return False
        if not renews and (self.rests(place) or self.paused()):
            return False
        self._give(pending, consumer)
        pending.count = min(COUNT_MAX, pending.count + (not just_id))
        return True

    def redrive(self) -> list[str]:
        """XREDRIVE of the oldest dead letter: what became of it."""
        if not self.dead:
            return []
        place, _, _, redrives = self.dead[0]
        key = self.key_of(place)
        if place not in self.entries and not self.has_room():
            return ["skipped"]
        self.dead.pop(0)
        if place not in self.entries:
            return ["appended"]
        if place not in self.pending:
            self.pending[place] = Pending(None, self.now_ms, 0, redrives + 1)
        if key is not None:
            self.held_keys.discard(key)
        return ["requeued"]

    def _is_young(self, place: ID) -> bool:
        return place in self.entries and self.now_ms < place[0] + self.ms("deliver-delay")

    def figures(self) -> dict[str, int]:
        aside = [place for place, each in self.pending.items() if each.is_aside()]
        held = sum(1 for place in aside if self.is_held(place))
        delayed = sum(1 for place in aside if self.rests(place)) - held
        backing = sum(1 for place in self.pending if self.rests(place)) - held - delayed
        unread = sum(1 for place in self.unread if place in self.entries)
        ready = sum(1 for place in self.pending if self.is_ready(place))
        if "deliver-delay" in self.policy:
            ready -= sum(1 for each in self.unread if self._is_young(each))
        return {
            "pending": len(self.pending) - len(aside),
            "lag": unread + len(aside),
            "held": held,
            "delayed": delayed,
            "backing-off": backing,
            "ready": 0 if self.paused() else unread + ready,
        }
