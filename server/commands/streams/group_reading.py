"""XREADGROUP: what a group has not been given yet, what may be claimed, and a consumer's history.

For each stream, claims are made first (``CLAIM``). New entries are handed out then. The limits
count both together. What happened is recorded as the XCLAIM of each entry and the group's new
position. Source: t_stream.c, xreadCommand.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import mypyc_attr

from headrace.compat import errors
from headrace.compat.errors import CommandError, no_key_or_group
from headrace.compat.stream_ids import format_id
from headrace.protocol.packing import NOT_SHOWN, Packer, SizeLimit, StreamsReply
from headrace.protocol.replies import NULL_ARRAY
from headrace.server.commands.streams.args import (
    PENDING_CHANGED,
    add_entries,
    count_entries,
    stream_to_read,
    strict_id,
    within,
)
from headrace.server.commands.streams.groups import (
    EntryForGroup,
    claim_record,
    claims_are_awaited,
    consumer_seen,
    record_consumer,
    refuse_elsewhere,
)
from headrace.server.commands.streams.options import NO_CLAIM, ReadOptions, read_options_of
from headrace.server.commands.streams.reading import GREATEST, parts_after
from headrace.server.commands.streams.shared import shared_streams
from headrace.server.dispatch.call import Call
from headrace.server.waiting import Parked
from headrace.storage.stream.delivery import Claim, claimable, hand_out, has_new
from headrace.storage.stream.groups import Consumer, Group
from headrace.storage.stream.lookup import Lookup
from headrace.storage.stream.part import Part
from headrace.storage.stream.pel import Nack
from headrace.storage.stream.run import following
from headrace.storage.stream.stream import Stream

NO_LIMIT: Final = -1
_SHOWN_BYTES_LEAST: Final = 16  # of an entry in a history, one that was deleted included


@mypyc_attr(acyclic=True)
class _Source:
    """One stream of the request: where it is read from, and after which ID; None is ``>``."""

    def __init__(
        self, key: bytes, stream: Stream, group: Group, after: tuple[int, int] | None
    ) -> None:
        self.key: Final = key
        self.stream: Final = stream
        self.group: Final = group
        self.after: Final = after


@mypyc_attr(acyclic=True)
class _Reading:
    """One XREADGROUP at work.

    Attributes:
        entries_left: what MAXCOUNT still allows, or ``NO_LIMIT``.
        size: what MAXSIZE still allows; None without it.
        taken: how many entries the reply has.
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
        """The most entries of the next stream."""
        return _tighter(self.options.count or NO_LIMIT, self.entries_left)

    def is_full(self) -> bool:
        """Return whether a limit on the whole reply is reached."""
        if self.size is not None and self.size.is_reached():
            return True
        return self.taken > 0 and self.entries_left == 0

    def took(self, entries: int) -> None:
        """Count entries of the reply."""
        self.taken += entries
        if self.entries_left != NO_LIMIT:
            self.entries_left -= entries


def xreadgroup(call: Call) -> object:
    """Read for a group.

    ``>`` hands out new entries, any other ID shows what the consumer has pending after it.

    Reply: a map from key to entries; nil when no stream has any.
    Raises: NOGROUP, WRONGTYPE.
    """
    options = read_options_of(call.argv, call.now_ms, True)
    sources = _sources(call, options)
    reading = _Reading(call, options)
    for source in sources:
        group = source.group
        known = len(group.consumers)
        consumer = consumer_seen(call, source.key, group, options.consumer)
        made = len(group.consumers) > known
        if source.after is None:
            _read_new(reading, source, consumer)
        else:
            _read_history(reading, source, source.after, consumer)
        if made:
            record_consumer(call, source.key, group, consumer, options.noack)
        if reading.is_full():
            break
    if reading.reply.streams:
        return reading.reply.whole()
    if not options.block_at or not call.may_block:
        return NULL_ARRAY
    keys = [source.key for source in sources]
    wanted = EntryForGroup(options.group, options.consumer, options.claim_ms)
    return Parked(keys, options.deadline_ms, call.argv, NULL_ARRAY, wanted)


