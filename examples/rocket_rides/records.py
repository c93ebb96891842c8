"""What goes through the log: rides, and corrections that consumers reset from."""

from __future__ import annotations

import decimal
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from enum import StrEnum
from typing import NamedTuple, Self

# Enough digits for any sum of distances; should it ever not be, it raises instead of rounding.
EXACT = decimal.Context(prec=2000, traps=[decimal.Inexact, decimal.InvalidOperation])
_ENTRY_ID = re.compile(r"(\d{1,20})-(\d{1,20})", re.ASCII)


class Way(StrEnum):
    """How a record that was sent twice is kept from counting twice."""

    CLASSIC = "classic"
    """The stream holds both copies. Consumers skip rides not above the last one they counted,
    and the streamer waits for open transactions, so that rides come in order."""

    IDMP = "idmp"
    """The stream refuses the second copy: the staged record's id is its idempotent id."""

    NAIVE = "naive"
    """As classic, without the waiting. It loses rides: for looking at, not for use."""


class EntryID(NamedTuple):
    """The ID of an entry of the stream. Compares as the stream does, which text would not."""

    ms: int
    seq: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises: ValueError when ``text`` is not ``ms-seq``."""
        match = _ENTRY_ID.fullmatch(text)
        if match is None:
            raise ValueError(f"not an entry ID: {text!r}")
        return cls(int(match[1]), int(match[2]))

    def __str__(self) -> str:
        return f"{self.ms}-{self.seq}"


START = EntryID(0, 0)


class Entry(NamedTuple):
    """One entry as it was read; ``fields`` is None when it was deleted while it was pending."""

    id: EntryID
    fields: Mapping[str, str] | None


class Ride(NamedTuple):
    """Somebody flew ``distance`` metres: the digits that the database shows, all of them."""

    id: int
    distance: Decimal


class Correction(NamedTuple):
    """All rides up to ``last_ride_id``, added up anew from the database."""

    total: Decimal
    ride_count: int
    last_ride_id: int


def understand(fields: Mapping[str, str] | None) -> Ride | Correction | None:
    """Return what an entry says; None when it is not ours or makes no sense."""
    if fields is None:
        return None
    try:
        match fields.get("object"), fields.get("action"):
            case "ride", "create":
                return Ride(int(fields["id"]), _finite(fields["distance"]))
            case "total", "correct":
                return Correction(
                    _finite(fields["total_distance"]),
                    int(fields["ride_count"]),
                    int(fields["last_ride_id"]),
                )
    except (KeyError, ValueError, decimal.InvalidOperation):
        pass
    return None


def _finite(text: str) -> Decimal:
    number = Decimal(text)
    if not number.is_finite():
        raise ValueError(f"{text} is no distance")
    return number


def exact_sum(distances: Iterable[Decimal]) -> Decimal:
    """The sum without any rounding, so that the order of adding does not matter."""
    total = Decimal(0)
    for distance in distances:
        total = EXACT.add(total, distance)
    return total
