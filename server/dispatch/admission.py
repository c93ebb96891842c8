"""Admission of a request before it runs: does the command exist, may it run, must it wait?

Inside MULTI, what may run is queued.
"""

from __future__ import annotations

import logging
from typing import Final

from headrace.compat import errors
from headrace.compat.errors import MONITOR_TOUCHES_KEYS, CommandError
from headrace.protocol.packing import repeated
from headrace.protocol.replies import NO_REPLY, QUEUED, ErrorReply
from headrace.server import gate
from headrace.server.clients.clients import size_of
from headrace.server.clients.session import (
    CLOSING,
    IN_MULTI,
    LIMITED,
    MET,
    MONITORING,
    NEEDS_AUTH,
    OF_REGION,
    PAUSED,
    REPLICA,
    SUBSCRIBED,
    Session,
    allowed_by,
)
from headrace.server.dispatch import rows
from headrace.server.dispatch.dispatcher import Dispatcher
from headrace.server.dispatch.invoke import MOST_ALIKE
from headrace.server.dispatch.key_specs import crosses_slots, key_positions, key_uses
from headrace.server.dispatch.permission import refused_line
from headrace.server.dispatch.rows import Command
from headrace.server.faults import DELAY, ERROR
from headrace.server.state import Server

log: Final = logging.getLogger("headrace")
MOST_NAMES: Final = 4096  # spellings of command names that are remembered
_UNQUEUED: Final = frozenset((b"exec", b"discard", b"multi", b"watch", b"quit", b"reset"))
_FOR_SUBSCRIBERS: Final = frozenset(
    b"ping subscribe ssubscribe psubscribe unsubscribe sunsubscribe punsubscribe quit reset".split()
)
_FOR_REGIONS: Final = (b"aa|pull", b"aa|copy", b"aa|hello", b"aa|auth", b"ping")
# Commands of a file or a master that run besides writes and scripts. EXEC and DISCARD fail there.
_RUN_AGAIN: Final = (b"script|load", b"script|flush", b"select", b"exec", b"discard")
_NO_CHANGES: Final = (b"ping", b"echo", b"replconf", b"multi", b"exec")
_CHANGES: Final = rows.WRITE | rows.MAY_REPLICATE
_HOLD_ALL: Final = gate.PAUSED_ALL | gate.BETWEEN_ROLES
_OF_REPLICA: Final = gate.FOLLOWS | gate.BETWEEN_ROLES
_OF_ANY: Final = _CHANGES | rows.DENYOOM  # what EXEC has of any request of its queue
_SEES_DATA: Final = rows.READONLY | rows.WRITE | rows.SCRIPT_RUNNER
_MAKING: Final = frozenset(("INSERT", "UPDATE"))  # what may be done with a key that is not there
_OF_MODULES: Final = (b"module|load", b"module|loadex", b"module|unload")
_OF_HTTP: Final = (b"post", b"host:")  # what the first or second line of a request begins with
_HTTP_WARNED_EVERY_MS: Final = 60_000


class Held:
    """The request was not run and is to be offered again; see ``HELD``."""


HELD: Final = Held()


def find_row(met: dict[bytes, Command], argv: list[bytes]) -> Command:
    """Return the row of a request, subcommand and arity checked; raises CommandError.

    ``met`` takes the row of the first word, as long as it has room.
    """
    row = rows.TABLE.get(argv[0].lower())
    if row is None:
        raise CommandError(errors.unknown_command(argv))
    if len(met) < MOST_NAMES:
        met[argv[0]] = row
    return _fitting(row, argv)


def find_recorded_row(names: dict[bytes, Command], argv: list[bytes]) -> Command:
    """Return the row of a command in a file, as ``find_row``; ``names`` takes it, too.

    Redis records a renamed command under its new name, which counts if no command owns it.
    """
    name = argv[0].lower()
    row = rows.ORIGINALS.get(name) or rows.TABLE.get(name)
    if row is None:
        raise CommandError(errors.unknown_command(argv))
    names[argv[0]] = row
    return _fitting(row, argv)


def runs_again(row: Command) -> bool:
    """Return whether a command that stands in a file, or comes from a master, is run.

    All are run that may change data, scripts or functions, or publish. What acts on the server or
    on a connection is not: a file does not shut down its server.
    """
    return bool(row.flags & _CHANGES) or row.name in _RUN_AGAIN


def changes_nothing(row: Command) -> bool:
    """Return whether nothing is lost where a command is not run."""
    return bool(row.flags & rows.READONLY) or row.name in _NO_CHANGES