def _sources(call: Call, options: ReadOptions) -> list[_Source]:
    argv = call.argv
    width = (len(argv) - options.streams_at) // 2
    sources: list[_Source] = []
    for at in range(options.streams_at, options.streams_at + width):
        key = argv[at]
        stream = stream_to_read(call, key)
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
        sources.append(_Source(key, stream, group, after))
    return sources


def _read_history(
    reading: _Reading, source: _Source, after: tuple[int, int], consumer: Consumer
) -> None:
    """Show what ``consumer`` has pending; this delivers it once more, which is not recorded."""
    reading.claim_ms = NO_CLAIM
    call = reading.call
    group = source.group
    entries = Packer(call.session.resp3)
    ms, seq = after
    start = following(ms, seq)
    limit = reading.limit()
    shown = 0
    size = reading.size
    if size is not None:
        size.begin(source.key)
        limit = _tighter(limit, size.left() // _SHOWN_BYTES_LEAST + 1)
    nacks = consumer.pel.from_id(start[0], start[1], max(0, limit))
    lookup = Lookup(source.stream, nacks)
    for nack in nacks:
        if size is not None and size.is_reached():
            break
        before_bytes = entries.wire_bytes()
        part = lookup.part_of(nack)
        if part is None:
            entries.array(2)
            entries.id(nack.ms, nack.seq)
            entries.null_array()
            shown += 1
        else:
            places = group.places
            parts = [part] if places is None else places.with_namesakes(source.stream, part)
            add_entries(entries, parts, False)
            shown += len(parts)
        if size is not None:
            size.give(entries.wire_bytes() - before_bytes)
        reading.took(1)
        if part is not None:
            group.assign(nack, consumer, call.now_ms)
            nack.count_up()
    if size is not None:
        size.end(shown)
    reading.reply.begin(source.key, shown)
    reading.reply.add(entries)


def _read_new(reading: _Reading, source: _Source, consumer: Consumer) -> None:
    """Claim and hand out for one stream; it joins the reply when there is something to give."""
    call = reading.call
    group = source.group
    claiming = reading.claim_ms != NO_CLAIM
    if not claiming and not has_new(source.stream, group):
        return
    limit = reading.limit()
    size = reading.size
    claims: list[Claim] | None = None
    if claiming:
        most_bytes = 0 if size is None else size.left()
        latest_ms = call.now_ms - reading.claim_ms
        claims = claimable(source.stream, group, latest_ms, limit, most_bytes)
        if not claims and not has_new(source.stream, group):
            return
    if size is not None:
        size.begin(source.key)
    last = (group.last_ms, group.last_seq)
    records: list[list[bytes]] = []
    claimed: Packer | None = None
    count = shown = 0
    if claims:
        claimed = Packer(call.session.resp3)
        count, shown = _claim(reading, source, consumer, claims, records, claimed)
        if limit != NO_LIMIT:
            limit -= count
    parts: list[Part] = []
    limit = _tighter(limit, group.room())
    if limit != 0 and not (count and reading.is_full()):
        most_bytes = 0 if size is None else size.left()
        if group.places is None:
            parts = parts_after(source.stream, last, max(0, limit), most_bytes)
        else:
            parts = group.places.parts(source.stream, max(0, limit), most_bytes)
        if size is not None:
            parts = within(parts, size, 0 if claiming else NOT_SHOWN)
    new = count_entries(parts)
    if size is not None:
        size.end(shown + new)
    reading.reply.begin(source.key, shown + new)
    if claimed is not None:
        reading.reply.add(claimed)
    if new:
        reading.took(new)
        _hand_out(reading, source, consumer, parts, records)
    if count or new:
        noack = reading.options.noack
        awaited = not noack and claims_are_awaited(call, source.key, group)
        _report(call, source.key, records, awaited)
        if noack and new and group.places is not None:
            shared_streams().note_acknowledged(call, source.key, source.stream, group)


def _claim(
    reading: _Reading,
    source: _Source,
    consumer: Consumer,
    claims: list[Claim],
    records: list[list[bytes]],
    claimed: Packer,
) -> tuple[int, int]:
    """Take over what has been idle for long enough, as far as MAXSIZE allows.

    Args:
        claimed: where the entries are to be shown.

    Returns: how many IDs were pending, and how many entries are shown.
    """
    call = reading.call
    group = source.group
    size = reading.size
    recording = call.recorded
    count = shown = 0
    for claim in claims:
        if size is not None and size.is_reached():
            break
        nack = claim.nack
        idle_ms = max(0, call.now_ms - nack.delivery_ms)
        before_bytes = claimed.wire_bytes()
        part = claim.part
        places = group.places
        parts = [part] if places is None else places.with_namesakes(source.stream, part)
        add_entries(claimed, parts, False, idle_ms, nack.count)
        shown += len(parts)
        if size is not None:
            size.give(claimed.wire_bytes() - before_bytes)
        count += 1
        reading.took(1)
        group.assign(nack, consumer, call.now_ms)
        nack.count_up()
        if recording:
            records.append(claim_record(source.key, group, nack, group.last_ms, group.last_seq))
    if count:
        consumer.active_ms = call.now_ms
    return count, shown


def _hand_out(
    reading: _Reading,
    source: _Source,
    consumer: Consumer,
    parts: list[Part],
    records: list[list[bytes]],
) -> None:
    """Put new entries into the reply and hand them out."""
    call = reading.call
    group = source.group
    noack = reading.options.noack
    idle_ms = NOT_SHOWN if reading.claim_ms == NO_CLAIM else 0
    add_entries(reading.reply, parts, False, idle_ms)
    last = (group.last_ms, group.last_seq)
    hand_out(source.stream, group, parts, None if noack else consumer, call.now_ms)
    if not noack:
        consumer.active_ms = call.now_ms
    if call.recorded:
        if not noack:
            _record_deliveries(source.key, group, consumer, parts, call.now_ms, last, records)
        records.append(_position_record(source.key, group, parts))


def _position_record(key: bytes, group: Group, parts: list[Part]) -> list[bytes]:
    """The record of how far the group has come with these parts."""
    if group.places is not None:
        return shared_streams().place_record(key, group, parts)
    return [
        b"XGROUP",
        b"SETID",
        key,
        group.name,
        format_id(group.last_ms, group.last_seq),
        b"ENTRIESREAD",
        b"%d" % group.entries_read,
    ]


def _record_deliveries(
    key: bytes,
    group: Group,
    consumer: Consumer,
    parts: list[Part],
    now_ms: int,
    last: tuple[int, int],
    records: list[list[bytes]],
) -> None:
    """Add the XCLAIM of each entry handed out; ``last`` is the group's last ID before that."""
    for part in parts:
        for number in range(part.low, part.high):
            if part.dead is None or not part.dead[number]:
                nack = Nack(part.run.ms[number], part.run.seq[number], consumer, now_ms)
                records.append(claim_record(key, group, nack, last[0], last[1]))


def _report(call: Call, key: bytes, records: list[list[bytes]], ready: bool) -> None:
    """One change, however many records it takes to repeat it.

    Args:
        ready: somebody waits for what is pending from now on.
    """
    if not records:
        call.changed(key, PENDING_CHANGED, None, wakes=ready)
        return
    count = 1
    for record in records:
        call.changed(key, PENDING_CHANGED, record, count=count, wakes=ready)
        count = 0


def _tighter(limit: int, other: int) -> int:
    """The smaller of two limits; a negative one is no limit."""
    if limit < 0:
        return other
    return limit if other < 0 else min(limit, other)
