"""The imports point one way: protocol and storage at the bottom, server at the top."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.build import ROOT

# What each package may import of ours; itself always.
ARROWS: dict[str, set[str]] = {
    "protocol": set(),
    "storage": set(),
    "persistence": {"protocol", "storage"},
    "compat": {"protocol", "storage", "persistence"},
    "server": {"protocol", "storage", "persistence", "compat"},
    "testkit": {"protocol", "storage", "persistence", "compat", "server"},
    "policies": {"protocol", "storage", "persistence", "compat", "server"},
    "metrics": {"protocol", "storage", "persistence", "compat", "server"},
    "console": set(),  # a client like any other, too
    "regions": {"protocol", "storage", "persistence", "compat", "server"},
    "headrace": {
        "protocol",
        "server",
    },  # the name that all of them have in front where they are installed
    "pyspark_headrace": set(),  # a client like any other: it speaks RESP
    "pytest_headrace": {"headrace"},
}
OURS = {*ARROWS, "rocket_rides", "tests", "support", "bench", "setup"}
INSTALLED_AS = "headrace"

# What a package must live without: replay has no clock and no chance, parsing has no sockets.
FORBIDDEN: dict[str, set[str]] = {
    "protocol": {"asyncio", "selectors", "socket", "uvloop"},
    "storage": {
        "asyncio",
        "datetime",
        "io",
        "os",
        "pathlib",
        "random",
        "secrets",
        "selectors",
        "shutil",
        "socket",
        "subprocess",
        "tempfile",
        "time",
        "uuid",
        "uvloop",
    },
    "persistence": {"uvloop"},
    "compat": {"asyncio", "socket", "uvloop"},
}
FORBIDDEN["regions/knowledge"] = FORBIDDEN["regions/lanes"] = FORBIDDEN["storage"]
PURE = ("storage", "protocol", "regions/knowledge", "regions/lanes")  # without files

MODULES = sorted(path for package in ARROWS for path in (ROOT / package).rglob("*.py"))


def imported(source: str, package: str) -> Iterator[tuple[int, str]]:
    """The line and the package of every import, those inside functions included."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, package_of(alias.name)
        elif isinstance(node, ast.ImportFrom):
            if node.module == INSTALLED_AS:
                for alias in node.names:
                    yield node.lineno, package_of(f"{INSTALLED_AS}.{alias.name}")
            else:
                yield node.lineno, package if node.level else package_of(node.module or "")


def package_of(module: str) -> str:
    """The package that a module lies in, by its folder."""
    parts = module.split(".")
    return parts[1] if parts[0] == INSTALLED_AS and parts[1] in ARROWS else parts[0]


# The one module that imports the wing of regions, and what of it.
IMPORTS_THE_WING = {"server/wing.py": {"regions"}}


def violations(path: Path, source: str) -> list[str]:
    place = path.relative_to(ROOT)
    package = place.parts[0]
    allowed = ARROWS[package] | IMPORTS_THE_WING.get(place.as_posix(), set())
    forbidden = FORBIDDEN.get("/".join(place.parts[:2]), FORBIDDEN.get(package, set()))
    wrong = []
    for line, name in imported(source, package):
        named = name == INSTALLED_AS  # anybody may ask for the version
        turned_back = name in OURS - {package} - allowed and not named
        if turned_back or name in forbidden:
            wrong.append(f"{path.relative_to(ROOT)}:{line} imports {name}")
    return wrong


def opens_files(source: str) -> list[int]:
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in {"open", "input", "print"}
    ]


def test_there_is_something_to_read() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in MODULES} == set(ARROWS)


def test_imports_follow_the_arrows() -> None:
    found = [wrong for path in MODULES for wrong in violations(path, path.read_text())]
    assert found == []


def test_examples_are_clients_like_any_other() -> None:
    modules = sorted((ROOT / "examples").glob("*/*.py"))
    assert modules
    for path in modules:
        taken = {name for _, name in imported(path.read_text(), path.parent.name)} & OURS
        assert taken <= {path.parent.name}, path


