"""SLOWLOG: the commands that took long."""

from __future__ import annotations

from typing import Final

from headrace.compat.errors import BAD_SLOWLOG_COUNT, CommandError, bad_subcommand
from headrace.compat.numbers import parse_integer
from headrace.protocol.replies import OK
from headrace.server.commands.help import show_help
from headrace.server.dispatch.call import Call
from headrace.server.statistics.slowlog import SlowCommand

DEFAULT_COUNT: Final = 10


def slowlog_get(call: Call) -> object:
    """A count of -1 is all of them.

    Reply: list, newest first, of number, time in seconds since 1970, microseconds, words (as many
        as are kept), the client's address, its name, and how many words there were.
    """
    argv = call.argv
    log = call.server.statistics.slowlog
    count = DEFAULT_COUNT
    if len(argv) > 3:
        raise CommandError(bad_subcommand(b"slowlog", argv[1]))
    if len(argv) == 3:
        wanted = parse_integer(argv[2])
        if wanted is None or wanted < -1:
            raise CommandError(BAD_SLOWLOG_COUNT)
        count = wanted if wanted >= 0 else len(log.commands)
    return [_shown(entry) for entry in list(log.commands)[:count]]


def _shown(entry: SlowCommand) -> list[object]:
    return [
        entry.number,
        entry.at_s,
        entry.usec,
        entry.argv,
        entry.address,
        entry.name,
        entry.words,
    ]


def slowlog_len(call: Call) -> object:
    """Reply: how many commands are remembered."""
    return len(call.server.statistics.slowlog.commands)


def slowlog_reset(call: Call) -> object:
    """Forget them. Reply: OK."""
    call.server.statistics.slowlog.commands.clear()
    return OK


def slowlog_help(call: Call) -> object:
    """Reply: list of lines."""
    return show_help(call)
