"""ACL SETUSER, DELUSER, GETUSER, LIST, USERS, LOAD, SAVE: who there is."""

from __future__ import annotations

import logging
import os
from typing import Final

from headrace.compat.acl_errors import (
    ACL_NOT_SAVED,
    BAD_USER_NAME,
    DEFAULT_USER_STAYS,
    NO_ACL_FILE,
    bad_rule,
    unmatched,
)
from headrace.compat.errors import CommandError
from headrace.protocol.replies import OK, Map, Set
from headrace.server.acl.acl_file import UsersError, rendered
from headrace.server.acl.rules import RuleError, UnmatchedError, change_user, has_spaces, merged
from headrace.server.acl.selector import Selector
from headrace.server.acl.user import User
from headrace.server.acl.users import DEFAULT_USER
from headrace.server.clients.rights import channels_left, loses_channels, put_out, settle_all
from headrace.server.clients.session import OF_REGION, Session
from headrace.server.config.rewrite import replace_file
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.redaction import redacted
from headrace.server.loading.users import gives_all_channels, users_of_file
from headrace.server.state import USERS

log: Final = logging.getLogger("headrace")


def acl_setuser(call: Call) -> object:
    """Make a user, or change one: all rules hold, or none. Reply: OK.

    Raises: a name with spaces, a rule that is wrong.
    """
    argv = call.argv
    call.argv = redacted(call.name(), argv)
    name = argv[2]
    if has_spaces(name):
        raise CommandError(BAD_USER_NAME)
    server = call.server
    known = server.users.find(name)
    all_channels = gives_all_channels(server.config)
    user = User(name, all_channels) if known is None else known.copy()
    try:
        for rule in merged(argv[3:]):
            change_user(user, rule, all_channels)
    except UnmatchedError as opened:
        raise CommandError(unmatched(opened.word)) from None
    except RuleError as error:
        raise CommandError(bad_rule(error.rule, error.reason)) from None
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
        raise CommandError(DEFAULT_USER_STAYS)
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
        *_described(user.selectors[0]),
        (b"selectors", [Map(_described(each)) for each in user.selectors[1:]]),
    ]
    return Map(pairs)


def _described(selector: Selector) -> list[tuple[object, object]]:
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
    """Have the users of the file, and no others. Reply: OK.

    Clients stay where their user does.

    Raises: there is no file, or anything in it is wrong; then nothing has changed.
    """
    server = call.server
    if not server.config.aclfile:
        raise CommandError(NO_ACL_FILE)
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
        raise CommandError(NO_ACL_FILE)
    try:
        replace_file(os.path.abspath(server.config.aclfile), rendered(server.users.all()))
    except OSError as error:
        log.warning("ACL SAVE failed: %s", error)
        raise CommandError(ACL_NOT_SAVED) from None
    server.unsaved.discard(USERS)
    return OK


def _sessions_of(call: Call, user: User) -> list[Session]:
    return [each for each in call.server.clients.sessions.values() if each.user is user]


def _put_out(call: Call, session: Session) -> None:
    server = call.server
    if not put_out(session, call.session, server.users):
        session.peer.abort()
        server.session_closed(session)
