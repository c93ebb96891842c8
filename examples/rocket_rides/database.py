"""Everything that is said to PostgreSQL, by whichever program."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, Literal, LiteralString, NamedTuple
from uuid import UUID

import psycopg
from psycopg.types.json import set_json_loads

from rocket_rides.records import Correction, EntryID, Ride, Way

Database = psycopg.Connection[tuple[Any, ...]]

SCHEMA = Path(__file__).with_name("schema.sql")

# One statement, so that both rows are there or none, and no lock is taken between drawing the two
# ids. PostgreSQL writes the distance down as it shows it; nobody on the way turns it into a double
# and back.
CREATE_RIDE = """
    WITH ride AS (
        INSERT INTO rides (distance, request_id) VALUES (%(distance)s, %(request_id)s)
        ON CONFLICT (request_id) DO NOTHING
        RETURNING id, distance
    )
    INSERT INTO staged_log_records (ride_id, action, object, data)
    SELECT id, 'create', 'ride', jsonb_build_object('id', id, 'distance', distance) FROM ride
    RETURNING ride_id
"""
FIND_RIDE = "SELECT id, distance FROM rides WHERE request_id = %(request_id)s"

# The default since PostgreSQL 12, unless somebody set it otherwise: doubles are shown in full.
ALL_DIGITS = "SET extra_float_digits = 1"


class StagedRecord(NamedTuple):
    """A row that waits for the streamer; numbers in ``data`` are text, digit by digit."""

    id: int
    action: str
    object: str
    data: dict[str, str]


class Checkpoint(NamedTuple):
    """How far a consumer is; schema.sql explains the columns."""

    last_entry_id: EntryID
    last_ride_id: int
    corrected_to: int
    entries_read: int
    lost_entries: int


class State(NamedTuple):
    """What a consumer made of the log."""

    name: str
    ride_count: int
    skipped_count: int
    total: Decimal


def connect(dsn: str) -> Database:
    """A connection that commits by itself, outside of ``transaction``."""
    database = psycopg.connect(dsn, autocommit=True, connect_timeout=10)
    database.execute(ALL_DIGITS)
    set_json_loads(partial(json.loads, parse_float=str, parse_int=str), database)
    return database


@contextmanager
def transaction(
    database: Database, isolation: Literal["READ COMMITTED", "REPEATABLE READ"]
) -> Iterator[None]:
    """A transaction of that isolation level, whatever the database's default."""
    with database.transaction():
        database.execute(f"SET TRANSACTION ISOLATION LEVEL {isolation}")
        yield


def create_schema(database: Database, way: Way) -> None:
    """Make the tables, all or none, and settle the way."""
    with database.transaction():
        database.execute(SCHEMA.read_bytes())
        database.execute("INSERT INTO log_origin (way) VALUES (%s)", (way,))


def origin(database: Database) -> UUID:
    """The name of the log that this database feeds."""
    found: UUID = _one(database, "SELECT id FROM log_origin")
    return found


def settled_way(database: Database) -> Way:
    """Return how everybody who works on this log keeps copies from counting twice.

    It is settled with the tables: a consumer of one way would count the copies of the other.
    """
    return Way(_one(database, "SELECT way FROM log_origin"))


def _one(database: Database, query: LiteralString, *arguments: object) -> Any:
    row = database.execute(query, arguments).fetchone()
    if row is None:
        raise LookupError(query)
    return row[0]


# What the API writes (api.py does it without blocking)


def create_ride(database: Database, distance: float) -> int:
    """Write a ride and its staged record; the id of the ride. The transaction is the caller's."""
    ride_id: int = database.execute(
        CREATE_RIDE, {"distance": distance, "request_id": None}
    ).fetchone()[0]  # type: ignore[index]  # without a request id there is no conflict
    return ride_id


# What the streamer reads


def has_staged(database: Database) -> bool:
    """Return whether anything waits to be streamed."""
    return bool(_one(database, "SELECT EXISTS (SELECT FROM staged_log_records)"))


def _settle_rides(database: Database, timeout_ms: int) -> None:
    """Wait until no transaction that wrote rides is open, and let none begin before ours ends.

    An id is drawn long before it is committed, so a ride that one sees may yet be followed by a
    lower one. Every INSERT locks its table in ROW EXCLUSIVE mode before it draws an id; SHARE mode
    is what conflicts with that. Once it is granted, every id drawn so far is committed or never
    will be. Under READ COMMITTED the next query sees them: each takes a snapshot of its own.

    Raises: psycopg.errors.LockNotAvailable after ``timeout_ms``: the writers that queued up behind
    us go on, and one transaction that stays open stops the log, not the rides.
    """
    database.execute("SELECT set_config('lock_timeout', %s, TRUE)", (f"{timeout_ms}ms",))
    database.execute("LOCK TABLE rides IN SHARE MODE")


