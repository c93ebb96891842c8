"""The server as a whole: INFO, CONFIG, MONITOR, FLUSHALL, SWAPDB, SAVE, WAIT, SHUTDOWN, MODULE.

There are no modules. LOAD, LOADEX and UNLOAD are refused as by a Redis whose
``enable-module-command`` is ``no``, its default. That parameter changes nothing here.
"""

from __future__ import annotations

import logging
from typing import Final

from headrace.compat import errors
from headrace.compat.errors import CommandError
from headrace.protocol.replies import NO_REPLY, OK, Map, Status, Verbatim
from headrace.server.build import REDIS_VERSION, VERSION
from headrace.server.clients.session import CLOSING, IN_MULTI, MONITORING, Session, allowed_by
from headrace.server.commands.shared_keys import in_region, shared_keys
from headrace.server.config.files import rewrite
from headrace.server.config.parameters import is_sensitive
from headrace.server.dispatch.args import Args, at_least, deadline_of
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.permission import REDACTED
from headrace.server.durability.files import SyncWait
from headrace.server.gate import LOADING_DATA, MONITORED, SCRIPT_AT_WORK
from headrace.server.info.command_stats import all_rows
from headrace.server.info.sections import info_text
from headrace.server.loading.starting import user_lines
from headrace.server.role import Replicas
from headrace.server.state import PARAMETERS, STAYS, WAITS, ShutdownOptions
from headrace.server.waiting import Parked
from headrace.storage.keyspace import Keyspace
from headrace.storage.sharing import Replicated


def module_list(call: Call) -> object:
    """Reply: an empty list."""
    return []


def refuse(call: Call) -> object:
    """Raises: the error of a Redis in which no command may load modules."""
    raise CommandError(errors.NO_MODULE_COMMAND)


def info(call: Call) -> object:
    """Reply: text, a line ``# Title`` and then lines ``name:value`` for each section."""
    return Verbatim(info_text(call, call.argv[1:]))


