"""How a round goes: by which rules the disk plays, what else is under way, and how it ends."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from dataclasses import dataclass
from random import Random
from typing import Final

from support.client import RawClient
from support.faults import Rule
from support.process import Process
from support.waiting import DEADLINE_S

KILL: Final = "kill -9"
POWER: Final = "power cut"
SHUTDOWN: Final = "SHUTDOWN"
SIGNALS: Final = {"SIGTERM": signal.SIGTERM, "SIGINT": signal.SIGINT}

# File operations to be killed at, by the files that they are about.
_OPERATIONS: Final = (
    ("write", ".incr.aof"), ("write", ".base."), ("write", "manifest"), ("fdatasync", ".incr.aof"),
    ("fdatasync", ".base."), ("fsync", ""), ("open", ".incr.aof"), ("open", "manifest"),
    ("rename", "manifest"), ("rename", ".base."), ("unlink", ""), ("ftruncate", ""),
)  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """One round.

    Args:
        policy: of ``appendfsync``.
        end: how the server ends.
        pipelines: after how many.
        wait_s: how long the last one is given before the end.
        rule: for the disk: where the process is killed, if that comes before the end.
        rewrites: forms of bases to write meanwhile, ``yes`` or ``no``; none: nothing is rewritten.
    """

    policy: str
    end: str
    pipelines: int
    wait_s: float
    rule: Rule | None
    rewrites: tuple[str, ...]

    def __str__(self) -> str:
        rewrites = f", rewriting ({', '.join(self.rewrites)})" if self.rewrites else ""
        rule = (
            f", killed at {self.rule.call} of {self.rule.path or 'any file'}" if self.rule else ""
        )
        return f"{self.policy}, {self.end} after {self.pipelines} pipelines{rule}{rewrites}"


def plan(chance: Random, with_aof: bool) -> Plan:
    """Choose how a round goes.

    Args:
        with_aof: there is an append-only file; without one only what ends in good order counts.
    """
    graceful = chance.choice(("SIGTERM", "SIGINT", SHUTDOWN))
    if not with_aof:
        return Plan("everysec", graceful, chance.randint(1, 40), chance.random() * 0.003, None, ())
    policy = chance.choice(("always", "everysec", "no"))
    end = chance.choice((KILL, KILL, KILL, POWER if policy == "always" else KILL, graceful))
    rule = None
    if chance.random() < 0.4:
        call, path = chance.choice(_OPERATIONS)
        part = chance.choice((1, 10, 100, 1000)) if call == "write" else 0
        rule = Rule(call, path, skip=chance.randint(0, 8), part=part, kill=True)
    rewrites = chance.choice(((), ("yes",), ("no",), ("yes", "no")))
    wait_s = chance.choice((0.0, chance.random() * 0.003))
    return Plan(policy, end, chance.randint(1, 60), wait_s, rule, rewrites)


class Rewriter:
    """Asks for rewrites and snapshots in another thread, until the server is gone."""

    def __init__(self, port: int, forms: tuple[str, ...]) -> None:
        self._port: Final = port
        self._forms: Final = forms
        self._thread: Final = threading.Thread(target=self._run)
        self._ended = False
        if forms:
            self._thread.start()

    def _run(self) -> None:
        with contextlib.suppress(OSError, ValueError), RawClient(self._port) as client:
            number = 0
            while not self._ended:
                form = self._forms[number % len(self._forms)]
                number += 1
                client.call("CONFIG", "SET", "aof-use-rdb-preamble", form)
                client.call("BGREWRITEAOF")
                while b"aof_rewrite_in_progress:1" in client.call("INFO", "persistence"):
                    time.sleep(0.001)
                if number % 5 == 0:
                    client.call("BGSAVE", "SCHEDULE")

    def end(self) -> None:
        """Ask no more. The server is gone."""
        self._ended = True
        if self._forms:
            self._thread.join(DEADLINE_S)
            assert not self._thread.is_alive()


def end_server(server: Process, end: str) -> None:
    """End the process; see ``Plan``. A power cut takes from the files afterwards."""
    if not server.running:
        return
    if end in SIGNALS:
        server.signal(SIGNALS[end])
    elif end == SHUTDOWN:
        with contextlib.suppress(OSError, ValueError), RawClient(server.port) as client:
            client.call("SHUTDOWN")
    else:
        server.signal(signal.SIGKILL)
