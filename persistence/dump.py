"""The keyspace as commands: what a base file in RESP form holds.

A database is a SELECT and then its keys. A key is made by the commands that Redis's own rewrite
uses, so that Redis can read them: SET; XADD for each entry and XSETID for the counters, where a
stream without entries is made by adding one and trimming it at once. Its groups follow, each with
its consumers, their pending entries, and those that were released in the order of their release.
Then come the limits of its IDMP map, where they are not the default, and each of its iids as
XIDMPRECORD; one for an entry that was deleted Redis will not take. A deadline follows as PEXPIREAT.

A list of one word that starts with ``#`` is no command but a comment: the time of the command
behind it. An iid has one where the ID of its entry does not tell when it was added.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from persistence.aof import STAMP, annotation
from persistence.errors import PersistenceError
from protocol.replies import request
from storage.keyspace import NO_EXPIRY, Keyspace
from storage.stream.groups import Group
from storage.stream.pel import Nack
from storage.stream.stream import ID_MAX, Stream

STREAM_PAGE: Final = 1000  # entries looked at together
RELEASED_PAGE: Final = 64  # released entries in one command


def dump_commands(databases: list[Keyspace]) -> Iterator[list[bytes]]:
    """Commands that make an empty server hold what these databases hold.

    Raises:
        PersistenceError: a value is of a type without a form here.
    """
    for db in databases:
        if not db.entries:
            continue
        yield [b"SELECT", b"%d" % db.index]
        for entry in db.slots:
            value = entry.value
            if isinstance(value, bytes):
                yield [b"SET", entry.key, value]
            elif isinstance(value, int):
                yield [b"SET", entry.key, b"%d" % value]
            elif isinstance(value, Stream):
                yield from _stream_commands(entry.key, value)
            else:
                raise PersistenceError(f"no form as commands for {type(value).__name__}")
            if entry.expire_ms != NO_EXPIRY:
                yield [b"PEXPIREAT", entry.key, b"%d" % entry.expire_ms]


def _stream_commands(key: bytes, stream: Stream) -> Iterator[list[bytes]]:
    if not stream.length:
        yield [b"XADD", key, b"MAXLEN", b"0", b"0-1", b"x", b"y"]
    start = (0, 0)
    left = stream.length
    while left > 0:
        for part in stream.parts(start, (ID_MAX, ID_MAX), STREAM_PAGE, False):
            run = part.run
            dead = part.dead
            for number in range(part.low, part.high):
                if dead is not None and dead[number]:
                    continue
                ms = run.ms[number]
                seq = run.seq[number]
                yield [b"XADD", key, b"%d-%d" % (ms, seq), *run.row(number)]
                start = (ms, seq + 1) if seq < ID_MAX else (ms + 1, 0)
                left -= 1
    yield [
        b"XSETID",
        key,
        b"%d-%d" % (stream.last_ms, stream.last_seq),
        b"ENTRIESADDED",
        b"%d" % stream.entries_added,
        b"MAXDELETEDID",
        b"%d-%d" % (stream.max_deleted_ms, stream.max_deleted_seq),
    ]
    for name in sorted(stream.groups):
        yield from _group_commands(key, stream.groups[name])
    if not stream.has_default_limits():
        yield limits_command(key, stream)
    for pid, iid, ms, seq, added_ms in stream.idmp_records():
        if added_ms != ms:
            yield [annotation(added_ms // 1000)]
        yield [b"XIDMPRECORD", key, pid, iid, b"%d-%d" % (ms, seq)]


def limits_command(key: bytes, stream: Stream) -> list[bytes]:
    """The command that gives another stream the limits of this one's IDMP map."""
    return [
        *(b"XCFGSET", key, b"IDMP-DURATION", b"%d" % stream.idmp_duration_s),
        *(b"IDMP-MAXSIZE", b"%d" % stream.idmp_maxsize),
    ]


def stamp_of(command: list[bytes]) -> int:
    """The second that a comment gives; 0 for a command."""
    return int(command[0].removeprefix(STAMP)) if command[0].startswith(STAMP) else 0


def wire(command: list[bytes]) -> bytes:
    """A command or a comment as it stands in a file."""
    return command[0] + b"\r\n" if command[0].startswith(STAMP) else request(command)


def _group_commands(key: bytes, group: Group) -> Iterator[list[bytes]]:
    yield [
        *(b"XGROUP", b"CREATE", key, group.name, b"%d-%d" % (group.last_ms, group.last_seq)),
        *(b"ENTRIESREAD", b"%d" % group.entries_read),
    ]
    if group.max_pending:
        yield [
            *(b"XGROUP", b"SETMODE", key, group.name),
            *(b"MAX-PENDING", b"%d" % group.max_pending),
        ]
    for consumer in group.sorted_consumers():
        if not consumer.pel.size:
            yield [b"XGROUP", b"CREATECONSUMER", key, group.name, consumer.name]
    released: list[Nack] = []
    for chunk in group.by_time.chunks:
        for nack in chunk:
            owner = nack.consumer
            if owner is None:
                if released and (released[0].count != nack.count or len(released) == RELEASED_PAGE):
                    yield _release_command(key, group, released)
                    released = []
                released.append(nack)
                continue
            yield [
                *(b"XCLAIM", key, group.name, owner.name, b"0", b"%d-%d" % (nack.ms, nack.seq)),
                *(b"TIME", b"%d" % nack.delivery_ms, b"RETRYCOUNT", b"%d" % nack.count),
                *(b"JUSTID", b"FORCE"),
            ]
    if released:
        yield _release_command(key, group, released)


def _release_command(key: bytes, group: Group, released: list[Nack]) -> list[bytes]:
    """Released entries, all with the same count, as XNACK."""
    ids = [b"%d-%d" % (nack.ms, nack.seq) for nack in released]
    return [
        *(b"XNACK", key, group.name, b"FAIL", b"IDS", b"%d" % len(ids), *ids),
        *(b"RETRYCOUNT", b"%d" % released[0].count, b"FORCE"),
    ]
