"""Regions as processes whose links are cut, slow, silent, or lead to somebody who means harm."""

from __future__ import annotations

import os
import random
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from typing import cast

import pytest
from conftest import Factory
from xxhash import xxh3_64_hexdigest

from headrace.regions.exchange.handshake import asking_code
from support.client import RawClient, WireError, encode
from support.mesh import Mesh, RegionProcess, wait_until
from support.process import claim_port
from support.waiting import DEADLINE_S

pytestmark = pytest.mark.once


def test_what_one_region_writes_is_in_the_other(two_regions: Mesh) -> None:
    one, two = two_regions[1], two_regions[2]
    first = one.xadd("s")
    wait_until(lambda: two.ids("s") == [first], two)
    second = two.xadd("s")
    wait_until(lambda: one.ids("s") == [first, second], one)


@pytest.mark.parametrize("options", [(), ("MAXLEN", "~", "100")])
def test_what_is_added_at_once_is_in_the_other(two_regions: Mesh, options: tuple[str, ...]) -> None:
    """However the command is spelled, and inside a transaction, too."""
    one, two = two_regions[1], two_regions[2]
    with one.client() as client:
        for name in ("XADD", "xadd", "XAdd"):
            added = [(name, "s", *options, "*", "f", str(number)) for number in range(70)]
            client.pipeline(*added)
            client.pipeline(("multi",), *added, ("exec",))
    two_regions.sync()
    left = one.ids("s")
    assert len(left) == (120 if options else 420)
    assert two.ids("s") == left
    one.kill()
    one.start_again()
    assert one.ids("s") == left
    assert one.call("AA", "DIGEST") == two.call("AA", "DIGEST")


def test_links_begin_where_they_are_to(fresh_server: Factory) -> None:
    with socket.create_server(("127.0.0.1", 0)) as peer:
        peer.settimeout(DEADLINE_S)
        fresh_server(
            *("--appendonly", "yes", "--aa-region-id", "1", "--bind-source-addr", "127.0.0.3"),
            *("--aa-peers", f"2 127.0.0.1 {peer.getsockname()[1]}"),
        )
        link, address = peer.accept()
        link.close()
        assert address[0] == "127.0.0.3"


def test_streams_that_are_trimmed_while_entries_are_added_at_once(two_regions: Mesh) -> None:
    """Many more than run together: each of these runs has records of its own."""
    one, two = two_regions[1], two_regions[2]
    with one.client() as client:
        for threshold in ("10", "30"):
            client.pipeline(
                *[("XADD", "s", "MAXLEN", "~", threshold, "*", "f", str(n)) for n in range(2000)]
            )
    two_regions.sync()
    left = one.ids("s")
    assert two.ids("s") == left
    one.kill()
    one.start_again()
    assert one.ids("s") == left
    assert one.call("AA", "DIGEST") == two.call("AA", "DIGEST")


def test_a_blocked_reader_is_woken(two_regions: Mesh) -> None:
    one, two = two_regions[1], two_regions[2]
    with two.client() as reader, two.client() as watching:
        watching.call("WATCH", "s")
        reader.send_command("XREAD", "BLOCK", "10000", "STREAMS", "s", "$")
        wait_until(lambda: two.info("clients")["blocked_clients"] != "0", two)
        added = one.xadd("s")
        reply = reader.read_parsed()
        assert isinstance(reply, list)
        assert reply[0][1][0][0] == added
        watching.call("MULTI")
        assert watching.call_parsed("EXEC") is None


def test_sync_goes_through_paused_links(two_regions: Mesh) -> None:
    two_regions.pause()
    one, two = two_regions[1], two_regions[2]
    first = one.xadd("s")
    second = two.xadd("s")
    assert one.ids("s") == [first]
    assert two.ids("s") == [second]
    assert one.peer(2)[b"state"] == b"paused"
    two_regions.sync(1)
    assert one.ids("s") == sorted([first, second])
    assert two.ids("s") == [second]
    two_regions.sync()
    assert two.ids("s") == one.ids("s")
    third = one.xadd("s")
    assert third not in two.ids("s")
    two_regions.resume()
    wait_until(lambda: third in two.ids("s"), two)
    assert "left alone" not in two.log()


def test_a_region_that_was_told_it_is_level_takes_writes() -> None:
    """Whoever waits for all that the others have can go on, though the links are paused then."""
    mesh = Mesh(2, "--aa-start-wait-ms", "100")
    one, two = mesh[1], mesh[2]
    try:
        one.spawn()
        one.wait_until_ready()  # it has not heard of region 2
        assert one.info("activeactive")["aa_writable"] == "0"
        one.call("AA", "PAUSE", "ALL")
        two.spawn()
        two.wait_until_ready()
        one.sync()
        assert one.xadd("s")
        two.sync()
        assert two.xadd("s")
    finally:
        mesh.__exit__(None, None, None)


