"""Text of clients that would pass for the server's own: in INFO, lists, errors and the log."""

from __future__ import annotations

import itertools

import pytest
from conftest import Factory

from headrace.protocol.requests import split_words
from support.client import encode
from support.process import Pair, Process

pytestmark = [pytest.mark.once, pytest.mark.judge, pytest.mark.since(8, 10)]

ERRORS = (
    *(b"X\r\nrole:slave\r\nZ:1 foo", b"X\r\n", b"\r\nX y", b"X y\r\n\r\n", b"X\n y", b"a\rb foo"),
    *(b"", b" foo", b"X", b"X:Y foo", b"A#B foo", b"a,b=3 x", b"-X y", b"--X y", b"\xff\xfe foo"),
    *(b"a\0b foo", b"\0 foo", b"a b\0c", b"a" * 30 + b" foo", b"a" * 31 + b" foo"),
    *(b"x%c foo" % char for char in range(256)),
)
FAILING = (
    b"return {err=%b}",
    b"return {1,{err=%b},2}",
    b"return redis.error_reply(%b)",
    b"return redis.error_reply(%b).err",
    b"error(%b)",
    b"error({err=%b})",
)
OTHERS = (
    b"return {ok=%b}",
    b"return redis.status_reply(%b)",
    b"return {1,{ok=%b}}",
    b"redis.setresp(3) return {verbatim_string={format=%b,string='a'}}",
    b"redis.setresp(3) return {big_number=%b}",
)
WORDS = (
    *(b"a\r\nb", b"\r\n", b"abc\r\n", b"a\nb", b"a\rb", b"+OK\r\n-ERR x", b"%s%n%d", b"\xff\xfe"),
    *(b"'", b'"', b"\\x00", b"a b", b" ", b"", b"-", b"x" * 300, b"a\tb", b"a\vb", b"a\x1b[2Jb"),
)
# ``$`` stands for each of the words above.
CALLS = (
    *("$", "$ $ $", "CONFIG $", "CONFIG SET $ $", "CONFIG GET $", "CONFIG SET maxmemory $"),
    *("CONFIG SET save $", "CONFIG SET notify-keyspace-events $"),
    *("CONFIG SET cluster-announce-ip $", "CONFIG SET cluster-announce-hostname $"),
    *("ACL $", "ACL SETUSER $", "ACL SETUSER u $", "ACL SETUSER u ~$", "ACL SETUSER u +$"),
    *("ACL SETUSER u ($", "ACL SETUSER u (~$)", "ACL SETUSER u (~$ +get)", "ACL SETUSER u &$"),
    *("ACL SETUSER u %R~$", "ACL SETUSER u -@$", "ACL GETUSER $", "ACL CAT $", "ACL DELUSER $"),
    *("ACL DRYRUN $ get", "ACL DRYRUN default $", "ACL LOG $", "ACL GENPASS $", "AUTH $ $"),
    *("CLIENT $", "CLIENT SETNAME $", "CLIENT SETINFO LIB-NAME $", "CLIENT SETINFO $ $"),
    *("CLIENT KILL TYPE $", "CLIENT KILL USER $", "CLIENT LIST TYPE $", "CLIENT TRACKING $"),
    *("HELLO $", "HELLO 2 AUTH $ $", "HELLO 2 $", "EXPIRE k 1 $", "HSETEX k $ 1", "GETEX k $"),
    *("FUNCTION $", "FUNCTION LOAD $", "FUNCTION LOAD REPLACE $ x", "FUNCTION LIST $", "FCALL $ 0"),
    *("EVAL $ 0", "EVALSHA $ 0", "SCRIPT $", "SCRIPT FLUSH $", "OBJECT $", "DEBUG $", "MEMORY $"),
    *("XGROUP $", "XREADGROUP GROUP $ $ STREAMS $ >", "XACK $ $ $", "XADD $ $ $ $", "XINFO $ $"),
    *(
        "LATENCY $",
        "LATENCY HISTORY $",
        "LATENCY HISTOGRAM $",
        "SLOWLOG $",
        "COMMAND $",
        "PUBSUB $",
    ),
    *("COMMAND GETKEYS $", "COMMAND INFO $", "CLUSTER $", "REPLCONF $ $", "FAILOVER $", "MODULE $"),
)


NOT_ADDRESSES = (b"\xff", b"127.0.0.1 \xff", b"\xc3\xa4", b"..", b"'", b"x" * 300, b"a\0b", b"a\nb")


def literal(text: bytes) -> bytes:
    """A text as a script may spell it."""
    return b'"%b"' % b"".join(b"\\%03d" % char for char in text)


