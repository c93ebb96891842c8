"""Lists outside memory: in records, as RPUSH, and in all types of Redis's RDB.

In records there are rows of tiny ones, and nodes as they stand in memory; see
``docs/snapshot-format.md``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, cast

from headrace.persistence.forms.form import Commands, Form, Unsound, Walk, Writer
from headrace.persistence.forms.records import Intake, Reader, Record, Records
from headrace.persistence.rdb.kinds import LIST, LIST_QUICKLIST_2, VERSION_PACKED
from headrace.persistence.rdb.packings import Listpack
from headrace.persistence.rdb.primitives import RdbOutput, RdbSource
from headrace.persistence.rdb.values import (
    LIST_KINDS,
    PACKED_NODE,
    PLAIN_NODE,
    ListPart,
    list_parts,
)
from headrace.protocol.wire import array_header, bulk
from headrace.storage.list import list as small
from headrace.storage.list.list import LIST as TYPE_NAME
from headrace.storage.list.list import List, list_of, list_of_nodes
from headrace.storage.list.piece import NodeLimits, listpack_bytes
from headrace.storage.list.row import ALONE, Row, row_of
from headrace.storage.packed.strings import count, is_sound, next_at, pack, unpack

_RDB_AT_ONCE: Final = 1024
_RDB_NODES_AT_ONCE: Final = 16
_TOGETHER_ELEMENTS: Final = 1 << 15  # more than any node has, so that they decide its form
_TOGETHER_BYTES: Final = 1 << 17


def _read_nodes(parts: Iterator[ListPart], limits: NodeLimits) -> Iterator[object]:
    """Read a list with the nodes that it has in the file, whatever the limits are now."""
    pieces: list[bytes] = []
    counts: list[int] = []
    sizes: list[int] = []
    for part in parts:
        pieces.append(pack(part.strings))
        counts.append(len(part.strings))
        sizes.append(ALONE if part.is_plain else int(listpack_bytes(part.strings)))
        yield None
    yield list_of_nodes(pieces, counts, sizes, limits)


def _read_strings(parts: Iterator[ListPart], limits: NodeLimits) -> Iterator[object]:
    first: list[bytes] = []
    size = 0
    made: List | None = None
    for part in parts:
        strings = part.strings
        if made is not None:
            made.push(strings, 0, True, limits)
            yield None
            continue
        first += strings
        size += sum([len(string) for string in strings])
        if len(first) > _TOGETHER_ELEMENTS or size > _TOGETHER_BYTES:
            made = list_of(first, limits)
            first = []
        yield None
    yield list_of(first, limits) if made is None else made


def _write_node(output: RdbOutput, strings: list[bytes]) -> None:
    made = Listpack()
    for string in strings:
        made.text(string)
    output.length(PACKED_NODE)
    output.string(made.packed())


class _RdbNodes(Walk):
    def __init__(self, output: RdbOutput, row: Row) -> None:
        row.seal()
        self._output: Final = output
        self._row: Final = row
        self._place = int(row.low)
        output.length(row.nodes())

    def step(self) -> bool:
        output = self._output
        row = self._row
        end = min(self._place + _RDB_NODES_AT_ONCE, len(row.pieces))
        for place in range(self._place, end):
            strings = unpack(row.piece(place))
            if row.sizes[place] == ALONE:
                output.length(PLAIN_NODE)
                output.string(strings[0])
            else:
                _write_node(output, strings)
        self._place = end
        return end < len(row.pieces)


class _Elements(Walk):
    def __init__(self, output: RdbOutput, value: List) -> None:
        self._output: Final = output
        self._value: Final = value
        self._next = 0
        self._count: Final = value.size()
        output.length(self._count)

    def step(self) -> bool:
        count = min(_RDB_AT_ONCE, self._count - self._next)
        for piece in self._value.packed(self._next, count):
            for string in unpack(piece):
                self._output.string(string)
        self._next += count
        return self._next < self._count


TINY_LISTS: Final = 21
NODES: Final = 22  # of one list, the first of them
MORE_NODES: Final = 23
_TINY_WORDS: Final = 3  # in the table: bytes of the key and of the list, deadline
_NODE_WORDS: Final = 3  # in the table: elements, size and bytes
_HEAD_WORDS: Final = 5
_NODES_AT_ONCE: Final = 32
_AT_ONCE: Final = 64  # elements of one command
_FILL_MIN: Final = -(2**31)
_FILL_MAX: Final = 2**31 - 1
_RPUSH: Final = bulk(b"RPUSH")


class ListWriter(Writer):
    """Collects tiny lists in rows."""

    def __init__(self, records: Records) -> None:
        super().__init__(records)
        self._lists: Final = Record(TINY_LISTS)

    def add(self, key: bytes, value: object, expire_ms: int) -> Walk | None:
        self.records.keys += 1
        rep = cast("List", value).rep
        if isinstance(rep, Row):
            return _NodeWalk(self.records, key, rep, expire_ms)
        assert isinstance(rep, bytes)
        self.records.put_row(self._lists, key, rep, expire_ms)
        return None

    def flush(self) -> None:
        self.records.put(self._lists)


class _NodeWalk(Walk):
    def __init__(self, records: Records, key: bytes, row: Row, expire_ms: int) -> None:
        row.seal()
        self._records: Final = records
        self._row: Final = row
        self._place = int(row.low)
        self._record = Record(NODES)
        self._record.add(key)
        self._record.table += [expire_ms, int(row.is_listpack), row.limits.fill, row.nodes()]

    def step(self) -> bool:
        row = self._row
        record = self._record
        end = min(self._place + _NODES_AT_ONCE, len(row.pieces))
        for place in range(self._place, end):
            record.table += [row.node_count(place), int(row.sizes[place])]
            record.add(row.piece(place))
            if record.is_full():
                self._records.put(record)
                self._record = record = Record(MORE_NODES)
        self._place = end
        if end < len(row.pieces):
            return True
        self._records.put(record)
        return False


class _Nodes:
    """The nodes of a list that is being read."""

    def __init__(
        self, key: bytes, expire_ms: int, limits: NodeLimits, is_listpack: bool, nodes: int
    ) -> None:
        self.key: Final = key
        self.expire_ms: Final = expire_ms
        self.limits: Final = limits
        self.is_listpack: Final = is_listpack
        self.missing = nodes
        self.pieces: list[bytes] = []
        self.counts: list[int] = []
        self.sizes: list[int] = []


class ListReader(Reader):
    """Reads rows of tiny lists, and lists by their nodes."""

    def __init__(self, intake: Intake) -> None:
        super().__init__(intake)
        self._nodes: _Nodes | None = None
        self._limits: Final[dict[int, NodeLimits]] = {}

    def read(self, kind: int, table: list[int]) -> None:
        if kind == TINY_LISTS:
            self._tiny(table)
            return
        start = 0
        if kind == NODES:
            self._begin(table)
            start = _HEAD_WORDS
        self._add(table, start)

    def goes_on(self, kind: int) -> bool:
        return kind == MORE_NODES

    def finish(self) -> None:
        if self._nodes is not None:
            raise self.intake.malformed("all nodes of a list")

    def _tiny(self, table: list[int]) -> None:
        intake = self.intake
        for at in range(0, len(table), _TINY_WORDS):
            key = intake.cut(table[at])
            rep = intake.cut(table[at + 1])
            if not rep or not 0 < rep[0] <= small.MOST_ELEMENTS:
                raise intake.malformed("a tiny list")
            value = List()
            value.rep = rep
            intake.place(key, value, table[at + 2])

    def _begin(self, table: list[int]) -> None:
        intake = self.intake
        key = intake.cut(table[0])
        expire_ms, is_listpack, fill, nodes = table[1:_HEAD_WORDS]
        if nodes < 1 or is_listpack not in (0, 1) or not _FILL_MIN <= fill <= _FILL_MAX:
            raise intake.malformed("a list of nodes")
        limits = self._limits.get(fill)
        if limits is None:
            limits = self._limits[fill] = NodeLimits(fill)
        self._nodes = _Nodes(key, expire_ms, limits, is_listpack == 1, nodes)

    def _add(self, table: list[int], start: int) -> None:
        intake = self.intake
        nodes = self._nodes
        if nodes is None:
            raise intake.malformed("the list that nodes belong to")
        for at in range(start, len(table), _NODE_WORDS):
            if table[at] < 1 or table[at + 1] < ALONE:
                raise intake.malformed("a node of a list")
            nodes.counts.append(table[at])
            nodes.sizes.append(table[at + 1])
            nodes.pieces.append(intake.cut(table[at + 2]))
            nodes.missing -= 1
        if nodes.missing > 0:
            return
        self._nodes = None
        if nodes.missing < 0:
            raise intake.malformed("as many nodes as a list has")
        row = row_of(nodes.limits, nodes.is_listpack, nodes.pieces, nodes.counts, nodes.sizes)
        row.shrink(nodes.limits, False)  # as Redis, which decides anew when it loads a list
        value = List()
        value.rep = row
        intake.place(nodes.key, value, nodes.expire_ms)


class ListRewrite(Walk):
    """RPUSH of some elements at a time."""

    def __init__(self, commands: Commands, key: bytes, row: Row) -> None:
        row.seal()
        self._commands: Final = commands
        self._key: Final = key
        self._row: Final = row
        self._place = int(row.low)

    def step(self) -> bool:
        row = self._row
        end = min(self._place + _NODES_AT_ONCE, len(row.pieces))
        for place in range(self._place, end):
            _push(self._commands, self._key, row.piece(place), row.node_count(place))
        self._place = end
        return end < len(row.pieces)


def _push(commands: Commands, key: bytes, piece: bytes, elements: int) -> None:
    """Push elements that are packed as requests hold them."""
    at = 0
    while elements > 0:
        some = min(elements, _AT_ONCE)
        end = int(next_at(piece, at, some))
        commands.add_wire(array_header(2 + some) + _RPUSH + bulk(key) + piece[at:end])
        at = end
        elements -= some


class ListForm(Form):
    """Lists."""

    def __init__(self) -> None:
        names = {
            TINY_LISTS: "tiny lists",
            NODES: "nodes of a list",
            MORE_NODES: "more nodes of a list",
        }
        super().__init__(
            TYPE_NAME, "lists", names, LIST_KINDS, ["elements"], ListWriter, ListReader
        )

    def check(self, value: object) -> None:
        rep = cast("List", value).rep
        if isinstance(rep, bytes):
            _check_piece(rep[small.START :], rep[0])
            return
        assert isinstance(rep, Row)
        for place in range(int(rep.low), len(rep.pieces)):
            piece = rep.piece(place)
            _check_piece(piece, rep.node_count(place))
            size = rep.sizes[place]
            if size == ALONE:
                if rep.node_count(place) != 1 or rep.is_listpack:
                    raise Unsound("a string alone in a node of several")
            elif size != listpack_bytes(unpack(piece)):
                raise Unsound("a node of another size")
        if rep.is_listpack and rep.nodes() > 1:
            raise Unsound("a listpack of several nodes")

    def rewrite(self, commands: Commands, key: bytes, value: object) -> Walk | None:
        rep = cast("List", value).rep
        if isinstance(rep, Row):
            return ListRewrite(commands, key, rep)
        assert isinstance(rep, bytes)
        _push(commands, key, rep[small.START :], rep[0])
        return None

    def read_rdb(
        self, source: RdbSource, number: int, defaults: dict[str, int]
    ) -> Iterator[object]:
        limits = NodeLimits(defaults.get("list-max-listpack-size", -2))
        parts = list_parts(source, number)
        return _read_strings(parts, limits) if number == LIST else _read_nodes(parts, limits)

    def rdb_type(self, value: object, version: int) -> int:
        return LIST if version < VERSION_PACKED else LIST_QUICKLIST_2

    def write_rdb(self, output: RdbOutput, value: object) -> Walk | None:
        content = cast("List", value)
        rep = content.rep
        if self.rdb_type(value, output.version) == LIST:
            return _Elements(output, content)
        if isinstance(rep, Row):
            return _RdbNodes(output, rep)
        output.length(1)
        _write_node(output, content.strings())
        return None


def _check_piece(piece: bytes, elements: int) -> None:
    if not is_sound(piece):
        raise Unsound("a list that is no row of strings")
    if count(piece) != elements:
        raise Unsound("a list of another length")
