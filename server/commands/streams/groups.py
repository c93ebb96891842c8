"""Consumer groups: XGROUP, and clients that wait for entries of a group.

**Records.** A delivery or a claim is recorded as the XCLAIM that repeats it, with its time and
count; a group's position as XGROUP SETID. Neither depends on a clock or on idle times.

**Waiting.** An entry goes to one reader only. So readers are served one by one, while the group has
an entry that it has not given to any, or one that has been idle for as long as a reader with CLAIM
asks for. Where the stream or the group is missing, the next reader is run as well, and gets the
error. Time alone makes pending entries old enough to be claimed, so there is an alarm for each idle
time that readers ask for. What is delivered from now on is younger than what is pending, but XCLAIM
can make it older. While nothing is pending, no alarm is needed: whatever becomes pending while a
client waits makes the key ready.

Source: t_stream.c, xgroupCommand; what differs from the public pages is decided by the code.
"""

from __future__ import annotations

from typing import Final

from headrace.compat import errors, group_dialect
from headrace.compat.errors import CommandError
from headrace.compat.stream_ids import format_id
from headrace.protocol.replies import OK
from headrace.server import gate
from headrace.server.commands.streams.args import (
    CONSUMER_CREATED,
    CONSUMER_DELETED,
    GROUP_CREATED,
    GROUP_CREATED_WITH_STREAM,
    GROUP_DESTROYED,
    GROUP_ID_SET,
    GROUP_MODE_SET,
    PENDING_CHANGED,
    bound_id,
    strict_id,
    there,
)
from headrace.server.commands.streams.shared import policies, shared_streams
from headrace.server.commands.streams.writing import new_stream, record_limits
from headrace.server.commands.typed_keys import stream_at, stream_to_change
from headrace.server.dispatch.args import integer
from headrace.server.dispatch.call import Call
from headrace.server.waiting import (
    Alarm,
    Arrivals,
    Blocking,
    ExclusiveLine,
    Interest,
    Line,
    Queue,
    Waiter,
)
from headrace.storage.entry import Entry
from headrace.storage.keyspace import Keyspace
from headrace.storage.stream.delivery import claimable_since, has_new
from headrace.storage.stream.groups import HERE, NEVER, ON_ITS_WAY, UNKNOWN, Consumer, Group
from headrace.storage.stream.part import Part
from headrace.storage.stream.pel import Nack
from headrace.storage.stream.stream import Stream

_BY_POLICY: Final = -1


class EntryForGroup(Interest):
    """An entry for a consumer: a new one, or one idle for ``claim_ms`` unless that is negative.

    ``ripens``: by a policy, time alone may let one go out.
    """

    def __init__(self, group: bytes, consumer: bytes, claim_ms: int, ripens: bool) -> None:
        super().__init__(_line_name(group), True)
        self.group: Final = group
        self.consumer: Final = consumer
        self.claim_ms: Final = claim_ms
        self.ripens: Final = ripens

    def new_line(self, queue: Queue) -> Line:
        return GroupReaders(queue, self)


