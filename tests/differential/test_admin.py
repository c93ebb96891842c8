"""Connection and administration commands: the same raw replies as the real Redis."""

from __future__ import annotations

import pytest
from conftest import Factory

from support.client import RawClient, parse
from support.process import Pair, RedisProcess, ServerProcess

pytestmark = pytest.mark.judge

# Requests whose replies depend on nothing but themselves, most of them wrong.
SAME = """
PING
PING hello
PING a b
ECHO hello
ECHO
ECHO a b
SELECT 3
SELECT 16
SELECT -1
SELECT abc
SELECT 99999999999
SELECT 99999999999999999999
SELECT
AUTH secret
AUTH nobody secret
AUTH default anything
AUTH a b c
AUTH
HELLO 1
HELLO 4
HELLO abc
HELLO 2 AUTH
HELLO 2 AUTH default
HELLO 2 AUTH nobody x
HELLO 2 SETNAME
HELLO 2 SETNAME a\\x20b
HELLO 2 FOO
HELLO 99999999999999999999
CLIENT
CLIENT FOO
CLIENT ID x
CLIENT INFO x
CLIENT LIST TYPE
CLIENT LIST TYPE foo
CLIENT LIST TYPE master
CLIENT LIST TYPE replica
CLIENT LIST ID
CLIENT LIST FOO
CLIENT SETNAME
CLIENT SETNAME a\\x20b
CLIENT SETNAME a\\x0ab
CLIENT SETNAME
CLIENT GETNAME
CLIENT SETNAME conn
CLIENT GETNAME
CLIENT GETNAME x
CLIENT NO-EVICT
CLIENT NO-EVICT maybe
CLIENT NO-EVICT on
CLIENT NO-EVICT off
CLIENT REPLY maybe
CLIENT REPLY
CLIENT REPLY ON
CLIENT KILL
CLIENT KILL 1.2.3.4:5
CLIENT KILL ID
CLIENT KILL ID 0
CLIENT KILL ID -1
CLIENT KILL ID 4294967296
CLIENT KILL TYPE foo
CLIENT KILL TYPE master
CLIENT KILL USER nobody
CLIENT KILL USER default ID 4294967296
CLIENT KILL SKIPME maybe
CLIENT KILL SKIPME
CLIENT KILL ADDR 1.2.3.4:5 LADDR 1.2.3.4:5
CLIENT KILL ID 5 FOO
CLIENT KILL FOO bar
CLIENT KILL ID 4294967296 TYPE
CLIENT PAUSE
CLIENT PAUSE abc
CLIENT PAUSE -1
CLIENT PAUSE 1 MAYBE
CLIENT PAUSE abc MAYBE
CLIENT PAUSE 0
CLIENT UNPAUSE
CLIENT UNPAUSE x
CLIENT UNBLOCK
CLIENT UNBLOCK abc
CLIENT UNBLOCK 4294967296
CLIENT UNBLOCK 4294967296 TIMEOUT
CLIENT UNBLOCK 4294967296 ERROR
CLIENT UNBLOCK 4294967296 MAYBE
CLIENT UNBLOCK abc MAYBE
CLIENT GETREDIR
CLIENT TRACKINGINFO
CLIENT TRACKING off
CLIENT TRACKING maybe
CLIENT TRACKING on foo
CLIENT TRACKING on REDIRECT 4294967296
CLIENT TRACKING on REDIRECT abc
CLIENT CACHING yes
TIME x
LASTSAVE x
ROLE x
REPLICAOF NO ONE
SLAVEOF no one
REPLICAOF localhost abc
REPLICAOF localhost 99999
REPLICAOF localhost
MONITOR x
SLOWLOG
SLOWLOG FOO
SLOWLOG LEN x
SLOWLOG RESET
SLOWLOG GET -2
SLOWLOG GET abc
SLOWLOG GET 1 2
LATENCY
LATENCY FOO
LATENCY RESET
LATENCY LATEST
LATENCY LATEST x
LATENCY HISTORY
LATENCY HISTORY command
LATENCY GRAPH command
LATENCY GRAPH
LATENCY RESET foo bar
LATENCY HISTOGRAM blabla
MEMORY
MEMORY FOO
MEMORY USAGE
MEMORY USAGE nokey
MEMORY USAGE nokey SAMPLES
MEMORY USAGE nokey SAMPLES abc
MEMORY USAGE nokey SAMPLES -1
MEMORY USAGE nokey SAMPLES 0
MEMORY USAGE nokey FOO
MEMORY PURGE
MEMORY STATS x
WAIT
WAIT 0 0
WAIT abc 0
WAIT 0 abc
WAIT 0 -1
WAIT -1 0
WAIT 1 1
SHUTDOWN FOO
SHUTDOWN SAVE NOSAVE
SHUTDOWN ABORT NOW
SHUTDOWN ABORT
ACL
ACL WHOAMI
ACL WHOAMI x
LOLWUT VERSION abc
DEBUG
DEBUG FOO
DEBUG SLEEP
DEBUG SLEEP 0
DEBUG SET-ACTIVE-EXPIRE 1
DEBUG OBJECT nokey
DEBUG OBJECT
DEBUG DIGEST
DEBUG DIGEST-VALUE
DEBUG DIGEST-VALUE a b
DEBUG CHANGE-REPL-ID
DEBUG CHANGE-REPL-ID x
DEBUG REPLYBUFFER PEAK-RESET-TIME never
DEBUG REPLYBUFFER PEAK-RESET-TIME abc
DEBUG RELOAD FOO
DEBUG POPULATE abc
DEBUG POPULATE -1
DEBUG LOG hello
DEBUG LEAK hello
DEBUG ERROR CODE\\x20text
DEBUG PROTOCOL foo
DEBUG JMAP
INFO cluster
INFO nosuchsection
RESET
QUIT
"""

