"""All that a server of any kind shows of its strings and streams, to compare servers by."""

from __future__ import annotations

from support.interchange import groups_of, pairs
from support.process import Process

DATABASES = range(4)
_FACTS = (
    b"length", b"last-generated-id", b"max-deleted-entry-id", b"entries-added", b"first-entry",
    b"last-entry",
)  # fmt: skip


def contents(server: Process) -> dict[str, object]:
    """Return what every key holds, and until when."""
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
                facts = pairs(client.call_parsed("XINFO", "STREAM", key))
                for name in _FACTS:
                    found[f"{place} {name!r}"] = facts[name]
                found[f"{place} groups"] = groups_of(client, key)
    return found
