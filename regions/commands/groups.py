"""Effects on groups: they come and go, what they have read is acknowledged, and their mode is set.

Whoever removes a group wins over whoever makes it meanwhile. Places, consumers and what is pending
concern one region alone, and so do the records that repeat them.
"""

from __future__ import annotations

from headrace.regions.commands.group_handover import acknowledgement, hand_on
from headrace.regions.commands.state import note_gaps_closed, settle, settle_and_report, state_of
from headrace.regions.exchange.effects import (
    Effect,
    EffectError,
    effect,
    emit,
    local,
    number_in,
    region_of,
)
from headrace.regions.lanes.group_state import Create, decode_start
from headrace.regions.lanes.places import places_of
from headrace.regions.lanes.registers import Setting
from headrace.regions.lanes.removals import Tombstone
from headrace.regions.lanes.stream import RegionalStream
from headrace.server.commands.streams.args import (
    GROUP_CREATED,
    GROUP_DESTROYED,
    GROUP_MODE_SET,
    PENDING_CHANGED,
)
from headrace.server.state import Server
from headrace.storage.stream.groups import Group
from headrace.storage.vectors import (
    ID,
    check_lane,
    decode_dots,
    decode_id,
    decode_numbers,
)


@effect(b"GROUP", 6, "GROUP has a key, a name, a start and numbers")
def apply_group(found: Effect) -> None:
    """``AA GROUP key name start numbers``: a group is made, unless it was removed meanwhile."""
    words = found.words
    create = Create(found.dot, decode_start(words[4]), decode_numbers(words[5]))
    stream = state_of(found.server, words[2])
    was_there = words[3] in stream.groups
    stream.add_create(words[3], create)
    is_new = words[3] in stream.groups and not was_there
    settle_and_report(found, stream, GROUP_CREATED, int(is_new), False)


@effect(b"UNGROUP", 5, "UNGROUP has a key, a name and numbers")
def apply_ungroup(found: Effect) -> None:
    """``AA UNGROUP key name numbers``: a group goes, with all that was made of it meanwhile."""
    words = found.words
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
    stream = state_of(found.server, words[2])
    cleared = stream.acknowledge(words[3], creates, stretches)
    if cleared:
        note_gaps_closed(found, stream)
    settle_and_report(found, stream, PENDING_CHANGED, cleared)


@effect(b"MODE", 6, "MODE has a key, a name, a number and a version")
def apply_mode(found: Effect) -> None:
    """``AA MODE key name max-pending version``: the most pending entries of a group."""
    words = found.words
    most, version = number_in(words[4]), number_in(words[5])
    stream = state_of(found.server, words[2])
    stream.add_mode(words[3], Setting(found.dot, version, most))
    settle_and_report(found, stream, GROUP_MODE_SET)


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
