"""A cluster of one node, beside the newest Redis that is the only node of its own."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest
from conftest import Factory

from support.process import Pair, Process, free_port
from support.waiting import wait_until

pytestmark = pytest.mark.since(8, 10)

STRICT = ("--cluster-enabled", "yes", "--cluster-strict-slots", "yes")


def real_options() -> tuple[str, ...]:
    """For a Redis that listens for other nodes where nobody else does."""
    return ("--cluster-enabled", "yes", "--cluster-port", str(free_port()))


def cluster(server: Process, what: str) -> bytes:
    told = server.call("CLUSTER", what)
    assert isinstance(told, bytes)
    return told


class Nodes:
    """Two servers that are the same node, each of a cluster of its own."""

    def __init__(self, ours: Process, real: Process) -> None:
        self.ours = ours
        self.real = real
        self.node_id = cluster(ours, "MYID").decode()

    def pair(self, *, resp3: bool = False) -> Pair:
        return Pair(self.ours.client(resp3=resp3), self.real.client(resp3=resp3), (8, 10))


@pytest.fixture
def nodes(fresh_server: Factory, fresh_redis: Factory, tmp_path: Path) -> Nodes:
    ours = fresh_server(*STRICT)
    folder = tmp_path / "real"
    folder.mkdir()
    shutil.copy(ours.directory / "nodes.conf", folder)  # which makes it the same node
    real = fresh_redis(*real_options(), directory=folder)
    both = Nodes(ours, real)
    announced = (  # by itself a Redis does not know its address, and we tell that of the client
        *("cluster-announce-ip", "127.0.0.1"),
        *("cluster-announce-port", 7000),
        *("cluster-announce-bus-port", 17000),
    )
    for server in (ours, real):
        assert server.call("CONFIG", "SET", *announced) == b"OK"
    wait_until(lambda: b"cluster_state:ok" in cluster(real, "INFO"))
    return both


WHAT_IT_IS = """
CLUSTER INFO
CLUSTER NODES
CLUSTER SLOTS
CLUSTER SHARDS
CLUSTER LINKS
CLUSTER MYID
CLUSTER MYSHARDID
CLUSTER REPLICAS {id}
CLUSTER REPLICAS abc
CLUSTER SLAVES {id}
CLUSTER SLAVES abc
CLUSTER COUNT-FAILURE-REPORTS {id}
CLUSTER COUNT-FAILURE-REPORTS abc
CLUSTER BUMPEPOCH
CLUSTER SAVECONFIG
CLUSTER SAVECONFIG x
CLUSTER MIGRATION STATUS ALL
CLUSTER MIGRATION STATUS ID abc
CLUSTER MIGRATION CANCEL ALL
CLUSTER MIGRATION CANCEL ID abc
READONLY
READWRITE
ASKING
INFO cluster
CONFIG GET databases
CONFIG SET cluster-announce-ip 1.2.3.4
CONFIG SET cluster-announce-hostname host.example.com
CLUSTER SLOTS
CLUSTER SHARDS
CLUSTER NODES
CONFIG SET cluster-preferred-endpoint-type hostname
CLUSTER SLOTS
CLUSTER SHARDS
CONFIG SET cluster-announce-hostname ""
CLUSTER SLOTS
CLUSTER SHARDS
CONFIG SET cluster-preferred-endpoint-type unknown-endpoint
CONFIG SET cluster-announce-hostname host.example.com
CLUSTER SLOTS
CLUSTER SHARDS
CONFIG SET cluster-announce-hostname bad_host!
CONFIG SET cluster-announce-ip aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
CONFIG SET cluster-announce-tls-port 7001
CLUSTER SHARDS
CLUSTER NODES
CONFIG SET cluster-enabled no
"""

SLOTS = """
CLUSTER KEYSLOT foo
CLUSTER KEYSLOT foo{bar}{baz}
CLUSTER KEYSLOT foo{}{bar}
CLUSTER KEYSLOT foo{{bar}}
CLUSTER KEYSLOT foo{bar
CLUSTER KEYSLOT ""
SET {a}x 1
CLUSTER COUNTKEYSINSLOT 15495
CLUSTER COUNTKEYSINSLOT 16384
CLUSTER COUNTKEYSINSLOT -1
CLUSTER COUNTKEYSINSLOT x
CLUSTER GETKEYSINSLOT 15495 10
CLUSTER GETKEYSINSLOT 15495 0
CLUSTER GETKEYSINSLOT 15495 -1
CLUSTER GETKEYSINSLOT 15495 x
CLUSTER GETKEYSINSLOT x 1
CLUSTER GETKEYSINSLOT 16384 1
CLUSTER SLOT-STATS SLOTSRANGE 0 1
CLUSTER SLOT-STATS SLOTSRANGE 15495 15495
CLUSTER SLOT-STATS ORDERBY key-count LIMIT 2
CLUSTER SLOT-STATS ORDERBY KEY-COUNT LIMIT 2 ASC
CLUSTER SLOT-STATS ORDERBY key-count
CLUSTER SLOT-STATS ORDERBY cpu-usec LIMIT 1
CLUSTER SLOT-STATS ORDERBY foo LIMIT 1
CLUSTER SLOT-STATS ORDERBY key-count LIMIT 0
CLUSTER SLOT-STATS ORDERBY key-count LIMIT x
CLUSTER SLOT-STATS ORDERBY key-count LIMIT
CLUSTER SLOT-STATS ORDERBY key-count FOO
CLUSTER SLOT-STATS ORDERBY key-count ASC DESC
CLUSTER SLOT-STATS ORDERBY key-count LIMIT 1 LIMIT 2
CLUSTER SLOT-STATS SLOTSRANGE 5 1
CLUSTER SLOT-STATS SLOTSRANGE 5 x
CLUSTER SLOT-STATS SLOTSRANGE 5 16384
CLUSTER SLOT-STATS SLOTSRANGE 5
CLUSTER SLOT-STATS SLOTSRANGE 5 6 7
CLUSTER SLOT-STATS FOO 5
"""

REFUSED = """
TRIMSLOTS X 1 0 1
TRIMSLOTS RANGES x 0 5
TRIMSLOTS RANGES 0 0 1
TRIMSLOTS RANGES 2 0 1
TRIMSLOTS RANGES 1 x 5
TRIMSLOTS RANGES 1 5 1
TRIMSLOTS RANGES 1 0 99999
TRIMSLOTS RANGES 2 0 5 3 6
TRIMSLOTS RANGES 1 5000 5001
SET {a}x 1
CLUSTER ADDSLOTS 1
CLUSTER ADDSLOTS 1 x
CLUSTER ADDSLOTS 16384
CLUSTER ADDSLOTSRANGE 1 2
CLUSTER ADDSLOTSRANGE 5 1
CLUSTER ADDSLOTSRANGE 1 2 3
CLUSTER DELSLOTS x
CLUSTER DELSLOTS 1 1
CLUSTER DELSLOTSRANGE 5 1
CLUSTER DELSLOTSRANGE 5 x
CLUSTER FLUSHSLOTS
CLUSTER SETSLOT 1 MIGRATING abc
CLUSTER SETSLOT 1 IMPORTING abc
CLUSTER SETSLOT 1 IMPORTING {id}
CLUSTER SETSLOT 1 NODE abc
CLUSTER SETSLOT 1 NODE {id}
CLUSTER SETSLOT 1 STABLE
CLUSTER SETSLOT 1 STABLE x
CLUSTER SETSLOT 1 FOO
CLUSTER SETSLOT 16384 STABLE
CLUSTER SETSLOT x STABLE
CLUSTER SET-CONFIG-EPOCH 3
CLUSTER SET-CONFIG-EPOCH -1
CLUSTER SET-CONFIG-EPOCH x
CLUSTER MEET x 1
CLUSTER MEET 127.0.0.1 x
CLUSTER MEET 127.0.0.1 0
CLUSTER MEET 127.0.0.1 70000
CLUSTER MEET 127.0.0.1 6379 x
CLUSTER MEET 127.0.0.1 6379 70000
CLUSTER FORGET abc
CLUSTER FORGET {id}
CLUSTER REPLICATE abc
CLUSTER REPLICATE {id}
CLUSTER FAILOVER
CLUSTER FAILOVER FORCE
CLUSTER FAILOVER x
CLUSTER FAILOVER FORCE x
CLUSTER RESET
CLUSTER RESET x
CLUSTER RESET HARD x
CLUSTER MIGRATION IMPORT 1
CLUSTER MIGRATION IMPORT 1 2
CLUSTER MIGRATION IMPORT 5 1
CLUSTER MIGRATION IMPORT 1 x
CLUSTER MIGRATION IMPORT 1 2 3
CLUSTER MIGRATION IMPORT 1 2 2 3
CLUSTER MIGRATION STATUS
CLUSTER MIGRATION STATUS FOO
CLUSTER MIGRATION STATUS ID
CLUSTER MIGRATION STATUS ALL x
CLUSTER MIGRATION CANCEL FOO
CLUSTER MIGRATION FOO x
CLUSTER FOO
CLUSTER
SELECT 0
SELECT 1
SELECT -1
SELECT x
SWAPDB 0 0
SWAPDB 0 1
SWAPDB x y
MOVE {a}x 1
MOVE {a}x x
COPY {a}x {a}y DB 1
COPY {a}x {a}y DB 0
REPLICAOF NO ONE
REPLICAOF a b
SLAVEOF NO ONE
"""

STRICT_REQUESTS = """
SET {a}x 1
MGET {a}x {a}y
MGET {a}x {b}y
MSET {a}x 1 {b}y 2
DEL {a}x {b}y
RENAME {a}x {b}x
BITOP AND {a}d {b}s
ZUNIONSTORE {a}d 2 {a}x {b}x
BLPOP {a}l {b}l 0.01
PFCOUNT {a}x {b}x
XREAD STREAMS {a}s {b}s 0 0
GEORADIUS {a}g 0 0 1 m STORE {b}g
SORT {a}l STORE {b}l
SORT {a}l BY foo_*
SORT {a}l BY {a}_*
SORT {a}l BY nosort
SORT {a}l GET foo_*
SORT {a}l GET foo
SORT {a}l GET #
SORT {a}l GET *{a}
SORT {a}l GET x{a}_*
SORT {a}l GET {a*}
SORT {a}l GET ?{a}_*
SORT {a}l GET {}a*{a}
SORT a GET a
SORT a GET a->*
SORT {a}l BY foo_* GET bar_*
SORT_RO {a}l BY foo_*
SSUBSCRIBE {a}c {b}c
SPUBLISH {a}c hello
KEYS {a}*
WATCH {a}x {b}x
WATCH {a}x
MULTI
SET {b}x 1
EXEC
MULTI
MGET {a}x {b}x
SET {a}x 1
EXEC
MULTI
SET {a}x 1
SET {b}x 1
EXEC
MULTI
SET {a}x 1
PING
GET {a}y
EXEC
EVAL "return 1" 2 {a}x {b}x
EVAL_RO "return 1" 2 {a}x {b}x
EVALSHA aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 2 {a}x {b}x
FCALL none 2 {a}x {b}x
COMMAND GETKEYS MGET {a}x {b}x
INFO errorstats
"""

BOTH_GET = "{redis.call('GET', '{b}y'), redis.call('GET', '{a}x')}"
SCRIPTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("return redis.call('GET', '{b}y')", ("{a}x",)),
    (f"return {BOTH_GET}", ()),
    ("return redis.call('MGET', '{b}y', '{a}x')", ()),
    ("return redis.pcall('MGET', '{b}y', '{a}x')", ()),
    ("redis.call('SET', '{a}x', 1) return redis.call('SELECT', '1')", ()),
    ("return redis.call('SELECT', '0')", ()),
    ("return redis.call('CLUSTER', 'MYID')", ()),
    ("return redis.call('SPUBLISH', '{b}x', 'y')", ("{a}x",)),
    ("#!lua\nreturn redis.call('SPUBLISH', '{b}x', 'y')", ("{a}x",)),
    ("#!lua\nreturn redis.call('GET', '{b}y')", ()),
    ("#!lua\nreturn redis.call('GET', '{b}y')", ("{a}x",)),
    ("#!lua\nreturn redis.call('GET', '{b}y')", ("{b}x",)),
    (f"#!lua\nreturn {BOTH_GET}", ()),
    ("#!lua\nreturn {redis.pcall('GET', '{b}y'), redis.pcall('GET', '{a}x')}", ()),
    ("#!lua\nreturn redis.call('MGET', '{b}y', '{a}x')", ()),
    ("#!lua flags=allow-cross-slot-keys\nreturn redis.call('MGET', '{b}y', '{a}x')", ()),
    (f"#!lua flags=allow-cross-slot-keys\nreturn {BOTH_GET}", ()),
    (f"#!lua flags=allow-cross-slot-keys\nreturn {BOTH_GET}", ("{a}x", "{b}y")),
    ("#!lua flags=no-cluster\nreturn 1", ()),
)
LIBRARY = f"""#!lua name=slots
local function both() return {BOTH_GET} end
redis.register_function('f', both)
redis.register_function{{function_name='g', callback=both, flags={{'allow-cross-slot-keys'}}}}
redis.register_function{{function_name='h', callback=both, flags={{'no-cluster'}}}}
"""


@pytest.mark.parametrize("resp3", [False, True])
@pytest.mark.parametrize("lines", [WHAT_IT_IS, SLOTS, REFUSED, STRICT_REQUESTS])
def test_same_replies(nodes: Nodes, lines: str, resp3: bool) -> None:
    pair = nodes.pair(resp3=resp3)
    for line in lines.replace("{id}", nodes.node_id).strip().splitlines():
        if resp3 and line.startswith("SSUBSCRIBE"):
            continue
        pair.both(*shlex.split(line))
    pair.close()


def test_scripts_are_held_to_slots(nodes: Nodes) -> None:
    pair = nodes.pair()
    pair.both("SET", "{a}x", 1)
    pair.both("SET", "{b}y", 2)
    for script, keys in SCRIPTS:
        pair.both("EVAL", script, len(keys), *keys)
    pair.both("FUNCTION", "LOAD", LIBRARY)
    for name in "fgh":
        pair.both("FCALL", name, 0)
        pair.both("FCALL", name, 1, "{a}x")
    pair.both("INFO", "errorstats")
    pair.close()


def test_a_real_redis_goes_on_with_our_node(
    fresh_server: Factory, fresh_redis: Factory, tmp_path: Path
) -> None:
    """It is the same node with the same slots; and we go on with what it writes."""
    ours = fresh_server("--cluster-enabled", "yes", directory=tmp_path)
    told = [cluster(ours, what) for what in ("MYID", "MYSHARDID")]
    ours.stop()
    real = fresh_redis(*real_options(), directory=tmp_path, port=ours.port)
    assert [cluster(real, what) for what in ("MYID", "MYSHARDID")] == told
    assert b"connected 0-16383" in cluster(real, "NODES")
    real.stop()
    ours.start()
    assert [cluster(ours, what) for what in ("MYID", "MYSHARDID")] == told
