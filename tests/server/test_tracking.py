"""CLIENT TRACKING: the table of keys and its bounds, and what no real server can be asked."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from support.client import Push, RawClient, encode
from support.process import Process, ServerProcess
from support.waiting import wait_until


@pytest.fixture
def tracker(server: ServerProcess) -> Iterator[RawClient]:
    """A client that tracks; the limit is put back."""
    with server.client(resp3=True) as client:
        assert client.call("CLIENT", "TRACKING", "on") == b"+OK\r\n"
        yield client
    server.call("CONFIG", "SET", "tracking-table-max-keys", 1_000_000)


def figure(server: Process, name: str) -> int:
    return int(server.info("stats")[f"tracking_total_{name}"])


def told(client: RawClient, count: int) -> set[bytes]:
    """The keys of the next messages."""
    keys: list[bytes] = []
    for _ in range(count):
        message = client.read_parsed()
        assert isinstance(message, Push)
        assert message[0] == b"invalidate"
        assert isinstance(message[1], list)
        keys += message[1]
    assert len(keys) == len(set(keys)) == count
    return set(keys)


def test_the_table_is_bounded(server: ServerProcess, tracker: RawClient) -> None:
    """Readers are told of the keys that are forgotten, and of the others when they change."""
    server.call("CONFIG", "SET", "tracking-table-max-keys", 100)
    keys = [b"k%d" % number for number in range(1000)]
    tracker.call("MGET", *keys)
    forgotten = told(tracker, 900)
    assert figure(server, "keys") == figure(server, "items") == 100
    server.call("MSET", *[word for key in keys for word in (key, 1)])
    assert told(tracker, 100) == set(keys) - forgotten
    assert figure(server, "keys") == figure(server, "items") == 0
    assert tracker.call("PING") == b"+PONG\r\n"


def test_which_keys_are_forgotten_is_chance(server: ServerProcess, tracker: RawClient) -> None:
    server.call("CONFIG", "SET", "tracking-table-max-keys", 50)
    keys = [b"k%d" % number for number in range(100)]
    found = []
    for _ in range(3):
        tracker.call("MGET", *keys)
        found.append(told(tracker, 50))
        server.call("FLUSHALL")
        assert tracker.read() == b">2\r\n$10\r\ninvalidate\r\n_\r\n"
    assert found[0] != found[1] or found[1] != found[2]


def test_a_lower_limit_holds_at_once(server: ServerProcess, tracker: RawClient) -> None:
    tracker.call("MGET", *[b"k%d" % number for number in range(1000)])
    server.call("CONFIG", "SET", "tracking-table-max-keys", 10)
    told(tracker, 990)
    wait_until(lambda: figure(server, "keys") == 10)
    server.call("CONFIG", "SET", "tracking-table-max-keys", 0)  # no limit
    tracker.call("MGET", *[b"k%d" % number for number in range(1000)])
    assert figure(server, "keys") == 1000


def test_the_limit_tells_whoever_sets_it(server: ServerProcess, tracker: RawClient) -> None:
    tracker.call("CLIENT", "TRACKING", "on", "NOLOOP")
    tracker.call("MGET", "a", "b")
    reply = tracker.call("CONFIG", "SET", "tracking-table-max-keys", 1)
    assert reply == b"+OK\r\n"
    assert told(tracker, 1) < {b"a", b"b"}


def test_readers_that_left_are_not_kept(server: ServerProcess, tracker: RawClient) -> None:
    """A key that is read and never changed does not gather the IDs of all who ever read it."""
    for _ in range(300):
        with server.client(resp3=True) as guest:
            guest.pipeline(("CLIENT", "TRACKING", "on"), ("GET", "k"))
    assert figure(server, "keys") == 1
    assert figure(server, "items") < 100
    tracker.call("GET", "k")
    server.call("SET", "k", 1)
    assert told(tracker, 1) == {b"k"}
    assert figure(server, "items") == 0


def test_many_readers_of_a_key(server: ServerProcess, tracker: RawClient) -> None:
    clients = [server.client(resp3=True) for _ in range(100)]
    try:
        for client in clients:
            client.pipeline(("CLIENT", "TRACKING", "on"), ("GET", "k"), ("GET", "k"))
        assert figure(server, "items") == 100
        server.call("SET", "k", 1)
        for client in clients:
            assert told(client, 1) == {b"k"}
    finally:
        for client in clients:
            client.close()


def test_a_large_table_is_flushed(server: ServerProcess, tracker: RawClient) -> None:
    for first in range(0, 100_000, 1000):
        tracker.call("MGET", *[b"k%d" % number for number in range(first, first + 1000)])
    assert figure(server, "keys") == 100_000
    server.call("FLUSHALL")
    assert tracker.read() == b">2\r\n$10\r\ninvalidate\r\n_\r\n"
    assert figure(server, "keys") == figure(server, "items") == 0
    tracker.call("GET", "k1")
    server.call("SET", "k1", 1)
    assert told(tracker, 1) == {b"k1"}


def test_nothing_is_kept_of_whom_nobody_remembers(server: ServerProcess) -> None:
    with server.client(resp3=True) as client:
        client.call("CLIENT", "TRACKING", "on", "BCAST", "PREFIX", "a", "PREFIX", "b")
        client.call("GET", "a")
        assert server.info("stats")["tracking_total_prefixes"] == "2"
        assert figure(server, "keys") == 0
    wait_until(lambda: server.info("stats")["tracking_total_prefixes"] == "0")
    assert server.info("clients")["tracking_clients"] == "0"


@pytest.mark.parametrize("policy", ["always", "everysec"])
@pytest.mark.parametrize("mode", [(), ("BCAST",)])
def test_with_an_append_only_file(fresh_server: object, policy: str, mode: tuple[str, ...]) -> None:
    """Messages wait for the disk with the replies, and none is lost or comes too early."""
    assert callable(fresh_server)
    server = fresh_server("--appendonly", "yes", "--appendfsync", policy)
    assert isinstance(server, ServerProcess)
    with server.client(resp3=True) as tracker, server.client() as writer:
        tracker.call("CLIENT", "TRACKING", "on", *mode)
        for number in range(50):
            tracker.call("GET", "k")
            writer.send(encode("SET", "k", number) + encode("SET", "k", number))
            assert told(tracker, 1) == {b"k"}
            assert tracker.call("GET", "k") == b"$%d\r\n%d\r\n" % (len(str(number)), number)
            assert [writer.read(), writer.read()] == [b"+OK\r\n"] * 2
            if not mode:
                writer.call("SET", "k", number)
                assert told(tracker, 1) == {b"k"}


def test_a_pipeline_that_writes_beside_a_client_that_tracks(
    server: ServerProcess, tracker: RawClient, client: RawClient
) -> None:
    """Requests that would run at once are told of, one by one."""
    keys = [b"k%d" % number for number in range(300)]
    tracker.call("MGET", *keys)
    client.pipeline(*[("SET", key, 1) for key in keys], *[("INCR", key) for key in keys])
    assert told(tracker, 300) == set(keys)


def test_a_client_that_goes_in_the_middle(server: ServerProcess, client: RawClient) -> None:
    with server.client(resp3=True) as leaver:
        leaver.send(
            encode("CLIENT", "TRACKING", "on")
            + encode("GET", "a")
            + encode("SET", "a", 1)
            + encode("QUIT")
        )
        replies = [
            b"+OK\r\n",
            b"_\r\n",
            b"+OK\r\n",
            b">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n",
        ]
        assert leaver.rest_until_close() == b"".join([*replies, b"+OK\r\n"])
    assert client.call("SET", "a", 2) == b"+OK\r\n"
    wait_until(lambda: server.info("clients")["tracking_clients"] == "0")


def test_pipelines_of_reads_are_remembered_until_each_change(
    server: ServerProcess, tracker: RawClient, client: RawClient
) -> None:
    """Whatever has moved meanwhile: keys that go leave their places to others."""
    drawn = random.Random(7)
    keys = [b"k%d" % number for number in range(60)]
    remembered: set[bytes] = set()
    for _ in range(200):
        tracker.pipeline(("SELECT", drawn.randrange(2)))
        read = drawn.choices(keys, k=16)
        tracker.pipeline(*[("GET", key) for key in read])
        remembered.update(read)
        changed = drawn.sample(keys, 8)
        client.call("SELECT", drawn.randrange(2))
        client.call("MSET", *[word for key in changed for word in (key, 1)])
        gone = drawn.sample(changed, 4)
        client.call("DEL", *gone)
        assert told(tracker, len(remembered & set(changed))) == remembered & set(changed)
        remembered -= set(changed)
        assert figure(server, "items") == len(remembered)
    assert tracker.call("PING") == b"+PONG\r\n"
