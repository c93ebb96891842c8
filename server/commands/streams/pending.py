"""Pending entries: XACK, XPENDING, XCLAIM, XAUTOCLAIM, XNACK, XDELEX, XACKDEL.

Some have a first spelling besides, such as XGROUP CLAIM, which runs today's command on the request
in today's words: see ``compat.group_dialect``.

An entry that XNACK has released has no consumer, and is claimed before all idle ones. XDELEX and
XACKDEL delete entries with heed to the groups that refer to them.
Source: t_stream.c; what differs from the public pages is decided by the code.
"""

from __future__ import annotations

from typing import Final

from headrace.compat import errors, group_dialect
from headrace.compat.errors import CommandError
from headrace.compat.numbers import INT64_MAX
from headrace.compat.stream_ids import format_id, parse_id, plain_id
from headrace.protocol.packing import Packer
from headrace.protocol.replies import NO_REPLIES, NULL_ARRAY, OK, Packed
from headrace.server.commands.streams.args import (
    PENDING_CHANGED,
    PENDING_RELEASED,
    XDELETED,
    LengthyIds,
    add_entries,
    mode_and_ids,
    option_name,
    range_end,
    range_start,
    strict_id,
    strict_ids,
)
from headrace.server.commands.streams.groups import (
    consumer_seen,
    group_of,
    group_to_use,
    note_claim,
    note_position,
    note_purge,
    record_consumer,
    refuse_elsewhere,
)
from headrace.server.commands.streams.shared import policies, shared_streams
from headrace.server.commands.together import Ran, Requests
from headrace.server.commands.typed_keys import stream_at, stream_to_change
from headrace.server.dispatch.args import bounded, integer
from headrace.server.dispatch.call import Call, Lengthy
from headrace.server.dispatch.rows import NONE_ALIKE, alike, lengthy
from headrace.storage.stream.delivery import Lookup
from headrace.storage.stream.groups import HERE, Consumer, Group, by_name
from headrace.storage.stream.part import Part
from headrace.storage.stream.pel import COUNT_MAX, Nack
from headrace.storage.stream.references import (
    DELETED,
    DELREF,
    MISSING,
    REFERENCED,
    delete,
    is_held_back,
    pending_count,
)
from headrace.storage.stream.run import following
from headrace.storage.stream.stream import Stream

AUTOCLAIM_COUNT: Final = 100
AUTOCLAIM_ATTEMPTS: Final = 10  # entries looked at for each one asked for
AUTOCLAIM_COUNT_MAX: Final = INT64_MAX // 16
ANY_TIME_MS: Final = 2**62 - 1  # before any delivery
RELEASED_IDLE: Final = -1


def xack(call: Call) -> object:
    """A consumer before the IDs is passed over, see ``compat.group_dialect``.

    Reply: how many were pending; 0 also where there is no such key or group. Source: xackCommand.
    """
    argv = call.argv
    stream = stream_at(call, argv[1])
    group = None if stream is None else stream.groups.get(argv[2])
    if group is None:
        return 0
    if group.places is not None:
        refuse_elsewhere(call, stream, group)
    acknowledged = 0
    if len(argv) == 4:
        ms, seq = strict_id(argv[3])
        if group.ack(ms, seq):
            acknowledged = 1
    else:
        argv = group_dialect.ack(argv)
        for ms, seq in strict_ids(argv[3:]):
            if group.ack(ms, seq):
                acknowledged += 1
    if acknowledged:
        room = group.is_limited()
        call.changed(argv[1], PENDING_CHANGED, argv, count=acknowledged, wakes=room)
        if group.places is not None:
            shared_streams().note_acknowledged(call, argv[1], stream, group)
    return acknowledged


class _Acknowledgement(LengthyIds):
    def __init__(self, argv: list[bytes]) -> None:
        super().__init__(argv, 3)
        self._stream: Stream | None = None
        self._group: Group | None = None

    def begin(self, call: Call) -> None:
        self._stream = stream_at(call, self.argv[1])
        if self._stream is not None:
            self._group = self._stream.groups.get(self.argv[2])
            if self._group is not None:
                refuse_elsewhere(call, self._stream, self._group)

    def take(self, ms: int, seq: int) -> bool:
        return self._group is not None and self._group.ack(ms, seq)

    def finish(self, call: Call) -> object:
        group = self._group
        if group is not None and self.taken:
            room = group.is_limited()
            self.record(call, b"XACK")
            call.changed(self.argv[1], PENDING_CHANGED, None, count=self.taken, wakes=room)
            if group.places is not None:
                shared_streams().note_acknowledged(call, self.argv[1], self._stream, group)
        return self.taken


