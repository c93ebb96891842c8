"""Deadlines to the millisecond, ours and Redis's, under one clock."""

from __future__ import annotations

import pytest
from conftest import Factory

from support.clock import START_MS, Clock
from support.fuzz.duel import Duel
from support.fuzz.steps import call, steps_of

NOW = b"%d" % START_MS
PAST = b"%d" % (START_MS - 1)


def test_a_key_lives_through_its_last_millisecond(
    settable_clock: Clock, fresh_server: Factory
) -> None:
    server = fresh_server("--hz", "100", environment=settable_clock.environment)
    server.call("SET", "k", "v", "PX", 5)
    settable_clock.advance(5)
    cycles = int(server.info("stats")["expired_keys"])
    assert server.call("GET", "k") == b"v"
    assert server.call("PTTL", "k") == 0
    assert server.call("KEYS", "*") == [b"k"]
    settable_clock.advance(1)
    assert server.call("GET", "k") is None
    assert server.call("KEYS", "*") == []
    assert int(server.info("stats")["expired_keys"]) == cycles + 1


@pytest.mark.judge
@pytest.mark.parametrize("command", ["GET k", "KEYS *", "SCAN 0", "EXISTS k", "PTTL k", "DEL k"])
@pytest.mark.parametrize("late_ms", [-1, 0, 1])
def test_around_a_deadline(duel: Duel, command: str, late_ms: int) -> None:
    duel.player.play(
        steps_of(f"""
            0 SET k v PX 10
            1 WATCH k
            1 MULTI
            1 GET k
            tick {10 + late_ms}
            0 {command}
            1 EXEC
            0 SET k w NX
        """)
    )


@pytest.mark.judge
@pytest.mark.parametrize("moment", [NOW, PAST])
@pytest.mark.parametrize("before", [(), (b"SET", b"k", b"v"), (b"XADD", b"k", b"1-1", b"f", b"v")])
@pytest.mark.parametrize(
    "options", [b"", b"GET", b"NX", b"XX", b"IFEQ v", b"IFNE v", b"GET XX", b"NX GET"]
)
def test_a_time_in_the_past_stores_nothing(
    duel: Duel, moment: bytes, before: tuple[bytes, ...], options: bytes
) -> None:
    duel.player.play(
        [
            *([call(1, *before)] if before else []),
            call(2, b"WATCH", b"k"),
            call(0, b"SET", b"k", b"w", b"PXAT", moment, *options.split()),
            call(0, b"EXISTS", b"k"),
            call(2, b"MULTI"),
            call(2, b"EXEC"),
        ]
    )


FIRST_AND_LAST = (0, 1, 2**46 - 1, 2**46, 2**63 - 1)
ELEMENTS = {
    "small": "0 HSET k f v g w",
    "small with deadlines": "0 HSET k f v g w\n0 HPEXPIREAT k 9999999999999 FIELDS 1 g",
    "large": f"0 HSET k f {'v' * 65} g w",
    "large with deadlines": f"0 HSET k f {'v' * 65} g w\n0 HEXPIRE k 9999 FIELDS 1 g",
    "a field with one": f"0 HSET k f {'v' * 65} g w\n0 HEXPIRE k 9999 FIELDS 1 f",
}


@pytest.mark.judge
@pytest.mark.parametrize("before", ELEMENTS.values(), ids=ELEMENTS)
@pytest.mark.parametrize("moment", FIRST_AND_LAST)
def test_the_first_and_the_last_deadlines_of_fields(duel: Duel, before: str, moment: int) -> None:
    lines: list[str] = []
    for command in (
        *(f"{name} k {moment} FIELDS 2 f f" for name in ("HPEXPIREAT", "HEXPIREAT", "HEXPIRE")),
        *(f"HPEXPIREAT k {moment} {condition} FIELDS 1 f" for condition in ("NX", "GT", "LT")),
        *(f"HGETEX k {unit} {moment} FIELDS 2 f g" for unit in ("PXAT", "EXAT", "PX")),
        *(f"HSETEX k {unit} {moment} FIELDS 2 f w h w" for unit in ("PXAT", "EXAT", "PX")),
    ):
        lines += ["0 DEL k c", before, f"0 {command}", "0 HPEXPIRETIME k FIELDS 3 f g h"]
        lines += ["0 HLEN k", "0 COPY k c", "0 HPEXPIRETIME c FIELDS 3 f g h"]
    duel.player.play(steps_of("\n".join(lines)))


