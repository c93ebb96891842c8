"""Gives each row of the command table its function: importing this module does it."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Final

from headrace.server.commands.documentation import show_help
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import MODULES, Command, Handler, TableError, every_row

# Modules that are imported when one of their commands is called, because few servers need them.
LATE: Final = (
    "headrace.server.commands.server.cluster",
    "headrace.server.commands.server.hotkeys",
    "headrace.policies.commands",
    "headrace.testkit.debug",
)


class Late:
    """Runs a command of such a module for the first time."""

    def __init__(self, row: Command) -> None:
        self._row: Final = row

    def run(self, call: Call) -> object:
        """Import the module, and run its function."""
        run = function_of(self._row)
        assert run is not None
        self._row.run = run
        return run(call)


def bind() -> None:
    """Set the function of each row that has none yet; raises TableError for a missing one."""
    for name in MODULES:
        if name not in LATE:
            import_module(name)
    for row in every_row():
        if row.run is None and row.place.partition(":")[0] in LATE:
            row.run = None if row.subcommands else Late(row).run
        elif row.run is None:
            row.run = function_of(row)
            if row.run is None and not row.subcommands:
                raise TableError(f"{row.name.decode()} has no function in {row.place}")


def function_of(row: Command) -> Handler | None:
    """Return the function that a row names, if there is one; its module is imported."""
    place, _, name = row.place.partition(":")
    module = sys.modules.get(place) or import_module(place)
    found: dict[str, Handler] = vars(module)
    if name:
        return found.get(name)
    name = row.name.decode().replace("|", "_").replace("-", "_").replace(".", "_")
    function = found.get(name + "_") or found.get(name)
    return show_help if function is None and row.name.endswith(b"|help") else function


bind()
