"""Jobs that are started again: after failures, and not when that is no use."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from rich.console import Console

from pyspark_headrace.cli.program import main
from pyspark_headrace.errors import DataLossError, OptionError, ServerError
from pyspark_headrace.jobs.supervisor import NO_USE, Supervisor, is_final, job_command
from support.build import environment
from support.process import ServerProcess
from support.waiting import wait_until

pytestmark = pytest.mark.once

TIMEOUT_S = 180


def program(body: str) -> list[str]:
    """A program that counts its starts in a file, by which ``n`` is known."""
    head = (
        "import os, sys, time, pathlib; starts = pathlib.Path(os.environ['STARTS']);"
        "n = len(starts.read_text()) if starts.exists() else 0; starts.write_text('x' * (n + 1))\n"
    )
    return [sys.executable, "-c", head + body]


@pytest.fixture
def starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = tmp_path / "starts"
    monkeypatch.setenv("STARTS", str(found))
    return found


@pytest.mark.parametrize(
    ("body", "most", "code", "times"),
    [
        ("sys.exit(0)", 0, 0, 1),
        ("sys.exit(0 if n == 3 else 2)", 0, 0, 4),
        ("os.kill(os.getpid(), 9) if n < 2 else sys.exit(0)", 0, 0, 3),
        ("sys.exit(2)", 3, 2, 3),
        ("os.kill(os.getpid(), 9)", 2, 137, 2),
        (f"sys.exit({NO_USE} if os.environ['HEADRACE_SUPERVISED'] else 2)", 0, NO_USE, 1),
    ],
)
def test_how_often(starts: Path, body: str, most: int, code: int, times: int) -> None:
    assert Supervisor(program(body), Console(quiet=True), 0.01, most).run() == code
    assert len(starts.read_text()) == times


def test_a_signal_ends_both(starts: Path) -> None:
    words = program("print('up', flush=True); time.sleep(600)")
    code = (
        "import sys; from rich.console import Console;"
        "from pyspark_headrace.jobs.supervisor import Supervisor;"
        f"sys.exit(Supervisor({words!r}, Console(), 0.01).run())"
    )
    with subprocess.Popen(
        [sys.executable, "-P", "-c", code], stdout=subprocess.PIPE, env=environment()
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert len(starts.read_text()) == 1


def test_what_is_no_use() -> None:
    assert is_final(OptionError("x"))
    assert is_final(DataLossError("x"))
    assert is_final(Exception("org.apache...: pyspark_headrace.errors.DataLossError: stream s: x"))
    assert not is_final(ServerError("OOM"))
    assert not is_final(Exception("Python worker failed to connect back"))


def test_wrong_words(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", "--restart", "totals", "--strem", "x"])
    assert "required: --into, --checkpoint" in capsys.readouterr().err
    assert main(["run", "run", "lag", "--stream", "x"]) == 2
    assert "not itself" in capsys.readouterr().err


def children(pid: int) -> list[int]:
    """All processes below one; some of them may end meanwhile."""
    found: list[int] = []
    with suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            for child in map(int, task.read_text().split()):
                found += [child, *children(child)]
    return found


def is_java(pid: int) -> bool:
    """Return whether a process is a JVM; one that has ended is none."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip() == "java"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.slow
def test_a_job_whose_jvm_is_killed(server: ServerProcess, tmp_path: Path) -> None:
    rows = 2000
    with server.client() as client:
        client.pipeline(*[("XADD", "in", "*", "n", n, "rider", "ada") for n in range(rows)])
    words = [
        *(
            "run",
            "--restart",
            "--delay",
            "1",
            "totals",
            "--url",
            f"redis://localhost:{server.port}",
        ),
        *("--stream", "in", "--by", "rider", "--value", "n", "--into", "out"),
        *("--checkpoint", str(tmp_path / "checkpoint"), "--max-per-batch", "100"),
        *("--conf", "spark.ui.enabled=false", "--conf", "spark.driver.memory=512m"),
    ]
    log = tmp_path / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(job_command(words), stdout=out, stderr=out, env=environment())
    try:
        until_s = time.monotonic() + TIMEOUT_S
        wait_until(lambda: server.call("XLEN", "out") >= 3, TIMEOUT_S)  # type: ignore[operator]
        for pid in children(process.pid):
            if is_java(pid):
                os.kill(pid, signal.SIGKILL)
        assert process.wait(until_s - time.monotonic()) == 0, log.read_text()[-4000:]
    finally:
        for pid in [*children(process.pid), process.pid] if process.poll() is None else []:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()
    assert "again in 1 s" in log.read_text()
    entries = server.call("XRANGE", "out", "-", "+")
    assert isinstance(entries, list)
    last = dict(zip(entries[-1][1][0::2], entries[-1][1][1::2], strict=True))
    assert last[b"count"] == b"2000"
    assert last[b"total"] == str(sum(range(rows))).encode()
    assert len(entries) == 20
