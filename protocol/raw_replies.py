"""Cuts what a server sends into replies, without reading them; hiredis does that."""

from __future__ import annotations


class RawReplies:
    """Cuts bytes into whole replies."""

    def __init__(self) -> None:
        self._buffer = b""

    def feed(self, data: bytes) -> None:
        """Add what has arrived."""
        self._buffer += data

    def take(self) -> bytes | None:
        """Take out the first reply; None while it is not whole."""
        end = self._end(0)
        if end < 0:
            return None
        raw, self._buffer = self._buffer[:end], self._buffer[end:]
        return raw

    def _end(self, at: int) -> int:
        """Return where the reply at a place ends; -1 where it is not whole."""
        line = self._buffer.find(b"\r\n", at)
        if line < 0:
            return -1
        kind = self._buffer[at : at + 1]
        end = line + 2
        if kind in b"$=!":
            size = int(self._buffer[at + 1 : line])
            end += size + 2 if size >= 0 else 0
            return end if end <= len(self._buffer) else -1
        if kind in b"*~>%|":
            pairs = 2 if kind in b"%|" else 1
            left = int(self._buffer[at + 1 : line]) * pairs + (kind == b"|")
            while left > 0 and end >= 0:
                end = self._end(end)
                left -= 1
        return end
