"""What all regions know: beats, who takes part, and what may be forgotten.

A region beats while there is something to forget, so an idle database is silent. What a removal
left behind goes once every member has said that it has the removal on its disk. A member that is
away holds that back, until it returns or is forgotten.
"""

from __future__ import annotations

from typing import Final

from headrace.regions.exchange.effects import (
    Effect,
    EffectError,
    collect,
    effect,
    emit,
    may_write,
    region_of,
)
from headrace.regions.knowledge.beats import Beat
from headrace.server.state import Server
from headrace.storage.sharing import AA, REGION_MAX
from headrace.storage.vectors import (
    EPOCH_MAX,
    Numbers,
    decode_numbers,
    encode_numbers,
    epoch_of,
    origin_key,
    raise_numbers,
)

_NUMBER_DIGITS: Final = 18
KEYS_AT_ONCE: Final = 200  # that are looked at for what may be forgotten


class Stability:
    """Beats, and forgets what all regions know."""

    def __init__(self, server: Server) -> None:
        self._server: Final = server
        self._region: Final = region_of(server)
        self._stable: Numbers = {}  # when all garbage was looked at last
        self._left: list[bytes] = []  # keys still to be looked at
        self._graves_left = 0  # and graves, from the last slot to the first
        self._next_beat_ms = 0

    def look(self, now_ms: int) -> None:
        """Do some of what is to be done; what it has written is to be ended by the caller.

        Args:
            now_ms: of the clock that nobody sets.
        """
        region = self._region
        has_garbage = remembers(self._server)
        if not has_garbage and not region.partings:
            return
        if now_ms >= self._next_beat_ms and beat(self._server):
            self._next_beat_ms = now_ms + self._server.config.aa_beat_ms
        if not has_garbage:
            return
        graves = self._server.data.graves
        if not self._left and not self._graves_left:
            stable = region.stable()
            if stable == self._stable:
                return
            self._stable = stable
            self._left = list(region.garbage) if stable else []
            self._graves_left = len(graves) if stable else 0
        if self._server.data.freezing is None:  # else each of them had to be kept as it was
            self._forget_some()

    def _forget_some(self) -> None:
        """Look at some keys, and forget what is stable of them."""
        left = self._left
        for _ in range(min(len(left), KEYS_AT_ONCE)):
            key = left.pop()
            if not collect(self._server, key, self._stable):
                self._region.garbage.pop(key, None)
        if left:
            return
        graves = self._server.data.graves
        for _ in range(KEYS_AT_ONCE):
            at = min(self._graves_left, len(graves)) - 1
            self._graves_left = max(at, 0)
            if at < 0:
                return
            collect(self._server, graves.at(at).key, self._stable)


def remembers(server: Server) -> bool:
    """Return whether there is something that may be forgotten once all regions know of it."""
    return bool(region_of(server).garbage) or len(server.data.graves) > 0


def beat(server: Server) -> bool:
    """Say what is on the disk here, if that lets others forget something; whether it was said."""
    region = region_of(server)
    if not region.wants_beat(remembers(server)) or not may_write(server):
        return False
    beat_now(server)
    return True


def beat_now(server: Server) -> None:
    """Say what is on the disk here."""
    region = region_of(server)
    numbers = encode_numbers(region.synced)
    emit(server, [AA, b"BEAT", numbers, b"%d" % region.promise_ms])


@effect(b"BEAT")
def apply_beat(found: Effect) -> None:
    """``AA BEAT numbers promise``: what a region has on its disk."""
    words = found.words
    if len(words) != 4:
        raise EffectError("BEAT has numbers and a promise")
    numbers = decode_numbers(words[2])
    promise_ms = _number(words[3])
    number, epoch = origin_key(found.origin)
    region = region_of(found.server)
    known = region.beats.get(number)
    if known is None or known.epoch <= epoch:
        region.note_beat(number, Beat(epoch, numbers, promise_ms))
    if number == region.id:  # it may come back from others, to a region that has lost its files
        region.promise_ms = max(region.promise_ms, promise_ms)
    elif not found.replaying:
        region.others_asked_ms = found.server.clock.monotonic_ms()


@effect(b"JOIN")
def apply_join(found: Effect) -> None:
    """``AA JOIN region``: a region takes part."""
    if len(found.words) != 3:
        raise EffectError("JOIN has a region")
    region = region_of(found.server)
    number = _region(found.words[2])
    if number != region.id:
        region.joined.add(number)


@effect(b"FORGET")
def apply_forget(found: Effect) -> None:
    """``AA FORGET region epoch``: a region takes part no more, in this epoch or an earlier one."""
    words = found.words
    if len(words) != 4:
        raise EffectError("FORGET has a region and an epoch")
    number = _region(words[2])
    epoch = min(_number(words[3]), EPOCH_MAX)
    region = region_of(found.server)
    region.forget(number, epoch)
    raise_numbers(region.partings, {found.origin: found.number})


def forget(server: Server, number: int) -> None:
    """Let a region take part no more; it comes back as a new one only."""
    region = region_of(server)
    origins = [*region.known(), *region.nonces]  # it may have written nothing in its latest
    epochs = [epoch_of(origin) for origin in origins if origin_key(origin)[0] == number]
    emit(server, [AA, b"FORGET", b"%d" % number, b"%d" % max(epochs, default=0)])


def _region(text: bytes) -> int:
    number = _number(text)
    if not 0 < number <= REGION_MAX:
        raise EffectError("a region from 1 to 15")
    return number


def _number(text: bytes) -> int:
    if not text.isdigit() or len(text) > _NUMBER_DIGITS:
        raise EffectError("a number")
    return int(text)
