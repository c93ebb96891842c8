"""The exchange: the answers of a region that is asked, and how one that asks applies them.

Messages in, messages out: there is no socket here, no clock and no file. A region *pulls* what it
lacks from each of the others. It introduces itself (``handshake``), and then keeps some PULLs on
their way, so that the other side always has one to answer as soon as something has been written
there. More are kept on their way where much is written and the way is long, few where nothing is.

``AA PULL bytes [FROM numbers] [ACK numbers] [ALSO origin ...]`` is answered with a list of pieces
(``pieces``) and, where nothing more is left to send, ``[END, numbers, promise]`` as its last item,
which may have a key, its fingerprint and the time of day behind that. Without FROM it goes on after
what this connection was sent; FROM sets the places of the origins that it names. A PULL that
follows one that said END is answered only when there is something to send, or some time has passed:
then with END alone, so that both sides know that the other is there.

The side that asks applies by number and never by guess: a record that it has is skipped, the next
one is applied, and a record beyond that breaks the connection off. Whatever was lost, doubled or
torn on the way, the next connection goes on where the state is.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Final

from mypy_extensions import mypyc_attr

from headrace.compat import errors
from headrace.compat.errors import CommandError
from headrace.compat.numbers import parse_integer
from headrace.regions.exchange.consistency import Check, ConsistencyChecks
from headrace.regions.exchange.handshake import Hello
from headrace.regions.exchange.peer_connection import AA, MET, PeerClient, Provider
from headrace.regions.files.pieces import PULL_BYTES, BadPiece, Piece, read_piece
from headrace.regions.knowledge.region import Region
from headrace.storage.vectors import (
    BadVector,
    Numbers,
    check_origin,
    decode_numbers,
    encode_numbers,
    origin_key,
    region_of,
)

END: Final = b"END"
SMALL_PULL_BYTES: Final = 16 * 1024  # and where each takes records just written
PULL_MAX_BYTES: Final = 8 * 1024 * 1024  # that one PULL may ask for
PIECE_BYTES: Final = 64 * 1024  # most that a piece holds, where its records are not longer
PIECES_MAX: Final = 4096  # in one reply
OUTSTANDING: Final = 4  # PULLs on their way, at least
OUTSTANDING_MAX: Final = 64
ALSO_MAX: Final = 256  # origins


@mypyc_attr(allow_interpreted_subclasses=True)
class RecordLog:
    """The records that a region may give away, its own and those of others."""

    @abstractmethod
    def ends(self, origin: bytes) -> int:
        """Return the number of the last record of an origin that may be given away; 0 for none."""

    @abstractmethod
    def begins(self, origin: bytes) -> int:
        """Return the number of the first record of an origin in memory; ``ends + 1`` for none."""

    @abstractmethod
    def reach(self, origin: bytes) -> int:
        """Return the number of the first record of an origin that is left, in files at least."""

    @abstractmethod
    def origins(self) -> list[bytes]:
        """Return all origins of which anything is known."""

    @abstractmethod
    def after(self, origin: bytes, number: int, most_bytes: int) -> Piece | None:
        """Return the current piece with record ``number + 1``; it may begin with earlier ones."""

    def read(self, origin: bytes, number: int, most_bytes: int) -> Piece | None:
        """As ``after``, from files; in a thread. None where it is gone."""
        raise NotImplementedError


def given_away(log: RecordLog) -> Numbers:
    """Return the number of the last record of each origin that may be given away."""
    return {origin: log.ends(origin) for origin in log.origins() if log.ends(origin)}


# The side that is asked


class Source:
    """Answers the PULLs of one connection.

    Attributes:
        hello: the introduction of the region that asks.
        missing: the place, as (origin, number), of a record that has to be read from files before
            there is an answer.
        most_bytes: how much it asks for.
    """

    def __init__(self, region: Region, log: RecordLog, hello: Hello) -> None:
        self.hello: Final = hello
        self.missing: tuple[bytes, int] | None = None
        self._region: Final = region
        self._log: Final = log
        self._places: Final[Numbers] = {}
        self._also: list[bytes] = []
        self.most_bytes = PULL_BYTES
        self._told_end = False
        self._read: list[Piece] = []

    def pull(self, words: list[bytes]) -> Numbers | None:
        """Take the words behind the name of a PULL. Return what it acknowledges, if anything.

        Raises CommandError if the words mean nothing.
        """
        most = parse_integer(words[0])
        if most is None or not 0 < most <= PULL_MAX_BYTES:
            raise CommandError(errors.aa_malformed(b"a PULL asks for 1 to 8388608 bytes"))
        places: Numbers = {}
        acknowledged: Numbers | None = None
        also: list[bytes] = []
        at = 1
        try:
            while at < len(words):
                option = words[at].upper()
                if option == b"FROM" and at + 1 < len(words):
                    places = decode_numbers(words[at + 1])
                    at += 2
                elif option == b"ACK" and at + 1 < len(words):
                    acknowledged = decode_numbers(words[at + 1])
                    at += 2
                elif option == b"ALSO" and at + 1 < len(words):
                    also = [check_origin(word) for word in words[at + 1 : at + 1 + ALSO_MAX]]
                    at = len(words)
                else:
                    raise CommandError(errors.SYNTAX)
        except BadVector:
            raise CommandError(errors.aa_malformed(b"no number vector, or no origin")) from None
        self.most_bytes = most
        self._also = also
        self._places.update(places)
        return acknowledged

    def answer(self) -> list[Piece] | None:
        """Return the next pieces, or none where there is nothing more; None where it has to wait.

        It waits until something has been written, or until ``missing`` has been read. Raises
        CommandError if the next record is not there any more.
        """
        pieces = self._take_read()
        size = 0
        for piece in pieces:
            size += len(piece.payload)
        for origin in self._wanted():
            if size >= self.most_bytes or len(pieces) >= PIECES_MAX:
                break
            size += self._add(pieces, origin, self.most_bytes - size)
        if pieces:
            return pieces
        if self.missing is not None or self._told_end:
            return None
        return []

    def read(self, piece: Piece | None) -> None:
        """Take the piece with the missing record. Raises CommandError for None: it is gone."""
        missing = self.missing
        self.missing = None
        if piece is not None:
            self._read.append(piece)
        elif missing is not None:
            reach = self._log.reach(missing[0])
            raise CommandError(errors.aa_behind(missing[0], max(reach, missing[1] + 2)))

    def reply(
        self,
        items: list[object],
        promise_ms: int,
        checks: ConsistencyChecks | None = None,
        now_ms: int = 0,
    ) -> list[object]:
        """Return the reply to a PULL with pieces, which are items already.

        Args:
            promise_ms: every ID that this region makes behind the end of its log has more
                milliseconds.
            checks: knows which fingerprint to send, if any.
            now_ms: the time of day; 0 sends none.
        """
        self._told_end = self._has_all()
        if not self._told_end:
            return items
        numbers = given_away(self._log)
        end: list[object] = [END, encode_numbers(numbers), promise_ms]
        if checks is not None:
            end += checks.next_for(self.hello.region, numbers)
        if now_ms:
            end.append(now_ms)
        return [*items, end]

    def _take_read(self) -> list[Piece]:
        self.missing = None
        pieces = self._read
        self._read = []
        for piece in pieces:
            self._places[piece.origin] = piece.last
        return pieces

    def _wanted(self) -> list[bytes]:
        """Return the origins to send of, this region's own first."""
        own = [origin for origin in self._log.origins() if region_of(origin) == self._region.id]
        own.sort(key=origin_key)
        return own + [origin for origin in self._also if origin not in own]

    def _has_all(self) -> bool:
        log = self._log
        return all(self._places.get(each, 0) >= log.ends(each) for each in self._wanted())

    def _add(self, pieces: list[Piece], origin: bytes, most_bytes: int) -> int:
        """Add pieces of an origin. Return how many bytes."""
        log = self._log
        size = 0
        place = self._places.get(origin, 0)
        while size < most_bytes and len(pieces) < PIECES_MAX and place < log.ends(origin):
            if place + 1 < log.begins(origin):
                if place + 1 < log.reach(origin):
                    if not pieces:
                        raise CommandError(errors.aa_behind(origin, log.reach(origin)))
                elif self.missing is None:
                    self.missing = (origin, place)
                break
            piece = log.after(origin, place, min(PIECE_BYTES, most_bytes - size))
            if piece is None:  # it has left memory in this moment
                if self.missing is None:
                    self.missing = (origin, place)
                break
            pieces.append(piece)
            size += len(piece.payload)
            place = piece.last
        self._places[origin] = place
        return size


