"""One of the two servers, with its connections, and what they have received so far."""

from __future__ import annotations

import contextlib
import re
import select
import time
from typing import Final

from support.client import Argument, RawClient, encode, parse
from support.fuzz import families
from support.process import Process

ANSWER_S: Final = 30.0  # a reply that takes longer is missing
_GLANCE_S: Final = 0.003  # after that long without a reply, the server is asked whether it waits
CLOSED: Final = b"<closed>"
_SYNC: Final = b"fuzz-sync"
_TIMES: Final = re.compile("usec|slowlog")
_COUNTED: Final = {"keyspace_misses", "expired_keys", "total_error_replies"}


class Wire:
    """A connection that takes what comes, as it comes."""

    def __init__(self, port: int) -> None:
        self.client: Final = RawClient(port, timeout_s=ANSWER_S)
        self.client_id: Final = parse(self.client.call("CLIENT", "ID"))
        address = self.client.sock.getsockname()
        self.address: Final = b"%b:%d" % (address[0].encode(), address[1])
        self.closed = False
        self._bytes = bytearray()
        self._poll: Final = select.poll()
        self._poll.register(self.client.sock, select.POLLIN)

    def send(self, calls: list[tuple[bytes, ...]]) -> None:
        with contextlib.suppress(OSError):
            self.client.send(b"".join(encode(*words) for words in calls))

    def receive(self, timeout_s: float) -> bool:
        """Wait for more bytes, or the end; whether anything came."""
        if self.closed or not self._poll.poll(timeout_s * 1000):
            return False
        try:
            data = self.client.sock.recv(1 << 20)
        except OSError:
            data = b""
        if not data:
            self.closed = True
            data = CLOSED
        self._bytes += data
        return True

    def answered(self, pushes: bool, count: int = 1) -> bool:
        """Return whether so many whole replies have come that were not taken.

        Args:
            pushes: a push is a reply, too.
        """
        if not self._bytes:
            return False
        replies = split_replies(bytes(self._bytes))
        return len([r for r in replies if pushes or not r.startswith(b">")]) >= count

    def peek(self) -> bytes:
        return bytes(self._bytes)

    def take(self) -> bytes:
        """All that has come since it was last taken."""
        taken = bytes(self._bytes)
        self._bytes.clear()
        return taken

    def close(self) -> None:
        self.client.close()


