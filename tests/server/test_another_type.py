"""A type that only tests have (``support.tally``) is treated as every other one, in a real server.

It consists of new files and of a line in each table.
"""

from __future__ import annotations

import ast
import os
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from conftest import Factory
from xxhash import xxh3_64_intdigest

from headrace.persistence.forms.records import CHECKSUM, VERSION, Records
from support.build import ROOT
from support.client import RawClient
from support.figures import done, info
from support.process import ServerProcess
from support.tally.form import TallyForm
from support.tally.value import FrozenTally, Tally
from support.waiting import wait_until

TESTS = Path(__file__).parents[1]
TALLY = TESTS / "support" / "tally"
DEBUG = ("--enable-debug-command", "yes")
AOF = ("--appendonly", "yes")
WRONGTYPE = b"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"
BAD = b"-ERR Bad data format\r\n"
OK = b"+OK\r\n"


class TallyServer(ServerProcess):
    """Our server with the registrations of ``support.tally``."""

    def command(self) -> list[str]:
        return [*super().command()[:-1], "support.tally"]

    def variables(self) -> dict[str, str]:
        variables = super().variables()
        paths = [str(TESTS), *variables.get("PYTHONPATH", "").split(os.pathsep)]
        return {**variables, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


@pytest.fixture(scope="module")
def tally_server() -> Iterator[TallyServer]:
    server = TallyServer(*DEBUG)
    try:
        yield server.start()
        server.check_log()
    finally:
        server.discard()


@pytest.fixture
def client(tally_server: TallyServer) -> Iterator[RawClient]:
    with tally_server.client() as client:
        client.call("FLUSHALL")
        yield client


def facts(client: RawClient) -> list[bytes]:
    """All that can be asked about the tallies that ``fill`` makes."""
    asked = [client.call("DEBUG", "DIGEST"), client.call("DBSIZE")]
    for key in ("many", "one", "mortal"):
        asked += [client.call("TALLY.GET", key), client.call("DEBUG", "DIGEST-VALUE", key)]
        asked += [client.call("PEXPIRETIME", key), client.call("TYPE", key)]
    return asked


def fill(client: RawClient) -> None:
    for mark in range(1, 300):
        client.call("TALLY.ADD", "many", mark if mark % 3 else -mark)
    client.call("TALLY.ADD", "one", 2**63 - 1)
    client.call("TALLY.ADD", "mortal", -5)
    client.call("PEXPIREAT", "mortal", 4_102_444_800_000)
    client.call("SET", "text", "x")
    client.call("XADD", "log", "1-1", "f", "v")


def test_at_most_five_registrations() -> None:
    module = ast.parse((TALLY / "registrations.py").read_text())
    names = [
        alias.name for node in module.body if isinstance(node, ast.Import) for alias in node.names
    ]
    calls = [node for node in module.body if isinstance(node, ast.Expr)][1:]
    lines = [node.lineno for node in calls]
    assert all(node.lineno == node.end_lineno for node in calls)
    assert 1 <= len(names) + len(lines) <= 5
    others = [node for node in module.body if not isinstance(node, ast.Expr)]
    assert all(isinstance(node, ast.Import | ast.ImportFrom) for node in others)


def test_nothing_else_knows_of_it() -> None:
    found = subprocess.run(
        ["grep", "-rlE", "support.tally|TALLY|Tally", "--include=*.py", *_packages()],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.stdout == ""


def _packages() -> list[str]:
    wings = "console metrics testkit policies regions"
    return f"compat headrace {wings} persistence protocol server storage".split()


def test_what_keys_of_any_type_answer(client: RawClient) -> None:
    assert client.call("TALLY.ADD", "k", 40) == b":40\r\n"
    assert client.call("TALLY.ADD", "k", 2) == b":42\r\n"
    assert client.call("TALLY.GET", "k") == b":42\r\n"
    assert client.call("TYPE", "k") == b"+tally\r\n"
    assert client.call_parsed("OBJECT", "ENCODING", "k") == b"marks"
    assert client.call("SCAN", 0, "TYPE", "tally") == b"*2\r\n$1\r\n0\r\n*1\r\n$1\r\nk\r\n"
    assert client.call("SCAN", 0, "TYPE", "string") == b"*2\r\n$1\r\n0\r\n*0\r\n"
    before = client.call_parsed("MEMORY", "USAGE", "k")
    assert isinstance(before, int)
    digest = client.call("DEBUG", "DIGEST")
    client.call("TALLY.ADD", "k", 1)
    assert client.call_parsed("MEMORY", "USAGE", "k") == before + 40
    assert client.call("DEBUG", "DIGEST") != digest
    assert b"encoding:marks" in client.call("DEBUG", "OBJECT", "k")
    assert client.call("RENAME", "k", "new") == OK
    assert client.call("TALLY.GET", "new") == b":43\r\n"


def test_commands_are_documented(client: RawClient) -> None:
    told = client.call("COMMAND", "DOCS", "tally.add")
    assert b"Makes a mark." in told
    assert b"mark" in told
    assert b"tally.get" in client.call("COMMAND", "INFO", "tally.get")


def test_a_copy_is_a_value_of_its_own(client: RawClient) -> None:
    client.call("TALLY.ADD", "k", 1)
    assert client.call("COPY", "k", "twin") == b":1\r\n"
    client.call("TALLY.ADD", "twin", 10)
    client.call("TALLY.ADD", "k", 100)
    assert client.call("TALLY.GET", "twin") == b":11\r\n"
    assert client.call("TALLY.GET", "k") == b":101\r\n"


def test_wrong_types(client: RawClient) -> None:
    client.call("TALLY.ADD", "tally", 1)
    client.call("SET", "text", "x")
    client.call("XADD", "log", "1-1", "f", "v")
    for words in (
        ("XADD", "tally", "*", "f", "v"), ("XRANGE", "tally", "-", "+"), ("GET", "tally"),
        ("XREAD", "STREAMS", "tally", "0"), ("INCR", "tally"), ("APPEND", "tally", "x"),
        ("STRLEN", "tally"), ("GETRANGE", "tally", 0, 1), ("XGROUP", "CREATE", "tally", "g", "0"),
        ("TALLY.ADD", "log", 1), ("TALLY.GET", "log"), ("TALLY.GET", "text"),
    ):  # fmt: skip
        assert client.call(*words) == WRONGTYPE, words
    assert client.call("MGET", "tally", "text") == b"*2\r\n$-1\r\n$1\r\nx\r\n"
    assert client.call("TALLY.ADD", "tally", "x").startswith(b"-ERR value is not an integer")
    assert client.call("SET", "tally", "now a string") == OK
    assert client.call("TYPE", "tally") == b"+string\r\n"


def test_what_is_empty_leaves_the_keyspace(client: RawClient) -> None:
    client.call("TALLY.ADD", "k", 7)
    assert client.call("TALLY.ADD", "k", -7) == b":0\r\n"
    assert client.call("EXISTS", "k") == b":0\r\n"
    assert client.call("TYPE", "k") == b"+none\r\n"


def test_dump_and_restore(client: RawClient) -> None:
    fill(client)
    before = facts(client)
    for key in ("many", "one"):
        data = client.call_parsed("DUMP", key)
        assert isinstance(data, bytes)
        digest = client.call("DEBUG", "DIGEST-VALUE", key)
        assert client.call("RESTORE", "twin", 0, data) == OK
        assert client.call("DEBUG", "DIGEST-VALUE", "twin") == digest
        assert client.call("DUMP", "twin") == client.call("DUMP", key)
        client.call("DEL", "twin")
    assert facts(client) == before


def test_what_nobody_could_have_made_is_not_restored(client: RawClient) -> None:
    """Payloads of what is empty, and of what is out of range; their checksums are right."""
    for marks, reply in (([3, -3], BAD), ([2**63], BAD), ([3, -2], OK)):
        records = Records()
        TallyForm().writer(records).add(b"", FrozenTally(Tally(marks)), -1)
        records.flush()
        body = b"".join(records.payloads[0]) + VERSION.to_bytes(2, "little")
        data = body + CHECKSUM.pack(xxh3_64_intdigest(body))
        assert client.call("RESTORE", "k", 0, data) == reply


def was_freed(client: RawClient, before: int) -> bool:
    return info(client, "lazyfreed_objects") > before


def test_it_is_freed_in_slices(client: RawClient) -> None:
    for words in (("UNLINK", "many"), ("FLUSHALL", "ASYNC"), ("FLUSHALL", "SYNC"), ("DEL", "many")):
        for mark in range(1, 50):
            client.call("TALLY.ADD", "many", mark)
        freed = info(client, "lazyfreed_objects")
        client.call(*words)
        assert client.call("EXISTS", "many") == b":0\r\n"
        wait_until(partial(was_freed, client, freed))
        done(client, "lazyfree_pending_objects")


def test_it_expires(client: RawClient) -> None:
    client.call("TALLY.ADD", "k", 1)
    client.call("PEXPIRE", "k", 1)
    wait_until(lambda: client.call("DBSIZE") == b":0\r\n")


def test_a_reload_changes_nothing(client: RawClient) -> None:
    fill(client)
    before = facts(client)
    assert client.call("DEBUG", "RELOAD") == OK
    assert facts(client) == before


# Files


@pytest.fixture
def start() -> Iterator[Factory]:
    """Starts servers of the test's own."""
    factory = Factory(TallyServer)
    yield factory
    factory.finish()


def test_a_snapshot_brings_it_back(start: Factory) -> None:
    server = start(*DEBUG)
    with server.client() as client:
        fill(client)
        before = facts(client)
        client.call("BGSAVE")
        done(client, "rdb_bgsave_in_progress")
        client.call("TALLY.ADD", "many", 1)
    server.restart(crash=True)
    with server.client() as client:
        assert facts(client) == before


def test_a_snapshot_holds_what_there_was_when_it_began(start: Factory) -> None:
    server = start(*DEBUG, "--rdb-key-save-delay", "1000000")
    with server.client() as client:
        for number in range(40):
            client.call("TALLY.ADD", f"k{number}", number + 1)
        before = client.call("DEBUG", "DIGEST")
        client.call("BGSAVE")
        for number in range(40):
            client.call("TALLY.ADD", f"k{number}", 1000)
            client.call("DEL", f"k{number + 20}")
        assert info(client, "rdb_bgsave_in_progress") == 1, "it was over before the changes"
        client.call("CONFIG", "SET", "rdb-key-save-delay", 0)
        done(client, "rdb_bgsave_in_progress")
    server.restart(crash=True)
    with server.client() as client:
        assert client.call("DEBUG", "DIGEST") == before


@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_an_append_only_folder_brings_it_back(start: Factory, preamble: str) -> None:
    server = start(*DEBUG, *AOF, "--aof-use-rdb-preamble", preamble)
    with server.client() as client:
        fill(client)
        client.call("TALLY.ADD", "gone", 1)
        before_rewrite = facts(client)
        data = client.call_parsed("DUMP", "many")
    server.restart(crash=True)
    with server.client() as client:
        assert facts(client) == before_rewrite
        client.call("BGREWRITEAOF")
        done(client, "aof_rewrite_in_progress")
        done(client, "aof_rewrite_scheduled")
        client.call("TALLY.ADD", "gone", -1)
        client.call("TALLY.ADD", "many", 5)
        assert isinstance(data, bytes)
        assert client.call("RESTORE", "restored", 0, data) == OK
        after = facts(client)
        restored = client.call("TALLY.GET", "restored")
    base = next((server.directory / "appendonlydir").glob("*.base.*")).read_bytes()
    assert (b"TALLY.ADD" in base) == (preamble == "no")
    server.restart(crash=True)
    with server.client() as client:
        assert facts(client) == after
        assert client.call("TALLY.GET", "restored") == restored
        assert client.call("EXISTS", "gone") == b":0\r\n"
