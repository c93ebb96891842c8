"""Effects that set something of a stream: its top ID, its deadline, the limits of its IDMP map."""

from __future__ import annotations

from headrace.regions.commands.state import settle, settle_and_report, state_of
from headrace.regions.exchange.effects import Effect, EffectError, effect, emit, number_in
from headrace.regions.lanes.registers import NO_DEADLINE, Setting
from headrace.regions.lanes.removals import Top
from headrace.regions.lanes.stream import RegionalStream
from headrace.server.changes.events import DEADLINE_SET, PERSISTED
from headrace.server.commands.streams.args import LAST_ID_SET, PRODUCERS_CHANGED
from headrace.server.state import Server
from headrace.storage.sharing import AA
from headrace.storage.stream.contents import IDMP_DURATION_S_MAX, IDMP_MAXSIZE_MAX
from headrace.storage.vectors import decode_id


@effect(b"TOP", 4, "TOP has a key and an ID")
def apply_top(found: Effect) -> None:
    """``AA TOP key id``: later IDs are above this one."""
    top = decode_id(found.words[3])
    stream = state_of(found.server, found.words[2])
    stream.add_top(Top(found.dot, top))
    settle_and_report(found, stream, LAST_ID_SET, 1, False)


@effect(b"TTL", 5, "TTL has a key, a deadline and a version")
def apply_ttl(found: Effect) -> None:
    """``AA TTL key deadline version``: a key is to go at a moment, or with -1 to stay."""
    words = found.words
    moment_ms = NO_DEADLINE if words[3] == b"-1" else number_in(words[3])
    version = number_in(words[4])
    server = found.server
    key = words[2]
    stream = state_of(server, key)
    before_ms = stream.deadline_ms()
    stream.add_ttl(Setting(found.dot, version, moment_ms))
    if settle(server, key, stream) and stream.deadline_ms() != before_ms:
        event = PERSISTED if moment_ms == NO_DEADLINE else DEADLINE_SET
        server.changes.report(0, key, event, None, 1, False)


def set_first_limits(server: Server, key: bytes, stream: RegionalStream) -> None:
    """Let others know the limits that a new stream has; what it has recorded stays."""
    emit(server, limits_record(key, stream.idmp_duration_s, stream.idmp_maxsize, 0))


def limits_record(key: bytes, duration_s: int, maxsize: int, version: int) -> list[bytes]:
    """The effect that sets limits."""
    return [AA, b"LIMITS", key, b"%d" % duration_s, b"%d" % maxsize, b"%d" % version]


@effect(b"LIMITS", 6, "LIMITS has a key, two limits and a version")
def apply_limits(found: Effect) -> None:
    """``AA LIMITS key duration maxsize version``: the limits of a stream's IDMP map.

    A change makes the stream forget all iids, unless it is the first one (version 0): those are the
    limits with which the stream was made.
    """
    words = found.words
    duration_s, maxsize, version = (number_in(word) for word in words[3:])
    if not (0 < duration_s <= IDMP_DURATION_S_MAX and 0 < maxsize <= IDMP_MAXSIZE_MAX):
        raise EffectError("limits that can be set")
    server = found.server
    key = words[2]
    stream = state_of(server, key)
    pairs = [] if version else list(stream.idmp_records())
    for old in stream.add_limits(Setting(found.dot, version, duration_s, maxsize)):
        server.data.free_later(old)
    if pairs and stream.idmp is None:
        for pid, iid, ms, seq, added_ms in pairs:
            stream.record_iid(pid, iid, ms, seq, added_ms)
    settle_and_report(found, stream, PRODUCERS_CHANGED, 1, False)
