"""The tables of commands: an entry has a function and documentation, a function an entry."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.server.commands.families import LATE, function_of
from headrace.server.dispatch.rows import MODULES, every_row
from support import build

PREFIX = "headrace.server.commands."
PLACES = {row.place.removeprefix(PREFIX) for row in every_row()}
NAMES = {row.name.decode().replace("|", "_").replace("-", "_") for row in every_row()}
PARTS = "it says what the command does, its arguments, and since when it is there"
ENTRY = """\
group generic
[toys.toys]
TOY 2 readonly fast | RO ACCESS
    Tells how long a name is.
    key
    since 1.0.0, O(1)
"""
FUNCTION = """\
from headrace.server.dispatch.call import Call


def toy(call: Call) -> object:
    return len(call.argv[1])
"""
ASK = """
import sys
sys.path.insert(0, "")
from headrace.server.dispatch.rows import TABLE, TableError, read_tables
from headrace.server.commands.documentation import documentation
from headrace.server.dispatch.call import Call
try:
    read_tables("toys", "")
    from headrace.server.commands import families
    doc = documentation()["toy"]
    print(TABLE[b"toy"].run.__name__, TABLE[b"toy"].reads_second_word, doc.group, doc.summary)
except TableError as error:
    print(error)
"""


def functions(module: str) -> Iterator[ast.FunctionDef]:
    """The functions of a module that take a call and answer it."""
    path = build.ROOT / "server" / "commands" / f"{module.replace('.', '/')}.py"
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            arguments = [ast.unparse(each.annotation or node) for each in node.args.args]
            if arguments == ["Call"] and ast.unparse(node.returns or node) == "object":
                yield node


def modules() -> list[str]:
    return sorted(name.removeprefix(PREFIX) for name in MODULES if name.startswith(PREFIX))


def test_there_are_tables() -> None:
    assert len(modules()) > 20
    assert len(NAMES) > 400


@pytest.mark.parametrize("module", modules())
def test_a_function_that_answers_a_call_has_an_entry(module: str) -> None:
    for function in functions(module):
        of_an_entry = module in PLACES and function.name.rstrip("_") in NAMES
        assert of_an_entry or f"{module}:{function.name}" in PLACES, function.name


@pytest.mark.parametrize("module", modules())
def test_a_docstring_leaves_to_the_entry_what_that_says(module: str) -> None:
    """How a command is called, and what it costs, stand in its documentation."""
    for function in functions(module):
        text = ast.get_docstring(function) or ""
        assert text, function.name
        assert "Complexity:" not in text, function.name
        words = function.name.rstrip("_").upper().split("_")
        assert f"``{' '.join(words)}" not in text, function.name


def test_a_module_that_is_imported_late_has_all_functions_that_its_entries_name() -> None:
    late = [row for row in every_row() if row.place.partition(":")[0] in LATE]
    assert len(late) > 30
    assert all(function_of(row) for row in late if not row.subcommands)


def answer(folder: Path, entry: str) -> str:
    """Return what a server says that has one more table."""
    toys = folder / "toys"
    toys.mkdir(exist_ok=True)
    (toys / "toys.py").write_text(FUNCTION)
    (toys / "toys.txt").write_text(entry)
    asked = [sys.executable, "-P", "-c", ASK]
    done = subprocess.run(
        asked, capture_output=True, text=True, cwd=folder, env=build.environment(), check=True
    )
    return done.stdout.strip()


def test_a_command_is_one_function_and_one_entry(tmp_path: Path) -> None:
    assert answer(tmp_path, ENTRY) == "toy True generic Tells how long a name is."


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("    Tells how long a name is.\n    key\n", "", "toys/toys.txt: TOY is not documented"),
        (
            "    key\n    since 1.0.0, O(1)\n",
            "    key\n",
            f"toys/toys.txt: documentation of TOY: {PARTS}",
        ),
        ("    key\n", "    {KEY}\n", "toys/toys.txt: documentation of TOY: {KEY} has no meaning"),
        ("O(1)\n", "O(1)\n    ?\n", "toys/toys.txt: documentation of TOY: '?' is not understood"),
        ("readonly", "readable", "toys/toys.txt: readable of TOY is not known"),
        ("ACCESS", "ACCESS past 2", "toys/toys.txt: past is not known in a key spec"),
        ("TOY 2", "TOY two", "toys/toys.txt: invalid literal for int() with base 10: 'two'"),
        ("TOY 2", "GET 2", "toys/toys.txt: GET stands in the tables twice"),
        ("TOY 2", "TOYS 2", "toys has no function in toys.toys"),
    ],
)
def test_what_is_wrong_with_a_table_stops_the_start(
    tmp_path: Path, right: str, wrong: str, message: str
) -> None:
    assert right in ENTRY
    assert answer(tmp_path, ENTRY.replace(right, wrong)) == message
