"""The state of a stream that all regions have to agree on, as text and as a fingerprint.

Regions that know the same records have the same state, but for what may be forgotten: one of them
may have forgotten already what another one still remembers. So that is left out, unless asked for.
Local data (places, consumers, pending entries, iids) never belongs to it.
"""

from __future__ import annotations

from headrace.regions.lanes.group_state import GroupState, Intervals
from headrace.regions.lanes.lane import Lane
from headrace.regions.lanes.remembered import Register
from headrace.regions.lanes.stream import RegionalStream
from headrace.storage.stream.run import ID_MAX, following
from headrace.storage.vectors import ID, NO_ID, encode_dots, encode_lanes, encode_numbers

_PAGE = 1000  # entries looked at together


def fingerprint(stream: RegionalStream, with_garbage: bool = False, newest: int = 0) -> bytes:
    """Return twenty bytes that are equal where ``shared_state`` is. Complexity: O(entries)."""
    from hashlib import sha1  # late: OpenSSL comes with it

    made = sha1(usedforsecurity=False)
    for line in shared_state(stream, with_garbage, newest):
        made.update(b"%d " % len(line))
        made.update(line)
    return made.digest()


def shared_state(
    stream: RegionalStream, with_garbage: bool = False, newest: int = 0
) -> list[bytes]:
    """Return the state in lines that do not depend on the order in which records came.

    Args:
        with_garbage: with what may be forgotten once all regions have seen it.
        newest: look at so many entries of each lane, and count the others; 0 looks at all.
    """
    lines: list[bytes] = []
    for lane in stream.lanes:
        if with_garbage or not lane.is_dead():
            marks = [lane.last(), lane.deleted, lane.trimmed, *sorted(lane.early)]
            texts = b" ".join([b"%d-%d" % mark for mark in marks])
            lines.append(b"lane %b %d %b" % (lane.name, lane.manual, texts))
            lines.append(b"entries %b %b" % (lane.name, _entries_sum(lane, newest)))
    for lane in stream.current_lanes():
        if with_garbage or not lane.is_dead():
            lines.append(b"current %b %b" % (lane.origin, lane.name))
    lines.extend(sorted(b"top %b=%d %d-%d" % (*t.dot, *t.entry_id) for t in stream.tops))
    for one in stream.awaited:
        if with_garbage or stream.is_awaiting(one):
            winner = encode_lanes({one.winner_lane: one.winner_id})
            loser = encode_lanes({one.lane: one.entry_id})
            lines.append(b"awaited %b before %b" % (winner, loser))
    lines.extend(_register_lines(b"ttl", stream.ttl))
    lines.extend(_register_lines(b"limits", stream.limits))
    for name in sorted(stream.group_states):
        lines.extend(_group_state_lines(stream, name, stream.group_states[name], with_garbage))
    if with_garbage:
        for removal in stream.removals:
            numbers = encode_numbers(removal.numbers)
            lines.append(b"removal %d %b %b" % (removal.kind, encode_dots([removal.dot]), numbers))
    return sorted(lines)


def _entries_sum(lane: Lane, newest: int) -> bytes:
    """Return a fingerprint of the live entries of a lane, and how many they are."""
    from hashlib import sha1

    made = sha1(usedforsecurity=False)
    start: ID = NO_ID
    left = lane.log.length
    if 0 < newest < left:
        oldest = lane.log.parts(NO_ID, (ID_MAX, ID_MAX), newest, True)[-1]
        start = (oldest.run.ms[oldest.low], oldest.run.seq[oldest.low])
        left = newest
    while left > 0:
        for part in lane.log.parts(start, (ID_MAX, ID_MAX), _PAGE, False):
            run = part.run
            for number in range(part.low, part.high):
                if part.dead is not None and part.dead[number]:
                    continue
                ms = run.ms[number]
                seq = run.seq[number]
                row = run.row(number)
                made.update(b"%d-%d %d" % (ms, seq, len(row)))
                for word in row:
                    made.update(b" %d " % len(word))
                    made.update(word)
                start = following(ms, seq)
                left -= 1
    return b"%d %b" % (lane.log.length, made.hexdigest().encode())


def _register_lines(name: bytes, register: Register) -> list[bytes]:
    return [
        b"%b %b=%d %d %d %d" % (name, *s.dot, s.version, s.first, s.second)
        for s in register.settings.values()
    ]


def _group_state_lines(
    stream: RegionalStream, name: bytes, state: GroupState, with_garbage: bool
) -> list[bytes]:
    lines: list[bytes] = []
    for create in state.creates:
        of_create = b"create %b %b" % (name, encode_dots([create.dot]))
        numbers = encode_numbers(create.numbers)
        lines.append(b"%b %b %b" % (of_create, create.start.encode(), numbers))
        lines.extend(_interval_lines(stream, of_create, create.intervals, with_garbage))
    for dot in state.acks:
        of_dot = b"early acks %b %b" % (name, encode_dots([dot]))
        lines.extend(_interval_lines(stream, of_dot, state.acks[dot], with_garbage))
    lines.extend(_register_lines(b"mode %b" % name, state.mode))
    lines.extend(_register_lines(b"home %b" % name, state.home))
    if with_garbage:
        for tombstone in state.tombstones:
            numbers = encode_numbers(tombstone.numbers)
            lines.append(b"tombstone %b %b %b" % (name, encode_dots([tombstone.dot]), numbers))
    return lines


def _interval_lines(
    stream: RegionalStream, what: bytes, of_lanes: dict[bytes, Intervals], with_garbage: bool
) -> list[bytes]:
    lines: list[bytes] = []
    for name in of_lanes:
        lane = stream.find_lane(name)
        if not with_garbage and lane is not None and lane.is_dead():
            continue
        for after, upto in of_lanes[name].pairs():
            lines.append(b"%b %b %d-%d %d-%d" % (what, name, *after, *upto))
    return lines
