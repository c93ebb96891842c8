"""One connection to a peer, from the side that asks: requests out, replies in, and silence noticed.

``PeerClient`` asks, up to the point where both know the other. A subclass decides what is asked
then, and handles the answers. A link carries it: a socket (``sockets``), or a test's own.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Final

from mypy_extensions import mypyc_attr

from headrace.compat import errors
from headrace.protocol.client import BadReply, ReplyError, ReplyReader, request
from headrace.regions.exchange.handshake import (
    BadHello,
    Hello,
    answering_code,
    asking_code,
    hello_words,
    is_nonce,
    new_nonce,
    read_reply,
    refusal,
    same,
)
from headrace.regions.files.pieces import PULL_BYTES, Piece
from headrace.regions.knowledge.region import Region
from headrace.server.config.kinds import PeerAddress
from headrace.server.links.link import Link
from headrace.storage.vectors import Numbers

AA: Final = b"AA"

# Errors of a peer that pass. AAAHEAD is one of them: a peer that has lost something begins another
# epoch.
_PASSING: Final = (b"LOADING", b"AANOLOG", b"AANOBASE", b"AANOCOPY", b"AAAHEAD")

# How requests of many words are refused at a port where the secret has to be shown first.
_UNPROVEN: Final = b"unauthenticated multibulk length"

# How far it has come
STARTING: Final = 0
CHALLENGED: Final = 1
PROVING: Final = 2
GREETING: Final = 3
MET: Final = 4
OVER: Final = 5
SILENCE_MAX_MS: Final = 5000  # after which the other side is taken for gone: it beats each second


@mypyc_attr(allow_interpreted_subclasses=True)
class Provider:
    """The connection that has offered a piece of records."""

    def consumed(self, piece: Piece) -> None:
        """Note that the piece has been applied, and room is there for another one."""

    def spoiled(self, reason: str) -> None:
        """Note that a record of the piece cannot be applied, nor those behind it."""

    def dropped(self, reason: str) -> None:
        """Note that the piece is not applied; another connection may bring it again."""

    def is_outlived(self) -> bool:
        """Return whether it gives records of a life of a region that is known to be over."""
        return False


@mypyc_attr(allow_interpreted_subclasses=True)
class PeerClient(Provider):
    """Asks one peer over one connection.

    The owner sends ``out`` and empties it, passes each reply to ``received``, and closes the
    connection once ``failure`` is set.

    Attributes:
        peer_region: the region expected at the other side.
        state: of the constants above.
        hello: of the side that answers; None so far.
        known: what the peer has said last that it knows.
        failure: why the connection is of no use; empty while it is.
        refused: an error of the peer, or a reason to refuse it, that trying again does not mend.
        behind: the peer's log begins later than what is needed.
        ahead: the peer knows more of this region than the region does itself.
        twin: the peer has met another server that is this region in the same epoch.
        rival: the peer is being asked by another server that is this region.
        forgotten: up to which epoch the peer has forgotten this region; -1: it has not said so.
    """

    def __init__(self, region: Region, peer_region: int, secret: bytes) -> None:
        self.out: list[list[bytes]] = []
        self.state = STARTING
        self.hello: Hello | None = None
        self.known: Numbers = {}
        self.failure = ""
        self.refused = False
        self.behind = False
        self.ahead = False
        self.twin = False
        self.rival = False
        self.forgotten = -1
        self.peer_region: Final = peer_region
        self._region: Final = region
        self._secret: Final = secret
        self._nonce = b""
        self._peer_nonce = b""

    # As a provider

    def is_outlived(self) -> bool:
        hello = self.hello
        if hello is None:
            return False
        return self._region.has_outlived(hello.region, hello.epoch, hello.begun)

    # For subclasses

    @abstractmethod
    def begin(self) -> None:
        """Send the first request, because both know each other."""

    @abstractmethod
    def answered(self, reply: object) -> None:
        """Take the answer to the oldest unanswered request since then."""

    # For the owner

    def connected(self) -> None:
        """Begin with the challenge or the introduction."""
        if self._secret:
            self._nonce = new_nonce()
            self.state = CHALLENGED
            self.out.append([AA, b"AUTH", self._nonce])
        else:
            self._greet()

    def received(self, reply: object) -> None:
        """Take the reply to the oldest request that is not answered."""
        if self.state == OVER:
            return
        if isinstance(reply, ReplyError):
            self._refused(reply.line)
        elif self.state == CHALLENGED:
            self._prove(reply)
        elif self.state == PROVING:
            self._check(reply)
        elif self.state == GREETING:
            self._met(reply)
        elif self.state == MET:
            self.answered(reply)
        else:
            self.fail("a reply came that was not asked for")

    def fail(self, reason: str) -> None:
        """Give the connection up."""
        if self.state != OVER:
            self.state = OVER
            self.failure = reason

    def damaged(self, reason: str) -> None:
        """Give the connection up, because of something that no region sends."""
        self.fail(reason)

    # Steps

    def _greet(self) -> None:
        self.state = GREETING
        region = self._region
        words = hello_words(region, region.known())
        if region.process:
            words.append(region.process)
        self.out.append([AA, b"HELLO", *words])

    def _prove(self, reply: object) -> None:
        if not isinstance(reply, bytes) or not is_nonce(reply):
            self.damaged("the challenge of the peer is none")
            return
        self._peer_nonce = reply
        self.state = PROVING
        code = asking_code(self._secret, self._nonce, reply)
        self.out.append([AA, b"AUTH", b"PROOF", code])

    def _check(self, reply: object) -> None:
        expected = answering_code(self._secret, self._nonce, self._peer_nonce)
        if not isinstance(reply, bytes) or not same(reply, expected):
            self.refused = True
            self.fail("the peer has not shown that it has the secret (aa-secret)")
            return
        self._greet()

    def _met(self, reply: object) -> None:
        region = self._region
        try:
            hello = read_reply(reply)
        except BadHello as error:
            self.damaged(f"the peer does not introduce itself: {error}")
            return
        line = refusal(region, hello, 0, False)
        if not line and hello.region != self.peer_region:
            line = b"region %d answers instead of region %d" % (hello.region, self.peer_region)
        if not line and hello.remembered and region.nonce not in (b"", hello.remembered):
            line = errors.aa_twin(region.origin)
            self.twin = True
        if line:
            self.refused = True
            self.fail(line.decode("utf-8", "replace"))
            return
        region.meet(hello.region, hello.begun)
        self.known = hello.numbers
        if region.is_outdone(hello.numbers):
            self.ahead = True
            self.fail("the peer knows more of this region than it does itself")
            return
        region.note_met(hello.origin, hello.nonce, hello.version)
        self.hello = hello
        self.state = MET
        self.begin()

    def _refused(self, line: bytes) -> None:
        if line.endswith(_UNPROVEN):
            line = errors.NO_AUTH
        code = line.partition(b" ")[0]
        if code == b"AABEHIND":
            self.behind = True
        elif code == b"AATWIN":
            self.twin = line == errors.aa_twin(self._region.origin)
            self.rival = not self.twin
            self.refused = True
        elif code == b"AAFORGOTTEN":
            epoch = line.rpartition(b" ")[2]
            self.forgotten = int(epoch) if epoch.isdigit() else 0
            self.refused = True
        elif code not in _PASSING:
            self.refused = True
        self.fail(line.decode("utf-8", "replace"))


class PeerConnection:
    """Asks a peer until one of both gives up.

    Args:
        moved: is called when something has changed: a reply was taken, or it is over.

    Attributes:
        link: None before it is there; address: where it leads.
        heard_ms: when the other side was heard last, of the monotonic clock.
        over: it has ended; reason: why, for people.
    """

    def __init__(
        self,
        client: PeerClient,
        most_bytes: int,
        now_ms: int,
        moved: Callable[[PeerConnection], None],
    ) -> None:
        self.client: Final = client
        self.link: Link | None = None
        self.address: PeerAddress | None = None
        self.heard_ms = now_ms
        self.over = False
        self.reason = ""
        self._reader: Final = ReplyReader(most_bytes + 2 * PULL_BYTES)
        self._moved: Final = moved
        self._unanswered = 0

    @property
    def is_up(self) -> bool:
        """Return whether both have introduced themselves."""
        return not self.over and self.client.state == MET

    # Called by the link

    def connected(self, link: Link, now_ms: int) -> None:
        """Use a link that is there now."""
        if self.over:
            link.close()
            return
        self.link = link
        self.heard_ms = now_ms
        self.client.connected()
        self.go_on()

    def received(self, data: bytes, now_ms: int) -> None:
        """Take some bytes that have come."""
        if self.over:
            return
        self.heard_ms = now_ms
        self._reader.feed(data)
        try:
            while not self.client.failure:
                reply = self._reader.take()
                if reply is None:
                    break
                self._unanswered -= 1
                self.client.received(reply)
        except BadReply as error:
            self.client.fail(f"what came is no reply: {error}")
        self.go_on()

    def lost(self, reason: str) -> None:
        """End, because the connection could not be made, or has ended."""
        self.link = None
        self.end(reason)

    def refused(self, reason: str) -> None:
        """End, because one side refuses the other, and trying again will hardly mend it."""
        self.client.refused = True
        self.end(reason)

    # The owner calls these

    def go_on(self) -> None:
        """Send the requests of the client, or end where it has given up."""
        client = self.client
        if client.failure:
            self.end(client.failure)
            return
        if client.out and self.link is not None:
            wire = b"".join([request(words) for words in client.out])
            self._unanswered += len(client.out)
            client.out.clear()
            self.link.send(wire)
        self._moved(self)

    def look(self, now_ms: int) -> None:
        """End the connection where nothing has come for long, though it should have."""
        waits = self.link is None or self._unanswered > 0
        if not waits:
            self.heard_ms = now_ms
        elif now_ms - self.heard_ms > SILENCE_MAX_MS:
            self.end("it does not answer")

    def end(self, reason: str) -> None:
        """End the connection."""
        if self.over:
            return
        self.over = True
        self.reason = reason
        self.client.fail(reason)
        link = self.link
        self.link = None
        if link is not None:
            link.close()
        self._moved(self)
