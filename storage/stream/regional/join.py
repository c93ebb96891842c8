"""Two states of one stream made into one that knows all that either of them knows.

This is for regions that were apart for longer than their files reach back: records that one of them
lacks cannot be had any more, but the state to which they led. Of each lane, either state knows how
far it has come. What a state lacks though it has come so far was removed there. What lies beyond is
news. Likewise of groups, by the numbers that either state knows: what is known, and is not there,
has gone.

Joining gives what exchanging the records would have given. It is commutative, and twice is as good
as once. Places, consumers and what is pending stay what they are here, but for what the other side
knows to be acknowledged.
"""

from __future__ import annotations

from headrace.storage.regions.vectors import ID, NO_ID, Dot, Numbers, covers
from headrace.storage.stream.appending import NodeLimits
from headrace.storage.stream.block import Block
from headrace.storage.stream.ids import ID_MAX, following
from headrace.storage.stream.regional.births import Births, Create
from headrace.storage.stream.regional.lane import Lane
from headrace.storage.stream.regional.places import ALL_IDS, acknowledged
from headrace.storage.stream.regional.registers import Register
from headrace.storage.stream.regional.removals import Top
from headrace.storage.stream.regional.stream import RegionalStream
from headrace.storage.stream.stream import Stream

_PAGE = 1000  # entries looked at together
_LAST: ID = (ID_MAX, ID_MAX)


def join(
    mine: RegionalStream,
    copy: RegionalStream,
    my_numbers: Numbers,
    copy_numbers: Numbers,
    limits: NodeLimits,
) -> None:
    """Make ``mine`` the join of both; ``copy`` is of no use afterwards.

    A key that one side has not got is to be joined, too, with an empty stream: what the other side
    knows of it may have gone.

    Args:
        my_numbers, copy_numbers: what the sides know.
        limits: when a lane starts a new node.
    """
    for lane in copy.lanes:
        _join_lane(mine.lane(lane.name), lane, limits)
    _join_current(mine, copy, my_numbers, copy_numbers)
    _join_removals(mine, copy, my_numbers, copy_numbers)
    for name in copy.births:
        mine.births_of(name)
    nothing = Births()
    for name in list(mine.births):
        other = copy.births.get(name, nothing)
        _join_births(mine, mine.births[name], other, my_numbers, copy_numbers)
        mine.settle_group(name)
    known = {(one.winner_lane, one.winner_id, one.lane, one.entry_id) for one in mine.awaited}
    for one in copy.awaited:
        if (one.winner_lane, one.winner_id, one.lane, one.entry_id) not in known:
            mine.awaited.append(one)
    mine.remove_awaited()
    mine.restored()
    for group in mine.groups.values():
        acknowledged(mine, group, ALL_IDS)


def _join_lane(mine: Lane, copy: Lane, limits: NodeLimits) -> None:
    my_last = mine.last()
    last = max(my_last, copy.last())
    both = min(my_last, copy.last())
    if not mine.log.length:
        _take_over(mine, copy, my_last)
    else:
        _drop_those_gone(mine.log, copy.log, both)
        _append_news(mine.log, copy.log, my_last, limits)
    if copy.last() > my_last:
        mine.log.entries_added = copy.log.entries_added
    mine.log.last_ms, mine.log.last_seq = last
    mine.manual |= copy.manual
    early = mine.early | copy.early
    for entry_id in early:
        if entry_id <= last:
            mine.log.discard(*entry_id)
    mine.early = {entry_id for entry_id in early if entry_id > last}
    mine.trim(max(mine.trimmed, copy.trimmed))
    mine.cover(max(mine.deleted, copy.deleted))


def _take_over(mine: Lane, copy: Lane, my_last: ID) -> None:
    """There is nothing here: what the other side has beyond that comes as it is."""
    log = copy.log
    if my_last != NO_ID and my_last != _LAST:
        ms, seq = following(my_last[0], my_last[1])
        log.trim_below(ms, seq, False, 0, False)
    elif my_last == _LAST:
        log = copy.clear()
    mine.log = log


def _drop_those_gone(mine: Stream, copy: Stream, both: ID) -> None:
    """Remove what the other side lacks, up to where both have come.

    Blocks that are alike on both sides, as most are, are not decoded.
    """
    gone: list[ID] = []
    block = mine.block_from(0, 0)
    while block is not None and (block.first_ms, block.first_seq) <= both:
        other = copy.block_from(block.first_ms, block.first_seq)
        if other is None or not _are_alike(block, other):
            for entry_id in block.live_ids():
                if entry_id <= both and not copy.contains(*entry_id):
                    gone.append(entry_id)
        last = (block.last_ms, block.last_seq)
        if last == _LAST:
            break
        ms, seq = following(last[0], last[1])
        block = mine.block_from(ms, seq)
    for entry_id in gone:
        mine.discard(*entry_id)


