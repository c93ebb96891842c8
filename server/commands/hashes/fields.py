"""Fields of hashes: HSET, HGET, HDEL, HINCRBY, HGETALL, HSCAN, HRANDFIELD, HIMPORT, their kin."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from headrace.compat import errors, long_double, type_errors
from headrace.compat.errors import CommandError
from headrace.compat.event_classes import EVENT_HASH
from headrace.compat.numbers import is_int64, parse_integer
from headrace.protocol.packing import Packer, packed_pairs
from headrace.protocol.replies import NO_REPLIES, OK, Packed
from headrace.server.changes.events import Event
from headrace.server.commands.shared import (
    EMPTY_SCAN,
    LOOK_EVERY,
    ScanOptions,
    drop_empty,
    random_bits,
    random_count,
    random_places,
    scan_cursor,
    store,
)
from headrace.server.commands.together import Ran, Reader, Requests, Values, read_alike
from headrace.server.commands.typed_keys import hash_at, hash_to_change
from headrace.server.dispatch.args import integer
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import NONE_ALIKE, alike
from headrace.storage.hash import small
from headrace.storage.hash.hash import Hash
from headrace.storage.hash.timed import NEVER, has_passed
from headrace.storage.packed.strings import next_at, string_at

FIELDS_SET: Final = Event(b"hset", EVENT_HASH, touches=True)
FIELDS_DELETED: Final = Event(b"hdel", EVENT_HASH, touches=True)
FIELDS_EXPIRED: Final = Event(b"hexpired", EVENT_HASH, touches=True)
FIELD_INCREASED: Final = Event(b"hincrby", EVENT_HASH, touches=True)
FIELD_INCREASED_BY_FLOAT: Final = Event(b"hincrbyfloat", EVENT_HASH, touches=True)
FIELD_DEADLINES_SET: Final = Event(b"hexpire", EVENT_HASH, touches=True)
FIELDS_PERSISTED: Final = Event(b"hpersist", EVENT_HASH, touches=True)


def made(call: Call, key: bytes, found: Hash | None) -> Hash:
    """Return the hash that was found, or a new, empty one."""
    if found is not None:
        return found
    fresh = Hash()
    call.put(key, fresh)
    return fresh


def has_expired(call: Call, value: Hash, field: bytes) -> bool:
    """Return whether a field has expired; while a file is loaded, only its records say that."""
    return (
        value.is_timed()
        and has_passed(value.deadline_ms(field), call.now_ms)
        and call.db.expire_enabled
    )


def living(call: Call, value: Hash, field: bytes, expired: dict[bytes, None]) -> bytes | None:
    """Return the value of a field, or None; an expired field joins ``expired``."""
    found = value.get(field)
    if found is not None and has_expired(call, value, field):
        expired[field] = None
        return None
    return found


def has_same_deadline(value: Hash, field: bytes, moment_ms: int) -> bool:
    """Return whether a large hash has this deadline for a field, which Redis then leaves as it is.

    It shows in the last millisecond of the field's life, in which another one goes.
    """
    return moment_ms != NEVER and not value.is_small() and value.deadline_ms(field) == moment_ms


def drop_expired(call: Call, key: bytes, value: Hash, expired: dict[bytes, None]) -> bool:
    """Remove expired fields, unless they have to stay; return whether the key went."""
    if not expired or call.db.expire_held:
        return False
    call.db.before_change(key)
    for field in expired:
        value.remove(field)
    report_expired(call, key, value, list(expired))
    return drop_empty(call, key, value)


def report_expired(
    call: Call, key: bytes, value: Hash, expired: list[bytes], by_command: bool = True
) -> None:
    """Report expired fields as removed; ``by_command``: their records are part of a command's."""
    changes = call.server.changes
    changes.expired_parts += len(expired)
    if by_command:
        record_each(call, key, expired)
    elif expired and changes.recorded:
        records = [[b"HDEL", key, field] for field in expired]
        changes.record_alike(call.db.index, records, True, None)
    report(call, key, FIELDS_EXPIRED, None, expired)
    note_deadlines(call, key, value)


def record_each(call: Call, key: bytes, fields: list[bytes]) -> None:
    """Record that fields have expired: one HDEL for each, as in Redis."""
    if call.recorded:
        for field in fields:
            call.record([b"HDEL", key, field])


