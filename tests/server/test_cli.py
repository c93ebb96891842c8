"""The command line and configuration files, as arguments, as text and as a process."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.compat.parameters import INT_MAX
from headrace.server import log
from headrace.server.build import VERSION
from headrace.server.config.config import Config
from headrace.server.config.files import Arguments, ConfigError, Loader
from headrace.server.config.kinds import LIMIT_NORMAL, LIMIT_PUBSUB
from headrace.server.config.parameters import ACTIVE
from support import build


def run(
    *words: str, stdin: bytes = b"", cwd: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run the program to its end: for what ends by itself."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "headrace", *words],
        input=stdin,
        capture_output=True,
        check=False,
        timeout=60,
        cwd=cwd,
        env=build.environment(),
    )


def load(*words: str, stdin: bytes = b"") -> Config:
    config = Config()
    Loader(config).load(Arguments([os.fsencode(word) for word in words]), stdin)
    return config


def refusal(*words: str, stdin: bytes = b"") -> str:
    with pytest.raises(ConfigError) as caught:
        load(*words, stdin=stdin)
    return str(caught.value)


def write(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


# Arguments


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        ([], []),
        (["--port", "1"], [b'port "1"']),
        (["--port 1", "--hz 5"], [b"port 1", b"hz 5"]),
        (["--save", "1", "2", "--port", "3"], [b'save "1" "2"', b'port "3"']),
        (["--save", "--port", "3"], [b'save ""', b'port "3"']),
        (["--port", "3", "--save"], [b'port "3"', b'save ""']),
        (["--save", ""], [b'save ""']),
        (["--port", "--hz", "5"], [b'port "--hz" "5"']),
        (["--port"], [b"port"]),
        (["--requirepass", 'a "b"\n'], [b'requirepass "a \\"b\\"\\n"']),
        (["file", "port", "1"], [b'"port" "1"']),
    ],
)
def test_options_become_lines(words: list[str], lines: list[bytes]) -> None:
    assert Arguments([word.encode() for word in words]).lines == lines


@pytest.mark.parametrize(
    ("words", "file", "from_stdin"),
    [
        ([], b"", False),
        (["-"], b"", True),
        (["x.conf"], b"x.conf", False),
        (["x.conf", "-"], b"x.conf", True),
        (["-", "--port", "1"], b"", True),
        (["x.conf", "--port", "1", "-"], b"x.conf", True),
    ],
)
def test_where_configuration_comes_from(words: list[str], file: bytes, from_stdin: bool) -> None:
    arguments = Arguments([word.encode() for word in words])
    assert (arguments.file, arguments.from_stdin) == (file, from_stdin)


def test_options_win_over_stdin_over_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "a.conf", "port 1\nhz 1\ntimeout 1\n")
    config = load(path, "--port", "3", "-", stdin=b"port 2\nhz 2\n")
    assert (config.port, config.hz, config.timeout) == (3, 2, 1)
    assert config.file == os.fsencode(path)


# Files


def test_quoting_and_comments(tmp_path: Path) -> None:
    text = (
        "# port 1\r\n\n   \t\n  PORT   7000  \r\n"
        'requirepass "a \\x41\\n\\""\nmasterauth \'it\\\'s\'\nlogfile ""\n'
    )
    config = load(write(tmp_path / "a.conf", text))
    assert config.port == 7000
    assert config.requirepass == b'a A\n"'
    assert config.text(b"masterauth") == b"it's"
    assert config.ignored == []


def test_save_lines_add_up_and_replace_the_default(tmp_path: Path) -> None:
    assert load().save == [(3600, 1), (300, 100), (60, 10000)]
    path = write(tmp_path / "a.conf", "save 1 2\nsave 3 4 5 6\n")
    assert load(path).save == [(1, 2), (3, 4), (5, 6)]
    assert load(path, "--save", "7 8").save == [(1, 2), (3, 4), (5, 6), (7, 8)]
    assert load(path, "--save", "").save == []
    assert load(path, "--save").save == []


def test_several_words_in_one(tmp_path: Path) -> None:
    config = load("--bind", "127.0.0.1 -::1", "--shutdown-on-sigterm", "nosave now")
    assert config.bind == [b"127.0.0.1", b"-::1"]
    assert config.shutdown_on_sigterm == b"nosave now"
    assert load("--bind", "127.0.0.1", "::1").bind == [b"127.0.0.1", b"::1"]
    limits = load("--client-output-buffer-limit", "pubsub", "1mb", "2", "3")
    assert limits.output_limit(LIMIT_PUBSUB) == (1 << 20, 2, 3)
    assert limits.output_limit(LIMIT_NORMAL) == (0, 0, 0)


def test_include(tmp_path: Path) -> None:
    (tmp_path / "conf.d").mkdir()
    write(tmp_path / "conf.d" / "1.conf", "hz 1\ntimeout 1\n")
    write(tmp_path / "conf.d" / "2.conf", "hz 2\n")
    write(tmp_path / "one.conf", "port 7000\n")
    text = f"dir {tmp_path}\ninclude one.conf\ninclude conf.d/*.conf\ninclude none/*.conf\n"
    config = load(write(tmp_path / "a.conf", text))
    assert (config.port, config.hz, config.timeout) == (7000, 2, 1)
    assert config.dir == os.fsencode(tmp_path)


def test_include_of_a_missing_file(tmp_path: Path) -> None:
    path = write(tmp_path / "a.conf", "\ninclude /missing.conf\n")
    text = refusal(path)
    assert f"Reading the configuration file '{path}', at line 2" in text
    assert "can't open config file '/missing.conf': No such file or directory" in text


def test_include_that_includes_itself(tmp_path: Path) -> None:
    path = tmp_path / "a.conf"
    assert "include each other" in refusal(write(path, f"include {path}\n"))


def test_mistake_in_an_included_file_names_that_file(tmp_path: Path) -> None:
    inner = write(tmp_path / "inner.conf", "hz 1\nhz x\n")
    text = refusal(write(tmp_path / "a.conf", f"include {inner}\n"))
    assert f"Reading the configuration file '{inner}', at line 2" in text
    assert ">>> 'hz x'" in text


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("port", "wrong number of arguments"),
        ("port 1 2", "wrong number of arguments"),
        ("port 65536", "argument must be between 0 and 65535 inclusive"),
        ("port x", "argument couldn't be parsed into an integer"),
        ("maxmemory x", "argument must be a memory value"),
        ("appendonly maybe", "argument must be 'yes' or 'no'"),
        ('logfile "x', "Unbalanced quotes in configuration line"),
        ("loglevel loud", "argument(s) must be one of the following: debug, verbose, notice"),
        ("shutdown-on-sigint", "argument(s) must be one of the following: default, save"),
        ("save 1", "Invalid save parameters"),
        ("replicaof a b", "Invalid master port"),
        ("replicaof a", "wrong number of arguments"),
        ("appendfilename a/b", "appendfilename can't be a path, just a filename"),
        ('appenddirname ""', "appenddirname can't be empty"),
        ("dir /missing", "No such file or directory"),
        ("no-such-thing 1", "Bad directive or wrong number of arguments"),
        ("include", "Bad directive or wrong number of arguments"),
    ],
)
def test_bad_lines(tmp_path: Path, line: str, reason: str) -> None:
    text = refusal(write(tmp_path / "a.conf", f"# first\n{line}\n"))
    assert "*** FATAL CONFIG FILE ERROR (Headrace" in text
    assert "at line 2" in text
    assert f">>> '{line}'" in text
    assert reason in text


@pytest.mark.judge
@pytest.mark.since(8, 0)  # Valkey has words of its own
@pytest.mark.parametrize(
    "words",
    [
        ["--port"],
        ["--port", "6379", "6380"],
        ["--port", "--loglevel", "verbose"],
        ["--port", "--bla", "--loglevel", "verbose"],
        ["--logfile", "--my--log--file", "--loglevel", "--bla"],
        ["--port", "0", "--loglevel"],
        ["--shutdown-on-sigint"],
        ["--shutdown-on-sigint", "now force", "--shutdown-on-sigterm"],
        ["--replicaof", "127.0.0.1", "abc"],
        ["--replicaof", "--127.0.0.1", "--abc"],
        ["--invalid"],
        ["--logfile", 'a"b', "c"],
    ],
)
def test_refusals_quote_the_line_that_redis_quotes(
    tmp_path: Path, words: list[str], monkeypatch: pytest.MonkeyPatch, judge: str
) -> None:
    monkeypatch.chdir(tmp_path)
    real = subprocess.run([judge, *words], capture_output=True, check=False, timeout=60)
    assert real.returncode == 1
    lines = real.stderr.decode().strip().splitlines()
    ours = refusal(*words).strip().splitlines()
    assert ours[2:4] == lines[2:4]


def test_unknown_name_is_given_a_suggestion() -> None:
    assert "Did you mean 'appendonly'?" in refusal("--append-only", "yes")
    assert "Did you mean" not in refusal("--qqqq", "yes")


def test_log_file_that_cannot_be_written() -> None:
    assert "Can't open the log file: No such file or directory" in refusal("--logfile", "/x/y/z")


# The process


def test_version_is_one_line() -> None:
    done = run("--version")
    assert done.returncode == 0
    assert f" headrace={VERSION} " in done.stdout.decode()
    assert done.stdout.count(b"\n") == 1
    assert run("-v").stdout == done.stdout


@pytest.mark.since(8, 10)
def test_version_is_found_where_redis_has_it(judge: str) -> None:
    """By its form, or as the first number: kits refuse a server that is too old."""
    forms = (
        rb"Redis server v=(\S+) sha=\w+:0 malloc=\S+ bits=64 build=\w+",
        rb"(\d+[.]\d+[.]\d+)",
    )
    real = subprocess.run([judge, "--version"], capture_output=True, check=True).stdout
    for form in forms:
        ours, theirs = re.search(form, run("--version").stdout), re.search(form, real)
        assert ours is not None
        assert theirs is not None
        assert ours[1] == theirs[1]


def test_help_names_every_parameter() -> None:
    done = run("--help")
    assert done.returncode == 0
    text = done.stdout.decode()
    assert all(f"  --{row.name}\n" in text for row in ACTIVE)
    assert max(len(line) for line in text.splitlines()) <= 100
    assert str(INT_MAX) not in text


def test_mistake_ends_the_process_with_1() -> None:
    done = run("--maxmemory", "lots")
    assert done.returncode == 1
    assert done.stdout == b""
    lines = done.stderr.decode().splitlines()
    assert lines == [
        "",
        f"*** FATAL CONFIG FILE ERROR (Headrace {VERSION}) ***",
        "Reading the command line, at line 1",
        ">>> 'maxmemory \"lots\"'",
        "argument must be a memory value",
    ]


def test_mistake_on_standard_input() -> None:
    done = run("-", stdin=b"port 1\nhz x\n")
    assert done.returncode == 1
    assert b"Reading standard input, at line 2\n>>> 'hz x'\n" in done.stderr


# Open files


def limited(soft: int, wanted: int) -> int:
    """What ``clients_possible`` answers in a process with that limit, which cannot be raised."""
    code = (
        "import resource, sys\n"
        "from headrace.server.process import system\n"
        f"resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {soft}))\n"
        "def refuse(*words): raise ValueError\n"
        "sys.addaudithook(lambda event, _: refuse() if event == 'resource.setrlimit' else None)\n"
        f"print(system.clients_possible({wanted}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        capture_output=True,
        check=True,
        timeout=60,
        env=build.environment(),
    )
    return int(done.stdout)


@pytest.mark.parametrize(
    ("soft", "wanted", "possible"), [(132, 100, 100), (100, 100, 68), (32, 100, 0)]
)
def test_clients_follow_the_limit_of_open_files(soft: int, wanted: int, possible: int) -> None:
    assert limited(soft, wanted) == possible


# The log


@pytest.fixture
def _log_as_before() -> Iterator[None]:
    handlers = list(log.log.handlers)
    level, propagate = log.log.level, log.log.propagate
    yield
    for handler in log.log.handlers:
        if handler not in handlers:
            handler.close()
    log.log.handlers[:] = handlers
    log.log.setLevel(level)
    log.log.propagate = propagate


@pytest.mark.usefixtures("_log_as_before")
def test_log_lines(tmp_path: Path) -> None:
    path = tmp_path / "headrace.log"
    log.setup(b"verbose", os.fsencode(path))
    log.log.debug("unseen")
    log.log.log(log.VERBOSE, "a %s", "detail")
    log.log.info("a notice")
    log.set_level(b"warning")
    log.log.info("unseen")
    log.log.error("an error")
    log.set_level(b"nothing")
    log.log.critical("unseen")
    lines = path.read_text().splitlines()
    pattern = rf"{os.getpid()}:M \d\d [A-Z][a-z]+ \d{{4}} \d\d:\d\d:\d\d\.\d\d\d "
    assert len(lines) == 3
    for line, rest in zip(lines, ("- a detail", "* a notice", "# an error"), strict=True):
        assert re.fullmatch(pattern + re.escape(rest), line), line


@pytest.mark.usefixtures("_log_as_before")
def test_log_keeps_the_traceback(tmp_path: Path) -> None:
    path = tmp_path / "headrace.log"
    log.setup(b"notice", os.fsencode(path))
    try:
        raise KeyError("gone")
    except KeyError:
        log.log.exception("internal error")
    text = path.read_text()
    assert "# internal error\nTraceback" in text
    assert text.endswith("KeyError: 'gone'\n")
    assert logging.getLogger("headrace") is log.log
