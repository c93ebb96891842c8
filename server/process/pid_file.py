"""The file in which others find the process ID, while the server runs."""

from __future__ import annotations

import contextlib
import os

from headrace.server.config.config import Config
from headrace.server.log import log


def write_pid_file(config: Config) -> None:
    """Leave the process ID where ``pidfile`` says; a failure is logged and no more."""
    if not config.pidfile:
        return
    try:
        with open(config.pidfile, "wb") as file:
            file.write(_content())
    except OSError as error:
        log.warning("Failed to write the PID file: %s", error)


def remove_pid_file(config: Config) -> None:
    """Take the file of ``write_pid_file`` away again, unless it is another server's by now."""
    if not config.pidfile:
        return
    with contextlib.suppress(OSError):
        with open(config.pidfile, "rb") as file:
            ours = file.read(64) == _content()
        if ours:
            os.unlink(config.pidfile)


def _content() -> bytes:
    return b"%d\n" % os.getpid()
