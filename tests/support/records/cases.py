"""The cases of ``cases.txt``."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple


class Case(NamedTuple):
    """A case.

    Attributes:
        text: all of it, which is its name.
        before: the lines of what it begins with.
        lines: those of which the records are looked at.
    """

    text: str
    before: list[str]
    lines: list[str]


def _read() -> dict[str, list[Case]]:
    families: dict[str, list[Case]] = {}
    found: list[Case] = []
    for line in (Path(__file__).parent / "cases.txt").read_text().splitlines():
        if line.startswith("## "):
            families[line[3:]] = found = []
        elif line and not line.startswith("# "):
            before, arrow, lines = line.rpartition(" => ")
            found.append(Case(line, before.split(";") if arrow else [], lines.split(";")))
    return families


CASES: Final = _read()  # by family
