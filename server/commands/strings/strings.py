"""Reading, setting and comparing strings: GET, SET, MGET, MSET, DELEX, LCS and their kin.

The conditions of SET and DELEX may compare digests. A digest is the XXH3 hash of a string, 64 bits
in 16 hexadecimal digits, so that a client can make sure of a long value without sending it.
Source: redis.io/commands/delex (8.4) and digest (8.4).
"""

from __future__ import annotations

from typing import Final

from xxhash import xxh3_64_hexdigest

from headrace.compat import errors
from headrace.compat.errors import CommandError
from headrace.compat.event_classes import EVENT_STRING
from headrace.compat.numbers import INT32_MAX, INT64_MAX, encode_string, parse_integer
from headrace.protocol.packing import Packer, repeated
from headrace.protocol.replies import NO_REPLIES, OK, Map
from headrace.server.changes.events import DEADLINE_SET, PERSISTED, Event
from headrace.server.clients.session import NO_TOUCH, TRACKED
from headrace.server.commands.shared import (
    delete_expired,
    expired_at_once,
    has_passed,
    set_deadline,
    store,
)
from headrace.server.commands.together import Ran, Requests
from headrace.server.commands.typed_keys import string_at
from headrace.server.dispatch.args import Args, integer
from headrace.server.dispatch.call import Call, Lengthy
from headrace.server.dispatch.rows import ALIKE_BYTES, NONE_ALIKE, alike, lengthy
from headrace.storage.entry import Entry
from headrace.storage.key_table import MOST_AHEAD
from headrace.storage.string.string import string_bytes, string_length
from headrace.storage.string.subsequence import Match, common_length, common_matches, text_of

SET: Final = Event(b"set", EVENT_STRING, touches=True)
APPENDED: Final = Event(b"append", EVENT_STRING, touches=True)
RANGE_SET: Final = Event(b"setrange", EVENT_STRING, touches=True)
INCREASED: Final = Event(b"incrby", EVENT_STRING, touches=True)
INCREASED_BY_FLOAT: Final = Event(b"incrbyfloat", EVENT_STRING, touches=True)


# Conditions of SET, MSETEX and DELEX.
ALWAYS: Final = 0
IF_MISSING: Final = 1  # NX
IF_THERE: Final = 2  # XX
IF_EQUAL: Final = 3  # IFEQ
IF_NOT_EQUAL: Final = 4  # IFNE
IF_DIGEST: Final = 5  # IFDEQ
IF_NOT_DIGEST: Final = 6  # IFDNE

COMPARING: Final[dict[bytes, int]] = {
    b"IFEQ": IF_EQUAL,
    b"IFNE": IF_NOT_EQUAL,
    b"IFDEQ": IF_DIGEST,
    b"IFDNE": IF_NOT_DIGEST,
}
_EXISTENCE: Final[dict[bytes, int]] = {b"NX": IF_MISSING, b"XX": IF_THERE}
_EXPIRY: Final = (b"EX", b"PX", b"EXAT", b"PXAT")


