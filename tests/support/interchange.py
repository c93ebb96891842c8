"""What a client sees of keys and groups, in words that every version of Redis has."""

from __future__ import annotations

import struct

from support.client import Argument, RawClient
from support.process import Process


def pairs(reply: object) -> dict[bytes, object]:
    assert isinstance(reply, list)
    return dict(zip(reply[::2], reply[1::2], strict=True))


def fill_groups(client: RawClient) -> None:
    """Groups with owners, times and counts of all kinds, as Redis 7.0 can hold them."""
    for number in range(1, 301):
        client.call(
            "XADD", "s", f"{number // 4}-{number}", "n", number, "text", "x" * (number % 90)
        )
    client.call("XGROUP", "CREATE", "s", "g", 0)
    client.call("XGROUP", "CREATE", "s", "late", "20-80", "ENTRIESREAD", 80)
    client.call("XGROUP", "CREATE", "empty", "g", "$", "MKSTREAM")
    client.call("XREADGROUP", "GROUP", "g", "ada", "COUNT", 90, "STREAMS", "s", ">")
    client.call("XREADGROUP", "GROUP", "g", "bob\n", "COUNT", 50, "STREAMS", "s", ">")
    client.call("XREADGROUP", "GROUP", "late", "ada", "NOACK", "COUNT", 2, "STREAMS", "s", ">")
    client.call("XGROUP", "CREATECONSUMER", "s", "g", "idle")
    client.call("XCLAIM", "s", "g", "c", 0, "1-7", "TIME", 1_000_000, "RETRYCOUNT", 9)
    client.call("XCLAIM", "s", "g", "c", 0, "0-3", "TIME", 1_000_000, "RETRYCOUNT", 2)
    client.call("XACK", "s", "g", "1-5", "1-6")
    for number in range(60):
        words: list[Argument] = [f"f{number % 3}", number] * (1 + number % 2)
        client.call("XADD", "mixed", f"7-{number}", *words)
    client.call("XDEL", "mixed", "7-0", "7-11", "7-59")
    client.call("SET", "integer", 2**40)
    client.call("SET", "small", -3)
    client.call("SET", "long", "ab" * 2000)  # compressed, where RDB files are
    client.call("SET", "mortal", "v", "PXAT", 4_000_000_000_000)


def group_facts(server: Process, key: str) -> object:
    """See ``groups_of``."""
    with server.client() as client:
        return groups_of(client, key)


def groups_of(client: RawClient, key: Argument) -> object:
    """Return what can be said of a stream's groups, times of consumers left out."""
    facts: list[object] = []
    groups = client.call_parsed("XINFO", "GROUPS", key)
    assert isinstance(groups, list)
    for row in groups:
        group = pairs(row)
        name = group[b"name"]
        assert isinstance(name, bytes)
        facts.append([group[word] for word in (b"name", b"consumers", b"pending",
                                               b"last-delivered-id", b"entries-read")])  # fmt: skip
        idle = client.call_parsed("XPENDING", key, name, "-", "+", 10_000)
        assert isinstance(idle, list)
        facts.append([[entry[0], entry[1], entry[3]] for entry in idle])
        members = client.call_parsed("XINFO", "CONSUMERS", key, name)
        assert isinstance(members, list)
        facts.append(
            [[pairs(member)[word] for word in (b"name", b"pending")] for member in members]
        )
    return facts


def delivery_times(server: Process, key: str, group: str) -> dict[bytes, int]:
    """Return when each pending entry was delivered, in milliseconds since 1970."""
    full = pairs(server.call("XINFO", "STREAM", key, "FULL", "COUNT", 0))
    groups = full[b"groups"]
    assert isinstance(groups, list)
    for row in groups:
        facts = pairs(row)
        if facts[b"name"] == group.encode():
            pending = facts[b"pending"]
            assert isinstance(pending, list)
            return {entry[0]: entry[2] for entry in pending}
    raise AssertionError(group)


# RDB files made by hand: the forms of older and newer servers


def length(number: int) -> bytes:
    if number < 64:
        return bytes([number])
    return b"\x81" + number.to_bytes(8, "big")


def string(text: bytes) -> bytes:
    return length(len(text)) + text


def listpack(elements: list[bytes | int]) -> bytes:
    body = b""
    for element in elements:
        if isinstance(element, int):
            packed = (
                bytes([element]) if 0 <= element < 128 else b"\xf4" + struct.pack("<q", element)
            )
        else:
            packed = bytes([0x80 | len(element)]) + element
        body += packed + bytes([len(packed)])
    return struct.pack("<IH", len(body) + 7, len(elements)) + body + b"\xff"


def rdb(version: int, *records: bytes) -> bytes:
    """An RDB file without a checksum, of keys as ``stream`` makes them."""
    return b"REDIS%04d\xfe\x00" % version + b"".join(records) + b"\xff" + bytes(8)


def module_value(key: bytes) -> bytes:
    """An empty value of the module AAAAAAAAA, of which nobody knows more than where it ends."""
    return b"\x07" + string(key) + b"\x81" + bytes(8) + length(0)


def stream(kind: int, key: bytes) -> bytes:
    """A stream of three entries and a deleted one, with a group, in one of its forms."""
    node: list[bytes | int]
    node = [3, 1, 1, b"f", 0,
            2, 0, 0, b"one", 4,
            3, 0, 1, b"gone", 4,
            2, 5, 0, 1000, 4,
            0, 6, 0, 2, b"f", b"x", b"g", b"y", 8]  # fmt: skip
    entry_id = struct.pack(">QQ", 10, 0)
    data = bytes([kind]) + string(key) + length(1) + string(entry_id) + string(listpack(node))
    data += length(3) + length(16) + length(0)
    if kind >= 19:
        data += length(10) + length(0) + length(10) + length(1) + length(9)
    data += length(1) + string(b"g") + length(15) + length(0)
    if kind >= 19:
        data += length(3)
    data += length(2)
    for ms in (10, 15):
        data += struct.pack(">QQ", ms, 0) + struct.pack("<Q", 1_700_000_000_000 + ms) + length(ms)
    data += length(1) + string(b"ada") + struct.pack("<Q", 1_700_000_000_500)
    if kind >= 21:
        data += struct.pack("<q", 1_700_000_000_400)
    data += length(2)
    for ms in (10, 15):
        data += struct.pack(">QQ", ms, 0)
    return data
