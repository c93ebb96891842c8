"""Names and values: those of redis_exporter for what both have, and ours."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from support import metrics
from support.client import WireError
from support.process import ServerProcess, free_port
from support.waiting import wait_until

pytest.importorskip("prometheus_client", reason="only with the extra `metrics`")
pytest.importorskip("h11", reason="only with the extra `metrics`")

Start = Callable[..., ServerProcess]

# What is about the exporter itself, or comes from a misunderstanding of a line of INFO.
OF_THE_EXPORTER = re.compile(
    r"redis_(exporter_|target_scrape_|last_key_groups_scrape_|db_keys_cached$|db\d+_distrib_)|"
    r"go_|process_|promhttp_"
)
# What the exporter's own questions change, or time.
MOVING = re.compile(
    r"redis_(allocator_|mem|uptime|start_time|cpu_|net_|commands_processed|connect|keyspace_hits|"
    r"client_recent|lazyfreed|rdb_changes|total_reads|total_writes|slowlog|last_slow|eventloop_|"
    r"instantaneous|aof_buffer_length|aof_pending|expire_cycle|errors_total|total_error)"
)
OF_TRAFFIC = {"xadd", "xreadgroup", "xack", "xdel", "xgroup|create", "set", "get", "incr"}


def use(server: ServerProcess) -> None:
    """Streams with groups, consumers, deletions and idempotent IDs; keys; errors."""
    for stream in ("orders", "jobs", 'odd "name"\\ ü'):
        for number in range(30):
            server.call("XADD", stream, "*", "field", str(number))
        server.call("XGROUP", "CREATE", stream, "g", "0")
        server.call("XGROUP", "CREATE", stream, "h", "$")
        server.call("XREADGROUP", "GROUP", "g", "one", "COUNT", "10", "STREAMS", stream, ">")
        server.call("XREADGROUP", "GROUP", "g", "two", "COUNT", "5", "STREAMS", stream, ">")
        entries = server.call("XRANGE", stream, "-", "+", "COUNT", "3")
        assert isinstance(entries, list)
        server.call("XACK", stream, "g", *[entry[0] for entry in entries])
        server.call("XDEL", stream, entries[0][0])
    for iid in ("1", "2", "2"):
        server.call("XADD", "sent", "IDMP", "producer", iid, "*", "f", "v")
    server.call("XADD", "sent", "IDMP", "another", "1", "*", "f", "v")
    server.call("SET", "key", "value", "EX", "1000")
    server.call("GET", "key")
    server.call("GET", "none")
    with pytest.raises(WireError):
        server.call("INCR", "sent")


@pytest.fixture
def measured(fresh_server: Start) -> tuple[ServerProcess, int]:
    """A server with some traffic behind it, and its metrics-port."""
    port = free_port()
    server = fresh_server(*("--metrics-port", str(port), "--metrics-consumers", "yes"))
    use(server)
    return server, port


@pytest.mark.skipif(metrics.EXPORTER is None, reason="no prometheus-redis-exporter here (apt)")
def test_as_redis_exporter(measured: tuple[ServerProcess, int]) -> None:
    server, port = measured
    with metrics.exporter(server) as judge:
        theirs = metrics.samples(metrics.scrape(judge))
        ours = metrics.samples(metrics.scrape(port))
    wanted = {place for place in theirs if not OF_THE_EXPORTER.match(place[0])}
    assert {name for name, _ in wanted} - {name for name, _ in ours} == set()
    compared = 0
    for name, labels in sorted(wanted, key=str):
        told = dict(labels)
        if MOVING.match(name) or told.get("cmd", "xadd") not in OF_TRAFFIC:
            continue
        if name == "redis_instance_info":  # it has more labels since
            (known,) = (set(more) for one, more in ours if one == name)
            assert labels <= known
            continue
        if "quantile" in told:
            labels = frozenset((*(labels - {("quantile", told["quantile"])}), *labels))
        close = 30.0 if "idle_seconds" in name or "ttl_seconds" in name else 0.0
        assert ours[name, labels] == pytest.approx(theirs[name, labels], abs=close), (name, told)
        compared += 1
    assert compared > 200


def test_what_newer_exporters_report_of_streams(measured: tuple[ServerProcess, int]) -> None:
    """Debian's is too old to judge these: they are what XINFO says."""
    server, port = measured
    page = metrics.scrape(port)
    info = server.call("XINFO", "STREAM", "sent")
    assert isinstance(info, list)
    told = dict(zip(info[::2], info[1::2], strict=True))
    for name, field in {
        "redis_stream_idmp_duration_seconds": b"idmp-duration",
        "redis_stream_idmp_max_size": b"idmp-maxsize",
        "redis_stream_idmp_producer_ids_tracked": b"pids-tracked",
        "redis_stream_idmp_idempotent_ids_tracked": b"iids-tracked",
        "redis_stream_idmp_entries_added_total": b"iids-added",
        "redis_stream_idmp_duplicates_total": b"iids-duplicates",
        "redis_stream_entries_added_total": b"entries-added",
    }.items():
        assert metrics.value(page, name, db="db0", stream="sent") == told[field], name
    of_group = {"db": "db0", "stream": "orders", "group": "g"}
    assert metrics.value(page, "redis_stream_group_lag", **of_group) == 15
    assert metrics.value(page, "redis_stream_group_entries_read", **of_group) == 15
    assert metrics.value(page, "redis_stream_group_messages_nacked", **of_group) == 0
    assert metrics.value(page, "redis_stream_idmp_duplicates_total", db="db0", stream="sent") == 1