class StringOptions:
    """The options of SET, GETEX, MSETEX and INCREX.

    Attributes:
        condition: one of the constants above; ``expected`` is what it compares with.
        get: GET was given.
        ttl: ``EX``, ``PX``, ``EXAT``, ``PXAT``, ``KEEPTTL``, ``PERSIST`` or empty.
        time: the number after ``EX`` and its kin, not looked at yet.
    """

    def __init__(self) -> None:
        self.condition = ALWAYS
        self.expected = b""
        self.get = False
        self.ttl = b""
        self.time = b""

    @property
    def compares(self) -> bool:
        """Return whether the condition looks at the value, and not only whether there is one."""
        return self.condition > IF_THERE

    def take_ttl(self, args: Args, option: bytes, alone: bytes) -> bool:
        """Take ``option`` if it is about expiry; each may be repeated, but no two may meet.

        Args:
            alone: the option without a number that the command knows.
        """
        if option == alone:
            if self.ttl and self.ttl != option:
                raise CommandError(errors.SYNTAX)
        elif option in _EXPIRY:
            if self.ttl and self.ttl != option:
                raise CommandError(errors.SYNTAX)
            self.time = args.word()
        else:
            return False
        self.ttl = option
        return True

    def take_existence(self, option: bytes) -> bool:
        """Take NX or XX; each may be repeated, but nothing else may be asked for with it."""
        condition = _EXISTENCE.get(option, ALWAYS)
        if condition == ALWAYS:
            return False
        if self.condition != ALWAYS and self.condition != condition:
            raise CommandError(errors.SYNTAX)
        self.condition = condition
        return True

    def take_comparison(self, args: Args, option: bytes) -> bool:
        """Take IFEQ, IFNE, IFDEQ or IFDNE with what follows it."""
        condition = COMPARING.get(option, ALWAYS)
        if condition == ALWAYS:
            return False
        if self.condition != ALWAYS and self.condition != condition:
            raise CommandError(errors.SYNTAX)
        self.condition = condition
        self.expected = args.word()
        return True

    def deadline_ms(self, call: Call) -> int:
        """Return the moment of ``EX`` and its kin in ms since 1970, or -1; raises CommandError."""
        return deadline_ms(call, self.ttl, self.time) if self.ttl in _EXPIRY else -1

    def has_passed(self, call: Call, moment_ms: int) -> bool:
        """Return whether the moment was given as an absolute one and is over."""
        return self.ttl in (b"EXAT", b"PXAT") and has_passed(call, moment_ms)


def deadline_ms(call: Call, unit: bytes, time: bytes) -> int:
    """Return the moment of ``time`` in ms since 1970, as ``unit`` (``EX`` and its kin) says.

    Raises: CommandError for what is no integer, not positive or too far away.
    """
    value = parse_integer(time)
    if value is None:
        raise CommandError(errors.NOT_AN_INTEGER)
    moment_ms = value * 1000 if unit in (b"EX", b"EXAT") else value
    if unit in (b"EX", b"PX"):
        moment_ms += call.now_ms
    if value <= 0 or moment_ms > INT64_MAX:
        raise CommandError(errors.INVALID_EXPIRE % call.name())
    return moment_ms


def store_until(call: Call, key: bytes, value: object, moment_ms: int) -> None:
    """Set ``key`` as ``store`` does, with a deadline."""
    store(call, key, value, True)
    call.db.expire_at(key, moment_ms)


def report_deadline(call: Call, key: bytes) -> None:
    """Report that ``key`` got a deadline, where another report holds the record."""
    call.changed(key, DEADLINE_SET, None, count=0)


_DIGITS: Final = 16


def digest_of(value: bytes) -> bytes:
    """Return the digest of a string."""
    return xxh3_64_hexdigest(value).encode()


def holds(found: Entry | None, condition: int, expected: bytes, wrong_type: bytes) -> bool:
    """Return whether the string of an entry meets IFEQ, IFNE, IFDEQ or IFDNE.

    Without an entry the negative ones are met. For another type, ``wrong_type`` is raised.
    """
    if found is None:
        return condition in (IF_NOT_EQUAL, IF_NOT_DIGEST)
    value = string_bytes(found.value)
    if value is None:
        raise CommandError(wrong_type)
    if condition == IF_EQUAL:
        return value == expected
    if condition == IF_NOT_EQUAL:
        return value != expected
    if len(expected) != _DIGITS:
        raise CommandError(errors.DIGEST_LENGTH)
    return (digest_of(value) == expected.lower()) == (condition == IF_DIGEST)


def digest(call: Call) -> object:
    """Reply: the digest of the string, or nil."""
    value = string_at(call, call.argv[1])
    return None if value is None else digest_of(value)


