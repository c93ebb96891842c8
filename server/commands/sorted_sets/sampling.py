"""Some members: ZRANDMEMBER and ZSCAN."""

from __future__ import annotations

from typing import Final

from headrace.compat.errors import OUT_OF_RANGE, SYNTAX, CommandError, not_between
from headrace.compat.numbers import INT64_MAX
from headrace.protocol.doubles import double
from headrace.protocol.packing import Packer
from headrace.server.commands.element_scan import EMPTY_SCAN, ElementScan, scan_cursor
from headrace.server.commands.randomness import LOOK_EVERY, generator
from headrace.server.commands.sorted_set_keys import sorted_set_at
from headrace.server.commands.sorted_sets.replies import members_reply
from headrace.server.dispatch.args import Args
from headrace.server.dispatch.call import Call
from headrace.storage.sorted_set.sorted_set import SortedSet, pairs_of

_MOST_WORDS: Final = 4  # of ZRANDMEMBER


def zrandmember(call: Call) -> object:
    """Reply: a member or nil; with a count so many, with their scores if they are asked for."""
    argv = call.argv
    if len(argv) == 2:
        value = sorted_set_at(call, argv[1])
        return None if value is None else _pair(value, generator().randrange(value.size()))[0]
    args = Args(argv, 2)
    count = args.integer()
    if count < -INT64_MAX:
        raise CommandError(not_between(-INT64_MAX, INT64_MAX))
    scores = False
    if len(argv) >= _MOST_WORDS:
        if len(argv) > _MOST_WORDS or args.option() != b"WITHSCORES":
            raise CommandError(SYNTAX)
        scores = True
        if not -INT64_MAX // 2 <= count <= INT64_MAX // 2:
            raise CommandError(OUT_OF_RANGE)
    value = sorted_set_at(call, argv[1])
    if value is None or not count:
        return []
    size = value.size()
    if count >= size:
        return members_reply(call.session.resp3, value.span(0, size), False, scores)
    if count > 0:
        return _members(call, value, generator().sample(range(size), count), scores)
    return _repeated_members(call, value, -count, scores)


def _pair(value: SortedSet, rank: int) -> tuple[bytes, float]:
    return pairs_of(value.runs(rank, rank + 1)[0])[0]


def _members(call: Call, value: SortedSet, ranks: list[int], scores: bool) -> object:
    """The members of these ranks, in this order."""
    out = _begun(call, len(ranks), scores)
    for rank in ranks:
        _add(out, _pair(value, rank), scores, call.session.resp3)
    return out.packed()


def _repeated_members(call: Call, value: SortedSet, count: int, scores: bool) -> object:
    """So many members, any of them again and again: they may be more than memory holds."""
    numbers = generator()
    size = value.size()
    out = _begun(call, count, scores)
    for number in range(count):
        _add(out, _pair(value, numbers.randrange(size)), scores, call.session.resp3)
        if number % LOOK_EVERY == 0 and call.reply_is_too_long(out.wire_bytes()):
            break
    return out.packed()


def _begun(call: Call, count: int, scores: bool) -> Packer:
    resp3 = call.session.resp3
    out = Packer(resp3)
    out.array(2 * count if scores and not resp3 else count)
    return out


def _add(out: Packer, pair: tuple[bytes, float], scores: bool, resp3: bool) -> None:
    if scores:
        if resp3:
            out.array(2)
        out.text(pair[0])
        out.double(pair[1])
    else:
        out.text(pair[0])


def zscan(call: Call) -> object:
    """Reply: the next cursor, 0 at the end, and members each with its score, as texts."""
    cursor = scan_cursor(call)
    value = sorted_set_at(call, call.argv[1])
    if value is None:
        return EMPTY_SCAN
    wanted = ElementScan(call, False)
    large = value.is_large()
    cursor, pairs = value.scan(cursor, wanted.count)
    found: list[object] = []
    for member, score in pairs:
        if wanted.takes(member):
            found.append(member)
            found.append(b"%.17g" % score if large else double(score))
    return [b"%d" % cursor, found]
