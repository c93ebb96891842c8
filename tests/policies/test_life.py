"""How long entries, consumers and groups live: bounds of streams, ``keep-alive``, idle groups."""

from __future__ import annotations

import time

from conftest import Factory

from support.client import Argument, RawClient, WireError, encode
from support.policy_calls import (
    AHEAD_MS,
    ALL,
    BLOCKING,
    add,
    figures,
    letters,
    policy,
    read,
    shift,
)
from support.process import Process
from support.waiting import wait_until

FULL = WireError(b"OOM the stream is full: overflow reject")


def bound(client: RawClient, *words: Argument) -> None:
    assert client.call_parsed("XPOLICY", "SET", "s", *words) == b"OK"


def there(client: RawClient) -> list[str]:
    rows = client.call_parsed("XRANGE", "s", "-", "+")
    assert isinstance(rows, list), rows
    return [row[0].decode().removesuffix("-0") for row in rows]


def ack(client: RawClient, *numbers: int) -> None:
    client.call("XACK", "s", "g", *[f"{number}-0" for number in numbers])


def test_bounds_belong_to_the_stream(group: RawClient) -> None:
    for name, word in (("max-len", 5), ("retention", "acked"), ("overflow", "trim")):
        reply = group.call_parsed("XPOLICY", "SET", "s", "GROUP", "g", name, word)
        refusal = f"ERR {name} is a policy of the stream: leave the group out"
        assert reply == WireError(refusal.encode())
    line = b"ERR policy max-bytes takes a number of bytes, as 100mb or 2gb, not '-1'"
    assert group.call_parsed("XPOLICY", "SET", "s", "max-bytes", -1) == WireError(line)
    line = b"ERR policy retention takes acked, not 'all'"
    assert group.call_parsed("XPOLICY", "SET", "s", "retention", "all") == WireError(line)
    assert group.call_parsed("XPOLICY", "GET", "s") == []


def test_the_oldest_go_when_there_are_too_many(own: Process, group: RawClient) -> None:
    bound(group, "max-len", 3)
    for number in (1, 2):
        add(group, number, "n", number)
    assert read(group) == ["1", "2"]
    for number in (3, 4, 5):
        add(group, number, "n", number)
    assert there(group) == ["3", "4", "5"]
    assert figures(group)["pending"] == 0  # what is gone is pending no more
    bound(group, "max-len", 1)
    group.call("DEBUG", "CLOCK", "SHIFT", 1000)
    assert there(group) == ["5"]
    requests = b"".join(encode("XADD", "s", f"{number}-0", "n", 1) for number in range(6, 40))
    group.send(requests)
    assert [group.read() for _ in range(34)][-1] == b"$4\r\n39-0\r\n"
    assert there(group) == ["39"]
    own.restart(crash=True)
    with own.client() as client:
        assert there(client) == ["39"]


def test_what_is_refused_removes_nothing(group: RawClient) -> None:
    bound(group, "max-len", 2)
    for number in (2, 3):
        add(group, number, "n", 1)
    assert isinstance(group.call_parsed("XADD", "s", "1-0", "n", 1), WireError)
    assert isinstance(group.call_parsed("XADD", "s", "4-0", "n"), WireError)
    assert there(group) == ["2", "3"]


def test_a_stream_takes_no_more_bytes(own: Process, group: RawClient) -> None:
    bound(group, "max-bytes", "100kb")
    for number in range(1, 500):
        add(group, number, "n", b"%d" % number * 500)
    kept = there(group)
    assert 50 < len(kept) < 300
    assert kept[-1] == "499"
    used = group.call_parsed("MEMORY", "USAGE", "s")
    assert isinstance(used, int)
    assert used < 120_000


def test_old_entries_go_in_time(group: RawClient) -> None:
    bound(group, "max-age", "10s")
    add(group, AHEAD_MS, "n", 1)
    add(group, AHEAD_MS + 3000, "n", 2)
    shift(group, 9000)
    assert len(there(group)) == 2
    shift(group, 1200)
    assert there(group) == [str(AHEAD_MS + 3000)]
    shift(group, 3000)
    assert there(group) == []


