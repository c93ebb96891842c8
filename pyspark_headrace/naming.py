"""A source that says in Spark's plans and on its web page which streams it is, and where.

Spark shows a data source in Python by the name it is registered under, and asks it for no other
description. So ``describe`` registers the source once more, under a name that says more.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import count
from typing import TYPE_CHECKING, Final

from pyspark.errors import AnalysisException

from pyspark_headrace.connection import connection_from
from pyspark_headrace.given import READ, STREAM, WRITE, Given
from pyspark_headrace.sessions import register
from pyspark_headrace.source import HeadraceSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ADDRESS: Final = ("redis.url", "host", "port", "db", "username", "tls", "sentinels")
MOST_LETTERS: Final = 48  # of the names of streams


def describe(spark: SparkSession, options: Mapping[str, str]) -> str:
    """Register the source as ``headrace: rides at localhost:6379``.

    Args:
        options: those of the reader or the writer.

    Returns:
        That name, which ``format`` takes instead of ``headrace``.

    Raises:
        OptionError: an option is unknown, or no connection can be made of them.
    """
    text = f"{HeadraceSource.name()}: {title(_with_configured(spark, options))}"
    for number in count(1):
        name = text if number == 1 else f"{text} ({number})"
        try:
            register(spark, _named(name))
        except AnalysisException as error:
            # Another session has it, and its source may have been given another password.
            if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
                raise
        else:
            return name
    raise AssertionError("there is always another number, or an error")


def _named(text: str) -> type[HeadraceSource]:
    class Described(HeadraceSource):
        @classmethod
        def name(cls) -> str:
            return text

    return Described


def _with_configured(spark: SparkSession, options: Mapping[str, str]) -> Mapping[str, str]:
    """The options, and the address that the session is configured with where they have none."""
    if any(name.lower() in _ADDRESS for name in options):
        return options
    url = spark.conf.get("spark.headrace.url", None)
    return options if url is None else {**options, "redis.url": url}


def title(options: Mapping[str, str]) -> str:
    """Which streams options lead to, and the server; neither a user nor a secret.

    Raises:
        OptionError: an option is unknown, or no connection can be made of them.
    """
    given = Given(options, READ, STREAM, WRITE)
    where = connection_from(given).label
    streams = _streams(given)
    return f"{streams} at {where}" if streams else where


def _streams(given: Given) -> str:
    for option in ("subscribePattern", "stream", "path", "subscribe"):
        text = given.text(option)
        if text is not None:
            return _shortened([name.strip() for name in text.split(",")])
    if given.has("assign"):
        return _shortened(sorted(given.json_object("assign")))
    if given.has("paths"):
        return _shortened(json.loads(given.text("paths") or "[]"))
    return ""  # a sink's, in a column


def _shortened(names: list[str]) -> str:
    """As many names as there is room for, one at least, and how many more there are."""
    shown = [_cut(names[0])]
    for name in names[1:]:
        if len(", ".join([*shown, name])) > MOST_LETTERS:
            break
        shown.append(name)
    left = len(names) - len(shown)
    return ", ".join(shown) + (f" and {left:,} more" if left else "")


def _cut(name: str) -> str:
    return name if len(name) <= MOST_LETTERS else f"{name[: MOST_LETTERS - 1]}…"