def fence(database: Database, timeout_ms: int = 2000) -> int:
    """The last staged ride before which no other can appear any more; 0 when none is staged."""
    with transaction(database, "READ COMMITTED"):
        _settle_rides(database, timeout_ms)
        last: int = _one(database, "SELECT coalesce(max(ride_id), 0) FROM staged_log_records")
        return last


def staged(database: Database, most: int, last_ride_id: int | None) -> list[StagedRecord]:
    """Staged records in the order of rides, those up to ``last_ride_id``."""
    rows = database.execute(
        """
        SELECT id, action, object, data FROM staged_log_records
        WHERE %(last)s::bigint IS NULL OR ride_id <= %(last)s
        ORDER BY ride_id, id LIMIT %(most)s
        """,
        {"last": last_ride_id, "most": most},
    )
    return [StagedRecord(*row) for row in rows]


def staged_by_id(database: Database, most: int) -> list[StagedRecord]:
    """Staged records in the order in which their own ids were drawn."""
    rows = database.execute(
        "SELECT id, action, object, data FROM staged_log_records ORDER BY id LIMIT %s", (most,)
    )
    return [StagedRecord(*row) for row in rows]


def unstage(database: Database, records: Sequence[StagedRecord]) -> None:
    """Delete records that the stream has acknowledged."""
    database.execute(
        "DELETE FROM staged_log_records WHERE id = ANY(%s)", ([record.id for record in records],)
    )


def become_the_streamer(database: Database) -> bool:
    """Return whether this connection is now the only one that streams; it is so until it closes."""
    return bool(
        _one(
            database,
            "SELECT pg_try_advisory_lock(hashtextextended(id::text, 0)) FROM log_origin",
        )
    )


# What consumers keep


def register(database: Database, name: str) -> None:
    """Make sure that a consumer has its rows. From here on the log is kept for it."""
    with database.transaction():
        database.execute(
            "INSERT INTO consumer_states (name) VALUES (%s) ON CONFLICT DO NOTHING", (name,)
        )
        database.execute(
            "INSERT INTO checkpoints (name) VALUES (%s) ON CONFLICT DO NOTHING", (name,)
        )


def forget(database: Database, name: str) -> None:
    """Remove a consumer for good, so that the log is kept for it no longer."""
    with database.transaction():
        database.execute("DELETE FROM checkpoints WHERE name = %s", (name,))
        database.execute("DELETE FROM consumer_states WHERE name = %s", (name,))
        database.execute("DELETE FROM group_rides WHERE group_name = %s", (name,))


def lock_checkpoint(database: Database, name: str) -> Checkpoint:
    """Return where a consumer is. Until the transaction ends nobody else goes on under its name."""
    row = database.execute(
        """
        SELECT last_entry_id, last_ride_id, corrected_to, entries_read, lost_entries
        FROM checkpoints WHERE name = %s FOR UPDATE
        """,
        (name,),
    ).fetchone()
    if row is None:
        raise LookupError(f"{name} was forgotten")
    return Checkpoint(EntryID.parse(row[0]), *row[1:])


def save_checkpoint(database: Database, name: str, checkpoint: Checkpoint) -> None:
    """Write all of a checkpoint."""
    database.execute(
        """
        UPDATE checkpoints SET last_entry_id = %s, last_ride_id = %s, corrected_to = %s,
            entries_read = %s, lost_entries = %s
        WHERE name = %s
        """,
        (str(checkpoint.last_entry_id), *checkpoint[1:], name),
    )


def checkpoints(database: Database) -> dict[str, Checkpoint]:
    """All checkpoints, by name of consumer or group."""
    rows = database.execute(
        """
        SELECT name, last_entry_id, last_ride_id, corrected_to, entries_read, lost_entries
        FROM checkpoints
        """
    )
    return {name: Checkpoint(EntryID.parse(last), *rest) for name, last, *rest in rows}


def load_state(database: Database, name: str) -> State:
    """Return what a consumer has made so far."""
    row = database.execute(
        "SELECT name, ride_count, skipped_count, total_exact FROM consumer_states WHERE name = %s",
        (name,),
    ).fetchone()
    if row is None:
        raise LookupError(f"{name} was forgotten")
    return State(*row)


