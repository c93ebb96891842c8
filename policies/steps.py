"""Commands on groups with policies hand out, claim and give up; time brings more.

Whether an entry may go out is decided by ``policies.rules``. Here that is carried out, reported and
recorded. What is recorded are Redis's own commands, of which any server understands the first two:

- XNACK FORCE for entries that are set aside, XCLAIM for those that go out, as everywhere;
- XADD for a dead letter, and XACK for what has died, in one unit;
- XNACKIN AT for the moment from which on entries go out by themselves.
"""

from __future__ import annotations

from typing import Final

from headrace.compat.errors import CommandError, no_key_or_group
from headrace.compat.stream_ids import format_id
from headrace.policies.book import Book, Scope, note_record, run_own
from headrace.policies.bounds import SLICE, bound_due, make_room, take_off
from headrace.policies.consumers import (
    all_groups,
    idlers_until,
    look_at_holders,
    reclaim,
    reclaim_due,
    sweep,
)
from headrace.policies.policy import Policy
from headrace.policies.rules import (
    ID,
    UNKNOWN_NOTE,
    GroupRules,
    has_own,
    row_of,
    rules_of,
)
from headrace.protocol.packing import Constant, Packer
from headrace.protocol.replies import ErrorReply
from headrace.server.commands.streams.args import PENDING_CHANGED, ReadOptions
from headrace.server.commands.streams.group_reading import next_parts
from headrace.server.commands.streams.groups import (
    found_group,
    keys_of_streams,
    names_of_groups,
    note_purge,
    reached_record,
)
from headrace.server.commands.streams.shared import PolicySteps, shared_streams
from headrace.server.dispatch.admission import is_out_of_memory
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import ORIGINALS
from headrace.server.gate import FOLLOWS, REGION_REFUSES
from headrace.server.state import Server
from headrace.storage.keyspace import Keyspace
from headrace.storage.stream.delivery import PendingEntry, hand_out
from headrace.storage.stream.groups import HERE, UNLIMITED, Consumer, Group, lag
from headrace.storage.stream.part import Part
from headrace.storage.stream.pel import HELD, Nack
from headrace.storage.stream.references import is_to_come
from headrace.storage.stream.run import following
from headrace.storage.stream.stream import Stream

EXPIRED: Final = b"expired"
LIMIT: Final = b"delivery limit"
REJECTED: Final = b"rejected"
RETRY_DEATH_MS: Final = 1000  # until a dead letter that could not be written is tried again
SCANNED_MOST: Final = 50_000  # new entries that one request looks at
BATCH: Final = 64  # of those, at least
PASSED_MOST: Final = 1000  # late entries that one request passes over
ELSEWHERE_MS: Final = 1000  # between two looks at a group that is read in another region
DUE_SLICE: Final = 256  # groups looked at in one tick
PAGE: Final = 100  # keys
PAGES: Final = 20  # in one tick
ROUND_MS: Final = 5000  # between the starts of two looks at all groups, at least
DLQ: Final = b"__dlq.errors."


def book_of(server: Server) -> Book:
    """Return the policies of a server that has had one."""
    book = server.policies
    assert isinstance(book, Book)
    return book


