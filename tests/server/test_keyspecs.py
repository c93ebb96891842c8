from __future__ import annotations

import pytest

from headrace.server.dispatch.key_specs import has_keys, key_positions, key_uses, xread_keys
from headrace.server.dispatch.rows import Command, KeySpec


def row(*specs: KeySpec, name: bytes = b"some") -> Command:
    return Command(name, "", -1, 0, specs, (), ())


def positions(request: str, *specs: KeySpec) -> list[int]:
    return key_positions(row(*specs), request.encode().split())


@pytest.mark.parametrize(
    ("request_line", "expected"),
    [
        ("XREAD STREAMS a 0", [2]),
        ("XREAD COUNT 1 BLOCK 0 STREAMS a b 0 0", [6, 7]),
        ("xread count 1 streams streams 0", [4]),
        ("XREAD MAXCOUNT 1 MAXSIZE 2 STREAMS a 0", [6]),
        ("XREADGROUP GROUP streams streams NOACK STREAMS streams >", [6]),
        ("XREADGROUP GROUP g STREAMS CLAIM 5 STREAMS a b > >", [7, 8]),
        ("XREAD STREAMS STREAMS STREAMS 0 0", [2, 3]),
        ("XREAD STABLE COUNT 1 stable STREAMS a 0", [6]),
        ("XREAD COUNT STREAMS a 0", []),
        ("XREAD STREAMS a", []),
        ("XREAD STREAMS a b 0", []),
        ("XREAD STREAMS", []),
        ("XREAD COUNT 1", []),
        ("XREAD WHAT STREAMS a 0", []),
        ("XREAD", []),
    ],
)
def test_xread_keys(request_line: str, expected: list[int]) -> None:
    assert xread_keys(request_line.encode().split()) == expected


def test_index_and_range() -> None:
    assert positions("GET a", KeySpec("RO")) == [1]
    assert positions("OBJECT FREQ a", KeySpec("RO at 2")) == [2]
    assert positions("DEL a b c", KeySpec("RM to -1")) == [1, 2, 3]
    assert positions("MSET a 1 b 2", KeySpec("OW to -1 step 2")) == [1, 3]
    assert positions("BLPOP a b 0", KeySpec("RW to -2")) == [1, 2]
    assert positions("RENAME a b", KeySpec("RW"), KeySpec("OW at 2")) == [1, 2]


def test_keyword() -> None:
    after = KeySpec("RO behind STREAMS from 1 to -1 limit 2")
    assert positions("X OPT streams a b 0 0", after) == [3, 4]
    assert positions("X OPT a b", after) == []
    from_the_end = KeySpec("RW behind KEYS from -2 to -1")
    assert positions("MIGRATE h p KEYS 0 t KEYS a b", from_the_end) == [7, 8]


def test_number_of_keys() -> None:
    spec = KeySpec("OW counted step 2")
    assert positions("MSETEX 2 a 1 b 2", spec) == [2, 4]
    assert positions("MSETEX 1 a 1 EX 5", spec) == [2]
    single = KeySpec("RO counted")
    assert positions("SINTERCARD 2 a b", single) == [2, 3]
    for bad in ("0 a", "3 a b", "-1 a", "x a", "99999999999 a"):
        assert positions(f"SINTERCARD {bad}", single) == []


def test_no_keys_when_too_short() -> None:
    assert positions("GET", KeySpec("RO")) == []
    assert positions("RENAME a", KeySpec("RW"), KeySpec("OW at 2")) == []


def test_channels_are_no_keys() -> None:
    channels = row(KeySpec("NOT_KEY to -1"))
    assert not has_keys(channels)
    assert key_positions(channels, [b"SSUBSCRIBE", b"c"]) == []
    assert has_keys(row(KeySpec("RO")))
    assert not has_keys(row())


def test_uses() -> None:
    rename = row(KeySpec("RW ACCESS DELETE"), KeySpec("OW UPDATE at 2"))
    uses = [(use.position, use.flags) for use in key_uses(rename, [b"RENAME", b"a", b"b"])]
    assert uses == [(1, ["RW", "ACCESS", "DELETE"]), (2, ["OW", "UPDATE"])]


def test_set_reads_only_with_get() -> None:
    set_row = row(KeySpec("RW ACCESS UPDATE VARIABLE_FLAGS"), name=b"set")
    plain = key_uses(set_row, [b"SET", b"k", b"GET"])
    assert [use.flags for use in plain] == [["OW", "UPDATE"]]
    reading = key_uses(set_row, [b"SET", b"k", b"v", b"EX", b"9", b"get"])
    assert [use.flags for use in reading] == [["RW", "ACCESS", "UPDATE"]]
