"""The records of a region on itself: beats, promises, the regions it has met, and the members.

A region beats while there is something to forget, so an idle database is silent. The remains of a
removal go once every member has said that it has the removal on its disk. A member that is away
holds that back, until it returns or is forgotten.

Readers up to what is stable rely on promises. A region promises that it makes no more IDs up to a
moment that is over. Where clocks differ, it promises as much as the region whose clock is furthest
ahead, and makes its IDs above that. Else nothing of that region would be stable before the others'
clocks are there. A clock that is ahead by more than some minutes is wrong, and is not followed. A
region promises only while a client wants to know what is stable: here, or in another region, which
beats meanwhile. The file says so before, and mostly more than that. So a promise holds when the
process has ended, and not each one takes a record. Others are promised only what is on the disk,
because a power cut would take back the rest.

The file also names the regions that were met. Two lives of a region may have taken the same epoch.
Only their nonces differ, so a region keeps the nonces that it has met over a restart: no other
trace shows that a number was given twice. It also keeps which version each region speaks, because
one that is down cannot be asked.
"""

from __future__ import annotations

from typing import Final

from headrace.compat.numbers import parse_integer
from headrace.persistence.aof.file import AppendOnlyFile
from headrace.regions.exchange.effects import (
    Effect,
    EffectError,
    Words,
    effect,
    emit,
    local,
    may_write,
    member_in,
    number_in,
    region_of,
    replication,
)
from headrace.regions.knowledge.records import LOWEST_VERSION
from headrace.regions.knowledge.region import Region
from headrace.regions.knowledge.stability import FOLLOWED_MS, Beat
from headrace.server.config.config import Config
from headrace.server.dispatch.dispatcher import Dispatcher
from headrace.server.dispatch.invoke import finish_own
from headrace.server.dispatch.serving import serve_ready
from headrace.server.durability.durability import Durability
from headrace.server.gate import HALF_JOINED
from headrace.server.state import Server
from headrace.storage.sharing import AA
from headrace.storage.vectors import (
    EPOCH_MAX,
    Numbers,
    check_origin,
    decode_numbers,
    encode_numbers,
    epoch_of,
    origin_key,
    raise_numbers,
)
from headrace.storage.vectors import region_of as number_of

KEYS_AT_ONCE: Final = 200  # that are looked at for what may be forgotten
_BEATS: Final = 10  # as long as these take, a client that has asked may ask again
_KEPT_AHEAD_MS: Final = 2500  # how far the promise in the file may be ahead
_KEPT_LEAST_MS: Final = 1250  # the next record has to be on the disk when this time is over
_MARKS_MOST: Final = 100
SYNC_EVERY_MS: Final = 5000
_MET: Final = b"MET"


class Stability:
    """Beats, and forgets what all regions know."""

    def __init__(self, server: Server) -> None:
        self._server: Final = server
        self._region: Final = region_of(server)
        self._stable: Numbers = {}  # when all garbage was looked at last
        self._left: list[bytes] = []  # keys still to be looked at
        self._tombstones_left = 0  # and tombstones, from the last slot to the first
        self._next_beat_ms = 0

    def look(self, now_ms: int) -> None:
        """Do some of the work that is due; the caller ends the command. ``now_ms`` is monotonic."""
        region = self._region
        has_garbage = remembers(self._server)
        if not has_garbage and not region.partings:
            return
        if now_ms >= self._next_beat_ms and beat(self._server):
            self._next_beat_ms = now_ms + self._server.config.aa_beat_ms
        if not has_garbage or self._server.gate.reasons & HALF_JOINED:
            return  # a stream that is half joined says nothing yet of what it may forget
        tombstones = self._server.data.tombstones
        if not self._left and not self._tombstones_left:
            stable = region.stable()
            if stable == self._stable and not region.looks_again:
                return
            region.looks_again = False
            self._stable = stable
            self._left = list(region.garbage) if stable else []
            self._tombstones_left = len(tombstones) if stable else 0
        if self._server.data.freezing is None:  # else each of them had to be kept as it was
            self._forget_some()

    def _forget_some(self) -> None:
        left = self._left
        for _ in range(min(len(left), KEYS_AT_ONCE)):
            key = left.pop()
            if not replication().collect(self._server, key, self._stable):
                self._region.garbage.pop(key, None)
        if left:
            return
        tombstones = self._server.data.tombstones
        for _ in range(KEYS_AT_ONCE):
            at = min(self._tombstones_left, len(tombstones)) - 1
            self._tombstones_left = max(at, 0)
            if at < 0:
                return
            replication().collect(self._server, tombstones.at(at).key, self._stable)