class Steps(PolicySteps):
    """The steps of commands where there are policies."""

    def attend(self, call: Call, key: bytes, stream: Stream, group: Group) -> None:
        attend(call.server, call.db, key, stream, group, call.now_ms)

    def create(self, call: Call, key: bytes, name: bytes) -> bool:
        policy = book_of(call.server).policy_of(call.db.index, key, name)
        if policy is None or not policy.created_at:
            return False
        words = [b"XGROUP", b"CREATE", key, name, policy.created_at, b"MKSTREAM"]
        command = ORIGINALS[b"xgroup"].subcommands[b"create"]
        return not isinstance(run_own(call, command, words), ErrorReply)

    def choose(
        self,
        call: Call,
        key: bytes,
        stream: Stream,
        group: Group,
        options: ReadOptions,
        claims: list[PendingEntry],
        limit: int,
        most_bytes: int,
    ) -> list[PendingEntry]:
        rules = rules_of(group)
        assert rules is not None
        policy = rules.policy
        if policy.keeps_alive and rules.held_by(options.consumer, call.session, call.now_ms):
            scope: Scope = (rules.db, key, group.name)
            book_of(call.server).holders.append((scope, options.consumer))
        if rules.acked is not None and options.noack:
            rules.acked.touch()
        if policy.pause_until_ms > call.now_ms or call.server.gate.reasons & REGION_REFUSES:
            return []
        return _Choice(call, key, stream, group, rules).run(options, claims, limit, most_bytes)

    def may_claim(
        self, call: Call, key: bytes, stream: Stream, group: Group, nack: Nack, renews: bool
    ) -> bool:
        return may_claim(call, key, stream, group, nack, renews)

    def released(
        self,
        call: Call,
        key: bytes,
        stream: Stream,
        group: Group,
        nacks: list[Nack],
        counts: list[int],
        mode: bytes,
    ) -> None:
        attend(call.server, call.db, key, stream, group, call.now_ms)
        rules = rules_of(group)
        if rules is None:
            return
        policy = rules.policy
        until: dict[int, list[bytes]] = {}
        for nack, count in zip(nacks, counts, strict=True):
            if group.pel.get(nack.ms, nack.seq) is not nack:  # it was named twice
                continue
            is_known = (nack.ms, nack.seq) in rules.values
            if policy.order_key and not (is_known and nack.count):
                rules.reset()  # it was made pending, or stands in line again
            gives_up = policy.delivery_limit > 0 or policy.dead_letter_key != b""
            if mode == b"fatal" and gives_up:
                give_up(call, key, stream, group, rules, nack, REJECTED, count)
            elif mode == b"fail" and policy.is_dead(nack.count):
                give_up(call, key, stream, group, rules, nack, LIMIT)
            else:
                note = rules.notes.get((nack.ms, nack.seq))
                if note is not None:
                    scope: Scope = (rules.db, key, group.name)
                    call.record(note_record(scope, (nack.ms, nack.seq), note))
                if policy.redelivers or (policy.looks and not nack.count):
                    delay_ms = policy.delay_ms(nack.count, True) if mode == b"fail" else 0
                    later(call, group, rules, nack, call.now_ms + delay_ms, until)
        record_moments(call, key, group, until, True)

    def figures(self, stream: Stream, group: Group, now_ms: int) -> list[int]:
        rules = rules_of(group)
        assert rules is not None
        unread = lag(stream, group)
        policy = rules.policy
        if policy.deliver_delay_ms and unread:
            young = (max(0, now_ms - policy.deliver_delay_ms + 1), 0)
            start = max(young, following(group.last_ms, group.last_seq))
            unread = max(0, unread - (stream.length - stream.count_before(*start)))
        ready = rules.count_ready(group, now_ms)
        return [
            0 if policy.pause_until_ms > now_ms else ready + unread,
            rules.held,
            rules.delayed,
            rules.backing_off(),
            len(rules.dying),
            rules.dead_lettered,
            rules.expired,
            rules.next_ms(group, now_ms),
            0 if rules.window_left() else 1,
        ]

    def add_figures(self, out: Packer, stream: Stream, group: Group, now_ms: int) -> None:
        rules = rules_of(group)
        assert rules is not None
        out.constant(_POLICY)
        out.text(b" ".join([b"%b %b" % pair for pair in sorted(rules.policy.values.items())]))
        figures = self.figures(stream, group, now_ms)
        for name, figure in zip(_FIGURES, figures, strict=True):
            out.constant(name)
            out.number(figure)

    def deleted(self, call: Call, key: bytes, stream: Stream, ids: list[ID]) -> None:
        for group in stream.groups.values():
            if not group.zone:  # nothing is set aside
                continue
            attend(call.server, call.db, key, stream, group, call.now_ms)
            rules = rules_of(group)
            gone: list[bytes] = []
            for ms, seq in ids if rules is not None else []:
                nack = group.pel.get(ms, seq)
                if nack is not None and nack.is_aside() and not stream.contains(ms, seq):
                    group.drop(nack)
                    gone.append(format_id(ms, seq))
            if gone:
                acknowledged(call, key, stream, group, gone, 0)

    def leaves(
        self, call: Call, key: bytes, stream: Stream, group: Group, consumer: Consumer
    ) -> None:
        attend(call.server, call.db, key, stream, group, call.now_ms)
        rules = rules_of(group)
        if rules is None or not rules.policy.releases:
            return
        nacks = consumer.pel.from_id(0, 0, 0)
        ids = [format_id(nack.ms, nack.seq) for nack in nacks]
        counts = [nack.count for nack in nacks]
        for nack in nacks:
            group.release(nack)
        record = [b"XNACK", key, group.name, b"FAIL", b"IDS", b"%d" % len(ids), *ids]
        call.changed(key, PENDING_CHANGED, record, count=0, wakes=True)
        self.released(call, key, stream, group, nacks, counts, b"silent")

    def is_bounded(self, call: Call, key: bytes) -> bool:
        return book_of(call.server).bounds_of(call.db.index, key) is not None

    def make_room(self, call: Call, key: bytes, stream: Stream) -> bool:
        bounds = book_of(call.server).bounds_of(call.db.index, key)
        if bounds is None or call.replaying:
            return False
        make_room(call, book_of(call.server), key, stream, bounds)
        return True

    def added(self, call: Call, key: bytes, stream: Stream) -> None:
        bounds = book_of(call.server).bounds_of(call.db.index, key)
        if bounds is not None:
            take_off(call, book_of(call.server), key, stream, bounds)

    def list_consumers(self, call: Call, key: bytes, group: Group) -> None:
        server = call.server
        reclaim(server, book_of(server), call.db, key, group, list(group.consumers), call.now_ms)

    def foresee(self, call: Call, until_ms: int) -> None:
        server = call.server
        book = book_of(server)
        if book.knows(b"inactive-threshold"):  # so it begins to count for all groups there are
            now_ms = server.clock.now_ns // 1_000_000
            for db, key, stream, group in all_groups(server):
                attend(server, db, key, stream, group, now_ms)
        book.idlers = idlers_until(server, book, until_ms)

    def tick(self, call: Call) -> int:
        server = call.server
        book = book_of(server)
        look_at_holders(server, book)
        next_ms = tick(call)
        reclaim_due(call, book, book.idlers)
        if book.idlers and (not next_ms or book.idlers[-1].due_ms < next_ms):
            next_ms = book.idlers[-1].due_ms
        sweep(call, book)
        return next_ms


