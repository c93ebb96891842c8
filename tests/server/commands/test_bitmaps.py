"""The commands on bitmaps, here and in Redis 8.10."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from support.client import Argument, RawClient, WireError
from support.process import Process, ServerProcess

OFFSET = WireError(b"ERR bit offset is not an integer or out of range")
NOT_A_BIT = WireError(b"ERR bit is not an integer or out of range")
INTEGER = WireError(b"ERR value is not an integer or out of range")
SYNTAX = WireError(b"ERR syntax error")
WRONGTYPE = WireError(b"WRONGTYPE Operation against a key holding the wrong kind of value")
FIELD_TYPE = WireError(
    b"ERR Invalid bitfield type. Use something like i16 u8. "
    b"Note that u64 is not supported but i64 is."
)


@pytest.fixture
def client(tested: Process) -> Iterator[RawClient]:
    with tested.client() as connection:
        yield connection


def test_single_bits(client: RawClient) -> None:
    assert client.call_parsed("SETBIT", "k", 7, 1) == 0
    assert client.call_parsed("SETBIT", "k", 7, 0) == 1
    assert client.call_parsed("SETBIT", "k", 33, 1) == 0
    assert client.call_parsed("GET", "k") == b"\x00\x00\x00\x00\x40"
    assert client.call_parsed("GETBIT", "k", 33) == 1
    assert client.call_parsed("GETBIT", "k", 32) == 0
    assert client.call_parsed("GETBIT", "k", 4_000_000_000) == 0
    client.call("SET", "number", 12)  # "12" is 0x31 0x32
    assert client.call_parsed("GETBIT", "number", 2) == 1
    assert client.call_parsed("SETBIT", "number", 6, 1) == 0
    assert client.call_parsed("GET", "number") == b"32"
    assert client.call_parsed("OBJECT", "ENCODING", "number") == b"raw"


def test_counts(client: RawClient) -> None:
    client.call("SET", "k", "foobar")
    for words, count in (
        ((), 26),
        ((0, 0), 4),
        ((1, 1), 6),
        ((1, -2), 18),
        ((5, 30, "BIT"), 17),
        ((-3, 100), 10),
        ((4, 2), 0),
        ((-2, -4), 0),
        ((100, 200), 0),
    ):
        assert client.call_parsed("BITCOUNT", "k", *words) == count, words
    assert client.call_parsed("BITCOUNT", "none", 0, -1) == 0


def test_places(client: RawClient) -> None:
    client.call("SET", "k", b"\xff\xf0\x00")
    client.call("SET", "ones", b"\xff\xff")
    for words, place in (
        (("k", 0), 12),
        (("k", 1), 0),
        (("k", 1, 2), -1),
        (("k", 1, 1), 8),
        (("k", 0, 7, 15, "BIT"), 12),
        (("k", 1, 12, 23, "bit"), -1),
        (("ones", 0), 16),
        (("ones", 0, 1), 16),
        (("ones", 0, 0, -1), -1),
        (("ones", 0, 5), -1),
        (("none", 0), 0),
        (("none", 1), -1),
    ):
        assert client.call_parsed("BITPOS", *words) == place, words


def test_combined(client: RawClient) -> None:
    client.call("MSET", "a", b"\x0f\xf0\x01", "b", b"\x33\x55", "c", b"\xff")
    for operation, sources, result in (
        ("AND", "abc", b"\x03\x00\x00"),
        ("OR", "abx", b"\x3f\xf5\x01"),
        ("XOR", "ab", b"\x3c\xa5\x01"),
        ("NOT", "a", b"\xf0\x0f\xfe"),
        ("DIFF", "ab", b"\x0c\xa0\x01"),
        ("DIFF1", "ab", b"\x30\x05\x00"),
        ("ANDOR", "abc", b"\x0f\x50\x00"),
        ("ONE", "abc", b"\xc0\xa5\x01"),
        ("ONE", "b", b"\x33\x55"),
    ):
        assert client.call_parsed("BITOP", operation, "to", *sources) == len(result)
        assert client.call_parsed("GET", "to") == result, operation
    assert client.call_parsed("BITOP", "and", "to", "x", "y") == 0
    assert client.call_parsed("EXISTS", "to") == 0


@pytest.mark.parametrize("operation", ["AND", "OR", "XOR", "NOT", "DIFF", "DIFF1", "ANDOR", "ONE"])
def test_combined_where_strings_are_long(client: RawClient, operation: str) -> None:
    """Also where some end long before others, within a word, and one was written into."""
    drawn = random.Random(operation)
    texts = [drawn.randbytes(size) for size in (100_003, 70_001, 32_768)]
    for name, text in zip("abc", texts, strict=True):
        client.call("SET", name, text)
    client.call("SETRANGE", "b", 0, texts[1][:5])
    size = 1 if operation == "NOT" else 3
    first, *others = [int.from_bytes(text.ljust(100_003, b"\0"), "big") for text in texts[:size]]
    whole = (1 << 8 * 100_003) - 1
    any_other = others[0] | others[1] if others else 0
    expected = {
        "AND": lambda: first & others[0] & others[1],
        "OR": lambda: first | any_other,
        "XOR": lambda: first ^ others[0] ^ others[1],
        "NOT": lambda: first ^ whole,
        "DIFF": lambda: first & ~any_other,
        "DIFF1": lambda: any_other & ~first,
        "ANDOR": lambda: first & any_other,
        "ONE": lambda: (first ^ others[0] ^ others[1]) & ~(first & others[0] & others[1]),
    }[operation]()
    assert client.call_parsed("BITOP", operation, "to", *"abc"[:size]) == 100_003
    assert client.call_parsed("GET", "to") == expected.to_bytes(100_003, "big")
    assert client.call_parsed("BITOP", operation, "a", *"abc"[:size]) == 100_003
    assert client.call_parsed("GET", "a") == expected.to_bytes(100_003, "big")


@pytest.mark.parametrize("there", ["", "short", "x" * 100_000])
def test_far_behind_the_end(client: RawClient, there: str) -> None:
    if there:
        client.call("SET", "bits", there)
        client.call("SET", "text", there)
    assert client.call_parsed("SETBIT", "bits", 8 * 300_001 + 7, 1) == 0
    assert client.call_parsed("GET", "bits") == there.encode().ljust(300_001, b"\0") + b"\x01"
    assert client.call_parsed("SETRANGE", "text", 300_001, "end") == 300_004
    assert client.call_parsed("GET", "text") == there.encode().ljust(300_001, b"\0") + b"end"


def test_fields(client: RawClient) -> None:
    field = "BITFIELD", "k"
    assert client.call_parsed(*field, "SET", "u8", 0, 255, "GET", "i8", 0) == [0, -1]
    assert client.call_parsed(*field, "INCRBY", "u8", "#0", 10) == [9]
    saturated = client.call_parsed(
        *field, "OVERFLOW", "SAT", "INCRBY", "i5", 100, -17, "INCRBY", "i5", 100, 40
    )
    assert saturated == [-16, 15]
    greatest = client.call_parsed(*field, "OVERFLOW", "SAT", "SET", "u3", 8, -1, "GET", "u3", 8)
    assert greatest == [0, 7]
    assert client.call_parsed(*field, "OVERFLOW", "FAIL", "SET", "u2", 102, 4) == [None]
    assert client.call_parsed(*field, "SET", "i64", 3, -5, "GET", "i64", 3) == [
        0x4F << 56,
        -5,
    ]
    assert client.call_parsed("BITFIELD_RO", "k", "GET", "u4", 65) == [12]
    assert client.call_parsed("BITFIELD_RO", "none", "GET", "u63", "#9") == [0]
    assert client.call_parsed("EXISTS", "none") == 0
    assert client.call_parsed(*field) == []


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (("SETBIT", "k", -1, 1), OFFSET),
        (("SETBIT", "k", 4_294_967_296, 2), OFFSET),
        (("SETBIT", "k", 0, 2), NOT_A_BIT),
        (("SETBIT", "x", 0, 1), WRONGTYPE),
        (("GETBIT", "x", "a"), OFFSET),
        (("GETBIT", "x", 0), WRONGTYPE),
        (("BITCOUNT", "x", 0), SYNTAX),
        (("BITCOUNT", "x", 0, "a", "FOO"), INTEGER),
        (("BITCOUNT", "x", 0, 1, "FOO"), SYNTAX),
        (("BITPOS", "x", 2), WireError(b"ERR The bit argument must be 1 or 0.")),
        (("BITPOS", "x", 1, 0, "a", "FOO"), SYNTAX),
        (("BITPOS", "x", 1, 0, "a", "BIT"), INTEGER),
        (("BITOP", "NAND", "to", "a"), SYNTAX),
        (
            ("BITOP", "not", "to", "a", "b"),
            WireError(b"ERR BITOP NOT must be called with a single source key."),
        ),
        (
            ("BITOP", "diff1", "to", "x"),
            WireError(b"ERR BITOP DIFF1 must be called with at least two source keys."),
        ),
        (("BITOP", "OR", "to", "none", "x"), WRONGTYPE),
        (("BITFIELD", "k", "GET", "u64", 0), FIELD_TYPE),
        (("BITFIELD", "k", "GET", "i8", "#"), OFFSET),
        (("BITFIELD", "k", "SET", "i8", 0, "a"), INTEGER),
        (("BITFIELD", "k", "SET", "i8", 0), SYNTAX),
        (("BITFIELD", "k", "OVERFLOW", "a"), WireError(b"ERR Invalid OVERFLOW type specified")),
        (
            ("BITFIELD_RO", "k", "SET", "u8", 0, 1),
            WireError(b"ERR BITFIELD_RO only supports the GET subcommand"),
        ),
    ],
)
def test_refused(client: RawClient, request_: tuple[Argument, ...], error: WireError) -> None:
    client.call("XADD", "x", "1-1", "f", "v")
    assert client.call_parsed(*request_) == error
    assert client.call_parsed("EXISTS", "k", "to") == 0


def test_same_after_a_crash(fresh_server: type[ServerProcess]) -> None:
    server = fresh_server("--appendonly", "yes", "--appendfsync", "always")
    with server.client() as client:
        client.call("SETBIT", "k", 100, 1)
        client.call("SETBIT", "k", 100, 1)
        client.call("BITFIELD", "k", "INCRBY", "i7", 3, 55)
        client.call("BITFIELD", "grown", "OVERFLOW", "FAIL", "SET", "u1", 77, 2)
        client.call("BITOP", "NOT", "turned", "k")
        before = [client.call("GET", key) for key in ("k", "grown", "turned")]
    server.restart(crash=True)
    with server.client() as client:
        assert [client.call("GET", key) for key in ("k", "grown", "turned")] == before
