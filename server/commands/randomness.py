"""Where commands take their random numbers from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.random import randrange
from mypy_extensions import i64

if TYPE_CHECKING:
    from random import Random

_GENERATORS: Final[list[Random]] = []  # one, as soon as somebody asks
LOOK_EVERY: Final = 1024  # elements by chance, between two looks how long the reply has become
_SEEDS: Final[i64] = 0x2000000000000000  # 1 << SEED_BITS


def generator() -> Random:
    """The same for all commands."""
    if not _GENERATORS:
        import random  # late: few ask

        _GENERATORS.append(random.Random())
    return _GENERATORS[0]


def random_bits() -> i64:
    """SEED_BITS that nobody can foresee, in less time than ``generator`` takes."""
    return randrange(_SEEDS)
