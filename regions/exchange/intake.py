"""Applies records of other regions, and keeps them as they came, in slices between requests.

Pieces that have arrived wait here in order. A piece is looked through first, so that nothing of a
bad one is applied. Then its units are applied: a record, or a transaction, which nothing comes
between. Each slice ends with the applied bytes in the append-only file, and with the waiting
clients served. The position and the state so reach the disk together.

An effect may be followed by effects of this region, such as the removal of one of two entries for
one message. They stand in one transaction with what they follow.
"""

from __future__ import annotations

import logging
from collections import deque
from time import perf_counter_ns
from typing import Final

from headrace.persistence.errors import shown
from headrace.regions.exchange.effects import (
    EffectError,
    Words,
    apply_record,
    emit,
    is_local,
    region_of,
)
from headrace.regions.exchange.peer_connection import Provider
from headrace.regions.exchange.pull import Inlet
from headrace.regions.files.log_file import BEGIN, END, LOCAL, NUMBERED, BrokenBytes, Scanner
from headrace.regions.files.pieces import Piece
from headrace.regions.knowledge.records import newest_version
from headrace.server.dispatch.dispatcher import Dispatcher
from headrace.server.dispatch.invoke import finish_own
from headrace.server.dispatch.serving import serve_ready
from headrace.storage.sharing import AA

log: Final = logging.getLogger("headrace")

UNITS: Final = 16  # that are applied between two looks at the time


class _Broken(Exception):
    """A piece makes no sense; the text says why."""


class _Unit:
    """A unit that is applied whole: where its bytes are, and where those of its records."""

    def __init__(self, start: int) -> None:
        self.start: Final = start
        self.end = 0
        self.records: Final[list[tuple[int, int]]] = []


class _Waiting:
    """A piece on its way into the state."""

    def __init__(self, piece: Piece, provider: Provider) -> None:
        self.piece: Final = piece
        self.provider: Final = provider
        self.units: list[_Unit] | None = None  # once it has been looked through
        self.unknown = b""  # the kind of record behind them that this version has not
        self.next = 0  # of the units
        self.number = piece.first  # of the first record of that one


