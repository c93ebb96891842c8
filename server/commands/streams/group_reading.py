"""XREADGROUP: new entries of a group, entries that may be claimed, and a consumer's history.

Each stream goes through four passes. What goes out is **chosen** within all limits, as plain data:
of ``>`` what is claimed (``CLAIM``) and then new entries, of another ID what the consumer has
pending. It is put into the **reply**, as it was before. It is **delivered** to the group and the
consumer. And that is **recorded** as the XCLAIM of each entry and the group's new position.

Source: t_stream.c, xreadCommand. XREAD-GROUP is its first spelling; see ``compat.group_dialect``.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import mypyc_attr

from headrace.compat import errors, group_dialect
from headrace.compat.errors import CommandError, no_key_or_group
from headrace.compat.stream_ids import format_id
from headrace.protocol.packing import (
    NOT_SHOWN,
    SizeLimit,
    StreamsReply,
    deleted_entry_bytes,
    entry_bytes,
)
from headrace.protocol.replies import NULL_ARRAY
from headrace.server.commands.streams.args import (
    NO_CLAIM,
    PENDING_CHANGED,
    ReadOptions,
    add_entries,
    count_entries,
    read_options_of,
    strict_id,
    within,
)
from headrace.server.commands.streams.groups import (
    EntryForGroup,
    claim_record,
    claims_are_awaited,
    consumer_seen,
    reached_record,
    record_consumer,
    refuse_elsewhere,
)
from headrace.server.commands.streams.reading import GREATEST, parts_after
from headrace.server.commands.streams.shared import policies, shared_streams
from headrace.server.commands.typed_keys import stream_at
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.key_specs import xread_keys
from headrace.server.dispatch.rows import finds_keys
from headrace.server.waiting import Parked
from headrace.storage.stream.delivery import (
    PendingEntry,
    claimable,
    hand_out,
    has_new,
    pending_entries,
)
from headrace.storage.stream.groups import Consumer, Group
from headrace.storage.stream.part import Part
from headrace.storage.stream.pel import Nack
from headrace.storage.stream.run import following
from headrace.storage.stream.stream import Stream

NO_LIMIT: Final = -1
_NONE_PENDING: Final[list[PendingEntry]] = []  # not to be changed
_NOTHING_NEW: Final[list[Part]] = []
_SHOWN_BYTES_LEAST: Final = 16  # of an entry in a history, one that was deleted included


@mypyc_attr(acyclic=True)
class _Source:
    """One stream of the request, and what goes out of it.

    ``after`` is the ID behind which the history is read, None for ``>``. ``pending`` has what is
    claimed or shown of a history, and stands before the ``new_count`` entries of ``new``; ``count``
    counts both.
    """

    def __init__(
        self, key: bytes, stream: Stream, group: Group, after: tuple[int, int] | None
    ) -> None:
        self.key: Final = key
        self.stream: Final = stream
        self.group: Final = group
        self.after: Final = after
        self.pending = _NONE_PENDING
        self.new = _NOTHING_NEW
        self.new_count = 0
        self.count = 0


@mypyc_attr(acyclic=True)
class _Reading:
    """One XREADGROUP being run.

    Attributes:
        entries_left: what MAXCOUNT still allows, or ``NO_LIMIT``.
        size: what MAXSIZE still allows; None without it.
        taken: how many entries are chosen.
        claim_ms: as in ``options``; ``NO_CLAIM`` after a history was read, as in Redis.
    """

    def __init__(self, call: Call, options: ReadOptions) -> None:
        self.call: Final = call
        self.options: Final = options
        self.reply: Final = StreamsReply(call.session.resp3)
        self.entries_left = options.max_count or NO_LIMIT
        self.size: Final = (
            SizeLimit(options.max_size, call.session.resp3) if options.max_size else None
        )
        self.taken = 0
        self.claim_ms = options.claim_ms

    def limit(self) -> int:
        """Return the most entries of the next stream."""
        return _tighter(self.options.count or NO_LIMIT, self.entries_left)

    def bytes_left(self) -> int:
        """Return the bytes that MAXSIZE still allows; 0 without it."""
        return 0 if self.size is None else self.size.left()

    def is_full(self) -> bool:
        """Return whether a limit on the whole reply is reached."""
        if self.size is not None and self.size.is_reached():
            return True
        return self.taken > 0 and self.entries_left == 0

    def took(self, entries: int) -> None:
        self.taken += entries
        if self.entries_left != NO_LIMIT:
            self.entries_left -= entries


def xreadgroup(call: Call) -> object:
    """Hand out new entries for ``>``, or show what the consumer has pending after any other ID.

    Reply: a map from key to entries; nil when no stream has any. Raises: NOGROUP, WRONGTYPE.
    """
    options = read_options_of(call.argv, call.now_ms, True)
    sources = _sources(call, options)
    reading = _Reading(call, options)
    for source in sources:
        group = source.group
        known = len(group.consumers)
        consumer = consumer_seen(call, source.key, group, options.consumer)
        made = len(group.consumers) > known
        if source.after is not None:
            _choose_of_history(reading, source, source.after, consumer)
            _reply(reading, source)
            _deliver(reading, source, consumer)
        elif _choose(reading, source):
            last = (group.last_ms, group.last_seq)
            _reply(reading, source)
            _deliver(reading, source, consumer)
            _record(reading, source, consumer, last)
        if made:
            record_consumer(call, source.key, group, consumer, options.noack)
        if reading.is_full():
            break
    if reading.reply.streams:
        return reading.reply.whole()
    if not options.block_at or not call.may_block:
        return NULL_ARRAY
    keys = [source.key for source in sources]
    ripens = any(source.group.rules is not None for source in sources)
    wanted = EntryForGroup(options.group, options.consumer, options.claim_ms, ripens)
    return Parked(keys, options.deadline_ms, call.argv, NULL_ARRAY, wanted)


@finds_keys("XREAD-GROUP")
def _read_group_keys(argv: list[bytes]) -> list[int]:
    """Return the keys of XREAD-GROUP; a request that has waited has XREADGROUP's words."""
    if group_dialect.is_translated(argv):
        return xread_keys(argv)
    return group_dialect.read_group_keys(argv)


