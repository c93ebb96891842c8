"""The jobs: as functions, and as the program that people run."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import Factory
from pyspark.errors import StreamingQueryException

from pyspark_headrace import __version__
from pyspark_headrace.cli import program
from pyspark_headrace.errors import HeadraceError, UnsafeWriteError
from pyspark_headrace.jobs.archive import read_archive, read_manifest, trim_archived, verify
from pyspark_headrace.jobs.reconcile import database_side, entries_side, reconcile, with_fields
from pyspark_headrace.jobs.replay import between, restore
from pyspark_headrace.jobs.running import message_of
from pyspark_headrace.jobs.totals import append_changes, latest_totals, totals
from pyspark_headrace.jobs.windows import top, windows
from support.build import ROOT, environment
from support.certificates import Certificates
from support.client import RawClient
from support.extras import python_with
from support.process import claim_port
from support.spark_page import rights
from support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.once

Where = dict[str, str]
START_MS = 1_700_000_000_000


def ride(client: RawClient, number: int, key: str = "rides", **fields: object) -> None:
    """One ride a second, of three riders; distances that doubles cannot add up exactly."""
    words: list[str | int] = ["XADD", key, f"{START_MS + 1000 * number}-1"]
    facts = {"id": number, "rider": f"r{number % 3}", "distance": f"{number % 7}.1", **fields}
    for name, value in facts.items():
        words += (name, str(value))
    reply = client.call(*words)
    assert reply.startswith(b"$"), reply


def rides(client: RawClient, count: int, first: int = 0) -> None:
    for number in range(first, first + count):
        ride(client, number)


def expected_totals(count: int) -> dict[str, tuple[int, Decimal]]:
    found: dict[str, tuple[int, Decimal]] = {}
    for number in range(count):
        entries, total = found.get(f"r{number % 3}", (0, Decimal(0)))
        found[f"r{number % 3}"] = (entries + 1, total + Decimal(f"{number % 7}.1"))
    return found


def entries_of(spark: SparkSession, where: Where, stream: str = "rides", **more: str) -> DataFrame:
    return spark.read.format("headrace").options(**where, **more).load(stream)


def run_job(*words: object) -> int:
    """The program, in this process: it finds the session that is there."""
    return program.main([str(word) for word in words])


def url(where: Where) -> tuple[str, str]:
    return "--url", f"redis://localhost:{where['port']}"


# Totals


def test_totals_of_a_batch(spark: SparkSession, where: Where, client: RawClient) -> None:
    rides(client, 20)
    ride(client, 20, rider="r2", distance="far")
    found = totals(entries_of(spark, where), ["rider"], "distance").collect()
    exact = {row["rider"]: (row["count"], row["total"].normalize()) for row in found}
    expected = expected_totals(20)
    expected["r2"] = (expected["r2"][0] + 1, expected["r2"][1])
    assert exact == expected
    last = {row["rider"]: row["last_id"] for row in found}
    assert last["r2"] == f"{START_MS + 20_000}-1"
    every = totals(entries_of(spark, where)).collect()
    assert [(row["count"], row["total"]) for row in every] == [(21, 0)]


def test_running_totals_as_a_job(
    spark: SparkSession,
    where: Where,
    client: RawClient,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    job = (
        *("totals", *url(where), "--stream", "rides", "--by", "rider", "--value", "distance"),
        *("--into", "sums", "--checkpoint", tmp_path / "c", "--max-per-batch", 15),
    )
    rides(client, 30)
    assert run_job(*job) == 0
    rides(client, 10, 30)
    assert run_job(*job) == 0
    shown = capsys.readouterr().out
    assert "batch 0, 15 entries" in shown
    assert "10 entries counted; changes are in sums" in shown
    changes = entries_of(spark, where, "sums")
    assert changes.count() == 9  # three batches, three riders
    newest = latest_totals(changes, ["rider"]).collect()
    now = {row["rider"]: (row["count"], row["total"].normalize()) for row in newest}
    assert now == expected_totals(40)
    raw = client.call_parsed("XREVRANGE", "sums", "+", "-", "COUNT", 1)
    assert isinstance(raw, list)
    assert raw[0][1][0::2] == [b"rider", b"count", b"total", b"last_id", b"batch"]
    assert b"." in raw[0][1][5]
    assert not raw[0][1][5].endswith(b"0")


def test_totals_of_a_batch_that_is_repeated(
    spark: SparkSession,
    where: Where,
    client: RawClient,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Known again as long as the stream remembers, by default for a day; later refused."""
    rides(client, 30)

    def killed(stream: str, **more: str) -> None:
        """A first try that ends behind the last row, before Spark has noted that."""
        append = append_changes(stream, {**where, **more})

        def append_and_end(batch: DataFrame, number: int) -> None:
            append(batch, number)
            raise RuntimeError("killed")

        entries = spark.readStream.format("headrace").options(
            **where, subscribe="rides", startingOffsets="earliest"
        )
        writer = totals(entries.load(), ["rider"], "distance").writeStream
        writer = writer.foreachBatch(append_and_end).outputMode("update")
        writer = writer.option("checkpointLocation", str(tmp_path / stream))
        with pytest.raises(StreamingQueryException, match="killed"):
            writer.trigger(availableNow=True).start().awaitTermination()
        assert client.call_parsed("XLEN", stream) == 3

    def job(stream: str, *more: str) -> int:
        words = ("--stream", "rides", "--by", "rider", "--value", "distance", "--into", stream)
        return run_job("totals", *url(where), *words, "--checkpoint", tmp_path / stream, *more)

    killed("sums")
    assert job("sums") == 0
    assert "sums remembers what is written for 86,400 s" in capsys.readouterr().out
    assert client.call_parsed("XLEN", "sums") == 3

    client.call("XGROUP", "CREATE", "forgetful", "g", "$", "MKSTREAM")
    client.call("XCFGSET", "forgetful", "IDMP-DURATION", 1)
    short = ("--option", "configureIdmp=false")
    killed("forgetful", configureIdmp="false")
    wait_until(lambda: client.call_parsed("XLEN", "forgetful") == 3 and forgotten(client), 30)
    assert job("forgetful", *short) == 2
    shown = capsys.readouterr()
    assert "forgetful remembers what is written for 1 s" in shown.out
    assert "batch 0 was begun" in shown.err
    assert client.call_parsed("XLEN", "forgetful") == 3
    assert job("forgetful", *short, "--option", "failOnForgotten=false") == 0
    assert client.call_parsed("XLEN", "forgetful") == 6


