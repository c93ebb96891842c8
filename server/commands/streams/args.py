"""Commands of streams share events, IDs and options in requests, and entries in replies.

Clients send the same options again and again, so those that were read last are kept.
Source: t_stream.c, streamParseAddOrTrimArgsOrReply and xreadCommand.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

from mypy_extensions import i64, mypyc_attr

from headrace.compat import errors
from headrace.compat.errors import CommandError, wrong_arity
from headrace.compat.event_classes import EVENT_STREAM
from headrace.compat.stream_ids import ID_MAX, format_id, parse_id, plain_id
from headrace.protocol.packing import NOT_SHOWN, Packer, SizeLimit, entry_bytes
from headrace.protocol.replies import Packed
from headrace.server.changes.events import Event
from headrace.server.dispatch.args import at_least, deadline_of, integer
from headrace.server.dispatch.call import Call, Lengthy
from headrace.storage.stream.block import Block
from headrace.storage.stream.part import Part
from headrace.storage.stream.references import ACKED, DELREF, KEEPREF, Trim
from headrace.storage.stream.references import trim as trim_referenced
from headrace.storage.stream.run import following
from headrace.storage.stream.stream import Stream
from headrace.storage.value import Removed

XADDED: Final = Event(b"xadd", EVENT_STREAM, touches=True, wakes=True)
XTRIMMED: Final = Event(b"xtrim", EVENT_STREAM, touches=True)
XDELETED: Final = Event(b"xdel", EVENT_STREAM, touches=True)
LAST_ID_SET: Final = Event(b"xsetid", EVENT_STREAM)
GROUP_CREATED: Final = Event(b"xgroup-create", EVENT_STREAM)
GROUP_CREATED_WITH_STREAM: Final = Event(b"xgroup-create", EVENT_STREAM, touches=True)
GROUP_ID_SET: Final = Event(b"xgroup-setid", EVENT_STREAM)
GROUP_MODE_SET: Final = Event(b"xgroup-setmode", EVENT_STREAM, wakes=True)
GROUP_DESTROYED: Final = Event(b"xgroup-destroy", EVENT_STREAM, wakes=True)
CONSUMER_CREATED: Final = Event(b"xgroup-createconsumer", EVENT_STREAM)
CONSUMER_DELETED: Final = Event(b"xgroup-delconsumer", EVENT_STREAM)

# Redis publishes nothing for these, and they touch no key that is watched.
PENDING_CHANGED: Final = Event(b"", EVENT_STREAM)  # deliveries, claims, acknowledgements
PENDING_RELEASED: Final = Event(b"", EVENT_STREAM, wakes=True)
PRODUCERS_CHANGED: Final = Event(b"", EVENT_STREAM)  # iids, and how long they are remembered


NO_TRIM: Final = 0
MAXLEN: Final = 1
MINID: Final = 2
DEFAULT_LIMIT: Final = 10_000
HIGHEST_DEFAULT_LIMIT: Final = 1_000_000
REFERENCE_MODES: Final = {b"keepref": KEEPREF, b"delref": DELREF, b"acked": ACKED}
_SPELLINGS: Final = 64  # a power of two
_OPTION_BYTES: Final = 16  # of a name of an option, at most


class _Options:
    """Cache of option names in lower case, by ends and length: a dict would have to hash them."""

    def __init__(self) -> None:
        self._spellings = [b""] * _SPELLINGS
        self._names = [b""] * _SPELLINGS

    def name(self, word: bytes) -> bytes:
        size: i64 = len(word)
        if not 0 < size <= _OPTION_BYTES:
            return word.lower()
        first: i64 = word[0]
        last: i64 = word[size - 1]
        place = (first ^ (last << 1) ^ (size << 2)) & (_SPELLINGS - 1)
        if self._spellings[place] != word:
            self._names[place] = word.lower()
            self._spellings[place] = word
        return self._names[place]


_options: Final = _Options()


def option_name(word: bytes) -> bytes:
    """Return ``word`` in lower case: the name of an option, if it is one."""
    return _options.name(word)


class TrimOptions:
    """The options that XADD and XTRIM share.

    Attributes:
        strategy: ``NO_TRIM``, ``MAXLEN`` or ``MINID``.
        approximate: ``~`` was given.
        threshold, min_ms, min_seq: the bound of MAXLEN, and that of MINID.
        limit: as it was given, or 0.
        most: the most entries to remove; 0 is no limit. ``settle`` decides it.
        mode: ``keepref``, ``delref`` or ``acked``; empty when none was given.
        operator_at, threshold_at: where ``~`` and the threshold stand in the request.
    """

    def __init__(self) -> None:
        self.strategy = NO_TRIM
        self.approximate = False
        self.threshold = 0
        self.min_ms = 0
        self.min_seq = 0
        self.limit = 0
        self.limit_given = False
        self.most = 0
        self.mode = b""
        self.operator_at = 0
        self.threshold_at = 0

    def take(self, argv: list[bytes], at: int, word: bytes) -> int:
        """Read the option ``word``, in lower case, at ``at``; return the next place, or ``at``."""
        more = len(argv) - 1 - at
        if (word == b"maxlen" or word == b"minid") and more:
            return self._take_strategy(argv, at, word, more)
        if word == b"limit" and more:
            self.limit = integer(argv[at + 1])
            if self.limit < 0:
                raise CommandError(errors.LIMIT_NEGATIVE)
            self.limit_given = True
            return at + 2
        if word in REFERENCE_MODES and not self.mode:
            self.mode = word
            return at + 1
        return at

    def _take_strategy(self, argv: list[bytes], at: int, word: bytes, more: int) -> int:
        if self.strategy != NO_TRIM:
            raise CommandError(errors.TWO_STRATEGIES)
        self.operator_at = 0
        if more >= 2 and (argv[at + 1] == b"~" or argv[at + 1] == b"="):
            self.approximate = argv[at + 1] == b"~"
            self.operator_at = at + 1
            at += 1
        at += 1
        self.threshold_at = at
        if word == b"maxlen":
            self.threshold = integer(argv[at])
            if self.threshold < 0:
                raise CommandError(errors.MAXLEN_NEGATIVE)
            self.strategy = MAXLEN
        else:
            self.min_ms, self.min_seq = strict_id(argv[at])
            self.strategy = MINID
        return at + 1

    def settle(self, call: Call) -> None:
        """Check the options against each other, and set ``most``."""
        if self.limit_given:
            self.check_limit(call.replaying)
        self.most = 0
        if call.replaying:
            return
        if self.limit_given:
            self.most = self.limit
        elif self.approximate:
            limit = 100 * call.server.config.stream_node_max_entries
            self.most = min(limit, HIGHEST_DEFAULT_LIMIT) if limit > 0 else DEFAULT_LIMIT

    def check_limit(self, replaying: bool) -> None:
        """Raise CommandError where LIMIT may not stand; a record may have it with ``=``."""
        if self.limit and self.strategy == NO_TRIM:
            raise CommandError(errors.LIMIT_WITHOUT_STRATEGY)
        if not self.approximate and not replaying:
            raise CommandError(errors.LIMIT_WITHOUT_TILDE)

    def trim(self, call: Call, stream: Stream) -> int:
        """Trim ``stream``, in a replay to the recorded length; return how many entries went."""
        mode = REFERENCE_MODES[self.mode] if self.mode else KEEPREF
        if mode != KEEPREF and stream.groups:
            length = self.threshold if self.strategy == MAXLEN else -1
            how = Trim(
                length, (self.min_ms, self.min_seq), self.most, call.replaying and mode == ACKED
            )
            return trim_referenced(stream, how, mode)
        cut: Removed[Block] | None = None
        whole_nodes = mode == KEEPREF
        if self.strategy == MAXLEN:
            most = self.threshold
            if not self.most:
                cut = stream.cut_to_length(most)
            removed = stream.trim_to_length(most, self.approximate, self.most, whole_nodes)
        else:
            ms, seq = self.min_ms, self.min_seq
            if not self.most:
                cut = stream.cut_below(ms, seq)
            removed = stream.trim_below(ms, seq, self.approximate, self.most, whole_nodes)
        if cut is not None:
            removed += cut.count
            call.server.data.free_later(cut)
        return removed

    def make_exact(self, record: list[bytes], stream: Stream) -> None:
        """Put the result into the record of a request, where it depends on the nodes of the stream.

        With ACKED that is always a length, because running it removes the first entries that no
        group needs, as many as it takes.
        """
        acked = self.mode == b"acked"
        if not self.approximate and not (acked and self.strategy == MAXLEN):
            return
        if self.approximate:
            record[self.operator_at] = b"="
        if acked and self.strategy == MINID:
            record[self.operator_at - 1] = b"MAXLEN"
        if acked or self.strategy == MAXLEN:
            record[self.threshold_at] = b"%d" % stream.length
        else:
            ms, seq = stream.first_id() if stream.length else (ID_MAX, ID_MAX)
            record[self.threshold_at] = format_id(ms, seq)


def stand_at(argv: list[bytes], at: i64, words: list[bytes]) -> bool:
    """Return whether ``words`` are those of ``argv`` from ``at`` on, which has as many there."""
    for word in words:
        if argv[at] != word:
            return False
        at += 1
    return True


def strict_id(text: bytes, missing_seq: int = 0) -> tuple[int, int]:
    """Return the ID that a text spells, with ``missing_seq`` if it has no sequence.

    Raises: CommandError, also for ``-`` and ``+``.
    """
    ms, seq = plain_id(text)
    if ms >= 0:
        return int(ms), int(seq) if seq >= 0 else missing_seq
    found = parse_id(text, missing_seq)
    if found is None:
        raise CommandError(errors.INVALID_STREAM_ID)
    return found


def bound_id(text: bytes, missing_seq: int = 0) -> tuple[int, int]:
    """Return the ID as ``strict_id`` does; ``-`` is the least and ``+`` the greatest ID."""
    if text == b"-":
        return 0, 0
    if text == b"+":
        return ID_MAX, ID_MAX
    return strict_id(text, missing_seq)


def strict_ids(texts: list[bytes]) -> list[tuple[int, int]]:
    """Return ``texts`` as stream IDs; raises CommandError where one is none."""
    return [strict_id(text) for text in texts]


class LengthyIds(Lengthy):
    """A request for very many entries of the stream that its second word names.

    The IDs begin at ``first``, behind what belongs to the record. ``taken`` counts the entries that
    were there.
    """

    def __init__(self, argv: list[bytes], first: int) -> None:
        super().__init__(argv, first, 1)
        self.taken = 0

    @abstractmethod
    def take(self, ms: int, seq: int) -> bool:
        """Do to one entry what the request asks for; return whether the entry was there."""

    def prepare(self, call: Call, low: int, high: int) -> None:
        """Check all IDs; raises CommandError where one is none."""
        if low == self.first:
            self.keys.add(self.argv[1])
            self.note(call, self.argv[1:low])
        for text in self.argv[low:high]:
            strict_id(text)

    def change(self, call: Call, low: int, high: int) -> None:
        call.db.before_change(self.argv[1])
        for text in self.argv[low:high]:
            ms, seq = strict_id(text)
            if self.take(ms, seq):
                self.taken += 1
        self.note(call, self.argv[low:high])


def range_start(text: bytes) -> tuple[int, int]:
    """Return the first ID of a range: inclusive, ``-``, ``+``, or exclusive after ``(``."""
    if len(text) > 1 and text[0] == 0x28:
        ms, seq = strict_id(text[1:])
        if seq == ID_MAX and ms == ID_MAX:
            raise CommandError(errors.INVALID_RANGE_START)
        return following(ms, seq)
    return bound_id(text)


def range_end(text: bytes) -> tuple[int, int]:
    """Return the last ID of a range; without a sequence it is the end of the millisecond."""
    if len(text) > 1 and text[0] == 0x28:
        ms, seq = strict_id(text[1:], ID_MAX)
        if seq > 0:
            return ms, seq - 1
        if ms > 0:
            return ms - 1, ID_MAX
        raise CommandError(errors.INVALID_RANGE_END)
    return bound_id(text, ID_MAX)


def mode_and_ids(argv: list[bytes], at: int) -> tuple[int, list[bytes]]:
    """Read ``[KEEPREF|DELREF|ACKED] IDS numids id ...`` from ``at`` on, or with the mode last.

    Of several IDS the last one counts, and what the others name is not looked at.
    """
    mode = KEEPREF
    mode_seen = False
    ids: list[bytes] | None = None
    while at < len(argv):
        word = option_name(argv[at])
        if word in REFERENCE_MODES and not mode_seen:
            mode_seen = True
            mode = REFERENCE_MODES[word]
            at += 1
        elif word == b"ids" and at + 1 < len(argv):
            count = at_least(argv[at + 1], 1, errors.NUMIDS_NOT_POSITIVE)
            at += 2
            if count > len(argv) - at:
                raise CommandError(errors.NUMIDS_MISMATCH)
            ids = argv[at : at + count]
            at += count
        else:
            raise CommandError(errors.SYNTAX)
    if ids is None:
        raise CommandError(errors.IDS_REQUIRED)
    return mode, ids


def there(stream: Stream | None, error: bytes = errors.NO_SUCH_KEY) -> Stream:
    """Return ``stream``; raises ``error`` where it is None."""
    if stream is None:
        raise CommandError(error)
    return stream


def packed_entries(parts: list[Part], reverse: bool, resp3: bool) -> Packed:
    """Return the array of all entries of ``parts``."""
    out = Packer(resp3)
    add_entries_array(out, parts, reverse)
    return out.packed()


def add_entries_array(out: Packer, parts: list[Part], reverse: bool) -> None:
    """Add the array of all entries of ``parts``."""
    out.array(count_entries(parts))
    add_entries(out, parts, reverse)


def add_entries(
    out: Packer, parts: list[Part], reverse: bool, idle_ms: int = NOT_SHOWN, deliveries: int = 0
) -> None:
    """Add all entries of ``parts``, one by one; see ``Packer.entries``."""
    for part in parts:
        run = part.run
        out.entries(
            run.ms,
            run.seq,
            run.names,
            run.flat,
            run.rows,
            part.dead,
            part.low,
            part.high,
            reverse,
            idle_ms,
            deliveries,
        )


def count_entries(parts: list[Part]) -> int:
    """Return how many live entries ``parts`` hold."""
    count = 0
    for part in parts:
        count += part.live()
    return count


def within(parts: list[Part], size: SizeLimit, idle_ms: int = NOT_SHOWN) -> list[Part]:
    """Return the entries of ``parts`` that ``size`` allows, and count them; see ``add_entries``."""
    kept: list[Part] = []
    for part in parts:
        for number in range(part.low, part.high):
            if part.dead is not None and part.dead[number]:
                continue
            if size.is_reached():
                if number > part.low:
                    kept.append(part.until(number))
                return kept
            run = part.run
            size.give(entry_bytes(run.ms[number], run.seq[number], run.row(number), idle_ms))
        kept.append(part)
    return kept


MOST_WORDS: Final = 8  # of options that are kept


class AddOptions(TrimOptions):
    """The options of XADD, which stand between its key and its ID.

    Attributes:
        make_stream: create a key that is missing.
        pid: the producer, of IDMP or IDMPAUTO; empty without them.
        iid: the idempotent id of IDMP; empty where it is made of the content.
        idmp_at: where IDMP or IDMPAUTO stands in the request; 0 without them.
        words: all of them as they were given.
    """

    def __init__(self) -> None:
        super().__init__()
        self.make_stream = True
        self.pid = b""
        self.iid = b""
        self.idmp_at = 0
        self.words: list[bytes] = []

    def read(self, argv: list[bytes]) -> int:
        """Read the options; return the position of the ID, the first word that is no option."""
        at = 2
        while at < len(argv) and argv[at] != b"*":
            word = option_name(argv[at])
            if word == b"nomkstream":
                self.make_stream = False
                after = at + 1
            elif word == b"idmp" or word == b"idmpauto":
                after = self._take_producer(argv, at, word)
            else:
                after = self.take(argv, at, word)
            if after == at:
                break
            at = after
        if at >= len(argv):
            if self.limit_given:
                self.check_limit(False)
            raise CommandError(wrong_arity(b"xadd"))
        self.words = argv[2:at]
        return at

    def _take_producer(self, argv: list[bytes], at: int, word: bytes) -> int:
        values = 2 if word == b"idmp" else 1
        if len(argv) - 1 - at < values:
            return at
        if self.idmp_at:
            raise CommandError(errors.IDMP_TWICE)
        self.idmp_at = at
        self.pid = argv[at + 1]
        if not self.pid:
            raise CommandError(errors.IDMP_NO_PID if values == 2 else errors.IDMPAUTO_NO_PID)
        if values == 2:
            self.iid = argv[at + 2]
            if not self.iid:
                raise CommandError(errors.IDMP_NO_IID)
        return at + 1 + values


class _LastRead:
    """The last options read, because a producer sends the same ones again and again."""

    def __init__(self) -> None:
        self.options = AddOptions()

    def read(self, argv: list[bytes]) -> AddOptions:
        options = self.options
        at = 2 + len(options.words)
        if at < len(argv) and argv[at] == b"*" and stand_at(argv, 2, options.words):
            return options
        options = AddOptions()
        options.read(argv)
        if not options.pid and len(options.words) <= MOST_WORDS:
            self.options = options
        return options


_last_read: Final = _LastRead()


def add_options_of(argv: list[bytes]) -> AddOptions:
    """Return the options of ``XADD argv``, which only ``settle`` may change; raises as ``read``."""
    return _last_read.read(argv)


NO_CLAIM: Final = -1
MOST_READ_WORDS: Final = 10  # of options that are kept


@mypyc_attr(acyclic=True)
class ReadOptions:
    """The options of XREAD and XREADGROUP, which stand before the keys.

    Args:
        for_group: they are those of XREADGROUP.
        in_region: STABLE is one of them.

    Attributes:
        count: the most entries of each stream; 0 is all.
        max_count: the most entries of all streams together; 0 is all.
        max_size: about how long the reply may be, in bytes; 0 is any length.
        block_at: where the time to wait stands in the request; 0 is not to wait.
        deadline_ms: until when to wait; 0 is for ever.
        streams_at: where the keys start.
        group, consumer: the reader.
        consumer_at: where the consumer stands in the request; 0 is that none was given.
        noack: new entries are not kept pending.
        claim_ms: take over entries that have been idle so long; ``NO_CLAIM`` without it.
        stable: read only up to the ID below which no entry can come any more.
        words: all of them as they were given, STREAMS included.
    """

    def __init__(self, for_group: bool, in_region: bool = False) -> None:
        self.for_group: Final = for_group
        self.in_region: Final = in_region
        self.group = b""
        self.consumer = b""
        self.consumer_at = 0
        self.noack = False
        self.claim_ms = NO_CLAIM
        self.stable = False
        self.count = 0
        self.max_count = 0
        self.max_size = 0
        self.block_at = 0
        self.deadline_ms = 0
        self.streams_at = 0
        self.words: list[bytes] = []

    def read(self, argv: list[bytes], now_ms: int) -> None:
        """Read the options, in any order; raises CommandError with Redis's text for wrong ones."""
        at = 1
        while at < len(argv):
            word = option_name(argv[at])
            more = len(argv) - 1 - at
            if word == b"streams" and more:
                self.streams_at = at + 1
                break
            if word == b"block" and more:
                self.block_at = at + 1
                self.settle(argv, now_ms)
            elif word == b"count" and more:
                self.count = max(0, integer(argv[at + 1]))
            elif word == b"maxcount" and more:
                self.max_count = positive_of(argv[at + 1], errors.MAXCOUNT_NOT_POSITIVE)
            elif word == b"maxsize" and more:
                self.max_size = positive_of(argv[at + 1], errors.MAXSIZE_NOT_POSITIVE)
            elif word == b"noack" or (word == b"claim" and more) or (word == b"group" and more > 1):
                if not self.for_group:
                    raise CommandError(errors.ONLY_FOR_GROUPS % word.upper())
                at = self._read_group_option(argv, at, word)
                continue
            elif word == b"stable" and self.in_region:
                self.stable = True
                at += 1
                continue
            else:
                raise CommandError(errors.SYNTAX)
            at += 2
        if not self.streams_at:
            raise CommandError(errors.SYNTAX)
        if (len(argv) - self.streams_at) % 2:
            unbalanced = errors.XREADGROUP_UNBALANCED if self.for_group else errors.XREAD_UNBALANCED
            raise CommandError(unbalanced)
        if self.for_group and not self.consumer_at:
            raise CommandError(errors.GROUP_MISSING)
        if 0 < self.max_count < self.count:
            raise CommandError(errors.MAXCOUNT_BELOW_COUNT)
        self.words = argv[1 : self.streams_at]

    def settle(self, argv: list[bytes], now_ms: int) -> None:
        """Set the deadline, which counts from now."""
        if self.block_at:
            self.deadline_ms = deadline_of(argv[self.block_at], now_ms)

    def name_reader(self, argv: list[bytes]) -> None:
        """Take group and consumer from a request with the same options."""
        at = self.consumer_at
        if at and (argv[at] is not self.consumer or argv[at - 1] is not self.group):
            self.group = argv[at - 1]
            self.consumer = argv[at]
            self.words[at - 2] = self.group
            self.words[at - 1] = self.consumer

    def _read_group_option(self, argv: list[bytes], at: int, word: bytes) -> int:
        """Read an option that only XREADGROUP has; return the position after it."""
        if word == b"group":
            self.group = argv[at + 1]
            self.consumer = argv[at + 2]
            self.consumer_at = at + 2
            return at + 3
        if word == b"noack":
            self.noack = True
            return at + 1
        min_idle_ms = integer(argv[at + 1], errors.CLAIM_NOT_INTEGER)
        if min_idle_ms < 0:
            raise CommandError(errors.CLAIM_NEGATIVE)
        self.claim_ms = min_idle_ms
        return at + 2


class _LastReading:
    """The last options read, except group and consumer, because readers send the same ones."""

    def __init__(self, for_group: bool, in_region: bool = False) -> None:
        self.options = ReadOptions(for_group, in_region)

    def read(self, argv: list[bytes], now_ms: int) -> ReadOptions:
        options = self.options
        at = options.streams_at
        paired = 0 < at < len(argv) and not (len(argv) - at) % 2
        if paired:
            options.name_reader(argv)
            if stand_at(argv, 1, options.words):
                options.settle(argv, now_ms)
                return options
        options = ReadOptions(options.for_group, options.in_region)
        options.read(argv, now_ms)
        if len(options.words) <= MOST_READ_WORDS:
            self.options = options
        return options


_last_reading: Final = _LastReading(False)
_last_read_for_group: Final = _LastReading(True)
_last_read_in_region: Final = _LastReading(False, True)


def read_options_of(argv: list[bytes], now_ms: int, for_group: bool) -> ReadOptions:
    """Return the options of XREAD or XREADGROUP, up to where the keys start; raises as ``read``.

    Callers must not change or keep them: the next request may get the same object.
    """
    return (_last_read_for_group if for_group else _last_reading).read(argv, now_ms)


def read_options_in_region(argv: list[bytes], now_ms: int) -> ReadOptions:
    """Return the options of an XREAD in a region, as ``read_options_of``."""
    return _last_read_in_region.read(argv, now_ms)


def positive_of(text: bytes, refusal: bytes) -> int:
    """Return a number that is at least 1; raises ``refusal`` for a lower one."""
    number = integer(text)
    if number <= 0:
        raise CommandError(refusal)
    return number