@pytest.mark.parametrize("script", FAILING)
def test_codes_of_errors(pair: Pair, script: bytes) -> None:
    for error in ERRORS:
        pair.both("CONFIG", "RESETSTAT")
        pair.both("EVAL", script % literal(error), 0)
        pair.both("INFO", "errorstats")


@pytest.mark.parametrize("script", OTHERS)
@pytest.mark.parametrize("version", [2, 3])
def test_texts_of_scripts(pair: Pair, pair3: Pair, version: int, script: bytes) -> None:
    for text in ERRORS:
        (pair if version == 2 else pair3).both("EVAL", script % literal(text), 0)


@pytest.mark.parametrize("call", CALLS)
def test_words_that_errors_quote(pair: Pair, call: str) -> None:
    for word in WORDS:
        words = [each.encode().replace(b"$", word) for each in call.split(" ")]
        pair.both(*words)
        if words[0] == b"ACL":
            pair.both("ACL", "LIST")
            pair.both("ACL", "DELUSER", "u", word)
        pair.both("CLIENT", "GETNAME")
        for name in ("cluster-announce-ip", "cluster-announce-hostname"):
            pair.both("CONFIG", "GET", name)
        pair.both("PING")


@pytest.mark.parametrize("line", [b"ECHO a%cb", b"%cECHO a", b"ECHO %ca", b"ECHO a%c"])
def test_what_separates_words(pair: Pair, line: bytes) -> None:
    for char in b"\1\b\t\v\f\r\x1c\x1f\x7f\x85\xa0":
        pair.both_send(line % char + b"\r\n")


def test_a_nul_ends_the_words() -> None:
    assert split_words(b"a b\0 c d") == [b"a", b"b"]


def test_what_nobody_can_listen_at(pair: Pair) -> None:
    before = pair.ours.call("CONFIG", "GET", "bind")
    for address in NOT_ADDRESSES:
        pair.both("CONFIG", "SET", "bind", address)
    assert pair.ours.call("CONFIG", "GET", "bind") == before


def test_a_rule_is_one_word_of_the_file(fresh_server: Factory) -> None:
    """A Redis takes these, and ends at the next ACL LIST."""
    server = fresh_server()
    with server.client() as client:
        for space in ("\n", " ", "\t", "\0", "\r"):
            word = f"+get|x{space}user evil on nopass ~* +@all"
            told = b"-ERR Error in ACL SETUSER modifier '%b': Syntax error\r\n"
            quoted = word.partition("\0")[0].replace("\r", " ").replace("\n", " ")
            assert client.call("ACL", "SETUSER", "u", word) == told % quoted.encode()
        assert b"evil" not in client.call("ACL", "LIST")


def test_a_value_is_one_line_of_info(fresh_server: Factory) -> None:
    """In Redis the name of a master may forge lines."""
    server = fresh_server()
    with server.client() as client:
        client.call("REPLICAOF", "here\r\nrole:master", "1")
        lines = client.call("INFO", "replication").split(b"\r\n")
        assert b"master_host:here__role:master" in lines
        assert b"role:master" not in lines


BREAKS = ("\r\n", "\n", "\r", "\x1b[", "\x9b", "\x85", "\u2028", "\0", "\ud800")


def logged(server: Process) -> list[str]:
    return server.log().split("\n")


def test_a_text_is_one_line_of_the_log(fresh_server: Factory) -> None:
    forged = "1:M 28 Nov 2026 16:07:13.498 # forged"
    ascii_alone = {"PYTHONIOENCODING": "ascii"}
    server = fresh_server("--loglevel", "debug", environment=ascii_alone)
    with server.client() as client:
        for broken, where in itertools.product(BREAKS, range(4)):
            script = f"redis.log({where}, ARGV[1])"
            assert (
                client.call(
                    "EVAL", script, 0, f"told{broken}{forged}".encode("utf-8", "surrogatepass")
                )
                == b"$-1\r\n"
            )
        client.call("REPLICAOF", f"h\n{forged}", 1)
        client.call("REPLICAOF", "NO", "ONE")
        client.call("CONFIG", "SET", "bind", f"h\n{forged}")
        client.call("DEBUG", "LOG", f"h\n{forged}")
        client.send(encode("AUTH", f"h\n{forged}", "x"))
        assert client.read().startswith(b"-WRONGPASS")
    lines = logged(server)
    assert sum(line.endswith(forged) for line in lines) >= 4 * len(BREAKS)
    assert len(server.log().splitlines()) == len(lines) - 1
    assert "Logging error" not in server.log()
    assert not any(line.startswith(forged) for line in lines)
    assert "\r" not in server.log()
    assert "\x1b" not in server.log()
    assert any(line.endswith(f"told\\r\\n{forged}") for line in lines)
