"""Reconcile: do the consumers' totals, the log and the database agree?

Exit code 0 says yes, 1 says no. Compare when the log is at rest (``--wait`` waits for that): in
the middle of things a consumer is behind, not wrong.

``--correct`` is what the nightly job does when something is wrong, and may do at any time: it adds
all rides up anew and puts ``(total_distance, ride_count, last_ride_id)`` into the log, and every
consumer that comes to it starts again from there.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from rocket_rides import options
from rocket_rides.database import (
    Checkpoint,
    Database,
    State,
    checkpoints,
    connect,
    count_corrections,
    count_staged,
    distances,
    stage_correction,
    states,
    total_of_rides,
    transaction,
)
from rocket_rides.log import Facts, GroupFacts, Log
from rocket_rides.records import Correction, Ride, understand


class Situation(NamedTuple):
    """Everything at one moment, or nearly."""

    rides: Correction
    staged: int
    corrections: int
    checkpoints: dict[str, Checkpoint]
    states: dict[str, State]
    stream: Facts
    groups: dict[str, GroupFacts]

    def lag(self, name: str) -> int:
        """Return how many entries a consumer has not read, or a group not acknowledged."""
        group = self.groups.get(name)
        if group is not None:
            return group.lag + group.pending
        return max(0, self.stream.entries_added - self.checkpoints[name].entries_read)

    @property
    def at_rest(self) -> bool:
        """Return whether nothing is on its way any more."""
        return not self.staged and not any(self.lag(name) for name in self.states)

    @property
    def copies(self) -> int:
        """Return how many entries of the stream, trimmed ones included, repeat another.

        That is so when database and stream began together.
        """
        sent = self.rides.ride_count + self.corrections - self.staged
        return self.stream.entries_added - sent


def look(database: Database, log: Log) -> Situation:
    """Gather the facts.

    The order matters: once nothing is staged the stream is complete, and what consumers have read
    and made is asked for last. So when everything seems to be at rest, it is.
    """
    rides = total_of_rides(database)
    corrections = count_corrections(database)
    staged = count_staged(database)
    stream = log.facts()
    groups = {}
    for name in checkpoints(database):
        facts = log.group_facts(name)
        if facts is not None:
            groups[name] = facts
    with transaction(database, "REPEATABLE READ"):
        how_far = checkpoints(database)
        made = states(database)
    return Situation(rides, staged, corrections, how_far, made, stream, groups)


class Finding(NamedTuple):
    """Something that was compared."""

    what: str
    found: str
    agrees: bool


def compare(
    database: Database, log: Log, situation: Situation, *, no_copies: bool
) -> list[Finding]:
    """Hold everything against the database.

    Args:
        no_copies: whether the stream must have each record once.
    """
    rides = situation.rides
    findings = [
        Finding("staged records left", str(situation.staged), situation.staged == 0),
    ]
    for name, state in sorted(situation.states.items()):
        lag = situation.lag(name)
        findings.append(
            Finding(
                name,
                _difference(state, rides) + (f", {lag} entries behind" if lag else ""),
                (state.ride_count, state.total, lag) == (rides.ride_count, rides.total, 0),
            )
        )
    in_stream, copies, wrong = _examine(database, log)
    findings.append(
        Finding(
            "rides in the stream that the database has not, or has otherwise",
            f"{wrong} of {in_stream}",
            wrong == 0,
        )
    )
    if no_copies:
        findings.append(
            Finding(
                "copies in the stream",
                f"{situation.copies} of {situation.stream.entries_added} ever added, "
                f"{copies} of {in_stream} there now",
                situation.copies == 0 and copies == 0,
            )
        )
    return findings


def _difference(state: State, rides: Correction) -> str:
    if state.total == rides.total and state.ride_count == rides.ride_count:
        return f"{state.ride_count} rides, {show(state.total)} m, as the database"
    return (
        f"{state.ride_count - rides.ride_count:+} rides, {state.total - rides.total:+f} m "
        "against the database"
    )


def show(total: Decimal) -> str:
    """A total as the double that it is read as."""
    return repr(float(total))


def _examine(database: Database, log: Log) -> tuple[int, int, int]:
    """Of the rides in the stream: how many, how many of them copies, how many wrong."""
    seen: dict[int, Decimal] = {}
    rides = 0
    wrong = 0
    for entry in log.all():
        match understand(entry.fields):
            case Ride() as ride:
                rides += 1
                wrong += seen.setdefault(ride.id, ride.distance) != ride.distance
    there = distances(database, list(seen))
    wrong += sum(there.get(ride_id) != distance for ride_id, distance in seen.items())
    return rides, rides - len(seen), wrong


def promised(database: Database, ledger: Path) -> Finding:
    """Hold what the simulator was promised against the database."""
    notes: dict[int, Decimal] = {}
    repeated = 0
    for line in _whole_lines(ledger):
        note = json.loads(line, parse_float=Decimal)
        repeated += note["id"] in notes
        notes[note["id"]] = Decimal(note["distance"])
    there = distances(database, list(notes))
    missing = sum(
        ride_id not in there or float(there[ride_id]) != float(distance)
        for ride_id, distance in notes.items()
    )
    return Finding(
        "rides promised to customers that the database has not",
        f"{missing} of {len(notes)}" + (f", {repeated} promised twice" if repeated else ""),
        missing == repeated == 0,
    )


def _whole_lines(path: Path) -> Iterable[str]:
    """All lines, without a last one that a killed writer left unfinished."""
    text = path.read_text() if path.exists() else ""
    return [line for line in text.splitlines(keepends=True) if line.endswith("\n")]


def print_findings(console: Console, rides: Correction, findings: list[Finding]) -> None:
    """The report."""
    table = Table(title=f"Database: {rides.ride_count} rides, {show(rides.total)} m")
    table.add_column("compared")
    table.add_column("found", overflow="fold")
    table.add_column("")
    for finding in findings:
        verdict = "[green]agrees[/]" if finding.agrees else "[bold red]DIFFERS[/]"
        table.add_row(finding.what, finding.found, verdict)
    console.print(table)


def main(argv: Sequence[str] | None = None) -> None:
    """Compare, and perhaps correct."""
    arguments = options.parser(__doc__)
    arguments.add_argument("--wait", type=float, default=0.0, help="seconds to wait for rest")
    arguments.add_argument(
        "--correct", action="store_true", help="put the right total into the log"
    )
    arguments.add_argument(
        "--no-copies", action="store_true", help="the stream must have each record once"
    )
    given = arguments.parse_args(argv)
    with connect(given.dsn) as database, Log(given.redis_url, given.stream) as log:
        if given.correct:
            made = stage_correction(database)
            print(
                f"staged: {made.ride_count} rides up to {made.last_ride_id}, {show(made.total)} m"
            )
        deadline = time.monotonic() + given.wait
        situation = look(database, log)
        while not situation.at_rest and time.monotonic() < deadline:
            time.sleep(0.1)
            situation = look(database, log)
        findings = compare(database, log, situation, no_copies=given.no_copies)
        print_findings(Console(), situation.rides, findings)
    sys.exit(0 if all(finding.agrees for finding in findings) else 1)


if __name__ == "__main__":
    main()