class GroupReaders(ExclusiveLine):
    """The clients that wait for entries of one group at one key."""

    def __init__(self, queue: Queue, interest: EntryForGroup) -> None:
        super().__init__(queue, interest)
        self._group: Final = interest.group
        self._claimers: dict[int, Arrivals] | None = None  # by the idle time they ask for
        self._alarms: dict[int, Alarm] = {}  # for such an idle time
        self._alarmed_ms = 0  # the time of delivery they are set for; never a later one
        self._ripens = interest.ripens
        self._due: Alarm | None = None  # by policies

    def add(self, waiter: Waiter, number: int) -> None:
        """Add a waiter at the end."""
        self.arrivals.add(waiter)
        self._ripens = self._ripens or _interest(waiter).ripens
        claim_ms = _interest(waiter).claim_ms
        if claim_ms >= 0:
            if self._claimers is None:
                self._claimers = {}
            same = self._claimers.get(claim_ms)
            if same is None:
                same = self._claimers[claim_ms] = Arrivals()
            same.add(waiter)

    def remove(self, waiter: Waiter, number: int) -> None:
        if not self.arrivals.remove(waiter) or self._claimers is None:
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

    def consumers(self) -> set[bytes]:
        """Return the names of the consumers that wait. Complexity: O(waiters)."""
        return {_interest(waiter).consumer for waiter in self.arrivals.waiters.values()}

    def next(self, value: object | None, now_ms: int) -> Waiter | None:
        """Return the waiter to serve next; None when the group has nothing to give."""
        stream = value if isinstance(value, Stream) else None
        group = None if stream is None else stream.groups.get(self._group)
        if stream is None or group is None:
            return self.arrivals.first()
        if group.rules is not None:
            self._ripens = True
            if has_new(stream, group) or group.rules.may_give(stream, group, now_ms):
                waiters = list(self.arrivals.waiters.values())
                for waiter in waiters:
                    if group.rules.has_room_for(group, _interest(waiter).consumer):
                        return waiter
                for waiter in waiters:
                    if group.rules.is_late(group, _interest(waiter).consumer, now_ms):
                        return waiter
        elif has_new(stream, group):
            return self.arrivals.first()
        if group.places is not None and group.places.elsewhere(stream) != HERE:
            return self.arrivals.first()  # it is answered so
        if not self._claimers:
            return None
        since_ms = claimable_since(stream, group)
        return None if since_ms == NEVER else self._first_claimer(now_ms - since_ms)

    def _first_claimer(self, idle_ms: int) -> Waiter | None:
        found: Waiter | None = None
        if self._claimers is not None:
            for claim_ms, same in self._claimers.items():
                if claim_ms <= idle_ms:
                    waiter = same.first()
                    if waiter is not None and (found is None or waiter.ticket < found.ticket):
                        found = waiter
        return found

    def ripens(self) -> bool:
        """Return whether a reader waits for pending entries, which time lets go out."""
        return self._ripens or bool(self._claimers)

    def new_alarms(self, value: object | None, now_ms: int) -> list[Alarm]:
        """Return alarms for the readers that claim and have none, or need an earlier one."""
        found: list[Alarm] = []
        group = value.groups.get(self._group) if isinstance(value, Stream) else None
        if group is not None and group.rules is not None:
            due_ms = group.rules.next_ms(group, now_ms)
            if due_ms and (self._due is None or due_ms < self._due.moment_ms):
                if self._due is not None:
                    self._due.is_set = False
                self._due = Alarm(self, _BY_POLICY, max(due_ms, now_ms + 1))
                found.append(self._due)
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
        if alarm.number == _BY_POLICY:
            self._due = None
        else:
            del self._alarms[alarm.number]


def group_readers(blocking: Blocking, db: int, key: bytes, group: Group) -> GroupReaders | None:
    """Return the readers that wait for a group of the stream at a key, if there are any."""
    line = blocking.line(db, key, _line_name(group.name))
    return line if isinstance(line, GroupReaders) else None


def _line_name(group: bytes) -> bytes:
    return b"group " + group


def _interest(waiter: Waiter) -> EntryForGroup:
    interest = waiter.parked.interest
    assert isinstance(interest, EntryForGroup)
    return interest


def group_to_use(call: Call, key: bytes, name: bytes) -> tuple[Stream, Group]:
    """Return the stream at ``key`` and its group; raises WRONGTYPE or NOGROUP."""
    return group_of(stream_at(call, key), key, name)


def group_of(stream: Stream | None, key: bytes, name: bytes) -> tuple[Stream, Group]:
    """Return ``stream``, which was looked up at ``key``, and its group; raises NOGROUP."""
    group = None if stream is None else stream.groups.get(name)
    if stream is None or group is None:
        raise CommandError(errors.no_key_or_group(key, name))
    return stream, group


