"""How many different elements the registers of a HyperLogLog have seen.

Source: O. Ertl, "New cardinality estimation algorithms for HyperLogLog sketches", arXiv 1702.01284.
"""

from __future__ import annotations

import math
from typing import Final

from librt.vecs import append, vec
from mypy_extensions import i64

from headrace.storage.string.hyperloglog.hashing import LONGEST_RUN, REGISTERS

_ALPHA: Final = 0.721347520444481703680  # 0.5 / ln(2)
_NO_NUMBER: Final = -(2**63)  # what C makes of an infinite one
_COUNTS: Final = 64


def estimate(registers: vec[i64]) -> int:
    """The number of elements; the least 64-bit number where registers are all at their highest."""
    return from_histogram(_histogram(registers))


def _histogram(registers: vec[i64]) -> vec[i64]:
    found = vec[i64]()
    for _ in range(_COUNTS):
        found = append(found, 0)
    at: i64 = 0
    while at < REGISTERS:
        found[registers[at]] += 1
        at += 1
    return found


def from_histogram(found: vec[i64]) -> int:
    """As ``estimate``, from how many registers hold each count."""
    total = float(REGISTERS)
    mean = total * _tau((total - int(found[LONGEST_RUN])) / total)
    for count in range(LONGEST_RUN - 1, 0, -1):
        mean += int(found[count])
        mean *= 0.5
    mean += total * _sigma(int(found[0]) / total)
    if mean == 0.0:
        return _NO_NUMBER
    exact = _ALPHA * total * total / mean
    whole = math.floor(exact)
    return whole + 1 if exact - whole >= 0.5 else whole


def _sigma(share: float) -> float:
    if share == 1.0:
        return math.inf
    factor = 1.0
    total = share
    before = -1.0
    while before != total:
        share *= share
        before = total
        total += share * factor
        factor += factor
    return total


def _tau(share: float) -> float:
    if share in (0.0, 1.0):
        return 0.0
    factor = 1.0
    total = 1.0 - share
    before = -1.0
    while before != total:
        share = math.sqrt(share)
        before = total
        factor *= 0.5
        total -= math.pow(1.0 - share, 2.0) * factor
    return total / 3.0
