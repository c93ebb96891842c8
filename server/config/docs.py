"""Writes ``docs/configuration.md`` from the table of parameters.

``python -m headrace.server.config.docs > docs/configuration.md``; a test fails when the two differ.
"""

from __future__ import annotations

import sys
from typing import Final

from headrace.compat.parameters import HIDDEN, IMMUTABLE, PROTECTED, Parameter
from headrace.server.config.parameters import (
    INERT,
    INERT_GROUPS,
    OBSOLETE_DIRECTIVES,
    REFUSED_DIRECTIVES,
    SECTIONS,
)

HEAD: Final = """\
# Configuration

<!-- Written by `python -m headrace.server.config.docs > docs/configuration.md`. -->

Headrace is configured as redis-server is: by a file, by options of the command line, and at run
time by CONFIG SET.

    headrace [file | -] [--option value ...]

- A file has one parameter per line: its name, then its value. `#` starts a comment line. A value
  with spaces stands in quotes; `"\\n"`, `"\\x0a"` and `'it\\'s'` are understood.
- `include path` reads another file; with `*`, `?` or `[` in the path, all files that fit, in order
  of their names. Paths are relative to `dir`.
- `rename-command NAME OTHER` gives a command another name; with `""` it is gone. That is for
  clients alone: files hold the command's own name and are read under any configuration.
- Every parameter can be an option: `--port 6380`. Options have the last word. With `-` as first or
  last word, standard input is read between the file and the options.
- Lines in the environment variable `HEADRACE_DEFAULTS` are read before all others. An image gives
  its own defaults by it.
- A password on the command line is shown as `*` in the list of processes once the server has begun.
  It is safer in a file that no other user may read, or on standard input.
- A memory size is a number of bytes, or one with a unit: `k`, `m`, `g` count in thousands, `kb`,
  `mb`, `gb` in 1024s.
- CONFIG GET takes glob patterns, CONFIG SET several parameters, of which it changes all or none.
  CONFIG REWRITE brings the file up to date and keeps comments and order.
- A mistake ends the start with the file, the line and the reason.

"Run time" says whether CONFIG SET may change it: "protected" means as `enable-protected-configs`
allows.
"""

INERT_HEAD: Final = """
## Known, without effect

These belong to Redis and change nothing here. They are checked as Redis does, can be set and read,
and the log names those that a configuration sets to something else. Nothing is lost by that:
"""

REFUSED_HEAD: Final = """
## Refused

To ignore these would leave the server more open, or able to do less, than its owner believes.
"""


def render() -> str:
    """Return the whole document."""
    parts = [HEAD]
    for title, rows in SECTIONS:
        parts.append(f"\n## {title}\n\n")
        parts.append("| parameter | default | values | run time | meaning |\n")
        parts.append("| --- | --- | --- | --- | --- |\n")
        parts += [_line(row) for row in rows]
    parts.append(INERT_HEAD)
    for reason, rows in INERT_GROUPS:
        shown = [row for row in rows if not row.flags & HIDDEN and not row.unsupported]
        if not shown:
            continue
        parts.append(f"\n{reason}\n\n| parameter | default |\n| --- | --- |\n")
        for row in sorted(shown, key=_name):
            names = f"`{row.name}`"
            if row.alias:
                names += f", `{row.alias.decode()}`"
            parts.append(f"| {names} | {_default(row)} |\n")
    obsolete = ", ".join([f"`{name.decode()}`" for name in OBSOLETE_DIRECTIVES])
    parts.append(f"\nIn a file also: {obsolete}.\n")
    parts.append(REFUSED_HEAD)
    parts.append("\n| directive | because |\n| --- | --- |\n")
    refused: dict[str, list[Parameter]] = {}
    for row in INERT:
        if row.unsupported:
            refused.setdefault(row.unsupported, []).append(row)
    for reason, same in refused.items():
        names = ", ".join([f"`{row.name}`" for row in same])
        default = _default(same[0]) if len(same) == 1 else "their defaults"
        parts.append(f"| {names}, unless {default} | {reason} |\n")
    for name, reason in REFUSED_DIRECTIVES.items():
        parts.append(f"| `{name.decode()}` | {reason} |\n")
    return "".join(parts)


def _name(row: Parameter) -> str:
    return row.name


def _line(row: Parameter) -> str:
    when = "yes"
    if row.flags & IMMUTABLE:
        when = "no"
    elif row.flags & PROTECTED:
        when = "protected"
    values = row.range_text().replace("|", "\\|")
    return f"| `{row.name}` | {_default(row)} | {values} | {when} | {row.doc} |\n"


def _default(row: Parameter) -> str:
    shown = row.rewritten(row.default).decode().strip('"')
    return f"`{shown}`" if shown else "empty"


if __name__ == "__main__":
    sys.stdout.write(render())
