"""XPOLICY, XREDRIVE, XNACKIN, XACKF and ``stream-policy``: grammar, states, files and replicas."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
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
from support.process import Process, RedisProcess, ServerProcess
from support.tools import tool
from support.waiting import wait_until

DURATION = b"a duration, as 500ms, 30s, 5m, 2h or 1d"
DURATIONS = b"durations with commas between them, as 1s,5s,30s"
NAMES = (
    b"ack-wait, auto-create, consumer-inactive-threshold, dead-letter-key, deliver-at-field, "
    b"deliver-delay, delivery-limit, inactive-threshold, keep-alive, keep-alive-grace, max-age, "
    b"max-bytes, max-len, max-pending, max-pending-per-consumer, message-ttl, message-ttl-field, "
    b"on-consumer-delete, order-key, order-on-dead, overflow, pause-until, retention, retry-delay, "
    b"retry-delay-max, retry-delay-min, retry-delay-type, window"
)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("nope", 1), b"ERR unknown policy 'nope'. There are: " + NAMES),
        (
            ("delivery-limit", 0),
            b"ERR policy delivery-limit takes a number from 1 to %d, not '0'" % 2**53,
        ),
        (
            ("delivery-limit", 2**63),
            b"ERR policy delivery-limit takes a number from 1 to %d, not '%d'" % (2**53, 2**63),
        ),
        (
            ("ack-wait", "30 s"),
            b"ERR policy ack-wait takes %b, not '30 s'" % DURATION,
        ),
        (
            ("ack-wait", "99999999999999999999d"),
            b"ERR policy ack-wait takes %b, not '99999999999999999999d'" % DURATION,
        ),
        (
            ("retry-delay", "1s,,2s"),
            b"ERR policy retry-delay takes %b, not '1s,,2s'" % DURATIONS,
        ),
        (("order-on-dead", "x"), b"ERR policy order-on-dead takes release or hold, not 'x'"),
        (("order-key", ""), b"ERR policy order-key takes the name of a field, not ''"),
        (
            ("retry-delay", "1s", "retry-delay-min", "1s"),
            b"ERR retry-delay names all delays: retry-delay-min and -max contradict it",
        ),
        (
            ("retry-delay-max", "1s"),
            b"ERR retry-delay-max needs retry-delay-min, from which delays grow",
        ),
        (
            ("retry-delay-min", "2s", "retry-delay-max", "1s"),
            b"ERR retry-delay-max is below retry-delay-min",
        ),
        (("dead-letter-key", "%k"), b"ERR its dead letters would come back to it"),
        (("ack-wait",), b"ERR a policy is a name and a value: XPOLICY SET key ack-wait 30s"),
        (
            ("ack-wait", "1s", "delivery-limit"),
            b"ERR a policy is a name and a value: XPOLICY SET key ack-wait 30s",
        ),
    ],
)
def test_what_is_refused_changes_nothing(
    group: RawClient, words: tuple[Argument, ...], error: bytes
) -> None:
    policy(group, "delivery-limit", 7)
    assert group.call_parsed("XPOLICY", "SET", "s", "GROUP", "g", *words) == WireError(error)
    assert group.call_parsed("XPOLICY", "GET", "s", "GROUP", "g") == [b"delivery-limit", b"7"]


def test_other_wrong_requests(group: RawClient) -> None:
    group.call("SET", "text", "x")
    wrongtype = WireError(b"WRONGTYPE Operation against a key holding the wrong kind of value")
    assert group.call_parsed("XPOLICY", "SET", "text", "ack-wait", "1s") == wrongtype
    assert group.call_parsed("XPOLICY", "GET", "text") == wrongtype
    assert group.call_parsed("XREDRIVE", "text") == wrongtype
    assert group.call_parsed("XREDRIVE", "missing") == []
    assert group.call_parsed("XPOLICY", "UNSET", "s", "nope") == WireError(
        b"ERR unknown policy 'nope'. There are: " + NAMES
    )
    assert group.call_parsed("XNACKIN", "s", "none", 1, "IDS", 1, "1-0") == WireError(
        b"NOGROUP No such key 's' or consumer group 'none'"
    )
    assert group.call_parsed("XNACKIN", "s", "g", -1, "IDS", 1, "1-0") == WireError(
        b"ERR milliseconds are a number from 0 to 9007199254740992"
    )
    assert group.call_parsed("XNACKIN", "s", "g", 1, "IDS", 2, "1-0") == WireError(
        b"ERR the number of IDs does not match numids"
    )
    assert group.call_parsed("XACKF", "s", "g", "c", 0, "IDS", 1, "1-0") == WireError(
        b"ERR deliveries is a number from 1 to 9223372036854775807"
    )
    assert group.call_parsed("XACKF", "s", "none", "c", 1, "IDS", 1, "1-0") == 0
    noting = ("XPOLICY", "NOTE", "s", "GROUP", "g", "1-0", 0, 0, 0, "c")
    refused = group.call_parsed(*noting)
    assert isinstance(refused, WireError)
    assert refused.text.endswith(b"for 'NOTE'. Try XPOLICY HELP.")


def test_chains_of_dead_letters_end(group: RawClient) -> None:
    assert group.call_parsed("XPOLICY", "SET", "a", "dead-letter-key", "b") == b"OK"
    assert group.call_parsed("XPOLICY", "SET", "b", "dead-letter-key", "c") == b"OK"
    refused = WireError(b"ERR its dead letters would come back to it")
    assert group.call_parsed("XPOLICY", "SET", "c", "dead-letter-key", "a") == refused


def test_order_and_noack_do_not_go_together(group: RawClient) -> None:
    policy(group, "order-key", "k")
    add(group, 1, "k", "a")
    words = ("XREADGROUP", "GROUP", "g", "c", "NOACK", "STREAMS", "s", ">")
    assert group.call_parsed(*words) == WireError(
        b"ERR this group keeps the order of keys (order-key), which NOACK cannot: entries have to "
        b"be acknowledged"
    )
    assert read(group) == ["1"]


def test_noack_takes_what_was_delayed(group: RawClient) -> None:
    policy(group, "deliver-delay", "1s")
    add(group, AHEAD_MS, "n", 1)
    assert read(group, "c", "NOACK") == []
    shift(group, 1000)
    assert read(group, "c", "NOACK") == [str(AHEAD_MS)]
    assert figures(group)["pending"] == figures(group)["lag"] == 0


def test_a_letter_that_cannot_be_written_waits(group: RawClient) -> None:
    policy(group, "delivery-limit", 1, "dead-letter-key", "dead")
    group.call("SET", "dead", "a text")
    add(group, 1, "n", 1)
    assert read(group) == ["1"]
    assert group.call_parsed("XNACK", "s", "g", "FAIL", "IDS", 1, "1-0") == 1
    shift(group, 5000)
    assert figures(group)["dead-pending"] == 1
    assert read(group) == []
    group.call("DEL", "dead")
    shift(group, 2000)
    assert [letter["__dlq.errors.message"] for letter in letters(group)] == ["delivery limit"]
    assert figures(group)["dead-pending"] == figures(group)["pending"] == 0


def test_the_worker_rejects(group: RawClient) -> None:
    policy(group, "dead-letter-key", "%k.%g.dead")
    add(group, 1, "n", "one")
    assert read(group) == ["1"]
    shift(group, 77)
    assert group.call_parsed("XNACK", "s", "g", "FATAL", "IDS", 1, "1-0") == 1
    assert letters(group, "s.g.dead") == [
        {
            "n": "one",
            "__dlq.errors.topic": "s",
            "__dlq.errors.offset": "1-0",
            "__dlq.errors.group": "g",
            "__dlq.errors.delivery.count": "1",
            "__dlq.errors.message": "rejected",
            "__dlq.errors.consumer": "c",
            "__dlq.errors.first.delivery.ms": str(AHEAD_MS),
            "__dlq.errors.last.delivery.ms": str(AHEAD_MS),
            "__dlq.errors.redrives": "0",
        }
    ]
    group.call("XREDRIVE", "s.g.dead")
    assert read(group, "d") == ["1"]
    group.call("XNACK", "s", "g", "FATAL", "IDS", 1, "1-0")
    assert letters(group, "s.g.dead")[0]["__dlq.errors.redrives"] == "1"


def test_redriving(group: RawClient) -> None:
    policy(group, "dead-letter-key", "dead")
    for number in (1, 2, 3):
        add(group, number, "n", number)
    read(group)
    group.call("XNACK", "s", "g", "FATAL", "IDS", 3, "1-0", "2-0", "3-0")
    group.call("XDEL", "s", "2-0")
    group.call("XADD", "dead", "*", "no", "letter")
    ids = [row[0] for row in group.call_parsed("XRANGE", "dead", "-", "+")]  # type: ignore[attr-defined]
    reply = group.call_parsed("XREDRIVE", "dead", "RATE", 1)
    assert isinstance(reply, list)
    assert [row[1] for row in reply] == [b"requeued", b"appended", b"requeued", b"skipped"]
    assert [row[0] for row in reply] == ids
    appended = reply[1][2].decode().removesuffix("-0")
    assert read(group) == ["1", appended]
    shift(group, 2000)  # each takes a second
    assert read(group) == ["3"]
    assert group.call_parsed("XLEN", "dead") == 1
    reply = group.call_parsed("XREDRIVE", "dead", "IDS", 1, ids[3], "TO", "elsewhere")
    assert isinstance(reply, list)
    assert reply[0][1] == b"appended"
    assert group.call_parsed("XLEN", "elsewhere") == 1


def test_a_paused_group_goes_on_in_time(own: Process, group: RawClient) -> None:
    policy(group, "pause-until", AHEAD_MS + 500)
    add(group, 1, "n", 1)
    assert read(group) == []
    with own.client() as waiting:
        waiting.send(encode(*BLOCKING))
        wait_until(lambda: int(own.info("clients")["blocked_clients"]) == 1)
        shift(group, 500)
        assert b"1-0" in waiting.read()


def test_what_is_held_comes_out_when_the_policy_goes(group: RawClient) -> None:
    policy(group, "order-key", "k")
    for number in (1, 2, 3):
        add(group, number, "k", "a")
    assert read(group) == ["1"]
    assert figures(group)["held"] == 2
    assert group.call_parsed("XPOLICY", "UNSET", "s", "GROUP", "g", "order-key") == 1
    assert read(group) == ["2", "3"]


def test_a_full_window_lets_new_entries_wait(group: RawClient) -> None:
    policy(group, "order-key", "k", "window", 2)
    for number, value in enumerate("aaaab"):
        add(group, number + 1, "k", value)
    assert read(group) == ["1"]
    assert [figures(group)[name] for name in ("held", "window-full", "lag")] == [2, 1, 4]
    found = []
    for number in (1, 2, 3, 4):
        group.call("XACK", "s", "g", f"{number}-0")
        found.append(read(group))
    assert found == [["2"], ["3", "5"], ["4"], []]


def test_a_deleted_consumer_leaves_its_entries(group: RawClient) -> None:
    policy(group, "on-consumer-delete", "release", "ack-wait", "1h")
    add(group, 1, "n", 1)
    assert read(group, "leaving") == ["1"]
    assert group.call_parsed("XGROUP", "DELCONSUMER", "s", "g", "leaving") == 1
    assert read(group, "staying") == ["1"]


def test_idle_consumers_of_one_group_go(group: RawClient) -> None:
    policy(group, "consumer-inactive-threshold", "1m")
    group.call("XGROUP", "CREATE", "s", "other", 0)
    for name in ("g", "other"):
        group.call("XGROUP", "CREATECONSUMER", "s", name, "idle")
    shift(group, 60_001)
    assert [len(group.call_parsed("XINFO", "CONSUMERS", "s", name)) for name in ("g", "other")] == [  # type: ignore[arg-type]
        0,
        1,
    ]


def test_groups_are_made_by_their_readers(own: Process, group: RawClient) -> None:
    assert group.call_parsed("XPOLICY", "SET", "new", "auto-create", "0") == b"OK"
    words = ("XREADGROUP", "GROUP", "w", "c", "STREAMS", "new", ">")
    assert group.call_parsed(*words) is None
    group.call("XADD", "new", "1-0", "n", 1)
    assert group.call_parsed(*words) == [[b"new", [[b"1-0", [b"n", b"1"]]]]]
    group.call("DEL", "new")
    group.call("XADD", "new", "2-0", "n", 2)
    assert group.call_parsed(*words) == [[b"new", [[b"2-0", [b"n", b"2"]]]]]
    refused = group.call_parsed("XREADGROUP", "GROUP", "w", "c", "STREAMS", "other", ">")
    assert isinstance(refused, WireError)
    own.restart(crash=True)
    assert isinstance(own.call("XINFO", "GROUPS", "new"), list)


def test_max_pending_is_one_setting(group: RawClient) -> None:
    group.call("XGROUP", "SETMODE", "s", "g", "MAX-PENDING", 2)
    assert group.call_parsed("XPOLICY", "GET", "s", "GROUP", "g") == [b"max-pending", b"2"]
    policy(group, "max-pending", 1)
    for number in (1, 2):
        add(group, number, "n", number)
    assert read(group) == ["1"]
    assert read(group) == []
    group.call("XACK", "s", "g", "1-0")
    assert read(group) == ["2"]


def test_readers_are_served_when_entries_become_ready(own: Process, group: RawClient) -> None:
    """In real time: by the clock, and by an acknowledgement."""
    group.call("DEBUG", "CLOCK", "RESET")
    group.call("XPOLICY", "SET", "s", "deliver-at-field", "at", "order-key", "k")
    late_ms = []
    with own.client() as waiting:
        for number in range(20):
            due_ms = int(time.time() * 1000) + 30
            add(group, number + 1, "at", due_ms)
            waiting.call(*BLOCKING)
            late_ms.append(time.time() * 1000 - due_ms)
        assert min(late_ms) >= 0
        assert sorted(late_ms)[10] < 500  # a median, for slow machines
        for number in (101, 102):
            add(group, number, "k", "same")
        assert read(group) == ["101"]
        waiting.send(encode(*BLOCKING))
        wait_until(lambda: int(own.info("clients")["blocked_clients"]) == 1)
        group.call("XACK", "s", "g", "101-0")
        assert b"102-0" in waiting.read()


def test_all_of_it_outlives_a_crash(own: Process) -> None:
    now_ms = int(time.time() * 1000)
    with own.client() as client:
        client.call("XGROUP", "CREATE", "s", "g", 0, "MKSTREAM")
        policy(client, "order-key", "k", "deliver-at-field", "at", "retry-delay", "1h")
        client.call("XPOLICY", "SET", "s", "max-pending", 9)
        add(client, 1, "k", "a")
        add(client, 2, "k", "a")
        add(client, 3, "at", now_ms + 3_600_000)
        add(client, 4, "n", 4)
        assert read(client) == ["1", "4"]
        client.call("XNACK", "s", "g", "FAIL", "IDS", 1, "4-0")
        client.call("XPOLICY", "HOLD", "s", "GROUP", "g", "b")
        before = figures(client)
    for rewrites in (False, True, True):
        if rewrites:
            own.call("BGREWRITEAOF")
            wait_until(lambda: own.info("persistence")["aof_rewrite_in_progress"] == "0")
        own.restart(crash=True)
        with own.client() as client:
            assert figures(client) == before
            assert read(client) == []
            held = client.call_parsed("XPOLICY", "GET", "s", "GROUP", "g")
            assert held == [
                *(b"deliver-at-field", b"at", b"max-pending", b"9"),
                *(b"order-key", b"k", b"retry-delay", b"1h"),
            ]
    with own.client() as client:
        add(client, 5, "k", "b")
        assert read(client, "d") == []
        client.call("XACK", "s", "g", "1-0")
        client.call("XPOLICY", "FREE", "s", "GROUP", "g", "b")
        assert read(client, "d") == ["2", "5"]


def test_lines_of_the_configuration(fresh_server: Factory) -> None:
    server = fresh_server(
        *ALL,
        config='stream-policy jobs:* ack-wait 1h\nstream-policy "jobs:*" group w* max-pending 1\n',
    )
    with server.client() as client:
        shown = b"jobs:* ack-wait 1h ; jobs:* group w* max-pending 1"
        assert client.call_parsed("CONFIG", "GET", "stream-policy") == [b"stream-policy", shown]
        client.call("XGROUP", "CREATE", "jobs:1", "workers", 0, "MKSTREAM")
        for _ in range(2):
            client.call("XADD", "jobs:1", "*", "n", 1)
        words = ("XREADGROUP", "GROUP", "workers", "c", "STREAMS", "jobs:1", ">")
        assert len(client.call_parsed(*words)[0][1]) == 1  # type: ignore[index]
        reply = client.call_parsed(
            "CONFIG", "SET", "stream-policy", "jobs:* group w* max-pending 2"
        )
        assert reply == b"OK"
        assert len(client.call_parsed(*words)[0][1]) == 1  # type: ignore[index]
        refused = client.call_parsed("CONFIG", "SET", "stream-policy", "x* nope 1")
        assert isinstance(refused, WireError)
        assert b"unknown policy 'nope'" in refused.text
        assert client.call_parsed("CONFIG", "REWRITE") == b"OK"
    server.restart()
    shown = b"jobs:* ack-wait 1h ; jobs:* group w* max-pending 2"
    assert server.call("CONFIG", "GET", "stream-policy") == [b"stream-policy", shown]
    server.call("CONFIG", "SET", "stream-policy", "")
    assert server.call("XPOLICY", "GET", "jobs:1", "GROUP", "workers") == []
    quoted = b'"my jobs:*" order-key "customer id" ; x max-len 5'
    server.call("CONFIG", "SET", "stream-policy", quoted)
    with server.client() as client:
        unended = client.call_parsed("CONFIG", "SET", "stream-policy", 'x order-key "a')
        assert isinstance(unended, WireError)
    server.call("CONFIG", "REWRITE")
    server.restart()
    assert server.call("CONFIG", "GET", "stream-policy") == [b"stream-policy", quoted]
    assert server.call("XPOLICY", "GET", "my jobs:1") == [b"order-key", b"customer id"]


def test_rights(own: Process, group: RawClient) -> None:
    group.call("ACL", "SETUSER", "ann", "on", "nopass", "~s", "+@all")
    with own.client() as ann:
        ann.call("AUTH", "ann", "x")
        refused = ann.call_parsed("XPOLICY", "SET", "s", "dead-letter-key", "other")
        assert isinstance(refused, WireError)
        assert refused.text.startswith(b"NOPERM")
        assert ann.call_parsed("XPOLICY", "SET", "s", "ack-wait", "1s") == b"OK"
        group.call(
            "XADD",
            "s",
            "9-0",
            "__dlq.errors.topic",
            "t",
            "__dlq.errors.offset",
            "1-0",
            "__dlq.errors.group",
            "g",
            "n",
            "1",
        )
        assert ann.call_parsed("XREDRIVE", "s") == [[b"9-0", b"skipped", None]]
        assert group.call_parsed("EXISTS", "t") == 0


def test_events_and_figures(own: Process, group: RawClient) -> None:
    assert b"# Streams" not in group.call("INFO", "everything")
    group.call("CONFIG", "SET", "notify-keyspace-events", "KEA")
    with own.client() as listener:
        listener.call("SUBSCRIBE", "__keyspace@0__:s")
        policy(group, "dead-letter-key", "dead")
        assert listener.read().endswith(b"xpolicy-set\r\n")
    add(group, 1, "n", 1)
    read(group)
    group.call("XNACK", "s", "g", "FATAL", "IDS", 1, "1-0")
    assert own.info("streams")["total_dead_lettered"] == "1"
    assert own.info("streams")["policy_groups"] == "1"


def test_replicas_have_it_and_redis_passes_over_it(fresh_server: Factory) -> None:
    master = fresh_server(*ALL)
    replica = fresh_server(*ALL, "--replicaof", f"127.0.0.1 {master.port}")
    wait_until(lambda: replica.info("replication")["master_link_status"] == "up")
    with master.client() as client:
        client.call("XGROUP", "CREATE", "s", "g", 0, "MKSTREAM")
        policy(client, "order-key", "k", "retry-delay", "1h")
        client.call("XGROUP", "SETMODE", "s", "g", "MAX-PENDING", 7)
        for number, value in enumerate("aab"):
            add(client, number + 1, "k", value)
        assert read(client) == ["1", "3"]
        client.call("XNACK", "s", "g", "FAIL", "IDS", 1, "3-0")
        client.call("WAIT", 1, 0)
        with replica.client() as other:
            assert figures(other) == figures(client)
            other.call("REPLICAOF", "NO", "ONE")
            other.call("XACK", "s", "g", "1-0")
            assert read(other, "d") == ["2"]


@pytest.mark.judge
@pytest.mark.since(8, 10)
def test_redis_as_a_replica_has_what_is_set_aside(judge: str) -> None:
    with (
        ServerProcess(*ALL, "--repl-diskless-sync-delay", "0") as master,
        RedisProcess("--replicaof", f"127.0.0.1 {master.port}", program=judge) as replica,
    ):
        wait_until(lambda: replica.info("replication")["master_link_status"] == "up")
        with master.client() as client, replica.client() as real:
            client.call("XGROUP", "CREATE", "s", "g", 0, "MKSTREAM")
            policy(client, "order-key", "k", "retry-delay", "1h")
            for number, value in enumerate("aab"):
                add(client, number + 1, "k", value)
            assert read(client) == ["1", "3"]
            client.call("XNACK", "s", "g", "FAIL", "IDS", 1, "3-0")
            client.call("WAIT", 1, 0)
            pending = real.call_parsed("XPENDING", "s", "g", "-", "+", 10)
            assert isinstance(pending, list)
            assert [(row[0], row[1]) for row in pending] == [
                (b"1-0", b"c"),
                (b"2-0", b""),
                (b"3-0", b""),
            ]
        assert "CRITICAL" not in replica.log()


def test_an_id_that_is_named_twice_dies_once(group: RawClient) -> None:
    policy(group, "delivery-limit", 1, "dead-letter-key", "dead", "order-key", "o")
    for number in (1, 2, 3):
        add(group, number, "n", number)
    assert read(group) == ["1", "2", "3"]
    group.call("XNACK", "s", "g", "FATAL", "IDS", 3, "1-0", "1-0", "3-0")
    assert len(letters(group)) == 2
    assert group.call_parsed("XACK", "s", "g", "2-0") == 1
    twice = [row[0] for row in group.call_parsed("XRANGE", "dead", "-", "+")][:1] * 2  # type: ignore[attr-defined]
    assert len(group.call_parsed("XREDRIVE", "dead", "IDS", 2, *twice)) == 1  # type: ignore[arg-type]


@pytest.mark.parametrize("ms", [2**64 - 1, 2**62 - 3, 2**53])
def test_ids_may_be_as_large_as_they_are(group: RawClient, ms: int) -> None:
    policy(group, "deliver-delay", "1s", "message-ttl", "1d", "order-key", "k")
    add(group, ms, "k", "v")
    assert read(group) == []
    assert figures(group)["delayed"] == 1


def test_letters_may_be_forged(group: RawClient) -> None:
    add(group, 1, "n", 1)
    marks = ("topic", "s", "offset", "1-0", "group", "g", "redrives", "9" * 5000)
    words = [f"__dlq.errors.{word}" if at % 2 == 0 else word for at, word in enumerate(marks)]
    group.call("XADD", "d", "*", *words)
    reply = group.call_parsed("XREDRIVE", "d")
    assert isinstance(reply, list)
    assert reply[0][1] == b"requeued"


def test_held_values_after_a_new_name(group: RawClient) -> None:
    policy(group, "order-key", "k")
    group.call("XPOLICY", "SET", "t", "order-key", "k")
    assert read(group) == []
    group.call("RENAME", "s", "t")
    group.call("XGROUP", "CREATE", "s", "g", 0, "MKSTREAM")
    assert figures(group)["held"] == 0
    assert group.call_parsed("XPOLICY", "HOLD", "t", "GROUP", "g", "x") == 1
    assert group.call_parsed("XPOLICY", "FREE", "s", "GROUP", "g", "x") == 0
    group.call("XADD", "t", "1-0", "k", "x")
    reading = ("XREADGROUP", "GROUP", "g", "c", "STREAMS", "t", ">")
    assert group.call_parsed(*reading) is None
    assert group.call_parsed("XPOLICY", "FREE", "t", "GROUP", "g", "x") == 1
    assert group.call_parsed(*reading) is not None


def test_letters_for_their_own_stream_are_not_written(group: RawClient) -> None:
    group.call("XPOLICY", "SET", "s", "dead-letter-key", "%g", "message-ttl-field", "ttl")
    group.call("XGROUP", "CREATE", "s", "s", 0)
    group.call("XADD", "s", "*", "ttl", 0)
    assert group.call_parsed("XREADGROUP", "GROUP", "s", "c", "STREAMS", "s", ">") is None
    assert group.call_parsed("XLEN", "s") == 1
    group.call("CONFIG", "SET", "stream-policy", "* dead-letter-key d message-ttl-field ttl")
    group.call("XGROUP", "CREATE", "d", "g", 0, "MKSTREAM")
    group.call("XADD", "d", "*", "ttl", 0)
    assert group.call_parsed("XREADGROUP", "GROUP", "g", "c", "STREAMS", "d", ">") is None


def test_copies_keep_what_is_set_aside(fresh_server: Factory) -> None:
    """Those in Redis's form: a dumped value, and the snapshot for a replica."""
    server = fresh_server(*ALL)
    with server.client() as client:
        client.call("XGROUP", "CREATE", "s", "g", 0, "MKSTREAM")
        policy(client, "order-key", "k", "retry-delay", "1h")
        client.call("XPOLICY", "SET", "u", "order-key", "k", "retry-delay", "1h")
        for number in (1, 2):
            add(client, number, "k", "a")
        add(client, 3, "k", "b")
        assert read(client) == ["1", "3"]
        client.call("XNACK", "s", "g", "FAIL", "IDS", 1, "3-0")
        before = figures(client)
        client.call("RESTORE", "u", 0, client.call_parsed("DUMP", "s"))  # type: ignore[arg-type]
        client.call("XACK", "u", "g", "1-0")
        reply = client.call_parsed("XREADGROUP", "GROUP", "g", "c", "STREAMS", "u", ">")
        assert reply == [[b"u", [[b"2-0", [b"k", b"a"]]]]]
        replica = fresh_server(*ALL, "--replicaof", f"127.0.0.1 {server.port}")
        wait_until(lambda: replica.info("replication")["master_link_status"] == "up")
        with replica.client() as other:
            other.call("REPLICAOF", "NO", "ONE")
            assert figures(other) == before
            other.call("XACK", "s", "g", "1-0")
            assert read(other) == ["2"]


