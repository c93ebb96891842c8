"""Policies in regions: they act where a group is read, and what they wrote is everywhere."""

from __future__ import annotations

from typing import Any

import pytest

from support.client import Argument, WireError
from support.mesh import Mesh, RegionProcess, wait_until


def read(region: RegionProcess, consumer: str = "c", *options: Argument) -> list[bytes]:
    reply = region.call("XREADGROUP", "GROUP", "g", consumer, *options, "STREAMS", "s", ">")
    assert reply is None or isinstance(reply, list), reply
    return [] if reply is None else [entry[0] for entry in reply[0][1]]


def policy(region: RegionProcess, *words: Argument) -> None:
    assert region.call("XPOLICY", "SET", "s", "GROUP", "g", *words) == b"OK"


def add(region: RegionProcess, *fields: Argument) -> bytes:
    return region.xadd("s", "*", *fields)


def figures(region: RegionProcess) -> dict[str, object]:
    rows = region.call("XINFO", "GROUPS", "s")
    assert isinstance(rows, list)
    return {name.decode(): value for name, value in zip(rows[0][::2], rows[0][1::2], strict=True)}


def begin(mesh: Mesh) -> tuple[RegionProcess, RegionProcess]:
    one, two = mesh[1], mesh[2]
    assert one.call("XGROUP", "CREATE", "s", "g", 0, "MKSTREAM") == b"OK"
    mesh.sync()
    return one, two


@pytest.mark.parametrize("way", ["records", "rewritten"])
def test_what_is_set_aside_survives(two_regions: Mesh, way: str) -> None:
    one, _ = begin(two_regions)
    policy(one, "order-key", "k", "deliver-at-field", "at", "retry-delay", "1ms", "ack-wait", "1h")
    places = [add(one, "k", "a"), add(one, "k", "a"), add(one, "at", 4_000_000_000_000, "k", "b")]
    assert read(one) == places[:1]
    shown = {"pending": 1, "held": 1, "delayed": 1, "lag": 2}
    assert {name: figures(one)[name] for name in shown} == shown
    if way == "rewritten":
        one.call("BGREWRITEAOF")
        wait_until(lambda: one.info("persistence")["aof_rewrite_in_progress"] == "0")
    one.kill()
    one.start_again()
    one.wait_until_writable()
    assert {name: figures(one)[name] for name in shown} == shown
    assert read(one) == []
    assert one.call("XACK", "s", "g", places[0]) == 1
    assert read(one) == places[1:2]


def test_the_dead_are_everywhere_and_come_back_where_they_are_read(two_regions: Mesh) -> None:
    one, two = begin(two_regions)
    policy(one, "delivery-limit", 1, "dead-letter-key", "dead")
    assert one.call("AA", "MOVE", "s", "g", 1) == b"OK"
    place = add(two, "f", "v")
    two_regions.sync()
    assert read(one) == [place]
    assert one.call("XNACK", "s", "g", "FAIL", "IDS", 1, place) == 1
    two_regions.sync()
    for region in (one, two):
        letters: Any = region.call("XRANGE", "dead", "-", "+")
        assert letters[0][1][:4] == [b"f", b"v", b"__dlq.errors.topic", b"s"]
        assert letters[0][1][4:6] == [b"__dlq.errors.offset", place]
        assert len(letters) == 1
    assert two.call("XREDRIVE", "dead") == [[letters[0][0], b"skipped", None]]
    assert one.call("XREDRIVE", "dead") == [[letters[0][0], b"requeued", place]]
    two_regions.sync()
    assert two.call("XLEN", "dead") == 0
    assert read(one) == [place]
    assert one.call("XACK", "s", "g", place) == 1
    assert one.ids("s") == two.ids("s") == [place]


def test_what_is_put_back_outlives_a_move(two_regions: Mesh) -> None:
    one, two = begin(two_regions)
    policy(one, "delivery-limit", 1, "dead-letter-key", "dead")
    place = add(one, "f", "v")
    assert read(one) == [place]
    assert one.call("XNACK", "s", "g", "FAIL", "IDS", 1, place) == 1
    two_regions.sync()
    assert figures(two)["lag"] == 0
    reply: Any = one.call("XREDRIVE", "dead")
    assert reply[0][1] == b"requeued"
    assert one.call("AA", "MOVE", "s", "g", 2) == b"OK"
    two_regions.sync()
    assert read(two) == [place]
    assert figures(one)["pending"] == 0


