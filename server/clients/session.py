"""A session: the server's state of one client, whatever carries its bytes."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Final

from mypy_extensions import i64, mypyc_attr

from headrace.persistence.log import Written
from headrace.protocol.replies import NO_REPLY, Push, Replies, write_reply
from headrace.server.acl.users import UNLIMITED, User
from headrace.server.config.config import Config
from headrace.server.statistics.statistics import CallCounters
from headrace.server.waiting import Parked, Sleeper, Waiter
from headrace.storage.keyspace import Keyspace


class Tracking:
    """The parameters and the state of one client's tracking, while its ``TRACKED`` bit is set.

    Attributes:
        client_id: the client's; scripts read for their callers.
        redirect: the ID of the client that gets the messages; 0: this one.
        broadcast: it is notified of all keys that begin with one of its prefixes, read or not.
        opt_in: only what is read after CLIENT CACHING YES counts.
        opt_out: what is read after CLIENT CACHING NO does not.
        no_loop: it is not notified of its own changes.
        broken: a message could not be sent, because the client that gets them has left.
        held: keys that the request under way has changed, None for all; it is sent after the reply.
    """

    def __init__(self, client_id: int) -> None:
        self.client_id: Final = client_id
        self.redirect = 0
        self.broadcast = False
        self.opt_in = False
        self.opt_out = False
        self.no_loop = False
        self.broken = False
        self.prefixes: Final[dict[bytes, None]] = {}
        self.held: list[bytes | None] = []


# Why a session's requests must take the slow path through ``admit``; zero is the fast path.
NEEDS_AUTH: Final = 1 << 0
IN_MULTI: Final = 1 << 1
SUBSCRIBED: Final = 1 << 2  # RESP2 subscriber: few commands are allowed
MONITORING: Final = 1 << 3
CLOSING: Final = 1 << 4  # close once the replies are out; run nothing more
REPLY_OFF: Final = 1 << 5
REPLY_SKIP: Final = 1 << 6  # no reply to the current command
REPLY_SKIP_NEXT: Final = 1 << 7
BLOCKED: Final = 1 << 8
PAUSED: Final = 1 << 9  # held back by CLIENT PAUSE
NO_TOUCH: Final = 1 << 10
NO_EVICT: Final = 1 << 11
AT_WORK: Final = 1 << 13  # its request is being run in slices
LONG: Final = 1 << 14  # a request being run may be long enough to be run in slices
OF_REGION: Final = 1 << 15  # at aa-port: it may call little
LIMITED: Final = 1 << 16  # its user may not do everything
IN_SCRIPT: Final = 1 << 17  # the session that scripts have
REPLICA: Final = 1 << 18  # it copies the data: it reports how far it is, and asks for nothing
TRACKED: Final = 1 << 19  # what it reads is remembered, or it is notified of what changes
CACHING: Final = 1 << 20  # CLIENT CACHING says something of its next request
FROM_MASTER: Final = 1 << 21  # it stands for the master, whose commands run here
LOST: Final = 1 << 22  # the reply to the current request is lost, and the connection ends
LOST_AND_SILENT: Final = 1 << 23  # the reply is lost, and the connection stays, and is silent
SILENT: Final = 1 << 24  # nothing more is run or answered
DELAYED: Final = 1 << 25  # held back by a fault
MET: Final = 1 << 26  # its next request has met a fault already
REPLAY: Final = 1 << 12  # the AOF loader: nothing is refused, nothing is written again

# Bits that prevent a session's next request from being run.
HOLD: Final = BLOCKED | PAUSED | CLOSING | AT_WORK | SILENT | DELAYED


@mypyc_attr(allow_interpreted_subclasses=True)
class Peer:
    """The carrier of a session's bytes; the base class carries nothing, for replay."""

    def flush_soon(self) -> None:
        """Send ``session.out`` at the end of this turn of the event loop."""

    def flush(self) -> None:
        """Send ``session.out`` now."""

    def may_show_data(self) -> bool:
        """Return whether ``session.out`` may show data, and not the session alone."""
        return True

    def serve_now(self) -> None:
        """Read, run and answer, because the event loop is kept from it."""

    def take(self) -> bytes:
        """Take ``session.out`` out, to be given to ``send`` later, in order."""
        return b""

    def send(self, wire: bytes) -> None:
        """Send what ``take`` took."""

    def resume_soon(self) -> None:
        """Run the requests that were held back, once the present one is done."""

    def close(self) -> None:
        """Send what is pending, then close."""

    def abort(self) -> None:
        """Close now and forget what is pending."""

    def has_left(self) -> bool:
        """Return whether it is known that nothing sent now would arrive."""
        return False

    def when_drained(self, call: Callable[[], None]) -> None:
        """Call this once, when what was sent has mostly been taken."""

    def drop_reader(self) -> None:
        """Close now, because more would wait to be read than may."""

    def bound_output(self) -> None:
        """Drop a peer whose unread replies exceed client-output-buffer-limit."""

    def bound_words(self, max_bytes: int) -> None:
        """Refuse words of requests that are longer than ``max_bytes``."""

    def pending_output_bytes(self) -> int:
        """Return the bytes handed to the transport that the peer has not taken yet."""
        return 0

    def pending_input_bytes(self) -> int:
        """Return the bytes received of which no request was made yet."""
        return 0

    def input_room_bytes(self) -> int:
        """Return the bytes that were announced, and for which there is room already."""
        return 0


