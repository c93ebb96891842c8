"""The rooms of the larger packages: which may know which, and that nothing goes round in circles.

``test_architecture.py`` holds the arrows between the packages.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.build import ROOT

PREFIX = "headrace."
# The families of commands, none of which knows another.
FAMILIES = (
    "acl",
    "arrays",
    "bitmaps",
    "connection",
    "geo",
    "hashes",
    "hyperloglog",
    "keys",
    "lists",
    "migrate",
    "pubsub",
    "regions",
    "replication",
    "scripting",
    "server",
    "sets",
    "sorting",
    "sorted_sets",
    "streams",
    "strings",
    "transactions",
)
# A room knows those above it in this list, and none below. One that is no folder is a module.
ROOMS: dict[str, list[str]] = {
    "storage": [
        *("digest", "due", "value"),
        *("packed", "collection", "array", "hash", "list", "set"),
        *("sorted_set", "string", "faces", "folded", "key_page"),
        *("key_table", "entry", "keyspace", "freezing", "sharing", "vectors", "stream"),
    ],
    "persistence": [
        *("errors", "files", "log", "taker"),
        *("rdb", "forms", "snapshot", "aof", "source", "check"),
    ],
    "server": [
        *("build", "clock", "log", "gate", "acl", "config", "process", "cluster"),
        *("statistics", "waiting", "clients", "faults", "links", "role", "changes", "tracking"),
        *("data", "state"),
        *("durability", "dispatch", "eviction", "settings", "scripting", "replication"),
        *("loading", "following", "info", "active_active", "wing"),
        *("commands",),
        *("cron", "net", "tools", "succession", "app", "start", "cli"),
    ],
    "server.commands": [
        *("documentation", "shared_keys", "shared"),
        *("together", "typed_keys"),
        *FAMILIES,
        "families",
        "manual",
    ],
    "policies": ["policy", "rules", "book", "bounds", "consumers", "steps", "wing", "commands"],
    "metrics": ["page", "delay", "server", "streams", "endpoint", "wing"],
    "console": [
        *("text", "link", "streams", "catalogue", "changes", "tail", "guard", "nodes", "pages"),
        *("app", "cli"),
    ],
    "regions": ["knowledge", "lanes", "files", "exchange", "commands", "tools", "wing"],
}
# What is there for every type of value imports none of them.
TYPELESS = (
    *("server/waiting", "server/changes", "server/durability", "server/dispatch"),
    "regions/exchange",
)
TYPES = (
    "headrace.storage.hash",
    "headrace.storage.list",
    "headrace.storage.set",
    "headrace.storage.array",
    "headrace.storage.stream",
    "headrace.storage.string",
    "headrace.persistence.forms.hash",
    "headrace.persistence.forms.list",
    "headrace.persistence.forms.array",
    "headrace.persistence.forms.set",
    "headrace.storage.sorted_set",
    "headrace.persistence.forms.sorted_set",
    "headrace.persistence.forms.stream",
    "headrace.persistence.forms.string",
    "headrace.server.commands",
)
# Who knows a type outside its own rooms, and what it has to do with it.
KNOW_A_TYPE = {
    "headrace.storage.faces": "the table of plain objects that are values",
    "headrace.storage.folded": "the small forms of values that are folded with their keys",
    "headrace.persistence.forms.table": "the table of forms",
    "headrace.compat.type_errors": "error texts of what the data refuses",
    "headrace.server.settings": "parameters that take effect in streams",
    "headrace.server.data": "how large the nodes of lists and streams may become",
    "headrace.server.state": "how large the nodes of streams may become",
    "headrace.server.commands.typed_keys": "how a command finds a value of its type",
    "headrace.testkit.debug": "what DEBUG OBJECT measures, and how lists are cut",
    "headrace.testkit.tools": "how lists are cut at the start",
    "headrace.metrics.streams": "what metrics tell of streams and groups",
    "headrace.server.commands.sorting": "what SORT sorts, and what BY and GET look up",
    "headrace.regions.files.region_form": "what lies in the tombstones of a region",
    "headrace.regions.wing": "all that regions register",
    "headrace.server.cron": "idle consumers and fields go, and the clock steps",
}
OF_A_TYPE = (
    *TYPES[:-1],
    "headrace.server.commands.arrays",
    "headrace.server.commands.bitmaps",
    "headrace.server.commands.hashes",
    "headrace.server.commands.hyperloglog",
    "headrace.server.commands.lists",
    "headrace.server.commands.geo",
    "headrace.server.commands.sets",
    "headrace.server.commands.sorted_sets",
    "headrace.server.commands.streams",
    "headrace.server.commands.strings",
    "headrace.policies",
    "headrace.regions.lanes",
    "headrace.regions.files.stream_form",
    "headrace.regions.commands",
)
WINGS = ("testkit", "policies", "metrics", "console", "regions")
PACKAGES = ("protocol", "storage", "persistence", "compat", "server", *WINGS)


def dotted(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return PREFIX + ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {
    dotted(path): path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))
}


def imports(source: str) -> Iterator[str]:
    """Every module of ours that is imported, for types alone or inside functions, too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            modules = [name for name in inner if name in MODULES]
            if len(modules) < len(inner) and node.module in MODULES:
                modules.append(node.module)
            yield from modules


