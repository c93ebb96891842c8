"""``make image-check``: the image is built on a base made here, and used as people use Redis's.

No registry is asked. mmdebstrap makes the base, a Debian with the Python of this environment, which
is kept in ``build/image``. Podman builds the Dockerfile on it, with the wheel that ``make install``
has compiled, and runs the image without a network. Each check is a line, and the exit code counts.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

from support.build import ROOT

DOCKERFILE = (ROOT / "Dockerfile").read_text()
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
DEBIAN = {"3.11": "bookworm", "3.13": "trixie"}
# As Python's slim image is: without manuals, with apt's caches empty, and its modules are text.
MAKE_BASE = (
    *("mmdebstrap", "--quiet", "--variant=minbase"),
    "--include=python3,python3-pip,python3-venv,ca-certificates,netbase,tzdata",
    *("--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/man/*"),
    *('--aptopt=Dir::Cache::pkgcache ""', '--aptopt=Dir::Cache::srcpkgcache ""'),
    '--aptopt=DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb || true"; }',
    '--customize-hook=find "$1"/usr/lib/python3* -name "*.pyc" -delete',
)
BASE, IMAGE = f"localhost/python:{PYTHON}-slim", "localhost/headrace"
OURS_MB = 30  # compressed, beside the base
START_S = STOP_S = 3.0
PATIENCE_S = 30


def instructions(name: str) -> list[str]:
    """Return what the Dockerfile says in all instructions of a name."""
    joined = re.sub(r"\\\n\s*", " ", DOCKERFILE)
    return [line.partition(" ")[2].strip() for line in joined.splitlines() if line.startswith(name)]


def copied() -> list[str]:
    """Every path of the checkout that a COPY names."""
    patterns: list[str] = []
    for words in map(shlex.split, instructions("COPY")):
        if not any(word.startswith("--from") for word in words):
            patterns += [word for word in words if not word.startswith("--")][:-1]
    found = {each: list(ROOT.glob(each)) for each in patterns}
    assert all(found.values()), found
    return [str(path.relative_to(ROOT)) for paths in found.values() for path in paths]


def copy_context(target: Path) -> None:
    """Copy what COPY names, as a builder gets it."""
    for name in copied():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", "-r", ROOT / name, target / name], check=True)


STORE = ROOT / "build" / "image"
PODMAN = (
    *("podman", "--log-level=fatal", "--runtime=runc", "--storage-driver=overlay"),
    *(f"--root={STORE}/store", f"--runroot={STORE}/run"),
)
# To allow more than here takes rights that root may lack. Without systemd nobody asks for health.
RUN = (
    *("--ulimit=nofile=10240:10240", "--ulimit=nproc=4096:4096"),
    *("--network=none", "--no-healthcheck"),
)


def ran(*words: str) -> subprocess.CompletedProcess[str]:
    """Podman, run to its end."""
    return subprocess.run([*PODMAN, *words], capture_output=True, text=True, check=False)


def podman(*words: str, code: int = 0) -> str:
    """Return what it prints; another exit code than this fails the check."""
    done = ran(*words)
    assert done.returncode == code, f"{shlex.join(words)}: {done.returncode}\n{done.stderr}"
    return done.stdout.strip()


def once(*words: str, code: int = 0) -> str:
    """Return what a container prints that ends by itself."""
    return podman("run", "--rm", *RUN, *words, code=code)


class Container:
    """A server in the image. A check has it from ``container``, which removes it."""

    def __init__(self, *words: str) -> None:
        self._began_s = time.monotonic()
        self._name = podman("run", "--detach", *RUN, *words)

    def does(self, what: str, *words: str) -> str:
        """``podman WHAT``, with this container."""
        return podman(what, self._name, *words)

    def cli(self, *words: str) -> str:
        """Return what redis-cli prints in it."""
        return self.does("exec", "redis-cli", *words)

    def serving(self) -> Self:
        """Wait for PONG."""
        while "PONG" not in ran("exec", self._name, "redis-cli", "ping").stdout:
            assert time.monotonic() - self._began_s < PATIENCE_S, ran("logs", self._name)
        self.took_s = time.monotonic() - self._began_s
        return self

    def healthy(self) -> None:
        """Wait until the image's health check says so."""
        test = json.loads(podman("image", "inspect", "--format={{json .HealthCheck.Test}}", IMAGE))
        while ran("exec", self._name, *test[1:]).returncode:
            assert time.monotonic() - self._began_s < PATIENCE_S, ran("logs", self._name)

    def end(self, signal: str) -> float:
        """Seconds until it has ended, as it should."""
        began_s = time.monotonic()
        self.does("kill", f"--signal={signal}")
        while self.does("inspect", "--format={{.State.Status}}") == "running":
            assert time.monotonic() - began_s < STOP_S, f"{signal} does not end it"
        assert self.does("inspect", "--format={{.State.ExitCode}}") == "0"
        return time.monotonic() - began_s


