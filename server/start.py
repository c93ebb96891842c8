"""The process that a server runs in: configuration, folder, log and limits."""

from __future__ import annotations

import os
import signal
import sys
from typing import Final

from headrace.server import log
from headrace.server.config.config import Config
from headrace.server.config.files import DEFAULTS, Arguments, ConfigError, Loader
from headrace.server.dispatch.rows import rename_commands
from headrace.server.process.system import (
    OomScore,
    clients_possible,
    disable_huge_pages,
    hide_passwords,
    is_supervised,
)


def start(words: list[bytes]) -> int:
    """Serve as the words of a command line say, until stopped; return the exit code."""
    hide_passwords(words)
    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends the start without a traceback
    try:
        config = load_config(words)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 1
    return run(config)


def load_config(words: list[bytes]) -> Config:
    """Return the configuration that a command line asks for. Raises: ConfigError."""
    arguments = Arguments(with_dev(words))
    stdin = sys.stdin.buffer.read() if arguments.from_stdin else b""
    config = Config()
    defaults = os.environb.get(DEFAULTS.encode(), b"")
    if os.path.basename(sys.argv[0]) == "redis-server":
        # A link of that name replaces Redis, whose data is then where its starter expects it.
        defaults = b"dbfilename dump.rdb\n" + defaults
    Loader(config).load(arguments, stdin, defaults)
    return config


def with_dev(words: list[bytes]) -> list[bytes]:
    """Return the words of a command line with those that ``--dev`` stands for in its place."""
    found: list[bytes] = []
    for word in words:
        found += _DEV if word == b"--dev" else [word]
    return found


# Nothing is kept, and clients of this machine may move the clock and ask for faults.
_DEV: Final = [b"--enable-debug-command", b"local", b"--save", b""]


def run(config: Config) -> int:
    """Set up what belongs to the process, then serve; return the exit code."""
    place = os.getcwd()
    # Paths in the configuration are relative to the folder of the data.
    os.chdir(config.dir)
    if config.daemonize and not is_supervised(config.supervised):
        go_to_background()
    log.setup(config.loglevel, config.logfile)
    if config.syslog_enabled:
        log.use_syslog(config.syslog_ident, config.syslog_facility)
    config.on_change["dir"] = lambda: os.chdir(config.dir)
    config.on_change["maxclients"] = lambda: refuse_clients(config.maxclients)
    log_notes(config)
    OomScore(config).start()
    if config.disable_thp:
        disable_huge_pages()
    if not fit_clients(config):
        return 1

    from headrace.server import app  # late: mistakes in a file are answered at once

    mistake = rename_commands(config.renamed_commands)
    if mistake:
        log.log.critical("%s", mistake)
        return 1
    return app.run(config, place)


def go_to_background() -> None:
    """Let the caller of the process go on; its child is the server, of no terminal."""
    if os.fork():
        os._exit(0)
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    if nothing > 2:
        os.close(nothing)


def fit_clients(config: Config) -> bool:
    """Lower ``maxclients`` to what the system allows; False when that is none."""
    possible = clients_possible(config.maxclients)
    if not possible:
        log.log.critical("The limit of open files is too low to serve any client: see ulimit -n")
        return False
    if possible < config.maxclients:
        log.log.warning(
            "maxclients is %d instead of %d: the limit of open files cannot be raised (ulimit -n)",
            possible,
            config.maxclients,
        )
        config.maxclients = possible
    return True


def refuse_clients(wanted: int) -> str | None:
    """Return why so many clients cannot be served, or None."""
    possible = clients_possible(wanted)
    if possible >= wanted:
        return None
    return (
        "The operating system is not able to handle the specified number of clients, "
        f"try with {possible}"
    )


def log_notes(config: Config) -> None:
    """Log what the configuration asks for and will not get."""
    if config.daemonize and is_supervised(config.supervised):
        log.log.warning("daemonize yes: a process that is supervised stays in the foreground")
    if config.ignored:
        names = b", ".join(config.ignored).decode("utf-8", "replace")
        log.log.info("Configuration accepted that has no effect here: %s", names)
