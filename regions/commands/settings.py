"""Effects that set something of a stream: its top ID, its deadline, the limits of its IDMP map."""

from __future__ import annotations

from headrace.compat import errors
from headrace.compat.errors import CommandError
from headrace.protocol.replies import OK
from headrace.regions.commands.state import settle, state_of
from headrace.regions.exchange.effects import Effect, EffectError, effect, emit, number_in
from headrace.regions.lanes.registers import NO_DEADLINE, Setting
from headrace.regions.lanes.removals import Top
from headrace.regions.lanes.stream import RegionalStream
from headrace.server.changes.events import DEADLINE_SET, PERSISTED
from headrace.server.commands.streams.args import LAST_ID_SET, PRODUCERS_CHANGED
from headrace.server.dispatch.call import Call
from headrace.server.state import Server
from headrace.storage.sharing import AA
from headrace.storage.stream.contents import IDMP_DURATION_S_MAX, IDMP_MAXSIZE_MAX
from headrace.storage.stream.stream import Stream
from headrace.storage.vectors import ID, decode_id


def set_id_everywhere(call: Call, stream: Stream, new_id: ID) -> object:
    """XSETID of a stream that is there: later IDs are above this one, in every region.

    Raises:
        CommandError: it is below the last one, or comes with options.
    """
    if len(call.argv) > 3:
        raise CommandError(errors.XSETID_OPTIONS_IN_REGION)
    if new_id < (stream.last_ms, stream.last_seq):
        raise CommandError(errors.XSETID_BELOW_TOP)
    emit(call.server, [AA, b"TOP", call.argv[1], b"%d-%d" % new_id])
    return OK


@effect(b"TOP")
def apply_top(found: Effect) -> None:
    """``AA TOP key id``: later IDs are above this one."""
    if len(found.words) != 4:
        raise EffectError("TOP has a key and an ID")
    top = decode_id(found.words[3])
    server = found.server
    key = found.words[2]
    stream = state_of(server, key)
    stream.add_top(Top(found.dot, top))
    if settle(server, key, stream):
        server.changes.report(0, key, LAST_ID_SET, None, 1, False)


def set_deadline(server: Server, key: bytes, stream: RegionalStream, moment_ms: int) -> None:
    """Give a key a deadline, or with ``NO_DEADLINE`` none."""
    version = stream.ttl.next_version()
    emit(server, [AA, b"TTL", key, b"%d" % moment_ms, b"%d" % version])


@effect(b"TTL")
def apply_ttl(found: Effect) -> None:
    """``AA TTL key deadline version``: a key is to go at a moment, or with -1 to stay."""
    words = found.words
    if len(words) != 5:
        raise EffectError("TTL has a key, a deadline and a version")
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


def set_limits_everywhere(
    call: Call, key: bytes, stream: Stream, duration_s: int, maxsize: int
) -> None:
    """XCFGSET of a stream that is there: the limits of its IDMP map."""
    assert isinstance(stream, RegionalStream)
    version = stream.limits.next_version()
    emit(call.server, limits_record(key, duration_s, maxsize, version))


def set_first_limits(server: Server, key: bytes, stream: RegionalStream) -> None:
    """Let others know the limits that a new stream has; what it has recorded stays."""
    emit(server, limits_record(key, stream.idmp_duration_s, stream.idmp_maxsize, 0))


def limits_record(key: bytes, duration_s: int, maxsize: int, version: int) -> list[bytes]:
    """The effect that sets limits."""
    return [AA, b"LIMITS", key, b"%d" % duration_s, b"%d" % maxsize, b"%d" % version]


@effect(b"LIMITS")
def apply_limits(found: Effect) -> None:
    """``AA LIMITS key duration maxsize version``: the limits of a stream's IDMP map.

    A change makes the stream forget all iids, unless it is the first one (version 0): those are the
    limits with which the stream was made.
    """
    words = found.words
    if len(words) != 6:
        raise EffectError("LIMITS has a key, two limits and a version")
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
    if settle(server, key, stream):
        server.changes.report(0, key, PRODUCERS_CHANGED, None, 1, False)