_POLICY: Final = Constant(b"policy")
_FIGURES: Final = [
    Constant(each)
    for each in (
        b"ready",
        b"held",
        b"delayed",
        b"backing-off",
        b"dead-pending",
        b"dead-lettered",
        b"expired",
        b"next-due-ms",
        b"window-full",
    )
]


def attend(
    server: Server, db: Keyspace, key: bytes, stream: Stream, group: Group, now_ms: int
) -> None:
    """Give a group the rules of its policies as they are now; see ``PolicySteps.attend``."""
    book = book_of(server)
    policy = book.policy_of(db.index, key, group.name)
    rules = rules_of(group)
    if rules is not None and policy is not None and policy.values == rules.policy.values:
        rules.version = book.version  # what has changed is of others
    wanted = (db.index, key, book.version)
    if rules is None or (rules.db, rules.key, rules.version) != wanted:
        if policy is None and not (group.zone and has_own(group)):
            group.rules = None
            return
        scope: Scope = (db.index, key, group.name)
        new = GroupRules(
            policy or Policy({}, key, group.name),
            *(db.index, key, book.version),
            *(book.notes_of(scope), book.blocked_of(scope)),
            book.acked_of(db.index, key) if policy is not None and policy.drops_acked else None,
        )
        if rules is not None:
            new.take_over(rules)
        new.known_ms = new.known_ms or now_ms
        group.rules = rules = new
        book.attended[scope] = None
        if rules.acts_by_itself():
            book.wake_at(scope, now_ms)
    is_here = is_read_here(stream, group)
    if server.gate.reasons & FOLLOWS or not (is_here and rules.is_here):
        rules.reset()  # what the master sends goes past the rules, and so do entries still to come
    rules.is_here = is_here
    if rules.stale or rules.freed or now_ms != rules.seen_ms:
        db.before_change(key)
        rules.catch_up(stream, group, now_ms)


