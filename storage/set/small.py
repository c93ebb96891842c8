"""The small form of a set that has strings: one ``bytes``, in the order in which they came.

::

    number of members, i16 | members, packed
"""

from __future__ import annotations

from typing import Final

from librt.strings import read_i16_le
from mypy_extensions import i64

from headrace.storage.collection import SmallLimits
from headrace.storage.packed.strings import header, is_sound, next_at, unpack


class SetLimits(SmallLimits):
    """The limits of other types, and the most ``integers`` of a set of integers alone."""

    def __init__(self, integers: i64, elements: i64, element_bytes: i64) -> None:
        super().__init__(elements, element_bytes)
        self.integers: Final[i64] = integers


HEAD: Final[i64] = 2  # where the members begin
MOST: Final[i64] = 2**15 - 1  # members, whatever the limits are
NO_MEMBERS: Final = b"\0\0"
_COUNTS: Final = [number.to_bytes(2, "little") for number in range(513)]


def count_of(small: bytes) -> i64:
    """Return how many members there are."""
    return i64(read_i16_le(small, 0))


def small_of(members: bytes, count: i64) -> bytes:
    """Return the small form of ``count`` packed members."""
    return _head(count) + members


def with_member(small: bytes, member: bytes) -> bytes:
    """Return it with a member that was not there, behind all others."""
    head = _head(count_of(small) + 1)
    return b"%b%b%b%b\r\n" % (head, small[HEAD:], header(len(member)), member)


def without(small: bytes, place: i64) -> bytes:
    """Return it without the member at a place."""
    head = _head(count_of(small) - 1)
    return b"%b%b%b" % (head, small[HEAD:place], small[next_at(small, place) :])


def flaw_of(small: bytes) -> str:
    """Return what is wrong with untrusted bytes, at least two; empty if nothing is."""
    members = small[HEAD:]
    if not is_sound(members):
        return "members that cannot be read"
    found = unpack(members)
    if len(found) != count_of(small):
        return "members that are not counted right"
    return "" if len(set(found)) == len(found) else "a member that is there twice"


def _head(count: i64) -> bytes:
    return _COUNTS[count] if count < 513 else int(count).to_bytes(2, "little")