def test_storage_and_protocol_do_no_io() -> None:
    pure = [path for path in MODULES if path.relative_to(ROOT).as_posix().startswith(PURE)]
    assert pure
    assert [path for path in pure if opens_files(path.read_text())] == []


# Who may hold a line end though nothing of theirs goes on the wire, and why.
LINE_ENDS: dict[str, str] = {
    "compat/errors.py": "an unknown option is shown without those at its end",
    "compat/server_errors.py": "an error of a script has none at its end",
    "console/text.py": "browsers end the lines of a form so",
    "server/config/files.py": "lines of a configuration file are read",
    "server/commands/server/cluster.py": "CLUSTER INFO is one text of many lines",
    "server/info/sections.py": "INFO is one text of many lines",
    "persistence/aof/reader.py": "looks for the beginning of a command in a damaged file",
    "persistence/forms/form.py": "a comment in a file of commands, which nobody sends",
}
WRITES_WIRE_TEXT = {"protocol", "pyspark_headrace"}
OF_COMMANDS = ("server/commands/", "regions/commands/")
OF_FILES = ("persistence/", "regions/files/")  # which have requests written into files
# What writes single items, which only the two packages use whose text it becomes.
WRITERS = {"headrace.protocol.wire"}
# What makes bytes of a whole value: for who sends them, and not for commands.
ENCODERS = {"encode", "write_reply"}


def line_ends(source: str) -> list[int]:
    """Return where a literal has a line end of the protocol."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant)
        and (
            (isinstance(node.value, bytes) and b"\r\n" in node.value)
            or (isinstance(node.value, str) and "\r\n" in node.value)
        )
    ]


def writers_used(source: str, of_a_command: bool) -> list[str]:
    """What of the writers of wire text is used, and in a command what of the encoders, too."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            names = {alias.name for alias in node.names}
            if node.module in WRITERS or "BytesWriter" in names:
                found.append(f"{node.lineno}: {node.module}")
            elif of_a_command and node.module == "headrace.protocol.replies" and names & ENCODERS:
                found.append(f"{node.lineno}: {sorted(names & ENCODERS)}")
        elif of_a_command and isinstance(node, ast.Attribute) and node.attr == "wire":
            found.append(f"{node.lineno}: .wire")
    return found


ABOVE_PROTOCOL = [
    path
    for path in MODULES
    if path.relative_to(ROOT).parts[0] not in WRITES_WIRE_TEXT | {"storage", "headrace"}
]


def test_wire_text_is_written_in_protocol_alone() -> None:
    with_line_ends = set()
    for path in ABOVE_PROTOCOL:
        name = path.relative_to(ROOT).as_posix()
        source = path.read_text()
        if line_ends(source):
            with_line_ends.add(name)
        if not name.startswith(OF_FILES):
            assert writers_used(source, name.startswith(OF_COMMANDS)) == [], name
    assert with_line_ends == set(LINE_ENDS)


@pytest.mark.parametrize(
    "line",
    [
        'def f() -> bytes:\n    return b"+OK\\r\\n"',
        'x = f"{1}\\r\\n"',
        "from headrace.protocol.wire import bulk",
        "from librt.strings import BytesWriter",
        "from headrace.protocol.replies import OK, encode",
        "def f(reply: Packed) -> bytes:\n    return reply.wire",
    ],
)
def test_wire_text_elsewhere_is_found(line: str) -> None:
    assert line_ends(line) or writers_used(line, True)


MOST_LINES = 60  # of a function, from ``def`` to its last line
SHORT = ("server", "storage", "kit", "policies", "console", "regions")
# Functions that are longer, each with its reason.
LONGER: dict[str, str] = {}