def may_claim(
    call: Call, key: bytes, stream: Stream, group: Group, nack: Nack, renews: bool
) -> bool:
    """Return whether a pending entry may be claimed; see ``PolicySteps.may_claim``."""
    attend(call.server, call.db, key, stream, group, call.now_ms)
    rules = rules_of(group)
    if rules is None:
        return True
    if rules.acts_by_itself():  # it is to be acknowledged in time
        book_of(call.server).wake_at((rules.db, key, group.name), call.now_ms + 1)
    if not renews and rules.is_kept(nack, call.now_ms) and _is_claimed_by_idle_time(call, nack):
        return False
    if not renews and rules.policy.is_dead(nack.count):
        give_up(call, key, stream, group, rules, nack, LIMIT)
        return False
    if nack.delivery_ms == HELD:
        return False
    if renews:
        return True
    rests = nack.consumer is None and nack.delivery_ms > call.now_ms
    return not rests and rules.policy.pause_until_ms <= call.now_ms


def _is_claimed_by_idle_time(call: Call, nack: Nack) -> bool:
    """Return whether another consumer's entry is claimed because it has been idle for some time.

    XCLAIM and XAUTOCLAIM have consumer and time in the same places; XREADGROUP CLAIM always asks.
    """
    words = call.argv
    if words[0].lower() not in (b"xclaim", b"xautoclaim"):
        return True
    return words[4] != b"0" and nack.consumer is not None and nack.consumer.name != words[3]