# As above, where Redis 7.0 answers differently.
SAME_SINCE_7_4 = """
CLIENT LIST ID abc
CLIENT LIST ID 0
CLIENT KILL ID abc
CLIENT PAUSE 9223372036854775807
CLIENT NO-TOUCH
CLIENT NO-TOUCH maybe
CLIENT NO-TOUCH on
CLIENT SETINFO
CLIENT SETINFO lib-name mylib
CLIENT SETINFO LIB-VER 1.2
CLIENT SETINFO lib-foo mylib
CLIENT SETINFO lib-name a\\x20b
CLIENT SETINFO lib-ver a\\x0ab
CLIENT KILL MAXAGE 0
CLIENT KILL MAXAGE abc
CLIENT KILL MAXAGE 10000000
WAIT 0 9223372036854775807
WAITAOF
WAITAOF 0 0 0
WAITAOF 1 0 0
WAITAOF 2 0 0
WAITAOF -1 0 0
WAITAOF abc 0 0
WAITAOF 0 -1 0
WAITAOF 0 abc 0
WAITAOF 0 0 abc
WAITAOF 0 0 -1
WAITAOF 0 1 1
DEBUG DICT-RESIZING 1
DEBUG REPLYBUFFER RESIZING 1
"""

PROTOCOL_TYPES = [
    "string", "integer", "double", "bignum", "null", "array", "set", "map", "attrib", "push",
    "verbatim", "true", "false", "foo",
]  # fmt: skip


def words(line: str) -> list[bytes]:
    return [word.encode().decode("unicode_escape").encode() for word in line.split(" ")]


@pytest.mark.parametrize("line", sorted(set(SAME.strip().splitlines())))
def test_same_reply(pair: Pair, line: str) -> None:
    pair.both(*words(line))


@pytest.mark.parametrize("line", sorted(set(SAME.strip().splitlines())))
def test_same_reply_in_resp3(pair3: Pair, line: str) -> None:
    pair3.both(*words(line))


@pytest.mark.parametrize("line", sorted(set(SAME_SINCE_7_4.strip().splitlines())))
@pytest.mark.since(7, 4)
def test_same_reply_as_a_newer_redis(pair: Pair, line: str) -> None:
    pair.both(*words(line))


