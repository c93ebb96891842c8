"""A TCP or Unix-socket client: bytes in, requests run, replies out in one write.

Everything that arrived in one read is parsed and run at once, and leaves in one write. With an
append-only file, replies wait until what was executed has been written (and under ``appendfsync
always`` synced), because a reply is a promise. That is at the end of the loop's turn, or at once
for a client that is alone.

Running stops early when a command blocks, when CLIENT PAUSE holds it back, when the replies pile up
because the peer does not read them, or when it has taken long: then others have a turn of the loop
first. The requests that are left wait in ``_queue``, and bytes that still arrive wait in the
parser. They are read all the same, because a peer may send all it has before it reads the first
reply. ``client-query-buffer-limit`` bounds how much may wait.
"""

from __future__ import annotations

import asyncio
import logging
import select
import socket
from collections.abc import Callable
from typing import Final

from headrace.compat import errors
from headrace.protocol.replies import ErrorReply, encode, write_reply
from headrace.protocol.requests import ProtocolError, RequestParser
from headrace.server.clients.client_line import is_subscriber, limit_class
from headrace.server.clients.clients import welcome
from headrace.server.clients.session import (
    AT_WORK,
    BLOCKED,
    CLOSING,
    DELAYED,
    HOLD,
    LONG,
    NEEDS_AUTH,
    NOBODY,
    OF_REGION,
    PAUSED,
    SILENT,
    Peer,
    Session,
    describe_endpoints,
)
from headrace.server.dispatch.call import LENGTHY_WORDS
from headrace.server.dispatch.dispatcher import Dispatcher
from headrace.server.dispatch.execute import OUTPUT_PAUSE_BYTES, execute
from headrace.server.gate import NEWCOMERS
from headrace.server.net.past_loop import (
    abort_now,
    close_now,
    cork,
    end_if_sent,
    read_now,
    write_now,
)

log: Final = logging.getLogger("headrace")

OUTPUT_AHEAD_BYTES: Final = 16 * 1024 * 1024  # of unread replies at which running pauses
LARGE_READ_BYTES: Final = 4096  # a longer read may complete what is over the limit
FULL_READ_BYTES: Final = 128 * 1024  # a read as long is followed by another one in the same turn
MOST_REGIONS: Final = 256  # connections of other regions
PIECE: Final = 512  # requests that are run between two looks at the time
TURN_NS: Final = 4_000_000  # after which running makes way for others
STRANGERS_OUTPUT_BYTES: Final = 1024  # of unread replies before a login, as in Redis
UNCOUNTED_OUTPUT_BYTES: Final = 16 * 1024  # what fits in here is not limited, as in Redis
_MULTI: Final = b"multi"
_EXEC: Final = b"exec"
_TLS_HELLO: Final = b"\x16\x03"  # what an encrypted connection begins with
# poll() reports errors, and that both sides are closed, without being asked.
_HANG_UP: Final = getattr(select, "POLLRDHUP", 0)
_one_socket: Final = select.poll()  # made once, and empty between two looks