def delex(call: Call) -> object:
    """Delete a key, of any type if there is no condition.

    Reply: 1 when the key was deleted, 0 when it was not there or the condition did not hold.
    """
    argv = call.argv
    if len(argv) not in (2, 4):
        raise CommandError(errors.wrong_arity(call.name()))
    if len(argv) == 2:
        return 1 if call.delete(argv[1]) else 0
    found = call.counted_entry(argv[1])
    if found is None:
        return 0
    if string_bytes(found.value) is None:
        raise CommandError(errors.CONDITION_NEEDS_STRING)
    condition = COMPARING.get(argv[2].upper())
    if condition is None:
        raise CommandError(errors.INVALID_CONDITION)
    if not holds(found, condition, argv[3], errors.CONDITION_NEEDS_STRING):
        return 0
    return 1 if call.delete(argv[1]) else 0


def get(call: Call) -> object:
    """Reply: the value, or nil."""
    return string_at(call, call.argv[1])


def set_(call: Call) -> object:
    """Recorded as ``_record`` says. A deadline that has passed only removes the key.

    Reply: OK, or nil when the condition kept the key as it was; with GET the old value or nil.
    Source: t_string.c, setGenericCommand.
    """
    argv = call.argv
    key = argv[1]
    if len(argv) == 3:
        store(call, key, encode_string(argv[2]))
        call.changed(key, SET, argv)
        return OK
    options = _set_options(argv)
    moment_ms = options.deadline_ms(call)
    reply: object = OK
    if options.get:
        reply = string_at(call, key)
    if options.condition != ALWAYS and not _may_set(call, key, options):
        return reply if options.get else None
    if moment_ms < 0:
        store(call, key, encode_string(argv[2]), bool(options.ttl))
        call.changed(key, SET, _record(call, options, moment_ms))
    elif options.has_passed(call, moment_ms):
        expired_at_once(call, key, call.db.lives(key, call.now_ms))
    else:
        _set_until(call, key, argv[2], moment_ms, _record(call, options, moment_ms))
    return reply


def _record(call: Call, options: StringOptions, moment_ms: int) -> list[bytes] | None:
    """Return the request with an absolute deadline, or else without GET.

    What compares is left out: it has held, and Redis before 8.4 does not know it.
    """
    argv = call.argv
    if not call.recorded:
        return None
    if moment_ms >= 0:
        is_exact = options.ttl == b"PXAT" and not options.compares
        return argv if is_exact else [*argv[:3], b"PXAT", b"%d" % moment_ms]
    if options.compares:
        return [*argv[:3], b"KEEPTTL"] if options.ttl else argv[:3]
    if options.get:
        return argv[:3] + [word for word in argv[3:] if word.upper() != b"GET"]
    return argv


def _set_options(argv: list[bytes]) -> StringOptions:
    """Read ``[NX|XX|IFEQ v|IFNE v|IFDEQ d|IFDNE d] [GET] [EX s|PX ms|EXAT s|PXAT ms|KEEPTTL]``."""
    options = StringOptions()
    args = Args(argv, 3)
    while args.left:
        option = args.option()
        if option == b"GET":
            options.get = True
        elif not (
            options.take_existence(option)
            or options.take_ttl(args, option, b"KEEPTTL")
            or options.take_comparison(args, option)
        ):
            raise CommandError(errors.SYNTAX)
    return options


def _may_set(call: Call, key: bytes, options: StringOptions) -> bool:
    found = call.db.entry(key, call.now_ms)
    if options.condition == IF_MISSING:
        return found is None
    if options.condition == IF_THERE:
        return found is not None
    return holds(found, options.condition, options.expected, errors.WRONGTYPE)


def _set_until(
    call: Call, key: bytes, value: bytes, moment_ms: int, record: list[bytes] | None
) -> None:
    store_until(call, key, encode_string(value), moment_ms)
    call.changed(key, SET, record)
    report_deadline(call, key)


