"""The tests that only Redis's internals can pass, each with its reason: ``internals.txt``."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_LIST: Final = Path(__file__).parent / "internals.txt"


def reasons() -> dict[str, list[tuple[str, str]]]:
    """For each reason the tests that it covers: the unit of each, and its name."""
    found: dict[str, list[tuple[str, str]]] = {}
    for line in _LIST.read_text().splitlines():
        if line.startswith("## "):
            tests = found.setdefault(line.removeprefix("## "), [])
        elif line and not line.startswith("#"):
            unit, _, name = line.partition(": ")
            tests.append((unit, name))
    return found


def known(unit: str) -> dict[str, str]:
    """Return why we do not pass some tests of a unit, by their names."""
    return {name: reason for reason, tests in reasons().items() for of, name in tests if of == unit}


def table() -> str:
    """The reasons and the tests, as docs/differences.md shows them."""
    lines = ["| why | tests |", "| --- | --- |"]
    for reason, tests in reasons().items():
        shown = "<br>".join(f"{unit.removeprefix('unit/')}: {name}" for unit, name in tests)
        lines.append(f"| {reason} | {shown} |")
    return "\n".join(lines) + "\n"