def test_a_consumer_that_holds_enough_waits(own: Process, group: RawClient) -> None:
    policy(group, "max-pending-per-consumer", 1, "ack-wait", "1s")
    for number in (1, 2):
        add(group, number, "n", number)
    assert read(group, "c", "COUNT", 1) == ["1"]
    with own.client() as waiting:
        words = ("XREADGROUP", "GROUP", "g", "c", "BLOCK", 0, "STREAMS", "s", ">")
        waiting.send(encode(*words))
        wait_until(lambda: int(own.info("clients")["blocked_clients"]) == 1)
        shift(group, 1000)
        assert b"1-0" in waiting.read()


def test_a_refused_read_gives_nothing(group: RawClient) -> None:
    group.call("XGROUP", "CREATE", "t", "g", 0, "MKSTREAM")
    group.call("XPOLICY", "SET", "t", "order-key", "k")
    add(group, 1, "n", 1)
    refused = group.call_parsed(
        "XREADGROUP", "GROUP", "g", "c", "NOACK", "STREAMS", "s", "t", ">", ">"
    )
    assert isinstance(refused, WireError)
    assert read(group) == ["1"]


def test_many_that_are_ready_hide_no_alarm(group: RawClient) -> None:
    policy(
        group,
        "ack-wait",
        "600ms",
        "delivery-limit",
        1,
        "max-pending",
        1,
        "deliver-at-field",
        "at",
        "dead-letter-key",
        "dead",
    )
    for number in range(100):
        add(group, number + 1, "at", AHEAD_MS + 150)
    assert read(group) == []
    shift(group, 200)
    assert read(group) == ["1"]
    shift(group, 600)
    assert len(letters(group)) == 1