def test_totals_of_batches_that_no_stream_remembers(
    where: Where, client: RawClient, capsys: pytest.CaptureFixture[str]
) -> None:
    """Refused before Spark is started; what a batch may have is what the stream is set to."""
    words = ("--stream", "rides", "--into", "sums", "--checkpoint", "c", "--max-per-batch", 10**8)
    assert run_job("totals", *url(where), *words) == 2
    shown = capsys.readouterr()
    assert "sums is sure to know 10,240,000 rows of a batch again" in shown.err
    facts = client.call_parsed("XINFO", "STREAM", "sums")
    assert isinstance(facts, list)
    assert facts[facts.index(b"idmp-maxsize") + 1] == 10_000
    assert facts[facts.index(b"idmp-duration") + 1] == 86_400


def forgotten(client: RawClient) -> bool:
    """Return whether the newest change row is older than a second, by the server's clock."""
    now = client.call_parsed("TIME")
    assert isinstance(now, list)
    newest = client.call_parsed("XREVRANGE", "forgetful", "+", "-", "COUNT", 1)
    assert isinstance(newest, list)
    return int(now[0]) * 1000 + int(now[1]) // 1000 - int(newest[0][0].split(b"-")[0]) > 1000


# Windows


def test_windows(spark: SparkSession, where: Where, client: RawClient) -> None:
    rides(client, 60)
    frame = entries_of(spark, where)
    found = windows(frame, "20 seconds", by=["rider"], value="distance").orderBy("start", "rider")
    rows = found.collect()
    assert sum(row["count"] for row in rows) == 60
    assert rows[0]["start"].timestamp() == START_MS / 1000
    assert rows[0]["least"] == 0.1
    assert rows[0]["p95"] <= rows[0]["most"] <= 6.1
    best = top(found, 1, "total").collect()
    assert len(best) == len({row["start"] for row in rows})
    sliding = windows(frame, "20 seconds", slide="10 seconds").collect()
    assert sum(row["count"] for row in sliding) == 120
    for number in (200, 201):
        ride(client, number)
    sessions = windows(entries_of(spark, where), "", gap="30 seconds").orderBy("start").collect()
    assert [row["count"] for row in sessions] == [60, 2]


