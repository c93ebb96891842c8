"""Policies in regions of one process, where each record travels when a test says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.regions.exchange.effects import refuse_writes
from headrace.server.cron import act_on_policies
from support.near_regions import NearRegion, linked, replayed, sync

DEATH = ("delivery-limit", 1, "dead-letter-key", "dead")


class Regions:
    """Two regions or three, with a group ``g`` that reads ``s``; it is pinned to ``home``."""

    def __init__(
        self, folder: Path, count: int = 2, mode: bytes = b"strict", home: int = 1
    ) -> None:
        numbers = range(1, count + 1)
        self.folder = folder
        self.all = {
            number: NearRegion(number, folder, mode, tuple(n for n in numbers if n != number))
            for number in numbers
        }
        self.links = linked(list(self.all.values()))
        assert self[1].call("XGROUP CREATE s g 0 MKSTREAM") == b"OK"
        self.sync()
        if home:
            assert self[home].call(f"AA MOVE s g {home}") == b"OK"
            self.sync()

    def __getitem__(self, number: int) -> NearRegion:
        return self.all[number]

    def sync(self) -> None:
        sync(self.links)

    def policy(self, *words: str | int) -> None:
        for region in self.all.values():
            assert region.call("XPOLICY", "SET", "s", "GROUP", "g", *words) == b"OK"

    def pass_time(self, ms: int) -> None:
        for region in self.all.values():
            region.clock.ms += ms
            region.server.clock.refresh()
            act_on_policies(region.dispatcher)

    def start_again(self, number: int) -> NearRegion:
        before = self.all[number]
        twin = self.all[number] = replayed(before, self.folder)
        for link in self.links:
            link.replace(before, twin)
        return twin


def read(region: NearRegion, *options: str) -> list[bytes]:
    words = ["XREADGROUP", "GROUP", "g", "c", *options, "STREAMS", "s", ">"]
    reply: Any = region.call(*words)
    return [] if reply is None else [entry[0] for entry in reply[0][1]]


def add(region: NearRegion, *fields: str) -> bytes:
    place = region.call("XADD", "s", "*", *(fields or ("f", "v")))
    assert isinstance(place, bytes)
    return place


def fail(region: NearRegion, place: bytes) -> None:
    assert region.call("XNACK", "s", "g", "FAIL", "IDS", 1, place) == 1


def test_a_move_before_anything_was_looked_at_since_a_start(tmp_path: Path) -> None:
    regions = Regions(tmp_path)
    regions.policy("order-key", "k")
    places = [add(regions[1], "k", "a") for _ in range(3)]
    assert read(regions[1]) == places[:1]
    one = regions.start_again(1)
    assert one.call("AA MOVE s g 2") == b"OK"
    regions.sync()
    assert read(regions[2]) == []
    assert regions[2].call("XACK", "s", "g", places[0]) == 1
    assert read(regions[2]) == places[1:2]


def test_nothing_is_written_while_a_region_must_not(tmp_path: Path) -> None:
    regions = Regions(tmp_path)
    regions.policy(*DEATH, "ack-wait", "1s")
    one = regions[1]
    place = add(one)
    assert read(one) == [place]
    known = one.region.known()
    refuse_writes(one.server, b"AASYNCING")
    regions.pass_time(5000)
    assert one.region.known() == known
    refuse_writes(one.server, b"")
    regions.pass_time(1000)
    assert one.call("XLEN dead") == 1


def test_what_is_put_back_stays_when_another_lane_is_acknowledged(tmp_path: Path) -> None:
    regions = Regions(tmp_path, home=0)
    regions.policy(*DEATH)
    one, two = regions[1], regions[2]
    places = []
    for region in (one, two, one):
        regions.pass_time(5)
        places.append(add(region))
    regions.sync()
    assert read(one) == places
    fail(one, places[1])
    assert one.call("XACK", "s", "g", places[0]) == 1
    regions.sync()
    reply: Any = one.call("XREDRIVE dead")
    assert reply[0][1:] == [b"requeued", places[1]]
    regions.sync()
    assert read(two) == places[2:]
    assert two.call("XACK", "s", "g", places[2]) == 1
    regions.sync()
    assert read(one) == places[1:2]


def test_a_letter_stays_until_its_end_is_known(tmp_path: Path) -> None:
    """The acknowledgement of what died is held back by an older entry, and would end it here."""
    regions = Regions(tmp_path, home=0)
    regions.policy(*DEATH)
    one, two = regions[1], regions[2]
    places = [add(one), add(one)]
    regions.sync()
    assert read(one) == places
    fail(one, places[1])
    regions.sync()
    reply: Any = two.call("XREDRIVE dead")
    assert [row[1] for row in reply] == [b"skipped"]
    assert one.call("XACK", "s", "g", places[0]) == 1
    regions.sync()
    reply = two.call("XREDRIVE dead")
    assert [row[1] for row in reply] == [b"requeued"]
    assert read(two) == places[1:]  # although nothing was read there before


def test_what_needs_no_acknowledgement_is_published(tmp_path: Path) -> None:
    regions = Regions(tmp_path)
    regions.policy("deliver-delay", "2s")
    one, two = regions[1], regions[2]
    places = [add(one) for _ in range(3)]
    regions.sync()
    assert read(one, "NOACK") == []
    regions.pass_time(3000)
    assert read(one, "NOACK") == places
    regions.sync()
    reply: Any = two.call("XINFO GROUPS s")
    row = dict(zip(reply[0][::2], reply[0][1::2], strict=True))
    assert row[b"lag"] == 0


def test_what_was_acknowledged_during_a_move_is_not_given_again(tmp_path: Path) -> None:
    regions = Regions(tmp_path, home=0)
    regions.policy("order-key", "k")
    one, two = regions[1], regions[2]
    places = [add(one, "k", "a") for _ in range(3)]
    regions.sync()
    assert read(one) == places[:1]
    assert two.call("AA MOVE s g 2") == b"OK"  # before what is held there comes
    for place in places:
        assert read(two) == [place]
        assert two.call("XACK", "s", "g", place) == 1
    regions.sync()
    assert read(two) == []


def test_order_is_kept_where_entries_come_after_the_move(tmp_path: Path) -> None:
    regions = Regions(tmp_path, count=3)
    regions.policy("order-key", "k")
    one, two, three = regions[1], regions[2], regions[3]
    first = add(three, "k", "a")
    sync([link for link in regions.links if two not in (link.source, link.target)])
    regions.pass_time(5)
    second = add(one, "k", "a")
    assert read(one) == [first]
    assert one.call("AA MOVE s g 2") == b"OK"
    sync([link for link in regions.links if three not in (link.source, link.target)])
    two.call("XINFO GROUPS s")
    regions.pass_time(10)
    regions.sync()
    assert read(two) == []
    assert two.call("XACK", "s", "g", first) == 1
    assert read(two) == [second]


def test_time_acts_after_a_move_although_nobody_reads(tmp_path: Path) -> None:
    regions = Regions(tmp_path)
    regions.policy(*DEATH, "ack-wait", "1s")
    place = add(regions[1])
    assert read(regions[1]) == [place]
    regions.pass_time(100)
    assert regions[1].call("AA MOVE s g 2") == b"OK"
    regions.sync()
    for _ in range(10):
        regions.pass_time(500)
    assert regions[2].call("XLEN dead") == 1


def test_what_another_region_deletes_holds_nothing_up(tmp_path: Path) -> None:
    regions = Regions(tmp_path)
    regions.policy("order-key", "k", "deliver-at-field", "at")
    places = [add(regions[1], "k", "a", "at", "4000000000000"), add(regions[1], "k", "a")]
    regions.sync()
    assert read(regions[1]) == []
    assert regions[2].call("XDEL", "s", places[0]) == 1
    regions.sync()
    assert read(regions[1]) == places[1:]


def test_entries_with_one_id_are_given_together_and_die_together(tmp_path: Path) -> None:
    regions = Regions(tmp_path, mode=b"liberal")
    regions.policy(*DEATH, "deliver-delay", "1s")
    one, two = regions[1], regions[2]
    assert one.call("XADD s 100-1 w one") == b"100-1"
    assert two.call("XADD s 100-1 w two") == b"100-1"
    regions.sync()
    assert read(one, "COUNT", "1") == [b"100-1", b"100-1"]
    fail(one, b"100-1")
    letters: Any = one.call("XRANGE dead - +")
    assert sorted(words[1] for _, words in letters) == [b"one", b"two"]


@pytest.mark.parametrize("overflow", ["reject", "trim"])
def test_a_stream_of_few_large_entries_is_bounded(tmp_path: Path, overflow: str) -> None:
    regions = Regions(tmp_path)
    one = regions[1]
    assert one.call("XPOLICY", "SET", "s", "max-bytes", "100kb", "overflow", overflow) == b"OK"
    for _ in range(20):
        place = one.call("XADD", "s", "*", "f", "v" * 20_000)
        assert isinstance(place, bytes), place
        assert read(one) == [place]
        assert one.call("XACK", "s", "g", place) == 1
    length = one.call("XLEN s")
    assert isinstance(length, int)
    assert 2 <= length <= 6
