"""``make image-check``: the image is built on a base made here, and used as people use Redis's.

No registry is asked. mmdebstrap makes the base, a Debian with the Python of this environment, which
is kept in ``build/image``. Podman builds the Dockerfile on it, with the wheel that ``make install``
has compiled, and runs the image without a network. Each check is a line, and the exit code counts.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
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
    """What the Dockerfile says in all instructions of a name."""
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
    """What it prints; another exit code than this fails the check."""
    done = ran(*words)
    assert done.returncode == code, f"{shlex.join(words)}: {done.returncode}\n{done.stderr}"
    return done.stdout.strip()


def once(*words: str, code: int = 0) -> str:
    """What a container prints that ends by itself."""
    return podman("run", "--rm", *RUN, *words, code=code)


class Container:
    """A server in the image, until the block ends.

    Args:
        words: options of ``docker run``, the image, and what is written behind it.
    """

    def __init__(self, *words: str) -> None:
        self._began_s = time.monotonic()
        self._name = podman("run", "--detach", *RUN, *words)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        podman("rm", "--force", "--time=0", "--volumes", self._name)

    def does(self, what: str, *words: str) -> str:
        """``podman WHAT``, with this container."""
        return podman(what, self._name, *words)

    def cli(self, *words: str) -> str:
        """What redis-cli prints in it."""
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


# The checks; what each returns is told beside its name.


def build() -> str:
    """The Dockerfile builds, on that base."""
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
    """What is downloaded is small."""
    with tempfile.TemporaryDirectory(dir=STORE) as folder:
        podman("push", "--compress", IMAGE, f"dir:{folder}")
        layers = json.loads(Path(folder, "manifest.json").read_text())["layers"]
    base, *ours = [layer["size"] / 1e6 for layer in layers]
    assert sum(ours) < OURS_MB, ours
    return f"{sum(ours):.1f} MB compressed beside the base, which as made here has {base:.1f} MB"


def nothing_to_build_with() -> str:
    """No compiler is left in it."""
    assert not once(
        IMAGE, "sh", "-c", "for each in cc gcc ld as make; do command -v $each; done; :"
    )
    return once(IMAGE, "redis-server", "--version")


def start() -> str:
    """A start is short: all modules are compiled, those of Python too."""
    with Container("--entrypoint=headrace", IMAGE) as server:  # as root, who may write all
        server.serving().healthy()
        assert ".pyc" not in server.does("diff")
    with Container(IMAGE) as server:
        took_s = server.serving().took_s
        assert took_s < START_S, took_s
    return f"PONG {took_s:.2f} s after `run`"


def user() -> str:
    """Root hands over to 999, with what lies in the folder."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o700)
        Path(folder, "dump.rdb").touch()
        once(f"--volume={folder}:/data", IMAGE, "check-aof", "/data")
        assert {Path(folder).stat().st_uid, Path(folder, "dump.rdb").stat().st_uid} == {999}
    with Container(IMAGE) as server:
        server.serving().cli("save")
        status = server.does("exec", "sed", "-n", "s/^Uid://p", "/proc/1/status")
        assert status.split() == ["999"] * 4, status
        return server.does("exec", "stat", "--format=%n %a %u:%g", "/data/dump.rdb", ".")


def any_user() -> str:
    """`--user 1234567`: a user of no name, in group 0."""
    return saves("--user=1234567")


def read_only() -> str:
    """`--read-only`, and no other folder to write to than the volume."""
    return saves("--read-only", "--read-only-tmpfs=false")


def no_rights() -> str:
    """`--cap-drop ALL`: root may not hand over, and serves."""
    return saves("--cap-drop=ALL", "--security-opt=no-new-privileges")


def saves(*options: str) -> str:
    with Container(*options, IMAGE, "--appendonly", "yes") as server:
        server.serving()
        assert server.cli("set", "k", "v") == "OK"
        assert server.cli("save") == "OK"
        return server.does("exec", "ls", "-ln", "/data/dump.rdb")


def words() -> str:
    """What stands behind the image's name, as Redis's image takes it."""
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
            with Container(*filter(None, [before]), IMAGE, *behind) as server:
                found = server.serving().cli("config", "get", name)
                assert found == f"{name}\n{value}".strip(), (behind, found)
    return ""


def programs() -> str:
    """Other programs run in it, and their exit codes are the container's."""
    assert once(IMAGE, "sh", "-c", "echo $((6 * 7))") == "42"
    once(IMAGE, "bash", "-c", "exit 7", code=7)
    once(IMAGE, "--no-such-option", "1", code=1)
    once(IMAGE, "redis-server", "/no/such.conf", code=1)
    return once(IMAGE, "redis-cli", "--version")


def time_zone() -> str:
    """TZ sets the clock of the log, which goes to the standard output alone."""
    with Container("--env=TZ=Pacific/Kiritimati", IMAGE) as server:
        server.serving()
        log = server.does("logs")
        assert server.does("exec", "date", "+%d %b %Y %H:") in log, log
        return log.partition(" * ")[0]


def ends() -> str:
    """SIGTERM and SIGINT end it, and the data is there at the next start."""
    took = {}
    with Container(IMAGE) as server:
        for number, signal in enumerate(("TERM", "INT"), 1):
            server.serving().cli("xadd", "stream", "*", "field", "value")
            took[signal] = server.end(signal)
            server.does("start")
            assert server.serving().cli("xlen", "stream") == str(number)
    return ", ".join(f"{signal} {seconds:.2f} s" for signal, seconds in took.items())


def ends_early() -> str:
    """SIGTERM ends it within its first moments, too: process 1 hears no signal unasked."""
    with Container(IMAGE) as server:
        for _ in range(20):
            server.end("TERM")
            server.does("start")
    return ""


def healthy() -> str:
    """The image's health check, and that of GitHub's services: `redis-cli ping`."""
    with Container(IMAGE, "--requirepass", "secret", "--bind", "::1") as server:
        server.healthy()
    with Container(IMAGE) as server:
        assert server.serving().cli("ping") == "PONG"
    return ""


def network() -> str:
    """It is reached from outside, by IPv6 too, and starts where that is switched off."""
    with Container(IMAGE) as server:
        assert server.serving().cli("-h", "::1", "ping") == "PONG"
        assert server.cli("config", "get", "protected-mode").split()[1] == "no"
        assert server.cli("config", "get", "bind").split()[1:] == ["*", "-::*"]
    with Container("--sysctl=net.ipv6.conf.all.disable_ipv6=1", IMAGE) as server:
        assert server.serving().cli("ping") == "PONG"
    return ""


CHECKS = (
    *(build, size, nothing_to_build_with, start, user, any_user, read_only, no_rights, words),
    *(programs, time_zone, ends, ends_early, healthy, network),
)


def main() -> int:
    """Run all checks, or those whose names hold a word; how many failed."""
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    missing = [each for each in ("podman", "runc", "mmdebstrap") if not shutil.which(each)]
    if missing or os.geteuid() or PYTHON not in DEBIAN:
        print("image-check needs root, a Debian that has this Python, and on the PATH:", *missing)
        return 2
    STORE.mkdir(parents=True, exist_ok=True)
    failed = 0
    for check in CHECKS:
        if check is not build and only not in check.__name__:
            continue
        name = (check.__doc__ or "").partition("\n")[0].rstrip(".")
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