@lengthy("XACK")
def xack_lengthy(call: Call) -> Lengthy | None:
    """Return the XACK of very many entries of a group that is there."""
    stream = call.db.value_of(call.argv[1], call.now_ms)
    if not isinstance(stream, Stream) or call.argv[2] not in stream.groups:
        return None
    return _Acknowledgement(group_dialect.ack(call.argv))


@alike("XACK")
def xack_alike(call: Call, requests: Requests, first: int, end: int) -> Ran:
    """Acknowledge several entries of one group, each with a request of its own."""
    words = requests[first]
    if len(words) != 4 or not call.needs_no_events():
        return NONE_ALIKE, NO_REPLIES
    stream = call.db.value_of(words[1], call.now_ms)
    if not isinstance(stream, Stream):
        return NONE_ALIKE, NO_REPLIES
    name = words[2]
    group = stream.groups.get(name)
    if group is None or group.is_limited():  # then others wait for what is acknowledged
        return NONE_ALIKE, NO_REPLIES
    if group.places is not None and group.places.elsewhere(stream) != HERE:
        return NONE_ALIKE, NO_REPLIES
    recorded = call.recorded
    records: list[list[bytes]] = []
    out = Packer(call.session.resp3)
    done = 0
    acknowledged = 0
    was_pending = True
    alike = 0  # the last replies that are the same
    for words in requests[first:end]:
        ms, seq = plain_id(words[3])
        if ms < 0 or words[2] != name:
            break
        is_pending = group.ack(int(ms), int(seq) if seq >= 0 else 0)
        if is_pending != was_pending:
            out.numbers(int(was_pending), alike)
            was_pending = is_pending
            alike = 0
        alike += 1
        if is_pending:
            acknowledged += 1
            if recorded:
                records.append(words)
        done += 1
    out.numbers(int(was_pending), alike)
    if records:
        call.record_alike(records)
    if done:
        call.note_hits(words[1], done)
        call.count(acknowledged)
        if group.places is not None:
            shared_streams().note_acknowledged(call, words[1], stream, group)
    return done, out.replies()


class PendingRange:
    """The range of an XPENDING, ends included; ``consumer`` is None for all.

    ``min_idle_ms`` leaves out what was delivered more lately; 0 or less leaves nothing out.
    """

    def __init__(self, argv: list[bytes]) -> None:
        self.min_idle_ms = 0
        at = 3
        if argv[3].lower() == b"idle":
            self.min_idle_ms = integer(argv[4])
            if len(argv) < 8:
                raise CommandError(errors.SYNTAX)
            at = 5
        self.count = max(0, integer(argv[at + 2]))
        self.start = range_start(argv[at])
        self.end = range_end(argv[at + 1])
        self.consumer = argv[at + 3] if at + 3 < len(argv) else None


def xpending(call: Call) -> object:
    """Reply: how many entries are pending, the lowest and highest ID, and the number of each
        consumer; with a range a list of (ID, consumer, idle milliseconds, deliveries), where an
        entry that was released has an empty consumer and is idle -1.
    Source: xpendingCommand.
    """
    argv = call.argv
    if len(argv) != 3 and not 6 <= len(argv) <= 9:
        raise CommandError(errors.SYNTAX)
    if len(argv) == 3:
        return _summary(group_to_use(call, argv[1], argv[2])[1])
    nacks = pending_range(call)
    out = Packer(call.session.resp3)
    out.array(len(nacks))
    for nack in nacks:
        out.array(4)
        out.id(nack.ms, nack.seq)
        out.text(b"" if nack.consumer is None else nack.consumer.name)
        out.number(idle_ms(nack, call.now_ms))
        out.number(nack.count)
    return out.packed()


def idle_ms(nack: Nack, now_ms: int) -> int:
    """Return the time that a pending entry has been idle; ``RELEASED_IDLE`` without a consumer."""
    return RELEASED_IDLE if nack.consumer is None else max(0, now_ms - nack.delivery_ms)


