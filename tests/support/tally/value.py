"""Tallies in the keyspace."""

from __future__ import annotations

from headrace.storage.digest import Digest
from headrace.storage.value import Expiring, Freeable, Frozen, Value

TALLY = b"tally"


class Tally(Value):
    """Marks in the order in which they were made."""

    def __init__(self, marks: list[int]) -> None:
        self.marks = marks

    def total(self) -> int:
        return sum(self.marks)

    def type_name(self) -> bytes:
        return TALLY

    def encoding(self, key: bytes) -> bytes:
        return b"marks"

    def size(self) -> int:
        return len(self.marks)

    def is_empty(self) -> bool:
        return not self.total()

    def used_bytes(self, samples: int) -> int:
        return 100 + 40 * len(self.marks)

    def copy(self) -> Tally:
        return Tally(list(self.marks))

    def freeze(self) -> FrozenTally:
        return FrozenTally(self)

    def effort(self) -> int:
        return len(self.marks)

    def free_some(self, most: int) -> bool:
        del self.marks[-most:]
        return not self.marks

    def add_to(self, digest: Digest) -> None:
        digest.mix_type(77)
        for mark in self.marks:
            digest.mix(b"%d" % mark)

    def attach(self, expiring: Expiring) -> None:
        """Nothing of it expires."""


class FrozenTally(Frozen):
    """A tally as it was; its marks are copied, so the tally itself has nothing to keep."""

    def __init__(self, tally: Tally) -> None:
        self.marks = list(tally.marks)

    def type_name(self) -> bytes:
        return TALLY

    def register(self) -> None:
        """There is nothing to ask for."""

    def copied_bytes(self) -> int:
        return 8 * len(self.marks)

    def thaw(self) -> list[Freeable]:
        return [self]

    def free_some(self, most: int) -> bool:
        del self.marks[-most:]
        return not self.marks
