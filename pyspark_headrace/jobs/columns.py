"""Columns by name or by SQL, and numbers that add up exactly."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

# Doubles add up differently in every order. Digits do not; these are enough for any double that
# people count in, and for sums up to 10^20.
EXACT: Final = "decimal(38,18)"
_NAME: Final = re.compile(r"[A-Za-z_]\w*")


def column_of(frame: DataFrame, text: str) -> Column:
    """A field of the entries, something about them, or any SQL over the frame's columns.

    ``rider`` is the field of that name, ``_key`` the stream, ``_timestamp`` the time, as in schemas
    of the source's. In a frame without ``fields`` a name is a column.
    """
    if not _NAME.fullmatch(text):
        return F.expr(text)
    if text[0] == "_" and text[1:] in frame.columns:
        return F.col(text[1:])
    return F.col("fields")[text] if "fields" in frame.columns else F.col(text)


def exact(column: Column) -> Column:
    """A column as a number whose sum does not depend on the order."""
    return column.cast(EXACT)


def plain(column: Column) -> Column:
    """An exact number as text, without zeros behind the last digit that counts."""
    text = column.cast("string")
    return F.regexp_replace(F.regexp_replace(text, r"(\.\d*?)0+$", "$1"), r"\.$", "")


def id_text(pair: Column) -> Column:
    """The text of an ID from a struct of ``id_ms`` and ``id_seq``."""
    return F.concat_ws("-", pair["id_ms"].cast("string"), pair["id_seq"].cast("string"))


def id_pair() -> Column:
    """An ID as something that compares as IDs do, which their text does not."""
    return F.struct("id_ms", "id_seq")


def named(frame: DataFrame, texts: Sequence[str]) -> list[Column]:
    """Columns to group by, each under a name of its own: ``SQL AS name``, or a plain name."""
    found: list[Column] = []
    for number, text in enumerate(texts):
        body, _, name = text.rpartition(" AS ")
        if not body:
            body, name = text, text.strip("_") if _NAME.fullmatch(text) else f"by{number + 1}"
        found.append(column_of(frame, body).alias(name))
    return found
