"""Hashes outside memory: in records, as HSET, and in all types of Redis's RDB."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, cast

from mypy_extensions import i64

from headrace.persistence.forms.buckets import TABLE_NUMBERS, BucketsWalk, TableIntake, put_head
from headrace.persistence.forms.form import Commands, Form, Unsound, Walk, Writer
from headrace.persistence.forms.records import NO_DEADLINE, Intake, Reader, Record, Records
from headrace.persistence.rdb import kinds
from headrace.persistence.rdb.packings import Listpack
from headrace.persistence.rdb.primitives import RdbOutput, RdbSource
from headrace.persistence.rdb.values import HASH_KINDS, PACKED_HASHES, HashPart, hash_parts
from headrace.storage.collection import SmallLimits
from headrace.storage.hash.hash import HASH as TYPE_NAME
from headrace.storage.hash.hash import Hash, flaw, packed_hash
from headrace.storage.hash.small import BOTH, HEAD, MOST
from headrace.storage.hash.timed import NEVER, TimedPiece, TimedTable, table_with_times
from headrace.storage.packed.strings import next_at, string_at, unpack
from headrace.storage.packed.table import DIRECTORY, PAIRS, SCORES, Table

VERSION_7_4: Final = 12  # of RDB: the first with deadlines of fields
_MORTAL: Final = (
    kinds.MORTAL_HASH_EARLY,
    kinds.MORTAL_HASH_PACKED_EARLY,
    kinds.MORTAL_HASH,
    kinds.MORTAL_HASH_PACKED,
)
_PIECES_AT_ONCE: Final = 32


def _expire(made: Hash, part: HashPart, in_order: bool) -> None:
    """Set the deadlines of fields.

    With ``in_order``, equal ones stay in order, so the last is set first. Redis turns them around
    where fields do not stand in one piece.
    """
    places = list(range(len(part.deadlines)))
    for place in reversed(places) if in_order else places:
        deadline_ms = part.deadlines[place]
        if deadline_ms:
            made.be_timed().expire_at(part.pairs[2 * place], deadline_ms)


class _Fields(Walk):
    def __init__(self, output: RdbOutput, value: Hash, kind: int) -> None:
        self._output: Final = output
        self._value: Final = value
        self._type: Final = kind
        self._first_ms: Final = value.first_ms()
        self._left: Final = value.read(BOTH, NEVER).pieces[::-1]
        if self._type == kinds.MORTAL_HASH:
            output.little(self._first_ms, 8)
        output.length(value.size())

    def step(self) -> bool:
        output = self._output
        left = self._left
        for _ in range(min(_PIECES_AT_ONCE, len(left))):
            words = unpack(left.pop())
            for place in range(0, len(words), 2):
                deadline_ms = (
                    NEVER if self._type == kinds.HASH else self._value.deadline_ms(words[place])
                )
                never = deadline_ms == NEVER
                if self._type == kinds.MORTAL_HASH:
                    output.length(0 if never else deadline_ms - self._first_ms + 1)
                output.string(words[place])
                output.string(words[place + 1])
                if self._type == kinds.VALKEY_HASH:
                    output.little(-1 if never else deadline_ms, 8)
        return bool(left)


SMALL: Final = 24  # rows: length of the key, length of the piece, deadline
SMALL_TIMED: Final = 25  # likewise, with deadlines of fields
LARGE: Final = 26  # key; deadline; then four numbers for each of its tables
BUCKETS: Final = 27  # lengths of buckets
_ROW: Final = 3
_WHAT: Final = "a hash"  # in messages
_FIELDS_AT_ONCE: Final = 64  # in a command


class HashWriter(Writer):
    """Collects small hashes in rows, those with deadlines of fields apart."""

    def __init__(self, records: Records) -> None:
        super().__init__(records)
        self._small: Final = Record(SMALL)
        self._timed: Final = Record(SMALL_TIMED)

    def add(self, key: bytes, value: object, expire_ms: int) -> Walk | None:
        assert isinstance(value, Hash)
        self.records.keys += 1
        rep = value.rep
        if isinstance(rep, bytes):
            self.records.put_row(self._small, key, rep, expire_ms)
            return None
        if isinstance(rep, TimedPiece):
            self.records.put_row(self._timed, key, rep.piece, expire_ms)
            return None
        tables = [rep.table, rep.times] if isinstance(rep, TimedTable) else [cast("Table", rep)]
        put_head(self.records, LARGE, key, expire_ms, tables)
        directories = [each for table in tables for each in table.directories]
        return BucketsWalk(self.records, BUCKETS, directories)

    def flush(self) -> None:
        self.records.put(self._small)
        self.records.put(self._timed)


class HashReader(Reader):
    """Reads rows of small hashes, and large ones in pieces."""

    def __init__(self, intake: Intake) -> None:
        super().__init__(intake)
        self._key = b""
        self._expire_ms = NO_DEADLINE
        self._tables: list[TableIntake] = []  # of a large hash that is being read

    def read(self, kind: int, table: list[int]) -> None:
        if kind in (SMALL, SMALL_TIMED):
            self._rows(table, kind == SMALL_TIMED)
        elif kind == LARGE:
            self._begin(table)
        else:
            self._take_buckets(table)

    def goes_on(self, kind: int) -> bool:
        return kind == BUCKETS and bool(self._tables)

    def _rows(self, table: list[int], timed: bool) -> None:
        intake = self.intake
        for row in range(0, len(table), _ROW):
            key = intake.cut(table[row])
            piece = intake.cut(table[row + 1])
            if len(piece) < HEAD:
                raise intake.malformed("the number of fields")
            value = Hash()
            value.rep = TimedPiece(piece) if timed else piece
            intake.place(key, value, table[row + 2])

    def _begin(self, table: list[int]) -> None:
        self._key = self.intake.cut(table[0])
        self._expire_ms = table[1]
        numbers = table[2:]
        if len(numbers) not in (TABLE_NUMBERS, 2 * TABLE_NUMBERS):
            raise self.intake.malformed("one table or two")
        self._tables = [TableIntake(self.intake, PAIRS, numbers[:TABLE_NUMBERS], _WHAT)]
        if len(numbers) > TABLE_NUMBERS:
            self._tables.append(TableIntake(self.intake, SCORES, numbers[TABLE_NUMBERS:], _WHAT))

    def _take_buckets(self, sizes: list[int]) -> None:
        if not self._tables:
            raise self.intake.malformed(f"buckets of {_WHAT}")
        table = self._tables[0]
        if not table.left:
            table = self._tables[-1]
        if len(sizes) != min(DIRECTORY, table.left):
            raise self.intake.malformed("as many buckets as were said")
        table.take(sizes)

    def finish(self) -> None:
        if not self._tables:
            return
        tables = [each.table() for each in self._tables]
        self._tables = []
        value = Hash()
        value.rep = tables[0] if len(tables) == 1 else table_with_times(tables[0], tables[1])
        self.intake.place(self._key, value, self._expire_ms)


class _Rewrite(Walk):
    """HSET of some fields at once, and HPEXPIREAT of those that have a deadline."""

    def __init__(self, commands: Commands, key: bytes, value: Hash) -> None:
        self._commands: Final = commands
        self._key: Final = key
        self._value: Final = value
        self._left: Final[list[bytes]] = value.read(BOTH, NEVER).pieces[::-1]
        self._at: i64 = 0  # where the next field is in the last one of these

    def step(self) -> bool:
        words: list[bytes] = []
        while self._left and len(words) < 2 * _FIELDS_AT_ONCE:
            piece = self._left[-1]
            at = self._at
            end: i64 = len(piece)
            while at < end and len(words) < 2 * _FIELDS_AT_ONCE:
                words.append(string_at(piece, at))
                at = next_at(piece, at)
            self._at = at
            if at >= end:
                self._left.pop()
                self._at = 0
        if words:
            self._commands.add([b"HSET", self._key, *words])
            self._add_deadlines(words[::2])
        return bool(self._left)

    def _add_deadlines(self, fields: list[bytes]) -> None:
        if not self._value.is_timed():
            return
        together: dict[int, list[bytes]] = {}
        for field in fields:
            deadline_ms = self._value.deadline_ms(field)
            if deadline_ms != NEVER:
                together.setdefault(deadline_ms, []).append(field)
        for deadline_ms, those in together.items():
            head = [b"HPEXPIREAT", self._key, b"%d" % deadline_ms]
            self._commands.add([*head, b"FIELDS", b"%d" % len(those), *those])


class HashForm(Form):
    """Hashes."""

    def __init__(self) -> None:
        names = {
            SMALL: "hashes",
            SMALL_TIMED: "hashes with deadlines",
            LARGE: "large hash",
            BUCKETS: "buckets of a hash",
        }
        super().__init__(TYPE_NAME, "hashes", names, HASH_KINDS, ["fields"], HashWriter, HashReader)

    def check(self, value: object) -> None:
        found = flaw(cast("Hash", value))
        if found:
            raise Unsound(found)

    def rewrite(self, commands: Commands, key: bytes, value: object) -> Walk | None:
        assert isinstance(value, Hash)
        walk = _Rewrite(commands, key, value)
        return walk if walk.step() else None

    def read_rdb(
        self, source: RdbSource, number: int, defaults: dict[str, int]
    ) -> Iterator[object]:
        """Read as ``Form``; as in Redis, fields and values of one listpack may have any length."""
        limits = SmallLimits(
            defaults.get("hash-max-listpack-entries", 512),
            defaults.get("hash-max-listpack-value", 64),
        )
        made = Hash()
        if number in _MORTAL:
            made.be_timed()
        for part in hash_parts(source, number):
            if number in PACKED_HASHES and len(part.pairs) // 2 <= min(limits.elements, MOST):
                packed = packed_hash(part.pairs, part.deadlines if number in _MORTAL else None)
                if packed is None:
                    raise source.damage("each field once")
                yield packed
                return
            for place in range(0, len(part.pairs), 2):
                if not made.put(part.pairs[place], part.pairs[place + 1], limits):
                    raise source.damage("each field once")
            _expire(made, part, number != kinds.MORTAL_HASH)
            yield None
        yield made

    def rdb_version(self, value: object) -> int:
        return VERSION_7_4 if cast("Hash", value).has_deadlines() else kinds.VERSION_MIN

    def fits_valkey(self, value: object) -> bool:
        return True

    def frozen_fits_valkey(self, value: object) -> bool:
        return True

    def rdb_type(self, value: object, version: int) -> int:
        """Return as ``Form``: a small one stays small. Redis asks a large one for a deadline."""
        content = cast("Hash", value)
        is_packed = version >= kinds.VERSION_PACKED and content.is_small()
        if kinds.is_valkey_version(version) and content.has_deadlines():
            return kinds.VALKEY_HASH
        if not content.is_timed():
            return kinds.HASH_LISTPACK if is_packed else kinds.HASH
        if version < VERSION_7_4 or kinds.is_valkey_version(version):
            return kinds.HASH
        if is_packed:
            return kinds.MORTAL_HASH_PACKED
        return kinds.MORTAL_HASH if content.has_deadlines() else kinds.HASH

    def write_rdb(self, output: RdbOutput, value: object) -> Walk | None:
        content = cast("Hash", value)
        kind = self.rdb_type(value, output.version)
        if kind not in PACKED_HASHES:
            return _Fields(output, content, kind)
        made = Listpack()
        rep = content.rep
        if isinstance(rep, TimedPiece):
            output.little(content.first_ms(), 8)
            for field, text, deadline_ms in rep.rows():
                made.text(field)
                made.text(text)
                made.integer(deadline_ms)
        else:
            for word in unpack(content.read(BOTH, NEVER).pieces[0]):
                made.text(word)
        output.string(made.packed())
        return None

    def lacking_counts(self, value: object) -> list[int]:
        return [int(cast("Hash", value).has_deadlines())]

    def lacking_elsewhere(self, counts: list[int]) -> list[str]:
        timed = counts[0]
        needs = "which needs Redis 7.4 or Valkey 9.0"
        return [f"{timed} hashes have fields with deadlines, {needs}."] if timed else []
