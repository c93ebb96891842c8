"""Runs a unit of Redis's tests against a server, as an external one, and tells what became of each.

Redis's tests are run by a client in Tcl. A server tells it over a socket what to run, and is told
what happened. We are that server. The client first gets ``prelude.tcl``, which lets it go on where
it would end.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from support.process import Process

_PRELUDE: Final = (Path(__file__).parent / "prelude.tcl").read_bytes()
_HANGS_S: Final = 60.0  # a test that takes longer is left out, and the unit begun again
_HANGS_AT_MOST: Final = 5
_PLAIN: Final = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:")

PASSED: Final = "ok"
FAILED: Final = "err"
IGNORED: Final = "ignore"
BETWEEN: Final = "between"
_KINDS: Final = (PASSED, FAILED, IGNORED, BETWEEN)
# What both servers are started with, as Redis does in its own runs of this kind.
SETTINGS: Final = ("--save", "", "--enable-protected-configs", "yes")


class Outcome(NamedTuple):
    """What became of a test.

    Attributes:
        status: PASSED, FAILED, IGNORED (not meant for an external server), or BETWEEN: an error
            outside of tests, after which those that follow may lack something.
        name: the test's, or the error.
        reason: why it failed.
    """

    status: str
    name: str
    reason: str = ""


class _Hangs(Exception):
    """Nothing is told any more.

    Args:
        test: the one that was begun last.
    """

    def __init__(self, test: str) -> None:
        super().__init__(test)
        self.test: Final = test


class _Client:
    """A client in Tcl, and the connection on which it is told what to do.

    Args:
        suite: the folder of Redis's sources.
        port: that of the server under test.
        options: more words for its command line.
    """

    def __init__(self, suite: Path, port: int, options: list[str]) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.settimeout(_HANGS_S)
            self._process: Final = subprocess.Popen(
                ["tclsh", "tests/test_helper.tcl", "--client", str(listener.getsockname()[1]),
                 "--host", "127.0.0.1", "--port", str(port), "--durable", *options],
                cwd=suite, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
            self._sock: Final = listener.accept()[0]
        self._sock.settimeout(_HANGS_S)
        self._lines: Final = self._sock.makefile("rb")
        self._lines.read(int(self._lines.readline()))  # that it is ready
        for _ in self.run(_PRELUDE):
            pass

    def run(self, code: bytes) -> Iterator[tuple[str, str]]:
        """Have it run some Tcl; what it tells, until it is done. Raises: TimeoutError, EOFError."""
        words = b"run_code " + _quoted(b"unit unit " + _quoted(code))
        self._sock.sendall(b"%d\n%b" % (len(words), words))
        for line in self._lines:
            status, _, text = line.decode().rstrip("\n").partition(" ")
            if status == "done":
                return
            yield status, bytes.fromhex(text).decode("utf-8", "backslashreplace")
        raise EOFError("the client has ended")

    def end(self) -> None:
        """End it, and what it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._lines.close()
        self._sock.close()


def _quoted(data: bytes) -> bytes:
    """One word of a list, as Tcl reads it."""
    return b"".join(b"%c" % byte if byte in _PLAIN else b"\\u%04x" % byte for byte in data)


def _once(suite: Path, port: int, unit: str, options: list[str]) -> Iterator[Outcome]:
    """Return what becomes of the tests of a unit. Raises: _Hangs."""
    client = _Client(suite, port, options)
    begun = ""
    try:
        for status, text in client.run(b"go_on_with tests/%b.tcl" % unit.encode()):
            if status == "testing":
                begun = text
            elif status in _KINDS:
                begun = "" if status in (PASSED, FAILED) else begun
                name, *reason = text.split("\n")
                if status == FAILED:
                    name = name.removesuffix(f" in tests/{unit}.tcl")
                    if len(reason) > 1 and reason[1].endswith(reason[0]):
                        del reason[0]  # the client has cut off its front, as an assertion's name
                yield Outcome(status, name, "\n".join(reason))
    except (TimeoutError, EOFError):
        raise _Hangs(begun) from None
    finally:
        client.end()


def run(
    suite: Path,
    server: Callable[[], Process],
    unit: str,
    options: list[str],
    tls_port: int = 0,
) -> list[Outcome]:
    """Run a unit.

    Args:
        suite: the folder of Redis's sources.
        server: starts the server under test; a test that hangs is left out on a new one.
        unit: its name, as ``unit/type/list``.
        options: more words for the client, as ``--only NAME``.
        tls_port: where the server awaits encrypted connections, if these are to be used.
    """
    hung: list[Outcome] = []
    while True:
        skipped = [word for each in hung for word in ("--skiptest", each.name)]
        outcomes: list[Outcome] = []
        with server() as process:
            try:
                outcomes.extend(_once(suite, tls_port or process.port, unit, [*options, *skipped]))
                return hung + outcomes
            except _Hangs as found:
                if found.test:
                    hung.append(Outcome(FAILED, found.test, "nothing more was told"))
                if not found.test or len(hung) >= _HANGS_AT_MOST:
                    return [*hung, *outcomes, Outcome(BETWEEN, "the rest was given up")]
