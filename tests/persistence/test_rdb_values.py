"""What values of all types look like in RDB: as servers wrote them, and when they are damaged."""

from __future__ import annotations

import math
import struct

import pytest
from conftest import Factory

from headrace.persistence.errors import CorruptRDB
from headrace.persistence.rdb.kinds import ARRAY, is_valkey_version, known_number
from headrace.persistence.rdb.packings import back_length
from headrace.persistence.rdb.primitives import RdbSource
from headrace.persistence.rdb.values import (
    HASH_KINDS,
    LIST_KINDS,
    NEVER_INSERTED,
    SET_KINDS,
    SORTED_SET_KINDS,
    ArrayHead,
    array_parts,
    hash_parts,
    list_parts,
    read_shape,
    set_parts,
    sorted_set_parts,
)
from support.client import RawClient
from support.interchange import listpack
from support.process import Process
from support.rdb_forms import intset, length, payload, string, ziplist, zipmap
from support.writers import NAMES, Writer

NOW_MS = 1_763_692_800_000
LATER_MS = 4_000_000_000_000

# What DUMP answered on the servers named, of a value made by the commands beside it.
RECORDED: dict[str, tuple[str, object]] = {
    "8.10 RPUSH a b 3": (
        "1201020f0f00000003008161028162020301ff0f00c7258371fea9adb0",
        [b"a", b"b", b"3"],
    ),
    "8.10 RPUSH a b 3, a node each": (
        (
            "1203020a0a0000000100816102ff020a0a0000000100816202ff02090900000001000301ff"
            "0f005280d83cfd1fa9a2"
        ),
        [b"a", b"b", b"3"],
    ),
    "8.10 SADD 1 2 70000": (
        "0b1404000000030000000100000002000000701101000f009e51a40af5b12dad",
        {b"1", b"2", b"70000"},
    ),
    "8.10 SADD a b": ("140d0d0000000200816102816202ff0f0078b7d2cb1a90c225", {b"a", b"b"}),
    "7.0 SADD a b": ("0202016101620a00fe642125eb033d0d", {b"a", b"b"}),
    "8.10 HSET f v g 17": (
        "10121200000004008166028176028167021101ff0f00652115bcbf64b0c9",
        {b"f": (b"v", 0), b"g": (b"17", 0)},
    ),
    "8.10 HSET f v g 17, large": (
        "04020167c011016601760f00e8e1b329a9b418e7",
        {b"f": (b"v", 0), b"g": (b"17", 0)},
    ),
    "8.10 ZADD 1 a 2.5 b inf c": (
        "111c1c0000000600816102010181620283322e350481630283696e6604ff0f007099bbd0464e3e61",
        [(b"a", 1.0), (b"b", 2.5), (b"c", math.inf)],
    ),
    "8.10 ZADD 1 a 2.5 b inf c -inf d, large": (
        (
            "05040163000000000000f07f016200000000000004400161000000000000f03f0164000000000000f0ff"
            "0f009b25fe9f669b9ea6"
        ),
        [(b"c", math.inf), (b"b", 2.5), (b"a", 1.0), (b"d", -math.inf)],
    ),
    "8.10 HPEXPIREAT f": (
        (
            "1900409452a30300001f1f0000000600816602817602f400409452a3030000098167028177020001ff"
            "0f0042ffbb42f07323d3"
        ),
        {b"f": (b"v", LATER_MS), b"g": (b"w", 0)},
    ),
    "8.10 HPEXPIREAT f, large": (
        "1800409452a303000002000167017701016601760f00cab3f621fb6d2e15",
        {b"f": (b"v", LATER_MS), b"g": (b"w", 0)},
    ),
    "8.10 HPEXPIREAT f2, and f3 earlier, large": (
        (
            "1800581d0a8c030000030102663302763381000000174876e801026632027632000266310276310f00"
            "dcd59b81577cd6dd"
        ),
        {b"f1": (b"v1", 0), b"f2": (b"v2", LATER_MS), b"f3": (b"v3", 3_900_000_000_000)},
    ),
    "9.1 HPEXPIREAT f": (
        "16020166017600409452a303000001670177ffffffffffffffff50006e9deb180d34c944",
        {b"f": (b"v", LATER_MS), b"g": (b"w", 0)},
    ),
    "8.10 HIMPORT name Ada age 36": (
        (
            "1d00121200000002008361676504846e616d6505ff10100000000300000124018341646104ff"
            "0f0064fdf410e41c3a7b"
        ),
        {b"name": (b"Ada", 0), b"age": (b"36", 0)},
    ),
    "8.10 HIMPORT of a long name": (
        "1d01020162c3094064016161e057000161610f0f00000003000201817902817802ff0f0030687c2981f8de92",
        {b"a" * 100: (b"x", 0), b"b": (b"y", 0)},
    ),
    "8.10 HIMPORT of long values": (
        "1f001b1b00000005008266300382663103826632038266330382663403ff"
        + 5 * "c309405a017676e04d00017676"
        + "0f00ca63045861155711",
        {b"f%d" % n: (b"v" * 90, 0) for n in range(5)},
    ),
    "8.10 ARSET 3 -9 7.25": (
        "1c02000301f7ffffffffffffff04020000000000001d400f0011e1451c67ef415c",
        (NEVER_INSERTED, {3: -9, 4: 7.25}),
    ),
    "8.10 ARRING 3 a b c d": (
        "1c0301000003016401030162020301630f0065422d8cddee3ddf",
        (0, {0: b"d", 1: b"b", 2: b"c"}),
    ),
    "8.10 ARSET 2^40 far": (
        "1c010081000001000000000003036661720f0021a8ded8108d61a6",
        (NEVER_INSERTED, {2**40: b"far"}),
    ),
}  # fmt: skip