def pending_range(call: Call) -> list[Nack]:
    """Return the entries that XPENDING with a range asks for."""
    argv = call.argv
    wanted = PendingRange(argv)
    group = group_to_use(call, argv[1], argv[2])[1]
    consumer: Consumer | None = None
    if wanted.consumer is not None:
        consumer = group.consumers.get(wanted.consumer)
        if consumer is None:
            return []
    hides = group.rules is not None and group.rules.undelivered > 0
    most = group.pel.size if hides else wanted.count
    if wanted.min_idle_ms > 0:
        latest_ms = call.now_ms - wanted.min_idle_ms
        found = group.idle_between(consumer, wanted.start, wanted.end, most, latest_ms)
    else:
        pel = group.pel if consumer is None else consumer.pel
        found = pel.between(wanted.start, wanted.end, most, ANY_TIME_MS)
    return _delivered(found)[: wanted.count] if hides else found


def _delivered(nacks: list[Nack]) -> list[Nack]:
    """Return those that a consumer was ever given."""
    return [nack for nack in nacks if not nack.is_aside()]


def xgroup_pending(call: Call) -> object:
    """Reply: the first and the last ID, and how many."""
    group = group_to_use(call, call.argv[2], call.argv[3])[1]
    first = group.pel.first()
    last = group.pel.last()
    if first is None or last is None:
        return [None, None, 0]
    return [format_id(first.ms, first.seq), format_id(last.ms, last.seq), group.pel.size]


def xgroup_get_pending(call: Call) -> object:
    """Reply: list of (ID, consumer, seconds idle, deliveries), in ID order."""
    call.argv = group_dialect.get_pending(call.argv)
    rows: list[object] = []
    for nack in pending_range(call):
        consumer = b"" if nack.consumer is None else nack.consumer.name
        entry_id = format_id(nack.ms, nack.seq)
        idle = idle_ms(nack, call.now_ms)
        rows.append(group_dialect.pending_row(entry_id, consumer, idle, nack.count))
    return rows


def _summary(group: Group) -> object:
    first = group.pel.first()
    last = group.pel.last()
    size = group.pel.size
    if group.rules is not None and group.rules.undelivered:
        there = _delivered(group.pel.from_id(0, 0, 0))
        size = len(there)
        first, last = (there[0], there[-1]) if there else (None, None)
    if first is None or last is None:
        return [0, None, None, NULL_ARRAY]
    holders = [consumer for consumer in by_name(group.consumers) if consumer.pel.size]
    return [
        size,
        format_id(first.ms, first.seq),
        format_id(last.ms, last.seq),
        [[consumer.name, b"%d" % consumer.pel.size] for consumer in holders],
    ]


class ClaimOptions:
    """The options of XCLAIM.

    Attributes:
        delivery_ms: the time to set; -1 is now.
        count: the number of deliveries to set; -1 is one more.
        force: make pending what is not.
        just_id: answer IDs alone, and count no delivery.
        last_id: the ID that the group has been given at least.
    """

    def __init__(self, argv: list[bytes], at: int, now_ms: int) -> None:
        self.delivery_ms = -1
        self.count = -1
        self.force = False
        self.just_id = False
        self.last_id = (0, 0)
        while at < len(argv):
            word = option_name(argv[at])
            at += 1
            if word == b"force":
                self.force = True
                continue
            if word == b"justid":
                self.just_id = True
                continue
            if at == len(argv):
                raise CommandError(errors.unrecognized_xclaim_option(argv[at - 1]))
            if word == b"idle":
                self.delivery_ms = now_ms - integer(argv[at], errors.XCLAIM_IDLE)
            elif word == b"time":
                self.delivery_ms = integer(argv[at], errors.XCLAIM_TIME)
            elif word == b"retrycount":
                self.count = integer(argv[at], errors.XCLAIM_RETRYCOUNT)
            elif word == b"lastid":
                self.last_id = strict_id(argv[at])
            else:
                raise CommandError(errors.unrecognized_xclaim_option(argv[at - 1]))
            at += 1

    def settle(self, call: Call) -> None:
        """Put now for an impossible time; a file may hold one if the clock was set back since."""
        if self.delivery_ms < 0 or self.delivery_ms > call.now_ms:
            self.delivery_ms = call.now_ms

    def renews(self, nack: Nack, consumer: Consumer) -> bool:
        """Return whether an entry is to be had though it rests, or by the one who has it."""
        return self.force or (self.just_id and nack.consumer is consumer)


