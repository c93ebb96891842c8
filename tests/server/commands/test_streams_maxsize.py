"""MAXSIZE: where a read stops, byte by byte, told from the reply that it gives without a limit.

The rule, as Redis 8.10 has it. For each stream: stop if something was given and the bytes have
reached the limit; add what stands before the stream's entries; for each entry, end the stream if
something was given and the bytes have reached the limit, else give it and add its bytes; then add
the header of the array of entries. The header of the whole does not count, and a stream may come
with no entry.
"""

from __future__ import annotations

import random
import re
from itertools import pairwise

import pytest

from support.client import Argument, RawClient, encode, parse
from support.process import ServerProcess

KEYS = ("a", "a-longer-name", "k" * 120)
LINE = re.compile(rb"([*$%:_])(-?\d*)\r\n")


def value_end(wire: bytes, at: int) -> int:
    """Return where the value that begins at ``at`` ends."""
    found = LINE.match(wire, at)
    assert found is not None, wire[at:]
    at = found.end()
    if found[1] == b"$":
        return at + int(found[2]) + 2
    if found[1] == b"*":
        for _ in range(max(0, int(found[2]))):
            at = value_end(wire, at)
    return at


class Given:
    """One stream of a reply: the bytes before its entries, and each entry's."""

    def __init__(self, head: bytes, entries: list[bytes]) -> None:
        self.head = head
        self.entries = entries


def taken_apart(wire: bytes, resp3: bool) -> list[Given]:
    found = LINE.match(wire)
    assert found is not None
    assert found[1] == (b"%" if resp3 else b"*")
    streams = []
    at = found.end()
    for _ in range(int(found[2])):
        key_end = value_end(wire, at + (0 if resp3 else 4))
        array = LINE.match(wire, key_end)
        assert array is not None
        places = [array.end()]
        for _ in range(int(array[2])):
            places.append(value_end(wire, places[-1]))
        streams.append(Given(wire[at:key_end], [wire[a:b] for a, b in pairwise(places)]))
        at = places[-1]
    assert at == len(wire)
    return streams


def put_together(streams: list[Given], resp3: bool) -> bytes:
    wire = b"%b%d\r\n" % (b"%" if resp3 else b"*", len(streams))
    for stream in streams:
        wire += stream.head + b"*%d\r\n" % len(stream.entries) + b"".join(stream.entries)
    return wire


def cut(streams: list[Given], most: int) -> list[Given]:
    """Return what is left of a reply."""
    kept = []
    size = 0
    given = False
    for stream in streams:
        if given and size >= most:
            break
        size += len(stream.head)
        entries: list[bytes] = []
        for entry in stream.entries:
            if given and size >= most:
                break
            entries.append(entry)
            size += len(entry)
            given = True
        size += len(b"*%d\r\n" % len(entries))
        kept.append(Given(stream.head, entries))
    return kept


def alike(wire: bytes) -> bytes:
    """Without the idle times, which take as many digits always."""
    return re.sub(rb":5\d{6}\r\n", b":5000000\r\n", wire)


class Scene:
    """Streams, and a consumer that may have entries of them pending."""

    def __init__(self, client: RawClient, resp3: bool, seed: int) -> None:
        self.client = client
        self.resp3 = resp3
        pick = random.Random(seed)
        for key in KEYS:
            for number in range(1, pick.randint(4, 14)):
                words = [pick.choice(["f", "field"]), "v" * pick.choice([0, 1, 9, 10, 99, 100])]
                client.call("XADD", key, f"{number}-{10 ** pick.randint(0, 9)}", *words)
        self.deleted = [(key, pick.randint(1, 3)) for key in KEYS]

    def prepare(self, pending: int) -> None:
        """A new group, as it always is; what is pending has been idle for a good while."""
        for key in KEYS:
            self.client.pipeline(
                ("XGROUP", "DESTROY", key, "g"),
                ("XGROUP", "CREATE", key, "g", 0),
                ("XREADGROUP", "GROUP", "g", "c", "COUNT", pending or 1, "STREAMS", key, ">"),
            )
            if not pending:
                self.client.call("XGROUP", "SETID", key, "g", 0)
                self.client.call("XGROUP", "DELCONSUMER", key, "g", "c")
                continue
            rows = self.client.call_parsed("XPENDING", key, "g", "-", "+", 100)
            assert isinstance(rows, list)
            ids = [row[0] for row in rows]
            self.client.call("XCLAIM", key, "g", "c", 0, *ids, "IDLE", 5_000_000, "JUSTID")

    def delete(self) -> None:
        """Delete some that are pending."""
        for key, number in self.deleted:
            rows = self.client.call_parsed("XRANGE", key, number, number)
            assert isinstance(rows, list)
            self.client.call("XDEL", key, rows[0][0])

    def check(self, before: list[Argument], after: list[Argument], pending: int) -> None:
        """Compare what a read gives with each limit, from the same state each time."""
        changes = ">" in after
        whole = self.client.call(*before, *after)
        streams = taken_apart(whole, self.resp3)
        assert put_together(streams, self.resp3) == whole
        limits = {len(whole) - 1, len(whole) + 10}
        size = 0
        for part in re.split(rb"(?<=\r\n)", whole):
            size += len(part)
            limits |= {size - 5, size - 4, size - 1, size, size + 1}
        chosen = random.Random(1).sample(sorted(limits), min(len(limits), 30 if changes else 200))
        seen = set()
        for most in [1, *(limit for limit in chosen if limit > 0)]:
            if changes:
                self.prepare(pending)
            reply = self.client.call(*before, "MAXSIZE", most, *after)
            assert alike(reply) == alike(put_together(cut(streams, most), self.resp3)), most
            seen.add(alike(reply))
        assert len(seen) > 2


