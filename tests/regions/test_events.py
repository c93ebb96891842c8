"""Keyspace events: each is published in a region when the change arrives there, and once."""

from __future__ import annotations

from support.client import RawClient
from support.mesh import Mesh, RegionProcess, wait_until


def listen(region: RegionProcess) -> RawClient:
    """A client that is told of all events of keys."""
    region.call("CONFIG", "SET", "notify-keyspace-events", "KEA")
    client = region.client()
    client.send_command("PSUBSCRIBE", "__keyevent@0__:*")
    client.read()
    return client


def events(region: RegionProcess, listener: RawClient) -> list[tuple[bytes, bytes]]:
    """Return what has been published so far: the event, and the key."""
    region.call("PUBLISH", "__keyevent@0__:so far", "")
    found: list[tuple[bytes, bytes]] = []
    while True:
        message = listener.read_parsed()
        assert isinstance(message, list)
        event = message[2].removeprefix(b"__keyevent@0__:")
        if event == b"so far":
            return found
        found.append((event, message[3]))


def test_an_expiry_is_published_once_in_each_region(three_regions: Mesh) -> None:
    """Though each of them removes the key, and hears that of the others."""
    regions = list(three_regions.regions.values())
    regions[0].xadd("x")
    regions[0].call("XGROUP", "CREATE", "x", "g", "0")
    three_regions.sync()
    with listen(regions[0]) as one, listen(regions[1]) as two, listen(regions[2]) as three:
        three_regions.pause()
        regions[0].call("PEXPIRE", "x", "1500")
        three_regions.sync()
        for region in regions:
            wait_until(lambda region=region: region.call("AA", "COUNT", "EXPIRE") == 1)
        three_regions.sync()
        for region, listener in zip(regions, (one, two, three), strict=True):
            found = events(region, listener)
            assert found.count((b"expired", b"x")) == 1, found
            assert found[0] == (b"expire", b"x")