class _Choice:
    """One XREADGROUP that chooses what goes out before new entries."""

    def __init__(
        self, call: Call, key: bytes, stream: Stream, group: Group, rules: GroupRules
    ) -> None:
        self.call: Final = call
        self.key: Final = key
        self.stream: Final = stream
        self.group: Final = group
        self.rules: Final = rules
        self.found: list[PendingEntry] = []
        self.places: Final[set[ID]] = set()
        self.passed: Final[list[Nack]] = []
        self.consumer: Consumer | None = None
        self.room = UNLIMITED
        self.room_of_consumer = UNLIMITED
        self.bytes_left = 0
        self.at_once = False
        self.chosen = 0
        self.seen: Final[list[Part]] = []
        self.looked_at: ID = (0, 0)

    def run(
        self, options: ReadOptions, claims: list[PendingEntry], limit: int, most_bytes: int
    ) -> list[PendingEntry]:
        """Return what goes out, at most ``limit``; see ``PolicySteps.choose``."""
        settle(self.call, self.key, self.stream, self.group, self.rules)
        if self.rules.acts_by_itself():  # what goes out now is to be acknowledged by then
            scope: Scope = (self.rules.db, self.key, self.group.name)
            wait_ms = max(self.rules.policy.ack_wait_ms, 1)
            book_of(self.call.server).wake_at(scope, self.call.now_ms + wait_ms)
        for claim in claims:
            nack = claim.nack
            if self.group.pel.get(nack.ms, nack.seq) is nack and may_claim(
                *(self.call, self.key, self.stream, self.group, nack), False
            ):
                self.found.append(claim)
                self.places.add((nack.ms, nack.seq))
        self._set_rooms(options)
        most = limit if limit < 0 else max(0, limit - len(self.found))
        self.bytes_left = most_bytes
        policy = self.rules.policy
        # Of what several regions write, entries can have one ID, and are given together.
        is_plain = not most_bytes and self.group.places is None
        self.at_once = is_plain and not policy.ttl_ms and not policy.ttl_field
        self.rules.new = []
        aside: list[Nack] = []
        while most != 0 and not (most_bytes and self.bytes_left <= 0):
            more = self._count_chosen() + self._take_ready(most)
            if most > 0:
                most -= more
            if most == 0 or not self.rules.policy.looks or self._is_full():
                break
            if not self._look_ahead(most, aside):
                break
        for nack in self.passed:
            self.rules.put_back(nack)
        self._record_aside(aside, most_bytes > 0)
        if most_bytes:
            for each in self.found:  # of which the reply may have no place for all
                self.rules.put_back(each.nack)
        self.rules.most_new = self.room_of_consumer
        return self.found

    def _count_chosen(self) -> int:
        """Return how many new entries were chosen since the last time; consumers hold them then."""
        chosen = self.chosen
        self.chosen = 0
        if self.room > 0:
            self.room -= chosen
        if self.room_of_consumer > 0:
            self.room_of_consumer -= chosen
        return chosen

    def _set_rooms(self, options: ReadOptions) -> None:
        """Find how many more entries consumers may hold, and this one; negative is any number."""
        self.room = self.rules.room_for_more(self.group)
        self.consumer = self.group.consumers.get(options.consumer)
        most = self.rules.policy.max_per_consumer
        if most:
            held = 0 if self.consumer is None else self.consumer.pel.size
            self.room_of_consumer = max(0, most - held)

    def _take_ready(self, most: int) -> int:
        """Choose of what is ready, up to ``most``, negative is all; return how many."""
        rules = self.rules
        taken = 0
        now_ms = self.call.now_ms
        while taken != most:
            nack = rules.next_ready(self.group, now_ms, self._is_full())
            if nack is None:
                break
            place = (nack.ms, nack.seq)
            if place in self.places:
                continue
            # Those above the position, which was set back, are given as new ones.
            comes_as_new = not rules.policy.looks and is_to_come(self.stream, self.group, *place)
            if len(self.passed) > PASSED_MOST or comes_as_new:
                self.passed.append(nack)
                if comes_as_new:
                    continue
                break
            is_own = nack.consumer is not None and nack.consumer is self.consumer
            if self.room_of_consumer == 0 and not is_own:
                self.passed.append(nack)
                continue
            part = self._alive(nack)
            if part is None:
                continue
            self._take(nack, part, is_own)
            taken += 1
            if self.bytes_left:
                self.bytes_left = max(0, self.bytes_left - part.least_bytes()) or -1
                if self.bytes_left < 0:
                    break
        return taken

    def _is_full(self) -> bool:
        """Return whether no entry may go out that no consumer holds."""
        return self.room == 0 or self.room_of_consumer == 0

    def _take(self, nack: Nack, part: Part, is_own: bool) -> None:
        rules = self.rules
        place = (nack.ms, nack.seq)
        if nack.consumer is None:
            self.room -= 1 if self.room > 0 else 0
            if nack.is_aside():
                nack.delivery_ms = self.call.now_ms  # it has not been idle
        elif rules.policy.dead_letter_key:
            note = rules.note(nack)
            scope: Scope = (rules.db, self.key, self.group.name)
            self.call.record(note_record(scope, place, note))
        if not is_own and self.room_of_consumer > 0:
            self.room_of_consumer -= 1
        if nack.count:
            book_of(self.call.server).counters.redelivered += 1
        self.found.append(PendingEntry(self.stream, self.group, nack, part))
        self.places.add(place)

    def _alive(self, nack: Nack) -> Part | None:
        """Return where an entry is to be found that may still go out; else see to its end."""
        rules = self.rules
        place = (nack.ms, nack.seq)
        part = self.stream.one(nack.ms, nack.seq)
        reason = b""
        count = nack.count
        if part is not None:
            if rules.policy.expires_ms(part.run.row(part.low), nack.ms) <= self.call.now_ms:
                reason = EXPIRED
            elif rules.policy.is_dead(nack.count) or place in rules.dying:
                reason, count = rules.dying.get(place, (LIMIT, nack.count))
            else:
                return part
        if reason:
            give_up(*(self.call, self.key, self.stream, self.group, rules, nack), reason, count)
        else:
            note_purge(self.call, self.key, self.group, nack)
            self.group.drop(nack)
        rules.free_lines(self.stream, self.group, self.call.now_ms)
        return None

    def _look_ahead(self, most: int, aside: list[Nack]) -> bool:
        """Look at new entries until ``most`` are ready; return whether any is."""
        rules, stream, group = self.rules, self.stream, self.group
        rules.free_lines(stream, group, self.call.now_ms)
        looked = 0
        for room in (self.room, self.room_of_consumer):
            if room >= 0:
                most = room if most < 0 else min(most, room)
        while rules.window_left():
            need = most - len(rules.ready) - self.chosen
            if most >= 0 and need <= 0:
                break
            rules.scans_on = looked >= SCANNED_MOST
            if rules.scans_on:
                break
            wanted = max(BATCH, need) if most > 0 else SCANNED_MOST
            parts = next_parts(stream, group, wanted)
            if not parts:
                break
            for part in parts:
                seen = self._look_at(part, most, aside)
                looked += seen.high - seen.low
                if seen.high > seen.low:
                    hand_out(stream, group, [seen], None, self.call.now_ms)
                    self.seen.append(seen)
                if seen.high < part.high:
                    break
        return bool(rules.ready) or self.chosen > 0

    def _look_at(self, part: Part, most: int, aside: list[Nack]) -> Part:
        """Choose or set aside the entries of a part until enough are ready; return those looked at.

        What may go at once is not set aside, if nothing can come between.
        """
        rules = self.rules
        run = part.run
        now_ms = self.call.now_ms
        low = -1  # of those side by side that go out
        number = part.low
        while number < part.high:
            if part.dead is not None and part.dead[number]:
                number += 1
                continue
            place = (run.ms[number], run.seq[number])
            is_enough = not rules.window_left() or 0 <= most <= len(rules.ready) + self.chosen
            if is_enough and place != self.looked_at:  # those with one ID go together
                break
            self.looked_at = place
            if self.at_once and rules.goes_at_once(self.group, run, number, now_ms):
                self.chosen += 1
                low = number if low < 0 else low
            else:
                self._choose_part(part, low, number)
                low = -1
                nack = rules.set_aside(
                    *(self.stream, self.group, run.ms[number], run.seq[number]),
                    *(run.row(number), now_ms),
                )
                if nack is not None:
                    aside.append(nack)
            number += 1
        self._choose_part(part, low, number)
        return part if number == part.high else part.until(number)

    def _choose_part(self, part: Part, low: int, high: int) -> None:
        if low >= 0:
            self.rules.new.append(Part(part.run, part.dead, low, high))

    def _record_aside(self, aside: list[Nack], all_of_them: bool) -> None:
        """Record what was set aside and does not go out now, and the group's position."""
        call = self.call
        if not aside and (self.rules.new or not self.seen):
            return
        group = self.group
        if call.recorded:
            until: dict[int, list[bytes]] = {}
            for nack in aside:
                stays = group.pel.get(nack.ms, nack.seq) is nack
                if stays and (all_of_them or (nack.ms, nack.seq) not in self.places):
                    moment_ms = int(nack.delivery_ms)
                    if moment_ms == HELD:  # what it waits for is found again
                        row = row_of(self.stream, nack.ms, nack.seq)
                        moment_ms = max(self.rules.policy.due_ms(row, nack.ms), call.now_ms)
                    until.setdefault(moment_ms, []).append(format_id(nack.ms, nack.seq))
            for ids in until.values():
                call.changed(self.key, PENDING_CHANGED, aside_record(self.key, group, ids), 0)
            record_moments(call, self.key, group, until)
            record = reached_record(self.key, group, self.seen)
            call.changed(self.key, PENDING_CHANGED, record, 0)