def remembers(server: Server) -> bool:
    """Return whether there is something that may be forgotten once all regions know of it."""
    return bool(region_of(server).garbage) or len(server.data.tombstones) > 0


def beat(server: Server) -> bool:
    """Record what is on the disk here, if that lets others forget something; return whether so."""
    region = region_of(server)
    if not region.wants_beat(remembers(server)) or not may_write(server):
        return False
    beat_now(server)
    return True


def beat_now(server: Server) -> None:
    """Record what is on the disk here."""
    region = region_of(server)
    numbers = encode_numbers(region.synced)
    emit(server, [AA, b"BEAT", numbers, b"%d" % region.promise_ms])


@effect(b"BEAT", 4, "BEAT has numbers and a promise")
def apply_beat(found: Effect) -> None:
    """Apply ``AA BEAT numbers promise``: what a region has on its disk."""
    words = found.words
    numbers = decode_numbers(words[2])
    promise_ms = number_in(words[3])
    number, epoch = origin_key(found.origin)
    region = region_of(found.server)
    known = region.beats.get(number)
    if known is None or known.epoch <= epoch:
        region.note_beat(number, Beat(epoch, numbers, promise_ms))
    if number == region.id:  # it may come back from others, to a region that has lost its files
        region.promise_ms = max(region.promise_ms, promise_ms)
    elif not found.replaying:
        region.others_asked_ms = found.server.clock.monotonic_ms()


@effect(b"JOIN", 3, "JOIN has a region")
def apply_join(found: Effect) -> None:
    """Apply ``AA JOIN region``: a region takes part."""
    region = region_of(found.server)
    number = member_in(found.words[2])
    if number != region.id:
        region.joined.add(number)


@effect(b"FORGET", 4, "FORGET has a region and an epoch")
def apply_forget(found: Effect) -> None:
    """Apply ``AA FORGET region epoch``: a region takes part no more, up to this epoch."""
    words = found.words
    number = member_in(words[2])
    epoch = min(number_in(words[3]), EPOCH_MAX)
    region = region_of(found.server)
    region.forget(number, epoch)
    raise_numbers(region.partings, {found.origin: found.number})


def forget(server: Server, number: int) -> None:
    """Let a region take part no more; it comes back as a new one only."""
    region = region_of(server)
    origins = [*region.known(), *region.nonces]  # it may have written nothing in its latest
    epochs = [epoch_of(origin) for origin in origins if origin_key(origin)[0] == number]
    emit(server, [AA, b"FORGET", b"%d" % number, b"%d" % max(epochs, default=0)])


def ask_for_stable(server: Server) -> None:
    """Promise, and let other regions do so, because a client wants to know what is stable."""
    region_of(server).asked_ms = server.clock.monotonic_ms()
    _promise(server)


def _promise(server: Server) -> None:
    """Promise to make no more IDs up to the millisecond before this one, or what others promise."""
    region = region_of(server)
    now_ms = server.clock.now_ns // 1_000_000
    promise_ms = region.latest_promise(now_ms - 1, now_ms + FOLLOWED_MS)
    if promise_ms > region.kept_promise_ms - _KEPT_LEAST_MS and may_write(server):
        region.kept_promise_ms = promise_ms + _KEPT_AHEAD_MS
        server.changes.record(0, [AA, b"PROMISE", b"%d" % region.kept_promise_ms])
    region.promise_ms = max(region.promise_ms, min(promise_ms, region.kept_promise_ms))


@local(b"PROMISE", 3, "PROMISE has milliseconds")
def replay_promise(server: Server, words: Words) -> None:
    """Apply ``AA PROMISE ms``: no more may have been promised until the next such record."""
    region = region_of(server)
    region.kept_promise_ms = number_in(words[2])
    region.promise_ms = max(region.promise_ms, region.kept_promise_ms)


def note_promise(region: Region, number: int, epoch: int, known: Numbers, promise_ms: int) -> None:
    """Note a promise of another region of which all earlier records are here.

    It is in ``epoch``, and has said that it knows ``known``.
    """
    region.promised_in[number] = max(epoch, region.promised_in.get(number, 0))
    region.reported[number] = known
    if promise_ms > region.promises.get(number, 0):
        region.promises[number] = promise_ms
        if region.refusal:  # it may be a new one, whose promise was not waited for
            region.promise_ms = max(region.promise_ms, promise_ms)


