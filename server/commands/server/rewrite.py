"""BGREWRITEAOF: write the append-only file anew."""

from __future__ import annotations

from typing import Final

from headrace.compat.errors import REWRITE_FAILED, REWRITE_IN_PROGRESS, CommandError
from headrace.protocol.replies import Status
from headrace.server.clients.session import IN_MULTI
from headrace.server.dispatch.call import Call

_STARTED: Final = Status(b"Background append only file rewriting started")
_SCHEDULED: Final = Status(b"Background append only file rewriting scheduled")


def bgrewriteaof(call: Call) -> object:
    """Replace the append-only files by shorter ones that hold the same.

    Reply: a status. It says that the rewrite is only scheduled inside MULTI, or while a snapshot is
        being written.
    Raises: one is on its way already; it cannot begin.
    """
    files = call.durability.files
    rewriting = call.durability.rewriting
    if rewriting.is_running():
        raise CommandError(REWRITE_IN_PROGRESS)
    if call.session.special & IN_MULTI or files.job is not None:
        files.status.rewrite_scheduled = True
        files.status.failures_in_a_row = 0
        return _SCHEDULED
    if not rewriting.begin():
        raise CommandError(REWRITE_FAILED)
    return _STARTED
