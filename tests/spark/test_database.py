"""Reconciling streams with a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from pyspark_headrace.cli import program
from pyspark_headrace.errors import HeadraceError
from pyspark_headrace.jobs.reconcile import ALL, PAGE_ROWS, database_side
from support.client import RawClient

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rocket_rides.postgres import Cluster

pytestmark = pytest.mark.once

Where = dict[str, str]
Database = psycopg.Connection[tuple[object, ...]]

BY_RIDER = """
    SELECT rider, count(*), sum(distance::text::numeric), max(id) FROM rides GROUP BY rider
"""


@pytest.fixture
def dsn(cluster: Cluster) -> str:
    return cluster.dsn()


@pytest.fixture
def database(dsn: str) -> Iterator[Database]:
    """A table of rides, for one test."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS rides CASCADE")
        connection.execute(
            "CREATE TABLE rides (id bigint PRIMARY KEY, rider text, distance double precision)"
        )
        yield connection
        connection.execute("DROP TABLE rides")


def rides(database: Database, client: RawClient, count: int) -> None:
    """The same rides in both; distances that doubles cannot add up exactly."""
    for number in range(count):
        rider, distance = f"r{number % 3}", number % 7 + 0.1
        database.execute("INSERT INTO rides VALUES (%s, %s, %s)", (number, rider, distance))
        client.call("XADD", "rides", "*", "id", number, "rider", rider, "distance", repr(distance))


def job(where: Where, dsn: str, *more: object, query: str = BY_RIDER) -> int:
    words = (
        *("reconcile", "--url", f"redis://localhost:{where['port']}", "--stream", "rides"),
        *("--dsn", dsn, "--query", query, "--key", "rider", "--value", "distance", "--last", "id"),
        *more,
    )
    return program.main([str(word) for word in words])


def test_they_agree(
    spark: SparkSession,
    where: Where,
    client: RawClient,
    database: Database,
    dsn: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    rides(database, client, 60)
    assert job(where, f"{dsn} password=hush-hush") == 0
    shown, errors = capfd.readouterr()
    assert "3 keys, all agree: database, stream" in shown
    assert "hush" not in shown + errors
    one = "SELECT NULL, count(*), sum(distance::text::numeric) FROM rides"
    assert job(where, dsn, "--key", "", query=one) == 0
    assert "1 keys, all agree" in capfd.readouterr().out


def test_they_differ(
    spark: SparkSession,
    where: Where,
    client: RawClient,
    database: Database,
    dsn: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A ride that only the stream has, a distance that is off in its last digit, a rider who is
    in the database alone."""
    rides(database, client, 60)
    database.execute("DELETE FROM rides WHERE id = 58")
    database.execute("UPDATE rides SET distance = 3.1000000000000005 WHERE id = 3")
    database.execute("INSERT INTO rides VALUES (60, 'new', 7.5)")
    picture = tmp_path / "differ.png"
    assert job(where, dsn, "--report", picture, "--correct", "rides") == 1
    shown = capsys.readouterr().out
    assert "r1: stream: +1 entries, 2.1 against database\n" in shown
    assert "new: stream: -1 entries, -7.5 against database\n" in shown
    assert "r2" not in shown
    assert "3 of 4 keys differ" in shown
    assert "corrections made of database are in rides" in shown
    assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"

    # What consumers reset from is what the database says.
    last = client.call_parsed("XREVRANGE", "rides", "+", "-", "COUNT", 3)
    assert isinstance(last, list)
    records = [
        dict(zip(map(bytes.decode, row[0::2]), map(bytes.decode, row[1::2]), strict=True))
        for _, row in last
    ]
    found = {record["name"]: record for record in records}
    assert set(found) == {"new", "r0", "r1"}
    assert found["new"] == {
        "object": "total",
        "action": "correct",
        "name": "new",
        "total_distance": "7.5",
        "ride_count": "1",
        "last_ride_id": "60",
    }
    sums = {str(name): total for name, _, total, _ in database.execute(BY_RIDER)}
    for name, record in found.items():
        assert Decimal(record["total_distance"]) == sums[name]
    assert found["r1"]["ride_count"] == "19"
    assert found["r1"]["last_ride_id"] == "55"

    # In words, to the last digit; and within a tolerance.
    where_rides = ("--where", "fields['object'] IS NULL")
    database.execute("DELETE FROM rides WHERE id = 60")
    database.execute("INSERT INTO rides VALUES (58, 'r1', 2.1)")
    capsys.readouterr()
    assert job(where, dsn, *where_rides) == 1
    assert "r0: stream: +0 entries, -0.0000000000000005 against database" in capsys.readouterr().out
    assert job(where, dsn, *where_rides, "--tolerance", "1e-9") == 0


def test_a_side_of_many_keys(spark: SparkSession, database: Database, dsn: str) -> None:
    """More than a page of them; whole numbers, floats and nulls as PostgreSQL has them."""
    many = PAGE_ROWS + 5
    side = database_side(
        spark, dsn, f"SELECT n, n, n::float8 / 8 FROM generate_series(1, {many}) AS n"
    )
    assert [field.simpleString() for field in side.schema] == [
        "key:string",
        "count:bigint",
        "total:decimal(38,18)",
        "last_id:string",
    ]
    rows = {row["key"]: row for row in side.collect()}
    assert len(rows) == many
    assert rows["3"].asDict() == {
        "key": "3",
        "count": 3,
        "total": Decimal("0.375"),
        "last_id": None,
    }
    empty = database_side(spark, dsn, "SELECT NULL, count(*), sum(distance), max(id) FROM rides")
    assert [tuple(row) for row in empty.collect()] == [(ALL, 0, 0, None)]
    none = database_side(spark, dsn, "SELECT rider, 1, 1 FROM rides")
    assert none.count() == 0


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("SELECT 1", "the query gives 1 columns"),
        ("SELECT 'a', 'many', 1", "a count that is no whole number"),
        ("SELECT 'a', NULL, 1", "a count that is no whole number"),
        ("SELECT 'a', 1, 'NaN'::float8", "a total beyond decimal(38,18)"),
        ("SELECT 'a', 1, 'Infinity'::float8", "a total beyond decimal(38,18)"),
        ("SELECT 'a', 1, 1e21::numeric", "a total beyond decimal(38,18)"),
        ("SELECT 'a', 1, 1e-19::numeric", "a total beyond decimal(38,18)"),
        ("SELECT nothing FROM nowhere", 'relation "nowhere" does not exist'),
        ("DELETE FROM rides", "syntax error"),
    ],
)
def test_queries_that_are_no_side(
    spark: SparkSession, database: Database, dsn: str, query: str, text: str
) -> None:
    with pytest.raises(HeadraceError) as refused:
        database_side(spark, dsn, query)
    assert text in str(refused.value)
    assert str(refused.value).startswith("the database: ")
