"""The regions that have called here: their proof of the secret, their identity, and their PULLs.

The PULLs wait here for something to be written.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from headrace.compat import errors
from headrace.compat.errors import CommandError
from headrace.protocol.replies import ErrorReply
from headrace.regions.exchange.consistency import ConsistencyChecks
from headrace.regions.exchange.handshake import (
    NONE,
    WORDS,
    BadHello,
    Hello,
    answering_code,
    as_reply,
    asking_code,
    hello_words,
    is_nonce,
    new_nonce,
    refusal,
    same,
)
from headrace.regions.exchange.pull import RecordLog, Source
from headrace.regions.files.pieces import COMPRESS_FROM_BYTES, Piece
from headrace.regions.knowledge.region import Region
from headrace.server.clients.session import Session
from headrace.server.durability.worker import ThreadCall, Worker
from headrace.server.state import Server
from headrace.server.waiting import Parked
from headrace.storage.vectors import Numbers, encode_numbers, epoch_of, region_of

BEAT_MS: Final = 1000  # the longest wait of a PULL
TWIN_MS: Final = 3000  # a region heard since then is there, and no other process can be it


class PeerSession:
    """One connection at the port for other regions, from the side that is asked.

    Args:
        members: returns the regions that take part.

    Attributes:
        proven: it has shown that it has the secret, if there is one.
        source: answers its PULLs; None before it has introduced itself.
        called: how it has introduced itself, if it is of this database, and another region's only
            life; also where it was refused because it knows more of this region than that does.
        process: the process that it is; its nonce where it does not say that.
        heard_ms: when it asked for something last, of the monotonic clock.
    """

    def __init__(
        self, region: Region, log: RecordLog, secret: bytes, members: Callable[[], list[int]]
    ) -> None:
        self.proven = not secret
        self.source: Source | None = None
        self.called: Hello | None = None
        self.process = b""
        self.heard_ms = 0
        self._region: Final = region
        self._log: Final = log
        self._secret: Final = secret
        self._members: Final = members
        self._nonce = b""
        self._caller_nonce = b""

    def challenge(self, nonce: bytes) -> bytes:
        """Answer a nonce with one. Raises CommandError without a secret, or for a bad nonce."""
        if not self._secret:
            raise CommandError(errors.AA_SECRET_NONE)
        if not is_nonce(nonce):
            raise CommandError(errors.aa_malformed(b"a nonce has 64 digits"))
        self._caller_nonce = nonce
        self._nonce = new_nonce()
        return self._nonce

    def prove(self, code: bytes) -> bytes:
        """Check the caller's code, and answer with the one of this side.

        Raises CommandError if the caller has another secret.
        """
        nonce = self._nonce
        self._nonce = b""  # it is good for one code
        if not nonce:
            raise CommandError(errors.AA_NO_CHALLENGE)
        if not same(code, asking_code(self._secret, self._caller_nonce, nonce)):
            raise CommandError(errors.AA_SECRET_WRONG)
        self.proven = True
        return answering_code(self._secret, self._caller_nonce, nonce)

    def greet(self, words: list[bytes]) -> list[object]:
        """Answer the words of AA HELLO. Raises CommandError if the two are not of one database."""
        region = self._region
        log = self._log
        try:
            hello = Hello(words)
        except BadHello as error:
            raise as_reply(error) from None
        line = refusal(region, hello, region.count, True)
        if not line or line.startswith(b"AAAHEAD"):
            self.called = hello
        if line:
            raise CommandError(line)
        region.meet(hello.region, hello.begun)
        reply: list[object] = [*hello_words(region, self._known_to(hello))]
        reply.append(region.nonces.get(hello.origin, b"") or NONE)
        reply.append(encode_numbers({origin: log.reach(origin) for origin in log.origins()}))
        reply.append(b",".join([b"%d" % member for member in self._members()]) or NONE)
        region.note_met(hello.origin, hello.nonce, hello.version)
        self.source = Source(region, log, hello)
        return reply

    def _known_to(self, hello: Hello) -> Numbers:
        """Return the numbers known here, as they are sent to the caller.

        Its epoch has to be above all that it has had, also above those without a record. It can
        begin another one as long as it has written nothing.
        """
        region = self._region
        known = region.known()
        above = -1 if not hello.nonce else hello.epoch
        if not hello.nonce or not hello.numbers.get(hello.origin, 0):
            for origin in region.nonces:
                if region_of(origin) == hello.region and epoch_of(origin) > above:
                    known.setdefault(origin, 0)
        return known

    def source_or_refuse(self) -> Source:
        """Return the source for its PULLs. Raises CommandError if it has not introduced itself."""
        if self.source is None:
            raise CommandError(errors.AA_HELLO_FIRST)
        return self.source


class _Wait:
    """A PULL that waits. ``busy``: a thread works on its answer."""

    def __init__(self, session: Session, source: Source, parked: Parked, now_ms: int) -> None:
        self.session: Final = session
        self.source: Final = source
        self.parked: Final = parked
        self.since_ms: Final = now_ms
        self.busy = False


class PeerSessions:
    """All connections at the port for other regions.

    Attributes:
        acknowledged: what each region has on its disk, as it has said last.
        heard_ms: when each region was heard last.
        on_call: is called when a region has called, with what it knows.
        worker: the thread that reads files for them.
    """

    def __init__(
        self, server: Server, region: Region, log: RecordLog, checks: ConsistencyChecks
    ) -> None:
        self.acknowledged: Final[dict[int, Numbers]] = {}
        self.heard_ms: Final[dict[int, int]] = {}
        self.on_call: Callable[[int, Numbers], None] | None = None
        self._server: Final = server
        self._region: Final = region
        self._log: Final = log
        self._checks: Final = checks
        self._sessions: Final[dict[int, tuple[Session, PeerSession]]] = {}
        self._waits: dict[int, _Wait] = {}  # by session
        self.worker: Final = Worker()

    @property
    def count(self) -> int:
        """Number of connections."""
        return len(self._sessions)

    def of_session(self, session: Session) -> PeerSession:
        """Return the peer at the other side of a session; make one for a new session."""
        found = self._sessions.get(session.id)
        if found is None:
            config = self._server.config
            region = self._region
            peer = PeerSession(region, self._log, config.aa_secret, region.members)
            self._sessions[session.id] = (session, peer)
            return peer
        return found[1]

    def greet(self, session: Session, words: list[bytes]) -> list[object]:
        """Answer the words of AA HELLO.

        Raises CommandError if the two are not of one database, another server is here that is the
        same region, or this very process calls.
        """
        process = self._region.process
        if process and words[WORDS:] and words[WORDS] == process:
            raise CommandError(errors.AA_OWN_ADDRESS)
        now_ms = self._server.clock.monotonic_ms()
        peer = self.of_session(session)
        peer.heard_ms = now_ms
        try:
            reply = peer.greet(words)
            reply.append(b"%d" % self._day_ms())
        finally:
            called = peer.called
            if called is not None and self.on_call is not None:
                self.on_call(called.region, called.numbers)
        hello = peer.source_or_refuse().hello
        peer.process = words[WORDS] if len(words) > WORDS else hello.nonce
        for other_session, other in self._sessions.values():
            source = other.source
            if source is None or source.hello.region != hello.region or other_session.closed:
                continue
            if not source.hello.nonce:
                continue  # one that starts, and pulls nothing
            if other.process == peer.process or now_ms - other.heard_ms >= TWIN_MS:
                continue
            if hello.epoch <= source.hello.epoch:
                peer.source = None
                raise CommandError(errors.aa_taken(source.hello.origin))
            self._drop(other_session, other, errors.aa_taken(hello.origin))
        return reply

    def _drop(self, session: Session, peer: PeerSession, line: bytes) -> None:
        """Answer an earlier life of a region no more."""
        peer.source = None
        wait = self._waits.get(session.id)
        if wait is not None:
            self._refuse(wait, line)

    def pull(self, session: Session, argv: list[bytes]) -> object:
        """Answer a PULL, or let it wait.

        Raises CommandError if it means nothing, or the records that it asks for are gone.
        """
        peer = self.of_session(session)
        source = peer.source_or_refuse()
        acknowledged = source.pull(argv[2:])
        now_ms = self._server.clock.monotonic_ms()
        peer.heard_ms = now_ms
        region = source.hello.region
        self.heard_ms[region] = now_ms
        if acknowledged is not None:
            self.acknowledged[region] = acknowledged
        parked = Parked([], 0, argv, [], None)
        wait = _Wait(session, source, parked, now_ms)
        items = self._items(wait)
        if items is not None:
            return self._reply(source, items)
        self._waits[session.id] = wait
        return parked

    def grown(self) -> None:
        """Answer the PULLs that waited for something to be written."""
        for wait in list(self._waits.values()):
            if not wait.busy:
                self._try(wait)

    def beat(self, now_ms: int) -> None:
        """Answer PULLs that have waited for long, as a sign of life. Forget closed sessions."""
        for wait in list(self._waits.values()):
            if not wait.session.waits_for(wait.parked):
                self._waits.pop(wait.session.id, None)
            elif not wait.busy and now_ms - wait.since_ms >= BEAT_MS:
                self._answer(wait, [])
        for session_id in [sid for sid, (session, _) in self._sessions.items() if session.closed]:
            del self._sessions[session_id]

    def leave(self) -> None:
        """Close all connections."""
        for session, _ in list(self._sessions.values()):
            session.peer.abort()
            self._server.session_closed(session)
        self._sessions.clear()
        self._waits.clear()

    def close(self) -> None:
        """End the thread."""
        self.worker.close()

    def _was_read(self, wait: _Wait, piece: object, failure: str) -> None:
        wait.busy = False
        if failure:
            self._refuse(wait, b"AANOLOG " + failure.encode())
            return
        try:
            wait.source.read(piece if isinstance(piece, Piece) else None)
        except CommandError as error:
            self._refuse(wait, error.line)
            return
        self._try(wait)

    def _answer(self, wait: _Wait, items: list[object]) -> None:
        self._waits.pop(wait.session.id, None)
        if wait.session.waits_for(wait.parked):
            self._server.end_wait(wait.session, self._reply(wait.source, items))

    def _refuse(self, wait: _Wait, line: bytes) -> None:
        self._waits.pop(wait.session.id, None)
        if wait.session.waits_for(wait.parked):
            self._server.end_wait(wait.session, ErrorReply(line))

    def _try(self, wait: _Wait) -> None:
        if not wait.session.waits_for(wait.parked):
            self._waits.pop(wait.session.id, None)
            return
        try:
            items = self._items(wait)
        except CommandError as error:
            self._refuse(wait, error.line)
            return
        if items is not None:
            self._answer(wait, items)

    def _items(self, wait: _Wait) -> list[object] | None:
        """Return what answers it; None while it waits, be it for a thread."""
        source = wait.source
        pieces = source.answer()
        if pieces is None:
            if source.missing is not None:
                wait.busy = True
                read = partial(self._log.read, *source.missing, source.most_bytes)
                self.worker.give(ThreadCall(read, partial(self._was_read, wait)))
            return None
        long = [piece for piece in pieces if len(piece.payload) > COMPRESS_FROM_BYTES]
        if long and self._server.config.aa_compress:
            wait.busy = True
            done = partial(self._was_compressed, wait, pieces)
            self.worker.give(ThreadCall(partial(_items_of, pieces, True), done))
            return None
        return _items_of(pieces, False)

    def _was_compressed(
        self, wait: _Wait, pieces: list[Piece], items: object, failure: str
    ) -> None:
        """Answer; send pieces as they are that could not be compressed."""
        self._answer(wait, items if isinstance(items, list) else _items_of(pieces, False))

    def _reply(self, source: Source, items: list[object]) -> list[object]:
        region = self._region
        has_all = self._log.ends(region.origin) == region.count
        promise_ms = region.tells_promise_ms() if has_all else 0  # none while records are to leave
        return source.reply(items, promise_ms, self._checks, self._day_ms())

    def _day_ms(self) -> int:
        """Return the time of day at this very moment: others compare their clocks with it."""
        return self._server.clock.read_ns() // 1_000_000


def _items_of(pieces: list[Piece], compress: bool) -> list[object]:
    return [piece.item(compress) for piece in pieces]