def xread_group(call: Call) -> object:
    """Reply: that of XREADGROUP."""
    if not group_dialect.is_translated(call.argv):  # it is when the request has waited
        call.argv = group_dialect.read_group(call.argv)
    return xreadgroup(call)


def _sources(call: Call, options: ReadOptions) -> list[_Source]:
    argv = call.argv
    width = (len(argv) - options.streams_at) // 2
    sources: list[_Source] = []
    for at in range(options.streams_at, options.streams_at + width):
        key = argv[at]
        stream = stream_at(call, key)
        group = None if stream is None else stream.groups.get(options.group)
        has_policies = call.server.policies is not None
        if group is None and has_policies and policies().create(call, key, options.group):
            stream = stream_at(call, key)
            group = None if stream is None else stream.groups.get(options.group)
        if stream is None or group is None:
            line = no_key_or_group(key, options.group)
            raise CommandError(line + b" in XREADGROUP with GROUP option")
        text = argv[at + width]
        if text == b"$" or text == b"+":
            raise CommandError(errors.not_for_groups(text))
        after: tuple[int, int] | None = None
        if text != b">":
            after = strict_id(text)
            if after == GREATEST:  # which is what ``>`` stands for
                after = None
        if after is None and group.places is not None:
            refuse_elsewhere(call, stream, group)
        if has_policies:
            policies().attend(call, key, stream, group)
            if options.noack and group.rules is not None and group.rules.keeps_order:
                raise CommandError(errors.NOACK_BREAKS_ORDER)
        sources.append(_Source(key, stream, group, after))
    return sources


def _choose(reading: _Reading, source: _Source) -> bool:
    """Choose what is claimed and what is new; return whether the stream is in the reply."""
    now_ms = reading.call.now_ms
    stream = source.stream
    group = source.group
    size = reading.size
    claiming = reading.claim_ms != NO_CLAIM
    limit = reading.limit()
    claims = _NONE_PENDING
    if claiming:
        latest_ms = now_ms - reading.claim_ms
        claims = claimable(stream, group, latest_ms, limit, reading.bytes_left())
    if group.rules is not None:
        claims = policies().choose(
            *(reading.call, source.key, stream, group, reading.options),
            *(claims, limit, reading.bytes_left()),
        )
    new = has_new(stream, group)
    if group.rules is not None and not group.rules.most_new:
        new = bool(group.rules.new)
    if not claims and not new:
        return False
    if size is not None:
        size.begin(source.key)
    count = 0
    if claims:
        claims = _pending_within(reading, claims, now_ms)
        reading.took(len(claims))
        if limit != NO_LIMIT:
            limit -= len(claims)
        for claim in claims:
            count += claim.shown()
        source.pending = claims
    limit = _tighter(limit, group.room())
    parts = _NOTHING_NEW
    if group.rules is not None:
        limit = _tighter(limit, group.rules.most_new)
        parts = group.rules.new
    if not parts and limit != 0 and not (claims and reading.is_full()):
        parts = next_parts(stream, group, max(0, limit), reading.bytes_left())
        if size is not None:
            parts = within(parts, size, 0 if claiming else NOT_SHOWN)
    if parts:
        entries = count_entries(parts)
        reading.took(entries)
        count += entries
        source.new_count = entries
        source.new = parts
    if size is not None:
        size.end(count)
    source.count = count
    return True


def next_parts(stream: Stream, group: Group, most: int, most_bytes: int = 0) -> list[Part]:
    """Return where the next new entries of a group are; see ``EntryLog.parts``."""
    if group.places is not None:
        return group.places.parts(stream, most, most_bytes)
    return parts_after(stream, (group.last_ms, group.last_seq), most, most_bytes)