# The side that asks


@mypyc_attr(allow_interpreted_subclasses=True)
class Inlet:
    """Takes pieces that have arrived: they are applied in order, and kept."""

    @abstractmethod
    def place(self, origin: bytes) -> int:
        """Return the number of the last record of an origin that is applied, or waits for it."""

    @abstractmethod
    def offer(self, piece: Piece, provider: Provider) -> None:
        """Take a piece whose first record is the next one of its origin, or an earlier one."""


class PullerStatistics:
    """The figures of one peer, over all connections.

    Attributes:
        records, received_bytes: that were new.
        doubled: records that were known.
        gaps: connections that missed something.
        damaged: replies that could not be read.
        clock_ahead_ms: how far the peer's clock is ahead of ours, as it said last, less the time
            that this took.
    """

    def __init__(self) -> None:
        self.connections = 0
        self.records = 0
        self.received_bytes = 0
        self.doubled = 0
        self.gaps = 0
        self.damaged = 0
        self.clock_ahead_ms = 0


class Puller(PeerClient):
    """Pulls from one peer over one connection.

    Args:
        relayed: which regions do not answer, so that the peer is to be asked for their records.
        most_bytes: the longest payload that is taken.

    Attributes:
        promise_ms: what the peer has promised last.
        check: a fingerprint that has come with ``known`` and was not compared yet.
        lag_since_ms: when the oldest of the peer's own pieces that wait here was written; 0 where
            none does, or where that is not known.
        told_ms: what the peer's clock showed when it said so last; 0 once that was looked at.
        resting: it sends no more PULLs.
        anew: there is something to ask for that PULLs on their way do not: another connection does.
    """

    def __init__(
        self,
        region: Region,
        peer_region: int,
        secret: bytes,
        inlet: Inlet,
        statistics: PullerStatistics,
        relayed: Callable[[], frozenset[int]],
        most_bytes: int,
    ) -> None:
        super().__init__(region, peer_region, secret)
        self.promise_ms = 0
        self.check: Check | None = None
        self.lag_since_ms = 0
        self.told_ms = 0
        self.resting = False
        self.anew = False
        self._inlet: Final = inlet
        self._statistics: Final = statistics
        self._relayed: Final = relayed
        self._most_bytes: Final = most_bytes
        self._asked_bytes: Final[deque[int]] = deque()  # of PULLs that are not answered
        self._asked_also: Final[deque[list[bytes]]] = deque()  # of the same
        self._window = OUTSTANDING  # how many there may be
        self._waiting: list[Piece] = []  # offered, and not applied
        self._also: list[bytes] = []
        self._relayed_origins: Final[set[bytes]] = set()  # that were asked for with ALSO
        self._has_asked = False
        self._told_end = False

    @property
    def is_level(self) -> bool:
        """Return whether everything that the peer has said it gives has been applied here."""
        if not self._told_end or self._waiting or self.state != MET:
            return False
        for origin, number in self.known.items():
            if region_of(origin) == self.peer_region and self._region.number_of(origin) < number:
                return False  # it came over an earlier connection, and waits
        return True

    @property
    def waiting_bytes(self) -> int:
        """Bytes that have arrived and wait to be applied."""
        return sum([len(piece.payload) for piece in self._waiting])

    def connected(self) -> None:
        self._statistics.connections += 1
        super().connected()

    def begin(self) -> None:
        if self.hello is not None:
            self.told_ms = self.hello.now_ms
        self.ask()

    def answered(self, reply: object) -> None:
        if not self._asked_bytes:
            self.fail("a reply came that was not asked for")
            return
        self._asked_bytes.popleft()
        self._take(reply, self._asked_also.popleft())

    def fail(self, reason: str) -> None:
        super().fail(reason)
        self._waiting = []

    def damaged(self, reason: str) -> None:
        self._statistics.damaged += 1
        super().damaged(reason)

    def rest(self, resting: bool) -> None:
        """Stop or resume sending PULLs."""
        self.resting = resting
        self.ask()

    def ask(self) -> None:
        """Send as many PULLs as may be on their way: each reply that waits here counts as one."""
        if self.state != MET or self.resting:
            return
        size = SMALL_PULL_BYTES if self._told_end else PULL_BYTES
        room = OUTSTANDING * PULL_BYTES - sum(self._asked_bytes) - self.waiting_bytes
        while len(self._asked_bytes) < self._window and room > 0:
            room -= size
            self._asked_bytes.append(size)
            self.out.append(self._pull(size))
            self._asked_also.append(self._also)

    # As the provider of pieces

    def consumed(self, piece: Piece) -> None:
        if piece in self._waiting:
            self._waiting.remove(piece)
        own = [each.ms for each in self._waiting if region_of(each.origin) == self.peer_region]
        self.lag_since_ms = own[0] if own else 0
        self.ask()

    def spoiled(self, reason: str) -> None:
        self.refused = True
        self.fail(reason)

    def dropped(self, reason: str) -> None:
        self.fail(reason)

    # Steps

    def _pull(self, size: int) -> list[bytes]:
        words = [AA, b"PULL", b"%d" % size]
        also = self._wanted_also()
        new = [origin for origin in also if origin not in self._also]
        if not self._has_asked:
            self._has_asked = True
            new = list({**self._region.known(), **self.known})  # known here, or there
        if new:
            places = {origin: self._inlet.place(origin) for origin in new}
            words += [b"FROM", encode_numbers(places)]
        words += [b"ACK", encode_numbers(self._region.synced)]
        if also:
            words += [b"ALSO", *also]
        self._also = also
        self._relayed_origins.update(also)
        return words

    def _wanted_also(self) -> list[bytes]:
        """Return origins that are not the peer's own, but of which it is to send what it has.

        They are those of regions that do not answer, and those of this region, because others may
        still have what it has lost of an earlier life.
        """
        relayed = self._relayed()
        own = self._region.id
        found: list[bytes] = []
        for origin, number in self.known.items():
            region = region_of(origin)
            if region == self.peer_region or number <= self._inlet.place(origin):
                continue
            if origin != self._region.origin and (region == own or region in relayed):
                found.append(origin)
        found.sort(key=origin_key)
        return found[:ALSO_MAX]

    def _take(self, reply: object, also: list[bytes]) -> None:
        if not isinstance(reply, list):
            self.damaged("an answer to a PULL is no list")
            return
        told_end = False
        for item in reply:
            if not isinstance(item, list) or not item:
                self.damaged("an item of an answer is no list")
                return
            if item[0] == END:
                if not self._ended(item):
                    return
                told_end = True
            elif not self._arrived(item):
                return
        if told_end and self._is_missing_some(also):
            return
        self._told_end = told_end
        if told_end and len(reply) > 1:
            self._window = min(OUTSTANDING_MAX, self._window + 1)
        elif told_end:
            self._window = max(OUTSTANDING, self._window // 2)
            if any(origin not in self._relayed_origins for origin in self._wanted_also()):
                self.anew = True
                self.fail("more is to be asked of it")
        self.ask()

    def _ended(self, item: list[object]) -> bool:
        numbers = item[1] if len(item) > 2 else None
        promise = item[2] if len(item) > 2 else None
        if not isinstance(numbers, bytes) or not isinstance(promise, int):
            self.damaged("the end of an answer is none")
            return False
        try:
            self.known = decode_numbers(numbers)
        except BadVector:
            self.damaged("what the peer knows is no number vector")
            return False
        self.promise_ms = promise
        told = item[-1]
        self.told_ms = told if isinstance(told, int) and len(item) > 3 else 0
        self.check = None
        if len(item) > 4:
            key = item[3]
            found = item[4]
            if isinstance(key, bytes) and isinstance(found, bytes):
                self.check = (key, found)
        return True

    def _is_missing_some(self, also: list[bytes]) -> bool:
        """End the connection, and return True, where less has come than the peer says it gave.

        Records may have been lost on the way, or dropped here while they waited.
        """
        for origin, number in self.known.items():
            is_given = region_of(origin) == self.peer_region or origin in also
            if is_given and self._inlet.place(origin) < number:
                self._statistics.gaps += 1
                self.fail(f"records of {origin.decode()} are missing up to {number}")
                return True
        return False

    def _arrived(self, item: list[object]) -> bool:
        """Take a piece. Return False where the connection is of no use any more."""
        try:
            piece = read_piece(item, self._most_bytes)
        except BadPiece as error:
            self.damaged(str(error))
            return False
        statistics = self._statistics
        statistics.received_bytes += len(piece.payload)
        region = region_of(piece.origin)
        if region != self.peer_region and piece.origin not in self._relayed_origins:
            self.damaged(f"a piece of {piece.origin.decode()} came, which was not asked for")
            return False
        place = self._inlet.place(piece.origin)
        if piece.first > place + 1:
            statistics.gaps += 1
            self.fail(f"records of {piece.origin.decode()} are missing before {piece.first}")
            return False
        statistics.doubled += min(place, piece.last) - piece.first + 1
        if piece.last <= place:
            return True
        statistics.records += piece.last - place
        self._waiting.append(piece)
        if not self.lag_since_ms and region == self.peer_region:
            self.lag_since_ms = piece.ms
        self._inlet.offer(piece, self)
        return self.state == MET