def test_a_full_stream_rejects(own: Process, group: RawClient) -> None:
    """It removes what is acknowledged by all, and nothing else."""
    bound(group, "max-len", 3, "overflow", "reject", "max-age", "1s")
    group.call("XGROUP", "CREATE", "s", "late", 0)
    for number in (1, 2, 3):
        add(group, number, "n", number)
    shift(group, 60_000)
    assert group.call_parsed("XADD", "s", "*", "n", 4) == FULL
    read(group)
    ack(group, 1, 2, 3)
    assert group.call_parsed("XADD", "s", "*", "n", 4) == FULL  # the other group has not read
    assert there(group) == ["1", "2", "3"]
    late = ("XREADGROUP", "GROUP", "late", "c", "COUNT", 2, "STREAMS", "s", ">")
    group.call(*late)
    group.call("XACK", "s", "late", "1-0")
    add(group, 4, "n", 4)
    assert there(group) == ["2", "3", "4"]
    assert group.call_parsed("XADD", "s", "*", "n", 5) == FULL
    assert group.call_parsed("EVAL", "return redis.pcall('XADD', 's', '*', 'n', 1)", 0) == FULL
    assert own.info("streams")["total_rejected_entries"] >= "3"
    own.restart(crash=True)
    with own.client() as client:
        assert there(client) == ["2", "3", "4"]
        assert client.call_parsed("XADD", "s", "*", "n", 5) == FULL


def test_what_all_have_acknowledged_goes(own: Process, group: RawClient) -> None:
    bound(group, "retention", "acked")
    for number in range(1, 7):
        add(group, number, "n", number)
    read(group)
    ack(group, 1, 2)
    shift(group, 200)
    assert there(group) == ["3", "4", "5", "6"]
    ack(group, 4, 6)  # what was done out of its order goes a little later
    shift(group, 3000)
    assert there(group) == ["3", "5"]
    group.call("XGROUP", "CREATE", "s", "other", 0)
    ack(group, 3, 5)
    shift(group, 3000)
    assert there(group) == ["3", "5"]
    group.call("XREADGROUP", "GROUP", "other", "c", "NOACK", "STREAMS", "s", ">")
    shift(group, 6000)
    assert there(group) == []
    own.restart(crash=True)
    with own.client() as client:
        assert there(client) == []


def test_what_died_or_waits_is_kept_and_goes_in_the_same_way(group: RawClient) -> None:
    bound(group, "retention", "acked")
    policy(group, "delivery-limit", 1, "dead-letter-key", "dead", "order-key", "k")
    for number in (1, 2):
        add(group, number, "k", "same")
    assert read(group) == ["1"]
    shift(group, 3000)
    assert there(group) == ["1", "2"]
    group.call("XNACK", "s", "g", "FAIL", "IDS", 1, "1-0")
    assert len(letters(group)) == 1
    shift(group, 3000)
    assert there(group) == ["2"]
    redriven = group.call_parsed("XREDRIVE", "dead")
    assert isinstance(redriven, list)
    assert redriven[0][1] == b"appended"


def test_a_connected_worker_keeps_its_entries(own: Process, group: RawClient) -> None:
    policy(group, "ack-wait", "5s", "keep-alive", "connection", "keep-alive-grace", "2s")
    add(group, 1, "n", 1)
    shift(group, 3000)
    with own.client() as worker:
        assert read(worker, "w") == ["1"]
        shift(group, 60_000)
        assert read(group, "other") == []
        assert group.call_parsed("XAUTOCLAIM", "s", "g", "other", 1000, "0-0") == [b"0-0", [], []]
        reply = group.call_parsed(
            *("XREADGROUP", "GROUP", "g", "other", "CLAIM", 1000, "STREAMS", "s", ">")
        )
        assert reply is None
        claimed = group.call_parsed("XCLAIM", "s", "g", "w", 1000, "1-0", "JUSTID")
        assert claimed == [b"1-0"]  # its own
    wait_until(lambda: int(own.info("clients")["connected_clients"]) <= 2)
    shift(group, 1500)
    assert read(group, "other") == []  # it might come back
    with own.client() as worker:
        assert read(worker, "w") == []
        shift(group, 60_000)
        assert read(group, "other") == []
    wait_until(lambda: int(own.info("clients")["connected_clients"]) <= 2)
    shift(group, 500)
    shift(group, 2100)
    assert read(group, "other") == ["1"]


