"""Scripts and libraries of functions on which our server and the real one agree."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_HERE: Final = Path(__file__).parent
_BETWEEN: Final = "\n----\n"


def evaluated() -> list[str]:
    """Scripts for EVAL with two keys and two arguments, in an order in which they work."""
    return _parts("evaluated.lua")


def escapes() -> list[str]:
    """Scripts for EVAL that try to break out, to break others or to bring the server down."""
    return _parts("escapes.lua")


def libraries() -> list[str]:
    """Return what FUNCTION LOAD takes and refuses; the first has the functions f1 to f12."""
    return _parts("libraries.lua")


def _parts(name: str) -> list[str]:
    return (_HERE / name).read_text().removesuffix("\n").split(_BETWEEN)
