"""How a row that is written again is known again.

Spark repeats: a task that fails is run again, and a batch whose end was not written down is run
again whole, after a restart, perhaps with other options. So each row gets an identity that is the
same in every attempt, and goes out with ``XADD ... IDMP <pid> <iid>``; the server adds it once.

The token of a row:

``column``   the value of a column; unique within a batch (or, with ``idScope=query``, a query)
``source``   the ID of the entry it came from, a hash of the row, and, should an entry give several
             equal rows, their number: one entry may become many rows
``content``  a hash of the row and its number among the equal rows of its partition
``ordinal``  its place in its partition, and a hash of the row: a changed plan can repeat rows, but
             never take one row for another

Without tokens, on servers that have no IDMP, ``marker`` knows rows; see there.

``auto`` is ``column`` where the frame has a column ``_iid``, else ``source`` where it still has the
columns that the source gave it, else ``content``.

A server remembers a limited number of iids for each producer (100 as Redis comes). One producer for
a query would forget the first rows of a batch before the last ones are written. So the rows of a
writer are dealt out to ``idmpProducers`` producers by a hash of their token: the same one in every
attempt, whatever the order of the rows. All batches share these producers, with the batch's number
in the iid; then what a producer forgets is always of older batches, as long as a batch has no more
rows than ``safe_rows``, and the map never grows beyond producers times window.

A pid is ``<query>.<writer>.<producer>``, an iid ``<batch>:<token>``.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final
from zlib import crc32

SAFE_SHARE: Final = 2  # producers are filled to half on average: then none overflows by chance
LONG_TOKEN: Final = 64


def digest(data: bytes, size: int) -> bytes:
    """A hash as text; nobody can make two rows with the same one on purpose."""
    return urlsafe_b64encode(blake2b(data, digest_size=size).digest())


def short_name(text: str) -> str:
    """A name for any text, such as a writer's description, of a few letters."""
    return blake2b(text.encode(), digest_size=4).hexdigest()


def bulk(data: bytes) -> bytes:
    """A word of a request."""
    return b"$%d\r\n%b\r\n" % (len(data), data)


@dataclass(frozen=True)
class Origin:
    """What the rows belong to.

    Attributes:
        name: of the query, or of the run of a batch job.
        batch: the micro-batch; -1 for a batch job.
        partition: the task's.
    """

    name: str
    batch: int
    partition: int


def safe_rows(producers: int, window: int) -> int:
    """Return how many rows a batch may have for each of them to be known again at its end."""
    return producers * window // SAFE_SHARE


def with_memory(options: Mapping[str, str]) -> dict[str, str]:
    """The options of a sink whose rows have iids, so that streams remember them for a day."""
    if {"identity", "configureidmp"} & {name.lower() for name in options}:
        return dict(options)
    return {**options, "configureIdmp": "true"}


class Tokens:
    """Makes the tokens of one task's rows, in the order in which the rows come."""

    def __init__(self, kind: str, partition: int) -> None:
        self._kind: Final = kind
        self._partition: Final = b"%d" % partition
        self._seen: dict[bytes, int] = {}
        self._ordinal = 0

    def of(self, bodies: Sequence[bytes], marks: Sequence[bytes]) -> list[bytes]:
        """The tokens of some rows.

        Args:
            bodies: for each row its target and fields, as they go out.
            marks: for ``column`` the column's values, for ``source`` the entries' IDs.
        """
        if self._kind == "column":
            return [mark if len(mark) <= LONG_TOKEN else digest(mark, 15) for mark in marks]
        if self._kind == "source":
            pairs = zip(marks, bodies, strict=True)
            return [self._counted(b"%b.%b" % (mark, digest(body, 6))) for mark, body in pairs]
        if self._kind == "content":
            part = self._partition
            return [self._counted(b"%b.%b" % (part, digest(body, 12))) for body in bodies]
        return [self._placed(body) for body in bodies]

    def _counted(self, token: bytes) -> bytes:
        """A token that tells equal rows apart: the second one is ``token.1``."""
        number = self._seen.get(token, 0)
        self._seen[token] = number + 1
        return b"%b.%d" % (token, number) if number else token

    def _placed(self, body: bytes) -> bytes:
        self._ordinal += 1
        return b"%b.%d.%b" % (self._partition, self._ordinal, digest(body, 6))


class Labels:
    """The words ``IDMP <pid> <iid>`` of a task's rows, as they go out."""

    def __init__(self, origin: Origin, writer: str, scope: str, producers: int) -> None:
        name = f"{origin.name}.{writer}"
        self._heads: Final = [
            b"$4\r\nIDMP\r\n" + bulk(f"{name}.{number:x}".encode()) for number in range(producers)
        ]
        self._prefix: Final = b"%d:" % origin.batch if scope == "batch" else b""

    def of(self, tokens: Sequence[bytes]) -> list[bytes]:
        """For each token its label."""
        heads, prefix = self._heads, self._prefix
        producers = len(heads)
        extra = len(prefix)
        return [
            b"%b$%d\r\n%b%b\r\n"
            % (heads[crc32(token) % producers], extra + len(token), prefix, token)
            for token in tokens
        ]


def description(**facts: object) -> str:
    """Return what an open batch must be written with again, as text to be compared."""
    return json.dumps(facts, sort_keys=True)
