"""Lists: who waits for elements, what is recorded, and what is left after a restart."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Factory

from support.client import RawClient, encode
from support.figures import done, info
from support.pipelines import check_at_once
from support.process import Process, incr
from support.scene import Scene
from support.waiting import wait_until

DEBUG = ("--enable-debug-command", "yes")
AOF = ("--appendonly", "yes")
KEYS = ["tiny", "mortal", "some", "large", "long", "few", "moved", "sorted"]


@pytest.fixture
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    server: Process = request.getfixturevalue("server")
    scene = Scene(server)
    scene.do("FLUSHALL")
    yield scene
    scene.close()


def wire(*words: str) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(
        b"$%d\r\n%b\r\n" % (len(word), word.encode()) for word in words
    )


# Waiting


def test_a_chain_is_served_in_one_turn(scene: Scene) -> None:
    """What one client moves wakes the next."""
    last, middle, first = scene.waiter(), scene.waiter(), scene.waiter()
    scene.block(last, "BLMPOP", 0, 2, "c", "d", "LEFT", "COUNT", 9)
    scene.block(middle, "BLMOVE", "b", "c", "LEFT", "RIGHT", 0)
    scene.block(first, "BRPOPLPUSH", "a", "b", 0)
    scene.do("RPUSH", "a", "x")
    assert first.read_parsed() == b"x"
    assert middle.read_parsed() == b"x"
    assert last.read_parsed() == [b"c", [b"x"]]
    assert scene.do("DBSIZE") == 0


def test_who_wants_more_than_there_is_keeps_its_place(scene: Scene) -> None:
    many, one, two = scene.waiter(), scene.waiter(), scene.waiter()
    scene.block(many, "BLMOVEM", "k", "m", "LEFT", "RIGHT", 0, "EXACTLY", 3, "BULK")
    scene.block(one, "BLPOP", "k", 0)
    scene.block(two, "BLMOVEM", "k", "n", "LEFT", "RIGHT", 0, "EXACTLY", 2, "OBO")
    scene.do("RPUSH", "k", "a")
    assert one.read_parsed() == [b"k", b"a"]
    scene.do("RPUSH", "k", *"bcdef")
    assert many.read_parsed() == [b"b", b"c", b"d"]
    assert two.read_parsed() == [b"e", b"f"]
    assert scene.do("LRANGE", "n", 0, -1) == [b"e", b"f"]


@pytest.mark.parametrize(
    "last", ["RPUSH k c", "LPUSHX k c", "LINSERT k BEFORE b c", "LMOVE src k LEFT LEFT"]
)
def test_whatever_adds_to_a_list_may_be_enough(scene: Scene, last: str) -> None:
    waiter = scene.waiter()
    scene.do("RPUSH", "src", "c")
    scene.block(waiter, "BLMOVEM", "k", "m", "LEFT", "RIGHT", 0, "EXACTLY", 3, "BULK")
    scene.do("RPUSH", "k", "a", "b")
    assert scene.blocked() == 1
    scene.do(*last.split())
    assert scene.blocked() == 0
    reply = waiter.read_parsed()
    assert isinstance(reply, list)
    assert sorted(reply) == [b"a", b"b", b"c"]


@pytest.mark.parametrize(
    "wake", ["SORT src STORE k", "RENAME src k", "COPY src k", "RESTORE", "LMOVE src k LEFT LEFT"]
)
def test_whatever_brings_a_list_wakes(scene: Scene, wake: str) -> None:
    scene.do("RPUSH", "src", "1")
    waiter = scene.waiter()
    scene.block(waiter, "BRPOP", "k", 0)
    if wake == "RESTORE":
        dumped = scene.do("DUMP", "src")
        assert isinstance(dumped, bytes)
        scene.do("RESTORE", "k", 0, dumped)
    else:
        scene.do(*wake.split())
    assert waiter.read_parsed() == [b"k", b"1"]


def test_another_type_in_the_way(scene: Scene) -> None:
    """A string at its key leaves a client waiting; at the target it is an error."""
    waiter, mover = scene.waiter(), scene.waiter()
    scene.block(waiter, "BLPOP", "k", 0)
    scene.do("SET", "k", "x")
    scene.do("DEL", "k")
    assert scene.blocked() == 1
    scene.block(mover, "BLMOVE", "src", "k", "LEFT", "LEFT", 0)
    scene.do_at_once("SET k x", "RPUSH src a")
    assert mover.read().startswith(b"-WRONGTYPE")
    assert scene.do("LLEN", "src") == 1


# What is recorded


def test_what_was_waited_for_is_recorded_as_what_it_did(fresh_server: Factory) -> None:
    server = fresh_server(*AOF)
    scene = Scene(server)
    requests = [
        (("BLPOP", "k", 0), ("LPOP", "k")),
        (("BRPOP", "j", "k", 0), ("RPOP", "k")),
        (("BLMPOP", 0, 1, "k", "RIGHT", "COUNT", 7), ("RPOP", "k", "2")),
        (("BLMOVE", "k", "m", "LEFT", "RIGHT", 0), ("LMOVE", "k", "m", "LEFT", "RIGHT")),
        (("BRPOPLPUSH", "k", "m", 0), ("RPOPLPUSH", "k", "m")),
        (
            ("BLMOVEM", "k", "m", "LEFT", "LEFT", 0, "COUNT", 7, "OBO"),
            ("LMOVEM", "k", "m", "LEFT", "LEFT", "EXACTLY", "2", "OBO"),
        ),
        (
            ("BLMOVEM", "k", "m", "LEFT", "LEFT", 0),
            ("LMOVEM", "k", "m", "LEFT", "LEFT", "EXACTLY", "1", "BULK"),
        ),
    ]
    for request, record in requests:
        scene.do("DEL", "k")
        waiter = scene.waiter()
        scene.block(waiter, *request)
        scene.do("RPUSH", "k", "a", "b")
        waiter.read()
        assert incr(server).endswith(wire("RPUSH", "k", "a", "b") + wire(*record)), request
    scene.do("RPUSH", "q", *"abcde")
    scene.do("LMPOP", 2, "none", "q", "LEFT", "COUNT", 99)
    assert incr(server).endswith(wire("LPOP", "q", "5"))
    scene.leave()


def test_what_changes_nothing_is_not_recorded(fresh_server: Factory) -> None:
    server = fresh_server(*AOF)
    with server.client() as client:
        client.call("RPUSH", "k", "a", "b")
        written = incr(server)
        for line in [
            "LTRIM k 0 -1", "LREM k 0 x", "LINSERT k BEFORE x y", "LPOP k 0", "LPUSHX none a",
            "LMOVE none k LEFT LEFT", "LMOVEM k m LEFT LEFT EXACTLY 9 OBO", "LMPOP 1 none LEFT",
            "LSET k 9 x", "BLPOP none 0.001", "SORT k ALPHA",
        ]:  # fmt: skip
            client.call(*line.split())
        assert incr(server) == written


# What is left after a restart


def fill(client: RawClient) -> None:
    client.call("RPUSH", "tiny", "a", 1, "")
    client.call("RPUSH", "mortal", "b")
    client.call("PEXPIREAT", "mortal", 4_102_444_800_000)
    client.call("RPUSH", "some", *range(200))
    for low in range(0, 50_000, 5000):
        client.call("RPUSH", "large", *[f"element:{number}" for number in range(low, low + 5000)])
        client.call("LPUSH", "large", *[f"{number}" for number in range(low, low + 500)])
    client.call("LSET", "large", 20_000, "x" * 9000)
    client.call("LINSERT", "large", "BEFORE", "element:30000", "inserted")
    client.call("LREM", "large", 0, "element:40000")
    client.call("LTRIM", "large", 10, -10)
    client.call("RPUSH", "long", "y" * 100_000, "z")
    client.call("RPUSH", "few", *range(5000))
    client.call("LTRIM", "few", 4990, -1)
    client.call("LMOVEM", "some", "moved", "LEFT", "RIGHT", "COUNT", 50, "BULK")
    client.call("RPUSH", "gone", "a")
    client.call("LPOP", "gone")
    client.call("SORT", "some", "DESC", "STORE", "sorted")


def facts(client: RawClient) -> list[bytes]:
    found = [client.call("DEBUG", "DIGEST"), client.call("DBSIZE")]
    for key in KEYS:
        found += [client.call("LLEN", key), client.call("LRANGE", key, 0, 20)]
        found += [client.call("LINDEX", key, index) for index in (0, -1, 7, 10_000, -9000)]
    return [*found, client.call("PEXPIRETIME", "mortal")]


def encodings(client: RawClient) -> list[bytes]:
    return [client.call("OBJECT", "ENCODING", key) for key in KEYS]


def test_a_snapshot_brings_lists_back(fresh_server: Factory) -> None:
    server = fresh_server(*DEBUG)
    with server.client() as client:
        fill(client)
        before = facts(client), encodings(client)
        assert client.call("SAVE") == b"+OK\r\n"
    server.restart(crash=True)
    with server.client() as client:
        assert (facts(client), encodings(client)) == before
        client.call("RPUSH", "large", "more")
        client.call("LPOP", "large", 3)
        assert client.call("DEBUG", "RELOAD") == b"+OK\r\n"
        assert client.call("LINDEX", "large", -1) == b"$4\r\nmore\r\n"


@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_an_append_only_folder_brings_lists_back(fresh_server: Factory, preamble: str) -> None:
    server = fresh_server(*DEBUG, *AOF, "--aof-use-rdb-preamble", preamble)
    with server.client() as client:
        fill(client)
        before = facts(client)
    server.restart(crash=True)
    with server.client() as client:
        assert facts(client) == before
        client.call("BGREWRITEAOF")
        done(client, "aof_rewrite_in_progress")
        done(client, "aof_rewrite_scheduled")
        client.call("RPUSH", "large", "late")
        before = facts(client)
    base = next(Path(server.directory, "appendonlydir").glob("*.base.*")).read_bytes()
    assert (b"RPUSH" in base) == (preamble == "no")
    server.restart(crash=True)
    with server.client() as client:
        assert facts(client) == before


def test_a_snapshot_holds_what_there_was_when_it_began(fresh_server: Factory) -> None:
    server = fresh_server(*DEBUG, "--rdb-key-save-delay", "1000000")
    with server.client() as client:
        for key in range(20):
            client.call("RPUSH", f"l{key}", *range(40 * key + 2))
        fill(client)
        before = client.call("DEBUG", "DIGEST")
        client.call("BGSAVE")
        for key in range(20):
            client.call("LPUSH", f"l{key}", "late")
            client.call("RPOP", f"l{(key * 7) % 20}", 30)
        for number in range(100):
            client.call("LSET", "large", 400 * number, "late")
            client.call("RPOPLPUSH", "large", "large")
        client.call("LTRIM", "large", 1000, 2000)
        assert info(client, "rdb_bgsave_in_progress") == 1, "it was over before the changes"
        client.call("CONFIG", "SET", "rdb-key-save-delay", 0)
        done(client, "rdb_bgsave_in_progress")
    server.restart(crash=True)
    with server.client() as client:
        assert client.call("DEBUG", "DIGEST") == before


def test_what_was_answered_is_there_after_a_kill(fresh_server: Factory) -> None:
    """Workers wait for jobs and move them to lists of their own; nothing is lost or doubled."""
    server = fresh_server(*AOF, "--appendfsync", "always")
    pushed: list[bytes] = []
    moved: dict[int, list[bytes]] = {0: [], 1: []}
    broken = (ConnectionError, EOFError, OSError, AssertionError)

    def push() -> None:
        with server.client() as client:
            try:
                for number in range(10**9):
                    job = b"job-%d" % number
                    client.call("LPUSH", "jobs", job)
                    pushed.append(job)
            except broken:
                pass

    def work(number: int) -> None:
        with server.client() as client:
            try:
                while True:
                    job = client.call_parsed("BLMOVE", "jobs", f"done{number}", "RIGHT", "LEFT", 0)
                    assert isinstance(job, bytes)
                    moved[number].append(job)
            except broken:
                pass

    threads = [threading.Thread(target=push)]
    threads += [threading.Thread(target=work, args=(number,)) for number in moved]
    for thread in threads:
        thread.start()
    wait_until(lambda: len(moved[0]) + len(moved[1]) > 100, timeout_s=120)
    server.kill()
    for thread in threads:
        thread.join()
    server.start()
    with server.client() as client:
        found: list[bytes] = []
        for key in ("jobs", "done0", "done1"):
            jobs = client.call_parsed("LRANGE", key, 0, -1)
            assert isinstance(jobs, list)
            found += jobs
        assert len(found) == len(set(found))
        assert not set(pushed) - set(found)
        assert len(set(found) - set(pushed)) <= 1  # the push that was under way
        for number, jobs in moved.items():
            there = client.call_parsed("LRANGE", f"done{number}", 0, -1)
            assert isinstance(there, list)
            assert there[::-1][: len(jobs)] == jobs


def test_a_large_list_is_removed_without_haste(client: RawClient) -> None:
    fill(client)
    client.call("COPY", "large", "copied")
    size = client.call("LLEN", "large")
    client.call("DEL", "large")
    client.call("RPUSH", "large", "new")
    assert client.call("LLEN", "copied") == size
    assert client.call("LRANGE", "large", 0, -1) == b"*1\r\n$3\r\nnew\r\n"


def test_damaged_payloads_are_refused(client: RawClient) -> None:
    client.call("RPUSH", "k", *[f"element:{number}" for number in range(2000)])
    client.call("RPUSH", "t", "a", "b")
    for key in ("k", "t"):
        dumped = client.call_parsed("DUMP", key)
        assert isinstance(dumped, bytes)
        for at in range(0, len(dumped), max(1, len(dumped) // 50)):
            broken = dumped[:at] + bytes([dumped[at] ^ 0x41]) + dumped[at + 1 :]
            assert client.call("RESTORE", "x", 0, broken).startswith(b"-")
    assert client.call("EXISTS", "x") == b":0\r\n"


def test_pops_of_keys_that_are_not_there_leave_no_record(fresh_server: Factory) -> None:
    calls: list[tuple[bytes, ...]] = [(b"RPUSH", b"a", b"1"), (b"RPUSH", b"b", b"2")]
    calls += [(b"LPOP", key) for key in (b"none", b"a", b"a", b"b", b"none", b"b")]
    check_at_once(fresh_server, lambda server: None, calls)
    server = fresh_server("--appendonly", "yes")
    with server.client() as client:
        client.send(b"".join(encode(*words) for words in calls))
        assert [client.read() for _ in calls]
    assert incr(server).count(b"LPOP") == 2


def test_a_long_list_comes_back_whole_from_every_file(fresh_server: Factory) -> None:
    """Nodes far from its ends are kept in another way than those near them."""
    server = fresh_server(*AOF, *DEBUG, "--aof-use-rdb-preamble", "no", "--save", "")
    strings = [b"%05d" % number + b"x" * 50 for number in range(4000)]
    server.call("RPUSH", "long", *strings)
    assert server.call("LRANGE", "long", 0, -1) == strings
    assert server.call("LRANGE", "long", 1990, 2010) == strings[1990:2011]
    assert server.call("LINDEX", "long", 2000) == strings[2000]
    assert server.call("LPOS", "long", strings[2000]) == 2000
    dumped = server.call("DUMP", "long")
    assert isinstance(dumped, bytes)
    assert server.call("RESTORE", "copy", 0, dumped) == b"OK"
    assert server.call("LRANGE", "copy", 0, -1) == strings
    server.call("BGREWRITEAOF")
    wait_until(lambda: server.info("persistence")["aof_rewrite_in_progress"] == "0")
    assert server.info("persistence")["aof_last_bgrewrite_status"] == "ok"
    for signal_number in (signal.SIGKILL, signal.SIGTERM):
        server.signal(signal_number)
        server.wait()
        server.start()
        assert server.call("LRANGE", "long", 0, -1) == strings
    assert server.call("DEBUG", "RELOAD") == b"OK"
    assert server.call("LRANGE", "long", 0, -1) == strings
