"""The documentation of every command, by its lower-case name (``container|subcommand``).

It is large and seldom asked for, so a family only says which module holds that of its commands.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from headrace.compat.doc_notation import Doc

_MODULES: Final[list[str]] = []
_DOCS: Final[dict[str, Doc]] = {}


def documented_in(module: str) -> None:
    """Declare where the commands of a family are documented: in ``DOCS`` of this module."""
    _MODULES.append(module)


def documentation() -> dict[str, Doc]:
    """That of all families that have been imported."""
    while _MODULES:
        _DOCS.update(import_module(_MODULES.pop()).DOCS)
    return _DOCS
