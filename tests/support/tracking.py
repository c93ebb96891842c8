"""Clients of two servers that are told of what changes, compared frame by frame."""

from __future__ import annotations

import random
import re
from functools import partial
from types import TracebackType
from typing import Self

from support.client import RawClient, encode
from support.clock import Clock
from support.process import Pair, Process, RedisProcess
from support.waiting import wait_until

Lines = list[str]
TOLD_BY_SEVERAL = ("s2", "s3")  # messages that several redirect to one client have no order
# What HELLO says of the server.
_SERVER = re.compile(
    rb"[%*]\d+\r\n\$6\r\nserver\r\n.*\$4\r\nrole\r\n\$6\r\nmaster\r\n.*", re.DOTALL
)
_NULL_FLUSH = re.compile(rb"(invalidate\r\n)(?:_|\$-1)\r\n$")


def is_message(frame: bytes) -> bool:
    """Return whether a frame is a message, and no reply."""
    header = frame.split(b"\r\n", 3)
    return len(header) > 2 and header[2] in (b"message", b"invalidate", b"tracking-redir-broken")


def _has_left(server: Process, client_id: int) -> bool:
    return not server.call("CLIENT", "LIST", "ID", client_id)


def _is_empty(server: Process) -> bool:
    return not server.info("keyspace")


def _has_blocked(server: Process, count: int) -> bool:
    return server.info("clients")["blocked_clients"] == str(count)


class Scene:
    """The same clients of our server and a real one. What one does, all may be told of.

    Args:
        ours, real: the servers.
    """

    def __init__(self, ours: Process, real: RedisProcess) -> None:
        self._ours = ours
        self._real = real
        self._pairs: dict[str, Pair] = {}
        self._ids: dict[str, tuple[int, int]] = {}
        self._ids_of_all: list[tuple[int, int]] = []
        self._blocked: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for pair in self._pairs.values():
            pair.close()

    def join(self, name: str, resp3: bool = False) -> None:
        """Have one more client, or another one of this name."""
        pair = Pair.of(self._ours, self._real, resp3=resp3)
        found = [client.call_parsed("CLIENT", "ID") for client in (pair.ours, pair.real)]
        ours, real = found
        assert isinstance(ours, int)
        assert isinstance(real, int)
        self._pairs[name] = pair
        self._ids[name] = ours, real
        self._ids_of_all.append((ours, real))

    def leave(self, name: str) -> None:
        """Have a client go, and wait until both servers know."""
        self._pairs.pop(name).close()
        ours, real = self._ids[name]
        for server, client_id in ((self._ours, ours), (self._real, real)):
            wait_until(partial(_has_left, server, client_id))

    def block(self, name: str, *lines: str) -> None:
        """Have a client wait: the last of its lines is not answered."""
        pair = self._pairs[name]
        self._send(pair, list(lines))
        for _ in lines[1:]:
            assert pair.ours.read() == pair.real.read()
        self._blocked.add(name)
        for server in (self._ours, self._real):
            wait_until(partial(_has_blocked, server, len(self._blocked)))

    def do(self, name: str, *lines: str, wakes: str = "") -> None:
        """Have a client send lines in one write, and compare what all clients get.

        Args:
            lines: ``{other}`` stands for the ID of the client of that name.
            wakes: a client that waits, and is answered then.
        """
        self._send(self._pairs[name], list(lines))
        awaited = {name: len(lines)}
        if wakes:
            self._blocked.remove(wakes)
            awaited[wakes] = 1
        for who, pair in sorted(self._pairs.items(), key=lambda item: item[0] != name):
            if who not in self._blocked:
                count = awaited.get(who, 0)
                tells_ids = any(line.startswith("CLIENT ") for line in lines)
                real = self._frames(pair.real, 1, count, tells_ids)
                ours = self._frames(pair.ours, 0, count, tells_ids)
                if who in TOLD_BY_SEVERAL:
                    ours.sort()
                    real.sort()
                assert ours == real, f"{name} {lines}: {who}\n  ours {ours}\n  real {real}"

    def _send(self, pair: Pair, lines: Lines) -> None:
        for which, client in ((1, pair.real), (0, pair.ours)):
            ids = {who: found[which] for who, found in self._ids.items()}
            client.send(b"".join(encode(*line.format(**ids).split(" ")) for line in lines))

    def _frames(self, client: RawClient, which: int, replies: int, tells_ids: bool) -> list[bytes]:
        """What a client has got, with ``replies`` replies among it, to the end of this turn."""
        found: list[bytes] = []
        while replies:
            found.append(client.read())
            replies -= not is_message(found[-1])
        client.send(encode("PING", "fence"))
        while True:
            frame = client.read()
            if frame.endswith(b"$5\r\nfence\r\n"):
                break
            found.append(frame)
        return [self._general(frame, which, tells_ids) for frame in found]

    def _general(self, frame: bytes, which: int, tells_ids: bool) -> bytes:
        """A frame without what may differ: IDs of clients, and the null of the other protocol."""
        frame = _NULL_FLUSH.sub(rb"\1null", frame)
        frame = _SERVER.sub(b"a server", frame)
        if b"redir" in frame or tells_ids:
            for number, found in enumerate(self._ids_of_all):
                frame = frame.replace(b":%d\r\n" % found[which], b":client %d\r\n" % number)
        return frame

    def expire_all(self) -> None:
        """Have both servers remove expired keys by themselves, and wait until none is left.

        A connection of its own turns this on, because the first cycle may come at once:
        whether a scene's client hears of it in that turn or the next is chance.
        """
        for server in (self._ours, self._real):
            with server.client() as client:
                client.call("DEBUG", "SET-ACTIVE-EXPIRE", 1)
            wait_until(partial(_is_empty, server))

    def figures(self) -> None:
        """Compare what INFO says of tracking."""
        found = [
            {
                name: value
                for section in ("stats", "clients")
                for name, value in server.info(section).items()
                if name.startswith("tracking_")
            }
            for server in (self._ours, self._real)
        ]
        assert found[0] == found[1]
        assert len(found[0]) == 4


