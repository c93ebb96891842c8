"""DEBUG CLEAN, CLOCK and FAULT: what kits for tests ask of a server.

CLEAN brings it back to its start, between two tests. All that a client can see of earlier tests
goes: keys, functions, scripts, users, parameters that CONFIG SET has changed, counters and logs,
faults, a moved clock. The other clients are disconnected, because what they wait for, watch or
follow belongs to tests that are over.

CLOCK freezes and moves the time by which a server lives. When a move returns, all that became due
has happened, in the order of time: expiries are published, blocked clients are answered, idle
consumers are reclaimed, and that stands in the append-only file.

FAULT has requests of clients delayed or refused, and replies lost. ``close-after`` runs the
request, and the connection ends without its reply: a producer cannot know whether its entry was
added. ``silence`` runs it, too, and the connection stays and answers nothing any more: that is a
client's time-out.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from random import Random
from typing import Final

from headrace.compat import errors
from headrace.compat.errors import CommandError
from headrace.compat.numbers import parse_integer
from headrace.protocol.replies import OK, Map
from headrace.server.acl.rules import UsersError
from headrace.server.clients.session import IN_MULTI, NO_EVICT, NO_TOUCH, REPLICA, Session
from headrace.server.clock import MS, VirtualClock, is_moved
from headrace.server.dispatch.args import bounded, integer
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.dispatcher import unpause
from headrace.server.dispatch.invoke import invoke, stop_measuring
from headrace.server.dispatch.rows import ORIGINALS, TABLE
from headrace.server.faults import ANY, CLOSE_AFTER, CLOSE_BEFORE, DELAY, ERROR, SILENCE, Fault
from headrace.server.gate import FAULTY, FOLLOWS, LOADING_DATA
from headrace.server.loading.starting import load_users
from headrace.server.state import Server
from headrace.storage.list.piece import PLAIN_THRESHOLD

log: Final = logging.getLogger("headrace")

CLOCKS: Final = "FREEZE [ms] | SHIFT ms | MOVE-TO ms | RESUME | RESET | GET"
LATEST_MS: Final = 1 << 47  # some 4,400 years: streams, deadlines and clients all know that far
_WIDTHS: Final = {
    b"freeze": (3, 4),
    b"shift": (4,),
    b"move-to": (4,),
    b"resume": (3,),
    b"reset": (3,),
    b"get": (3,),
}

FAULTS: Final = (
    "ADD COMMAND name [KEY pattern] [CLIENT name-pattern] [PERCENT p] [TIMES n] [SEED s] ACTION "
    "delay ms | error text | close-before | close-after | silence; or LIST, or CLEAR [id]"
)
LONGEST_DELAY_MS: Final = 1 << 40
_WORDS_OF: Final = {DELAY: 2, ERROR: 2, CLOSE_BEFORE: 1, CLOSE_AFTER: 1, SILENCE: 1}

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
    if server.data.region is not None or server.gate.reasons & (FOLLOWS | LOADING_DATA):
        raise CommandError(errors.NOT_CLEANED)
    mine = (session, call.db, call.row, call.argv)  # others use the call meanwhile
    server.faults.by_id.clear()
    server.gate.set(FAULTY, False)
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
    if call.server.policies is not None:
        call.server.policies.forget()
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


def clock_tool(call: Call) -> object:
    """Freeze, move, resume or show the clock. Reply: the time in ms; of GET, a map."""
    server = call.server
    clock = server.clock
    argv = call.argv
    word = argv[2].lower()
    widths = _WIDTHS.get(word)
    if widths is None or len(argv) not in widths:
        raise CommandError(errors.BAD_CLOCK % CLOCKS.encode())
    if not isinstance(clock, VirtualClock):
        raise CommandError(errors.CLOCK_NOT_MOVABLE)
    if word == b"get":
        return _shown(clock)
    _refuse(call)
    was_moved = is_moved(clock)
    mine = (call.session, call.db, call.row, call.argv)  # others use the call meanwhile
    if word == b"resume":
        clock.run()
    elif word == b"reset":
        clock.reset()
    elif len(argv) == 3:
        clock.freeze()
    else:
        to_ns = _target_ns(clock, word, argv[3])
        if word == b"freeze":
            clock.freeze()
        call.session.active_ms = to_ns // MS  # it is not idle
        server.host.move_clock(to_ns)
    server.host.clock_changed()
    call.session, call.db, call.row, call.argv = mine
    level = logging.DEBUG if was_moved and is_moved(clock) else logging.WARNING
    shown = clock.state().decode(), clock.ahead_ms_of_system() / 1000
    log.log(level, "DEBUG CLOCK: the time is %s, %+.3f seconds ahead", *shown)
    return server.clock.refresh()


def _shown(clock: VirtualClock) -> Map:
    ahead_ms = clock.ahead_ms_of_system()
    return Map([(b"ms", clock.refresh()), (b"state", clock.state()), (b"ahead_ms", ahead_ms)])


def _refuse(call: Call) -> None:
    """Raise CommandError where others live by this clock, or nothing may happen meanwhile."""
    server = call.server
    replicas = server.role.replicas
    if server.data.region is not None or server.gate.reasons & FOLLOWS:
        raise CommandError(errors.CLOCK_IS_SHARED)
    if replicas is not None and replicas.count():
        raise CommandError(errors.CLOCK_IS_SHARED)
    if call.session.special & IN_MULTI or server.gate.reasons & LOADING_DATA:
        raise CommandError(errors.CLOCK_MUST_WAIT)


def _target_ns(clock: VirtualClock, word: bytes, text: bytes) -> int:
    """Return the time of day that a request names; never before the present."""
    ms = integer(text)
    clock.refresh()
    if word == b"shift":
        if ms < 0:
            raise CommandError(errors.CLOCK_NOT_BACK)
        to_ns = clock.now_ns + ms * MS
    else:
        to_ns = ms * MS
        if to_ns < clock.now_ns:
            if ms != clock.now_ns // MS:
                raise CommandError(errors.CLOCK_NOT_BACK)
            to_ns = clock.now_ns
    if to_ns > LATEST_MS * MS:
        raise CommandError(errors.CLOCK_TOO_FAR)
    return to_ns


def fault_tool(call: Call) -> object:
    """Add, list or clear faults. Reply: the ID of the fault; a list of maps; how many have gone."""
    word = call.argv[2].lower()
    if word == b"add" and len(call.argv) > 3:
        return _add(call)
    if word == b"list" and len(call.argv) == 3:
        return _list(call)
    if word == b"clear" and len(call.argv) in (3, 4):
        return _clear(call)
    raise CommandError(errors.BAD_FAULT % FAULTS.encode())


def _add(call: Call) -> int:
    words = call.argv[3:]
    options: dict[bytes, bytes] = {}
    while len(words) >= 2 and words[0].lower() != b"action":
        name = words[0].lower()
        if name != b"command" and name not in _OPTIONS:
            raise _wrong(b"'%b' is none of COMMAND, KEY, CLIENT, PERCENT, TIMES, SEED" % words[0])
        if name in options:
            raise _wrong(b"%b stands twice" % name.upper())
        options[name] = words[1]
        words = words[2:]
    if b"command" not in options:
        raise _wrong(b"COMMAND is missing, * is any")
    action = words[1].lower() if len(words) > 1 else b""
    if len(words) - 1 != _WORDS_OF.get(action):
        raise _wrong(b"ACTION is delay ms, error text, close-before, close-after or silence")
    fault = Fault(_command(options[b"command"]), action)
    _sow(fault, int.from_bytes(os.urandom(4), "big"))
    for name, option in _OPTIONS.items():
        if name in options:
            option(fault, options[name])
    if action == DELAY:
        fault.delay_ms = _number(words[2], 0, LONGEST_DELAY_MS, b"the delay")
    elif action == ERROR:
        fault.line = _line(words[2])
    faults = call.server.faults
    call.server.gate.set(FAULTY, True)
    return faults.add(fault)


def _command(name: bytes) -> bytes:
    """Return the name of a command as its row has it; ``config|get`` is a subcommand."""
    name = name.lower()
    container, _, subcommand = name.partition(b"|")
    row = TABLE.get(container)
    if name == ANY or (row is not None and (not subcommand or subcommand in row.subcommands)):
        return name
    raise _wrong(b"there is no command '%b'" % name)


def _line(text: bytes) -> bytes:
    if not text or b"\r" in text or b"\n" in text:
        raise _wrong(b"an error is one line, such as 'LOADING Redis is loading'")
    return text.removeprefix(b"-")


def _number(text: bytes, least: int, most: int, what: bytes) -> int:
    reason = b"%b is a number from %d to %d" % (what, least, most)
    return bounded(text, least, most, errors.BAD_FAULT_PART % reason)


def _set_percent(fault: Fault, text: bytes) -> None:
    try:
        percent = float(text)
    except ValueError:
        percent = -1.0
    if not 0 <= percent <= 100:
        raise _wrong(b"PERCENT is a number from 0 to 100")
    fault.percent = percent


def _set_key(fault: Fault, text: bytes) -> None:
    fault.key = text


def _set_client(fault: Fault, text: bytes) -> None:
    fault.client = text


def _set_times(fault: Fault, text: bytes) -> None:
    fault.times = _number(text, 1, 1 << 40, b"TIMES")


def _sow(fault: Fault, seed: int) -> None:
    fault.seed = seed
    fault.chance = Random(seed).random


def _set_seed(fault: Fault, text: bytes) -> None:
    _sow(fault, _number(text, 0, (1 << 63) - 1, b"SEED"))


_OPTIONS: Final[dict[bytes, Callable[[Fault, bytes], None]]] = {
    b"key": _set_key,
    b"client": _set_client,
    b"percent": _set_percent,
    b"times": _set_times,
    b"seed": _set_seed,
}


def _wrong(text: bytes) -> CommandError:
    return CommandError(errors.BAD_FAULT_PART % text)


def _list(call: Call) -> list[object]:
    return [
        Map(
            [
                (b"id", number),
                (b"command", fault.command),
                (b"key", fault.key),
                (b"client", fault.client),
                (b"percent", b"%g" % fault.percent),
                (b"times", fault.times),
                (b"seed", fault.seed),
                (b"action", _action(fault)),
                (b"fired", fault.fired),
            ]
        )
        for number, fault in call.server.faults.by_id.items()
    ]


def _action(fault: Fault) -> bytes:
    if fault.action == DELAY:
        return b"delay %d" % fault.delay_ms
    return b"error " + fault.line if fault.action == ERROR else fault.action


def _clear(call: Call) -> int:
    by_id = call.server.faults.by_id
    gone = len(by_id)
    if len(call.argv) == 4:
        number = parse_integer(call.argv[3])
        if number is None or by_id.pop(number, None) is None:
            raise CommandError(errors.NO_SUCH_FAULT)
        gone = 1
    else:
        by_id.clear()
    call.server.gate.set(FAULTY, bool(by_id))
    return gone
