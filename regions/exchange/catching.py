"""A region that does not know yet all that the others do takes no writes.

That stands in the nonce of its epoch, and so in the first line of the file that the epoch begins
with: a start later on finds it there. ``AA CAUGHT nonce`` in the file says that it is over. The
nonce also says in which epoch the folder of the region was empty (``regions.knowledge.region``).

A region whose files are of an earlier time may be given a copy, which replaces what is here. Then
the base that is written says so, with a nonce that ends as that of a region which joins the others.
"""

from __future__ import annotations

import os
from typing import Final

from headrace.compat.errors import AASTART, AASYNCING
from headrace.regions.exchange.effects import EffectError, Words, local, region_of
from headrace.regions.knowledge.region import NONCE_ENDS, Region
from headrace.server.state import Server
from headrace.storage.sharing import AA
from headrace.storage.vectors import Numbers, covers
from headrace.storage.vectors import region_of as number_of

NONCE_BYTES: Final = 8
_ENDS: Final = {b"s": AASTART, b"j": AASYNCING}  # of nonces
_CAUGHT: Final = b"CAUGHT"


def new_nonce(refusal: bytes, begun: int) -> bytes:
    """The nonce of an epoch.

    Args:
        refusal: why it begins without taking writes; empty where it takes them.
        begun: the epoch in which the folder was empty.
    """
    nonce = b"%b.%d" % (os.urandom(NONCE_BYTES).hex().encode(), begun)
    for end, line in _ENDS.items():
        if line == refusal:
            return nonce + end
    return nonce


def refusal_of(region: Region) -> bytes:
    """Why a region takes no writes, as its files have it; empty where it does."""
    if region.nonce == region.caught:
        return b""
    if region.caught == replaced_nonce(region):
        return AASYNCING
    return _ENDS.get(region.nonce[-1:], b"")


def replaced_nonce(region: Region) -> bytes:
    """With what a region has caught up, once a copy has replaced what its files hold."""
    return region.nonce.rstrip(NONCE_ENDS) + b"j"


@local(_CAUGHT)
def apply_caught(server: Server, words: Words) -> None:
    """``AA CAUGHT nonce``: all is here that the others knew when the epoch began."""
    if len(words) != 3:
        raise EffectError("CAUGHT has a nonce")
    region_of(server).caught = words[2]


def safe_generation(region: Region) -> int:
    """A generation that no earlier life of a region has had, as far as is known.

    Each generation began with an epoch of its own.
    """
    lives = [origin for origin in region.numbers if number_of(origin) == region.id]
    return max(region.generation, len(lives))


def note_caught(server: Server) -> None:
    """All is here; another start need not ask for it again. The caller ends the command."""
    region = region_of(server)
    region.caught = region.nonce
    server.changes.record(0, [AA, _CAUGHT, region.nonce])


class Catching:
    """What a region still has to learn before it takes writes.

    Attributes:
        refusal: the error line meanwhile.
    """

    def __init__(self, region: Region, refusal: bytes) -> None:
        self.refusal = refusal
        self._region: Final = region
        self._wanted: Final[dict[int, Numbers]] = {}  # what each of the others knew
        self._also = 0  # who is to be caught up with, member or not

    def heard(self, member: int, numbers: Numbers) -> None:
        """Another region has said what it knows.

        The first time since the start counts, but for what it has lost itself since then: nobody
        can be asked to know again what is nowhere any more.
        """
        wanted = self._wanted.setdefault(member, numbers.copy())
        for origin in wanted:
            wanted[origin] = min(wanted[origin], numbers.get(origin, 0))

    def outdone(self, member: int, numbers: Numbers) -> None:
        """Another region knows more of this one, be it that it has no place among its members."""
        self._also = member
        self.heard(member, numbers)

    def lacking(self) -> list[int]:
        """The other regions of which something is missing, or that have not been heard."""
        region = self._region
        known = region.known()
        found: list[int] = []
        members = {*region.members(), self._also} - {region.id, 0}
        for member in sorted(members):
            if region.is_forgotten(member):
                continue
            wanted = self._wanted.get(member)
            if wanted is None or not _has_all(known, wanted):
                found.append(member)
        return found


def _has_all(known: Numbers, wanted: Numbers) -> bool:
    return all(covers(known, (origin, number)) for origin, number in wanted.items())
