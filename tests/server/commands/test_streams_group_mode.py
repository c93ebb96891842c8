"""XGROUP SETMODE MAX-PENDING: how much of a stream a group has in flight."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from conftest import Factory

from support.client import RawClient, WireError
from support.process import Process, ServerProcess


def add(client: RawClient, key: str, *numbers: int) -> None:
    for number in numbers:
        client.call("XADD", key, f"{number}-0", "n", number)


def limited(client: RawClient, key: str, most: int, *numbers: int) -> None:
    client.call("XGROUP", "CREATE", key, "g", 0, "MKSTREAM")
    assert client.call("XGROUP", "SETMODE", key, "g", "MAX-PENDING", most) == b"+OK\r\n"
    add(client, key, *numbers)


def read(client: RawClient, name: str, *words: str | int) -> list[tuple[str, list[int]]]:
    """Return what XREADGROUP gives: for each stream the numbers of its entries' IDs."""
    reply = client.call_parsed("XREADGROUP", "GROUP", "g", name, *words)
    if reply is None:
        return []
    assert isinstance(reply, list), reply
    return [(key.decode(), [int(row[0].split(b"-")[0]) for row in rows]) for key, rows in reply]


def test_at_most_what_fits(client: RawClient) -> None:
    limited(client, "s", 3, 1, 2, 3, 4, 5)
    assert read(client, "a", "COUNT", 2, "STREAMS", "s", ">") == [("s", [1, 2])]
    assert read(client, "b", "STREAMS", "s", ">") == [("s", [3])]
    assert read(client, "b", "STREAMS", "s", ">") == []
    assert read(client, "a", "STREAMS", "s", 0) == [("s", [1, 2])]  # history is what it was
    assert client.call_parsed("XACK", "s", "g", "2-0") == 1
    assert read(client, "b", "STREAMS", "s", ">") == [("s", [4])]
    client.call("XGROUP", "SETMODE", "s", "g", "max-pending", 0)
    assert read(client, "b", "STREAMS", "s", ">") == [("s", [5])]


def test_a_full_stream_is_passed_over(client: RawClient) -> None:
    limited(client, "s", 1, 1, 2)
    limited(client, "t", 1, 1, 2)
    assert read(client, "a", "STREAMS", "s", ">") == [("s", [1])]
    assert read(client, "b", "STREAMS", "s", "t", ">", ">") == [("t", [1])]
    assert read(client, "c", "STREAMS", "s", "t", ">", ">") == []
    client.call("XACK", "s", "g", "1-0")
    assert read(client, "c", "STREAMS", "s", "t", ">", ">") == [("s", [2])]


def test_other_groups_are_not_bound(client: RawClient) -> None:
    limited(client, "s", 1, 1, 2)
    client.call("XGROUP", "CREATE", "s", "other", 0)
    read(client, "a", "STREAMS", "s", ">")
    reply = client.call_parsed("XREADGROUP", "GROUP", "other", "a", "STREAMS", "s", ">")
    assert isinstance(reply, list)
    assert len(reply[0][1]) == 2


def test_noack_reads_are_bound_too(client: RawClient) -> None:
    limited(client, "s", 1, 1, 2, 3)
    assert read(client, "a", "NOACK", "STREAMS", "s", ">") == [("s", [1])]
    assert read(client, "a", "STREAMS", "s", ">") == [("s", [2])]
    assert read(client, "a", "NOACK", "STREAMS", "s", ">") == []


def test_claims_are_free(client: RawClient) -> None:
    limited(client, "s", 1, 1, 2)
    read(client, "a", "STREAMS", "s", ">")
    assert read(client, "b", "CLAIM", 0, "STREAMS", "s", ">") == [("s", [1])]
    assert read(client, "b", "STREAMS", "s", ">") == []


FREEING = {
    "XACK": ("XACK", "s", "g", "1-0"),
    "XACKDEL": ("XACKDEL", "s", "g", "IDS", 1, "1-0"),
    "XACK by name": ("XACK", "s", "g", "a", "1-0"),
    "DELCONSUMER": ("XGROUP", "DELCONSUMER", "s", "g", "a"),
    "more": ("XGROUP", "SETMODE", "s", "g", "MAX-PENDING", 2),
    "no limit": ("XGROUP", "SETMODE", "s", "g", "MAX-PENDING", 0),
    "XDELEX DELREF": ("XDELEX", "s", "DELREF", "IDS", 1, "1-0"),
    "XTRIM DELREF": ("XTRIM", "s", "MINID", "2-0", "DELREF"),
}