def _fitting(row: Command, argv: list[bytes]) -> Command:
    """Return ``row``, or that of the subcommand, once the number of words is right."""
    if row.subcommands and len(argv) > 1:
        child = row.subcommands.get(argv[1].lower())
        if child is None:
            raise CommandError(errors.unknown_subcommand(argv[0].lower(), argv[1]))
        if len(row.spelled) < MOST_NAMES:
            row.spelled[argv[1]] = child
        row = child
    if row.run is None or not row.arity_fits(len(argv)):
        row.rejected_calls += 1
        raise CommandError(errors.wrong_arity(row.name))
    return row


def is_of_http(name: bytes) -> bool:
    """Return whether an unknown name shows that a browser speaks here, and not a client.

    Any page that a browser shows can have it send a request to a server on this machine, and what
    the page put behind the header would be run as commands.
    """
    return name.partition(b"\0")[0].lower() in _OF_HTTP


def cut_off(server: Server, session: Session) -> None:
    """Close a connection that speaks HTTP, unanswered, and warn of it now and then."""
    now_ms = server.clock.now_ns // 1_000_000
    if not 0 <= now_ms - server.clients.http_warned_ms < _HTTP_WARNED_EVERY_MS:
        server.clients.http_warned_ms = now_ms
        log.warning(
            "possible attack: a client sends HTTP (POST or Host:), as a web page can have a "
            "browser do to run commands here. Connection from %s closed.",
            session.address.decode("utf-8", "backslashreplace"),
        )
    session.out.clear()
    session.peer.abort()


def drop_replica(session: Session, name: bytes) -> None:
    """Close a replica that sends a request, because a reply would stand amid the stream."""
    log.warning(
        "Replica client id=%d sends %r, which has a reply, and is disconnected", session.id, name
    )
    session.peer.abort()


def admit(
    dispatcher: Dispatcher, session: Session, row: Command, argv: list[bytes]
) -> object | None:
    """Return why a request may not run: a reply or ``HELD``; None lets it run."""
    server = dispatcher.server
    special = session.special
    if special & CLOSING:
        return NO_REPLY
    if special & REPLICA and row.name != b"replconf":
        drop_replica(session, row.name)
        return NO_REPLY
    if special & OF_REGION and not is_of_regions(row):
        return refuse(server, session, row, argv, errors.AA_NOT_AT_THIS_PORT)
    if special & NEEDS_AUTH and not row.flags & rows.NO_AUTH:
        return refuse(server, session, row, argv, errors.NO_AUTH)
    if special & IN_MULTI and row.flags & rows.NO_MULTI:
        return refuse(server, session, row, argv, errors.NOT_IN_MULTI)
    if special & LIMITED:
        line = refused_line(server, session, row, argv)
        if line:
            return refuse(server, session, row, argv, line)
    flags = row.flags
    if server.gate.reasons:
        flags = flags_of_request(server, session, row, argv)
        if server.gate.reasons & (gate.MEMORY_LIMITED | gate.CLIENTS_LIMITED):
            argv_bytes = size_of(argv) if server.gate.reasons & gate.CLIENTS_LIMITED else 0
            server.clients.weigh(session, argv_bytes)
            server.ready_evicting().make_room(session, argv_bytes)
            if session.special & CLOSING:
                return NO_REPLY
        line = b""
        if server.gate.reasons & gate.SCRIPT_AT_WORK and not row.flags & rows.ALLOW_BUSY:
            line = server.gate.busy
        elif server.gate.reasons & gate.STRICT_SLOTS and crosses_slots(session, row, argv):
            line = errors.CROSS_SLOT
        line = line or _refusal_of(dispatcher, row, flags)
        if line:
            return refuse(server, session, row, argv, line)
    if special & SUBSCRIBED and not session.resp3 and row.name not in _FOR_SUBSCRIBERS:
        return refuse(server, session, row, argv, errors.NOT_IN_SUBSCRIBER % row.name)
    if special & MONITORING and row.flags & (rows.READONLY | rows.WRITE):
        return refuse(server, session, row, argv, MONITOR_TOUCHES_KEYS)
    if server.gate.reasons & (gate.LINK_DOWN | gate.LOADING_DATA | gate.HALF_JOINED):
        line = _without_data(server, row, flags)
        if line:
            return refuse(server, session, row, argv, line)
    reasons = server.gate.reasons
    if reasons & _HOLD_ALL or (reasons & gate.PAUSED_WRITES and flags & _CHANGES):
        session.special |= PAUSED
        return HELD
    queued = bool(special & IN_MULTI) and is_queued(row)
    if not queued and _gives_way(dispatcher, session, row, argv):
        return HELD
    verdict = _met_fault(server, session, row, argv) if reasons & gate.FAULTY else None
    return _queued(server, session, row, argv) if queued and verdict is None else verdict


