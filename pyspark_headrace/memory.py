"""What streams remember of rows, and whether that is enough to write a batch again.

A stream forgets an iid after a time (``idmp-duration``, a day at most). A batch that is repeated
later would be there twice. So a note beside the stream, the string ``<stream>:sink:<query>``, says
when the batch was begun, how, and for how long its streams remember rows; an attempt that comes too
late is refused before it has written one row. The time is the server's.
"""

from __future__ import annotations

import json
import logging
import secrets
import time
from dataclasses import dataclass
from typing import Final, cast

from pyspark_headrace.client import Client
from pyspark_headrace.errors import ServerError, UnsafeWriteError
from pyspark_headrace.identity import SAFE_SHARE
from pyspark_headrace.ids import StreamID
from pyspark_headrace.options import MOST_IIDS
from pyspark_headrace.resp import Link
from pyspark_headrace.server import figures_of, pairs_of
from pyspark_headrace.slots import slot_of

log = logging.getLogger("pyspark_headrace")

NOTE_LIFE_S: Final = 7 * 86_400
LONG_ENOUGH_S: Final = 3600
LONGEST_S: Final = 86_400
# As Redis comes.
_DURATION_S: Final = 100
_WINDOW: Final = 100
_SURE: Final = 0.9  # of the time: rows are on their way for a while


class Target:
    """One stream that rows go to, as it was when the task met it.

    Attributes:
        newest: the last ID that a row of the task was given.
        met: the IDs of rows that were there already, of which the task has met one each.
        window: how many iids of a producer it remembers; ``duration_s`` for how long.
        tracked: how many it remembers now.
    """

    def __init__(self, last: StreamID, window: int, duration_s: int, tracked: int) -> None:
        self.last: Final = last
        self.newest = last
        self.met: Final[set[StreamID]] = set()
        self.window: Final = window
        self.duration_s: Final = duration_s
        self.tracked: Final = tracked


def look_at(link: Link, target: bytes) -> Target:
    """A stream before the first row goes there.

    Raises:
        NotAStreamError: the key holds something else.
    """
    name = target.decode("utf-8", "replace")
    try:
        reply = link.call("XINFO", "STREAM", target)
    except ServerError as error:
        figures_of(error, name)  # passes only a stream that is not there yet
        return Target((0, 0), _WINDOW, _DURATION_S, 0)
    values = pairs_of(reply)
    return Target(
        figures_of(reply, name).last,
        cast("int", values.get("idmp-maxsize", _WINDOW)),
        cast("int", values.get("idmp-duration", _DURATION_S)),
        cast("int", values.get("iids-tracked", 0)),
    )


def let_remember(link: Link, target: bytes, found: Target, window: int) -> Target:
    """Let a stream remember as long as it can, and so many iids of a producer at the least.

    Only where it remembers none: it would forget them.

    Returns:
        The stream as it is then.
    """
    if found.tracked or (found.duration_s >= LONG_ENOUGH_S and found.window >= window):
        return found
    if found.last == (0, 0):
        # XCFGSET wants a stream; a group makes an empty one, and goes again.
        group = f"headrace-{secrets.token_hex(4)}"
        link.call("XGROUP", "CREATE", target, group, "$", "MKSTREAM")
        link.call("XGROUP", "DESTROY", target, group)
    duration_s = found.duration_s if found.duration_s >= LONG_ENOUGH_S else LONGEST_S
    maxsize = max(found.window, window)
    link.call("XCFGSET", target, "IDMP-DURATION", duration_s, "IDMP-MAXSIZE", maxsize)
    return look_at(link, target)