class Side:
    """A server with the clients of a session, one that controls it, and two that look on."""

    def __init__(self, process: Process) -> None:
        self.process: Final = process
        self.control: Final = process.client(timeout_s=30)
        self.wires: list[Wire] = []
        self.listener: RawClient | None = None
        self.monitor: RawClient | None = None
        self._names: dict[bytes, bytes] = {}  # of all clients of the session, by address

    def call(self, *words: Argument) -> bytes:
        return self.control.call(*words)

    def call_all(self, calls: list[tuple[bytes, ...]]) -> list[bytes]:
        """Several calls at once; the reply to each."""
        self.control.send(b"".join(encode(*words) for words in calls))
        return [self.control.read() for _ in calls]

    def reset(self) -> None:
        """Make the server as good as new, with nobody connected but the control."""
        self._disconnect()
        self.call("FLUSHALL")
        self.call("SELECT", "0")
        nodes = ("stream-node-max-entries", "100", "stream-node-max-bytes", "4096")
        self.call("CONFIG", "SET", *nodes)
        for name, values in families.LIMITS.items():
            self.call("CONFIG", "SET", name, values[0])
        deadline = time.monotonic() + ANSWER_S
        while self.call("CLIENT", "LIST").count(b" addr=") > 1 and time.monotonic() < deadline:
            pass  # those that were closed are noticed one turn later

    def close(self) -> None:
        """Close all connections."""
        self._disconnect()
        self.control.close()

    def _disconnect(self) -> None:
        for wire in self.wires:
            wire.close()
        self.wires = []
        self._disconnect_onlookers()

    def _disconnect_onlookers(self) -> None:
        for looking in (self.listener, self.monitor):
            if looking is not None:
                looking.close()
        self.listener = self.monitor = None

    def next_client_id(self) -> int:
        """The number that the server gives to a new connection."""
        with self.process.client() as probe:
            number = parse(probe.call("CLIENT", "ID"))
        assert isinstance(number, int)
        return number

    def connect(self, clients: int, events: str) -> None:
        """Connect the clients, and who looks on."""
        self.call("CONFIG", "SET", "notify-keyspace-events", events)
        self.listener = self.process.client()
        self.listener.call("PSUBSCRIBE", "__keyevent@*__:*", _SYNC)
        self.listener.read()
        self.monitor = self.process.client()
        self.monitor.call("MONITOR")
        self._names = {}
        self.wires = [self._connect(client) for client in range(clients)]

    def look_away(self) -> None:
        """Have nobody look on."""
        self.call("CONFIG", "SET", "notify-keyspace-events", "")
        self._disconnect_onlookers()

    def reconnect(self, client: int) -> None:
        """Close a connection and open another in its place."""
        self.wires[client].close()
        self.wires[client] = self._connect(client)

    def _connect(self, client: int) -> Wire:
        wire = Wire(self.process.port)
        self._names[wire.address] = b"client %d" % client
        return wire

    def waiting(self, client: int) -> bool:
        """Return whether the server has not answered because the client waits for something."""
        line = self.call("CLIENT", "LIST", "ID", f"{self.wires[client].client_id}")
        return b" flags=" in line and b"b" in line.partition(b" flags=")[2].partition(b" ")[0]

    def answer(
        self, client: int, pushes: bool = False, may_wait: bool = True, count: int = 1
    ) -> bool:
        """Wait until calls are answered; False when the client waits instead, which it may do.

        Redis lets a client wait for a moment where a database is emptied.
        """
        wire = self.wires[client]
        deadline = time.monotonic() + ANSWER_S
        glance_s = _GLANCE_S
        while not wire.answered(pushes, count) and not wire.closed:
            if not wire.receive(glance_s):
                if may_wait and self.waiting(client):
                    return False
                glance_s = 0.1
                if time.monotonic() > deadline:
                    break
        return True

    def counts(self) -> dict[str, str]:
        """Return what INFO has counted since the session began, without times."""
        text = parse(self.call("INFO", "commandstats", "errorstats", "stats"))
        assert isinstance(text, bytes)
        pairs = (line.partition(":")[::2] for line in text.decode().splitlines())
        return {
            name: ",".join(part for part in counted.split(",") if not _TIMES.search(part))
            for name, counted in pairs
            if name.startswith(("cmdstat_", "errorstat_")) or name in _COUNTED
        }

    def overheard(self, number: int) -> tuple[list[bytes], list[bytes]]:
        """The key events, and what MONITOR shows, since this was asked last."""
        if self.listener is None or self.monitor is None:
            return [], []
        self.call("PUBLISH", _SYNC, str(number))
        events: list[bytes] = []
        while _SYNC not in (event := self.listener.read()):
            message = parse(event)
            assert isinstance(message, list)
            events.append(b"%b %b" % (message[2][9:].replace(b"__:", b" "), message[3]))
        shown: list[bytes] = []
        while _SYNC not in (line := self.monitor.read()):
            head, _, rest = line.partition(b" [")
            place, _, words = rest.partition(b"] ")
            database, _, address = place.partition(b" ")
            if name := self._names.get(address):
                shown.append(b"%b [%b %b] %b" % (head, database, name, words))
        return events, shown


def split_replies(data: bytes) -> list[bytes]:
    """The whole replies that ``data`` begins with; a connection's end counts as one."""
    replies = []
    start = 0
    while start < len(data):
        end = _reply_end(data, start)
        if end < 0:
            break
        replies.append(data[start:end])
        start = end
    return replies


def split_items(reply: bytes) -> list[bytes]:
    """The items of an array, each as it was sent."""
    return split_replies(reply[reply.index(b"\r\n") + 2 :])


def _reply_end(data: bytes, start: int) -> int:
    missing = 1
    while missing:
        if data.startswith(CLOSED, start):
            return start + len(CLOSED)
        end = data.find(b"\r\n", start)
        if end < 0:
            return -1
        kind, line = data[start : start + 1], data[start + 1 : end]
        start = end + 2
        missing -= 1
        if kind in b"$=!":
            start += max(int(line) + 2, 0) if int(line) >= 0 else 0
        elif kind in b"*~>":
            missing += max(int(line), 0)
        elif kind in b"%|":
            missing += 2 * int(line) + (kind == b"|")
    return start if start <= len(data) else -1
