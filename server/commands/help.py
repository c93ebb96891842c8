"""The HELP subcommand of every container, written from the documentation of its subcommands."""

from __future__ import annotations

from typing import Final

from headrace.protocol.replies import Status
from headrace.server.commands.documentation import documentation
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import ORIGINALS

_TITLE: Final = b"%b <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"
_LAST: Final = (b"HELP", b"    Print this help.")


def show_help(call: Call) -> object:
    """``CONTAINER HELP``: the subcommands, each with its arguments and what it does.

    Reply: list of status lines; the last two, as Redis has them, are of HELP itself.
    """
    from headrace.compat.doc_notation import render  # late, as the documentation is

    name = call.name().partition(b"|")[0]
    lines: list[object] = [Status(_TITLE % call.argv[0].upper())]
    for child in sorted(ORIGINALS[name].subcommands):
        if child == b"help":
            continue
        doc = documentation()[f"{name.decode()}|{child.decode()}"]
        syntax = render(doc.arguments()).encode()
        lines.append(Status(b"%b %b" % (child.upper(), syntax) if syntax else child.upper()))
        lines.append(Status(b"    " + doc.summary.encode()))
    for line in _LAST:
        lines.append(Status(line))
    return lines
