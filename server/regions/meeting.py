"""Whom a region has met stands in its file.

Two lives of a region that took the same epoch are told apart by their nonces. So what others have
met must outlast a restart: nobody else can say that a number was given twice.
"""

from __future__ import annotations

from typing import Final

from headrace.server.regions.effects import EffectError, Words, local, region_of
from headrace.server.state import Server
from headrace.storage.regions.records import AA
from headrace.storage.regions.vectors import check_origin

_MET: Final = b"MET"


def keep_met(server: Server) -> None:
    """Record whom this region has met since the last time; the caller ends the command."""
    region = region_of(server)
    for origin in region.unkept:
        server.changes.record(0, [AA, _MET, origin, region.nonces[origin]])
    region.unkept.clear()


@local(_MET)
def apply_met(server: Server, words: Words) -> None:
    """``AA MET origin nonce``: another region has introduced itself."""
    if len(words) != 4 or not words[3]:
        raise EffectError("MET has an origin and a nonce")
    region_of(server).nonces[check_origin(words[2])] = words[3]
