"""What a region is configured by, and what it cannot be configured to."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Factory

from headrace.compat.errors import CommandError
from headrace.compat.parameters import BadValue
from headrace.server.config.config import Config
from headrace.server.config.files import Arguments, ConfigError, Loader
from headrace.server.config.kinds import PeerAddress
from headrace.server.config.parameters import BY_NAME
from support.process import ServerProcess

REGION = ["--aa-region-id", "1", "--appendonly", "yes"]


def load(*words: str) -> Config:
    config = Config()
    Loader(config).load(Arguments([word.encode() for word in words]), b"")
    return config


def test_without_regions_nothing_is_asked_for() -> None:
    config = load("--appendonly", "no", "--aof-use-rdb-preamble", "no", "--aa-peers", "1 a 1")
    assert config.aa_region_id == 0
    assert config.databases == 16


def test_a_region_has_one_database() -> None:
    assert load(*REGION, "--databases", "4").databases == 1


@pytest.mark.parametrize("text", ["", "databases 4\n", "databases 16\n"])
def test_the_file_of_a_region_keeps_what_it_says_of_databases(tmp_path: Path, text: str) -> None:
    text += "aa-region-id 1\nappendonly yes\n"
    with ServerProcess(directory=tmp_path, config=text) as server:
        assert server.call("CONFIG", "GET", "databases") == [b"databases", b"1"]
        for hz in ("20", "30"):
            server.call("CONFIG", "SET", "hz", hz)
            assert server.call("CONFIG", "REWRITE") == b"OK"
        lines = server.config_path.read_text().splitlines()
        assert [line for line in lines if "databases" in line] == text.splitlines()[:-2]
        assert "hz 30" in lines


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--aa-region-id", "1"], "needs appendonly yes"),
        ([*REGION, "--appendonly", "no"], "needs appendonly yes"),
        ([*REGION, "--aof-use-rdb-preamble", "no"], "needs aof-use-rdb-preamble yes"),
        ([*REGION, "--aa-peers", "2 a 1, 1 b 1"], "aa-peers names the region itself"),
        ([*REGION, "--aa-region-id", "16"], "between 0 and 15"),
        ([*REGION, "--aa-database", ""], "empty"),
        ([*REGION, "--aa-database", "d" * 257], "256 bytes at most"),
        ([*REGION, "--aa-port", "7400", "--port", "7400"], "cannot be the port of clients"),
    ],
)
def test_a_start_that_no_region_can_have_is_refused(words: list[str], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        load(*words)


def test_peers_are_read_in_every_form() -> None:
    both = [PeerAddress(2, b"eu.example", 7400), PeerAddress(3, b"::1", 7401)]
    config = Config()
    loader = Loader(config)
    loader.load_text(b"aa-peers 3 ::1 7401, 2 eu.example 7400", "a test", 0)
    assert config.aa_peers == both
    loader.load_text(b'aa-peers ""', "a test", 0)
    assert config.aa_peers == []
    loader.load_text(b'aa-peers "2 eu.example 7400,3 ::1 7401"', "a test", 0)
    assert config.aa_peers == both
    assert config.text(b"aa-peers") == b"2 eu.example 7400, 3 ::1 7401"
    config.set_many([(b"aa-peers", b"")], False, False)
    assert config.aa_peers == []
    config.set_many([(b"aa-peers", b"2 eu.example 7400, 3 ::1 7401")], False, False)
    assert config.aa_peers == both
    again = Config()
    for line, _ in BY_NAME[b"aa-peers"].lines(config.aa_peers):
        Loader(again).load_text(line, "a test", 0)
    assert again.aa_peers == both


@pytest.mark.parametrize(
    "text", [b"2 a", b"2 a 1 3", b"0 a 1", b"16 a 1", b"x a 1", b"2 a 0", b"2 a 65536", b"2 a 1,"]
)
def test_what_is_no_peer(text: bytes) -> None:
    with pytest.raises(BadValue):
        BY_NAME[b"aa-peers"].read([text], [])


def test_a_region_may_have_several_addresses() -> None:
    row = BY_NAME[b"aa-peers"]
    found = row.read([b"3 b 2, 2 c 3, 2 a 1"], [])
    assert found == [PeerAddress(2, b"c", 3), PeerAddress(2, b"a", 1), PeerAddress(3, b"b", 2)]
    with pytest.raises(BadValue, match="twice"):
        row.read([b"2 a 1, 3 b 2, 2 a 1"], [])


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        (b"appendonly", b"no", b"needs appendonly yes"),
        (b"aof-use-rdb-preamble", b"no", b"needs aof-use-rdb-preamble yes"),
        (b"aa-peers", b"1 a 1", b"aa-peers names the region itself"),
        (b"port", b"7400", b"cannot be the port of clients"),
        (b"aa-region-id", b"2", b"can't set immutable config"),
        (b"databases", b"16", b"can't set immutable config"),
    ],
)
def test_a_running_region_keeps_what_it_needs(name: bytes, value: bytes, reason: bytes) -> None:
    config = load(*REGION, "--aa-port", "7400")
    before = config.get([b"*"])
    with pytest.raises(CommandError) as raised:
        config.set_many([(b"hz", b"20"), (name, value)], False, False)
    assert b"argument '%b'" % name in raised.value.line
    assert reason in raised.value.line
    assert config.get([b"*"]) == before


def test_the_mode_of_ids_has_a_second_name() -> None:
    config = load(*REGION)
    config.set_many([(b"crdt_xadd_id_uniqueness_mode", b"LIBERAL")], False, False)
    assert config.aa_xadd_id_mode == b"liberal"
    assert config.get([b"crdt_xadd_id_uniqueness_mode"]) == [
        (b"crdt_xadd_id_uniqueness_mode", b"liberal")
    ]


def test_a_server_as_a_region(fresh_server: Factory) -> None:
    server = fresh_server(*REGION, "--aa-secret", "hush", "--save", "")
    with server.client() as client:
        assert client.call("SELECT", "1") == b"-ERR DB index is out of range\r\n"
        for name in ("appendonly", "aof-use-rdb-preamble"):
            assert client.call("CONFIG", "SET", name, "no").startswith(b"-ERR CONFIG SET failed")
            assert client.call_parsed("CONFIG", "GET", name) == [name.encode(), b"yes"]
        assert client.call("CONFIG", "SET", "aa-xadd-id-mode", "semi-strict") == b"+OK\r\n"
        assert b"hush" not in client.call("INFO", "everything")
    assert "hush" not in server.log()
