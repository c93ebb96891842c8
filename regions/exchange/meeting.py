"""Whom a region has met stands in its file.

Two lives of a region may have taken the same epoch. Their nonces tell them apart, so a region keeps
the nonces that it has met over a restart: nobody else can say that a number was given twice. It
also keeps which version each region speaks, because one that is down cannot be asked.
"""

from __future__ import annotations

from typing import Final

from headrace.compat.numbers import parse_integer
from headrace.regions.exchange.effects import EffectError, Words, local, region_of
from headrace.regions.knowledge.records import LOWEST_VERSION
from headrace.server.state import Server
from headrace.storage.sharing import AA
from headrace.storage.vectors import check_origin
from headrace.storage.vectors import region_of as number_of

_MET: Final = b"MET"


def keep_met(server: Server) -> None:
    """Record whom this region has met since the last time; the caller ends the command."""
    region = region_of(server)
    for origin in region.unkept:
        version = b"%d" % region.versions.get(number_of(origin), LOWEST_VERSION)
        server.changes.record(0, [AA, _MET, origin, region.nonces[origin], version])
    region.unkept.clear()


@local(_MET)
def apply_met(server: Server, words: Words) -> None:
    """``AA MET origin nonce version``: another region has introduced itself."""
    version = parse_integer(words[4]) if len(words) == 5 else None
    if version is None or not words[3]:
        raise EffectError("MET has an origin, a nonce and a version")
    region = region_of(server)
    origin = check_origin(words[2])
    region.nonces[origin] = words[3]
    region.versions[number_of(origin)] = version
