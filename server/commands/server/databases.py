"""Whole databases: DBSIZE, FLUSHDB, FLUSHALL, SWAPDB."""

from __future__ import annotations

from headrace.compat.errors import (
    DB_OUT_OF_RANGE,
    INVALID_FIRST_DB,
    INVALID_SECOND_DB,
    SWAPDB_IN_CLUSTER,
    SYNTAX,
    CommandError,
)
from headrace.protocol.replies import OK
from headrace.server.clients.session import IN_MULTI
from headrace.server.commands.shared_keys import in_region, shared_keys
from headrace.server.dispatch.args import Args
from headrace.server.dispatch.call import Call
from headrace.storage.keyspace import Keyspace
from headrace.storage.sharing import Replicated


def dbsize(call: Call) -> object:
    """Reply: the number of keys, with those that expired and were not met yet."""
    return len(call.db)


def flushdb(call: Call) -> object:
    """Reply: OK."""
    _check_mode(call)
    call.server.changes.flushed()
    removed = _flush(call, call.db)
    call.record(call.argv, count=removed)
    return OK


def flushall(call: Call) -> object:
    """Reply: OK."""
    _check_mode(call)
    call.server.changes.flushed()
    removed = 0
    for db in call.server.data.dbs:
        removed += _flush(call, db)
    durability = call.durability
    if durability.is_on and not call.replaying and durability.saving.flushed():
        removed = 0  # they are not counted as changes since the snapshot
    # Recorded even where there was nothing: what a file that is read again holds is not known.
    call.record(call.argv, count=removed)
    return OK


def _check_mode(call: Call) -> None:
    argv = call.argv
    if len(argv) > 2 or (len(argv) == 2 and argv[1].upper() not in (b"ASYNC", b"SYNC")):
        raise CommandError(SYNTAX)


def _flush(call: Call, db: Keyspace) -> int:
    server = call.server
    if in_region(call):
        # One by one: what other regions have made meanwhile stays.
        replicated = [entry for entry in db.every() if isinstance(entry.value, Replicated)]
        shared_keys().delete_all(server, replicated, bool(call.session.special & IN_MULTI))
    removed = len(db)
    if removed:
        server.changes.replace_database(db, None, call.now_ms)
        db.clear()
    return removed


def swapdb(call: Call) -> object:
    """Reply: OK."""
    if call.server.cluster is not None and not call.replaying:
        raise CommandError(SWAPDB_IN_CLUSTER)
    args = Args(call.argv)
    first = args.int32(INVALID_FIRST_DB)
    second = args.int32(INVALID_SECOND_DB)
    server = call.server
    if not (0 <= first < len(server.data.dbs) and 0 <= second < len(server.data.dbs)):
        raise CommandError(DB_OUT_OF_RANGE)
    if first != second:
        one, other = server.data.dbs[first], server.data.dbs[second]
        server.changes.replace_database(one, other, call.now_ms)
        server.changes.replace_database(other, one, call.now_ms)
        one.swap(other)
    call.record(call.argv, count=1)
    return OK