NO_CLUSTER = [
    "CLUSTER", "CLUSTER INFO", "CLUSTER NODES", "CLUSTER NODES x", "CLUSTER SLOTS",
    "CLUSTER SHARDS", "CLUSTER MYID", "CLUSTER KEYSLOT a", "CLUSTER KEYSLOT", "CLUSTER FOO",
    "CLUSTER HELP", "CLUSTER COUNTKEYSINSLOT 0", "CLUSTER RESET", "CLUSTER SLOT-STATS",
    "cluster info", "READONLY", "READONLY x", "READWRITE", "READWRITE x", "ASKING", "ASKING x",
    "MODULE", "MODULE FOO", "MODULE LIST x", "MODULE LOAD", "MODULE LOAD x", "MODULE LOADEX x",
    "MODULE UNLOAD x", "MODULE UNLOAD",
]  # fmt: skip


@pytest.mark.since(8, 10)
@pytest.mark.parametrize("line", NO_CLUSTER)
def test_what_is_not_there_is_refused_as_in_redis(pair: Pair, pair3: Pair, line: str) -> None:
    pair.both(*words(line))
    pair.both("MULTI")
    pair.both(*words(line))
    pair.both("EXEC")
    pair3.both(*words(line))


def test_debug_is_not_queued_where_it_is_not_allowed(fresh_server: Factory) -> None:
    with fresh_server().client() as client:
        refused = client.call("DEBUG", "SLEEP", 0)
        assert refused.startswith(b"-ERR DEBUG command not allowed.")
        client.call("MULTI")
        assert client.call("DEBUG", "SLEEP", 0) == refused
        assert client.call("EXEC").startswith(b"-EXECABORT")


QUOTED = (
    ("CONFIG", "SET", "a\0b", 1), ("ACL", "SETUSER", "a", "b\0c"), ("ACL", "SETUSER", "a", "#x\0"),
    ("ACL", "SETUSER", "a", "(x\0y)"), ("ACL", "SETUSER", "a", "(x\0y"), ("ACL", "CAT", "x\0y"),
    ("ACL", "DRYRUN", "a\0b", "GET", "k"), ("ACL", "DRYRUN", "default", "ge\0t", "k"),
    ("CLIENT", "SETINFO", "lib\0name", "a"), ("CLIENT", "LIST", "TYPE", "a\0b"),
    ("CLIENT", "KILL", "TYPE", "a\0b"), ("CLIENT", "KILL", "USER", "a\0b"), ("a\0b", "c\0d"),
    ("CLIENT", "x\0y"), ("HELLO", 2, "x\0y"), ("FUNCTION", "LIST", "x\0y"),
    ("FUNCTION", "LOAD", "x\0y", "#!lua"), ("FUNCTION", "LOAD", "#!lua name=a\0b\nreturn 1"),
    ("EVAL", "#!l\0ua\nreturn 1", 0), ("EVAL", "#!lua flags=a\0b\nreturn 1", 0),
    ("CLIENT", "SETINFO", "lib-name", "a b\0c"), ("CLIENT", "SETNAME", "a b\0c"),
    ("CLIENT", "SETINFO", "lib-ver", "a\0 b"), ("CLIENT", "SETNAME", "a\0 b"),
    ("CLIENT", "GETNAME"), ("CLIENT", "SETNAME", ""), ("CLIENT", "SETINFO", "lib-ver", ""),
)  # fmt: skip


@pytest.mark.since(8, 10)
def test_errors_quote_words_up_to_a_nul(pair: Pair) -> None:
    for call in QUOTED:
        pair.both(*call)
    for client in (pair.ours, pair.real):
        client.call("CLIENT", "SETNAME", "a\0b")
        assert b" name=a age=" in client.call("CLIENT", "INFO")
        client.call("CLIENT", "SETNAME", "")


def test_no_module_is_loaded(client: RawClient) -> None:
    assert client.call("MODULE", "LIST") == b"*0\r\n"


