"""One connection to a peer, from the side that asks: requests out, replies in, and silence noticed.

What carries it is not known here: a socket (``link``), or something that a test has.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Final

from mypy_extensions import mypyc_attr

from headrace.protocol.client import BadReply, ReplyReader, request
from headrace.regions.exchange.asker import MET, Asker
from headrace.regions.exchange.exchange import PULL_BYTES

SILENCE_MAX_MS: Final = 5000  # after which the other side is taken for gone: it beats each second


@mypyc_attr(allow_interpreted_subclasses=True)
class Link:
    """What carries a conversation."""

    @abstractmethod
    def send(self, wire: bytes) -> None:
        """Send some bytes."""
        raise NotImplementedError

    @abstractmethod
    def close(self) -> None:
        """Close it, now; nothing more is reported of it."""
        raise NotImplementedError


class Conversation:
    """Asks a peer until one of both gives up.

    Args:
        moved: is called when something has changed: a reply was taken, or it is over.

    Attributes:
        link: what carries it; None before it is there.
        heard_ms: when the other side was heard last, of the clock that only measures.
        over: it has ended.
        reason: why; for people.
    """

    def __init__(
        self, puller: Asker, most_bytes: int, now_ms: int, moved: Callable[[Conversation], None]
    ) -> None:
        self.puller: Final = puller
        self.link: Link | None = None
        self.heard_ms = now_ms
        self.over = False
        self.reason = ""
        self._reader: Final = ReplyReader(most_bytes + 2 * PULL_BYTES)
        self._moved: Final = moved
        self._unanswered = 0

    @property
    def is_up(self) -> bool:
        """Return whether both have introduced themselves."""
        return not self.over and self.puller.state == MET

    # What carries it calls these

    def connected(self, link: Link, now_ms: int) -> None:
        """The connection is there."""
        if self.over:
            link.close()
            return
        self.link = link
        self.heard_ms = now_ms
        self.puller.connected()
        self.go_on()

    def received(self, data: bytes, now_ms: int) -> None:
        """Some bytes have come."""
        if self.over:
            return
        self.heard_ms = now_ms
        self._reader.feed(data)
        try:
            while not self.puller.failure:
                reply = self._reader.take()
                if reply is None:
                    break
                self._unanswered -= 1
                self.puller.received(reply)
        except BadReply as error:
            self.puller.fail(f"what came is no reply: {error}")
        self.go_on()

    def lost(self, reason: str) -> None:
        """The connection could not be made, or has ended."""
        self.link = None
        self.end(reason)

    def refused(self, reason: str) -> None:
        """One of both sides will not talk to the other, and trying again will hardly mend it."""
        self.puller.refused = True
        self.end(reason)

    # The owner calls these

    def go_on(self) -> None:
        """Send what the puller wants to ask, or end where it has given up."""
        puller = self.puller
        if puller.failure:
            self.end(puller.failure)
            return
        if puller.out and self.link is not None:
            wire = b"".join([request(words) for words in puller.out])
            self._unanswered += len(puller.out)
            puller.out.clear()
            self.link.send(wire)
        self._moved(self)

    def look(self, now_ms: int) -> None:
        """Notice that nothing has come for long, though it should have."""
        waits = self.link is None or self._unanswered > 0
        if not waits:
            self.heard_ms = now_ms
        elif now_ms - self.heard_ms > SILENCE_MAX_MS:
            self.end("it does not answer")

    def end(self, reason: str) -> None:
        """Be over."""
        if self.over:
            return
        self.over = True
        self.reason = reason
        self.puller.fail(reason)
        link = self.link
        self.link = None
        if link is not None:
            link.close()
        self._moved(self)
