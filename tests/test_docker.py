"""The image's steps, without Docker: its build script, its entry point, its health check."""

from __future__ import annotations

import fnmatch
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Factory

from support import judges
from support.build import ROOT, location
from support.client import RawClient
from support.image import DOCKERFILE, copied, copy_context, instructions
from support.process import Process, claim_port, free_port


def test_every_copy_has_its_source_and_is_not_ignored() -> None:
    allowed = [
        line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"
    ]
    for source in copied():
        assert (ROOT / source).exists(), source
        top = source.partition("/")[0]
        assert any(fnmatch.fnmatch(top, pattern) for pattern in allowed), source


def test_the_image_has_redis_cli() -> None:
    """``docker exec NAME redis-cli ping`` is what people write."""
    last = DOCKERFILE.rpartition("\nFROM ")[2]
    assert "redis-tools" in last


def test_every_package_is_copied() -> None:
    tops = {path.name for path in location().iterdir() if (path / "__init__.py").exists()}
    assert tops | {"headrace"} <= set(copied())


def test_the_image_is_what_it_promises() -> None:
    assert instructions("EXPOSE") == ["6379"]
    assert instructions("VOLUME") == ["/data"]
    assert instructions("USER") == []  # root, until the entry point has seen to the folder
    assert instructions("WORKDIR") == ["/data"]
    assert len(instructions("FROM")) == 2
    assert "healthcheck.py" in instructions("HEALTHCHECK")[0]


def entrypoint(*arguments: str, path: Path, defaults: str = "", program: str = "") -> list[str]:
    """Return what the entry point would execute: programs on ``path`` print their command line."""
    variables = {"HEADRACE_DEFAULTS": defaults} if defaults else {}
    done = subprocess.run(
        [program or ROOT / "docker/entrypoint.sh", *arguments],
        env={"PATH": f"{path}:{os.environ['PATH']}", **variables},
        cwd=path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.fixture
def stub(tmp_path: Path) -> Path:
    program = tmp_path / "headrace"
    program.write_text(
        '#!/bin/sh\necho headrace\nfor word in "$@"; do echo "$word"; done\n'
        'printf %s "${HEADRACE_DEFAULTS:-}"\n'
    )
    program.chmod(0o755)
    (tmp_path / "redis-server").symlink_to(ROOT / "docker/entrypoint.sh")
    tmp_path.chmod(0o755)
    return tmp_path


OPEN = ["bind * -::*", "protected-mode no", "dbfilename dump.rdb"]


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        ([], ["headrace", *OPEN]),
        (["headrace"], ["headrace", *OPEN]),
        (["redis-server"], ["headrace", *OPEN]),
        (["--appendonly", "yes"], ["headrace", "--appendonly", "yes", *OPEN]),
        (["headrace", "--port", "7"], ["headrace", "--port", "7", *OPEN]),
        (["redis-server", "--save", "60 1"], ["headrace", "--save", "60 1", *OPEN]),
        (["-"], ["headrace", "-", *OPEN]),
        (["my.conf", "--port", "8"], ["headrace", "my.conf", "--port", "8", *OPEN]),
        (["redis-server", "/etc/my"], ["headrace", "/etc/my", *OPEN]),
        (["echo", "hello"], ["hello"]),
        (["sh", "-c", "redis-server --port 7"], ["headrace", "--port", "7", *OPEN]),
        (["sh", "-c", "exec redis-server --version"], ["headrace", "--version"]),
        (["sh", "-c", "redis-server"], ["headrace", *OPEN]),
        *[
            (before + words, ["headrace", *words])
            for before in ([], ["headrace"], ["redis-server"])
            for words in (
                ["check-aof", "--fix", "/data"],
                ["check-snapshot", "/data/dump.hrs"],
                ["import", "/old", "--dir", "/data/new"],
                ["export", "--to", "resp", "--from", "/data", "-"],
                ["--version"],
                ["-v"],
                ["--help"],
                ["-h"],
            )
        ],
    ],
)
def test_entrypoint(arguments: list[str], command: list[str], stub: Path) -> None:
    assert entrypoint(*arguments, path=stub) == command


def test_defaults_of_an_image_that_builds_on_this_one(stub: Path) -> None:
    assert entrypoint(path=stub, defaults="bind 10.0.0.1") == ["headrace", *OPEN, "bind 10.0.0.1"]