def aside_record(key: bytes, group: Group, ids: list[bytes]) -> list[bytes]:
    """Return the record that makes entries pending, without a consumer and a delivery."""
    return [
        *(b"XNACK", key, group.name, b"SILENT", b"IDS", b"%d" % len(ids), *ids),
        *(b"RETRYCOUNT", b"0", b"FORCE"),
    ]


def release_record(key: bytes, group: Group, nack: Nack) -> list[bytes]:
    """Return the record by which an entry has no consumer, and the deliveries that it has had."""
    words = [b"XNACK", key, group.name, b"FAIL", b"IDS", b"1", format_id(nack.ms, nack.seq)]
    return [*words, b"RETRYCOUNT", b"%d" % nack.count, b"FORCE"]


def record_moments(
    call: Call, key: bytes, group: Group, until: dict[int, list[bytes]], wakes: bool = False
) -> None:
    """Record from when on entries go out by themselves: IDs by moments; ``wakes`` readers."""
    for moment_ms, ids in until.items():
        words = [b"XNACKIN", key, group.name, b"AT", b"%d" % moment_ms]
        record = [*words, b"IDS", b"%d" % len(ids), *ids]
        call.changed(key, PENDING_CHANGED, record, count=0, wakes=wakes)


def later(
    call: Call,
    group: Group,
    rules: GroupRules,
    nack: Nack,
    until_ms: int,
    until: dict[int, list[bytes]],
) -> None:
    """Let an entry go out by itself from a moment on, and add it to the moments to record."""
    rules.place(group, nack, until_ms)
    until.setdefault(until_ms, []).append(format_id(nack.ms, nack.seq))


