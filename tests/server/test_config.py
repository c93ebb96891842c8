"""Configuration as a value: parameters, CONFIG GET and SET against the real Redis, REWRITE."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.compat.errors import CommandError
from headrace.compat.event_classes import flags_of, letters_of
from headrace.compat.parameters import memory_size, memory_text
from headrace.server.config.config import Config
from headrace.server.config.docs import render
from headrace.server.config.files import MARK, UNKNOWN, Arguments, Loader, rewrite, rewritten
from headrace.server.config.parameters import (
    ACTIVE,
    ALL,
    BY_NAME,
    INERT,
    BadTable,
    is_sensitive,
    read_table,
)
from headrace.storage.stream.contents import IDMP_DURATION_S, IDMP_MAXSIZE
from support.client import WireError
from support.process import RedisProcess

# What we have another default for by choice, or what the fixture set in the real Redis.
OTHER_DEFAULTS = {
    b"bind",
    b"dbfilename",
    b"dir",
    b"enable-debug-command",
    b"port",
    b"save",
}

# Parameters and values to try: every kind, at its edges and beyond them.
SETTINGS: list[tuple[str, str]] = [
    ("appendfsync", "sometimes"),
    ("appendfsync", "ALWAYS"),
    ("appendfsync", ""),
    ("activerehashing", "maybe"),
    ("activerehashing", "NO"),
    ("activerehashing", ""),
    ("timeout", "12"),
    ("timeout", "-1"),
    ("timeout", "+1"),
    ("timeout", "01"),
    ("timeout", "1.5"),
    ("timeout", ""),
    ("timeout", "2147483648"),
    ("timeout", "99999999999999999999"),
    ("timeout", " 1"),
    ("hz", "0"),
    ("hz", "1000"),
    ("hz", "-5"),
    ("maxclients", "0"),
    ("slowlog-log-slower-than", "-1"),
    ("slowlog-log-slower-than", "-2"),
    ("slowlog-max-len", "-1"),
    ("latency-monitor-threshold", "100"),
    ("list-max-listpack-size", "-2147483649"),
    ("list-max-ziplist-size", "-3"),
    ("active-expire-effort", "11"),
    ("maxmemory", "1kb"),
    ("maxmemory", "1k"),
    ("maxmemory", "2Mb"),
    ("maxmemory", "3g"),
    ("maxmemory", "3GB"),
    ("maxmemory", "7B"),
    ("maxmemory", "lots"),
    ("maxmemory", "-1"),
    ("maxmemory", "1tb"),
    ("maxmemory", "1.5gb"),
    ("maxmemory", "kb"),
    ("maxmemory", ""),
    ("maxmemory", "18446744073709551615"),
    ("maxmemory", "99999999999999999999999"),
    ("maxmemory", "0"),
    ("maxmemory-clients", "5%"),
    ("maxmemory-clients", "101%"),
    ("maxmemory-clients", "-5%"),
    ("maxmemory-clients", "%"),
    ("maxmemory-clients", "1gb"),
    ("maxmemory-clients", "0"),
    ("maxmemory-clients", "x"),
    ("maxmemory-policy", "allkeys-lru"),
    ("maxmemory-policy", "noeviction"),
    ("proto-max-bulk-len", "1"),
    ("proto-max-bulk-len", "1mb"),
    ("client-query-buffer-limit", "1000"),
    ("stream-node-max-entries", "-1"),
    ("stream-node-max-entries", "10"),
    ("stream-node-max-bytes", "4kb"),
    ("stream-node-max-bytes", "x"),
    ("hash-max-ziplist-entries", "10"),
    ("hash-max-listpack-entries", "-10"),
    ("repl-backlog-size", "0"),
    ("save", ""),
    ("save", "100 1"),
    ("save", "100 1 20 30"),
    ("save", "100"),
    ("save", "0 1"),
    ("save", "100 -1"),
    ("save", "a b"),
    ("save", "100  1"),
    ("client-output-buffer-limit", "normal 1mb 2mb 60"),
    ("client-output-buffer-limit", "slave 1 2 3 pubsub 4 5 6"),
    ("client-output-buffer-limit", "replica 10 20 30"),
    ("client-output-buffer-limit", "normal 1mb 2mb"),
    ("client-output-buffer-limit", "master 1 2 3"),
    ("client-output-buffer-limit", "wrong 1 2 3"),
    ("client-output-buffer-limit", "normal x 2 3"),
    ("client-output-buffer-limit", "normal 1 2 -3"),
    ("client-output-buffer-limit", "normal 1 2 3 pubsub 1 x 1"),
    ("client-output-buffer-limit", ""),
    ("notify-keyspace-events", "KEA"),
    ("notify-keyspace-events", "Kgx$lshzetdm"),
    ("notify-keyspace-events", "EKxg"),
    ("notify-keyspace-events", "KEAn"),
    ("notify-keyspace-events", "Kn"),
    ("notify-keyspace-events", ""),
    ("latency-tracking-info-percentiles", "50 99.9 100"),
    ("latency-tracking-info-percentiles", "50.100 0"),
    ("latency-tracking-info-percentiles", "101"),
    ("latency-tracking-info-percentiles", "-1"),
    ("latency-tracking-info-percentiles", "x"),
    ("latency-tracking-info-percentiles", ""),
    ("oom-score-adj-values", "1 2"),
    ("oom-score-adj-values", "1 2 x"),
    ("oom-score-adj-values", "1 2 3000"),
    ("shutdown-on-sigterm", "nosave now"),
    ("shutdown-on-sigterm", "now nosave now"),
    ("shutdown-on-sigterm", "save nosave"),
    ("shutdown-on-sigterm", "default"),
    ("shutdown-on-sigterm", "default force"),
    ("requirepass", ""),
    ("masterauth", "secret"),
    ("dir", "/"),
    ("dbfilename", "other.rdb"),
    ("loglevel", "Verbose"),
    ("tcp-backlog", "10"),
    ("databases", "10"),
    ("daemonize", "yes"),
    ("slaveof", "a 1"),
    ("replicaof", "no one"),
    ("unixsocketperm", "777"),
    ("no-such-thing", "1"),
    ("", "1"),
]


def our_set(config: Config, *words: str, protected: bool = False) -> object:
    """CONFIG SET on a configuration alone; the reply as the raw client parses one."""
    pairs = list(
        zip([w.encode() for w in words[::2]], [w.encode() for w in words[1::2]], strict=True)
    )
    try:
        config.set_many(pairs, protected, False)
    except CommandError as error:
        return WireError(error.line)
    return b"OK"


def our_get(config: Config, *patterns: str) -> dict[bytes, bytes]:
    return dict(config.get([pattern.encode() for pattern in patterns]))


def real_get(redis: RedisProcess, *patterns: str) -> dict[bytes, bytes]:
    reply = redis.call("CONFIG", "GET", *patterns)
    assert isinstance(reply, list)
    return dict(zip(reply[::2], reply[1::2], strict=True))


def real_set(redis: RedisProcess, *words: str) -> object:
    with redis.client() as client:
        return client.call_parsed("CONFIG", "SET", *words)


def load(text: str, config: Config | None = None) -> Config:
    config = config or Config()
    Loader(config).load_text(text.encode(), "a test", 0)
    return config


# Against the real Redis


@pytest.mark.judge
@pytest.mark.since(8, 0)  # Valkey has others
def test_every_parameter_of_redis_is_known_with_its_default(redis_server: RedisProcess) -> None:
    config = Config()
    real = real_get(redis_server, "*")
    ours = our_get(config, "*")
    assert set(real) - set(ours) == set()
    newer = {b"repl-rdb-channel"} if redis_server.version < (8, 10) else set()
    differing = {name for name in real.keys() - newer if ours[name] != real[name]}
    assert differing - OTHER_DEFAULTS == set()


@pytest.mark.judge
@pytest.mark.since(8, 10)
def test_config_set_answers_and_stores_as_redis(fresh_redis: Callable[..., RedisProcess]) -> None:
    redis = fresh_redis("--dbfilename", "dump.hrs")  # CONFIG SET may not change it there
    config = Config()
    for name, value in SETTINGS:
        if name == "oom-score-adj-values" and value == "1 2":
            our_set(config, "save", "")
            real_set(redis, "save", "")
        real = real_set(redis, name, value)
        assert our_set(config, name, value) == real, (name, value)
        if name != "dir":
            assert our_get(config, name) == real_get(redis, name), (name, value)


@pytest.mark.judge
@pytest.mark.parametrize(
    "words",
    [
        ("timeout", "1", "timeout", "2"),
        ("timeout", "1", "TIMEOUT", "2"),
        ("timeout", "5", "hz", "x"),
        ("hz", "x", "nothing", "1"),
        ("nothing", "1", "databases", "2"),
        ("databases", "2", "nothing", "1"),
        ("HZ", "x"),
        ("Databases", "1"),
        pytest.param(
            ("slave-priority", "1", "replica-priority", "2"), marks=pytest.mark.since(8, 10)
        ),
        ("slave-priority", "1", "slave-priority", "2"),
        ("slave-priority", "-1"),
    ],
)
def test_config_set_of_several_answers_as_redis(
    redis_server: RedisProcess, words: tuple[str, ...]
) -> None:
    config = Config()
    before = our_get(config, "*")
    real_before = real_get(redis_server, "*")
    real = real_set(redis_server, *words)
    ours = our_set(config, *words)
    assert ours == real
    if isinstance(real, WireError):
        assert our_get(config, "*") == before
        assert real_get(redis_server, "*") == real_before
    redis_server.call("CONFIG", "SET", "timeout", "0", "hz", "10", "replica-priority", "100")


@pytest.mark.judge
@pytest.mark.parametrize(
    "patterns",
    [
        ("MaxMemory",),
        ("maxmemory*",),
        ("MAXMEMORY*",),
        pytest.param(("slave*",), marks=pytest.mark.since(8, 0)),
        ("maxmemory", "MAXMEMORY", "max*memory"),
        ("stream-node-max-?????",),
        ("list-max-[lz]*-size",),
        ("key-load-delay",),
        ("key-load*",),
        ("watchdog-period", "hz"),
        ("nothing",),
        ("nothing*", "timeout"),
    ],
)
def test_config_get_finds_what_redis_finds(
    redis_server: RedisProcess, patterns: tuple[str, ...]
) -> None:
    assert our_get(Config(), *patterns) == real_get(redis_server, *patterns)


# Values


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (b"0", 0),
        (b"1k", 1000),
        (b"1kb", 1024),
        (b"2M", 2_000_000),
        (b"2mB", 2 << 20),
        (b"3g", 3_000_000_000),
        (b"3Gb", 3 << 30),
        (b"5b", 5),
        (b"-1", None),
        (b"1 kb", None),
        (b"1x", None),
        (b"1.5mb", None),
    ],
)
def test_memory_units(text: bytes, size: int | None) -> None:
    assert memory_size(text) == size


@pytest.mark.parametrize("size", [0, 1, 1023, 1024, 1536, 1 << 20, 3 << 30, (1 << 30) + 1])
def test_memory_text_reads_back(size: int) -> None:
    assert memory_size(memory_text(size)) == size


def test_each_parameter_reads_back_what_it_writes() -> None:
    config = Config()
    for row in ALL:
        for line, _ in row.lines(config.value(row)):
            load(line.decode())
        assert config.text(row.wire) == row.show(config.value(row))


def test_tables_do_not_overlap() -> None:
    names = [row.name for row in ALL]
    assert len(names) == len(set(names))
    assert len(BY_NAME) == len(ALL) + sum(bool(row.alias) for row in ALL)
    assert all(row.doc for row in ACTIVE)
    assert not any(row.doc for row in INERT)


def test_every_active_parameter_has_its_attribute(repo: Path) -> None:
    config = Config()
    for row in ACTIVE:
        assert type(getattr(config, row.attribute)) is type(row.default), row.name
    # From the source: a compiled class has no annotations.
    tree = ast.parse((repo / "server" / "config" / "config.py").read_text())
    (body,) = [n.body for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Config"]
    names = [ast.unparse(n.target) for n in body if isinstance(n, ast.AnnAssign)]
    assert sorted(names) == sorted(row.attribute for row in ACTIVE)


@pytest.mark.parametrize("letters", [b"", b"AKE", b"gK", b"AKEm", b"gxtnocKE", b"AKESTIV"])
def test_event_letters_read_back(letters: bytes) -> None:
    flags = flags_of(letters)
    assert flags is not None
    assert letters_of(flags) == letters


def test_event_letters_that_mean_nothing() -> None:
    assert flags_of(b"KEq") is None


def test_sensitive_parameters() -> None:
    assert is_sensitive(b"RequirePass")
    assert is_sensitive(b"masterauth")
    assert is_sensitive(b"AA-secret")
    assert not is_sensitive(b"maxmemory")
    assert not is_sensitive(b"nothing")


# Hooks


def test_hook_sees_the_new_value_and_only_changes() -> None:
    config = Config()
    seen: list[int] = []
    config.on_change["timeout"] = lambda: seen.append(config.timeout)
    our_set(config, "timeout", "5")
    our_set(config, "timeout", "5")
    our_set(config, "hz", "20")
    assert seen == [5]


def test_refusing_hook_puts_everything_back() -> None:
    config = Config()
    seen: list[tuple[str, int, int]] = []

    def on_timeout() -> str | None:
        seen.append(("timeout", config.timeout, config.hz))
        return None

    def on_hz() -> str | None:
        seen.append(("hz", config.timeout, config.hz))
        return "not today" if config.hz == 20 else None

    config.on_change["timeout"] = on_timeout
    config.on_change["hz"] = on_hz
    reply = our_set(config, "timeout", "5", "hz", "20")
    assert reply == WireError(
        b"ERR CONFIG SET failed (possibly related to argument 'hz') - not today"
    )
    assert (config.timeout, config.hz) == (0, 10)
    assert seen == [("timeout", 5, 20), ("hz", 5, 20), ("timeout", 0, 10), ("hz", 0, 10)]


def test_protected_parameters_need_permission(tmp_path: Path) -> None:
    config = Config()
    before = config.dir
    refused = our_set(config, "dir", str(tmp_path))
    assert refused == WireError(
        b"ERR CONFIG SET failed (possibly related to argument 'dir') - can't set protected config"
    )
    assert config.dir == before
    assert our_set(config, "dir", str(tmp_path), protected=True) == b"OK"
    assert config.dir == os.fsencode(tmp_path)
    missing = our_set(config, "dir", str(tmp_path / "missing"), protected=True)
    assert missing == WireError(
        b"ERR CONFIG SET failed (possibly related to argument 'dir') - No such file or directory"
    )


@pytest.mark.parametrize(
    "line",
    [
        "loadmodule /x.so",
        "bf.error-rate 1",
    ],
)
def test_what_would_be_unsafe_to_ignore_is_refused(line: str) -> None:
    with pytest.raises(Exception, match="not supported"):
        load(line)


# REWRITE


def test_rewrite_keeps_comments_and_order() -> None:
    text = (
        b"# mine\nport 7000\n\n\n\ntimeout 5\n# hash\nmaxmemory 1gb\nfoo bar\n"
        b"save 1 2\nsave 3 4\ninclude other.conf\nslave-priority 10\n"
    )
    config = load("port 7000\ntimeout 5\nmaxmemory 1gb\nsave 1 2\nsave 3 4\nslave-priority 10")
    our_set(config, "timeout", "0", "maxmemory", "1536mb", "save", "9 9", "hz", "20")
    out = rewritten(config, text, []).split(b"\n")
    assert out[:13] == [
        b"# mine",
        b"port 7000",
        b"",
        b"timeout 0",
        b"# hash",
        b"maxmemory 1536mb",
        UNKNOWN + b"foo bar",
        b"save 9 9",
        b"",
        b"include other.conf",
        b"replica-priority 10",
        MARK,
        b'dir "%b"' % config.dir,
    ]
    assert b"hz 20" in out[13:]
    assert b"timeout 0" not in out[13:]


def test_rewrite_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "headrace.conf"
    path.write_text("# kept\nport 7001\n")
    path.chmod(0o640)
    config = Config()
    Loader(config).load(Arguments([os.fsencode(path)]), b"")
    changes = [
        ("requirepass", 'pass "word"\\ \n'),
        ("notify-keyspace-events", "AKE$"),
        ("client-output-buffer-limit", "pubsub 1mb 2 3"),
        ("latency-tracking-info-percentiles", ""),
        ("bind", "127.0.0.1"),
        ("maxmemory-clients", "7%"),
        ("shutdown-on-sigterm", "nosave now"),
        ("save", ""),
        ("appendfsync", "no"),
        ("appendonly", "yes"),
        ("masteruser", "someone"),
        ("oom-score-adj-values", "1 2 3"),
        ("hash-max-ziplist-value", "65"),
    ]
    for name, value in changes:
        assert our_set(config, name, value) == b"OK"
    rewrite(config, [])
    assert path.read_text().startswith("# kept\nport 7001\n")
    assert path.stat().st_mode & 0o777 == 0o640
    again = Config()
    Loader(again).load(Arguments([os.fsencode(path)]), b"")
    assert our_get(again, "*") == our_get(config, "*")
    first = path.read_bytes()
    rewrite(again, [])
    assert path.read_bytes() == first
    assert os.listdir(tmp_path) == ["headrace.conf"]


def test_rewrite_of_defaults_removes_nothing_and_adds_no_values() -> None:
    config = Config()
    out = rewritten(config, b"", []).splitlines()
    assert [line.split(b" ")[0] for line in out if not line.startswith(b"#")] == [
        b"dir",
        b"save",
        b"save",
        b"save",
        b"latency-tracking-info-percentiles",
    ]


# The document


def test_document_tells_what_the_table_says(repo: Path) -> None:
    assert (repo / "docs" / "configuration.md").read_text() == render(), (
        "run: python -m headrace.server.config.docs > docs/configuration.md"
    )


@pytest.mark.parametrize(
    "entry",
    [
        "port 6379",
        "port 6379 | number 0 65535",
        "port 6379 | integer 0",
        "port 6379 | integer 0 MANY",
        "port 65536 | integer 0 65535",
        "port 6379 | integer 0 65535 | fixed",
    ],
)
def test_an_entry_of_the_table_that_is_not_understood(entry: str) -> None:
    with pytest.raises(BadTable, match=rf"parameters\.txt: {re.escape(entry)}: "):
        read_table(f"[Network]\n{entry}\n    TCP port to listen at.\n")


def test_streams_and_the_table_agree() -> None:
    assert BY_NAME[b"stream-idmp-duration"].default == IDMP_DURATION_S
    assert BY_NAME[b"stream-idmp-maxsize"].default == IDMP_MAXSIZE