@pytest.mark.parametrize(("words", "blocked"), [([], "2 15"), (["check-aof", "/data"], "")])
def test_a_signal_waits_until_the_server_listens(
    words: list[str], blocked: str, stub: Path
) -> None:
    """SIGINT and SIGTERM: process 1 would never hear of them otherwise."""
    program = (
        "import signal\nprint(*sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, []))))"
    )
    (stub / "headrace").write_text(f"#!{sys.executable}\n{program}\n")
    assert entrypoint(*words, path=stub) == [blocked]


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """One that other users can reach."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_root_hands_over_to_the_servers_user(open_folder: Path) -> None:
    """A folder that root has made outside, and what lies in it, is that user's afterwards."""
    shutil.copy(ROOT / "docker/entrypoint.sh", open_folder)
    (open_folder / "redis-server").symlink_to("entrypoint.sh")
    (open_folder / "headrace").write_text("#!/bin/sh\numask\nid -u\nid -G\ntouch new\n")
    (open_folder / "passwd").write_text(
        "root:x:0:0::/:/bin/sh\nheadrace:x:999:999::/data:/bin/sh\n"
    )
    (open_folder / "group").write_text("root:x:0:\nheadrace:x:999:\n")
    (open_folder / "headrace").chmod(0o755)
    words = ["unshare", "--mount", "sh", "-c"]
    script = (
        'mount --bind passwd /etc/passwd && mount --bind group /etc/group && cd data && exec "$@"'
    )

    def owners(*command: str, before: tuple[str, ...] = ()) -> tuple[list[str], list[int]]:
        data = open_folder / "data"
        data.mkdir()
        (data / "dump.rdb").touch()
        done = subprocess.run(
            [*words, script, "sh", *before, open_folder / "entrypoint.sh", *command],
            env={"PATH": f"{open_folder}:{os.environ['PATH']}"},
            cwd=open_folder,
            capture_output=True,
            text=True,
            umask=0o022,
            check=False,
        )
        if "unshare" in done.stderr or "mount" in done.stderr:
            pytest.skip(done.stderr)
        assert done.stderr == ""
        seen = [path.stat().st_uid for path in (data, data / "dump.rdb", data / "new")]
        assert (data / "new").stat().st_mode & 0o777 == 0o600
        shutil.rmtree(data)
        return done.stdout.splitlines(), seen

    for command in ([], ["redis-server", "--port", "7"], ["check-aof", "/data"]):
        assert owners(*command) == (["0077", "999", "999"], [999, 999, 999])
    assert owners("sh", "-c", "umask; touch new") == (["0077"], [0, 0, 0])
    mine = " ".join(str(group) for group in os.getgroups()) or "0"
    assert owners("sh", "-c", "redis-server") == (["0077", "0", mine], [0, 0, 0])
    without_rights = ("setpriv", "--bounding-set=-setuid,-setgid", "--")  # `--cap-drop ALL`
    assert owners(before=without_rights) == (["0077", "0", mine], [0, 0, 0])


def started(server: Process, stdin: bytes, *words: str) -> Process:
    """A server started by the image's entry point."""
    program = server.directory / "bin" / "headrace"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m headrace "$@"\n')
    program.chmod(0o755)
    (server.directory / "stdin").write_bytes(stdin)
    with server.log_path.open("ab") as log, (server.directory / "stdin").open("rb") as given:
        server._process = subprocess.Popen(
            [ROOT / "docker/entrypoint.sh", *words],
            cwd=server.directory,
            env={**server.variables(), "PATH": f"{program.parent}:{os.environ['PATH']}"},
            stdin=given,
            stdout=log,
            stderr=log,
        )
    server.wait_until_ready()
    return server


def settings(server: Process) -> list[object]:
    return [
        server.call("CONFIG", "GET", name)[1]  # type: ignore[index]
        for name in ("bind", "protected-mode", "port")
    ]


OPENED = [b"* -::*", b"no"]