def settle(call: Call, key: bytes, stream: Stream, group: Group, rules: GroupRules) -> None:
    """Do what time and other commands have brought since the last time."""
    now_ms = call.now_ms
    rules.catch_up(stream, group, now_ms)
    policy = rules.policy
    until: dict[int, list[bytes]] = {}
    for nack in rules.kept_no_more(group, now_ms) + rules.not_in_time(group, now_ms):
        if group.pel.get(nack.ms, nack.seq) is not nack:  # it was found twice, and has died
            continue
        if rules.is_kept(nack, now_ms):
            rules.keep(nack)
        elif policy.is_dead(nack.count):
            give_up(call, key, stream, group, rules, nack, LIMIT)
        elif delay_ms := policy.delay_ms(nack.count, False):
            call.changed(key, PENDING_CHANGED, release_record(key, group, nack), count=0)
            later(call, group, rules, nack, now_ms + delay_ms, until)
        else:
            rules.put_back(nack)
    record_moments(call, key, group, until)
    rules.free_lines(stream, group, now_ms)


def give_up(
    call: Call,
    key: bytes,
    stream: Stream,
    group: Group,
    rules: GroupRules,
    nack: Nack,
    reason: bytes,
    count: int = -1,
) -> None:
    """End a pending entry: its dead letter is appended, and it is acknowledged, in one unit.

    Where the letter cannot be appended the entry stays, and that is tried again. ``count``: how
    often it was delivered, where ``nack`` does not know that any more.
    """
    place = (nack.ms, nack.seq)
    policy = rules.policy
    if count < 0:
        count = nack.count
    parts = PendingEntry(stream, group, nack, stream.one(nack.ms, nack.seq)).parts()
    book = book_of(call.server)
    # Letters that would come back to their stream are not written: patterns may say so.
    if policy.dead_letter_key not in (b"", key) and parts:
        marks = _marks(key, group, rules, nack, reason, count)
        letters = [[*part.run.row(part.low), *marks] for part in parts]
        if not all(append(call, policy.dead_letter_key, each) for each in letters):
            until: dict[int, list[bytes]] = {}
            later(call, group, rules, nack, call.now_ms + RETRY_DEATH_MS, until)
            rules.dying[place] = (reason, count)
            scope: Scope = (rules.db, key, group.name)
            book.wake_at(scope, call.now_ms + RETRY_DEATH_MS)
            call.changed(key, PENDING_CHANGED, release_record(key, group, nack), count=0)
            record_moments(call, key, group, until)
            return
        book.counters.dead_lettered += 1
        rules.dead_lettered += 1
    elif reason != EXPIRED:
        book.counters.discarded += 1
    if reason == EXPIRED:
        book.counters.expired += 1
        rules.expired += 1
    value = rules.values.get(place)
    if value is not None and policy.holds_dead and value not in rules.blocked:
        rules.hold(value)
        scope_words = [key, b"GROUP", group.name, value]
        call.record([b"XPOLICY", b"HOLD", *scope_words])
    group.drop(nack)
    acknowledged(call, key, stream, group, [format_id(nack.ms, nack.seq)], 1)


def acknowledged(
    call: Call, key: bytes, stream: Stream, group: Group, ids: list[bytes], count: int
) -> None:
    """Report that entries are pending no more; other regions get to know it, too."""
    record = [b"XACK", key, group.name, *ids]
    call.changed(key, PENDING_CHANGED, record, count=count, wakes=True)
    if group.places is not None:
        shared_streams().note_acknowledged(call, key, stream, group)


def _marks(
    key: bytes, group: Group, rules: GroupRules, nack: Nack, reason: bytes, count: int
) -> list[bytes]:
    """Return the fields that a dead letter has besides the entry's own."""
    note = rules.notes.get((nack.ms, nack.seq), UNKNOWN_NOTE)
    if nack.consumer is not None:
        note = rules.note(nack)
    marks = [
        *(DLQ + b"topic", key),
        *(DLQ + b"offset", format_id(nack.ms, nack.seq)),
        *(DLQ + b"group", group.name),
        *(DLQ + b"delivery.count", b"%d" % count),
        *(DLQ + b"message", reason),
    ]
    if note.consumer:
        marks += [DLQ + b"consumer", note.consumer]
    if note.last_ms:
        marks += [DLQ + b"first.delivery.ms", b"%d" % (note.first_ms or note.last_ms)]
        marks += [DLQ + b"last.delivery.ms", b"%d" % note.last_ms]
    return [*marks, DLQ + b"redrives", b"%d" % note.redrives]