def test_one_peer_is_paused(three_regions: Mesh) -> None:
    one, two, three = (three_regions[number] for number in (1, 2, 3))
    three.call("AA", "PAUSE", 2)
    added = two.xadd("s")
    wait_until(lambda: one.ids("s") == [added], one)
    mark = one.xadd("t")
    wait_until(lambda: three.ids("t") == [mark], three)
    assert three.ids("s") == []
    three.sync()
    assert three.ids("s") == [added]
    for word in ("2", "4", "x", "all of them"):
        with three.client() as client:
            reply = client.call("AA", "RESUME", word)
            assert reply == (b"+OK\r\n" if word == "2" else reply)
            assert word == "2" or reply.startswith(b"-ERR there is no such peer")


def test_the_lag_of_a_paused_link_covers_what_is_missing(two_regions: Mesh) -> None:
    """It is counted from when this region was level, which may be a beat before the pause."""
    one, two = two_regions[1], two_regions[2]
    level_before = time.monotonic()
    two_regions.wait_until_level()
    one.call("AA", "PAUSE", "2")
    two.xadd("s")
    added = time.monotonic()

    def lag_ms() -> int:
        asked_s = time.monotonic() - added
        found = re.search(r"lag_ms=(\d+)", one.info("activeactive")["aa_peer2"])
        assert found is not None
        assert asked_s * 1000 <= int(found[1]) <= (time.monotonic() - level_before) * 1000 + 5000
        return int(found[1])

    wait_until(lambda: lag_ms() > 300, one)
    two.kill()
    one.call("AA", "RESUME", "2")
    wait_until(lambda: lag_ms() > 600, one)


def test_partition_and_heal(three_regions: Mesh) -> None:
    for number, region in three_regions.regions.items():
        for other in three_regions.regions:
            if other != number:
                region.wait_for_peer(other, b"up")
    three_regions.partition({1}, {2, 3})
    one, two, three = (three_regions[number] for number in (1, 2, 3))
    wait_until(lambda: one.peer(2)[b"state"] == b"down", one)
    mine = [one.xadd("s") for _ in range(20)]
    theirs = [two.xadd("s") for _ in range(20)]
    wait_until(lambda: three.ids("s") == theirs, three)
    assert one.ids("s") == mine
    assert int(str(one.peer(2)[b"answered-ms-ago"])) >= 0
    three_regions.heal()
    three_regions.wait_until_level()
    for region in three_regions.regions.values():
        assert region.ids("s") == sorted(mine + theirs, key=parsed)


def parsed(entry_id: bytes) -> tuple[int, int]:
    ms, _, seq = entry_id.partition(b"-")
    return int(ms), int(seq)


def test_records_of_a_region_that_died_are_relayed(three_regions: Mesh) -> None:
    one, two, three = (three_regions[number] for number in (1, 2, 3))
    three_regions.proxies[3, 1].cut()
    added = one.xadd("s")
    wait_until(lambda: two.ids("s") == [added], two)
    one.kill()
    wait_until(lambda: three.ids("s") == [added], three)


def test_sync_gets_what_only_another_one_has(three_regions: Mesh) -> None:
    one, two, three = (three_regions[number] for number in (1, 2, 3))
    three_regions.proxies[3, 1].cut()
    three_regions.pause()
    added = one.xadd("s")
    two.sync()
    reply = three.call("AA", "SYNC")
    assert isinstance(reply, list)
    states = dict(zip(reply[::2], reply[1::2], strict=True))
    assert states[b"2"] == b"level"
    assert states[b"1"] != b"level"
    assert three.ids("s") == [added]


def test_a_silent_link_is_noticed(two_regions: Mesh) -> None:
    one, two = two_regions[1], two_regions[2]
    one.wait_for_peer(2, b"up")
    two_regions.proxies[1, 2].silence()
    added = two.xadd("s")
    wait_until(lambda: one.peer(2)[b"state"] == b"down", one)
    assert b"does not answer" in bytes(one.peer(2)[b"problem"])  # type: ignore[call-overload]
    assert one.ids("s") == []
    two_regions.proxies[1, 2].heal()
    wait_until(lambda: one.ids("s") == [added], one)


def test_a_slow_link_delays_and_loses_nothing(two_regions: Mesh) -> None:
    one, two = two_regions[1], two_regions[2]
    for proxy in two_regions.proxies.values():
        proxy.delay(0.04)
    added = [two.xadd("s") for _ in range(50)]
    wait_until(lambda: one.ids("s") == added, one)


def test_connections_that_break_again_and_again(two_regions: Mesh) -> None:
    one, two = two_regions[1], two_regions[2]
    added: list[bytes] = []
    with two.client() as client:
        for number in range(40):
            client.send(encode("XADD", "s", "*", "f", "x" * 5000) * 20)
            for _ in range(20):
                reply = client.read_parsed()
                assert isinstance(reply, bytes)
                added.append(reply)
            if number % 2:
                two_regions.proxies[1, 2].break_off()
    two_regions.sync(1)
    assert one.ids("s") == added