def test_what_is_late_when_a_server_starts_is_given_up(own: Process) -> None:
    with own.client() as client:
        client.call("XGROUP", "CREATE", "s", "g", 0, "MKSTREAM")
        policy(client, "ack-wait", "200ms", "delivery-limit", 1, "dead-letter-key", "dead")
        add(client, 1, "n", 1)
        assert read(client) == ["1"]
    own.kill()
    time.sleep(0.3)
    own.start()
    wait_until(lambda: own.call("XLEN", "dead") == 1)


def test_other_policies_change_no_moments(group: RawClient) -> None:
    policy(group, "dead-letter-key", "dead", "deliver-delay", 1)
    for number in (1, 2):
        add(group, number, "n", number)
    assert read(group) == ["1", "2"]
    group.call("XNACK", "s", "g", "FATAL", "IDS", 2, "1-0", "2-0")
    group.call("XREDRIVE", "dead", "RATE", 1)
    assert read(group) == ["1"]
    group.call("XPOLICY", "SET", "other", "window", 5)
    assert read(group) == []
    shift(group, 1000)
    assert read(group) == ["2"]


def test_deleting_cancels(group: RawClient) -> None:
    policy(group, "order-key", "k", "deliver-at-field", "at")
    add(group, 1, "k", "a", "at", AHEAD_MS + 86_400_000)
    add(group, 2, "k", "a")
    assert read(group) == []
    assert group.call_parsed("XDEL", "s", "1-0") == 1
    assert read(group) == ["2"]


