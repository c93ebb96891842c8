"""A stream: its entries, the groups that read them, and what its producers are known by."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headrace.storage.freeable import Large
from headrace.storage.stream.entry_log import EntryLog
from headrace.storage.stream.groups import Group
from headrace.storage.stream.idempotence import Expiring, IdmpMap, Record
from headrace.storage.stream.iids import iid_of

IDMP_DURATION_S: Final = 100  # what a stream has that was told nothing else
IDMP_MAXSIZE: Final = 100
IDMP_DURATION_S_MAX: Final = 86_400
IDMP_MAXSIZE_MAX: Final = 10_000


class Stream(EntryLog, Large):
    """The entries of one stream, its groups and its IDMP map.

    Attributes:
        groups: consumer groups by name.
        idmp_duration_s, idmp_maxsize: limits of the IDMP map; see ``limit_idmp``.
        idmp: the IDMP map; None while nothing was ever recorded.
        iids_added, iids_duplicates: idempotent ids ever recorded, and ever met again.
    """

    def __init__(self, idmp_duration_s: int, idmp_maxsize: int) -> None:
        super().__init__()
        self.idmp_duration_s = idmp_duration_s
        self.idmp_maxsize = idmp_maxsize
        self.groups: dict[bytes, Group] = {}
        self.idmp: IdmpMap | None = None
        self.iids_added = 0
        self.iids_duplicates = 0
        self._expiring: Expiring | None = None  # of the databases that it is in

    # Idempotence

    def make_idmp(self) -> IdmpMap:
        """The IDMP map, made where there is none."""
        idmp = self.idmp
        if idmp is None:
            idmp = IdmpMap(1000 * self.idmp_duration_s, self.idmp_maxsize)
            if self._expiring is not None:
                idmp.attach(self._expiring)
            self.idmp = idmp
        return idmp

    def known_id(self, pid: bytes, iid: bytes, now_ms: int) -> tuple[int, int] | None:
        """The ID of the entry that a producer added with ``iid``, or None when it added none.

        The entry may have been deleted since. What is older than the duration is not known.
        """
        idmp = self.idmp
        return None if idmp is None else idmp.find(pid, iid_of(iid), now_ms)

    def record_iid(self, pid: bytes, iid: bytes, ms: int, seq: int, added_ms: int) -> None:
        """Remember that a producer added an entry with ``iid`` at ``added_ms``.

        An ``iid`` that is known already is known for this entry from now on.
        """
        self.make_idmp().record(pid, iid_of(iid), ms, seq, added_ms)

    def idmp_records(self) -> Iterator[Record]:
        """What is in the IDMP map: (pid, iid, ms, seq, added_ms), all times in milliseconds.

        Oldest first within each producer: ``record_iid`` with the same, in the same order, on a
        stream with the same limits makes an equal map. Nothing may change meanwhile.
        """
        if self.idmp is not None:
            yield from self.idmp.records()

    def limit_idmp(self, duration_s: int, maxsize: int) -> IdmpMap | None:
        """Set the limits of the IDMP map; where they differ from those before, it is empty then.

        Returns: the map that is no longer in use, to be let go of.
        """
        if duration_s == self.idmp_duration_s and maxsize == self.idmp_maxsize:
            return None
        self.idmp_duration_s = duration_s
        self.idmp_maxsize = maxsize
        old = self.idmp
        self.idmp = None
        return old

    def has_default_limits(self) -> bool:
        """Whether the limits of the IDMP map are those of a stream that was told nothing else."""
        return self.idmp_duration_s == IDMP_DURATION_S and self.idmp_maxsize == IDMP_MAXSIZE

    def attach(self, expiring: Expiring) -> None:
        """Let ``expiring`` see to it that iids expire, those of now and all later ones."""
        self._expiring = expiring
        if self.idmp is not None:
            self.idmp.attach(expiring)

    # The whole

    def used_bytes(self, samples: int) -> int:
        """About how much memory it takes; that of the entries from ``samples`` blocks (0: all)."""
        total = 200 + self.blocks_bytes(samples)
        for group in self.groups.values():
            total += group.used_bytes()
        if self.idmp is not None:
            total += self.idmp.used_bytes()
        return total

    def free_some(self, most: int) -> bool:
        """Let go of up to ``most`` blocks, or of as much of what groups and IDMP hold.

        One that is being written out is left to whoever thaws it.
        """
        if self.frozen is not None:
            self.frozen.abandoned = True
            return True
        for name, group in self.groups.items():
            if group.free_some(most):
                del self.groups[name]
            return False
        if self.idmp is not None and not self.idmp.free_some(most):
            return False
        blocks = self.index.blocks
        del blocks[-most:]
        return not blocks

    def copy(self) -> Stream:
        """An equal stream that shares the sealed payloads."""
        twin = Stream(self.idmp_duration_s, self.idmp_maxsize)
        twin.copy_entries(self)
        twin.groups = {name: group.copy() for name, group in self.groups.items()}
        twin.idmp = None if self.idmp is None else self.idmp.copy()
        twin.iids_added = self.iids_added
        twin.iids_duplicates = self.iids_duplicates
        return twin