@pytest.mark.parametrize(
    ("words", "file", "included", "stdin", "seen"),
    [
        (["redis-server"], "port {port}\n", "", "", OPENED),
        (["headrace"], "include more\nport {port}\n", "save ''\n", "", OPENED),
        ([], "include more\nport {port}\n", "bind 127.0.0.1\n", "", [b"127.0.0.1", b"no"]),
        ([], "include mo*e\n'port' {port}\n", "protected-mode yes\n", "", [b"* -::*", b"yes"]),
        ([], "'bind' 127.0.0.1\nport {port}\n", "", "", [b"127.0.0.1", b"no"]),
        (["-"], "", "", "port {port}\n", OPENED),
        (["-", "--save", ""], "", "", "port {port}\nbind 127.0.0.1\n", [b"127.0.0.1", b"no"]),
        (["redis-server", "--protected-mode", "yes", "-"], "", "", "bind 127.0.0.1\nport {port}",
         [b"127.0.0.1", b"yes"]),
    ],
    ids=range(8),
)  # fmt: skip
def test_whatever_the_user_says_wins(
    fresh_server: Factory, words: list[str], file: str, included: str, stdin: str, seen: list[bytes]
) -> None:
    """In which file or stream it may stand; and all else is as in the image."""
    port, claim = claim_port()
    server = fresh_server(port=port, start=False)
    (server.directory / "more").write_text(included)
    if file:
        (server.directory / "my.conf").write_text(file.format(port=port))
        words = [*words, "my.conf"]
    with claim:
        started(server, stdin.format(port=port).encode(), *words)
    assert settings(server) == [*seen, b"%d" % port]
    assert health(HEADRACE_PID=str(server.pid)) == 0
    server.stop()  # the signal reaches it: the entry point is the server


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may be another user")
def test_as_another_user_in_a_folder_that_cannot_be_written(
    fresh_server: Factory, tmp_path: Path
) -> None:
    server = fresh_server(start=False)
    server.directory.chmod(0o755)
    os.chown(server.directory, 0, 0)
    words = ["setpriv", "--reuid", "4321", "--regid", "4321", "--clear-groups"]
    server.command = lambda: [*words, sys.executable, "-P", "-m", "headrace"]  # type: ignore[method-assign]
    server.options = ("--save", "")
    server.start()
    assert server.call("SET", "k", "v") == b"OK"
    server.stop()


def health(**variables: str) -> int:
    command = [sys.executable, "-P", str(ROOT / "docker/healthcheck.py")]
    environment = {key: value for key, value in os.environ.items() if key != "HEADRACE_PORT"}
    done = subprocess.run(
        command, env={**environment, **variables}, capture_output=True, check=False, timeout=30
    )
    assert done.returncode == 0 or done.stderr
    assert b"Traceback" not in done.stderr
    return done.returncode


def test_health_is_asked_for_where_the_server_listens(fresh_server: Factory) -> None:
    """Whatever said where: an option, a file, CONFIG SET; with a password, or a socket alone."""
    server = fresh_server("--requirepass", "secret", "--bind", "127.0.0.1 ::1")
    pid = str(server.pid)
    assert health(HEADRACE_PID=pid) == 0
    assert health(HEADRACE_PORT=str(free_port())) == 1
    assert health(HEADRACE_PORT=str(server.port), HEADRACE_PID="0") == 0
    assert health(HEADRACE_PID=str(os.getpid())) == 1  # it listens nowhere
    assert health(HEADRACE_PID="999999999") == 1
    server.stop()
    socket_server = fresh_server(
        "--port", "0", "--unixsocket", "a socket", "--bind", "127.0.0.1", start=False
    )
    socket_server.spawn()
    deadline = time.monotonic() + 30
    while health(HEADRACE_PID=str(socket_server.pid)) != 0:
        assert time.monotonic() < deadline, socket_server.log()
        time.sleep(0.05)
    socket_server.kill()


@pytest.mark.slow
@pytest.mark.skipif(
    os.environ.get("HEADRACE_EXPECT_BUILD") != "compiled",
    reason="the image is compiled: built and started once, beside the compiled build",
)
def test_the_image_builds_starts_and_stops(tmp_path: Path) -> None:
    """As in the Dockerfile: copy what COPY names, build, start by the entry point, ask PING.

    A push takes the wheel that `make install` has made, as a release does.
    """
    source, prefix, data = tmp_path / "src", tmp_path / "prefix", tmp_path / "data"
    source.mkdir()
    data.mkdir()
    copy_context(source)
    if not judges.everything():
        shutil.copytree(Path(sys.prefix, "wheel"), source / "docker", dirs_exist_ok=True)
    before = sorted(path for path in source.rglob("*") if "__pycache__" not in path.parts)

    variables = {"PYTHON": sys.executable, "HEADRACE_PURE": "0"}
    built = subprocess.run(
        [source / "docker/build.sh", source, prefix],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    after = sorted(path for path in source.rglob("*") if "__pycache__" not in path.parts)
    assert after == before, "the build wrote into its sources"

    port = free_port()
    log = tmp_path / "log"
    path = f"{prefix}/bin:{os.environ['PATH']}"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [ROOT / "docker/entrypoint.sh", "--appendonly", "yes", "--port", str(port)],
            cwd=data,
            env={"PATH": path},
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        assert health(HEADRACE_PORT=str(free_port())) == 1
        deadline = time.monotonic() + 30
        while health(HEADRACE_PID=str(process.pid)) != 0:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        with RawClient(port) as client:
            assert client.call("XADD", "s", "1-1", "f", "v") == b"$3\r\n1-1\r\n"
        assert (data / "appendonlydir").is_dir()
        process.terminate()
        assert process.wait(20) == 0, log.read_text()
    finally:
        process.kill()
        process.wait()
