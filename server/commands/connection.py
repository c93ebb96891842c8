"""Connections: PING, AUTH, HELLO, SELECT and RESET for the client's own, CLIENT for all."""

from __future__ import annotations

from typing import Final

from headrace.compat import errors
from headrace.compat.errors import CommandError
from headrace.protocol.replies import NO_REPLY, OK, PONG, ErrorReply, Map, Set, Status, Verbatim
from headrace.server.acl.users import DEFAULT_USER, Users
from headrace.server.build import REDIS_VERSION
from headrace.server.clients.client_line import (
    CLIENT_TYPES,
    client_line,
    client_type,
    redirect_of,
    tracking_of,
)
from headrace.server.clients.clients import log_in, welcome
from headrace.server.clients.session import (
    CACHING,
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
    Tracking,
)
from headrace.server.dispatch.args import Args, deadline_of, integer
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.dispatcher import pause, unpause
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
        raise CommandError(errors.wrong_arity(b"ping"))
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
    """Reset the connection except its library's name. Reply: RESET. Source: networking.c."""
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
        raise CommandError(errors.SYNTAX)
    if len(argv) == 2 and call.server.users.default.no_password:
        raise CommandError(errors.AUTH_WITHOUT_PASSWORD)
    authenticate(call, argv[1] if len(argv) == 3 else DEFAULT_USER, argv[-1])
    return OK


def hello(call: Call) -> object:
    """Reply: map that describes the server, already in the protocol that was asked for."""
    argv = call.argv
    call.argv = redacted(call.name(), argv)
    version = 0
    if len(argv) > 1:
        version = integer(argv[1], errors.BAD_PROTOCOL_VERSION)
        if not 2 <= version <= 3:
            raise CommandError(errors.NO_SUCH_PROTOCOL)
    credentials, name = _hello_options(argv)
    session = call.session
    if credentials is not None:
        authenticate(call, credentials[0], credentials[1])
    if not session.authenticated:
        raise CommandError(errors.HELLO_NEEDS_AUTH)
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
                raise CommandError(errors.BAD_CLIENT_NAME)
            at += 2
        else:
            raise CommandError(errors.bad_hello_option(argv[at]))
    return credentials, name


def select(call: Call) -> object:
    """Reply: OK."""
    index = Args(call.argv).int32()
    if index and call.server.cluster is not None:
        raise CommandError(errors.SELECT_IN_CLUSTER)
    if not 0 <= index < len(call.server.data.dbs):
        raise CommandError(errors.DB_OUT_OF_RANGE)
    call.session.db = call.server.data.dbs[index]
    call.db = call.session.db
    return OK


def authenticate(call: Call, name: bytes, password: bytes) -> None:
    """Log the session in; raises CommandError for a pair that does not fit."""
    server = call.server
    found = server.users.authenticated(name, password)
    if found is None:
        note_failed_login(server, call.session, call.argv, name)
        raise CommandError(errors.WRONG_PASSWORD)
    log_in(call.session, found, server.users)


def stop_monitoring(server: Server, session: Session) -> None:
    """Stop showing a session the commands of others."""
    if session.special & MONITORING:
        session.special &= ~MONITORING
        del server.clients.monitors[session]
        server.gate.set(MONITORED, bool(server.clients.monitors))


def is_plain(word: bytes) -> bool:
    """Return whether a word, up to a NUL, is visible ASCII without spaces, as CLIENT LIST needs."""
    return all(0x21 <= char <= 0x7E for char in errors.c_text(word))


