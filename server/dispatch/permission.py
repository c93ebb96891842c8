"""The rights of a user to run a request, and the parts of it that others may see.

One selector of the user has to allow all of it. Where none does, what is refused is what came
farthest: a channel, else a key, else the command.
"""

from __future__ import annotations

from typing import Final

from headrace.compat import server_errors
from headrace.server.acl.log import (
    AUTH,
    CERTIFICATE,
    CHANNEL,
    COMMAND,
    KEY,
    TOPLEVEL,
    TRANSACTION,
    Entry,
)
from headrace.server.acl.users import READS, WRITES, Selector, User
from headrace.server.clients.client_line import client_line
from headrace.server.clients.session import IN_MULTI, Session
from headrace.server.dispatch.key_specs import KeyUse, has_keys, key_uses
from headrace.server.dispatch.rows import NO_AUTH, Command
from headrace.server.state import Server

REDACTED: Final = b"(redacted)"
_LOGIN_OF_MIGRATE: Final = {b"AUTH": 1, b"AUTH2": 2}
_OPTIONS_OF_MIGRATE: Final = (b"COPY", b"REPLACE", b"AUTH", b"AUTH2")
_OF_USERS: Final = (b"acl|setuser", b"acl|deluser", b"acl|getuser")


def redacted(name: bytes, argv: list[bytes]) -> list[bytes]:
    """Return ``argv`` without passwords and rights of users; ``name`` is the command's own."""
    if name == b"auth":
        return [argv[0], *[REDACTED for _ in argv[1:]]]
    if name in _OF_USERS:
        return [*argv[:2], *[REDACTED for _ in argv[2:]]]
    if name == b"hello":
        return _redacted_hello(argv)
    return _redacted_migrate(argv) if name == b"migrate" else argv


def _redacted_migrate(argv: list[bytes]) -> list[bytes]:
    shown = list(argv)
    at = 6  # behind the timeout
    while at < len(argv):
        option = argv[at].upper()
        words = _LOGIN_OF_MIGRATE.get(option, 0)
        if option not in _OPTIONS_OF_MIGRATE or at + words >= len(argv):
            break
        for place in range(at + 1, at + 1 + words):
            shown[place] = REDACTED
        at += 1 + words
    return shown


def _redacted_hello(argv: list[bytes]) -> list[bytes]:
    shown = list(argv)
    at = 2
    while at < len(argv):
        word = argv[at].lower()
        if word == b"auth":
            for place in range(at + 1, min(at + 3, len(argv))):
                shown[place] = REDACTED
            at += 3
        elif word == b"setname":
            at += 2
        else:
            at += 1
    return shown


_COMMAND: Final = 1
_KEY: Final = 2
_CHANNEL: Final = 3
_REASONS: Final = (b"", COMMAND, KEY, CHANNEL)
_LOST: Final = (b"", server_errors.COMMAND_LOST, server_errors.KEY_LOST, server_errors.CHANNEL_LOST)
_WRITING: Final = ("INSERT", "DELETE", "UPDATE")
_PUBLISHING: Final = (b"publish", b"spublish")
_SUBSCRIBING: Final = (b"subscribe", b"ssubscribe")
_SUBSCRIBING_PATTERNS: Final = b"psubscribe"


class Denial:
    """The refused part of a request; ``position`` is that of the key or channel among its words."""

    def __init__(self, kind: int, position: int) -> None:
        self.kind: Final = kind
        self.position: Final = position


def denial_of(user: User, row: Command, argv: list[bytes]) -> Denial | None:
    """Return what a user may not do of a request; None if it may do it all."""
    if not user.limited:
        return None
    request = _Request(row, argv)
    kind = _COMMAND
    position = 0
    for selector in user.selectors:
        found = request.denied_by(selector)
        if found is None:
            return None
        if found.kind > kind or (found.kind == kind and found.position > position):
            kind = found.kind
            position = found.position
    return Denial(kind, position)


def may_read_all_keys(user: User, row: Command, argv: list[bytes]) -> bool:
    """Return whether a user may run a request that reads keys which do not stand in it."""
    if not user.limited:
        return True
    request = _Request(row, argv)
    for selector in user.selectors:
        if selector.allows_every_key(READS) and request.denied_by(selector) is None:
            return True
    return False


