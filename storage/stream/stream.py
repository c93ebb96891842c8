"""A stream as a value: its contents behind the face that every value has."""

from __future__ import annotations

from typing import Final

from headrace.storage.digest import Digest
from headrace.storage.stream.contents import Contents
from headrace.storage.stream.frozen import STREAM, FrozenStream
from headrace.storage.stream.run import ID_MAX

_DIGEST_NUMBER: Final = 6
_DIGEST_PAGE: Final = 1000  # entries looked at together


class Stream(Contents):
    """One stream; the arguments are the limits of its IDMP map."""

    def type_name(self) -> bytes:
        return STREAM

    def encoding(self, key: bytes) -> bytes:
        """Return the name of the type, because there is one representation."""
        return STREAM

    def size(self) -> int:
        return self.length

    def is_empty(self) -> bool:
        """Return False: a stream without entries keeps its last ID and its groups."""
        return False

    def used_bytes(self, samples: int) -> int:
        """Return about how many bytes it takes; nothing has to be sampled."""
        total = 200 + self.blocks_bytes()
        for group in self.groups.values():
            total += group.used_bytes()
        if self.idmp is not None:
            total += self.idmp.used_bytes()
        return total

    def effort(self) -> int:
        """Return the blocks, groups and producers, and one more to forget what expires."""
        producers = 0 if self.idmp is None else len(self.idmp.producers)
        return 1 + len(self.index.blocks) + len(self.groups) + producers

    def free_some(self, most: int) -> bool:
        """Free up to ``most`` blocks, or as much of what groups and IDMP hold.

        A stream that is being written out is freed by the next to thaw it.
        """
        if self.frozen is not None:
            self.frozen.abandon()
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
        """Return an equal stream that shares the sealed payloads. O(blocks + pending)."""
        twin = Stream(self.idmp_duration_s, self.idmp_maxsize)
        twin.copy_entries(self)
        twin.groups = {name: group.copy() for name, group in self.groups.items()}
        twin.idmp = None if self.idmp is None else self.idmp.copy()
        twin.iids_added = self.iids_added
        twin.iids_duplicates = self.iids_duplicates
        return twin

    def freeze(self) -> FrozenStream:
        return FrozenStream(self)

    def add_to(self, digest: Digest) -> None:
        """Add its type and entries; groups are not looked at, as in Redis."""
        digest.mix_type(_DIGEST_NUMBER)
        start = (0, 0)
        alike = 0  # entries that were added and have this ID: several lanes may have one
        left = self.length
        while left > 0:
            met_before = alike
            for part in self.parts(start, (ID_MAX, ID_MAX), _DIGEST_PAGE, False):
                run = part.run
                dead = part.dead
                for number in range(part.low, part.high):
                    if dead is not None and dead[number]:
                        continue
                    if met_before:
                        met_before -= 1
                        continue
                    ms = run.ms[number]
                    seq = run.seq[number]
                    if (ms, seq) != start:
                        start = (ms, seq)
                        alike = 0
                    alike += 1
                    digest.mix(b"%d.%d" % (ms, seq))
                    for word in run.row(number):
                        digest.mix(word)
                    left -= 1
