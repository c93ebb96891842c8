"""DEBUG FAULT: requests that are late or refused, and replies that are lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from headrace.testing import HeadraceServer, ServerError
from support.waiting import wait_until


@pytest.fixture(scope="module")
def shared() -> Iterator[HeadraceServer]:
    with HeadraceServer() as server:
        yield server


@pytest.fixture
def server(shared: HeadraceServer) -> HeadraceServer:
    shared.clean()
    return shared


def lone(server: HeadraceServer, **options: Any) -> Any:
    """Return a client that does not ask again by itself."""
    return server.client(retry=Retry(NoBackoff(), 0), decode_responses=True, **options)


def test_a_reply_is_lost_and_the_request_was_run(server: HeadraceServer) -> None:
    server.faults.close_after("XADD", times=1)
    client = lone(server)
    with pytest.raises(redis.ConnectionError):
        client.xadd("s", {"f": "v"})
    assert client.xlen("s") == 1
    assert server.faults.list()[0]["fired"] == 1


def test_an_idempotent_producer_is_idempotent(server: HeadraceServer) -> None:
    server.faults.close_after("XADD", times=1)
    client: Any = server.client()  # it asks again
    client.execute_command("XADD", "s", "IDMP", "p", "1", "*", "f", "v")
    assert client.xlen("s") == 1


def test_a_connection_ends_before_the_request_is_run(server: HeadraceServer) -> None:
    server.faults.close_before("INCR")
    client = lone(server)
    with pytest.raises(redis.ConnectionError):
        client.execute_command("INCR", "n")
    assert client.get("n") is None


def test_replies_before_a_lost_one_arrive(server: HeadraceServer) -> None:
    server.faults.close_after("INCR")
    client = lone(server)
    pipe = client.pipeline(transaction=False)
    pipe.set("a", 1).get("a").execute_command("INCR", "a")
    pipe.set("b", 1)
    with pytest.raises(redis.ConnectionError):
        pipe.execute()
    assert (client.get("a"), client.get("b")) == ("2", None)


def test_silence_is_a_time_out(server: HeadraceServer) -> None:
    server.faults.silence("INCR", times=1)
    client = lone(server, socket_timeout=0.3)
    with pytest.raises(redis.TimeoutError):
        client.execute_command("INCR", "n")
    assert client.get("n") == "1"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("LOADING Redis is loading the dataset in memory", redis.BusyLoadingError),
        ("OOM command not allowed when used memory > 'maxmemory'.", redis.OutOfMemoryError),
        ("READONLY You can't write against a read only replica.", redis.ReadOnlyError),
        ("-NOSUCHTHING of ours", redis.ResponseError),
    ],
)
def test_any_error(server: HeadraceServer, text: str, kind: type[Exception]) -> None:
    server.faults.error("SET", text)
    with pytest.raises(kind):
        lone(server).set("k", "v")
    assert lone(server).get("k") is None


def test_a_late_request_holds_up_its_own_client_alone(server: HeadraceServer) -> None:
    server.clock.freeze()
    server.faults.delay("SET", 60_000, client="slow*")
    slow, quick = lone(server, client_name="slow-one"), lone(server)
    done: list[Any] = []
    pipe = slow.pipeline(transaction=False)
    pipe.get("a").set("a", 1).get("a")
    thread = threading.Thread(target=lambda: done.append(pipe.execute()))
    thread.start()
    wait_until(lambda: any("b" in each["flags"] for each in quick.client_list()))
    quick.set("a", 0)
    [held] = [each["id"] for each in quick.client_list() if each["name"] == "slow-one"]
    assert quick.client_unblock(int(held), error=True) is False
    assert not done
    server.clock.shift(60)
    thread.join(10)
    assert done == [[None, True, "1"]]
    assert quick.info("commandstats")["cmdstat_set"]["calls"] == 2


def test_one_that_waits_loses_its_reply_when_it_comes(server: HeadraceServer) -> None:
    server.faults.close_after("BLPOP")
    caught: list[Exception] = []

    def ask() -> None:
        try:
            lone(server).blpop(["l"], 10)
        except redis.ConnectionError as error:
            caught.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    client = lone(server)
    wait_until(lambda: client.info("clients")["blocked_clients"] == 1)
    client.rpush("l", "a", "b")
    thread.join(10)
    assert caught
    assert client.lrange("l", 0, -1) == ["b"]


def test_keys_names_shares_and_seeds(server: HeadraceServer) -> None:
    server.faults.error("get", "ERR this key", key="bad:*")
    client = lone(server)
    assert client.get("good:1") is None
    with pytest.raises(redis.ResponseError, match="this key"):
        client.get("bad:1")

    def pattern(seed: int) -> list[bool]:
        fault = server.faults.error("LPUSH", "ERR now and then", percent=30, seed=seed)
        found = []
        for _ in range(200):
            try:
                client.lpush("l", "x")
                found.append(False)
            except redis.ResponseError:
                found.append(True)
        assert server.faults.clear(fault) == 1
        return found

    assert pattern(7) == pattern(7) != pattern(8)
    assert 30 < sum(pattern(7)) < 90


def test_transactions_scripts_and_containers(server: HeadraceServer) -> None:
    server.faults.error("SET", "ERR not now")
    client = lone(server)
    pipe = client.pipeline()
    pipe.set("a", 1)
    with pytest.raises(redis.ResponseError, match="not now"):
        pipe.execute()
    client.eval("return redis.call('SET', KEYS[1], 'v')", 1, "k")  # not a client's request
    assert client.get("k") == "v"
    server.faults.error("CONFIG|GET", "ERR no")
    with pytest.raises(redis.ResponseError):
        client.config_get("save")
    client.config_set("timeout", 0)
    server.faults.error("*", "ERR nothing works")
    with pytest.raises(redis.ResponseError, match="nothing works"):
        client.ping()
    assert server.faults.clear() == 3


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("ADD", "COMMAND", "NOPE", "ACTION", "silence"), "there is no command 'nope'"),
        (("ADD", "COMMAND", "GET", "PERCENT", "101", "ACTION", "silence"), "from 0 to 100"),
        (("ADD", "COMMAND", "GET", "TIMES", "0", "ACTION", "silence"), "TIMES is a number from 1"),
        (("ADD", "COMMAND", "GET", "ACTION", "explode"), "ACTION is delay ms, error text"),
        (("ADD", "COMMAND", "GET"), "ACTION is delay ms, error text"),
        (("ADD", "COMMAND", "GET", "ACTION", "delay"), "ACTION is delay ms, error text"),
        (("ADD", "COMMAND", "GET", "ACTION", "delay", "-1"), "the delay is a number from 0"),
        (("ADD", "COMMAND", "GET", "ACTION", "error", "a\r\nb"), "an error is one line"),
        (("ADD", "COMMAND", "GET", "COMMAND", "SET", "ACTION", "silence"), "COMMAND stands twice"),
        (("ADD", "ACTION", "silence"), "COMMAND is missing"),
        (("ADD", "COLOUR", "red", "ACTION", "silence"), "'COLOUR' is none of COMMAND, KEY"),
        (("CLEAR", "7"), "there is no fault with this ID"),
        (("BREAK",), "DEBUG FAULT takes ADD COMMAND name"),
    ],
)
def test_what_is_refused(server: HeadraceServer, words: tuple[str, ...], error: str) -> None:
    with pytest.raises(ServerError, match="^ERR .*" + error):
        server.call("DEBUG", "FAULT", *words)
    assert server.faults.list() == []
    assert server.call("PING") == b"PONG"


def test_a_late_request_is_run_though_its_client_has_left(server: HeadraceServer) -> None:
    server.clock.freeze()
    server.faults.delay("INCR", 60_000, times=1)
    with pytest.raises(redis.TimeoutError):
        lone(server, socket_timeout=0.05).execute_command("INCR", "k")
    client = lone(server)
    assert client.get("k") is None
    server.clock.shift(60)
    wait_until(lambda: client.get("k") == "1")
    wait_until(lambda: client.info("clients")["connected_clients"] <= 2)


def test_who_meets_silence_leaves(server: HeadraceServer) -> None:
    server.faults.silence("INCR")
    pipe = lone(server, socket_timeout=0.05).pipeline(transaction=False)
    pipe.execute_command("INCR", "k").execute_command("SET", "k", "never")
    with pytest.raises(redis.TimeoutError):
        pipe.execute()
    client = lone(server)
    wait_until(lambda: client.info("clients")["connected_clients"] <= 2)
    assert client.get("k") == "1"


def test_a_late_reply_may_be_unwanted(server: HeadraceServer) -> None:
    server.faults.delay("SET", 20)
    client = lone(server)
    connection = client.connection_pool.get_connection()
    connection.send_packed_command(
        connection.pack_commands([("CLIENT", "REPLY", "SKIP"), ("SET", "k", "v"), ("GET", "k")])
    )
    assert connection.read_response() == "v"
