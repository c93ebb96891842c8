"""DEBUG CLOCK: a server whose time is frozen and moved, and all that depends on it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import redis

from headrace.testing import HeadraceServer, ServerError
from support.waiting import wait_until

HOUR_S = 3600


@pytest.fixture(scope="module")
def shared() -> Iterator[HeadraceServer]:
    with HeadraceServer(notify_keyspace_events="KEA") as server:
        yield server


@pytest.fixture
def server(shared: HeadraceServer) -> HeadraceServer:
    shared.clean()
    shared.clock.freeze()
    return shared


@pytest.fixture
def client(server: HeadraceServer) -> Iterator[Any]:
    with server.client(decode_responses=True) as client:
        yield client


def refused(server: HeadraceServer, *words: str) -> str:
    with pytest.raises(ServerError) as caught:
        server.call("DEBUG", "CLOCK", *words)
    return str(caught.value)


def blocked(server: HeadraceServer, *words: str) -> tuple[threading.Thread, list[Any]]:
    """Return a thread in which a client waits, and where its reply will be."""
    replies: list[Any] = []

    def ask() -> None:
        with server.client(decode_responses=True) as client:
            replies.append(client.execute_command(*words))

    before = server.client().info("clients")["blocked_clients"]
    thread = threading.Thread(target=ask)
    thread.start()
    with server.client() as looker:
        wait_until(lambda: looker.info("clients")["blocked_clients"] > before)
    return thread, replies


def test_a_frozen_clock_stands(server: HeadraceServer, client: Any) -> None:
    now = server.clock.now()
    client.set("k", "v", px=1)
    assert client.time() == client.time()
    assert server.clock.now() == now
    assert client.get("k") == "v"
    first, second = (client.xadd("s", {"f": "v"}) for _ in range(2))
    ms = round(now.timestamp() * 1000)
    assert (first, second) == (f"{ms}-0", f"{ms}-1")


def test_what_is_due_happens_in_order_of_time(server: HeadraceServer, client: Any) -> None:
    for key, ms in (("late", 3000), ("soon", 1000), ("never", 60_000)):
        client.set(key, "v", px=ms)
    client.config_set("stream-consumer-reclaim-ms", 2500)
    client.xgroup_create("s", "g", mkstream=True)
    client.xgroup_createconsumer("s", "g", "idle")
    client.hset("h", mapping={"f": "v", "g": "v"})
    client.hpexpire("h", 2000, "f")
    with client.pubsub(ignore_subscribe_messages=True) as listener:
        listener.psubscribe("__keyevent@0__:*e[dr]")  # expired, delconsumer
        assert listener.get_message(timeout=5) is None  # subscribed
        server.clock.shift(10)
        events = []
        while message := listener.get_message(timeout=0.2):
            events.append((message["channel"].partition(":")[2], message["data"]))
    assert events == [
        ("expired", "soon"),
        ("hexpired", "h"),
        ("xgroup-delconsumer", "s"),
        ("expired", "late"),
    ]
    assert sorted(client.keys()) == ["h", "never", "s"]
    assert client.pttl("never") == 50_000
    assert client.info("stats")["expired_keys"] == 2


def test_clients_that_wait_are_answered(server: HeadraceServer, client: Any) -> None:
    waits = [
        blocked(server, "XREAD", "BLOCK", "5000", "STREAMS", "s", "$"),
        blocked(server, "BLPOP", "l", "3600"),
        blocked(server, "WAIT", "1", "60000"),
    ]
    server.clock.shift(HOUR_S + 1)
    for thread, _ in waits:
        thread.join(10)
    assert [replies for _, replies in waits] == [[{}] if waits[0][1] == [{}] else [[]], [None], [0]]


def test_a_wait_ends_in_time_after_the_clock_was_moved(server: HeadraceServer) -> None:
    server.clock.resume()
    thread, replies = blocked(server, "BLPOP", "l", "60")
    server.clock.shift(59.9)
    thread.join(10)
    assert replies == [None]


def test_idle_times_and_claims(server: HeadraceServer, client: Any) -> None:
    client.xadd("s", {"f": "v"})
    client.xgroup_create("s", "g", "0")
    client.xreadgroup("g", "one", {"s": ">"})
    server.clock.shift(timedelta(minutes=30))
    assert client.xpending_range("s", "g", "-", "+", 1)[0]["time_since_delivered"] == 1_800_000
    assert len(client.xautoclaim("s", "g", "two", 1_800_000)[1]) == 1
    assert client.object("idletime", "s") == 0  # XAUTOCLAIM has used it
    server.clock.shift(7)
    assert client.object("idletime", "s") == 7


def test_a_message_is_new_again_after_the_duration(server: HeadraceServer, client: Any) -> None:
    add = ("XADD", "s", "IDMP", "p", "1", "*", "f", "v")
    client.xadd("s", {"f": "v"})
    client.execute_command("XCFGSET", "s", "IDMP-DURATION", "100")
    first = client.execute_command(*add)
    server.clock.shift(99)
    assert client.execute_command(*add) == first
    server.clock.shift(100)
    assert client.execute_command(*add) != first


def test_consumers_that_are_idle_are_reclaimed(server: HeadraceServer, client: Any) -> None:
    client.config_set("stream-consumer-reclaim-ms", 60_000)
    client.xgroup_create("s", "g", "0", mkstream=True)
    client.xgroup_createconsumer("s", "g", "one")
    server.clock.shift(59)
    assert len(client.xinfo_consumers("s", "g")) == 1
    server.clock.shift(2)
    assert client.xinfo_consumers("s", "g") == []


def test_save_points_follow(server: HeadraceServer, client: Any) -> None:
    client.config_set("save", "900 1")
    client.set("k", "v")
    before = client.lastsave()
    server.clock.shift(901)
    wait_until(lambda: client.lastsave() > before)
    assert client.lastsave().timestamp() == pytest.approx(server.clock.now().timestamp(), abs=2)
    assert (server.folder / "dump.hrs").exists()


def test_it_is_named_where_people_look(server: HeadraceServer, client: Any) -> None:
    assert client.info("server")["headrace_clock"] == "frozen"
    server.clock.resume()
    server.clock.shift(HOUR_S)
    found = client.info("server")
    assert found["headrace_clock"] == "running"
    assert found["headrace_clock_ahead_ms"] == pytest.approx(HOUR_S * 1000, abs=2000)
    server.clock.reset()
    assert "headrace_clock" not in client.info("server")
    assert "DEBUG CLOCK: the time is frozen" in server.log()
    assert "DEBUG CLOCK: the time is system" in server.log()


def test_ids_never_go_back(server: HeadraceServer, client: Any) -> None:
    server.clock.move_to(datetime(2100, 1, 1, tzinfo=UTC))
    last = client.xadd("s", {"f": "v"})
    server.clock.reset()
    assert abs(server.clock.now() - datetime.now(UTC)) < timedelta(seconds=5)
    assert client.xadd("s", {"f": "v"}) == last.replace("-0", "-1")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("SHIFT", "-1"), "ERR the clock cannot go back: RESET returns to the system's time"),
        (("MOVE-TO", "1000"), "ERR the clock cannot go back: RESET returns to the system's time"),
        (("FREEZE", "1000"), "ERR the clock cannot go back: RESET returns to the system's time"),
        (("SHIFT", "1" + "0" * 17), "ERR the clock cannot go that far"),
        (("SHIFT", "soon"), "ERR value is not an integer or out of range"),
    ],
)
def test_what_cannot_be(server: HeadraceServer, words: tuple[str, ...], error: str) -> None:
    before = server.call("DEBUG", "CLOCK", "GET")
    assert refused(server, *words) == error
    assert server.call("DEBUG", "CLOCK", "GET")[:4] == before[:4]


@pytest.mark.parametrize("words", [("SHIFT",), ("GET", "1"), ("WIND",), ("FREEZE", "1", "2")])
def test_what_is_not_said(server: HeadraceServer, words: tuple[str, ...]) -> None:
    with pytest.raises(
        ServerError, match=r"DEBUG CLOCK takes FREEZE|wrong number of arguments|unknown subcommand"
    ):
        server.call("DEBUG", "CLOCK", *words)


def test_who_may_not_move_it(server: HeadraceServer, client: Any) -> None:
    pipe = client.pipeline()
    pipe.execute_command("DEBUG", "CLOCK", "SHIFT", "1")
    with pytest.raises(redis.ResponseError, match="cannot be changed in a transaction"):
        pipe.execute()
    with HeadraceServer(enable_debug_command=False) as other:
        assert refused(other, "GET").startswith("ERR DEBUG command not allowed")


def test_replicas_and_a_moved_clock_refuse_each_other(server: HeadraceServer, client: Any) -> None:
    with HeadraceServer() as other:
        with pytest.raises(redis.ResponseError, match="was moved"):
            client.replicaof("127.0.0.1", other.port)
        other.call("REPLICAOF", "127.0.0.1", server.port)
        wait_until(lambda: "was moved" in other.log() or "was moved" in server.log())
        other.call("REPLICAOF", "NO", "ONE")
        server.clock.reset()
        other.call("REPLICAOF", "127.0.0.1", server.port)
        wait_until(lambda: client.info("replication")["connected_slaves"] == 1)
        assert refused(server, "SHIFT", "1").startswith("ERR the clock of a region, a replica")
        assert refused(other, "SHIFT", "1").startswith("ERR the clock of a region, a replica")


def test_a_region_keeps_its_clock_and_its_data() -> None:
    with HeadraceServer(appendonly=True, aa_region_id=1) as server:
        assert refused(server, "SHIFT", "1").startswith("ERR the clock of a region")
        with pytest.raises(ServerError, match="cannot be cleaned"):
            server.clean()


def test_what_expired_is_in_the_file() -> None:
    with HeadraceServer(appendonly=True) as server:
        server.call("SET", "k", "v", "PX", 1000)
        server.call("SET", "kept", "v")
        server.clock.shift(HOUR_S)
        server.restart(crash=True)
        assert server.call("KEYS", "*") == [b"kept"]