@contextlib.contextmanager
def container(*words: str) -> Iterator[Container]:
    """Run one: options of ``docker run``, the image, and what is written behind it."""
    running = Container(*words)
    try:
        yield running
    finally:
        running.does("rm", "--force", "--time=0", "--volumes")


# The checks; what each returns is told beside its name.


def build() -> str:
    if ran("image", "exists", BASE).returncode:
        with subprocess.Popen([*MAKE_BASE, DEBIAN[PYTHON]], stdout=subprocess.PIPE) as base:
            subprocess.run([*PODMAN, "import", "-", BASE], stdin=base.stdout, check=True)
        assert base.returncode == 0
    began_s = time.monotonic()
    wheel = os.environ.get("HEADRACE_WHEEL") or next(Path(sys.prefix, "wheel").glob("*.whl"))
    with tempfile.TemporaryDirectory(dir=STORE) as folder:
        context = Path(folder)
        copy_context(context)
        (context / "docker" / "builds").mkdir()
        shutil.copy(wheel, context / "docker" / "builds")
        words = ["build", "--format=docker", "--isolation=chroot", "--network=host"]
        # pip may have to trust what this machine trusts.
        words += ["--volume=/etc/ssl/certs:/etc/ssl/certs:ro", f"--build-arg=BASE={BASE}"]
        for text in (DOCKERFILE, DOCKERFILE.replace(" --start-interval=0.5s", "")):  # older Podman
            (context / "Dockerfile").write_text(text)
            done = ran(*words, f"--tag={IMAGE}", folder)
            if "-start-interval" not in done.stderr:
                break
        assert done.returncode == 0, done.stderr
    return f"{time.monotonic() - began_s:.1f} s"


def size() -> str:
    with tempfile.TemporaryDirectory(dir=STORE) as folder:
        podman("push", "--compress", IMAGE, f"dir:{folder}")
        layers = json.loads(Path(folder, "manifest.json").read_text())["layers"]
    base, *ours = [layer["size"] / 1e6 for layer in layers]
    assert sum(ours) < OURS_MB, ours
    return f"{sum(ours):.1f} MB compressed beside the base, which as made here has {base:.1f} MB"


def nothing_to_build_with() -> str:
    assert not once(
        IMAGE, "sh", "-c", "for each in cc gcc ld as make; do command -v $each; done; :"
    )
    return once(IMAGE, "redis-server", "--version")


def start() -> str:
    with container("--entrypoint=headrace", IMAGE) as server:  # as root, who may write all
        server.serving().healthy()
        assert ".pyc" not in server.does("diff")
    with container(IMAGE) as server:
        took_s = server.serving().took_s
        assert took_s < START_S, took_s
    return f"PONG {took_s:.2f} s after `run`"


def user() -> str:
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o700)
        Path(folder, "dump.rdb").touch()
        once(f"--volume={folder}:/data", IMAGE, "check-aof", "/data")
        assert {Path(folder).stat().st_uid, Path(folder, "dump.rdb").stat().st_uid} == {999}
    with container(IMAGE) as server:
        server.serving().cli("save")
        status = server.does("exec", "sed", "-n", "s/^Uid://p", "/proc/1/status")
        assert status.split() == ["999"] * 4, status
        return server.does("exec", "stat", "--format=%n %a %u:%g", "/data/dump.rdb", ".")


def saves(*options: str) -> str:
    with container(*options, IMAGE, "--appendonly", "yes") as server:
        server.serving()
        assert server.cli("set", "k", "v") == "OK"
        assert server.cli("save") == "OK"
        return server.does("exec", "ls", "-ln", "/data/dump.rdb")


