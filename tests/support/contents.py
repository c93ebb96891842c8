"""All that a server of any kind shows of its strings and streams, to compare servers by."""

from __future__ import annotations

from support.client import RawClient
from support.process import Process

DATABASES = range(4)
_FACTS = (
    b"length", b"last-generated-id", b"max-deleted-entry-id", b"entries-added", b"first-entry",
    b"last-entry",
)  # fmt: skip


def contents(server: Process) -> dict[str, object]:
    """What every key holds, and until when."""
    found: dict[str, object] = {}
    with server.client() as client:
        for db in DATABASES:
            client.call("SELECT", db)
            keys = client.call_parsed("KEYS", "*")
            assert isinstance(keys, list)
            for key in sorted(keys):
                place = f"{db} {key!r}"
                found[place + " deadline"] = client.call("PEXPIRETIME", key)
                if client.call_parsed("TYPE", key) == b"string":
                    found[place] = client.call("GET", key)
                    continue
                found[place] = client.call("XRANGE", key, "-", "+")
                info = client.call_parsed("XINFO", "STREAM", key)
                assert isinstance(info, list)
                facts = dict(zip(info[::2], info[1::2], strict=True))
                for name in _FACTS:
                    found[f"{place} {name!r}"] = facts[name]
                found[f"{place} groups"] = groups(client, key)
    return found


def groups(client: RawClient, key: bytes) -> list[object]:
    """What is pending in the groups of a stream, and how far they are."""
    found: list[object] = []
    listed = client.call_parsed("XINFO", "GROUPS", key)
    assert isinstance(listed, list)
    for group in listed:
        facts = dict(zip(group[::2], group[1::2], strict=True))
        pending = client.call_parsed("XPENDING", key, facts[b"name"], "-", "+", 1000)
        assert isinstance(pending, list)
        owners = [(entry, consumer, count) for entry, consumer, _, count in pending]
        found.append((facts[b"name"], facts[b"last-delivered-id"], facts[b"entries-read"], owners))
    return found
