"""The log: lines as redis-server writes them, through the standard library.

``pid:M 21 Nov 2026 02:44:36.123 * text``; the mark before the text is the level: ``.`` debug,
``-`` verbose, ``*`` notice, ``#`` warning. ``log.info`` is a notice.
"""

from __future__ import annotations

import io
import logging
import os
import sys
import time
from typing import TYPE_CHECKING, ClassVar, Final

if TYPE_CHECKING:
    from types import TracebackType

    ExceptionInfo = (
        tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
    )

VERBOSE: Final = 15
NOTICE: Final = logging.INFO
NOTHING: Final = 100

LEVELS: Final[dict[bytes, int]] = {
    b"debug": logging.DEBUG,
    b"verbose": VERBOSE,
    b"notice": NOTICE,
    b"warning": logging.WARNING,
    b"nothing": NOTHING,
}

log: Final = logging.getLogger("headrace")


def _text(record: logging.LogRecord) -> str:
    """Return a record's text, in which no client's word begins a line or controls a terminal."""
    text = record.getMessage()
    return text if text.isprintable() else "".join([_shown(char) for char in text])


def _shown(char: str) -> str:
    return char if char.isprintable() or char == "\t" else ascii(char)[1:-1]


class LineFormatter(logging.Formatter):
    """One line per record, and behind it the traceback where there is one.

    ``hides_data``: the text of an exception is left out, because it may be a client's data.
    """

    hides_data: ClassVar[bool] = False

    def formatException(self, ei: ExceptionInfo) -> str:  # noqa: N802  (logging's name)
        kind, _, trace = ei
        if not LineFormatter.hides_data or kind is None:
            return super().formatException(ei)
        import traceback  # late: logging has it by now

        return "".join(traceback.format_tb(trace)) + kind.__name__

    def format(self, record: logging.LogRecord) -> str:
        level = record.levelno
        mark = "."
        if level >= logging.WARNING:
            mark = "#"
        elif level >= NOTICE:
            mark = "*"
        elif level >= VERBOSE:
            mark = "-"
        moment = time.strftime("%d %b %Y %H:%M:%S", time.localtime(record.created))
        millisecond = int(record.created * 1000) % 1000
        line = f"{os.getpid()}:M {moment}.{millisecond:03} {mark} {_text(record)}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


class SyslogHandler(logging.Handler):
    """Sends records to syslog, which notes the time and the process itself."""

    def emit(self, record: logging.LogRecord) -> None:
        import syslog  # late: it is rarely wanted

        level = record.levelno
        priority = syslog.LOG_DEBUG
        if level >= logging.WARNING:
            priority = syslog.LOG_WARNING
        elif level >= NOTICE:
            priority = syslog.LOG_NOTICE
        elif level >= VERBOSE:
            priority = syslog.LOG_INFO
        text = _text(record)
        if record.exc_info and self.formatter is not None:
            text += "\n" + self.formatter.formatException(record.exc_info)
        syslog.syslog(priority, text)


def use_syslog(ident: bytes, facility: bytes) -> None:
    """Send the log to syslog, too; ``facility``: a word of ``syslog-facility``."""
    import syslog

    number: int = getattr(syslog, f"LOG_{facility.decode().upper()}")
    syslog.openlog(os.fsdecode(ident), syslog.LOG_PID | syslog.LOG_NDELAY, number)
    handler = SyslogHandler()
    handler.setFormatter(LineFormatter())
    log.addHandler(handler)


def hide_data(hides: bool) -> None:
    """Leave the data that errors quote out of the log, or in it."""
    LineFormatter.hides_data = hides


def setup(level: bytes, path: bytes) -> None:
    """Send the log to the file ``path``, or to standard output when that is empty."""
    handler: logging.Handler
    if path:
        from logging.handlers import WatchedFileHandler  # late: sockets and pickles come with it

        # Watched: when the file is moved away by logrotate, a new one is begun.
        handler = WatchedFileHandler(os.fsdecode(path), encoding="utf-8", errors="replace")
    else:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")
        handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(LineFormatter())
    for old in list(log.handlers):
        log.removeHandler(old)
        old.close()
    log.addHandler(handler)
    log.propagate = False
    set_level(level)


def set_level(level: bytes) -> None:
    """Log from ``level`` on; one of the words of ``loglevel``."""
    log.setLevel(LEVELS[level])
