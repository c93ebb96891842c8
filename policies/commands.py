"""XPOLICY, XREDRIVE, XNACKIN and XACKF."""

from __future__ import annotations

from typing import Final

from headrace.compat import errors
from headrace.compat.errors import CommandError
from headrace.compat.event_classes import EVENT_STREAM
from headrace.compat.glob import matches
from headrace.compat.numbers import INT64_MAX, parse_integer
from headrace.compat.stream_ids import format_id, parse_id
from headrace.policies.book import (
    Book,
    Scope,
    Values,
    names_of,
    note_record,
    refusal,
    run_own,
    scope_of,
)
from headrace.policies.policy import (
    MOST_MS,
    NAMES,
    PolicyError,
    check,
    check_together,
    expanded,
    unknown,
)
from headrace.policies.rules import ID, UNKNOWN_NOTE, GroupRules, rules_of
from headrace.policies.steps import (
    DLQ,
    LIMIT,
    acknowledged,
    append,
    aside_record,
    attend,
    book_of,
    give_up,
    group_or_error,
    is_read_here,
    later,
    record_moments,
    release_record,
)
from headrace.protocol.replies import OK, Map
from headrace.server.changes.events import Event
from headrace.server.cluster import slot_of
from headrace.server.commands.streams.args import PENDING_CHANGED, strict_ids
from headrace.server.commands.streams.groups import find_group, found_group, refuse_elsewhere
from headrace.server.commands.typed_keys import stream_at, stream_to_change
from headrace.server.dispatch.args import bounded, integer
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.permission import explained, refused_line
from headrace.server.dispatch.rows import ORIGINALS
from headrace.storage.stream.groups import Group
from headrace.storage.stream.pel import Nack
from headrace.storage.stream.stream import Stream

POLICY_SET: Final = Event(b"xpolicy-set", EVENT_STREAM, wakes=True)
POLICY_UNSET: Final = Event(b"xpolicy-unset", EVENT_STREAM, wakes=True)
IN_REGIONS: Final = (
    b"ERR inactive-threshold is not there in a region (aa-region-id): another region may read the "
    b"group"
)
IDS_EXPECTED: Final = b"ERR IDS is expected: IDS numids id [id ...]"
IDS_MISMATCH: Final = b"ERR the number of IDs does not match numids"
NOT_A_DELAY: Final = b"ERR milliseconds are a number from 0 to 9007199254740992"
NOT_DELIVERIES: Final = b"ERR deliveries is a number from 1 to 9223372036854775807"
RATE_NOT_POSITIVE: Final = b"ERR RATE is a number from 1 to 1000000"
COUNT_NOT_POSITIVE: Final = b"ERR COUNT is a number from 1 to 9223372036854775807"
OWN_LETTERS: Final = b"its dead letters would come back to it"
OTHER_SLOT: Final = b"the dead-letter-key is in another slot of the cluster"
REDRIVEN_AT_ONCE: Final = 100
RATE_MOST: Final = 1_000_000
CHAIN_MOST: Final = 16  # dead letters of dead letters
REQUEUED: Final = b"requeued"
APPENDED: Final = b"appended"
SKIPPED: Final = b"skipped"


# XPOLICY


def xpolicy_set(call: Call) -> object:
    """Set policies of a stream, or of one of its groups. Reply: OK.

    Raises: WRONGTYPE; names and values that are not valid, which changes nothing.
    """
    book = _book(call)
    argv = call.argv
    stream_to_change(call, argv[2])
    scope, at = scope_of(call.db.index, argv, 2)
    words = argv[at:]
    if not words or len(words) % 2:
        raise refusal(PolicyError(b"a policy is a name and a value: XPOLICY SET key ack-wait 30s"))
    values: Values = {}
    for number in range(0, len(words), 2):
        values[words[number].lower()] = words[number + 1]
    _check_set(call, book, scope, values)
    book.put(scope, values)
    _changed(call, scope, POLICY_SET)
    return OK