@pytest.mark.parametrize("resp3", [False, True])
@pytest.mark.parametrize("seed", [1, 2])
def test_maxsize(server: ServerProcess, seed: int, resp3: bool) -> None:
    with server.client(resp3=resp3) as client:
        scene = Scene(client, resp3, seed)
        group: list[Argument] = ["XREADGROUP", "GROUP", "g", "c"]
        streams: list[Argument] = ["STREAMS", *KEYS]
        scene.check(["XREAD"], [*streams, 0, 0, 0], 0)
        scene.check(["XREAD", "COUNT", 2], [*streams, 0, 0, 0], 0)
        scene.prepare(0)
        scene.check(group, [*streams, ">", ">", ">"], 0)
        scene.prepare(0)
        scene.check([*group, "NOACK"], [*streams, ">", ">", ">"], 0)
        for words in (group, [*group, "CLAIM", 1000], [*group, "CLAIM", 1000, "COUNT", 3]):
            scene.prepare(2)
            scene.check(words, [*streams, ">", ">", ">"], 2)
        scene.prepare(2)
        scene.check([*group, "CLAIM", 1000], [*streams, ">", 0, ">"], 2)
        scene.prepare(3)
        scene.delete()
        scene.check(group, [*streams, 0, 0, 0], 3)


def test_two_of_four_entries_from_43_bytes_on(client: RawClient, client3: RawClient) -> None:
    for number in range(1, 5):
        client.call("XADD", "t", f"{number}-0", "f", "v")
    # *2, the key: 11 bytes; an entry: 31 bytes
    for most, count in [(1, 1), (42, 1), (43, 2), (73, 2), (74, 3)]:
        rows = parse(client.call("XREAD", "MAXSIZE", most, "STREAMS", "t", "0"))
        assert isinstance(rows, list)
        assert len(rows[0][1]) == count, most
    for most, count in [(38, 1), (39, 2)]:  # without the *2
        reply = parse(client3.call("XREAD", "MAXSIZE", most, "STREAMS", "t", "0"))
        assert isinstance(reply, dict)
        assert len(reply[b"t"]) == count, most


def test_a_stream_that_comes_with_no_entry_gives_none(client: RawClient) -> None:
    """Its group has been given nothing, and the reader's name is known all the same."""
    for key in ("s", "t"):
        client.call("XADD", key, "1-0", "f", "v")
        client.call("XGROUP", "CREATE", key, "g", 0)
    read = encode("XREADGROUP", "GROUP", "g", "c", "MAXSIZE", 48, "STREAMS", "s", "t", ">", ">")
    client.send(read)
    assert client.read_parsed() == [[b"s", [[b"1-0", [b"f", b"v"]]]], [b"t", []]]
    assert parse(client.call("XPENDING", "t", "g")) == [0, None, None, None]
    rows = parse(client.call("XINFO", "CONSUMERS", "t", "g"))
    assert isinstance(rows, list)
    assert [row[1] for row in rows] == [b"c"]
    client.send(read)
    assert client.read_parsed() == [[b"t", [[b"1-0", [b"f", b"v"]]]]]
