"""Full copies: regions that were apart for longer than their logs reach lose nothing of either."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from xxhash import xxh3_64_hexdigest

from headrace.regions.exchange.full_copy import OUTSTANDING, PIECE_BYTES, CopyClient, CopyTarget
from support.client import encode
from support.mesh import Mesh, RegionProcess, wait_until
from support.pipes import End
from support.process import ServerProcess, claim_port

SMALL_LOG = ("--aa-log-max-bytes", "1mb", "--aa-backlog-bytes", "64kb")


def fill(region: RegionProcess, key: str, count: int = 60) -> list[bytes]:
    """Add entries of some megabytes in all; their IDs."""
    added: list[bytes] = []
    with region.client() as client:
        client.send(encode("XADD", key, "*", "f", os.urandom(50_000)) * count)
        for _ in range(count):
            found = client.read_parsed()
            assert isinstance(found, bytes)
            added.append(found)
    return added


def write_anew(region: RegionProcess) -> None:
    """Have the files written anew, so that the log begins there."""
    wait_until(lambda: not is_rewriting(region), region)
    region.call("BGREWRITEAOF")
    wait_until(lambda: not is_rewriting(region), region)


def is_rewriting(region: RegionProcess) -> bool:
    return region.info("persistence")["aof_rewrite_in_progress"] != "0"


def copies_in(region: RegionProcess) -> list[str]:
    return [path.name for path in region.directory.glob("appendonlydir/copy-*")]


def key_of(entry_id: bytes) -> tuple[int, int]:
    ms, _, seq = entry_id.partition(b"-")
    return int(ms), int(seq)


def apart_beyond_both_logs(mesh: Mesh) -> tuple[list[bytes], list[bytes]]:
    """Let both regions write more than they keep, while they do not hear of each other."""
    one, two = mesh[1], mesh[2]
    common = [one.xadd("s") for _ in range(5)]
    mesh.sync()
    one.call("XGROUP", "CREATE", "s", "g", "0")
    mesh.sync()
    mesh.partition({1}, {2})
    one.call("XDEL", "s", common[0])
    two.call("XDEL", "s", common[1])
    mine = fill(one, "s") + fill(one, "t")
    theirs = fill(two, "s") + fill(two, "u")
    write_anew(one)
    write_anew(two)
    return mine, theirs


def test_two_regions_beyond_both_their_logs_are_joined() -> None:
    with Mesh(2, *SMALL_LOG) as mesh:
        one, two = mesh[1], mesh[2]
        apart_beyond_both_logs(mesh)
        before = [one.ids("s"), two.ids("s")]
        lengths = [one.call("XLEN", "t"), two.call("XLEN", "u")]
        mesh.heal()
        wait_until(lambda: "full copy" in one.log() and "full copy" in two.log(), one)
        mesh.wait_until_level()
        wait_until(lambda: one.call("AA", "DIGEST") == two.call("AA", "DIGEST"), one)
        both = sorted({*before[0], *before[1]} - gone(before), key=key_of)
        assert one.ids("s") == two.ids("s") == both
        assert [two.call("XLEN", "t"), one.call("XLEN", "u")] == lengths
        groups = one.call("XINFO", "GROUPS", "s")
        assert isinstance(groups, list)
        assert len(groups) == 1
        for region in (one, two):
            assert region.info("activeactive")["aa_writable"] == "1"
            wait_until(lambda region=region: not copies_in(region), region)
        later = one.xadd("s")
        wait_until(lambda: later in two.ids("s"), two)
        for region in (one, two):
            kept = region.ids("s")
            region.restart()
            assert region.ids("s") == kept
        mesh.wait_until_level()
        assert one.call("AA", "DIGEST") == two.call("AA", "DIGEST")


def gone(before: list[list[bytes]]) -> set[bytes]:
    """Return what one of both has deleted: of the first five, each has deleted another one."""
    common = set(before[0]) & set(before[1])
    first = sorted({*before[0], *before[1]}, key=key_of)[:5]
    return set(first) - common


def test_a_new_region_begins_with_a_copy() -> None:
    with Mesh(2, *SMALL_LOG) as mesh:
        one, two = mesh[1], mesh[2]
        two.xadd("u")
        mesh.sync()
        two.stop()
        added = fill(one, "s")
        write_anew(one)
        wiped(two)
        two.start()
        wait_until(lambda: two.ids("s") == added, two)
        assert two.call("XLEN", "u") == 1
        assert "has been joined" in two.log()
        later = one.xadd("s")
        wait_until(lambda: two.ids("s") == [*added, later], two)


def test_what_is_acknowledged_is_not_read_again_in_a_new_region() -> None:
    """Also where it has come to know of some of that before it knows the group."""
    with Mesh(3, *SMALL_LOG, "--aa-relay-after-ms", "60000") as mesh:
        one, two, three = mesh[1], mesh[2], mesh[3]
        one.call("XGROUP", "CREATE", "s", "g", "0", "MKSTREAM")
        ids = [one.xadd("s") for _ in range(5)]
        mesh.sync()
        three.stop()
        assert read_and_acknowledged(two, 2) == ids[:2]
        wait_until(lambda: lag(one) == 3, one)
        assert read_and_acknowledged(one, 9) == ids[2:]
        wait_until(lambda: lag(two) == 0, two)
        fill(one, "t")
        write_anew(one)
        wiped(three)
        mesh.proxies[3, 1].cut()
        three.spawn_again()
        three.wait_until_ready()
        wait_until(lambda: "2.0=1" in three.info("activeactive")["aa_numbers"], three)
        mesh.heal()
        wait_until(lambda: "has been joined" in three.log(), three)
        three.wait_until_writable()
        assert three.ids("s") == ids
        assert read_and_acknowledged(three, 9) == []


def read_and_acknowledged(region: RegionProcess, count: int) -> list[bytes]:
    words = ("XREADGROUP", "GROUP", "g", "c", "COUNT", count, "STREAMS", "s", ">")
    reply = region.call(*words)
    if reply is None:
        return []
    assert isinstance(reply, list)
    ids = [entry[0] for entry in reply[0][1]]
    assert region.call("XACK", "s", "g", *ids) == len(ids)
    return ids


def lag(region: RegionProcess) -> object:
    groups = region.call("XINFO", "GROUPS", "s")
    assert isinstance(groups, list)
    return dict(zip(groups[0][::2], groups[0][1::2], strict=True))[b"lag"]


def wiped(region: RegionProcess) -> None:
    """Take its disk away."""
    for path in region.directory.glob("appendonlydir/*"):
        path.unlink()


@pytest.mark.parametrize("crash", [True, False])
def test_a_start_before_the_files_were_written_anew(crash: bool) -> None:
    options = (*SMALL_LOG, "--rdb-key-save-delay", "5000000")  # the new base takes long
    with Mesh(2, *options) as mesh:
        one, two = mesh[1], mesh[2]
        two.xadd("u")
        mesh.sync()
        two.stop()
        added = fill(one, "s")
        one.call("CONFIG", "SET", "rdb-key-save-delay", "0")
        write_anew(one)
        wiped(two)
        two.start()
        wait_until(lambda: "has been joined" in two.log(), two)
        later = one.xadd("s")
        wait_until(lambda: two.ids("s") == [*added, later], two)
        assert copies_in(two)
        two.restart(crash=crash)
        assert copies_in(two)
        assert two.ids("s") == [*added, later]
        last = one.xadd("s")
        wait_until(lambda: two.ids("s") == [*added, later, last], two)


# Piece by piece


class Kept(CopyTarget):
    def __init__(self) -> None:
        self.data = b""
        self.name = b""
        self.is_whole = False

    def begin(self, name: bytes, size_bytes: int) -> None:
        self.name = name

    def add(self, data: bytes) -> None:
        self.data += data

    def end(self) -> None:
        self.is_whole = True


def met(target: CopyTarget) -> CopyClient:
    """A client that has just met region 2."""
    one, two = End(1), End(2)
    client = CopyClient(one.region, 2, b"", target)
    client.connected()
    (hello,) = client.out
    client.out.clear()
    client.received(two.caller().greet(hello[2:]))
    assert client.out == [[b"AA", b"COPY", b"BEGIN"]]
    client.out.clear()
    return client


def piece(data: bytes) -> list[object]:
    return [data, xxh3_64_hexdigest(data).encode()]


def test_a_copy_comes_in_pieces() -> None:
    whole = random.Random(1).randbytes(6 * PIECE_BYTES + 5)
    kept = Kept()
    client = met(kept)
    client.received([7, b"base.hrs", len(whole)])
    while client.out:
        assert len(client.out) <= OUTSTANDING
        _, _, number, offset = client.out.pop(0)
        assert number == b"7"
        data = whole[int(offset) : int(offset) + PIECE_BYTES]
        client.received(piece(data))
        client.written(len(data))
    assert not client.failure
    assert client.is_whole
    assert kept.is_whole
    assert kept.data == whole
    assert kept.name == b"base.hrs"


def test_what_is_not_written_yet_is_bounded() -> None:
    client = met(Kept())
    client.received([7, b"base.hrs", 10**12])
    answered = 0
    while client.out:
        client.out.pop(0)
        client.received(piece(b"x" * PIECE_BYTES))
        answered += 1
        assert answered < 100
    assert not client.failure
    client.written(PIECE_BYTES * answered)
    assert client.out


@pytest.mark.parametrize(
    "reply",
    [
        b"OK",
        [],
        [1, b"n"],
        [0, b"n", 5],
        [1, b"", 5],
        [1, b"n", 0],
        [1, b"n", -1],
        [1, b"n" * 256, 5],
        [b"1", b"n", 5],
        [1, 2, 5],
    ],
)
def test_beginnings_that_are_none(reply: object) -> None:
    client = met(Kept())
    client.received(reply)
    assert client.failure
    assert not client.out


@pytest.mark.parametrize(
    "make",
    [
        lambda data: piece(data[:-1]),
        lambda data: piece(data + b"x"),
        lambda data: [data, b"0" * 16],
        lambda data: [data],
        lambda data: [5, 5],
        lambda data: b"OK",
    ],
)
def test_pieces_that_are_none(make: Callable[[bytes], object]) -> None:
    kept = Kept()
    client = met(kept)
    client.received([7, b"base.hrs", 3 * PIECE_BYTES])
    client.received(make(b"x" * PIECE_BYTES))
    assert client.failure
    assert kept.data == b""
    assert not kept.is_whole


# What a copy tells of producers and deletions


@pytest.mark.parametrize("limits", [(), ("IDMP-DURATION", "50", "IDMP-MAXSIZE", "7")])
def test_who_takes_a_copy_of_a_single_servers_data_says_the_same_of_it(
    tmp_path: Path, limits: tuple[str, ...]
) -> None:
    with ServerProcess("--appendonly", "yes", "--save", "", directory=tmp_path) as server:
        for number in range(1, 6):
            server.call("XADD", "s", f"{number}-1", "f", "v")
        server.call("XDEL", "s", "3-1")
        server.call("XTRIM", "s", "MINID", "2")
        if limits:
            server.call("XCFGSET", "s", *limits)
        first = server.call("XADD", "s", "IDMP", "p", "1", "*", "f", "v")
        other = server.call("XADD", "s", "IDMP", "p", "2", "*", "f", "v")
        server.stop()
        ports = [claim_port() for _ in range(2)]
        one_port, two_port = ports[0][0], ports[1][0]
        one = RegionProcess(
            1, one_port, "--aa-peers", f"2 127.0.0.1 {two_port}", directory=tmp_path
        )
        two = RegionProcess(2, two_port, "--aa-peers", f"1 127.0.0.1 {one_port}")
        with one, two:
            two.wait_until_writable()
            assert two.call("XADD", "s", "IDMP", "p", "1", "*", "f", "v") == first
            assert one.call("XADD", "s", "IDMP", "p", "2", "*", "f", "v") == other
            third = two.call("XADD", "s", "IDMP", "p", "3", "*", "f", "v")
            one.sync()
            assert one.call("XADD", "s", "IDMP", "p", "3", "*", "f", "v") == third
            said = [info_of(region, "s") for region in (one, two)]
            assert said[0][b"max-deleted-entry-id"] == b"3-1"
            assert said[0][b"entries-added"] == 8
            assert said[0][b"iids-added"] == 3
            for each in said:
                del each[b"iids-duplicates"]  # how many have asked here again
            assert said[0] == said[1]
            one.check_log()
            two.check_log()
        for _, claim in ports:
            claim.close()


def test_after_copies_both_know_the_messages_of_both() -> None:
    with Mesh(2, *SMALL_LOG) as mesh:
        one, two = mesh[1], mesh[2]
        one.call("XADD", "s", "IDMP", "p", "0", "*", "f", "v")
        mesh.sync()
        mesh.partition({1}, {2})
        mine = one.call("XADD", "s", "IDMP", "p", "1", "*", "f", "v")
        theirs = two.call("XADD", "s", "IDMP", "p", "2", "*", "f", "v")
        fill(one, "s")
        fill(two, "s")
        write_anew(one)
        write_anew(two)
        length = 2 * 60 + 3
        mesh.heal()
        wait_until(lambda: "full copy" in one.log() and "full copy" in two.log(), one)
        mesh.wait_until_level()
        for region in (one, two):
            wait_until(lambda region=region: region.call("XLEN", "s") == length, region)
            assert region.call("XADD", "s", "IDMP", "p", "1", "*", "f", "v") == mine
            assert region.call("XADD", "s", "IDMP", "p", "2", "*", "f", "v") == theirs
            assert region.call("XLEN", "s") == length


def info_of(region: RegionProcess, key: str) -> dict[bytes, object]:
    found = region.call("XINFO", "STREAM", key)
    assert isinstance(found, list)
    info = dict(zip(found[::2], found[1::2], strict=True))
    for name in (b"stable-id", b"radix-tree-keys", b"radix-tree-nodes"):
        info.pop(name, None)
    return info