def test_a_position_set_back_gives_each_entry_once(group: RawClient) -> None:
    policy(group, "ack-wait", "1h")
    add(group, 1, "n", 1)
    assert read(group) == ["1"]
    group.call("XNACK", "s", "g", "FAIL", "IDS", 1, "1-0")
    group.call("XGROUP", "SETID", "s", "g", 0)
    assert read(group) == ["1"]


SAYS_NO_POLICIES = b"1 streams or groups have policies: Redis knows none."


def test_tools_read_files_with_policies(own: Process, tmp_path: Path) -> None:
    """They come back with what was exported as a file; commands for Redis leave them out."""
    with own.client() as client:
        _with_policies(client)
        client.call("BGREWRITEAOF")
        wait_until(lambda: own.info("persistence")["aof_rewrite_in_progress"] == "0")
        before = figures(client)
    own.stop()
    folder = str(own.directory)
    commands = tool("export", "--to", "resp", "--from", folder, "-")
    assert commands.returncode == 0
    assert SAYS_NO_POLICIES in commands.stderr
    for word in (b"XPOLICY", b"XNACKIN", b"SETMODE"):
        assert word not in commands.stdout
    assert tool("check-aof", f"{folder}/appendonlydir/appendonly.aof.manifest").returncode == 0
    dump = tmp_path / "dump.rdb"
    done = tool("export", "--to", "rdb", "--from", folder, str(dump))
    assert (done.returncode, SAYS_NO_POLICIES in done.stderr) == (0, True)
    new = tmp_path / "new"
    assert tool("import", str(dump), "--dir", str(new)).returncode == 0
    with ServerProcess(*ALL, "--dir", str(new)) as server, server.client() as client:
        held = client.call_parsed("XPOLICY", "GET", "s", "GROUP", "g")
        assert held == [b"max-pending", b"9", b"order-key", b"k", b"retry-delay", b"1h"]
        assert {**figures(client), "consumers": 0} == {**before, "consumers": 0}


