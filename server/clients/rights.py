"""Who a client is, and what becomes of clients when the rights of their users change."""

from __future__ import annotations

from headrace.server.acl.selector import ChannelPattern, fits_any
from headrace.server.acl.user import User
from headrace.server.acl.users import Users
from headrace.server.clients.clients import Clients
from headrace.server.clients.session import CLOSING, LIMITED, NEEDS_AUTH, OF_REGION, Session


def welcome(session: Session, users: Users) -> None:
    """Have a client that is new, or as good as new, be the default user."""
    session.user = users.default
    session.authenticated = not users.login_needed()
    settle(session, users)


def log_in(session: Session, user: User, users: Users) -> None:
    """Have a client that has the password be a user from now on."""
    session.user = user
    session.authenticated = True
    settle(session, users)


def settle(session: Session, users: Users) -> None:
    """Have requests looked at, or not, as a client's user wants it now."""
    session.special &= ~(NEEDS_AUTH | LIMITED)
    if users.login_needed() and not session.authenticated:
        session.special |= NEEDS_AUTH
    if session.user.limited:
        session.special |= LIMITED


def settle_all(clients: Clients, users: Users) -> None:
    """As ``settle``, for every client, after users have changed."""
    for session in clients.sessions.values():
        if not session.special & OF_REGION:  # those have a secret of their own
            settle(session, users)


def put_out(session: Session, caller: Session, users: Users) -> bool:
    """Take a client its user, and have it closed; False where the caller has to do that.

    Whoever puts out itself gets the reply first.
    """
    session.user = users.default
    session.authenticated = False
    if session is caller:
        session.special |= CLOSING
        return True
    return False


def loses_channels(session: Session, channels: list[ChannelPattern]) -> bool:
    """Whether a client listens to anything that does not fit these."""
    return (
        any(not fits_any(channels, pattern, True) for pattern in session.patterns)
        or any(not fits_any(channels, channel, False) for channel in session.channels)
        or any(not fits_any(channels, channel, False) for channel in session.shard_channels)
    )


def channels_left(new: User, old: User) -> list[ChannelPattern] | None:
    """The channels of a user as it will be; None if those that it has are among them."""
    if any(each.all_channels for each in new.selectors):
        return None
    left = [pattern for each in new.selectors for pattern in each.channels]
    texts = {pattern.text for pattern in left}
    if any(each.all_channels for each in old.selectors):
        return left
    if any(pattern.text not in texts for each in old.selectors for pattern in each.channels):
        return left
    return None