def set_record(
    call: Call, key: bytes, value: bytes, moment_ms: int, keep_ttl: bool = False
) -> list[bytes] | None:
    """Return the SET that repeats a string and its deadline; None where no record is taken.

    A negative ``moment_ms`` is no deadline; with ``keep_ttl`` the old one stays.
    """
    if not call.recorded:
        return None
    record = [b"SET", key, value]
    if moment_ms >= 0:
        record += [b"PXAT", b"%d" % moment_ms]
    elif keep_ttl:
        record.append(b"KEEPTTL")
    return record


def setnx(call: Call) -> object:
    """Reply: 1 when it was set, 0 when the key was there."""
    argv = call.argv
    key = argv[1]
    if call.db.lives(key, call.now_ms):
        return 0
    store(call, key, encode_string(argv[2]))
    call.changed(key, SET, argv)
    return 1


def setex(call: Call) -> object:
    """Reply: OK."""
    return _setex(call, b"EX")


def psetex(call: Call) -> object:
    """Reply: OK."""
    return _setex(call, b"PX")


def _setex(call: Call, unit: bytes) -> object:
    _, key, time, value = call.argv
    moment_ms = deadline_ms(call, unit, time)
    _set_until(call, key, value, moment_ms, set_record(call, key, value, moment_ms))
    return OK


def getset(call: Call) -> object:
    """Reply: the old value or nil."""
    _, key, value = call.argv
    old = string_at(call, key)
    store(call, key, encode_string(value))
    call.changed(key, SET, [b"SET", key, value])
    return old


def getdel(call: Call) -> object:
    """Reply: the value or nil; the key is gone."""
    value = string_at(call, call.argv[1])
    if value is not None:
        call.delete(call.argv[1])
    return value


def getex(call: Call) -> object:
    """Reply: the value or nil. Source: getexCommand: the time is read only where there is a key."""
    key = call.argv[1]
    options = StringOptions()
    args = Args(call.argv, 2)
    while args.left:
        if not options.take_ttl(args, args.option(), b"PERSIST"):
            raise CommandError(errors.SYNTAX)
    value = string_at(call, key)
    if value is None:
        return None
    moment_ms = options.deadline_ms(call)
    if moment_ms >= 0:
        if options.has_passed(call, moment_ms):
            delete_expired(call, key)
        else:
            set_deadline(call, key, moment_ms)
    elif options.ttl and call.db.persist(key):
        call.changed(key, PERSISTED, [b"PERSIST", key])
    return value


def strlen(call: Call) -> object:
    """Reply: the bytes of the value; 0 without a key."""
    value = call.lookup(call.argv[1])
    if value is None:
        return 0
    size = string_length(value)
    if size < 0:
        raise CommandError(errors.WRONGTYPE)
    return size


def getrange(call: Call) -> object:
    """Both ends are included, negative ones count from the end. Reply: the part, maybe empty."""
    start = integer(call.argv[2])
    end = integer(call.argv[3])
    value = call.lookup(call.argv[1])
    if value is None:
        return b""
    if isinstance(value, int):
        value = b"%d" % value
    if not isinstance(value, (bytes, bytearray)):
        raise CommandError(errors.WRONGTYPE)
    if start < 0 and end < start:
        return b""
    size = len(value)
    first = max(0, start + size) if start < 0 else start
    last = max(0, end + size) if end < 0 else end
    part = value[first : min(last, size - 1) + 1] if first <= last else b""
    return part if isinstance(part, bytes) else bytes(part)


def mget(call: Call) -> object:
    """Reply: the values in order, nil for a key that holds no string."""
    return [string_bytes(call.lookup(key)) for key in call.argv[1:]]


def mset(call: Call) -> object:
    """Reply: OK."""
    _check_pairs(call)
    _set_all(call)
    return OK


def msetnx(call: Call) -> object:
    """Reply: 1, or 0 when any key was there: none is set."""
    _check_pairs(call)
    for key in call.argv[1::2]:
        if call.db.lives(key, call.now_ms):
            return 0
    _set_all(call)
    return 1


