"""The commands of streams in a region; their effects stand beside this.

XREAD STABLE gives entries up to where nothing can come any more, so that a reader skips none.
Entries of other regions come late, and may have lower IDs than those read. A reader with STABLE is
given only stable ones (``Region.stable_ms``), and waits while there is more.
"""

from __future__ import annotations

from typing import Final

from headrace.compat import errors
from headrace.compat.errors import CommandError
from headrace.compat.stream_ids import format_id
from headrace.protocol.packing import Constant, Packer
from headrace.protocol.replies import NULL_ARRAY, OK
from headrace.regions.commands.state import drop_tombstone, note_outlived, remembered, take_deadline
from headrace.regions.commands.stream_effects import (
    LaneEntry,
    delete_entries,
    limits_record,
    publish,
    set_first_limits,
)
from headrace.regions.commands.xadd import entry_record
from headrace.regions.exchange.effects import emit, region_of
from headrace.regions.exchange.heartbeats import ask_for_stable
from headrace.regions.knowledge.stability import NO_STABLE_MS
from headrace.regions.lanes.group_state import ANYWHERE, start_after, start_after_seen
from headrace.regions.lanes.merge import reached_by
from headrace.regions.lanes.places import places_of, release
from headrace.regions.lanes.stream import RegionalStream
from headrace.regions.lanes.trim import entries_to_trim, lanes_below, lanes_by_length
from headrace.server.commands.streams.args import (
    MAXLEN,
    NO_TRIM,
    PENDING_CHANGED,
    REFERENCE_MODES,
    XADDED,
    AddOptions,
    ReadOptions,
    TrimOptions,
    strict_id,
)
from headrace.server.commands.streams.reading import EntryAfter, Readers
from headrace.server.commands.streams.shared import SharedStreams, shares_streams
from headrace.server.dispatch.call import Call
from headrace.server.state import Server
from headrace.server.waiting import Line, Parked, Queue, Waiter
from headrace.storage.sharing import AA, LIBERAL, STRICT
from headrace.storage.stream.groups import Group
from headrace.storage.stream.idmp import Iid
from headrace.storage.stream.part import Part
from headrace.storage.stream.references import (
    ACKED,
    DELETED,
    DELREF,
    KEEPREF,
    MISSING,
    REFERENCED,
    Trim,
    is_held_back,
    is_referenced,
)
from headrace.storage.stream.run import ID_MAX, following
from headrace.storage.stream.stream import Stream
from headrace.storage.vectors import ID, NO_ID, encode_lanes, encode_numbers

_INTEREST: Final = b"stable entries"
_LANES: Final = Constant(b"lanes")
_STABLE_ID: Final = Constant(b"stable-id")
_NAME: Final = Constant(b"name")
_LENGTH: Final = Constant(b"length")
_LAST_ID: Final = Constant(b"last-id")
_REMOVED_UP_TO: Final = Constant(b"removed-up-to")
_PLACES: Final = Constant(b"places")
_HOME: Final = Constant(b"home")


def stable_id(server: Server, stream: RegionalStream) -> ID | None:
    """Return the ID up to which nothing can come any more; (0, 0) while that is not known.

    Returns: None where callers give IDs that may come late.
    """
    if stream.is_manual():
        return None
    ms = region_of(server).stable_ms()
    return NO_ID if ms == NO_STABLE_MS else (ms, ID_MAX)


def parts_up_to(
    stream: Stream, after: ID, bound: ID, count: int, most_bytes: int = 0
) -> list[Part]:
    """Return where the entries after an ID are, up to a bound. See ``EntryLog.parts``."""
    if after >= bound or not stream.length:
        return []
    return stream.parts(following(after[0], after[1]), bound, count, False, most_bytes)


class StableEntryAfter(EntryAfter):
    """An entry after an ID, once nothing can come before it."""

    def __init__(self, server: Server, after: list[ID]) -> None:
        super().__init__(after, _INTEREST)
        self.server: Final = server

    def new_line(self, queue: Queue) -> Line:
        return StableReaders(queue, self)


