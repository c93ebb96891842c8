"""MONITOR, SLOWLOG, LATENCY, MEMORY, WAIT, SHUTDOWN and what the cron does."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from headrace.server.clock import Clock
from headrace.server.statistics.statistics import LatencyMonitor
from support.client import RawClient, WireError
from support.figures import info
from support.process import Process, ServerProcess
from support.waiting import DEADLINE_S, wait_until


def watched(monitor: RawClient) -> str:
    """The next line of MONITOR without its time and address."""
    found = re.fullmatch(
        rb"\+\d{10,}\.\d{6} \[(\d+) (?:[\d.]+|\[[\da-f:]+\]):\d+\] (.*)\r\n", monitor.read()
    )
    assert found is not None
    return f"{found[1].decode()} {found[2].decode()}"


def test_monitor_shows_requests_as_they_run(server: ServerProcess, client: RawClient) -> None:
    with server.client() as monitor:
        assert monitor.call("MONITOR") == b"+OK\r\n"
        client.call("SELECT", 2)
        client.call("SET", 'a"b', b"x\r\n\x00\xff")
        client.call("CONFIG", "GET", "port")  # admin: not shown
        client.call("GET")  # refused: not shown
        client.call("NOTHING")
        client.call("AUTH", "me", "secret")
        client.call("HELLO", 2, "AUTH", "default", "secret", "SETNAME", "x")
        client.call("MULTI")
        client.call("INCR", "n")
        client.call("EXEC")
        assert watched(monitor) == '2 "SELECT" "2"'
        assert watched(monitor) == r'2 "SET" "a\"b" "x\r\n\x00\xff"'
        assert watched(monitor) == '2 "AUTH" "(redacted)" "(redacted)"'
        hello = '2 "HELLO" "2" "AUTH" "(redacted)" "(redacted)" "SETNAME" "x"'
        assert watched(monitor) == hello
        assert watched(monitor) == '2 "MULTI"'
        assert watched(monitor) == '2 "INCR" "n"'
        assert watched(monitor) == '2 "EXEC"'
        assert monitor.call("RESET").endswith(b"RESET\r\n")
        client.call("PING")
        assert monitor.call("ECHO", "done") == b"$4\r\ndone\r\n"


def test_slowlog_remembers_what_was_slow(server: ServerProcess, client: RawClient) -> None:
    client.call("CONFIG", "SET", "slowlog-log-slower-than", "0", "slowlog-max-len", "5")
    try:
        client.call("CLIENT", "SETNAME", "me")
        client.call("SLOWLOG", "RESET")
        client.call("AUTH", "default", "secret")
        client.call("MSET", *[f"a{index}" for index in range(40)])
        client.call("SET", "long", "x" * 200)
        log = client.call_parsed("SLOWLOG", "GET")
        assert isinstance(log, list)
        assert [entry[3][0] for entry in log] == [b"SET", b"MSET", b"AUTH", b"SLOWLOG"]
        numbers = [entry[0] for entry in log]
        assert numbers == sorted(numbers, reverse=True)
        assert log[0][3][2] == b"x" * 128 + b"... (72 more bytes)"
        assert len(log[1][3]) == 32
        assert log[1][3][-1] == b"... (10 more arguments)"
        assert log[2][3] == [b"AUTH", b"(redacted)", b"(redacted)"]
        assert log[0][4].startswith(b"127.0.0.1:")
        assert log[0][5] == b"me"
        assert abs(log[0][1] - time.time()) < 60
        assert client.call("SLOWLOG", "LEN") == b":5\r\n"
        for _ in range(10):
            client.call("PING")
        assert client.call("SLOWLOG", "LEN") == b":5\r\n"
        client.call("CONFIG", "SET", "slowlog-max-len", "2")
        assert client.call("SLOWLOG", "LEN") == b":2\r\n"
    finally:
        client.call("CONFIG", "SET", "slowlog-log-slower-than", "10000", "slowlog-max-len", "128")


def test_latency_follows_its_threshold(server: ServerProcess, client: RawClient) -> None:
    client.call("LATENCY", "RESET")  # of what was slow in other tests
    client.call("CONFIG", "SET", "latency-monitor-threshold", "250")
    try:
        client.call("DEBUG", "SLEEP", "0.3")
        latest = client.call_parsed("LATENCY", "LATEST")
        assert isinstance(latest, list)
        (slept,) = [event for event in latest if event[0] == b"command"]
        assert 300 <= slept[2] <= slept[3] < 60_000
        history = client.call_parsed("LATENCY", "HISTORY", "command")
        assert isinstance(history, list)
        assert [300 <= took_ms < 60_000 for _, took_ms in history] == [True]
        graph = client.call_parsed("LATENCY", "GRAPH", "command")
        assert isinstance(graph, bytes)
        assert graph.startswith(b"command - high ")
        doctor = client.call_parsed("LATENCY", "DOCTOR")
        assert isinstance(doctor, bytes)
        assert b"command" in doctor
        assert client.call("LATENCY", "RESET", "COMMAND") == b":1\r\n"
        left = client.call_parsed("LATENCY", "LATEST")
        assert isinstance(left, list)
        assert b"command" not in [event[0] for event in left]
    finally:
        client.call("CONFIG", "SET", "latency-monitor-threshold", "0")
        client.call("LATENCY", "RESET")


def test_latency_histogram(client: RawClient) -> None:
    client.call("CONFIG", "RESETSTAT")
    for _ in range(10):
        client.call("SET", "a", 1)
    client.call("CLIENT", "ID")
    client.call("CLIENT", "GETNAME")
    found = client.call_parsed("LATENCY", "HISTOGRAM", "set", "get", "nothing")
    assert isinstance(found, list)
    assert found[0] == b"set"
    assert found[1][:3] == [b"calls", 10, b"histogram_usec"]
    uppers, counts = found[1][3][::2], found[1][3][1::2]
    assert uppers == sorted(uppers)
    assert counts == sorted(counts)
    assert counts[-1] == 10
    found = client.call_parsed("LATENCY", "HISTOGRAM", "client")
    assert isinstance(found, list)
    assert found[::2] == [b"client|id", b"client|getname"]


def test_memory_usage_follows_the_size(client: RawClient) -> None:
    client.call("SET", "small", "x")
    client.call("SET", "large", "x" * 100_000)
    for index in range(1000):
        client.send_command("XADD", "stream", f"{index + 1}-0", "field", f"{index:03}" + "x" * 97)
        client.send_command("XADD", "same", f"{index + 1}-0", "field", "x" * 100)
    for _ in range(2000):
        client.read()
    small = client.call_parsed("MEMORY", "USAGE", "small")
    large = client.call_parsed("MEMORY", "USAGE", "large")
    stream = client.call_parsed("MEMORY", "USAGE", "stream", "SAMPLES", 0)
    assert isinstance(small, int)
    assert isinstance(large, int)
    assert isinstance(stream, int)
    same = client.call_parsed("MEMORY", "USAGE", "same", "SAMPLES", 0)
    assert isinstance(same, int)
    assert 50 < small < 1000
    assert 100_000 < large < 110_000
    assert 100_000 < stream < 300_000
    assert 2_000 < same < 30_000


def test_memory_reports(client3: RawClient) -> None:
    stats = client3.call_parsed("MEMORY", "STATS")
    assert isinstance(stats, dict)
    assert stats[b"total.allocated"] > stats[b"dataset.bytes"] >= 0
    assert isinstance(stats[b"dataset.percentage"], float)
    for report in ("DOCTOR", "MALLOC-STATS"):
        text = client3.call_parsed("MEMORY", report)
        assert isinstance(text, bytes)
        assert text.endswith(b"\n")


def test_maxmemory_refuses_what_needs_memory(fresh_server: Callable[..., Process]) -> None:
    server = fresh_server()
    with server.client() as client:
        client.call("SET", "a", 1)
        client.call("CONFIG", "SET", "maxmemory", "500kb")
        refused = client.call_parsed("SET", "b", 1)
        assert refused == WireError(b"OOM command not allowed when used memory > 'maxmemory'.")
        assert client.call("GET", "a") == b"$1\r\n1\r\n"
        assert client.call("DEL", "a") == b":1\r\n"
        client.call("CONFIG", "SET", "maxmemory", "10gb")
        assert client.call("SET", "b", 1) == b"+OK\r\n"
        client.call("CONFIG", "SET", "maxmemory", server.info("memory")["used_memory"])
        wait_until(lambda: client.call("APPEND", "b", "x" * 500_000).startswith(b"-OOM"))


def test_wait_without_replicas(server: ServerProcess, client: RawClient) -> None:
    started = time.monotonic()
    assert client.call("WAIT", 1, 100) == b":0\r\n"
    assert time.monotonic() - started > 0.09
    client.call("MULTI")
    client.call("WAIT", 1, 0)
    assert client.call("EXEC") == b"*1\r\n:0\r\n"


def test_waitaof_waits_for_the_disk(fresh_server: Callable[..., Process]) -> None:
    server = fresh_server("--appendonly", "yes", "--appendfsync", "everysec")
    with server.client() as client:
        for index in range(3):
            client.call("SET", "a", index)
            assert client.call("WAITAOF", 1, 0, 50_000) == b"*2\r\n:1\r\n:0\r\n"
        assert client.call("WAITAOF", 1, 1, 100) == b"*2\r\n:1\r\n:0\r\n"
        client.call("CONFIG", "SET", "appendfsync", "always")
        client.send_command("SET", "a", 9)
        client.send_command("WAITAOF", 1, 0, 0)
        assert client.read() == b"+OK\r\n"
        assert client.read() == b"*2\r\n:1\r\n:0\r\n"


def test_shutdown_ends_the_process(fresh_server: Callable[..., Process]) -> None:
    server = fresh_server()
    with server.client() as client:
        client.send_command("SHUTDOWN", "NOSAVE")
        client.send_command("PING")
        assert client.rest_until_close() == b""
    assert server.wait() == 0


def test_shutdown_keeps_what_was_written(fresh_server: Callable[..., Process]) -> None:
    server = fresh_server("--appendonly", "yes", "--appendfsync", "no")
    with server.client() as client:
        client.call("SET", "a", 1)
        client.send_command("SHUTDOWN", "SAVE", "NOW", "FORCE")
        assert client.rest_until_close() == b""
    assert server.wait() == 0
    server.start()
    assert server.call("GET", "a") == b"1"


def test_debug_is_refused_unless_allowed(fresh_server: Callable[..., Process]) -> None:
    server = fresh_server()
    with server.client() as client:
        refused = client.call_parsed("DEBUG", "SLEEP", "0")
        assert isinstance(refused, WireError)
        assert refused.text.startswith(b"ERR DEBUG command not allowed.")


def test_debug_reload_and_digest(server: ServerProcess, client: RawClient) -> None:
    client.call("SET", "a", 1, "EX", 1000)
    client.call("XADD", "s", "1-1", "a", "b")
    client.call("XADD", "s", "2-1", "a", "b")
    client.call("XDEL", "s", "2-1")
    digest = client.call("DEBUG", "DIGEST")
    assert client.call("DEBUG", "RELOAD") == b"+OK\r\n"
    assert client.call("DEBUG", "DIGEST") == digest
    assert client.call("DEBUG", "OBJECT", "s").startswith(b"+Value at:0x")


def test_a_large_stream_is_freed_in_slices(server: ServerProcess, client: RawClient) -> None:
    batch = [("XADD", "s", "*", "a", "b")] * 1000
    for _ in range(20):
        client.pipeline(*batch)
    freed = int(server.info("memory")["lazyfreed_objects"])
    client.call("DEL", "s")
    wait_until(lambda: int(server.info("memory")["lazyfreed_objects"]) > freed)
    assert server.info("memory")["lazyfree_pending_objects"] == "0"


def test_every_help_lists_its_subcommands(client: RawClient) -> None:
    for container in ("CLIENT", "SLOWLOG", "LATENCY", "MEMORY", "ACL", "DEBUG"):
        lines = client.call_parsed(container, "HELP")
        assert isinstance(lines, list)
        assert lines[0].startswith(container.encode() + b" <subcommand>")
        assert len(lines) > 4


def test_lolwut_ends_with_the_version(client: RawClient) -> None:
    text = client.call_parsed("LOLWUT", "VERSION", 5, 1, 2, 3)
    assert isinstance(text, bytes)
    assert re.search(rb"Redis ver\. 8\.\d+\.\d+\n\Z", text)


def test_time_and_lastsave(client: RawClient) -> None:
    now = client.call_parsed("TIME")
    assert isinstance(now, list)
    assert abs(int(now[0]) - time.time()) < 60
    assert 0 <= int(now[1]) < 1_000_000
    saved = client.call_parsed("LASTSAVE")
    assert isinstance(saved, int)
    assert 0 <= time.time() - saved < 10_000


def test_a_master_without_replicas_says_its_role(client: RawClient) -> None:
    """The offset is no 0 where a replica has been here before."""
    assert client.call_parsed("ROLE") == [b"master", info(client, "master_repl_offset"), []]


def test_what_is_due_is_expired_between_two_ticks_too(client: RawClient) -> None:
    """A tick a second would take minutes for it; and LATENCY shows how long a go was."""
    client.call("CONFIG", "SET", "hz", "1", "latency-monitor-threshold", "1")
    try:
        for start in range(0, 200_000, 1000):
            names = [f"mortal:{number}" for number in range(start, start + 1000)]
            words = [word for name in names for word in (name, "")]
            assert client.call("MSETEX", len(names), *words, "PX", 1) == b":1\r\n"
        wait_until(lambda: client.call("DBSIZE") == b":0\r\n", 2 * DEADLINE_S)
        latest = client.call_parsed("LATENCY", "LATEST")
        assert isinstance(latest, list)
        assert b"expire-cycle" in [event[0] for event in latest]
    finally:
        client.call("CONFIG", "SET", "hz", "10", "latency-monitor-threshold", "0")
        client.call("LATENCY", "RESET")


def test_a_collection_is_an_event() -> None:
    monitor = LatencyMonitor(Clock())
    for threshold_ms in (0, 5):
        monitor.threshold_ms = threshold_ms
        monitor.collector("start", {})
        time.sleep(0.01)
        monitor.collector("stop", {})
        assert list(monitor.events) == ([b"gc"] if threshold_ms else [])
    assert monitor.events[b"gc"].highest_ms >= 10