def _check_set(call: Call, book: Book, scope: Scope, values: Values) -> None:
    """Raise CommandError where policies cannot be kept, before anything is changed.

    Those of a file are not asked again where they lead.
    """
    in_region = call.server.data.region is not None and not call.replaying
    if in_region and b"inactive-threshold" in values:
        raise CommandError(IN_REGIONS)
    try:
        for name, word in values.items():
            check(name, word)
        check_together({**book.scopes.get(scope, {}), **values}, scope[2] is not None)
        template = values.get(b"dead-letter-key")
        if template is not None and not call.replaying:
            _check_letters(call, book, scope, template)
    except PolicyError as error:
        raise refusal(error) from None


def _check_letters(call: Call, book: Book, scope: Scope, template: bytes) -> None:
    key = scope[1]
    group = b"%g" if scope[2] is None else scope[2]
    target = expanded(template, key, group)
    line = refused_line(call.server, call.session, ORIGINALS[b"xadd"], [b"XADD", target, b"*"])
    if line:
        raise CommandError(line)
    cluster = call.server.cluster
    if cluster is not None and slot_of(target) != slot_of(key):
        raise PolicyError(OTHER_SLOT)
    met = {key}
    waiting = [target]
    while waiting:
        following = waiting.pop()
        if following in met or len(met) > CHAIN_MOST:
            raise PolicyError(OWN_LETTERS)
        met.add(following)
        for db, name, of_group in [*book.scopes, (scope[0], following, None)]:
            if db == scope[0] and name == following:
                values = book.values_of(db, name, of_group)
                letters = values.get(b"dead-letter-key")
                if letters is not None:
                    waiting.append(expanded(letters, name, of_group or b"%g"))
                    break


def xpolicy_unset(call: Call) -> object:
    """Remove policies of a stream, or of one of its groups. Reply: how many were set."""
    book = _book(call)
    argv = call.argv
    scope, at = scope_of(call.db.index, argv, 2)
    names = [word.lower() for word in argv[at:]]
    if not names:
        raise CommandError(errors.wrong_arity(b"xpolicy|unset"))
    for name in names:
        if name not in NAMES:
            raise refusal(PolicyError(unknown(name)))
    removed = book.unset(scope, names)
    if removed:
        _changed(call, scope, POLICY_UNSET)
    return removed


def xpolicy_get(call: Call) -> object:
    """Reply: a map of the policies that hold for a stream, or for one of its groups."""
    stream = stream_at(call, call.argv[2])
    scope, at = scope_of(call.db.index, call.argv, 2)
    if at != len(call.argv):
        raise CommandError(errors.SYNTAX)
    values: Values = {}
    if call.server.policies is not None or call.server.config.stream_policy:
        values = dict(_book(call).values_of(*scope))
    group = None if stream is None or scope[2] is None else stream.groups.get(scope[2])
    if group is not None and group.max_pending and b"max-pending" not in values:
        values[b"max-pending"] = b"%d" % group.max_pending
    return Map(_in_order(values))


def _in_order(values: Values) -> list[tuple[object, object]]:
    return [(name, values[name]) for name in sorted(values)]


def xpolicy_list(call: Call) -> object:
    """Reply: for each stream and group with policies of its own in this database, whose key the
    client may read, a list of key, group or nil, and the policies.
    """
    argv = call.argv
    pattern = b"*"
    if len(argv) > 2:
        if len(argv) != 4 or argv[2].lower() != b"match":
            raise CommandError(errors.SYNTAX)
        pattern = argv[3]
    if call.server.policies is None:
        return []
    rows: list[object] = []
    scopes = book_of(call.server).scopes
    for db, key, group in sorted(scopes, key=lambda scope: (scope[1], scope[2] or b"")):
        asks = [b"XPOLICY", b"GET", key]
        may = not explained(call.session.user, ORIGINALS[b"xpolicy"].subcommands[b"get"], asks)
        if db == call.db.index and matches(pattern, key) and may:
            rows.append([key, group, Map(_in_order(scopes[db, key, group]))])
    return rows


def xpolicy_hold(call: Call) -> object:
    """Hold what has a value of the order key in a group. Reply: 1, or 0 where it is held."""
    return _hold_or_free(call, True)


def xpolicy_free(call: Call) -> object:
    """Let what has a value of the order key go on. Reply: 1, or 0 where it was not held."""
    return _hold_or_free(call, False)


