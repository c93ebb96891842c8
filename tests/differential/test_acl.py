"""Users and their rights, beside a real Redis."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator

import pytest

from headrace.server.commands.documentation import documentation
from support.client import RawClient
from support.fuzz.calls import Calls
from support.process import Pair, RedisProcess, ServerProcess
from support.random_acl import RandomRules
from support.waiting import wait_until

pytestmark = [pytest.mark.judge, pytest.mark.since(8, 10)]

DOCS = documentation()
# How many users are made by chance: more with HEADRACE_ACL_USERS.
USERS = int(os.environ.get("HEADRACE_ACL_USERS", "300"))
RULES = [
    "on",
    "on nopass",
    "ON >pw >pw >other",
    "#" + "0" * 64,
    "#abc",
    "!abc",
    "<nopw",
    ">pw <pw",
    "nopass >pw resetpass",
    "skip-sanitize-payload",
    "~a* %R~b %r~b %wr~c %W~d %R~d",
    "%~a",
    "%R",
    "%RR~a",
    "%X~a",
    "allkeys ~a",
    "~* ~a",
    "~a allkeys resetkeys ~b",
    "allchannels &a",
    "&a &a &b* resetchannels &c",
    "+get +get -get",
    "+@read -get +config|get +select|1 +select|ABC +select|abc",
    "+config|get +config",
    "+config -config|set",
    "-config|nosuch",
    "+config|nosuch",
    "+config|",
    "+config|get|x",
    "+get|a|b",
    "+get|",
    "+|x",
    "-get|x",
    "+nosuch",
    "+@nosuch",
    "+@All -@dangerous +info",
    "allcommands -@slow +get",
    "+@all +get nocommands",
    "+eval +sync +vadd +cluster|nodes",
    "(+get ~a*)",
    "(+set ~z) (%W~q -@all +@Hash) clearselectors (+get)",
    "()",
    "(~a foo)",
    "( +get )",
    ")",
    "foo",
    "reset",
    "on >pw ~* &* +@all (+get) reset",
]


@pytest.fixture
def users(pair: Pair) -> Iterator[Pair]:
    yield pair
    for client in (pair.ours, pair.real):
        with_users = client.call_parsed("ACL", "USERS")
        assert isinstance(with_users, list)
        others = [name for name in with_users if name != b"default"]
        if others:
            client.call("ACL", "DELUSER", *others)
        client.call("ACL", "LOG", "RESET")


def show(pair: Pair, name: str) -> None:
    pair.both("ACL", "GETUSER", name)
    pair.both("ACL", "LIST")


@pytest.mark.parametrize("rules", RULES)
def test_rules(users: Pair, rules: str) -> None:
    users.both("ACL", "SETUSER", "u", *rules.split(" "))
    show(users, "u")
    users.both("ACL", "USERS")


@pytest.mark.parametrize("rules", ["(+get", "(~a +get )", "(+get foo", "a (b"])
def test_selectors_in_pieces(users: Pair, rules: str) -> None:
    users.both("ACL", "SETUSER", "u", *rules.split(" "))
    users.both("ACL", "SETUSER", "u", rules)
    show(users, "u")


def test_one_wrong_rule_changes_nothing(users: Pair) -> None:
    users.both("ACL", "SETUSER", "u", "on", "~a*", "+get")
    users.both("ACL", "SETUSER", "u", "off", "~b*", "+nosuch")
    users.both("ACL", "SETUSER", "new", "on", "foo")
    show(users, "u")
    users.both("ACL", "GETUSER", "new")


def test_names(users: Pair) -> None:
    for name in ("a b", "a\nb", b"a\0b", "", "ü", b"\xff"):
        users.both("ACL", "SETUSER", name)
    users.both("ACL", "USERS")
    users.both("ACL", "LIST")
    users.both("ACL", "DELUSER", "", "ü", b"\xff", "ü")
    users.both("ACL", "DELUSER", "default")
    users.both("ACL", "DELUSER", "nosuch", "default")


def test_resp3(users: Pair) -> None:
    for client in (users.ours, users.real):
        client.call("HELLO", "3")
    users.both("ACL", "SETUSER", "u", "on", ">x", "~a", "+get", "(+set ~b)", "(&c)")
    show(users, "u")
    users.both("ACL", "GETUSER", "nosuch")
    for client in (users.ours, users.real):
        client.call("HELLO", "2")


def test_categories(users: Pair) -> None:
    users.both("ACL", "CAT")
    users.both("ACL", "CAT", "nosuch")
    users.both("ACL", "CAT", "x" * 200)
    users.both("ACL", "CAT", "read", "write")
    real = users.real.call_parsed("ACL", "CAT", "geo")
    ours = users.ours.call_parsed("ACL", "CAT", "geo")
    assert isinstance(real, list)
    assert isinstance(ours, list)
    assert sorted(real) == sorted(ours)


def test_every_command_is_in_the_categories_that_it_has_in_redis(users: Pair) -> None:
    categories = users.ours.call_parsed("ACL", "CAT")
    assert isinstance(categories, list)
    there = _names(users.ours, categories)
    wrong = []
    for category in categories:
        real = users.real.call_parsed("ACL", "CAT", category)
        ours = users.ours.call_parsed("ACL", "CAT", category)
        assert isinstance(real, list)
        assert isinstance(ours, list)
        known = _names(users.real, categories)
        wrong += [(category, name) for name in set(real) & there ^ set(ours) & known]
    assert wrong == []


def _names(client: RawClient, categories: list[object]) -> set[object]:
    found: set[object] = set()
    for category in categories:
        assert isinstance(category, bytes)
        names = client.call_parsed("ACL", "CAT", category)
        assert isinstance(names, list)
        found.update(names)
    return found


@pytest.mark.parametrize("words", [(), ("256",), ("5",), ("1",), ("4096",)])
def test_passwords(users: Pair, words: tuple[str, ...]) -> None:
    real = users.real.call_parsed("ACL", "GENPASS", *words)
    ours = users.ours.call_parsed("ACL", "GENPASS", *words)
    assert isinstance(real, bytes)
    assert isinstance(ours, bytes)
    assert len(ours) == len(real)
    assert re.fullmatch(b"[0-9a-f]+", ours)


@pytest.mark.parametrize("words", [("0",), ("4097",), ("-1",), ("x",), ("1", "2")])
def test_passwords_of_no_size(users: Pair, words: tuple[str, ...]) -> None:
    users.both("ACL", "GENPASS", *words)


def test_trying_requests(users: Pair) -> None:
    users.both(
        "ACL", "SETUSER", "u", "+@read", "+config|get", "+select|1", "~a*", "%R~b", "%W~c", "&x*"
    )
    users.both("ACL", "SETUSER", "u", "(+set ~z)", "(%W~q +@hash)", "(+psubscribe &p* &q)")
    for request in (
        "get a1",
        "get c",
        "get z",
        "set z 1",
        "set z 1 get",
        "set a 1",
        "mget a b c",
        "mget c a d",
        "select 1",
        "select 2",
        "select",
        "config",
        "config get x",
        "config nosuch",
        "config set x y",
        "hset q f v",
        "hget q f",
        "hset r f v",
        "publish x1 m",
        "subscribe x y",
        "psubscribe p*",
        "psubscribe pp",
        "psubscribe q",
        "auth x",
        "nosuch",
        "exists c",
        "type q",
    ):
        users.both("ACL", "DRYRUN", "u", *request.split(" "))
    users.both("ACL", "DRYRUN", "nosuch", "get", "a")


class Logins:
    """Makes clients of a user ``u`` on both servers."""

    def __init__(self, users: Pair, ours: ServerProcess, real: RedisProcess) -> None:
        self._users = users
        self._ours = ours
        self._real = real
        self.made: list[Pair] = []

    def __call__(self, rules: str) -> Pair:
        self._users.both("ACL", "SETUSER", "u", "on", ">pw", *rules.split(" "))
        pair = Pair.of(self._ours, self._real)
        self.made.append(pair)
        pair.both("AUTH", "u", "pw")
        return pair


@pytest.fixture
def login(users: Pair, server: ServerProcess, redis_server: RedisProcess) -> Iterator[Logins]:
    logins = Logins(users, server, redis_server)
    yield logins
    for pair in logins.made:
        pair.close()


def test_logging_in(users: Pair, server: ServerProcess, redis_server: RedisProcess) -> None:
    users.both("ACL", "SETUSER", "u", "on", ">one", ">two", "+@all", "~*")
    users.both("ACL", "SETUSER", "out", ">one", "+@all", "~*")
    users.both("ACL", "SETUSER", "free", "on", "nopass", "+@all", "~*")
    client = Pair.of(server, redis_server)
    for words in (
        "AUTH one",
        "AUTH u three",
        "AUTH u two",
        "AUTH out one",
        "AUTH nosuch x",
        "AUTH free whatever",
        "AUTH u one two",
        "HELLO 2 AUTH u three",
        "HELLO 2 AUTH u",
        "ACL WHOAMI",
        "AUTH u one",
        "ACL WHOAMI",
        "RESET",
        "ACL WHOAMI",
    ):
        client.both(*words.split(" "))
    client.close()
    compare_logs(users)


def compare_logs(users: Pair) -> None:
    """What ACL LOG shows, but for times and addresses."""
    seen = []
    for client in (users.ours, users.real):
        entries = client.call_parsed("ACL", "LOG", "100")
        assert isinstance(entries, list)
        shown = []
        first = min([entry[15] for entry in entries], default=0)
        for entry in entries:
            fields = dict(zip(entry[::2], entry[1::2], strict=True))
            assert float(fields.pop(b"age-seconds")) < 60
            assert fields.pop(b"timestamp-created") <= fields.pop(b"timestamp-last-updated")
            line = fields.pop(b"client-info")
            fields[b"entry-id"] -= first
            fields[b"who"] = re.search(b" user=[^ ]*", line)[0]  # type: ignore[index]
            shown.append(fields)
        seen.append(shown)
    assert seen[0] == seen[1]


def test_refused(login: Logins, users: Pair) -> None:
    client = login("+@read +config|get +client|id +multi +exec +discard ~a* %R~b &x")
    for words in (
        "GET a1",
        "GET c",
        "SET a1 v",
        "CONFIG GET maxmemory",
        "CONFIG SET maxmemory 1",
        "CLIENT LIST",
        "GET c",
        "NOSUCH",
        "GET",
        "PUBLISH x y",
        "MULTI",
        "SET a1 v",
        "GET a1",
        "EXEC",
        "MULTI",
        "GET a1",
        "DISCARD",
        "EXEC x",
    ):
        client.both(*words.split(" "))
    users.both("ACL", "SETUSER", "u", "+publish", "+subscribe", "+psubscribe", "+spublish")
    for words in ("PUBLISH x m", "PUBLISH y m", "SPUBLISH y m", "PSUBSCRIBE x*", "SUBSCRIBE x y"):
        client.both(*words.split(" "))
    compare_logs(users)
    users.both("ACL", "LOG", "x")
    users.both("ACL", "LOG", "1", "2")
    users.both("ACL", "LOG", "0")
    users.both("ACL", "LOG", "-5")
    users.both("ACL", "LOG", "RESET")
    users.both("ACL", "LOG")


def test_rights_lost_between_multi_and_exec(login: Logins, users: Pair) -> None:
    client = login("+@all ~* &*")
    for each in (users.ours, users.real):
        each.call("CONFIG", "RESETSTAT")
    client.both("MULTI")
    for words in ("INCR n", "GET a", "PUBLISH c m", "GET n"):
        client.both(*words.split(" "))
    users.both("ACL", "SETUSER", "u", "-incr", "resetkeys", "~n", "resetchannels")
    client.both("EXEC")
    compare_logs(users)
    assert _counted(users.ours, b"cmdstat_incr:") == _counted(users.real, b"cmdstat_incr:") == []


LOSSES = ("resetkeys", "resetkeys %R~k", "resetkeys %W~k", "-@all +ping", "(+@all ~k) resetkeys")
# What waits, and what then comes for it.
WAITS = (
    ("BLPOP k 0", "RPUSH k v"),
    ("BLMOVE k to LEFT LEFT 0", "RPUSH k v"),
    ("BZPOPMIN k 0", "ZADD k 1 m"),
    ("BZMPOP 0 2 j k MIN", "ZADD k 1 m"),
    ("XREAD BLOCK 0 STREAMS j k $ $", "XADD k 1-1 f v"),
    ("XREADGROUP GROUP g c BLOCK 0 STREAMS k >", "XADD k 1-1 f v"),
)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("request_", "comes"), WAITS)
def test_rights_lost_while_waiting(
    login: Logins, users: Pair, server: ServerProcess, loss: str, request_: str, comes: str
) -> None:
    """Whoever waits beside the client for the same, and has other rights, is served as ever."""
    if request_.startswith("XREADGROUP"):
        users.both("XGROUP", "CREATE", "k", "g", "$", "MKSTREAM")
    users.both("ACL", "SETUSER", "w", "on", "nopass", "+@all", "~*")
    shared = request_.startswith("XREAD ")
    waiting = [login("+@all ~*") for _ in range(3 if shared else 1)]
    for number, client in enumerate(waiting):
        if number != 1 and shared:
            client.both("AUTH", "w", "x")
        for each in (client.real, client.ours):
            each.send_command(*request_.split(" "))
        wait_until(lambda count=number + 1: _blocked(users) == [count, count])  # type: ignore[misc]
    users.both("ACL", "SETUSER", "u", *loss.split(" "))
    users.both(*comes.split(" "))
    for client in waiting:
        if loss.endswith("~k") and request_.startswith("BLMOVE"):
            break
        assert client.ours.read() == client.real.read()
        client.both("PING")
    users.both("TYPE", "k")
    compare_logs(users)


def _blocked(pair: Pair) -> list[int]:
    found = []
    for client in (pair.ours, pair.real):
        told = client.call_parsed("INFO", "clients")
        assert isinstance(told, bytes)
        found.append(int(re.findall(rb"blocked_clients:(\d+)", told)[0]))
    return found


def test_sort_by_what_may_not_be_read(login: Logins, users: Pair) -> None:
    users.both("RPUSH", "l", "2", "1")
    client = login("+@all ~l*")
    requests = (
        "SORT l BY w*",
        "SORT l GET w*",
        "SORT l BY nosort GET #",
        "SORT l BY nosort",
        "SORT l BY w* LIMIT a b",
        "SORT l LIMIT a b BY w*",
        "SORT l GET # FOO",
        "SORT_RO l BY w*",
        "SORT l STORE m",
        "SORT l STORE l2",
    )
    for words in requests:
        client.both(*words.split(" "))
    users.both("ACL", "SETUSER", "u", "resetkeys", "%R~*", "%W~l*")
    for words in requests:
        client.both(*words.split(" "))


def test_scripts_have_the_rights_of_their_client(login: Logins, users: Pair) -> None:
    client = login("+@all -incr ~a* %R~b &x")
    for script in (
        "return redis.call('incr', 'a')",
        "return redis.call('get', 'zz')",
        "return redis.call('set', 'b', '1')",
        "return redis.call('set', 'a', '1')",
        "return redis.call('get', 'b')",
        "return redis.call('publish', 'y', '1')",
        "return redis.call('sort', 'a2', 'by', 'w*')",
        "return redis.call('config', 'get', 'x')",
        "return redis.pcall('incr', 'a')",
        "local ok, e = pcall(redis.call, 'incr', 'a') return e",
        "return redis.pcall('incr', 'a')['err']",
        "return redis.acl_check_cmd('incr', 'a')",
        "return redis.acl_check_cmd('set', 'a', 1)",
        "return redis.acl_check_cmd('set', 'b', 1)",
        "return redis.acl_check_cmd('get', 'b')",
        "return redis.acl_check_cmd('publish', 'y', '1')",
        "return redis.acl_check_cmd('config', 'get', 'x')",
        "return redis.acl_check_cmd('config|get', 'x')",
        "return redis.acl_check_cmd('nosuch', 'b')",
        "return redis.acl_check_cmd('get')",
        "return redis.acl_check_cmd()",
    ):
        client.both("EVAL", script, "0")
    client.both("EVAL", "return 1", "1", "zz")
    client.both("EVAL", "return 1", "2", "a", "b")
    client.both("EVAL_RO", "return 1", "2", "a", "b")
    client.both("MULTI")
    client.both("EVAL", "return redis.call('incr', KEYS[1])", "1", "a")
    client.both("EXEC")
    compare_logs(users)
    users.both("ACL", "SETUSER", "u", "-@scripting")
    for words in ("EVAL x 0", "EVALSHA x 0", "FCALL f 0", "FUNCTION LIST", "SCRIPT LOAD x"):
        client.both(*words.split(" "))


def test_functions_have_the_rights_of_their_client(login: Logins, users: Pair) -> None:
    code = (
        "#!lua name=lib\n"
        "redis.register_function('f', function(k) return redis.call('incr', k[1]) end)"
    )
    users.both("FUNCTION", "LOAD", "REPLACE", code)
    client = login("+@all -decr ~a*")
    client.both("FCALL", "f", "1", "a1")
    client.both("FCALL", "f", "1", "b")
    users.both("ACL", "SETUSER", "u", "-incr")
    client.both("FCALL", "f", "1", "a1")
    compare_logs(users)
    users.both("FUNCTION", "FLUSH")


def test_errors_are_counted(users: Pair, login: Logins) -> None:
    denied = [_denied(client) for client in (users.ours, users.real)]
    for client in (users.ours, users.real):
        client.call("CONFIG", "RESETSTAT")
    limited = login("+get +exec +multi ~a &c +publish")
    for words in (
        "GET a",
        "GET b",
        "SET a v",
        "PUBLISH d m",
        "AUTH u x",
        "MULTI",
        "SET a v",
        "EXEC",
    ):
        limited.both(*words.split(" "))
    wanted = (b"errorstat_", b"cmdstat_get", b"cmdstat_set:", b"cmdstat_exec")
    assert _counted(users.ours, *wanted) == _counted(users.real, *wanted)
    for client, before in zip((users.ours, users.real), denied, strict=True):
        more = [now - then for now, then in zip(_denied(client), before, strict=True)]
        assert more == [1, 2, 1, 1]


def _counted(client: RawClient, *wanted: bytes) -> list[bytes]:
    """Lines of what is counted that begin so, without times."""
    told = client.call_parsed("INFO", "errorstats", "commandstats")
    assert isinstance(told, bytes)
    lines = told.split(b"\r\n")
    return sorted(re.sub(b"usec[^,]*,", b"", line) for line in lines if line.startswith(wanted))


def _denied(client: RawClient) -> list[int]:
    told = client.call_parsed("INFO", "stats")
    assert isinstance(told, bytes)
    names = (b"auth", b"cmd", b"key", b"channel")
    found = [re.search(b"acl_access_denied_%b:(\\d+)" % name, told) for name in names]
    return [int(each[1]) for each in found if each is not None]


CALLS = int(os.environ.get("HEADRACE_ACL_CALLS", "1500"))


NUMBERS = ("1", "2", "0", "01", "+1", " 1", "1x", "1.0", "1 ", "x", "", "+", "-1", "0x1", "1e1")
LARGE = ("4294967297", "99999999999999", "9223372036854775808", "-4294967295", "-9" * 30, "1" * 40)


@pytest.mark.parametrize("number", [*NUMBERS, *LARGE])
def test_a_number_of_keys_is_read_as_by_atoi(users: Pair, number: str) -> None:
    """The command itself is stricter; who may not use the key is told that alone."""
    users.both("ACL", "SETUSER", "none", "+@all", "&*")
    for before, after in (("ZMPOP", "MAX"), ("ZUNION", "x"), ("EVAL s", "x"), ("BLMPOP 0", "LEFT")):
        words = (*before.split(), number, "k", after)
        users.both("COMMAND", "GETKEYS", *words)
        users.both("ACL", "DRYRUN", "none", *words)


@pytest.mark.slow
def test_keys_of_calls_by_chance(users: Pair) -> None:
    """Whoever may not use the keys of a call is told so, whatever the call looks like."""
    chance = random.Random(int(os.environ.get("HEADRACE_ACL_SEED", "1")))
    containers = {name.partition("|")[0] for name in DOCS if "|" in name}
    categories = users.real.call_parsed("ACL", "CAT")
    assert isinstance(categories, list)
    theirs = _names(users.real, categories)
    names = sorted(name for name in set(DOCS) - containers if name.encode() in theirs)
    calls = Calls(chance, names, 0.25)
    users.both("ACL", "SETUSER", "none", "+@all", "&*")
    users.both("ACL", "SETUSER", "reads", "+@all", "&*", "%R~*")
    users.both("ACL", "SETUSER", "writes", "+@all", "&a*", "%W~*")
    users.both("ACL", "SETUSER", "some", "+@all", "-@dangerous", "%W~*", "(+@read %R~[a-m]*)")
    for _ in range(CALLS):
        words = calls.call(chance.choice(names))
        users.both("COMMAND", "GETKEYSANDFLAGS", *words)
        for name in ("none", "reads", "writes", "some"):
            users.both("ACL", "DRYRUN", name, *words)


@pytest.mark.slow
def test_rules_by_chance(users: Pair) -> None:
    """Each user is shown alike, and may do the same."""
    seed = int(os.environ.get("HEADRACE_ACL_SEED", "1"))
    for number in range(USERS):
        chance = random.Random(seed * 1_000_000 + number)
        made = RandomRules(chance)
        name = f"u{number % 7}"
        users.both("ACL", "SETUSER", name, *made.rules())
        if chance.random() < 0.5:
            users.both("ACL", "SETUSER", name, *made.rules())
        show(users, name)
        for _ in range(10):
            users.both("ACL", "DRYRUN", name, *made.request())
