"""Groups in the append-only file: replayed from records, and from a base that is written anew."""

from __future__ import annotations

import pytest
from conftest import Factory

from support.client import RawClient
from support.process import Process


def fill(client: RawClient) -> None:
    """Owners, times and counts of all kinds; released entries in an order of their own."""
    for number in range(1, 151):
        client.call("XADD", "s", f"{number}-0", "n", number)
    client.call("XGROUP", "CREATE", "s", "g", 0)
    client.call("XGROUP", "CREATE", "s", "late", 5, "ENTRIESREAD", 5)
    client.call("XGROUP", "CREATE", "empty", "g", "$", "MKSTREAM")
    client.call("XREADGROUP", "GROUP", "g", "a", "COUNT", 90, "STREAMS", "s", ">")
    client.call("XREADGROUP", "GROUP", "g", "b", "COUNT", 5, "STREAMS", "s", ">")
    client.call("XREADGROUP", "GROUP", "late", "a", "NOACK", "COUNT", 2, "STREAMS", "s", ">")
    client.call("XGROUP", "CREATECONSUMER", "s", "g", "idle")
    client.call("XCLAIM", "s", "g", "c", 0, "7-0", "TIME", 1_000_000, "RETRYCOUNT", 9)
    client.call("XCLAIM", "s", "g", "c", 0, "3-0", "TIME", 1_000_000, "RETRYCOUNT", 2)
    client.call("XACK", "s", "g", "5-0", "6-0")
    client.call("XNACK", "s", "g", "FAIL", "IDS", 2, "9-0", "8-0")
    client.call("XNACK", "s", "g", "FATAL", "IDS", 1, "2-0")
    client.call("XNACK", "s", "g", "SILENT", "IDS", 70, *[f"{n}-0" for n in range(90, 20, -1)])
    client.call("XNACK", "s", "g", "FAIL", "IDS", 1, "120-0", "RETRYCOUNT", 4, "FORCE")


def without_times(reply: object) -> object:
    """XINFO STREAM FULL less what a restart may change: when consumers were seen."""
    if isinstance(reply, list):
        kept: list[object] = []
        skip = False
        for item in reply:
            if skip:
                skip = False
            elif item in (b"seen-time", b"active-time"):
                skip = True
            else:
                kept.append(without_times(item))
        return kept
    return reply


def state(server: Process) -> list[object]:
    return [without_times(server.call("XINFO", "STREAM", key, "FULL", "COUNT", 0))
            for key in ("s", "empty")]  # fmt: skip


def claim_order(server: Process) -> list[bytes]:
    reply = server.call("XREADGROUP", "GROUP", "g", "z", "CLAIM", 0, "STREAMS", "s", ">")
    assert isinstance(reply, list)
    return [row[0] for row in reply[0][1]]


@pytest.mark.parametrize("rewritten", [False, True], ids=["records", "base"])
def test_a_restart_keeps_groups(fresh_server: Factory, rewritten: bool) -> None:
    server = fresh_server("--appendonly", "yes")
    with server.client() as client:
        fill(client)
    before = state(server)
    if rewritten:
        server.call("BGREWRITEAOF")
        server.wait_for_log("Append-only base file written")
    server.restart(crash=True)
    after = state(server)
    assert after == before
    order = claim_order(server)
    released = [b"9-0", b"8-0", b"2-0", *[b"%d-0" % n for n in range(90, 20, -1)], b"120-0"]
    assert order[: len(released)] == released
    assert order[len(released) : len(released) + 2] == [b"7-0", b"3-0"]  # first set, first claimed


@pytest.mark.parametrize("form", ["yes", "no"], ids=["snapshot", "commands"])
def test_a_base_keeps_what_is_pending_of_deleted_messages(fresh_server: Factory, form: str) -> None:
    server = fresh_server("--appendonly", "yes", "--aof-use-rdb-preamble", form)
    with server.client() as client:
        for number in range(1, 6):
            client.call("XADD", "s", f"{number}-0", "n", number)
        client.call("XGROUP", "CREATE", "s", "g", 0)
        client.call("XREADGROUP", "GROUP", "g", "a", "COUNT", 3, "STREAMS", "s", ">")
        client.call("XDEL", "s", "2-0")
        before = client.call("XPENDING", "s", "g")
        client.call("BGREWRITEAOF")
    server.wait_for_log("Append-only base file written")
    server.restart(crash=True)
    with server.client() as client:
        assert client.call("XPENDING", "s", "g") == before
        assert client.call("XCLAIM", "s", "g", "b", 0, "2-0", "FORCE", "JUSTID") == b"*0\r\n"
        assert client.call("XPENDING", "s", "g") != before


@pytest.mark.parametrize("mode", ["KEEPREF", "DELREF", "ACKED"])
@pytest.mark.parametrize("rule", [("MAXLEN", "~", 2), ("MINID", "~", "9-0")])
def test_what_was_trimmed_stays_so(
    fresh_server: Factory, rule: tuple[str, str, int | str], mode: str
) -> None:
    """By about a length or an ID: with references to drop, that is within a node, too."""
    server = fresh_server("--appendonly", "yes", "--stream-node-max-entries", "4")
    with server.client() as client:
        for number in range(1, 11):
            client.call("XADD", "s", f"{number}-0", "n", number)
        client.call("XGROUP", "CREATE", "s", "g", "5-0")
        client.call("XREADGROUP", "GROUP", "g", "a", "COUNT", 2, "STREAMS", "s", ">")
        client.call("XTRIM", "s", *rule, mode)
    before = state_of(server)
    server.restart(crash=True)
    assert state_of(server) == before


def state_of(server: Process) -> object:
    whole = server.call("XINFO", "STREAM", "s", "FULL", "COUNT", 0)
    assert isinstance(whole, list)
    told = dict(zip(whole[::2], whole[1::2], strict=True))
    return [told[name] for name in (b"length", b"entries")], without_times(told[b"groups"])
