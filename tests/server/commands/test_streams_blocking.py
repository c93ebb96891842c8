"""XREAD BLOCK: who waits, who is woken by what, in which order, and until when.

No test sleeps: it waits until INFO counts the clients that should be blocked. A request wakes the
waiting before it is answered, so what INFO counts after it says whether it woke anybody.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Iterator

import pytest
from conftest import Factory

from support.client import Argument, encode
from support.process import ServerProcess
from support.scene import Scene
from support.waiting import DEADLINE_S, wait_until

NULL_ARRAY = b"*-1\r\n"
WRONGTYPE = b"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"


@pytest.fixture
def scene(server: ServerProcess) -> Iterator[Scene]:
    scene = Scene(server)
    yield scene
    scene.close()


def entries(*ids: str) -> list[list[object]]:
    return [[each.encode(), [b"f", b"v"]] for each in ids]


def one(key: str, *ids: str) -> object:
    """Return what XREAD answers when one stream has entries, all of them ``f v``."""
    return [[key.encode(), entries(*ids)]]


# What is waited for


def test_an_entry_wakes_its_readers(scene: Scene) -> None:
    scene.do("XADD", "s", "5-0", "f", "v")
    waiter = scene.waiter()
    scene.block(waiter, "XREAD", "BLOCK", 0, "STREAMS", "s", "$")
    scene.do("XADD", "other", "9-0", "f", "v")
    assert scene.blocked() == 1
    scene.do("XADD", "s", "5-1", "f", "v")
    assert scene.blocked() == 0
    assert waiter.read_parsed() == one("s", "5-1")


def test_entries_there_already_are_answered_at_once(scene: Scene) -> None:
    scene.do("XADD", "s", "5-0", "f", "v")
    waiter = scene.waiter()
    assert waiter.call_parsed("XREAD", "BLOCK", 0, "STREAMS", "s", "4") == one("s", "5-0")
    assert waiter.call_parsed("XREAD", "BLOCK", 0, "STREAMS", "no", "s", "$", "0") == one(
        "s", "5-0"
    )


def test_an_id_that_lies_ahead(scene: Scene) -> None:
    waiter = scene.waiter()
    scene.block(waiter, "XREAD", "BLOCK", 0, "STREAMS", "s", "7-7")
    for entry_id in ("7-5", "7-6", "7-7"):
        scene.do("XADD", "s", entry_id, "f", "v")
        assert scene.blocked() == 1
    scene.do("XADD", "s", "7-8", "f", "v")
    assert waiter.read_parsed() == one("s", "7-8")


def test_dollar_of_a_missing_key_is_zero(scene: Scene) -> None:
    waiter = scene.waiter()
    scene.block(waiter, "XREAD", "BLOCK", 0, "STREAMS", "s", "$")
    scene.do("XADD", "s", "0-1", "f", "v")
    assert waiter.read_parsed() == one("s", "0-1")


def test_plus_waits_for_the_first_entry(scene: Scene) -> None:
    waiter = scene.waiter()
    scene.block(waiter, "XREAD", "BLOCK", 0, "STREAMS", "s", "+")
    scene.do("XADD", "s", "3-0", "f", "v")
    assert waiter.read_parsed() == one("s", "3-0")
    scene.do("XADD", "s", "4-0", "f", "v")
    assert waiter.call_parsed("XREAD", "BLOCK", 0, "STREAMS", "s", "+") == one("s", "4-0")


def test_plus_is_read_anew_when_woken(scene: Scene) -> None:
    waiter = scene.waiter()
    scene.block(waiter, "XREAD", "BLOCK", 0, "STREAMS", "s", "+")
    scene.do_at_once("XADD s 1-0 f v", "XADD s 2-0 f v", "XADD s 3-0 f v")
    assert waiter.read_parsed() == one("s", "3-0")


def test_several_keys(scene: Scene) -> None:
    scene.do("XADD", "b", "5-0", "f", "v")
    waiter = scene.waiter()
    scene.block(waiter, "XREAD", "BLOCK", 0, "STREAMS", "a", "b", "c", "$", "$", "$")
    assert scene.figure("total_blocking_keys") == 3
    scene.do("XADD", "b", "6-0", "f", "v")
    assert waiter.read_parsed() == one("b", "6-0")
    assert scene.figure("total_blocking_keys") == 0
    scene.block(waiter, "XREAD", "BLOCK", 0, "STREAMS", "a", "b", "c", "$", "$", "$")
    scene.do_at_once("XADD c 1-0 f v", "XADD a 1-0 f v")
    assert waiter.read_parsed() == [[b"a", entries("1-0")], [b"c", entries("1-0")]]


def test_one_key_twice(scene: Scene) -> None:
    waiter = scene.waiter()
    scene.block(waiter, "XREAD", "BLOCK", 0, "STREAMS", "s", "s", "5", "9")
    assert scene.figure("total_blocking_keys") == 1
    scene.do("XADD", "s", "3-0", "f", "v")
    assert scene.blocked() == 1
    scene.do("XADD", "s", "6-0", "f", "v")
    assert waiter.read_parsed() == one("s", "6-0")
    scene.block(waiter, "XREAD", "BLOCK", 0, "STREAMS", "s", "s", "6", "6")
    scene.do("XADD", "s", "7-0", "f", "v")
    assert waiter.read_parsed() == [[b"s", entries("7-0")]] * 2
    # Woken without an entry, it stands under both IDs again.
    scene.block(waiter, "XREAD", "BLOCK", 0, "STREAMS", "s", "s", "7", "8")
    scene.do_at_once("XADD s 9-0 f v", "XDEL s 9-0")
    assert scene.blocked() == 1
    scene.do("XADD", "s", "10-0", "f", "v")
    assert waiter.read_parsed() == [[b"s", entries("10-0")]] * 2
    assert scene.figure("total_blocking_keys") == 0


def test_count_and_the_reply_of_resp3(scene: Scene) -> None:
    waiter = scene.waiter(resp3=True)
    scene.block(waiter, "XREAD", "COUNT", 2, "BLOCK", 0, "STREAMS", "s", "$")
    scene.do_at_once("XADD s 1-0 f v", "XADD s 2-0 f v", "XADD s 3-0 f v")
    assert waiter.read() == (
        b"%1\r\n$1\r\ns\r\n*2\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n"
        b"*2\r\n$3\r\n2-0\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n"
    )
    assert waiter.call("XREAD", "BLOCK", 1, "STREAMS", "s", "$") == b"_\r\n"


def test_who_asks_the_same_is_given_the_same(scene: Scene) -> None:
    scene.do("XADD", "s", "5-0", "f", "v")
    same, too, resp3, few = scene.waiter(), scene.waiter(), scene.waiter(resp3=True), scene.waiter()
    scene.do("CONFIG", "RESETSTAT")
    for waiter in (same, resp3, too):
        scene.block(waiter, "XREAD", "BLOCK", 0, "STREAMS", "s", "missing", "5", "0")
    scene.block(few, "XREAD", "COUNT", 1, "BLOCK", 0, "STREAMS", "s", "missing", "5", "0")
    scene.do_at_once("XADD s 6-0 f v", "XADD s 7-0 f v")
    assert same.read_parsed() == too.read_parsed() == one("s", "6-0", "7-0")
    assert resp3.read().startswith(b"%1\r\n$1\r\ns\r\n*2\r\n*2\r\n$3\r\n6-0\r\n")
    assert few.read_parsed() == one("s", "6-0")
    assert scene.calls("xread")["calls"] == 4
    # Each looked for both keys when it came and when it was served, as in Redis twice for a key
    # that is not there.
    assert scene.figure("keyspace_hits", "stats") == 8
    assert scene.figure("keyspace_misses", "stats") == 16


# What wakes


@pytest.mark.parametrize(
    ("before", "wake"),
    [
        ("XADD src 5-0 f v", "RENAME src s"),
        ("XADD src 5-0 f v", "RENAMENX src s"),
        ("XADD src 5-0 f v", "COPY src s"),
    ],
)
def test_a_stream_that_appears(scene: Scene, before: str, wake: str) -> None:
    scene.do(*before.split())
    reader, late = scene.waiter(), scene.waiter()
    scene.block(reader, "XREAD", "BLOCK", 0, "STREAMS", "s", "3")
    scene.block(late, "XREAD", "BLOCK", 0, "STREAMS", "s", "5")
    scene.do(*wake.split())
    assert reader.read_parsed() == one("s", "5-0")
    assert scene.blocked() == 1
    scene.do("XADD", "s", "6-0", "f", "v")
    assert late.read_parsed() == one("s", "6-0")


def test_a_stream_that_replaces_another(scene: Scene) -> None:
    scene.do("XADD", "s", "1-0", "f", "v")
    scene.do("XADD", "src", "5-0", "f", "v")
    waiter = scene.waiter()
    scene.block(waiter, "XREAD", "BLOCK", 0, "STREAMS", "s", "$")
    scene.do("COPY", "src", "s", "REPLACE")
    assert waiter.read_parsed() == one("s", "5-0")


def test_move_and_swapdb(scene: Scene) -> None:
    scene.do("XADD", "s", "5-0", "f", "v")
    waiter = scene.waiter()
    waiter.call("SELECT", 1)
    scene.block(waiter, "XREAD", "BLOCK", 0, "STREAMS", "s", "3")
    scene.do("XADD", "s", "6-0", "f", "v")
    assert scene.blocked() == 1  # that was database 0
    scene.do("MOVE", "s", 1)
    assert waiter.read_parsed() == one("s", "5-0", "6-0")
    scene.block(waiter, "XREAD", "BLOCK", 0, "STREAMS", "t", "$")
    scene.do("XADD", "t", "1-0", "f", "v")
    scene.do("SWAPDB", 0, 1)
    assert waiter.read_parsed() == one("t", "1-0")
    assert waiter.call_parsed("XLEN", "t") == 1


def test_setid_does_not_wake(scene: Scene) -> None:
    scene.do("XADD", "s", "1-0", "f", "v")
    waiter = scene.waiter()
    scene.block(waiter, "XREAD", "BLOCK", 0, "STREAMS", "s", "$")
    scene.do("XSETID", "s", "9-0")
    assert scene.blocked() == 1
    scene.do("XADD", "s", "9-1", "f", "v")
    assert waiter.read_parsed() == one("s", "9-1")


@pytest.mark.parametrize(
    "remove", ["DEL s", "UNLINK s", "RENAME s t", "MOVE s 9", "FLUSHDB", "FLUSHALL", "SWAPDB 0 9"]
)
def test_a_key_that_goes_away_leaves_its_readers_waiting(scene: Scene, remove: str) -> None:
    scene.do("XADD", "s", "666-0", "f", "v")
    waiter = scene.waiter()
    scene.block(waiter, "XREAD", "BLOCK", 0, "STREAMS", "s", "$")
    scene.do(*remove.split())
    assert scene.blocked() == 1
    scene.do("XADD", "s", "665-0", "f", "v")  # below what `$` stood for
    assert scene.blocked() == 1
    scene.do("XADD", "s", "667-0", "f", "v")
    assert waiter.read_parsed() == one("s", "667-0")


def test_a_key_that_expires_leaves_its_readers_waiting(scene: Scene) -> None:
    scene.do("XADD", "s", "5-0", "f", "v")
    waiter = scene.waiter()
    scene.block(waiter, "XREAD", "BLOCK", 0, "STREAMS", "s", "$")
    scene.do("PEXPIRE", "s", 1)
    wait_until(lambda: not scene.do("DBSIZE"))
    assert scene.blocked() == 1
    scene.do("XADD", "s", "6-0", "f", "v")
    assert waiter.read_parsed() == one("s", "6-0")


def test_another_type_leaves_its_readers_waiting(scene: Scene) -> None:
    waiter = scene.waiter()
    scene.block(waiter, "XREAD", "BLOCK", 0, "STREAMS", "s", "$")
    scene.do("SET", "s", "string")
    assert scene.blocked() == 1
    scene.do("DEL", "s")
    scene.do("XADD", "s", "1-0", "f", "v")
    assert waiter.read_parsed() == one("s", "1-0")


def test_another_type_fails_who_is_woken_by_another_key(scene: Scene) -> None:
    waiter = scene.waiter()
    scene.block(waiter, "XREAD", "BLOCK", 0, "STREAMS", "a", "b", "$", "$")
    scene.do("SET", "a", "string")
    assert scene.blocked() == 1
    scene.do("XADD", "b", "1-0", "f", "v")
    assert waiter.read() == WRONGTYPE


def test_what_a_transaction_leaves_counts(scene: Scene) -> None:
    waiter = scene.waiter()
    scene.block(waiter, "XREAD", "BLOCK", 0, "STREAMS", "s", "$")
    scene.do_at_once("XADD s 1-0 f v", "DEL s")
    assert scene.blocked() == 1
    scene.do_at_once("XADD s 2-0 f v", "XADD s 3-0 f v", "XDEL s 2-0", "XADD s 4-0 f v")
    assert waiter.read_parsed() == one("s", "3-0", "4-0")


def test_an_entry_gone_at_once_is_not_answered(scene: Scene) -> None:
    waiter = scene.waiter()
    scene.block(waiter, "XREAD", "BLOCK", 0, "STREAMS", "s", "$")
    scene.do_at_once("XADD s 1-0 f v", "XDEL s 1-0")
    scene.do("XADD", "s", "MAXLEN", 0, "2-0", "f", "v")
    scene.do("XADD", "s", "MINID", "9-0", "3-0", "f", "v")
    assert scene.blocked() == 1
    scene.do("XADD", "s", "4-0", "f", "v")
    assert waiter.read_parsed() == one("s", "4-0")


# Order


def test_first_come_first_served(scene: Scene) -> None:
    """The replies leave in the order in which the clients blocked, whatever ID they wait for."""
    waiters = [scene.waiter() for _ in range(4)]
    for waiter, wanted in zip(waiters, (3, 1, 2, 0), strict=True):
        scene.block(waiter, "XREAD", "BLOCK", 0, "STREAMS", "s", wanted)
    watcher = scene.waiter()
    watcher.call("MONITOR")
    for waiter in waiters:  # answered before the next request of the same client is run
        waiter.send_command("ECHO", waiter.sock.getsockname()[1])
    scene.do("XADD", "s", "4-0", "f", "v")
    for waiter in waiters:
        assert waiter.read_parsed() == one("s", "4-0")
        waiter.read()
    seen: list[int] = []
    while len(seen) < 4:
        line = watcher.read()
        if b'"ECHO"' in line:
            seen.append(int(line.split(b'"')[3]))
    assert seen == [waiter.sock.getsockname()[1] for waiter in waiters]


def test_who_was_woken_in_vain_keeps_the_deadline(scene: Scene) -> None:
    waiter = scene.waiter()
    started = time.monotonic()
    scene.block(waiter, "XREAD", "BLOCK", 1000, "STREAMS", "s", "$")
    number = 0
    while not select.select([waiter.sock], [], [], 0)[0]:
        number += 1
        scene.do_at_once(f"XADD s {number}-0 f v", f"XDEL s {number}-0")
        assert time.monotonic() - started < DEADLINE_S, "each time it begins to wait anew"
    assert waiter.read() == NULL_ARRAY
    assert number > 1
    assert time.monotonic() - started > 0.95


# Ends without an entry


def test_timeouts(scene: Scene) -> None:
    waiters = [scene.waiter() for _ in range(3)]
    started = time.monotonic()
    for waiter, timeout_ms in zip(waiters, (1400, 1000, 1200), strict=True):
        scene.block(waiter, "XREAD", "BLOCK", timeout_ms, "STREAMS", "s", "$")
    assert scene.figure("clients_in_timeout_table") == 3
    for waiter, at_s in ((waiters[1], 1.0), (waiters[2], 1.2), (waiters[0], 1.4)):
        assert waiter.read() == NULL_ARRAY
        assert time.monotonic() - started > at_s - 0.01
    assert scene.figure("clients_in_timeout_table") == 0


def test_a_timeout_that_is_never_reached(scene: Scene) -> None:
    waiter = scene.waiter()
    scene.block(waiter, "XREAD", "BLOCK", 9_000_000_000_000_000_000, "STREAMS", "s", "$")
    scene.do("XADD", "s", "1-0", "f", "v")
    assert waiter.read_parsed() == one("s", "1-0")


def test_client_unblock(scene: Scene) -> None:
    waiter = scene.waiter()
    client_id = waiter.call_parsed("CLIENT", "ID")
    assert isinstance(client_id, int)
    assert scene.do("CLIENT", "UNBLOCK", client_id) == 0
    for reason, reply in (
        ([], NULL_ARRAY),
        (["TIMEOUT"], NULL_ARRAY),
        (["ERROR"], b"-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n"),
    ):
        scene.block(waiter, "XREAD", "BLOCK", 0, "STREAMS", "s", "$")
        assert scene.do("CLIENT", "UNBLOCK", client_id, *reason) == 1
        assert scene.do("CLIENT", "UNBLOCK", client_id, *reason) == 0
        assert waiter.read() == reply
    assert scene.blocked() == 0


def test_client_unblock_and_an_entry_in_one_transaction(scene: Scene) -> None:
    waiter = scene.waiter()
    client_id = waiter.call_parsed("CLIENT", "ID")
    scene.block(waiter, "XREAD", "BLOCK", 0, "STREAMS", "s", "$")
    scene.do_at_once("XADD s 1-0 f v", f"CLIENT UNBLOCK {client_id}")
    assert waiter.read() == NULL_ARRAY
    assert waiter.call("PING") == b"+PONG\r\n"


def test_calls_count_once_when_they_end(scene: Scene) -> None:
    waiter = scene.waiter()
    client_id = waiter.call_parsed("CLIENT", "ID")
    assert isinstance(client_id, int)
    scene.do("CONFIG", "RESETSTAT")
    scene.block(waiter, "XREAD", "BLOCK", 0, "STREAMS", "s", "$")
    assert scene.calls("xread")["calls"] == 0
    scene.do_at_once("XADD s 1-0 f v", "XDEL s 1-0")
    assert scene.calls("xread")["calls"] == 0
    scene.do("XADD", "s", "2-0", "f", "v")
    waiter.read()
    assert scene.calls("xread")["calls"] == 1
    assert waiter.call("XREAD", "BLOCK", 1, "STREAMS", "s", "$") == NULL_ARRAY
    assert scene.calls("xread")["calls"] == 2
    scene.block(waiter, "XREAD", "BLOCK", 0, "STREAMS", "s", "$")
    scene.do("CLIENT", "UNBLOCK", client_id, "ERROR")
    waiter.read()
    assert scene.calls("xread")["calls"] == 3
    assert scene.calls("xread")["failed_calls"] == 1


@pytest.mark.parametrize("how", ["close", "reset", "half-close", "kill"])
def test_who_leaves_waits_no_more(scene: Scene, how: str) -> None:
    waiter = scene.waiter()
    client_id = waiter.call_parsed("CLIENT", "ID")
    assert isinstance(client_id, int)
    scene.block(waiter, "XREAD", "BLOCK", 100_000, "STREAMS", "a", "b", "$", "$")
    if how == "close":
        waiter.close()
    elif how == "reset":
        waiter.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        waiter.close()
    elif how == "half-close":
        waiter.sock.shutdown(socket.SHUT_WR)
        assert waiter.rest_until_close() == b""
    else:
        assert scene.do("CLIENT", "KILL", "ID", client_id) == 1
        assert waiter.rest_until_close() == b""
    scene.wait_for_blocked(0)
    assert scene.figure("total_blocking_keys") == 0
    assert scene.figure("clients_in_timeout_table") == 0
    scene.do("XADD", "a", "1-0", "f", "v")
    assert scene.do("XLEN", "a") == 1


# In company of other requests


def test_requests_behind_a_blocking_one_wait(scene: Scene) -> None:
    waiter = scene.waiter()
    read = encode("XREAD", "BLOCK", 0, "STREAMS", "s", "$")
    waiter.send(encode("ECHO", 1) + read + encode("ECHO", 2) + read + encode("ECHO", 3))
    scene.wait_for_blocked(1)
    assert waiter.read_parsed() == b"1"
    waiter.send(encode("ECHO", 4) + encode("NOPE")[:9])
    scene.do("XADD", "s", "1-0", "f", "v")
    assert waiter.read_parsed() == one("s", "1-0")
    assert waiter.read_parsed() == b"2"
    scene.wait_for_blocked(1)
    scene.do("XADD", "s", "2-0", "f", "v")
    assert waiter.read_parsed() == one("s", "2-0")
    assert waiter.read_parsed() == b"3"
    assert waiter.read_parsed() == b"4"
    waiter.send(encode("NOPE")[9:])
    assert waiter.read().startswith(b"-ERR unknown command 'NOPE'")


def test_a_transaction_does_not_block(scene: Scene) -> None:
    scene.actor.call("MULTI")
    scene.actor.call("XREAD", "BLOCK", 0, "STREAMS", "s", "$")
    scene.actor.call("XADD", "s", "1-0", "f", "v")
    scene.actor.call("XREAD", "BLOCK", 0, "STREAMS", "s", "0")
    assert scene.actor.call_parsed("EXEC") == [None, b"1-0", one("s", "1-0")]


def test_a_pause_of_writes(scene: Scene) -> None:
    waiter, writer = scene.waiter(), scene.waiter()
    scene.block(waiter, "XREAD", "BLOCK", 0, "STREAMS", "s", "$")
    scene.do("CLIENT", "PAUSE", 100_000, "WRITE")
    try:
        writer.send_command("XADD", "s", "1-0", "f", "v")
        other = scene.waiter()
        assert other.call("XREAD", "BLOCK", 20, "STREAMS", "s", "$") == NULL_ARRAY
        assert scene.blocked() == 2  # who is paused counts
    finally:
        scene.do("CLIENT", "UNPAUSE")
    assert writer.read_parsed() == b"1-0"
    assert waiter.read_parsed() == one("s", "1-0")


def test_a_pause_of_everything(scene: Scene) -> None:
    waiter, late = scene.waiter(), scene.waiter()
    scene.block(waiter, "XREAD", "BLOCK", 1000, "STREAMS", "s", "$")
    started = time.monotonic()
    scene.do("CLIENT", "PAUSE", 1200)
    late.send_command("XREAD", "BLOCK", 1, "STREAMS", "s", "$")
    assert waiter.read() == NULL_ARRAY
    assert late.read() == NULL_ARRAY
    assert time.monotonic() - started > 1.19


def test_reply_skip_reaches_to_the_end_of_the_wait(scene: Scene) -> None:
    waiter = scene.waiter()
    waiter.send(encode("CLIENT", "REPLY", "SKIP"))
    scene.block(waiter, "XREAD", "BLOCK", 0, "STREAMS", "s", "$")
    waiter.send_command("ECHO", "next")
    scene.do("XADD", "s", "1-0", "f", "v")
    assert waiter.read_parsed() == b"next"
    waiter.send(encode("CLIENT", "REPLY", "SKIP"))
    waiter.send_command("XREAD", "BLOCK", 1, "STREAMS", "s", "$")
    waiter.send_command("ECHO", "last")
    assert waiter.read_parsed() == b"last"


def test_two_names_for_one_wait(scene: Scene) -> None:
    """Both versions of the protocol wait for one key; each is answered in its own."""
    old, new = scene.waiter(), scene.waiter(resp3=True)
    for waiter in (old, new):
        scene.block(waiter, "XREAD", "BLOCK", 0, "STREAMS", "s", "$")
    scene.do("XADD", "s", "1-0", "f", "v")
    assert old.read().startswith(b"*1\r\n*2\r\n$1\r\ns\r\n")
    assert new.read().startswith(b"%1\r\n$1\r\ns\r\n")


@pytest.mark.parametrize("fsync", ["always", "everysec"])
def test_with_an_append_only_file(fresh_server: Factory, fsync: str) -> None:
    server = fresh_server("--appendonly", "yes", "--appendfsync", fsync)
    assert isinstance(server, ServerProcess)
    scene = Scene(server)
    waiter = scene.waiter()
    for number in range(1, 50):
        scene.block(waiter, "XREAD", "BLOCK", 0, "STREAMS", "s", "$")
        waiter.send_command("ECHO", number)
        scene.do("XADD", "s", f"{number}-0", "f", "v")
        assert waiter.read_parsed() == one("s", f"{number}-0")
        assert waiter.read_parsed() == b"%d" % number
    scene.close()
    server.restart()
    assert server.call("XLEN", "s") == 49


@pytest.mark.parametrize("how", ["signal", "command"])
def test_a_shutdown_closes_who_waits(fresh_server: Factory, how: str) -> None:
    server = fresh_server()
    assert isinstance(server, ServerProcess)
    scene = Scene(server)
    waiter = scene.waiter()
    scene.block(waiter, "XREAD", "BLOCK", 0, "STREAMS", "s", "$")
    if how == "signal":
        server.stop()
    else:
        scene.actor.send_command("SHUTDOWN", "NOSAVE")
        assert server.wait() == 0
    assert waiter.rest_until_close() == b""
    assert scene.actor.rest_until_close() == b""
    scene.leave()


LONGEST_MS = 2**63 - 1 - 2**41  # with now, which is less than 2**41, it is no more than fits


@pytest.mark.parametrize(
    "words",
    [
        ["XREAD", "BLOCK", LONGEST_MS, "STREAMS", "s", "$"],
        ["XREADGROUP", "GROUP", "g", "c", "BLOCK", LONGEST_MS, "STREAMS", "s", ">"],
        [
            *("XREADGROUP", "GROUP", "g", "c", "BLOCK", 0, "CLAIM", 2**63 - 1),
            *("STREAMS", "s", ">"),
        ],
        ["WAIT", 1, LONGEST_MS],
        ["WAITAOF", 0, 1, LONGEST_MS],
    ],
)
def test_the_longest_wait(server: ServerProcess, words: list[Argument]) -> None:
    with server.client() as waiter, server.client() as other:
        other.call("XADD", "s", "1-0", "f", "v")
        other.call("XGROUP", "CREATE", "s", "g", 0)
        other.call("XREADGROUP", "GROUP", "g", "dead", "STREAMS", "s", ">")
        number = waiter.call_parsed("CLIENT", "ID")
        waiter.send_command(*words)
        wait_until(lambda: b"blocked_clients:1" in other.call("INFO", "clients"))
        assert waiter.silent()
        assert other.call("CLIENT", "UNBLOCK", str(number), "ERROR") == b":1\r\n"
        assert waiter.read().startswith(b"-UNBLOCKED")
    server.check_log()


def test_the_longest_pause(server: ServerProcess) -> None:
    with server.client() as client:
        pause = ("CLIENT", "PAUSE", LONGEST_MS)
        replies = client.pipeline(("MULTI",), pause, ("CLIENT", "UNPAUSE"), ("EXEC",))
        assert replies[-1] == b"*2\r\n+OK\r\n+OK\r\n"
        assert client.call("SET", "k", "v") == b"+OK\r\n"
        client.call("CLIENT", "PAUSE", LONGEST_MS, "WRITE")
        assert client.call("PING") == b"+PONG\r\n"
        client.call("CLIENT", "UNPAUSE")
    server.check_log()
