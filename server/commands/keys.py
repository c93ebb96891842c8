"""Keys of any type: DEL, EXISTS, RENAME, COPY, OBJECT, SCAN, EXPIRE, TTL, PERSIST and their kin."""

from __future__ import annotations

from typing import Final

from headrace.compat import errors
from headrace.compat.errors import CommandError
from headrace.compat.event_classes import EVENT_GENERIC
from headrace.compat.glob import matches
from headrace.compat.numbers import INT64_MAX, INT64_MIN, parse_unsigned
from headrace.protocol.replies import OK, Status
from headrace.server.changes.events import DELETED, PERSISTED, Event
from headrace.server.commands.shared import (
    ScanOptions,
    delete_expired,
    has_passed,
    is_replicated,
    random_bits,
    report_replaced,
    set_deadline,
)
from headrace.server.commands.shared_keys import in_region, shared_keys
from headrace.server.dispatch.args import Args, integer
from headrace.server.dispatch.call import Call, Lengthy
from headrace.server.dispatch.rows import lengthy
from headrace.server.eviction import counter_of, counts_uses, last_ms
from headrace.storage.entry import NO_EXPIRY, Entry
from headrace.storage.faces import face, type_name
from headrace.storage.keyspace import Keyspace

RENAMED_FROM: Final = Event(b"rename_from", EVENT_GENERIC, touches=True, wakes=True)
RENAMED_TO: Final = Event(b"rename_to", EVENT_GENERIC, touches=True, wakes=True)
MOVED_FROM: Final = Event(b"move_from", EVENT_GENERIC, touches=True, wakes=True)
MOVED_TO: Final = Event(b"move_to", EVENT_GENERIC, touches=True, wakes=True)
COPIED_TO: Final = Event(b"copy_to", EVENT_GENERIC, touches=True, wakes=True)


_NONE: Final = Status(b"none")
_TYPE_STATUSES: Final[dict[bytes, Status]] = {}


def del_(call: Call) -> object:
    """Large values are always freed in the background, as by UNLINK. Reply: how many were there."""
    if in_region(call):
        return shared_keys().delete_named(call, call.name().upper())
    deleted = _delete_some(call, call.argv, 1, len(call.argv))
    if deleted:
        call.record(call.argv)
    return deleted


def _delete_some(call: Call, argv: list[bytes], low: int, high: int) -> int:
    """Delete the keys ``argv[low:high]`` and report each; return how many were there."""
    db = call.db
    deleted = 0
    for at in range(low, high):
        key = argv[at]
        if db.lives(key, call.now_ms):
            call.server.data.free_later(db.remove(key))
            deleted += 1
            call.changed(key, DELETED, None)
    return deleted


class _Deletion(Lengthy):
    def __init__(self, call: Call, name: bytes) -> None:
        super().__init__(call.argv, 1, 1)
        self._name: Final = name
        self._deleted = 0

    def prepare(self, call: Call, low: int, high: int) -> None:
        for key in self.argv[low:high]:
            self.keys.add(key)

    def change(self, call: Call, low: int, high: int) -> None:
        self._deleted += _delete_some(call, self.argv, low, high)
        self.note(call, self.argv[low:high])

    def finish(self, call: Call) -> object:
        if self._deleted:
            self.record(call, self._name)
        return self._deleted


@lengthy("DEL")
@lengthy("UNLINK")
def del_lengthy(call: Call) -> Lengthy | None:
    """Return the DEL or UNLINK of very many keys."""
    return None if in_region(call) else _Deletion(call, call.name().upper())


def exists(call: Call) -> object:
    """Reply: how many are there; a key named twice counts twice."""
    count = 0
    for key in call.argv[1:]:
        if call.counted(key):
            count += 1
    return count


def touch(call: Call) -> object:
    """Count keys as EXISTS, and an access of each, even for a client with NO-TOUCH on."""
    count = 0
    for key in call.argv[1:]:
        if call.counted(key):
            call.db.touch(key, call.now_ms)
            count += 1
    return count