def each_of(text: str) -> Lines:
    """The commands of a text, with semicolons between them."""
    return [" ".join(line.split()) for line in text.split(";")]


KEYS = ["a1", "a2", "b1", "b2", "c", "ab"]
READS = each_of(
    """
    GET {k} ; MGET {k} {k2} ; STRLEN {k} ; TYPE {k} ; EXISTS {k} {k2} {k} ; OBJECT ENCODING {k}
    ; HGETALL {k} ; HGET {k} f ; LRANGE {k} 0 -1 ; LLEN {k} ; SCARD {k} ; SINTER {k} {k2} ;
    SINTERCARD 2 {k} {k2} ; SINTERCARD 3 {k} {k2} ; ZRANGE {k} 0 -1 ; ZUNION 2 {k} {k2} ; XRANGE
    {k} - + ; XREAD COUNT 1 STREAMS {k} {k2} 0 0 ; XREAD STREAMS {k} ; GETRANGE {k} 0 1 ;
    BITCOUNT {k} ; PFCOUNT {k} {k2} ; SORT_RO {k} ALPHA ; DBSIZE ; GET ; GETBIT {k} 1 ; TOUCH
    {k} ; LCS {k} {k2} ; HMGET {k} f g ; SISMEMBER {k} m ; SCAN 0 COUNT 0 ; ZSCORE {k} m ; LPOS
    {k} x ; HRANDFIELD {k} 0 ; XLEN {k} ; XPENDING {k} g ; DUMP none ; GEOPOS {k} m ;
    BITFIELD_RO {k} GET u8 0 ; EXPIRETIME {k} ; HLEN {k} ; PING x ; NOSUCH {k} ; XINFO STREAM
    {k} X ; OBJECT FREQ
    """
)
WRITES = each_of(
    """
    SET {k} {n} ; SET {k} {n} NX ; SET {k} {n} GET ; MSET {k} 1 {k2} 2 ; MSETNX {k} 1 {k2} 2 ;
    DEL {k} {k2} ; UNLINK {k} ; INCR {k} ; APPEND {k} x ; SETRANGE {k} 0 x ; GETDEL {k} ; GETEX
    {k} PERSIST ; GETEX {k} EXAT 9999999999 ; EXPIREAT {k} 9999999999 ; EXPIRE {k} -1 ;
    PEXPIREAT {k} 1 ; PERSIST {k} ; RENAME {k} {k2} ; RENAMENX {k} {k2} ; COPY {k} {k2} ; COPY
    {k} {k2} REPLACE ; COPY {k} {k2} DB 1 ; MOVE {k} 1 ; LPUSH {k} x ; RPOP {k} ; LMOVE {k} {k2}
    LEFT LEFT ; LSET {k} 0 x ; LTRIM {k} 0 0 ; HSET {k} f {n} ; HDEL {k} f ; HINCRBY {k} f 1 ;
    SADD {k} m ; SREM {k} m ; SPOP {k} 9 ; SMOVE {k} {k2} m ; SUNIONSTORE {k} {k2} ; ZADD {k}
    {n} m ; ZREM {k} m ; ZPOPMIN {k} ; ZUNIONSTORE {k} 1 {k2} ; XADD {k} MAXLEN 2 {next}-1 f v ;
    XDEL {k} 0-1 ; XTRIM {k} MAXLEN 0 ; XGROUP CREATE {k} g $ MKSTREAM ; XREADGROUP GROUP g c
    STREAMS {k} > ; SETBIT {k} 1 1 ; BITOP NOT {k} {k2} ; BITFIELD {k} SET u8 0 1 ; PFADD {k}
    {n} ; PFMERGE {k} {k2} ; SORT {k} ALPHA STORE {k2} ; GEOADD {k} 1 1 m ; HEXPIRE {k} 0 FIELDS
    1 f ; GETSET {k} {n} ; DECRBY {k} x ; SWAPDB 0 1 ; SETNX {k} 1 ; HSETNX {k} f 1 ; HGETDEL
    {k} FIELDS 1 f ; LREM {k} 0 x ; ZINCRBY {k} 1 m ; SET {k} {n} PX 1 ; SINTERSTORE {k} {k2}
    {k} ; HPERSIST {k} FIELDS 1 f
    """
)
SCRIPTS = [
    "EVAL return(redis.call('get',KEYS[1])) 1 {k}",
    "EVAL return(redis.call('set',KEYS[1],redis.call('exists',KEYS[2]))) 2 {k} {k2}",
    "EVAL redis.call('set',KEYS[1],1)redis.call('get',KEYS[1])redis.call('del',KEYS[2]) 2 {k} {k2}",
    "EVAL_RO return(redis.call('type',KEYS[1])) 1 {k}",
    "EVAL return(1) 1 {k}",
    "EVAL redis.call('select',1)return(redis.call('get',KEYS[1])) 1 {k}",
]
PREFIXES = ["a", "b", "c", "ab", "", "d"]
TARGETS = [*["{s2}", "{s3}"] * 4, "{me}", "{me}", "999999", "0", "x"]


