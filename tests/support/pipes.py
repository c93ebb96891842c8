"""Two ends of the exchange with pipes between them: no socket, no clock, no file.

The records are real requests, the logs are lists, and what is applied is kept as a list. Each pipe
can be cut at any byte, hold back what it carries, or say it twice.
"""

from __future__ import annotations

from headrace.compat.errors import CommandError
from headrace.protocol.client import ReplyReader, request
from headrace.protocol.replies import ErrorReply, encode
from headrace.regions.exchange.peer_connection import Provider
from headrace.regions.exchange.peer_sessions import PeerSession
from headrace.regions.exchange.pull import (
    Inlet,
    Puller,
    PullerStatistics,
    RecordLog,
    Source,
)
from headrace.regions.files.pieces import Piece
from headrace.regions.knowledge.region import Region
from headrace.storage.vectors import Numbers

BOUND = 1 << 20


def record(origin: bytes, number: int, size: int = 10) -> bytes:
    """A request that stands for one record."""
    return request([b"XADD", b"s", b"%d-1" % number, origin, b"x" * size])


class ListLog(RecordLog):
    """Records of all origins in lists.

    Attributes:
        in_files: how many of the first records are not at hand; lost: how many are nowhere.
    """

    def __init__(self) -> None:
        self.records: dict[bytes, list[bytes]] = {}
        self.in_files: Numbers = {}
        self.lost: Numbers = {}

    def add(self, origin: bytes, count: int, size: int = 10) -> None:
        known = self.records.setdefault(origin, [])
        for _ in range(count):
            known.append(record(origin, len(known) + 1, size))

    def ends(self, origin: bytes) -> int:
        return len(self.records.get(origin, []))

    def begins(self, origin: bytes) -> int:
        return max(self.in_files.get(origin, 0), self.lost.get(origin, 0)) + 1

    def reach(self, origin: bytes) -> int:
        return self.lost.get(origin, 0) + 1

    def origins(self) -> list[bytes]:
        return list(self.records)

    def after(self, origin: bytes, number: int, most_bytes: int) -> Piece | None:
        if number + 1 < self.begins(origin):
            return None
        return self.cut(origin, number, most_bytes)

    def cut(self, origin: bytes, number: int, most_bytes: int) -> Piece | None:
        """The piece, from files if need be."""
        first = max(number - number % 3, self.lost.get(origin, 0))  # it may begin somewhat before
        payload = b""
        count = 0
        for each in self.records[origin][first:]:
            if payload and len(payload) + len(each) > most_bytes and first + count > number:
                break
            payload += each
            count += 1
        return Piece(origin, first + 1, count, 1000 + first, payload) if count else None


class ListInlet(Inlet):
    """Keeps what arrives; it is applied when ``apply`` is called."""

    def __init__(self, region: Region, log: ListLog) -> None:
        self.region = region
        self.log = log
        self.waiting: list[tuple[Piece, Provider]] = []
        self.most_waiting = 0
        self.spoils: set[tuple[bytes, int]] = set()

    def place(self, origin: bytes) -> int:
        known = self.region.number_of(origin)
        return max([known, *[piece.last for piece, _ in self.waiting if piece.origin == origin]])

    def offer(self, piece: Piece, provider: Provider) -> None:
        assert piece.first <= self.place(piece.origin) + 1
        self.waiting.append((piece, provider))
        self.most_waiting = max(self.most_waiting, sum(len(p.payload) for p, _ in self.waiting))

    def apply(self) -> bool:
        """Apply all that waits; whether anything did."""
        some = bool(self.waiting)
        while self.waiting:
            piece, provider = self.waiting.pop(0)
            records = split(piece)
            assert len(records) == piece.count
            spoiled = False
            for number, each in enumerate(records, piece.first):
                if (piece.origin, number) in self.spoils:
                    self.waiting = [w for w in self.waiting if w[0].origin != piece.origin]
                    provider.spoiled("an unknown effect")
                    spoiled = True
                    break
                if number <= self.region.number_of(piece.origin):
                    continue
                assert number == self.region.number_of(piece.origin) + 1
                self.log.records.setdefault(piece.origin, []).append(each)
                self.region.learned(piece.origin, number)
                self.region.synced = self.region.known()
            if not spoiled:
                provider.consumed(piece)
        return some