def xclaim(call: Call) -> object:
    """Take pending entries over.

    Whatever was deleted from the stream is pending no more. It stays pending in a base of the
    append-only file, which lists what is pending after all entries.

    Reply: the entries claimed, or with JUSTID their IDs. Source: xclaimCommand.
    """
    argv = call.argv
    key = argv[1]
    stream, group = group_to_use(call, key, argv[2])
    refuse_elsewhere(call, stream, group)
    min_idle_ms = integer(argv[4], errors.XCLAIM_MIN_IDLE)
    ids = _ids_before_options(argv, 5)
    options = ClaimOptions(argv, 5 + len(ids), call.now_ms)
    options.settle(call)

    raised = options.last_id > (group.last_ms, group.last_seq) and group.places is None
    if raised:
        group.last_ms, group.last_seq = options.last_id
    made = argv[3] not in group.consumers
    consumer = consumer_seen(call, key, group, argv[3])
    latest_ms = call.now_ms - min_idle_ms if min_idle_ms > 0 else ANY_TIME_MS
    claimed: list[Nack] = []
    parts: list[Part] = []
    for ms, seq in ids:
        nack = group.pel.get(ms, seq)
        too_young = nack is not None and nack.consumer is not None and nack.delivery_ms > latest_ms
        part = None if too_young or options.just_id else stream.one(ms, seq)
        gone = part is None and not stream.contains(ms, seq)
        if gone and (nack is not None or not call.replaying):
            if nack is not None:
                raised = raised and nack.consumer is None  # only its owner's record says LASTID
                note_purge(call, key, group, nack)
                group.drop(nack)
            continue
        if nack is None:
            if not options.force:
                continue
            nack = group.add_pending(ms, seq, consumer, options.delivery_ms)
        elif too_young or not _may_claim(call, stream, group, nack, options.renews(nack, consumer)):
            continue
        else:
            group.assign(nack, consumer, options.delivery_ms)
        if options.count >= 0:
            nack.count = options.count
        elif not options.just_id:
            group.count_delivery(nack)
        _claimed(call, key, group, consumer, nack)
        raised = False
        claimed.append(nack)
        if part is not None:
            parts.append(part)
    if raised:
        note_position(call, key, group)
    if made:
        record_consumer(call, key, group, consumer)
    return _claimed_reply(call, stream, group, claimed if options.just_id else None, parts)


def _may_claim(call: Call, stream: Stream, group: Group, nack: Nack, renews: bool) -> bool:
    """Return whether policies let a consumer have a pending entry."""
    if call.server.policies is None or call.replaying:
        return True
    return policies().may_claim(call, call.argv[1], stream, group, nack, renews)


def xgroup_claim(call: Call) -> object:
    """Reply: the IDs claimed."""
    call.argv = group_dialect.claim(call.argv)
    return xclaim(call)


def xgroup_pel(call: Call) -> object:
    """Set one pending entry. Reply: OK, or nil where the stream has no such entry."""
    call.argv = group_dialect.set_pending(call.argv)
    return OK if group_dialect.was_set(xclaim(call)) else None


def _ids_before_options(argv: list[bytes], at: int) -> list[tuple[int, int]]:
    ids: list[tuple[int, int]] = []
    for word in argv[at:]:
        found = parse_id(word)
        if found is None:
            break
        ids.append(found)
    return ids


def _claimed(call: Call, key: bytes, group: Group, consumer: Consumer, nack: Nack) -> None:
    consumer.active_ms = call.now_ms
    if group.rules is not None and nack.delivery_ms != call.now_ms:
        group.rules.delivered_before(nack)
    note_claim(call, key, group, nack, group.last_ms, group.last_seq)


def _claimed_reply(
    call: Call, stream: Stream, group: Group, just_ids: list[Nack] | None, parts: list[Part]
) -> Packed:
    """Return the entries claimed, or with JUSTID the IDs, whose fields were not looked at."""
    out = Packer(call.session.resp3)
    if just_ids is not None:
        out.array(len(just_ids))
        for nack in just_ids:
            out.id(nack.ms, nack.seq)
        return out.packed()
    if group.places is not None:
        places = group.places
        parts = [each for part in parts for each in places.with_namesakes(stream, part)]
    out.array(len(parts))
    add_entries(out, parts, False)
    return out.packed()


