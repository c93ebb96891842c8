"""The unified log's programs as processes: the API over HTTP, the command lines, the demo."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("psycopg_pool", reason="psycopg_pool is not installed: headrace[demo]")
pytest.importorskip("rich", reason="rich is not installed: headrace[demo]")
pytest.importorskip("starlette", reason="starlette is not installed: headrace[demo]")
pytest.importorskip("uvicorn", reason="uvicorn is not installed: headrace[demo]")
pytest.importorskip("httpx", reason="httpx is not installed: headrace[demo]")

import httpx

from rocket_rides import consumer, group_consumer, setup
from rocket_rides import reconcile as reconciler
from rocket_rides.database import connect, create_ride, save_state, states
from rocket_rides.demo import free_port
from rocket_rides.log import Log
from rocket_rides.records import Way
from rocket_rides.streamer import Streamer
from support.process import ServerProcess, has_ended
from support.rocket_rides import Start, environment
from support.waiting import wait_until

pytestmark = pytest.mark.once


@pytest.fixture
def api(start: Start) -> Iterator[httpx.Client]:
    """A client of an API of the test's own."""
    port = free_port()
    process = start("api", "--port", str(port), "--late", "0")
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:

        def answers() -> bool:
            assert process.poll() is None
            try:
                return client.get("/health").status_code == 200
            except httpx.TransportError:
                return False

        wait_until(answers, 30)
        yield client


def rows(dsn: str) -> list[tuple[object, ...]]:
    """Every ride with its staged record; either is None where the other stands alone."""
    with connect(dsn) as database:
        return database.execute(
            """
            SELECT rides.id, distance, request_id, action, object, data
            FROM rides FULL JOIN staged_log_records ON ride_id = rides.id ORDER BY rides.id
            """
        ).fetchall()


def test_the_api(api: httpx.Client, dsn: str) -> None:
    def staged(ride_id: int, distance: str) -> tuple[str, str, dict[str, str]]:
        return ("create", "ride", {"id": str(ride_id), "distance": distance})

    # Rides, as a form and as JSON
    answer = api.post("/rides", data={"distance": "539.836923415231"})
    assert answer.status_code == 201
    assert answer.json()["id"] == 1
    assert api.post("/rides", json={"distance": 12}).json()["id"] == 2
    right = [
        (1, 539.836923415231, None, *staged(1, "539.836923415231")),
        (2, 12.0, None, *staged(2, "12")),
    ]
    assert rows(dsn) == right

    # What is wrong leaves nothing
    for distance in ("", "far", "-1", "0", "-0.0", "nan", "inf", "1e999", "1_0", "0x10", "1000001"):
        refused = api.post("/rides", data={"distance": distance})
        assert refused.status_code == 422, distance
        assert "'distance'" in refused.json()["error"]
    for wrong in ({}, {"distance": None}, {"distance": True}, {"distance": [1]}, {"far": 1}):
        assert api.post("/rides", json=wrong).status_code == 422, wrong
    as_json = {"content-type": "application/json"}
    for body in (b"", b"{", b"[1]", b"\xff", b"[" * 60_000, b'{"distance": NaN', b"1"):
        assert api.post("/rides", content=body, headers=as_json).status_code == 400, body
    for number, status in ((b"NaN", 422), (b"1e400", 422), (b"9" * 4000, 422), (b"9" * 5000, 400)):
        answer = api.post("/rides", content=b'{"distance": ' + number + b"}", headers=as_json)
        assert answer.status_code == status, number
    assert api.post("/rides", data={"distance": "1" * 70_000}).status_code == 413
    assert api.post("/rides", content=b"<ride/>", headers={"content-type": "text/xml"}).is_error
    assert api.get("/rides").status_code == 405
    assert api.post("/horses").status_code == 404
    assert api.post("/rides", data={"distance": "1"}, headers={"Idempotency-Key": ""}).is_error
    assert rows(dsn) == right

    # Sent again, even at the same time
    key = {"Idempotency-Key": "the same"}
    with ThreadPoolExecutor(8) as pool:
        answers = list(
            pool.map(lambda _: api.post("/rides", data={"distance": "7"}, headers=key), range(16))
        )
    assert {answer.status_code for answer in answers} == {201}
    [ride_id] = {answer.json()["id"] for answer in answers}
    assert rows(dsn)[2:] == [(ride_id, 7.0, "the same", *staged(ride_id, "7"))]
    assert api.post("/rides", data={"distance": "8"}, headers=key).status_code == 409

    # Both rows or none
    with connect(dsn) as database:
        database.execute(
            "ALTER TABLE staged_log_records ADD CONSTRAINT closed CHECK (id < 0) NOT VALID"
        )
        try:
            assert api.post("/rides", data={"distance": "9"}).status_code == 500
        finally:
            database.execute("ALTER TABLE staged_log_records DROP CONSTRAINT closed")
    assert len(rows(dsn)) == 3

    # A database that starts again
    with connect(dsn) as database:
        database.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
    key = {"Idempotency-Key": "patience"}
    wait_until(lambda: api.post("/rides", data={"distance": "9"}, headers=key).status_code == 201)
    assert len(rows(dsn)) == 4


