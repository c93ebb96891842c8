"""A client without opinions: it sends bytes and returns the exact bytes of one reply."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import time
from types import TracebackType
from typing import Self

from support.waiting import DEADLINE_S

Argument = bytes | str | int | float


class Status(bytes):
    """A simple string, such as ``+OK``; equal to the bytes of its text."""


class Push(list[object]):
    """An out-of-band message of RESP3."""


class WireError(Exception):
    """An error reply; ``text`` is ``CODE message``. Returned by the parser, not raised."""

    def __init__(self, text: bytes) -> None:
        super().__init__(text)
        self.text = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WireError) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)


def to_bytes(argument: Argument) -> bytes:
    return argument if isinstance(argument, bytes) else str(argument).encode()


def encode(*arguments: Argument) -> bytes:
    """One request: an array of bulk strings."""
    words = [to_bytes(argument) for argument in arguments]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(w), w) for w in words)


class RawClient:
    """A blocking connection; every read has a deadline, so that a test fails and never hangs.

    Args:
        port: TCP port on ``host``; or ``path``: a Unix socket.
        tls: what an encrypted connection is made by; without it none is.
        resp3: say ``HELLO 3`` at once.
        timeout_s: how long one read may take.
    """

    def __init__(
        self,
        port: int = 0,
        host: str = "127.0.0.1",
        *,
        path: str = "",
        tls: ssl.SSLContext | None = None,
        resp3: bool = False,
        timeout_s: float = DEADLINE_S,
    ) -> None:
        if path:
            self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.sock.settimeout(timeout_s)
            self.sock.connect(path)
        else:
            self.sock = socket.create_connection((host, port), timeout=timeout_s)
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            self.sock = tls.wrap_socket(self.sock)
        self.timeout_s = timeout_s
        self._buffer = bytearray()
        self._taken = 0  # bytes of the buffer that belong to replies already returned
        if resp3:
            hello = self.call("HELLO", 3)
            assert hello.startswith(b"%"), hello

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self.sock.close()

    # Sending

    def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        self.sock.settimeout(self.timeout_s)
        self.sock.sendall(data)

    def send_slowly(self, data: bytes) -> None:
        """Send one byte at a time."""
        for index in range(len(data)):
            self.send(data[index : index + 1])

    def send_command(self, *arguments: Argument) -> None:
        self.send(encode(*arguments))

    # Receiving

    def read(self) -> bytes:
        """The bytes of the next reply or push message, whole."""
        start = self._taken
        try:
            end = self._reply_end(start)
        except TimeoutError:
            rest = bytes(self._buffer[start : start + 200])
            raise TimeoutError(f"no whole reply within {self.timeout_s} s: {rest!r}") from None
        raw = bytes(self._buffer[start:end])
        self._taken = end
        if self._taken > 1 << 16:
            del self._buffer[: self._taken]
            self._taken = 0
        return raw

    def read_parsed(self) -> object:
        return parse(self.read())

    def call(self, *arguments: Argument) -> bytes:
        """Send a command; return the raw bytes of its reply."""
        self.send_command(*arguments)
        return self.read()

    def call_parsed(self, *arguments: Argument) -> object:
        """Send a command; return its reply as a value, see ``parse``. Errors are returned too."""
        return parse(self.call(*arguments))

    def pipeline(self, *commands: tuple[Argument, ...]) -> list[bytes]:
        """Send all commands in one write; return the raw replies."""
        self.send(b"".join(encode(*command) for command in commands))
        return [self.read() for _ in commands]

    def is_answered(self) -> bool:
        """Return whether more has arrived than was read; nothing is waited for."""
        if self._taken < len(self._buffer):
            return True
        return bool(select.select([self.sock], [], [], 0)[0])

    def silent(self, seconds: float = 0.1) -> bool:
        """Return whether nothing arrives within ``seconds``: a blocked client stays blocked."""
        if self._taken < len(self._buffer):
            return False
        self.sock.settimeout(seconds)
        try:
            data = self.sock.recv(65536)
        except TimeoutError:
            return True
        finally:
            self.sock.settimeout(self.timeout_s)
        self._buffer += data
        return False

    def rest_until_close(self) -> bytes:
        """Everything the server still sends before it closes; fails when it does not close."""
        deadline = time.monotonic() + self.timeout_s
        with contextlib.suppress(ConnectionResetError):
            while time.monotonic() < deadline:
                self.sock.settimeout(max(0.01, deadline - time.monotonic()))
                data = self.sock.recv(65536)
                if not data:
                    break
                self._buffer += data
        rest = bytes(self._buffer[self._taken :])
        self._taken = len(self._buffer)
        return rest

    def _more(self) -> None:
        self.sock.settimeout(self.timeout_s)
        data = self.sock.recv(1 << 16)
        if not data:
            rest = bytes(self._buffer[self._taken :])
            raise ConnectionError(f"connection closed; unread: {rest[:200]!r}")
        self._buffer += data

    def _line_end(self, start: int) -> int:
        while True:
            end = self._buffer.find(b"\r\n", start)
            if end >= 0:
                return end
            self._more()

    def _reply_end(self, start: int) -> int:
        """The index behind the reply that starts at ``start``; reads what is missing."""
        missing = 1  # values still to come: aggregates are walked without recursion
        while missing:
            end = self._line_end(start)
            kind = self._buffer[start : start + 1]
            line = bytes(self._buffer[start + 1 : end])
            start = end + 2
            missing -= 1
            if kind in b"$=!":
                size = int(line)
                if size >= 0:
                    start += size + 2
                    while len(self._buffer) < start:
                        self._more()
            elif kind in b"*~>":
                missing += max(int(line), 0)
            elif kind == b"%":
                missing += 2 * int(line)
            elif kind == b"|":
                missing += 2 * int(line) + 1
            elif kind not in b"+-:_#,(":
                raise ValueError(f"not a reply: {bytes(kind + line)!r}")
        return start


def parse(raw: bytes) -> object:
    """The value of one reply.

    Bulk and verbatim strings are bytes, simple strings ``Status``, errors ``WireError``, maps
    dicts (an array used as a key becomes a tuple), sets and arrays lists, nulls None.
    """
    value, end = _parse(raw, 0)
    assert end == len(raw), raw
    return value


def _parse(raw: bytes, start: int) -> tuple[object, int]:
    end = raw.index(b"\r\n", start)
    kind, line, after = raw[start : start + 1], raw[start + 1 : end], end + 2
    if kind == b"+":
        return Status(line), after
    if kind == b"-":
        return WireError(line), after
    if kind in b":(":
        return int(line), after
    if kind in b"$=!":
        size = int(line)
        if size < 0:
            return None, after
        data = raw[after : after + size]
        value: object = WireError(data) if kind == b"!" else data[4:] if kind == b"=" else data
        return value, after + size + 2
    if kind in b"*~>":
        return _parse_items(raw, kind, int(line), after)
    if kind == b"%":
        flat, after = _parse_items(raw, b"*", 2 * int(line), after)
        assert isinstance(flat, list)
        pairs = zip(flat[::2], flat[1::2], strict=True)
        return {tuple(k) if isinstance(k, list) else k: v for k, v in pairs}, after
    if kind == b"|":
        _, after = _parse_items(raw, b"*", 2 * int(line), after)
        return _parse(raw, after)
    if kind == b"_":
        return None, after
    if kind == b"#":
        return line == b"t", after
    assert kind == b",", raw
    return float(line), after


def _parse_items(raw: bytes, kind: bytes, size: int, start: int) -> tuple[object, int]:
    if size < 0:
        return None, start
    items: list[object] = Push() if kind == b">" else []
    for _ in range(size):
        item, start = _parse(raw, start)
        items.append(item)
    return items, start
