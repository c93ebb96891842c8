"""Shows what every command costs beside real servers, over many small keys: a line for each.

    python -m bench.sweep --only HGET,ZUNION --keys 100000

Each server holds so many keys of each type. Fifty clients send sixteen calls at once, each to a key
by chance, and the CPU time of the server's process is counted, in rounds in which the servers take
turns; the least counts. What takes values away stands last among its kind, which is filled anew for
each kind. Lines above the bar are shown once more at the end. A server that does not know a command
has no number there.
"""

from __future__ import annotations

import argparse
import contextlib
import random
from collections.abc import Iterator
from typing import Final

from bench.peers import OURS, Server, ServerError, divide_cores, ours, pinned
from bench.type_workloads import Words, Workload
from bench.types import cpu_of, fill, judges_found, line

BAR: Final = 1.3
KEYS: Final = 100_000

# The calls that make a key of each kind; {k} is its number. A group reads the streams, and has
# given out their entries to one consumer.
FILLS: Final[dict[str, tuple[str, ...]]] = {
    "": (),
    "s": ("SET s:{k} value{k}",),
    "n": ("SET n:{k} {k}",),
    "b": ("SETRANGE b:{k} 90 bitmap",),
    "h": ("HSET h:{k} f0 v0 f1 v1 f2 v2 f3 v3 f4 {k}",),
    "l": ("RPUSH l:{k} e0 e1 e2 e3 e4 e5 e6 e7",),
    "S": ("SADD S:{k} m0 m1 m2 m3 m{k}",),
    "z": ("ZADD z:{k} 0 m0 1 m1 2 m2 3 m3 4 m4",),
    "g": ("GEOADD g:{k} 13.36 38.11 m0 15.08 37.50 m1",),
    "p": ("PFADD p:{k} a b c {k}",),
    "a": ("ARSET a:{k} 0 1 2 3 4 5 6 7",),
    "x": (
        "XADD x:{k} 1-1 f v g w",
        "XADD x:{k} 1-2 f v g w",
        "XGROUP CREATE x:{k} g 0",
        "XREADGROUP GROUP g c STREAMS x:{k} >",
    ),
}
# Each command with its usual arguments: {k} and {j} are keys by chance, {i} counts the calls.
# Before the colon stands the kind of keys that the calls need.
COMMANDS: Final = """
s: GET s:{k} | STRLEN s:{k} | GETRANGE s:{k} 1 4 | SUBSTR s:{k} 1 4 | GETEX s:{k} | DIGEST s:{k}
s: MGET s:{k} s:{j} | SET s:{k} value{i} | SET s:{k} value{i} EX 1000 | SETEX s:{k} 1000 value{i}
s: PSETEX s:{k} 1000000 value{i} | SETNX s:{k} v | GETSET s:{k} v{i} | SETRANGE s:{k} 2 x{i}
s: MSET s:{k} v{i} s:{j} v | MSETNX s:{k} v t:{i} v | APPEND s:{k} x | LCS s:{k} s:{j}
s: MSETEX 2 s:{k} v{i} s:{j} v EX 1000 | EVAL return{{}} 1 s:{k} | EVAL_RO return{{}} 1 s:{k}
n: INCREX n:{k} | INCR n:{k} | DECR n:{k} | INCRBY n:{k} 5 | DECRBY n:{k} 5 | INCRBYFLOAT n:{k} 0.5
s: EXISTS s:{k} | TYPE s:{k} | TTL s:{k} | PTTL s:{k} | EXPIRETIME s:{k} | TOUCH s:{k} | DUMP s:{k}
s: EXPIRE s:{k} 1000 | PEXPIRE s:{k} 1000000 | EXPIREAT s:{k} 9999999999 | PERSIST s:{k}
s: OBJECT ENCODING s:{k} | OBJECT IDLETIME s:{k} | MEMORY USAGE s:{k} | RANDOMKEY | SCAN {k}
s: PEXPIREAT s:{k} 9999999999999 | PEXPIRETIME s:{k}
s: COPY s:{k} c:{i} | RENAME s:{k} s:{j} | RENAMENX s:{k} s:{j} | GETDEL s:{k}
s: DELEX s:{k} IFEQ v{k} | DEL s:{k} | UNLINK s:{k}
b: SETBIT b:{k} 300 1 | GETBIT b:{k} 300 | BITCOUNT b:{k} | BITPOS b:{k} 1 | BITOP OR d b:{k} b:{j}
b: BITFIELD b:{k} INCRBY u8 100 1 | BITFIELD_RO b:{k} GET u8 100
h: HGET h:{k} f2 | HMGET h:{k} f1 f3 | HGETALL h:{k} | HKEYS h:{k} | HVALS h:{k} | HLEN h:{k}
h: HSTRLEN h:{k} f1 | HEXISTS h:{k} f1 | HSCAN h:{k} 0 | HRANDFIELD h:{k} | HRANDFIELD h:{k} 2
h: HSET h:{k} f2 v{i} | HMSET h:{k} f2 v{i} | HSETNX h:{k} f9 v | HINCRBY h:{k} f4 1
h: HINCRBYFLOAT h:{k} f4 0.5 | HEXPIRE h:{k} 1000 FIELDS 1 f1 | HTTL h:{k} FIELDS 1 f1
h: HPERSIST h:{k} FIELDS 1 f1 | HGETEX h:{k} FIELDS 1 f1 | HSETEX h:{k} FIELDS 1 f1 v
h: HPEXPIRE h:{k} 1000000 FIELDS 1 f0 | HEXPIREAT h:{k} 9999999999 FIELDS 1 f0
h: HPEXPIREAT h:{k} 9999999999999 FIELDS 1 f0 | HPTTL h:{k} FIELDS 1 f0
h: HEXPIRETIME h:{k} FIELDS 1 f0 | HPEXPIRETIME h:{k} FIELDS 1 f0
h: HGETDEL h:{k} FIELDS 1 f3 | HDEL h:{k} f2
l: LINDEX l:{k} 3 | LRANGE l:{k} 0 -1 | LLEN l:{k} | LPOS l:{k} e5 | LSET l:{k} 3 v{i}
l: LPUSH l:{k} v | RPUSH l:{k} v | LPUSHX l:{k} v | RPUSHX l:{k} v | LINSERT l:{k} BEFORE e5 v
l: LREM l:{k} 1 v | LTRIM l:{k} 0 6 | LMOVE l:{k} l:{j} LEFT RIGHT | RPOPLPUSH l:{k} l:{j}
l: BLMOVE l:{k} l:{j} LEFT RIGHT 0.01 | BRPOPLPUSH l:{k} l:{j} 0.01 | LMPOP 1 l:{k} LEFT
l: BLMPOP 0.01 1 l:{k} LEFT | BLPOP l:{k} 0.01 | BRPOP l:{k} 0.01 | LPOP l:{k} | RPOP l:{k}
S: SISMEMBER S:{k} m2 | SMISMEMBER S:{k} m2 m9 | SMEMBERS S:{k} | SCARD S:{k} | SSCAN S:{k} 0
S: SRANDMEMBER S:{k} | SRANDMEMBER S:{k} 2 | SINTER S:{k} S:{j} | SUNION S:{k} S:{j}
S: SDIFF S:{k} S:{j} | SINTERCARD 2 S:{k} S:{j} | SINTERSTORE d S:{k} S:{j}
S: SUNIONSTORE d S:{k} S:{j} | SDIFFSTORE d S:{k} S:{j} | SADD S:{k} n{i} | SREM S:{k} m1
S: SMOVE S:{k} S:{j} m2 | SPOP S:{k}
z: ZSCORE z:{k} m2 | ZMSCORE z:{k} m2 m9 | ZRANK z:{k} m2 | ZREVRANK z:{k} m2 | ZCARD z:{k}
z: ZCOUNT z:{k} 1 3 | ZLEXCOUNT z:{k} - + | ZRANGE z:{k} 0 -1 | ZREVRANGE z:{k} 0 -1
z: ZRANGEBYSCORE z:{k} 1 3 | ZREVRANGEBYSCORE z:{k} 3 1 | ZRANGEBYLEX z:{k} - + | ZSCAN z:{k} 0
z: ZREVRANGEBYLEX z:{k} + - | ZRANDMEMBER z:{k} | ZUNION 2 z:{k} z:{j} | ZINTER 2 z:{k} z:{j}
z: ZDIFF 2 z:{k} z:{j} | ZINTERCARD 2 z:{k} z:{j} | ZUNIONSTORE d 2 z:{k} z:{j}
z: ZINTERSTORE d 2 z:{k} z:{j} | ZDIFFSTORE d 2 z:{k} z:{j} | ZRANGESTORE d z:{k} 0 -1
z: ZADD z:{k} {i} m2 | ZADD z:{k} {i} n{i} | ZINCRBY z:{k} 1 m2 | ZREM z:{k} m3
z: ZREMRANGEBYRANK z:{k} 9 9 | ZREMRANGEBYSCORE z:{k} 9 9 | ZREMRANGEBYLEX z:{k} [x [y
z: ZMPOP 1 z:{k} MIN | BZMPOP 0.01 1 z:{k} MIN | BZPOPMIN z:{k} 0.01 | BZPOPMAX z:{k} 0.01
z: ZPOPMIN z:{k} | ZPOPMAX z:{k}
g: GEOPOS g:{k} m0 | GEOHASH g:{k} m0 | GEODIST g:{k} m0 m1 | GEOADD g:{k} 13.5 38 m2
g: GEOSEARCH g:{k} FROMMEMBER m0 BYRADIUS 200 km ASC | GEORADIUS g:{k} 15 37 200 km
g: GEORADIUS_RO g:{k} 15 37 200 km | GEORADIUSBYMEMBER g:{k} m0 200 km
g: GEORADIUSBYMEMBER_RO g:{k} m0 200 km
g: GEOSEARCHSTORE d g:{k} FROMMEMBER m0 BYRADIUS 200 km
p: PFADD p:{k} {i} | PFCOUNT p:{k} | PFMERGE d p:{k} p:{j}
l: SORT l:{k} ALPHA | SORT_RO l:{k} ALPHA
x: XLEN x:{k} | XRANGE x:{k} - + | XREVRANGE x:{k} + - | XREAD STREAMS x:{k} 0 | XINFO STREAM x:{k}
x: XINFO GROUPS x:{k} | XINFO CONSUMERS x:{k} g | XPENDING x:{k} g | XPENDING x:{k} g - + 10
x: XREADGROUP GROUP g c STREAMS x:{k} 0 | XREADGROUP GROUP g c STREAMS x:{k} >
x: XCLAIM x:{k} g d 0 1-1 | XAUTOCLAIM x:{k} g d 0 0 | XACK x:{k} g 1-1 | XACK x:{k} g 0000001-2
x: XADD x:{k} * f v | XADD x:{k} MAXLEN ~ 100 * f v | XTRIM x:{k} MAXLEN 100 | XDEL x:{k} 1-2
x: XNACK x:{k} g SILENT IDS 1 1-1 | XDELEX x:{k} IDS 1 1-1 | XACKDEL x:{k} g IDS 1 1-1
x: XCFGSET x:{k} IDMP-DURATION 100 | XSETID x:{k} 9999999999999-1 | XGROUP SETID x:{k} g $
x: XGROUP CREATECONSUMER x:{k} g e
a: ARGET a:{k} 2 | ARMGET a:{k} 2 3 | ARGETRANGE a:{k} 1 3 | ARSCAN a:{k} 0 9 | AROP a:{k} 0 9 SUM
a: ARGREP a:{k} 0 9 EXACT 3 | ARLEN a:{k} | ARCOUNT a:{k} | ARINFO a:{k} | ARNEXT a:{k}
a: ARLASTITEMS a:{k} 2 | ARSEEK a:{k} 3 | ARSET a:{k} 2 v{i} | ARMSET a:{k} 2 v{i} 3 v
a: ARINSERT a:{k} v | ARRING a:{k} 9 v | ARDEL a:{k} 3 | ARDELRANGE a:{k} 5 6
: PING | ECHO text | TIME | DBSIZE | PUBLISH channel text | WAIT 0 0 | CLIENT ID | LASTSAVE
"""


