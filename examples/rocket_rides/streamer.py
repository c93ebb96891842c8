"""The streamer: moves staged records from the database into the log.

It sends a batch, and deletes it when the stream has acknowledged it. When it dies in between, the
batch is sent again: at least once. What makes it once in effect is one of two ways (``Way``):

- ``idmp``: each record carries its own id as idempotent id, and the stream itself knows it again.
  Any number of streamers may run at the same time.
- ``classic``: the stream holds both copies, and consumers skip rides that are not above the last
  one they counted. That is right only when rides arrive in the order of their ids, and ids of a
  sequence do not become visible in the order in which they were drawn. So this streamer sends no
  ride before all lower ones are decided (``database.fence``), and only one streams at a time; a
  second one waits for the first to die.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rocket_rides import options
from rocket_rides.database import (
    Database,
    StagedRecord,
    become_the_streamer,
    checkpoints,
    connect,
    fence,
    has_staged,
    origin,
    settled_way,
    staged,
    staged_by_id,
    transaction,
    unstage,
)
from rocket_rides.log import Log
from rocket_rides.records import Way
from rocket_rides.running import Failures, fail, keep_running, say

TRIM_EVERY_S = 1.0


class Streamer:
    """One streamer.

    Args:
        keep: length to cap the log at. What some consumer has not read stays, cap or not.
        failures: chance to die between sending and deleting.
        batch: the most records to send at once.
        idle_s: how long to wait when nothing is staged.
    """

    def __init__(
        self,
        database: Database,
        log: Log,
        way: Way,
        *,
        keep: int = 10_000,
        failures: Failures | None = None,
        batch: int = 1000,
        idle_s: float = 0.05,
    ) -> None:
        self.database = database
        self.log = log
        self.way = way
        self.keep = keep
        self.failures = failures or Failures()
        self.batch = batch
        self.idle_s = idle_s
        self._producer = origin(database) if way is Way.IDMP else None
        self._alone = way is Way.IDMP
        self._trim_at_s = 0.0
        log.open(remember=way is Way.IDMP)

    def run_once(self) -> int:
        """Move one batch; the number of records."""
        if not self._alone:
            self._alone = become_the_streamer(self.database)
            if not self._alone:
                return 0
            say("this is the streamer now")
        moved = self._move() if has_staged(self.database) else 0
        if time.monotonic() >= self._trim_at_s:
            self._trim_at_s = time.monotonic() + TRIM_EVERY_S
            self.trim()
        return moved

    def _move(self) -> int:
        last_ride_id = fence(self.database) if self.way is Way.CLASSIC else None
        # Repeatable read: what is deleted in the end is what was seen in the beginning.
        with transaction(self.database, "REPEATABLE READ"):
            records = self._next(last_ride_id)
            if not records:
                return 0
            self.log.append(records, self._producer)
            self.failures.may_strike(f"after sending {len(records)} records, before deleting them")
            unstage(self.database, records)
        say(f"moved {len(records)} records, {records[0].id} to {records[-1].id}")
        return len(records)

    def _next(self, last_ride_id: int | None) -> list[StagedRecord]:
        if self.way is Way.NAIVE:
            return staged_by_id(self.database, self.batch)
        return staged(self.database, self.batch, last_ride_id)

    def trim(self) -> int:
        """Cap the log, but never before the slowest consumer; the number of entries removed."""
        everybody = [one.last_entry_id for one in checkpoints(self.database).values()]
        if not everybody:
            return 0
        removed = self.log.trim(self.keep, min(everybody))
        if removed:
            say(f"trimmed {removed} entries")
        return removed

    def wait(self) -> None:
        """Wait for more to be staged, or for the other streamer to die."""
        time.sleep(self.idle_s if self._alone else 10 * self.idle_s)


def main(argv: Sequence[str] | None = None) -> None:
    """Run a streamer until it is told to stop."""
    arguments = options.parser(__doc__)
    arguments.add_argument("--keep", type=int, default=10_000, help="length to cap the log at")
    arguments.add_argument("--batch", type=int, default=1000, help="records to send at once")
    arguments.add_argument(
        "--fail", type=options.probability, default=0.1, help="share of batches sent twice"
    )
    given = arguments.parse_args(argv)

    @contextmanager
    def start() -> Iterator[Streamer]:
        with connect(given.dsn) as database, Log(given.redis_url, given.stream) as log:
            way = settled_way(database)
            if way is Way.IDMP and not log.knows_idmp():
                fail("the server of the log does not know IDMP: this needs --way classic")
            yield Streamer(
                database,
                log,
                way,
                keep=given.keep,
                failures=Failures(given.fail),
                batch=given.batch,
            )

    keep_running(start)


if __name__ == "__main__":
    main()
