"""The other regions: how each is reached, what has come from it, and when it is tried again.

The log gives, behind the reason, the remedy for a link that is of no use.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from typing import Final

from mypy_extensions import mypyc_attr

from headrace.regions.exchange.handshake import Hello
from headrace.regions.exchange.peer_connection import PeerConnection
from headrace.regions.exchange.pull import Puller, PullerStatistics
from headrace.server.config.kinds import PeerAddress
from headrace.server.state import Server
from headrace.storage.vectors import Numbers

log: Final = logging.getLogger("headrace")

_BY_CODE: Final = {
    "AASECRET": "Give both the same aa-secret",
    "NOAUTH": "That region has an aa-secret: give both the same",
    "AADATABASE": "One of the two belongs elsewhere: look at aa-peers and aa-database",
    "AAVERSION": "The link rests until then; nothing is lost",
    "AATWIN": (
        "Two servers are one region, or a copy of its folder runs besides. End one of them; it may "
        "come back with an empty folder and another aa-region-id"
    ),
    "AATLS": "Give both the same aa-tls, and certificates that each lets in",
    "AAFORGOTTEN": "Start that region with an empty folder, to let it take part again",
}
_BY_TEXT: Final = {
    "has to be upgraded": (
        "The link rests, and no data is passed over. It goes on when a later version is started"
    ),
    "cannot be applied": (
        "The link rests, and no data is passed over. Install the newer version of both in both; if "
        "they have it, keep a copy of both folders and report this"
    ),
    "address of the region that calls": "Give that region's own address there",
    "only another region may ask": "aa-peers has to name the aa-port of that region",
    "TLS: ": "Look at aa-tls and the certificates of both, and here at tls-expected-peer-name",
    "answers instead of region": "Look at aa-peers here, and at aa-region-id there",
    "aa-allow-plaintext": (
        "Turn aa-tls on, or allow plain text if the network between the two is protected otherwise"
    ),
}
_REFUSED_EVERY_MS: Final = 3_600_000
_MOST_REFUSED: Final = 1000  # hosts and reasons that are remembered
FIRST_DELAY_MS: Final = 100  # before a peer is tried again
MOST_DELAY_MS: Final = 2000
LOADING: Final = "LOADING "
ANSWERS: Final = "it answers"
REFUSED_DELAY_MS: Final = 5000  # where trying again will hardly mend it


def warn_refused(server: Server, host: str, reason: str) -> None:
    """Log that a region that called from a host was refused, the same once an hour."""
    told_ms = server.clients.refused_ms
    now_ms = server.clock.monotonic_ms()
    known = f"{host} {reason}"
    if known in told_ms and now_ms - told_ms[known] < _REFUSED_EVERY_MS:
        return
    if len(told_ms) >= _MOST_REFUSED:
        told_ms.clear()
    told_ms[known] = now_ms
    what_to_do = advice(reason)
    text = f"{reason}. {what_to_do}" if what_to_do else reason
    log.warning("Whoever called from %s at aa-port was refused: %s", host, text)


def advice(reason: str) -> str:
    """Return the remedy; empty where it will mend by itself, or the reason says all."""
    found = _BY_CODE.get(reason.partition(" ")[0], "")
    if found:
        return found
    for text, sentence in _BY_TEXT.items():
        if text in reason:
            return sentence
    return ""


@mypyc_attr(allow_interpreted_subclasses=True)
class Connector:
    """Makes connections, and has work done soon."""

    @abstractmethod
    def connect(self, address: PeerAddress, connection: PeerConnection) -> None:
        """Connect to a peer, and report to the connection what becomes of it."""

    @abstractmethod
    def apply_soon(self) -> None:
        """Have waiting records applied, after this turn of the event loop."""


class Peer:
    """One other region.

    Attributes:
        addresses: of all servers that may be it, one at a time; address: the one to connect to.
        paused: an operator has asked to leave it alone.
        connection: the connection that pulls in the background; None while there is none.
        probe: another one, which asks it once more for its members; mostly None.
        asked_ms: when the latest of these began.
        hello: how it has introduced itself last.
        known: what it has said last that it knows.
        failure: why it could not be reached, or was left; empty while all is well.
        refused: trying again will hardly mend that.
        behind: its log begins later than what is needed here: a full copy is.
        met_ms: when it answered last, of the monotonic clock; 0 for never.
        level_ms: when nothing of it was missing here last, or when this region has come to know it.
        copies: full copies that were taken from it; is_copied: one is being taken.
    """

    def __init__(self, region: int, addresses: list[PeerAddress], now_ms: int) -> None:
        self.region: Final = region
        self.addresses = addresses
        self.address = addresses[0]
        self.statistics: Final = PullerStatistics()
        self.paused = False
        self.connection: PeerConnection | None = None
        self.probe: PeerConnection | None = None
        self.asked_ms = 0
        self.hello: Hello | None = None
        self.known: Numbers = {}
        self.failure = ""
        self.refused = False
        self.behind = False
        self.met_ms = 0
        self.level_ms = now_ms
        self.since_ms: Final = now_ms  # known since then
        self.copies = 0
        self.is_copied = False
        self._delay_ms = FIRST_DELAY_MS
        self._next_ms = 0  # not to be tried before
        self._logged = ""  # the failure that was logged last
        self._in_vain = False  # the last connection has ended, and nothing has come since then
        self._records = 0  # that had come by then

    @property
    def state(self) -> bytes:
        """State as INFO shows it."""
        connection = self.connection
        if self.paused:
            return b"paused"
        if self.is_copied:
            return b"copying"
        if connection is not None and connection.is_up:
            return b"up"
        if self.behind:
            return b"behind"
        if self.refused:
            return b"refused: " + self.failure.encode()
        return b"down"

    @property
    def puller(self) -> Puller | None:
        """The puller of its connection; None where there is none."""
        return None if self.connection is None else pulling(self.connection)

    def missing(self, known: Numbers) -> int:
        """Return how many of the records that it knows are not among these."""
        return sum([max(0, self.known[each] - known.get(each, 0)) for each in self.known])

    def is_due(self, now_ms: int) -> bool:
        """Return whether to connect to it now."""
        if self.connection is not None or self.paused or self.is_copied:
            return False
        return now_ms >= self._next_ms

    def is_silent(self, now_ms: int, after_ms: int) -> bool:
        """Return whether it has not answered for so long."""
        if self.connection is not None and self.connection.is_up:
            return now_ms - self.connection.heard_ms >= after_ms
        return now_ms - max(self.met_ms, self.since_ms) >= after_ms

    def try_now(self) -> None:
        """Make it due now."""
        self._delay_ms = FIRST_DELAY_MS
        self._next_ms = 0

    def moved(self, connection: PeerConnection, now_ms: int) -> None:
        """Take note of the progress or end of a connection with it."""
        client = connection.client
        if connection is self.probe:
            if client.hello is not None and self.hello is not None:
                self.hello.members = client.hello.members
            return
        if client.hello is not None:
            self.hello = client.hello
            self.known = client.known
            self.met_ms = connection.heard_ms
        puller = pulling(connection)
        if puller is not None and puller.is_level:
            self.level_ms = now_ms
        if connection is not self.connection:
            return
        if connection.is_up:
            if (self.refused or self.behind) and not (puller is not None and puller.is_level):
                return  # it has answered before, and then it was of no use
            if self._in_vain and puller is not None and not self._is_of_use(puller):
                return
            self._in_vain = False
            if self._logged != ANSWERS:
                log.info("Region %d answers", self.region)
            self._logged = ANSWERS
            self.failure = ""
            self.refused = False
            self.behind = False
            self._delay_ms = FIRST_DELAY_MS
        elif connection.over:
            self.connection = None
            self._lost(connection, now_ms)

    def _is_of_use(self, puller: Puller) -> bool:
        """Return whether more has come of it than an introduction, or nothing more is wanted."""
        return puller.is_level or puller.resting or self.statistics.records > self._records

    def _lost(self, connection: PeerConnection, now_ms: int) -> None:
        puller = connection.client
        if isinstance(puller, Puller) and puller.anew:
            self.try_now()
            return
        self._in_vain = True
        self._records = self.statistics.records
        self.failure = connection.reason
        self.refused = puller.refused
        self.behind = puller.behind
        delay_ms = REFUSED_DELAY_MS if puller.refused or puller.behind else self._delay_ms
        self._next_ms = now_ms + delay_ms
        self._delay_ms = min(2 * self._delay_ms, MOST_DELAY_MS)
        if self.paused or connection.reason.startswith(LOADING):
            return  # it will be over in a moment
        if connection.reason != self._logged:
            self._logged = connection.reason
            what_to_do = advice(connection.reason)
            if what_to_do:
                log.warning("Region %d: %s. %s", self.region, connection.reason, what_to_do)
            else:
                log.warning("Region %d: %s", self.region, connection.reason)

    def turn(self, connection: PeerConnection) -> None:
        """Try its next address, because a connection to the present one was of no use."""
        if connection.address == self.address:
            at = self.addresses.index(self.address)
            self.address = self.addresses[(at + 1) % len(self.addresses)]

    def leave(self) -> None:
        """End the connection with it, if there is one."""
        connection = self.connection
        self.connection = None  # so that its end is no failure
        if connection is not None:
            connection.end("it is left alone")
        self.end_probe()

    def end_probe(self) -> None:
        """End the probe: it has been asked, or need not be."""
        probe = self.probe
        self.probe = None
        if probe is not None:
            probe.end("it has been asked")


def pulling(connection: PeerConnection) -> Puller | None:
    """Return the puller of a connection; None where something else is asked for."""
    client = connection.client
    return client if isinstance(client, Puller) else None
