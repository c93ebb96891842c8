"""HOTKEYS beside a real Redis: the same errors, states and figures, times aside."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import pytest
from conftest import Factory

from support.client import RawClient, encode
from support.process import Pair, Process, free_port
from support.waiting import wait_until

pytestmark = [pytest.mark.judge, pytest.mark.since(8, 10)]

# Figures of which each server has its own; that they are there, and in which place, is compared.
TIMES = (
    *("all-commands-all-slots-us", "all-commands-selected-slots-us"),
    *("sampled-commands-selected-slots-us", "collection-start-time-unix-ms"),
    *("collection-duration-ms", "total-cpu-time-user-ms", "total-cpu-time-sys-ms"),
)


@pytest.fixture(autouse=True)
def none_before(pair: Pair) -> Iterator[None]:
    """No search is left by another test, nor for one."""
    yield
    for client in (pair.ours, pair.real):
        client.call("HOTKEYS", "STOP")
        client.call("HOTKEYS", "RESET")


def found(client: RawClient) -> dict[str, object]:
    """Return what a search has found, in the order of the reply."""
    shown = client.call_parsed("HOTKEYS", "GET")
    assert isinstance(shown, list)
    assert len(shown) == 1
    facts = shown[0]
    if isinstance(facts, list):
        facts = dict(zip(facts[::2], facts[1::2], strict=True))
    assert isinstance(facts, dict)
    return {name.decode(): value for name, value in facts.items()}


def both_found(pair: Pair) -> dict[str, object]:
    """Return what both have found, which has to be the same in the same order, times aside."""
    ours, real = found(pair.ours), found(pair.real)
    for facts in (ours, real):
        for name in TIMES:
            if name in facts:
                assert isinstance(facts[name], int)
                facts[name] = -1
        facts.pop("by-cpu-time-us", None)
    assert list(ours.items()) == list(real.items())
    return ours


def keys(facts: dict[str, object], name: str) -> dict[bytes, int]:
    """Keys and what they took, the hottest first."""
    shown = facts[name]
    assert isinstance(shown, list)
    return dict(zip(shown[::2], shown[1::2], strict=True))


def run(pair: Pair, text: str) -> None:
    for line in text.strip().splitlines():
        pair.both(*shlex.split(line))


ERRORS = """
HOTKEYS
HOTKEYS foo
HOTKEYS STOP x
HOTKEYS GET x
HOTKEYS RESET x
HOTKEYS HELP x
HOTKEYS START
HOTKEYS START METRICS
HOTKEYS START foo 1 CPU
HOTKEYS START COUNT 3 METRICS 1 CPU
HOTKEYS START METRICS x CPU
HOTKEYS START METRICS 0 CPU
HOTKEYS START METRICS -1 CPU
HOTKEYS START METRICS 01 CPU
HOTKEYS START METRICS 3 CPU NET
HOTKEYS START METRICS 1
HOTKEYS START METRICS 2 CPU
HOTKEYS START METRICS 1 CPU NET
HOTKEYS START METRICS 1 GPU
HOTKEYS START METRICS 2 GPU DISK
HOTKEYS START METRICS 2 CPU cpu
HOTKEYS START METRICS 2 NET net
HOTKEYS START METRICS 1 CPU METRICS 1 NET
HOTKEYS START METRICS 1 CPU foo
HOTKEYS START METRICS 1 CPU foo 1
HOTKEYS START METRICS 1 CPU COUNT
HOTKEYS START METRICS 1 CPU COUNT 0
HOTKEYS START METRICS 1 CPU COUNT 65
HOTKEYS START METRICS 1 CPU COUNT x
HOTKEYS START METRICS 1 CPU DURATION
HOTKEYS START METRICS 1 CPU DURATION 0
HOTKEYS START METRICS 1 CPU DURATION -1
HOTKEYS START METRICS 1 CPU DURATION 1000001
HOTKEYS START METRICS 1 CPU SAMPLE 0
HOTKEYS START METRICS 1 CPU SAMPLE 2147483648
HOTKEYS START METRICS 1 CPU SAMPLE 1.5
HOTKEYS START METRICS 1 CPU SLOTS
HOTKEYS START METRICS 1 CPU SLOTS 1
HOTKEYS START METRICS 1 CPU SLOTS x
HOTKEYS START METRICS 1 CPU SLOTS 1 0
HOTKEYS START METRICS 1 CPU COUNT 3 COUNT x
HOTKEYS GET
HOTKEYS STOP
"""


def test_errors_begin_nothing(pair: Pair) -> None:
    run(pair, ERRORS)
    assert pair.both("INFO", "hotkeys") == b"$11\r\n# Hotkeys\r\n\r\n"


@pytest.mark.parametrize("protocol", [2, 3])
def test_states(pair: Pair, protocol: int) -> None:
    for client in (pair.ours, pair.real):
        client.call("HELLO", protocol)
    run(pair, "HOTKEYS GET\nHOTKEYS STOP\nHOTKEYS RESET\nHOTKEYS RESET")
    pair.both("HOTKEYS", "START", "METRICS", 2, "net", "CPU")
    pair.both("INFO", "hotkeys")
    run(pair, "HOTKEYS RESET\nHOTKEYS START METRICS 1 CPU\nHOTKEYS START\nHOTKEYS START x")
    both_found(pair)
    run(pair, "HOTKEYS STOP\nHOTKEYS STOP")
    pair.both("INFO", "hotkeys")
    both_found(pair)
    pair.both("HOTKEYS", "START", "METRICS", 1, "NET")  # what was found before is forgotten
    both_found(pair)
    run(pair, "HOTKEYS STOP\nHOTKEYS RESET\nHOTKEYS GET\nINFO hotkeys")


@pytest.mark.parametrize("asked", ["1 CPU", "1 NET", "2 CPU NET", "2 NET other", "2 other CPU"])
@pytest.mark.parametrize("options", ["", "SAMPLE 3", "COUNT 2 DURATION 60", "COUNT 3 COUNT 64"])
def test_what_is_told(pair: Pair, asked: str, options: str) -> None:
    run(pair, f"HOTKEYS START METRICS {asked} {options}")
    both_found(pair)


def test_it_is_for_no_script_and_may_be_queued(pair: Pair) -> None:
    pair.both("EVAL", "return redis.call('HOTKEYS', 'GET')", 0)
    for client in (pair.ours, pair.real):
        assert client.call("MULTI") == b"+OK\r\n"
        client.call("HOTKEYS", "START", "METRICS", "1", "NET")
        client.call("SET", "k", "v")
        client.call("HOTKEYS", "STOP")
        client.call("GET", "k")
    pair.both("EXEC")
    assert both_found(pair)["by-net-bytes"] == [b"k", 28]


COUNTED = {
    "read and written": "SET a b\nGET a\nGET a\nGET none",
    "several keys": "MSET a 1 b 22\nMGET a b none\nMGET a c\nEXISTS a a a\nRENAME a c",
    "no keys": "PING\nECHO x\nDBSIZE\nSELECT 1\nSET a 1\nSELECT 0\nPUBLISH c m\nSPUBLISH c m",
    "errors": "LPUSH a 1\nGET a\nGET\nnone a\nSET a b EX x\nSET a b EX 0",
    "subcommands": "SET a 12\nOBJECT ENCODING a\nXADD s 1-1 f v\nXINFO GROUPS s\nMEMORY USAGE no",
    "keys that have to be found": "SORT a BY x* GET # STORE dst\nXREAD COUNT 1 STREAMS a b 0 0",
    "large": f"SET a {'x' * 20_000}\nGET a\nGETRANGE a 0 99\nAPPEND b {'y' * 300}",
    "a script's keys": (
        "EVAL \"return redis.call('GET', 'x')\" 2 a b\nEVAL \"return redis.call('SET', 'x', 1)\" 0"
    ),
    "watched": "WATCH a b\nUNWATCH",
    "emptied": "SET a 1\nFLUSHALL\nCONFIG RESETSTAT\nGET a",
    "a transaction": "MULTI\nSET a 1\nPING\nGET a\nMGET a b\nEXEC",
    "refused transactions": "MULTI\nSET a 1\nSET b\nEXEC\nMULTI\nGET c\nDISCARD",
    "a script in a transaction": 'MULTI\nEVAL "return 1" 1 a\nEXEC',
    "served at once": "RPUSH l 1 2\nBLPOP l 0\nBLMOVE l m LEFT RIGHT 0",
    "empty names": 'SET "" x\nGET ""\nSET a ""',
}


@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("text", COUNTED.values(), ids=COUNTED)
def test_bytes_of_keys(pair: Pair, text: str, protocol: int) -> None:
    for client in (pair.ours, pair.real):
        client.call("HELLO", protocol)
    pair.both("HOTKEYS", "START", "METRICS", 2, "CPU", "NET")
    run(pair, text)
    ours, real = found(pair.ours), found(pair.real)
    for name in ("net-bytes-all-commands-all-slots", "total-net-bytes"):
        assert ours[name] == real[name]
    assert keys(ours, "by-net-bytes") == keys(real, "by-net-bytes")  # equals in any order


def test_hash_replies_by_protocol(pair: Pair) -> None:
    pair.both("HSET", "h", "f", "v", "g", "w")
    pair.both("HOTKEYS", "START", "METRICS", 1, "NET")
    pair.both("HGETALL", "h")
    for client in (pair.ours, pair.real):
        client.call("HELLO", 3)
    pair.both("HGETALL", "h")
    both_found(pair)


def test_a_pipeline(pair: Pair) -> None:
    requests = encode("SET", "a", "1") * 3 + encode("GET", "a") + encode("INCR", "b") * 20
    pair.both("HOTKEYS", "START", "METRICS", 1, "NET")
    for client in (pair.ours, pair.real):
        client.send(requests)
        for _ in range(24):
            client.read()
    both_found(pair)


def test_a_silent_client(pair: Pair) -> None:
    pair.both("HOTKEYS", "START", "METRICS", 1, "NET")
    for client in (pair.ours, pair.real):
        client.send(encode("CLIENT", "REPLY", "OFF") + encode("SET", "a", "1"))
        client.send(encode("CLIENT", "REPLY", "ON"))
        client.read()
    assert both_found(pair)["by-net-bytes"] == [b"a", 27]


def test_who_waits_does_not_count(pair: Pair, server: Process, redis_server: Process) -> None:
    pair.both("HOTKEYS", "START", "METRICS", 1, "NET")
    waiting = [server.client(), redis_server.client()]
    try:
        for client in waiting:
            client.send(encode("BLPOP", "no", "0.01"))
            assert client.read() == b"*-1\r\n"
            client.send(encode("BLPOP", "l", "m", "0"))
        for client in (pair.ours, pair.real):
            wait_until_told(client, b"blocked_clients:1", "INFO", "clients")
        pair.both("RPUSH", "m", "x")
        for client in waiting:
            client.read()
    finally:
        for client in waiting:
            client.close()
    assert both_found(pair)["by-net-bytes"] == [b"m", 33]


def wait_until_told(client: RawClient, what: bytes, *request: str) -> None:
    """Ask until the answer has ``what`` in it."""
    wait_until(lambda: what in client.call(*request))


def test_a_request_that_is_run_in_slices(pair: Pair) -> None:
    words = [word for number in range(20_000) for word in (f"k{number % 40}", "v")]
    pair.both("HOTKEYS", "START", "METRICS", 1, "NET", "COUNT", 64)
    pair.both("MSET", *words)
    ours, real = found(pair.ours), found(pair.real)
    assert ours["total-net-bytes"] == real["total-net-bytes"]
    assert keys(ours, "by-net-bytes") == keys(real, "by-net-bytes")


def test_what_takes_time_is_hot(pair: Pair) -> None:
    pair.both("RPUSH", "long", *range(5000))
    pair.both("HOTKEYS", "START", "METRICS", 1, "CPU")
    for number in range(200):
        pair.both("SET", f"k{number}", 1)
    for _ in range(20):
        pair.both("LPOS", "long", "none")
    for client in (pair.ours, pair.real):
        facts = found(client)
        by_time = keys(facts, "by-cpu-time-us")
        assert next(iter(by_time)) == b"long"
        assert list(by_time.values()) == sorted(by_time.values(), reverse=True)
        spent = facts["all-commands-all-slots-us"]
        assert isinstance(spent, int)
        assert by_time[b"long"] <= spent


def test_only_the_hottest_are_shown(pair: Pair) -> None:
    pair.both("HOTKEYS", "START", "METRICS", 2, "CPU", "NET", "COUNT", 4)
    for number in range(30):
        pair.both("SET", f"k{number:02}", "v" * number)
    facts = both_found(pair)
    assert list(keys(facts, "by-net-bytes")) == [b"k29", b"k28", b"k27", b"k26"]


def test_hot_keys_among_many(pair: Pair) -> None:
    """More keys than are kept: what is shown is what is hot, and never too much."""
    pair.both("HOTKEYS", "START", "METRICS", 1, "NET")
    requests = b""
    for number in range(6000):
        key = f"hot{number % 8}" if number % 2 else f"cold{number}"
        requests += encode("GET", key)
    each = len(encode("GET", "hot1")) + 5
    for client in (pair.ours, pair.real):
        client.send(requests)
        for _ in range(6000):
            client.read()
        hottest = list(keys(found(client), "by-net-bytes").items())[:4]
        assert {key for key, _ in hottest} == {b"hot1", b"hot3", b"hot5", b"hot7"}
        for _, shown in hottest:
            assert 0.9 * 750 * each <= shown <= 750 * each


def test_a_sample(pair: Pair) -> None:
    pair.both("HOTKEYS", "START", "METRICS", 1, "NET", "SAMPLE", 4)
    for client in (pair.ours, pair.real):
        client.send(encode("GET", "k") * 4000)
        for _ in range(4000):
            client.read()
    ours = found(pair.ours)
    assert ours["net-bytes-all-commands-all-slots"] == 4000 * 25
    assert list(ours) == list(found(pair.real))
    seen = ours["total-net-bytes"]
    assert isinstance(seen, int)
    assert 800 * 25 <= seen <= 1200 * 25  # 7 standard deviations


def test_it_ends_by_itself(pair: Pair) -> None:
    pair.both("HOTKEYS", "START", "METRICS", 1, "NET", "DURATION", 1)
    pair.both("SET", "a", 1)
    for client in (pair.ours, pair.real):
        wait_until_told(client, b"hotkeys-tracking-active:0", "INFO", "hotkeys")
    pair.both("SET", "a", 1)
    facts = both_found(pair)
    assert facts["by-net-bytes"] == [b"a", 32]
    took_ms = found(pair.ours)["collection-duration-ms"]
    assert isinstance(took_ms, int)
    assert 1000 <= took_ms < 60_000
    run(pair, "HOTKEYS STOP\nHOTKEYS RESET\nHOTKEYS GET")


# In a cluster


@pytest.fixture
def nodes(fresh_server: Factory, fresh_redis: Factory) -> Iterator[Pair]:
    ours = fresh_server("--cluster-enabled", "yes")
    real = fresh_redis("--cluster-enabled", "yes", "--cluster-port", str(free_port()))
    assert real.call("CLUSTER", "ADDSLOTSRANGE", 0, 16383) == b"OK"
    both = Pair(ours.client(), real.client(), (8, 10))
    wait_until_told(both.real, b"cluster_state:ok", "CLUSTER", "INFO")
    yield both
    both.close()


OF_SLOTS = """
HOTKEYS START METRICS 1 CPU SLOTS
HOTKEYS START METRICS 1 CPU SLOTS 0
HOTKEYS START METRICS 1 CPU SLOTS 16385 0
HOTKEYS START METRICS 1 CPU SLOTS x 0
HOTKEYS START METRICS 1 CPU SLOTS 1
HOTKEYS START METRICS 1 CPU SLOTS 2 0
HOTKEYS START METRICS 1 CPU SLOTS 1 x
HOTKEYS START METRICS 1 CPU SLOTS 1 -1
HOTKEYS START METRICS 1 CPU SLOTS 1 16384
HOTKEYS START METRICS 1 CPU SLOTS 2 0 0
HOTKEYS START METRICS 1 CPU SLOTS 2 x 0
HOTKEYS START METRICS 1 CPU SLOTS 1 0 1
HOTKEYS START METRICS 1 CPU SLOTS 1 0 SLOTS x
HOTKEYS START METRICS 1 CPU SLOTS 1 0 SLOTS
HOTKEYS START METRICS 1 CPU SLOTS 1 0 COUNT x
"""


def test_slots(nodes: Pair) -> None:
    run(nodes, OF_SLOTS)
    for asked in ("", "SLOTS 1 16383", "SLOTS 5 3 10 4 5 9", "SLOTS 3 9 0 1", "SLOTS 2 0 5"):
        for ratio in (1, 2):
            run(nodes, f"HOTKEYS START METRICS 2 CPU NET SAMPLE {ratio} {asked}")
            both_found(nodes)
            nodes.both("HOTKEYS", "STOP")


def test_only_keys_of_the_slots_count(nodes: Pair) -> None:
    slots = [nodes.both("CLUSTER", "KEYSLOT", key)[1:-2] for key in ("a", "b")]
    nodes.both("HOTKEYS", "START", "METRICS", 1, "NET", "SLOTS", 2, *slots)
    run(nodes, 'SET a 1\nSET b 22\nSET c 333\nMGET {a}1 {a}2\nEVAL "return 1" 1 c\nEVAL "" 1 a')
    run(nodes, "MULTI\nGET a\nEXEC\nMULTI\nGET c\nEXEC")
    ours, real = found(nodes.ours), found(nodes.real)
    assert keys(ours, "by-net-bytes") == keys(real, "by-net-bytes")
    for name in ("all-commands-all-slots", "all-commands-selected-slots"):
        assert ours[f"net-bytes-{name}"] == real[f"net-bytes-{name}"]