@pytest.mark.judge
@pytest.mark.parametrize("moment", FIRST_AND_LAST)
def test_the_first_and_the_last_deadlines_of_keys(duel: Duel, moment: int) -> None:
    lines: list[str] = ["0 SADD n 1", "0 DUMP n"]
    for command in (
        *(f"{name} k {moment}" for name in ("EXPIRE", "PEXPIRE", "EXPIREAT", "PEXPIREAT")),
        *(f"SET k w {unit} {moment}" for unit in ("EX", "PX", "EXAT", "PXAT")),
        *(f"GETEX k {unit} {moment}" for unit in ("EX", "PX", "EXAT", "PXAT")),
        *(f"MSETEX 2 k w n w {unit} {moment}" for unit in ("EX", "PXAT")),
        *(f"RESTORE k {moment} {{payload:0:0:0}} REPLACE {unit}" for unit in ("", "ABSTTL")),
    ):
        lines += ["0 DEL c", "0 SET k v", f"0 {command}", "0 PEXPIRETIME k", "0 EXPIRETIME k"]
        lines += ["0 COPY k c", "0 PEXPIRETIME c"]
    duel.player.play(steps_of("\n".join(lines)))


def test_what_is_not_stored_is_not_recorded(fresh_server: Factory) -> None:
    server = fresh_server("--appendonly", "yes")
    server.call("SET", "k", "v", "PXAT", "1")
    assert server.info("persistence")["rdb_changes_since_last_save"] == "0"
    server.call("SET", "k", "v")
    server.call("SET", "k", "w", "EXAT", "1")
    server.call("SET", "n", "v", "EXAT", "1")
    [incr] = (server.directory / "appendonlydir").glob("*.incr.aof")
    words = incr.read_bytes().split(b"\r\n")
    assert (words.count(b"SET"), words.count(b"DEL") + words.count(b"UNLINK")) == (1, 1)
    server.restart(crash=True)
    assert server.call("DBSIZE") == 0


@pytest.mark.judge
def test_msetex_tells_the_deadline_first(duel: Duel) -> None:
    duel.player.play(
        steps_of(f"""
            0 SET n 1
            0 XADD s 1-1 f v
            0 MSETEX 3 k v n v s v EX 10
            0 MSETEX 2 k w n w PXAT {START_MS - 5}
            0 MSETEX 2 k w m w KEEPTTL
            0 MSETEX 2 k w m w NX PX 10
        """)
    )


@pytest.mark.judge
def test_memory_usage_finds_what_is_over(duel: Duel) -> None:
    duel.player.play(steps_of("0 SET k v PX 1\n tick 5\n 0 MEMORY USAGE k\n 0 GET k"))


@pytest.mark.judge
@pytest.mark.parametrize("before", ["SET d x", "ZADD d 1 a", "SADD d 1"])
@pytest.mark.parametrize(
    "command",
    [
        *("ZUNIONSTORE d 1 none", "ZRANGESTORE d none 0 -1", "SINTERSTORE d none e"),
        *("SUNIONSTORE d none", "SDIFFSTORE d e e", "SORT none STORE d", "BITOP AND d none"),
        *("GEORADIUS none 0 0 1 m STORE d", "SUNIONSTORE d e", "SUNIONSTORE d d", "BITOP OR d d"),
    ],
)
def test_a_result_takes_the_place_of_what_has_expired(
    duel: Duel, before: str, command: str
) -> None:
    """Without elements it removes that, and it does not count as expired."""
    duel.player.play(
        steps_of(f"0 SADD e 1\n0 {before}\n0 PEXPIRE d 5\ntick 6\n0 {command}\n0 EXISTS d")
    )


@pytest.mark.judge
@pytest.mark.parametrize(
    "options", ["REPLACE", "", "ABSTTL REPLACE", "ABSTTL", "IDLETIME -1 REPLACE", "FREQ 256"]
)
@pytest.mark.parametrize("payload", ["{payload:0:0:0}", "bad"])
@pytest.mark.parametrize("ttl", ["0", "1", "-1", "x"])
def test_restoring_over_what_has_expired(duel: Duel, options: str, payload: str, ttl: str) -> None:
    """It is met as soon as REPLACE, or what is to take its place, lets Redis look at it."""
    made = "0 SADD n 1\n0 DUMP n\n0 PEXPIRE n 5\ntick 6\n"
    duel.player.play(steps_of(f"{made}0 RESTORE n {ttl} {payload} {options}\n0 EXISTS n"))