def _queued(server: Server, session: Session, row: Command, argv: list[bytes]) -> object:
    """Queue a request, unless this client may not; return the reply."""
    line = _forbidden(server, session, row, argv)
    if line:
        return refuse(server, session, row, argv, line)
    _queue(server, session, row, argv)
    _bound_queue(server, session)
    return QUEUED


def _met_fault(server: Server, session: Session, row: Command, argv: list[bytes]) -> object | None:
    """Return ``HELD`` or a reply where a fault keeps a request from being run; None: it runs."""
    keys = [argv[at] for at in key_positions(row, argv)]
    fault = server.faults.meet(session, row.name, keys)
    if fault is None:
        return None
    if fault.action == ERROR:
        return refuse(server, session, row, argv, fault.line)
    if fault.action == DELAY:
        until_ms = server.clock.monotonic_ms() + fault.delay_ms
        server.faults.delay(session, until_ms)
        server.host.wake_at(until_ms)
        return HELD
    return NO_REPLY


def _gives_way(dispatcher: Dispatcher, session: Session, row: Command, argv: list[bytes]) -> bool:
    """Return whether a request waits for one that is run in slices, or for new connections.

    These have sessions in the next turn. A script that keeps the event loop serves only those.
    """
    may_be_long = row.flags & rows.SCRIPT_RUNNER or row.name == b"exec"
    if may_be_long and dispatcher.server.gate.reasons & gate.NEWCOMERS:
        return True
    slicing = dispatcher.slicing
    return slicing is not None and slicing.holds_back(session, row, argv)


def flags_of_request(server: Server, session: Session, row: Command, argv: list[bytes]) -> int:
    """Return the flags that decide on a request: its script's, or those of all that EXEC would run.

    A script declares its flags in its first line (``getCommandFlags``).
    """
    if row.flags & rows.SCRIPT_RUNNER:
        return server.ready_scripting().flags_of(row.flags, row.name, argv)
    transaction = session.transaction
    if transaction is not None and row.name == b"exec":
        return row.flags & transaction.flags_of_all | transaction.flags_of_any & _OF_ANY
    return row.flags


def is_stale(server: Server) -> bool:
    """Return whether the data of a replica is old, and may not be read."""
    return bool(server.gate.reasons & gate.LINK_DOWN) and not server.config.replica_serve_stale_data


def _without_data(server: Server, row: Command, flags: int) -> bytes:
    """Return why a command is refused while the data is missing or old; empty if it is not."""
    if not flags & rows.STALE and is_stale(server):
        return errors.MASTER_DOWN
    if server.gate.reasons & gate.LOADING_DATA and not flags & rows.LOADING:
        return errors.LOADING
    if server.gate.reasons & gate.HALF_JOINED and (row.flags & _SEES_DATA or row.name == b"exec"):
        return errors.AA_HALF_JOINED
    return b""


def refuse(
    server: Server, session: Session, row: Command | None, argv: list[bytes], line: bytes
) -> ErrorReply:
    """Return the reply to a request that is not run; it fails a transaction, or ends it at EXEC."""
    if row is not None:
        row.rejected_calls += 1
    session.special &= ~MET
    session.commands -= 1  # it is counted with its batch
    transaction = session.transaction
    if transaction is not None:
        transaction.failed = True
    named = rows.TABLE.get(argv[0].lower())
    if named is not None and named.name == b"exec":
        session.drop_transaction()
        server.watches.unwatch(session)
        if line != errors.CROSS_SLOT:
            line = errors.exec_refused(line)
        if server.clients.monitors:  # they were shown MULTI
            server.clients.feed_monitors(session, argv, server.clock.now_ns)
    server.statistics.counters.count_error(line)
    return ErrorReply(line)


def _refusal_of(dispatcher: Dispatcher, row: Command, flags: int) -> bytes:
    """Return the reply that refuses a command now; empty if it may run."""
    server = dispatcher.server
    if flags & rows.DENYOOM and is_out_of_memory(server):
        return errors.OUT_OF_MEMORY
    if not flags & rows.WRITE:
        return unsaved_line(dispatcher) if row.name == b"ping" else b""
    line = unsaved_line(dispatcher)
    if line:
        return line
    region = server.data.region
    if server.gate.reasons & gate.REGION_REFUSES and region is not None:
        # AA FORGET ends the waiting for others.
        return b"" if row.flags & rows.ADMIN else region.refusal
    if lacks_replicas(server):
        return errors.NO_REPLICAS
    return errors.READ_ONLY_REPLICA if is_read_only(server) else b""