def _check_pairs(call: Call) -> None:
    if len(call.argv) % 2 == 0:
        raise CommandError(errors.wrong_arity(call.name()))


def _set_all(call: Call) -> None:
    argv = call.argv
    _set_some(call, argv, 1, len(argv))
    call.record(argv)


def _set_some(call: Call, argv: list[bytes], low: int, high: int) -> None:
    for at in range(low, high, 2):
        store(call, argv[at], encode_string(argv[at + 1]))
        call.changed(argv[at], SET, None)


class _Setting(Lengthy):
    def prepare(self, call: Call, low: int, high: int) -> None:
        for key in self.argv[low:high:2]:
            self.keys.add(key)

    def change(self, call: Call, low: int, high: int) -> None:
        if call.server.data.guarded:
            for key in self.argv[low:high:2]:
                call.db.before_change(key)
        _set_some(call, self.argv, low, high)
        self.note(call, self.argv[low:high])

    def finish(self, call: Call) -> object:
        self.record(call, b"MSET")
        return OK


@lengthy("MSET")
def mset_lengthy(call: Call) -> Lengthy | None:
    """Return the MSET of very many pairs; in a region the first one may be refused."""
    _check_pairs(call)
    return None if call.server.data.region is not None else _Setting(call.argv, 1, 2)


def msetex(call: Call) -> object:
    """Recorded as SETs, which any version can read.

    Reply: 1, or 0 when NX met a key that is there or XX one that is not: none is set.
    """
    args = Args(call.argv)
    count = args.integer(errors.INVALID_NUMKEYS)
    if not 1 <= count <= INT32_MAX:
        raise CommandError(errors.INVALID_NUMKEYS)
    if args.left < 2 * count:
        raise CommandError(errors.WRONG_PAIR_COUNT)
    pairs = [(args.word(), args.word()) for _ in range(count)]
    options = StringOptions()
    while args.left:
        option = args.option()
        if not (options.take_existence(option) or options.take_ttl(args, option, b"KEEPTTL")):
            raise CommandError(errors.SYNTAX)
    moment_ms = options.deadline_ms(call)
    if options.condition != ALWAYS:
        wanted = options.condition != IF_MISSING
        for key, _ in pairs:
            if call.db.lives(key, call.now_ms) != wanted:
                return 0
    for key, value in pairs:
        _set_one(call, key, value, moment_ms, bool(options.ttl))
    return 1


def _set_one(call: Call, key: bytes, value: bytes, moment_ms: int, keep_ttl: bool) -> None:
    if moment_ms >= 0:
        store_until(call, key, encode_string(value), moment_ms)
        report_deadline(call, key)
    else:
        store(call, key, encode_string(value), keep_ttl)
    call.changed(key, SET, set_record(call, key, value, moment_ms, keep_ttl))


_CELL_BYTES: Final = 4  # that Redis takes for each pair of a byte of both, and one more of each


class _Options:
    """The options ``[LEN] [IDX] [MINMATCHLEN n] [WITHMATCHLEN]``."""

    def __init__(self, args: Args) -> None:
        self.length = False
        self.indexes = False
        self.least = 0
        self.with_lengths = False
        while args.left:
            option = args.option()
            if option == b"IDX":
                self.indexes = True
            elif option == b"LEN":
                self.length = True
            elif option == b"WITHMATCHLEN":
                self.with_lengths = True
            elif option == b"MINMATCHLEN":
                self.least = args.integer(errors.NOT_AN_INTEGER)
            else:
                raise CommandError(errors.SYNTAX)