def read(data: bytes) -> object:
    """A payload as Python has such values: without its footer, whose checksum is not looked at."""
    (version,) = struct.unpack("<H", data[-10:-8])
    source = RdbSource(b"payload", data[:-10], len(data) - 10, NOW_MS)
    kind = known_number(source.byte(), is_valkey_version(version))
    value = read_value(source, kind)
    assert source.left == 0
    return value


def read_value(source: RdbSource, kind: int) -> object:
    if kind in LIST_KINDS:
        return [element for part in list_parts(source, kind) for element in part.strings]
    if kind in SET_KINDS:
        return {member for part in set_parts(source, kind) for member in part}
    if kind in SORTED_SET_KINDS:
        return [
            pair
            for members, scores in sorted_set_parts(source, kind)
            for pair in zip(members, scores, strict=True)
        ]
    if kind in HASH_KINDS:
        fields: dict[bytes, tuple[bytes, int]] = {}
        for part in hash_parts(source, kind):
            deadlines = part.deadlines or [0] * (len(part.pairs) // 2)
            for place, deadline_ms in enumerate(deadlines):
                fields[part.pairs[2 * place]] = (part.pairs[2 * place + 1], deadline_ms)
        return fields
    assert kind == ARRAY, kind
    head = ArrayHead(source)
    found: dict[int, object] = {}
    for some in array_parts(source, head.count):
        found.update(zip(some.places, some.values, strict=True))
    return head.inserted_at, found


@pytest.mark.parametrize("name", RECORDED)
def test_what_servers_dumped(name: str) -> None:
    data, expected = RECORDED[name]
    assert read(bytes.fromhex(data)) == expected


WORDS = [
    b"a", b"", b"x" * 63, b"y" * 64, b"z" * 300, b"0", b"12", b"13", b"-1", b"-128", b"128",
    b"-32768", b"40000", b"-8388608", b"8388608", b"2147483648", b"-9223372036854775808", b"007",
    b"w" * 16384, b"last",
]  # fmt: skip

OLD_LISTS = {
    "ziplist": payload(10, string(ziplist(WORDS))),
    "quicklist of ziplists": payload(
        14, length(2) + string(ziplist(WORDS[:9])) + string(ziplist(WORDS[9:]))
    ),
    "strings": payload(1, length(len(WORDS)) + b"".join(string(word) for word in WORDS)),
}
OLD_HASHES = {
    "zipmap": payload(9, string(zipmap(WORDS))),
    "zipmap with gaps": payload(9, string(zipmap(WORDS, unused=3))),
    "ziplist": payload(13, string(ziplist(WORDS))),
    "strings": payload(4, length(len(WORDS) // 2) + b"".join(string(word) for word in WORDS)),
}
NUMBERS = {2: [-5, 0, 7, 30000], 4: [-70000, 1], 8: [-(2**63), 2**63 - 1]}
SCORES = [
    (b"c", -math.inf),
    (b"d", -1.5),
    (b"a", 17.0),
    (b"f", 3.0000000000000004e30),
    (b"b", math.inf),
]
OLD_SORTED_SETS = {
    "ziplist": payload(
        12,
        string(ziplist([b"c", b"-inf", b"d", b"-1.5", b"a", b"17", b"f", b"3.0000000000000004e+30",
                        b"b", b"inf"])),
    ),
    "texts": payload(
        3,
        length(5) + string(b"c") + b"\xff" + string(b"d") + string(b"-1.5") + string(b"a")
        + string(b"17") + string(b"f") + string(b"3.0000000000000004e+30") + string(b"b") + b"\xfe",
    ),
}  # fmt: skip


@pytest.fixture
def real(fresh_redis: Factory) -> Process:
    return fresh_redis()


@pytest.mark.parametrize("form", OLD_LISTS)
def test_lists_of_older_servers(real: Process, form: str) -> None:
    assert real.call("RESTORE", "k", 0, OLD_LISTS[form]) == b"OK"
    assert real.call("LRANGE", "k", 0, -1) == read(OLD_LISTS[form]) == WORDS


@pytest.mark.parametrize("form", OLD_HASHES)
def test_hashes_of_older_servers(real: Process, form: str) -> None:
    assert real.call("RESTORE", "k", 0, OLD_HASHES[form]) == b"OK"
    found = real.call("HGETALL", "k")
    assert isinstance(found, list)
    pairs = dict(zip(found[::2], found[1::2], strict=True))
    assert pairs == {WORDS[at]: WORDS[at + 1] for at in range(0, len(WORDS), 2)}
    assert read(OLD_HASHES[form]) == {field: (value, 0) for field, value in pairs.items()}


@pytest.mark.parametrize("width", NUMBERS)
def test_sets_of_integers(real: Process, width: int) -> None:
    data = payload(11, string(intset(NUMBERS[width], width)))
    assert real.call("RESTORE", "k", 0, data) == b"OK"
    found = real.call("SMEMBERS", "k")
    assert isinstance(found, list)
    assert set(found) == read(data) == {b"%d" % number for number in NUMBERS[width]}


@pytest.mark.parametrize("form", OLD_SORTED_SETS)
def test_sorted_sets_of_older_servers(real: Process, form: str) -> None:
    assert real.call("RESTORE", "k", 0, OLD_SORTED_SETS[form]) == b"OK"
    found = real.call("ZRANGE", "k", 0, -1, "WITHSCORES")
    assert isinstance(found, list)
    assert [(m, float(s)) for m, s in zip(found[::2], found[1::2], strict=True)] == SCORES
    assert read(OLD_SORTED_SETS[form]) == SCORES


def dumped(client: RawClient, key: str) -> bytes:
    data = client.call_parsed("DUMP", key)
    assert isinstance(data, bytes)
    return data


@pytest.mark.parametrize("name", NAMES)
def test_values_of_every_size(name: str) -> None:
    """In as many encodings as the server has for them; long ones are compressed."""
    with Writer(name) as server, server.client() as client:
        for count in (1, 100, 5000):
            words = [
                b"%d" % n if n % 3 else b"a longer word %d " % n * (1 + n % 40)
                for n in range(count)
            ]
            for start in range(0, count, 1000):
                some = words[start : start + 1000]
                client.call("RPUSH", f"list{count}", *some)
                client.call("SADD", f"set{count}", *some)
                client.call(
                    "HSET", f"hash{count}", *[word for each in some for word in (each, each * 2)]
                )
                client.call("ZADD", f"zset{count}", *[word for n, each in enumerate(some, start)
                                                      for word in (repr(n / 7), each)])  # fmt: skip
            assert read(dumped(client, f"list{count}")) == words
            assert read(dumped(client, f"set{count}")) == set(words)
            assert read(dumped(client, f"hash{count}")) == {word: (word * 2, 0) for word in words}
            scores = read(dumped(client, f"zset{count}"))
            assert isinstance(scores, list)
            assert dict(scores) == {word: n / 7 for n, word in enumerate(words)}


@pytest.mark.parametrize("size", [127, 128, 4095, 4096, 16377, 16378, 16379, 2_097_145, 2_097_146])
@pytest.mark.parametrize("name", ["redis-8.10", "redis-8.0"])
def test_elements_of_every_size(name: str, size: int) -> None:
    """The length behind an element takes more bytes from some sizes on, not the same in both."""
    with Writer(name) as server:
        text = b"x" * size
        server.call("CONFIG", "SET", "hash-max-listpack-value", 2**30)
        server.call("HSET", "k", "f", text)
        assert server.call("OBJECT", "ENCODING", "k") == b"listpack"
        data = server.call("DUMP", "k")
        assert isinstance(data, bytes)
        assert read(data) == {b"f": (text, 0)}


def test_the_length_behind_an_element() -> None:
    sizes = [1, 127, 128, 16383, 16384, 2_097_151, 2_097_152, 268_435_455, 268_435_456]
    assert [len(back_length(size)) for size in sizes] == [1, 1, 2, 2, 3, 3, 4, 4, 5]
    assert back_length(300) == b"\x02\xac"
    assert back_length(16383) == b"\x7f\xff"


def test_shapes_of_a_file() -> None:
    """Field names under a number, and the hashes that have them."""
    names = length(7) + length(2) + string(b"age") + string(b"name")
    packed = string(listpack([7, 36, b"Ada"]))
    loose = length(7) + string(b"36") + string(b"Ada")
    data = names + packed + loose
    source = RdbSource(b"file", data, len(data), NOW_MS)
    read_shape(source)
    for kind in (30, 32):
        assert read_value(source, kind) == {b"age": (b"36", 0), b"name": (b"Ada", 0)}
    for kind, other in (
        (30, string(listpack([8, 36, b"Ada"]))), (30, string(listpack([7, 36]))),
        (30, string(listpack([b"x", 36, b"Ada"]))), (32, length(8)), (32, length(7)),
    ):  # fmt: skip
        source = RdbSource(b"file", names + other, len(names + other), NOW_MS)
        read_shape(source)
        with pytest.raises(CorruptRDB):
            read_value(source, kind)


def test_damage_is_found_or_harmless() -> None:
    """Whatever becomes of the bytes, they are a value or refused; nothing else is raised."""
    payloads = [bytes.fromhex(data) for data, _ in RECORDED.values()]
    short = WORDS[:18]
    payloads += [
        payload(10, string(ziplist(short))), payload(14, length(1) + string(ziplist(short))),
        payload(9, string(zipmap(short))), payload(13, string(ziplist(short))),
        OLD_SORTED_SETS["texts"], OLD_SORTED_SETS["ziplist"],
        payload(11, string(intset(NUMBERS[4], 4))),
    ]  # fmt: skip
    refused = 0
    for data in payloads:
        body = bytearray(data)
        for place in range(len(body) - 10):
            for bit in range(8):
                body[place] ^= 1 << bit
                refused += is_refused(bytes(body))
                body[place] ^= 1 << bit
        for size in range(1, len(data) - 10):
            assert is_refused(data[:size] + data[-10:])
    assert refused > 1000


def is_refused(data: bytes) -> bool:
    (version,) = struct.unpack("<H", data[-10:-8])
    source = RdbSource(b"payload", data[:-10], len(data) - 10, NOW_MS)
    kind = known_number(source.byte(), is_valkey_version(version))
    if kind not in (*LIST_KINDS, *SET_KINDS, *SORTED_SET_KINDS, *HASH_KINDS, ARRAY):
        return True
    try:
        read_value(source, kind)
    except CorruptRDB:
        return True
    return False


@pytest.mark.parametrize("kind", [1, 2, 3, 4, 5, 14, 18, 22, 24, 28, 31])
def test_lengths_that_lie_cost_nothing(kind: int) -> None:
    for count in (b"\x80\xff\xff\xff\xff", b"\x81" + b"\xff" * 8, b"\x81\x7f" + b"\xff" * 7):
        data = bytes([kind]) + (bytes(8) if kind == 24 else b"") + count + bytes(100)
        source = RdbSource(b"payload", data, len(data), NOW_MS)
        with pytest.raises(CorruptRDB):
            read_value(source, source.byte())


@pytest.mark.parametrize(
    "body",
    [b"\x05\x01a" + struct.pack("<d", math.nan), b"\x03\x01a\xfd", b"\x03\x01a\x031_0",
     b"\x03\x01a\x03nan"],
)  # fmt: skip
def test_scores_that_are_no_numbers(body: bytes) -> None:
    data = body[:1] + length(1) + body[1:]
    source = RdbSource(b"payload", data, len(data), NOW_MS)
    with pytest.raises(CorruptRDB):
        read_value(source, source.byte())