def save_state(database: Database, state: State) -> None:
    """Write all of a state."""
    database.execute(
        """
        UPDATE consumer_states SET ride_count = %s, skipped_count = %s, total_exact = %s
        WHERE name = %s
        """,
        (*state[1:], state.name),
    )


def states(database: Database) -> dict[str, State]:
    """All states, by name of consumer or group."""
    rows = database.execute(
        "SELECT name, ride_count, skipped_count, total_exact FROM consumer_states"
    )
    return {row[0]: State(*row) for row in rows}


# What a group keeps besides


def count_once(database: Database, group: str, rides: Sequence[tuple[EntryID, Ride]]) -> set[int]:
    """Note rides as counted; the ids of those that were not before."""
    rows = database.execute(
        """
        INSERT INTO group_rides (group_name, ride_id, distance, entry_ms, entry_seq)
        SELECT %s, * FROM unnest(%s::bigint[], %s::numeric[], %s::bigint[], %s::bigint[])
        ON CONFLICT DO NOTHING RETURNING ride_id
        """,
        (
            group,
            [ride.id for _, ride in rides],
            [ride.distance for _, ride in rides],
            [entry_id.ms for entry_id, _ in rides],
            [entry_id.seq for entry_id, _ in rides],
        ),
    )
    return {ride_id for (ride_id,) in rows}


def counted_after(database: Database, group: str, last_ride_id: int) -> Correction:
    """Count and total of the noted rides above ``last_ride_id``; notes up to it are dropped."""
    database.execute(
        "DELETE FROM group_rides WHERE group_name = %s AND ride_id <= %s", (group, last_ride_id)
    )
    row = database.execute(
        "SELECT coalesce(sum(distance), 0), count(*) FROM group_rides WHERE group_name = %s",
        (group,),
    ).fetchone()
    assert row is not None
    return Correction(row[0], row[1], last_ride_id)


def drop_notes(database: Database, group: str, done: EntryID) -> int:
    """Drop what was noted of rides up to the entry ``done``; the highest of them, or 0."""
    last: int = _one(
        database,
        """
        WITH dropped AS (
            DELETE FROM group_rides
            WHERE group_name = %s AND (entry_ms, entry_seq) <= (%s, %s) RETURNING ride_id
        )
        SELECT coalesce(max(ride_id), 0) FROM dropped
        """,
        group,
        done.ms,
        done.seq,
    )
    return last


# What the nightly job writes


def stage_correction(database: Database, timeout_ms: int = 5000) -> Correction:
    """Add all rides up anew and stage the result, for consumers to reset from.

    The record goes the way of all others and comes after the rides it covers and before those it
    does not: rides stand still while it is written. The isolation level of the caller's
    transaction, if there is one, has to be READ COMMITTED.

    Raises: psycopg.errors.LockNotAvailable when a ride's transaction stays open.
    """
    with database.transaction():
        _settle_rides(database, timeout_ms)
        correction = total_of_rides(database)
        database.execute(
            "INSERT INTO corrections (total_exact, ride_count, last_ride_id) VALUES (%s, %s, %s)",
            correction,
        )
        database.execute(
            """
            INSERT INTO staged_log_records (ride_id, action, object, data)
            VALUES (%(last)s, 'correct', 'total', jsonb_build_object(
                'total_distance', %(total)s::numeric,
                'ride_count', %(count)s::bigint,
                'last_ride_id', %(last)s::bigint))
            """,
            {
                "total": correction.total,
                "count": correction.ride_count,
                "last": correction.last_ride_id,
            },
        )
    return correction


def total_of_rides(database: Database) -> Correction:
    """What the database itself says: the exact sum of all distances, and how many they are."""
    row = database.execute(
        """
        SELECT coalesce(sum(distance::text::numeric), 0), count(*), coalesce(max(id), 0)
        FROM rides
        """
    ).fetchone()
    assert row is not None
    return Correction(*row)


def count_staged(database: Database) -> int:
    """Return how many records wait for the streamer."""
    found: int = _one(database, "SELECT count(*) FROM staged_log_records")
    return found


def count_corrections(database: Database) -> int:
    """Return how many corrections were ever made."""
    found: int = _one(database, "SELECT count(*) FROM corrections")
    return found


def distances(database: Database, ride_ids: Sequence[int]) -> dict[int, Decimal]:
    """The distances of those rides, of the ids given, that there are."""
    rows = database.execute(
        "SELECT id, distance::text::numeric FROM rides WHERE id = ANY(%s)", (list(ride_ids),)
    )
    return dict(rows.fetchall())
