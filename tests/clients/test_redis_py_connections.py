"""redis-py, the blocking client: connections, and what an administrator does with them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import redis
from redis.backoff import ConstantBackoff
from redis.retry import Retry

from support.process import ServerProcess
from support.redis_py import Client
from support.waiting import wait_until

pytestmark = pytest.mark.once

# Connections


def test_what_a_client_says_of_itself(server: ServerProcess, protocol: int) -> None:
    with redis.Redis(
        port=server.port, protocol=protocol, client_name="me", db=3, decode_responses=True
    ) as r:
        info: Any = r.client_info()
        assert (info["name"], info["db"], info["resp"]) == ("me", 3, str(protocol))
        assert (info["lib-name"], info["lib-ver"]) == ("redis-py", redis.__version__)
        assert r.client_getname() == "me"
        assert r.client_setname("other") is True
        assert r.client_getname() == "other"
        assert r.client_setinfo("LIB-NAME", "mine") in (True, "OK")


def test_databases(server: ServerProcess, protocol: int, r: Client) -> None:
    with redis.Redis(port=server.port, protocol=protocol, db=5, decode_responses=True) as fifth:
        fifth.set("k", "in five")
        assert r.get("k") is None
        assert r.info("keyspace")["db5"]["keys"] == 1
    with (
        redis.Redis(port=server.port, protocol=protocol, db=16) as none,
        pytest.raises(redis.ResponseError, match="DB index is out of range"),
    ):
        none.ping()


def test_url(server: ServerProcess, protocol: int) -> None:
    url = f"redis://127.0.0.1:{server.port}/2?protocol={protocol}&decode_responses=True"
    with redis.Redis.from_url(url) as r:
        assert r.set("k", "v") is True
        info: Any = r.client_info()
        assert info["db"] == 2


def test_password(fresh_server: Callable[..., ServerProcess], protocol: int) -> None:
    server = fresh_server("--requirepass", "secret")
    with redis.Redis(port=server.port, protocol=protocol, password="secret") as r:
        assert r.ping() is True
        assert r.acl_whoami() in ("default", b"default")
    with redis.Redis(
        port=server.port, protocol=protocol, username="default", password="secret"
    ) as r:
        assert r.ping() is True
    once = Retry(ConstantBackoff(0), 0)
    with (
        redis.Redis(port=server.port, protocol=protocol, password="wrong", retry=once) as r,
        pytest.raises(redis.AuthenticationError, match="invalid username-password pair"),
    ):
        r.ping()
    refusal = "Authentication required" if protocol == 2 else "HELLO must be called with"
    with (
        redis.Redis(port=server.port, protocol=protocol, retry=once) as r,
        pytest.raises(redis.AuthenticationError, match=refusal),
    ):
        r.ping()


def test_unix_socket(fresh_server: Callable[..., ServerProcess], protocol: int) -> None:
    server = fresh_server("--unixsocket", "redis.sock")
    path = str(server.directory / "redis.sock")
    with redis.Redis(unix_socket_path=path, protocol=protocol, decode_responses=True) as r:
        assert r.xadd("s", {"f": "v"}, id="1-1") == "1-1"
        info: Any = r.client_info()
        assert info["addr"] == "redis.sock:0"  # as configured
        assert info["flags"] == "U"


def test_connection_pool(server: ServerProcess, protocol: int) -> None:
    pool = redis.BlockingConnectionPool(  # type: ignore[no-untyped-call]
        port=server.port, protocol=protocol, max_connections=4, timeout=10, decode_responses=True
    )
    r: Any = redis.Redis(connection_pool=pool)
    failed: list[BaseException] = []

    def work(name: int) -> None:
        try:
            for n in range(25):
                r.xadd("s", {"thread": name, "n": n})
                assert r.echo(f"{name} {n}") == f"{name} {n}"
        except BaseException as error:
            failed.append(error)

    try:
        threads = [threading.Thread(target=work, args=(name,)) for name in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failed == []
        assert r.xlen("s") == 300
        ids = [entry_id for entry_id, _ in r.xrange("s")]
        assert len(set(ids)) == 300
    finally:
        r.close()
        pool.disconnect()


def test_a_cut_connection_is_made_again(server: ServerProcess, protocol: int, r: Client) -> None:
    with redis.Redis(
        port=server.port,
        protocol=protocol,
        retry=Retry(ConstantBackoff(0.01), 3),
        retry_on_error=[redis.ConnectionError],
        single_connection_client=True,
    ) as tough:
        first = tough.client_id()
        assert r.client_kill_filter(_id=first) == 1
        assert tough.client_id() != first


def test_a_restart_is_survived(fresh_server: Callable[..., ServerProcess], protocol: int) -> None:
    server = fresh_server("--appendonly", "yes")
    with redis.Redis(
        port=server.port,
        protocol=protocol,
        retry=Retry(ConstantBackoff(0.05), 100),
        decode_responses=True,
    ) as r:
        r.xadd("s", {"f": "v"}, id="1-1")
        server.restart()
        assert r.xrange("s") == [("1-1", {"f": "v"})]


def test_health_check(server: ServerProcess, protocol: int) -> None:
    with redis.Redis(
        port=server.port, protocol=protocol, health_check_interval=1, single_connection_client=True
    ) as r:
        r.config_resetstat()
        connection: Any = r.connection
        connection.next_health_check = 1  # long ago
        stats: Any = r.info("commandstats")
        assert stats["cmdstat_ping"]["calls"] == 1


def test_monitor(r: Client) -> None:
    with r.monitor() as monitor:
        r.set("k", "a b\n")
        seen = next(command for command in monitor.listen() if command["command"][:3] == "SET")
        assert seen["db"] == 0
        assert seen["client_type"] == "tcp"
        assert seen["command"].startswith("SET k a b")


# Administration


def test_info(r: Client) -> None:
    info = r.info()
    assert info["redis_version"].startswith("8.")
    assert info["redis_mode"] == "standalone"
    assert info["role"] == "master"
    assert info["connected_clients"] >= 1
    assert info["used_memory"] > 0
    assert "cmdstat_xadd" not in info
    r.xadd("s", {"f": "v"})
    everything = r.info("everything")
    assert everything["cmdstat_xadd"]["calls"] >= 1
    assert set(r.info("clients", "memory")) > {"connected_clients", "used_memory"}


def test_config(r: Client) -> None:
    assert r.config_get("maxclients") == {"maxclients": "10000"}
    assert set(r.config_get("stream-node-max-*")) == {
        "stream-node-max-bytes",
        "stream-node-max-entries",
    }
    assert r.config_get("maxclients", "timeout") == {"maxclients": "10000", "timeout": "0"}
    assert r.config_set("timeout", 100) is True
    assert r.config_get("timeout") == {"timeout": "100"}
    assert r.config_set("timeout", 0, "tcp-keepalive", 300) is True
    with pytest.raises(redis.ResponseError, match="CONFIG SET failed"):
        r.config_set("timeout", "never")
    assert r.config_resetstat() is True


def test_slowlog(r: Client) -> None:
    r.config_set("slowlog-log-slower-than", 0)
    try:
        r.slowlog_reset()
        r.set("k", "v")
        assert r.slowlog_len() >= 1
        logged = {str(entry["command"]).strip("b'"): entry for entry in r.slowlog_get(10)}
        assert "SET k v" in logged
        entry = logged["SET k v"]
        assert entry["duration"] >= 0
        assert abs(entry["start_time"] - time.time()) < 60
        assert str(entry["client_address"]).strip("b'").startswith("127.0.0.1:")
    finally:
        r.config_set("slowlog-log-slower-than", 10_000)
    assert r.slowlog_reset() is True


def test_client_list_and_kill(r: Client, other: Client) -> None:
    number = other.client_id()
    listed = {int(client["id"]): client for client in r.client_list()}
    assert listed[number]["cmd"] == "client|id"
    assert [c["id"] for c in r.client_list(client_id=[number])] == [str(number)]
    assert len(r.client_list(_type="normal")) >= 2
    assert r.client_list(_type="pubsub") == []
    assert r.client_kill(listed[number]["addr"]) is True
    with pytest.raises(redis.ResponseError, match="No such client"):
        r.client_kill(listed[number]["addr"])
    assert r.client_kill_filter(_type="pubsub") == 0
    assert r.client_no_evict("on") in (True, "OK")
    assert r.client_no_touch("off") in (True, "OK")
    assert r.client_tracking_off() in (True, "OK")


def test_client_unblock(r: Client, other: Client) -> None:
    number = other.client_id()
    outcome: list[object] = []

    def read() -> None:
        try:
            outcome.append(other.xread({"s": "$"}, block=0))
        except redis.ResponseError as error:
            outcome.append(str(error))

    for error in (False, True):
        reader = threading.Thread(target=read)
        reader.start()
        wait_until(lambda: r.info("clients")["blocked_clients"] == 1)
        assert r.client_unblock(number, error=error) in (True, 1)
        reader.join()
    assert outcome[0] in ([], {}, None)
    assert "UNBLOCKED" in str(outcome[1])
    assert r.client_unblock(number) in (False, 0)


def test_client_pause(r: Client, other: Client) -> None:
    assert r.client_pause(5000, all=False) is True
    assert other.get("k") is None  # only writes wait
    writer = threading.Thread(target=lambda: other.set("k", "v"))
    writer.start()
    wait_until(lambda: r.info("clients")["blocked_clients"] == 1)
    assert r.get("k") is None
    assert r.client_unpause() in (True, "OK")
    writer.join()
    assert r.get("k") == "v"


def test_commands_are_described(r: Client) -> None:
    assert r.command_count() > 100
    commands = r.command()
    assert commands["xadd"]["arity"] == -5
    assert commands["get"]["first_key_pos"] == 1
    assert "xadd" in r.command_list(category="stream")
    assert r.command_getkeys("XREAD", "STREAMS", "a", "b", "0", "0") == ["a", "b"]
    assert r.command_getkeysandflags("SET", "k", "v")[0][0] == "k"


def test_the_rest_of_the_server(r: Client) -> None:
    seconds, microseconds = r.time()
    assert abs(seconds + microseconds / 1e6 - time.time()) < 5
    assert r.role()[0] in ("master", b"master")
    assert r.lastsave() is not None
    assert r.wait(0, 10) == 0
    assert r.waitaof(0, 0, 10) == [0, 0]
    assert r.memory_stats()["keys.count"] == 0
    assert r.latency_latest() == []
    assert r.latency_history("command") == []
    assert r.latency_reset() == 0
    assert isinstance(r.lolwut(), str)
    assert r.echo("hello") == "hello"
    assert r.reset() in (True, "RESET", None)


def test_scripts_and_functions(r: Client) -> None:
    script = r.register_script("return redis.call('INCRBY', KEYS[1], ARGV[1])")
    assert [script(keys=["counter"], args=[5]), script(keys=["counter"], args=[5])] == [5, 10]
    assert r.script_exists(script.sha, "0" * 40) == [True, False]
    r.script_flush()
    assert script(keys=["counter"], args=[1]) == 11  # NOSCRIPT, SCRIPT LOAD, and again
    with r.pipeline() as pipeline:
        script(keys=["counter"], args=[1], client=pipeline)
        assert pipeline.execute() == [12]
    with r.lock("lock", timeout=10) as lock:
        assert lock.owned()
        assert lock.extend(5)
    with pytest.raises(redis.exceptions.NoScriptError):
        r.evalsha("0" * 40, 0)
    with pytest.raises(redis.ResponseError, match="Wrong number of args"):
        r.eval("return redis.call('INCR')", 0)
    code = "#!lua name=sums\nredis.register_function('twice', function(_, a) return 2 * a[1] end)"
    assert r.function_load(code, replace=True) in ("sums", b"sums")
    assert r.fcall("twice", 0, 21) == 42
    assert r.function_flush() in (True, "OK")


def test_what_we_lack_is_an_unknown_command(r: Client) -> None:
    with pytest.raises(redis.ResponseError, match="unknown command 'VADD'"):
        r.execute_command("VADD", "v", "VALUES", 1, 1, "element")
