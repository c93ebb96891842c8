"""DEBUG LISTPACK, QUICKLIST and HTSTATS-KEY: how a value is laid out in memory.

The first two print it on the standard output, as in Redis.
"""

from __future__ import annotations

import sys
from typing import Final

from headrace.compat.errors import (
    NO_SUCH_KEY,
    NOT_A_HASH_TABLE,
    NOT_A_LISTPACK,
    NOT_A_QUICKLIST,
    CommandError,
)
from headrace.protocol.doubles import in_digits
from headrace.protocol.replies import Status, Verbatim
from headrace.server.dispatch.call import Call
from headrace.storage.faces import face
from headrace.storage.hash.hash import Hash
from headrace.storage.hash.timed_table import TimedTable
from headrace.storage.list.list import List
from headrace.storage.list.row import Row
from headrace.storage.packed.listpack import EMPTY_BYTES, text_bytes
from headrace.storage.packed.strings import unpack
from headrace.storage.packed.table import Table, elements
from headrace.storage.set.set import Set
from headrace.storage.sorted_set.large import Large
from headrace.storage.sorted_set.sorted_set import SortedSet, pairs_of

_LISTPACKS: Final = (b"listpack", b"listpackex")
_HEAD_BYTES: Final = EMPTY_BYTES - 1  # of a listpack, before its first entry


def _value(call: Call) -> object:
    found = call.db.peek(call.argv[2])
    if found is None:
        raise CommandError(NO_SUCH_KEY)
    return found.value


def listpack(call: Call) -> object:
    """Print the entries of the listpack that Redis has in the place of a small value."""
    value = _value(call)
    if face(value).encoding(call.argv[2]) not in _LISTPACKS:
        raise CommandError(NOT_A_LISTPACK)
    texts = _texts(value)
    sizes = [int(text_bytes(text)) for text in texts]
    print(f"{{total bytes {EMPTY_BYTES + sum(sizes)}}} {{num entries {len(texts)}}}")
    offset = _HEAD_BYTES
    for index, text in enumerate(texts):
        print(f"{{index {index}, offset {offset}, entry bytes {sizes[index]}}} [{text!r}]")
        offset += sizes[index]
    sys.stdout.flush()
    return Status(b"Listpack structure printed on stdout")


def _texts(value: object) -> list[bytes]:
    """The entries of a small value in order, all as text."""
    if isinstance(value, List):
        return value.strings()
    if isinstance(value, Set):
        return value.members()
    texts: list[bytes] = []
    if isinstance(value, SortedSet):
        for run in value.runs(0, value.size()):
            for member, score in pairs_of(run):
                texts += [member, in_digits(score)]
    elif isinstance(value, Hash):
        for pair in value.elements():
            texts += unpack(pair)
            if value.is_timed():
                texts.append(b"%d" % value.deadline_ms(texts[-2]))
    return texts


def quicklist(call: Call) -> object:
    """Print the nodes of the quicklist that Redis has in the place of a large list.

    ``DEBUG QUICKLIST key 1`` also prints the elements.
    """
    value = _value(call)
    rep = value.rep if isinstance(value, List) else None
    if not isinstance(rep, Row) or rep.is_listpack:
        raise CommandError(NOT_A_QUICKLIST)
    strings = value.strings() if isinstance(value, List) and call.argv[3:] == [b"1"] else []
    print(f"{{count {rep.count}}} {{nodes {rep.nodes()}}} {{fill {rep.limits.fill}}}")
    at = 0
    for number in range(rep.nodes()):
        place = int(rep.low) + number
        count = rep.node_count(place)
        print(f"{{node {number}, bytes {rep.node_bytes(place)}, count {count}}}")
        for text in strings[at : at + count]:
            print(f"    [{text!r}]")
        at += count
    sys.stdout.flush()
    return Status(b"Quicklist structure printed on stdout")


def table_statistics(call: Call) -> object:
    """Tell how a large value is spread over the buckets of its table; FULL looks at them all."""
    value = _value(call)
    table = _table(value)
    if table is None:
        raise CommandError(NOT_A_HASH_TABLE)
    lines = [
        b"Hash table 0 stats (main hash table):",
        b" table size: %d" % table.buckets,
        b" number of elements: %d" % table.count,
    ]
    if call.argv[3:] and call.argv[3].lower() == b"full":
        lines += _distribution(table)
    return Verbatim(b"\n".join(lines) + b"\n")


def _table(value: object) -> Table | None:
    rep: object = value.rep if isinstance(value, (Hash, Set, SortedSet)) else None
    if isinstance(rep, (TimedTable, Large)):
        return rep.table
    return rep if isinstance(rep, Table) else None


def _distribution(table: Table) -> list[bytes]:
    """How many buckets have how many elements."""
    buckets_of: dict[int, int] = {}
    for directory in table.directories:
        for bucket in directory:
            length = int(elements(bucket, table.kind))
            buckets_of[length] = buckets_of.get(length, 0) + 1
    total = int(table.buckets)
    used = total - buckets_of.get(0, 0)
    mean = b"%.2f" % (int(table.count) / used if used else 0.0)
    lines = [
        b" different slots: %d" % used,
        b" max chain length: %d" % max(buckets_of),
        b" avg chain length (counted): " + mean,
        b" avg chain length (computed): " + mean,
        b" Chain length distribution:",
    ]
    for length in sorted(buckets_of):
        count = buckets_of[length]
        lines.append(b"   %d: %d (%.2f%%)" % (length, count, 100 * count / total))
    return lines
