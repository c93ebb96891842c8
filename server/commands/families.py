"""Gives each row of the command table its function: importing this module does it."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from headrace.server.commands.documentation import show_help
from headrace.server.dispatch.rows import MODULES, Command, Handler, TableError, every_row


def bind() -> None:
    """Find the function of each row that has none yet, where the row says that it is.

    Raises:
        TableError: a command has no function.
    """
    for name in MODULES:
        import_module(name)
    for row in every_row():
        if row.run is None:
            row.run = _function_of(row)
            if row.run is None and not row.subcommands:
                raise TableError(f"{row.name.decode()} has no function in {row.place}")


def _function_of(row: Command) -> Handler | None:
    place, _, name = row.place.partition(":")
    module = import_module(place)
    if name:
        return _named(module, name)
    name = row.name.decode().replace("|", "_").replace("-", "_").replace(".", "_")
    found = _named(module, name + "_") or _named(module, name)
    return show_help if found is None and row.name.endswith(b"|help") else found


def _named(module: ModuleType, name: str) -> Handler | None:
    found: Handler | None = getattr(module, name, None)
    return found


bind()
