"""The supervisor of the process: systemd gets messages and hands sockets over, upstart a stop.

Source: sd_notify(3), sd_listen_fds(3); upstart's ``expect stop``.
"""

from __future__ import annotations

import os
import signal
import socket
from typing import Final

from headrace.server.log import log

_SOCKET: Final = "NOTIFY_SOCKET"
_JOB: Final = "UPSTART_JOB"

INHERITED: Final = "LISTEN_FDS"  # how many sockets the process was started with
INHERITOR: Final = "LISTEN_PID"  # which process they are for
FIRST_INHERITED: Final = 3  # descriptor


class Supervision:
    """What ``supervised`` comes to in this process.

    Attributes:
        kind: ``no``, ``systemd`` or ``upstart``, as INFO shows it.
    """

    def __init__(self, asked: bytes) -> None:
        self.kind: Final = _kind(asked)
        self._address = os.environ.get(_SOCKET, "") if self.kind == b"systemd" else ""

    def announce(self) -> None:
        """Say which it is, and what it lacks."""
        if self.kind == b"systemd":
            if self._address:
                log.info("Supervised by systemd")
            else:
                log.warning("supervised systemd, but there is no %s: nothing is reported", _SOCKET)
        elif self.kind == b"upstart":
            log.info("Supervised by upstart, the process will stop when it is ready")

    def ready(self) -> None:
        """Clients are served from now on."""
        self.notify("STATUS=Ready to accept connections\nREADY=1\n")
        if self.kind == b"upstart":
            os.environ.pop(_JOB, None)
            os.kill(os.getpid(), signal.SIGSTOP)

    def notify(self, lines: str) -> None:
        """Send systemd a message; that it cannot be sent is logged and no more."""
        if not self._address:
            return
        address = self._address
        if address.startswith("@"):
            address = "\0" + address[1:]
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                sender.sendto(lines.encode(), socket.MSG_DONTWAIT, address)
        except OSError as error:
            log.warning("systemd cannot be notified of the server's state: %s", error)


def _kind(asked: bytes) -> bytes:
    """Return who supervises, where ``asked`` is the value of ``supervised``."""
    if asked in (b"auto", b"upstart") and os.environ.get(_JOB):
        return b"upstart"
    if asked == b"systemd" or (asked == b"auto" and os.environ.get(_SOCKET)):
        return b"systemd"
    return b"no"


def is_supervised(asked: bytes) -> bool:
    """Return whether somebody supervises: then the process stays in the foreground."""
    return _kind(asked) != b"no"


def inherited_sockets() -> list[socket.socket]:
    """The listening sockets that the process was started with; each is handed out once."""
    meant = os.environ.pop(INHERITOR, "") == str(os.getpid())
    count = int(os.environ.pop(INHERITED, "0"))
    found = []
    for descriptor in range(FIRST_INHERITED, FIRST_INHERITED + (count if meant else 0)):
        os.set_inheritable(descriptor, False)
        found.append(socket.socket(fileno=descriptor))
        found[-1].setblocking(False)
    return found
