"""Idempotent ids in the append-only file: recorded, replayed, rewritten, and in time forgotten."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from conftest import Factory

from headrace.protocol.client import request
from support.client import RawClient, WireError
from support.process import Process
from support.waiting import wait_until

from .test_serving import FOLDER
from .test_serving import wait_until as wait_for_info

FAR_MS = 9_999_999_999_999
AOF = ("--appendonly", "yes", "--aof-use-rdb-preamble", "no")
INCR = Path(FOLDER, "appendonly.aof.1.incr.aof")


def add(client: RawClient, key: str, pid: str, iid: str, *options: str | int) -> bytes:
    reply = client.call_parsed("XADD", key, "IDMP", pid, iid, *options, "*", "f", "v")
    assert isinstance(reply, bytes), reply
    return reply


def facts(server: Process, key: str) -> dict[bytes, object]:
    reply = server.call("XINFO", "STREAM", key)
    assert isinstance(reply, list)
    return dict(zip(reply[::2], reply[1::2], strict=True))


def counters(server: Process, key: str) -> tuple[object, ...]:
    told = facts(server, key)
    return tuple(
        told[name] for name in (b"pids-tracked", b"iids-tracked", b"iids-added", b"iids-duplicates")
    )


def limits(server: Process, key: str) -> tuple[object, object]:
    told = facts(server, key)
    return told[b"idmp-duration"], told[b"idmp-maxsize"]


def rewrite(server: Process) -> None:
    server.call("BGREWRITEAOF")
    wait_for_info(server, "aof_rewrite_scheduled", "0")
    wait_for_info(server, "aof_rewrite_in_progress", "0")
    assert server.info("persistence")["aof_last_bgrewrite_status"] == "ok"


def records(path: Path) -> list[list[bytes]]:
    """The commands of a file, and its comments as single words."""
    data = path.read_bytes()
    found: list[list[bytes]] = []
    while data:
        line, _, data = data.partition(b"\r\n")
        if line.startswith(b"#"):
            found.append([line])
            continue
        count = int(line[1:])
        words = data.split(b"\r\n", 2 * count)
        found.append(words[1 : 2 * count : 2])
        data = words[2 * count]
    return found


@pytest.fixture(params=["records", "commands", "snapshot"])
def way(request: pytest.FixtureRequest) -> str:
    """Return how the files hold what a test has done: as records, or in a base of either form."""
    name: str = request.param
    return name


def through_the_file(server: Process, way: str) -> None:
    """A crash and a restart, after a rewrite where ``way`` says so."""
    if way != "records":
        preamble = "yes" if way == "snapshot" else "no"
        server.call("CONFIG", "SET", "aof-use-rdb-preamble", preamble)
        rewrite(server)
    server.restart(crash=True)


def test_what_is_recorded(fresh_server: Factory) -> None:
    """The ID that was chosen for what is new, the request as it was for a repeat, and no more."""
    server = fresh_server(*AOF, "--appendfsync", "always")
    with server.client() as client:
        first = add(client, "s", "p", "i")
        add(client, "s", "p", "i")
        content = client.call_parsed("XADD", "s", "IDMPAUTO", "q", "MAXLEN", "~", 9, "*", "f", "v")
        client.call("XADD", "s", "IDMP", "p", "", "*", "f", "v")
        client.call("XADD", "s", "NOMKSTREAM", "IDMP", "p", "i", "*", "g", "w")
        client.call("XCFGSET", "s", "IDMP-DURATION", 100)
        client.call("XIDMP", "CFGSET", "s", "MAXSIZE", 7, "DURATION", 100)
        client.call("XIDMPRECORD", "s", "p", "i", first)
        client.call("XIDMPRECORD", "s", "p", "i", first)
        client.call("XIDMP", "PRODUCERS", "s")
    assert isinstance(content, bytes)
    texts = [b" ".join(words) for words in records(server.directory / INCR)]
    assert texts[:5] == [
        b"SELECT 0",
        b"XADD s IDMP p i %b f v" % first,
        b"XADD s IDMP p i * f v",
        b"XADD s IDMPAUTO q MAXLEN = 2 %b f v" % content,
        b"XADD s NOMKSTREAM IDMP p i * g w",
    ]
    assert texts[5] == b"XCFGSET s IDMP-DURATION 100 IDMP-MAXSIZE 7"
    assert texts[-1] == b"XIDMPRECORD s p i %b" % first
    assert len([text for text in texts if not text.startswith(b"#")]) == 7


def test_known_after_a_restart(fresh_server: Factory, way: str) -> None:
    server = fresh_server(*AOF)
    with server.client() as client:
        ids = {pid: [add(client, "s", pid, f"i{n}") for n in range(5)] for pid in ("p", "q", "é")}
        repeat = add(client, "s", "p", "i0")
        assert repeat == ids["p"][0]
        client.call("XADD", "s", "IDMPAUTO", "auto", "*", "f", "v")
        client.call("XDEL", "s", ids["p"][1])
        client.call("XTRIM", "s", "MAXLEN", 4)
        gone = add(client, "gone", "p", "i", "MAXLEN", 0)
    tracked, producers = counters(server, "s"), server.call("XIDMP", "PRODUCERS", "s")
    through_the_file(server, way)
    assert server.call("XIDMP", "PRODUCERS", "s") == producers
    if way == "commands":  # which have none for what was counted
        assert counters(server, "s") == (4, 16, 16, 0)
    else:
        assert counters(server, "s") == tracked == (4, 16, 16, 1)
    with server.client() as client:
        length = client.call("XLEN", "s")
        for pid, known in ids.items():  # also of those that are gone
            assert [add(client, "s", pid, f"i{n}") for n in range(5)] == known
        new = add(client, "s", "p", "new")
        client.call("XTRIM", "s", "MAXLEN", 4)
        again = client.call("XADD", "s", "IDMPAUTO", "auto", "*", "f", "v")
        assert ids["é"][4] not in again
        assert client.call("XLEN", "s") == length
        assert add(client, "gone", "p", "i") == gone
        assert client.call("XLEN", "gone") == b":0\r\n"
    server.restart(crash=True)  # what was recorded behind the base is known too
    with server.client() as client:
        assert add(client, "s", "p", "new") == new
        assert add(client, "s", "q", "i0") == ids["q"][0]


def test_the_oldest_is_still_the_oldest(fresh_server: Factory, way: str) -> None:
    server = fresh_server(*AOF)
    with server.client() as client:
        client.call("XADD", "s", "1-1", "f", "v")
        client.call("XCFGSET", "s", "IDMP-MAXSIZE", 3, "IDMP-DURATION", 5000)
        ids = [add(client, "s", "p", f"i{n}") for n in range(7)]
    through_the_file(server, way)
    assert limits(server, "s") == (5000, 3)
    with server.client() as client:
        assert add(client, "s", "p", "i4") == ids[4]
        add(client, "s", "p", "new")
        assert add(client, "s", "p", "i5") == ids[5]
        assert add(client, "s", "p", "i4") != ids[4]


def test_an_iid_used_again_after_its_time_keeps_both_entries(
    fresh_server: Factory, way: str
) -> None:
    server = fresh_server(*AOF)
    with server.client() as client:
        client.call("XADD", "s", "1-1", "f", "v")
        client.call("XCFGSET", "s", "IDMP-DURATION", 1)
        first = add(client, "s", "p", "i")
        wait_until(lambda: add(client, "s", "p", "i") != first)
        client.call("XADD", "s", "IDMPAUTO", "p", "*", "f", "v")
        entries = client.call("XRANGE", "s", "-", "+")
        assert entries.startswith(b"*4")
    through_the_file(server, way)
    with server.client() as client:
        assert client.call("XRANGE", "s", "-", "+") == entries


def test_what_was_forgotten_stays_so(fresh_server: Factory, way: str) -> None:
    """Whatever ID its entry has, and also when nobody has looked at it since."""
    server = fresh_server(*AOF)
    with server.client() as client:
        # The first to be too old, so that it is that when the others are.
        client.call("SELECT", 1)
        client.call("XADD", "old", "1-1", "f", "v")
        client.call("XCFGSET", "old", "IDMP-DURATION", 1)
        client.call("XIDMPRECORD", "old", "p", "i", "1-1")
        client.call("SELECT", 0)
        for key, last in (("now", "1-1"), ("ahead", f"{FAR_MS}-1")):
            client.call("XADD", key, last, "f", "v")
            client.call("XCFGSET", key, "IDMP-DURATION", 1)
            add(client, key, "p", "i")
            client.call("XADD", key, "IDMPAUTO", "q", "*", "f", "v")
        client.call("MULTI")
        client.call("SET", "text", "x")
        client.call("XADD", "ahead", "IDMP", "p", "j", "*", "f", "v")
        client.call("EXEC")
        wait_until(lambda: all(counters(server, key)[:2] == (0, 0) for key in ("now", "ahead")))
        lengths = [client.call_parsed("XLEN", key) for key in ("now", "ahead")]
        assert lengths == [3, 4]
    through_the_file(server, way)
    with server.client() as client:
        for iid in ("i", "j"):
            add(client, "now", "p", iid)
            add(client, "ahead", "p", iid)
        client.call("XADD", "ahead", "IDMPAUTO", "q", "*", "f", "v")
        assert [client.call_parsed("XLEN", key) for key in ("now", "ahead")] == [5, 7]
        client.call("SELECT", 1)
        add(client, "old", "p", "i")
        assert client.call_parsed("XLEN", "old") == 2


def test_an_id_that_is_no_time_does_not_make_old(fresh_server: Factory, way: str) -> None:
    """Neither one ahead of the clock nor one long gone: what counts is when it was added."""
    server = fresh_server(*AOF)
    with server.client() as client:
        client.call("XADD", "ahead", f"{FAR_MS}-1", "f", "v")
        ahead = add(client, "ahead", "p", "i")
        client.call("SELECT", 1)
        client.call("XADD", "old", "1-1", "f", "v")
        client.call("XIDMPRECORD", "old", "p", "i", "1-1")
        client.call("COPY", "old", "copy")
    through_the_file(server, way)
    with server.client() as client:
        assert add(client, "ahead", "p", "i") == ahead
        client.call("SELECT", 1)
        assert add(client, "old", "p", "i") == b"1-1"
        assert add(client, "copy", "p", "i") == b"1-1"


def test_stamps_are_few(fresh_server: Factory) -> None:
    """Only records whose IDs do not tell the time have it written before them."""
    server = fresh_server(*AOF, "--appendfsync", "always")
    with server.client() as client:
        for number in range(20):
            add(client, "s", "p", f"i{number}")
        client.call("XADD", "t", f"{FAR_MS}-1", "f", "v")
        add(client, "t", "p", "i")
        add(client, "s", "p", "last")
    found = records(server.directory / INCR)
    stamped = [at for at, words in enumerate(found) if words[0].startswith(b"#TS:")]
    # A pause between the command and its ID may add one or another.
    assert [found[at + 1][1:3] for at in stamped if found[at + 1][1] == b"t"] == [[b"t", b"IDMP"]]
    assert len(stamped) < 10
    second = int(found[stamped[-1]][0].removeprefix(b"#TS:"))
    assert abs(second - time.time()) < 60


def test_the_files_time_is_used_up_to_now(fresh_server: Factory) -> None:
    """One that lies ahead makes nothing last longer."""
    server = fresh_server(*AOF)
    server.kill()
    commands = [
        [b"SELECT", b"0"],
        [b"XADD", b"s", b"1-1", b"f", b"v"],
        [b"XCFGSET", b"s", b"IDMP-DURATION", b"1"],
    ]
    ahead = b"#TS:%d\r\n" % (time.time() + 1000)
    record = [b"XADD", b"s", b"IDMP", b"p", b"i", b"%d-0" % FAR_MS, b"f", b"v"]
    path = server.directory / INCR
    path.write_bytes(b"".join(map(request, commands)) + ahead + request(record))
    server.start()
    assert counters(server, "s")[2] == 1
    wait_until(lambda: counters(server, "s")[:2] == (0, 0))


LIMITS = ("--stream-idmp-duration", "50", "--stream-idmp-maxsize", "3")


@pytest.mark.parametrize("configured", ["at start", "while it runs"])
def test_limits_are_those_of_the_start_of_the_stream(
    fresh_server: Factory, way: str, configured: str
) -> None:
    """Whatever is configured when the file is read."""
    server = fresh_server(*AOF, *(LIMITS if configured == "at start" else ()))
    with server.client() as client:
        if configured != "at start":
            client.call("CONFIG", "SET", *[word.removeprefix("--") for word in LIMITS])
        ids = [add(client, "s", "p", f"i{n}", "MAXLEN", 3) for n in range(5)]
        assert add(client, "s", "p", "i4") == ids[4]
        client.call("XADD", "plain", "1-1", "f", "v")
        client.call("XGROUP", "CREATE", "group", "g", "$", "MKSTREAM")
        client.call("XADD", "auto", "MAXLEN", 5, "IDMPAUTO", "p", "*", "f", "v")
        client.call("CONFIG", "SET", "stream-idmp-duration", 100, "stream-idmp-maxsize", 100)
        client.call("XADD", "default", "1-1", "f", "v")
    before = [facts(server, key) for key in ("plain", "group", "default")]
    producers = [server.call("XIDMP", "PRODUCERS", key) for key in ("s", "auto")]
    assert counters(server, "s") == (1, 3, 5, 1)
    server.options = (*AOF, "--stream-idmp-duration", "7")
    through_the_file(server, way)
    assert [facts(server, key) for key in ("plain", "group", "default")] == before
    assert [limits(server, key) for key in ("s", "auto", "default")] == [
        (50, 3), (50, 3), (100, 100),
    ]  # fmt: skip
    assert [server.call("XIDMP", "PRODUCERS", key) for key in ("s", "auto")] == producers
    if way != "commands":
        assert counters(server, "s") == (1, 3, 5, 1)
    with server.client() as client:
        assert add(client, "s", "p", "i2") == ids[2]
        client.call("XADD", "new", "1-1", "f", "v")
    assert limits(server, "new") == (7, 100)


def test_moves_and_copies_are_repeated(fresh_server: Factory, way: str) -> None:
    server = fresh_server(*AOF)
    with server.client() as client:
        first = add(client, "a", "p", "i")
        client.call("RENAME", "a", "b")
        client.call("COPY", "b", "c")
        second = add(client, "c", "p", "j")
        client.call("MOVE", "b", 2)
        client.call("SWAPDB", 2, 3)
        add(client, "gone", "p", "i")
        client.call("DEL", "gone")
        client.call("XADD", "gone", "1-1", "f", "v")
    through_the_file(server, way)
    with server.client() as client:
        assert counters(server, "gone")[:2] == (0, 0)
        assert add(client, "c", "p", "i") == first
        assert add(client, "c", "p", "j") == second
        client.call("SELECT", 3)
        assert add(client, "b", "p", "i") == first
        assert add(client, "b", "p", "j") != second


def test_a_transaction_is_repeated_as_a_whole(fresh_server: Factory, way: str) -> None:
    server = fresh_server(*AOF)
    with server.client() as client:
        client.call("MULTI")
        for iid in ("i", "j", "i"):
            client.call("XADD", "s", "IDMP", "p", iid, "*", "f", "v")
        client.call("XCFGSET", "s", "IDMP-MAXSIZE", 50)
        client.call("XADD", "s", "IDMP", "p", "i", "*", "f", "v")
        ids = client.call_parsed("EXEC")
    assert isinstance(ids, list)
    assert ids[0] == ids[2]
    through_the_file(server, way)
    with server.client() as client:
        assert add(client, "s", "p", "i") == ids[4]
        assert client.call_parsed("XLEN", "s") == 3
        assert add(client, "s", "p", "j") not in ids


def test_a_file_of_redis(fresh_server: Factory) -> None:
    """What Redis may leave, in the odd shapes that it may have."""
    server = fresh_server(*AOF)
    server.kill()
    now_ms = time.time_ns() // 1_000_000
    known = b"%d-0" % now_ms
    commands = [
        b"SELECT 0",
        b"XADD s IDMP p i %b f v" % known,
        b"XADD s IDMP p i * f v",  # a repeat
        b"XADD s IDMP p unknown * f v",  # of what is not known any more
        b"XADD none IDMP p unknown * f v",
        b"XADD s MAXLEN = 1 LIMIT 100 IDMPAUTO q %d-1 f v" % now_ms,
        b"XADD t %d-0 f v" % now_ms,
        b"XCFGSET t IDMP-DURATION 500 IDMP-MAXSIZE 5",
        b"XIDMPRECORD t p i %b" % known,
        b"XIDMPRECORD t p i %b" % known,
        b"XIDMPRECORD t p i %d-7" % now_ms,  # another one: the last word counts
        b"XADD reused IDMP p i 1-1 f v",
        b"XADD reused IDMP p i %d-5 f v" % now_ms,
    ]
    path = server.directory / INCR
    path.write_bytes(b"".join(request(line.split()) for line in commands))
    server.start()
    assert counters(server, "s") == (2, 2, 2, 1)
    assert server.call("EXISTS", "none") == 0
    with server.client() as client:
        assert add(client, "s", "p", "i") == known
        assert client.call_parsed("XLEN", "s") == 1
        assert add(client, "t", "p", "i") == b"%d-7" % now_ms
        assert client.call_parsed("XLEN", "reused") == 2
        assert add(client, "reused", "p", "i") == b"%d-5" % now_ms


def test_a_record_that_cannot_be_is_refused(fresh_server: Factory) -> None:
    """As any command of the file that fails."""
    server = fresh_server(*AOF, check_log=False)
    server.kill()
    (server.directory / INCR).write_bytes(request([b"XIDMPRECORD", b"none", b"p", b"i", b"1-1"]))
    with pytest.raises(RuntimeError, match="XIDMPRECORD answered: ERR no such key"):
        server.start()


def test_reloading_keeps_everything_but_counters(fresh_server: Factory) -> None:
    server = fresh_server("--enable-debug-command", "yes")
    with server.client() as client:
        client.call("XADD", "ahead", f"{FAR_MS}-1", "f", "v")
        ids = [add(client, key, "p", "i") for key in ("s", "ahead")]
        client.call("XCFGSET", "s", "IDMP-MAXSIZE", 5)
        ids[0] = add(client, "s", "p", "i")
        assert client.call("DEBUG", "RELOAD") == b"+OK\r\n"
        assert [add(client, key, "p", "i") for key in ("s", "ahead")] == ids
    assert limits(server, "s") == (100, 5)


def test_a_full_disk_of_rewrites_knows_the_time(fresh_server: Factory) -> None:
    """In the base a record has a stamp only where it needs one."""
    server = fresh_server(*AOF)
    with server.client() as client:
        first = add(client, "s", "p", "i")
        client.call("XADD", "t", "1-1", "f", "v")
        client.call("XIDMPRECORD", "t", "p", "i", "1-1")
    rewrite(server)
    [base] = Path(server.directory, FOLDER).glob("*.base.aof")
    found = records(base)
    at = found.index([b"XIDMPRECORD", b"t", b"p", b"i", b"1-1"])
    assert found[at - 1][0].startswith(b"#TS:")
    normal = found.index([b"XIDMPRECORD", b"s", b"p", b"i", first])
    assert found[normal - 1][0] == b"XSETID"
    with server.client() as client:
        refused = client.call_parsed("XIDMPRECORD", "t", "q", "i", "9-9")
        assert refused == WireError(b"ERR No such message in stream")
