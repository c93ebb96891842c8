"""The tests' own tools: the judge answers, the raw client cuts replies where they end."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pytest_rerunfailures import ClientStatusDB

from support.build import ROOT
from support.campaigns import CAMPAIGNS, Selection
from support.client import Push, Status, WireError, encode, parse
from support.clock import START_MS, Clock
from support.process import PORT_RANGE, Process, RedisProcess, claim_port

if TYPE_CHECKING:
    from conftest import Factory


@pytest.mark.judge
def test_raw_client_cuts_replies_exactly(redis_server: RedisProcess) -> None:
    with redis_server.client() as client:
        assert client.call("SET", "k", b"a\r\nb") == b"+OK\r\n"
        client.send(encode("GET", "k") + encode("LRANGE", "none", 0, -1) + encode("GET", "none"))
        assert client.read() == b"$4\r\na\r\nb\r\n"
        assert client.read() == b"*0\r\n"
        assert client.read() == b"$-1\r\n"
        assert client.silent()
        assert client.call_parsed("NOPE", 1) == WireError(
            b"ERR unknown command 'NOPE', with args beginning with: '1' "
        )
        client.send_slowly(encode("PING"))
        assert client.read_parsed() == Status(b"PONG")


@pytest.mark.judge
def test_raw_client_reads_resp3(redis_server: RedisProcess) -> None:
    with redis_server.client(resp3=True) as client:
        assert client.call("GET", "none") == b"_\r\n"
        assert client.call_parsed("CONFIG", "GET", "port") == {b"port": b"%d" % redis_server.port}
        assert client.call_parsed("SUBSCRIBE", "news") == Push([b"subscribe", b"news", 1])


@pytest.mark.judge
def test_a_closed_connection_is_an_error_not_a_hang(redis_server: RedisProcess) -> None:
    with redis_server.client() as client:
        client.send(b"*1\r\n$-5\r\n")
        assert client.rest_until_close().startswith(b"-ERR Protocol error")


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b"%1\r\n+a\r\n*2\r\n:1\r\n_\r\n", {b"a": [1, None]}),
        (b"=7\r\ntxt:abc\r\n", b"abc"),
        (b"*3\r\n#t\r\n,1.5\r\n(12345678901234567890\r\n", [True, 1.5, 12345678901234567890]),
        (b"|1\r\n+ttl\r\n:1\r\n~1\r\n$1\r\nx\r\n", [b"x"]),
        (b"*-1\r\n", None),
    ],
)
def test_parse(raw: bytes, value: object) -> None:
    assert parse(raw) == value


def second(server: Process) -> int:
    answer = server.call("TIME")
    assert isinstance(answer, list)
    return int(answer[0])


@pytest.mark.judge
@pytest.mark.since(8, 0)  # Valkey takes the time of day from the processor
def test_servers_share_a_settable_clock(
    settable_clock: Clock, fresh_server: Factory, fresh_redis: Factory
) -> None:
    environment = settable_clock.environment
    for server in (fresh_server(environment=environment), fresh_redis(environment=environment)):
        settable_clock.set(START_MS)
        assert second(server) == START_MS // 1000
        server.call("SET", "k", "v", "PX", 5000)
        settable_clock.advance(5001)
        assert second(server) == START_MS // 1000 + 5
        assert server.call("GET", "k") is None


def test_a_clock_moves_within_a_command(settable_clock: Clock, fresh_server: Factory) -> None:
    server = fresh_server(environment=settable_clock.environment)
    settable_clock.set(START_MS, step_us=1_000_000)
    before = second(server)
    assert second(server) > before


def test_judges_that_cannot_be_fetched_leave_nothing_behind(repo: Path, tmp_path: Path) -> None:
    script = repo / "tests" / "support" / "get_judges.sh"
    kept = tmp_path / "judges" / "kept"
    kept.parent.mkdir()
    kept.touch()
    done = subprocess.run(
        [script, kept.parent, tmp_path / "no-python"], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr.startswith("judges: ")
    assert [*tmp_path.rglob("*")] == [kept.parent, kept]


@pytest.mark.skipif(not PORT_RANGE.exists(), reason="the system does not say which it gives away")
def test_ports_are_none_that_the_system_gives_away() -> None:
    claims = [claim_port() for _ in range(20)]
    try:
        ports = [port for port, _ in claims]
        assert len(set(ports)) == len(ports)
        low, high = map(int, PORT_RANGE.read_text().split())
        if low > 26_000:
            assert not any(low <= port <= high for port in ports)
    finally:
        for _, claim in claims:
            claim.close()


def test_campaigns_are_tests_that_exist() -> None:
    patterns = [pattern for group in CAMPAIGNS.values() for pattern, _ in group]
    assert len(set(patterns)) == len(patterns)
    for pattern in patterns:
        path, _, name = pattern.partition("::")
        assert f"\ndef {name.rstrip('*') or 'test_'}" in (ROOT / path).read_text(), pattern


def test_a_push_runs_some_of_a_campaign_and_all_else() -> None:
    [(pattern, every)] = CAMPAIGNS["the simulator plays each of them in its own time"]
    asked = [pattern.replace("*", f"test_scenario[S{number}]") for number in range(2 * every)]
    pushed = Selection()
    assert [test for test in asked if pushed.has(test)] == asked[::every]
    assert pushed.has("tests/test_support.py::test_ports")


def test_no_worker_asks_whether_a_test_was_tried_before(pytestconfig: pytest.Config) -> None:
    assert not isinstance(vars(pytestconfig)["failures_db"], ClientStatusDB)