class Connection(Peer):
    """The asyncio protocol of one client, and its session's peer.

    ``of_region``: the client is another region, with few commands, and a secret instead of a
    password.
    """

    def __init__(self, dispatcher: Dispatcher, of_region: bool = False) -> None:
        server = dispatcher.server
        self._of_region: Final = of_region
        self._dispatcher: Final = dispatcher
        self._server: Final = server
        self._transport: asyncio.Transport | None = None
        self._parser: Final = RequestParser(server.config.proto_max_bulk_len)
        self._queue: list[list[bytes]] = []  # requests parsed, of which some are not run
        self._queue_at = 0  # the first of those
        self._counted_at = -1  # the one from which on they were counted last
        self._counted_bytes = 0  # what that came to
        self._stalled = False  # the peer does not read what we write
        self._resuming = False
        self._pausing = False  # the current replies are to be sent before more is run
        self._asked_once = False  # it sent one request, or one transaction, and no pipeline
        self._waits_alone = False  # for the answer to that, and no other client is at work
        self._ended = False  # the peer sends no more: close once it has its replies
        self._on_drained: Callable[[], None] | None = None
        self._held = 0  # pieces of output taken out and not sent yet
        self.session: Session = Session(0, server.data.dbs[0], 0, self)

    # Called by the event loop

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Open a session, or refuse it when there are too many."""
        server = self._server
        # What is sent leaves at once, and not after the turn, which a script may draw out.
        transport.set_write_buffer_limits(0)
        if self._transport is not None:  # it was served before the event loop came to it
            self._transport = transport
            return
        server.gate.set(NEWCOMERS, False)
        self._transport = transport
        if server.stopping:
            abort_now(transport)
            self.session.closed = True
            return
        now_ms = server.clock.refresh()
        server.statistics.counters.connections_received += 1
        if self._is_one_too_many():
            server.statistics.counters.rejected_connections += 1
            refuse(transport, errors.TOO_MANY_CLIENTS)
            self.session.closed = True
            return
        config = server.config
        open_to_all = server.users.default.no_password and not self._of_region
        protected = config.protected_mode and open_to_all
        if protected and is_remote(transport):
            server.statistics.counters.rejected_connections += 1
            refuse(transport, errors.PROTECTED_MODE)
            self.session.closed = True
            return
        keep_alive(transport, config.tcp_keepalive)
        session = Session(server.clients.new_id(), server.data.dbs[0], now_ms, self)
        describe_endpoints(session, transport)
        if self._of_region:
            session.special |= OF_REGION
            if config.aa_secret:
                session.special |= NEEDS_AUTH
        else:
            welcome(session, server.users)
        self._parser.trusted = not session.special & NEEDS_AUTH
        self.session = session
        server.clients.sessions[session.id] = session

    def _is_one_too_many(self) -> bool:
        """Return whether there is no room for it. Clients leave other regions theirs.

        A caller that has not yet shown the secret makes room for the next one. Otherwise anyone who
        reaches the port could keep the other regions out.
        """
        sessions = self._server.clients.sessions
        if not self._of_region:
            return len(sessions) >= self._server.config.maxclients
        others = [session for session in sessions.values() if session.special & OF_REGION]
        if len(others) < MOST_REGIONS:
            return False
        for session in others:
            if session.special & NEEDS_AUTH:
                session.peer.abort()
                self._server.session_closed(session)
                return False
        return True

    def data_received(self, data: bytes) -> None:
        """Parse and run what arrived."""
        server = self._server
        session = self.session
        session.bytes_in += len(data)
        session.reads += 1
        if self._of_region and session.reads == 1 and data.startswith(_TLS_HELLO):
            self._refuse_encrypted()
            return
        server.statistics.counters.net_input_bytes += len(data)
        server.statistics.counters.reads += 1
        server.clock.refresh()
        session.active_ms = server.clock.now_ns // 1_000_000
        self._parser.feed(data)
        if self._queue or self._is_full() or session.special & HOLD:
            self._bound_input()
        elif len(data) < LARGE_READ_BYTES:
            self._run()
        else:
            if not self._bound_input():
                self._run()
            if len(data) >= FULL_READ_BYTES:
                self._read_no_more_in_this_turn()

    def _refuse_encrypted(self) -> None:
        """Say why, and close, because a region calls encrypted where nothing is."""
        host = self.session.address.decode("utf-8", "replace").rpartition(":")[0]
        neighbours = self._server.neighbours
        if neighbours is not None:
            neighbours.refused(host, "it encrypts, and this region does not (aa-tls)")
        transport = self._transport
        if transport is not None:
            transport.write(encode(ErrorReply(errors.AA_PLAIN)))
            transport.close()
        self.session.special |= CLOSING

    def _read_no_more_in_this_turn(self) -> None:
        """Leave time for other clients, because libuv reads up to 8 MiB of one at once."""
        transport = self._transport
        if transport is not None and not transport.is_closing():
            transport.pause_reading()
            asyncio.get_running_loop().call_soon(self._read_again)

    def _read_again(self) -> None:
        transport = self._transport
        if transport is not None and not transport.is_closing():
            transport.resume_reading()

    def eof_received(self) -> bool:
        """Close once the peer, which will send no more, has its replies; they may be on hold."""
        if self._transport is None or self.session.closed:
            return False
        self._ended = True
        self._close_if_done()
        self._send()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the session, and break the cycles that the garbage collector may never meet."""
        self._server.session_closed(self.session)
        self.session.peer = NOBODY
        self._queue = []
        self._on_drained = None
        self._transport = None

    def pause_writing(self) -> None:
        self._stalled = True

    def resume_writing(self) -> None:
        self._stalled = False
        self.session.soft_limit_since_ms = 0
        self._tell_drained()
        transport = self._transport
        if transport is None:
            return
        if transport.is_closing():
            end_if_sent(transport)
        else:
            self.resume_soon()

    def when_drained(self, call: Callable[[], None]) -> None:
        self._on_drained = call

    def _tell_drained(self) -> None:
        call = self._on_drained
        if call is not None and not self._stalled:
            self._on_drained = None
            asyncio.get_running_loop().call_soon(call)

    def _is_full(self) -> bool:
        return self._stalled and self.pending_output_bytes() >= OUTPUT_AHEAD_BYTES

    # Peer

    def flush_soon(self) -> None:
        """Join the sessions that are flushed at the end of this turn."""
        server = self._server
        if not server.clients.flushing:
            server.host.flush_soon()
        server.clients.flushing.append(self.session)

    def flush(self) -> None:
        session = self.session
        session.flush_pending = False
        out = session.out
        transport = self._transport
        if transport is None:
            out.clear()
            return
        if out:
            wire = out[0] if len(out) == 1 else b"".join(out)
            out.clear()
            self._write(transport, wire)
        if session.special & CLOSING:
            if not self._held:
                close_now(transport)
        elif self._stalled:
            self.bound_output()

    def serve_now(self) -> None:
        """Read, run and answer, unless an answer is still to be sent: it may wait for the AOF."""
        session = self.session
        transport = self._transport
        if transport is None or session.flush_pending or self._held or self._queue:
            return
        if session.special & (HOLD | CLOSING) or session.closed or transport.is_closing():
            return
        data = read_now(transport, session.fd)
        if not data:
            return
        session.flush_pending = True
        self.data_received(data)
        session.flush_pending = False
        wire = b"".join(session.out)
        session.out.clear()
        if session.special & CLOSING:
            cork(transport)
        write_now(transport, session.fd, wire)
        if session.special & CLOSING:
            close_now(transport)

    def may_show_data(self) -> bool:
        """Return whether more is pending than a reply of ``@connection``, such as PING's."""
        session = self.session
        row = session.last_row
        if row is None or not row.of_connection or not self._asked_once:
            return True
        if self._held or session.special or is_subscriber(session):
            return True
        return len(session.out) != 1

    def take(self) -> bytes:
        """Take out what is pending; it belongs in front of all that follows."""
        session = self.session
        session.flush_pending = False
        wire = b"".join(session.out)
        session.out.clear()
        self._held += 1
        return wire

    def send(self, wire: bytes) -> None:
        """Send what ``take`` took; close after the last of it where that is due."""
        self._held -= 1
        session = self.session
        transport = self._transport
        if transport is None:
            return
        if wire:
            self._write(transport, wire)
        if session.special & CLOSING:
            if not self._held and not session.flush_pending:
                close_now(transport)
        elif self._stalled:
            self.bound_output()

    def _write(self, transport: asyncio.Transport, wire: bytes) -> None:
        session = self.session
        size = len(wire)
        if size > UNCOUNTED_OUTPUT_BYTES:
            limit = self._server.config.output_limit(limit_class(session))[0]
            if 0 < limit < size + transport.get_write_buffer_size():
                self.drop_reader()
                return
        session.bytes_out += size
        self._server.statistics.counters.note_write(size)
        if session.special & CLOSING:
            cork(transport)
        transport.write(wire)
        if self._on_drained is not None:
            self._tell_drained()
        if self._waits_alone:
            self._waits_alone = False
            self._server.host.answered()

    def resume_soon(self) -> None:
        """Run what was held back, if anything was, in a turn of its own."""
        held = self._queue or self._ended or not self._parser.is_drained
        if held and not self._resuming:
            self._resuming = True
            asyncio.get_running_loop().call_soon(self._resume)

    def close(self) -> None:
        """Close once everything pending has been sent."""
        self.session.special |= CLOSING
        if not self.session.flush_pending:
            self.session.flush_pending = True
            self.flush_soon()

    def abort(self) -> None:
        self.session.special |= CLOSING
        if self._transport is not None:
            abort_now(self._transport)

    def has_left(self) -> bool:
        """Return whether the connection is closing, or the kernel knows of its end.

        The event loop reports an end in a later turn. Until then others are served.
        """
        transport = self._transport
        if transport is None or transport.is_closing() or self.session.special & CLOSING:
            return True
        return has_hung_up(self.session.fd)

    def bound_words(self, max_bytes: int) -> None:
        """Refuse longer words from the next request on."""
        self._parser.max_bulk_bytes = max_bytes

    def pending_output_bytes(self) -> int:
        transport = self._transport
        return 0 if transport is None else transport.get_write_buffer_size()

    def pending_input_bytes(self) -> int:
        return self._parser.pending_bytes + self._queued_bytes()

    def input_room_bytes(self) -> int:
        return self._parser.room_bytes

    def _queued_bytes(self) -> int:
        """Return the bytes of parsed requests that are not run; counted once while none is run."""
        if not self._queue:
            return 0
        if self._counted_at != self._queue_at:
            self._counted_at = self._queue_at
            size = 0
            for number in range(self._queue_at, len(self._queue)):
                for argument in self._queue[number]:
                    size += len(argument)
            self._counted_bytes = size
        return self._counted_bytes

    def bound_output(self) -> None:
        session = self.session
        held = self.pending_output_bytes() + session.waiting_bytes
        if session.special & NEEDS_AUTH and held > STRANGERS_OUTPUT_BYTES:
            self.drop_reader()
            return
        hard, soft, seconds = self._server.config.output_limit(limit_class(session))
        now_ms = self._server.clock.monotonic_ms()
        over_soft = 0 < soft <= held
        if not over_soft:
            session.soft_limit_since_ms = 0
        elif not session.soft_limit_since_ms:
            session.soft_limit_since_ms = now_ms
        elapsed_ms = now_ms - session.soft_limit_since_ms
        if 0 < hard <= held or (over_soft and elapsed_ms >= seconds * 1000):
            self.drop_reader()

    def drop_reader(self) -> None:
        """Close now, because more would wait to be read than may."""
        self._server.statistics.counters.output_buffer_disconnections += 1
        log.warning("client id=%d closed: output buffer limit reached", self.session.id)
        self._leave_now()

    def _leave_now(self) -> None:
        self.abort()
        self._server.session_closed(self.session)

    # Running requests

    def _resume(self) -> None:
        self._resuming = False
        self._server.gate.set(NEWCOMERS, False)  # they have been introduced before
        session = self.session
        if session.closed or self._is_full() or session.special & HOLD:
            return
        self._server.clock.refresh()
        self._run()

    def _run(self) -> None:
        session = self.session
        parser = self._parser
        started_ns = self._server.clock.now_ns
        try:
            while not self._is_full() and not session.special & HOLD:
                requests = self._queue
                at = 0
                if requests:
                    self._queue = []
                    at = self._queue_at
                else:
                    parser.trusted = not session.special & NEEDS_AUTH
                    requests = parser.take()
                    if not requests:
                        break
                    count = len(requests)
                    session.batches += 1
                    session.requests += count
                    self._server.statistics.counters.batches += 1
                    self._server.statistics.counters.requests += count
                    self._asked_once = count == 1 or _are_a_transaction(requests)
                if not self._run_batch(requests, at) or parser.is_drained:
                    break
                if self._server.clock.now_ns - started_ns >= TURN_NS:
                    self._pausing = True
                    break
        except ProtocolError as error:
            line = errors.PROTOCOL % error.text
            self._server.statistics.counters.count_error(line)
            write_reply(session.out, ErrorReply(line), session.resp3)
            session.special |= CLOSING
        if self._ended:
            self._close_if_done()
        self._send()
        if self._pausing:  # what the peer takes of it is to be known before more is run
            self._pausing = False
            self.resume_soon()

    def _close_if_done(self) -> None:
        """Close a peer that sends no more when all it sent has been run.

        One that is blocked waits no longer, as in Redis: a client that has left may be given
        nothing.
        """
        session = self.session
        if session.special & BLOCKED:
            self._server.blocking.unpark(session)
        elif not session.special & SILENT and (
            self._queue
            or self._is_full()
            or self._pausing
            or self._resuming
            or session.special & (PAUSED | AT_WORK | DELAYED)
        ):
            return
        session.special |= CLOSING

    def _run_batch(self, requests: list[list[bytes]], at: int) -> bool:
        """Run requests from an index on, in order; False when more must not be run now."""
        session = self.session
        size = len(requests)
        is_long = len(requests[size - 1]) >= LENGTHY_WORDS
        if is_long:
            session.special |= LONG
        if size - at <= PIECE:
            done = execute(self._dispatcher, session, requests, at, size)
        else:
            done = self._run_pieces(requests, at)
        if is_long:
            session.special &= ~LONG
        session.commands += done - at
        self._pausing = session.answered_bytes > OUTPUT_PAUSE_BYTES
        if done < size:
            self._queue = requests
            self._queue_at = done
            self._counted_at = -1
            self._pausing = not session.special & HOLD  # then it has taken long
        return not (self._pausing or session.special & HOLD)

    def _run_pieces(self, requests: list[list[bytes]], at: int) -> int:
        """Run requests from an index on until others have their turn; return where it ended."""
        server = self._server
        session = self.session
        until_ns = server.clock.now_ns + TURN_NS
        size = len(requests)
        answered_bytes = 0
        end = at
        while at == end and at < size:
            end = min(size, at + PIECE)
            at = execute(self._dispatcher, session, requests, at, end)
            answered_bytes += session.answered_bytes
            if answered_bytes > OUTPUT_PAUSE_BYTES or server.clock.now_ns >= until_ns:
                break
        session.answered_bytes = answered_bytes
        return at

    def _send(self) -> None:
        """Send the replies, at the end of the turn if other clients are at work.

        Clients of one process are woken by the first of their replies. The others find it awake if
        they follow at once, which saves the kernel work. A client that is alone need not wait.
        """
        session = self.session
        if session.flush_pending or not (session.out or session.special & CLOSING):
            return
        server = self._server
        alone = server.clients.sender_id == session.id
        server.clients.sender_id = session.id
        self._waits_alone = alone and self._asked_once
        if alone and not server.changes.recorded:
            server.statistics.counters.turns += 1
            self.flush()
            return
        session.flush_pending = True
        if alone and not server.clients.flushing:
            server.clients.flushing.append(session)
            server.host.flush_now()
        else:
            self.flush_soon()

    def _bound_input(self) -> bool:
        """Drop a peer of which more than client-query-buffer-limit is held; True when it was."""
        held = self._parser.pending_bytes
        if held > self._server.clients.recent_max_input_bytes:
            self._server.clients.recent_max_input_bytes = held
        if held <= self._server.config.client_query_buffer_limit:
            return False
        self._server.statistics.counters.query_buffer_disconnections += 1
        log.warning("client id=%d closed: query buffer limit reached", self.session.id)
        self._leave_now()
        return True


