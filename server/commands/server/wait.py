"""WAIT and WAITAOF: wait until writes are safe elsewhere, or on the disk."""

from __future__ import annotations

from typing import Final

from headrace.compat.errors import (
    NOT_POSITIVE,
    WAIT_AT_REPLICA,
    WAITAOF_AT_REPLICA,
    WAITAOF_WITHOUT_AOF,
    CommandError,
    not_between,
)
from headrace.compat.numbers import parse_integer
from headrace.server.clients.session import Session
from headrace.server.dispatch.args import Args
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.timeouts import deadline_of
from headrace.server.durability.sync_waits import SyncWait
from headrace.server.role import Replicas
from headrace.server.waiting.waiters import Parked

_OF_WAIT: Final = -1


def wait(call: Call) -> object:
    """Wait until so many replicas have what this client has written.

    Reply: how many have it.
    """
    wanted = Args(call.argv).integer()
    deadline_ms = deadline_of(call.argv[2], call.now_ms)
    if call.server.role.follows:
        raise CommandError(WAIT_AT_REPLICA)
    replicas = call.server.role.replicas
    offset = _stream_end(call.session, replicas)
    there = 0 if replicas is None else replicas.acknowledged(offset, False)
    if there >= wanted or not call.may_block:
        return there
    parked = Parked([], deadline_ms, call.argv, there, None)
    if replicas is not None:
        replicas.wait_for(call.session, parked, wanted, _OF_WAIT, offset)
    return parked


def _stream_end(session: Session, replicas: Replicas | None) -> int:
    """Where a client's writes end in the stream, which may be another one since, and shorter."""
    return 0 if replicas is None else min(session.written.stream_end, replicas.end_offset())


def waitaof(call: Call) -> object:
    """Wait until this client's writes are on the disk.

    Reply: list of 1 or 0 for this server's disk, and how many replicas have them on theirs.
    Raises: numlocal without an append-only file.
    """
    argv = call.argv
    local = Args(argv).integer()
    if not 0 <= local <= 1:
        raise CommandError(not_between(0, 1))
    replicas = parse_integer(argv[2])
    if replicas is None or replicas < 0:
        raise CommandError(NOT_POSITIVE)
    deadline_ms = deadline_of(argv[3], call.now_ms)
    server = call.server
    if server.role.follows:
        raise CommandError(WAITAOF_AT_REPLICA)
    aof = call.durability.files.aof
    is_on = call.durability.rewriting.is_on  # perhaps without a file yet
    if local and not is_on:
        raise CommandError(WAITAOF_WITHOUT_AOF)
    end = call.session.written.file_end
    # Under ``always`` the reply itself is held back until everything before it is on the disk.
    is_strict = server.config.appendfsync == b"always"
    synced = aof is not None and aof.named and (is_strict or aof.has_synced(end))
    of_role = server.role.replicas
    offset = _stream_end(call.session, of_role)
    there = 0 if of_role is None else of_role.acknowledged(offset, True)
    if not call.may_block or (int(synced) >= local and there >= replicas):
        return [int(synced), there]
    parked = Parked([], deadline_ms, argv, [int(synced), there], None)
    if is_on and not synced:
        wait_of_file = SyncWait(call.session, parked, aof, end, of_role is not None)
        call.durability.files.sync_waits.append(wait_of_file)
    if of_role is not None:
        of_role.wait_for(call.session, parked, replicas, local, offset)
    return parked