@pytest.mark.since(8, 10)
def test_slow_commands_are_kept_as_redis_keeps_them(pair: Pair) -> None:
    defaults = (
        *("CONFIG", "SET", "slowlog-entry-max-argc", 32, "slowlog-entry-max-string-len", 128),
        *("slowlog-log-slower-than", 10_000),
    )
    try:
        pair.both("CONFIG", "SET", "slowlog-log-slower-than", 0)
        pair.both("SLOWLOG", "RESET")
        pair.both("DEL", *["a"] * 31)
        pair.both("DEL", *["a"] * 32)
        pair.both("SET", "k", "v" * 129)
        pair.both("CONFIG", "SET", "slowlog-entry-max-argc", 4, "slowlog-entry-max-string-len", 9)
        pair.both("DEL", "a", "b", "c")
        pair.both("DEL", "a", "b", "c" * 99, "d")
        pair.both("GET", "v" * 9)
        pair.both("GET", "v" * 10)
        kept = [client.call_parsed("SLOWLOG", "GET", -1) for client in (pair.ours, pair.real)]
        shown = [[(row[3], row[6]) for row in rows] for rows in kept if isinstance(rows, list)]
        assert len(shown[0]) == 9
        assert shown[0] == shown[1]
    finally:
        pair.both(*defaults)


@pytest.mark.since(8, 10)
def test_the_size_from_which_a_string_stands_alone_in_a_list(pair: Pair) -> None:
    """It holds for the whole process, so a later test would meet what is left of it."""
    try:
        for size in ("100b", "abc", "5gb"):
            pair.both("DEBUG", "QUICKLIST-PACKED-THRESHOLD", size)
        pair.both("RPUSH", "a", *["x" * 300] * 100)
        nodes = [client.call("DEBUG", "OBJECT", "a") for client in (pair.ours, pair.real)]
        assert all(b" ql_nodes:100 " in reply for reply in nodes), nodes
    finally:
        pair.both("DEBUG", "QUICKLIST-PACKED-THRESHOLD", "0")
    pair.both("DEL", "a")
    pair.both("RPUSH", "a", *["x" * 300] * 100)
    nodes = [client.call("DEBUG", "OBJECT", "a") for client in (pair.ours, pair.real)]
    assert all(b" ql_nodes:4 " in reply for reply in nodes), nodes


@pytest.mark.parametrize("kind", PROTOCOL_TYPES)
def test_debug_protocol(pair: Pair, kind: str) -> None:
    pair.both("DEBUG", "PROTOCOL", kind)
    pair.both("PING")


@pytest.mark.parametrize("kind", PROTOCOL_TYPES)
def test_debug_protocol_in_resp3(pair3: Pair, kind: str) -> None:
    if kind == "push":  # before the reply in Redis 7.0, after it later
        request = ("DEBUG", "PROTOCOL", "push")
        ours = {pair3.ours.call(*request), pair3.ours.read()}
        assert ours == {pair3.real.call(*request), pair3.real.read()}
        return
    pair3.both("DEBUG", "PROTOCOL", kind)
    pair3.both("PING")


def test_reset_forgets_the_session(pair: Pair) -> None:
    pair.both("CLIENT", "SETNAME", "me")
    pair.both("SELECT", 5)
    pair.both("SET", "here", 1)
    pair.both("WATCH", "here")
    pair.both("MULTI")
    pair.both("PING")
    pair.both("RESET")
    pair.both("EXEC")
    pair.both("CLIENT", "GETNAME")
    pair.both("EXISTS", "here")


def commands_of(client: RawClient) -> int:
    """Return how many commands a client has run, as it is told itself."""
    line = parse(client.call("CLIENT", "INFO"))
    assert isinstance(line, bytes)
    fields = dict(field.split(b"=", 1) for field in line.split())
    return int(fields[b"tot-cmds"])


@pytest.mark.since(8, 10)
@pytest.mark.parametrize(
    "calls",
    [
        "PING",
        "nosuch",
        "GET",
        "CLIENT nosuch",
        "INCR text",
        "EXEC",
        "MULTI|SET k v|GET k|EXEC",
        "MULTI|SET k v|DISCARD",
        "MULTI|SET k v|SET k w|nosuch|EXEC",
        "MULTI|SET k v|EXEC x|EXEC",
        "MULTI|nosuch|SET k v|EXEC",
        "MULTI|SET k v|RESET",
        "WATCH k|SET k v|MULTI|GET k|EXEC",
    ],
)
def test_what_was_not_run_does_not_count(pair: Pair, calls: str) -> None:
    counts = []
    for side in (pair.ours, pair.real):
        side.call("SET", "text", "abc")
        before = commands_of(side)
        for call in calls.split("|"):
            side.call(*call.split())
        counts.append(commands_of(side) - before)
    assert counts[0] == counts[1]


