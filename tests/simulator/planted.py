"""Bugs that are planted in the servers' code, to see whether the simulator finds them.

``AA_MUTATE=name`` plants one of those in ``planted.txt`` while modules are imported. It works on
the sources as they are, so on the pure build; what is installed knows nothing of this. Lines that
are not there any more, or more than once, fail loudly.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Final

VARIABLE: Final = "AA_MUTATE"
LIST: Final = Path(__file__).with_name("planted.txt")
Edit = tuple[str, str, str]  # a module below headrace, what stands there, what is put in its place


class Bug:
    """One planted bug.

    Attributes:
        where: what it is in.
        scenarios: those that fail with it; none where ``worlds`` have to be looked at.
        worlds: within the first so many of them one fails.
        edits: what is changed.
    """

    def __init__(self, where: str, found_by: str) -> None:
        count = found_by.removesuffix(" worlds")
        self.where: Final = where
        self.scenarios: Final = [] if count.isdigit() else found_by.split()
        self.worlds: Final = int(count) if count.isdigit() else 0
        self.edits: Final[list[Edit]] = []


def read_bugs() -> dict[str, Bug]:
    """All bugs, by name."""
    bugs: dict[str, Bug] = {}
    for block in LIST.read_text().split("\n== ")[1:]:
        name, where, found_by, *lines = block.splitlines()
        bug = bugs[name] = Bug(
            where.strip().removeprefix("in "), found_by.strip().removeprefix("found by ")
        )
        for edit in "\n".join(lines).split("\n@ "):
            module, *lines = edit.removeprefix("@ ").splitlines()
            old = [line[1:] for line in lines if line.startswith("-")]
            new = [line[1:] for line in lines if line.startswith("+")]
            bug.edits.append((module, _text(old), _text(new)))
    return bugs


def _text(lines: list[str]) -> str:
    return "".join([f"{line}\n" for line in lines])


def changed(source: str, old: str, new: str) -> str:
    """A source with some of its lines changed."""
    assert source.count(old) == 1, f"there are {source.count(old)} places with these lines:\n{old}"
    return source.replace(old, new)


def plant(name: str) -> None:
    """Plant a bug in what is imported from now on."""
    assert not any(module.startswith("headrace.") for module in sys.modules)
    sys.meta_path.insert(0, _Planter(read_bugs()[name]))


def plant_asked() -> None:
    """Plant the bug that the environment names, if it names one."""
    name = os.environ.get(VARIABLE, "")
    if name:
        plant(name)


class _Planter(importlib.abc.MetaPathFinder):
    def __init__(self, bug: Bug) -> None:
        self._edits: Final[dict[str, list[tuple[str, str]]]] = {}
        for module, old, new in bug.edits:
            self._edits.setdefault("headrace." + module, []).append((old, new))

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        edits = self._edits.get(fullname)
        if edits is None:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        assert spec is not None
        origin = spec.origin or ""
        assert origin.endswith(".py"), f"{origin}: bugs are planted in the pure build"
        return importlib.util.spec_from_loader(fullname, _Loader(origin, edits))


class _Loader(importlib.abc.InspectLoader):
    def __init__(self, origin: str, edits: list[tuple[str, str]]) -> None:
        self._origin = origin
        self._edits = edits

    def get_source(self, fullname: str) -> str:
        source = Path(self._origin).read_text()
        for old, new in self._edits:
            source = changed(source, old, new)
        return source

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.get_source(fullname), self._origin, "exec")

    def is_package(self, fullname: str) -> bool:
        return False