@pytest.mark.parametrize("how", FREEING)
def test_a_parked_reader_wakes(client: RawClient, server: ServerProcess, how: str) -> None:
    limited(client, "s", 1, 1, 2)
    read(client, "a", "STREAMS", "s", ">")
    with server.client() as parked:
        parked.send_command(
            *("XREADGROUP", "GROUP", "g", "b", "BLOCK", 10_000, "STREAMS", "s", ">")
        )
        assert parked.silent(0.05)
        add(client, "s", 3)
        assert parked.silent(0.05)  # what is new does not go out either
        client.call(*FREEING[how])
        reply = parked.read_parsed()
        assert isinstance(reply, list)
        given = [row[0] for row in reply[0][1]]
        assert given == [b"2-0", b"3-0"][: 2 if how == "no limit" else 1]


@pytest.mark.parametrize("purge", ["XCLAIM", "XAUTOCLAIM"])
def test_a_claim_that_purges_frees_room(
    client: RawClient, server: ServerProcess, purge: str
) -> None:
    limited(client, "s", 1, 1, 2)
    read(client, "a", "STREAMS", "s", ">")
    client.call("XDEL", "s", "1-0")
    with server.client() as parked:
        parked.send_command("XREADGROUP", "GROUP", "g", "b", "BLOCK", 0, "STREAMS", "s", ">")
        assert parked.silent(0.05)
        client.call(purge, "s", "g", "c", 0, "1-0")
        reply = parked.read_parsed()
        assert isinstance(reply, list)
        assert [row[0] for row in reply[0][1]] == [b"2-0"]


def test_what_is_released_still_counts(client: RawClient, server: ServerProcess) -> None:
    """XNACK gives an entry back: a reader that claims takes it, and nothing overtakes it."""
    limited(client, "s", 1, 1, 2)
    read(client, "a", "STREAMS", "s", ">")
    with server.client() as plain, server.client() as claiming:
        plain.send_command("XREADGROUP", "GROUP", "g", "p", "BLOCK", 0, "STREAMS", "s", ">")
        assert plain.silent(0.05)
        claiming.send_command(
            *("XREADGROUP", "GROUP", "g", "c", "BLOCK", 0, "CLAIM", 60_000, "STREAMS", "s", ">")
        )
        assert claiming.silent(0.05)
        assert client.call_parsed("XNACK", "s", "g", "FAIL", "IDS", 1, "1-0") == 1
        reply = claiming.read_parsed()
        assert isinstance(reply, list)
        assert [row[0] for row in reply[0][1]] == [b"1-0"]
        assert plain.silent(0.05)
        client.call("XACK", "s", "g", "1-0")
        reply = plain.read_parsed()
        assert isinstance(reply, list)
        assert [row[0] for row in reply[0][1]] == [b"2-0"]


def test_one_acknowledgement_wakes_one_reader(client: RawClient, server: ServerProcess) -> None:
    limited(client, "s", 1, *range(1, 20))
    read(client, "a", "STREAMS", "s", ">")
    readers = [server.client() for _ in range(5)]
    for number, reader in enumerate(readers):
        reader.send_command(
            *("XREADGROUP", "GROUP", "g", f"r{number}", "BLOCK", 0, "STREAMS", "s", ">")
        )
        assert reader.silent(0.02)
    for number, reader in enumerate(readers):
        client.call("XACK", "s", "g", f"{number + 1}-0")
        reply = reader.read_parsed()
        assert isinstance(reply, list)
        assert [row[0] for row in reply[0][1]] == [b"%d-0" % (number + 2)]
        assert all(later.silent(0.01) for later in readers[number + 1 :])
    for reader in readers:
        reader.close()


@pytest.mark.parametrize("streams", [40])
def test_few_workers_keep_the_order_of_many_streams(server: ServerProcess, streams: int) -> None:
    """With one in flight, each stream is worked on in order, and by one worker at a time."""
    keys = [f"s{number}" for number in range(streams)]
    per_stream = 15
    with server.client() as client:
        for key in keys:
            limited(client, key, 1)
    seen: dict[str, list[int]] = {key: [] for key in keys}
    busy: set[str] = set()
    trouble: list[str] = []
    lock = threading.Lock()
    all_added = threading.Event()

    def work(name: str) -> None:
        with server.client() as client:
            words: list[str | int] = ["BLOCK", 1000, "STREAMS", *keys, *[">"] * streams]
            while (got := read(client, name, *words)) or not all_added.is_set():
                for key, numbers in got:
                    with lock:
                        if key in busy or len(numbers) != 1:
                            trouble.append(f"{name}: {key} {numbers}")
                        busy.add(key)
                for key, numbers in got:
                    with lock:
                        seen[key] += numbers
                        busy.discard(key)
                    client.call("XACK", key, "g", f"{numbers[0]}-0")

    workers = [threading.Thread(target=work, args=(f"w{number}",)) for number in range(4)]
    for worker in workers:
        worker.start()
    with server.client() as client:
        for number in range(1, per_stream + 1):
            for key in keys:
                add(client, key, number)
    all_added.set()
    for worker in workers:
        worker.join(60)
    assert not trouble
    assert all(numbers == list(range(1, per_stream + 1)) for numbers in seen.values())


