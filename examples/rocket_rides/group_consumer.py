"""A member of a consumer group: several share the log, and each ride is counted by one of them.

The server remembers who was given what, until it is acknowledged. A member that comes back first
does what it still holds; what a member left that does not come back is taken over by another.

Between committing and acknowledging a member may die, and then the entry is delivered once more.
Members finish in any order, so there is no last ride to compare with: the group notes each ride in
the transaction that counts it (``group_rides``). In the IDMP way notes are dropped behind the
point up to which everything is acknowledged. In the classic way a copy of a ride may come at any
time, and they stay until the next correction covers them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import redis

from rocket_rides import options
from rocket_rides.database import (
    Checkpoint,
    Database,
    State,
    connect,
    count_once,
    counted_after,
    drop_notes,
    load_state,
    lock_checkpoint,
    register,
    save_checkpoint,
    save_state,
    settled_way,
    stage_correction,
    transaction,
)
from rocket_rides.log import Log
from rocket_rides.records import (
    EXACT,
    START,
    Correction,
    Entry,
    EntryID,
    Ride,
    Way,
    exact_sum,
    understand,
)
from rocket_rides.running import Failures, keep_running, say

DEAD_AFTER_MS = 3000
TIDY_EVERY_S = 1.0


class GroupConsumer:
    """One member of a group.

    Args:
        group: whose total this is.
        member: the name of this one. Whoever comes back under it goes on with what it held.
        failures: chance to die before committing, and again between that and acknowledging.
        batch: the most entries to take at once.
        dead_after_ms: how long a member may be silent before others take what it holds.
    """

    def __init__(
        self,
        database: Database,
        log: Log,
        way: Way,
        group: str,
        member: str,
        *,
        failures: Failures | None = None,
        batch: int = 100,
        dead_after_ms: int = DEAD_AFTER_MS,
        block_ms: int = 500,
    ) -> None:
        self.database = database
        self.log = log
        self.way = way
        self.group = group
        self.member = member
        self.failures = failures or Failures()
        self.batch = batch
        self.dead_after_ms = dead_after_ms
        self.block_ms = block_ms
        self._held_after: EntryID | None = START  # first what an earlier life left
        self._tidy_at_s = 0.0
        register(database, group)
        log.join(group)

    def run_once(self) -> int:
        """Take and count one batch; the number of entries."""
        try:
            entries = self._take()
        except redis.ResponseError as error:
            if not str(error).startswith("NOGROUP"):
                raise
            self._join_again()
            return 0
        if entries:
            self._count(entries)
            self.failures.may_strike(f"before acknowledging {len(entries)} entries")
            self.log.acknowledge(self.group, [entry.id for entry in entries])
        if time.monotonic() >= self._tidy_at_s:
            self._tidy_at_s = time.monotonic() + TIDY_EVERY_S
            self.tidy()
        return len(entries)

    def _join_again(self) -> None:
        """Make the group anew; somebody has removed it, and perhaps the stream with it."""
        say("the group is gone: making it anew")
        self.log.join(self.group)
        with transaction(self.database, "READ COMMITTED"):
            checkpoint = lock_checkpoint(self.database, self.group)
            last = min(checkpoint.last_entry_id, self.log.facts().last_entry_id)
            save_checkpoint(self.database, self.group, checkpoint._replace(last_entry_id=last))

    def _take(self) -> list[Entry]:
        if self._held_after is not None:
            held = self.log.held(self.group, self.member, self._held_after, self.batch)
            self._held_after = held[-1].id if held else None
            if held:
                return held
        return self.log.take(self.group, self.member, self.batch, self.block_ms, self.dead_after_ms)

    def _count(self, entries: list[Entry]) -> None:
        with transaction(self.database, "READ COMMITTED"):
            checkpoint = lock_checkpoint(self.database, self.group)
            state = load_state(self.database, self.group)
            rides: list[tuple[EntryID, Ride]] = []
            corrections: list[Correction] = []
            for entry in entries:
                if entry.id <= checkpoint.last_entry_id:
                    continue  # done by another, while this one held it for dead
                match understand(entry.fields):
                    case Ride() as ride:
                        rides.append((entry.id, ride))
                    case Correction() as correction:
                        corrections.append(correction)
                    case None if entry.fields is None:
                        say(f"entry {entry.id} was deleted before it could be read")
                        stage_correction(self.database)
                        checkpoint = checkpoint._replace(lost_entries=checkpoint.lost_entries + 1)
                    case None:
                        say(f"entry {entry.id} makes no sense and is passed over: {entry.fields}")
            state = self._add(rides, checkpoint, state)
            for correction in corrections:
                checkpoint, state = self._correct(correction, checkpoint, state)
            save_state(self.database, state)
            save_checkpoint(self.database, self.group, checkpoint)
            self.failures.may_strike(f"before committing {len(entries)} entries")
        say(f"counted {len(entries)} entries up to {entries[-1].id}")

    def _add(
        self, rides: list[tuple[EntryID, Ride]], checkpoint: Checkpoint, state: State
    ) -> State:
        open_rides = [(at, ride) for at, ride in rides if ride.id > checkpoint.corrected_to]
        new = count_once(self.database, self.group, open_rides)
        distances = {ride.id: ride.distance for _, ride in open_rides if ride.id in new}
        return state._replace(
            ride_count=state.ride_count + len(distances),
            skipped_count=state.skipped_count + len(rides) - len(distances),
            total=EXACT.add(state.total, exact_sum(distances.values())),
        )

    def _correct(
        self, correction: Correction, checkpoint: Checkpoint, state: State
    ) -> tuple[Checkpoint, State]:
        """Start from the correction's total, and add the rides after it that were counted.

        Their notes are all there: notes are dropped only before the first entry that is open, and
        this correction is one.
        """
        last = correction.last_ride_id
        if last < max(checkpoint.corrected_to, checkpoint.last_ride_id):
            return checkpoint, state  # a newer one was there first
        since = counted_after(self.database, self.group, last)
        state = state._replace(
            ride_count=correction.ride_count + since.ride_count,
            total=EXACT.add(correction.total, since.total),
        )
        return checkpoint._replace(corrected_to=last), state

    def tidy(self) -> None:
        """Move the group's checkpoint to where everything is acknowledged, and drop notes."""
        facts = self.log.group_facts(self.group)
        if facts is None:
            return
        with transaction(self.database, "READ COMMITTED"):
            checkpoint = lock_checkpoint(self.database, self.group)
            if facts.done <= checkpoint.last_entry_id:
                return
            checkpoint = checkpoint._replace(last_entry_id=facts.done)
            if self.way is Way.IDMP:
                dropped = drop_notes(self.database, self.group, facts.done)
                checkpoint = checkpoint._replace(last_ride_id=max(dropped, checkpoint.last_ride_id))
            save_checkpoint(self.database, self.group, checkpoint)

    def wait(self) -> None:
        """Taking has waited already."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run a member of a group until it is told to stop."""
    arguments = options.parser(__doc__)
    arguments.add_argument("--group", default="group", help="the group's name")
    arguments.add_argument("--name", required=True, help="the member's name")
    arguments.add_argument(
        "--fail", type=options.probability, default=0.1, help="share of batches that end in a crash"
    )
    given = arguments.parse_args(argv)

    @contextmanager
    def start() -> Iterator[GroupConsumer]:
        with connect(given.dsn) as database, Log(given.redis_url, given.stream) as log:
            yield GroupConsumer(
                database,
                log,
                settled_way(database),
                given.group,
                given.name,
                failures=Failures(given.fail),
            )

    keep_running(start)


if __name__ == "__main__":
    main()
