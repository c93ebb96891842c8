"""``headrace regions`` as an operator calls it: what it shows, and when all is well."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable

from headrace.regions.tools.overview import Facts, Look, lines_of
from support import build
from support.mesh import Mesh, RegionProcess, wait_until
from support.process import ServerProcess, free_port
from support.tools import tool


def urls(*servers: ServerProcess) -> list[str]:
    return [word for server in servers for word in ("--url", f"redis://127.0.0.1:{server.port}")]


def show(*servers: ServerProcess) -> tuple[int, str]:
    done = tool("regions", *urls(*servers))
    assert done.stderr == b""
    return done.returncode, done.stdout.decode()


def become_level(mesh: Mesh) -> None:
    for region in mesh.regions.values():
        for number in mesh.regions:
            if number != region.number:
                region.wait_for_peer(number, b"up")
    mesh.wait_until_level()


def link(text: str, name: str) -> list[str]:
    """The cells of the row of a link, behind its name."""
    found = re.search(rf"^{name}  (.*)$", text, re.MULTILINE)
    assert found is not None, text
    return re.split(r"  +", found[1].strip())


def test_all_is_well(three_regions: Mesh) -> None:
    for region in three_regions.regions.values():
        region.xadd("s")
        region.xadd(f"of-{region.number}")
    become_level(three_regions)
    code, text = show(*three_regions.regions.values())
    assert code == 0, text
    assert "4 streams compared between regions that know the same: all are equal" in text
    assert text.endswith("all is well\n")
    assert max(map(len, text.splitlines())) < 90
    for one in range(1, 4):
        for other in range(1, 4):
            if one != other:
                state, lag, missing, *_ = link(text, f"{one} to {other}")
                assert (state, lag, missing) == ("up", "0 ms", "0")


def test_all_is_well_soon_after_a_region_has_joined_and_when_it_was_forgotten(
    three_regions: Mesh,
) -> None:
    """As the documentation has it: its folder is empty, and the others learn of it while they run.

    Nobody takes it out of aa-peers afterwards.
    """
    one, two, three = (three_regions[number] for number in (1, 2, 3))
    three.kill()
    one.call("AA", "FORGET", "3")
    for region, other in ((one, two), (two, one)):
        wait_until(lambda region=region: region.info("activeactive")["aa_members"] == "1,2", region)
        region.call(
            "CONFIG", "SET", "aa-peers", three_regions.peers_of(region.number, (other.number,))
        )
        region.wait_for_peer(other.number, b"up")
    shutil.rmtree(three.directory / "appendonlydir")
    three.start_again()
    for region in (one, two):
        others = [number for number in (1, 2, 3) if number != region.number]
        region.call("CONFIG", "SET", "aa-peers", three_regions.peers_of(region.number, others))
    become_level(three_regions)
    wait_until(lambda: show(one, two, three)[0] == 0, one)
    three.kill()
    one.call("AA", "FORGET", "3")
    wait_until(lambda: show(one, two)[0] == 0, one)
    _, text = show(one, two)
    assert link(text, "3 to 1")[0] == "forgotten"
    assert one.call("AA", "SYNC", "1000") == [b"2", b"level"]
    for region in (one, two):
        epoch = region.info("activeactive")["aa_epoch"]
        region.kill()  # nobody waits for it at a start
        region.start_again()
        assert region.info("activeactive")["aa_epoch"] == epoch


def test_large_figures_fit() -> None:
    """A region of a late epoch that has much, and links that are far behind."""
    peer = "lag_ms=59999,answered_ms_ago=119999,missing_records=4000000000,unacknowledged_records="
    peer += "4000000000,unacknowledged_bytes=999000000000,full_copies=1000,clock_ahead_ms=-5,state="
    info = [
        *("aa_region:15", "aa_epoch:28512345", "aa_database:orders", "aa_writable:1"),
        *("aa_resting_because:", "aa_numbers:1.0=4000000000,15.28512345=5000000000"),
        *("aa_backlog_bytes:999000000", "aa_log_bytes:999000000000", "aa_garbage_keys:999999"),
        *("aa_checks:1000000", "aa_check_mismatches:0"),
        *(f"aa_peer1:{peer}up", f"aa_peer2:{peer}refused: AASECRET the other side has another"),
    ]
    look = Look()
    look.facts.append(Facts("192.168.100.100:6379", "\r\n".join(info), 60_000))
    lines = lines_of(look)[:-1]
    assert max(map(len, lines)) <= 100, lines
    figures = "15.28512345 9,000,000,000 999 MB 999 GB 999,999 1,000,000 (0)".split()
    figures += "4,000,000,000 60.0 s 120.0 s 1000 refused".split()
    assert [each for each in figures if each not in "\n".join(lines)] == []


def test_a_link_that_is_cut_is_told(two_regions: Mesh) -> None:
    one, two = two_regions[1], two_regions[2]
    one.xadd("s")
    become_level(two_regions)
    two_regions.proxies[2, 1].cut()
    two.wait_for_peer(1, b"down")
    for _ in range(3):
        one.xadd("s", "*", "text", "hello")
    code, text = show(one, two)
    assert code == 1
    assert f"WRONG  region 2 (127.0.0.1:{two.port}): region 1 is down" in text
    assert "region 2 is" not in text.partition("WRONG")[2]
    assert link(text, "1 to 2")[0] == "down"
    waiting = int(link(text, "2 to 1")[3].partition(" ")[0])
    assert waiting >= 3
    assert "streams were not compared" in text
    two_regions.heal()
    become_level(two_regions)
    assert show(one, two)[0] == 0


def test_streams_that_differ_are_told(two_regions: Mesh) -> None:
    one, two = two_regions[1], two_regions[2]
    one.xadd("s\n\x1b[2J", "*", "greeting", "hello")
    two.sync()
    two.stop()
    [file] = (two.directory / "appendonlydir").glob("*.incr.aof")
    file.write_bytes(file.read_bytes().replace(b"hello", b"jello"))
    two.start_again()
    become_level(two_regions)
    code, text = show(one, two)
    assert code == 1
    assert "WRONG  the stream s\\n\\x1b[2J differs between region 1" in text


def test_what_cannot_be_asked_is_told(
    two_regions: Mesh, fresh_server: Callable[..., ServerProcess]
) -> None:
    one = two_regions[1]
    become_level(two_regions)
    alone = fresh_server()
    code, text = show(one, alone)
    assert code == 1
    assert f"WRONG  127.0.0.1:{alone.port}: it is no region: aa-region-id is 0" in text
    port = free_port()
    done = tool("regions", *urls(one), "--url", f"redis://127.0.0.1:{port}")
    assert done.returncode == 1
    assert f"127.0.0.1:{port}: it cannot be reached: Connection refused".encode() in done.stdout
    code, text = show(one, one)
    assert code == 1
    assert "are both region 1" in text


def test_passwords_are_used_and_not_shown() -> None:
    with RegionProcess(1, free_port()) as region:
        region.call("CONFIG", "SET", "requirepass", "hush")
        done = tool("regions", "--url", f"redis://:hush@127.0.0.1:{region.port}")
        assert done.returncode == 0, done.stdout
        assert b"hush" not in done.stdout
        done = tool("regions", "--url", f"redis://:wrong@127.0.0.1:{region.port}")
        assert done.returncode == 1
        assert b"WRONGPASS" in done.stdout


def test_wrong_arguments() -> None:
    assert tool("regions").returncode == 2
    for url in ("http://host", "redis://", "host:6379", "redis://host:port"):
        done = tool("regions", "--url", url)
        assert done.returncode == 2, url
        assert b"such as redis://" in done.stderr


def test_watching_goes_on(two_regions: Mesh) -> None:
    one = two_regions[1]
    with subprocess.Popen(
        [
            sys.executable,
            "-P",
            "-m",
            "headrace",
            "regions",
            *urls(one),
            "--watch",
            "--every",
            "0.1",
        ],
        stdout=subprocess.PIPE,
        text=True,
        env=build.environment(),
    ) as watching:
        try:
            assert watching.stdout is not None
            seen: list[str] = []

            def looks() -> int:
                assert watching.stdout is not None
                seen.append(watching.stdout.readline())
                return sum(line.startswith("origin") for line in seen)

            wait_until(lambda: looks() == 3)
            two_regions.proxies[1, 2].cut()
            wait_until(lambda: looks() and "WRONG" in seen[-1])
        finally:
            watching.kill()


def _alone(number: int) -> ServerProcess:
    words = ("--aa-region-id", str(number), "--aa-database", "orders", "--aa-port")
    return ServerProcess("--appendonly", "yes", *words, str(free_port()), config="")


def test_regions_join_and_go() -> None:
    """Two become a pair, a third one joins, and the first one goes with all that it knows."""
    with _alone(1) as one, _alone(2) as two, _alone(3) as three:
        for number in range(500):
            one.call("XADD", "s", "*", "n", number)
        done = tool("regions", "add", *urls(one, two))
        assert done.returncode == 0, done.stderr
        assert done.stdout.decode().count("takes writes, and reaches all others") == 2
        wait_until(lambda: two.call("XLEN", "s") == 500)
        refused = tool("regions", "add", *urls(one, three))
        assert refused.stderr == b"Not done: region 2 takes part, too. Name its URL\n"
        done = tool("regions", "add", *urls(one, two, three))
        assert done.returncode == 0, done.stderr
        wait_until(lambda: three.call("XLEN", "s") == 500)
        assert tool("regions", "check", *urls(one, two, three)).returncode == 0
        one.call("XADD", "s", "*", "n", "last")
        done = tool("regions", "remove", "1", *urls(one, two, three))
        assert done.returncode == 0, done.stderr
        for region, other in ((two, 3), (three, 2)):
            assert region.call("XLEN", "s") == 501
            assert region.info("activeactive")["aa_members"] == "2,3"
            peers = region.call("CONFIG", "GET", "aa-peers")
            assert isinstance(peers, list)
            assert peers[1].startswith(b"%d " % other)
            assert b"," not in peers[1]
        assert tool("regions", *urls(two, three)).returncode == 0


def test_a_region_with_data_does_not_join() -> None:
    with _alone(1) as one, _alone(2) as two:
        two.call("XADD", "s", "*", "n", 1)
        done = tool("regions", "add", *urls(one, two))
        assert done.returncode == 1
        assert b"has data of its own. Begin with an empty folder" in done.stderr
        done = tool("regions", "remove", "2", *urls(two))
        assert done.stderr == b"Not done: name the regions that stay\n"
        assert tool("regions", "remove", *urls(one)).returncode == 2
