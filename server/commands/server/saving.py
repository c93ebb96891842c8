"""SAVE, BGSAVE and LASTSAVE: the snapshot on the disk."""

from __future__ import annotations

from typing import Final

from headrace.compat.errors import (
    OTHER_JOB_IN_PROGRESS,
    SAVE_FAILED,
    SAVE_IN_PROGRESS,
    SYNTAX,
    CommandError,
)
from headrace.protocol.replies import OK, Status
from headrace.server.clients.session import IN_MULTI
from headrace.server.dispatch.call import Call

_STARTED: Final = Status(b"Background saving started")
_SCHEDULED: Final = Status(b"Background saving scheduled")


def save(call: Call) -> object:
    """Write the snapshot while everybody waits.

    Reply: OK. Raises: it failed, see the log; or one is being written in the background.
    """
    saving = call.durability.saving
    if saving.is_running():
        raise CommandError(SAVE_IN_PROGRESS)
    if not saving.save_now():
        raise CommandError(SAVE_FAILED)
    return OK


def bgsave(call: Call) -> object:
    """Write the snapshot while the server goes on.

    Reply: a status. It says that the snapshot is only scheduled inside MULTI, and with SCHEDULE
        also while the append-only file is being written anew.
    Raises: one is being written; the append-only file is, without SCHEDULE; it cannot begin.
    """
    argv = call.argv
    schedule = len(argv) == 2 and argv[1].lower() == b"schedule"
    if len(argv) > 1 and not schedule:
        raise CommandError(SYNTAX)
    saving = call.durability.saving
    if saving.is_running():
        raise CommandError(SAVE_IN_PROGRESS)
    in_multi = bool(call.session.special & IN_MULTI)
    if call.durability.files.job is not None or in_multi:
        if not schedule and not in_multi:
            raise CommandError(OTHER_JOB_IN_PROGRESS)
        saving.status.scheduled = True
        return _SCHEDULED
    if not saving.begin():
        raise CommandError(SAVE_FAILED)
    return _STARTED


def lastsave(call: Call) -> object:
    """Reply: when the data was last saved, in seconds since 1970."""
    return call.durability.files.last_save_s