def test_windows_as_a_job(
    spark: SparkSession,
    where: Where,
    client: RawClient,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    rides(client, 60)
    job = ("windows", *url(where), "--stream", "rides", "--length", "10 seconds", "--by", "rider")
    picture = tmp_path / "rides.png"
    assert (
        run_job(*job, "--report", picture, "--out", tmp_path / "out", "--until", START_MS + 30_000)
        == 0
    )
    assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert spark.read.parquet(str(tmp_path / "out")).count() == 9
    shown = capsys.readouterr().out
    assert "22:13:40  22:13:50  r1" in shown
    assert "times are UTC, on 2023-11-14" in shown
    assert run_job(*job, "--draw", "total") == 2
    assert "--draw total: there is rider, count" in capsys.readouterr().err


# Archive and replay


def archive(where: Where, tmp_path: Path, *more: object) -> int:
    return run_job(
        *("archive", *url(where), "--pattern", "rides*", "--path", tmp_path / "archive"),
        *("--checkpoint", tmp_path / "c", *more),
    )


def test_archive_and_replay(
    spark: SparkSession,
    where: Where,
    client: RawClient,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    rides(client, 60)
    ride(client, 7, "rides:2", odd=b"\xff".decode("latin-1"))
    client.call(
        "XADD", "rides:2", "1700003600000-5", b"\xff\r\n", b"\x00", "twice", "1", "twice", "2"
    )
    assert archive(where, tmp_path) == 0
    rides(client, 30, 60)
    assert archive(where, tmp_path) == 0
    assert "the archive is whole" in capsys.readouterr().out
    path = str(tmp_path / "archive")
    kept = read_archive(spark, path)
    assert kept.groupBy("key").count().orderBy("key").collect() == [("rides", 90), ("rides:2", 2)]
    hours = kept.filter("key = 'rides:2'").select("date", "hour").orderBy("hour").collect()
    assert [(str(row["date"]), row["hour"]) for row in hours] == [
        ("2023-11-14", 22),
        ("2023-11-14", 23),
    ]
    lines = read_manifest(spark, path).filter("key = 'rides'").orderBy("batch").collect()
    assert [row["rows"] for row in lines] == [row["planned"] for row in lines]
    assert [row["after"] for row in lines[1:]] == [row["upto"] for row in lines[:-1]]

    # A run of Parquet readers sees the fields as they were, binary ones and repeated ones too.
    odd = kept.filter("id = '1700003600000-5'").collect()[0]
    assert [(bytes(pair["name"]), bytes(pair["value"])) for pair in odd["pairs"]] == [
        (b"\xff\r\n", b"\x00"),
        (b"twice", b"1"),
        (b"twice", b"2"),
    ]
    assert with_fields(kept).filter("id = '1700003600000-5'").collect()[0]["fields"]["twice"] == "2"

    # Back under new IDs, twice, and under the old ones.
    for _ in range(2):
        assert (
            run_job("replay", *url(where), "--path", path, "--key", "rides", "--into", "again") == 0
        )
    originals = client.call_parsed("XRANGE", "rides", "-", "+")
    again = client.call_parsed("XRANGE", "again", "-", "+")
    assert isinstance(originals, list)
    assert isinstance(again, list)
    assert [row for _, row in again] == [row for _, row in originals]
    before = {key: client.call("XRANGE", key, "-", "+") for key in ("rides", "rides:2")}
    client.call("DEL", "rides", "rides:2")
    assert (
        run_job(
            "replay", *url(where), "--path", path, "--keep-ids", "--last", f"{START_MS + 9000}-1"
        )
        == 0
    )
    assert client.call_parsed("XLEN", "rides") == 10
    assert run_job("replay", *url(where), "--path", path, "--keep-ids") == 0
    shown = capsys.readouterr().out
    assert "rides: 80 entries added, 10 were there" in shown
    assert {key: client.call("XRANGE", key, "-", "+") for key in before} == before


def test_restoring_where_it_does_not_fit(
    spark: SparkSession, where: Where, client: RawClient, tmp_path: Path
) -> None:
    rides(client, 10)
    kept = entries_of(spark, where, fieldsFormat="pairs")
    client.call("XADD", "later", f"{START_MS + 5000}-1", "other", "entry")
    for stream, text in (("later", "cannot be put back in its place"),):
        with pytest.raises(Exception, match=text):
            restore(kept, where, stream)
    client.call("XADD", "same", f"{START_MS}-1", "other", "entry")
    with pytest.raises(Exception, match="has another entry"):
        restore(between(kept, last=f"{START_MS}-1"), where, "same")
    assert client.call_parsed("XLEN", "same") == 1
    assert issubclass(UnsafeWriteError, HeadraceError)


def test_only_what_is_archived_and_acknowledged_is_trimmed(
    spark: SparkSession, where: Where, client: RawClient, tmp_path: Path
) -> None:
    rides(client, 50)
    client.call("XGROUP", "CREATE", "rides", "slow", "0")
    client.call("XREADGROUP", "GROUP", "slow", "a", "COUNT", 20, "STREAMS", "rides", ">")
    assert archive(where, tmp_path, "--trim", "--keep", 5) == 0
    assert client.call_parsed("XLEN", "rides") == 50  # 20 are pending
    ids = [f"{START_MS + 1000 * number}-1" for number in range(20)]
    client.call("XACK", "rides", "slow", *ids)
    rides(client, 5, 50)  # not archived
    path = str(tmp_path / "archive")
    assert trim_archived(spark, path, where) == {"rides": 20}
    client.call("XGROUP", "DESTROY", "rides", "slow")
    assert trim_archived(spark, path, where, keep=10) == {"rides": 25}
    assert trim_archived(spark, path, where) == {"rides": 5}
    assert client.call_parsed("XLEN", "rides") == 5


def test_an_archive_that_is_not_whole(
    spark: SparkSession,
    where: Where,
    client: RawClient,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    rides(client, 75)
    assert archive(where, tmp_path, "--max-per-batch", 25) == 0
    path = tmp_path / "archive"
    whole = tmp_path / "whole"
    shutil.copytree(path, whole)
    query = next(iter((path / "data").glob("query=*"))).name

    def problems() -> set[str]:
        return {row["problem"] for row in verify(spark, str(path)).collect()}

    def again() -> None:
        shutil.rmtree(path)
        shutil.copytree(whole, path)

    assert problems() == set()
    shutil.rmtree(path / "manifest" / query / "batch=1")
    last = f"{START_MS + 24_000}-1"
    assert problems() == {
        f"begins after {START_MS + 49_000}-1, the batch before ended with {last}",
        "files without a manifest line",
    }
    again()
    shutil.rmtree(path / "data" / query / "batch=1")
    assert problems() == {"0 entries, 25 were written"}
    again()
    shutil.rmtree(path / "data" / query / "batch=1")
    shutil.copytree(path / "data" / query / "batch=0", path / "data" / query / "batch=1")
    found = problems()
    assert "the files hold something else than was written" in found
    assert any("is there more than once" in problem for problem in found)
    again()
    line = next((path / "manifest" / query / "batch=2").glob("*.json"))
    facts = json.loads(line.read_text())
    line.write_text(json.dumps({**facts, "planned": 26}))
    (line.parent / f".{line.name}.crc").unlink(missing_ok=True)
    assert problems() == {"25 entries, 26 were planned"}
    assert run_job("archive", "--verify", "--path", path) == 1
    assert "26 were planned" in capsys.readouterr().out
    with pytest.raises(HeadraceError, match="nothing is trimmed"):
        trim_archived(spark, str(path), where)


# Reconcile


def test_reconcile(spark: SparkSession, where: Where, client: RawClient) -> None:
    rides(client, 30)
    side = entries_side(entries_of(spark, where), key="rider", value="distance", last="id")
    rows = {row["key"]: row for row in side.collect()}
    assert {
        key: (row["count"], row["total"].normalize()) for key, row in rows.items()
    } == expected_totals(30)
    assert rows["r2"]["last_id"] == "29"
    same = reconcile({"one": side, "two": side}).collect()
    assert all(row["agrees"] for row in same)
    ride(client, 30, rider="r0")
    client.call("XDEL", "rides", f"{START_MS + 29_000}-1")
    other = entries_side(entries_of(spark, where), key="rider", value="distance", last="id")
    truth = spark.createDataFrame(
        [(row["key"], row["count"], row["total"], row["last_id"]) for row in rows.values()],
        side.schema,
    )
    found = {row["key"]: row for row in reconcile({"truth": truth, "stream": other}).collect()}
    assert found["r0"]["difference"] == "stream: +1 entries, 2.1 against truth"
    assert found["r1"]["agrees"]
    assert found["r2"]["difference"] == "stream: -1 entries, -1.1 against truth"
    lenient = reconcile(
        {"truth": truth, "stream": truth.withColumn("total", truth["total"] + 1)}, 2.0
    )
    assert all(row["agrees"] for row in lenient.collect())


def test_reconcile_as_a_job(
    spark: SparkSession,
    where: Where,
    client: RawClient,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    rides(client, 30)
    assert archive(where, tmp_path) == 0
    run_job(
        *("totals", *url(where), "--stream", "rides", "--by", "rider", "--value", "distance"),
        *("--into", "sums", "--checkpoint", tmp_path / "t"),
    )
    capsys.readouterr()
    job = (
        *("reconcile", *url(where), "--archive", tmp_path / "archive", "--stream", "rides"),
        *("--totals", "sums", "--key", "rider", "--value", "distance", "--where", "id_ms > 0"),
    )
    assert run_job(*job) == 0
    assert "3 keys, all agree: archive, stream, totals" in capsys.readouterr().out
    client.call("XDEL", "rides", f"{START_MS + 29_000}-1")
    picture = tmp_path / "r.png"
    assert run_job(*job, "--report", picture, "--correct", "rides") == 1
    shown = capsys.readouterr().out
    assert "1 of 3 keys differ" in shown
    assert picture.stat().st_size > 5000
    last = client.call_parsed("XREVRANGE", "rides", "+", "-", "COUNT", 1)
    assert isinstance(last, list)
    record = dict(zip(last[0][1][0::2], last[0][1][1::2], strict=True))
    count, total = expected_totals(30)["r2"]
    assert record == {
        b"object": b"total",
        b"action": b"correct",
        b"name": b"r2",
        b"total_distance": f"{total.normalize():f}".encode(),
        b"ride_count": str(count).encode(),
        b"last_ride_id": f"{START_MS + 29_000}-1".encode(),
    }
    assert run_job("reconcile", *url(where), "--stream", "rides") == 2
    assert "two sides are wanted" in capsys.readouterr().err


def test_a_database_that_is_not_there(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(HeadraceError, match="the database: connection failed"):
        database_side(spark, "host=127.0.0.1 port=1 dbname=x connect_timeout=2", "SELECT 1")
    words = ("--dsn", "host=127.0.0.1 port=1 connect_timeout=2", "--query", "SELECT 1, 2, 3")
    assert run_job("reconcile", "--stream", "rides", *words) == 2
    assert "port 1 failed" in capsys.readouterr().err


def test_jobs_of_users_with_few_rights(
    spark: SparkSession, where: Where, client: RawClient, tmp_path: Path
) -> None:
    """Those that the page lists for each job; without them a job says which it lacks."""
    rides(client, 20)
    both = "~rides ~sums ~sums:sink:*"
    needed = {
        "totals": (both, "source", "sink", "configureIdmp=true"),
        "windows": ("~rides", "source"),
        "archive": ("~rides", "source", "archive --trim"),
        "replay": ("~again ~headrace:sink:*", "sink", "configureIdmp=true"),
        "restore": ("~back", "replay --keep-ids"),
        "reconcile": (both, "source", "sink"),
        "lag": ("~rides", "source"),
    }
    path = ("--path", tmp_path / "archive")
    words: dict[str, tuple[object, ...]] = {
        "totals": ("--by", "rider", "--into", "sums", "--checkpoint", tmp_path / "t"),
        "windows": ("--by", "rider"),
        "archive": (*path, "--checkpoint", tmp_path / "a", "--trim", "--keep", 20),
        "replay": (*path, "--into", "again"),
        "restore": (*path, "--into", "back", "--keep-ids"),
        "reconcile": ("--totals", "sums", "--key", "rider", "--correct", "sums", "--value", "id"),
        "lag": (),
    }
    for name, (keys, *roles) in needed.items():
        rules = [rule for role in roles for rule in rights()[role]]
        client.call("ACL", "SETUSER", name, "reset", "on", "nopass", *keys.split(), *rules)
        job = "replay" if name == "restore" else name
        which = () if job == "replay" else ("--stream", "rides")
        to_user = ("--url", f"redis://{name}@localhost:{where['port']}")
        differs = name == "reconcile"  # and is corrected
        assert run_job(job, *to_user, *which, *words[name]) == differs, name
    client.call("ACL", "DELUSER", *needed)


# Lag, and the program itself


def test_lag(where: Where, client: RawClient, capsys: pytest.CaptureFixture[str]) -> None:
    rides(client, 10)
    client.call("XGROUP", "CREATE", "rides", "g", "0")
    client.call("XREADGROUP", "GROUP", "g", "a", "COUNT", 4, "STREAMS", "rides", ">")
    job = ("lag", *url(where), "--stream", "rides")
    assert run_job(*job) == 0
    assert run_job(*job, "--most-entries", 6, "--most-ms", 6000) == 0
    assert "over the limit" not in capsys.readouterr().out
    assert run_job(*job, "--most-entries", 5) == 1
    assert "over the limit" in capsys.readouterr().out
    assert run_job(*job, "--most-ms", 5999) == 1
    client.call("XGROUP", "CREATE", "rides", "unread", "0")
    capsys.readouterr()
    assert run_job(*job, "--most-ms", 9000) == 0, "from the first entry on"
    assert "9,000" in capsys.readouterr().out
    assert run_job("lag", *url(where), "--stream", "none") == 2
    assert "there is no stream none" in capsys.readouterr().err


def test_the_server_of_a_job(
    where: Where,
    client: RawClient,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By the variable, by options, and by --url, which counts more."""
    ride(client, 1)
    monkeypatch.setenv("HEADRACE_URL", f"redis://localhost:{where['port']}")
    job = ("lag", "--stream", "rides")
    assert run_job(*job) == 0
    assert (
        run_job(*job, "--url", "redis://localhost:1", "--option", "fetchOffset.numRetries=0") == 2
    )
    assert "localhost:1 did not answer in 1 tries" in capsys.readouterr().err
    monkeypatch.delenv("HEADRACE_URL")
    assert run_job(*job, "--option", "host=localhost", "--option", f"port={where['port']}") == 0


def test_a_job_of_a_server_with_tls(
    fresh_server: Factory, certificates: Certificates, capsys: pytest.CaptureFixture[str]
) -> None:
    port, claim = claim_port()
    with claim:
        server = fresh_server("--tls-port", str(port), *certificates.options())
    server.call("XADD", "rides", "*", "n", 1)
    job = ("lag", "--stream", "rides", "--url", f"rediss://localhost:{port}")
    files = ("--tls-ca-file", certificates.authority.file)
    shown = ("--tls-cert-file", certificates.client.file, "--tls-key-file", certificates.client.key)
    assert run_job(*job, *files, *shown) == 0
    assert run_job(*job) == 2
    assert "certificate that is not trusted" in capsys.readouterr().err


def test_texts_name_flags_that_are_there() -> None:
    """Those of the very job, or where jobs share them of any job."""
    (group,) = program.parser()._subparsers._group_actions  # type: ignore[union-attr]
    assert isinstance(group.choices, dict)
    flags = {name: set(job._option_string_actions) for name, job in group.choices.items()}
    every = set().union(*flags.values()) | {"--version"}
    for path in (ROOT / "pyspark_headrace/cli").glob("*.py"):
        named = set(re.findall(r"--[a-z][a-z-]+", path.read_text()))
        assert named - flags.get(path.stem, every) == set(), path.name


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as done:
        run_job("--version")
    assert done.value.code == 0
    assert capsys.readouterr().out == f"headrace-pipeline {__version__}\n"


def test_help_names_every_job(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as done:
        run_job("--help")
    assert done.value.code == 0
    shown = capsys.readouterr().out
    for name in ("totals", "windows", "archive", "replay", "reconcile", "lag"):
        assert f"\n    {name}" in shown
        with pytest.raises(SystemExit):
            run_job(name, "--help")
        assert "--url" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["archive", "--path", "x"], "which streams?"),
        (["archive", "--path", "x", "--stream", "s"], "--checkpoint is wanted"),
        (["lag", "--stream", "s", "--url", "http://x"], "redis://[user@]host"),
        (["reconcile", "--dsn", "x"], "--dsn and --query go together"),
        (["windows", "--stream", "s", "--conf", "x"], "NAME=VALUE is wanted"),
        (["lag", "--stream", "s", "--url", "redis://[::1"], "Invalid IPv6 URL"),
        (["lag", "--stream", "s", "--tls-ca-file", "x"], "tlsCaFile means nothing without TLS"),
        (
            ["lag", "--stream", "s", "--option", "maxlen=5"],
            "maxlen is for write, and means nothing",
        ),
        (["lag", "--stream", "s", "--option", "fetchCoun=5"], "did you mean fetchCount?"),
    ],
)
def test_wrong_words(words: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(words) == 2
    assert text in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["lag", "--stream", "\udcff"], "\\udcff is not UTF-8"),
        (["lag", "--stream", "s", "--url", "redis://\udcff:1"], "\\udcff:1 is not UTF-8"),
        (["lag", "--stream", "s", "--watch", "-1"], "'-1' is not between 0 and a day"),
        (["lag", "--stream", "s", "--watch", "nan"], "'nan' is not between 0 and a day"),
        (["lag", "--stream", "s", "--watch", "x"], "invalid seconds value: 'x'"),
        (["lag", "--stream", "s", "--most-ms", "-1"], "'-1' is below 0"),
        (["replay", "--path", "x", "--first", "garbage"], "'garbage' is no stream ID"),
        (["replay", "--path", ""], "something is wanted"),
        (["windows", "--stream", "s", "--report", "x.doc"], "ends neither in .png"),
        (["archive", "--stream", "s", "--path", "x", "--keep", "-5"], "'-5' is below 0"),
        (["lag", "--stream", "s", "--option", "tls"], "NAME=VALUE is wanted"),
    ],
)
def test_words_that_cannot_be(
    words: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        program.main(words)
    assert ended.value.code == 2
    assert text in capsys.readouterr().err


@pytest.mark.parametrize(
    ("secret", "text"), [("here/x", "No such file"), ("here", "Is a directory"), ("raw", "UTF-8")]
)
def test_a_password_that_cannot_be_read(
    where: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    secret: str,
    text: str,
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "raw").write_bytes(b"\xff\xfe")
    url = f"redis://localhost:{where['port']}"
    words = ["--stream", "s", "--password-file", str(tmp_path / secret)]
    assert run_job("lag", "--url", url, *words) == 2
    assert text in capsys.readouterr().err


def test_a_folder_that_cannot_be_made(
    spark: SparkSession, where: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What Java throws is told in a sentence too."""
    (tmp_path / "file").touch()
    url = f"redis://localhost:{where['port']}"
    words = ["--stream", "s", "--into", "t", "--checkpoint", str(tmp_path / "file" / "x")]
    assert run_job("totals", "--url", url, *words) == 2
    shown = capsys.readouterr().err.strip()
    assert shown.startswith("headrace-pipeline: ")
    assert str(tmp_path) in shown
    assert "calling" not in shown
    assert len(shown.splitlines()) == 1


def test_a_server_that_is_not_there(
    spark: SparkSession, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    assert run_job("lag", "--url", "redis://localhost:1", "--stream", "s") == 2
    assert "localhost:1 did not answer in 6 tries" in capsys.readouterr().err
    assert message_of(ValueError("plain")) == "plain"
    inner = "Traceback\npyspark_headrace.errors.OptionError: unknown option x\n"
    assert message_of(RuntimeError(inner)) == "unknown option x"


@pytest.mark.parametrize("missing", ["rich", "pyspark"])
def test_without_the_extra_the_program_says_so(missing: str) -> None:
    code = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "from pyspark_headrace.pipeline import main\n"
        "sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 2, done.stderr
    assert f"{missing} is not installed: pip install pyspark-headrace" in done.stderr


@pytest.mark.parametrize(
    ("code", "extra"),
    [
        ("jobs.values import drawing; drawing('x.png')", "drawings"),
        ("jobs.reconcile import database_side; database_side(None, 'host=/x', '')", "postgres"),
    ],
)
def test_what_one_job_needs_is_an_extra(code: str, extra: str, tmp_path: Path) -> None:
    """It is said before the job begins; all others go without."""
    told = []
    for number, extras in enumerate(((), (extra,))):
        words = (
            python_with(tmp_path / str(number), *extras),
            "-c",
            f"from pyspark_headrace.{code}",
        )
        done = subprocess.run(words, env={}, capture_output=True, text=True, check=False)
        told.append(f"pip install 'pyspark-headrace[{extra}]'" in done.stderr)
    assert told == [True, False]
