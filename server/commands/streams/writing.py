"""The commands that write a stream: XADD, XTRIM, XDEL, XSETID, XCFGSET, XIDMPRECORD and XIDMP.

XIDMP is the container that idempotent production had in its first design: CFGSET and CFGGET are its
spellings of XCFGSET and of a getter; PRODUCERS is ours.

An XADD with IDMP is recorded with the ID that was chosen. Running the record adds that entry and
makes its iid known, even if it is known: it was not when the entry was added. A repeat is recorded
as it was typed, with ``*``. Running that record finds what the iid was used for, and only counts.
The ID of an entry says when its iid was added. Where that is not true, the record is stamped with
the time, in a comment before it.

Source: t_stream.c; what differs from the public pages is decided by the code.
"""

from __future__ import annotations

from heapq import nsmallest
from typing import Final

from headrace.compat import errors
from headrace.compat.errors import CommandError, wrong_arity
from headrace.compat.glob import Glob
from headrace.compat.stream_ids import format_id, parse_id
from headrace.persistence.forms.stream.form import limits_command
from headrace.protocol.packing import ids_in_sequence, packed_id
from headrace.protocol.replies import NO_REPLIES, OK, Map
from headrace.protocol.sequences import STEP
from headrace.server.commands.streams.args import (
    LAST_ID_SET,
    NO_TRIM,
    PENDING_CHANGED,
    PRODUCERS_CHANGED,
    XADDED,
    XDELETED,
    XTRIMMED,
    AddOptions,
    LengthyIds,
    TrimOptions,
    add_options_of,
    option_name,
    strict_id,
    strict_ids,
    there,
)
from headrace.server.commands.streams.shared import policies, shared_streams
from headrace.server.commands.together import Ran, Requests
from headrace.server.commands.typed_keys import stream_at, stream_to_change
from headrace.server.dispatch.args import Args, integer
from headrace.server.dispatch.call import Call, Lengthy
from headrace.server.dispatch.rows import NONE_ALIKE, alike, lengthy
from headrace.storage.stream.contents import (
    IDMP_DURATION_S,
    IDMP_DURATION_S_MAX,
    IDMP_MAXSIZE,
    IDMP_MAXSIZE_MAX,
)
from headrace.storage.stream.idmp import SHORT_BYTES, IdmpMap, Iid, content_iid, iid_made_of, iid_of
from headrace.storage.stream.references import is_held_back, pending_count
from headrace.storage.stream.stream import Stream

EVER: Final = 0  # a time at which nothing that is recorded has expired yet


