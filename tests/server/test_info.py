"""INFO: the sections, and figures that must follow what happens."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from support.client import RawClient
from support.process import Process, ServerProcess
from support.waiting import wait_until

DEFAULT = [
    "Server", "Clients", "Memory", "Persistence", "Threads", "Stats", "Replication", "CPU",
    "Hotkeys", "Modules", "Errorstats", "Cluster", "Keyspace", "Keysizes",
]  # fmt: skip
ALL = [
    "Server", "Clients", "Memory", "Persistence", "Threads", "Stats", "Replication", "CPU",
    "Hotkeys", "Modules", "Commandstats", "Errorstats", "Latencystats", "Cluster", "Keyspace",
    "Keysizes",
]  # fmt: skip


def titles(client: RawClient, *sections: str) -> list[str]:
    text = client.call_parsed("INFO", *sections)
    assert isinstance(text, bytes)
    return [line[2:] for line in text.decode().splitlines() if line.startswith("# ")]


def test_sections(fresh_server: Callable[..., Process]) -> None:
    with fresh_server().client() as client:  # without policies, which have one of their own
        assert titles(client) == DEFAULT
        assert titles(client, "default") == DEFAULT
        assert titles(client, "all") == ALL
        assert titles(client, "EVERYTHING") == ALL
        assert titles(client, "keyspace", "Server", "server") == ["Server", "Keyspace"]
        assert titles(client, "default", "commandstats") == sorted(
            [*DEFAULT, "Commandstats"], key=ALL.index
        )
        assert titles(client, "nothing") == []


def fields(server: Process) -> dict[str, list[str]]:
    """The names in each section of INFO, in order; what is of our own left out."""
    text = server.call("INFO", "everything")
    assert isinstance(text, bytes)
    sections: dict[str, list[str]] = {}
    for line in text.decode().splitlines():
        if line.startswith("# "):
            names = sections[line[2:]] = []
        elif line and not line.startswith("headrace_"):
            names.append(line.partition(":")[0])
    return sections


@pytest.mark.since(8, 10)
@pytest.mark.parametrize("aof", ["no", "yes"])
def test_fields_are_those_of_redis(
    fresh_server: Callable[..., Process], fresh_redis: Callable[..., Process], aof: str
) -> None:
    ours, real = [
        fields(fresh("--appendonly", aof, "--bind", "127.0.0.1"))
        for fresh in (fresh_server, fresh_redis)
    ]
    assert list(ours) == list(real)
    for section in ALL:
        if section.endswith("stats") and section != "Stats":
            continue  # by command and by error
        assert real[section] == ours[section] or section == "Modules", section


def test_turns_are_counted(server: ServerProcess, client: RawClient) -> None:
    client.call("CONFIG", "RESETSTAT")
    client.pipeline(*[("PING",)] * 10)
    client.call("DEBUG", "SLEEP", "0.02")
    info = server.info("stats")
    assert int(info["eventloop_cycles"]) >= int(info["eventloop_cycles_with_clients_processing"])
    assert int(info["eventloop_cycles_with_clients_processing"]) >= 2
    assert int(info["eventloop_duration_cmd_sum"]) >= 20_000
    batches = int(info["total_client_processing_events"])
    assert 2 <= batches <= 15
    assert int(info["avg_pipeline_length_sum"]) >= 11
    assert info["avg_pipeline_length_cnt"] == str(batches)
    before = int(info["eventloop_duration_sum"])
    client.call("DEBUG", "POPULATE", 20_000)
    assert int(server.info("stats")["eventloop_duration_sum"]) > before + 2000


def test_rates_of_turns_follow(server: ServerProcess, client: RawClient) -> None:
    def told() -> bool:
        client.call("PING")
        info = server.info("stats")
        names = ("instantaneous_eventloop_cycles_per_sec", "instantaneous_eventloop_duration_usec")
        return all(int(info[name]) > 0 for name in names)

    wait_until(told)


def test_clients_are_active_for_a_second(server: ServerProcess, client: RawClient) -> None:
    others = [server.client() for _ in range(3)]
    for other in others:
        other.call("PING")
    assert int(server.info("clients")["active_clients"]) >= 4
    wait_until(lambda: server.info("clients")["active_clients"] == "1")
    for other in others:
        other.close()


def test_what_slow_commands_took_is_summed(server: ServerProcess, client: RawClient) -> None:
    client.call("CONFIG", "RESETSTAT")
    client.call("DEBUG", "SLEEP", "0.02")
    client.call("DEBUG", "SLEEP", "0.03")
    client.call("SLOWLOG", "RESET")
    info = server.info("stats")
    assert int(info["slowlog_commands_count"]) >= 2
    assert float(info["slowlog_commands_time_ms_max"]) >= 30
    assert float(info["slowlog_commands_time_ms_sum"]) >= 50
    client.call("CONFIG", "RESETSTAT")
    assert server.info("stats")["slowlog_commands_time_ms_sum"] == "0.00"


def test_the_largest_input_is_remembered(server: ServerProcess, client: RawClient) -> None:
    client.call("SET", "big", "x" * 200_000)
    assert int(server.info("clients")["client_recent_max_input_buffer"]) >= 60_000


def test_each_line_is_a_name_and_a_value(client: RawClient) -> None:
    text = client.call_parsed("INFO", "everything")
    assert isinstance(text, bytes)
    assert text.endswith(b"\r\n")
    for line in text.split(b"\r\n"):
        assert line == b"" or line.startswith(b"# ") or b":" in line, line


def test_it_is_a_verbatim_string_in_resp3(client3: RawClient) -> None:
    assert client3.call("INFO", "cluster").startswith(b"=34\r\ntxt:# Cluster\r\n")


def test_server_section_names_the_process(server: ServerProcess) -> None:
    info = server.info("server")
    assert info["process_id"] == str(server.pid)
    assert info["tcp_port"] == str(server.port)
    assert info["redis_mode"] == "standalone"
    assert info["redis_version"] == "8.10.2"
    assert info["headrace_version"]
    assert info["headrace_build"] in ("pure", "compiled")
    assert len(info["run_id"]) == 40


def test_memory_tells_what_is_used_and_what_is_resident(server: ServerProcess) -> None:
    def told() -> bool:
        told_bytes = int(server.info("memory")["used_memory_rss"])
        with open(f"/proc/{server.pid}/statm") as file:
            resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        return abs(told_bytes - resident) < 8 << 20

    wait_until(told)  # it may be letting go of what another test left
    info = server.info("memory")
    used = int(info["used_memory"])
    assert int(info["used_memory_peak"]) >= used
    assert used == int(info["used_memory_overhead"]) + int(info["used_memory_dataset"])
    assert int(info["maxmemory"]) == 0
    ratio = int(info["used_memory_rss"]) / used
    assert float(info["mem_fragmentation_ratio"]) == pytest.approx(ratio, abs=0.02)


def test_memory_falls_when_keys_go(fresh_server: Callable[..., Process]) -> None:
    server = fresh_server()
    before = int(server.info("memory")["used_memory"])
    for number in range(300):
        server.call("SET", f"key:{number}", "x" * 1000)
    assert int(server.info("memory")["used_memory"]) > before + 300_000
    server.call("FLUSHALL")
    assert int(server.info("memory")["used_memory"]) == before


def test_memory_grows_with_the_data(fresh_server: Callable[..., Process]) -> None:
    server = fresh_server()  # one that has been used may still hold what was freed
    before = int(server.info("memory")["used_memory_dataset"])
    server.call("SET", "big", "x" * 30_000_000)
    assert int(server.info("memory")["used_memory_dataset"]) > before + 25_000_000


def test_keyspace_counts_keys_and_deadlines(server: ServerProcess, client: RawClient) -> None:
    assert "db0" not in server.info("keyspace")
    client.call("SET", "a", 1)
    client.call("SET", "b", 1, "EX", 100)
    client.call("SELECT", 7)
    client.call("XADD", "s", "*", "a", "b")
    info = server.info("keyspace")
    assert info["db7"] == "keys=1,expires=0,avg_ttl=0,subexpiry=0"
    head, _, rest = info["db0"].partition(",avg_ttl=")
    assert head == "keys=2,expires=1"
    assert 90_000 < int(rest.split(",")[0]) <= 100_000


def test_commands_are_counted_by_name(server: ServerProcess, client: RawClient) -> None:
    client.call("CONFIG", "RESETSTAT")
    for _ in range(5):
        client.call("GET", "a")
    client.call("CLIENT", "ID")
    client.call("INCRBY", "a", "b")
    client.call("GET")
    client.call("MULTI")
    client.call("ECHO", "hi")
    client.call("EXEC")
    info = server.info("commandstats")
    assert info["cmdstat_get"].startswith("calls=5,usec=")
    assert info["cmdstat_get"].endswith("rejected_calls=1,failed_calls=0")
    assert info["cmdstat_client|id"].startswith("calls=1,")
    assert info["cmdstat_incrby"].endswith("rejected_calls=0,failed_calls=1")
    assert info["cmdstat_echo"].startswith("calls=1,")
    assert info["cmdstat_exec"].startswith("calls=1,")
    total = int(server.info("stats")["total_commands_processed"])
    assert 11 <= total <= 14
    errors = server.info("errorstats")
    assert errors["errorstat_ERR"] == "count=2"
    assert server.info("stats")["total_error_replies"] == "2"


def test_percentiles_by_command(server: ServerProcess, client: RawClient) -> None:
    client.call("CONFIG", "RESETSTAT")
    client.call("DEBUG", "SLEEP", "0.05")
    line = server.info("latencystats")["latency_percentiles_usec_debug"]
    parts = dict(part.split("=") for part in line.split(","))
    assert list(parts) == ["p50", "p99", "p99.9"]
    assert 50_000 <= float(parts["p50"]) <= 60_000_000
    client.call("CONFIG", "SET", "latency-tracking", "no")
    try:
        assert server.info("latencystats") == {}
    finally:
        client.call("CONFIG", "SET", "latency-tracking", "yes")


def test_clients_who_wait_listen_and_watch(server: ServerProcess, client: RawClient) -> None:
    with server.client() as blocked, server.client() as listener:
        before = int(server.info("clients")["connected_clients"])
        blocked.send_command("XREAD", "BLOCK", 100_000, "STREAMS", "x", "y", "$", "$")
        listener.call("SUBSCRIBE", "a", "b")
        client.call("WATCH", "k1", "k2")
        wait_until(lambda: server.info("clients")["blocked_clients"] == "1")
        info = server.info("clients")
        assert info["connected_clients"] == str(before)
        assert info["total_blocking_keys"] == "2"
        assert info["clients_in_timeout_table"] == "1"
        assert info["pubsub_clients"] == "1"
        assert info["watching_clients"] == "1"
        assert info["total_watched_keys"] == "2"
        assert server.info("stats")["pubsub_channels"] == "2"


def test_operations_per_second(server: ServerProcess, client: RawClient) -> None:
    def is_counted() -> bool:
        client.pipeline(*[("PING",)] * 500)
        return int(server.info("stats")["instantaneous_ops_per_sec"]) >= 100

    wait_until(is_counted)
    assert float(server.info("stats")["instantaneous_input_kbps"]) > 0


def test_hits_misses_and_expiries(server: ServerProcess, client: RawClient) -> None:
    client.call("CONFIG", "RESETSTAT")
    client.call("SET", "a", 1)
    client.call("GET", "a")
    client.call("GET", "none")
    client.call("SET", "short", 1, "PX", 1)
    wait_until(lambda: server.info("stats")["expired_keys"] == "1")
    info = server.info("stats")
    assert (info["keyspace_hits"], info["keyspace_misses"]) == ("1", "1")


def test_append_only_file(fresh_server: Callable[..., Process]) -> None:
    server = fresh_server("--appendonly", "yes", "--appendfsync", "always")
    with server.client() as client:
        client.call("SET", "a", 1)
        info = server.info("persistence")
        assert info["aof_enabled"] == "1"
        assert info["aof_last_write_status"] == "ok"
        assert int(info["aof_current_size"]) > 0
        assert info["rdb_changes_since_last_save"] == "1"
