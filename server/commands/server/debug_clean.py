"""DEBUG CLEAN: brings the server back to its start, between two tests.

All that a client can see of earlier tests goes: keys, functions, scripts, users, parameters that
CONFIG SET has changed, counters and logs, faults, a moved clock. The other clients are
disconnected, because what they wait for, watch or follow belongs to tests that are over.
"""

from __future__ import annotations

from typing import Final

from headrace.compat import errors
from headrace.compat.errors import CommandError
from headrace.protocol.replies import OK
from headrace.server import gate
from headrace.server.acl.rules import UsersError
from headrace.server.clients.session import IN_MULTI, NO_EVICT, NO_TOUCH, REPLICA, Session
from headrace.server.clock import VirtualClock
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.dispatcher import unpause
from headrace.server.dispatch.invoke import invoke, stop_measuring
from headrace.server.dispatch.rows import ORIGINALS
from headrace.server.loading.starting import load_users
from headrace.server.state import Server
from headrace.storage.list.piece import PLAIN_THRESHOLD

# What other commands clean, as they do when a client asks.
_ALWAYS: Final = (
    [b"FLUSHALL", b"ASYNC"],
    [b"ACL", b"LOG", b"RESET"],
    [b"SLOWLOG", b"RESET"],
    [b"LATENCY", b"RESET"],
    [b"CONFIG", b"RESETSTAT"],
)
_OF_SCRIPTS: Final = ([b"FUNCTION", b"FLUSH"], [b"SCRIPT", b"FLUSH"])


def clean_tool(call: Call) -> object:
    """Reply: OK. Raises: in a transaction, in a region, in a replica, or while data is loaded."""
    server = call.server
    session = call.session
    if session.special & IN_MULTI:
        raise CommandError(errors.NOT_IN_MULTI)
    if server.data.region is not None or server.gate.reasons & (gate.FOLLOWS | gate.LOADING_DATA):
        raise CommandError(errors.NOT_CLEANED)
    mine = (session, call.db, call.row, call.argv)  # others use the call meanwhile
    server.faults.by_id.clear()
    server.gate.set(gate.FAULTY, False)
    _disconnect_others(server, session)
    _forget(server, session)
    if isinstance(server.clock, VirtualClock):
        server.clock.reset()
        server.host.clock_changed()
        call.session, call.db, call.row, call.argv = mine
    server.data.active_expire = True
    server.data.shows_expired = False
    server.data.enable_expiry(True)
    server.cron_paused = False
    PLAIN_THRESHOLD.string_bytes = 0
    if server.statistics.hot_keys is not None:
        stop_measuring(server)
        server.statistics.hot_keys = None
    server.config.undo()
    _clean_data(call)
    _clean_users(server)
    server.unsaved.clear()
    return OK


def _disconnect_others(server: Server, own: Session) -> None:
    unpause(server)
    for session in list(server.clients.sessions.values()):
        if session is not own and not session.special & REPLICA:
            session.peer.abort()
            server.session_closed(session)


def _forget(server: Server, session: Session) -> None:
    """Forget what the caller has asked for, except its database, its protocol and its user."""
    server.watches.unwatch(session)
    server.tracking.turn_off(session)
    server.clients.pubsub.drop_session(session)
    session.special &= ~(NO_EVICT | NO_TOUCH)
    session.fieldsets.clear()
    session.name = b""


def _clean_data(call: Call) -> None:
    requests = [*_ALWAYS]
    scripting = call.server.scripting
    if scripting is not None:
        scripting.allows_all = False
        requests += _OF_SCRIPTS
    mine = (call.row, call.argv)
    for request in requests:
        call.argv = request
        row = ORIGINALS[request[0].lower()]
        invoke(call, row.subcommands.get(request[1].lower(), row), request)
    call.row, call.argv = mine


def _clean_users(server: Server) -> None:
    users = server.users
    users.replace({})
    users.set_password(server.config.requirepass)
    try:
        load_users(server)
    except UsersError as error:
        raise CommandError(errors.USERS_NOT_READ % str(error).encode()) from None
