"""Keys of any type: DEL, EXISTS, TYPE, TOUCH, RENAME, COPY, MOVE, OBJECT and their kin."""

from __future__ import annotations

from typing import Final

from headrace.compat.errors import (
    DB_OUT_OF_RANGE,
    MOVE_IN_CLUSTER,
    NO_FREQUENCY,
    NO_IDLE_TIME,
    NO_SUCH_KEY,
    SAME_OBJECT,
    SYNTAX,
    CommandError,
)
from headrace.protocol.replies import OK, Status
from headrace.server.changes.events import DELETED
from headrace.server.commands.deadlines import report_replaced
from headrace.server.commands.keys.accesses import counts_frequency, frequency, idle_s
from headrace.server.commands.keys.events import (
    COPIED_TO,
    MOVED_FROM,
    MOVED_TO,
    RENAMED_FROM,
    RENAMED_TO,
)
from headrace.server.commands.shared_keys import in_region, shared_keys
from headrace.server.dispatch.args import Args
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.lengthy import Lengthy
from headrace.server.dispatch.rows import lengthy
from headrace.storage.entry import NO_EXPIRY, Entry
from headrace.storage.faces import face
from headrace.storage.keyspace import Keyspace

_NONE: Final = Status(b"none")


def del_(call: Call) -> object:
    """Reply: how many were there."""
    return _delete(call)


def unlink(call: Call) -> object:
    """As DEL; large values are always freed in the background."""
    return _delete(call)


def _delete(call: Call) -> object:
    if in_region(call):
        return shared_keys().delete_named(call, call.name().upper())
    deleted = _delete_some(call, call.argv, 1, len(call.argv))
    if deleted:
        call.record(call.argv)
    return deleted


def _delete_some(call: Call, argv: list[bytes], low: int, high: int) -> int:
    """Delete the keys ``argv[low:high]`` and report each; how many were there."""
    db = call.db
    deleted = 0
    for at in range(low, high):
        key = argv[at]
        if db.entry(key, call.now_ms) is not None:
            call.server.data.free_later(db.remove(key))
            deleted += 1
            call.changed(key, DELETED, None)
    return deleted


class _Deletion(Lengthy):
    """DEL or UNLINK of very many keys."""

    def __init__(self, call: Call, name: bytes) -> None:
        super().__init__(call.argv, 1, 1)
        self._name: Final = name
        self._deleted = 0

    def prepare(self, call: Call, low: int, high: int) -> None:
        """Note the keys."""
        for key in self.argv[low:high]:
            self.keys.add(key)

    def change(self, call: Call, low: int, high: int) -> None:
        """Delete some."""
        self._deleted += _delete_some(call, self.argv, low, high)
        self.note(call, self.argv[low:high])

    def finish(self, call: Call) -> object:
        """How many were there."""
        if self._deleted:
            self.record(call, self._name)
        return self._deleted


@lengthy("DEL")
def del_lengthy(call: Call) -> Lengthy | None:
    """Very many keys."""
    if in_region(call):
        return None
    return _Deletion(call, b"DEL")


@lengthy("UNLINK")
def unlink_lengthy(call: Call) -> Lengthy | None:
    """Very many keys."""
    if in_region(call):
        return None
    return _Deletion(call, b"UNLINK")


def exists(call: Call) -> object:
    """Reply: how many are there; a key named twice counts twice."""
    count = 0
    for key in call.argv[1:]:
        if call.counted_entry(key) is not None:
            count += 1
    return count


def touch(call: Call) -> object:
    """As EXISTS, and an access, even for a client with NO-TOUCH on."""
    count = 0
    for key in call.argv[1:]:
        if call.counted_entry(key) is not None:
            call.db.touch(key, call.now_ms)
            count += 1
    return count


def type_(call: Call) -> object:
    """Reply: the name of the type, ``none`` without a key."""
    found = call.counted_entry(call.argv[1])
    return _NONE if found is None else Status(face(found.value).type_name())


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
        raise CommandError(NO_SUCH_KEY)
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
    """Put a value and its deadline under a name, whether a key has it or not.

    A key that is there keeps its place, so a scan that is under way meets it.
    """
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
            raise CommandError(SYNTAX)
    if db is call.db and source == target:
        raise CommandError(SAME_OBJECT)
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
        raise CommandError(MOVE_IN_CLUSTER)
    key = call.argv[1]
    db = _database(call, Args(call.argv, 2).int32())
    if db is call.db:
        raise CommandError(SAME_OBJECT)
    found = call.db.entry(key, call.now_ms)
    if found is None or db.entry(key, call.now_ms) is not None:
        return 0
    moment_ms = found.expire_ms
    call.db.remove(key)
    _place(call, db, key, found.value, moment_ms)
    call.changed(key, MOVED_FROM, call.argv)
    call.changed_in(db, key, MOVED_TO, None, count=0)
    return 1


def _database(call: Call, index: int) -> Keyspace:
    if not 0 <= index < len(call.server.data.dbs):
        raise CommandError(DB_OUT_OF_RANGE)
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
    if counts_frequency(call):
        raise CommandError(NO_IDLE_TIME)
    return idle_s(call, found)


def object_freq(call: Call) -> object:
    """Reply: a logarithmic counter of accesses, or nil.

    See ``accesses``.
    """
    found = _inspect(call)
    if found is None:
        return None
    if not counts_frequency(call):
        raise CommandError(NO_FREQUENCY)
    return frequency(call, found)


def _inspect(call: Call) -> Entry | None:
    """The entry asked about: no access, but a hit or a miss."""
    found = call.db.entry(call.argv[2], call.now_ms)
    if found is None:
        call.server.statistics.keyspace_misses += 1
    else:
        call.server.statistics.keyspace_hits += 1
    return found
