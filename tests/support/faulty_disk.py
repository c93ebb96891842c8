"""Runs our server on a faulty disk: file operations are delayed, fail, or end the process.

The first argument names a file of rules, which is looked at before each operation, so that a test
can break the disk and mend it while the server runs; see ``support.faults.Rule``. The second names
a file that gets a line for each sync that succeeded: how much of which file is on the disk now; and
one for each operation that is made to take longer. The rest is the server's command line.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

rules_path = sys.argv.pop(1)
journal_path = sys.argv.pop(1)

WATCHED = (
    "open", "read", "write", "writev", "fdatasync", "fsync", "ftruncate", "rename", "unlink"
)  # fmt: skip
SYNCS = ("fdatasync", "fsync")
GLANCE_S = 0.01  # how often one that takes long looks whether the test has mended the disk

real: dict[str, Callable[..., Any]] = {name: getattr(os, name) for name in WATCHED}
journal = real["open"](journal_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
lock = threading.Lock()
under_way: dict[str, int] = dict.fromkeys(WATCHED, 0)


class Rules:
    """The rules as the file has them now, and how often each was met."""

    def __init__(self) -> None:
        self.text = b""
        self.rules: list[dict[str, Any]] = []
        self.met: list[int] = []

    def match(self, name: str, path: str) -> dict[str, Any] | None:
        """The first rule for an operation; it counts as met."""
        self.refresh()
        for number, rule in enumerate(self.rules):
            if rule["call"] != name or rule["path"] not in path:
                continue
            if rule["during"] and not under_way[rule["during"]]:
                continue
            self.met[number] += 1
            if rule["skip"] < self.met[number] <= rule["skip"] + rule["times"]:
                return rule
        return None

    def refresh(self) -> None:
        try:
            fd = real["open"](rules_path, os.O_RDONLY)
        except FileNotFoundError:
            return
        try:
            text = real["read"](fd, 1 << 20)
        finally:
            os.close(fd)
        if text != self.text:
            self.text = text
            self.rules = json.loads(text)
            self.met = [0] * len(self.rules)


current = Rules()


def path_of(target: object) -> str:
    if isinstance(target, int):
        with contextlib.suppress(OSError):
            return os.readlink(f"/proc/self/fd/{target}")
        return ""
    return os.fsdecode(target)  # type: ignore[arg-type]


def faulty(name: str) -> Callable[..., Any]:
    """An operation of ``os`` that obeys the rules."""
    operation = real[name]

    def call(target: Any, *rest: Any, **named: Any) -> Any:
        path = path_of(target)
        with lock:
            rule = current.match(name, path)
            under_way[name] += 1
        try:
            if rule is not None:
                obey(rule, target, *rest)
                if rule["part"]:
                    return operation(target, rest[0][: rule["part"]])
            size = os.fstat(target).st_size if name in SYNCS else 0
            result = operation(target, *rest, **named)
        finally:
            with lock:
                under_way[name] -= 1
        if name in SYNCS:
            real["write"](journal, b"%d %b\n" % (size, os.fsencode(path)))
        return result

    def obey(rule: dict[str, Any], target: Any, *rest: Any) -> None:
        if rule["delay_s"]:
            real["write"](journal, b"0 held\n")
        until_s = time.monotonic() + rule["delay_s"]
        while (left_s := until_s - time.monotonic()) > 0 and rule in current.rules:
            time.sleep(min(left_s, GLANCE_S))
            with lock:
                current.refresh()
        if rule["part"] and (rule["kill"] or rule["error"]):
            operation(target, rest[0][: rule["part"]])
        if rule["kill"]:
            os.kill(os.getpid(), signal.SIGKILL)
        if rule["error"]:
            raise OSError(rule["error"], os.strerror(rule["error"]))

    return call


for each in WATCHED:
    setattr(os, each, faulty(each))

from headrace.server.cli import main  # noqa: E402  (late: it shall find the faulty operations)

sys.exit(main())