def _hold_or_free(call: Call, holds: bool) -> int:
    book = _book(call)
    argv = call.argv
    scope, at = scope_of(call.db.index, argv, 2)
    if scope[2] is None or at + 1 != len(argv):
        raise CommandError(errors.SYNTAX)
    stream, group = found_group(call.db, argv[2], scope[2])
    if not call.replaying and (stream is None or group is None):
        raise CommandError(errors.no_key_or_group(argv[2], scope[2]))
    blocked = book.blocked_of(scope)
    if (argv[at] in blocked) is holds:
        return 0
    if holds:
        blocked.add(argv[at])
    else:
        blocked.discard(argv[at])
    if group is not None and group.rules is not None:
        group.rules.reset()
    if stream is not None and group is not None and not call.replaying:
        attend(call.server, call.db, argv[2], stream, group, call.now_ms)
    call.changed(argv[2], POLICY_SET, argv)
    return 1


def xpolicy_note(call: Call) -> object:
    """Keep what is known of a pending entry; files hold this. Reply: OK."""
    if not call.replaying:
        raise CommandError(errors.bad_subcommand(b"xpolicy", call.argv[1]))
    book = _book(call)
    scope, at = scope_of(call.db.index, call.argv, 2)
    book.take_note(scope, call.argv[at:])
    notes = book.notes_of(scope)
    group = find_group(call.db, scope[1], scope[2] or b"")
    if group is not None and len(notes) > 2 * group.pel.size + 1000:
        for place in [each for each in notes if group.pel.get(each[0], each[1]) is None]:
            del notes[place]
    call.record(call.argv)
    return OK


def _book(call: Call) -> Book:
    book = call.server.ready_policies()
    assert isinstance(book, Book)
    return book


def _changed(call: Call, scope: Scope, event: Event) -> None:
    """Report a change of policies, and let it be seen at once in the groups that are there."""
    call.changed(scope[1], event, call.argv)
    entry = call.db.peek(scope[1])
    if call.replaying or entry is None or not isinstance(entry.value, Stream):
        return
    book_of(call.server).wake_at((call.db.index, scope[1], None), call.now_ms)
    for group in entry.value.groups.values():
        attend(call.server, call.db, scope[1], entry.value, group, call.now_ms)


# XNACKIN, XACKF


def xnackin(call: Call) -> object:
    """Give entries back, to go out again after some time. Reply: how many. Raises: NOGROUP.

    ``AT`` has a moment instead, in milliseconds since 1970; files have that.
    """
    argv = call.argv
    stream = stream_to_change(call, argv[1])
    group = group_or_error(stream, argv[1], argv[2])
    assert stream is not None
    at = 3
    base_ms = call.now_ms
    if argv[at].lower() == b"at":
        at += 1
        base_ms = 0
    if at >= len(argv):
        raise CommandError(errors.SYNTAX)
    until_ms = base_ms + bounded(argv[at], 0, MOST_MS, NOT_A_DELAY)
    nacks = _pending(group, _ids(argv, at + 1), call.replaying)
    if call.replaying:
        for nack in nacks:
            group.release(nack, until_ms)
        call.server.ready_policies()
        if nacks:
            call.changed(argv[1], PENDING_CHANGED, argv)
        return len(nacks)
    refuse_elsewhere(call, stream, group)
    call.server.ready_policies()
    attend(call.server, call.db, argv[1], stream, group, call.now_ms)
    rules = rules_of(group)
    until: dict[int, list[bytes]] = {}
    if rules is None:
        for nack in nacks:
            nack.count = max(1, nack.count)
            group.release(nack, until_ms)
            until.setdefault(until_ms, []).append(format_id(nack.ms, nack.seq))
            call.changed(argv[1], PENDING_CHANGED, release_record(argv[1], group, nack), count=0)
        attend(call.server, call.db, argv[1], stream, group, call.now_ms)
    else:
        for nack in nacks:
            _later_or_dead(call, stream, group, rules, nack, until_ms, until)
    record_moments(call, argv[1], group, until, True)
    call.count(len(nacks))
    return len(nacks)


def _later_or_dead(
    call: Call,
    stream: Stream,
    group: Group,
    rules: GroupRules,
    nack: Nack,
    until_ms: int,
    until: dict[int, list[bytes]],
) -> None:
    key = call.argv[1]
    if rules.policy.is_dead(nack.count):
        give_up(call, key, stream, group, rules, nack, LIMIT)
        return
    nack.count = max(1, nack.count)
    later(call, group, rules, nack, until_ms, until)
    call.changed(key, PENDING_CHANGED, release_record(key, group, nack), count=0)


