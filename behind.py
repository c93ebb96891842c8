"""Compile while the server serves as Python: ``make run`` starts this beside it.

    python behind.py SERVER_PID LOG COMMAND [ARGUMENT ...]

COMMAND installs the compiled build. What it prints goes to LOG, and how far it is to standard
error. It gets the processor when nothing else wants it, and ends when the server does. What it has
compiled until then is kept for the next time.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from io import FileIO
from pathlib import Path

SHOWN = "headrace: "
LOOK_S = 0.5
ending: list[int] = []  # signals that came


def say(text: str) -> None:
    """One line beside those of the server's log."""
    print(f"headrace: {text}", file=sys.stderr, flush=True)


def install_beside(server: int, log: FileIO, command: list[str]) -> None:
    """Run the command for as long as the server lives, and say how it ended."""
    began_s = time.monotonic()
    told: list[str] = []
    # A session of its own: a signal then ends all of it, or none. What looks after it is not as
    # nice as it is, or would end it late where the processor is busy.
    with subprocess.Popen(
        ["nice", "-n", "19", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        reader = threading.Thread(target=pass_on, args=(process, log, told))
        reader.start()
        while process.poll() is None and os.getppid() == server and not ending:
            time.sleep(LOOK_S)
        with contextlib.suppress(OSError):  # all of it has ended
            os.killpg(process.pid, signal.SIGTERM)
        reader.join()
    if process.returncode == 0:
        say(f"done in {time.monotonic() - began_s:.0f} s")
    elif os.getppid() == server and not ending:
        why = told[-1] if told else f"exit code {process.returncode}"
        say(f"not compiled, the server goes on as Python: {why} ({log.name} has all of it)")


def pass_on(process: subprocess.Popen[bytes], log: FileIO, told: list[str]) -> None:
    """Write what a process prints into a file while there is room, and show how far it is."""
    assert process.stdout is not None
    for line in process.stdout:
        with contextlib.suppress(OSError):
            log.write(line)
        text = line.decode(errors="replace").strip()
        if text.startswith(SHOWN):
            print(text, file=sys.stderr, flush=True)
        elif text and not text.startswith("make"):  # which only says that something failed
            told.append(text)


def main() -> None:
    """As the module says."""
    server, path, command = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, frame: ending.append(number))
    try:
        with path.open("wb", buffering=0) as log:
            install_beside(server, log, command)
    except OSError as error:
        say(f"not compiled, the server goes on as Python: {error}")


if __name__ == "__main__":
    main()
