"""Headrace, and any Redis from 7.0 on, as a Spark data source named ``headrace``.

Spark finds it by itself: it imports every installed module whose name starts with ``pyspark_`` and
registers its ``DefaultSource``. So ``spark.readStream.format("headrace")`` needs no registration.

What a job imports by name: ``session`` (a Spark session set up for this source), ``describe`` (a
name for plans), ``LagListener`` and ``lags_in`` (how far a query is behind), and the functions of
``pyspark_headrace.jobs``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark_headrace.listener import LagListener, lags_in
    from pyspark_headrace.naming import describe
    from pyspark_headrace.sessions import register, session
    from pyspark_headrace.source import HeadraceSource as DefaultSource

__version__ = "0.2.0"  # the server's, from the same checkout
__all__ = ["DefaultSource", "LagListener", "describe", "lags_in", "register", "session"]

_HOMES: Final = {
    "DefaultSource": ("source", "HeadraceSource"),
    "LagListener": ("listener", "LagListener"),
    "describe": ("naming", "describe"),
    "lags_in": ("listener", "lags_in"),
    "register": ("sessions", "register"),
    "session": ("sessions", "session"),
}


def __getattr__(name: str) -> Any:
    # Spark imports this module in short-lived processes: what they do not need waits.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _HOMES[name]
    return getattr(import_module(f"{__name__}.{module}"), attribute)
