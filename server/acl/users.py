"""All users of a server."""

from __future__ import annotations

from _operator import _compare_digest  # hmac's own, without the OpenSSL that hmac loads
from typing import Final

from headrace.server.acl.rules import hashed
from headrace.server.acl.user import UNLIMITED, User

DEFAULT_USER: Final = b"default"


class Users:
    """Who there is.

    Args:
        password: of the user ``default``; empty where it needs none.

    Attributes:
        default: who every client is that has not logged in.
    """

    def __init__(self, password: bytes) -> None:
        self.default: Final = UNLIMITED.copy()
        self._by_name: dict[bytes, User] = {DEFAULT_USER: self.default}
        if password:
            self.set_password(password)

    def find(self, name: bytes) -> User | None:
        """The user of a name."""
        return self._by_name.get(name)

    def add(self, user: User) -> None:
        """Have one more."""
        self._by_name[user.name] = user

    def remove(self, name: bytes) -> User | None:
        """Forget a user, who is returned."""
        return self._by_name.pop(name, None)

    def replace(self, others: dict[bytes, User]) -> None:
        """Have these instead, of whom ``default`` may be one; else that has all rights again."""
        given = others.get(DEFAULT_USER)
        self.default.become(UNLIMITED if given is None else given)
        self._by_name = {**others, DEFAULT_USER: self.default}

    def all(self) -> list[User]:
        """Everybody, in the order of their names."""
        return [self._by_name[name] for name in sorted(self._by_name)]

    def login_needed(self) -> bool:
        """Whether a client has to log in before it may do anything."""
        return not (self.default.enabled and self.default.no_password)

    def set_password(self, password: bytes) -> None:
        """Let this be the one password of the default user; empty is none."""
        self.default.no_password = not password
        self.default.passwords = [hashed(password)] if password else []

    def authenticated(self, name: bytes, password: bytes) -> User | None:
        """The user of this name, if it may log in with this password."""
        user = self._by_name.get(name)
        if user is None or not user.enabled:
            return None
        if user.no_password:
            return user
        found = hashed(password)
        fits = False
        for known in user.passwords:
            fits |= _compare_digest(found, known)
        return user if fits else None