def type_(call: Call) -> object:
    """Reply: the name of the type, ``none`` without a key."""
    found = call.counted_entry(call.argv[1])
    return _NONE if found is None else _status_of(type_name(found.value))


def _status_of(name: bytes) -> Status:
    found = _TYPE_STATUSES.get(name)
    if found is None:
        found = _TYPE_STATUSES[name] = Status(name)
    return found


def rename(call: Call) -> object:
    """Reply: OK; what ``newkey`` held is gone."""
    _rename(call, False)
    return OK


def renamenx(call: Call) -> object:
    """Reply: 1, or 0 when ``newkey`` is there."""
    return 1 if _rename(call, True) else 0


def _rename(call: Call, only_new: bool) -> bool:
    """Source: db.c, renameGenericCommand."""
    db = call.db
    source, target = call.argv[1], call.argv[2]
    found = db.entry(source, call.now_ms)
    if found is None:
        raise CommandError(errors.NO_SUCH_KEY)
    if source == target:
        return not only_new
    replaced = db.entry(target, call.now_ms)
    if replaced is not None and only_new:
        return False
    if in_region(call) and shared_keys().rename(call, found):
        return True
    old = None if replaced is None else replaced.value
    moment_ms = found.expire_ms
    db.remove(source)
    _place(call, db, target, found.value, moment_ms)
    call.changed(source, RENAMED_FROM, call.argv)
    call.changed(target, RENAMED_TO, None, count=0)
    if old is not None:
        report_replaced(call, db, target, old, found.value)
    return True


def _place(call: Call, db: Keyspace, key: bytes, value: object, moment_ms: int) -> None:
    """Set a value and its deadline; a key that is there keeps its place, so that scans meet it."""
    call.created_in(db, key)
    db.put(key, value, call.now_ms)
    if moment_ms == NO_EXPIRY:
        db.persist(key)
    else:
        db.expire_at(key, moment_ms)


def copy(call: Call) -> object:
    """Reply: 1, or 0 when nothing was copied. Source: db.c, copyCommand."""
    source, target = call.argv[1], call.argv[2]
    db = call.db
    replace = False
    args = Args(call.argv, 3)
    while args.left:
        option = args.option()
        if option == b"REPLACE":
            replace = True
        elif option == b"DB" and args.left:
            db = _database(call, args.int32())
        else:
            raise CommandError(errors.SYNTAX)
    if db is call.db and source == target:
        raise CommandError(errors.SAME_OBJECT)
    value = call.lookup(source)
    if value is None:
        return 0
    moment_ms = call.db.deadline_ms(source)
    replaced = db.entry(target, call.now_ms)
    if replaced is not None and not replace:
        return 0
    if in_region(call) and shared_keys().copy(call, value, moment_ms):
        return 1
    old = None if replaced is None else replaced.value
    value = face(value).copy()
    _place(call, db, target, value, moment_ms)
    call.changed_in(db, target, COPIED_TO, None)
    call.record(call.argv)
    if old is not None:
        report_replaced(call, db, target, old, value)
    return 1


def move(call: Call) -> object:
    """Reply: 1, or 0 when the key is missing here or there already."""
    if call.server.cluster is not None:
        raise CommandError(errors.MOVE_IN_CLUSTER)
    key = call.argv[1]
    db = _database(call, Args(call.argv, 2).int32())
    if db is call.db:
        raise CommandError(errors.SAME_OBJECT)
    found = call.db.entry(key, call.now_ms)
    if found is None or db.lives(key, call.now_ms):
        return 0
    moment_ms = found.expire_ms
    call.db.remove(key)
    _place(call, db, key, found.value, moment_ms)
    call.changed(key, MOVED_FROM, call.argv)
    call.changed_in(db, key, MOVED_TO, None, count=0)
    return 1


