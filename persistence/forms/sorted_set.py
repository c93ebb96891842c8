"""Sorted sets outside memory: rows of small ones, pieces of large ones as they stand, ZADD."""

from __future__ import annotations

from typing import Final, cast

from mypy_extensions import i64

from headrace.persistence.forms.commands import Commands
from headrace.persistence.forms.form import Form, Unsound, Walk, Writer
from headrace.persistence.forms.intake import Intake, Reader
from headrace.persistence.forms.records import Record, Records
from headrace.persistence.forms.sorted_set_rdb import SortedSetRdb, read_sorted_set
from headrace.persistence.rdb.kinds import SORTED_SET as RDB_SORTED_SET
from headrace.persistence.rdb.kinds import VERSION_MIN
from headrace.persistence.rdb.output import RdbOutput
from headrace.persistence.rdb.parts import SORTED_SET_KINDS
from headrace.persistence.rdb.source import RdbSource
from headrace.protocol.doubles import double
from headrace.storage.packed.table import DIRECTORY, SCORES, table_of
from headrace.storage.sorted_set.large import Large
from headrace.storage.sorted_set.runs import is_sound_run, member_at, place_of, score_at, size_of
from headrace.storage.sorted_set.sorted_set import SORTED_SET, SortedSet, pairs_of
from headrace.storage.sorted_set.tree import Tree

SMALL: Final = 32
LARGE: Final = 33
BUCKETS: Final = 34
RUNS: Final = 35

_ROW: Final = 3  # numbers for a small one: lengths of the key and of the run, and the deadline
_HEAD: Final = 6  # numbers of a large one
MEMBERS_AT_ONCE: Final = 64  # in a ZADD


class SortedSetWriter(Writer):
    """Collects small sorted sets in rows; a large one is walked."""

    def __init__(self, records: Records) -> None:
        super().__init__(records)
        self._small: Final = Record(SMALL)

    def add(self, key: bytes, value: object, expire_ms: int) -> Walk | None:
        """See ``Writer``."""
        self.records.keys += 1
        rep = cast("SortedSet", value).rep
        if isinstance(rep, Large):
            head = Record(LARGE)
            head.add(key)
            table = rep.table
            head.table += [
                expire_ms,
                int(table.seed),
                int(table.count),
                int(table.fullest),
                int(table.buckets),
            ]
            self.records.put(head)
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
        """Put the rows."""
        self.records.put(self._small)


class LargeWalk(Walk):
    """Writes the buckets of a large sorted set, and then its runs."""

    def __init__(self, records: Records, large: Large) -> None:
        self._records: Final = records
        self._large: Final = large
        self._buckets: Final = Record(BUCKETS)
        self._runs: Final = Record(RUNS)
        self._at = 0

    def step(self) -> bool:
        """A directory or a node; see ``Walk``."""
        directories = self._large.table.directories
        nodes = self._large.tree.nodes
        at = self._at
        self._at += 1
        if at < len(directories):
            self._add(self._buckets, directories[at])
            if at + 1 == len(directories):
                self._records.put(self._buckets)
            return True
        at -= len(directories)
        if at < len(nodes):
            self._add(self._runs, nodes[at].runs)
            if at + 1 < len(nodes):
                return True
        self._records.put(self._runs)
        return False

    def _add(self, record: Record, pieces: list[bytes]) -> None:
        for piece in pieces:
            record.add(piece)
        if record.is_full():
            self._records.put(record)


