"""PING, ECHO, QUIT, RESET, AUTH, HELLO, SELECT: the connection itself."""

from __future__ import annotations

from typing import Final

from headrace.compat.errors import (
    AUTH_WITHOUT_PASSWORD,
    BAD_CLIENT_NAME,
    BAD_PROTOCOL_VERSION,
    DB_OUT_OF_RANGE,
    HELLO_NEEDS_AUTH,
    NO_SUCH_PROTOCOL,
    SELECT_IN_CLUSTER,
    SYNTAX,
    WRONG_PASSWORD,
    CommandError,
    bad_hello_option,
    c_text,
    wrong_arity,
)
from headrace.compat.numbers import parse_integer
from headrace.protocol.replies import OK, PONG, Map, Status
from headrace.server.acl.users import DEFAULT_USER
from headrace.server.build import REDIS_VERSION
from headrace.server.clients.clients import log_in, welcome
from headrace.server.clients.session import (
    CLOSING,
    IN_MULTI,
    MONITORING,
    NO_EVICT,
    NO_TOUCH,
    REPLY_OFF,
    REPLY_SKIP,
    REPLY_SKIP_NEXT,
    SUBSCRIBED,
    Session,
)
from headrace.server.dispatch.args import Args
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.permission import note_failed_login, redacted
from headrace.server.gate import MONITORED
from headrace.server.state import Server

_RESET: Final = Status(b"RESET")
_FORGOTTEN_BY_RESET: Final = (
    IN_MULTI
    | SUBSCRIBED
    | MONITORING
    | REPLY_OFF
    | REPLY_SKIP
    | REPLY_SKIP_NEXT
    | NO_TOUCH
    | NO_EVICT
)


def ping(call: Call) -> object:
    """Reply: PONG, or the message; an array for a RESP2 subscriber."""
    argv = call.argv
    if len(argv) > 2:
        raise CommandError(wrong_arity(b"ping"))
    session = call.session
    if session.special & SUBSCRIBED and not session.resp3:
        return [b"pong", argv[1] if len(argv) > 1 else b""]
    return argv[1] if len(argv) > 1 else PONG


def echo(call: Call) -> object:
    """Reply: the message."""
    return call.argv[1]


def quit_(call: Call) -> object:
    """Close the connection once the reply is out. Reply: OK."""
    call.session.special |= CLOSING
    return OK


def reset(call: Call) -> object:
    """Make the connection as it was when it was opened, its library's name left alone.

    Reply: RESET. Source: networking.c, clearClientConnectionState.
    """
    server = call.server
    session = call.session
    stop_monitoring(server, session)
    server.watches.unwatch(session)
    server.tracking.turn_off(session)
    server.clients.pubsub.drop_session(session)
    session.drop_transaction()
    session.special &= ~_FORGOTTEN_BY_RESET
    session.fieldsets.clear()
    session.db = server.data.dbs[0]
    session.resp3 = False
    session.name = b""
    welcome(session, server.users)
    return _RESET


def auth(call: Call) -> object:
    """Reply: OK. Raises: a wrong pair; a password alone where none is configured."""
    argv = call.argv
    call.argv = redacted(call.name(), argv)
    if len(argv) > 3:
        raise CommandError(SYNTAX)
    if len(argv) == 2 and call.server.users.default.no_password:
        raise CommandError(AUTH_WITHOUT_PASSWORD)
    authenticate(call, argv[1] if len(argv) == 3 else DEFAULT_USER, argv[-1])
    return OK


def hello(call: Call) -> object:
    """Reply: map that describes the server, already in the protocol that was asked for."""
    argv = call.argv
    call.argv = redacted(call.name(), argv)
    version = 0
    if len(argv) > 1:
        asked = parse_integer(argv[1])
        if asked is None:
            raise CommandError(BAD_PROTOCOL_VERSION)
        if not 2 <= asked <= 3:
            raise CommandError(NO_SUCH_PROTOCOL)
        version = asked
    credentials, name = _hello_options(argv)
    session = call.session
    if credentials is not None:
        authenticate(call, credentials[0], credentials[1])
    if not session.authenticated:
        raise CommandError(HELLO_NEEDS_AUTH)
    if name is not None:
        session.name = name
    if version:
        session.resp3 = version == 3
    return Map(
        [
            (b"server", b"redis"),
            (b"version", REDIS_VERSION.encode()),
            (b"proto", 3 if session.resp3 else 2),
            (b"id", session.id),
            (b"mode", call.server.mode()),
            (b"role", b"master"),
            (b"modules", []),
        ]
    )


def _hello_options(argv: list[bytes]) -> tuple[tuple[bytes, bytes] | None, bytes | None]:
    """The (user, password) and the name that HELLO was given."""
    credentials: tuple[bytes, bytes] | None = None
    name: bytes | None = None
    at = 2
    while at < len(argv):
        word = argv[at].lower()
        if word == b"auth" and at + 2 < len(argv):
            credentials = (argv[at + 1], argv[at + 2])
            at += 3
        elif word == b"setname" and at + 1 < len(argv):
            name = argv[at + 1]
            if not is_plain(name):
                raise CommandError(BAD_CLIENT_NAME)
            at += 2
        else:
            raise CommandError(bad_hello_option(argv[at]))
    return credentials, name


def select(call: Call) -> object:
    """Reply: OK."""
    index = Args(call.argv).int32()
    if index and call.server.cluster is not None:
        raise CommandError(SELECT_IN_CLUSTER)
    if not 0 <= index < len(call.server.data.dbs):
        raise CommandError(DB_OUT_OF_RANGE)
    call.session.db = call.server.data.dbs[index]
    call.db = call.session.db
    return OK


def authenticate(call: Call, name: bytes, password: bytes) -> None:
    """Log the session in.

    Raises: CommandError for a pair that does not fit.
    """
    server = call.server
    found = server.users.authenticated(name, password)
    if found is None:
        note_failed_login(server, call.session, call.argv, name)
        raise CommandError(WRONG_PASSWORD)
    log_in(call.session, found, server.users)


def stop_monitoring(server: Server, session: Session) -> None:
    """Show a session no more commands of others."""
    if session.special & MONITORING:
        session.special &= ~MONITORING
        del server.clients.monitors[session]
        server.gate.set(MONITORED, bool(server.clients.monitors))


def is_plain(word: bytes) -> bool:
    """Whether what C sees of a word is visible ASCII without spaces: CLIENT LIST shows that."""
    return all(0x21 <= char <= 0x7E for char in c_text(word))
