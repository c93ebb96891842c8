"""Commands on hashes: what they answer, what they record, and what is left after a restart."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Factory

from support.client import RawClient
from support.process import Process, ServerProcess

AOF = ("--appendonly", "yes", "--enable-debug-command", "yes")
WRONGTYPE = b"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"
READS = [
    *("HGET k f", "HMGET k f", "HGETALL k", "HKEYS k", "HVALS k", "HLEN k", "HSTRLEN k f"),
    *("HEXISTS k f", "HRANDFIELD k", "HSCAN k 0", "HTTL k FIELDS 1 f"),
]
WRITES = [
    *("HSET k f 1", "HMSET k f 1", "HSETNX k f 1", "HDEL k f", "HINCRBY k f 1"),
    *("HINCRBYFLOAT k f 1", "HEXPIRE k 10 FIELDS 1 f", "HPERSIST k FIELDS 1 f"),
    *("HGETEX k FIELDS 1 f", "HSETEX k FIELDS 1 f 1", "HGETDEL k FIELDS 1 f"),
]


def recorded(server: Process) -> list[bytes]:
    """The commands that the append-only file got, SELECT left out."""
    [file] = Path(server.directory, "appendonlydir").glob("*.incr.aof")
    lines = [b" ".join(words) for words in requests_of(file.read_bytes())]
    return [line for line in lines if not line.startswith(b"SELECT")]


def requests_of(data: bytes) -> list[list[bytes]]:
    found: list[list[bytes]] = []
    at = 0
    while at < len(data):
        end = data.index(b"\r\n", at)
        count = int(data[at + 1 : end])
        at = end + 2
        words = []
        for _ in range(count):
            end = data.index(b"\r\n", at)
            size = int(data[at + 1 : end])
            words.append(data[end + 2 : end + 2 + size])
            at = end + 4 + size
        found.append(words)
    return found


def digest(server: Process) -> object:
    return server.call("DEBUG", "DIGEST")


def test_fields_are_set_read_and_deleted(client: RawClient) -> None:
    assert client.call("HSET", "h", "a", "1", "b", "2", "a", "3") == b":2\r\n"
    assert client.call("HGETALL", "h") == b"*4\r\n$1\r\na\r\n$1\r\n3\r\n$1\r\nb\r\n$1\r\n2\r\n"
    assert client.call("HMGET", "h", "b", "x") == b"*2\r\n$1\r\n2\r\n$-1\r\n"
    assert client.call("HSETNX", "h", "a", "4") == b":0\r\n"
    assert client.call("HINCRBY", "h", "a", "-5") == b":-2\r\n"
    assert client.call("HINCRBYFLOAT", "h", "a", "2.25") == b"$4\r\n0.25\r\n"
    assert client.call("HDEL", "h", "a", "a", "b") == b":2\r\n"
    assert client.call("EXISTS", "h") == b":0\r\n"
    assert client.call("HGETALL", "h") == b"*0\r\n"


def test_resp3_has_maps_and_pairs(client3: RawClient) -> None:
    assert client3.call("HGETALL", "h") == b"%0\r\n"
    client3.call("HSET", "h", "a", "1")
    assert client3.call("HGETALL", "h") == b"%1\r\n$1\r\na\r\n$1\r\n1\r\n"
    assert client3.call("HKEYS", "h") == b"*1\r\n$1\r\na\r\n"
    pair = b"$1\r\na\r\n$1\r\n1\r\n"
    assert client3.call("HRANDFIELD", "h", 1, "WITHVALUES") == b"*1\r\n*2\r\n" + pair
    assert client3.call("HSCAN", "h", 0) == b"*2\r\n$1\r\n0\r\n*2\r\n" + pair
    assert client3.call("HGET", "h", "x") == b"_\r\n"


@pytest.mark.parametrize("words", [*READS, *WRITES])
def test_other_types_are_refused(client: RawClient, words: str) -> None:
    client.call("SET", "k", "v")
    assert client.call(*words.split()) == WRONGTYPE
    assert client.call("GET", "k") == b"$1\r\nv\r\n"


@pytest.mark.parametrize("size", [5, 40, 3000])
def test_random_fields(client: RawClient, size: int) -> None:
    client.call("HSET", "h", *[word for at in range(size) for word in (f"f{at}", f"v{at}")])
    every = {b"f%d" % at for at in range(size)}
    for count in (1, 4, size // 2, size - 1, size, size + 5):
        found = client.call_parsed("HRANDFIELD", "h", count)
        assert isinstance(found, list)
        assert len(set(found)) == len(found) == min(count, size)
        assert set(found) <= every
    met: set[bytes] = set()
    for _ in range(20):
        found = client.call_parsed("HRANDFIELD", "h", -size, "WITHVALUES")
        assert isinstance(found, list)
        assert len(found) == 2 * size
        assert all(
            value == b"v" + field[1:] for field, value in zip(found[::2], found[1::2], strict=True)
        )
        met |= set(found[::2])
    assert len(met) > 0.99 * size


def test_a_large_one_is_walked_while_it_grows(client: RawClient) -> None:
    stays = {b"stays%d" % at for at in range(2000)}
    client.call("HSET", "h", *[word for field in stays for word in (field, b"v")])
    cursor = b"0"
    met: set[bytes] = set()
    rounds = 0
    while True:
        reply = client.call_parsed("HSCAN", "h", cursor, "COUNT", 20, "MATCH", "stays*", "NOVALUES")
        assert isinstance(reply, list)
        cursor, found = reply
        met |= set(found)
        rounds += 1
        client.call("HSET", "h", *[word for at in range(50) for word in (f"n{rounds}-{at}", "v")])
        if cursor == b"0":
            break
    assert met == stays
    assert rounds > 20


RECORDS = [
    ("HSET h a 1 b 2", ["HSET h a 1 b 2"]),
    ("HSETNX h a 5", []),
    ("HSETNX h n 5", ["HSETNX h n 5"]),
    ("HINCRBY h a 1", ["HINCRBY h a 1"]),
    ("HINCRBYFLOAT h a .5", ["HSETEX h KEEPTTL FIELDS 1 a 2.5"]),
    ("HDEL h b x b", ["HDEL h b x b"]),
    ("HPEXPIREAT h 4102444800000 XX FIELDS 1 a", []),
    ("HPEXPIREAT h 4102444800000 NX FIELDS 2 a x", ["HPEXPIREAT h 4102444800000 NX FIELDS 1 a"]),
    ("HGETEX h PXAT 4102444800001 FIELDS 1 n", ["HPEXPIREAT h 4102444800001 FIELDS 1 n"]),
    ("HGETEX h PERSIST FIELDS 2 n x", ["HPERSIST h FIELDS 2 n x"]),
    ("HPERSIST h FIELDS 2 a n", ["HPERSIST h FIELDS 2 a n"]),
    ("HSETEX h FNX FIELDS 1 m 1", ["HSETEX h FNX FIELDS 1 m 1"]),
    ("HSETEX h FNX FIELDS 1 m 1", []),
    (
        "HSETEX h EXAT 4102444800 FIELDS 2 a 1 c 2",
        ["HSETEX h PXAT 4102444800000 FIELDS 2 a 1 c 2"],
    ),
    ("HSETEX h KEEPTTL FIELDS 1 a 3", ["HSETEX h KEEPTTL FIELDS 1 a 3"]),
    ("HSETEX h PXAT 1 FIELDS 2 m 3 new 1", ["MULTI", "HDEL h m", "HDEL h new", "EXEC"]),
    ("HGETEX h PXAT 1 FIELDS 1 c", ["HDEL h c"]),
    ("HEXPIRE h 0 FIELDS 2 n x", ["HDEL h n"]),
    ("HSET h p 1 q 2 r 3 s 4", ["HSET h p 1 q 2 r 3 s 4"]),
    ("HPEXPIRE h 0 FIELDS 2 p q", ["MULTI", "HDEL h p", "HDEL h q", "EXEC"]),
    ("HGETEX h PX 0 FIELDS 2 r s", ["MULTI", "HDEL h r", "HDEL h s", "EXEC"]),
    ("HGETDEL h FIELDS 2 a x", ["HDEL h a x"]),
    ("HGETALL h", []),
    ("HIMPORT PREPARE u bb a", []),
    ("HIMPORT SET h u 1 2", ["HSET h a 2 bb 1"]),
    ("HIMPORT SET h u 3 4", ["MULTI", "DEL h", "HSET h a 4 bb 3", "EXEC"]),
]


def test_records(fresh_server: Factory) -> None:
    server = fresh_server(*AOF)
    with server.client() as client:
        seen = 0
        for words, expected in RECORDS:
            client.call(*words.split())
            found = recorded(server)
            assert [line.decode() for line in found[seen:]] == expected, words
            seen = len(found)
    before = digest(server)
    server.restart(crash=True)
    assert digest(server) == before


def fill(client: RawClient) -> None:
    """Hashes of all kinds, in two databases."""
    client.call("HSET", "small", "a", "1", "b", "", "c\r\n", b"\0\xff")
    client.call("HSET", "mortal", "a", "1", "b", "2", "c", "3")
    client.call("HPEXPIREAT", "mortal", 4102444800123, "FIELDS", 1, "b")
    client.call("PEXPIREAT", "mortal", 4102444800456)
    for key, size in (("large", 6_000), ("mortal-large", 3_000)):
        for at in range(0, size, 500):
            words = [word for n in range(at, at + 500) for word in (f"field-{n}", f"value-{n}")]
            client.call("HSET", key, *words)
    client.call("HSET", "large", "long", "x" * 100_000)
    for at in range(0, 3_000, 3):
        client.call("HPEXPIREAT", "mortal-large", 4102444800000 + at, "FIELDS", 1, f"field-{at}")
    client.call("SELECT", 1)
    client.call("HSET", "other", *[word for n in range(600) for word in (f"{n}", "v" * 70)])
    client.call("SELECT", 0)


@pytest.mark.parametrize("way", ["aof", "snapshot", "rewrite", "commands", "reload", "loadaof"])
def test_all_is_there_again(fresh_server: Factory, way: str) -> None:
    preamble = "no" if way == "commands" else "yes"
    aof = "no" if way == "snapshot" else "yes"
    server = fresh_server(
        *("--appendonly", aof, "--aof-use-rdb-preamble", preamble, "--enable-debug-command", "yes")
    )
    with server.client(timeout_s=60) as client:
        fill(client)
        before = digest(server)
        if way in ("rewrite", "commands"):
            client.call("BGREWRITEAOF")
            client.call("HSET", "late", "a", "1")
            before = digest(server)
        elif way == "snapshot":
            client.call("SAVE")
        elif way == "reload":
            assert client.call("DEBUG", "RELOAD") == b"+OK\r\n"
        elif way == "loadaof":
            assert client.call("DEBUG", "LOADAOF") == b"+OK\r\n"
    if way in ("rewrite", "commands"):
        server.wait_for_log("Append-only base file written", timeout_s=60)
    if way not in ("reload", "loadaof"):
        server.restart(crash=way != "snapshot")
    with server.client() as client:
        assert digest(server) == before
        assert client.call("HLEN", "large") == b":6001\r\n"
        assert client.call("HSTRLEN", "large", "long") == b":100000\r\n"
        assert client.call("HPEXPIRETIME", "mortal", "FIELDS", 2, "b", "a") == (
            b"*2\r\n:4102444800123\r\n:-1\r\n"
        )
        assert client.call("HPEXPIRETIME", "mortal-large", "FIELDS", 2, "field-3", "field-4") == (
            b"*2\r\n:4102444800003\r\n:-1\r\n"
        )
        for key, encoding in (("small", b"listpack"), ("mortal", b"listpackex")):
            assert client.call_parsed("OBJECT", "ENCODING", key) == encoding
        keyspace = server.info("keyspace")["db0"]
        assert "subexpiry=2" in keyspace, keyspace
        client.call("HSET", "large", "new", "1")
        assert client.call("HLEN", "large") == b":6002\r\n"


def test_himport_belongs_to_its_connection(server: ServerProcess) -> None:
    with server.client() as one, server.client() as other:
        one.call("HIMPORT", "PREPARE", "u", "a", "b")
        assert other.call("HIMPORT", "SET", "k", "u", 1, 2) == b"-ERR no such fieldset\r\n"
        assert one.call("HIMPORT", "SET", "k", "u", 1, 2) == b"+OK\r\n"
        one.call("RESET")
        assert one.call("HIMPORT", "SET", "k", "u", 1, 2) == b"-ERR no such fieldset\r\n"
        assert other.call("HGETALL", "k") == b"*4\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\nb\r\n$1\r\n2\r\n"