def test_what_has_left_memory_is_sent_from_files() -> None:
    with Mesh(2, "--aa-backlog-bytes", "64kb") as mesh:
        one, two = mesh[1], mesh[2]
        one.wait_for_peer(2, b"up")
        one.call("AA", "PAUSE", "ALL")
        added: list[bytes] = []
        with two.client() as client:
            for number in range(40):
                client.send(encode("XADD", "s", "*", "f", "x" * 10_000) * 10)
                added += [read_id(client) for _ in range(10)]
                client.call("XADD", "other", "*", "number", number)
        one.call("AA", "RESUME", "ALL")
        wait_until(lambda: one.ids("s") == added, one)
        assert one.info("activeactive")["aa_numbers"] == f"{origin_of(two)}=440"
        assert "gaps=0,damaged=0" in one.info("activeactive")["aa_peer2"]


def read_id(client: RawClient) -> bytes:
    found = client.read_parsed()
    assert isinstance(found, bytes)
    return found


def test_what_is_long_is_compressed() -> None:
    with Mesh(2, "--aa-compress", "yes") as mesh:
        one, two = mesh[1], mesh[2]
        one.wait_for_peer(2, b"up")
        one.call("AA", "PAUSE", "ALL")
        with two.client() as client:
            client.send(encode("XADD", "s", "*", "f", "x" * 10_000) * 100)
            added = [read_id(client) for _ in range(100)]
        before = mesh.proxies[1, 2].carried_bytes
        one.call("AA", "RESUME", "ALL")
        wait_until(lambda: one.ids("s") == added, one)
        assert mesh.proxies[1, 2].carried_bytes - before < 300_000
        assert "received_bytes=10" in one.info("activeactive")["aa_peer2"]  # a million and more


def test_a_region_that_is_killed_and_comes_back(two_regions: Mesh) -> None:
    one, two = two_regions[1], two_regions[2]
    first = [one.xadd("s") for _ in range(10)]
    wait_until(lambda: two.ids("s") == first, two)
    two.kill()
    second = [one.xadd("s") for _ in range(10)]
    two.start()
    wait_until(lambda: two.ids("s") == first + second, two)
    assert one.peer(2)[b"state"] in (b"up", b"down")
    third = two.xadd("s")
    wait_until(lambda: third in one.ids("s"), one)


def test_two_servers_that_are_one_region(two_regions: Mesh) -> None:
    one, two = two_regions[1], two_regions[2]
    kept = two.xadd("s")
    wait_until(lambda: one.ids("s") == [kept], one)
    two.wait_for_peer(1, b"up")
    port, claim = claim_port()
    peers = f"1 127.0.0.1 {one.aa_port}"
    with RegionProcess(2, port, "--aa-peers", peers) as twin:
        with pytest.raises(WireError, match="AATWIN"):
            twin.xadd("s")
        assert "Another server is this region" in twin.log()
        more = two.xadd("s")  # the one that was there first goes on
        wait_until(lambda: one.ids("s") == [kept, more], one)
        assert two.info("activeactive")["aa_writable"] == "1"
        assert twin.info("activeactive")["aa_writable"] == "0"
    claim.close()


def test_a_token_of_one_region_is_waited_for_in_another(two_regions: Mesh) -> None:
    one, two = two_regions[1], two_regions[2]
    two_regions.pause()
    added = one.xadd("s")
    token = one.call("AA", "TOKEN")
    assert isinstance(token, bytes)
    assert two.call("AA", "WAIT", token, "50") == 0
    with two.client() as waiting:
        waiting.send_command("AA", "WAIT", token, "0")
        wait_until(lambda: two.info("clients")["blocked_clients"] != "0", two)
        two.sync()
        assert waiting.read_parsed() == 1
    assert two.call("AA", "WAIT", token, "0") == 1
    assert two.ids("s") == [added]
    assert two.call("AA", "WAIT", "-", "1") == 1
    for bad in ("x", "1.0", "1.0=x"):
        with pytest.raises(WireError, match="no token"):
            two.call("AA", "WAIT", bad, "1")


def test_pulling_rests_while_writes_are_paused(two_regions: Mesh) -> None:
    one, two = two_regions[1], two_regions[2]
    two.call("CLIENT", "PAUSE", "60000", "WRITE")
    added = one.xadd("s")
    wait_until(lambda: "paused" in two.info("activeactive")["aa_resting_because"], two)
    assert two.ids("s") == []
    two.call("CLIENT", "UNPAUSE")
    wait_until(lambda: two.ids("s") == [added], two)


