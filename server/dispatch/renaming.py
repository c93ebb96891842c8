"""``rename-command``: what clients call a command by.

Files know nothing of it. What is recorded has the command's own name, and so has what is loaded: a
file is read the same way under any configuration.
"""

from __future__ import annotations

import os

from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import TABLE, WRITE, Command, Handler


def rename_commands(renamed: list[tuple[bytes, bytes]]) -> str:
    """Give commands their other names, or take them away; what is wrong, or nothing.

    Args:
        renamed: (name, new name or empty), in order.
    """
    for old, new in renamed:
        row = TABLE.pop(old.lower(), None)
        if row is None:
            return f"No such command in rename-command: {os.fsdecode(old)}"
        if not new:
            continue
        if new.lower() in TABLE:
            return f"Target command name already exists: {os.fsdecode(new)}"
        TABLE[new.lower()] = _recorded_by_name(row, new.lower())
    return ""


def _recorded_by_name(row: Command, first: bytes) -> Command:
    """A row that does the same for requests with another first word."""
    run = row.run
    if run is not None and row.flags & WRITE:
        run = _named(run, row.name.partition(b"|")[0].upper(), first)
    renamed = Command(row.name, row.place, row.arity, row.flags, row.keys, row.acl, row.tips)
    renamed.run = run
    renamed.find_keys = row.find_keys
    if not row.flags & WRITE:
        renamed.run_alike = row.run_alike
        renamed.alike_of_any_key = row.alike_of_any_key
        renamed.remembers = row.remembers
    for name, child in row.subcommands.items():
        renamed.subcommands[name] = _recorded_by_name(child, first)
    return renamed


def _named(run: Handler, name: bytes, other: bytes) -> Handler:
    """``run`` with ``name`` in the place of ``other``, because records are made of the request.

    Whoever looks at the request afterwards finds the words that the client sent. A request that is
    run again because it has waited has the command's own name.
    """

    def run_named(call: Call) -> object:
        first = call.argv[0]
        if first.lower() != other:
            return run(call)
        call.argv = [name, *call.argv[1:]]
        try:
            return run(call)
        finally:
            call.argv = [first, *call.argv[1:]]

    return run_named
