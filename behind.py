"""Compile while the server serves as Python: ``make run`` starts this beside it.

    python behind.py SERVER_PID LOG COMMAND [ARGUMENT ...]

COMMAND installs the compiled build. What it prints goes to LOG, and how far it is to standard
error. It gets the processor when nothing else wants it, and ends when the server does. What it has
compiled until then is kept for the next time. Of several in one checkout one works.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

SHOWN = "headrace: compiling "
LOOK_S = 0.5


def say(text: str) -> None:
    """One line beside those of the server's log."""
    print(f"headrace: {text}", file=sys.stderr, flush=True)


def compile_beside(server: int, log: Path, command: list[str]) -> None:
    """Run the command for as long as the server lives, and say how it ended."""
    began_s = time.monotonic()
    # A session of its own: a signal then ends all of it, or none.
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        reader = threading.Thread(target=pass_on, args=(process, log))
        reader.start()
        try:
            while process.poll() is None and os.getppid() == server:
                time.sleep(LOOK_S)
        finally:
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGTERM)
        reader.join()
    if process.returncode == 0:
        say(f"compiled in {time.monotonic() - began_s:.0f} s")
    elif os.getppid() == server:
        lines = [line for line in log.read_text().splitlines() if line.strip()]
        why = lines[-1] if lines else f"exit code {process.returncode}"
        say(f"not compiled, the server goes on as Python: {why} ({log} has all of it)")


def pass_on(process: subprocess.Popen[str], log: Path) -> None:
    """Write what a process prints into a file, and show how far it is."""
    assert process.stdout is not None
    with log.open("w") as file:
        for line in process.stdout:
            file.write(line)
            file.flush()
            if line.startswith(SHOWN):
                print(line, end="", file=sys.stderr, flush=True)


def main() -> None:
    """As the module says."""
    server, log, command = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
    os.nice(19)
    with log.with_suffix(".lock").open("w") as lock, contextlib.suppress(KeyboardInterrupt):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another `make` is compiling in this checkout")
            return
        compile_beside(server, log, command)


if __name__ == "__main__":
    main()
