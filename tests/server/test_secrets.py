"""Passwords are not to be seen: in the list of processes, in mistakes, in files, by MONITOR."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Factory

from headrace.server.config.files import without_password
from headrace.server.process.system import masked
from support import build
from support.process import Process

SECRET = "open-sesame"


def command_line(server: Process) -> list[str]:
    return Path(f"/proc/{server.pid}/cmdline").read_bytes().decode().rstrip("\0").split("\0")


@pytest.mark.parametrize(
    "words",
    [
        ["--requirepass", SECRET, "--masterauth", SECRET, "--hz", "20"],
        ["--hz", "20", f"--requirepass {SECRET}"],
        ["--requirepass", f"--{SECRET}", "--hz", "20", "--masteruser", SECRET],
        ["--hz", "20", "--REQUIREPASS", SECRET + " and a space"],
    ],
)
def test_the_list_of_processes_does_not_show_passwords(
    fresh_server: Factory, words: list[str]
) -> None:
    server = fresh_server(*words)
    shown = command_line(server)
    assert SECRET not in " ".join(shown)
    assert "--port" in shown
    assert str(server.port) in shown
    assert shown[shown.index("--hz") + 1] == "20"
    assert server.log().count(SECRET) == 0
    with server.client() as client:
        assert client.call("PING").startswith(b"-NOAUTH")
        password = next(word for word in words if SECRET in word).removeprefix("--requirepass ")
        assert client.call("AUTH", password) == b"+OK\r\n"
        assert client.call_parsed("CONFIG", "GET", "requirepass")[1] == password.encode()  # type: ignore[index]
        for section in ("server", "everything"):
            assert SECRET.encode() not in client.call("INFO", section)


def test_words_without_passwords_stay_as_they_are(fresh_server: Factory) -> None:
    server = fresh_server("--hz", "20", "--logfile", "")
    assert command_line(server)[-3:] == ["--hz", "20", "--logfile"]  # an empty word at the end


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ([b"a.conf", b"--port", b"1"], [b"a.conf", b"--port", b"1"]),
        ([b"--requirepass", b"x"], [b"--requirepass", b"*"]),
        ([b"--requirepass", b""], [b"--requirepass", b""]),
        ([b"--requirepass", b"--port", b"1"], [b"--requirepass", b"*", b"*"]),
        ([b"--requirepass=x", b"y"], [b"--requirepass *", b"*"]),
        ([b"--masterauth x", b"--port", b"1"], [b"--masterauth *", b"--port", b"1"]),
        ([b"--tls-key-file-pass", b"x", b"y", b"-"], [b"--tls-key-file-pass", b"*", b"*", b"*"]),
        ([b"--rename-command", b"CONFIG", b"x"], [b"--rename-command", b"*", b"*"]),
        ([b"--port", b"--requirepass", b"x"], [b"--port", b"--requirepass", b"x"]),
    ],
)
def test_what_is_masked(words: list[bytes], shown: list[bytes]) -> None:
    assert masked(words) == shown


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (b"requirepass a b", b"requirepass (redacted)"),
        (b"rename-command CONFIG a b", b"rename-command (redacted)"),
        (b"sentinel auth-pass m a", b"sentinel (redacted)"),
        (b'RequirePass "a b', b"RequirePass (redacted)"),
        (b"requirepas a", b"requirepas (redacted)"),
        (b"masterauth=a", b"masterauth (redacted)"),
        (b"user default on >a", b"user (redacted)"),
        (b"requirepass", b"requirepass"),
        (b"port a b", b"port a b"),
    ],
)
def test_what_is_quoted(line: bytes, shown: bytes) -> None:
    assert without_password(line) == shown


def test_a_mistake_does_not_quote_a_password() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "headrace", "-"],
        input=f"requirepass two {SECRET}\n".encode(),
        capture_output=True,
        check=False,
        timeout=60,
        env=build.environment(),
    )
    assert done.returncode == 1
    assert b">>> 'requirepass (redacted)'" in done.stderr
    assert SECRET.encode() not in done.stderr


@pytest.mark.parametrize("mode", [0o600, 0o640])
def test_rewriting_a_file_shows_it_to_nobody_else(fresh_server: Factory, mode: int) -> None:
    server = fresh_server(config="hz 20\n", start=False)
    server.config_path.chmod(mode)
    before = os.umask(0)
    try:
        server.start()
    finally:
        os.umask(before)
    server.call("CONFIG", "SET", "requirepass", SECRET)
    with server.client() as client:
        client.call("AUTH", SECRET)
        assert client.call("CONFIG", "REWRITE") == b"+OK\r\n"
        assert SECRET in server.config_path.read_text()
        assert server.config_path.stat().st_mode & 0o777 == mode
        server.config_path.unlink()
        assert client.call("CONFIG", "REWRITE") == b"+OK\r\n"
        assert server.config_path.stat().st_mode & 0o777 == 0o600


def test_who_looks_on_sees_no_password(fresh_server: Factory) -> None:
    server = fresh_server("--slowlog-log-slower-than", "0")
    with server.client() as client, server.client() as monitor:
        monitor.call("MONITOR")
        client.call("AUTH", SECRET)
        client.call("AUTH", "default", SECRET, "and more")
        client.call("HELLO", "3", "AUTH", "default", SECRET, "and more")
        client.call("HELLO", "99", "AUTH", "default", SECRET)
        client.call("CONFIG", "SET", "requirepass", SECRET, "masterauth", SECRET)
        client.call("CONFIG", "SET", "masteruser", SECRET, "hz")
        client.call("ACL", "SETUSER", "u", f">{SECRET}")
        client.call("ECHO", "end")
        seen = b""
        while b"end" not in seen:
            seen += monitor.read()
        assert SECRET.encode() not in seen
        log = client.call("SLOWLOG", "GET", "-1")
        assert SECRET.encode() not in log
        assert b"(redacted)" in log
    assert SECRET not in server.log()
