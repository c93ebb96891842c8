"""The process and the system: file limit, pid file, spare files, memory, supervisor.

Passwords of the command line do not stay in the list of processes. Any user of the machine may read
the words that a process was started with. The kernel shows them from the process's own memory, so
they are overwritten there.

Spare descriptors are kept for files that are opened late, because clients may have taken all
others. Modules that few servers need are imported when first needed, and Lua's libraries are read
with the first script. An import looks for files before it opens them: the finder of this module is
asked first, finds nothing, and frees the spare descriptors. They are taken again as soon as the
event loop goes on.

Of the supervisors of a process systemd gets messages and hands sockets over, upstart gets a stop.
Source: sd_notify(3), sd_listen_fds(3); upstart's ``expect stop``.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import socket
import sys
from asyncio import AbstractEventLoop
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final

from headrace.server.config.config import Config
from headrace.server.config.files import SECRET_DIRECTIVES, leading_name
from headrace.server.config.parameters import is_sensitive
from headrace.server.log import log

_SOCKET: Final = "NOTIFY_SOCKET"
_JOB: Final = "UPSTART_JOB"

INHERITED: Final = "LISTEN_FDS"  # how many sockets the process was started with
INHERITOR: Final = "LISTEN_PID"  # which process they are for
FIRST_INHERITED: Final = 3  # descriptor


class Supervision:
    """The supervision that ``supervised`` asks for; ``kind``: its name, as INFO shows it."""

    def __init__(self, asked: bytes) -> None:
        self.kind: Final = _kind(asked)
        self._address = os.environ.get(_SOCKET, "") if self.kind == b"systemd" else ""

    def announce(self) -> None:
        """Log the kind, and what it lacks."""
        if self.kind == b"systemd":
            if self._address:
                log.info("Supervised by systemd")
            else:
                log.warning("supervised systemd, but there is no %s: nothing is reported", _SOCKET)
        elif self.kind == b"upstart":
            log.info("Supervised by upstart, the process will stop when it is ready")

    def ready(self) -> None:
        """Report that clients are served from now on."""
        self.notify("STATUS=Ready to accept connections\nREADY=1\n")
        if self.kind == b"upstart":
            os.environ.pop(_JOB, None)
            os.kill(os.getpid(), signal.SIGSTOP)

    def notify(self, lines: str) -> None:
        """Send systemd a message; a failure to send it is logged and no more."""
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
    if asked in (b"auto", b"upstart") and os.environ.get(_JOB):
        return b"upstart"
    if asked == b"systemd" or (asked == b"auto" and os.environ.get(_SOCKET)):
        return b"systemd"
    return b"no"


def is_supervised(asked: bytes) -> bool:
    """Return whether there is a supervisor: then the process stays in the foreground."""
    return _kind(asked) != b"no"


def inherited_sockets() -> list[socket.socket]:
    """Return the listening sockets that the process was started with; each is returned once."""
    meant = os.environ.pop(INHERITOR, "") == str(os.getpid())
    count = int(os.environ.pop(INHERITED, "0"))
    found = []
    for descriptor in range(FIRST_INHERITED, FIRST_INHERITED + (count if meant else 0)):
        os.set_inheritable(descriptor, False)
        found.append(socket.socket(fileno=descriptor))
        found[-1].setblocking(False)
    return found


MASK: Final = b"*"
_ARG_START: Final = 45  # among the fields of /proc/PID/stat behind the name; proc(5) counts from 1
_ARG_END: Final = 46


def masked(words: list[bytes]) -> list[bytes]:
    """Return the words of a command line with ``*`` in the place of each password."""
    shown: list[bytes] = []
    secret = False  # what follows is a password, until another option does
    value = False  # the next word is a value, whatever it looks like
    for word in words:
        if word[:2] == b"--" and not value:
            name = leading_name(word[2:])
            secret = is_sensitive(name) or name.lower() in SECRET_DIRECTIVES
            value = len(name) == len(word) - 2
            if secret and not value:
                word = b"--" + name + b" " + MASK
        else:
            value = False
            if secret and word:
                word = MASK
        shown.append(word)
    return shown


def hide_passwords(words: list[bytes]) -> None:
    """Let the system show this process's command line, ``words``, without passwords."""
    shown = masked(words)
    if shown == words:
        return
    try:
        _write(words, shown)
    except (OSError, ValueError, IndexError) as error:
        log.warning("A password may be seen in the list of processes: %s", error)


def _write(words: list[bytes], shown: list[bytes]) -> None:
    with open("/proc/self/stat", "rb") as stat:
        fields = stat.read().rpartition(b")")[2].split()
    start, end = int(fields[_ARG_START]), int(fields[_ARG_END])
    old = b"\0".join([*words, b""])
    new = b"\0".join([*shown, b""]).ljust(len(old), b"\0")
    with open("/proc/self/mem", "r+b", buffering=0) as memory:
        memory.seek(end - len(old))
        if end - len(old) < start or memory.read(len(old)) != old:
            raise ValueError("the words are not where they should be")
        memory.seek(end - len(old))
        memory.write(new)


RESERVED_FILES: Final = 32  # for listeners, the log and the data files