def words() -> str:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "redis.conf").write_text("maxmemory 7mb\nsave 77 7\n")
        os.chmod(folder, 0o755)
        path = "/usr/local/etc/redis"
        given, file = f"--volume={folder}:{path}", f"{path}/redis.conf"
        for before, behind, name, value in (
            ("", ["redis-server", "--save", ""], "save", ""),
            ("", ["--save", "", "--appendonly", "yes"], "appendonly", "yes"),
            ("", ["sh", "-c", "exec redis-server --save '9 9'"], "save", "9 9"),
            (given, ["redis-server", file], "save", "77 7"),
            (given, [file, "--maxmemory", "1mb"], "maxmemory", "1048576"),
            (f"--volume={folder}/redis.conf:{file}", [file], "save", "77 7"),
        ):
            with container(*filter(None, [before]), IMAGE, *behind) as server:
                found = server.serving().cli("config", "get", name)
                assert found == f"{name}\n{value}".strip(), (behind, found)
    return ""


def programs() -> str:
    assert once(IMAGE, "sh", "-c", "echo $((6 * 7))") == "42"
    once(IMAGE, "bash", "-c", "exit 7", code=7)
    once(IMAGE, "--no-such-option", "1", code=1)
    once(IMAGE, "redis-server", "/no/such.conf", code=1)
    return once(IMAGE, "redis-cli", "--version")


def time_zone() -> str:
    with container("--env=TZ=Pacific/Kiritimati", IMAGE) as server:
        server.serving()
        log = server.does("logs")
        assert server.does("exec", "date", "+%d %b %Y %H:") in log, log
        return log.partition(" * ")[0]


def ends() -> str:
    took = {}
    with container(IMAGE) as server:
        for number, signal in enumerate(("TERM", "INT"), 1):
            server.serving().cli("xadd", "stream", "*", "field", "value")
            took[signal] = server.end(signal)
            server.does("start")
            assert server.serving().cli("xlen", "stream") == str(number)
    return ", ".join(f"{signal} {seconds:.2f} s" for signal, seconds in took.items())


def ends_early() -> str:
    with container(IMAGE) as server:
        for _ in range(20):
            server.end("TERM")
            server.does("start")
    return ""


def healthy() -> str:
    with container(IMAGE, "--requirepass", "secret", "--bind", "::1") as server:
        server.healthy()
    with container(IMAGE) as server:
        assert server.serving().cli("ping") == "PONG"
    return ""


def network() -> str:
    with container(IMAGE) as server:
        assert server.serving().cli("-h", "::1", "ping") == "PONG"
        assert server.cli("config", "get", "protected-mode").split()[1] == "no"
        assert server.cli("config", "get", "bind").split()[1:] == ["*", "-::*"]
    with container("--sysctl=net.ipv6.conf.all.disable_ipv6=1", IMAGE) as server:
        assert server.serving().cli("ping") == "PONG"
    return ""


CHECKS: dict[str, Callable[[], str]] = {
    "The Dockerfile builds, on that base": build,
    "What is downloaded is small": size,
    "No compiler is left in it": nothing_to_build_with,
    "A start is short: all modules are compiled, those of Python too": start,
    "Root hands over to 999, with what lies in the folder": user,
    "A user of no name, in group 0, saves": lambda: saves("--user=1234567"),
    "It saves where the volume alone can be written": lambda: saves(
        "--read-only", "--read-only-tmpfs=false"
    ),
    "It saves as root that has no rights": lambda: saves("--cap-drop=ALL"),
    "What stands behind the image's name, as Redis's image takes it": words,
    "Other programs run in it, and their exit codes are the container's": programs,
    "TZ sets the clock of the log, on the standard output": time_zone,
    "SIGTERM and SIGINT end it, and the data is there at the next start": ends,
    "SIGTERM ends it within its first moments, too: process 1 hears no signal unasked": ends_early,
    "The image's health check, and that of GitHub's services: `redis-cli ping`": healthy,
    "It is reached from outside, by IPv6 too, and starts where that is switched off": network,
}


def main() -> int:
    """Run all checks, or those whose names hold a text; how many failed."""
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    missing = [each for each in ("podman", "runc", "mmdebstrap") if not shutil.which(each)]
    if missing or os.geteuid() or PYTHON not in DEBIAN:
        print("image-check needs root, a Debian that has this Python, and on the PATH:", *missing)
        return 2
    STORE.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name, check in CHECKS.items():
        if check is not build and only not in name:
            continue
        try:
            told = ", ".join(check().splitlines())
            print(f"PASS  {name}" + f" ({told})" * bool(told), flush=True)
        except AssertionError as error:
            print(f"FAIL  {name}: {error}", flush=True)
            failed += 1
            if check is build:
                break
    return failed


if __name__ == "__main__":
    sys.exit(main())