def refused_line(
    server: Server, session: Session, row: Command, argv: list[bytes], context: bytes = b""
) -> bytes:
    """Return the reply that refuses a request, counted and noted for ACL LOG; empty if allowed.

    ``context`` is where the request is made, as ACL LOG shows it; empty for the client itself.
    """
    user = session.user
    denial = denial_of(user, row, argv)
    if denial is None:
        return b""
    _note(server, session, row, argv, denial, context)
    if denial.kind == _KEY:
        return server_errors.NO_KEY_PERMISSION
    if denial.kind == _CHANNEL:
        return server_errors.NO_CHANNEL_PERMISSION
    return b"NOPERM " + server_errors.MAY_NOT_RUN % (user.name, row.name)


def lost_line(server: Server, session: Session, row: Command, argv: list[bytes]) -> bytes:
    """Return as ``refused_line``, for a request that was queued while the user might run it."""
    denial = denial_of(session.user, row, argv)
    if denial is None:
        return b""
    _note(server, session, row, argv, denial, TRANSACTION)
    return _LOST[denial.kind]


def explained(user: User, row: Command, argv: list[bytes]) -> bytes:
    """Return what a user may not do of a request, in full; empty if it may do it all."""
    denial = denial_of(user, row, argv)
    if denial is None:
        return b""
    if denial.kind == _KEY:
        return server_errors.MAY_NOT_USE_KEY % (user.name, argv[denial.position])
    if denial.kind == _CHANNEL:
        return server_errors.MAY_NOT_USE_CHANNEL % (user.name, argv[denial.position])
    return server_errors.MAY_NOT_RUN % (user.name, row.name)


def note_failed_login(server: Server, session: Session, argv: list[bytes], name: bytes) -> None:
    """Count a wrong password, and note it for ACL LOG."""
    server.statistics.counters.denied_authentications += 1
    _write(server, session, argv, AUTH, b"", argv[0], name)


def note_strange_certificate(server: Server, session: Session, name: bytes) -> None:
    """Count a certificate whose name is no user's that may log in, and note it for ACL LOG."""
    server.statistics.counters.denied_certificates += 1
    _write(server, session, [], CERTIFICATE, TOPLEVEL, b"", name)


def _note(
    server: Server,
    session: Session,
    row: Command,
    argv: list[bytes],
    denial: Denial,
    context: bytes,
) -> None:
    counters = server.statistics.counters
    what = argv[denial.position]
    if denial.kind == _KEY:
        counters.denied_keys += 1
    elif denial.kind == _CHANNEL:
        counters.denied_channels += 1
    else:
        counters.denied_commands += 1
        what = row.name
    _write(server, session, argv, _REASONS[denial.kind], context, what, session.user.name)


def _write(
    server: Server,
    session: Session,
    argv: list[bytes],
    reason: bytes,
    context: bytes,
    what: bytes,
    name: bytes,
) -> None:
    if not context:
        context = TRANSACTION if session.special & IN_MULTI else TOPLEVEL
    now_ms = server.clock.now_ns // 1_000_000
    line = client_line(session, now_ms, argv)
    entry = Entry(reason, context, what, name, line, now_ms)
    server.denials.add(entry, server.config.acllog_max_len)


class _Request:
    """A request whose keys are looked for once, however many selectors are asked."""

    def __init__(self, row: Command, argv: list[bytes]) -> None:
        self._row: Final = row
        self._argv: Final = argv
        self._uses: list[KeyUse] | None = None

    def denied_by(self, selector: Selector) -> Denial | None:
        row = self._row
        argv = self._argv
        if not row.flags & NO_AUTH and not selector.allows_command(row.name, argv):
            return Denial(_COMMAND, 0)
        if not selector.all_keys and has_keys(row):
            uses = self._uses
            if uses is None:
                uses = self._uses = key_uses(row, argv)
            for use in uses:
                if not selector.allows_key(argv[use.position], _rights(use.flags)):
                    return Denial(_KEY, use.position)
        return None if selector.all_channels else self._denied_channel(selector)

    def _denied_channel(self, selector: Selector) -> Denial | None:
        name = self._row.name
        argv = self._argv
        is_pattern = name == _SUBSCRIBING_PATTERNS
        end = len(argv)
        if name in _PUBLISHING:
            end = 2
        elif not (is_pattern or name in _SUBSCRIBING):
            return None
        for position in range(1, end):
            if not selector.allows_channel(argv[position], is_pattern):
                return Denial(_CHANNEL, position)
        return None


def _rights(flags: list[str]) -> int:
    rights = READS if "ACCESS" in flags else 0
    for flag in _WRITING:
        if flag in flags:
            return rights | WRITES
    return rights