def reconcile(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[object, str]:
    """The exit code and what was printed."""
    with pytest.raises(SystemExit) as end:
        reconciler.main(arguments)
    return end.value.code, capsys.readouterr().out


def test_reconcile_finds_and_corrects(
    dsn: str, server: ServerProcess, start: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"redis://127.0.0.1:{server.port}"
    addresses = ("--dsn", dsn, "--redis-url", url)
    with connect(dsn) as database, Log(url, "rocket-rides") as log:
        ada = start("consumer", "--name", "ada", "--fail", "0.5")
        create_ride(database, 0.5)
        streamer = Streamer(database, log, Way.IDMP)
        streamer.run_once()
        wait_until(lambda: states(database), 30)
        code, told = reconcile(capsys, *addresses, "--wait", "30", "--no-copies")
        assert code == 0, told
        assert "DIFFERS" not in told
        ada.send_signal(signal.SIGTERM)
        assert ada.wait(20) == 0
        save_state(database, states(database)["ada"]._replace(ride_count=2))
        code, told = reconcile(capsys, *addresses)
        assert code == 1
        assert re.search(r"ada .*\+1 rides.*DIFFERS", told), told
        code, told = reconcile(capsys, *addresses, "--correct")
        assert code == 1
        assert "staged: 1 rides up to 1, 0.5 m" in told
        streamer.run_once()
        consumer.Consumer(database, log, Way.IDMP, "ada").run_once()
        code, told = reconcile(capsys, *addresses, "--wait", "30", "--no-copies")
        assert code == 0, told


def test_wrong_options_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    for main, arguments, text in (
        (setup.main, ["--way", "best"], "invalid choice: 'best'"),
        (consumer.main, [], "--name"),
        (group_consumer.main, ["--name", "a", "--fail", "2"], "not between 0 and 1"),
    ):
        with pytest.raises(SystemExit, match="2"):
            main(arguments)
        assert text in capsys.readouterr().err


def test_nothing_goes_on_when_the_demo_is_gone(tmp_path: Path) -> None:
    parent = """
import os, sys
from pathlib import Path
from rocket_rides.guard import Guard
from rocket_rides.supervisor import Program
program = Program(Guard(), "sleep", ["sleep", "600"], dict(os.environ), Path(sys.argv[1]))
program.tend()
print(program.pid, flush=True)
os.kill(os.getpid(), 9)
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", parent, tmp_path / "log"],
        env=environment("", 1),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    wait_until(lambda: has_ended(int(done.stdout)))


@pytest.mark.usefixtures("cluster")  # or the test is skipped
def test_the_demo() -> None:
    """All of it, with all its failures; its exit code says whether everything agrees."""
    options = (
        *("--seconds", "2", "--rides", "60", "--rate", "100", "--keep", "50"),
        *("--kill-every", "0.2", "--kills", "3", "--consumers", "2"),
        *("--streamers", "1", "--members", "1"),
        *("--then", "python -P -m rocket_rides.reconcile --no-copies"),
    )
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "rocket_rides.demo", *options],
        env={**environment("", 1), "COLUMNS": "200"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as demo:
        try:
            told, _ = demo.communicate(timeout=240)
        except subprocess.TimeoutExpired:
            demo.terminate()  # so that it ends what it has started
            told, _ = demo.communicate(timeout=60)
    assert demo.returncode == 0, told
    assert told.count("Database: ") == 2
    found = re.search(r"(\d+) entries, 0 of them copies, .* Killed (\d+) times", told)
    assert found, told
    entries, kills = map(int, found.groups())
    assert entries > 60
    assert kills >= 1