def time_(call: Call) -> object:
    """Reply: seconds since 1970, and microseconds; constant in a transaction or a script."""
    usec = (call.session.unit_ns or call.server.clock.now_ns) // 1000
    return [b"%d" % (usec // 1_000_000), b"%d" % (usec % 1_000_000)]


def monitor(call: Call) -> object:
    """Show this client every request that is run from now on. Reply: OK."""
    session = call.session
    if session.special & IN_MULTI:
        raise CommandError(errors.MONITOR_IN_MULTI)
    if not session.special & MONITORING:
        session.special |= MONITORING
        call.server.clients.monitors[session] = None
        call.server.gate.set(MONITORED, True)
    return OK


def shutdown(call: Call) -> object:
    """Stop the server, unless a file cannot be written; FORCE stops it in any case.

    An open append-only file is written and synced. A snapshot is saved with SAVE, and where there
    are save points unless NOSAVE says otherwise. Replicas that lag are waited for, up to
    ``shutdown-timeout`` and not with NOW; ABORT calls that off.

    Reply: none, the connection closes.
    Raises: where the server stays, and ABORT where no shutdown waits.
    """
    words = {word.lower() for word in call.argv[1:]}
    if words - {b"nosave", b"save", b"now", b"force", b"abort"}:
        raise CommandError(errors.SYNTAX)
    if (b"abort" in words and len(words) > 1) or {b"save", b"nosave"} <= words:
        raise CommandError(errors.SYNTAX)
    server = call.server
    shutdown = server.shutdown
    assert shutdown is not None
    if b"abort" in words:
        if not shutdown.call_off():
            raise CommandError(errors.NO_SHUTDOWN)
        return OK
    if server.gate.reasons & SCRIPT_AT_WORK:  # it may be in the middle of what it writes
        if b"nosave" not in words:
            raise CommandError(server.gate.busy)
        server.host.leave()
    outcome = shutdown.begin(ShutdownOptions(words))
    if outcome == STAYS:
        raise CommandError(errors.SHUTDOWN_FAILED)
    if outcome == WAITS:
        shutdown.await_with(call.session)
        return Parked([], 0, call.argv, None, None)
    call.session.special |= CLOSING
    return NO_REPLY


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
    # Recorded even without keys: what a file that is read again holds is not known.
    call.record(call.argv, count=removed)
    return OK


def _check_mode(call: Call) -> None:
    argv = call.argv
    if len(argv) > 2 or (len(argv) == 2 and argv[1].upper() not in (b"ASYNC", b"SYNC")):
        raise CommandError(errors.SYNTAX)


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
        raise CommandError(errors.SWAPDB_IN_CLUSTER)
    args = Args(call.argv)
    first = args.int32(errors.INVALID_FIRST_DB)
    second = args.int32(errors.INVALID_SECOND_DB)
    server = call.server
    if not (0 <= first < len(server.data.dbs) and 0 <= second < len(server.data.dbs)):
        raise CommandError(errors.DB_OUT_OF_RANGE)
    if first != second:
        one, other = server.data.dbs[first], server.data.dbs[second]
        server.changes.replace_database(one, other, call.now_ms)
        server.changes.replace_database(other, one, call.now_ms)
        one.swap(other)
    call.record(call.argv, count=1)
    return OK


_STARTED: Final = Status(b"Background saving started")
_SCHEDULED: Final = Status(b"Background saving scheduled")


def save(call: Call) -> object:
    """Write the snapshot while all clients wait.

    Reply: OK. Raises: it failed, see the log; or one is being written in the background.
    """
    saving = call.durability.saving
    if saving.is_running():
        raise CommandError(errors.SAVE_IN_PROGRESS)
    if not saving.save_now():
        raise CommandError(errors.SAVE_FAILED)
    return OK


def bgsave(call: Call) -> object:
    """Write the snapshot while the server goes on.

    Reply: a status. It says that the snapshot is only scheduled inside MULTI, and with SCHEDULE
        also while the append-only file is being written anew.
    Raises: one is being written; the append-only file is, without SCHEDULE; it cannot begin.
    """
    argv = call.argv
    schedule = len(argv) == 2 and argv[1].lower() == b"schedule"
    if len(argv) > 1 and not schedule:
        raise CommandError(errors.SYNTAX)
    saving = call.durability.saving
    if saving.is_running():
        raise CommandError(errors.SAVE_IN_PROGRESS)
    in_multi = bool(call.session.special & IN_MULTI)
    if call.durability.files.job is not None or in_multi:
        if not schedule and not in_multi:
            raise CommandError(errors.OTHER_JOB_IN_PROGRESS)
        saving.status.scheduled = True
        return _SCHEDULED
    if not saving.begin():
        raise CommandError(errors.SAVE_FAILED)
    return _STARTED


def lastsave(call: Call) -> object:
    """Reply: when the data was last saved, in seconds since 1970."""
    return call.durability.files.last_save_s


_REWRITE_STARTED: Final = Status(b"Background append only file rewriting started")
_REWRITE_SCHEDULED: Final = Status(b"Background append only file rewriting scheduled")


def bgrewriteaof(call: Call) -> object:
    """Replace the append-only files by shorter ones that hold the same.

    Reply: a status; only scheduled inside MULTI, or while a snapshot is being written.
    Raises: one is on its way already; it cannot begin.
    """
    files = call.durability.files
    rewriting = call.durability.rewriting
    if rewriting.is_running():
        raise CommandError(errors.REWRITE_IN_PROGRESS)
    if call.session.special & IN_MULTI or files.job is not None:
        files.status.rewrite_scheduled = True
        files.status.failures_in_a_row = 0
        return _REWRITE_SCHEDULED
    if not rewriting.begin():
        raise CommandError(errors.REWRITE_FAILED)
    return _REWRITE_STARTED


_OF_WAIT: Final = -1


def wait(call: Call) -> object:
    """Wait until so many replicas have what this client has written. Reply: how many have it."""
    wanted = Args(call.argv).integer()
    deadline_ms = deadline_of(call.argv[2], call.now_ms)
    if call.server.role.follows:
        raise CommandError(errors.WAIT_AT_REPLICA)
    replicas = call.server.role.replicas
    offset = _stream_end(call.session, replicas)
    there = 0 if replicas is None else replicas.acknowledged(offset, False)
    if there >= wanted or not call.may_block:
        return there
    parked = Parked([], deadline_ms, call.argv, there, None)
    if replicas is not None:
        replicas.wait_for(call.session, parked, wanted, _OF_WAIT, offset)
    return parked


def _stream_end(session: Session, replicas: Replicas | None) -> int:
    """Return where a client's writes end in the stream, which may be a new, shorter one since."""
    return 0 if replicas is None else min(session.written.stream_end, replicas.end_offset())


def waitaof(call: Call) -> object:
    """Wait until this client's writes are on the disk.

    Reply: list of 1 or 0 for this server's disk, and how many replicas have them on theirs.
    Raises: numlocal without an append-only file.
    """
    argv = call.argv
    local = Args(argv).integer()
    if not 0 <= local <= 1:
        raise CommandError(errors.NOT_BETWEEN % (0, 1))
    replicas = at_least(argv[2], 0, errors.NOT_POSITIVE)
    deadline_ms = deadline_of(argv[3], call.now_ms)
    server = call.server
    if server.role.follows:
        raise CommandError(errors.WAITAOF_AT_REPLICA)
    aof = call.durability.files.aof
    is_on = call.durability.rewriting.is_on  # perhaps without a file yet
    if local and not is_on:
        raise CommandError(errors.WAITAOF_WITHOUT_AOF)
    end = call.session.written.file_end
    # Under ``always`` the reply itself is held back until everything before it is on the disk.
    is_strict = server.config.appendfsync == b"always"
    synced = aof is not None and aof.named and (is_strict or aof.has_synced(end))
    of_role = server.role.replicas
    offset = _stream_end(call.session, of_role)
    there = 0 if of_role is None else of_role.acknowledged(offset, True)
    if not call.may_block or (int(synced) >= local and there >= replicas):
        return [int(synced), there]
    parked = Parked([], deadline_ms, argv, [int(synced), there], None)
    if is_on and not synced:
        wait_of_file = SyncWait(call.session, parked, aof, end, of_role is not None)
        call.durability.files.sync_waits.append(wait_of_file)
    if of_role is not None:
        of_role.wait_for(call.session, parked, replicas, local, offset)
    return parked


log: Final = logging.getLogger("headrace")


def config_get(call: Call) -> object:
    """Reply: map of name to value."""
    found = call.server.config.get(call.argv[2:])
    pairs: list[tuple[object, object]] = [(name, value) for name, value in found]
    return Map(pairs)


def config_set(call: Call) -> object:
    """Change all parameters named, or none. Reply: OK. Raises: a wrong name or value, a refusal."""
    argv = call.argv
    # What is logged of this call from here on must not hold a password.
    call.argv = _redacted(argv)
    if len(argv) % 2:
        raise CommandError(errors.SYNTAX)
    pairs = [(argv[at], argv[at + 1]) for at in range(2, len(argv), 2)]
    server = call.server
    allowed = allowed_by(server.config.enable_protected_configs, call.session)
    server.config.set_many(pairs, allowed, bool(server.gate.reasons & LOADING_DATA))
    server.unsaved.add(PARAMETERS)
    return OK


def config_resetstat(call: Call) -> object:
    """Set the counters that INFO shows to zero. Reply: OK."""
    server = call.server
    server.statistics.counters.reset()
    server.statistics.rates.reset()
    server.statistics.syncs.reset_counters()
    server.statistics.slowlog.reset_counters()
    server.statistics.keyspace_hits = 0
    server.statistics.keyspace_misses = 0
    server.changes.expired_keys = 0
    server.changes.expired_parts = 0
    server.data.freed = 0
    for row in all_rows():
        row.reset_counters()
    return OK


def config_rewrite(call: Call) -> object:
    """Write the settings into the configuration file. Reply: OK.

    Raises: the server was started without a file, or the file cannot be written.
    """
    config = call.server.config
    if not config.file:
        raise CommandError(errors.CONFIG_NO_FILE)
    try:
        rewrite(config, user_lines(call.server))
    except OSError as error:
        reason = error.strerror or str(error)
        log.warning("CONFIG REWRITE failed: %s", reason)
        raise CommandError(errors.CONFIG_REWRITE_FAILED % reason.encode()) from None
    log.info("CONFIG REWRITE executed with success.")
    return OK


def _redacted(argv: list[bytes]) -> list[bytes]:
    """Return the words of CONFIG SET without the values of sensitive parameters."""
    words = list(argv)
    for at in range(2, len(words) - 1, 2):
        if is_sensitive(words[at]):
            words[at + 1] = REDACTED
    return words


_COLUMNS: Final = 66
_ROWS: Final = 7
_MARKS: Final = "~~~~~^-.,_ "


def lolwut(call: Call) -> object:
    """Reply: text that ends with the version."""
    import random  # late: it is rarely needed

    args = Args(call.argv)
    if args.left >= 2 and args.flag(b"VERSION"):
        args.integer()
    stream = random.Random(call.now_ms)
    lines = []
    for row in range(_ROWS):
        shift = stream.randrange(_COLUMNS)
        water = [stream.choice(_MARKS[: 5 + row]) for _ in range(_COLUMNS)]
        lines.append("".join(water[shift:] + water[:shift]).rstrip())
    lines.append("")
    lines.append(f"Headrace {VERSION}. Redis ver. {REDIS_VERSION}")
    return Verbatim(("\n".join(lines) + "\n").encode())
