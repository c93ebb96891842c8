"""The command table against its documentation, and against the real Redis."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import termios

import pytest

import headrace.server.commands.families  # noqa: F401  (fills the table)
from headrace.server.commands.documentation import documentation
from headrace.server.dispatch.rows import TABLE, Command
from support.client import RawClient, Status, WireError
from support.process import Pair, RedisProcess, ServerProcess
from support.waiting import DEADLINE_S

FIELDS = ("name", "arity", "flags", "first", "last", "step", "categories", "tips", "specs")

NEWER_USES = [
    "bitfield k get u8 0 overflow fail",
    "bitfield k get u8 0 set u8 0 1",
    "bitfield k get u8",
    "georadius k 0 0 1 m store a store b",
    "georadiusbymember k m 1 m storedist a",
    "migrate h 1 k 0 1 keys a",
    "migrate h 1 k 0 1 keys",
    "migrate h 1 k 0 1 auth keys auth2 keys keys copy",
    "msetex 2 a b c d",
    "msetex 02 a b c d",
    "pfmerge k",
    "sort k get a store b",
    "sort_ro k get a store b",
    "set k v IFEQ a", "set k v ifne a", "set k v EX 1 IFDEQ a", "set k v IFDNE a",
    "set k v IFEQ get", "set k v get ifeq a", "set k v nx", "delex k", "delex k IFEQ v",
    "delex k ifne v", "delex k IFDEQ v", "delex k IFDNE v", "delex k v IFEQ", "delex k FOO v",
    "msetex 2 a v b w NX", "increx k", "digest k", "xread streams a b 0 0",
    "xreadgroup group g c streams a b > >",
]  # fmt: skip

DOCS = documentation()


def all_rows() -> list[Command]:
    rows: list[Command] = []
    for row in TABLE.values():
        rows.append(row)
        rows.extend(row.subcommands.values())
    return rows


def test_every_row_is_documented_and_every_document_has_a_row() -> None:
    assert {row.name.decode() for row in all_rows()} == set(DOCS)


def test_documented_keys_point_at_key_specs() -> None:
    for row in all_rows():
        pending = list(DOCS[row.name.decode()].arguments())
        used: set[int] = set()
        while pending:
            argument = pending.pop()
            pending += argument.arguments
            if argument.key_spec >= 0:
                used.add(argument.key_spec)
        real_keys = {i for i, spec in enumerate(row.keys) if "NOT_KEY" not in spec.flags}
        assert used == real_keys, row.name


def test_plain_commands_run_and_containers_hold_help() -> None:
    for row in TABLE.values():
        assert row.run is not None or row.subcommands, row.name
        if row.subcommands and row.name != b"himport":  # Redis's has none
            assert b"help" in row.subcommands, row.name


def info_by_field(entry: object) -> dict[str, object]:
    """One reply of COMMAND INFO, comparable: sets sorted, remarks on key specs left out."""
    assert isinstance(entry, list)
    assert len(entry) == 10
    fields: dict[str, object] = {}
    for name, value in zip(FIELDS, entry, strict=False):
        if name in ("flags", "categories", "tips"):
            value = sorted(value)
        elif name == "specs":
            value = [spec_of(spec) for spec in value]
        fields[name] = value
    return fields


def spec_of(spec: object) -> dict[object, object]:
    assert isinstance(spec, dict)
    return {k: sorted(v) if k == b"flags" else v for k, v in spec.items() if k != b"notes"}


@pytest.mark.since(8, 10)
def test_info_is_that_of_redis(server: ServerProcess, redis_server: RedisProcess) -> None:
    names = [row.name for row in all_rows()]
    with server.client(resp3=True) as ours, redis_server.client(resp3=True) as real:
        here = ours.call_parsed("COMMAND", "INFO", *names)
        there = real.call_parsed("COMMAND", "INFO", *names)
    assert isinstance(here, list)
    assert isinstance(there, list)
    found = {}
    for name, mine, theirs in zip(names, here, there, strict=True):
        if theirs is None:
            continue
        fields, expected = info_by_field(mine), info_by_field(theirs)
        for field in FIELDS:
            if fields[field] != expected[field]:
                found[name.decode(), field] = (fields[field], expected[field])
    assert found == {}


def shown(arguments: object) -> object:
    """A tree of arguments less what is said of them, and less what our notation has no word for."""
    assert isinstance(arguments, list)
    kept = []
    for argument in arguments:
        argument = {name: value for name, value in argument.items() if name != b"summary"}
        if b"arguments" in argument:
            argument[b"arguments"] = shown(argument[b"arguments"])
        if b"flags" in argument:
            argument[b"flags"] = [flag for flag in argument[b"flags"] if flag != b"multiple_token"]
        kept.append(argument)
    return kept


@pytest.mark.since(8, 10)
def test_documented_arguments_are_those_of_redis(
    server: ServerProcess, redis_server: RedisProcess
) -> None:
    names = [row.name for row in all_rows()]
    with server.client(resp3=True) as ours, redis_server.client(resp3=True) as real:
        here = ours.call_parsed("COMMAND", "DOCS", *names)
        there = real.call_parsed("COMMAND", "DOCS", *names)
    assert isinstance(here, dict)
    assert isinstance(there, dict)
    assert set(here) == set(names)
    for name, theirs in there.items():
        mine = here[name]
        assert shown(mine.get(b"arguments", [])) == shown(theirs.get(b"arguments", [])), name
        for key in (b"group", b"since", b"doc_flags", b"deprecated_since", b"replaced_by"):
            assert mine.get(key) == theirs.get(key), (name, key)
        assert (b"complexity" in mine) == (b"complexity" in theirs), name
        if b"subcommands" in mine:
            assert all(child.startswith(name + b"|") for child in mine[b"subcommands"])


def test_shapes_of_docs(client: RawClient, client3: RawClient) -> None:
    (name, body), *others = as_pairs(client.call_parsed("COMMAND", "DOCS", "getset"))
    assert (name, others) == (b"getset", [])
    assert [key for key, _ in as_pairs(body)] == [
        b"summary",
        b"since",
        b"group",
        b"complexity",
        b"doc_flags",
        b"deprecated_since",
        b"replaced_by",
        b"arguments",
    ]
    raw = client3.call("COMMAND", "DOCS", "GetSet", "no-such-command")
    assert raw.startswith(b"%1\r\n$6\r\ngetset\r\n%8\r\n$7\r\nsummary\r\n")
    assert b"$9\r\ndoc_flags\r\n~1\r\n+deprecated\r\n" in raw
    whole = client3.call_parsed("COMMAND", "DOCS")
    assert isinstance(whole, dict)
    assert set(whole) == set(TABLE)
    assert set(whole[b"config"][b"subcommands"]) >= {b"config|get", b"config|set"}
    one = client3.call_parsed("COMMAND", "DOCS", "config|get")
    assert list(one) == [b"config|get"]  # type: ignore[call-overload]


def as_pairs(flat: object) -> list[tuple[object, object]]:
    assert isinstance(flat, list)
    return list(zip(flat[::2], flat[1::2], strict=True))


@pytest.mark.since(8, 0)  # Valkey has flags of its own
@pytest.mark.parametrize("name", ["get", "MSET", "rename", "expire", "ping", "type", "watch"])
def test_info_bytes(pair: Pair, pair3: Pair, name: str) -> None:
    pair.both("COMMAND", "INFO", name)
    pair3.both("COMMAND", "INFO", name)


def test_info_of_unknown_commands(client: RawClient, client3: RawClient) -> None:
    assert client.call("COMMAND", "INFO", "no-such") == b"*1\r\n$-1\r\n"
    assert client3.call("COMMAND", "INFO", "config|no-such", "get|x") == b"*2\r\n_\r\n_\r\n"


def test_all_commands(client: RawClient) -> None:
    entries = client.call_parsed("COMMAND")
    assert isinstance(entries, list)
    assert sorted(entry[0] for entry in entries) == sorted(TABLE)
    assert client.call_parsed("COMMAND", "INFO") == entries
    assert client.call_parsed("COMMAND", "COUNT") == len(TABLE)


def test_list(client: RawClient) -> None:
    names = {row.name for row in all_rows()}
    assert set(lines(client, "COMMAND", "LIST")) == names
    assert lines(client, "command", "list", "filterby", "module", "some") == []
    assert lines(client, "COMMAND", "LIST", "FILTERBY", "ACLCAT", "no-such") == []


def lines(client: RawClient, *arguments: str) -> list[bytes]:
    reply = client.call_parsed(*arguments)
    assert isinstance(reply, list)
    return reply


@pytest.mark.parametrize(
    "wanted",
    [
        ("ACLCAT", "string"),
        ("aclcat", "STREAM"),
        ("ACLCAT", "dangerous"),
        ("ACLCAT", "pubsub"),
        ("PATTERN", "x*"),
        ("PATTERN", "CONFIG|[gs]et"),
        ("PATTERN", "?et"),
    ],
)
def test_filtered_list(pair: Pair, wanted: tuple[str, str]) -> None:
    ours = lines(pair.ours, "COMMAND", "LIST", "FILTERBY", *wanted)
    real = lines(pair.real, "COMMAND", "LIST", "FILTERBY", *wanted)
    both = set(lines(pair.real, "COMMAND", "LIST")) & {row.name for row in all_rows()}
    assert set(ours) & both == set(real) & both
    assert len(ours) == len(set(ours)) > 0


@pytest.mark.parametrize(
    "request_line",
    [
        "COMMAND NOSUCH",
        "COMMAND COUNT x",
        "COMMAND LIST x",
        "COMMAND LIST FILTERBY",
        "COMMAND LIST FILTERBY ACLCAT",
        "COMMAND LIST FILTERBY WHAT x",
        "COMMAND LIST FILTERBY ACLCAT x y",
        "COMMAND LIST FILTERBY ACLCAT x FILTERBY ACLCAT y",
        "COMMAND GETKEYS",
        "COMMAND GETKEYS nosuch a",
        "COMMAND GETKEYS config nosuch",
        "COMMAND GETKEYS config get x",
        "COMMAND GETKEYS ping x",
        "COMMAND GETKEYS ssubscribe x",
        "COMMAND GETKEYS get a b",
        "COMMAND GETKEYS rename a",
        "COMMAND GETKEYS get a",
        "COMMAND GETKEYS GETEX a ex 1",
        "COMMAND GETKEYS mget a b c",
        "COMMAND GETKEYS mset a 1 b 2",
        "COMMAND GETKEYS mset a 1 b",
        "COMMAND GETKEYS rename a b",
        "COMMAND GETKEYS copy a b replace",
        "COMMAND GETKEYS object freq a",
        "COMMAND GETKEYS memory usage a",
        "COMMAND GETKEYS xadd s * f v",
        "COMMAND GETKEYS xread count 1 streams a b 0 0",
        "COMMAND GETKEYS xinfo stream s full",
        "COMMAND GETKEYS watch a b",
        "COMMAND GETKEYSANDFLAGS set k v",
        "COMMAND GETKEYSANDFLAGS set k v ex 10 get",
        "COMMAND GETKEYSANDFLAGS rename a b",
        "COMMAND GETKEYSANDFLAGS mset a 1 b 2",
        "COMMAND GETKEYSANDFLAGS del a b",
        "COMMAND GETKEYSANDFLAGS ping x",
        "COMMAND GETKEYSANDFLAGS get a b",
        *[
            f"COMMAND {subcommand} {line.format(count)}"
            for subcommand in ("GETKEYS", "GETKEYSANDFLAGS")
            for line in ("blmpop 0 {} a b left", "zunionstore d {} a b", "eval x {} a b")
            for count in ("0", "2", "3", "x", "01", "+2", "1.0")
        ],
        *[
            pytest.param(f"COMMAND GETKEYSANDFLAGS {line}", marks=pytest.mark.since(8, 10))
            for line in NEWER_USES
        ],
    ],
)
def test_keys_and_errors_are_those_of_redis(pair: Pair, pair3: Pair, request_line: str) -> None:
    pair.both(*request_line.split())
    pair3.both(*request_line.split())


def test_keys_named_as_options(client: RawClient) -> None:
    reply = client.call_parsed("COMMAND", "GETKEYS", "XREAD", "STREAMS", "STREAMS", "streams", 0, 0)
    assert reply == [b"STREAMS", b"streams"]
    reply = client.call_parsed("COMMAND", "GETKEYS", "MSETEX", 2, "a", 1, "b", 2, "EX", 10)
    assert reply == [b"a", b"b"]
    # Redis guessed keys here before 8.10, which reads the options as XREAD itself does.
    wrong = client.call_parsed("COMMAND", "GETKEYS", "XREAD", "STREAMS", "a", "b", 0)
    assert wrong == WireError(b"ERR Invalid arguments specified for command")


@pytest.mark.usefixtures("redis_server")  # whose package brings redis-cli
def test_redis_cli_shows_hints(server: ServerProcess) -> None:
    cli = shutil.which("redis-cli")
    assert cli is not None
    controller, terminal = pty.openpty()
    termios.tcsetwinsize(controller, (50, 300))
    with subprocess.Popen(
        [cli, "-p", str(server.port)],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env={**os.environ, "TERM": "xterm", "HOME": str(server.directory)},
    ) as process:
        os.close(terminal)
        try:
            read_terminal(controller, b"> ")
            os.write(controller, b"getex k ")
            read_terminal(controller, b"[EX seconds|PX milliseconds|EXAT unix-time-seconds|")
        finally:
            process.kill()
            os.close(controller)


def read_terminal(controller: int, expected: bytes) -> None:
    """Read what a program prints until ``expected`` is there; fails when it stays away."""
    shown = b""
    while expected not in shown:
        assert select.select([controller], [], [], DEADLINE_S)[0], shown
        shown += os.read(controller, 65536)


def test_help(client: RawClient) -> None:
    for row in TABLE.values():
        # HELP of cluster is refused, and there is none of himport, as in Redis.
        if not row.subcommands or row.name in (b"cluster", b"himport"):
            continue
        reply = lines(client, row.name.decode(), "help")
        assert all(isinstance(line, Status) for line in reply)
        first, *rest = reply
        assert first == row.name.upper() + (
            b" <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"
        )
        shown = {line.split()[0].lower() for line in rest if not line.startswith(b" ")}
        assert shown >= set(row.subcommands)
        wrong = client.call_parsed(row.name, "HELP", "x")
        assert wrong == WireError(b"ERR wrong number of arguments for '%b|help' command" % row.name)