class RandomTracking:
    """What clients do by chance: some track, some write, some get the messages of others.

    ``t1`` and ``t2`` track and speak either protocol, ``w`` writes, ``s2`` and ``s3`` get messages.
    """

    def __init__(self, rng: random.Random, clock: Clock) -> None:
        self._rng = rng
        self._clock = clock
        self._next = 0

    def play(self, scene: Scene, steps: int) -> None:
        """Begin, and go on for so many steps."""
        scene.join("w")
        scene.join("t1", resp3=True)
        scene.join("t2", resp3=self._rng.random() < 0.7)
        scene.join("s2")
        scene.join("s3", resp3=True)
        scene.do("s2", "SUBSCRIBE __redis__:invalidate")
        scene.do("t1", self._on("t1"))
        scene.do("t2", self._on("t2"))
        for _ in range(steps):
            if self._rng.random() < 0.02:
                name = self._rng.choice(["s2", "s3"])
                scene.leave(name)
                scene.join(name, resp3=name == "s3")
                if name == "s2":
                    scene.do("s2", "SUBSCRIBE __redis__:invalidate")
            who = self._rng.choice(["w", "t1", "t1", "t2"])
            lines = self._some(who)
            scene.do(who, *lines)
            if any("PX 1" in line for line in lines):
                self._clock.advance(3)  # keys expire when they are met, and not by themselves
        scene.figures()

    def _some(self, who: str) -> Lines:
        rng = self._rng
        chosen = rng.random()
        if who == "w":
            if chosen < 0.04:
                return [
                    rng.choice(["FLUSHALL", "FLUSHDB", "FLUSHDB ASYNC", "SELECT 1", "SELECT 0"])
                ]
            return self._commands()
        if chosen < 0.12:
            return [self._on(who)]
        if chosen < 0.15:
            return ["CLIENT TRACKING off"]
        if chosen < 0.17:
            return (
                [rng.choice(["HELLO 2", "HELLO 3"])] if rng.random() < 0.5 else ["RESET", "HELLO 3"]
            )
        if chosen < 0.25:
            return [f"CLIENT CACHING {rng.choice(['yes', 'no'])}", *self._commands()]
        if chosen < 0.29:
            return [rng.choice(["CLIENT TRACKINGINFO", "CLIENT GETREDIR", "FLUSHDB ASYNC"])]
        return self._commands()

    def _on(self, who: str) -> str:
        rng = self._rng
        words = ["CLIENT TRACKING", rng.choice(["on"] * 9 + ["maybe"])]
        chosen = rng.random()
        if chosen < 0.4:
            words.append("BCAST")
            words += [f"PREFIX {rng.choice(PREFIXES[:3])}" for _ in range(rng.randint(0, 2))]
        elif chosen < 0.5:
            words.append(
                rng.choice(["OPTIN OPTOUT", "OPTIN BCAST", "PREFIX a", "nosuch", "REDIRECT"])
            )
        elif chosen < 0.6:
            words.append("OPTIN")
        elif chosen < 0.7:
            words.append("OPTOUT")
        if rng.random() < 0.3:
            words.append("REDIRECT " + rng.choice(TARGETS).replace("{me}", "{" + who + "}"))
        if rng.random() < 0.3:
            words.append("NOLOOP")
        if rng.random() < 0.05:
            words.append(f"PREFIX {rng.choice(PREFIXES)}")
        return " ".join(words)

    def _commands(self) -> Lines:
        count = self._rng.choice([1, 1, 1, 2, 3])
        lines = [self._command() for _ in range(count)]
        if self._rng.random() < 0.2:
            inside = [line for line in lines if line != "GET"]
            if self._rng.random() < 0.1:
                inside.append("CLIENT TRACKING off")
            return ["MULTI", *inside, "EXEC"]
        return lines

    def _command(self) -> str:
        rng = self._rng
        pool = rng.choice([READS, READS, WRITES, WRITES, WRITES, SCRIPTS])
        line = rng.choice(pool)
        key, other = rng.choice(KEYS), rng.choice(KEYS)
        self._next += 1
        line = line.replace("{next}", str(self._next)).replace("{n}", str(rng.randint(0, 9)))
        return line.replace("{k}", key).replace("{k2}", other)