def _are_alike(block: Block, other: Block) -> bool:
    """Whether two sealed blocks are known to have the same live entries."""
    return bool(block.payload) and block.payload == other.payload and block.dead == other.dead


def _append_news(mine: Stream, copy: Stream, my_last: ID, limits: NodeLimits) -> None:
    """Append what the other side has beyond where this one has come."""
    start = my_last
    while start < copy.last_entry_id():
        ms, seq = following(start[0], start[1])
        for part in copy.parts((ms, seq), _LAST, _PAGE, False):
            run = part.run
            for number in range(part.low, part.high):
                if part.dead is None or not part.dead[number]:
                    start = (run.ms[number], run.seq[number])
                    mine.append(*start, run.row(number), 0, limits)


def _join_current(
    mine: RegionalStream, copy: RegionalStream, my_numbers: Numbers, copy_numbers: Numbers
) -> None:
    """An origin writes the lane that the side says that knows more of it."""
    for origin, lane in copy.current.items():
        knows_more = copy_numbers.get(origin, 0) > my_numbers.get(origin, 0)
        if knows_more or origin not in mine.current:
            mine.current[origin] = mine.lane(lane.name)


def _join_removals(
    mine: RegionalStream, copy: RegionalStream, my_numbers: Numbers, copy_numbers: Numbers
) -> None:
    """Unite removals; tops and settings that either side has seen go are gone."""
    theirs = {top.dot for top in copy.tops}
    tops = [top for top in mine.tops if top.dot in theirs or not covers(copy_numbers, top.dot)]
    ours = {top.dot for top in mine.tops}
    for top in copy.tops:
        if top.dot not in ours and not covers(my_numbers, top.dot):
            tops.append(top)
    mine.tops = _unseen(tops, mine, copy)
    _join_register(mine.ttl, copy.ttl, my_numbers, copy_numbers)
    _join_register(mine.limits, copy.limits, my_numbers, copy_numbers)
    known = {removal.dot for removal in mine.removals}
    news = [removal for removal in copy.removals if removal.dot not in known]
    for removal in list(mine.removals):
        for register in (mine.ttl, mine.limits):
            register.drop_seen(removal.numbers)
    for removal in news:
        mine.add_removal(removal)
    mine.apply_limits()


def _unseen(tops: list[Top], mine: RegionalStream, copy: RegionalStream) -> list[Top]:
    removals = mine.removals + copy.removals
    return [top for top in tops if not any(each.has_seen(top.dot) for each in removals)]


def _join_register(
    mine: Register, copy: Register, my_numbers: Numbers, copy_numbers: Numbers
) -> None:
    for origin in list(mine.settings):
        if origin not in copy.settings and covers(copy_numbers, mine.settings[origin].dot):
            del mine.settings[origin]
    for origin, setting in copy.settings.items():
        if origin in mine.settings or not covers(my_numbers, setting.dot):
            mine.add(setting)


def _join_births(
    stream: RegionalStream,
    mine: Births,
    copy: Births,
    my_numbers: Numbers,
    copy_numbers: Numbers,
) -> None:
    kept: list[Create] = []
    for create in mine.creates:
        other = copy.create(create.dot)
        if other is not None:
            for lane, intervals in other.intervals.items():
                create.intervals_of(lane).unite(intervals)
            kept.append(create)
        elif not covers(copy_numbers, create.dot):
            kept.append(create)
    ours = mine.dots()
    mine.creates = kept
    tombstones = {tombstone.dot for tombstone in mine.tombstones}
    for tombstone in copy.tombstones:
        if tombstone.dot not in tombstones:
            mine.add_tombstone(tombstone)
    for removal in stream.removals:
        mine.add_removal(removal)
    _join_register(mine.mode, copy.mode, my_numbers, copy_numbers)
    for tombstone in mine.tombstones:
        mine.mode.drop_seen(tombstone.numbers)
    for removal in stream.removals:
        mine.mode.drop_seen(removal.numbers)
    for create in copy.creates:
        if create.dot not in ours and not covers(my_numbers, create.dot):
            mine.add_create(create.copy(), stream.removals)
    _join_acks(mine, copy, my_numbers, copy_numbers)


def _join_acks(mine: Births, copy: Births, my_numbers: Numbers, copy_numbers: Numbers) -> None:
    """Acknowledgements for creates that one side did not have."""
    for births in (mine, copy):
        waiting: dict[Dot, None] = dict.fromkeys(births.acks)
        for dot in waiting:
            acks = births.acks.pop(dot)
            come = covers(my_numbers, dot) or covers(copy_numbers, dot)
            for lane, intervals in acks.items():
                for after, upto in intervals.pairs():
                    mine.acknowledge(dot, lane, after, upto, come)
