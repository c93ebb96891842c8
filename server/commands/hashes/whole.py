"""All of a hash, or some fields by chance: HGETALL, HKEYS, HVALS, HSCAN, HRANDFIELD."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from headrace.compat.errors import (
    NOT_AN_INTEGER,
    SYNTAX,
    VALUE_OUT_OF_RANGE,
    CommandError,
    not_between,
)
from headrace.compat.numbers import INT64_MAX, parse_integer
from headrace.protocol.packing import Packer, packed_pairs
from headrace.protocol.replies import Packed
from headrace.server.commands.collections import drop_empty
from headrace.server.commands.element_scan import EMPTY_SCAN, ElementScan, scan_cursor
from headrace.server.commands.hashes.values import hash_at, report_expired
from headrace.server.commands.randomness import LOOK_EVERY, generator, random_bits
from headrace.server.dispatch.call import Call
from headrace.storage.hash.cutting import BOTH, FIELDS, VALUES
from headrace.storage.hash.hash import Hash
from headrace.storage.hash.small import HEAD, count_of
from headrace.storage.hash.timed import NEVER
from headrace.storage.packed.strings import next_at, string_at

_MANY: Final = 1 << 60
_WALKED_BELOW: Final = 3  # times the fields that are asked for: all are read, some are dropped


def hgetall(call: Call) -> object:
    """Reply: a map of fields and values."""
    value = hash_at(call, call.argv[1])
    if value is not None:
        rep = value.rep
        if isinstance(rep, bytes):  # most are small, and stand there as they are sent
            return packed_pairs(rep, HEAD, count_of(rep), call.session.resp3)
    return _all(call, value, BOTH)


def hkeys(call: Call) -> object:
    """Reply: the fields."""
    return _all(call, hash_at(call, call.argv[1]), FIELDS)


def hvals(call: Call) -> object:
    """Reply: the values."""
    return _all(call, hash_at(call, call.argv[1]), VALUES)


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
    if what == BOTH:
        out.map(count)
    else:
        out.array(count)


def _time(call: Call) -> int:
    """The time by which fields have expired; while a file is loaded, none has."""
    return call.now_ms if call.db.expire_enabled else NEVER


def hscan(call: Call) -> object:
    """A small hash is answered whole.

    Reply: the next cursor, 0 at the end, and fields with their values.
    """
    cursor = scan_cursor(call)
    value = hash_at(call, call.argv[1])
    if value is None:
        return EMPTY_SCAN
    scan = ElementScan(call, True)
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


def _add_matching(out: Packer, pairs: bytes, scan: ElementScan) -> int:
    """Add those of packed pairs whose fields match; how many."""
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

    Reply: a field or nil; with a count an array: of different fields, or with a negative one of as
    many as that says, some of them maybe more than once.
    """
    argv = call.argv
    if len(argv) == 2:
        value = _without_expired(call)
        return None if value is None else string_at(value.random(random_bits()), 0)
    count = parse_integer(argv[2])
    if count is None:
        raise CommandError(NOT_AN_INTEGER)
    if not count >= -INT64_MAX:
        raise CommandError(not_between(-INT64_MAX, INT64_MAX))
    what = FIELDS
    if len(argv) > 3:
        if len(argv) > 4 or argv[3].upper() != b"WITHVALUES":
            raise CommandError(SYNTAX)
        what = BOTH
        if not -(INT64_MAX // 2) <= count <= INT64_MAX // 2:
            raise CommandError(VALUE_OUT_OF_RANGE)
    value = _without_expired(call)
    if value is None or not count:
        return []
    return _random_fields(call, value, count, what)


def _without_expired(call: Call) -> Hash | None:
    """The hash, from which all has been removed that has expired; None when nothing is left.

    Where something has, what is in its last millisecond goes with it, as in Redis.
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
        chosen = [chosen[at] for at in sorted(generator().sample(range(len(chosen)), count))]
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
    """So many fields, any of them again and again: they may be more than memory holds."""
    out = _begun(call, count, what)
    for number in range(count):
        _add(out, value.random(random_bits()), what, call.session.resp3)
        if number % LOOK_EVERY == 0 and call.reply_is_too_long(out.wire_bytes()):
            break
    return out.packed()


def _begun(call: Call, count: int, what: i64) -> Packer:
    resp3 = call.session.resp3
    out = Packer(resp3)
    out.array(count if resp3 or what == FIELDS else 2 * count)
    return out


def _add(out: Packer, pair: bytes, what: i64, resp3: bool) -> None:
    if what == BOTH:
        if resp3:
            out.array(2)
        out.strings(pair)
    else:
        out.strings(pair[: next_at(pair, 0)])
