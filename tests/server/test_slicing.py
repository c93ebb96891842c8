"""Requests of very many words: nobody waits long for them, and nobody sees a part of them."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest

from headrace.server.dispatch.call import LENGTHY_WORDS
from support.client import RawClient, encode
from support.process import ServerProcess

pytestmark = pytest.mark.once

Start = Callable[..., ServerProcess]
MANY = 48 * LENGTHY_WORDS  # some 30 slices, so that a busy machine lets us see a few
KEYS = [b"key:%d" % number for number in range(MANY)]
SOME = (KEYS[0], KEYS[MANY // 2], KEYS[-1])
NEW = [word for key in KEYS for word in (key, b"new")]
IDS = [b"%d-1" % number for number in range(1, LENGTHY_WORDS + 2000)]
PATIENCE_S = 60.0


def bulk(value: bytes | None) -> bytes:
    return b"$-1\r\n" if value is None else b"$%d\r\n%b\r\n" % (len(value), value)


def fill(client: RawClient) -> None:
    """All the keys."""
    for first in range(0, MANY, 4000):
        pairs = [word for key in KEYS[first : first + 4000] for word in (key, b"old")]
        assert client.call("MSET", *pairs) == b"+OK\r\n"


def fill_stream(client: RawClient) -> None:
    """A stream with all the IDs, all pending in a group."""
    for first in range(0, len(IDS), 1000):
        some = IDS[first : first + 1000]
        client.send(b"".join([encode("XADD", "s", entry, "f", "v") for entry in some]))
        for _ in some:
            client.read()
    client.call("XGROUP", "CREATE", "s", "g", "0")
    client.send_command("XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">")
    client.read()


def test_a_script_sees_all_or_nothing(fresh_server: Start) -> None:
    """It need not name what it touches, so each waits until the request is done."""
    server = fresh_server("--appendonly", "yes")
    names = ", ".join(f"'{key.decode()}'" for key in SOME)
    look = f"return redis.call('MGET', {names})"
    count_and_look = "redis.call('INCR', 'scripts') " + look
    whole = [b"*3\r\n" + 3 * bulk(value) for value in (b"old", b"new")]
    with (
        server.client(timeout_s=PATIENCE_S) as client,
        server.client(timeout_s=PATIENCE_S) as other,
    ):
        fill(client)
        client.send(encode("MSET", *NEW) + encode("ECHO", "done"))
        looks = 0
        while not client.is_answered():
            other.send(encode("EVAL", count_and_look, 0))
            other.send(encode("MULTI") + encode("EVAL_RO", look, 0) + encode("EXEC"))
            assert other.read() in whole
            assert [other.read() for _ in range(2)] == [b"+OK\r\n", b"+QUEUED\r\n"]
            assert other.read() in [b"*1\r\n" + each for each in whole]
            looks += 1
        assert [client.read(), client.read()] == [b"+OK\r\n", b"$4\r\ndone\r\n"]
        server.restart(crash=True)
    assert server.call("MGET", *SOME, "scripts") == [b"new"] * 3 + [b"%d" % looks]


@pytest.mark.parametrize(
    ("name", "words", "after", "reply"),
    [
        ("DEL", KEYS, None, b":%d\r\n" % MANY),
        ("UNLINK", KEYS, None, b":%d\r\n" % MANY),
        ("MSET", NEW, b"new", b"+OK\r\n"),
    ],
)
def test_all_or_nothing(
    fresh_server: Start, name: str, words: list[bytes], after: bytes | None, reply: bytes
) -> None:
    """While it runs others are served, and see all of its keys as they were or as they will be."""
    server = fresh_server("--appendonly", "yes")
    whole = [b"*3\r\n" + 3 * bulk(value) for value in (b"old", after)]
    with (
        server.client(timeout_s=PATIENCE_S) as client,
        server.client(timeout_s=PATIENCE_S) as other,
        server.client(timeout_s=PATIENCE_S) as third,
    ):
        fill(client)
        client.send(encode(name, *words) + encode("ECHO", "done"))
        turns = 0
        while not client.is_answered():
            other.send(encode("MGET", *SOME) + encode("MULTI"))
            other.send(encode("GET", SOME[2]) + encode("GET", SOME[0]) + encode("EXEC"))
            other.send(encode("DBSIZE"))
            while not other.is_answered():  # it may have to wait; who asks for other keys has not
                assert third.call("SET", "another", turns) == b"+OK\r\n"
                assert third.call("GET", "another") == bulk(b"%d" % turns)
                turns += 1
            assert other.read() in whole
            assert [other.read() for _ in range(3)] == [b"+OK\r\n", *2 * [b"+QUEUED\r\n"]]
            assert other.read() in [b"*2\r\n" + 2 * bulk(value) for value in (b"old", after)]
            count = int(other.read()[1:])
            assert count in (0, 1, MANY, MANY + 1)
        assert turns > 2  # in one piece it were one, or two with one before it
        assert client.read() == reply
        assert client.read() == bulk(b"done")
        assert other.call("MGET", *SOME) == whole[1]
    server.restart(crash=True)
    with server.client() as client:
        assert client.call("MGET", *SOME) == whole[1]
        assert client.call("GET", "another") == bulk(b"%d" % (turns - 1))


def incr_file(server: ServerProcess) -> bytes:
    """Return what stands in the append-only file."""
    folder = server.directory / "appendonlydir"
    return b"".join([path.read_bytes() for path in sorted(folder.glob("*.incr.aof"))])


@pytest.mark.parametrize(
    ("words", "left"),
    [
        (("XACK", "s", "g", *IDS, "1-1", "999999999-1"), (len(IDS), 0)),
        (("XDEL", "s", *IDS, "1-1", "999999999-1"), (0, len(IDS))),
    ],
)
def test_entries(
    fresh_server: Start, words: tuple[bytes | str, ...], left: tuple[int, int]
) -> None:
    """Entries of one stream; one that is named again counts once, and it is one record."""
    server = fresh_server("--appendonly", "yes")
    with server.client(timeout_s=PATIENCE_S) as client, server.client() as other:
        fill_stream(client)
        client.send(encode(*words[:-1], "no-id") + encode(*words))
        seen = set()
        while not client.is_answered():
            assert other.call("PING") == b"+PONG\r\n"
        assert client.read().startswith(b"-ERR Invalid stream ID")
        while not client.is_answered():
            seen.add(other.call("XLEN", "s"))
        assert seen <= {b":%d\r\n" % len(IDS), b":%d\r\n" % left[0]}
        assert client.read() == b":%d\r\n" % len(IDS)
        assert client.call("XLEN", "s") == b":%d\r\n" % left[0]
    assert incr_file(server).count(encode(*words)) == 1
    server.restart(crash=True)
    with server.client() as client:
        assert client.call("XLEN", "s") == b":%d\r\n" % left[0]
        assert client.call("XPENDING", "s", "g").startswith(b"*4\r\n:%d\r\n" % left[1])


def test_what_waits_for_its_keys_is_served_when_it_is_done(fresh_server: Start) -> None:
    """Readers that are blocked on another key are served meanwhile."""
    server = fresh_server()
    with (
        server.client(timeout_s=PATIENCE_S) as client,
        server.client(timeout_s=PATIENCE_S) as reader,
        server.client(timeout_s=PATIENCE_S) as both,
        server.client(timeout_s=PATIENCE_S) as other,
    ):
        fill(client)
        client.call("DEL", KEYS[0], KEYS[1])
        reader.send_command("XREAD", "BLOCK", 0, "STREAMS", "a", "$")
        both.send_command("XREAD", "BLOCK", 0, "STREAMS", "b", KEYS[1], "$", "$")
        while b"cmd=xread" not in other.call("CLIENT", "LIST"):
            pass
        while server.info("clients")["blocked_clients"] != "2":
            pass
        client.send_command("UNLINK", *KEYS)
        assert other.call("XADD", "a", "1-1", "f", "v") == bulk(b"1-1")
        assert b"1-1" in reader.read()
        assert other.call("XADD", "b", "2-1", "f", "v") == bulk(b"2-1")
        assert other.call("XADD", KEYS[1], "3-1", "f", "v") == bulk(b"3-1")
        assert b"2-1" in both.read()
        # The last one came before all of its keys were deleted, or after.
        left = {b":%d\r\n" % (MANY - 2): b":3\r\n", b":%d\r\n" % (MANY - 1): b":2\r\n"}
        size = left[client.read()]
        assert other.call("DBSIZE") == size


def test_in_a_transaction_and_for_one_who_leaves(fresh_server: Start) -> None:
    """In MULTI it is run with all the rest; it is done whether or not the answer can be sent."""
    server = fresh_server("--appendonly", "yes")
    with server.client(timeout_s=PATIENCE_S) as client:
        fill(client)
        client.send(encode("MULTI") + encode("DEL", *KEYS[1:]) + encode("DBSIZE") + encode("EXEC"))
        assert [client.read() for _ in range(3)] == [b"+OK\r\n", *2 * [b"+QUEUED\r\n"]]
        assert client.read() == b"*2\r\n:%d\r\n:1\r\n" % (MANY - 1)
        with server.client(timeout_s=PATIENCE_S) as leaving:
            leaving.send(encode("MSET", *NEW))
            while client.call("GET", KEYS[0]) == bulk(b"old"):
                pass
        assert client.call("GET", KEYS[-1]) == bulk(b"new")
        assert client.call("DBSIZE") == b":%d\r\n" % MANY
    server.restart(crash=True)
    with server.client() as client:
        assert client.call("DBSIZE") == b":%d\r\n" % MANY


@pytest.mark.parametrize("ends", ["BGSAVE", "BGREWRITEAOF", "SIGTERM"])
def test_no_snapshot_has_a_part_of_it(fresh_server: Start, ends: str) -> None:
    """Whatever is written while it is under way holds all of it or nothing."""
    aof = "yes" if ends == "BGREWRITEAOF" else "no"
    server = fresh_server("--appendonly", aof, "--save", "1000000 1")
    with (
        server.client(timeout_s=PATIENCE_S) as client,
        server.client(timeout_s=PATIENCE_S) as other,
    ):
        fill(client)
        client.send_command("DEL", *KEYS)
        assert other.call("PING") == b"+PONG\r\n"
        if ends == "SIGTERM":
            server.stop(signal.SIGTERM)
        else:
            assert other.call(ends)[:1] == b"+"
            field = "rdb_bgsave_in_progress" if ends == "BGSAVE" else "aof_rewrite_in_progress"
            while server.info("persistence")[field] != "0":
                pass
            server.kill()
    server.start()
    with server.client() as client:
        assert client.call("DBSIZE") in (b":0\r\n", b":%d\r\n" % MANY)


def test_watch_and_events(fresh_server: Start) -> None:
    """Who watches one of the keys learns of it, as do subscribers, of each key once."""
    server = fresh_server("--notify-keyspace-events", "Kg")
    with (
        server.client(timeout_s=PATIENCE_S) as client,
        server.client(timeout_s=PATIENCE_S) as watcher,
        server.client(timeout_s=PATIENCE_S) as listener,
    ):
        fill(client)
        watcher.send(encode("WATCH", KEYS[-1]) + encode("MULTI") + encode("PING"))
        assert [watcher.read() for _ in range(3)] == [b"+OK\r\n", b"+OK\r\n", b"+QUEUED\r\n"]
        listener.call("SUBSCRIBE", b"__keyspace@0__:" + KEYS[-1])
        client.send_command("DEL", *KEYS, KEYS[-1])
        assert client.read() == b":%d\r\n" % MANY
        watcher.send_command("EXEC")
        assert watcher.read() == b"*-1\r\n"
        assert listener.read().endswith(bulk(b"del"))
        assert not listener.is_answered()


def test_a_pipeline_that_waited_makes_way_for_others(fresh_server: Start) -> None:
    """What piled up behind a blocked request is run in order, and others are served meanwhile."""
    server = fresh_server()
    count = 280_000
    with server.client(timeout_s=PATIENCE_S) as client, server.client() as other:
        requests = [encode("XREAD", "BLOCK", 0, "STREAMS", "wake", "$")]
        requests += [
            encode("RPUSHLESS" if number % 7 == 0 else "INCR", "n") for number in range(count)
        ]
        client.send(b"".join(requests))
        while server.info("clients")["blocked_clients"] != "1":
            pass
        other.send_command("XADD", "wake", "1-1", "f", "v")
        assert other.read() == bulk(b"1-1")
        seen = set()
        last = bulk(b"%d" % (count - (count + 6) // 7))
        while last not in seen:
            seen.add(other.call("GET", "n"))
        assert len(seen) > 2  # it was met on its way
        assert b"1-1" in client.read()
        value = 0
        for number in range(count):
            if number % 7 == 0:
                assert client.read().startswith(b"-ERR unknown command")
            else:
                value += 1
                assert client.read() == b":%d\r\n" % value