class StableReaders(Readers):
    """The clients that wait for stable entries at one key."""

    def __init__(self, queue: Queue, interest: StableEntryAfter) -> None:
        super().__init__(queue, interest)
        self._server: Final = interest.server

    def add(self, waiter: Waiter, number: int) -> None:
        super().add(waiter, number)
        region_of(self._server).stable_readers[self.queue.key] = None

    def remove(self, waiter: Waiter, number: int) -> None:
        super().remove(waiter, number)
        if self.is_empty():
            region_of(self._server).stable_readers.pop(self.queue.key, None)

    def candidates(self, value: object | None) -> list[Waiter]:
        """Return who is served, see ``SharedLine``: all, where the stream has no stable IDs."""
        if not isinstance(value, RegionalStream):
            return []
        bound = stable_id(self._server, value)
        found: list[Waiter] = []
        for after, same in self.by_id.items():
            if bound is None or parts_up_to(value, after, bound, 1):
                found.extend(same.values())
        found.sort(key=lambda waiter: waiter.ticket)
        return found


class RegionalStreams(SharedStreams):
    """The operations on streams that several regions write; see ``SharedStreams``."""

    def new(self, call: Call, key: bytes) -> Stream:
        server = call.server
        call.db.end_held(key, call.now_ms)
        stream = remembered(server, key)
        if stream.limits.winner() is None:
            config = server.config
            stream.idmp_duration_s = config.stream_idmp_duration
            stream.idmp_maxsize = config.stream_idmp_maxsize
        return stream

    def finds_seq(self, call: Call, word: bytes, next_seq: bool) -> bool:
        mode = region_of(call.server).mode
        if next_seq:
            return True
        if b"-" not in word:
            return mode != LIBERAL
        if mode == STRICT:
            raise CommandError(errors.FULL_ID_IN_STRICT_MODE)
        return False

    def is_manual(self, call: Call, stream: Stream, ms: int) -> bool:
        assert isinstance(stream, RegionalStream)
        region = region_of(call.server)
        if stream.has_made_ids():
            if ms > region.promise_ms:
                return False
            if call.server.config.aa_stable_ids:
                raise CommandError(errors.ID_BELOW_PROMISE)
            return True
        # IDs below the present may be promised at any moment, perhaps before the next such ID.
        return ms <= max(region.promise_ms, call.now_ms - 1)

    def added(
        self,
        call: Call,
        stream: Stream,
        at: int,
        options: AddOptions | None,
        pid: bytes,
        iid: Iid,
        manual: bool,
        created: bool,
    ) -> None:
        assert isinstance(stream, RegionalStream)
        key = call.argv[1]
        if manual:
            stream.mark_manual()
        if created:
            drop_tombstone(call.server, key, stream)
            if stream.ttl.settings:  # which a deletion had not seen
                take_deadline(call.server, key, stream)
        call.changed(key, XADDED, entry_record(call, stream, at, pid, iid, manual))
        if stream.began:
            note_outlived(call.server, key, stream)
        if created and not stream.has_default_limits():
            set_first_limits(call.server, key, stream)
        if options is not None and options.strategy != NO_TRIM:
            self.trim(call, key, stream, options)

    def trim(self, call: Call, key: bytes, stream: Stream, options: TrimOptions) -> int:
        assert isinstance(stream, RegionalStream)
        mode = REFERENCE_MODES[options.mode] if options.mode else KEEPREF
        by_length = options.strategy == MAXLEN
        below = (options.min_ms, options.min_seq)
        if mode != KEEPREF and stream.groups:
            how = Trim(options.threshold if by_length else -1, below, options.most, False)
            entries = entries_to_trim(stream, how, mode)
            return delete_entries(call.server, key, entries, mode == DELREF) if entries else 0
        whole_nodes = mode == KEEPREF
        if by_length:
            lanes = lanes_by_length(
                stream, options.threshold, options.approximate, options.most, whole_nodes
            )
        else:
            lanes = lanes_below(stream, below, options.approximate, options.most, whole_nodes)
        if not lanes:
            return 0
        removed = emit(call.server, [AA, b"TRIM", key, encode_lanes(lanes)])
        assert isinstance(removed, int)
        return removed

    def delete(self, call: Call, key: bytes, stream: Stream, ids: list[ID]) -> int:
        entries = _entries_with(stream, ids)
        return delete_entries(call.server, key, entries) if entries else 0

    def delete_by_mode(
        self, call: Call, key: bytes, stream: Stream, mode: int, ids: list[ID]
    ) -> object:
        reply: list[object] = []
        wanted: list[ID] = []
        for entry_id in ids:
            outcome = _outcome(stream, mode, entry_id, wanted)
            reply.append(outcome)
            if outcome == DELETED:
                wanted.append(entry_id)
        if mode == DELREF:
            self._drop_references(call, key, stream, [each for each in ids if each not in wanted])
        if wanted:
            delete_entries(call.server, key, _entries_with(stream, wanted), mode == DELREF)
        return reply

    def _drop_references(self, call: Call, key: bytes, stream: Stream, ids: list[ID]) -> None:
        """Remove entries that are not there from the pending entries of all groups."""
        for group in stream.groups.values():
            dropped = [format_id(ms, seq) for ms, seq in ids if group.ack(ms, seq)]
            if dropped:
                record = [b"XACK", key, group.name, *dropped]
                call.changed(key, PENDING_CHANGED, record, count=0, wakes=is_held_back(stream))
                self.note_acknowledged(call, key, stream, group)

    def set_id(self, call: Call, stream: Stream, new_id: ID) -> object:
        if len(call.argv) > 3:
            raise CommandError(errors.XSETID_OPTIONS_IN_REGION)
        if new_id < (stream.last_ms, stream.last_seq):
            raise CommandError(errors.XSETID_BELOW_TOP)
        emit(call.server, [AA, b"TOP", call.argv[1], b"%d-%d" % new_id])
        return OK

    def set_limits(
        self, call: Call, key: bytes, stream: Stream, duration_s: int, maxsize: int
    ) -> None:
        assert isinstance(stream, RegionalStream)
        version = stream.limits.next_version()
        emit(call.server, limits_record(key, duration_s, maxsize, version))

    def create_group(self, call: Call, stream: Stream, position: ID, created: bool) -> object:
        assert isinstance(stream, RegionalStream)
        server = call.server
        key, name = call.argv[2], call.argv[3]
        begins = start_after_seen(stream.seen()) if call.argv[4] == b"$" else start_after(position)
        start = begins.encode()
        numbers = encode_numbers(region_of(server).known())
        emit(server, [AA, b"GROUP", key, name, start, numbers])
        if created and not stream.has_default_limits():
            set_first_limits(server, key, stream)
        return OK

    def destroy_group(self, call: Call, stream: Stream) -> int:
        key, name = call.argv[2], call.argv[3]
        if name not in stream.groups:
            return 0
        server = call.server
        emit(server, [AA, b"UNGROUP", key, name, encode_numbers(region_of(server).known())])
        return 1

    def set_mode(self, call: Call, stream: Stream, name: bytes, most: int) -> None:
        assert isinstance(stream, RegionalStream)
        key = call.argv[2]
        version = stream.group_state(name).mode.next_version()
        emit(call.server, [AA, b"MODE", key, name, b"%d" % most, b"%d" % version])

    def set_place(self, stream: Stream, group: Group, position: ID | None) -> None:
        assert isinstance(stream, RegionalStream)
        begins = start_after_seen(stream.seen()) if position is None else start_after(position)
        places_of(group).set(begins, {})
        group.last_ms, group.last_seq = begins.highest()

    def place_record(self, key: bytes, group: Group, parts: list[Part]) -> list[bytes]:
        words = [AA, b"PLACE", key, group.name]
        for lane, entry_id in reached_by(parts).items():
            words += [lane, b"%d-%d" % entry_id]
        return words

    def release_held(
        self, call: Call, key: bytes, stream: Stream, group: Group, consumer: bytes
    ) -> None:
        assert isinstance(stream, RegionalStream)
        if not call.replaying:
            publish(call.server, key, stream, group)
        release(stream, group, group.consumers[consumer].pel)

    def note_acknowledged(self, call: Call, key: bytes, stream: object, group: Group) -> None:
        if call.replaying:
            return
        assert isinstance(stream, RegionalStream)
        server = call.server
        if server.config.aa_ack_interval_ms:
            region_of(server).unpublished[(key, group.name)] = None
            server.host.publish_soon()
        else:
            publish(server, key, stream, group)

    def ack_and_delete(
        self, call: Call, key: bytes, stream: Stream, group: Group, mode: int, ids: list[ID]
    ) -> object:
        reply: list[object] = []
        acknowledged: list[bytes] = []
        wanted: list[ID] = []
        for entry_id in ids:
            ms, seq = entry_id
            if not group.ack(ms, seq):
                reply.append(MISSING)
                continue
            acknowledged.append(format_id(ms, seq))
            kept = mode == ACKED and is_referenced(stream, ms, seq)
            reply.append(REFERENCED if kept else DELETED)
            if not kept and stream.contains(ms, seq):
                wanted.append(entry_id)
        if acknowledged:
            record = [b"XACK", key, group.name, *acknowledged]
            held_back = is_held_back(stream)
            call.changed(key, PENDING_CHANGED, record, count=len(acknowledged), wakes=held_back)
        if wanted:
            delete_entries(call.server, key, _entries_with(stream, wanted), mode == DELREF)
        if acknowledged:
            self.note_acknowledged(call, key, stream, group)
        return reply

    def bound_of(self, call: Call, stream: Stream | None) -> ID:
        ask_for_stable(call.server)
        if not isinstance(stream, RegionalStream):
            return NO_ID
        found = stable_id(call.server, stream)
        if found is None:
            raise CommandError(errors.NO_STABLE_IDS)
        return found

    def first_after(self, text: bytes, stream: Stream | None, bound: ID) -> ID:
        if text == b"$":
            return bound
        if text == b"+":
            last = NO_ID if stream is None else _last_up_to(stream, bound)
            if last == NO_ID:
                return bound
            return (last[0], last[1] - 1) if last[1] else (last[0] - 1, ID_MAX)
        if text == b">":
            raise CommandError(errors.XREAD_NEW_ID)
        return strict_id(text)

    def parts_up_to(
        self, stream: Stream, after: ID, bound: ID, count: int, most_bytes: int
    ) -> list[Part]:
        return parts_up_to(stream, after, bound, count, most_bytes)

    def wait_for_stable(
        self, call: Call, options: ReadOptions, keys: list[bytes], after: list[ID], bounds: list[ID]
    ) -> Parked:
        argv = call.argv.copy()
        at = options.streams_at + len(keys)
        for number, entry_id in enumerate(after):
            if argv[at + number] == b"$" and bounds[number] != NO_ID:
                argv[at + number] = format_id(*entry_id)
        wanted = StableEntryAfter(call.server, after)
        return Parked(keys, options.deadline_ms, argv, NULL_ARRAY, wanted)

    def add_lanes(self, out: Packer, server: Server, stream: Stream) -> None:
        assert isinstance(stream, RegionalStream)
        out.constant(_LANES)
        out.array(len(stream.lanes))
        for lane in stream.lanes:
            out.map(4)
            out.constant(_NAME)
            out.text(lane.name)
            out.constant(_LENGTH)
            out.number(lane.log.length)
            out.constant(_LAST_ID)
            out.id(*lane.last())
            out.constant(_REMOVED_UP_TO)
            out.id(*max(lane.deleted, lane.trimmed))
        out.constant(_STABLE_ID)
        ask_for_stable(server)
        found = stable_id(server, stream)
        if found is None:
            out.null()
        else:
            out.id(*found)

    def add_places(self, out: Packer, group: Group) -> None:
        places = places_of(group)
        out.constant(_PLACES)
        out.array(2 * len(places.place))
        for lane, entry_id in places.place.items():
            out.text(lane)
            out.id(*entry_id)
        out.constant(_HOME)
        home = places.group_state.home_region()
        if home == ANYWHERE:
            out.null()
        else:
            out.number(home)


def _entries_with(stream: Stream, ids: list[ID]) -> list[LaneEntry]:
    """Return the entries that have one of these IDs, in their lanes."""
    assert isinstance(stream, RegionalStream)
    found: dict[LaneEntry, None] = {}
    for ms, seq in ids:
        for lane in stream.holders(ms, seq):
            found[(lane.name, (ms, seq))] = None
    return list(found)


def _outcome(stream: Stream, mode: int, entry_id: ID, wanted: list[ID]) -> int:
    """Return what becomes of an entry; ``wanted`` are to be deleted already."""
    ms, seq = entry_id
    if mode == ACKED and is_referenced(stream, ms, seq):
        return REFERENCED
    return DELETED if entry_id not in wanted and stream.contains(ms, seq) else MISSING


def _last_up_to(stream: Stream, bound: ID) -> ID:
    """Return the ID of the last entry up to a bound; (0, 0) where there is none."""
    for part in stream.parts(NO_ID, bound, 1, True):
        for number in range(part.high - 1, part.low - 1, -1):
            if part.dead is None or not part.dead[number]:
                return part.run.ms[number], part.run.seq[number]
    return NO_ID


shares_streams(RegionalStreams())
