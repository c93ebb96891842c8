"""All that a server holds, as a client sees it, to compare two servers by."""

from __future__ import annotations

from typing import Final

from support.client import RawClient, parse

DATABASES: Final = 4
# The layout in memory, times that no file keeps, and counters that a base of commands leaves out.
_NOT_COMPARED: Final = {
    b"radix-tree-keys", b"radix-tree-nodes", b"seen-time", b"active-time",
    b"iids-added", b"iids-duplicates",
}  # fmt: skip


_LAST_INDEX: Final = 2**64 - 2
_GONE: Final = (b"none", None)
State = dict[tuple[int, bytes], object]  # database and key to all that is known of it


def state(client: RawClient) -> State:
    """Each key of each database: its deadline, and its value with all that belongs to it."""
    found: State = {}
    for db in range(DATABASES):
        client.call("SELECT", db)
        keys = client.call_parsed("KEYS", "*")
        assert isinstance(keys, list)
        for key in keys:
            value = client.call_parsed("PEXPIRETIME", key), _value(client, key)
            if value[1] != _GONE:
                found[db, key] = value
    client.call("SELECT", 0)
    return found


def _value(client: RawClient, key: bytes) -> object:
    """All that is in a key; what has no order in the order of its bytes."""
    kind = client.call_parsed("TYPE", key)
    if kind == b"stream":
        whole = client.call_parsed("XINFO", "STREAM", key, "FULL", "COUNT", 0)
        return _compared(whole), parse(client.call("XIDMP", "PRODUCERS", key))
    if kind == b"hash":
        pairs = client.call_parsed("HGETALL", key)
        assert isinstance(pairs, list)
        fields = pairs[::2]
        until = client.call_parsed("HPEXPIRETIME", key, "FIELDS", len(fields), *fields)
        if not isinstance(until, list):  # the last of its fields have just ended
            return _GONE
        return kind, sorted(zip(fields, pairs[1::2], until, strict=True))
    if kind == b"set":
        members = client.call_parsed("SMEMBERS", key)
        assert isinstance(members, list)
        return kind, sorted(members)
    if kind == b"zset":
        # A small set has no sign of zero, and one that was large may be small after a rewrite.
        scored = client.call_parsed("ZRANGE", key, 0, -1, "WITHSCORES")
        assert isinstance(scored, list)
        scored[1::2] = [b"0" if score == b"-0" else score for score in scored[1::2]]
        return kind, scored
    words = {
        b"string": ("GET", key),
        b"list": ("LRANGE", key, 0, -1),
        b"array": ("ARSCAN", key, 0, _LAST_INDEX),
    }
    assert isinstance(kind, bytes)
    return kind, client.call_parsed(*words[kind])


def _compared(value: object) -> object:
    """A reply of XINFO without what is not compared."""
    if not isinstance(value, list):
        return value
    compared: list[object] = []
    skipped = False
    for item in value:
        if skipped:
            skipped = False
        elif isinstance(item, bytes) and item in _NOT_COMPARED:
            skipped = True
        else:
            compared.append(_compared(item))
    return compared


def differences(ours: State, twin: State) -> str:
    """Return what differs, a line each; empty when nothing does."""
    lines = []
    for place in sorted(ours.keys() | twin.keys()):
        if ours.get(place) != twin.get(place):
            lines.append(
                f"{place}\n  there     {ours.get(place)!r}\n  should be {twin.get(place)!r}\n"
            )
    return "".join(lines)
