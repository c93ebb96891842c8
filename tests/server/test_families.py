"""Rows, their documentation and their functions lie together, in the folder of their family."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import headrace.server.commands.families  # noqa: F401  (fills the table)
from headrace.server.dispatch.rows import TABLE
from support.build import ROOT

FAMILIES = sorted(path.parent.name for path in (ROOT / "server" / "commands").glob("*/family.py"))
DECLARATIONS = {"command", "container"}


def sources(family: str) -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted((ROOT / "server" / "commands" / family).glob("*.py")):
        yield path, ast.parse(path.read_text())


def declared(tree: ast.Module) -> Iterator[str]:
    """The names of the rows that a module declares, as the documentation spells them."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in DECLARATIONS
            and isinstance(node.args[0], ast.Constant)
        ):
            yield str(node.args[0].value).lower()


def functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    """The functions of commands, each with the name of its row."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                for name in declared(ast.Module([ast.Expr(decorator)], [])):
                    yield name, node


def test_there_are_families() -> None:
    assert "streams" in FAMILIES
    assert len(FAMILIES) > 5


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_documents_its_own_commands_and_no_others(family: str) -> None:
    names = [name for _, tree in sources(family) for name in declared(tree)]
    assert len(names) == len(set(names))
    rows = set(names)
    for name in names:  # those of a container may be declared in a loop
        if "|" not in name:
            rows.update(row.name.decode() for row in TABLE[name.encode()].subcommands.values())
    assert set(import_module(f"headrace.server.commands.{family}.docs").DOCS) == rows


@pytest.mark.parametrize("family", FAMILIES)
def test_a_docstring_leaves_to_the_row_what_that_says(family: str) -> None:
    """How a command is called, and what it costs, stand in its documentation."""
    for path, tree in sources(family):
        for name, function in functions(tree):
            text = ast.get_docstring(function) or ""
            where = f"{path.name}: {name}"
            assert text, where
            assert "Complexity:" not in text, where
            words = name.upper().replace("|", " ")
            assert f"``{words} " not in text, where
            assert not text.startswith(f"``{words}``"), where
