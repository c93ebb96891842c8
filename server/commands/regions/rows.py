"""The commands of regions, as they are known to every server.

What they do is in the wing of regions, which is not there without ``aa-region-id``: see
``answers``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from headrace.compat import errors
from headrace.compat.errors import CommandError
from headrace.server.clients.session import OF_REGION
from headrace.server.commands.help import show_help
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import (
    ADMIN,
    BLOCKING,
    LOADING,
    NO_AUTH,
    NO_MULTI,
    NOSCRIPT,
    ORIGINALS,
    READONLY,
    SKIP_MONITOR,
    SKIP_SLOWLOG,
    STALE,
    WRITE,
    Handler,
    KeySpec,
    command,
    container,
)

_ASKED: Final = NOSCRIPT | NO_MULTI | SKIP_MONITOR | SKIP_SLOWLOG  # by another region
_ACL: Final = ("admin", "dangerous")
_FLAGS: Final = ADMIN | NOSCRIPT | NO_MULTI
_KEY: Final = KeySpec("RO ACCESS", begin=2)
_MOVED: Final = KeySpec("RW UPDATE", begin=2)


def of_other_region(call: Call) -> None:
    """What another region asks is taken at ``aa-port`` alone.

    Raises:
        CommandError: this is a client.
    """
    if not call.session.special & OF_REGION:
        raise CommandError(errors.AA_OTHER_PORT)


def _asked(call: Call) -> object:
    of_other_region(call)
    return _operated(call)


def _operated(call: Call) -> object:
    raise CommandError(errors.AA_NO_REGION)


def answers(name: str) -> Callable[[Handler], Handler]:
    """Declare what the command ``AA name`` does where a server is a region."""

    def declare(run: Handler) -> Handler:
        ORIGINALS[b"aa"].subcommands[name.lower().encode()].run = run
        return run

    return declare


container("AA")
command("AA|AUTH", arity=-3, flags=_ASKED | NO_AUTH | LOADING | STALE)(_asked)
command("AA|HELLO", arity=-10, flags=_ASKED | LOADING | STALE, acl=_ACL)(_asked)
command("AA|PULL", arity=-3, flags=_ASKED | BLOCKING, acl=_ACL)(_asked)
command("AA|COPY", arity=-3, flags=_ASKED | BLOCKING, acl=_ACL)(_asked)
command("AA|PEERS", arity=2, flags=_FLAGS | LOADING | STALE)(_operated)
command("AA|PAUSE", arity=3, flags=_FLAGS)(_operated)
command("AA|RESUME", arity=3, flags=_FLAGS)(_operated)
command("AA|SYNC", arity=-2, flags=_FLAGS | BLOCKING)(_operated)
command("AA|TOKEN", arity=2, flags=NOSCRIPT)(_operated)
command("AA|WAIT", arity=4, flags=NOSCRIPT | NO_MULTI | BLOCKING)(_operated)
command("AA|MOVE", arity=-5, flags=_FLAGS | WRITE, keys=(_MOVED,))(_operated)
command("AA|COUNT", arity=3, flags=_FLAGS)(_operated)
command("AA|STREAM", arity=3, flags=_FLAGS | READONLY, keys=(_KEY,))(_operated)
command("AA|DIGEST", arity=-2, flags=_FLAGS | READONLY, keys=(_KEY,))(_operated)
command("AA|JOIN", arity=3, flags=_FLAGS | WRITE)(_operated)
command("AA|FORGET", arity=3, flags=_FLAGS | WRITE)(_operated)
command("AA|HELP", arity=2, flags=LOADING | STALE)(show_help)
