"""Where commands take their random numbers from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from random import Random

_GENERATORS: Final[list[Random]] = []  # one, as soon as somebody asks


def generator() -> Random:
    """The same for all commands."""
    if not _GENERATORS:
        import random  # late: few ask

        _GENERATORS.append(random.Random())
    return _GENERATORS[0]
