"""A connection encrypted by TLS: a protocol for the event loop, a transport for another protocol.

The event loop carries the encrypted bytes, OpenSSL converts them in memory, and the protocol inside
sees neither. The transports of asyncio and uvloop for TLS do the same, and take twice as long for a
small request, because each of theirs goes through a state machine in Python.

- What arrived in one read is decrypted at once, and passed on in one piece.
- What the protocol writes is encrypted at once and leaves in one write, if it is short and the peer
  reads. Otherwise it waits in ``_backlog`` and is encrypted piece by piece, as the network takes
  it, so that a long reply takes neither all of the loop nor all of the memory.
- Each side may end its own direction. The peer's end, by TLS's own notice or without it, is the
  protocol's ``eof_received``. Ours is always with notice.
- The protocol hears of the connection when the handshake is complete; until then a ``Door``
  decides about it.

The transport's own bytes and those that the event loop holds count together as what waits to be
written.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections import deque
from typing import Final

from headrace.server.config.config import Config
from headrace.server.net.past_loop import abort_now, close_now, read_now, write_now
from headrace.server.net.tls.contexts import words_of

PATIENCE_S: Final = 10.0  # for which the peer may keep a handshake waiting, in all


class Handshaking:
    """A connection in its handshake; it has queued since ``in_line_since``, 0 if it does not."""

    def __init__(self) -> None:
        self.in_line_since = 0.0

    def step(self) -> None:
        """Take the handshake further by what has arrived."""
        raise NotImplementedError

    def give_up(self, reason: str) -> None:
        """Close the connection, because the handshake has failed."""
        raise NotImplementedError


class Handshakes:
    """All handshakes of one kind of connection, the oldest first.

    A handshake takes one or two milliseconds of the one thread, which signs with the private key
    then. A thousand clients that come together would keep all others waiting for a second or two.
    So handshakes queue, and only ``max-new-tls-connections-per-cycle`` of them are taken a step
    further in a turn of the event loop. The time in the queue does not count against a handshake.
    """

    def __init__(self, config: Config) -> None:
        self._config: Final = config
        self._under_way: Final[dict[Handshaking, float]] = {}  # with the times of their ends
        self._waiting: Final[deque[Handshaking]] = deque()
        self._scheduled = False
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._under_way)

    def begin(self, connection: Handshaking) -> None:
        """Add one."""
        loop = asyncio.get_running_loop()
        self._under_way[connection] = loop.time() + PATIENCE_S
        if self._timer is None:
            self._timer = loop.call_later(PATIENCE_S, self._look)

    def end(self, connection: Handshaking) -> None:
        """Remove one, which is complete, or has failed."""
        self._under_way.pop(connection, None)

    def all(self) -> list[Handshaking]:
        """Return each of them."""
        return list(self._under_way)

    def oldest(self) -> Handshaking | None:
        """Return the one that began first."""
        for connection in self._under_way:
            return connection
        return None

    def wait_for_turn(self, connection: Handshaking) -> None:
        """Take this one further when it is its turn."""
        loop = asyncio.get_running_loop()
        connection.in_line_since = loop.time()
        self._waiting.append(connection)
        if not self._scheduled:
            self._scheduled = True
            loop.call_soon(self._turn)

    def _turn(self) -> None:
        waiting = self._waiting
        loop = asyncio.get_running_loop()
        for _ in range(self._config.max_new_tls_connections_per_cycle):
            while waiting:
                connection = waiting.popleft()
                if connection in self._under_way:
                    self._under_way[connection] += loop.time() - connection.in_line_since
                    connection.in_line_since = 0.0
                    connection.step()
                    break
        self._scheduled = len(waiting) > 0
        if self._scheduled:
            loop.call_soon(self._turn)

    def _look(self) -> None:
        self._timer = None
        loop = asyncio.get_running_loop()
        now = loop.time()
        for connection, until in list(self._under_way.items()):
            if connection.in_line_since:
                continue
            if until > now:
                self._timer = loop.call_later(until - now, self._look)
                break
            connection.give_up("the handshake took too long")
        if self._timer is None and self._under_way:  # all of them stand in line
            self._timer = loop.call_later(PATIENCE_S, self._look)


RECORD_BYTES: Final = 16 * 1024  # the most that one record holds
PIECE_BYTES: Final = 256 * 1024  # that are encrypted at a time
TURN_BYTES: Final = 1024 * 1024  # that are encrypted before others have their turn

LOST: Final = "the connection was lost"


class Door:
    """Decides about a connection until its protocol gets it."""

    def admits(self) -> bool:
        """Return whether there is room for one more, of which nothing is known yet."""
        return True

    def opened(self, transport: TlsTransport) -> None:
        """Note that the handshake is complete: the protocol may be notified."""

    def refused(self, transport: TlsTransport, reason: str) -> None:
        """Note that the handshake has failed."""


class TlsTransport(Handshaking):
    """One connection, of which ``protocol`` gets the decrypted bytes; until then ``door`` decides.

    Args:
        handshakes: those that this one belongs to.
        server_side: the peer has connected here, and not we there.
        host: the name of the host that we have connected to; empty on the other side.
    """

    def __init__(
        self,
        protocol: asyncio.Protocol,
        door: Door,
        context: ssl.SSLContext,
        handshakes: Handshakes,
        server_side: bool,
        host: str = "",
    ) -> None:
        super().__init__()
        self._protocol: Final = protocol
        self._door: Final = door
        self._handshakes: Final = handshakes
        self._server_side: Final = server_side
        self._incoming: Final = ssl.MemoryBIO()
        self._outgoing: Final = ssl.MemoryBIO()
        self._tls: Final = context.wrap_bio(
            self._incoming, self._outgoing, server_side, host or None
        )
        self._wire: asyncio.Transport | None = None
        self._is_open = False  # the handshake is complete
        self._is_held = False  # nothing is read while it waits for its turn in the handshake
        self._is_closing = False
        self._is_over = False  # the protocol has been notified, or need not be
        self._backlog: deque[bytes] = deque()
        self._backlog_at = 0  # what is gone of its first piece
        self._backlog_bytes = 0
        self._wire_is_full = False
        self._told_full = False
        self._pumping = False
        self._alert: OSError | None = None  # why the peer, or OpenSSL, wants no more
        self._past_loop = -1  # the descriptor, while what is to leave does not go by the event loop

    # Called by the event loop

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Begin the handshake."""
        if self._wire is not None:  # it was served before the event loop came to it
            self._wire = transport
            self._catch_up()
            return
        self._wire = transport
        if not self._door.admits():
            self._is_over = True
            self.abort()
            return
        self._handshakes.begin(self)
        if not self._server_side:
            self.step()

    def data_received(self, data: bytes) -> None:
        """Decrypt what arrived, or take the handshake further."""
        self._incoming.write(data)
        self._catch_up()

    def eof_received(self) -> bool:
        """Note that the peer will send no more."""
        if self._is_open and not self._is_closing:
            return bool(self._protocol.eof_received())
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Notify the door or the protocol."""
        self._is_closing = True
        self._wire = None
        self._forget_backlog()
        self._handshakes.end(self)
        if self._is_over:
            return
        self._is_over = True
        if self._is_open:
            self._protocol.connection_lost(exc or self._alert)
        else:
            self._door.refused(self, LOST if exc is None else words_of(exc))

    def pause_writing(self) -> None:
        """Note that the event loop holds more than the peer takes."""
        self._wire_is_full = True
        self._tell_whether_full()

    def resume_writing(self) -> None:
        """Note that the peer has caught up."""
        self._wire_is_full = False
        self._pump()

    # The handshake

    def step(self) -> None:
        self.step_only()
        self._catch_up()

    def step_only(self) -> None:
        """As ``step``, but leave requests that have come with it where they are."""
        if self._is_held:
            self._is_held = False
            self.resume_reading()
        if self._is_open or self._is_closing:
            return
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._push()
            return
        except (OSError, ValueError) as error:
            self._push()  # the peer hears why, too
            self.give_up(words_of(error))
            return
        self._push()
        self._is_open = True
        self._handshakes.end(self)
        self._door.opened(self)

    def answer_plain(self, data: bytes) -> None:
        """Send a text to a peer that does not encrypt, and would not understand anything else."""
        if self._wire is not None:
            self._wire.write(data)

    def give_up(self, reason: str) -> None:
        self._handshakes.end(self)
        self._is_closing = True
        if not self._is_over:
            self._is_over = True
            self._door.refused(self, reason)
        if self._wire is not None:
            close_now(self._wire)  # behind the notice, which is short

    def _catch_up(self) -> None:
        if self._is_closing:
            self._incoming.read()
        elif self._is_open:
            if self._incoming.pending:
                self._receive()
        elif not self._server_side:
            if self._incoming.pending:
                self.step()
        elif self._incoming.pending and not self._is_held:
            self._is_held = True
            self.pause_reading()
            self._handshakes.wait_for_turn(self)

    # Reading

    def _receive(self) -> None:
        parts: list[bytes] = []
        reason = self._decrypt(parts)
        if self._outgoing.pending:
            self._push()
        if parts:
            self._protocol.data_received(parts[0] if len(parts) == 1 else b"".join(parts))
        if reason is None or self._is_closing:
            return
        if reason:
            self._alert = OSError(f"TLS: {reason}")
        if reason or not self._protocol.eof_received():
            self.close()

    def _decrypt(self, parts: list[bytes]) -> str | None:
        """Decrypt everything; return why nothing more comes, empty where the peer says so."""
        tls = self._tls
        incoming = self._incoming
        try:
            while True:
                part = tls.read(RECORD_BYTES)
                if not part:
                    return ""
                parts.append(part)
                if not incoming.pending:  # OpenSSL keeps nothing back: a record fits into a part
                    return None
        except ssl.SSLWantReadError:
            return None
        except OSError as error:
            return words_of(error)

    def read_now(self, fd: int) -> bytes:
        """Return what the peer has sent, while the event loop is kept from it."""
        if self._wire is None or self._is_closing:
            return b""
        self._incoming.write(read_now(self._wire, fd))
        parts: list[bytes] = []
        if self._is_open and self._incoming.pending:
            self._decrypt(parts)
        return b"".join(parts)

    def shake_now(self, fd: int) -> None:
        """Take the handshake further, while the event loop is kept from it."""
        if self._wire is None or self._is_open:
            return
        self._incoming.write(read_now(self._wire, fd))
        if self._incoming.pending:
            self._past_loop = fd
            self.step_only()
            self._past_loop = -1

    # Writing

    def write(self, data: bytes) -> None:
        """Send some bytes, in order."""
        if self._wire is None or self._is_closing:
            return
        if self._backlog_bytes or self._wire_is_full or len(data) > PIECE_BYTES:
            self._backlog.append(data)
            self._backlog_bytes += len(data)
            self._pump()
        else:
            self._encrypt(data)
            self._push()

    def write_now(self, fd: int, wire: bytes) -> None:
        """Send some bytes, in order, while the event loop is kept from it."""
        if not wire or self._wire is None or self._is_closing:
            return
        if self._backlog_bytes:
            self.write(wire)
            return
        self._encrypt(wire)
        write_now(self._wire, fd, self._outgoing.read())

    def _encrypt(self, data: bytes) -> None:
        written = self._tls.write(data)
        while written < len(data):
            written += self._tls.write(memoryview(data)[written:])

    def _push(self) -> None:
        if not self._outgoing.pending or self._wire is None:
            return
        if self._past_loop >= 0:
            write_now(self._wire, self._past_loop, self._outgoing.read())
        else:
            self._wire.write(self._outgoing.read())

    def _pump(self) -> None:
        encrypted = 0
        while self._backlog_bytes and not self._wire_is_full and encrypted < TURN_BYTES:
            first = self._backlog[0]
            at = self._backlog_at
            piece = first[at : at + PIECE_BYTES]
            self._backlog_at = at + len(piece)
            if self._backlog_at >= len(first):
                self._backlog.popleft()
                self._backlog_at = 0
            self._backlog_bytes -= len(piece)
            encrypted += len(piece)
            self._encrypt(piece)
            self._push()
        if self._backlog_bytes and not self._wire_is_full and not self._pumping:
            self._pumping = True
            asyncio.get_running_loop().call_soon(self._pump_again)
        self._tell_whether_full()
        if self._is_closing and not self._backlog_bytes:
            self._say_goodbye()

    def _pump_again(self) -> None:
        self._pumping = False
        if self._wire is not None:
            self._pump()

    def _tell_whether_full(self) -> None:
        full = self._wire_is_full or self._backlog_bytes > 0
        if full == self._told_full or not self._is_open or self._is_over:
            return
        self._told_full = full
        if full:
            self._protocol.pause_writing()
        else:
            self._protocol.resume_writing()

    def _forget_backlog(self) -> None:
        self._backlog.clear()
        self._backlog_at = 0
        self._backlog_bytes = 0

    # The end

    def close(self) -> None:
        """Send what waits, and then close."""
        if self._is_closing or self._wire is None:
            return
        self._is_closing = True
        if self._backlog_bytes:
            self.pause_reading()
        else:
            self._say_goodbye()

    def _say_goodbye(self) -> None:
        if self._wire is not None:
            self._notify()
            close_now(self._wire)

    def _notify(self) -> None:
        if self._is_open:
            with contextlib.suppress(OSError):  # the peer has not answered it yet, and need not
                self._tls.unwrap()
            self._push()

    def abort(self) -> None:
        """Close now, with notice if the peer takes it at once."""
        self._is_closing = True
        self._forget_backlog()
        if self._wire is not None:
            self._notify()
            abort_now(self._wire)

    # As other transports

    def is_closing(self) -> bool:
        """Return whether it is closed, or will be."""
        return self._is_closing or self._wire is None or self._wire.is_closing()

    def get_write_buffer_size(self) -> int:
        """Return how many bytes wait to be sent."""
        if self._wire is None:
            return 0
        return self._backlog_bytes + self._wire.get_write_buffer_size()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Pause the protocol when more than ``high`` bytes wait; see ``asyncio.WriteTransport``."""
        if self._wire is not None:
            self._wire.set_write_buffer_limits(high, low)

    def pause_reading(self) -> None:
        """Receive nothing until ``resume_reading``."""
        if self._wire is not None and not self._wire.is_closing():
            self._wire.pause_reading()

    def resume_reading(self) -> None:
        """Receive again."""
        if self._wire is not None and not self._wire.is_closing():
            self._wire.resume_reading()

    def get_extra_info(self, name: str, default: object = None) -> object:
        """Return asyncio's facts; ``tls`` is the transport itself."""
        if name == "tls":
            return self
        if name == "ssl_object":
            return self._tls
        if self._wire is None:
            return default
        found: object = self._wire.get_extra_info(name, default)
        return found

    def certificate(self) -> dict[str, object]:
        """Return what the certificate of the peer says; empty where it has shown none."""
        try:
            return dict(self._tls.getpeercert() or {})
        except ValueError:  # it has bytes that are no text
            return {}