NOBODY: Final = Peer()


class ReplicaFacts:
    """The facts that a client reports of itself by REPLCONF before it becomes a replica.

    Attributes:
        port, address: where it listens; no address is where the connection comes from.
        psync2: it can go on with data that has got another ID.
        knows_end: it can take a snapshot whose length is not known before its end.
        rdb_only: it wants a snapshot and no more; wants_keys, wants_functions: what that holds.
        is_valkey: it reports its version, as Valkey alone does.
        region: which region it is, and of which database; empty where it is none.
    """

    def __init__(self) -> None:
        self.port = 0
        self.address = b""
        self.psync2 = False
        self.knows_end = False
        self.rdb_only = False
        self.wants_keys = True
        self.wants_functions = True
        self.is_valkey = False
        self.region = b""

    def kind(self) -> tuple[bool, bool, bool]:
        """Return the facts on which the form of its snapshot depends."""
        return self.wants_keys, self.wants_functions, self.is_valkey


class Transaction:
    """The queue between MULTI and EXEC."""

    def __init__(self) -> None:
        self.rows: list[CallCounters] = []
        self.requests: list[list[bytes]] = []  # as many
        self.size_bytes = 0  # of all words queued
        self.word_count = 0  # how many these are
        self.failed = False  # a request was refused while queueing: EXEC must abort
        self.flags_of_all = -1  # that all of its commands have
        self.flags_of_any = 0  # that one of them has