def append(call: Call, key: bytes, words: list[bytes]) -> bytes | None:
    """Append an entry for the server itself; return its ID, or None where that is not possible."""
    if is_out_of_memory(call.server):
        return None
    reply = run_own(call, ORIGINALS[b"xadd"], [b"XADD", key, b"*", *words])
    stream = call.db.value_of(key, call.now_ms)
    if isinstance(reply, ErrorReply) or not isinstance(stream, Stream):
        return None
    return format_id(stream.last_ms, stream.last_seq)


# What time brings, though no client asks


def tick(call: Call) -> int:
    """Do what is due in groups that act by themselves; return when more is due, or 0."""
    server = call.server
    book = book_of(server)
    _attend_more(server, book)
    book.wake_dirty()
    now_ms = server.clock.now_ns // 1_000_000
    removed = book.counters.removed
    for _ in range(DUE_SLICE):
        scope = book.take_due(now_ms) if book.counters.removed < removed + SLICE else None
        if scope is None:
            break
        if scope[2] is None:
            bound_due(call, book, scope, now_ms)
        else:
            _look_at(call, scope, now_ms)
    next_ms = book.next_ms()
    return max(next_ms, now_ms) if next_ms else 0


def _look_at(call: Call, scope: Scope, now_ms: int) -> None:
    server = call.server
    db = server.data.dbs[scope[0]]
    key = scope[1]
    stream, group = found_group(db, key, scope[2] or b"")
    if stream is None or group is None:
        return
    call.db = db
    call.now_ms = now_ms
    attend(server, db, key, stream, group, now_ms)
    rules = rules_of(group)
    if rules is None or not rules.acts_by_itself():
        return
    if not is_read_here(stream, group):  # it may be moved here
        book_of(server).wake_at(scope, now_ms + ELSEWHERE_MS)
    else:
        db.before_change(key)
        settle(call, key, stream, group, rules)
        end_dying(call, key, stream, group, rules)
        due_ms = rules.next_ms(group, now_ms)
        if due_ms:
            book_of(server).wake_at(scope, max(due_ms, now_ms + 1))


def is_read_here(stream: Stream, group: Group) -> bool:
    """Return whether a group is read in this region, where policies act on it."""
    return group.places is None or group.places.elsewhere(stream) == HERE


def end_dying(call: Call, key: bytes, stream: Stream, group: Group, rules: GroupRules) -> None:
    """Try again to write the dead letters that could not be written."""
    for (ms, seq), (reason, count) in list(rules.dying.items()):
        nack = group.pel.get(ms, seq)
        if nack is None:
            del rules.dying[ms, seq]
        elif nack.delivery_ms <= call.now_ms:
            del rules.dying[ms, seq]
            give_up(call, key, stream, group, rules, nack, reason, count)


def _attend_more(server: Server, book: Book) -> None:
    """Attend the groups of some more keys, where policies have changed, and slowly now and then.

    Streams may have got other names meanwhile, by which other policies hold.
    """
    now_ms = server.clock.now_ns // 1_000_000
    if book.looked_version != book.version:
        book.look_at_all(PAGES)
    elif not book.looking and now_ms >= book.next_round_ms:
        book.next_round_ms = now_ms + ROUND_MS
        book.look_at_all(1)
    for _ in range(book.pages):
        if not book.looking:
            return
        index, cursor = book.looking.pop()
        db = server.data.dbs[index]
        cursor, entries = db.scan(cursor, PAGE)
        for key in keys_of_streams(entries):
            if book.bounds_of(db.index, key) is not None:
                book.wake_at((db.index, key, None), now_ms)
            for name in names_of_groups(db, key):
                stream, group = found_group(db, key, name)
                if stream is not None and group is not None:
                    before = group.rules
                    attend(server, db, key, stream, group, now_ms)
                    if group.rules is not before:
                        server.blocking.key_ready(db.index, key)
        if cursor:
            book.looking.append((index, cursor))


def group_or_error(stream: Stream | None, key: bytes, name: bytes) -> Group:
    """Return a group that is there. Raises: NOGROUP."""
    group = None if stream is None else stream.groups.get(name)
    if group is None:
        raise CommandError(no_key_or_group(key, name))
    return group