def _are_a_transaction(requests: list[list[bytes]]) -> bool:
    """Return whether these are MULTI, EXEC and their requests, as clients send them at once."""
    if len(requests[0][0]) != len(_MULTI) or requests[0][0].lower() != _MULTI:
        return False
    for number, words in enumerate(requests):
        if len(words) == 1 and words[0].lower() == _EXEC:
            return number == len(requests) - 1
    return False


def refuse(transport: asyncio.Transport, reason: bytes) -> None:
    """Tell a client why it is not served, and close."""
    cork(transport)
    transport.write(encode(ErrorReply(reason)))
    close_now(transport)


def is_remote(transport: asyncio.Transport) -> bool:
    """Return whether the peer is on another machine."""
    peer = transport.get_extra_info("peername")
    if not isinstance(peer, tuple):
        return False
    host = str(peer[0]).removeprefix("::ffff:")
    return not (host.startswith("127.") or host == "::1")


def has_hung_up(fd: int) -> bool:
    """Return whether the peer of a socket will send no more, or the connection was reset."""
    _one_socket.register(fd, _HANG_UP)
    try:
        return len(_one_socket.poll(0)) != 0
    finally:
        _one_socket.unregister(fd)


def keep_alive(transport: asyncio.Transport, interval_s: int) -> None:
    """Have the kernel probe a silent TCP peer after ``interval_s`` seconds; 0 is never."""
    sock = transport.get_extra_info("socket")
    if not interval_s or sock is None or sock.family == socket.AF_UNIX:
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", interval_s),
        ("TCP_KEEPINTVL", max(1, interval_s // 3)),
        ("TCP_KEEPCNT", 3),
    ):
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