def test_digests_are_those_of_redis(pair: Pair) -> None:
    pair.both("SET", "text", "some value")
    pair.both("SET", "number", 12345)
    pair.both("SET", "expires", "soon", "EX", 1000)
    pair.both("XADD", "stream", "1-1", "field", "value")
    pair.both("XADD", "stream", "1-2", "field", "value", "other", "")
    pair.both("XADD", "stream", "5-0", "a", "b")
    pair.both("XDEL", "stream", "1-2")
    for index in range(300):
        pair.both("XADD", "long", f"{index + 1}-0", "n", index)
    pair.both("SELECT", 3)
    pair.both("SET", "text", "elsewhere")
    pair.both("DEBUG", "DIGEST")
    pair.both("SELECT", 0)
    pair.both("DEBUG", "DIGEST")
    pair.both("DEBUG", "DIGEST-VALUE", "text", "number", "expires", "stream", "long", "none")


def test_populate_makes_the_same_keys(pair: Pair) -> None:
    pair.both("SET", "key:3", "mine")
    pair.both("DEBUG", "POPULATE", 10)
    pair.both("DEBUG", "POPULATE", 3, "other", 20)
    pair.both("DEBUG", "POPULATE", 3, "short", 3)
    pair.both("DBSIZE")
    pair.both("MGET", "key:0", "key:3", "key:9", "other:2", "short:0")
    pair.both("DEBUG", "DIGEST")


def test_a_password_asked_for(
    pair: Pair, server: ServerProcess, redis_server: RedisProcess
) -> None:
    try:
        pair.both("CONFIG", "SET", "requirepass", "secret")
        new = Pair.of(server, redis_server)
        for line in (
            "PING",
            "GET a",
            "HELLO 3 AUTH",
            "AUTH wrong",
            "AUTH nobody secret",
            "HELLO 3 AUTH default wrong",
            "HELLO 3 AUTH default wrong SETNAME x",
            "RESET",
            "QUIT x",
        ):
            new.both(*line.split())
            if line.startswith("QUIT"):
                break
        new.close()
        new = Pair.of(server, redis_server)
        new.both("AUTH", "secret")
        new.both("PING")
        new.both("RESET")
        new.both("PING")
        new.close()
    finally:
        pair.both("CONFIG", "SET", "requirepass", "")


def test_monitoring_clients_leave_keys_alone(pair: Pair) -> None:
    pair.both("MONITOR")
    for line in ("GET a", "SET a 1", "PING", "XLEN s"):
        pair.ours.send_command(*line.split())
        pair.real.send_command(*line.split())
        ours, real = pair.ours.read(), pair.real.read()
        while ours.startswith(b"+1"):
            ours = pair.ours.read()
        while real.startswith(b"+1"):
            real = pair.real.read()
        assert ours == real, line


def test_hello_describes_the_server(pair: Pair) -> None:
    ours = parse(pair.ours.call("HELLO", 3))
    real = parse(pair.real.call("HELLO", 3))
    assert isinstance(ours, dict)
    assert isinstance(real, dict)
    assert list(ours) == list(real)
    for name in (b"proto", b"mode", b"role"):
        assert ours[name] == real[name]
    assert ours[b"server"] == b"redis"  # Valkey tells its own name
    assert ours[b"modules"] == []  # Redis has some built in


def test_reply_off_and_skip(pair: Pair) -> None:
    for client in (pair.ours, pair.real):
        for line in (
            "CLIENT REPLY OFF",
            "PING",
            "CLIENT REPLY ON",
            "CLIENT REPLY SKIP",
            "PING a",
            "PING b",
            "CLIENT REPLY SKIP",
            "CLIENT REPLY SKIP",
            "PING c",
            "PING d",
            "CLIENT REPLY SKIP",
            "CLIENT REPLY ON",
            "PING e",
        ):
            client.send_command(*line.split())
    for _ in range(5):
        assert pair.ours.read() == pair.real.read()
    pair.both("PING", "end")
