"""A consumer: reads the log from its checkpoint on and keeps a total of all rides.

Total and checkpoint are stored in one transaction, so they always speak of the same moment: after
a crash the batch is read again, and nobody can tell. Any number of consumers run side by side,
each under a name of its own, and each comes to the same total.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rocket_rides import options
from rocket_rides.database import (
    Checkpoint,
    Database,
    State,
    connect,
    forget,
    load_state,
    lock_checkpoint,
    register,
    save_checkpoint,
    save_state,
    settled_way,
    stage_correction,
    transaction,
)
from rocket_rides.log import Facts, Log
from rocket_rides.records import EXACT, START, Correction, Entry, Ride, Way, understand
from rocket_rides.running import Failures, keep_running, say


class Consumer:
    """One consumer.

    Args:
        name: whose checkpoint and total these are.
        failures: chance to die before the transaction is committed.
        batch: the most entries to read at once.
    """

    def __init__(
        self,
        database: Database,
        log: Log,
        way: Way,
        name: str,
        *,
        failures: Failures | None = None,
        batch: int = 1000,
    ) -> None:
        self.database = database
        self.log = log
        self.way = way
        self.name = name
        self.failures = failures or Failures()
        self.batch = batch
        self._last = START
        register(database, name)

    def run_once(self) -> int:
        """Consume one batch; the number of entries."""
        with transaction(self.database, "READ COMMITTED"):
            checkpoint = lock_checkpoint(self.database, self.name)
            self._last = checkpoint.last_entry_id
            entries, facts = self.log.read_after(checkpoint.last_entry_id, self.batch)
            at_the_end = len(entries) < self.batch
            if not entries and facts.entries_added == checkpoint.entries_read:
                return 0
            state = load_state(self.database, self.name)
            for entry in entries:
                checkpoint, state = self._consume(entry, checkpoint, state)
            if at_the_end:
                checkpoint = self._account(checkpoint, facts)
            save_state(self.database, state)
            save_checkpoint(self.database, self.name, checkpoint)
            self.failures.may_strike(f"before committing {len(entries)} entries")
        self._last = checkpoint.last_entry_id
        say(f"consumed {len(entries)} entries up to {self._last}, total {float(state.total)!r}")
        return len(entries)

    def _consume(
        self, entry: Entry, checkpoint: Checkpoint, state: State
    ) -> tuple[Checkpoint, State]:
        checkpoint = checkpoint._replace(
            last_entry_id=entry.id, entries_read=checkpoint.entries_read + 1
        )
        match understand(entry.fields):
            case Ride() as ride:
                if ride.id <= self._counted_up_to(checkpoint):
                    return checkpoint, state._replace(skipped_count=state.skipped_count + 1)
                state = state._replace(
                    ride_count=state.ride_count + 1, total=EXACT.add(state.total, ride.distance)
                )
                return checkpoint._replace(
                    last_ride_id=max(ride.id, checkpoint.last_ride_id)
                ), state
            case Correction() as correction:
                # One that has rides behind it already is a copy of one that came in time.
                if correction.last_ride_id < checkpoint.last_ride_id:
                    return checkpoint, state._replace(skipped_count=state.skipped_count + 1)
                state = state._replace(ride_count=correction.ride_count, total=correction.total)
                return checkpoint._replace(
                    last_ride_id=correction.last_ride_id, corrected_to=correction.last_ride_id
                ), state
            case None:
                say(f"entry {entry.id} makes no sense and is passed over: {entry.fields}")
        return checkpoint, state

    def _counted_up_to(self, checkpoint: Checkpoint) -> int:
        """The ride up to which none may count any more."""
        if self.way is Way.IDMP:  # the stream has each ride once; only corrections cover some
            return checkpoint.corrected_to
        return checkpoint.last_ride_id

    def _account(self, checkpoint: Checkpoint, facts: Facts) -> Checkpoint:
        """At the end of the stream: have as many entries been read as were ever added?

        If not, somebody removed some too early, or the stream is another one than it was. Then the
        total is wrong, and only the database can put it right: ask for a correction.
        """
        missing = facts.entries_added - checkpoint.entries_read
        if missing == 0:
            return checkpoint
        lost = max(missing, 1)  # fewer than were read: the stream was lost, with who knows what
        stage_correction(self.database)
        say(f"{lost} entries were gone before they could be read; a correction is on its way")
        return checkpoint._replace(
            last_entry_id=min(checkpoint.last_entry_id, facts.last_entry_id),
            entries_read=facts.entries_added,
            lost_entries=checkpoint.lost_entries + lost,
        )

    def wait(self) -> None:
        """Wait for the next entry."""
        self.log.wait_after(self._last, 500)


def main(argv: Sequence[str] | None = None) -> None:
    """Run a consumer until it is told to stop."""
    arguments = options.parser(__doc__)
    arguments.add_argument("--name", required=True, help="the consumer's name")
    arguments.add_argument(
        "--fail", type=options.probability, default=0.1, help="share of batches that end in a crash"
    )
    arguments.add_argument(
        "--forget", action="store_true", help="remove this consumer for good, and end"
    )
    given = arguments.parse_args(argv)
    if given.forget:
        with connect(given.dsn) as database:
            forget(database, given.name)
        return

    @contextmanager
    def start() -> Iterator[Consumer]:
        with connect(given.dsn) as database, Log(given.redis_url, given.stream) as log:
            yield Consumer(
                database, log, settled_way(database), given.name, failures=Failures(given.fail)
            )

    keep_running(start)


if __name__ == "__main__":
    main()