IMPORTS = {name: set(imports(path.read_text())) - {name} for name, path in MODULES.items()}


def room_of(module: str, house: str) -> str | None:
    """The room of a house that a module lies in; None when that is another house."""
    inside = module.removeprefix(f"{PREFIX}{house}.")
    return None if inside == module else inside.partition(".")[0]


def turned_back(house: str, graph: dict[str, set[str]]) -> list[str]:
    order = {room: place for place, room in enumerate(ROOMS[house])}
    wrong = []
    for module, others in graph.items():
        room = room_of(module, house)
        if room is None or room not in order:
            continue
        for other in others:
            known = room_of(other, house)
            if known is not None and order.get(known, -1) > order[room]:
                wrong.append(f"{module} imports {other}")
    return wrong


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules of which each leads to each."""
    reached: dict[str, set[str]] = {}
    for start in graph:
        found: set[str] = set()
        todo = [start]
        while todo:
            new = graph.get(todo.pop(), set()) - found
            found |= new
            todo += new
        reached[start] = found
    inside = {name for name in graph if name in reached[name]}
    return [
        sorted(each for each in inside if each in reached[name] and name in reached[each])
        for name in sorted(inside)
    ]


@pytest.mark.parametrize("house", ROOMS)
def test_the_list_names_all_rooms(house: str) -> None:
    folder = ROOT / house.replace(".", "/")
    found = {
        path.stem
        for path in folder.iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert found - {"__init__"} == set(ROOMS[house])


@pytest.mark.parametrize("house", ROOMS)
def test_rooms_know_only_those_above_them(house: str) -> None:
    assert turned_back(house, IMPORTS) == []


def test_nothing_goes_round_in_circles() -> None:
    assert circles(IMPORTS) == []


@pytest.mark.parametrize("folder", TYPELESS)
def test_what_is_for_every_type_knows_none(folder: str) -> None:
    found = [
        f"{module} imports {other}"
        for module, others in IMPORTS.items()
        if module.startswith(PREFIX + folder.replace("/", "."))
        for other in others
        if other.startswith(TYPES)
    ]
    assert found == []


def test_a_type_is_known_in_its_rooms_and_in_tables() -> None:
    """Another type is new files and a line in each table: nobody else would have to be changed."""
    knowing = {
        module
        for module, others in IMPORTS.items()
        if not module.startswith(OF_A_TYPE) and any(other.startswith(OF_A_TYPE) for other in others)
    }
    assert knowing == set(KNOW_A_TYPE)


def test_families_of_commands_do_not_know_each_other() -> None:
    found = []
    for module, others in IMPORTS.items():
        family = room_of(module, "server.commands")
        for other in others:
            known = room_of(other, "server.commands")
            if {family, known} <= set(FAMILIES) and family != known:
                found.append(f"{module} imports {other}")
    assert found == []


@pytest.mark.parametrize(
    ("name", "place"),
    [
        *[("regions", {"headrace.server.wing"}), ("policies", set())],
        *[("testkit", set()), ("metrics", set()), ("console", set())],
    ],
)
def test_wings_are_imported_in_one_place(name: str, place: set[str]) -> None:
    """A server that is alone has none of them, and what it does there is seen by faces.

    Policies, metrics and the test kit are imported by name, because they import those who ask for
    them.
    """
    wing = PREFIX + name
    knowing = {
        module
        for module, others in IMPORTS.items()
        if not module.startswith(wing) and any(other.startswith(wing) for other in others)
    }
    assert knowing == place


def test_what_is_wrong_is_found() -> None:
    wrong = {"headrace.server.clock": {"headrace.server.app"}}
    assert turned_back("server", wrong) == ["headrace.server.clock imports headrace.server.app"]
    round_about = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}
    assert circles(round_about) == [["a", "b", "c"]] * 3
    source = "def f():\n    from headrace.server.clock import Clock\n"
    assert list(imports(source)) == ["headrace.server.clock"]