class Intake(Inlet):
    """Takes pieces in order and applies them."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher: Final = dispatcher
        self._server: Final = dispatcher.server
        self._queue: Final[deque[_Waiting]] = deque()
        self._places: Final[dict[bytes, int]] = {}  # the last record that waits, where one does

    @property
    def is_empty(self) -> bool:
        """Return whether nothing waits."""
        return not self._queue

    def place(self, origin: bytes) -> int:
        return max(region_of(self._server).number_of(origin), self._places.get(origin, 0))

    def offer(self, piece: Piece, provider: Provider) -> None:
        self._places[piece.origin] = piece.last
        self._queue.append(_Waiting(piece, provider))

    def drop_all(self) -> None:
        """Forget the waiting pieces, without notice to their providers."""
        self._queue.clear()
        self._places.clear()

    def step(self, budget_ns: int) -> bool:
        """Apply waiting pieces for about so long. Return whether more wait."""
        server = self._server
        until_ns = perf_counter_ns() + budget_ns
        server.clock.refresh()
        while self._queue:
            waiting = self._queue[0]
            if waiting.provider.is_outlived():
                self._drop(waiting.provider)
                continue
            try:
                done = self._apply(waiting, until_ns)
            except (EffectError, _Broken) as error:
                self._spoiled(waiting, str(error))
                continue
            except Exception as bug:
                log.exception("a record of another region failed with an internal error")
                self._spoiled(waiting, f"internal error ({type(bug).__name__})")
                continue
            if done:
                self._queue.popleft()
                origin = waiting.piece.origin
                if self._places.get(origin, 0) <= region_of(server).number_of(origin):
                    self._places.pop(origin, None)
                waiting.provider.consumed(waiting.piece)
            if not done or perf_counter_ns() >= until_ns:
                break
        finish_own(server)
        if server.blocking.ready:
            serve_ready(self._dispatcher)
        return bool(self._queue)

    def _spoiled(self, waiting: _Waiting, reason: str) -> None:
        """Drop a piece that cannot be applied, and all behind it of its origin."""
        origin = waiting.piece.origin
        reason = f"record {waiting.number} of {origin.decode()} cannot be applied: {reason}"
        dropped = [each for each in self._queue if each.piece.origin == origin]
        kept = [each for each in self._queue if each.piece.origin != origin]
        self._queue.clear()
        self._queue.extend(kept)
        self._places.pop(origin, None)
        for each in dropped:
            each.provider.spoiled(reason)

    def _drop(self, provider: Provider) -> None:
        """Drop the pieces of a life that is over, and those that depend on them.

        Other regions count on learning nothing more from there: see
        ``headrace.regions.knowledge.stability``.
        """
        origins = {each.piece.origin for each in self._queue if each.provider is provider}
        dropped = [each for each in self._queue if each.piece.origin in origins]
        kept = [each for each in self._queue if each.piece.origin not in origins]
        self._queue.clear()
        self._queue.extend(kept)
        for origin in origins:
            self._places.pop(origin, None)
        for each in dropped:
            each.provider.dropped("the region has begun another life, or takes part no more")

    def _apply(self, waiting: _Waiting, until_ns: int) -> bool:
        """Apply units of a piece until the time is up. Return whether that was all."""
        if waiting.units is None:
            waiting.units, waiting.unknown = units_of(waiting.piece)
        units = waiting.units
        piece = waiting.piece
        known = region_of(self._server).number_of(piece.origin)
        while waiting.next < len(units):
            count = len(units[waiting.next].records)
            if waiting.number + count - 1 > known:
                break
            waiting.next += 1
            waiting.number += count
        if waiting.next < len(units) and waiting.number != known + 1:
            raise _Broken("a part of it is known")
        while waiting.next < len(units):
            self._apply_run(waiting, units)
            if perf_counter_ns() >= until_ns:
                break
        if waiting.next < len(units):
            return False
        if waiting.unknown:
            raise EffectError(
                f"AA {shown(waiting.unknown)} is of a later version of the exchange than "
                f"{newest_version()}: region {region_of(self._server).id} has to be upgraded"
            )
        return True

    def _apply_run(self, waiting: _Waiting, units: list[_Unit]) -> None:
        """Apply some units, and keep their bytes."""
        piece = waiting.piece
        scanner = Scanner(piece.payload)
        start = units[waiting.next].start
        first = waiting.number
        end = start
        until = min(len(units), waiting.next + UNITS)
        while waiting.next < until:
            unit = units[waiting.next]
            applied = 0
            following: list[Words] = []
            try:
                for at, _ in unit.records:
                    words = scanner.words(at)
                    number = waiting.number + applied
                    following += apply_record(self._server, piece.origin, number, words, False)
                    applied += 1
            except Exception:
                # The applied units have to be in the file all the same.
                self._keep(piece, start, end, first, waiting.number - first)
                if applied:
                    last = unit.records[applied - 1][1]
                    self._keep(piece, unit.records[0][0], last, waiting.number, applied)
                waiting.number += applied
                raise
            waiting.next += 1
            if following:
                self._keep(piece, start, end, first, waiting.number - first)
                self._keep(piece, unit.start, unit.end, waiting.number, applied, following)
                start = unit.end
                first = waiting.number + applied
            end = unit.end
            waiting.number += applied
        self._keep(piece, start, end, first, waiting.number - first)

    def _keep(
        self,
        piece: Piece,
        start: int,
        end: int,
        first: int,
        count: int,
        following: list[Words] | None = None,
    ) -> None:
        """Append applied units to the file, and effects of this region that belong to them."""
        if not count:
            return
        server = self._server
        server.changes.record_received(piece.origin, first, count, piece.payload[start:end])
        for words in following or []:
            emit(server, words)
        server.changes.end_command()


def units_of(piece: Piece) -> tuple[list[_Unit], bytes]:
    """Return the units of a piece up to a record of a kind that is unknown here, and that kind.

    Raises _Broken if it does not consist of units that have as many records as it says.
    """
    payload = piece.payload
    scanner = Scanner(payload)
    units: list[_Unit] = []
    inside: _Unit | None = None
    count = 0
    at = 0
    try:
        while at < len(payload):
            end = int(scanner.scan(at))
            if end < 0:
                raise _Broken("the bytes of a piece are torn")
            kind = scanner.kind
            if kind == NUMBERED:
                count += 1
                unit = _Unit(at) if inside is None else inside
                unit.records.append((at, end))
                if inside is None:
                    unit.end = end
                    units.append(unit)
            elif kind == BEGIN and inside is None:
                inside = _Unit(at)
            elif kind == END and inside is not None and inside.records:
                inside.end = end
                units.append(inside)
                inside = None
            else:
                name = kind_of(scanner.words(at)) if kind == LOCAL else b""
                if not name:
                    raise _Broken("it holds what no other region sends")
                return units, name
            at = end
    except BrokenBytes:
        raise _Broken("the bytes of a piece are no records") from None
    if inside is not None:
        raise _Broken("a transaction has no end")
    if count != piece.count:
        raise _Broken("it holds another number of records than it says")
    return units, b""


def kind_of(words: Words) -> bytes:
    """Return the kind of a record that may be a later version's effect; empty where it is none."""
    if words[0] != AA or len(words) < 2 or is_local(words[1]):
        return b""
    return words[1]
