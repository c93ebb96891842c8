"""Sorted sets outside memory: in records, as ZADD, and in all types of Redis's RDB."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, cast

from mypy_extensions import i64

from headrace.persistence.forms.buckets import TABLE_NUMBERS, BucketsWalk, TableIntake, put_head
from headrace.persistence.forms.form import Commands, Form, Unsound, Walk, Writer
from headrace.persistence.forms.records import NO_DEADLINE, Intake, Reader, Record, Records
from headrace.persistence.rdb.kinds import SORTED_SET, SORTED_SET_LISTPACK, VERSION_PACKED
from headrace.persistence.rdb.packings import Listpack
from headrace.persistence.rdb.primitives import RdbOutput, RdbSource
from headrace.persistence.rdb.values import PACKED_SORTED_SETS, SORTED_SET_KINDS, sorted_set_parts
from headrace.protocol.doubles import double
from headrace.storage.collection import SmallLimits
from headrace.storage.packed.table import SCORES
from headrace.storage.sorted_set.runs import is_sound_run, member_at, place_of, score_at, size_of
from headrace.storage.sorted_set.sorted_set import SORTED_SET as TYPE_NAME
from headrace.storage.sorted_set.sorted_set import Large, SortedSet, pairs_of, sorted_set_of
from headrace.storage.sorted_set.tree import Tree

_AT_ONCE: Final = 512
_ANY_LENGTH: Final = 1 << 60


def _add(
    source: RdbSource, made: SortedSet, pairs: list[tuple[bytes, float]], limits: SmallLimits
) -> None:
    for member, score in pairs:
        if not math.isnan(made.score(member)):
            raise source.damage("each member once")
        made.add(member, score, limits)


class _Members(Walk):
    """Writes members and scores from the highest, as Redis does, some at a time."""

    def __init__(self, output: RdbOutput, value: SortedSet) -> None:
        self._output: Final = output
        self._value: Final = value
        self._left = value.size()
        output.length(self._left)

    def step(self) -> bool:
        output = self._output
        end = self._left
        self._left = max(0, end - _AT_ONCE)
        runs = self._value.runs(self._left, end)
        runs.reverse()
        for run in runs:
            pairs = pairs_of(run)
            pairs.reverse()
            for member, score in pairs:
                output.string(member)
                output.double(score)
        return self._left > 0


SMALL: Final = 32
LARGE: Final = 33
BUCKETS: Final = 34
RUNS: Final = 35

_ROW: Final = 3  # numbers for a small one: lengths of the key and of the run, and the deadline
_HEAD: Final = 2 + TABLE_NUMBERS  # numbers of a large one
MEMBERS_AT_ONCE: Final = 64  # in a ZADD


class SortedSetWriter(Writer):
    """Collects small sorted sets in rows; a large one is walked."""

    def __init__(self, records: Records) -> None:
        super().__init__(records)
        self._small: Final = Record(SMALL)

    def add(self, key: bytes, value: object, expire_ms: int) -> Walk | None:
        self.records.keys += 1
        rep = cast("SortedSet", value).rep
        if isinstance(rep, Large):
            put_head(self.records, LARGE, key, expire_ms, [rep.table])
            return LargeWalk(self.records, rep)
        assert isinstance(rep, bytes)
        record = self._small
        record.add(key)
        record.table.append(expire_ms)
        record.add(rep)
        if record.is_full():
            self.records.put(record)
        return None

    def flush(self) -> None:
        self.records.put(self._small)


class LargeWalk(Walk):
    """Writes the buckets of a large sorted set, and then its runs."""

    def __init__(self, records: Records, large: Large) -> None:
        self._records: Final = records
        self._buckets: BucketsWalk | None = BucketsWalk(records, BUCKETS, large.table.directories)
        self._nodes: Final = large.tree.nodes[::-1]
        self._runs: Final = Record(RUNS)

    def step(self) -> bool:
        if self._buckets is not None:
            if not self._buckets.step():
                self._buckets = None
            return True
        if self._nodes:
            for run in self._nodes.pop().runs:
                self._runs.add(run)
        if not self._nodes or self._runs.is_full():
            self._records.put(self._runs)
        return bool(self._nodes)


class SortedSetReader(Reader):
    """Reads rows of small sorted sets, and the pieces of large ones."""

    def __init__(self, intake: Intake) -> None:
        super().__init__(intake)
        self._key = b""
        self._expire_ms = NO_DEADLINE
        self._table: TableIntake | None = None  # of a large one whose pieces follow
        self._tree = Tree()

    def goes_on(self, kind: int) -> bool:
        return self._table is not None and kind in (BUCKETS, RUNS)

    def read(self, kind: int, table: list[int]) -> None:
        if kind == SMALL:
            self._small(table)
        elif kind == LARGE:
            self._begin(table)
        elif self._table is None:
            raise self.intake.malformed("a sorted set before its pieces")
        elif kind == BUCKETS:
            self._table.take(table)
        else:
            self._runs(table)

    def _small(self, table: list[int]) -> None:
        intake = self.intake
        if len(table) % _ROW:
            raise intake.malformed("three numbers for each sorted set")
        for row in range(0, len(table), _ROW):
            key = intake.cut(table[row])
            value = SortedSet()
            value.rep = run = intake.cut(table[row + 2])
            if not size_of(run):
                raise intake.malformed("a sorted set with members")
            intake.place(key, value, table[row + 1])

    def _begin(self, table: list[int]) -> None:
        if len(table) != _HEAD:
            raise self.intake.malformed("the six numbers of a sorted set")
        self._key = self.intake.cut(table[0])
        self._expire_ms = table[1]
        self._table = TableIntake(self.intake, SCORES, table[2:], "a sorted set")
        self._tree = Tree()

    def _runs(self, table: list[int]) -> None:
        for size in table:
            run = self.intake.cut(size)
            if not size_of(run):
                raise self.intake.malformed("runs with members")
            self._tree.add_run(run)

    def finish(self) -> None:
        if self._table is None:
            return
        table = self._table.table()
        self._table = None
        if self._tree.size != table.count or not table.count:
            raise self.intake.malformed("all pieces of a sorted set")
        large = Large()
        large.table = table
        large.tree = self._tree
        value = SortedSet()
        value.rep = large
        self._tree = Tree()
        self.intake.place(self._key, value, self._expire_ms)


class SortedSetRewrite(Walk):
    """ZADD for some members at a time, those with a score of zero last.

    A small set has no sign of zero. So the other members of a large one come first: they make the
    set large again before the zeros come.
    """

    def __init__(self, commands: Commands, key: bytes, value: SortedSet) -> None:
        self._commands: Final = commands
        self._key: Final = key
        self._value: Final = value
        self._rank: i64 = 0
        self._end: i64 = value.size()
        self._later: Final[list[tuple[i64, i64]]] = []  # ranks that follow, the last ones first
        if value.is_large():
            zeros = value.above_score(0.0, False)
            positives = value.above_score(0.0, True)
            self._later.append((zeros, positives))
            self._later.append((0, zeros))
            self._rank = positives

    def step(self) -> bool:
        while self._rank == self._end and self._later:
            self._rank, self._end = self._later.pop()
        end = min(self._end, self._rank + MEMBERS_AT_ONCE)
        words = [b"ZADD", self._key]
        for run in self._value.runs(self._rank, end):
            for member, score in pairs_of(run):
                words.append(double(score))
                words.append(member)
        self._commands.add(words)
        self._rank = end
        while self._rank == self._end and self._later:
            self._rank, self._end = self._later.pop()
        return self._rank < self._end


class SortedSetForm(Form):
    """Sorted sets."""

    def __init__(self) -> None:
        names = {
            SMALL: "small sorted sets",
            LARGE: "large sorted set",
            BUCKETS: "buckets of a sorted set",
            RUNS: "runs of a sorted set",
        }
        super().__init__(
            TYPE_NAME,
            "sorted sets",
            names,
            SORTED_SET_KINDS,
            ["members"],
            SortedSetWriter,
            SortedSetReader,
        )

    def check(self, value: object) -> None:
        rep = cast("SortedSet", value).rep
        if isinstance(rep, Large):
            _check_large(rep)
            return
        assert isinstance(rep, bytes)
        if not is_sound_run(rep):
            raise Unsound("a sorted set that is not in order")
        if len(dict(pairs_of(rep))) != size_of(rep):
            raise Unsound("a member of a sorted set that is there twice")

    def rewrite(self, commands: Commands, key: bytes, value: object) -> Walk | None:
        return SortedSetRewrite(commands, key, cast("SortedSet", value))

    def read_rdb(
        self, source: RdbSource, number: int, defaults: dict[str, int]
    ) -> Iterator[object]:
        """Read as ``Form``; as in Redis, members of one listpack may have any length."""
        limits = SmallLimits(
            defaults.get("zset-max-listpack-entries", 128),
            defaults.get("zset-max-listpack-value", 64),
        )
        if number in PACKED_SORTED_SETS:
            members, scores = next(sorted_set_parts(source, number))
            pairs = sorted(zip(scores, members, strict=True))
            if len(set(members)) < len(members):
                raise source.damage("each member once")
            yield sorted_set_of(pairs, SmallLimits(limits.elements, _ANY_LENGTH))
            return
        made = SortedSet()
        large = False
        first: list[tuple[bytes, float]] = []  # before it is known whether there is more than fits
        for members, scores in sorted_set_parts(source, number):
            for member, score in zip(members, scores, strict=True):
                if not large:
                    first.append((member, score))
                    if len(first) <= limits.elements and len(member) <= limits.element_bytes:
                        continue
                    large = True
                    made.make_large()  # at once: a small one forgets the sign of zero
                    _add(source, made, first, limits)
                    first = []
                else:
                    _add(source, made, [(member, score)], limits)
            yield None
        _add(source, made, first, limits)
        yield made

    def rdb_type(self, value: object, version: int) -> int:
        """Return as ``Form``: a small one stays small."""
        is_packed = version >= VERSION_PACKED and not cast("SortedSet", value).is_large()
        return SORTED_SET_LISTPACK if is_packed else SORTED_SET

    def write_rdb(self, output: RdbOutput, value: object) -> Walk | None:
        content = cast("SortedSet", value)
        if self.rdb_type(value, output.version) == SORTED_SET:
            return _Members(output, content)
        made = Listpack()
        for run in content.runs(0, content.size()):
            for member, score in pairs_of(run):
                made.text(member)
                made.text(double(score))
        output.string(made.packed())
        return None


def _check_large(large: Large) -> None:
    """Check that a table and a tree are sound, and hold the same."""
    flaw = large.table.flaw()
    if flaw:
        raise Unsound(f"a sorted set with {flaw}")
    last: tuple[float, bytes] | None = None
    for node in large.tree.nodes:
        for run in node.runs:
            if not is_sound_run(run):
                raise Unsound("a sorted set that is not in order")
            first = (score_at(run, 0), member_at(run, place_of(run, 0)))
            if last is not None and last >= first:
                raise Unsound("a sorted set that is not in order")
            for member, score in pairs_of(run):
                if large.table.score(member) != score:
                    raise Unsound("a sorted set whose member has two scores")
                last = (score, member)