def consumer_seen(call: Call, key: bytes, group: Group, name: bytes) -> Consumer:
    """Return the named consumer, made where it is missing, and note that it is seen now.

    A consumer that is made here is reported but not recorded: the record of what it gets makes it.
    If it gets nothing, ``record_consumer`` records it.
    """
    consumer = group.consumers.get(name)
    if consumer is None:
        consumer = group.create_consumer(name, call.now_ms)
        call.changed(key, CONSUMER_CREATED, None)
    consumer.seen_ms = call.now_ms
    return consumer


def record_consumer(
    call: Call, key: bytes, group: Group, consumer: Consumer, always: bool = False
) -> None:
    """Record a consumer that this call has made, if it was given nothing, or ``always``."""
    if always or consumer.active_ms == NEVER:
        record = [b"XGROUP", b"CREATECONSUMER", key, group.name, consumer.name]
        call.changed(key, PENDING_CHANGED, record, count=0)


def note_claim(
    call: Call, key: bytes, group: Group, nack: Nack, last_ms: int, last_seq: int
) -> None:
    """Report that ``nack``, as it is now, went to its consumer.

    Args:
        last_ms, last_seq: the group's last ID that the record carries.
    """
    record: list[bytes] | None = None
    if call.recorded:
        record = claim_record(key, group, nack, last_ms, last_seq)
    call.changed(key, PENDING_CHANGED, record, wakes=claims_are_awaited(call, key, group))


def claims_are_awaited(call: Call, key: bytes, group: Group) -> bool:
    """Return whether a reader waits for pending entries of the group to be old enough to claim."""
    blocking = call.server.blocking
    if not blocking.needed_key_count:
        return False
    readers = group_readers(blocking, call.db.index, key, group)
    return readers is not None and readers.ripens()


def note_purge(call: Call, key: bytes, group: Group, nack: Nack) -> None:
    """Report that ``nack``, which is still there, goes because its entry was deleted.

    The record claims the entry for its owner, and running it finds the entry missing, too.
    """
    record: list[bytes] | None = None
    if call.recorded:
        if nack.consumer is None:
            record = [b"XACK", key, group.name, format_id(nack.ms, nack.seq)]
        else:
            record = claim_record(key, group, nack, group.last_ms, group.last_seq)
    call.changed(key, PENDING_CHANGED, record, wakes=group.is_limited())


def note_position(call: Call, key: bytes, group: Group) -> None:
    """Report the group's last ID and how many entries it has read."""
    record = position_record(key, group) if call.recorded else None
    call.changed(key, PENDING_CHANGED, record)


def position_record(key: bytes, group: Group) -> list[bytes]:
    """Return the record of a group's last ID and of how many entries it has read."""
    return [
        b"XGROUP",
        b"SETID",
        key,
        group.name,
        format_id(group.last_ms, group.last_seq),
        b"ENTRIESREAD",
        b"%d" % group.entries_read,
    ]


def reached_record(key: bytes, group: Group, parts: list[Part]) -> list[bytes]:
    """Return the record of how far a group has come, after these parts were given to it."""
    if group.places is None:
        return position_record(key, group)
    return shared_streams().place_record(key, group, parts)


def claim_record(key: bytes, group: Group, nack: Nack, last_ms: int, last_seq: int) -> list[bytes]:
    """Return the XCLAIM that makes ``nack``, which has a consumer, what it is.

    In a region it leaves out how far the group has come, because one ID does not say that.
    """
    assert nack.consumer is not None
    record = [
        b"XCLAIM",
        key,
        group.name,
        nack.consumer.name,
        b"0",
        format_id(nack.ms, nack.seq),
        b"TIME",
        b"%d" % nack.delivery_ms,
        b"RETRYCOUNT",
        b"%d" % nack.count,
        b"FORCE",
        b"JUSTID",
    ]
    if group.places is None:
        record.append(b"LASTID")
        record.append(format_id(last_ms, last_seq))
    return record


def refuse_elsewhere(call: Call, stream: Stream | None, group: Group) -> None:
    """Raise CommandError where the group is read in another region."""
    places = group.places
    if places is None or stream is None or call.replaying:
        return
    region = places.elsewhere(stream)
    if region == ON_ITS_WAY:
        raise CommandError(errors.GROUP_ON_ITS_WAY)
    if region != HERE:
        raise CommandError(errors.group_moved(region))


