"""Promises of this region and of others, for those who read up to what is stable.

A region promises that it makes no more IDs up to a moment that is over. Where clocks differ, it
promises as much as the region whose clock is furthest ahead, and makes its IDs above that. Else
nothing of that region would be stable before the others' clocks are there. A clock that is ahead by
more than some minutes is wrong, and pulls nobody with it. A region promises only while somebody
wants to know what is stable: here, or in another region, which beats meanwhile. The file
says so before, and mostly more than that. So a promise holds when the process has ended, and not
each one takes a record. Others are promised only what is on the disk, because a power cut would
take back the rest.
"""

from __future__ import annotations

from typing import Final

from headrace.regions.exchange.effects import EffectError, Words, local, may_write, region_of
from headrace.regions.exchange.stability import beat_now
from headrace.regions.knowledge.promises import FOLLOWED_MS
from headrace.regions.knowledge.region import Region
from headrace.server.dispatch.dispatcher import Dispatcher
from headrace.server.dispatch.invoke import finish_own
from headrace.server.dispatch.serving import serve_ready
from headrace.server.state import Server
from headrace.storage.sharing import AA
from headrace.storage.vectors import Numbers

_NUMBER_DIGITS: Final = 18
_BEATS: Final = 10  # as long as these take, somebody who has asked may ask again
_KEPT_AHEAD_MS: Final = 2500  # so much more than what is promised stands in the file, at most
_KEPT_LEAST_MS: Final = 1250  # the next record has to be on the disk when this time is over


def ask_for_stable(server: Server) -> None:
    """Somebody wants to know what is stable: promise, and let other regions do so."""
    region_of(server).asked_ms = server.clock.monotonic_ms()
    _promise(server)


def _promise(server: Server) -> None:
    """Promise to make no more IDs up to the millisecond before this one, or what others promise."""
    region = region_of(server)
    now_ms = server.clock.now_ns // 1_000_000
    promise_ms = region.latest_promise(now_ms - 1, now_ms + FOLLOWED_MS)
    if promise_ms > region.kept_promise_ms - _KEPT_LEAST_MS and may_write(server):
        _keep_promise(server, region, promise_ms + _KEPT_AHEAD_MS)
    region.promise_ms = max(region.promise_ms, min(promise_ms, region.kept_promise_ms))


def _keep_promise(server: Server, region: Region, promise_ms: int) -> None:
    region.kept_promise_ms = promise_ms
    server.changes.record(0, [AA, b"PROMISE", b"%d" % promise_ms])


@local(b"PROMISE")
def replay_promise(server: Server, words: Words) -> None:
    """``AA PROMISE ms``: more than this may not have been promised until the next such record."""
    if len(words) != 3:
        raise EffectError("PROMISE has milliseconds")
    region = region_of(server)
    region.kept_promise_ms = _milliseconds(words[2])
    region.promise_ms = max(region.promise_ms, region.kept_promise_ms)


def note_promise(region: Region, number: int, epoch: int, known: Numbers, promise_ms: int) -> None:
    """Another region has promised something, and all that it wrote before is here.

    Args:
        epoch: in which it is.
        known: what it has said it knows.
    """
    region.promised_in[number] = max(epoch, region.promised_in.get(number, 0))
    region.reported[number] = known
    if promise_ms > region.promises.get(number, 0):
        region.promises[number] = promise_ms
        if region.refusal:  # it may be a new one, of which nobody has waited for a promise
            region.promise_ms = max(region.promise_ms, promise_ms)


def look_at_promises(dispatcher: Dispatcher) -> None:
    """Promise if somebody wants to know what is stable, and serve those who wait for more."""
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


def _milliseconds(text: bytes) -> int:
    if not text.isdigit() or len(text) > _NUMBER_DIGITS:
        raise EffectError("a number")
    return int(text)
