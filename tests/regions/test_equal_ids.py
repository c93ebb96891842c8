"""Two entries of different regions with one ID: whatever shows the ID shows both."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.mesh import Mesh, RegionProcess

BOTH = [(b"100-1", b"one"), (b"100-1", b"two")]
ALL = [(b"90-1", b"before"), *BOTH, (b"110-1", b"after")]


@pytest.fixture(params=["semi-strict", "liberal"])
def region(request: pytest.FixtureRequest) -> Iterator[RegionProcess]:
    """A region that has given the ID 100-1 itself, knows of another 100-1, and reads both."""
    with Mesh(2, "--aa-xadd-id-mode", request.param) as mesh:
        one, two = mesh[1], mesh[2]
        mesh.pause()
        one.call("XADD", "s", "90-1", "f", "before")
        one.call("XADD", "s", "100-1", "f", "one")
        two.call("XADD", "s", "100-1", "f", "two")
        two.call("XADD", "s", "110-1", "f", "after")
        mesh.sync()
        one.call("XGROUP", "CREATE", "s", "g", "0")
        reply = one.call("XREADGROUP", "GROUP", "g", "ada", "STREAMS", "s", ">")
        assert in_streams(reply) == ALL
        yield one
        one.check_log()


def shown(entries: object) -> list[tuple[object, object]]:
    """ID and text of each entry; None for one that was deleted."""
    assert isinstance(entries, list)
    return [(each[0], each[1] and each[1][1]) for each in entries]


def in_streams(reply: object) -> list[tuple[object, object]]:
    """The same of the only stream in a reply of XREADGROUP."""
    assert isinstance(reply, list)
    assert [each[0] for each in reply] == [b"s"]
    return shown(reply[0][1])


def history(region: RegionProcess, consumer: str, *options: str) -> list[tuple[object, object]]:
    return in_streams(
        region.call("XREADGROUP", "GROUP", "g", consumer, *options, "STREAMS", "s", "0")
    )


def test_a_history_shows_both(region: RegionProcess) -> None:
    assert history(region, "ada") == ALL
    assert history(region, "ada", "COUNT", "2") == ALL[:3]
    assert history(region, "ada", "MAXCOUNT", "2") == ALL[:3]
    assert history(region, "ada", "MAXSIZE", "100000") == ALL
    assert region.call("XPENDING", "s", "g") == [3, b"90-1", b"110-1", [[b"ada", b"3"]]]


def test_xclaim_shows_both(region: RegionProcess) -> None:
    assert shown(region.call("XCLAIM", "s", "g", "bob", "0", "90-1", "100-1")) == ALL[:3]
    assert shown(region.call("XCLAIM", "s", "g", "bob", "0", "110-1")) == ALL[3:]
    assert region.call("XCLAIM", "s", "g", "ada", "0", "100-1", "JUSTID") == [b"100-1"]
    assert history(region, "ada") == BOTH


def test_xautoclaim_shows_both(region: RegionProcess) -> None:
    reply = region.call("XAUTOCLAIM", "s", "g", "bob", "0", "0", "COUNT", "2")
    assert isinstance(reply, list)
    assert reply[0] == b"110-1"
    assert shown(reply[1]) == ALL[:3]
    reply = region.call("XAUTOCLAIM", "s", "g", "bob", "0", "100", "JUSTID")
    assert reply == [b"0-0", [b"100-1", b"110-1"], []]


def test_xreadgroup_claims_both(region: RegionProcess) -> None:
    words = ("XREADGROUP", "GROUP", "g", "bob", "COUNT", "2", "CLAIM", "0", "STREAMS", "s", ">")
    assert in_streams(region.call(*words)) == ALL[:3]
    assert history(region, "bob") == ALL[:3]


def test_both_go_together(region: RegionProcess) -> None:
    assert region.call("XDEL", "s", "100-1") == 2
    assert history(region, "ada") == [ALL[0], (b"100-1", None), ALL[3]]
    assert shown(region.call("XCLAIM", "s", "g", "bob", "0", "100-1", "110-1")) == ALL[3:]
    assert region.call("XPENDING", "s", "g")[:3] == [2, b"90-1", b"110-1"]  # type: ignore[index]
