"""ACL: users, their rights, and what was refused."""

from __future__ import annotations

import logging
import os
from typing import Final

from headrace.compat import server_errors
from headrace.compat.errors import CommandError, bad_subcommand, wrong_arity
from headrace.protocol.replies import OK, Map, Set
from headrace.server.acl.log import Entry
from headrace.server.acl.rules import (
    BOOK,
    CATEGORIES,
    RuleError,
    UnmatchedError,
    UsersError,
    change_user,
    has_spaces,
    merged,
    rendered,
)
from headrace.server.acl.users import DEFAULT_USER, Selector, User
from headrace.server.clients.clients import channels_left, loses_channels, put_out, settle_all
from headrace.server.clients.session import OF_REGION, Session
from headrace.server.config.files import replace_file
from headrace.server.dispatch.args import Args
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.permission import explained, redacted
from headrace.server.dispatch.rows import row_of
from headrace.server.loading.starting import gives_all_channels, users_of_file
from headrace.server.state import USERS

_MOST_BITS: Final = 4096
_USUAL_BITS: Final = 256


def acl_whoami(call: Call) -> object:
    """Reply: the name of this connection's user."""
    return call.session.user.name


def acl_cat(call: Call) -> object:
    """Reply: list of the categories, or of the commands in one."""
    argv = call.argv
    if len(argv) == 2:
        return list(CATEGORIES)
    if len(argv) > 3:
        raise CommandError(bad_subcommand(b"acl", argv[1]))
    category = argv[2].lower()
    if category not in CATEGORIES:
        raise CommandError(server_errors.unknown_category(argv[2]))
    return BOOK.of_category(category)