def is_out_of_memory(server: Server) -> bool:
    """Return whether no room was to be made before the current command."""
    return bool(server.gate.reasons & gate.MEMORY_LIMITED) and server.ready_evicting().short


def is_read_only(server: Server) -> bool:
    """Return whether this is a replica that its clients may not write to."""
    is_replica = server.gate.reasons & _OF_REPLICA == gate.FOLLOWS  # and is to stay one
    return is_replica and (server.config.replica_read_only or server.data.region is not None)


def lacks_replicas(server: Server) -> bool:
    """Return whether there are fewer replicas than writes need."""
    return bool(server.gate.reasons & gate.NO_REPLICAS)


def unsaved_line(
    dispatcher: Dispatcher,
    snapshot: bytes = errors.MISCONF_SNAPSHOT,
    aof: bytes = errors.MISCONF_AOF,
) -> bytes:
    """Return why writes that could not be saved are refused; empty if they could."""
    if dispatcher.server.gate.reasons & gate.SAVE_FAILED:
        return snapshot
    if dispatcher.server.gate.reasons & gate.WRITES_REFUSED:
        return aof % dispatcher.durability.files.write_error
    return b""


def _forbidden(server: Server, session: Session, row: Command, argv: list[bytes]) -> bytes:
    """Return why this client may not queue a command, which would itself say it when run."""
    if row.makes_others and server.data.region is not None:
        writes = [use for use in key_uses(row, argv) if not _MAKING.isdisjoint(use.flags)]
        refused = writes and server.config.aa_other_keys != b"local"
        return errors.OTHER_KEYS_REFUSED if refused else b""
    if not row.flags & rows.ADMIN:
        return b""
    if row.name == b"debug" and not allowed_by(server.config.enable_debug_command, session):
        return errors.DEBUG_NOT_ALLOWED
    return errors.NO_MODULE_COMMAND if row.name in _OF_MODULES else b""


def is_of_regions(row: Command) -> bool:
    """Return whether a command is taken at the port for other regions.

    Operators' commands are not, because ``requirepass`` does not hold there.
    """
    return row.name in _FOR_REGIONS


def is_queued(row: Command) -> bool:
    """Return whether a request is queued inside MULTI, and not run at once."""
    return row.name not in _UNQUEUED and not row.flags & rows.NO_MULTI


def is_queued_unseen(server: Server, row: Command) -> bool:
    """Return whether every client's request is queued now, so that ``admit`` need not look."""
    if server.gate.reasons or (row.makes_others and server.data.region is not None):
        return False
    return is_queued(row) and not row.flags & rows.ADMIN


def queue_same(
    server: Server, session: Session, row: Command, requests: list[list[bytes]], at: int, end: int
) -> int:
    """Queue a request and those alike after it, up to ``end``; return the first one not queued."""
    argv = requests[at]
    following = at
    end = min(end, at + MOST_ALIKE)  # what is queued and what is answered is to be bounded
    while following < end:
        words = requests[following]
        if len(words) != len(argv) or words[0] != argv[0]:
            break
        _queue(server, session, row, words)
        following += 1
    _bound_queue(server, session)
    wire = repeated(QUEUED, following - at).wire
    session.out.append(wire)
    session.answered_bytes += len(wire)
    return following


def _queue(server: Server, session: Session, row: Command, argv: list[bytes]) -> None:
    transaction = session.transaction
    assert transaction is not None
    if transaction.failed or session.watch_broken:
        session.commands -= 1
        return  # it will not be run: keeping it would only cost memory
    transaction.rows.append(row)
    transaction.requests.append(argv)
    flags = row.flags
    if flags & rows.SCRIPT_RUNNER:
        flags = flags_of_request(server, session, row, argv)
    transaction.flags_of_all &= flags
    transaction.flags_of_any |= flags
    transaction.size_bytes += size_of(argv)
    transaction.word_count += len(argv)


def _bound_queue(server: Server, session: Session) -> None:
    """Drop a client whose queue outgrows what it may have sent without being served."""
    transaction = session.transaction
    limit_bytes = server.config.client_query_buffer_limit
    if transaction is not None and transaction.size_bytes > limit_bytes:
        server.statistics.counters.query_buffer_disconnections += 1
        log.warning("client id=%d closed: query buffer limit reached", session.id)
        session.peer.abort()