def clients_possible(wanted: int) -> int:
    """Raise the limit for ``wanted`` clients as far as possible; return how many can be served."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = wanted + RESERVED_FILES
    if soft == resource.RLIM_INFINITY or soft >= files:
        return wanted
    if _raise_limit(files, hard if hard == resource.RLIM_INFINITY else max(hard, files)):
        return wanted
    # Only a privileged process may go beyond the hard limit.
    if hard > soft and _raise_limit(min(hard, files), hard):
        soft = min(hard, files)
    return max(0, min(wanted, soft - RESERVED_FILES))


def _raise_limit(soft: int, hard: int) -> bool:
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    except (OSError, ValueError):
        return False
    return True


OOM_SCORE_FILE: Final = "/proc/self/oom_score_adj"
HUGE_PAGES_FILE: Final = "/sys/kernel/mm/transparent_hugepage/enabled"
MOST_SCORE: Final = 1000
NOT_APPLIED: Final = "Failed to apply new oom_score_adj configuration, check server logs."
_PR_SET_THP_DISABLE: Final = 41


class OomScore:
    """How early the kernel ends this process when memory is short (``oom-score-adj``).

    The first of ``oom-score-adj-values`` is that of a server that copies from no other. The two
    behind it are of replicas and of processes that save, and there are neither.
    """

    def __init__(self, config: Config) -> None:
        self._config: Final = config
        self._first: int | None = None  # the score before the first change
        self._last: int | None = None

    def start(self) -> None:
        """Apply the configuration, now and after each change."""
        self._config.on_change["oom-score-adj"] = self._apply
        self._config.on_change["oom-score-adj-values"] = self._apply
        self._apply()

    def _apply(self) -> str | None:
        config = self._config
        if config.oom_score_adj == b"no" and self._first is None:
            return None
        try:
            if self._first is None:
                with open(OOM_SCORE_FILE, "rb") as file:
                    self._first = int(file.read())
            score = self._first
            if config.oom_score_adj != b"no":
                value = config.oom_score_adj_values[0]
                score = value if config.oom_score_adj == b"absolute" else score + value
            score = max(-MOST_SCORE, min(MOST_SCORE, score))
            if score != self._last:
                with open(OOM_SCORE_FILE, "wb") as file:
                    file.write(b"%d" % score)
            self._last = score
        except OSError as error:
            log.warning("oom_score_adj cannot be set: %s", error)
            return NOT_APPLIED
        return None


def disable_huge_pages() -> None:
    """Keep the kernel from backing memory of this process by huge pages on its own.

    They make a process that holds many small values larger, and its answers uneven.
    """
    try:
        with open(HUGE_PAGES_FILE, "rb") as file:
            always = b"[always]" in file.read()
    except OSError:
        return
    if not always:
        return
    from ctypes import CDLL  # late: few systems need it

    if CDLL(None).prctl(_PR_SET_THP_DISABLE, 1, 0, 0, 0):
        log.warning("Transparent huge pages cannot be turned off for this process")


def write_pid_file(config: Config) -> None:
    """Write the process ID where ``pidfile`` says; a failure is logged and no more."""
    if not config.pidfile:
        return
    try:
        with open(config.pidfile, "wb") as file:
            file.write(_content())
    except OSError as error:
        log.warning("Failed to write the PID file: %s", error)


def remove_pid_file(config: Config) -> None:
    """Remove the file of ``write_pid_file``, unless it is another server's by now."""
    if not config.pidfile:
        return
    with contextlib.suppress(OSError):
        with open(config.pidfile, "rb") as file:
            ours = file.read(64) == _content()
        if ours:
            os.unlink(config.pidfile)


def _content() -> bytes:
    return b"%d\n" % os.getpid()


COUNT: Final = 4  # an import opens one file at a time, and a library that it loads maybe another
RETRY_S: Final = 1.0


class SpareFiles:
    """Holds descriptors while a server runs; ``loop`` runs what is to be done later."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop: Final = loop
        self._held: list[int] = []
        self._is_open = True

    def begin(self) -> None:
        """Hold descriptors, and free them for each import from now on."""
        sys.meta_path.insert(0, self)
        self._hold()

    def end(self) -> None:
        """Hold nothing more."""
        sys.meta_path.remove(self)
        self._is_open = False
        self._let_go()

    def lend(self) -> None:
        """Free all for this turn of the event loop, because files are about to be opened."""
        if self._held:
            self._let_go()
            self._loop.call_soon_threadsafe(self._hold)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find nothing; other finders will, and open its file."""
        self.lend()
        return None

    def _hold(self) -> None:
        """Open as many as are lacking, and try again later where that fails."""
        try:
            while self._is_open and len(self._held) < COUNT:
                self._held.append(os.open(os.devnull, os.O_RDONLY))
        except OSError:
            self._loop.call_later(RETRY_S, self._hold)

    def _let_go(self) -> None:
        held, self._held = self._held, []
        for descriptor in held:
            os.close(descriptor)


LIFELINE: Final = "HEADRACE_LIFELINE"


class Lifeline:
    """Ends the server with the process that started it, even if that is killed: for tests.

    ``HEADRACE_LIFELINE`` is ``DESCRIPTOR`` or ``DESCRIPTOR:FOLDER``. Whoever started the server
    holds the other end of that pipe. When it is closed the server ends at once with nothing saved,
    and deletes the folder, if that is the one of its data. A process that it starts has no pipe.
    """

    def __init__(self) -> None:
        number, _, self._folder = os.environ.pop(LIFELINE, "").partition(":")
        self._fd: Final = int(number) if number.isdigit() else -1
        if self._fd >= 0:
            os.set_inheritable(self._fd, False)

    def begin(self, loop: AbstractEventLoop) -> None:
        """Watch it."""
        if self._fd >= 0:
            loop.add_reader(self._fd, self._look)

    def _look(self) -> None:
        with contextlib.suppress(BlockingIOError):
            if not os.read(self._fd, 1):
                if self._folder and os.path.realpath(self._folder) == os.path.realpath("."):
                    import shutil  # few servers are started by a test

                    shutil.rmtree(self._folder, ignore_errors=True)
                os._exit(0)
