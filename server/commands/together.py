"""Values and plain reads for handlers of alike requests of any key (``@alike``)."""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

from mypy_extensions import i64, mypyc_attr

from headrace.protocol.packing import Packer
from headrace.protocol.replies import NO_REPLIES, PackedReplies
from headrace.server.clients.session import NO_TOUCH
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import ALIKE_BYTES, NONE_ALIKE, alike
from headrace.storage.collection import Collection
from headrace.storage.key_table import MOST_AHEAD
from headrace.storage.packed.table import Table

Requests = list[list[bytes]]
Ran = tuple[int, PackedReplies]  # how many requests were run, and their replies

_NO_KEY: Final = bytes(bytearray(b"no key"))  # an object that no request has


@mypyc_attr(acyclic=True, free_list_len=1)  # one after the other: the next takes its place
class Values:
    """The values of the keys that requests name with their second words, one after the other.

    Where keys are many, those of the next requests are looked at ahead, so that the processor waits
    for several at once. So are elements of a large value, where requests name them. A request for
    the same key as the one before has the same value, if it is not None.

    Args:
        end: where the requests end.
        writes: they change what they name, and so it counts as an access, for any client.
        element_at: which of their words names an element, counted from 0; 0: none.
    """

    def __init__(
        self,
        call: Call,
        requests: Requests,
        end: i64,
        writes: bool = False,
        element_at: i64 = 0,
    ) -> None:
        self._db: Final = call.db
        self._now_ms: Final[i64] = call.now_ms
        self._requests: Final = requests
        self._end: Final = end
        self._touches: Final = writes or not call.session.special & NO_TOUCH
        self._element_at: Final[i64] = element_at
        self._scattered: Final = call.db.table.is_scattered()
        self._key = _NO_KEY
        self._value: object | None = None
        self._keys_from: i64 = 0  # the keys of these requests were looked at ahead
        self._keys_until: i64 = 0
        self._table: Table | None = None  # where the elements of these were looked at ahead
        self._elements_from: i64 = 0
        self._elements_until: i64 = 0

    def of(self, at: i64) -> object | None:
        """Return the value of the key of a request, which must be behind the last one asked for."""
        words = self._requests[at]
        key = words[1]
        value = self._value
        if value is None or key is not self._key:
            value = self._find(key, at)
        if at < self._elements_until:
            table = self._table
            assert table is not None
            table.take_ahead(words[self._element_at], at - self._elements_from)
        return value

    def made(self, value: object) -> None:
        """Set the value that the last request has made for its key; None: it is gone."""
        self._value = value

    def _find(self, key: bytes, at: i64) -> object | None:
        db = self._db
        if self._scattered:
            if at >= self._keys_until:
                self._keys_from = at
                self._keys_until = min(self._end, at + MOST_AHEAD)
                db.table.look_ahead(self._requests, at, self._keys_until)
            db.table.find_ahead(key, at - self._keys_from)
        now_ms = self._now_ms
        value = db.get(key, now_ms) if self._touches else db.value_of(key, now_ms)
        self._key = key
        self._value = value
        self._elements_until = 0
        after = at + 1
        if self._element_at and after < self._end and self._requests[after][1] is key:
            self._look_into(value, key, at)
        return value

    def _look_into(self, value: object | None, key: bytes, at: i64) -> None:
        """Look ahead at elements of a large value, as many as requests in a row name."""
        table = value.scattered_table() if isinstance(value, Collection) else None
        if table is not None:
            end = at + 1
            while end < self._end and self._requests[end][1] is key:
                end += 1
            table.look_ahead(self._requests, at, end, self._element_at)
            self._table = table
            self._elements_from = at
            self._elements_until = end


class Reader:
    """Answers requests that read one key each, one after another.

    ``words`` is the length of such a request; 0 is any that the command takes. See ``Values``.
    """

    def __init__(self, words: i64 = 0, element_at: i64 = 0) -> None:
        self._words: Final[i64] = words
        self._element_at: Final[i64] = element_at

    @abstractmethod
    def absent(self, out: Packer) -> None:
        """Answer a request for a key that is not there."""

    @abstractmethod
    def read(self, out: Packer, value: object, words: list[bytes]) -> bool:
        """Answer a request for a key with this value; False where it is to be run by itself."""

    def run(self, call: Call, requests: Requests, first: int, end: int) -> Ran:
        """Run requests up to one out of the ordinary, and count hits and misses; see ``alike``."""
        if self._words and len(requests[first]) != self._words:
            return NONE_ALIKE, NO_REPLIES
        values = Values(call, requests, end, element_at=self._element_at)
        out = Packer(call.session.resp3)
        hits: i64 = 0
        at: i64 = first
        until: i64 = end
        while at < until:
            value = values.of(at)
            if value is None:
                if call.reports_misses():
                    break
                self.absent(out)
            else:
                if not self.read(out, value, requests[at]):
                    break
                hits += 1
            at += 1
            if out.wire_bytes() >= ALIKE_BYTES:
                break
        call.count_reads(hits, at - first - hits)
        return int(at) - first, out.replies()


def read_alike(name: str, reader: Reader) -> None:
    """Declare the reader for requests of a command that are run at once, with any keys."""
    alike(name, of_any_key=True)(reader.run)
