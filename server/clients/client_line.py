"""The line that CLIENT LIST and CLIENT INFO write for a client.

The fields are those of Redis. Where our buffers are of another kind, the closest figure is shown:
``obl`` is what waits in the session, ``omem`` what the transport holds because the peer does not
read; there is no static reply buffer, so ``rbs`` and ``rbp`` are 0. ``qbuf-free`` is the room for
the rest of a large argument of which a part has come. The request that is being run counts as the
calling client's ``qbuf`` and ``argv-mem``.
"""

from __future__ import annotations

from typing import Final

from headrace.compat.errors import c_text
from headrace.protocol.client import request
from headrace.server.clients.clients import held_by, size_of
from headrace.server.clients.session import (
    BLOCKED,
    CLOSING,
    DELAYED,
    FROM_MASTER,
    MONITORING,
    NO_EVICT,
    NO_TOUCH,
    PAUSED,
    TRACKED,
    Session,
    Tracking,
)
from headrace.server.clients.session import REPLICA as REPLICA_LINK
from headrace.server.config.kinds import LIMIT_NORMAL, LIMIT_PUBSUB, LIMIT_REPLICA

CLIENT_BYTES: Final = 6_000  # of an idle client: measured with 5,000 of them
_ARGUMENT_BYTES: Final = 8  # a reference to an argument

NORMAL: Final = b"normal"
REPLICA: Final = b"slave"
PUBSUB: Final = b"pubsub"
MASTER: Final = b"master"
CLIENT_TYPES: Final[dict[bytes, bytes]] = {
    b"normal": NORMAL,
    b"slave": REPLICA,
    b"replica": REPLICA,
    b"pubsub": PUBSUB,
    b"master": MASTER,
}


def is_subscriber(session: Session) -> bool:
    """Return whether a client listens to any channel or pattern."""
    return bool(session.channels or session.patterns or session.shard_channels)


def client_type(session: Session) -> bytes:
    """Return the class of a client, as the filter TYPE names it."""
    if session.special & REPLICA_LINK:
        return REPLICA
    if session.special & FROM_MASTER:
        return MASTER
    return PUBSUB if is_subscriber(session) else NORMAL


def limit_class(session: Session) -> int:
    """Return the index of the limit of waiting output that a client has."""
    if session.special & REPLICA_LINK:
        return LIMIT_REPLICA
    return LIMIT_PUBSUB if is_subscriber(session) else LIMIT_NORMAL


def tracking_of(session: Session) -> Tracking | None:
    """Return how a client tracks; None where it does not."""
    return session.tracking if session.special & TRACKED else None


def redirect_of(session: Session) -> int:
    """Return the ID of the client that gets its invalidations, 0 for itself; -1 for none."""
    tracking = tracking_of(session)
    return -1 if tracking is None else tracking.redirect


def flags_of(session: Session) -> bytes:
    """Return the letters of CLIENT LIST for a client's state."""
    special = session.special
    flags = b""
    if special & REPLICA_LINK:
        flags += b"S"
    if special & FROM_MASTER:
        flags += b"M"
    if special & MONITORING:
        flags += b"O"
    if is_subscriber(session):
        flags += b"P"
    if session.transaction is not None:
        flags += b"x"
    if special & (BLOCKED | PAUSED | DELAYED):
        flags += b"b"
    tracking = tracking_of(session)
    if tracking is not None:
        flags += b"t"
        if tracking.broken:
            flags += b"R"
        if tracking.broadcast:
            flags += b"B"
    if session.watch_broken:
        flags += b"d"
    if special & CLOSING:
        flags += b"c"
    if session.unix_socket:
        flags += b"U"
    if special & NO_EVICT:
        flags += b"e"
    if special & NO_TOUCH:
        flags += b"T"
    return flags or b"N"


class ClientMemory:
    """The bytes in a client's buffers; ``argv``: the request of the client that is being served."""

    def __init__(self, session: Session, argv: list[bytes] | None = None) -> None:
        self.input_bytes = session.peer.pending_input_bytes()
        self.room_bytes = session.peer.input_room_bytes()
        self.argv_bytes = 0
        argument_count = 0
        if argv is not None:
            self.input_bytes += len(request(argv))
            self.argv_bytes = size_of(argv)
            argument_count = len(argv)
        transaction = session.transaction
        self.queued_bytes = 0
        if transaction is not None:
            self.queued_bytes = transaction.size_bytes + _ARGUMENT_BYTES * transaction.word_count
        self.ready_bytes = size_of(session.out)
        self.unread_bytes = session.peer.pending_output_bytes() + int(session.waiting_bytes)
        own_bytes = self.argv_bytes + _ARGUMENT_BYTES * argument_count
        self.total_bytes = CLIENT_BYTES + held_by(session) + own_bytes


def client_line(session: Session, now_ms: int, argv: list[bytes] | None) -> bytes:
    """Describe a client in one line without its end; ``argv`` as for ``ClientMemory``."""
    memory = ClientMemory(session, argv)
    row = session.last_row
    transaction = session.transaction
    idle_ms = 0 if argv is not None else now_ms - session.active_ms
    fields = [
        b"id=%d" % session.id,
        b"addr=" + session.address,
        b"laddr=" + session.local_address,
        b"fd=%d" % session.fd,
        b"name=" + c_text(session.name),
        b"age=%d" % (max(0, now_ms - session.created_ms) // 1000),
        b"idle=%d" % (max(0, idle_ms) // 1000),
        b"flags=" + flags_of(session),
        b"db=%d" % session.db.index,
        b"sub=%d" % len(session.channels),
        b"psub=%d" % len(session.patterns),
        b"ssub=%d" % len(session.shard_channels),
        b"multi=%d" % (-1 if transaction is None else len(transaction.requests)),
        b"watch=%d" % len(session.watched),
        b"qbuf=%d" % memory.input_bytes,
        b"qbuf-free=%d" % memory.room_bytes,
        b"argv-mem=%d" % memory.argv_bytes,
        b"multi-mem=%d" % memory.queued_bytes,
        b"rbs=0",
        b"rbp=0",
        b"obl=%d" % memory.ready_bytes,
        b"oll=%d" % (1 if memory.unread_bytes else 0),
        b"omem=%d" % memory.unread_bytes,
        b"omem-shared=0",
        b"omem-unshared=%d" % memory.unread_bytes,
        b"tot-mem=%d" % memory.total_bytes,
        b"events=" + (b"rw" if memory.unread_bytes else b"r"),
        b"cmd=" + (b"NULL" if row is None else row.name),
        b"user=" + (b"(superuser)" if session.special & FROM_MASTER else session.user.name),
        b"redir=%d" % redirect_of(session),
        b"resp=%d" % (3 if session.resp3 else 2),
        b"lib-name=" + c_text(session.lib_name),
        b"lib-ver=" + c_text(session.lib_version),
        b"io-thread=0",
        b"tot-net-in=%d" % session.bytes_in,
        b"tot-net-out=%d" % session.bytes_out,
        b"tot-cmds=%d" % max(0, session.commands),
        b"read-events=%d" % session.reads,
        b"avg-pipeline-len-sum=%d" % session.requests,
        b"avg-pipeline-len-cnt=%d" % session.batches,
    ]
    return b" ".join(fields)