def group_facts(reply: object) -> dict[bytes, object]:
    assert isinstance(reply, list)
    [group] = reply
    return dict(zip(group[::2], group[1::2], strict=True))


def test_shown_only_when_set(client: RawClient) -> None:
    client.call("XGROUP", "CREATE", "s", "g", 0, "MKSTREAM")
    plain = client.call("XINFO", "GROUPS", "s"), client.call("XINFO", "STREAM", "s", "FULL")
    assert not any(b"max-pending" in shown for shown in plain)
    client.call("XGROUP", "SETMODE", "s", "g", "MAX-PENDING", 7)
    assert group_facts(client.call_parsed("XINFO", "GROUPS", "s"))[b"max-pending"] == 7
    assert b"$11\r\nmax-pending\r\n:7\r\n" in client.call("XINFO", "STREAM", "s", "FULL")
    client.call("XGROUP", "SETMODE", "s", "g", "MAX-PENDING", 0)
    again = client.call("XINFO", "GROUPS", "s"), client.call("XINFO", "STREAM", "s", "FULL")
    assert again == plain


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("s", "g", "MAX-PENDING", -1), b"ERR MAX-PENDING must be 0 or a positive integer"),
        (("s", "g", "MAX-PENDING", "x"), b"ERR value is not an integer or out of range"),
        (("s", "g", "MIN-PENDING", 1), b"ERR syntax error"),
        (("s", "h", "MAX-PENDING", 1), b"NOGROUP No such consumer group 'h' for key name 's'"),
        (("s", "g", "MAX-PENDING"), b"ERR wrong number of arguments for 'xgroup|setmode' command"),
        (
            ("text", "g", "MAX-PENDING", 1),
            b"WRONGTYPE Operation against a key holding the wrong kind of value",
        ),
    ],
)
def test_refusals(client: RawClient, words: tuple[str | int, ...], line: bytes) -> None:
    client.call("XGROUP", "CREATE", "s", "g", 0, "MKSTREAM")
    client.call("SET", "text", 1)
    assert client.call_parsed("XGROUP", "SETMODE", *words) == WireError(line)
    missing = client.call("XGROUP", "SETMODE", "none", "g", "MAX-PENDING", 1)
    assert missing.startswith(b"-ERR The XGROUP subcommand requires the key to exist.")
    assert client.call("EXISTS", "none") == b":0\r\n"


def check_kept(server: Process) -> None:
    for key in ("s", "copy"):
        assert group_facts(server.call("XINFO", "GROUPS", key))[b"max-pending"] == 2


def test_it_is_kept(fresh_server: Factory) -> None:
    """By COPY, a restart, a rewrite and a restart after that."""
    server = fresh_server("--appendonly", "yes")
    with server.client() as client:
        limited(client, "s", 2, 1, 2, 3)
        client.call("COPY", "s", "copy")
        read(client, "a", "COUNT", 1, "STREAMS", "s", ">")
    check_kept(server)
    server.restart(crash=True)
    check_kept(server)
    server.call("BGREWRITEAOF")
    server.wait_for_log("Append-only base file written")
    server.restart()
    check_kept(server)
    with server.client() as client:
        assert read(client, "b", "STREAMS", "s", ">") == [("s", [2])]
        assert read(client, "b", "STREAMS", "s", ">") == []


def test_recorded_as_it_is(fresh_server: Factory) -> None:
    server = fresh_server("--appendonly", "yes", "--appendfsync", "always")
    with server.client() as client:
        limited(client, "s", 2)
    [path] = Path(server.directory, "appendonlydir").glob("*.incr.aof")
    assert b"XGROUP\r\n$7\r\nSETMODE\r\n$1\r\ns\r\n$1\r\ng\r\n$11\r\nMAX-PENDING\r\n$1\r\n2" in (
        path.read_bytes()
    )