def _with_policies(client: RawClient) -> None:
    client.call("XGROUP", "CREATE", "s", "g", 0, "MKSTREAM")
    client.call("XGROUP", "SETMODE", "s", "g", "MAX-PENDING", 9)
    policy(client, "order-key", "k", "retry-delay", "1h")
    for number, value in enumerate("aab"):
        add(client, number + 1, "k", value)
    assert read(client) == ["1", "3"]
    client.call("XNACK", "s", "g", "FAIL", "IDS", 1, "3-0")


@pytest.mark.judge
@pytest.mark.since(8, 10)
def test_redis_reads_what_is_exported(own: Process, tmp_path: Path, judge: str) -> None:
    with own.client() as client:
        _with_policies(client)
    own.stop()
    new = tmp_path / "new"
    done = tool("export", "--to", "redis-aof", "--from", str(own.directory), str(new))
    assert done.returncode == 0
    with (
        RedisProcess("--appendonly", "yes", "--dir", str(new), program=judge) as real,
        real.client() as client,
    ):
        pending = client.call_parsed("XPENDING", "s", "g", "-", "+", 10)
        assert isinstance(pending, list)
        assert [row[0] for row in pending] == [b"1-0", b"2-0", b"3-0"]


def test_letters_stay_in_the_slot_of_their_stream(fresh_server: Factory) -> None:
    with fresh_server("--cluster-enabled", "yes").client() as client:
        client.call("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        words = ("XPOLICY", "SET", "{a}s", "delivery-limit", 1, "dead-letter-key")
        line = b"ERR the dead-letter-key is in another slot of the cluster"
        assert client.call_parsed(*words, "{b}dead") == WireError(line)
        assert client.call_parsed("XPOLICY", "GET", "{a}s") == []
        assert client.call_parsed(*words, "{a}dead") == b"OK"