def split(piece: Piece) -> list[bytes]:
    """The requests of a piece."""
    return [b"*5\r\n" + part for part in piece.payload.split(b"*5\r\n")[1:]]


class End:
    """One region with what it has."""

    def __init__(self, number: int, secret: bytes = b"") -> None:
        self.region = Region(number)
        self.region.nonce = b"nonce-of-%d" % number
        self.region.database = b"orders"
        self.secret = secret
        self.log = ListLog()
        self.inlet = ListInlet(self.region, self.log)
        self.statistics = PullerStatistics()
        self.silent: frozenset[int] = frozenset()
        self.acknowledged: dict[int, Numbers] = {}
        self.compress = False

    def write(self, count: int, size: int = 10) -> None:
        """Records of its own."""
        self.log.add(self.region.origin, count, size)
        self.region.count += count

    def puller(self, of: int) -> Puller:
        return Puller(
            self.region,
            of,
            self.secret,
            self.inlet,
            self.statistics,
            lambda: self.silent,
            BOUND,
        )

    def caller(self) -> PeerSession:
        return PeerSession(self.region, self.log, self.secret, lambda: [self.region.id, 9])

    def content(self) -> dict[bytes, list[bytes]]:
        return {origin: records for origin, records in self.log.records.items() if records}


class Pipe:
    """A connection on which ``asking`` pulls from ``asked``."""

    def __init__(self, asking: End, asked: End, of: int = 0) -> None:
        self.asking = asking
        self.asked = asked
        self.puller = asking.puller(of or asked.region.id)
        self.caller = asked.caller()
        self.reader = ReplyReader(BOUND)
        self.requests: list[list[bytes]] = []  # on their way, or parked
        self.wire = b""  # replies on their way
        self.sent_bytes = 0
        self.files_read = 0
        self.puller.connected()

    def answer(self) -> bool:
        """Let the asked side answer all that it can; whether it has."""
        some = False
        self.requests += self.puller.out
        self.puller.out.clear()
        while self.requests:
            try:
                reply = self.reply_to(self.requests[0])
            except CommandError as error:
                reply = ErrorReply(error.line)
            if reply is None:
                break
            del self.requests[0]
            self.wire += encode(reply)
            some = True
        return some

    def reply_to(self, words: list[bytes]) -> object | None:
        """The reply; None while the request is parked. A PULL is taken once."""
        name = words[1]
        if name == b"AUTH":
            if words[2] == b"PROOF":
                return self.caller.prove(words[3])
            return self.caller.challenge(words[2])
        assert self.caller.proven
        if name == b"HELLO":
            return self.caller.greet(words[2:])
        source = self.caller.source_or_refuse()
        if len(words) > 2:
            acknowledged = source.pull(words[2:])
            if acknowledged is not None:
                self.asked.acknowledged[source.hello.region] = acknowledged
            del words[2:]  # from here on it is parked
        return self.answer_of(source)

    def answer_of(self, source: Source) -> object | None:
        pieces = source.answer()
        if pieces is None and source.missing is not None:
            origin, number = source.missing
            self.files_read += 1
            found = None
            if number >= self.asked.log.lost.get(origin, 0):
                found = self.asked.log.cut(origin, number, BOUND)
            source.read(found)
            pieces = source.answer()
        if pieces is None:
            return None
        return source.reply([piece.item(self.asked.compress) for piece in pieces], 77)

    def beat(self) -> None:
        """Answer a PULL that waits, so that both hear of each other."""
        assert self.requests
        source = self.caller.source_or_refuse()
        del self.requests[0]
        self.wire += encode(source.reply([], 78))

    def carry(self, most: int = 1 << 40) -> bool:
        """Carry so many bytes of the replies; whether there were any."""
        data = self.wire[:most]
        self.wire = self.wire[most:]
        self.sent_bytes += len(data)
        self.reader.feed(data)
        while not self.puller.failure:
            reply = self.reader.take()
            if reply is None:
                break
            self.puller.received(reply)
        return bool(data)

    def run(self, step: int = 1 << 40) -> None:
        """Go on until nothing moves."""
        busy = True
        while busy and not self.puller.failure:
            busy = self.answer()
            busy = self.carry(step) or busy
            busy = self.asking.inlet.apply() or busy or bool(self.puller.out)