def acl_genpass(call: Call) -> object:
    """Reply: an unpredictable password, in hexadecimal digits."""
    from secrets import token_hex  # late: it loads OpenSSL

    argv = call.argv
    if len(argv) > 3:
        raise CommandError(bad_subcommand(b"acl", argv[1]))
    bits = Args(argv, 2).integer() if len(argv) == 3 else _USUAL_BITS
    if not 0 < bits <= _MOST_BITS:
        raise CommandError(server_errors.BAD_BITS)
    return token_hex((bits + 7) // 8)[: (bits + 3) // 4].encode()


def acl_dryrun(call: Call) -> object:
    """Check whether a user may run a request. Reply: OK, or what it may not do of it."""
    user = call.server.users.find(call.argv[2])
    if user is None:
        raise CommandError(server_errors.unknown_user(call.argv[2]))
    argv = call.argv[3:]
    row = row_of(argv)
    if row is None:
        raise CommandError(server_errors.command_not_found(argv[0]))
    if not row.arity_fits(len(argv)):
        raise CommandError(wrong_arity(row.name))
    return explained(user, row, argv) or OK


_USUAL_COUNT: Final = 10


def acl_log(call: Call) -> object:
    """Show or forget what was refused. Reply: list of maps, the last one first; OK to RESET."""
    argv = call.argv
    entries = call.server.denials.entries
    if len(argv) > 3:
        raise CommandError(bad_subcommand(b"acl", argv[1]))
    count = _USUAL_COUNT
    if len(argv) == 3:
        if argv[2].lower() == b"reset":
            entries.clear()
            return OK
        count = max(0, Args(argv, 2).integer())
    return [_described(entry, call.now_ms) for entry in entries[:count]]


def _described(entry: Entry, now_ms: int) -> Map:
    return Map(
        [
            (b"count", entry.count),
            (b"reason", entry.reason),
            (b"context", entry.context),
            (b"object", entry.what),
            (b"username", entry.user),
            (b"age-seconds", (now_ms - entry.updated_ms) / 1000),
            (b"client-info", entry.client),
            (b"entry-id", entry.number),
            (b"timestamp-created", entry.created_ms),
            (b"timestamp-last-updated", entry.updated_ms),
        ]
    )


log: Final = logging.getLogger("headrace")


def acl_setuser(call: Call) -> object:
    """Make or change a user by all rules or none. Reply: OK. Raises: a wrong name or rule."""
    argv = call.argv
    call.argv = redacted(call.name(), argv)
    name = argv[2]
    if has_spaces(name):
        raise CommandError(server_errors.BAD_USER_NAME)
    server = call.server
    known = server.users.find(name)
    all_channels = gives_all_channels(server.config)
    user = User(name, all_channels) if known is None else known.copy()
    try:
        for rule in merged(argv[3:]):
            change_user(user, rule, all_channels)
    except UnmatchedError as opened:
        raise CommandError(server_errors.unmatched(opened.word)) from None
    except RuleError as error:
        raise CommandError(server_errors.bad_rule(error.rule, error.reason)) from None
    server.unsaved.add(USERS)
    if known is None:
        server.users.add(user)
        return OK
    left = channels_left(user, known)
    if left is not None:
        for session in _sessions_of(call, known):
            if loses_channels(session, left):
                _put_out(call, session)
    known.become(user)
    settle_all(server.clients, server.users)
    return OK


def acl_deluser(call: Call) -> object:
    """Forget users, and close their connections. Reply: how many there were."""
    argv = call.argv
    call.argv = redacted(call.name(), argv)
    if DEFAULT_USER in argv[2:]:
        raise CommandError(server_errors.DEFAULT_USER_STAYS)
    count = 0
    for name in argv[2:]:
        user = call.server.users.remove(name)
        if user is None:
            continue
        for session in _sessions_of(call, user):
            _put_out(call, session)
        call.server.unsaved.add(USERS)
        count += 1
    return count


def acl_getuser(call: Call) -> object:
    """Reply: map of what a user is and may do; null where there is none."""
    argv = call.argv
    call.argv = redacted(call.name(), argv)
    user = call.server.users.find(argv[2])
    if user is None:
        return None
    pairs: list[tuple[object, object]] = [
        (b"flags", Set(list[object](user.flags()))),
        (b"passwords", list[object](user.passwords)),
        *_described_user(user.selectors[0]),
        (b"selectors", [Map(_described_user(each)) for each in user.selectors[1:]]),
    ]
    return Map(pairs)


def _described_user(selector: Selector) -> list[tuple[object, object]]:
    return [
        (b"commands", selector.shown_commands()),
        (b"keys", selector.shown_keys()),
        (b"channels", selector.shown_channels()),
    ]


def acl_list(call: Call) -> object:
    """Reply: list of lines, as they stand in files."""
    return [user.shown() for user in call.server.users.all()]


def acl_users(call: Call) -> object:
    """Reply: list of names."""
    return [user.name for user in call.server.users.all()]


def acl_load(call: Call) -> object:
    """Replace the users by those of the file. Reply: OK. Clients stay where their user does.

    Raises: there is no file, or anything in it is wrong; then nothing has changed.
    """
    server = call.server
    if not server.config.aclfile:
        raise CommandError(server_errors.NO_ACL_FILE)
    try:
        loaded = users_of_file(server.config)
    except UsersError as error:
        raise CommandError(b"ERR " + str(error).encode("utf-8", "surrogateescape")) from None
    users = server.users
    before = {user.name: user.copy() for user in users.all()}
    users.replace(loaded)
    server.unsaved.discard(USERS)
    for session in list(server.clients.sessions.values()):
        if session.special & OF_REGION:
            continue
        old = before.get(session.user.name)
        user = users.find(session.user.name)
        left = None if old is None or user is None else channels_left(user, old)
        if user is None or (left is not None and loses_channels(session, left)):
            _put_out(call, session)
        else:
            session.user = user
    settle_all(server.clients, users)
    return OK


def acl_save(call: Call) -> object:
    """Write the users into their file, whole or not at all. Reply: OK."""
    server = call.server
    if not server.config.aclfile:
        raise CommandError(server_errors.NO_ACL_FILE)
    try:
        replace_file(os.path.abspath(server.config.aclfile), rendered(server.users.all()))
    except OSError as error:
        log.warning("ACL SAVE failed: %s", error)
        raise CommandError(server_errors.ACL_NOT_SAVED) from None
    server.unsaved.discard(USERS)
    return OK


def _sessions_of(call: Call, user: User) -> list[Session]:
    return [each for each in call.server.clients.sessions.values() if each.user is user]


def _put_out(call: Call, session: Session) -> None:
    server = call.server
    if not put_out(session, call.session, server.users):
        session.peer.abort()
        server.session_closed(session)