def lcs(call: Call) -> object:
    """It takes a 32nd of the memory that Redis takes for it, but refuses the same requests.

    Reply: the bytes in common, their number, or where they stand in both strings.
    """
    argv = call.argv
    values = [call.lookup(key) for key in argv[1:3]]
    texts = [b"" if value is None else string_bytes(value) for value in values]
    first, second = texts
    if first is None or second is None:
        raise CommandError(errors.LCS_NEEDS_STRINGS)
    options = _Options(Args(argv, 3))
    if options.length and options.indexes:
        raise CommandError(errors.LCS_LENGTH_AND_INDEXES)
    cells = (len(first) + 1) * (len(second) + 1)
    if cells * _CELL_BYTES > call.server.config.proto_max_bulk_len:
        raise CommandError(errors.LCS_TOO_LARGE)
    if options.length:
        return common_length(first, second)
    matches = common_matches(first, second)
    if not options.indexes:
        return text_of(first, matches)
    shown: list[object] = [
        _shown(match, options.with_lengths) for match in matches if match.length() >= options.least
    ]
    return Map([(b"matches", shown), (b"len", sum([match.length() for match in matches]))])


def _shown(match: Match, with_length: bool) -> object:
    ranges: list[object] = [
        [match.first_start, match.first_end],
        [match.second_start, match.second_end],
    ]
    if with_length:
        ranges.append(match.length())
    return ranges


_SET_WORDS: Final = 3  # without options


@alike("GET", of_any_key=True, remembers=True)
def get_alike(call: Call, requests: Requests, first: int, end: int) -> Ran:
    """Write the values of strings into one buffer."""
    db = call.db
    table = db.table
    now_ms = call.now_ms
    touches = not call.session.special & NO_TOUCH
    tracking = call.server.tracking
    reader = tracking.reader_of(call.session) if call.session.special & TRACKED else 0
    noted = b""  # the key that was remembered last
    scattered = table.is_scattered()
    out = Packer(call.session.resp3)
    hits = 0
    at = first
    seen = first  # the requests up to here were looked at ahead, from ``began`` on
    began = first
    while at < end:
        key = requests[at][1]
        if scattered:
            if at == seen:
                began = at
                seen = min(end, at + MOST_AHEAD)
                table.look_ahead(requests, at, seen)
            table.find_ahead(key, at - began)
        value = db.get(key, now_ms) if touches else db.value_of(key, now_ms)
        if value is None:
            if call.reports_misses():
                break
            out.null()
            if reader:
                tracking.remember_one(call.session, key)
        else:
            text = value if isinstance(value, bytes) else string_bytes(value)
            if text is None:
                break
            out.text(text)
            hits += 1
            if reader and key is not noted:
                noted = key
                readers = table.value_in(tracking.readers(), key)
                if not isinstance(readers, int) or readers != reader:
                    tracking.remember_found(reader, table, key, readers)
        at += 1
        if out.wire_bytes() >= ALIKE_BYTES:
            break
    call.count_reads(hits, at - first - hits)
    return at - first, out.replies()


@alike("SET", of_any_key=True, replaces=True)
def set_alike(call: Call, requests: Requests, first: int, end: int) -> Ran:
    """Set keys that hold strings or are not there."""
    db = call.db
    if len(requests[first]) != _SET_WORDS or not call.needs_no_events_of_any():
        return NONE_ALIKE, NO_REPLIES
    table = db.table
    now_ms = call.now_ms
    scattered = table.is_scattered()
    at = first
    seen = first
    began = first
    while at < end:
        words = requests[at]
        key = words[1]
        if scattered:
            if at == seen:
                began = at
                seen = min(end, at + MOST_AHEAD)
                table.look_ahead(requests, at, seen)
            table.find_ahead(key, at - began)
        old = db.value_of(key, now_ms)
        if old is None:
            if call.server.changes.expired:
                break
            db.put(key, encode_string(words[2]), now_ms)
        elif isinstance(old, (bytes, int)):
            db.replace(key, encode_string(words[2]), now_ms)
            if db.volatile:
                db.persist(key)
        else:
            break
        at += 1
    done = at - first
    call.changed_alike(requests, first, at, done)
    return done, repeated(OK, done)
