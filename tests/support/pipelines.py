"""The same requests in one pipeline and one by one: what has to be the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from conftest import Factory

from support.client import encode
from support.process import Process
from support.waiting import wait_until

_COUNTED: Final = ("keyspace_hits", "keyspace_misses", "rdb_changes_since_last_save")


def check_at_once(
    fresh_server: Factory, begin: Callable[[Process], None], calls: list[tuple[bytes, ...]]
) -> None:
    """Replies, data and counts are the same, and the append-only file brings the data back.

    Args:
        begin: fills a server before.
    """
    options = ("--appendonly", "yes", "--appendfsync", "always", "--enable-debug-command", "yes")
    at_once, one_by_one = fresh_server(*options), fresh_server(*options)
    for server in (at_once, one_by_one):
        begin(server)
    with at_once.client() as client, one_by_one.client() as other:
        client.send(b"".join(encode(*words) for words in calls))
        replies = [client.read() for _ in calls]
        for words, reply in zip(calls, replies, strict=True):
            assert reply == other.call(*words), words
    digests = [server.call("DEBUG", "DIGEST") for server in (at_once, one_by_one)]
    assert digests[0] == digests[1]
    names = {f"cmdstat_{words[0].decode().lower()}" for words in calls}
    found, wanted = (_counts(server, names) for server in (at_once, one_by_one))
    assert found == wanted, [(name, found.get(name), wanted[name]) for name in wanted]
    at_once.restart(crash=True)
    assert at_once.call("DEBUG", "DIGEST") == digests[0]


def let_expire(server: Process, key: str) -> None:
    """Have the time of a key come, without a look at it."""
    server.call("PEXPIRE", key, 5)
    due_ms = _time_ms(server) + 5  # or before
    wait_until(lambda: _time_ms(server) > due_ms)


def _time_ms(server: Process) -> int:
    told = server.call("TIME")
    assert isinstance(told, list)
    return int(told[0]) * 1000 + int(told[1]) // 1000


def _counts(server: Process, names: set[str]) -> dict[str, str]:
    """Return what INFO counts: keys that were found, changes, and calls of some commands."""
    found = {name: server.info()[name] for name in _COUNTED}
    for name, text in server.info("commandstats").items():
        if name in names:
            found[name] = text.partition(",")[0]
    return found
