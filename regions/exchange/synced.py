"""What a region has on its disk: what it assures others that it will not lose, or promises."""

from __future__ import annotations

from typing import Final

from headrace.persistence.aof.file import AppendOnlyFile
from headrace.regions.knowledge.region import Region
from headrace.server.config.config import Config
from headrace.server.durability.durability import Durability
from headrace.storage.vectors import Numbers

_MARKS_MOST: Final = 100
SYNC_EVERY_MS: Final = 5000


class _Mark:
    """What was known when the file was to end at some place."""

    def __init__(self, aof: AppendOnlyFile, numbers: Numbers, promise_ms: int) -> None:
        self.numbers: Final = numbers
        self.promise_ms: Final = promise_ms
        self._aof: Final = aof
        self._end: Final = aof.end

    def is_synced(self, aof: AppendOnlyFile) -> bool:
        """Return whether that is on the disk; a file was synced before a new journal was begun."""
        if not aof.named:
            return False
        return aof is not self._aof or aof.has_synced(self._end)


class SyncedNumbers:
    """Keeps ``Region.synced`` and ``synced_promise_ms``, by looking at the file now and then."""

    def __init__(self, region: Region, config: Config, durability: Durability) -> None:
        self._region: Final = region
        self._config: Final = config
        self._committer: Final = durability.committer
        self._files: Final = durability.files
        self._next_sync_ms = 0
        self._marks: list[_Mark] = []  # oldest first
        region.synced = region.known()  # what was loaded is there
        region.synced_promise_ms = region.kept_promise_ms

    def restart(self) -> None:
        """What was known is known no more."""
        self._marks = []
        self._region.synced = {}

    def look(self, now_ms: int) -> None:
        """See how far the disk has come. No command is under way.

        With ``appendfsync no`` nothing is synced by itself. Others would keep their logs, and what
        was removed, for ever. So it is synced now and then here, and when a promise waits for that.

        Args:
            now_ms: of the clock that nobody sets.
        """
        aof = self._files.aof
        if aof is None:
            return
        marks = self._marks
        done = 0
        while done < len(marks) and marks[done].is_synced(aof):
            done += 1
        region = self._region
        if done:
            region.synced = marks[done - 1].numbers
            region.synced_promise_ms = max(region.synced_promise_ms, marks[done - 1].promise_ms)
            del marks[:done]
        known = region.known()
        latest = marks[-1].numbers if marks else region.synced
        latest_ms = marks[-1].promise_ms if marks else region.synced_promise_ms
        if known != latest or region.kept_promise_ms > latest_ms:
            if len(marks) == _MARKS_MOST:  # the disk is slow: the latest one will do
                marks.pop()
            marks.append(_Mark(aof, known, region.kept_promise_ms))
        if self._config.appendfsync != b"no" or not marks:
            return
        if now_ms >= self._next_sync_ms or region.promise_ms > region.synced_promise_ms:
            self._next_sync_ms = now_ms + SYNC_EVERY_MS
            self._committer.sync_soon()
