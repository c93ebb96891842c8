"""Effects on groups: they come and go, what they have read is acknowledged, and their mode is set.

Whoever removes a group wins over whoever makes it meanwhile. Places, consumers and what is pending
concern one region alone, and so do the records that repeat them.
"""

from __future__ import annotations

from headrace.protocol.replies import OK
from headrace.regions.commands.group_handover import acknowledgement, hand_on
from headrace.regions.commands.settings import set_first_limits
from headrace.regions.commands.state import note_gaps_closed, settle, state_of
from headrace.regions.exchange.effects import (
    Effect,
    EffectError,
    effect,
    emit,
    local,
    number_in,
    region_of,
)
from headrace.regions.lanes.group_state import Create, decode_start, start_after, start_after_seen
from headrace.regions.lanes.merge import reached_by
from headrace.regions.lanes.places import places_of, release
from headrace.regions.lanes.registers import Setting
from headrace.regions.lanes.removals import Tombstone
from headrace.regions.lanes.stream import RegionalStream
from headrace.server.commands.streams.args import (
    GROUP_CREATED,
    GROUP_DESTROYED,
    GROUP_MODE_SET,
    PENDING_CHANGED,
)
from headrace.server.dispatch.call import Call
from headrace.server.state import Server
from headrace.storage.sharing import AA
from headrace.storage.stream.groups import Group
from headrace.storage.stream.part import Part
from headrace.storage.stream.stream import Stream
from headrace.storage.vectors import (
    ID,
    check_lane,
    decode_dots,
    decode_id,
    decode_numbers,
    encode_numbers,
)

# Groups come and go


def create_everywhere(call: Call, stream: Stream, position: ID, created: bool) -> object:
    """XGROUP CREATE of a group that is not there.

    Args:
        position: where it starts, if not at the end.
        created: the stream is a new one.
    """
    assert isinstance(stream, RegionalStream)
    server = call.server
    key, name = call.argv[2], call.argv[3]
    begins = start_after_seen(stream.seen()) if call.argv[4] == b"$" else start_after(position)
    start = begins.encode()
    numbers = encode_numbers(region_of(server).known())
    emit(server, [AA, b"GROUP", key, name, start, numbers])
    if created and not stream.has_default_limits():
        set_first_limits(server, key, stream)
    return OK


@effect(b"GROUP")
def apply_group(found: Effect) -> None:
    """``AA GROUP key name start numbers``: a group is made, unless it was removed meanwhile."""
    words = found.words
    if len(words) != 6:
        raise EffectError("GROUP has a key, a name, a start and numbers")
    create = Create(found.dot, decode_start(words[4]), decode_numbers(words[5]))
    server = found.server
    key = words[2]
    stream = state_of(server, key)
    was_there = words[3] in stream.groups
    stream.add_create(words[3], create)
    if settle(server, key, stream) and not was_there and words[3] in stream.groups:
        server.changes.report(0, key, GROUP_CREATED, None, 1, False)


def destroy_everywhere(call: Call, stream: Stream) -> int:
    """XGROUP DESTROY; 1, or 0 where there is no such group."""
    key, name = call.argv[2], call.argv[3]
    if name not in stream.groups:
        return 0
    server = call.server
    emit(server, [AA, b"UNGROUP", key, name, encode_numbers(region_of(server).known())])
    return 1


@effect(b"UNGROUP")
def apply_ungroup(found: Effect) -> None:
    """``AA UNGROUP key name numbers``: a group goes, with all that was made of it meanwhile."""
    words = found.words
    if len(words) != 5:
        raise EffectError("UNGROUP has a key, a name and numbers")
    numbers = decode_numbers(words[4])
    server = found.server
    key = words[2]
    stream = state_of(server, key)
    gone = stream.add_tombstone(words[3], Tombstone(found.dot, numbers))
    region_of(server).note_garbage(key, found.dot)
    for group in gone:
        server.data.free_later(group)
    if gone:
        server.changes.report(0, key, GROUP_DESTROYED, None, 1, True)
    settle(server, key, stream)


# Acknowledgements


def note_acknowledged(call: Call, key: bytes, stream: object, group: Group) -> None:
    """Something was acknowledged: see that other regions get to know, now or soon."""
    if call.replaying:
        return
    assert isinstance(stream, RegionalStream)
    server = call.server
    if server.config.aa_ack_interval_ms:
        region_of(server).unpublished[(key, group.name)] = None
        server.host.publish_soon()
    else:
        publish(server, key, stream, group)


