"""All that a server holds, as a client sees it, to compare two servers by."""

from __future__ import annotations

from typing import Final

from support.client import RawClient, parse

DATABASES: Final = 4
# The layout in memory, times that no file keeps, and counters that a base of commands leaves out.
_UNTOLD: Final = {
    b"radix-tree-keys", b"radix-tree-nodes", b"seen-time", b"active-time",
    b"iids-added", b"iids-duplicates",
}  # fmt: skip


State = dict[tuple[int, bytes], object]  # database and key to all that is known of it


def state(client: RawClient) -> State:
    """Each key of each database: its deadline, and its value with all that belongs to it."""
    found: State = {}
    for db in range(DATABASES):
        client.call("SELECT", db)
        keys = client.call_parsed("KEYS", "*")
        assert isinstance(keys, list)
        for key in keys:
            deadline = client.call_parsed("PEXPIRETIME", key)
            if client.call_parsed("TYPE", key) == b"string":
                found[db, key] = deadline, client.call_parsed("GET", key)
            else:
                whole = client.call_parsed("XINFO", "STREAM", key, "FULL", "COUNT", 0)
                producers = parse(client.call("XIDMP", "PRODUCERS", key))
                found[db, key] = deadline, _told(whole), producers
    client.call("SELECT", 0)
    return found


def _told(value: object) -> object:
    """A reply of XINFO without what is not compared."""
    if not isinstance(value, list):
        return value
    told: list[object] = []
    skipped = False
    for item in value:
        if skipped:
            skipped = False
        elif isinstance(item, bytes) and item in _UNTOLD:
            skipped = True
        else:
            told.append(_told(item))
    return told


def differences(
    ours: dict[tuple[int, bytes], object], twin: dict[tuple[int, bytes], object]
) -> str:
    """What differs, a line each; empty when nothing does."""
    lines = []
    for place in sorted(ours.keys() | twin.keys()):
        if ours.get(place) != twin.get(place):
            lines.append(
                f"{place}\n  there     {ours.get(place)!r}\n  should be {twin.get(place)!r}\n"
            )
    return "".join(lines)
