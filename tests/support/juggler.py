"""A client that keeps a number in the air: it is always in exactly one place, whoever looks."""

from __future__ import annotations

import threading

from support.client import RawClient
from support.process import Process
from support.waiting import DEADLINE_S

UP, THERE = 1, 0  # databases


class Juggler:
    """Counts a string up while renaming it and moving it between databases, in transactions.

    A snapshot has to take it under the name that it had, where it had it, whatever happens
    meanwhile; otherwise it is there twice after a crash, or not at all.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.sent = 0
        self.acknowledged = 0
        self.trouble = ""
        self._thread: threading.Thread | None = None

    def begin(self, port: int) -> None:
        """Go on until the server is gone."""
        self._thread = threading.Thread(target=self._run, args=(port,), daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Wait for the end, which the end of the server brings."""
        assert self._thread is not None
        self._thread.join(DEADLINE_S)
        assert not self._thread.is_alive()
        assert not self.trouble

    def _run(self, port: int) -> None:
        try:
            with RawClient(port) as client:
                client.call("SELECT", UP)
                client.call("MOVE", self.name, THERE)
                client.call("SELECT", THERE)
                while not self.trouble:
                    self._throw(client)
        except OSError:
            return  # the server is gone

    def _throw(self, client: RawClient) -> None:
        self.sent += 1
        away = (
            ("INCR", self.name),
            ("RENAME", self.name, self.name + ":turned"),
            ("SWAPDB", 2, 3),
            ("RENAMENX", self.name + ":turned", self.name),
            ("MOVE", self.name, UP),
        )
        back = (("SELECT", UP), ("MOVE", self.name, THERE), ("SELECT", THERE))
        expected = (
            b"*5\r\n:%d\r\n+OK\r\n+OK\r\n:1\r\n:1\r\n" % self.sent,
            b"*3\r\n+OK\r\n:1\r\n+OK\r\n",
        )
        for commands, wanted in zip((away, back), expected, strict=True):
            client.call("MULTI")
            for command in commands:
                client.call(*command)
            reply = client.call("EXEC")
            if reply != wanted:
                self.trouble = f"{reply!r} instead of {wanted!r}"
                return
        self.acknowledged = self.sent

    def check(self, server: Process) -> None:
        """Look where it is, and how often it was counted."""
        found = []
        with server.client() as client:
            for db in (UP, THERE):
                client.call("SELECT", db)
                for key in (self.name, self.name + ":turned"):
                    value = client.call_parsed("GET", key)
                    if isinstance(value, bytes):
                        found.append(int(value))
        assert len(found) == 1 or (not found and not self.acknowledged), found
        number = found[0] if found else 0
        assert self.acknowledged <= number <= self.sent
        self.sent = self.acknowledged = number