def _database(call: Call, index: int) -> Keyspace:
    if not 0 <= index < len(call.server.data.dbs):
        raise CommandError(errors.DB_OUT_OF_RANGE)
    return call.server.data.dbs[index]


def object_encoding(call: Call) -> object:
    """Reply: the name of the representation, or nil."""
    found = _inspect(call)
    return None if found is None else face(found.value).encoding(found.key)


def object_refcount(call: Call) -> object:
    """Reply: 1, because no two keys share a value; or nil."""
    return None if _inspect(call) is None else 1


def object_idletime(call: Call) -> object:
    """Reply: seconds since the last access, or nil."""
    found = _inspect(call)
    if found is None:
        return None
    if counts_uses(call.server.config.maxmemory_policy):
        raise CommandError(errors.NO_IDLE_TIME)
    return max(0, call.now_ms - last_ms(found.usage)) // 1000


def object_freq(call: Call) -> object:
    """Reply: a logarithmic counter of accesses, or nil; see ``eviction``."""
    found = _inspect(call)
    if found is None:
        return None
    if not counts_uses(call.server.config.maxmemory_policy):
        raise CommandError(errors.NO_FREQUENCY)
    return counter_of(found.usage, call.now_ms, call.server.config.lfu_decay_time)


def _inspect(call: Call) -> Entry | None:
    """Return the entry asked about; counts no access, but a hit or a miss."""
    found = call.db.entry(call.argv[2], call.now_ms)
    if found is None:
        call.server.statistics.keyspace_misses += 1
    else:
        call.server.statistics.keyspace_hits += 1
    return found


def scan(call: Call) -> object:
    """Reply: the next cursor, 0 at the end, and those of ``count`` keys that fit the pattern."""
    cursor = parse_unsigned(call.argv[1])
    if cursor is None:
        raise CommandError(errors.INVALID_CURSOR)
    options = ScanOptions(call, 2, keys=True)
    table = call.db.table
    now_ms = call.now_ms
    cursor, slot = call.db.window(cursor, options.count)
    names: list[bytes] = []
    due = False  # a deadline has passed, and so the slots of others may change
    while slot > cursor:
        slot -= 1
        names.append(table.key_at(slot))
        due = due or NO_EXPIRY < table.deadline_ms(slot) < now_ms
    keys: list[object] = []
    for key in names:
        if not options.takes(key) or (due and not call.db.lives(key, now_ms)):
            continue
        if options.kind is None or type_name(table.value_at(table.find(key))) == options.kind:
            keys.append(key)
    call.report_expired_apart()
    return [b"%d" % cursor, keys]


def keys(call: Call) -> object:
    """Reply: the keys that fit; expired ones are left out, not removed."""
    pattern = call.argv[1]
    now_ms = call.now_ms
    found: list[object] = []
    for entry in call.db.every():
        key = entry.key
        if matches(pattern, key) and not NO_EXPIRY < entry.expire_ms < now_ms:
            found.append(key)
    return found


def randomkey(call: Call) -> object:
    """Reply: a key, each as likely as the other, or nil in an empty database."""
    db = call.db
    while len(db):
        key = db.table.key_at(random_bits() % len(db))
        if call.db.lives(key, call.now_ms):
            call.report_expired_apart()
            return key
    call.report_expired_apart()
    return None


_NX: Final = 1
_XX: Final = 2
_GT: Final = 4
_LT: Final = 8
_CONDITIONS: Final[dict[bytes, int]] = {b"NX": _NX, b"XX": _XX, b"GT": _GT, b"LT": _LT}


def expire(call: Call) -> object:
    """Reply: 1, or 0 when nothing was set."""
    return _expire(call, 1000, call.now_ms)


def pexpire(call: Call) -> object:
    """Reply: as EXPIRE."""
    return _expire(call, 1, call.now_ms)


