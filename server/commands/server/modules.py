"""MODULE: there are no modules, and none can be loaded.

LOAD, LOADEX and UNLOAD are refused as a Redis refuses them whose ``enable-module-command`` is
``no``, its default. That parameter changes nothing here.
"""

from __future__ import annotations

from typing import Final

from headrace.compat.errors import NO_MODULE_COMMAND, CommandError
from headrace.server.commands.help import show_help
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import (
    ADMIN,
    LOADING,
    NO_ASYNC_LOADING,
    NOSCRIPT,
    STALE,
    command,
    container,
)

_CHANGES: Final = ADMIN | NOSCRIPT | NO_ASYNC_LOADING

container("MODULE")


@command("MODULE|LIST", arity=2, flags=ADMIN | NOSCRIPT, tips=("nondeterministic_output_order",))
def module_list(call: Call) -> object:
    """Reply: an empty list."""
    return []


def _refuse(call: Call) -> object:
    """Raises: the error of a Redis in which no command may load modules."""
    raise CommandError(NO_MODULE_COMMAND)


command("MODULE|LOAD", arity=-3, flags=_CHANGES)(_refuse)
command("MODULE|LOADEX", arity=-3, flags=_CHANGES)(_refuse)
command("MODULE|UNLOAD", arity=3, flags=_CHANGES)(_refuse)
command("MODULE|HELP", arity=2, flags=LOADING | STALE)(show_help)
