"""Takes the records of a region's files as a test wants to see them."""

from __future__ import annotations

from headrace.regions.exchange.recovery import RecordLoader
from headrace.regions.files.identity import Life
from headrace.regions.knowledge.region import Region

Words = list[bytes]


class NotingDoor(RecordLoader):
    """Notes what comes, and lets the region know of it."""

    def __init__(self, region: Region) -> None:
        super().__init__(region)
        self.records: dict[bytes, list[Words]] = {}
        self.local: list[Words] = []
        self.refused = b""  # a name that it does not know
        self.lives: list[Life | None] = []

    def apply(self, origin: bytes, number: int, words: Words) -> str:
        assert number == self.region.number_of(origin) + 1
        if words[1] == self.refused:
            return "unknown"
        self.region.learned(origin, number)
        self.records.setdefault(origin, []).append(words)
        return ""

    def apply_local(self, words: Words) -> str:
        self.local.append(words)
        return "unknown" if words[1] == self.refused else ""

    async def start(self, life: Life | None) -> None:
        self.lives.append(life)