def xackf(call: Call) -> object:
    """Acknowledge what a consumer holds since a delivery: the fence against late workers.

    Reply: how many were; those that another consumer, or another delivery, has are not.
    """
    argv = call.argv
    deliveries = bounded(argv[4], 1, INT64_MAX, NOT_DELIVERIES)
    ids = _ids(argv, 5)
    stream = stream_to_change(call, argv[1])
    group = None if stream is None else stream.groups.get(argv[2])
    if group is None or stream is None:
        return 0
    refuse_elsewhere(call, stream, group)
    done: list[bytes] = []
    for nack in _pending(group, ids):
        holder = nack.consumer
        if holder is not None and holder.name == argv[3] and nack.count == deliveries:
            group.drop(nack)
            done.append(format_id(nack.ms, nack.seq))
    if done:
        acknowledged(call, argv[1], stream, group, done, len(done))
    return len(done)


def _ids(argv: list[bytes], at: int) -> list[ID]:
    """Return the IDs of ``IDS numids id ...``, which end a request."""
    if at + 1 >= len(argv) or argv[at].lower() != b"ids":
        raise CommandError(IDS_EXPECTED)
    if integer(argv[at + 1], IDS_MISMATCH) != len(argv) - at - 2 or at + 2 >= len(argv):
        raise CommandError(IDS_MISMATCH)
    return strict_ids(argv[at + 2 :])


def _pending(group: Group, ids: list[ID], aside_too: bool = False) -> list[Nack]:
    """Return those that are pending, each once."""
    found: dict[ID, Nack] = {}
    for ms, seq in ids:
        nack = group.pel.get(ms, seq)
        if nack is not None and (aside_too or not nack.is_aside()):
            found[ms, seq] = nack
    return list(found.values())


# XREDRIVE


class _Options:
    """The options of XREDRIVE."""

    def __init__(self, argv: list[bytes]) -> None:
        self.count = REDRIVEN_AT_ONCE
        self.ids: list[ID] | None = None
        self.rate = 0
        self.to: bytes | None = None
        at = 2
        while at < len(argv):
            word = argv[at].lower()
            if at + 1 == len(argv):
                raise CommandError(errors.SYNTAX)
            value = argv[at + 1]
            if word == b"count" and self.ids is None:
                self.count = bounded(value, 1, INT64_MAX, COUNT_NOT_POSITIVE)
            elif word == b"rate":
                self.rate = bounded(value, 1, RATE_MOST, RATE_NOT_POSITIVE)
            elif word == b"to":
                self.to = value
            elif word == b"ids" and self.ids is None:
                count = bounded(value, 1, len(argv), IDS_MISMATCH)
                if at + 2 + count > len(argv):
                    raise CommandError(IDS_MISMATCH)
                self.ids = strict_ids(argv[at + 2 : at + 2 + count])
                at += count
            else:
                raise CommandError(errors.SYNTAX)
            at += 2


def xredrive(call: Call) -> object:
    """Put dead letters back to the group that failed, and to no other.

    Reply: for each a list of its ID, ``requeued`` (the entry is still there, and ready again),
    ``appended`` (it was gone, or ``TO`` names a stream) or ``skipped`` (it is no dead letter, or
    its stream does not take it), and the ID that it has there or nil.
    """
    letters = call.argv[1]
    options = _Options(call.argv)
    stream = stream_to_change(call, letters)
    if stream is None:
        return []
    call.server.ready_policies()
    if options.to is not None:
        line = _refusal(call, options.to)
        if line:
            raise CommandError(line)
    rows: list[object] = []
    done: list[bytes] = []
    for ms, seq, row in _letters(stream, options):
        due_ms = call.now_ms
        if options.rate:
            due_ms += len(done) * 1000 // options.rate
        what, place = _redrive(call, row, options, due_ms)
        letter_id = format_id(ms, seq)
        rows.append([letter_id, what, place])
        if what != SKIPPED:
            done.append(letter_id)
    if done:
        run_own(call, ORIGINALS[b"xdel"], [b"XDEL", letters, *done])
        book_of(call.server).counters.redriven += len(done)
    return rows


