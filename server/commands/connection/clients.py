"""CLIENT: one's own connection, and those of others."""

from __future__ import annotations

from headrace.compat.errors import (
    BAD_CLIENT_ID,
    BAD_CLIENT_NAME,
    BAD_PAUSE_MODE,
    BAD_UNBLOCK_REASON,
    SYNTAX,
    UNBLOCKED,
    CommandError,
    bad_client_attribute,
    bad_subcommand,
    unknown_client_attribute,
    unknown_client_type,
)
from headrace.compat.numbers import parse_integer
from headrace.protocol.replies import NO_REPLY, OK, ErrorReply, Verbatim
from headrace.server.clients.client_line import CLIENT_TYPES, client_line, client_type
from headrace.server.clients.session import (
    NO_EVICT,
    NO_TOUCH,
    REPLY_OFF,
    REPLY_SKIP,
    REPLY_SKIP_NEXT,
    Session,
)
from headrace.server.commands.connection.connection import is_plain
from headrace.server.commands.help import show_help
from headrace.server.dispatch.args import Args
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.pausing import pause, unpause
from headrace.server.dispatch.timeouts import deadline_of


def client_id(call: Call) -> object:
    """Reply: the number of this connection."""
    return call.session.id


def client_info(call: Call) -> object:
    """Reply: text, this client's line."""
    return Verbatim(_line(call, call.session))


def client_list(call: Call) -> object:
    """Reply: text, a line for each client, oldest first.

    Raises: a type that there is not, an ID that is no integer, any other word.
    """
    argv = call.argv
    everybody = call.server.clients.everybody()
    option = argv[2].lower() if len(argv) > 2 else b""
    if option == b"type" and len(argv) == 4:
        wanted = CLIENT_TYPES.get(argv[3].lower())
        if wanted is None:
            raise CommandError(unknown_client_type(argv[3]))
        chosen = [each for each in everybody if client_type(each) == wanted]
    elif option == b"id" and len(argv) > 3:
        chosen = _by_ids({each.id: each for each in everybody}, argv[3:])
    elif len(argv) != 2:
        raise CommandError(SYNTAX)
    else:
        chosen = everybody
    return Verbatim(b"".join([_line(call, each) for each in chosen]))


def _by_ids(everybody: dict[int, Session], words: list[bytes]) -> list[Session]:
    found: list[Session] = []
    for word in words:
        number = parse_integer(word)
        if number is None:
            raise CommandError(BAD_CLIENT_ID)
        session = everybody.get(number)
        if session is not None:
            found.append(session)
    return found


def _line(call: Call, session: Session) -> bytes:
    argv = call.argv if session is call.session else None
    return client_line(session, call.now_ms, argv) + b"\n"


def client_setname(call: Call) -> object:
    """Name the connection; an empty name takes it away. Reply: OK."""
    name = call.argv[2]
    if not is_plain(name):
        raise CommandError(BAD_CLIENT_NAME)
    call.session.name = name
    return OK


def client_getname(call: Call) -> object:
    """Reply: the name, or null."""
    return call.session.name or None


def client_setinfo(call: Call) -> object:
    """Reply: OK."""
    attribute = call.argv[2].lower()
    value = call.argv[3]
    if attribute not in (b"lib-name", b"lib-ver"):
        raise CommandError(unknown_client_attribute(call.argv[2]))
    if not is_plain(value):
        raise CommandError(bad_client_attribute(call.argv[2]))
    if attribute == b"lib-name":
        call.session.lib_name = value
    else:
        call.session.lib_version = value
    return OK


def client_no_evict(call: Call) -> object:
    """Keep this client when clients take too much memory. Reply: OK."""
    _switch(call, NO_EVICT)
    return OK


def client_no_touch(call: Call) -> object:
    """Leave the access times of keys alone. Reply: OK."""
    _switch(call, NO_TOUCH)
    return OK


def _switch(call: Call, bit: int) -> None:
    word = call.argv[2].lower()
    if word == b"on":
        call.session.special |= bit
    elif word == b"off":
        call.session.special &= ~bit
    else:
        raise CommandError(SYNTAX)


def client_reply(call: Call) -> object:
    """Reply: OK to ON, nothing to the others."""
    word = call.argv[2].lower()
    session = call.session
    if word == b"on":
        session.special &= ~(REPLY_OFF | REPLY_SKIP | REPLY_SKIP_NEXT)
        return OK
    if word == b"off":
        session.special |= REPLY_OFF
    elif word == b"skip":
        if not session.special & REPLY_OFF:
            session.special |= REPLY_SKIP_NEXT
    else:
        raise CommandError(SYNTAX)
    return NO_REPLY


def client_pause(call: Call) -> object:
    """Hold requests back for so many milliseconds.

    A pause that lasts longer already keeps its end. Reply: OK.
    """
    argv = call.argv
    if len(argv) > 4:
        raise CommandError(bad_subcommand(b"client", argv[1]))
    mode = argv[3].lower() if len(argv) == 4 else b"all"
    if mode not in (b"write", b"all"):
        raise CommandError(BAD_PAUSE_MODE)
    end_ms = deadline_of(argv[2], call.now_ms)
    pause(call.server, end_ms - call.now_ms if end_ms else 0, mode == b"write")
    return OK


def client_unpause(call: Call) -> object:
    """Let the requests run that CLIENT PAUSE holds back. Reply: OK."""
    unpause(call.server)
    return OK


def client_unblock(call: Call) -> object:
    """End the wait of a blocked client.

    Reply: 1, or 0 when there is no such client or it does not wait.
    """
    argv = call.argv
    if len(argv) > 4:
        raise CommandError(bad_subcommand(b"client", argv[1]))
    reason = argv[3].lower() if len(argv) == 4 else b"timeout"
    if reason not in (b"timeout", b"error"):
        raise CommandError(BAD_UNBLOCK_REASON)
    session = call.server.clients.sessions.get(Args(argv, 2).integer())
    if session is None or session.waiter is None:
        return 0
    if reason == b"error":
        call.server.end_wait(session, ErrorReply(UNBLOCKED))
    else:
        call.server.end_wait(session, session.waiter.parked.timeout_reply)
    return 1


def client_help(call: Call) -> object:
    """Reply: list of lines."""
    return show_help(call)
