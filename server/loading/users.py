"""Users are read from the configuration or from their own file."""

from __future__ import annotations

import logging
from typing import Final

from headrace.server.acl.acl_file import UsersError, parse_users
from headrace.server.acl.rules import RuleError, change_user, has_spaces, merged
from headrace.server.acl.user import User
from headrace.server.acl.users import DEFAULT_USER, Users
from headrace.server.config.config import Config
from headrace.server.state import Server

log: Final = logging.getLogger("headrace")

_BOTH: Final = (
    "users are declared in the configuration, and aclfile names a file of users: use one of the two"
)


def load_users(server: Server) -> None:
    """Bring in the users, before the first client comes.

    Raises: UsersError.
    """
    config = server.config
    if config.aclfile:
        if config.users:
            raise UsersError(_BOTH)
        server.users.replace(users_of_file(config))
        return
    for words in config.users:
        _declare(server.users, words, gives_all_channels(config))


def gives_all_channels(config: Config) -> bool:
    """Whether a new user may use all channels."""
    return config.acl_pubsub_default == b"allchannels"


def users_of_file(config: Config) -> dict[bytes, User]:
    """The users in the file that ``aclfile`` names, by name.

    Raises: UsersError.
    """
    path = config.aclfile.decode("utf-8", "surrogateescape")
    try:
        with open(path, "rb") as file:
            text = file.read()
    except OSError as error:
        reason = f"Error loading ACLs, opening file '{path}': {error.strerror}"
        raise UsersError(reason) from None
    return parse_users(text, path, gives_all_channels(config))


def _declare(users: Users, words: list[bytes], all_channels: bool) -> None:
    """Add a user of the configuration, or let the default user be what is said of it."""
    name = words[0]
    shown = name.decode("utf-8", "backslashreplace")
    if has_spaces(name):
        raise UsersError("Spaces not allowed in ACL usernames")
    user = User(name, all_channels)
    for rule in merged(words[1:]):
        try:
            change_user(user, rule, all_channels)
        except RuleError as error:
            text = error.rule.decode("utf-8", "backslashreplace")
            reason = f"Error loading ACL rule '{text}' for the user named '{shown}': {error}"
            raise UsersError(reason) from None
    if not user.enabled:
        log.info("The user '%s' is disabled, because no rule says 'on'", shown)
    if name == DEFAULT_USER:
        users.default.become(user)
    else:
        users.add(user)


def user_lines(server: Server) -> list[bytes]:
    """The users that the configuration file has to have; none where they have a file of their own.

    The default user is left out as long as ``requirepass`` says all there is to it.
    """
    config = server.config
    if config.aclfile:
        return []
    usual = Users(config.requirepass).default.shown()
    lines = [user.shown() for user in server.users.all()]
    return [line for line in lines if line != usual]
