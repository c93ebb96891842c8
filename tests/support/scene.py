"""A client that acts and clients that wait, for tests of blocking commands."""

from __future__ import annotations

import time

from support.client import Argument, RawClient, WireError
from support.process import Process


class Scene:
    """A server, a client that acts, and clients that wait.

    A request wakes the waiting before it is answered, so what INFO counts after it says whether it
    woke anybody.
    """

    def __init__(self, server: Process) -> None:
        self.server = server
        self.actor = server.client()
        self._clients = [self.actor]

    def waiter(self, *, resp3: bool = False) -> RawClient:
        client = self.server.client(resp3=resp3)
        self._clients.append(client)
        return client

    def leave(self) -> None:
        for client in self._clients:
            client.close()

    def close(self) -> None:
        self.leave()
        with self.server.client() as self.actor:
            self.wait_for_blocked(0)

    def do(self, *words: Argument) -> object:
        """Run a command that must not fail."""
        reply = self.actor.call_parsed(*words)
        assert not isinstance(reply, WireError), (words, reply)
        return reply

    def do_at_once(self, *commands: str) -> None:
        """Run commands in one transaction."""
        self.actor.pipeline(("MULTI",), *[tuple(line.split()) for line in commands])
        assert self.actor.call("EXEC").startswith(b"*")

    def figure(self, name: str, section: str = "clients") -> int:
        text = self.do("INFO", section)
        assert isinstance(text, bytes)
        return int(text.split(name.encode() + b":")[1].split(b"\r\n")[0])

    def blocked(self) -> int:
        return self.figure("blocked_clients")

    def wait_for_blocked(self, count: int) -> None:
        deadline = time.monotonic() + 60
        while self.blocked() != count:
            assert time.monotonic() < deadline, f"{self.blocked()} are blocked, not {count}"

    def block(self, client: RawClient, *words: Argument) -> None:
        """Send a request that must block."""
        count = self.blocked()
        client.send_command(*words)
        self.wait_for_blocked(count + 1)

    def calls(self, name: str) -> dict[str, int]:
        """The counters that INFO commandstats has for a command."""
        text = self.do("INFO", "commandstats")
        assert isinstance(text, bytes)
        for line in text.decode().splitlines():
            if line.startswith(f"cmdstat_{name}:"):
                pairs = [pair.split("=") for pair in line.partition(":")[2].split(",")]
                return {key: int(float(value)) for key, value in pairs}
        return {"calls": 0, "failed_calls": 0}