def _letters(stream: Stream, options: _Options) -> list[tuple[int, int, list[bytes]]]:
    found: list[tuple[int, int, list[bytes]]] = []
    if options.ids is not None:
        for ms, seq in dict.fromkeys(options.ids):
            part = stream.one(ms, seq)
            if part is not None:
                found.append((ms, seq, part.run.row(part.low)))
        return found
    last = (stream.last_ms, stream.last_seq)
    for part in stream.parts((0, 0), last, options.count, False):
        for number in range(part.low, part.high):
            if part.dead is None or not part.dead[number]:
                run = part.run
                found.append((run.ms[number], run.seq[number], run.row(number)))
    return found


def _refusal(call: Call, key: bytes) -> bytes:
    """Return why the client may not write to a stream; empty if it may."""
    return refused_line(call.server, call.session, ORIGINALS[b"xadd"], [b"XADD", key, b"*"])


def _redrive(
    call: Call, row: list[bytes], options: _Options, due_ms: int
) -> tuple[bytes, bytes | None]:
    """Put one dead letter back; return what was done, and the ID there."""
    own: list[bytes] = []
    marks: Values = {}
    for at in range(0, len(row), 2):
        if row[at].startswith(DLQ):
            marks[row[at][len(DLQ) :]] = row[at + 1]
        else:
            own += row[at : at + 2]
    key = marks.get(b"topic")
    place = parse_id(marks.get(b"offset", b""))
    name = marks.get(b"group")
    if options.to is None:
        if key is None or place is None or name is None or _refusal(call, key):
            return SKIPPED, None
        stream, group = found_group(call.db, key, name)
        if stream is not None and group is not None and not _may_requeue(stream, group, place):
            return SKIPPED, None
        if _requeue(call, key, name, place, marks, due_ms):
            return REQUEUED, format_id(*place)
    target = options.to or key
    if target is None or not own:
        return SKIPPED, None
    new_id = append(call, target, own)
    return (SKIPPED if new_id is None else APPENDED), new_id


def _may_requeue(stream: Stream, group: Group, place: ID) -> bool:
    """Return whether a group is read here, and its end of an entry is known here.

    Where the entry has ended in another region, the news of that comes later. It would then end the
    entry that was put back here.
    """
    if group.places is None or not stream.contains(*place):
        return is_read_here(stream, group)
    is_open = group.pel.get(*place) is not None or group.places.is_to_come(stream, *place)
    return is_read_here(stream, group) and not is_open


def _requeue(call: Call, key: bytes, name: bytes, place: ID, marks: Values, due_ms: int) -> bool:
    """Let an entry go out again in its group; False where one of them is gone."""
    stream, group = found_group(call.db, key, name)
    if stream is None or group is None or not stream.contains(*place):
        return False
    call.db.before_change(key)
    attend(call.server, call.db, key, stream, group, call.now_ms)
    if group.pel.get(*place) is not None:
        return True
    nack = group.add_pending(*place, None, due_ms)
    nack.count = 0
    count = min(max(0, parse_integer(marks.get(b"redrives", b"0")) or 0), MOST_MS)
    note = UNKNOWN_NOTE._replace(redrives=count + 1)
    scope: Scope = (call.db.index, key, name)
    book = book_of(call.server)
    book.notes_of(scope)[place] = note
    call.record(note_record(scope, place, note))
    if group.rules is not None:
        group.rules.reset()
    _free_dead(call, book, scope, stream, group, place)
    ids = [format_id(*place)]
    call.changed(key, PENDING_CHANGED, aside_record(key, group, ids), count=1)
    record_moments(call, key, group, {due_ms: ids}, True)
    attend(call.server, call.db, key, stream, group, call.now_ms)
    return True


def _free_dead(
    call: Call, book: Book, scope: Scope, stream: Stream, group: Group, place: ID
) -> None:
    """Let the order key go on that a dead entry, which is put back, has held."""
    rules = rules_of(group)
    blocked = book.blocked_of(scope)
    if rules is None or not blocked:
        return
    part = stream.one(*place)
    value = None if part is None else rules.policy.order_of(part.run.row(part.low))
    if value is not None and value in blocked:
        blocked.discard(value)
        call.record([b"XPOLICY", b"FREE", *names_of(scope), value])