def test_regions_are_compared(two_regions: Mesh) -> None:
    one, two = two_regions[1], two_regions[2]
    two_regions.pause()
    one.xadd("s")
    two.xadd("s")
    one.call("XGROUP", "CREATE", "s", "g", "0")
    assert one.call("AA", "DIGEST", "s") != two.call("AA", "DIGEST", "s")
    assert one.call("AA", "DIGEST") != two.call("AA", "DIGEST")
    two_regions.sync()
    two.call("XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">")  # is of this region alone
    assert one.call("AA", "DIGEST", "s") == two.call("AA", "DIGEST", "s")
    assert one.call("AA", "DIGEST") == two.call("AA", "DIGEST")
    lines = one.call("AA", "STREAM", "s")
    assert isinstance(lines, list)
    assert lines == two.call("AA", "STREAM", "s")
    names = [line.split()[1] for line in lines if line.startswith(b"lane")]
    assert sorted(names) == [f"{origin_of(region)}.1".encode() for region in (one, two)]
    assert any(line.startswith(b"create g") for line in lines)
    assert one.call("AA", "STREAM", "none") is None
    assert one.call("AA", "DIGEST", "none") is None
    one.xadd("gone")
    one.call("DEL", "gone")  # it is remembered until both have seen that
    assert one.call("AA", "DIGEST", "gone") is None
    one.call("CONFIG", "SET", "aa-other-keys", "local")
    one.call("SET", "k", "v")
    with pytest.raises(WireError, match="WRONGTYPE"):
        one.call("AA", "STREAM", "k")
    assert one.call("AA", "DIGEST") == two.call("AA", "DIGEST")


def origin_of(region: RegionProcess) -> str:
    """Return who it is: which epoch it begins with depends on who has answered in time."""
    found = region.info("activeactive")
    return f"{found['aa_region']}.{found['aa_epoch']}"


def test_info(two_regions: Mesh) -> None:
    one, two = two_regions[1], two_regions[2]
    added = one.xadd("s")
    wait_until(lambda: two.ids("s") == [added], two)
    found = two.info("activeactive")
    assert found["aa_region"] == "2"
    mine = f"{origin_of(one)}=1"
    assert found["aa_numbers"] == mine
    assert found["aa_members"] == "1,2"
    assert found["aa_writable"] == "1"
    assert "received_records=1," in found["aa_peer1"]
    assert found["aa_peer1"].endswith("state=up")
    wait_until(lambda: two.info("activeactive")["aa_synced_numbers"] == mine, two)
    wait_until(lambda: one.peer(2)[b"has-on-disk"] == mine.encode(), one)


def test_a_full_copy_is_given_piece_by_piece(two_regions: Mesh) -> None:
    one = two_regions[1]
    for _ in range(3):
        with one.client() as client:
            client.send(encode("XADD", "s", "*", "f", os.urandom(70_000)) * 10)
            for _ in range(10):
                client.read_parsed()
    with RawClient(one.aa_port) as asking, RawClient(one.aa_port) as another:
        assert asking.call("AA", "COPY", "BEGIN").startswith(b"-AAHELLO")
        identity = [*WORDS[:2], "3", *WORDS[3:]]  # of a region that does not ask at this moment
        asking.call("AA", "HELLO", *identity)
        another.call("AA", "HELLO", *identity)
        assert asking.call("AA", "COPY", "1", "0").startswith(b"-AANOCOPY")
        begun: object = None

        def has_begun() -> bool:
            nonlocal begun
            begun = asking.call_parsed("AA", "COPY", "BEGIN")
            assert isinstance(begun, list) or begun.text.startswith(b"AANOBASE")  # type: ignore[attr-defined]
            return isinstance(begun, list)

        wait_until(has_begun, one)  # a base is written where there is none
        assert isinstance(begun, list)
        number, name, size = begun
        wait_until(lambda: not is_rewriting(one), one)
        one.call("BGREWRITEAOF")  # another base takes its place meanwhile
        wait_until(lambda: not is_rewriting(one), one)
        whole = b""
        while len(whole) < size:
            found = asking.call_parsed("AA", "COPY", number, len(whole))
            assert isinstance(found, list)
            data, checksum = found
            assert checksum == xxh3_64_hexdigest(data).encode()
            whole += data
        assert len(whole) == size > 2_000_000
        assert whole.startswith(b"HEADRACE")
        assert b"/" not in name
        for words in ((number, size), (number, -1), (number + 1, 0), (number, "x")):
            assert asking.call("AA", "COPY", *words).startswith(b"-")
        assert another.call("AA", "COPY", number, 0).startswith(b"-AANOCOPY")
        path = one.directory / "a-copy.hrs"
        path.write_bytes(whole)
    check = subprocess.run(
        [*one.command(), "check-snapshot", str(path)],
        capture_output=True,
        check=False,
        env=one.variables(),
    )
    assert check.returncode == 0, check.stdout + check.stderr


def is_rewriting(region: RegionProcess) -> bool:
    return region.info("persistence")["aof_rewrite_in_progress"] != "0"


# Who may be there


@pytest.fixture
def region() -> Iterator[RegionProcess]:
    port, claim = claim_port()
    with RegionProcess(1, port) as process:
        process.call("CONFIG", "SET", "aa-peers", "2 127.0.0.1 1")
        yield process
        process.check_log()
    claim.close()


@pytest.fixture
def guarded() -> Iterator[RegionProcess]:
    port, claim = claim_port()
    with RegionProcess(1, port, "--aa-secret", "open sesame") as process:
        yield process
        assert "sesame" not in process.log()
        process.check_log()
    claim.close()


def test_a_secret_is_asked_for() -> None:
    with Mesh(2, "--aa-secret", "open sesame") as mesh:
        added = mesh[1].xadd("s")
        wait_until(lambda: mesh[2].ids("s") == [added], mesh[2])
        mesh[2].call("CONFIG", "SET", "aa-secret", "open says me")
        mesh.proxies[2, 1].break_off()
        wait_until(lambda: mesh[2].peer(1)[b"state"] != b"up", mesh[2])
        wait_until(lambda: b"AASECRET" in mesh[2].peer(1)[b"problem"], mesh[2])  # type: ignore[operator]
        later = mesh[1].xadd("s")
        mesh[2].call("CONFIG", "SET", "aa-secret", "open sesame")
        mesh[2].call("AA", "RESUME", "ALL")
        wait_until(lambda: mesh[2].ids("s") == [added, later], mesh[2])
        for region in mesh.regions.values():
            assert "sesame" not in region.log()
            assert b"sesame" not in region.call("INFO", "everything")  # type: ignore[operator]


def test_without_the_secret_nothing_is_answered(guarded: RegionProcess) -> None:
    with RawClient(guarded.aa_port) as client:
        for words in (
            ("PING",),
            ("AA", "HELLO", "1", "default", "2", "0", "0", "-", "strict", "-"),
            ("AA", "PULL", "1"),
            ("AA", "COPY", "BEGIN"),
        ):
            assert client.call(*words).startswith(b"-NOAUTH")
        assert client.call("AUTH", "open sesame").startswith(b"-ERR this port is for other regions")
        nonce = b"0" * 64
        answering = client.call_parsed("AA", "AUTH", nonce)
        assert isinstance(answering, bytes)
        wrong = asking_code(b"guess", nonce, answering)
        assert client.call("AA", "AUTH", "PROOF", wrong).startswith(b"-AASECRET")
        answering = client.call_parsed("AA", "AUTH", nonce)
        assert isinstance(answering, bytes)
        right = asking_code(b"open sesame", nonce, answering)
        assert client.call("AA", "AUTH", "PROOF", right).startswith(b"$64\r\n")
        assert client.call("PING") == b"+PONG\r\n"
        assert client.call("AA", "PULL", "1").startswith(b"-AAHELLO")
        assert isinstance(client.call_parsed("AA", "HELLO", *WORDS), list)


def test_the_port_takes_little(region: RegionProcess) -> None:
    with RawClient(region.aa_port) as client:
        assert client.call("PING") == b"+PONG\r\n"
        for words in (
            ("XADD", "s", "*", "f", "v"),
            ("SET", "k", "v"),
            ("GET", "k"),
            ("CONFIG", "GET", "*"),
            ("CONFIG", "SET", "aa-secret", ""),
            ("SHUTDOWN",),
            ("FLUSHALL",),
            ("MULTI",),
            ("DEBUG", "SEGFAULT"),
            ("SUBSCRIBE", "c"),
            ("MONITOR",),
            ("HELLO", "3"),
            ("RESET",),
            ("QUIT",),
            ("CLIENT", "KILL", "TYPE", "normal"),
        ):
            assert client.call(*words).startswith(b"-ERR this port is for other regions"), words
        assert client.call("AA", "XADD").startswith(b"-ERR unknown subcommand")
    assert region.call("DBSIZE") == 0
    with region.client() as client:
        for words in (("AA", "HELLO", *"12345678"), ("AA", "PULL", "1"), ("AA", "AUTH", "x")):
            assert client.call(*words).startswith(b"-ERR only another region may ask for that")


def test_the_port_takes_nothing_that_operators_ask() -> None:
    """``requirepass`` does not hold there, and what it gives comes after the right name."""
    port, claim = claim_port()
    with RegionProcess(1, port, "--aa-database", "orders") as region:
        region.call("CONFIG", "SET", "aa-peers", "2 127.0.0.1 1")
        region.call("CONFIG", "SET", "requirepass", "for clients")
        names = ["orders", "payments"]
        with RawClient(region.aa_port) as client:
            for name in names:
                for words in (
                    *(("FORGET", "2"), ("JOIN", "5"), ("MOVE", "s", "g", "2", "FORCE")),
                    *(("PAUSE", "ALL"), ("RESUME", "ALL"), ("SYNC", "1"), ("PEERS",), ("TOKEN",)),
                    *(("WAIT", "-", "1"), ("COUNT", "ACK"), ("STREAM", "s"), ("DIGEST",)),
                    ("HELP",),
                ):
                    refused = client.call("AA", *words)
                    assert refused.startswith(b"-ERR this port is for other regions"), words
                if name == "orders":  # last, because it lets in
                    continue
                refused = client.call("AA", "HELLO", "1", name, *WORDS[2:])
                assert refused.startswith(b"-AADATABASE")
                assert b"orders" not in refused
                assert client.call("AA", "PULL", "1").startswith(b"-AAHELLO")
                assert client.call("AA", "COPY", "BEGIN").startswith(b"-AAHELLO")
            assert isinstance(client.call_parsed("AA", "HELLO", "1", "orders", *WORDS[2:]), list)
            (end,) = cast(list[list[object]], client.call_parsed("AA", "PULL", "1"))
            assert end[:3] == [b"END", b"-", 0]
            assert client.call("AA", "FORGET", "2").startswith(b"-ERR this port is for other")
        with region.client() as client:
            assert client.call("AA", "FORGET", "2") == b"-NOAUTH Authentication required.\r\n"
            assert client.call("AUTH", "for clients") == b"+OK\r\n"
            assert client.call("AA", "COUNT", "FORGET") == b":0\r\n"
            assert client.call("AA", "PEERS").startswith(b"*1\r\n")
            assert client.call("AA", "FORGET", "2") == b"+OK\r\n"
            assert client.call("AA", "COUNT", "FORGET") == b":1\r\n"
    claim.close()


def test_clients_leave_other_regions_their_room(region: RegionProcess) -> None:
    region.call("CONFIG", "SET", "maxclients", "1")
    with region.client() as client:
        assert client.call("PING") == b"+PONG\r\n"
        with region.client() as refused:
            assert refused.read().startswith(b"-ERR max number of clients reached")
        with RawClient(region.aa_port) as asking:
            assert asking.call("PING") == b"+PONG\r\n"
        assert client.call("CONFIG", "SET", "maxclients", "100") == b"+OK\r\n"
    others = [RawClient(region.aa_port) for _ in range(257)]
    assert others[-1].read().startswith(b"-ERR max number of clients reached")
    for each in others:
        each.close()


def test_a_region_that_calls_itself_is_no_twin(region: RegionProcess) -> None:
    """Somebody has given its own address for that of a peer."""
    region.call("CONFIG", "SET", "aa-peers", f"2 127.0.0.1 {region.aa_port}")
    region.wait_for_log("AASELF that is the address of the region that calls")
    wait_until(lambda: region.state_of(2).startswith(b"refused: AASELF"), region)
    region.xadd("s")
    region.call("CONFIG", "SET", "aa-peers", f"2 127.0.0.1 {region.port}")
    region.wait_for_log("aa-peers has to name the aa-port of that region")


def test_a_transaction_that_no_link_would_carry_is_refused(region: RegionProcess) -> None:
    region.call("CONFIG", "SET", "aa-transaction-max-bytes", "1mb")
    with region.client() as client:
        for command, size, is_run in (
            (("XADD", "s", "*", "f"), 400_000, True),
            (("XADD", "s", "*", "f"), 600_000, False),
            (("ECHO",), 600_000, True),
        ):
            client.call("DEL", "s")
            client.call("MULTI")
            for _ in range(2):
                client.call(*command, "v" * size)
            reply = client.call("EXEC")
            if is_run:
                assert reply.startswith(b"*2\r\n")
                continue
            assert reply.startswith(b"-EXECABORT ")
            assert b"aa-transaction-max-bytes" in reply
            assert client.call("EXISTS", "s") == b":0\r\n"
            assert client.call("EXEC") == b"-ERR EXEC without MULTI\r\n"


def test_who_has_not_shown_the_secret_leaves_others_their_room(guarded: RegionProcess) -> None:
    idle = [RawClient(guarded.aa_port) for _ in range(257)]
    assert idle[256].call("PING").startswith(b"-NOAUTH")
    assert idle[255].call("PING").startswith(b"-NOAUTH")
    assert idle[0].rest_until_close() == b""
    for client in idle:
        client.close()


def test_a_server_that_is_no_region(client: RawClient) -> None:
    for words in (("PEERS",), ("SYNC",), ("TOKEN",), ("PAUSE", "ALL"), ("FORGET", "2")):
        assert client.call("AA", *words) == b"-ERR this server is no region (aa-region-id)\r\n"
    assert b"activeactive" not in client.call("INFO", "everything").lower()
    assert client.call("INFO", "activeactive") == b"$0\r\n\r\n"


def test_effects_are_counted_by_name(two_regions: Mesh) -> None:
    """Since the start, and those of this region alone."""
    one, two = two_regions[1], two_regions[2]
    with one.client() as client:
        client.pipeline(*[("XADD", "s", "*", "f", "v")] * 50)
        client.pipeline(("MULTI",), *[("XADD", "s", "*", "f", "v")] * 5, ("EXEC",))
    first = one.ids("s")[0]
    one.call("XADD", "s", "IDMP", "p", "1", "*", "f", "v")
    one.call("XADD", "s", "IDMP", "p", "1", "*", "f", "v")  # is known
    one.call("XDEL", "s", first)
    one.call("XGROUP", "CREATE", "s", "g", "0")
    two.xadd("s")
    two_regions.sync()
    assert counts_of(one) == [56, 1, 1, 0]
    assert counts_of(two) == [1, 0, 0, 0]
    one.call("RENAME", "s", "t")
    assert counts_of(one) == [56 + 56, 1, 1, 1]
    two_regions.sync()
    one.stop()
    one.start_again()
    one.wait_until_writable()
    assert counts_of(one) == [0, 0, 0, 0]
    one.xadd("t")
    assert counts_of(one) == [1, 0, 0, 0]
    two.kill()
    one.stop()
    one.start_again()  # nobody confirms what it was, so it is another epoch
    one.wait_until_writable()
    assert one.info("activeactive")["aa_epoch"] != "0"
    one.xadd("t")
    assert counts_of(one) == [1, 0, 0, 0]


def counts_of(region: RegionProcess) -> list[object]:
    return [region.call("AA", "COUNT", name) for name in ("XADD", "xdel", "GROUP", "DEL")]


def test_words_of_operators_that_mean_nothing(region: RegionProcess) -> None:
    with region.client() as client:
        for words in (
            ("SYNC", "0"),
            ("SYNC", "x"),
            ("SYNC", "1", "2"),
            ("JOIN", "0"),
            ("JOIN", "16"),
            ("JOIN", "1"),
            ("FORGET", "x"),
            ("COUNT", "SOMETHING"),
            ("WAIT", "-", "-1"),
        ):
            assert client.call("AA", *words).startswith(b"-ERR"), words
        reply = client.call_parsed("AA", "SYNC", "300")
        assert isinstance(reply, list)
        assert reply[0] == b"2"
        assert b"cannot be reached" in reply[1]
        assert client.call("AA", "COUNT", "ack") == b":0\r\n"
        assert client.call("AA", "JOIN", "5") == b"+OK\r\n"
        assert region.info("activeactive")["aa_members"] == "1,2,5"
        assert client.call("AA", "FORGET", "6").startswith(b"-ERR that region has never taken part")
        assert client.call("AA", "COUNT", "forget") == b":0\r\n"
        for _ in range(2):
            assert client.call("AA", "FORGET", "5") == b"+OK\r\n"
        assert region.info("activeactive")["aa_members"] == "1,2"
        assert client.call("AA", "COUNT", "forget") == b":2\r\n"
        assert client.call("AA", "COUNT", "join") == b":1\r\n"


WORDS = ("1", "default", "2", "0", "0", "-", "strict", "-")
HELLO = encode("AA", "HELLO", *WORDS)


def test_garbage_at_the_port(region: RegionProcess) -> None:
    """The region neither crashes nor hangs, and does nothing but its own work."""
    chance = random.Random(36)
    added = region.xadd("s")
    before = region.ids("s")
    for number in range(300):
        with socket.create_connection(("127.0.0.1", region.aa_port), timeout=DEADLINE_S) as sock:
            sock.settimeout(DEADLINE_S)
            data = b"".join([nonsense(chance) for _ in range(chance.randrange(1, 6))])
            if number % 2:
                data = HELLO + data
            sock.sendall(data[: chance.randrange(1, len(data) + 1)])
            if number % 5 == 0:
                sock.shutdown(socket.SHUT_WR)
                drain(sock)
    assert region.ids("s") == before == [added]
    assert region.call("DBSIZE") == 1
    with RawClient(region.aa_port) as client:
        assert client.call("PING") == b"+PONG\r\n"


def drain(sock: socket.socket) -> None:
    try:
        while sock.recv(65536):
            pass
    except ConnectionError:
        pass


def nonsense(chance: random.Random) -> bytes:
    """Bytes that no region sends: random ones, sizes that are huge, words that mean nothing."""
    kind = chance.randrange(8)
    words = [b"AA", chance.choice([b"PULL", b"HELLO", b"AUTH", b"SYNC", b"WAIT", b"XDEL", b"FROM"])]
    if kind == 0:
        return os.urandom(chance.randrange(1, 300))
    if kind == 1:
        return b"*%d\r\n$2\r\nAA\r\n" % chance.choice([-1, 0, 2**31, 2**63, 10**6])
    if kind == 2:
        return b"*3\r\n$2\r\nAA\r\n$%d\r\n" % chance.choice([-5, 2**31, 2**40, 2**64])
    if kind == 3:
        return encode(
            *words, *[os.urandom(chance.randrange(40)) for _ in range(chance.randrange(12))]
        )
    if kind == 4:
        return encode("AA", "PULL", chance.choice([0, -1, 10**9, 1000]), "FROM", os.urandom(9))
    if kind == 5:
        return encode("AA", "PULL", 1000, "ALSO", *[f"2.{n}" for n in range(500)])
    if kind == 6:
        return encode("AA", "PULL", 1000, "FROM", f"1.0={chance.choice([0, 1, 2**62 - 1])}")
    return encode("AA", "HELLO", *[chance.choice(["1", "x", "", "2.0=5", "-"]) for _ in range(8)])


# Peers that mean harm


class Impostor:
    """Listens where a region is looked for, and answers as it likes."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(DEADLINE_S)
        self.port: int = self.listener.getsockname()[1]

    def answer(self, *answers: bytes) -> None:
        """Take a connection, answer in turn, and wait until the other side leaves."""
        connection, _ = self.listener.accept()
        with connection:
            connection.settimeout(DEADLINE_S)
            with_patience = time.monotonic() + DEADLINE_S
            try:
                for data in answers:
                    connection.recv(65536)
                    connection.sendall(data)
                while connection.recv(65536):
                    assert time.monotonic() < with_patience
            except ConnectionError:
                pass


def reply(*items: object) -> bytes:
    from headrace.protocol.replies import encode as encode_reply

    return encode_reply(list(items))


GREETING = reply(
    b"1", b"default", b"2", b"0", b"0", b"-", b"strict", b"2.0=5", b"-", b"2.0=1", b"-"
)


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"*2000000000\r\n",
        b"$2000000000\r\n",
        b"-ERR no\r\n",
        b"-LOADING wait\r\n",
        reply(b"1", b"another", b"2", b"0", b"0", b"-", b"strict", b"-", b"-", b"-", b"-"),
        reply(b"9", b"default", b"2", b"0", b"0", b"-", b"strict", b"-", b"-", b"-", b"-"),
        reply(b"1", b"default", b"1", b"0", b"0", b"-", b"strict", b"-", b"-", b"-", b"-"),
        GREETING + b":5\r\n",
        GREETING + reply([b"2.0", 1, 1, 0, 0, b"garbage", b"0" * 16]),
        GREETING + reply([b"END"]),
        GREETING + reply(reply()),
        GREETING + b"*1\r\n" * 100,
        GREETING + os.urandom(5000),
        GREETING + b"-AABEHIND far\r\n",
        GREETING + b"-AAAHEAD far\r\n",
    ],
)
def test_whoever_answers_does_no_harm(data: bytes) -> None:
    impostor = Impostor()
    port, claim = claim_port()
    peers = f"2 127.0.0.1 {impostor.port}"
    with RegionProcess(1, port) as region:
        added = region.xadd("s")
        region.call("CONFIG", "SET", "aa-peers", peers)
        impostor.answer(data)
        wait_until(lambda: region.peer(2)[b"problem"] != b"", region)
        assert region.ids("s") == [added]
        assert region.call("AA", "TOKEN") == f"{origin_of(region)}=1".encode()
        region.check_log()
    claim.close()
    impostor.listener.close()


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ((GREETING, reply([b"END"])), "the end of an answer is none"),
        ((GREETING, reply([b"2.0", 7, 1, 0, 0, b"", b"0" * 16])), "the checksum of a piece"),
        ((b"HTTP/1.1 200 OK\r\n\r\n",), "what came is no reply"),
    ],
)
def test_what_goes_wrong_again_and_again_is_told_once(
    answers: tuple[bytes, ...], reason: str
) -> None:
    impostor = Impostor()
    port, claim = claim_port()
    with RegionProcess(1, port) as region:
        region.call("CONFIG", "SET", "aa-peers", f"2 127.0.0.1 {impostor.port}")
        for _ in range(4):
            impostor.answer(*answers)
        wait_until(lambda: reason in str(region.peer(2)[b"problem"]), region)
        said = [line for line in region.log().splitlines() if "Region 2" in line]
        assert len([line for line in said if reason in line]) == 1, said
        assert len([line for line in said if "answers" in line]) == len(answers) - 1, said
        region.check_log()
    claim.close()
    impostor.listener.close()


def test_a_copy_that_cannot_be_taken_is_told_once() -> None:
    impostor = Impostor()
    port, claim = claim_port()
    with RegionProcess(1, port) as region:
        region.call("CONFIG", "SET", "aa-peers", f"2 127.0.0.1 {impostor.port}")
        impostor.answer(GREETING, b"-AABEHIND far\r\n")
        for _ in range(2):
            impostor.answer(GREETING, b"-ERR no copies here\r\n")
        wait_until(lambda: region.state_of(2) == b"behind", region)
        assert region.log().count("no copies here") == 1
        assert region.log().count("a full copy is taken") == 1
        region.check_log()
    claim.close()
    impostor.listener.close()


def test_connections_that_end_within_messages(two_regions: Mesh) -> None:
    for most_bytes in (1, 20, 300, 5000):
        link = two_regions.proxies[2, 1]
        link.cut_after(most_bytes)
        before = link.carried_bytes
        for _ in range(30):
            two_regions[1].xadd("s", "*", "f", "v" * 200)
        two_regions.wait_until_level()
        assert link.carried_bytes > before
    assert len(two_regions[2].ids("s")) == 120
    assert two_regions[1].ids("s") == two_regions[2].ids("s")