class Session(Sleeper):
    """One client's state.

    Invariant: ``special`` is not 0 exactly while requests of this session are looked at before they
    run.
    """

    def __init__(self, session_id: int, db: Keyspace, now_ms: int, peer: Peer) -> None:
        self.id: Final = session_id
        self.peer = peer
        self.db = db
        self.resp3 = False
        self.special = 0
        self.name = b""
        self.lib_name = b""
        self.lib_version = b""
        self.user: User = UNLIMITED
        self.authenticated = True  # it has logged in, or came when no login was required
        self.address = b""
        self.local_address = b""
        self.unix_socket = False
        self.fd = -1
        self.created_ms = now_ms
        self.active_ms: i64 = now_ms
        self.last_row: CallCounters | None = None  # what it ran last, is running or waits in
        self.bytes_in: i64 = 0
        self.bytes_out: i64 = 0
        self.commands: i64 = 0  # that were run; those of the last batch follow when it ends
        self.reads: i64 = 0
        self.batches: i64 = 0  # requests that were parsed at once
        self.requests: i64 = 0  # in all of these
        self.out: list[bytes] = []
        self.answered_bytes: i64 = 0  # of answers to the requests being run
        self.transaction: Transaction | None = None
        self.unit_ns = 0  # when the transaction or script began that is being run; 0: there is none
        self.fieldsets: dict[bytes, list[bytes]] = {}  # of HIMPORT, by name
        self.watched: dict[tuple[int, bytes], bool] = {}  # value: it was expired when watched
        self.watch_broken = False
        self.channels: dict[bytes, None] = {}
        self.patterns: dict[bytes, None] = {}
        self.shard_channels: dict[bytes, None] = {}
        self.tracking: Tracking | None = None  # as it asked for last
        self.waiter: Waiter | None = None  # set while blocked
        self.written: Final = Written()  # how far its writes reach, for WAIT and WAITAOF
        self.held_bytes = 0  # what it held when that was looked at last
        self.soft_limit_since_ms = 0  # since when its output is over the soft limit; 0: it is not
        self.facts: ReplicaFacts | None = None  # of a replica
        self.waiting_bytes: i64 = 0  # of output that does not stand in ``out`` yet
        self.leaving: Callable[[Session], None] | None = None  # is called when it is forgotten
        self.flush_pending = False
        self.closed = False

    def waits_for(self, parked: Parked | None) -> bool:
        """Return whether it still waits for this: it was not answered, and has not left."""
        waiter = self.waiter
        return not self.closed and waiter is not None and waiter.parked is parked

    @property
    def subscriptions(self) -> int:
        """Return the number of channels and patterns, without shard channels, as replies do."""
        return len(self.channels) + len(self.patterns)

    def end_transaction(self) -> None:
        """Forget what MULTI began; the watches are the server's to end."""
        self.transaction = None
        self.special &= ~IN_MULTI

    def drop_transaction(self) -> None:
        """End it without running its queue, whose requests then do not count as commands."""
        if self.transaction is not None:
            self.commands -= len(self.transaction.requests)
        self.end_transaction()

    def answer(self, reply: object, pieces: int = -1) -> None:
        """Queue the reply of a request, unless CLIENT REPLY silenced it.

        ``pieces`` is the length of ``out`` before the request ran. What it has added since is
        messages, which follow its reply; -1: there are none.
        """
        out = self.out
        messages: list[bytes] = []
        if 0 <= pieces < len(out):
            messages = out[pieces:]
            del out[pieces:]
        special = self.special
        if special & LOST:
            if not special & BLOCKED:
                self.lose()
        elif not special & (REPLY_OFF | REPLY_SKIP) or isinstance(reply, Replies):
            self.answered_bytes += write_reply(out, reply, self.resp3)
        if self.special & SILENT:
            return
        for message in messages:
            self.answered_bytes += len(message)
            out.append(message)
        if special & (REPLY_SKIP | REPLY_SKIP_NEXT) and not special & BLOCKED:
            self._pass_skip()

    def lose(self) -> None:
        """Lose the reply to the present request, which is done, and end or fall silent."""
        if self.special & LOST_AND_SILENT:
            self.special |= SILENT
        else:
            self.peer.close()

    def _pass_skip(self) -> None:
        self.special &= ~REPLY_SKIP
        if self.special & REPLY_SKIP_NEXT:
            self.special ^= REPLY_SKIP_NEXT | REPLY_SKIP

    def deliver(self, reply: object) -> None:
        """Queue a message that is no reply to the current request, and send it."""
        if self.closed or reply is NO_REPLY or self.special & SILENT:
            return
        if self.special & REPLY_OFF and not isinstance(reply, Push):
            return
        write_reply(self.out, reply, self.resp3)
        if not self.flush_pending:
            self.flush_pending = True
            self.peer.flush_soon()

    def deliver_wire(self, wire: bytes) -> None:
        """As ``deliver``, with bytes that are already on the wire's form."""
        if self.closed or self.special & SILENT:
            return
        self.out.append(wire)
        if not self.flush_pending:
            self.flush_pending = True
            self.peer.flush_soon()


def session_of(waiter: Waiter) -> Session:
    """Return the session that waits."""
    session = waiter.client
    assert isinstance(session, Session)
    return session


def allowed_by(setting: bytes, session: Session) -> bool:
    """Return whether ``no``, ``yes`` or ``local`` (this machine only) allows a client something."""
    return is_local(session) if setting == b"local" else setting == b"yes"


def is_local(session: Session) -> bool:
    """Return whether a client is on this machine."""
    return session.unix_socket or session.address.startswith((b"127.", b"[::1]"))


def describe_endpoints(session: Session, transport: asyncio.Transport) -> None:
    """Note where a client comes from, as CLIENT LIST shows it."""
    sock = transport.get_extra_info("socket")
    peer = transport.get_extra_info("peername")
    local = transport.get_extra_info("sockname")
    session.fd = sock.fileno() if sock is not None else -1
    if isinstance(peer, tuple) and isinstance(local, tuple):
        session.address = _host_and_port(peer)
        session.local_address = _host_and_port(local)
    else:
        path = local if isinstance(local, str) else ""
        session.unix_socket = True
        session.address = path.encode() + b":0"
        session.local_address = session.address


def _host_and_port(place: tuple[object, ...]) -> bytes:
    host = str(place[0])
    return (f"[{host}]:{place[1]}" if ":" in host else f"{host}:{place[1]}").encode()


def source_address(config: Config) -> tuple[str, int] | None:
    """Return ``bind-source-addr`` if the machine has it; else the system chooses, as in Redis."""
    host = config.bind_source_addr.decode("utf-8", "replace")
    if not host:
        return None
    try:
        [found, *_] = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)
        with socket.socket(found[0], socket.SOCK_STREAM) as trial:
            trial.bind(found[4])
    except (OSError, UnicodeError, ValueError):
        return None
    return host, 0
