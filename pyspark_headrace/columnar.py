r"""A reply of XRANGE as columns, without a Python object for each entry.

The bytes of such a reply, cut at every CRLF, repeat with a fixed stride where all entries have the
same field names::

    *2                  two entries
    *2  $3  1-0         an entry: its ID,
    *4                  two fields and two values,
    $1  a  $1  x        a=x
    $1  b  $2  yz       b=yz
    *2  $3  2-0  ...    the next

so ``parts[8::12]`` are all values of ``a``. Cutting is one call into C, and so is each slice. What
remains is to be sure: every header must be what its column says, and every length must be that of
the part behind it. Lengths make it a proof, not a guess: a value that holds CRLF, however cunningly
made, leaves a part that is shorter than its length says.

Other replies (entries of different fields, CRLF in a value) are read by hiredis, entry by entry.
"""

from __future__ import annotations

from typing import Final, cast

import hiredis

from pyspark_headrace.errors import ServerError

_LENGTHS: Final = [b"$%d" % size for size in range(4096)]
_length_of: Final = _LENGTHS.__getitem__


class Page:
    """Entries in order.

    Attributes:
        ids: their IDs as text.
        names: the field names that all of them have, in order; None when they differ.
        columns: with ``names``: for each of them the values of all entries.
        rows: without: for each entry its fields and values in turn.
    """

    def __init__(
        self,
        ids: list[bytes],
        names: list[bytes] | None,
        columns: list[list[bytes]],
        rows: list[list[bytes]],
    ) -> None:
        self.ids: Final = ids
        self.names: Final = names
        self.columns: Final = columns
        self.rows: Final = rows

    def __len__(self) -> int:
        return len(self.ids)

    def head(self, count: int) -> Page:
        """The first entries of the page."""
        if count >= len(self.ids):
            return self
        columns = [column[:count] for column in self.columns]
        return Page(self.ids[:count], self.names, columns, self.rows[:count])

    def row(self, number: int) -> list[bytes]:
        """The fields and values of one entry in turn."""
        if self.names is None:
            return self.rows[number]
        found: list[bytes] = []
        for name, column in zip(self.names, self.columns, strict=True):
            found += (name, column[number])
        return found


def read_page(data: bytes) -> Page:
    """The entries of one whole reply of XRANGE."""
    page = columns_of(data)
    return page if page is not None else rows_of(data)


def columns_of(data: bytes) -> Page | None:
    """The entries of a reply as columns; None when they do not fit."""
    head = data.split(b"\r\n", 5)
    count = int(head[0][1:])
    if count <= 0:
        return Page([], [], [], [])
    if len(head) < 6:
        return None
    header = head[4]
    if header[:1] != b"*" or not header[1:].isdigit():
        return None
    width = 4 + 2 * int(header[1:])
    if data.count(b"\r\n") != count * width + 1:
        return None  # before it is cut: a value of CRLFs would be a million parts
    parts = data.split(b"\r\n")
    if parts[1:-1:width].count(b"*2") != count or parts[4::width].count(header) != count:
        return None
    ids = parts[3::width]
    if not _have_lengths(ids, parts[2::width]):
        return None
    names: list[bytes] = []
    columns: list[list[bytes]] = []
    for at in range(5, 1 + width, 4):
        name = parts[at + 1]
        if parts[at] != b"$%d" % len(name):
            return None
        if (
            parts[at::width].count(parts[at]) != count
            or parts[at + 1 :: width].count(name) != count
        ):
            return None
        column = parts[at + 3 :: width]
        if not _have_lengths(column, parts[at + 2 :: width]):
            return None
        names.append(name)
        columns.append(column)
    return Page(ids, names, columns, [])


def _have_lengths(values: list[bytes], lengths: list[bytes]) -> bool:
    """Return whether each value is as long as the header before it says."""
    try:
        return list(map(_length_of, map(len, values))) == lengths
    except IndexError:
        return [b"$%d" % len(value) for value in values] == lengths


def rows_of(data: bytes) -> Page:
    """The entries of a reply, whatever they look like."""
    reader = hiredis.Reader(replyError=ServerError)
    reader.feed(data)
    entries = cast("list[tuple[bytes, list[bytes]]]", reader.gets())
    ids: list[bytes] = []
    rows: list[list[bytes]] = []
    for entry_id, row in entries:
        ids.append(entry_id)
        rows.append(row)
    return Page(ids, None, [], rows)