def too_long(source: str) -> list[str]:
    """The functions of more than ``MOST_LINES`` lines, those inside others included."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > MOST_LINES:
                found.append(f"{node.name}: {lines}")
    return found


def test_functions_can_be_read_at_one_sight() -> None:
    found = [
        f"{path.relative_to(ROOT).as_posix()}: {name}"
        for path in MODULES
        if path.relative_to(ROOT).parts[0] in SHORT
        for name in too_long(path.read_text())
    ]
    assert [name for name in found if name.rpartition(":")[0] not in LONGER] == []


def test_a_long_function_is_found() -> None:
    body = "    pass\n" * MOST_LINES
    assert too_long("def f() -> None:\n" + body) == [f"f: {MOST_LINES + 1}"]
    assert too_long("async def f() -> None:\n" + body) == [f"f: {MOST_LINES + 1}"]
    assert too_long("def f() -> None:\n" + body.removesuffix("    pass\n")) == []


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("storage/keyspace.py", "from headrace.protocol.replies import OK"),
        ("storage/keyspace.py", "import time"),
        ("protocol/replies.py", "from headrace.storage import keyspace"),
        ("persistence/aof/file.py", "import headrace.server.app"),
        ("compat/errors.py", "def f() -> None:\n    from headrace import server"),
        ("server/app.py", "from support.client import RawClient"),
    ],
)
def test_an_arrow_turned_back_is_found(module: str, line: str) -> None:
    assert violations(ROOT / module, line) != []


def names_of_two_kinds(source: str) -> list[str]:
    """Names that handlers of different exceptions bind in one function.

    mypyc gives such a name the type of the first handler, and the second fails when it is entered.
    """
    wrong = []
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        kinds: dict[str, set[str]] = {}
        for node in ast.walk(function):
            if isinstance(node, ast.ExceptHandler) and node.name and node.type:
                kinds.setdefault(node.name, set()).add(ast.unparse(node.type))
        wrong += [f"{function.name}: {name}" for name, types in kinds.items() if len(types) > 1]
    return wrong


def test_waiting_knows_no_type() -> None:
    """Nor sessions, nor commands: each kind of waiting lies beside the commands that wait so."""
    tree = ast.walk(ast.parse((ROOT / "server" / "waiting.py").read_text()))
    taken = [node.module or "" for node in tree if isinstance(node, ast.ImportFrom)]
    assert not [name for name in taken if name.startswith(INSTALLED_AS)]


def test_a_handlers_name_has_one_type() -> None:
    found = {path: names_of_two_kinds(path.read_text()) for path in MODULES}
    assert {path: names for path, names in found.items() if names} == {}


def test_nothing_is_built_into_the_checkout(repo: Path) -> None:
    """An extension module beside its source would shadow every later edit."""
    beside = [path for package in ARROWS for path in (repo / package).rglob("*.so")]
    assert beside == []


def undocumented(sources: list[str]) -> list[str]:
    """Public methods without a docstring, of which no class above has one that is documented."""
    classes = [
        node
        for source in sources
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ClassDef)
    ]
    bases: dict[str, list[str]] = {}
    for each in classes:  # those of one name have all that either has
        found = [ast.unparse(base).split("[")[0] for base in each.bases]
        bases[each.name] = bases.get(each.name, []) + found
    said: dict[str, set[str]] = {}
    missing: list[tuple[str, str]] = []
    for each in classes:
        for method in each.body:
            if isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)):
                if ast.get_docstring(method):
                    said.setdefault(each.name, set()).add(method.name)
                elif not method.name.startswith("_") and not each.name.startswith("_"):
                    missing.append((each.name, method.name))

    def is_said(name: str, method: str) -> bool:
        if name not in bases:  # a library's, with documentation of its own
            return name not in ("object", "")
        return method in said.get(name, set()) or any(is_said(up, method) for up in bases[name])

    return [
        f"{name}.{method}"
        for name, method in missing
        if not any(is_said(up, method) for up in bases[name])
    ]


def test_a_method_is_documented_where_it_is_declared_first() -> None:
    packages = [*ARROWS, "bench", "examples", "docker"]
    paths = [path for package in packages for path in sorted((ROOT / package).rglob("*.py"))]
    assert undocumented([path.read_text() for path in paths]) == []


def test_a_method_without_documentation_is_found() -> None:
    above = "class A:\n    def f(self):\n        'Do it.'\n"
    assert undocumented([above + "class B(A):\n    def f(self): pass\n"]) == []
    assert undocumented([above + "class B(A):\n    def g(self): pass\n"]) == ["B.g"]
    assert undocumented(["class A:\n    def f(self): pass\n"]) == ["A.f"]