class SortedSetReader(Reader):
    """Reads rows of small sorted sets, and the pieces of large ones."""

    def __init__(self, intake: Intake) -> None:
        super().__init__(intake)
        self._key = b""
        self._head: list[int] | None = None  # of a large one whose pieces follow
        self._directories: list[list[bytes]] = []
        self._buckets_left = 0
        self._tree = Tree()

    def goes_on(self, kind: int) -> bool:
        """See ``Reader``."""
        return self._head is not None and kind in (BUCKETS, RUNS)

    def read(self, kind: int, table: list[int]) -> None:
        """See ``Reader``."""
        if kind == SMALL:
            self._small(table)
        elif kind == LARGE:
            self._begin(table)
        elif self._head is None:
            raise self.intake.malformed("a sorted set before its pieces")
        elif kind == BUCKETS:
            self._buckets(table)
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
        self._head = table
        self._directories = []
        self._buckets_left = table[5]
        self._tree = Tree()

    def _buckets(self, table: list[int]) -> None:
        directories = self._directories
        self._buckets_left -= len(table)
        if self._buckets_left < 0:
            raise self.intake.malformed("as many buckets as were said")
        for size in table:
            bucket = self.intake.cut(size)
            if directories and len(directories[-1]) < DIRECTORY:
                directories[-1].append(bucket)
            else:
                directories.append([bucket])

    def _runs(self, table: list[int]) -> None:
        for size in table:
            run = self.intake.cut(size)
            if not size_of(run):
                raise self.intake.malformed("runs with members")
            self._tree.add_run(run)

    def finish(self) -> None:
        """A large one is complete; see ``Reader``."""
        head = self._head
        if head is None:
            return
        self._head = None
        _, expire_ms, seed, count, fullest, _ = head
        table = table_of(SCORES, seed, count, fullest, self._directories)
        if table is None or self._buckets_left or self._tree.size != count or not count:
            raise self.intake.malformed("all pieces of a sorted set")
        large = Large()
        large.table = table
        large.tree = self._tree
        value = SortedSet()
        value.rep = large
        self._directories = []
        self._tree = Tree()
        self.intake.place(self._key, value, expire_ms)


class SortedSetRewrite(Walk):
    """ZADD for some members at a time."""

    def __init__(self, commands: Commands, key: bytes, value: SortedSet) -> None:
        self._commands: Final = commands
        self._key: Final = key
        self._value: Final = value
        self._rank: i64 = 0

    def step(self) -> bool:
        """The next members; see ``Walk``."""
        size: i64 = self._value.size()
        end = min(size, self._rank + MEMBERS_AT_ONCE)
        words = [b"ZADD", self._key]
        for run in self._value.runs(self._rank, end):
            for member, score in pairs_of(run):
                words.append(double(score))
                words.append(member)
        self._commands.add(words)
        self._rank = end
        return end < size


class SortedSetForm(Form):
    """Sorted sets."""

    def type_name(self) -> bytes:
        """See ``Form``."""
        return SORTED_SET

    def plural(self) -> str:
        """See ``Form``."""
        return "sorted sets"

    def record_kinds(self) -> dict[int, str]:
        """See ``Form``."""
        return {
            SMALL: "small sorted sets",
            LARGE: "large sorted set",
            BUCKETS: "buckets of a sorted set",
            RUNS: "runs of a sorted set",
        }

    def writer(self, records: Records) -> SortedSetWriter:
        """See ``Form``."""
        return SortedSetWriter(records)

    def reader(self, intake: Intake) -> SortedSetReader:
        """See ``Form``."""
        return SortedSetReader(intake)

    def check(self, value: object) -> None:
        """See ``Form``."""
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
        """See ``Form``."""
        return SortedSetRewrite(commands, key, cast("SortedSet", value))

    def rdb_types(self) -> list[int]:
        """See ``RdbValues``."""
        return list(SORTED_SET_KINDS)

    def read_rdb(self, source: RdbSource, number: int, defaults: dict[str, int]) -> SortedSet:
        """See ``RdbValues``."""
        return read_sorted_set(source, number, defaults)

    def rdb_version(self, value: object) -> int:
        """See ``Form``."""
        return VERSION_MIN

    def rdb_type(self, value: object, version: int) -> int:
        """See ``Form``."""
        return RDB_SORTED_SET

    def write_rdb(self, output: RdbOutput, value: object) -> SortedSetRdb:
        """See ``Form``."""
        return SortedSetRdb(output, cast("SortedSet", value))

    def part_names(self) -> list[str]:
        """See ``Form``."""
        return ["members"]

    def part_counts(self, value: object) -> list[int]:
        """See ``Form``."""
        return [cast("SortedSet", value).size()]

    def lacking_elsewhere(self, values: list[object]) -> list[str]:
        """Every server reads sorted sets."""
        return []


def _check_large(large: Large) -> None:
    """See that a table and a tree are sound, and hold the same."""
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
