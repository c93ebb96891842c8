"""HyperLogLogs, here and in Redis 8.10."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.client import Argument, RawClient, Status, WireError
from support.process import Process, ServerProcess

OK = Status(b"OK")
NO_SKETCH = WireError(b"WRONGTYPE Key is not a valid HyperLogLog string value.")
CORRUPTED = WireError(b"INVALIDOBJ Corrupted HLL object detected")
WRONGTYPE = WireError(b"WRONGTYPE Operation against a key holding the wrong kind of value")


@pytest.fixture
def client(tested: Process) -> Iterator[RawClient]:
    with tested.client() as connection:
        yield connection


def test_bytes(client: RawClient) -> None:
    assert client.call_parsed("PFADD", "h") == 1
    assert client.call_parsed("GET", "h") == b"HYLL\x01" + bytes(10) + b"\x80\x7f\xff"
    assert client.call_parsed("PFADD", "h") == 0
    assert client.call_parsed("PFADD", "h", "a", "b", "c", "a") == 1
    assert client.call_parsed("PFADD", "h", "b") == 0
    runs = b"Z:8436 v:1,1 Z:4274 v:2,1 Z:3068 v:1,1 Z:603"
    assert client.call_parsed("PFDEBUG", "DECODE", "h") == runs
    assert client.call_parsed("PFCOUNT", "h") == 3
    sparse = (
        b"HYLL\x01\0\0\0" + b"\x03" + bytes(7) + b"\x60\xf3\x80\x50\xb1\x84\x4b\xfb\x80\x42\x5a"
    )
    assert client.call_parsed("GET", "h") == sparse
    assert client.call_parsed("OBJECT", "ENCODING", "h") == b"raw"


def test_dense(client: RawClient) -> None:
    client.call("PFADD", "h", "a", "b", "c")
    assert client.call_parsed("PFDEBUG", "ENCODING", "h") == Status(b"sparse")
    assert client.call_parsed("PFDEBUG", "TODENSE", "h") == 1
    assert client.call_parsed("PFDEBUG", "TODENSE", "h") == 0
    assert client.call_parsed("PFDEBUG", "ENCODING", "h") == Status(b"dense")
    assert client.call_parsed("STRLEN", "h") == 12304
    registers = client.call_parsed("PFDEBUG", "GETREG", "h")
    assert isinstance(registers, list)
    assert len(registers) == 16384
    assert {at: count for at, count in enumerate(registers) if count} == {
        8436: 1,
        12711: 2,
        15780: 1,
    }
    assert client.call_parsed("PFADD", "h", "c") == 0
    assert client.call_parsed("PFCOUNT", "h") == 3
    assert client.call_parsed("PFDEBUG", "DECODE", "h") == WireError(
        b"ERR HLL encoding is not sparse"
    )


def test_estimates(client: RawClient) -> None:
    for number, about in ((100, 100), (1000, 1001), (20_000, 19_891)):
        client.call("PFADD", f"{number}", *range(number))
        assert client.call_parsed("PFCOUNT", f"{number}") == about
    client.call("PFADD", "others", *range(19_000, 21_000))
    assert client.call_parsed("PFCOUNT", "20000", "none", "others", "100") == 20_980
    assert client.call_parsed("PFMERGE", "all", "others", "20000", "none") == OK
    assert client.call_parsed("PFCOUNT", "all") == 20_980
    assert client.call_parsed("PFDEBUG", "ENCODING", "all") == Status(b"dense")
    client.call("PFADD", "few", 1, 2, 3)
    assert client.call_parsed("PFMERGE", "some", "few", "100") == OK
    assert client.call_parsed("PFDEBUG", "ENCODING", "some") == Status(b"sparse")
    assert client.call_parsed("PFMERGE", "empty") == OK
    assert client.call_parsed("PFCOUNT", "empty") == 0
    assert client.call_parsed("PFCOUNT", "none") == 0


def test_the_sparse_form_has_a_limit(client: RawClient) -> None:
    assert client.call_parsed("CONFIG", "SET", "hll-sparse-max-bytes", 30) == OK
    try:
        sizes = []
        for number in range(8):
            client.call("PFADD", "h", number)
            sizes.append(client.call_parsed("STRLEN", "h"))
        assert sizes == [21, 24, 27, 30, 12304, 12304, 12304, 12304]
    finally:
        client.call("CONFIG", "SET", "hll-sparse-max-bytes", 3000)


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"HYLL",
        b"HYLX\x01" + bytes(11) + b"\x7f\xff",
        b"HYLL\x02" + bytes(11) + b"\x7f\xff",
        b"HYLL\x00" + bytes(12_298),
        b"1234567890123456789",
    ],
)
def test_what_is_none(client: RawClient, value: bytes) -> None:
    client.call("SET", "s", value)
    client.call("PFADD", "h", "a")
    for request in (
        ("PFADD", "s", "a"),
        ("PFCOUNT", "s"),
        ("PFCOUNT", "h", "s"),
        ("PFMERGE", "h", "s"),
        ("PFMERGE", "s"),
        ("PFDEBUG", "FOO", "s"),
    ):
        assert client.call_parsed(*request) == NO_SKETCH
    assert client.call_parsed("GET", "s") == value


@pytest.mark.parametrize(
    "runs", [b"", b"\x7f\xfe", b"\x7f\xff\x00", b"\x7f\xff\x80", b"\x7f\xfe\x81"]
)
def test_what_does_not_add_up(client: RawClient, runs: bytes) -> None:
    value = b"HYLL\x01" + bytes(10) + b"\x80" + runs
    client.call("SET", "s", value)
    client.call("PFADD", "h", "a")
    for request in (
        ("PFCOUNT", "s"),
        ("PFCOUNT", "h", "s"),
        ("PFMERGE", "h", "s"),
        ("PFMERGE", "s"),
        ("PFDEBUG", "TODENSE", "s"),
        ("PFDEBUG", "GETREG", "s"),
    ):
        assert client.call_parsed(*request) == CORRUPTED, request
    assert client.call_parsed("GET", "s") == value


def test_registers_beyond_all_counts(client: RawClient) -> None:
    client.call("SET", "s", b"HYLL\x00" + bytes(10) + b"\x80" + b"\xff" * 12_288)
    assert client.call_parsed("PFCOUNT", "s") == -(2**63)
    assert client.call_parsed("PFADD", "s", "a") == 0


@pytest.mark.parametrize(
    ("request_", "reply"),
    [
        (("PFADD", "x", "a"), WRONGTYPE),
        (("PFCOUNT", "x"), WRONGTYPE),
        (("PFCOUNT", "none", "x"), WRONGTYPE),
        (("PFMERGE", "none", "x"), WRONGTYPE),
        (("PFDEBUG", "FOO", "none"), WireError(b"ERR The specified key does not exist")),
        (("PFDEBUG", "FOO", "h"), WireError(b"ERR Unknown PFDEBUG subcommand 'FOO'")),
        (("PFDEBUG", "simd", "on"), Status(b"enabled")),
        (("PFSELFTEST",), OK),
    ],
)
def test_other_replies(client: RawClient, request_: tuple[Argument, ...], reply: object) -> None:
    client.call("XADD", "x", "1-1", "f", "v")
    client.call("PFADD", "h", "a")
    assert client.call_parsed(*request_) == reply
    assert client.call_parsed("EXISTS", "none") == 0


def test_same_after_a_crash(fresh_server: type[ServerProcess]) -> None:
    server = fresh_server("--appendonly", "yes", "--appendfsync", "always")
    keys = ("h", "dense", "all")
    with server.client() as client:
        client.call("PFADD", "h", *range(50))
        client.call("PFADD", "dense", "a")
        client.call("PFDEBUG", "TODENSE", "dense")
        client.call("PFMERGE", "all", "h", "dense")
        client.call("PFCOUNT", "h")
        before = [client.call("GET", key) for key in keys]
    server.restart(crash=True)
    with server.client() as client:
        assert [client.call("GET", key) for key in keys] == before


def test_an_estimate_is_no_change_of_what_a_snapshot_takes(
    fresh_server: type[ServerProcess],
) -> None:
    """The barrier stands before PFCOUNT, too, although it is a command that only reads."""
    server = fresh_server()
    with server.client() as client:
        client.call("PFADD", "h", "a", "b")
        before = client.call("GET", "h")
        client.call("BGSAVE")
        assert client.call_parsed("PFCOUNT", "h") == 2
        assert client.call("GET", "h") != before