def publish(server: Server, key: bytes, stream: RegionalStream, group: Group) -> None:
    """Make known up to where everything is acknowledged, if that is farther than is known."""
    found = places_of(group).prefix(stream, group)
    if found:
        emit(server, acknowledgement(key, group, found))


def publish_waiting(server: Server) -> None:
    """Make known all that has waited for it."""
    region = region_of(server)
    waiting = list(region.unpublished)
    region.unpublished.clear()
    for key, name in waiting:
        found = server.data.dbs[0].peek(key)
        if found is not None and isinstance(found.value, RegionalStream):
            group = found.value.groups.get(name)
            if group is not None and not hand_on(server, key, found.value, group):
                publish(server, key, found.value, group)


def release_held(call: Call, key: bytes, stream: Stream, group: Group, consumer: bytes) -> None:
    """A consumer is to go with all it holds, in this region alone: others will read that."""
    assert isinstance(stream, RegionalStream)
    if not call.replaying:
        publish(call.server, key, stream, group)
    release(stream, group, group.consumers[consumer].pel)


@effect(b"ACK")
def apply_ack(found: Effect) -> None:
    """``AA ACK key name creates lane after upto ...``: all of these stretches is acknowledged."""
    words = found.words
    if len(words) < 8 or (len(words) - 5) % 3:
        raise EffectError("ACK has a key, a name, creates and stretches of lanes")
    creates = decode_dots(words[4])
    stretches: list[tuple[bytes, ID, ID]] = []
    for at in range(5, len(words), 3):
        lane = check_lane(words[at])
        stretches.append((lane, decode_id(words[at + 1]), decode_id(words[at + 2])))
    server = found.server
    key = words[2]
    stream = state_of(server, key)
    cleared = stream.acknowledge(words[3], creates, stretches)
    if cleared:
        note_gaps_closed(found, stream)
    if settle(server, key, stream) and cleared:
        server.changes.report(0, key, PENDING_CHANGED, None, cleared, True)


# Mode


def set_mode_everywhere(call: Call, stream: Stream, name: bytes, most: int) -> None:
    """XGROUP SETMODE of a group that is there: the most pending entries."""
    assert isinstance(stream, RegionalStream)
    key = call.argv[2]
    version = stream.group_state(name).mode.next_version()
    emit(call.server, [AA, b"MODE", key, name, b"%d" % most, b"%d" % version])


@effect(b"MODE")
def apply_mode(found: Effect) -> None:
    """``AA MODE key name max-pending version``: the most pending entries of a group."""
    words = found.words
    if len(words) != 6:
        raise EffectError("MODE has a key, a name, a number and a version")
    most, version = number_in(words[4]), number_in(words[5])
    server = found.server
    key = words[2]
    stream = state_of(server, key)
    stream.add_mode(words[3], Setting(found.dot, version, most))
    if settle(server, key, stream):
        server.changes.report(0, key, GROUP_MODE_SET, None, 1, True)


# Places


def set_place(stream: Stream, group: Group, position: ID | None) -> None:
    """XGROUP SETID, in this region alone: read on after an ID, or behind all that is here."""
    assert isinstance(stream, RegionalStream)
    begins = start_after_seen(stream.seen()) if position is None else start_after(position)
    places_of(group).set(begins, {})
    group.last_ms, group.last_seq = begins.highest()


def place_record(key: bytes, group: Group, parts: list[Part]) -> list[bytes]:
    """The record of how far a group has come that has been given these parts."""
    words = [AA, b"PLACE", key, group.name]
    for lane, entry_id in reached_by(parts).items():
        words += [lane, b"%d-%d" % entry_id]
    return words


@local(b"PLACE")
def replay_place(server: Server, words: list[bytes]) -> None:
    """``AA PLACE key name lane id ...``: a group has been given lanes up to these entries."""
    if len(words) < 6 or len(words) % 2:
        raise EffectError("PLACE has a key, a name and places in lanes")
    reached: dict[bytes, ID] = {}
    for at in range(4, len(words), 2):
        reached[check_lane(words[at])] = decode_id(words[at + 1])
    stream = state_of(server, words[2])
    group = stream.groups.get(words[3])
    if group is None:
        raise EffectError("a place of a group that is not there")
    places = places_of(group)
    for name, entry_id in reached.items():
        places.put(name, entry_id)
        group.last_ms, group.last_seq = max((group.last_ms, group.last_seq), entry_id)
