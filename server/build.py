"""Which build this is: our version, the Redis we match, compiled or not."""

from __future__ import annotations

import sys
from types import FunctionType
from typing import Final

from headrace import __version__
from headrace.protocol import replies

VERSION: Final = __version__
REDIS_VERSION: Final = "8.10.2"  # the Redis whose behaviour we claim
PYTHON_VERSION: Final = sys.version.partition(" ")[0]


def build_kind() -> str:
    """Return ``"compiled"`` when mypyc built the modules that run, otherwise ``"pure"``."""
    # A compiled function is a C function. ``__file__`` would not show a ``.py`` in its place.
    encode: object = replies.encode
    return "pure" if isinstance(encode, FunctionType) else "compiled"