def _choose_of_history(
    reading: _Reading, source: _Source, after: tuple[int, int], consumer: Consumer
) -> None:
    reading.claim_ms = NO_CLAIM
    size = reading.size
    ms, seq = after
    start = following(ms, seq)
    limit = reading.limit()
    if size is not None:
        size.begin(source.key)
        limit = _tighter(limit, size.left() // _SHOWN_BYTES_LEAST + 1)
    nacks = consumer.pel.from_id(start[0], start[1], max(0, limit))
    found = pending_entries(source.stream, source.group, nacks, reading.bytes_left())
    source.pending = _pending_within(reading, found, NOT_SHOWN)
    reading.took(len(source.pending))
    for each in source.pending:
        source.count += each.shown()
    if size is not None:
        size.end(source.count)


def _pending_within(
    reading: _Reading, pending: list[PendingEntry], now_ms: int
) -> list[PendingEntry]:
    """Return the entries that MAXSIZE allows, and count them; ``NOT_SHOWN`` hides idle times."""
    size = reading.size
    if size is None:
        return pending
    for number, each in enumerate(pending):
        if size.is_reached():
            return pending[:number]
        nack = each.nack
        idle_ms = NOT_SHOWN if now_ms == NOT_SHOWN else max(0, now_ms - nack.delivery_ms)
        total = 0
        for part in each.parts():
            run, at = part.run, part.low
            total += entry_bytes(run.ms[at], run.seq[at], run.row(at), idle_ms, nack.count)
        size.give(total or deleted_entry_bytes(nack.ms, nack.seq, reading.call.session.resp3))
    return pending


def _reply(reading: _Reading, source: _Source) -> None:
    """Put into the reply what is chosen, and with CLAIM for how long each has been idle."""
    now_ms = reading.call.now_ms
    reply = reading.reply
    reply.begin(source.key, source.count)
    claiming = reading.claim_ms != NO_CLAIM
    for each in source.pending:
        nack = each.nack
        if each.part is not None:
            idle_ms = max(0, now_ms - nack.delivery_ms) if claiming else NOT_SHOWN
            add_entries(reply, each.parts(), False, idle_ms, nack.count)
        else:
            reply.deleted_entry(nack.ms, nack.seq)
    add_entries(reply, source.new, False, 0 if claiming else NOT_SHOWN)


def _deliver(reading: _Reading, source: _Source, consumer: Consumer) -> None:
    """Give the consumer what is chosen; what was deleted stays as it is."""
    group = source.group
    now_ms = reading.call.now_ms
    noack = reading.options.noack
    for each in source.pending:
        if noack and not each.nack.count and group.rules is not None:
            group.drop(each.nack)
        elif each.part is not None:
            group.assign(each.nack, consumer, now_ms)
            group.count_delivery(each.nack)
    if source.after is None and (source.pending or (source.new and not noack)):
        consumer.active_ms = now_ms
    if source.new:
        group.deliveries += source.new_count
        hand_out(source.stream, group, source.new, None if noack else consumer, now_ms)


def _record(reading: _Reading, source: _Source, consumer: Consumer, last: tuple[int, int]) -> None:
    """Record and report what was claimed and given after the ID ``last``: one change in all."""
    if not source.pending and not source.new:
        return
    call = reading.call
    key = source.key
    group = source.group
    noack = reading.options.noack
    awaited = not noack and claims_are_awaited(call, key, group)
    if call.recorded:
        count = 1
        for record in _records(call, source, consumer, last, noack):
            call.changed(key, PENDING_CHANGED, record, count=count, wakes=awaited)
            count = 0
    else:
        call.changed(key, PENDING_CHANGED, None, wakes=awaited)
    if noack and group.places is not None:
        shared_streams().note_acknowledged(call, key, source.stream, group)


def _records(
    call: Call, source: _Source, consumer: Consumer, last: tuple[int, int], noack: bool
) -> list[list[bytes]]:
    """Return the XCLAIM of each entry, and then the group's position."""
    records: list[list[bytes]] = []
    key = source.key
    group = source.group
    last_ms, last_seq = last
    for each in source.pending:
        nack = each.nack
        if nack.count:
            records.append(claim_record(key, group, nack, last_ms, last_seq))
        else:
            records.append([b"XACK", key, group.name, format_id(nack.ms, nack.seq)])
    if not source.new:
        return records
    if not noack:
        for part in source.new:
            for number in range(part.low, part.high):
                if part.dead is None or not part.dead[number]:
                    ms, seq = part.run.ms[number], part.run.seq[number]
                    nack = Nack(ms, seq, consumer, call.now_ms)
                    records.append(claim_record(key, group, nack, last_ms, last_seq))
    records.append(reached_record(key, group, source.new))
    return records


def _tighter(limit: int, other: int) -> int:
    """Return the smaller of two limits; a negative one is no limit."""
    if limit < 0:
        return other
    return limit if other < 0 else min(limit, other)
