"""Writes ``docs/commands.md``: which commands of Redis are there, and why others are not.

``python -m headrace.server.commands.manual > docs/commands.md``; a test fails when the two differ.
"""

from __future__ import annotations

import sys
from typing import Final

import headrace.server.commands.families  # noqa: F401  (importing it fills the command table)
from headrace.compat.redis_commands import COMMANDS, VERSION, commands
from headrace.server.commands.documentation import documentation

HEAD: Final = """\
# Commands

<!-- Written by `python -m headrace.server.commands.manual > docs/commands.md`. -->

Every command of Redis {version}, by the chapter of its manual, with the version of Redis that
brought it. {there} of {all} are there. They answer as Redis does, byte for byte;
[differences.md](differences.md) names what differs.
"""

OURS_HEAD: Final = """
## Not in Redis

{names}.

Regions are described in [active-active.md](active-active.md), the others in
[consumer-groups.md](consumer-groups.md) and [idempotent-producers.md](idempotent-producers.md).
"""

# The reason why a command is not there, by its name, its container or its chapter.
MISSING: Final[dict[str, str]] = {
    "module": "vector sets are a module of Redis",
    "backup": "the files of snapshots and of the append-only file can be copied at any time",
}
NOT_YET: Final = "not there yet"

# Remarks on commands that are there.
REMARKS: Final[dict[str, str]] = {
    "cluster": "with `cluster-enabled yes`: of a cluster of one node",
    "module|load": "refused",
    "module|loadex": "refused",
    "module|unload": "refused",
}


def why_missing(chapter: str, name: str) -> str:
    """Return why a command is not there."""
    container = name.partition("|")[0]
    return MISSING.get(name) or MISSING.get(container) or MISSING.get(chapter) or NOT_YET


def render() -> str:
    """Return the whole document."""
    there = documentation()
    total = 0
    found = 0
    parts: list[str] = []
    for chapter in COMMANDS:
        parts.append(f"\n## {chapter.capitalize()}\n\n| command | since | |\n| --- | --- | --- |\n")
        for name, since in commands(chapter):
            total += 1
            shown = name.upper().replace("|", " ")
            if name in there:
                found += 1
                remark = REMARKS.get(name) or REMARKS.get(name.partition("|")[0]) or ""
                parts.append(f"| {shown} | {since} | {remark or 'there'} |\n")
            else:
                parts.append(f"| {shown} | {since} | **no**: {why_missing(chapter, name)} |\n")
    known = {name for chapter in COMMANDS for name, _ in commands(chapter)}
    containers = {name.partition("|")[0] for name in known | set(there) if "|" in name}
    ours = sorted(set(there) - known - containers)
    names = ", ".join([name.upper().replace("|", " ") for name in ours])
    head = HEAD.format(version=VERSION, there=found, all=total)
    return head + "".join(parts) + OURS_HEAD.format(names=names)


if __name__ == "__main__":
    sys.stdout.write(render())