class PositionOptions:
    """The options of XGROUP CREATE and SETID; ``entries_read`` may be ``UNKNOWN``."""

    def __init__(self) -> None:
        self.make_stream = False
        self.entries_read = UNKNOWN

    def read(self, argv: list[bytes], may_make_stream: bool) -> None:
        """Read ``argv[5:]``."""
        at = 5
        while at < len(argv):
            word = argv[at].lower()
            if word == b"mkstream" and may_make_stream:
                self.make_stream = True
                at += 1
            elif word == b"entriesread" and at + 1 < len(argv):
                self.entries_read = integer(argv[at + 1])
                if self.entries_read < 0 and self.entries_read != UNKNOWN:
                    raise CommandError(errors.ENTRIES_READ_NEGATIVE)
                at += 2
            else:
                raise CommandError(errors.bad_subcommand(b"xgroup", argv[1]))


def _group_of(stream: Stream, key: bytes, name: bytes) -> Group:
    group = stream.groups.get(name)
    if group is None:
        raise CommandError(errors.no_such_group(name, key))
    return group


def xgroup_create(call: Call) -> object:
    """Reply: OK. Raises: BUSYGROUP when the group is there."""
    argv = call.argv
    options = PositionOptions()
    options.read(argv, True)
    key = argv[2]
    name = argv[3]
    stream = stream_to_change(call, key)
    if stream is None and not options.make_stream:
        raise CommandError(errors.XGROUP_NEEDS_KEY)
    if len(argv) > 8:
        raise CommandError(errors.bad_subcommand(b"xgroup", argv[1]))
    created = stream is None
    if stream is None:
        stream = new_stream(call, key)
    position = (stream.last_ms, stream.last_seq) if argv[4] == b"$" else strict_id(argv[4])
    if name in stream.groups:
        raise CommandError(errors.BUSY_GROUP)
    if call.server.data.region is not None:
        return shared_streams().create_group(call, stream, position, created)
    if created:
        call.put(key, stream)
    entries_read = min(options.entries_read, stream.entries_added)
    stream.groups[name] = Group(name, position[0], position[1], entries_read)
    call.changed(key, GROUP_CREATED_WITH_STREAM if created else GROUP_CREATED, argv)
    if created:
        record_limits(call, key, stream)
    return OK


def xgroup_setid(call: Call) -> object:
    """Without ENTRIESREAD, forget how many entries the group has read. Reply: OK."""
    argv = call.argv
    options = PositionOptions()
    options.read(argv, False)
    key = argv[2]
    stream = there(stream_to_change(call, key), errors.XGROUP_NEEDS_KEY)
    group = _group_of(stream, key, argv[3])
    if len(argv) not in (5, 7):
        raise CommandError(errors.bad_subcommand(b"xgroup", argv[1]))
    position = (stream.last_ms, stream.last_seq) if argv[4] == b"$" else bound_id(argv[4])
    if group.places is not None:
        refuse_elsewhere(call, stream, group)
        shared_streams().set_place(stream, group, None if argv[4] == b"$" else position)
        call.changed(key, GROUP_ID_SET, argv)
        return OK
    group.last_ms, group.last_seq = position
    group.entries_read = min(options.entries_read, stream.entries_added)
    call.changed(key, GROUP_ID_SET, argv)
    return OK


def xgroup_destroy(call: Call) -> object:
    """Reply: 1, or 0 when there was no such group. What it held is freed later."""
    argv = call.argv
    stream = there(stream_to_change(call, argv[2]), errors.XGROUP_NEEDS_KEY)
    if call.server.data.region is not None:
        return shared_streams().destroy_group(call, stream)
    group = stream.groups.pop(argv[3], None)
    if group is None:
        return 0
    call.server.data.free_later(group)
    # Its readers wait for the key, and have an error to get.
    call.changed(argv[2], GROUP_DESTROYED, argv)
    return 1


