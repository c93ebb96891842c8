"""MODULE: there are no modules, and none can be loaded.

LOAD, LOADEX and UNLOAD are refused as a Redis refuses them whose ``enable-module-command`` is
``no``, its default. That parameter changes nothing here.
"""

from __future__ import annotations

from headrace.compat.errors import NO_MODULE_COMMAND, CommandError
from headrace.server.dispatch.call import Call


def module_list(call: Call) -> object:
    """Reply: an empty list."""
    return []


def refuse(call: Call) -> object:
    """Raises: the error of a Redis in which no command may load modules."""
    raise CommandError(NO_MODULE_COMMAND)
