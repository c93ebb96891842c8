"""The documentation of commands, as COMMAND DOCS and the HELP of containers show it.

It stands in the tables of ``server.commands``, below the line that declares a command, and is kept
by lower-case names (``container|subcommand``). The text is there from the start, and is parsed when
documentation is first asked for:

- what the command does, one sentence;
- its arguments, in the notation of ``compat.doc_notation``; no line where it has none;
- ``since 2.0.0, O(1)``: the version of Redis that brought it, and its cost;
- ``4.0.0: Several fields at once.`` for each change in its history;
- ``deprecated 4.0.0, `HSET` with several fields``: since when, and what to use instead;
- ``internal`` where it is for the server's own needs.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from headrace.protocol.replies import Status
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import ORIGINALS, TABLES, TableError

if TYPE_CHECKING:
    from headrace.compat.doc_notation import Doc

_DOCS: Final[dict[str, Doc]] = {}


def documentation() -> dict[str, Doc]:
    """Return the documentation of all commands in the tables that have been read."""
    while TABLES:
        path, text = TABLES.pop()
        _read_docs(text, path)
    return _DOCS


def _read_docs(text: str, path: str) -> None:
    meanings: dict[str, str] = {}
    group = ""
    for entry in re.split(r"\n(?! )", text.replace("\n        ", " ")):  # a longer line goes on
        head, *lines = entry.split("\n    ")
        if head.startswith("group "):
            group = head[6:]
        elif lines:
            name = head.split()[0]
            try:
                _DOCS[name.lower()] = _doc(group, [_filled(line, meanings) for line in lines])
            except ValueError as error:
                raise TableError(f"{path}: documentation of {name}: {error}") from error
        elif " = " in head:
            word, _, meaning = head.partition(" = ")
            meanings[word] = _filled(meaning, meanings)


def _filled(line: str, meanings: dict[str, str]) -> str:
    for word in re.findall(r"{(\w+)}", line):
        if word not in meanings:
            raise ValueError(f"{{{word}}} has no meaning")
        line = line.replace(f"{{{word}}}", meanings[word])
    return line


def _doc(group: str, lines: list[str]) -> Doc:
    from headrace.compat.doc_notation import Doc  # late, as all of this

    at = next((at for at, line in enumerate(lines) if line.startswith("since ")), 0)
    if at not in (1, 2):
        raise ValueError("it says what the command does, its arguments, and since when it is there")
    since, _, complexity = lines[at].removeprefix("since ").partition(", ")
    doc = Doc(group, since, complexity, lines[0], lines[1] if at == 2 else "")
    for line in lines[at + 1 :]:
        version, colon, change = line.partition(": ")
        if line.startswith("deprecated "):
            doc.deprecated_since, _, doc.replaced_by = line[11:].partition(", ")
        elif line == "internal":
            doc.internal = True
        elif colon:
            doc.history.append((version, change))
        else:
            raise ValueError(f"{line!r} is not understood")
    return doc


_TITLE: Final = b"%b <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"
_LAST: Final = (b"HELP", b"    Print this help.")


def show_help(call: Call) -> object:
    """Run ``CONTAINER HELP``: each subcommand with its arguments and its purpose.

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