def report(
    call: Call, key: bytes, event: Event, record: list[bytes] | None, fields: list[bytes]
) -> None:
    """Report a change of some fields of a hash."""
    call.changed(key, event, record, count=len(fields))
    if call.listened:
        call.name_parts(fields)


def note_deadlines(call: Call, key: bytes, value: Hash) -> None:
    """Tell the keyspace when the first field of a hash expires, which may have changed."""
    if value.is_timed():
        call.db.note_parts(key, value)


def delete_fields(
    call: Call, key: bytes, value: Hash, fields: list[bytes], record: list[bytes] | None
) -> list[bytes]:
    """Remove fields, and maybe the key; report and return those that were there.

    ``record`` is None where a deadline that has passed removes them: see ``record_each``.
    """
    gone = [field for field in fields if value.remove(field)]
    if gone:
        if record is None:
            record_each(call, key, gone)
        report(call, key, FIELDS_DELETED, record, gone)
        if not drop_empty(call, key, value):
            note_deadlines(call, key, value)
    return gone


def hset(call: Call) -> object:
    """A deadline of a field goes. Reply: how many of the fields are new."""
    return _set_all(call)


def hmset(call: Call) -> object:
    """As HSET. Reply: OK."""
    _set_all(call)
    return OK


def _set_all(call: Call) -> int:
    argv = call.argv
    if len(argv) % 2:
        raise CommandError(errors.wrong_arity(call.name()))
    key = argv[1]
    value = made(call, key, hash_to_change(call, key))
    limits = call.server.data.hash_limits
    value.fit(argv, 2, limits)
    added = 0
    for at in range(2, len(argv), 2):
        if value.put(argv[at], argv[at + 1], limits):
            added += 1
    note_deadlines(call, key, value)
    call.changed(key, FIELDS_SET, argv, count=len(argv) // 2 - 1)
    if call.listened:
        call.name_parts(argv[2::2])
    return added


def hsetnx(call: Call) -> object:
    """Reply: 1 when the field was set, 0 when it was there."""
    argv = call.argv
    _, key, field, text = argv
    value = hash_to_change(call, key)
    if value is not None:
        expired: dict[bytes, None] = {}
        if living(call, value, field, expired) is not None:
            return 0
        if drop_expired(call, key, value, expired):
            value = None
    value = made(call, key, value)
    value.put(field, text, call.server.data.hash_limits)
    note_deadlines(call, key, value)
    report(call, key, FIELDS_SET, argv, [field])
    return 1


def hget(call: Call) -> object:
    """Reply: the value, or nil."""
    _, key, field = call.argv
    value = hash_at(call, key)
    if value is None:
        return None
    found = value.get(field)
    if found is not None and has_expired(call, value, field):
        drop_expired(call, key, value, {field: None})
        return None
    return found


def hmget(call: Call) -> object:
    """Reply: the value of each field, nil for one that is not there."""
    argv = call.argv
    key = argv[1]
    value = hash_at(call, key)
    out = Packer(call.session.resp3)
    out.array(len(argv) - 2)
    expired: dict[bytes, None] = {}
    for at in range(2, len(argv)):
        found = None if value is None else living(call, value, argv[at], expired)
        if found is None:
            out.null()
        else:
            out.text(found)
    if value is not None:
        drop_expired(call, key, value, expired)
    return out.packed()


def hdel(call: Call) -> object:
    """Reply: how many fields were there."""
    argv = call.argv
    value = hash_to_change(call, argv[1])
    return 0 if value is None else len(delete_fields(call, argv[1], value, argv[2:], argv))


def hlen(call: Call) -> object:
    """Reply: how many fields there are, those included that are still to be swept."""
    value = hash_at(call, call.argv[1])
    return 0 if value is None else value.size()


def hstrlen(call: Call) -> object:
    """Reply: the bytes of the value; 0 without one."""
    return max(0, _length(call))


def hexists(call: Call) -> object:
    """Reply: 1 or 0."""
    return 1 if _length(call) >= 0 else 0


def _length(call: Call) -> int:
    """Return the length of a value; -1 where there is none."""
    _, key, field = call.argv
    value = hash_at(call, key)
    if value is None:
        return -1
    length = value.length(field)
    if length >= 0 and has_expired(call, value, field):
        drop_expired(call, key, value, {field: None})
        return -1
    return length


def hincrby(call: Call) -> object:
    """A missing field counts as 0; a deadline stays. Reply: the sum."""
    operand = integer(call.argv[3])
    value, old = _before(call)
    total = operand
    if old is not None:
        total += integer(old, type_errors.FIELD_NOT_INTEGER)
    if not is_int64(total):
        raise CommandError(errors.ADD_OVERFLOW)
    _after(call, value, b"%d" % total, FIELD_INCREASED, call.argv)
    return total


def hincrbyfloat(call: Call) -> object:
    """As HINCRBY, and recorded as its result. Reply: the sum, as INCRBYFLOAT writes it."""
    _, key, field, word = call.argv
    addend = long_double.parse(word)
    if addend is None:
        raise CommandError(errors.NOT_A_FLOAT)
    if addend.infinite:
        raise CommandError(type_errors.INCREMENT_NOT_FINITE)
    value, old = _before(call)
    total = addend
    if old is not None:
        augend = long_double.parse(old)
        if augend is None:
            raise CommandError(type_errors.FIELD_NOT_FLOAT)
        total = long_double.add(augend, addend)
    if total.infinite:
        raise CommandError(errors.ADD_NOT_FINITE)
    text = long_double.text(total)
    record: list[bytes] | None = None
    if call.recorded:
        record = [b"HSETEX", key, b"KEEPTTL", b"FIELDS", b"1", field, text]
    _after(call, value, text, FIELD_INCREASED_BY_FLOAT, record)
    return text


def _before(call: Call) -> tuple[Hash | None, bytes | None]:
    """Return the hash and the value of the field to be counted up, if they are there."""
    key, field = call.argv[1], call.argv[2]
    value = hash_to_change(call, key)
    if value is None:
        return None, None
    expired: dict[bytes, None] = {}
    old = living(call, value, field, expired)
    if drop_expired(call, key, value, expired):
        value = None
    return value, old


def _after(
    call: Call, value: Hash | None, text: bytes, event: Event, record: list[bytes] | None
) -> None:
    key, field = call.argv[1], call.argv[2]
    made(call, key, value).put(field, text, call.server.data.hash_limits, keeps=True)
    report(call, key, event, record, [field])


_MANY: Final = 1 << 60
_WALKED_BELOW: Final = 3  # times the fields that are asked for: all are read, some are dropped


def hgetall(call: Call) -> object:
    """Reply: a map of fields and values."""
    value = hash_at(call, call.argv[1])
    if value is not None:
        rep = value.rep
        if isinstance(rep, bytes):  # most are small, and stand there as they are sent
            return packed_pairs(rep, small.HEAD, small.count_of(rep), call.session.resp3)
    return _all(call, value, small.BOTH)


def hkeys(call: Call) -> object:
    """Reply: the fields."""
    return _all(call, hash_at(call, call.argv[1]), small.FIELDS)


def hvals(call: Call) -> object:
    """Reply: the values."""
    return _all(call, hash_at(call, call.argv[1]), small.VALUES)


def _all(call: Call, value: Hash | None, what: i64) -> object:
    out = Packer(call.session.resp3)
    if value is None:
        _begin(out, what, 0)
        return out.packed()
    found = value.read(what, _time(call))
    _begin(out, what, found.count)
    for piece in found.pieces:
        out.strings(piece)
    return out.packed()


def _begin(out: Packer, what: i64, count: i64) -> None:
    if what == small.BOTH:
        out.map(count)
    else:
        out.array(count)


def _time(call: Call) -> int:
    """Return the time by which fields have expired; while a file is loaded, none has."""
    return call.now_ms if call.db.expire_enabled else NEVER


def hscan(call: Call) -> object:
    """A small hash is answered whole. Reply: the next cursor, 0 at the end; fields with values."""
    cursor = scan_cursor(call)
    value = hash_at(call, call.argv[1])
    if value is None:
        return EMPTY_SCAN
    scan = ScanOptions(call, 3, hash_=True)
    fields = 0
    out = Packer(call.session.resp3)
    cursor, found = value.scan(cursor, scan.count, _time(call))
    for piece in found:
        fields += _add_matching(out, piece, scan)
    answer = Packer(call.session.resp3)
    answer.array(2)
    answer.text(b"%d" % cursor)
    answer.array(2 * fields if scan.values else fields)
    answer.add(out)
    return answer.packed()


def _add_matching(out: Packer, pairs: bytes, scan: ScanOptions) -> int:
    """Add those packed pairs whose fields match; return how many."""
    count = 0
    at: i64 = 0
    end: i64 = len(pairs)
    while at < end:
        middle = next_at(pairs, at)
        stop = next_at(pairs, middle)
        if scan.all or scan.takes(string_at(pairs, at)):
            count += 1
            out.strings(pairs[at : stop if scan.values else middle])
        at = stop
    return count


def hrandfield(call: Call) -> object:
    """Fields that have expired go first.

    Reply: a field or nil; with a count an array of different fields, or with a negative one of as
    many as that says, some of them maybe more than once.
    """
    argv = call.argv
    if len(argv) == 2:
        value = _without_expired(call)
        return None if value is None else string_at(value.random(random_bits()), 0)
    count, with_values = random_count(argv, b"WITHVALUES")
    what = small.BOTH if with_values else small.FIELDS
    value = _without_expired(call)
    if value is None or not count:
        return []
    return _random_fields(call, value, count, what)


def _without_expired(call: Call) -> Hash | None:
    """Return the hash without expired fields; None when nothing is left.

    Where one has expired, what is in its last millisecond goes with it, as in Redis.
    """
    key = call.argv[1]
    value = hash_at(call, key)
    if value is None or not value.is_timed() or not call.db.expire_enabled:
        return value
    if 0 < value.first_ms() < call.now_ms and not call.db.expire_held:
        call.db.before_change(key)
        expired = value.take_due(call.now_ms + 1, _MANY)
        if expired:
            report_expired(call, key, value, expired)
        if drop_empty(call, key, value):
            return None
    return value


def _random_fields(call: Call, value: Hash, count: int, what: i64) -> Packed:
    if count < 0:
        return _repeated_fields(call, value, -count, what)
    if count >= value.size():
        chosen = value.elements()
    elif value.is_small() or count * _WALKED_BELOW > value.size():
        chosen = value.elements()
        chosen = [chosen[at] for at in sorted(random_places(len(chosen), count))]
    else:
        met: dict[bytes, None] = {}
        while len(met) < count:
            met[value.random(random_bits())] = None
        chosen = list(met)
    out = _begun(call, len(chosen), what)
    for pair in chosen:
        _add(out, pair, what, call.session.resp3)
    return out.packed()


def _repeated_fields(call: Call, value: Hash, count: int, what: i64) -> Packed:
    """Return ``count`` random fields, repeats allowed: they may be more than memory holds."""
    out = _begun(call, count, what)
    for number in range(count):
        _add(out, value.random(random_bits()), what, call.session.resp3)
        if number % LOOK_EVERY == 0 and call.reply_is_too_long(out.wire_bytes()):
            break
    return out.packed()


def _begun(call: Call, count: int, what: i64) -> Packer:
    resp3 = call.session.resp3
    out = Packer(resp3)
    out.array(count if resp3 or what == small.FIELDS else 2 * count)
    return out


def _add(out: Packer, pair: bytes, what: i64, resp3: bool) -> None:
    if what == small.BOTH:
        if resp3:
            out.array(2)
        out.strings(pair)
    else:
        out.strings(pair[: next_at(pair, 0)])


def himport_prepare(call: Call) -> object:
    """Name fields, for this connection. Reply: OK."""
    fields = call.argv[3:]
    if len(set(fields)) < len(fields):
        raise CommandError(type_errors.DOUBLE_FIELD)
    call.session.fieldsets[call.argv[2]] = fields
    return OK


def himport_set(call: Call) -> object:
    """Set the key to a hash of named fields. Reply: OK."""
    argv = call.argv
    key = argv[2]
    old = hash_to_change(call, key)
    fields = call.session.fieldsets.get(argv[3])
    if fields is None:
        raise CommandError(type_errors.NO_SUCH_FIELDSET)
    if len(fields) != len(argv) - 4:
        raise CommandError(type_errors.VALUE_COUNT_MISMATCH)
    pairs = sorted(zip(fields, argv[4:], strict=True), key=_rank)
    words = [word for pair in pairs for word in pair]
    limits = call.server.data.hash_limits
    value = Hash()
    value.fit(words, 0, limits)
    for field, text in pairs:
        value.put(field, text, limits)
    if old is not None:
        call.record([b"DEL", key])
    store(call, key, value)
    report(call, key, FIELDS_SET, [b"HSET", key, *words], [pair[0] for pair in pairs])
    return OK


def _rank(pair: tuple[bytes, bytes]) -> tuple[int, bytes]:
    """Return the sort key of a field of an imported hash: shorter ones first."""
    return len(pair[0]), pair[0]


def himport_discard(call: Call) -> object:
    """Forget fields that were named. Reply: 1, or 0 where there are none of that name."""
    return 0 if call.session.fieldsets.pop(call.argv[2], None) is None else 1


def himport_discardall(call: Call) -> object:
    """Forget all fields that were named. Reply: how many names that were."""
    count = len(call.session.fieldsets)
    call.session.fieldsets.clear()
    return count


_SET_WORDS: Final = 4  # one field


class _Field(Reader):
    def absent(self, out: Packer) -> None:
        out.null()

    def read(self, out: Packer, value: object, words: list[bytes]) -> bool:
        if not isinstance(value, Hash) or value.is_timed():
            return False
        packed = value.get_packed(words[2])
        if packed is None:
            out.null()
        else:
            out.strings(packed)
        return True


class _SmallHash(Reader):
    def absent(self, out: Packer) -> None:
        out.map(0)

    def read(self, out: Packer, value: object, words: list[bytes]) -> bool:
        rep = value.rep if isinstance(value, Hash) else None
        if not isinstance(rep, bytes):
            return False
        out.map(small.count_of(rep))
        out.strings(rep[small.HEAD :])
        return True


read_alike("HGET", _Field(element_at=2))
read_alike("HGETALL", _SmallHash())


@alike("HSET", of_any_key=True)
def hset_alike(call: Call, requests: Requests, first: int, end: int) -> Ran:
    """Set fields of hashes in which no field expires, or of new ones."""
    server = call.server
    width: i64 = len(requests[first])
    if width % 2 or not call.needs_no_events_of_any():
        return NONE_ALIKE, NO_REPLIES
    limits = server.data.hash_limits
    fits = width == _SET_WORDS and limits.elements > 0  # else ``fit`` has to look at all words
    values = Values(call, requests, end, writes=True, element_at=2)
    out = Packer(call.session.resp3)
    at: i64 = first
    until: i64 = end
    while at < until:
        words = requests[at]
        value = values.of(at)
        if value is None:
            if server.changes.expired:
                break
            value = Hash()
            call.db.put(words[1], value, call.now_ms)
            values.made(value)
        elif not isinstance(value, Hash) or value.is_timed():
            break
        if not fits:
            value.fit(words, 2, limits)
        added: i64 = 1 if value.put(words[2], words[3], limits) else 0
        for place in range(_SET_WORDS, width, 2):
            if value.put(words[place], words[place + 1], limits):
                added += 1
        out.number(added)
        at += 1
    call.changed_alike(requests, first, at, (width // 2 - 1) * (at - first))
    return int(at) - first, out.replies()


@alike("HINCRBY", of_any_key=True)
def hincrby_alike(call: Call, requests: Requests, first: int, end: int) -> Ran:
    """Count up numbers in hashes that are there, in which no field expires."""
    if not call.needs_no_events_of_any():
        return NONE_ALIKE, NO_REPLIES
    limits = call.server.data.hash_limits
    values = Values(call, requests, end, writes=True, element_at=2)
    out = Packer(call.session.resp3)
    at: i64 = first
    until: i64 = end
    while at < until:
        words = requests[at]
        value = values.of(at)
        if not isinstance(value, Hash) or value.is_timed():
            break
        total = parse_integer(words[3])
        old = value.get(words[2])
        number = 0 if old is None else parse_integer(old)
        if total is None or number is None:
            break
        total += number
        if not is_int64(total):
            break
        value.put(words[2], b"%d" % total, limits)
        out.number(total)
        at += 1
    call.changed_alike(requests, first, at, at - first)
    return int(at) - first, out.replies()