class ClientFilter:
    """The filters of clients to close; None or 0 is no filter."""

    def __init__(self) -> None:
        self.address: bytes | None = None
        self.local_address: bytes | None = None
        self.kind: bytes | None = None
        self.user: bytes | None = None
        self.id = 0
        self.age_s = 0
        self.skip_me = True

    def fits(self, session: Session, now_ms: int) -> bool:
        """Return whether the filters fit ``session``, ``skip_me`` left out."""
        return (
            (self.address is None or session.address == self.address)
            and (self.local_address is None or session.local_address == self.local_address)
            and (self.kind is None or client_type(session) == self.kind)
            and (self.user is None or session.user.name == self.user)
            and (not self.id or session.id == self.id)
            and (not self.age_s or (now_ms - session.created_ms) // 1000 >= self.age_s)
        )


def client_kill(call: Call) -> object:
    """Close a client by its address, or all that fit the filters; SKIPME is yes by default.

    Reply: OK for an address alone, else how many were closed. A client that closes itself gets the
        reply first.
    Raises: an address alone that no client has; filters that are wrong.
    """
    argv = call.argv
    if len(argv) == 3:
        wanted = ClientFilter()
        wanted.address = argv[2]
        wanted.skip_me = False
        if not _kill(call, wanted):
            raise CommandError(errors.NO_SUCH_CLIENT)
        return OK
    return _kill(call, _parse_filters(argv, call.server.users))


def _kill(call: Call, wanted: ClientFilter) -> int:
    server = call.server
    count = 0
    for session in server.clients.everybody():
        if not wanted.fits(session, call.now_ms):
            continue
        if session is call.session:
            if wanted.skip_me:
                continue
            session.special |= CLOSING
        else:
            session.peer.abort()
            server.session_closed(session)
        count += 1
    return count


def _parse_filters(argv: list[bytes], users: Users) -> ClientFilter:
    wanted = ClientFilter()
    if len(argv) % 2:
        _parse_pairs(argv[:-1], wanted, users)
        raise CommandError(errors.SYNTAX)
    _parse_pairs(argv, wanted, users)
    return wanted


def _parse_pairs(argv: list[bytes], wanted: ClientFilter, users: Users) -> None:
    for at in range(2, len(argv), 2):
        name = argv[at].lower()
        value = argv[at + 1]
        if name == b"id":
            wanted.id = _positive(
                value, errors.CLIENT_ID_NOT_POSITIVE, errors.CLIENT_ID_NOT_POSITIVE
            )
        elif name == b"maxage":
            wanted.age_s = _positive(value, errors.BAD_MAXAGE, errors.MAXAGE_NOT_POSITIVE)
        elif name == b"type":
            wanted.kind = CLIENT_TYPES.get(value.lower())
            if wanted.kind is None:
                raise CommandError(errors.unknown_client_type(value))
        elif name == b"addr":
            wanted.address = value
        elif name == b"laddr":
            wanted.local_address = value
        elif name == b"user":
            if users.find(value) is None:
                raise CommandError(errors.no_such_user(value))
            wanted.user = value
        elif name == b"skipme" and value.lower() in (b"yes", b"no"):
            wanted.skip_me = value.lower() == b"yes"
        else:
            raise CommandError(errors.SYNTAX)


def _positive(word: bytes, not_a_number: bytes, not_positive: bytes) -> int:
    value = integer(word, not_a_number)
    if value <= 0:
        raise CommandError(not_positive)
    return value


def client_id(call: Call) -> object:
    """Reply: the number of this connection."""
    return call.session.id


def client_info(call: Call) -> object:
    """Reply: text, this client's line."""
    return Verbatim(_line(call, call.session))


def client_list(call: Call) -> object:
    """Reply: text, a line for each client, oldest first. Raises: a wrong type, ID or word."""
    argv = call.argv
    everybody = call.server.clients.everybody()
    option = argv[2].lower() if len(argv) > 2 else b""
    if option == b"type" and len(argv) == 4:
        wanted = CLIENT_TYPES.get(argv[3].lower())
        if wanted is None:
            raise CommandError(errors.unknown_client_type(argv[3]))
        chosen = [each for each in everybody if client_type(each) == wanted]
    elif option == b"id" and len(argv) > 3:
        chosen = _by_ids({each.id: each for each in everybody}, argv[3:])
    elif len(argv) != 2:
        raise CommandError(errors.SYNTAX)
    else:
        chosen = everybody
    return Verbatim(b"".join([_line(call, each) for each in chosen]))


def _by_ids(everybody: dict[int, Session], words: list[bytes]) -> list[Session]:
    found: list[Session] = []
    for word in words:
        session = everybody.get(integer(word, errors.BAD_CLIENT_ID))
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
        raise CommandError(errors.BAD_CLIENT_NAME)
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
        raise CommandError(errors.unknown_client_attribute(call.argv[2]))
    if not is_plain(value):
        raise CommandError(errors.bad_client_attribute(call.argv[2]))
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
        raise CommandError(errors.SYNTAX)


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
        raise CommandError(errors.SYNTAX)
    return NO_REPLY


def client_pause(call: Call) -> object:
    """Hold requests back for so many ms; a pause that lasts longer keeps its end. Reply: OK."""
    argv = call.argv
    if len(argv) > 4:
        raise CommandError(errors.bad_subcommand(b"client", argv[1]))
    mode = argv[3].lower() if len(argv) == 4 else b"all"
    if mode not in (b"write", b"all"):
        raise CommandError(errors.BAD_PAUSE_MODE)
    end_ms = deadline_of(argv[2], call.now_ms)
    pause(call.server, end_ms - call.now_ms if end_ms else 0, mode == b"write")
    return OK


def client_unpause(call: Call) -> object:
    """Let the requests run that CLIENT PAUSE holds back. Reply: OK."""
    unpause(call.server)
    return OK


def client_unblock(call: Call) -> object:
    """End the wait of a blocked client. Reply: 1, or 0 when no such client waits."""
    argv = call.argv
    if len(argv) > 4:
        raise CommandError(errors.bad_subcommand(b"client", argv[1]))
    reason = argv[3].lower() if len(argv) == 4 else b"timeout"
    if reason not in (b"timeout", b"error"):
        raise CommandError(errors.BAD_UNBLOCK_REASON)
    session = call.server.clients.sessions.get(Args(argv, 2).integer())
    if session is None or session.waiter is None:
        return 0
    if reason == b"error":
        call.server.end_wait(session, ErrorReply(errors.UNBLOCKED))
    else:
        call.server.end_wait(session, session.waiter.parked.timeout_reply)
    return 1


def client_tracking(call: Call) -> object:
    """Notify this client when what it has read changes, or stop that. Reply: OK.

    Raises: options that exclude each other, or what holds already.
    Source: networking.c, clientCommand; tracking.c.
    """
    session = call.session
    asked, prefixes = _parse_options(call)
    word = call.argv[2].lower()
    if word == b"on":
        _check(session, asked, prefixes)
        for prefix in prefixes or ([b""] if asked.broadcast else []):
            asked.prefixes[prefix] = None
        call.server.tracking.turn_on(session, asked)
    elif word == b"off":
        call.server.tracking.turn_off(session)
    else:
        raise CommandError(errors.SYNTAX)
    return OK


def _parse_options(call: Call) -> tuple[Tracking, list[bytes]]:
    args = Args(call.argv, 3)
    asked = Tracking(call.session.id)
    prefixes: list[bytes] = []
    while args.left:
        if args.left > 1 and args.flag(b"REDIRECT"):
            if asked.redirect:
                raise CommandError(errors.TWO_REDIRECTS)
            asked.redirect = args.integer()
            if asked.redirect not in call.server.clients.sessions:
                raise CommandError(errors.NO_REDIRECT_CLIENT)
        elif args.left > 1 and args.flag(b"PREFIX"):
            prefixes.append(args.word())
        elif args.flag(b"BCAST"):
            asked.broadcast = True
        elif args.flag(b"OPTIN"):
            asked.opt_in = True
        elif args.flag(b"OPTOUT"):
            asked.opt_out = True
        elif args.flag(b"NOLOOP"):
            asked.no_loop = True
        else:
            raise CommandError(errors.SYNTAX)
    return asked, prefixes


def _check(session: Session, asked: Tracking, prefixes: list[bytes]) -> None:
    if prefixes and not asked.broadcast:
        raise CommandError(errors.PREFIX_WITHOUT_BCAST)
    present = tracking_of(session)
    if present is not None and present.broadcast != asked.broadcast:
        raise CommandError(errors.SWITCHING_BCAST)
    if asked.broadcast and (asked.opt_in or asked.opt_out):
        raise CommandError(errors.OPT_WITH_BCAST)
    if asked.opt_in and asked.opt_out:
        raise CommandError(errors.OPTIN_AND_OPTOUT)
    if present is not None and (
        (asked.opt_in and present.opt_out) or (asked.opt_out and present.opt_in)
    ):
        raise CommandError(errors.SWITCHING_OPT)
    there = [] if present is None else sorted(present.prefixes)
    for number, prefix in enumerate(prefixes):
        for other in there:
            if _overlap(prefix, other):
                raise CommandError(errors.overlapping_prefixes(prefix, other, True))
        for other in prefixes[number + 1 :]:
            if _overlap(prefix, other):
                raise CommandError(errors.overlapping_prefixes(prefix, other, False))


def _overlap(one: bytes, other: bytes) -> bool:
    return one.startswith(other) or other.startswith(one)


def client_caching(call: Call) -> object:
    """Set whether what the next request or transaction reads is tracked. Reply: OK."""
    session = call.session
    tracking = tracking_of(session)
    if tracking is None:
        raise CommandError(errors.CACHING_WITHOUT_TRACKING)
    word = call.argv[2].lower()
    if word not in (b"yes", b"no"):
        raise CommandError(errors.SYNTAX)
    if word == b"yes" and not tracking.opt_in:
        raise CommandError(errors.CACHING_WITHOUT_OPTIN)
    if word == b"no" and not tracking.opt_out:
        raise CommandError(errors.CACHING_WITHOUT_OPTOUT)
    session.special |= CACHING
    return OK


def client_getredir(call: Call) -> object:
    """Reply: the ID of the client that gets the messages, 0 for this one, -1 without tracking."""
    return redirect_of(call.session)


def client_trackinginfo(call: Call) -> object:
    """Reply: map of flags, the client that gets the messages, and prefixes."""
    session = call.session
    tracking = tracking_of(session)
    flags: list[object] = [b"off" if tracking is None else b"on"]
    prefixes: list[bytes] = []
    if tracking is not None:
        prefixes = sorted(tracking.prefixes)
        if tracking.broadcast:
            flags.append(b"bcast")
        if tracking.opt_in:
            flags.append(b"optin")
        if tracking.opt_out:
            flags.append(b"optout")
        if session.special & CACHING and (tracking.opt_in or tracking.opt_out):
            flags.append(b"caching-yes" if tracking.opt_in else b"caching-no")
        if tracking.no_loop:
            flags.append(b"noloop")
        if tracking.broken:
            flags.append(b"broken_redirect")
    return Map(
        [(b"flags", Set(flags)), (b"redirect", redirect_of(session)), (b"prefixes", prefixes)]
    )