def test_a_blocked_reader_gets_what_a_worker_left(own: Process, group: RawClient) -> None:
    """In real time, and what a killed worker held is ready after the grace alone."""
    group.call("DEBUG", "CLOCK", "RESET")
    policy(group, "ack-wait", "50ms", "keep-alive", "connection", "keep-alive-grace", "100ms")
    add(group, 1, "n", 1)
    with own.client() as waiting:
        with own.client() as worker:
            assert read(worker, "w") == ["1"]
            waiting.send(encode(*BLOCKING[:3], "other", *BLOCKING[4:]))
            wait_until(lambda: int(own.info("clients")["blocked_clients"]) == 1)
            time.sleep(0.5)
            assert figures(group)["pending"] == 1
            assert int(own.info("clients")["blocked_clients"]) == 1
        assert b"1-0" in waiting.read()


def test_workers_may_come_back_after_a_start(own: Process) -> None:
    with own.client() as client:
        client.call("XGROUP", "CREATE", "s", "g", 0, "MKSTREAM")
        policy(client, "ack-wait", "1ms", "keep-alive", "connection", "keep-alive-grace", "1h")
        add(client, 1, "n", 1)
        assert read(client, "w") == ["1"]
    own.restart(crash=True)
    with own.client() as client:
        assert read(client, "other") == []
        with own.client() as worker:
            assert read(worker, "w") == []
        shift(client, 1_000_000)
        assert read(client, "other") == []


def test_unused_groups_go(own: Process, group: RawClient) -> None:
    policy(group, "inactive-threshold", "1h")
    group.call("XGROUP", "CREATE", "s", "other", 0)
    add(group, 1, "n", 1)
    shift(group, 100_000)
    read(group)
    shift(group, 3_590_000)
    read(group)  # it is used
    shift(group, 3_599_000)
    assert len(_groups(group)) == 2
    shift(group, 3000)
    assert _groups(group) == [b"other"]
    own.restart(crash=True)
    with own.client() as client:
        assert _groups(client) == [b"other"]


def test_a_group_with_a_waiting_reader_is_used(own: Process, group: RawClient) -> None:
    policy(group, "inactive-threshold", "1m")
    with own.client() as waiting:
        waiting.send(encode(*BLOCKING))
        wait_until(lambda: int(own.info("clients")["blocked_clients"]) == 1)
        shift(group, 600_000)
        assert _groups(group) == [b"g"]


def _groups(client: RawClient) -> list[bytes]:
    rows = client.call_parsed("XINFO", "GROUPS", "s")
    assert isinstance(rows, list)
    return [row[1] for row in rows]


def test_bounds_by_lines_of_the_configuration(fresh_server: Factory) -> None:
    server = fresh_server(*ALL, "--stream-policy", "log:* max-len 2")
    with server.client() as client:
        for key in ("log:a", "other"):
            for _ in range(5):
                client.call("XADD", key, "*", "n", 1)
        assert client.call_parsed("XLEN", "log:a") == 2
        assert client.call_parsed("XLEN", "other") == 5
        client.call("CONFIG", "SET", "stream-policy", "oth* max-len 1")
        client.call("RENAME", "log:a", "kept")
        wait_until(lambda: client.call_parsed("XLEN", "other") == 1)
        client.call("XADD", "kept", "*", "n", 1)
        assert client.call_parsed("XLEN", "kept") == 3


def test_a_group_that_is_made_anew_is_not_idle(group: RawClient) -> None:
    policy(group, "inactive-threshold", "1m")
    read(group)
    group.call("DEL", "s")
    shift(group, 600_000)
    group.call("XGROUP", "CREATE", "s", "g", 0, "MKSTREAM")
    shift(group, 59_000)
    assert _groups(group) == [b"g"]
    shift(group, 5000)
    assert _groups(group) == []