def record_iid(call: Call, stream: Stream, pid: bytes, iid: Iid, entry_id: tuple[int, int]) -> None:
    """Remember that a producer used ``iid`` for an entry, and count it."""
    ms, seq = entry_id
    added_ms = call.now_ms
    if call.replaying:
        added_ms = _added_ms(ms, call)
    elif ms != added_ms:
        call.server.changes.stamp_next(added_ms // 1000)
    stream.make_idmp().record(pid, iid, ms, seq, added_ms)
    stream.iids_added += 1


def _added_ms(id_ms: int, call: Call) -> int:
    """Return when an iid was added, as far as a record says.

    The ID of its entry says it to the millisecond, unless the stream's last ID was ahead of the
    clock, or the entry was an older one: then the record was stamped with its second.
    """
    recorded_ms = id_ms
    if call.stamp_s and id_ms // 1000 != call.stamp_s:
        recorded_ms = 1000 * call.stamp_s + 999
    return min(recorded_ms, call.now_ms)


def repeated(call: Call, stream: Stream, known: tuple[int, int]) -> bytes:
    """Count a repeat; return the ID of the entry that was added before.

    A region does not record it, because what begins with XADD there is an entry for all regions.
    """
    stream.iids_duplicates += 1
    record = call.argv if call.server.data.region is None else None
    call.changed(call.argv[1], PRODUCERS_CHANGED, record)
    return format_id(known[0], known[1])


def record_limits(call: Call, key: bytes, stream: Stream) -> None:
    """Record the limits of a new stream, because the configuration may be another at a replay."""
    if not call.recorded or stream.has_default_limits():
        return
    call.record(limits_command(key, stream.idmp_duration_s, stream.idmp_maxsize))
    for pid, iid, ms, seq, _ in stream.idmp_records():
        call.record([b"XIDMPRECORD", key, pid, iid, format_id(ms, seq)])


def without_producer(record: list[bytes], idmp_at: int) -> None:
    """Take IDMP or IDMPAUTO, which stands at ``idmp_at``, out of the record of an XADD."""
    words = 2 if record[idmp_at].lower() == b"idmpauto" else 3
    del record[idmp_at : idmp_at + words]


def iid_named(text: bytes, argv: list[bytes], at: int) -> Iid:
    """Return the iid that IDMP names; without one, as under IDMPAUTO, the iid of the content."""
    if len(text):
        return iid_of(text)
    low, high = content_iid(argv, at + 1)
    return iid_made_of(low, high, SHORT_BYTES, b"")


def xadd(call: Call) -> object:
    """Reply: the entry's ID, or nil when NOMKSTREAM met a missing key. Source: xaddCommand."""
    argv = call.argv
    key = argv[1]
    at = 2
    options: AddOptions | None = None
    pid = text = b""
    automatic = argv[2] == b"*"
    if not automatic:
        at, options, pid, text = _before_id(argv)
        automatic = argv[at] == b"*"
    ms = seq = 0
    next_seq = False
    if not automatic:
        ms, seq, next_seq = _id_wanted(argv[at])
        if pid and not call.replaying:
            raise CommandError(errors.IDMP_WITH_ID)
    if options is not None:
        options.settle(call)
    fields = len(argv) - at - 1
    if fields < 2 or fields % 2:
        raise CommandError(wrong_arity(b"xadd"))
    if not automatic:
        next_seq = _finds_seq(call, argv[at], ms, seq, next_seq)
    stream = stream_to_change(call, key)
    created = stream is None
    if stream is None:
        if options is not None and not options.make_stream:
            return None
        stream = new_stream(call, key)
    idmp: IdmpMap | None = None
    iid: Iid = (0, 0, 0, b"", 0)  # of no producer
    if len(pid):
        iid = iid_named(text, argv, at)
        idmp = stream.idmp
        if automatic:
            if idmp is not None:
                known = idmp.find(pid, iid, EVER if call.replaying else call.now_ms)
                if known is not None:
                    return repeated(call, stream, known)
            if call.replaying:
                return None  # a repeat of what is not known any more
    manual = False
    bounded = call.server.policies is not None and policies().make_room(call, key, stream)
    if automatic:
        stream.append_next(call.now_ms, argv, at + 1, call.server.data.node_limits)
    else:
        manual = _append_as_asked(call, stream, at, ms, seq, next_seq)
    if created:
        call.put(key, stream)
    if idmp is not None and stream.last_ms == call.now_ms and not call.replaying:
        idmp.record_sought(pid, iid, call.now_ms, stream.last_seq, call.now_ms)  # as a rule
        stream.iids_added += 1
    elif len(pid):
        record_iid(call, stream, pid, iid, (stream.last_ms, stream.last_seq))
    reply = packed_id(stream.last_ms, stream.last_seq)
    _trim_and_report(call, stream, at, options, pid, iid, manual, created)
    if bounded:
        policies().added(call, key, stream)
    return reply


def _before_id(argv: list[bytes]) -> tuple[int, AddOptions | None, bytes, bytes]:
    """Return the position of the ID of an XADD, the options before it, the pid and IDMP's iid.

    Nearly every producer that sends IDMP sends no other option. To read that directly costs a tenth
    of a microsecond instead of a whole one.
    """
    word = argv[2]
    if len(word) and 0x30 <= word[0] <= 0x39:  # the ID itself
        return 2, None, b"", b""
    pid = argv[3]
    if word == b"IDMP":
        if len(argv) > 5 and argv[5] == b"*" and len(pid) and len(argv[4]):
            return 5, None, pid, argv[4]
    elif word == b"IDMPAUTO" and argv[4] == b"*" and len(pid):
        return 4, None, pid, b""
    options = add_options_of(argv)
    return 2 + len(options.words), options, options.pid, options.iid


def _id_wanted(word: bytes) -> tuple[int, int, bool]:
    """Return the ID that an entry is to have; True where ``-*`` leaves its sequence open."""
    next_seq = len(word) > 1 and word[-1] == 0x2A and word[-2] == 0x2D
    if next_seq:
        word = word[:-2]
    given = parse_id(word)
    if given is None or (next_seq and 0x2D in word):
        raise CommandError(errors.INVALID_STREAM_ID)
    return given[0], given[1], next_seq


def _finds_seq(call: Call, word: bytes, ms: int, seq: int, next_seq: bool) -> bool:
    """Return whether to find the sequence of a given ID; raises CommandError for a wrong ID."""
    if ms == 0 and seq == 0 and not next_seq:
        raise CommandError(errors.XADD_ZERO_ID)
    if call.server.data.region is not None:
        return shared_streams().finds_seq(call, word, next_seq)
    return next_seq


def _append_as_asked(
    call: Call, stream: Stream, at: int, ms: int, seq: int, next_seq: bool
) -> bool:
    """Append an entry with the ID that its caller gave; see ``SharedStreams.is_manual``."""
    manual = False
    if call.server.data.region is not None:
        manual = shared_streams().is_manual(call, stream, ms)
    if next_seq:
        seq = stream.next_seq(ms)
    stream.append(ms, seq, call.argv, at + 1, call.server.data.node_limits)
    return manual


def _trim_and_report(
    call: Call,
    stream: Stream,
    at: int,
    options: AddOptions | None,
    pid: bytes,
    iid: Iid,
    manual: bool,
    created: bool,
) -> None:
    """Trim after an XADD, whose ID stands at ``at``, has added its entry; report all it did.

    Replaying its record needs no clock: the ID is the one chosen, and trimming is exact.
    """
    if call.server.data.region is not None:
        shared_streams().added(call, stream, at, options, pid, iid, manual, created)
        return
    argv = call.argv
    key = argv[1]
    trimmed = 0
    if options is not None and options.strategy != NO_TRIM:
        trimmed = options.trim(call, stream)
    record: list[bytes] | None = None
    if call.recorded:
        record = argv.copy()
        record[at] = format_id(stream.last_ms, stream.last_seq)
        if options is not None:
            options.make_exact(record, stream)
        if created and pid and not stream.has_default_limits():
            without_producer(record, 2 if options is None else options.idmp_at)
    call.changed(key, XADDED, record)
    if trimmed:
        call.changed(key, XTRIMMED, None, count=trimmed)
    if created:
        record_limits(call, key, stream)


@alike("XADD")
def xadd_alike(call: Call, requests: Requests, first: int, end: int) -> Ran:
    """Append several entries at once, each ``XADD key [MAXLEN ~ n] * field value ...``.

    They have the options of the first, and get IDs in sequence, as entries of one millisecond do.
    """
    words = requests[first]
    options = None if words[2] == b"*" else _approximate_length(call, words)
    at = 2 if options is None else options.threshold_at + 1
    key = words[1]
    fields = len(words) - at - 1
    if words[at] != b"*" or fields < 2 or fields % 2 or not call.needs_no_events_of(key):
        return NONE_ALIKE, NO_REPLIES
    if call.server.policies is not None and policies().is_bounded(call, key):
        return NONE_ALIKE, NO_REPLIES
    region = call.server.data.region
    if options is not None and call.recorded and region is None:
        return NONE_ALIKE, NO_REPLIES  # the record says what was trimmed
    stream = call.db.get(key, call.now_ms)
    if not isinstance(stream, Stream):
        return 0, NO_REPLIES
    before = words[2:at]
    number = first + 1
    for words in requests[number:end]:
        if words[at] != b"*" or (options is not None and words[2:at] != before):
            break
        number += 1
    count = stream.append_alike(
        call.now_ms, requests, first, number, at + 1, call.server.data.node_limits
    )
    if not count:
        return 0, NO_REPLIES
    call.count(count)
    step = 1 if region is None else STEP
    ms = stream.last_ms
    seq = stream.last_seq - (count - 1) * step
    if call.recorded:
        records: list[list[bytes]] = []
        next_seq = seq
        for words in requests[first : first + count]:
            record = words[at - 2 :]  # without the options, whose work has records of its own
            if region is not None:
                record[0] = b"XADD"  # however it is spelled: that is numbered
                record[1] = key
            record[2] = format_id(ms, next_seq)
            records.append(record)
            next_seq += step
        call.record_alike(records)
    if call.listened:
        call.server.changes.touched_alike(call.db.index, requests, first, first + 1)
    replies = ids_in_sequence(ms, seq, count, step)
    if options is not None:
        for _ in range(count):  # each of them has a limit of its own
            if region is not None:
                trimmed = shared_streams().trim(call, key, stream, options)
            else:
                trimmed = options.trim(call, stream)
                call.count(trimmed)
            if not trimmed:
                break
    return count, replies


def _approximate_length(call: Call, words: list[bytes]) -> AddOptions | None:
    """Return the options of an XADD that only trims whole nodes; at least one entry stays then."""
    if option_name(words[2]) != b"maxlen":
        return None
    try:
        options = add_options_of(words)
        options.settle(call)
    except CommandError:
        return None
    alone = options.operator_at == 3 and len(options.words) == 3
    return options if alone and options.approximate and options.threshold > 0 else None


def new_stream(call: Call, key: bytes) -> Stream:
    """Return an empty stream with the configured limits; those other than default are recorded."""
    if call.server.data.region is not None:
        return shared_streams().new(call, key)
    if call.replaying:
        return Stream(IDMP_DURATION_S, IDMP_MAXSIZE)
    config = call.server.config
    return Stream(config.stream_idmp_duration, config.stream_idmp_maxsize)


def xtrim(call: Call) -> object:
    """Reply: how many entries were removed. Source: xtrimCommand."""
    argv = call.argv
    options = TrimOptions()
    at = 2
    while at < len(argv):
        after = options.take(argv, at, option_name(argv[at]))
        if after == at:
            raise CommandError(errors.SYNTAX)
        at = after
    if options.limit and options.strategy == NO_TRIM:
        raise CommandError(errors.LIMIT_WITHOUT_STRATEGY)
    if options.strategy == NO_TRIM:
        raise CommandError(errors.XTRIM_WITHOUT_STRATEGY)
    options.settle(call)
    stream = stream_to_change(call, argv[1])
    if stream is None:
        return 0
    if call.server.data.region is not None:
        return shared_streams().trim(call, argv[1], stream, options)
    pending = pending_count(stream)
    removed = options.trim(call, stream)
    dropped = pending_count(stream) < pending
    if removed or dropped:
        record = argv.copy()
        options.make_exact(record, stream)
        event = XTRIMMED if removed else PENDING_CHANGED
        freed = dropped and is_held_back(stream)
        call.changed(argv[1], event, record, count=removed, wakes=freed)
    return removed


def xdel(call: Call) -> object:
    """Reply: how many entries were there. Source: xdelCommand."""
    argv = call.argv
    stream = stream_to_change(call, argv[1])
    if stream is None:
        return 0
    ids = strict_ids(argv[2:])
    if call.server.data.region is not None:
        deleted = shared_streams().delete(call, argv[1], stream, ids)
    else:
        deleted = 0
        for ms, seq in ids:
            if stream.delete(ms, seq):
                deleted += 1
        if deleted:
            call.changed(argv[1], XDELETED, argv, count=deleted)
    if deleted and call.server.policies is not None and not call.replaying:
        policies().deleted(call, argv[1], stream, ids)
    return deleted


class _Deletion(LengthyIds):
    def __init__(self, argv: list[bytes]) -> None:
        super().__init__(argv, 2)
        self._stream: Stream | None = None

    def begin(self, call: Call) -> None:
        self._stream = stream_to_change(call, self.argv[1])

    def take(self, ms: int, seq: int) -> bool:
        return self._stream is not None and self._stream.delete(ms, seq)

    def finish(self, call: Call) -> object:
        if self.taken:
            self.record(call, b"XDEL")
            call.changed(self.argv[1], XDELETED, None, count=self.taken)
        return self.taken


@lengthy("XDEL")
def xdel_lengthy(call: Call) -> Lengthy | None:
    """Return the deletion of very many entries of a stream that is there."""
    stream = call.db.value_of(call.argv[1], call.now_ms)
    if not isinstance(stream, Stream) or call.server.data.region is not None:
        return None
    return _Deletion(call.argv)


def xsetid(call: Call) -> object:
    """Reply: OK. Source: xsetidCommand."""
    argv = call.argv
    new_id = strict_id(argv[2])
    entries_added = -1
    max_deleted = (0, 0)
    at = 3
    while at < len(argv):
        word = option_name(argv[at])
        if at + 1 >= len(argv):
            raise CommandError(errors.SYNTAX)
        if word == b"entriesadded":
            entries_added = integer(argv[at + 1])
            if entries_added < 0:
                raise CommandError(errors.ENTRIES_ADDED_NEGATIVE)
        elif word == b"maxdeletedid":
            max_deleted = strict_id(argv[at + 1])
            if new_id < max_deleted:
                raise CommandError(errors.XSETID_BELOW_GIVEN_DELETED)
        else:
            raise CommandError(errors.SYNTAX)
        at += 2
    stream = there(stream_to_change(call, argv[1]))
    if call.server.data.region is not None:
        return shared_streams().set_id(call, stream, new_id)
    if new_id < (stream.max_deleted_ms, stream.max_deleted_seq):
        raise CommandError(errors.XSETID_BELOW_DELETED)
    if stream.length:
        if new_id < stream.last_entry_id():
            raise CommandError(errors.XSETID_BELOW_TOP)
        if 0 <= entries_added < stream.length:
            raise CommandError(errors.XSETID_FEW_ADDED)
    if new_id < (stream.last_ms, stream.last_seq):
        for group in stream.groups.values():
            group.by_time.revive()
    stream.last_ms, stream.last_seq = new_id
    if entries_added >= 0:
        stream.entries_added = entries_added
        for group in stream.groups.values():
            group.entries_read = min(group.entries_read, entries_added)
    if max_deleted != (0, 0):
        stream.max_deleted_ms, stream.max_deleted_seq = max_deleted
    call.changed(argv[1], LAST_ID_SET, argv)
    return OK


_SAME: Final = -1  # leave a limit as it is


class Limits:
    """The limits of an IDMP map that a request gives."""

    def __init__(self) -> None:
        self.duration_s = _SAME
        self.maxsize = _SAME

    def read(self, argv: list[bytes], at: int, duration: bytes, maxsize: bytes) -> None:
        """Read the limits from ``at`` on, each behind its word in lower case."""
        while at < len(argv):
            word = argv[at].lower()
            if word not in (duration, maxsize) or at + 1 == len(argv):
                raise CommandError(errors.SYNTAX)
            if word == duration:
                if self.duration_s != _SAME:
                    raise CommandError(errors.IDMP_DURATION_TWICE)
                self.duration_s = integer(argv[at + 1])
                if not 1 <= self.duration_s <= IDMP_DURATION_S_MAX:
                    raise CommandError(errors.IDMP_DURATION_RANGE)
            else:
                if self.maxsize != _SAME:
                    raise CommandError(errors.IDMP_MAXSIZE_TWICE)
                self.maxsize = integer(argv[at + 1])
                if not 1 <= self.maxsize <= IDMP_MAXSIZE_MAX:
                    raise CommandError(errors.IDMP_MAXSIZE_RANGE)
            at += 2
        if self.duration_s == _SAME and self.maxsize == _SAME:
            raise CommandError(errors.IDMP_NOTHING_SET)

    def record(self, key: bytes) -> list[bytes]:
        """Return the XCFGSET with the given limits."""
        words = [b"XCFGSET", key]
        if self.duration_s != _SAME:
            words += [b"IDMP-DURATION", b"%d" % self.duration_s]
        if self.maxsize != _SAME:
            words += [b"IDMP-MAXSIZE", b"%d" % self.maxsize]
        return words

    def apply(self, call: Call, key: bytes, stream: Stream) -> None:
        """Set the limits; where one has changed, all iids are forgotten."""
        duration_s = stream.idmp_duration_s if self.duration_s == _SAME else self.duration_s
        maxsize = stream.idmp_maxsize if self.maxsize == _SAME else self.maxsize
        if duration_s == stream.idmp_duration_s and maxsize == stream.idmp_maxsize:
            return
        if call.server.data.region is not None:
            shared_streams().set_limits(call, key, stream, duration_s, maxsize)
            return
        call.server.data.free_later(stream.limit_idmp(duration_s, maxsize))
        call.changed(key, PRODUCERS_CHANGED, self.record(key))


def xcfgset(call: Call) -> object:
    """Set limits; a new value drops all iids. Reply: OK. Source: xcfgsetCommand."""
    return _set_limits(call, 1, b"idmp-duration", b"idmp-maxsize")


def xidmp_cfgset(call: Call) -> object:
    """As XCFGSET, in the spelling of the first design. Reply: OK."""
    return _set_limits(call, 2, b"duration", b"maxsize")


def _set_limits(call: Call, key_at: int, duration: bytes, maxsize: bytes) -> object:
    key = call.argv[key_at]
    stream = there(stream_to_change(call, key))
    limits = Limits()
    limits.read(call.argv, key_at + 1, duration, maxsize)
    limits.apply(call, key, stream)
    return OK


def xidmprecord(call: Call) -> object:
    """Make an iid known for an entry, which may have been deleted since, and count it as added now.

    The append-only file's base is made of these. Reply: OK, also where the iid is known already.
    Source: xidmprecordCommand.
    """
    argv = call.argv
    key, pid, iid = argv[1], argv[2], argv[3]
    entry_id = strict_id(argv[4])
    if not pid:
        raise CommandError(errors.RECORD_NO_PID)
    if not iid:
        raise CommandError(errors.RECORD_NO_IID)
    stream = there(stream_to_change(call, key))
    if not call.replaying:
        if not stream.contains(entry_id[0], entry_id[1]):
            raise CommandError(errors.NO_SUCH_MESSAGE)
        known = stream.known_id(pid, iid, call.now_ms)
        if known == entry_id:
            return OK
        if known is not None:
            raise CommandError(errors.IID_ELSEWHERE)
    elif stream.known_id(pid, iid, EVER) == entry_id:
        return OK
    record_iid(call, stream, pid, iid_of(iid), entry_id)
    call.changed(key, PRODUCERS_CHANGED, argv)
    return OK


def xidmp_cfgget(call: Call) -> object:
    """Reply: map of the limits asked for, in that order; of both when none is named."""
    stream = there(stream_at(call, call.argv[2]))
    wanted: list[bytes] = []
    for word in call.argv[3:]:
        name = word.lower()
        if name not in (b"duration", b"maxsize"):
            raise CommandError(errors.SYNTAX)
        if name not in wanted:
            wanted.append(name)
    pairs: list[tuple[object, object]] = []
    for name in wanted or [b"duration", b"maxsize"]:
        limit = stream.idmp_duration_s if name == b"duration" else stream.idmp_maxsize
        pairs.append((name, limit))
    return Map(pairs)


def xidmp_producers(call: Call) -> object:
    """Reply: at most ``n``, by pid, of (pid, iids held, first iid's entry, last iid's entry)."""
    args = Args(call.argv, 3)
    pattern: Glob | None = None
    most = 0
    while args.left:
        option = args.option()
        if option == b"MATCH":
            pattern = Glob(args.word())
        elif option == b"COUNT":
            most = args.integer()
            if most <= 0:
                raise CommandError(errors.COUNT_NOT_POSITIVE)
        else:
            raise CommandError(errors.SYNTAX)
    stream = there(stream_at(call, call.argv[2]))
    if stream.idmp is None:
        return []
    producers = stream.idmp.producers
    pids = list(producers)
    if pattern is not None:
        pids = [pid for pid in pids if pattern.matches(pid)]
    rows: list[object] = []
    for pid in nsmallest(most, pids) if 0 < most < len(pids) else sorted(pids):
        producer = producers[pid]
        oldest = format_id(*producer.entry_id(producer.oldest()))
        newest = format_id(*producer.entry_id(producer.newest()))
        rows.append([pid, int(producer.count), oldest, newest])
    return rows