class SweepOptions:
    """The arguments of XAUTOCLAIM, from the idle time on."""

    def __init__(self, argv: list[bytes]) -> None:
        self.min_idle_ms = integer(argv[4], errors.XAUTOCLAIM_MIN_IDLE)
        self.start = range_start(argv[5])
        self.count = AUTOCLAIM_COUNT
        self.just_id = False
        at = 6
        while at < len(argv):
            word = option_name(argv[at])
            if word == b"count" and at + 1 < len(argv):
                at += 1
                self.count = integer(argv[at], errors.COUNT_NOT_POSITIVE)
                if not 0 < self.count <= AUTOCLAIM_COUNT_MAX:
                    raise CommandError(errors.COUNT_NOT_POSITIVE)
            elif word == b"justid":
                self.just_id = True
            else:
                raise CommandError(errors.SYNTAX)
            at += 1


def xautoclaim(call: Call) -> object:
    """Take idle entries over.

    Reply: the ID to go on from, or 0-0 at the end; the entries claimed, or with JUSTID their IDs;
        the IDs that were pending though their entries had been deleted, and are so no more.
    Source: xautoclaimCommand.
    """
    argv = call.argv
    key = argv[1]
    value = call.lookup(key)  # a miss is reported whatever the options are
    options = SweepOptions(argv)
    if value is not None and not isinstance(value, Stream):
        raise CommandError(errors.WRONGTYPE)
    stream, group = group_of(value, key, argv[2])
    refuse_elsewhere(call, stream, group)
    made = argv[3] not in group.consumers
    consumer = consumer_seen(call, key, group, argv[3])
    latest_ms = call.now_ms - options.min_idle_ms if options.min_idle_ms > 0 else ANY_TIME_MS
    claimed: list[Nack] = []
    parts: list[Part] = []
    deleted: list[object] = []
    ms, seq = options.start
    nacks: list[Nack] = []
    lookup = Lookup(stream, nacks)
    at = 0
    for _ in range(AUTOCLAIM_ATTEMPTS * options.count):
        if len(claimed) + len(deleted) == options.count:
            break
        if at == len(nacks):
            nacks = group.pel.from_id(ms, seq, options.count)
            if not nacks:
                break
            lookup = Lookup(stream, nacks)
            at = 0
        nack = nacks[at]
        at += 1
        ms, seq = following(nack.ms, nack.seq)
        too_young = nack.consumer is not None and nack.delivery_ms > latest_ms
        part = None if too_young or options.just_id else lookup.part_of(nack)
        if part is None and not stream.contains(nack.ms, nack.seq):
            note_purge(call, key, group, nack)
            group.drop(nack)
            deleted.append(format_id(nack.ms, nack.seq))
            continue
        if too_young or not _may_claim(call, stream, group, nack, False):
            continue
        group.assign(nack, consumer, call.now_ms)
        if not options.just_id:
            group.count_delivery(nack)
        _claimed(call, key, group, consumer, nack)
        claimed.append(nack)
        if part is not None:
            parts.append(part)
    if made:
        record_consumer(call, key, group, consumer)
    just_ids = claimed if options.just_id else None
    rest = group.pel.from_id(ms, seq, 1)
    next_id = format_id(rest[0].ms, rest[0].seq) if rest else b"0-0"
    return [next_id, _claimed_reply(call, stream, group, just_ids, parts), deleted]


_MODES: Final = (b"silent", b"fail", b"fatal")
AS_THE_MODE: Final = -1
_NUMIDS_MAX: Final = 2**31 - 1


class _Options:
    """The options of XNACK; ``count`` is the delivery count to set, or ``AS_THE_MODE``."""

    def __init__(self, mode: bytes) -> None:
        self.mode: Final = mode
        self.ids: list[bytes] = []
        self.count = AS_THE_MODE
        self.force = False


def xnack(call: Call) -> object:
    """Give entries back to their group. Reply: how many were released. Raises: NOGROUP.

    SILENT takes the delivery back, FAIL counts it, FATAL sets the count to the greatest there is.
    FORCE also takes entries that are not pending.
    """
    argv = call.argv
    stream, group = group_of(stream_to_change(call, argv[1]), argv[1], argv[2])
    refuse_elsewhere(call, stream, group)
    options = _read(argv)
    released: list[Nack] = []
    counts: list[int] = []
    for ms, seq in strict_ids(options.ids):
        nack = _nack(stream, group, ms, seq, options.force)
        if nack is None:
            continue
        group.release(nack)
        counts.append(nack.count)
        nack.count = _count(nack.count, options)
        released.append(nack)
    if released:
        call.changed(argv[1], PENDING_RELEASED, argv, count=len(released))
        if call.server.policies is not None and not call.replaying:
            policies().released(*(call, argv[1], stream, group), *(released, counts, options.mode))
    return len(released)


