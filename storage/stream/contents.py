"""The contents of a stream: entries, the groups that read them, and the iids of producers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Final

from headrace.storage.stream.entry_log import EntryLog
from headrace.storage.stream.groups import Group
from headrace.storage.stream.idmp import IdmpMap, Record, iid_of
from headrace.storage.value import Expiring

IDMP_DURATION_S: Final = 100  # of a stream for which nothing else was set
IDMP_MAXSIZE: Final = 100
IDMP_DURATION_S_MAX: Final = 86_400
IDMP_MAXSIZE_MAX: Final = 10_000


_serials = count(1)


class Contents(EntryLog):
    """The entries of one stream, its groups and its IDMP map.

    Attributes:
        serial: distinguishes it from every other stream that this process has ever held.
        idmp_duration_s, idmp_maxsize: limits of the IDMP map; see ``limit_idmp``.
        idmp: the IDMP map; None while nothing was ever recorded.
        iids_added, iids_duplicates: idempotent ids ever recorded, and ever met again.
    """

    def __init__(self, idmp_duration_s: int, idmp_maxsize: int) -> None:
        super().__init__()
        self.serial: Final[int] = next(_serials)
        self.idmp_duration_s = idmp_duration_s
        self.idmp_maxsize = idmp_maxsize
        self.groups: dict[bytes, Group] = {}
        self.idmp: IdmpMap | None = None
        self.iids_added = 0
        self.iids_duplicates = 0
        self._expiring: Expiring | None = None  # of the databases that it is in

    # Idempotence

    def make_idmp(self) -> IdmpMap:
        """Return the IDMP map, made where there is none."""
        idmp = self.idmp
        if idmp is None:
            idmp = IdmpMap(1000 * self.idmp_duration_s, self.idmp_maxsize)
            if self._expiring is not None:
                idmp.attach(self._expiring)
            self.idmp = idmp
        return idmp

    def known_id(self, pid: bytes, iid: bytes, now_ms: int) -> tuple[int, int] | None:
        """Return the ID of the entry that a producer added with ``iid``, or None.

        The entry may have been deleted since. What is older than the duration is not known.
        """
        idmp = self.idmp
        return None if idmp is None else idmp.find(pid, iid_of(iid), now_ms)

    def record_iid(self, pid: bytes, iid: bytes, ms: int, seq: int, added_ms: int) -> None:
        """Record that a producer added an entry with ``iid``, maybe known, at ``added_ms``."""
        self.make_idmp().record(pid, iid_of(iid), ms, seq, added_ms)

    def idmp_records(self) -> Iterator[Record]:
        """Yield (pid, iid, ms, seq, added_ms) of the IDMP map, all times in milliseconds.

        Oldest first within each producer: ``record_iid`` with the same, in the same order, on a
        stream with the same limits makes an equal map. Nothing may change meanwhile.
        """
        if self.idmp is not None:
            yield from self.idmp.records()

    def limit_idmp(self, duration_s: int, maxsize: int) -> IdmpMap | None:
        """Set the IDMP limits; if they change, empty the map and return the old one, to free it."""
        if duration_s == self.idmp_duration_s and maxsize == self.idmp_maxsize:
            return None
        self.idmp_duration_s = duration_s
        self.idmp_maxsize = maxsize
        old = self.idmp
        self.idmp = None
        return old

    def has_default_limits(self) -> bool:
        """Return whether the IDMP limits are those of a stream for which nothing was set."""
        return self.idmp_duration_s == IDMP_DURATION_S and self.idmp_maxsize == IDMP_MAXSIZE

    def attach(self, expiring: Expiring) -> None:
        """Let ``expiring`` take care that iids expire, those of now and all later ones."""
        self._expiring = expiring
        if self.idmp is not None:
            self.idmp.attach(expiring)