def look_at_promises(dispatcher: Dispatcher) -> None:
    """Promise if a client wants to know what is stable, and serve those who wait for more."""
    server = dispatcher.server
    region = region_of(server)
    now_ms = server.clock.monotonic_ms()
    beat_ms = server.config.aa_beat_ms
    if region.stable_readers:
        region.asked_ms = now_ms
    is_asked = now_ms - region.asked_ms <= _BEATS * beat_ms
    if not is_asked and now_ms - region.others_asked_ms > _BEATS * beat_ms:
        return
    server.clock.refresh()
    is_due = is_asked and now_ms - region.beaten_ms >= beat_ms and len(region.members()) > 1
    if may_write(server) and (is_due or region.is_in_unseen_epoch()):
        region.beaten_ms = now_ms
        beat_now(server)
    _promise(server)
    finish_own(server)
    for key in region.stable_readers:
        server.blocking.key_ready(0, key)
    if server.blocking.ready:
        serve_ready(dispatcher)


class _Mark:
    """The numbers and the promise known when the file was to end at some place."""

    def __init__(self, aof: AppendOnlyFile, numbers: Numbers, promise_ms: int) -> None:
        self.numbers: Final = numbers
        self.promise_ms: Final = promise_ms
        self._aof: Final = aof
        self._end: Final = aof.end

    def is_synced(self, aof: AppendOnlyFile) -> bool:
        """Return whether that end is on the disk; a file is synced before a new one is begun."""
        if not aof.named:
            return False
        return aof is not self._aof or aof.has_synced(self._end)


class SyncedNumbers:
    """Keeps ``Region.synced`` and ``synced_promise_ms``, by looking at the file now and then."""

    def __init__(self, region: Region, config: Config, durability: Durability) -> None:
        self._region: Final = region
        self._config: Final = config
        self._committer: Final = durability.committer
        self._files: Final = durability.files
        self._next_sync_ms = 0
        self._marks: list[_Mark] = []  # oldest first
        region.synced = region.known()  # the loaded records are there
        region.synced_promise_ms = region.kept_promise_ms

    def restart(self) -> None:
        """Forget all that was known."""
        self._marks = []
        self._region.synced = {}

    def look(self, now_ms: int) -> None:
        """Update what is on the disk, between two commands. ``now_ms`` is monotonic.

        With ``appendfsync no`` nothing is synced by itself. Others would keep their logs, and
        removed things, for ever. So it is synced now and then here, and when a promise waits for
        that.
        """
        aof = self._files.aof
        if aof is None:
            return
        marks = self._marks
        done = 0
        while done < len(marks) and marks[done].is_synced(aof):
            done += 1
        region = self._region
        if done:
            region.synced = marks[done - 1].numbers
            region.synced_promise_ms = max(region.synced_promise_ms, marks[done - 1].promise_ms)
            del marks[:done]
        known = region.known()
        latest = marks[-1].numbers if marks else region.synced
        latest_ms = marks[-1].promise_ms if marks else region.synced_promise_ms
        if known != latest or region.kept_promise_ms > latest_ms:
            if len(marks) == _MARKS_MOST:  # the disk is slow: the latest one will do
                marks.pop()
            marks.append(_Mark(aof, known, region.kept_promise_ms))
        if self._config.appendfsync != b"no" or not marks:
            return
        if now_ms >= self._next_sync_ms or region.promise_ms > region.synced_promise_ms:
            self._next_sync_ms = now_ms + SYNC_EVERY_MS
            self._committer.sync_soon()


def keep_met(server: Server) -> None:
    """Record the regions met since the last time; the caller ends the command."""
    region = region_of(server)
    for origin in region.unkept:
        version = b"%d" % region.versions.get(number_of(origin), LOWEST_VERSION)
        server.changes.record(0, [AA, _MET, origin, region.nonces[origin], version])
    region.unkept.clear()


@local(_MET)
def apply_met(server: Server, words: Words) -> None:
    """Apply ``AA MET origin nonce version``: another region has introduced itself."""
    version = parse_integer(words[4]) if len(words) == 5 else None
    if version is None or not words[3]:
        raise EffectError("MET has an origin, a nonce and a version")
    region = region_of(server)
    origin = check_origin(words[2])
    region.nonces[origin] = words[3]
    region.versions[number_of(origin)] = version
