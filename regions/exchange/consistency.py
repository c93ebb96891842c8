"""Regions compare their data, all the time, to notice a bug before it does harm.

Regions that know the same records have the same state. So a region at the end of its log now and
then adds a key and its fingerprint to its answer. The region that has asked compares it with its
own, if both know exactly the same at that moment; else nothing can be said, and nothing is. Of long
values the newest parts are compared, because the event loop must not stand still for this.
"""

from __future__ import annotations

import logging
from typing import Final

from headrace.persistence.errors import shown
from headrace.regions.exchange.effects import region_of, replication
from headrace.server.gate import HALF_JOINED
from headrace.server.state import Server
from headrace.storage.sharing import Replicated
from headrace.storage.vectors import Numbers

log: Final = logging.getLogger("headrace")

NEWEST: Final = 200  # entries that are compared of each lane
_KEYS_LOOKED_AT: Final = 100  # in search of one that is shared
_BEATS: Final = 10  # between two fingerprints that are sent

Check = tuple[bytes, bytes]  # a key, and its fingerprint


class ConsistencyChecks:
    """The fingerprints that this region sends and receives.

    Attributes:
        made: how many fingerprints of others were compared.
        mismatches: how many of these differed.
        key: the last one that did.
    """

    def __init__(self, server: Server) -> None:
        self.made = 0
        self.mismatches = 0
        self.key = b""
        self._server: Final = server
        self._next_ms: Final[dict[int, int]] = {}  # when each peer is sent one; monotonic
        self._places: Final[dict[int, int]] = {}  # of the key that was looked at last for it

    def next_for(self, peer: int, given_away: Numbers) -> list[object]:
        """Return the addition to an answer that says up to where the log goes; mostly nothing.

        ``peer`` is the region that is answered, ``given_away`` what the answer says is known here.
        """
        server = self._server
        now_ms = server.clock.monotonic_ms()
        is_half = server.gate.reasons & HALF_JOINED
        if (
            is_half
            or now_ms < self._next_ms.get(peer, 0)
            or given_away != region_of(server).known()
        ):
            return []
        self._next_ms[peer] = now_ms + _BEATS * server.config.aa_beat_ms
        db = server.data.dbs[0]
        for _ in range(min(len(db), _KEYS_LOOKED_AT)):
            place = self._places[peer] = (self._places.get(peer, 0) + 1) % len(db)
            entry = db.at(place)
            if isinstance(entry.value, Replicated):
                return [entry.key, replication().fingerprint(entry.value, NEWEST)]
        return []

    def heard(self, peer: int, known: Numbers, check: Check) -> None:
        """Compare the fingerprint of a peer that knows ``known``, once its records are applied."""
        server = self._server
        key, theirs = check
        if server.gate.reasons & HALF_JOINED or known != region_of(server).known():
            return
        found = server.data.dbs[0].peek(key)
        value = None if found is None else found.value
        ours = replication().fingerprint(value, NEWEST) if isinstance(value, Replicated) else b""
        self.made += 1
        if ours == theirs:
            return
        self.mismatches += 1
        self.key = key
        log.error(
            "Region %d: the stream %s is not the same there and here, although both know the same "
            "changes. That must never be. Keep a copy of both folders, and compare what "
            "AA STREAM says of it in both regions",
            peer,
            shown(key),
        )