def _read(argv: list[bytes]) -> _Options:
    options = _Options(argv[3].lower())
    if options.mode not in _MODES:
        raise CommandError(errors.XNACK_MODE)
    at = 4
    while at < len(argv):
        word = argv[at].lower()
        more = len(argv) - 1 - at
        if word == b"ids" and more:  # of several the last one counts
            count = bounded(argv[at + 1], 1, _NUMIDS_MAX, errors.XNACK_NUMIDS)
            if count > more - 1:
                raise CommandError(errors.XNACK_NUMIDS_MISMATCH)
            options.ids = argv[at + 2 : at + 2 + count]
            at += 2 + count
        elif word == b"retrycount" and more:
            options.count = integer(argv[at + 1])
            if options.count < 0:
                raise CommandError(errors.XNACK_RETRYCOUNT)
            at += 2
        elif word == b"force":
            options.force = True
            at += 1
        else:
            raise CommandError(errors.unrecognized_xnack_option(argv[at]))
    if not options.ids:
        raise CommandError(errors.XNACK_IDS_EXPECTED)
    return options


def _nack(stream: Stream, group: Group, ms: int, seq: int, force: bool) -> Nack | None:
    """Return the pending entry; ``force`` makes one never delivered, if the entry exists."""
    nack = group.pel.get(ms, seq)
    if nack is None and force and stream.contains(ms, seq):
        nack = group.add_pending(ms, seq, None, 0)
        nack.count = 0
    return None if nack is not None and nack.is_aside() else nack


def _count(count: int, options: _Options) -> int:
    if options.count != AS_THE_MODE:
        return options.count
    if options.mode == b"silent":
        return max(0, count - 1)
    return COUNT_MAX if options.mode == b"fatal" else count


def xdelex(call: Call) -> object:
    """Reply: for each ID 1 where it was deleted, -1 where there is no such entry, 2 where a group
        still needs it (ACKED).
    Source: xdelexCommand.
    """
    argv = call.argv
    stream = stream_to_change(call, argv[1])
    mode, texts = mode_and_ids(argv, 2)
    if stream is None:
        return [MISSING] * len(texts)
    ids = strict_ids(texts)
    if call.server.data.region is not None:
        return shared_streams().delete_by_mode(call, argv[1], stream, mode, ids)
    pending = pending_count(stream) if mode == DELREF else 0
    reply: list[object] = []
    deleted = 0
    for ms, seq in ids:
        outcome = delete(stream, ms, seq, mode)
        reply.append(outcome)
        if outcome == DELETED:
            deleted += 1
    freed = mode == DELREF and pending_count(stream) < pending and is_held_back(stream)
    if deleted:
        call.changed(argv[1], XDELETED, argv, count=deleted, wakes=freed)
    elif mode == DELREF and pending_count(stream) < pending:
        # To Redis this is no change, but it must not come back when the record is repeated.
        call.changed(argv[1], PENDING_CHANGED, argv, count=0, wakes=freed)
    return reply


def xackdel(call: Call) -> object:
    """Reply: for each ID 1 where it was acknowledged and deleted, -1 where it was not pending, 2
        where it was acknowledged but another group still needs it (ACKED).
    Source: xackdelCommand.
    """
    argv = call.argv
    stream = stream_at(call, argv[1])
    mode, texts = mode_and_ids(argv, 3)
    group = None if stream is None else stream.groups.get(argv[2])
    if stream is None or group is None:
        return [MISSING] * len(texts)
    ids = strict_ids(texts)
    if group.places is not None:
        refuse_elsewhere(call, stream, group)
        return shared_streams().ack_and_delete(call, argv[1], stream, group, mode, ids)
    reply: list[object] = []
    acknowledged = 0
    length = stream.length
    for ms, seq in ids:
        if not group.ack(ms, seq):
            reply.append(MISSING)
            continue
        acknowledged += 1
        kept = delete(stream, ms, seq, mode) == REFERENCED
        reply.append(REFERENCED if kept else DELETED)
    if acknowledged:
        event = XDELETED if stream.length < length else PENDING_CHANGED
        call.changed(argv[1], event, argv, count=acknowledged, wakes=is_held_back(stream))
    return reply
