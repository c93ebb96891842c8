"""Waiting for records: all that the others had at a moment, or all that a token stands for."""

from __future__ import annotations

from typing import Final, NamedTuple

from headrace.protocol.replies import Map
from headrace.regions.exchange.peer_connection import PeerConnection
from headrace.regions.knowledge.region import Region
from headrace.server.clients.session import Session
from headrace.server.waiting import Parked
from headrace.storage.vectors import Numbers

LEVEL: Final = b"level"
LATE: Final = b"late"


class Wait(NamedTuple):
    """A client that waits until some records are here."""

    session: Session
    parked: Parked
    numbers: Numbers


class Sync:
    """A client that waits until all is here that each peer had when it was asked.

    ``connections``, by region, are for this alone, so that nothing holds them up, and they go on
    while the links are paused.
    """

    def __init__(self, session: Session, asked_ms: int, deadline_ms: int) -> None:
        self.session: Final = session
        self.asked_ms: Final = asked_ms
        self.deadline_ms: Final = deadline_ms
        self.parked: Parked | None = None
        self.connections: Final[dict[int, PeerConnection]] = {}

    def level(self, region: Region) -> list[int]:
        """Return the peers that have been caught up with."""
        found = self.connections.items()
        return [number for number, each in found if outcome_of(each, region) == LEVEL]

    def is_done(self, region: Region, is_caught: bool) -> bool:
        """Return whether all peers that can be reached have been caught up with.

        ``is_caught``: this region knows enough to take writes; where it does not, with all peers
        caught up with, that is a matter of a moment.
        """
        if not all(outcome_of(each, region) for each in self.connections.values()):
            return False
        return is_caught or len(self.level(region)) < len(self.connections)

    def reply(self, region: Region, is_caught: bool) -> Map:
        """Return the answer for the client: what has become of each peer."""
        found = {number: outcome_of(each, region) for number, each in self.connections.items()}
        if not is_caught and all(outcome == LEVEL for outcome in found.values()):
            found = dict.fromkeys(found, b"")
        pairs: list[tuple[object, object]] = []
        for number, outcome in found.items():
            pairs.append((b"%d" % number, outcome or LATE))
        return Map(pairs)

    def end(self) -> None:
        """End the connections."""
        for connection in self.connections.values():
            connection.end("it is over")


def outcome_of(connection: PeerConnection, region: Region) -> bytes:
    """Return ``level``, or why the peer could not be asked; empty while that is not known."""
    hello = connection.client.hello
    if hello is not None:
        for origin, number in hello.numbers.items():
            if region.number_of(origin) < number:
                break
        else:
            return LEVEL
    return connection.reason.encode() if connection.over else b""