def expireat(call: Call) -> object:
    """Reply: as EXPIRE."""
    return _expire(call, 1000, 0)


def pexpireat(call: Call) -> object:
    """Reply: as EXPIRE."""
    return _expire(call, 1, 0)


def _expire(call: Call, unit_ms: int, base_ms: int) -> object:
    """Set a deadline of so many units after ``base_ms``; one that has passed deletes the key.

    Source: expire.c, expireGenericCommand.
    """
    key = call.argv[1]
    conditions = _conditions(call.argv)
    count = integer(call.argv[2])
    moment_ms = count * unit_ms
    if moment_ms < INT64_MIN or moment_ms > INT64_MAX - base_ms:
        raise CommandError(errors.INVALID_EXPIRE % call.name())
    moment_ms += base_ms
    db = call.db
    if not db.lives(key, call.now_ms):
        return 0
    if conditions and not _allowed(conditions, db.deadline_ms(key), moment_ms):
        return 0
    db.touch(key, call.now_ms)
    if has_passed(call, moment_ms):
        delete_expired(call, key)
    else:
        record: list[bytes] | None = None
        if unit_ms == 1 and not base_ms:
            record = call.argv
        elif call.recorded:
            record = [b"PEXPIREAT", key, b"%d" % moment_ms, *call.argv[3:]]
        set_deadline(call, key, moment_ms, record)
    return 1


def _conditions(argv: list[bytes]) -> int:
    """Return the conditions that follow the time, as bits."""
    found = 0
    for word in argv[3:]:
        bit = _CONDITIONS.get(word.upper())
        if bit is None:
            raise CommandError(errors.unsupported_option(word))
        found |= bit
    if found & _NX and found != _NX:
        raise CommandError(errors.EXPIRE_NX_EXCLUDES)
    if found & _GT and found & _LT:
        raise CommandError(errors.EXPIRE_GT_LT)
    return found


def _allowed(conditions: int, current_ms: int, moment_ms: int) -> bool:
    """Return whether a key may get a new deadline; one without a deadline lives for ever."""
    if current_ms == NO_EXPIRY:
        return not conditions & (_XX | _GT)
    if conditions & _NX:
        return False
    if conditions & _GT and moment_ms <= current_ms:
        return False
    return not (conditions & _LT and moment_ms >= current_ms)


def ttl(call: Call) -> object:
    """Reply: seconds to live, rounded; -1 without a deadline, -2 without the key."""
    return _deadline(call, 1000, call.now_ms)


def pttl(call: Call) -> object:
    """Reply: as TTL, in milliseconds."""
    return _deadline(call, 1, call.now_ms)


def expiretime(call: Call) -> object:
    """Reply: as TTL, in seconds since 1970."""
    return _deadline(call, 1000, 0)


def pexpiretime(call: Call) -> object:
    """Reply: as TTL, in milliseconds since 1970."""
    return _deadline(call, 1, 0)


def _deadline(call: Call, unit_ms: int, base_ms: int) -> object:
    key = call.argv[1]
    if not call.counted(key):
        return -2
    deadline_ms = call.db.deadline_ms(key)
    if deadline_ms == NO_EXPIRY:
        return -1
    left_ms = max(0, deadline_ms - base_ms)
    if unit_ms == 1:
        return left_ms
    # Half a second is not added first, because the latest possible deadline would overflow.
    return left_ms // 1000 + (1 if left_ms % 1000 >= 500 else 0)


def persist(call: Call) -> object:
    """Reply: 1 when a deadline was taken away, else 0."""
    key = call.argv[1]
    db = call.db
    if not db.lives(key, call.now_ms) or db.deadline_ms(key) == NO_EXPIRY:
        return 0
    if is_replicated(call, key) and not call.replaying:
        shared_keys().set_deadline(call.server, key, NO_EXPIRY)
        return 1
    db.persist(key)
    call.changed(key, PERSISTED, call.argv)
    return 1
