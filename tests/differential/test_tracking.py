"""CLIENT TRACKING beside a real Redis: all that all clients get, byte for byte."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator

import pytest
from conftest import Factory

from support.clock import Clock
from support.process import Pair, Process, RedisProcess, ServerProcess
from support.tracking import RandomTracking, Scene, each_of

pytestmark = [pytest.mark.judge, pytest.mark.since(8, 10)]

# How many sessions are played by chance: more with HEADRACE_TRACKING_SESSIONS.
SESSIONS = int(os.environ.get("HEADRACE_TRACKING_SESSIONS", "12"))


@pytest.fixture
def servers(server: ServerProcess, redis_server: RedisProcess) -> Iterator[list[Process]]:
    found: list[Process] = [server, redis_server]
    for each in found:
        each.call("DEBUG", "SET-ACTIVE-EXPIRE", 0)
    yield found
    for each in found:
        each.call("DEBUG", "SET-ACTIVE-EXPIRE", 1)
        each.call("CONFIG", "SET", "notify-keyspace-events", "", "tracking-table-max-keys", 1000000)


@pytest.fixture
def timed(
    fresh_server: Factory, fresh_redis: Factory, settable_clock: Clock
) -> Iterator[tuple[Scene, Clock]]:
    """Clients of servers under one clock, whose keys expire when they are met."""
    options = ("--enable-debug-command", "yes")
    ours = fresh_server(*options, environment=settable_clock.environment)
    real = fresh_redis(environment=settable_clock.environment)
    assert isinstance(real, RedisProcess)
    for each in (ours, real):
        for _ in range(100):  # so that IDs of clients look like no count
            each.call("DEBUG", "SET-ACTIVE-EXPIRE", 0)
    with Scene(ours, real) as clients:
        yield clients, settable_clock


@pytest.fixture
def scene(
    servers: list[Process], server: ServerProcess, redis_server: RedisProcess
) -> Iterator[Scene]:
    """A writer ``w``, ``t`` that speaks RESP3, and ``o`` that speaks RESP2."""
    with Scene(server, redis_server) as clients:
        clients.join("w")
        clients.join("t", resp3=True)
        clients.join("o")
        clients.do("w", "FLUSHALL")
        yield clients
        clients.figures()


def test_what_was_read_is_told_once(scene: Scene) -> None:
    scene.do("t", "CLIENT TRACKING on")
    scene.do("t", "GET a", "MGET b c b")
    scene.figures()
    scene.do("w", "SET a 1")
    scene.do("w", "SET a 2")
    scene.do("w", "MSET c 1 d 1 b 1")
    scene.do("t", "GET a")
    scene.do("w", "DEL a d b")
    scene.do("t", "GET a")  # that it is not there was read, too
    scene.do("w", "APPEND a x")


def test_in_resp2_nobody_is_told(scene: Scene) -> None:
    scene.do("o", "CLIENT TRACKING on", "GET a")
    scene.do("w", "SET a 1")
    scene.do("o", "CLIENT TRACKINGINFO")
    scene.do("o", "GET a", "HELLO 3")
    scene.do("w", "SET a 1")


@pytest.mark.parametrize("word", ["on", "ON NOLOOP"])
def test_ones_own_changes_follow_the_reply(scene: Scene, word: str) -> None:
    scene.do("t", f"CLIENT TRACKING {word}", "GET a", "SET a 1", "SET a 2", "GET a", "DEL a")
    scene.do("t", "GET a", "MULTI", "SET a 1", "GET a", "DEL a b", "GET c", "EXEC", "SET c 1")
    scene.do("t", "GET a", "EVAL redis.call('set',KEYS[1],1)return(redis.call('get','b')) 1 a")
    scene.do("t", "SET b 1", "FLUSHALL ASYNC")
    scene.do("t", "MULTI", "GET a", "SET a 2", "FLUSHDB", "SET a 1", "EXEC")
    scene.do("t", "MULTI", "GET z", "SET z 2", "CLIENT TRACKING off", "EXEC", "SET z 1")
    scene.do("t", "MULTI", f"CLIENT TRACKING {word}", "GET z", "SET z 2", "EXEC", "SET z 1")
    scene.do("t", "MULTI", "GET z", "SET z 2", "HELLO 2", "EXEC")


def test_messages_of_channels_go_before_those_of_keys(scene: Scene) -> None:
    scene.do("w", "CONFIG SET notify-keyspace-events KEA")
    scene.do("t", "CLIENT TRACKING on", "SUBSCRIBE __keyevent@0__:set own")
    scene.do("t", "GET a", "SET a 1")
    scene.do("t", "MULTI", "GET a", "SET a 1", "PUBLISH own x", "GET b", "SET b 1", "EXEC")
    scene.do("t", "GET a", "GET b")
    scene.do("w", "MULTI", "SET a 1", "PUBLISH own x", "SET b 1", "EXEC")
    scene.do("t", "SUBSCRIBE __keyevent@0__:rename_from __keyevent@0__:del", "GET a", "GET c")
    scene.do("w", "RENAME a c")
    scene.do("t", "GET c")
    scene.do("w", "DEL c")


@pytest.mark.parametrize("word", ["on", "off"])
def test_errors_and_what_is_asked(pair: Pair, word: str) -> None:
    for options in (
        "REDIRECT 0", "REDIRECT x", "REDIRECT", "REDIRECT 99999999", "REDIRECT 9999999999999999999",
        "PREFIX a", "PREFIX", "BCAST PREFIX", "x", "BCAST OPTIN", "OPTIN OPTOUT", "BCAST x",
        "BCAST PREFIX ab PREFIX a", "BCAST PREFIX x PREFIX a PREFIX ab", "BCAST PREFIX a PREFIX a",
        "OPTIN", "OPTOUT", "BCAST", "", "NOLOOP", "OPTIN", "OPTIN NOLOOP", "bcast optin", "OPTOUT",
    ):  # fmt: skip
        pair.both("CLIENT", "TRACKING", word, *options.split())
        pair.both("CLIENT", "TRACKINGINFO")
        pair.both("CLIENT", "CACHING", "yes")
        pair.both("CLIENT", "TRACKINGINFO")
        pair.both("CLIENT", "CACHING", "no")
        pair.both("CLIENT", "GETREDIR")
    pair.both("CLIENT", "TRACKING", "maybe")
    pair.both("CLIENT", "TRACKING", "maybe", "PREFIX", "a")
    pair.both("CLIENT", "TRACKING")
    pair.both("CLIENT", "CACHING", "maybe")
    pair.both("CLIENT", "CACHING")
    pair.both("CLIENT", "TRACKING", "off")
    pair.both("CLIENT", "TRACKING", "on", "BCAST", "PREFIX", "b", "PREFIX", b"a\r\0c")
    pair.both("CLIENT", "TRACKING", "on", "BCAST", "PREFIX", b"a\r\0cd", "NOLOOP")
    pair.both("CLIENT", "TRACKING", "on", "BCAST", "PREFIX", "c", "PREFIX", "ba")
    pair.both("CLIENT", "TRACKING", "on")
    pair.both("CLIENT", "TRACKING", "on", "BCAST")
    pair.both("CLIENT", "TRACKINGINFO")
    pair.both("CLIENT", "TRACKING", "on", "BCAST", "PREFIX", "q")
    pair.both("RESET")
    pair.both("CLIENT", "TRACKINGINFO")


def test_two_redirects(scene: Scene) -> None:
    scene.do("t", "CLIENT TRACKING on REDIRECT {o} REDIRECT {w}", "CLIENT TRACKING on REDIRECT {o}")
    scene.do("t", "CLIENT GETREDIR", "CLIENT TRACKINGINFO", "CLIENT TRACKING on", "CLIENT GETREDIR")


def test_the_lines_of_clients(pair: Pair) -> None:
    def flags() -> list[bytes]:
        shown = [client.call("CLIENT", "INFO") for client in (pair.ours, pair.real)]
        found = [re.findall(rb"flags=\S+|redir=\S+", line) for line in shown]
        assert found[0] == found[1]
        return found[0]

    assert flags() == [b"flags=N", b"redir=-1"]
    pair.both("CLIENT", "TRACKING", "on")
    assert flags() == [b"flags=t", b"redir=0"]
    pair.both("CLIENT", "TRACKING", "off")
    pair.both("CLIENT", "TRACKING", "on", "BCAST")
    pair.both("CLIENT", "NO-TOUCH", "on")
    pair.both("WATCH", "k")
    pair.both("SET", "k", 1)
    assert flags() == [b"flags=tBdT", b"redir=0"]
    pair.both("RESET")
    assert flags() == [b"flags=N", b"redir=-1"]


def test_redirection_to_a_subscriber(scene: Scene) -> None:
    scene.do("t", "CLIENT TRACKING on REDIRECT {o}", "GET a")
    scene.do("w", "SET a 1")  # it listens to nothing yet
    scene.do("o", "SUBSCRIBE __redis__:invalidate")
    scene.do("t", "GET a", "GET b")
    scene.do("w", "MSET a 1 b 1")
    scene.do("t", "GET a", "SET a 1")
    scene.do("w", "FLUSHALL")
    scene.do("o", "UNSUBSCRIBE", "PSUBSCRIBE x")  # any channel does
    scene.do("t", "HELLO 2", "GET a")
    scene.do("w", "SET a 1")
    scene.do("w", "FLUSHDB")
    scene.do("t", "CLIENT TRACKING on REDIRECT {t}", "GET a", "SET a 1", "HELLO 3", "GET a")
    scene.do("w", "SET a 1")


def test_who_writes_gets_the_messages_of_another(scene: Scene) -> None:
    scene.do("t", "CLIENT TRACKING on", "GET b")
    scene.do("o", "CLIENT TRACKING on REDIRECT {t}", "GET a", "GET c")
    scene.do("t", "GET b", "MULTI", "SET b 1", "SET a 1", "EXEC", "SET c 1")


def test_a_redirection_breaks(scene: Scene) -> None:
    scene.join("gone", resp3=True)
    scene.do("t", "CLIENT TRACKING on REDIRECT {gone} NOLOOP", "GET a", "GET b")
    scene.leave("gone")
    scene.do("t", "CLIENT TRACKINGINFO", "CLIENT TRACKING on REDIRECT {gone}")
    scene.do("w", "SET a 1")
    scene.do("t", "CLIENT TRACKINGINFO", "CLIENT GETREDIR")
    scene.do("w", "FLUSHALL")
    scene.do("t", "HELLO 2", "GET b")
    scene.do("w", "SET b 1")
    scene.do("t", "CLIENT TRACKING on", "CLIENT TRACKINGINFO")


def test_broadcasts(scene: Scene) -> None:
    scene.do("t", "CLIENT TRACKING on BCAST PREFIX q PREFIX a")
    scene.join("n", resp3=True)
    scene.do("n", "CLIENT TRACKING on BCAST NOLOOP")
    scene.figures()
    scene.do("w", "MSET q2 1 a 1 q1 1 x 1", "SET a2 1", "SET q1 2")
    scene.do("t", "SET a 1", "SET x 1")
    scene.do("n", "SET a 1", "SET q1 1", "EVAL return(redis.call('set',KEYS[1],1)) 1 a")
    scene.do("w", "SET a 1", "SET v 1 PX 100000")
    scene.do("t", "CLIENT TRACKING on BCAST PREFIX x", "CLIENT TRACKINGINFO")
    scene.do("w", "MULTI", "SET x 1", "SET a 1", "EXEC")
    scene.do("w", "FLUSHALL")
    scene.do("n", "CLIENT TRACKING off", "CLIENT TRACKING on", "GET a")
    scene.do("w", "SET a 1")
    scene.do("t", "CLIENT TRACKING off")
    scene.do("w", "SET a 1")


def test_optin_and_optout(scene: Scene) -> None:
    scene.do("t", "CLIENT TRACKING on OPTIN", "GET a", "CLIENT CACHING yes", "GET b", "GET c")
    scene.do("w", "MSET a 1 b 1 c 1")
    scene.do("t", "CLIENT CACHING yes", "MULTI", "GET a", "GET b", "EXEC", "GET c")
    scene.do("w", "MSET a 1 b 1 c 1")
    scene.do("t", "MULTI", "GET a", "CLIENT CACHING yes", "GET b", "GET b2", "EXEC", "GET c")
    scene.do("w", "MSET a 1 b 1 b2 1 c 1")
    scene.do("t", "CLIENT CACHING yes", "CLIENT ID", "CLIENT TRACKINGINFO", "GET a")
    scene.do("w", "SET a 1")
    for between in ("PING", "NOSUCH", "GET", "CLIENT", "CLIENT NOSUCH", "CLIENT GETREDIR x"):
        scene.do("t", "CLIENT CACHING yes", between, "CLIENT TRACKINGINFO", "GET a")
        scene.do("w", "SET a 1")
    scene.do(
        "t",
        "CLIENT CACHING yes",
        "EVAL return({redis.call('get','a'),redis.call('get','b')}) 0".replace("{", "{{").replace(
            "}", "}}"
        ),
    )
    scene.do("w", "MSET a 1 b 1")
    scene.do("t", "CLIENT TRACKING off", "CLIENT TRACKING on OPTOUT")
    scene.do("t", "CLIENT CACHING no", "MGET a b", "GET c")
    scene.do("w", "MSET a 1 b 1 c 1")
    scene.do("t", "CLIENT CACHING no", "MULTI", "GET a", "EXEC", "GET b")
    scene.do("w", "MSET a 1 b 1 c 1")


def test_many_reads_of_a_pipeline(scene: Scene) -> None:
    reads = [f"GET k{number}" for number in range(200)]
    scene.do("t", "CLIENT TRACKING on", *reads)
    scene.figures()
    scene.do("w", "MSET k5 1 k199 1 k200 1")
    scene.do("t", "CLIENT TRACKING on OPTIN", *reads, "CLIENT CACHING yes", *reads)
    scene.figures()
    scene.do("w", "MSET k0 1 k1 1")
    scene.do("t", "CLIENT CACHING yes", "MULTI", *reads, "EXEC")
    scene.figures()
    scene.do("w", *[f"SET k{number} 1" for number in range(190, 210)])


ALIKE = each_of(
    """
    SET {k} {n} ; XADD x{k} * f {n} ; HSET h{k} f {n} ; HINCRBY h{k} f 1 ; LPUSH l{k} {n} ;
    RPUSH l{k} {n} ; LPOP l{k} ; RPOP l{k} ; SADD s{k} {n} ; SREM s{k} {n} ; ZADD z{k} {n} m{n} ;
    ZINCRBY z{k} 1 m1 ; SETBIT b{k} {n} 1 ; PFADD p{k} {n} ; GEOADD g{k} {n} {n} m ; XACK x{k} g 1-1
    """
)


@pytest.mark.parametrize("mode", ["on", "on BCAST", "on BCAST PREFIX a PREFIX x", "watch"])
@pytest.mark.parametrize("writer", ["w", "t2", "t3"])
def test_pipelines_of_writes_that_are_alike(scene: Scene, mode: str, writer: str) -> None:
    rng = random.Random(mode + writer)
    scene.join("t2", resp3=True)
    scene.join("t3", resp3=True)
    scene.do("t2", "CLIENT TRACKING on NOLOOP")
    scene.do("t3", "CLIENT TRACKING on")
    if mode != "watch":
        scene.do("t", f"CLIENT TRACKING {mode}")
    for key in "abc":
        scene.do("w", f"XADD x{key} 9999999999999-1 f v", f"XGROUP CREATE x{key} g 0")
        scene.do("w", f"SET b{key} abc", f"SETBIT b{key} 1 1", f"PFADD p{key} x")
    for line in ALIKE * 3:
        read = [line.split()[1].replace("{k}", key) for key in rng.choices("abc", k=2)]
        if mode == "watch":
            scene.do("t", *[f"WATCH {key}" for key in read])
        scene.do("t3", *[f"EXISTS {key}" for key in read])
        scene.do(rng.choice(["t", "t2"]), *[f"EXISTS {key}" for key in read])
        count = rng.randint(2, 9)
        keys = rng.choices(rng.choice(["a", "ab", "abc"]), k=count)
        numbers = rng.choices("123", k=count)
        scene.do(
            writer,
            *[
                line.replace("{k}", key).replace("{n}", number)
                for key, number in zip(keys, numbers, strict=True)
            ],
        )
        if mode == "watch":
            scene.do("t", "MULTI", "PING", "EXEC")


def test_keys_that_expire(timed: tuple[Scene, Clock]) -> None:
    scene, clock = timed
    scene.join("w")
    scene.join("t", resp3=True)
    scene.do("t", "CLIENT TRACKING on NOLOOP")
    scene.do("t", "SET a 1 PX 200", "GET a")
    clock.advance(250)
    scene.do("t", "GET a", "SET a 1 PX 200", "GET a")
    clock.advance(250)
    scene.do("w", "GET a")
    scene.do("w", "HSET h f 1", "HPEXPIRE h 200 FIELDS 1 f")
    scene.do("t", "HGET h f")
    clock.advance(250)
    scene.do("w", "HGET h f")
    scene.figures()


def test_keys_that_expire_by_themselves(timed: tuple[Scene, Clock]) -> None:
    scene, clock = timed
    scene.join("t", resp3=True)
    scene.do("t", "CLIENT TRACKING on NOLOOP", "SET a 1 PX 30", "GET a", "SET b 1 PX 30")
    clock.advance(40)
    scene.expire_all()
    scene.do("t", "PING x")
    scene.figures()


@pytest.mark.parametrize(
    "line",
    each_of(
        """
        RENAME a c ; RENAME c a ; RENAMENX a b ; COPY a b REPLACE ; COPY a c DB 1 ; MOVE a 1 ;
        EXPIRE a 100 ; EXPIRE a -1 ; PERSIST a ; GETEX a PX 1000 ; SWAPDB 0 1 ; SORT l STORE b ;
        GETDEL a ; LMOVE l b LEFT LEFT ; SMOVE s z m ; SUNIONSTORE b s ; PFCOUNT p ; RESTORE b 0
        x ; XGROUP CREATE x g $ MKSTREAM ; XREADGROUP GROUP g c STREAMS x > ; ZRANGESTORE b none
        0 -1 ; BITOP NOT b a ; HEXPIRE h 0 FIELDS 1 f ; DELEX a IFEQ 1 ; SETRANGE a 0 1 ; DEBUG
        RELOAD ; FLUSHDB ASYNC ; OBJECT FREQ a ; SORT l ; EVAL return(1) 1 a
        """
    ),
)
def test_what_changes(scene: Scene, line: str) -> None:
    scene.do("w", "MSET a 1 b 1", "RPUSH l 1", "SADD s m")
    scene.do("w", "XADD x 1-1 f v", "HSET h f v", "PFADD p 1", "EXPIRE b 1000")
    scene.do("t", "CLIENT TRACKING on")
    scene.do("t", *[f"EXISTS {key}" for key in "abclszxhp"])
    scene.do("w", line)
    scene.do("t", *[f"EXISTS {key}" for key in "abclszxhp"])
    scene.do("t", line)


def test_blocked_clients(scene: Scene) -> None:
    scene.do("t", "CLIENT TRACKING on", "LRANGE l 0 -1", "LRANGE m 0 -1")
    scene.block("t", "BLMOVE l m LEFT LEFT 0")
    scene.do("w", "RPUSH l x", wakes="t")
    scene.do("t", "LRANGE l 0 -1", "LRANGE m 0 -1")
    scene.block("t", "BLPOP l 0")
    scene.do("w", "RPUSH m y", "RPUSH l x", wakes="t")
    scene.do("w", "RPUSH m y", "XADD x 1-1 f v")
    scene.block("t", "XREAD BLOCK 0 STREAMS x y 1-1 0")
    scene.do("w", "XADD x 2-1 f v", wakes="t")
    scene.do("w", "XADD y 1-1 f v", "XADD x 3-1 f v")
    scene.do("t", "CLIENT TRACKING off", "CLIENT TRACKING on OPTIN")
    scene.do("t", "LRANGE l 0 -1")
    scene.block("t", "XREAD BLOCK 0 STREAMS x 3-1")
    scene.do("w", "XADD x 4-1 f v", wakes="t")
    scene.do("w", "XADD x 5-1 f v")
    scene.block("t", "CLIENT CACHING yes", "XREAD BLOCK 0 STREAMS x 5-1")
    scene.do("w", "XADD x 6-1 f v", wakes="t")
    scene.do("t", "XLEN x")
    scene.do("w", "XADD x 7-1 f v", "XADD x 8-1 f v")


def test_whom_a_waiting_client_changes_for(scene: Scene) -> None:
    scene.do("t", "CLIENT TRACKING on", "LRANGE l 0 -1", "LRANGE m 0 -1")
    scene.block("o", "BLMOVE l m LEFT LEFT 0")
    scene.do("t", "RPUSH l x", wakes="o")


def test_a_long_request_in_slices(scene: Scene) -> None:
    keys = " ".join(f"k{number}" for number in range(9000))
    scene.do("t", "CLIENT TRACKING on", "MGET k1 k2 k8999", "MSET k1 1 k2 1 k8999 1")
    scene.do("t", "MGET k1 k2 k8999", f"DEL {keys}")
    scene.do("t", "CLIENT TRACKING off", "CLIENT TRACKING on OPTIN", "MSET k1 1 k2 1")
    scene.do("t", "CLIENT CACHING yes", f"DEL {keys}", "CLIENT TRACKINGINFO", "MGET k1 k2")


def test_reset(scene: Scene) -> None:
    scene.do("t", "CLIENT TRACKING on", "GET a", "RESET", "HELLO 3")
    scene.do("w", "SET a 1")
    scene.do("t", "CLIENT TRACKING on BCAST", "GET a", "RESET")
    scene.do("w", "SET a 1")


def test_what_was_read_before_may_still_be_told(scene: Scene) -> None:
    scene.do("t", "CLIENT TRACKING on", "GET a", "GET b", "CLIENT TRACKING off")
    scene.figures()
    scene.do("w", "SET a 1")
    scene.do("t", "CLIENT TRACKING on NOLOOP")
    scene.do("w", "SET b 1")


RIGHTS = (
    *("~*", "%R~*", "%W~*", "~a*", "~a* %R~r* %W~w*", "%RW~w*", "resetkeys", "~a* (~s* +get)"),
    *("~a* (%R~s* -@all)", "(~r* +set) (%R~w* +@all)", "(~* -@all)", "~a* -@all +ping", "off ~a*"),
)


@pytest.fixture
def user(scene: Scene) -> Iterator[Scene]:
    """The scene with ``u``, who logs in as a user that may do everything for now."""
    scene.do("w", "ACL SETUSER u reset on nopass +@all ~* &*")
    scene.join("u", resp3=True)
    scene.do("u", "AUTH u x")
    yield scene
    scene.leave("u")
    scene.do("w", "ACL DELUSER u", "ACL LOG RESET")


@pytest.mark.parametrize("to", ["", " REDIRECT {t}", " REDIRECT {o}"])
@pytest.mark.parametrize("rights", RIGHTS)
def test_what_may_not_be_read_is_left_out(user: Scene, rights: str, to: str) -> None:
    """Of the rights of today, those of the client that tracks, whoever is told."""
    user.do("o", "SUBSCRIBE __redis__:invalidate")
    user.do("u", f"CLIENT TRACKING on BCAST{to}")
    user.do("w", "MSET a 1 x 1")
    user.do("w", f"ACL SETUSER u reset on nopass +@all {rights}")
    user.do("w", "MSET a 1 r 1 w 1 s 1 x 1", "SET x 2", "SET r 2")
    user.do("w", "FLUSHALL")


def test_some_may_read_what_others_may_not(user: Scene) -> None:
    user.join("v", resp3=True)
    user.do("u", "CLIENT TRACKING on BCAST PREFIX a PREFIX x")
    user.do("v", "AUTH u x", "CLIENT TRACKING on BCAST NOLOOP")
    user.do("t", "CLIENT TRACKING on BCAST")
    user.do("w", "ACL SETUSER u resetkeys ~a*")
    for who in ("w", "u", "v", "t"):
        user.do(who, "MSET a 1 a2 1 x 1", "MSET a 1 b 1", "SET x 1")
    user.leave("v")


def test_a_redirection_is_found_broken_by_what_may_be_read(user: Scene) -> None:
    user.join("gone", resp3=True)
    user.do("u", "CLIENT TRACKING on BCAST REDIRECT {gone}")
    user.leave("gone")
    user.do("w", "ACL SETUSER u resetkeys ~a*")
    user.do("w", "SET x 1")
    user.do("u", "CLIENT TRACKINGINFO")
    user.do("w", "SET a 1")
    user.do("u", "CLIENT TRACKINGINFO")


def test_what_was_refused_was_not_read(user: Scene) -> None:
    user.do("u", "CLIENT TRACKING on")
    user.do("u", "MULTI", "ACL SETUSER u resetkeys ~a*", "GET x", "GET a", "MGET a x", "EXEC")
    user.do("u", "GET x", "EVAL return(redis.pcall('get','x')) 0", "MGET x a")
    user.do("w", "MSET a 1 x 1")
    user.do("w", "ACL SETUSER u ~*")
    user.block("u", "XREAD BLOCK 0 STREAMS s $")
    user.do("w", "ACL SETUSER u resetkeys ~a*")
    user.do("w", "XADD s 1-1 f v", wakes="u")
    user.do("w", "XADD s 2-1 f v")


def test_readers_that_left(scene: Scene) -> None:
    scene.join("gone", resp3=True)
    scene.do("gone", "CLIENT TRACKING on BCAST PREFIX x")
    scene.do("t", "CLIENT TRACKING on", "GET a")
    scene.join("gone2", resp3=True)
    scene.do("gone2", "CLIENT TRACKING on", "GET a", "GET b")
    scene.leave("gone")
    scene.leave("gone2")
    scene.figures()
    scene.do("w", "MSET a 1 b 1 x 1")


@pytest.mark.parametrize("seed", range(SESSIONS))
def test_random_sessions(timed: tuple[Scene, Clock], seed: int) -> None:
    scene, clock = timed
    RandomTracking(random.Random(seed), clock).play(scene, 60)