def window_for(rows: int, producers: int) -> int:
    """Return how many iids of a producer are to be remembered for batches of so many rows."""
    return min(-(-SAFE_SHARE * rows // producers), MOST_IIDS)


@dataclass(frozen=True)
class Attempt:
    """An attempt to write a batch, as a task knows of it.

    Attributes:
        batch: its number; -1 for a batch job.
        how: what must not change while it is open.
        name: drawn for each attempt of the batch.
        began_ms: when that was.
        is_again: Spark has started this task of the attempt before.
        lenient: what comes too late is written all the same.
    """

    batch: int
    how: str
    name: str
    began_ms: int
    is_again: bool
    lenient: bool

    @property
    def what(self) -> str:
        """The batch, for messages."""
        return f"batch {self.batch}" if self.batch >= 0 else "this run"


class OpenBatch:
    """A batch while it is written, with its note.

    Args:
        key: of the note; empty for none, where only a task of this very attempt is started again.

    Raises:
        UnsafeWriteError: the batch was begun with other options.
    """

    def __init__(self, link: Link, key: str, attempt: Attempt) -> None:
        self._link: Final = link
        self._key: Final = key
        self._attempt: Final = attempt
        self._began_ms = attempt.began_ms
        self._now_ms = time.time_ns() // 1_000_000
        self._forgets_s = 0  # the shortest of its streams; 0 is for ever, or not known
        self._noted = False
        self._by = attempt.name  # the first one
        self.repeated = attempt.is_again
        if key:
            self._read()
        self._read_at_s: Final = time.monotonic()

    def _read(self) -> None:
        attempt = self._attempt
        found, self._now_ms = self._link.run(self._ask, slot_of(self._key))
        note = {} if found is None else json.loads(found)
        if note.get("batch") != attempt.batch:
            self.repeated = False  # nobody has come so far as to write a row
            self._began_ms = self._now_ms
            return
        if note["how"] != attempt.how:
            raise UnsafeWriteError(
                f"{attempt.what} was begun with other columns or identity options, and rows "
                "written again could not be known again. Finish it with the old ones, then "
                f"change: it was {note['how']}, and is {attempt.how}"
            )
        self._by = note.get("by", "")
        self.repeated = attempt.is_again or self._by != attempt.name
        self._began_ms = note.get("began_ms", self._now_ms)
        self._forgets_s = note.get("forgets_s", 0)
        self._noted = True

    def _ask(self, client: Client) -> tuple[bytes | None, int]:
        found = cast("bytes | None", client.call("GET", self._key))
        seconds, micros = cast("list[bytes]", client.call("TIME"))
        return found, int(seconds) * 1000 + int(micros) // 1000

    def note(self, forgets_s: int = 0) -> None:
        """Leave word of the batch before its first row, and of the shortest memory.

        Args:
            forgets_s: after how long a stream forgets; 0 is never.
        """
        shorter = bool(forgets_s) and not 0 < self._forgets_s <= forgets_s
        if self._noted and not shorter:
            return
        if shorter:
            self._forgets_s = forgets_s
        self._noted = True
        attempt = self._attempt
        if self._key:
            note = {
                "batch": attempt.batch,
                "how": attempt.how,
                "began_ms": self._began_ms,
                "by": self._by,
                "forgets_s": self._forgets_s,
            }
            life = () if attempt.batch >= 0 else ("EX", NOTE_LIFE_S)
            self._link.call("SET", self._key, json.dumps(note), *life)

    def check(self) -> None:
        """Look whether rows of an earlier attempt are known still.

        Raises:
            UnsafeWriteError: they may be forgotten.
        """
        if not self.repeated or not self._forgets_s:
            return
        since_s = time.monotonic() - self._read_at_s + (self._now_ms - self._began_ms) / 1000
        if since_s < _SURE * self._forgets_s:
            return
        attempt = self._attempt
        what = (
            f"{attempt.what} was begun {since_s:.0f} s ago, and its stream forgets rows after "
            f"{self._forgets_s} s (idmp-duration)"
        )
        if not attempt.lenient:
            raise UnsafeWriteError(
                f"{what}: rows of it that are there would be added once more. It is for you to "
                "look, and to write it all the same with failOnForgotten=false; later batches "
                "may wait for a day with configureIdmp=true, or XCFGSET ... IDMP-DURATION 86400"
            )
        log.warning("%s: some rows may be there twice now", what)
        self.repeated = False  # is said once
