"""The parameters of ``parameters.txt``, the table beside this module.

An entry reads like a line of redis.conf: the name and its default. Behind a bar stands its kind
with the values that it takes, and behind another what else there is to know: a flag of ``FLAGS``,
``also`` and an older name, ``refused`` and why only the default is taken. Below it is said what it
does. A longer line goes on in the next, which is further indented. ``[Network]`` begins a section
of the documentation, ``[without effect: why]`` one of parameters that Redis 7.0 to 8.10 has and
that mean nothing here: they are read, checked and shown as Redis does, so that a configuration made
for Redis starts this server. A parameter is refused, never ignored, if it would change who may do
what, where the data is or what becomes of it.

A parameter's value is the attribute of ``Config`` that has its name with underscores. Defaults and
ranges are those of Redis 8, except that ``bind`` keeps to this machine.
Source: config.c of Redis 7.0 and 7.4; the release notes of 8.0 to 8.8, CONFIG GET of 8.10.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Final

from headrace.compat.parameters import (
    HIDDEN,
    IMMUTABLE,
    MULTI,
    NOT_WHILE_LOADING,
    PROTECTED,
    RELOADS,
    SENSITIVE,
    BadValue,
    Choice,
    ChoiceSet,
    Integer,
    Memory,
    MemoryOrPercent,
    Octal,
    OomScores,
    Parameter,
    ReplicaOf,
    Text,
    YesNo,
)
from headrace.server.config.kinds import (
    Address,
    Bind,
    Directory,
    HostName,
    KeyspaceEvents,
    OutputLimits,
    PeerNames,
    Peers,
    Percentiles,
    PolicyLines,
    Save,
)

FLAGS: Final[dict[str, int]] = {
    "immutable": IMMUTABLE,
    "protected": PROTECTED,
    "sensitive": SENSITIVE,
    "hidden": HIDDEN,
    "not-while-loading": NOT_WHILE_LOADING,
    "reloads": RELOADS,
}
ONE_WORD: Final[dict[str, Callable[[str, list[str]], Parameter]]] = {
    "address": Address,
    "choice": Choice,
    "directory": Directory,
    "events": KeyspaceEvents,
    "host-name": HostName,
    "integer": Integer,
    "memory": Memory,
    "memory-or-percent": MemoryOrPercent,
    "octal": Octal,
    "peer-names": PeerNames,
    "text": Text,
    "yes-no": YesNo,
}
SEVERAL_WORDS: Final[dict[str, Callable[[str, list[str]], Parameter]]] = {
    "addresses": Bind,
    "choices": ChoiceSet,
    "master": ReplicaOf,
    "oom-scores": OomScores,
    "output-limits": OutputLimits,
    "policies": PolicyLines,
    "peers": Peers,
    "percentiles": Percentiles,
    "save-points": Save,
}

# Directives of Redis that are no parameters. Each is refused with the reason given, because
# ignoring it would leave the server more open, or less able, than its owner believes.
REFUSED_DIRECTIVES: Final[dict[bytes, str]] = {
    b"loadmodule": "modules are not supported",
    b"sentinel": "sentinel directive while not in sentinel mode",
}

# Directives that Redis still takes, with one value, and ignores.
OBSOLETE_DIRECTIVES: Final = (
    b"list-max-ziplist-entries",
    b"list-max-ziplist-value",
    b"lua-replicate-commands",
)

_NO_EFFECT: Final = "without effect: "


class BadTable(Exception):
    """The table has a mistake, which the message says in a sentence."""


def read_table(text: str) -> list[tuple[str, list[Parameter]]]:
    """Return the sections of a table, each with its title and its parameters; raises BadTable."""
    sections: list[tuple[str, list[Parameter]]] = []
    for line in text.replace("\n        ", " ").splitlines():
        if line.startswith("["):
            sections.append((line[1:-1], []))
        elif line.startswith("    "):
            sections[-1][1][-1].doc = line[4:]
        else:
            try:
                sections[-1][1].append(_read_entry(line))
            except (BadValue, KeyError, ValueError, IndexError) as error:
                raise BadTable(f"parameters.txt: {line}: {error!r}") from error
    return sections


def _read_entry(line: str) -> Parameter:
    setting, values, *more = line.split(" | ")
    name, _, default = setting.partition(" ")
    kind, *limits = values.split()
    several = kind in SEVERAL_WORDS
    row = (SEVERAL_WORDS if several else ONE_WORD)[kind](name, limits)
    facts, _, row.unsupported = (more[0] if more else "").partition("refused ")
    facts, _, alias = facts.partition("also ")
    row.alias = alias.encode()
    row.flags = MULTI if several else 0
    for flag in facts.split():
        row.flags |= FLAGS[flag]
    words = [default.strip('"')] if default.startswith('"') or not several else default.split()
    row.default = row.first([word.encode() for word in words])
    return row


def _table() -> str:
    folder = import_module("headrace.server.config").__path__[0]
    with open(f"{folder}/parameters.txt", encoding="utf-8") as file:
        return file.read()


_ALL_SECTIONS: Final = read_table(_table())
SECTIONS: Final = [each for each in _ALL_SECTIONS if not each[0].startswith(_NO_EFFECT)]
INERT_GROUPS: Final = [
    (title.removeprefix(_NO_EFFECT), rows)
    for title, rows in _ALL_SECTIONS
    if title.startswith(_NO_EFFECT)
]
ACTIVE: Final[list[Parameter]] = [row for _, rows in SECTIONS for row in rows]
INERT: Final[list[Parameter]] = [row for _, rows in INERT_GROUPS for row in rows]
ALL: Final[list[Parameter]] = [*ACTIVE, *INERT]


def _by_name() -> dict[bytes, Parameter]:
    found = {row.wire: row for row in ALL}
    found.update({row.alias: row for row in ALL if row.alias})
    return found


BY_NAME: Final[dict[bytes, Parameter]] = _by_name()


def is_sensitive(name: bytes) -> bool:
    """Return whether the value of the parameter ``name`` must stay out of logs and of SLOWLOG."""
    row = BY_NAME.get(name.lower())
    return row is not None and bool(row.flags & SENSITIVE)