def xgroup_createconsumer(call: Call) -> object:
    """Reply: 1, or 0 when it is there."""
    argv = call.argv
    group = _group_of(
        there(stream_to_change(call, argv[2]), errors.XGROUP_NEEDS_KEY), argv[2], argv[3]
    )
    if argv[4] in group.consumers:
        return 0
    group.create_consumer(argv[4], call.now_ms)
    call.changed(argv[2], CONSUMER_CREATED, argv)
    return 1


def xgroup_delconsumer(call: Call) -> object:
    """Reply: how many entries the consumer held.

    They are pending no more, unless a policy releases them.
    """
    argv = call.argv
    stream = there(stream_to_change(call, argv[2]), errors.XGROUP_NEEDS_KEY)
    group = _group_of(stream, argv[2], argv[3])
    consumer = group.consumers.get(argv[4])
    if consumer is None:
        return 0
    held = consumer.pel.size
    if held and call.server.policies is not None and not call.replaying:
        policies().leaves(call, argv[2], stream, group, consumer)
    if group.places is not None and held:
        shared_streams().release_held(call, argv[2], stream, group, argv[4])
    removed = group.delete_consumer(argv[4])
    room = removed.count > 0 and group.is_limited()
    call.changed(argv[2], CONSUMER_DELETED, argv, wakes=room)
    if removed.count:
        if group.places is not None:
            shared_streams().note_acknowledged(call, argv[2], stream, group)
        call.server.data.free_later(removed)
    return held


def xgroup_setmode(call: Call) -> object:
    """Set the most pending entries; 0 is no limit. Reply: OK.

    XREADGROUP gives no more new entries than make ``n`` pending ones in the whole group. With 1 the
    entries of the stream are processed one after the other, in order, by any consumer that is free.
    """
    argv = call.argv
    key = argv[2]
    if argv[4].lower() != b"max-pending":
        raise CommandError(errors.SYNTAX)
    most = integer(argv[5])
    if most < 0:
        raise CommandError(errors.MAX_PENDING_NEGATIVE)
    stream = there(stream_to_change(call, key), errors.XGROUP_NEEDS_KEY)
    group = _group_of(stream, key, argv[3])
    if call.server.data.region is not None and not call.replaying:
        shared_streams().set_mode(call, stream, argv[3], most)
        return OK
    group.max_pending = most
    call.changed(key, GROUP_MODE_SET, argv)
    return OK


def xgroup_del(call: Call) -> object:
    """Reply: 1 where there was such a group, else 0."""
    call.argv = group_dialect.destroy(call.argv)
    return xgroup_destroy(call)


def xgroup_del_consumer(call: Call) -> object:
    """Reply: how many entries it held."""
    call.argv = group_dialect.delete_consumer(call.argv)
    return xgroup_delconsumer(call)


NO_WRITES: Final = (
    gate.LOADING_DATA
    | gate.PAUSED_ALL
    | gate.PAUSED_WRITES
    | gate.SAVE_FAILED
    | gate.WRITES_REFUSED
    | gate.NO_REPLICAS
    | gate.LENGTHY_AT_WORK
    | gate.REGION_REFUSES
    | gate.HALF_JOINED
)


def keys_of_streams(entries: list[Entry]) -> list[bytes]:
    """Return those keys that hold streams."""
    return [entry.key for entry in entries if isinstance(entry.value, Stream)]


def names_of_groups(db: Keyspace, key: bytes) -> list[bytes]:
    """Return the groups of a stream; none where the key is not one."""
    entry = db.peek(key)
    if entry is None or not isinstance(entry.value, Stream):
        return []
    return list(entry.value.groups)


def found_group(db: Keyspace, key: bytes, name: bytes) -> tuple[Stream | None, Group | None]:
    """Return a stream and its group, each if it is there."""
    entry = db.peek(key)
    if entry is None or not isinstance(entry.value, Stream):
        return None, None
    return entry.value, entry.value.groups.get(name)


def find_group(db: Keyspace, key: bytes, name: bytes) -> Group | None:
    """Return a group of a stream, if both are there."""
    return found_group(db, key, name)[1]
