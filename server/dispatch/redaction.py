"""Requests as MONITOR and SLOWLOG may show them: without passwords."""

from __future__ import annotations

from typing import Final

REDACTED: Final = b"(redacted)"
_LOGIN_OF_MIGRATE: Final = {b"AUTH": 1, b"AUTH2": 2}
_OPTIONS_OF_MIGRATE: Final = (b"COPY", b"REPLACE", b"AUTH", b"AUTH2")
_OF_USERS: Final = (b"acl|setuser", b"acl|deluser", b"acl|getuser")


def redacted(name: bytes, argv: list[bytes]) -> list[bytes]:
    """``argv`` with passwords and what users may do blotted out.

    Args:
        name: the command's own, which may not be the first word.
    """
    if name == b"auth":
        return [argv[0], *[REDACTED for _ in argv[1:]]]
    if name in _OF_USERS:
        return [*argv[:2], *[REDACTED for _ in argv[2:]]]
    if name == b"hello":
        return _redacted_hello(argv)
    if name == b"migrate":
        return _redacted_migrate(argv)
    return argv


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