def filling(kind: str, keys: int) -> Iterator[Words]:
    """Return the calls that make the keys of one kind."""
    for words in FILLS[kind]:
        for key in range(keys):
            yield tuple(words.format(k=key).split())


def workloads(only: set[str], keys: int) -> Iterator[Workload]:
    """Return each command that is measured; its family is the kind of keys that it needs."""
    for row in COMMANDS.strip().splitlines():
        kind, _, calls = row.partition(":")
        for call in calls.split(" | "):
            words = call.split()
            if only and words[0] not in only:
                continue

            def command(
                number: int, elements: int, drawn: random.Random, words: list[str] = words
            ) -> Words:
                k, j = drawn.randrange(keys), drawn.randrange(keys)
                return tuple(word.format(k=k, j=j, i=number) for word in words)

            yield Workload(kind, call.strip(), lambda count: iter(()), command, BAR)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.sweep", description=(__doc__ or "").strip()
    )
    parser.add_argument("--only", default="", help="these commands, with commas between")
    parser.add_argument("--keys", type=int, default=KEYS, help="of each type")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ours", default="", metavar="COMMAND", help="default: the installed one")
    given = parser.parse_args()
    only = set(filter(None, given.only.upper().split(",")))
    peers = [ours(given.ours), *judges_found()]
    judges = [peer.name for peer in peers if peer.name != OURS]
    cores = divide_cores()
    over: list[str] = []
    print(f"ns of CPU per command, 50 clients, 16 deep, {given.keys} keys", flush=True)
    with contextlib.ExitStack() as stack, pinned(cores.load):
        servers = [stack.enter_context(Server(peer, cores=cores.server)) for peer in peers]
        filled = ""
        for workload in workloads(only, given.keys):
            if workload.family != filled:
                filled = workload.family
                refill(servers, filled, given.keys)
            told = cpu_of(workload, servers, given.keys, given.rounds, keep=True)
            shown = line("", workload.name, told, BAR, judges).strip()
            print(shown, flush=True)
            if shown.endswith("OVER"):
                over.append(shown)
    print(f"\n{len(over)} above {BAR}", *over, sep="\n")


def refill(servers: list[Server], kind: str, keys: int) -> None:
    """Have all servers hold the keys of one kind, and nothing else."""
    for server in servers:
        server.control.call("FLUSHALL")
        try:
            fill(server, filling(kind, keys))
        except ServerError:  # it has no such type, as each line then shows
            server.hang_up()


if __name__ == "__main__":
    main()