def test_deliveries_are_counted(measured: tuple[ServerProcess, int]) -> None:
    server, port = measured
    of_group = {"db": "db0", "stream": "orders", "group": "g"}

    def counted() -> tuple[float, float]:
        page = metrics.scrape(port)
        name = "headrace_stream_group_%sdeliveries_total"
        all_of_them = metrics.value(page, name % "", **of_group)
        return all_of_them, metrics.value(page, name % "re", **of_group)

    assert counted() == (15, 0)
    server.call("XAUTOCLAIM", "orders", "g", "two", "0", "0", "COUNT", "4")
    assert counted() == (19, 4)
    server.call("XREADGROUP", "GROUP", "g", "two", "CLAIM", "0", "STREAMS", "orders", ">")
    assert counted() == (46, 16)  # 12 pending ones again, 15 new


def test_ages_of_groups(fresh_server: Start) -> None:
    port = free_port()
    server = fresh_server("--metrics-port", str(port), "--enable-debug-command", "yes")
    server.call("DEBUG", "CLOCK", "FREEZE")
    server.call("XADD", "s", "*", "f", "v")
    server.call("XGROUP", "CREATE", "s", "g", "0")
    of_group = {"db": "db0", "stream": "s", "group": "g"}
    server.call("DEBUG", "CLOCK", "SHIFT", "7000")
    page = metrics.scrape(port)
    assert metrics.value(page, "headrace_stream_group_lag_seconds", **of_group) == 7
    assert metrics.value(page, "headrace_stream_group_oldest_pending_seconds", **of_group) == 0
    server.call("XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">")
    server.call("DEBUG", "CLOCK", "SHIFT", "3000")
    page = metrics.scrape(port)
    assert metrics.value(page, "headrace_stream_group_lag_seconds", **of_group) == 0
    assert metrics.value(page, "headrace_stream_group_oldest_pending_seconds", **of_group) == 10
    assert metrics.value(page, "headrace_stream_group_longest_idle_seconds", **of_group) == 3


def test_what_policies_hold_back(fresh_server: Start) -> None:
    port = free_port()
    server = fresh_server("--metrics-port", str(port))
    server.call("XGROUP", "CREATE", "s", "g", "0", "MKSTREAM")
    server.call("XPOLICY", "SET", "s", "GROUP", "g", "order-key", "customer")
    for _ in range(3):
        server.call("XADD", "s", "*", "customer", "one")
    server.call("XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">")
    page = metrics.scrape(port)
    of_group = {"db": "db0", "stream": "s", "group": "g"}
    assert metrics.value(page, "headrace_stream_group_held", **of_group) == 2
    assert metrics.value(page, "headrace_stream_group_ready", **of_group) == 0
    assert metrics.value(page, "redis_stream_group_messages_pending", **of_group) == 1
    assert metrics.value(page, "redis_stream_group_lag", **of_group) == 2
    assert metrics.value(page, "headrace_policy_groups") == 1


def test_histograms_count_what_ran(fresh_server: Start) -> None:
    port = free_port()
    server = fresh_server(
        *("--metrics-port", str(port), "--appendonly", "yes", "--appendfsync", "always")
    )
    for _ in range(5):
        server.call("XADD", "s", "*", "f", "v")
    page = metrics.scrape(port)
    name = "headrace_command_latency_seconds"
    assert metrics.value(page, f"{name}_count", cmd="xadd") == 5
    assert metrics.value(page, f"{name}_bucket", cmd="xadd", le="+Inf") == 5
    assert metrics.value(page, "headrace_aof_fsync_seconds_count") >= 5
    assert metrics.value(page, "headrace_aof_fsync_seconds_sum") > 0
    server.call("CONFIG", "RESETSTAT")
    assert metrics.value(metrics.scrape(port), "headrace_aof_fsync_seconds_count") == 0


def test_openmetrics_is_understood(measured: tuple[ServerProcess, int]) -> None:
    from prometheus_client.openmetrics.parser import text_string_to_metric_families

    _, port = measured
    status, page = metrics.get(port, Accept=metrics.OPENMETRICS)
    assert status == 200
    assert page.endswith("# EOF\n")
    found = {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(page)  # type: ignore[no-untyped-call]
        for sample in family.samples
    }
    plain = metrics.samples(metrics.scrape(port))
    assert set(plain) - set(found) == set()
    odd = frozenset({("db", "db0"), ("stream", 'odd "name"\\ ü')})
    assert found["redis_stream_length", odd] == 29


@pytest.mark.skipif(metrics.PROMTOOL is None, reason="no promtool here (apt install prometheus)")
def test_promtool_has_nothing_to_say_of_our_names(measured: tuple[ServerProcess, int]) -> None:
    """The names of redis_exporter break rules of Prometheus here and there, as they do there."""
    assert metrics.PROMTOOL is not None
    _, port = measured
    checked = subprocess.run(
        [metrics.PROMTOOL, "check", "metrics"],
        input=metrics.scrape(port),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert checked.returncode in (0, 3), checked.stderr  # 3: it would rather have other names
    said = [line for line in checked.stderr.splitlines() if line]
    assert [line for line in said if not line.startswith("redis_")] == []


def test_what_dashboards_and_rules_of_redis_exporter_ask_for_is_there() -> None:
    """Of Grafana's dashboard 763 and of redis-mixin, but for what they make up themselves."""
    from headrace.metrics.page import FAMILIES

    asked = """blocked_clients cluster_slots_fail cluster_slots_pfail cluster_state
        commands_duration_seconds_total commands_total connected_clients connected_slaves db_keys
        db_keys_expiring evicted_keys_total expired_keys_total keyspace_hits_total
        keyspace_misses_total master_last_io_seconds_ago memory_max_bytes memory_used_bytes
        memory_used_rss_bytes net_input_bytes_total net_output_bytes_total
        total_system_memory_bytes up uptime_in_seconds"""
    there = {family.name for family in FAMILIES}
    assert {f"redis_{name}" for name in asked.split()} - there == set()


def test_every_family_of_the_table_is_documented() -> None:
    from headrace.metrics.page import FAMILIES

    page = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()
    ours = [family.name for family in FAMILIES if family.name.startswith("headrace_")]
    assert [name for name in ours if f"`{name}`" not in page] == []
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)


# Replicas, regions, clusters


@pytest.mark.skipif(metrics.EXPORTER is None, reason="no prometheus-redis-exporter here (apt)")
def test_a_master_and_its_replica_as_redis_exporter(fresh_server: Start) -> None:
    ports = free_port(), free_port()
    master = fresh_server("--metrics-port", str(ports[0]))
    replica = fresh_server(
        *("--metrics-port", str(ports[1]), "--replicaof", f"127.0.0.1 {master.port}")
    )
    wait_until(lambda: replica.info("replication").get("master_link_status") == "up")
    wait_until(lambda: "state=online" in master.info("replication").get("slave0", ""))
    wanted = re.compile(r"redis_(connected_slave|master_link|master_sync|slave_info|slave_prio)")
    found = 0
    for server, port in zip((master, replica), ports, strict=True):
        with metrics.exporter(server) as judge:
            theirs = metrics.samples(metrics.scrape(judge))
            ours = metrics.samples(metrics.scrape(port))
        for place, value in theirs.items():
            if wanted.match(place[0]):
                found += 1
                # The offset grows, and the lag is a second or none.
                assert ours[place] == pytest.approx(value, abs=1000 if "offset" in place[0] else 1)
    assert found >= 6


def test_a_cluster(fresh_server: Start) -> None:
    port = free_port()
    fresh_server("--cluster-enabled", "yes", "--metrics-port", str(port))
    page = metrics.scrape(port)
    assert metrics.value(page, "redis_cluster_state") == 1
    assert metrics.value(page, "redis_cluster_slots_fail") == 0
    assert metrics.value(page, "redis_cluster_slots_ok") == 16384
    assert {labels for name, labels in metrics.samples(page) if name == "redis_db_keys"} == {
        frozenset({("db", "db0")})
    }


def test_regions(fresh_server: Start) -> None:
    ports, links = (free_port(), free_port()), (free_port(), free_port())
    servers = []
    for own, other in ((0, 1), (1, 0)):
        peer = f"{other + 1} 127.0.0.1 {links[other]}"
        servers.append(
            fresh_server(
                *("--appendonly", "yes", "--aa-region-id", str(own + 1), "--aa-peers", peer),
                *("--aa-port", str(links[own]), "--aa-allow-plaintext", "yes"),
                *("--metrics-port", str(ports[own])),
            )
        )

    def up() -> float:
        return metrics.value(metrics.scrape(ports[0]), "headrace_region_up", peer="2")

    wait_until(lambda: up() == 1)
    wait_until(lambda: servers[0].info("activeactive")["aa_writable"] == "1")
    servers[0].call("XGROUP", "CREATE", "s", "g", "0", "MKSTREAM")
    servers[0].call("XADD", "s", "*", "f", "v")
    page = metrics.scrape(ports[0])
    assert metrics.value(page, "headrace_region_lag_seconds", peer="2") >= 0
    assert metrics.value(page, "headrace_region_missing_records", peer="2") == 0
    assert metrics.value(page, "redis_stream_group_lag", db="db0", stream="s", group="g") == 1
    servers[1].kill()
    wait_until(lambda: up() == 0)
