"""CLIENT KILL: close connections that fit an address or a set of filters."""

from __future__ import annotations

from headrace.compat.errors import (
    BAD_MAXAGE,
    CLIENT_ID_NOT_POSITIVE,
    MAXAGE_NOT_POSITIVE,
    NO_SUCH_CLIENT,
    SYNTAX,
    CommandError,
    no_such_user,
    unknown_client_type,
)
from headrace.compat.numbers import parse_integer
from headrace.protocol.replies import OK
from headrace.server.acl.users import Users
from headrace.server.clients.client_line import CLIENT_TYPES, client_type
from headrace.server.clients.session import CLOSING, Session
from headrace.server.dispatch.call import Call


class ClientFilter:
    """Which clients to close; what is None or 0 does not matter."""

    def __init__(self) -> None:
        self.address: bytes | None = None
        self.local_address: bytes | None = None
        self.kind: bytes | None = None
        self.user: bytes | None = None
        self.id = 0
        self.age_s = 0
        self.skip_me = True

    def fits(self, session: Session, now_ms: int) -> bool:
        """Whether ``session`` is meant, ``skip_me`` left out."""
        return (
            (self.address is None or session.address == self.address)
            and (self.local_address is None or session.local_address == self.local_address)
            and (self.kind is None or client_type(session) == self.kind)
            and (self.user is None or session.user.name == self.user)
            and (not self.id or session.id == self.id)
            and (not self.age_s or (now_ms - session.created_ms) // 1000 >= self.age_s)
        )


def client_kill(call: Call) -> object:
    """Close a client by its address, or all that fit the filters.

    SKIPME is yes by default.

    Reply: OK for an address alone, else how many were closed. Whoever closes itself gets the reply
        first.
    Raises: an address alone that no client has; filters that are wrong.
    """
    argv = call.argv
    if len(argv) == 3:
        wanted = ClientFilter()
        wanted.address = argv[2]
        wanted.skip_me = False
        if not _kill(call, wanted):
            raise CommandError(NO_SUCH_CLIENT)
        return OK
    return _kill(call, _parse(argv, call.server.users))


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


def _parse(argv: list[bytes], users: Users) -> ClientFilter:
    wanted = ClientFilter()
    if len(argv) % 2:
        _parse_pairs(argv[:-1], wanted, users)
        raise CommandError(SYNTAX)
    _parse_pairs(argv, wanted, users)
    return wanted


def _parse_pairs(argv: list[bytes], wanted: ClientFilter, users: Users) -> None:
    for at in range(2, len(argv), 2):
        name = argv[at].lower()
        value = argv[at + 1]
        if name == b"id":
            wanted.id = _positive(value, CLIENT_ID_NOT_POSITIVE, CLIENT_ID_NOT_POSITIVE)
        elif name == b"maxage":
            wanted.age_s = _positive(value, BAD_MAXAGE, MAXAGE_NOT_POSITIVE)
        elif name == b"type":
            wanted.kind = CLIENT_TYPES.get(value.lower())
            if wanted.kind is None:
                raise CommandError(unknown_client_type(value))
        elif name == b"addr":
            wanted.address = value
        elif name == b"laddr":
            wanted.local_address = value
        elif name == b"user":
            if users.find(value) is None:
                raise CommandError(no_such_user(value))
            wanted.user = value
        elif name == b"skipme" and value.lower() in (b"yes", b"no"):
            wanted.skip_me = value.lower() == b"yes"
        else:
            raise CommandError(SYNTAX)


def _positive(word: bytes, not_a_number: bytes, not_positive: bytes) -> int:
    value = parse_integer(word)
    if value is None:
        raise CommandError(not_a_number)
    if value <= 0:
        raise CommandError(not_positive)
    return value
