"""A PostgreSQL of one's own: a cluster in a temporary folder, from the system's programs.

It listens on a Unix socket in its own folder only, so it takes no port and nobody else can reach
it. PostgreSQL refuses to run as root; for root it runs as ``postgres`` or ``nobody``.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import psycopg
from psycopg.conninfo import make_conninfo

from rocket_rides.guard import Guard

DEBIAN = Path("/usr/lib/postgresql")
USER = "rides"


class NoPostgres(Exception):
    """PostgreSQL is not installed, or does not start."""


def programs() -> Path | None:
    """The folder of ``initdb`` and ``postgres``, the newest where there are several; or None."""
    folders = [DEBIAN / name.name / "bin" for name in DEBIAN.glob("*")]
    folders.sort(key=lambda folder: int(re.sub(r"\D", "", folder.parent.name) or 0), reverse=True)
    on_path = shutil.which("initdb")
    if on_path is not None:
        folders.append(Path(on_path).resolve().parent)
    for folder in folders:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    return None


def _account() -> pwd.struct_passwd | None:
    """As whom to run it, when not as ourselves."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise NoPostgres("PostgreSQL does not run as root, and there is no other account to run it as")


class Cluster:
    """A cluster that is made at the start and removed at the end.

    Args:
        guard: whoever ends it when we cannot.
        options: for ``postgres``, besides those that it needs.
    """

    def __init__(self, guard: Guard, *options: str) -> None:
        self.guard = guard
        self.options = options
        folder = programs()
        if folder is None:
            raise NoPostgres(
                "PostgreSQL is not installed (Debian and Ubuntu: apt-get install postgresql); "
                "or name a running one with --dsn"
            )
        self.programs = folder
        self.account = _account()
        self.directory = Path(tempfile.mkdtemp(prefix="rocket-rides-"))
        if self.account is not None:
            os.chown(self.directory, self.account.pw_uid, self.account.pw_gid)
        self.log_path = self.directory / "postgres.log"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self.create()
            self.start()
            self.wait_until_ready()
        except BaseException:
            self.discard()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.discard()

    @property
    def data(self) -> Path:
        """Return where the cluster lies."""
        return self.directory / "data"

    def dsn(self, database: str = "postgres") -> str:
        """Return how to reach it."""
        return make_conninfo(host=str(self.directory), user=USER, dbname=database)

    def create(self) -> None:
        """Make the cluster's files."""
        done = self._spawn(
            "initdb", "--pgdata", self.data, "--username", USER, "--auth", "trust",
            "--encoding", "UTF8", "--locale", "C", "--no-sync", "--no-instructions",
        )  # fmt: skip
        if done.wait(120) != 0:
            raise NoPostgres(f"initdb failed:\n{self.log()}")

    def start(self) -> None:
        """Start the server; ``wait_until_ready`` tells when it answers."""
        assert not self.running
        self._process = self._spawn(
            "postgres", "-D", self.data, "-k", self.directory, "-c", "listen_addresses=",
            "-c", "max_connections=100",
        )  # fmt: skip

    def wait_until_ready(self, timeout_s: float = 60.0) -> None:
        """Wait until it takes connections."""
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                psycopg.connect(self.dsn(), connect_timeout=5).close()
                return
            except psycopg.OperationalError as error:
                if not self.running or time.monotonic() > deadline:
                    raise NoPostgres(f"PostgreSQL does not start: {error}\n{self.log()}") from None
                time.sleep(0.02)

    def crash(self) -> None:
        """End it as a power cut would, all its processes at once; what was committed is on disk."""
        assert self._process is not None
        self._process.send_signal(signal.SIGQUIT)  # "immediate shutdown"

    @property
    def running(self) -> bool:
        """Return whether the server's first process lives."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process is not None
        return self._process.pid

    def log(self) -> str:
        """The end of what it logged."""
        try:
            return self.log_path.read_text(errors="replace")[-4000:]
        except FileNotFoundError:
            return ""

    def discard(self) -> None:
        """End it and remove all its files."""
        if self._process is not None and self.running:
            self._process.send_signal(signal.SIGQUIT)
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _spawn(self, program: str, *arguments: str | Path) -> subprocess.Popen[bytes]:
        account = self.account
        with self.log_path.open("ab") as log:
            return subprocess.Popen(
                [self.programs / program, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
                process_group=self.guard.group,
                user=None if account is None else account.pw_uid,
                group=None if account is None else account.pw_gid,
                extra_groups=None if account is None else [],
                env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "TZ": "UTC"},
            )