def test_a_move_carries_what_waits(two_regions: Mesh) -> None:
    one, two = begin(two_regions)
    for region in (one, two):
        policy(region, "order-key", "k", "deliver-at-field", "at", "retry-delay", "1h")
    places = [
        add(one, "k", "a"),
        add(one, "k", "a"),
        add(one, "k", "b"),
        add(one, "at", 4 * 10**12),
    ]
    assert read(one) == [places[0], places[2]]
    assert one.call("XNACK", "s", "g", "FAIL", "IDS", 1, places[2]) == 1
    shown = {"pending": 2, "held": 1, "delayed": 1, "backing-off": 1, "lag": 2}
    assert {name: figures(one)[name] for name in shown} == shown
    assert one.call("AA", "MOVE", "s", "g", 2) == b"OK"
    two_regions.sync()
    assert {name: figures(two)[name] for name in shown} == shown
    with pytest.raises(WireError, match="AAMOVED"):
        one.call("XNACKIN", "s", "g", 1, "IDS", 1, places[0])
    assert read(two) == []
    assert two.call("XACK", "s", "g", places[0]) == 1
    assert read(two) == places[1:2]
    assert read(two) == []


def test_time_acts_only_where_a_group_is_read(two_regions: Mesh) -> None:
    one, two = begin(two_regions)
    for region in (one, two):
        policy(region, "ack-wait", "50ms", "delivery-limit", 1, "dead-letter-key", "dead")
    assert one.call("AA", "MOVE", "s", "g", 1) == b"OK"
    places = [add(one, "f", number) for number in range(3)]
    assert read(one) == places
    wait_until(lambda: one.call("XLEN", "dead") == 3)
    two_regions.sync()
    assert two.call("XLEN", "dead") == 3
    assert figures(two)["lag"] == 0


def test_entries_of_several_regions_keep_the_order_of_a_key(two_regions: Mesh) -> None:
    one, two = begin(two_regions)
    policy(one, "order-key", "k")
    two_regions.pause()
    theirs = [add(two, "k", "a"), add(two, "k", "b")]
    ours = [add(one, "k", "a")]
    assert read(one) == ours
    two_regions.sync()
    assert read(one) == theirs[1:]  # later, with a lower ID
    assert one.call("XACK", "s", "g", ours[0]) == 1
    assert read(one) == theirs[:1]


@pytest.mark.parametrize(
    ("words", "stays"),
    [
        (("max-len", 3), 3),
        (("max-len", 3, "overflow", "reject"), 3),
        (("max-age", "1ms"), 0),
        (("max-bytes", 5000), None),
    ],
)
def test_bounds_are_kept_by_all(
    two_regions: Mesh, words: tuple[Argument, ...], stays: int | None
) -> None:
    one, two = begin(two_regions)
    assert one.call("XPOLICY", "SET", "s", *words) == b"OK"
    with one.client() as client:
        replies = [client.call_parsed("XADD", "s", "*", "f", "v" * 20) for _ in range(1000)]
    refused = [reply for reply in replies if isinstance(reply, WireError)]
    assert len(refused) == (997 if "reject" in words else 0)
    if stays is None:
        wait_until(lambda: 0 < len(one.ids("s")) < 500)
    else:
        wait_until(lambda: len(one.ids("s")) == stays)
    two_regions.sync()
    assert one.ids("s") == two.ids("s")


def test_what_all_groups_have_acknowledged_goes_everywhere(two_regions: Mesh) -> None:
    one, two = begin(two_regions)
    for region in (one, two):
        assert region.call("XPOLICY", "SET", "s", "retention", "acked") == b"OK"
    assert one.call("XGROUP", "CREATE", "s", "h", 0) == b"OK"
    places = [add(one, "f", number) for number in range(3)]
    two_regions.sync()
    assert read(one) == places
    assert one.call("XACK", "s", "g", *places) == 3
    reply = two.call("XREADGROUP", "GROUP", "h", "c", "COUNT", 2, "STREAMS", "s", ">")
    assert isinstance(reply, list)
    assert two.call("XACK", "s", "h", *places[:2]) == 2
    wait_until(lambda: one.ids("s") == two.ids("s") == places[2:])


def test_a_group_that_another_region_may_read_is_not_destroyed(two_regions: Mesh) -> None:
    one, _ = begin(two_regions)
    line = r"ERR inactive-threshold is not there in a region \(aa-region-id\): another region may"
    with pytest.raises(WireError, match=line):
        one.call("XPOLICY", "SET", "s", "GROUP", "g", "inactive-threshold", "1s")


def test_groups_are_created_where_they_are_read(two_regions: Mesh) -> None:
    one, two = two_regions[1], two_regions[2]
    assert one.call("CONFIG", "SET", "stream-policy", "s auto-create 0") == b"OK"
    assert read(one) == []
    place = add(two, "f", "v")
    two_regions.sync()
    assert read(one) == [place]
    assert read(two) == [place]  # where nothing is acknowledged yet, it is read, too
