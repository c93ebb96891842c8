"""Where a client comes from, and what is allowed from there."""

from __future__ import annotations

from headrace.server.clients.session import Session


def allowed_by(setting: bytes, session: Session) -> bool:
    """Whether ``no``, ``yes`` or ``local`` (this machine only) lets a client do something."""
    if setting == b"local":
        return is_local(session)
    return setting == b"yes"


def is_local(session: Session) -> bool:
    """Whether a client is on this machine."""
    return session.unix_socket or session.address.startswith((b"127.", b"[::1]"))
