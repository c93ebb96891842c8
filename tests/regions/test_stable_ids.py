"""Stable IDs: up to them nothing can come any more, whatever the clocks and the links do."""

from __future__ import annotations

import errno
import random
from pathlib import Path

import pytest

from headrace.regions.exchange.heartbeats import forget, look_at_promises
from headrace.regions.knowledge.stability import FOLLOWED_MS
from support.faults import Rule
from support.faulty_mesh import FaultyMesh
from support.mesh import Mesh, RegionProcess, wait_until
from support.near_regions import START_MS, Link, NearRegion, linked, named, replayed, sync

ID_MAX = 2**64 - 1


def regions_at(folder: Path, *clocks_ms: int) -> list[NearRegion]:
    numbers = tuple(range(1, len(clocks_ms) + 1))
    found = []
    for number, ms in zip(numbers, clocks_ms, strict=True):
        others = tuple(other for other in numbers if other != number)
        region = NearRegion(number, folder, others=others)
        region.clock.ms = START_MS + ms
        found.append(region)
    return found


def as_id(text: object) -> tuple[int, int]:
    assert isinstance(text, bytes)
    ms, seq = text.split(b"-")
    return int(ms), int(seq)


def stable_id(region: NearRegion, key: str) -> object:
    reply = region.call("XINFO", "STREAM", key)
    assert isinstance(reply, list)
    return dict(zip(reply[::2], reply[1::2], strict=True))[b"stable-id"]


def added(region: NearRegion) -> bytes:
    found = region.call("XADD s * f v")
    assert isinstance(found, bytes)
    return found


def ids_of(reply: object) -> list[bytes]:
    if reply is None:
        return []
    assert isinstance(reply, list), reply
    return [entry[0] for entry in reply[0][1]]


def test_what_another_region_may_add_is_not_stable(tmp_path: Path) -> None:
    one, two = regions_at(tmp_path, 0, 0)
    links = linked([one, two])
    assert one.call("XADD s * f 1")
    assert stable_id(one, "s") == b"0-0"  # the other has promised nothing
    sync(links)
    before = as_id(stable_id(one, "s"))
    one.clock.ms += 100
    ids = [added(one) for _ in range(9)]
    assert as_id(stable_id(one, "s")) == before
    assert len(ids_of(one.call("XREAD STABLE STREAMS s 0"))) == 0
    one.clock.ms += 1
    two.clock.ms += 200
    late = two.call("XADD s * f 2")
    sync(links)
    assert as_id(stable_id(one, "s")) >= as_id(ids[-1])
    read = ids_of(one.call("XREAD", "STABLE", "STREAMS", "s", "0"))
    assert read[1:] == ids
    assert late not in read  # it is of this very millisecond, which is not over
    two.clock.ms += 1
    one.clock.ms += 200
    sync(links)
    assert ids_of(one.call("XREAD", "STABLE", "STREAMS", "s", ids[-1])) == [late]


def test_options_of_xread(tmp_path: Path) -> None:
    (one,) = regions_at(tmp_path, 0)
    ids = [one.call("XADD s * f v") for _ in range(3)]
    assert one.call("XREAD STABLE STREAMS s 0") is None  # the millisecond is not over
    one.clock.ms += 1
    assert ids_of(one.call("XREAD COUNT 2 STABLE STREAMS s 0")) == ids[:2]
    assert ids_of(one.call("XREAD stable COUNT 2 STREAMS s 0")) == ids[:2]
    assert ids_of(one.call("XREAD STABLE STREAMS s +")) == ids[2:]
    assert one.call("XREAD STABLE STREAMS s $") is None
    assert ids_of(one.call("XREAD STABLE STREAMS missing s 0 0")) == ids
    assert "The > ID" in str(one.call("XREAD STABLE STREAMS s >"))


def test_xreadgroup_knows_no_stable(tmp_path: Path) -> None:
    (one,) = regions_at(tmp_path, 0)
    one.call("XGROUP CREATE s g 0 MKSTREAM")
    assert str(one.call("XREADGROUP GROUP g c STABLE STREAMS s >")) == "ERR syntax error"


def test_a_reader_wakes_when_more_is_stable(tmp_path: Path) -> None:
    one, two = regions_at(tmp_path, 50, 0)
    links = linked([one, two])
    sync(links)
    reader = one.client()
    assert reader.call("XREAD", "BLOCK", "0", "STABLE", "STREAMS", "s", "0") is None
    assert reader.waits
    early = added(one)
    two.clock.ms += 20
    late = added(two)
    assert reader.waits
    sync(links)
    assert ids_of(reader.reply()) == [late]  # that millisecond of the other clock is not over
    assert reader.call("XREAD", "BLOCK", "0", "STABLE", "STREAMS", "s", late) is None
    assert reader.waits
    one.clock.ms += 1
    sync(links)
    assert ids_of(reader.reply()) == [early]
    assert not one.region.stable_readers


def pass_time(links: list[Link], ms: int) -> None:
    """Let time go by in all regions, while somebody wants to know what is stable."""
    for step in (ms, 100, 100):
        for region in {link.source for link in links}:
            region.call("XREAD STABLE STREAMS s 0")
            region.clock.ms += step
        sync(links)


@pytest.mark.parametrize("ahead_ms", [60_000, FOLLOWED_MS + 1000])
def test_a_clock_that_is_ahead_holds_nothing_back(tmp_path: Path, ahead_ms: int) -> None:
    """Unless it is ahead by so much that it is wrong: it pulls no IDs of others with it then."""
    one, two = regions_at(tmp_path, ahead_ms, 0)
    links = linked([one, two])
    entry = added(one)
    pass_time(links, 100)
    is_followed = ahead_ms <= FOLLOWED_MS
    for region in (one, two):
        assert ids_of(region.call("XREAD STABLE STREAMS s 0")) == ([entry] if is_followed else [])
    other = two.call("XADD other * f v")
    assert isinstance(other, bytes)
    assert (as_id(other) > as_id(entry)) == is_followed
    pass_time(links, ahead_ms)
    for region in (one, two):
        assert ids_of(region.call("XREAD STABLE STREAMS s 0")) == [entry]


def test_the_end_of_what_was_there_is_the_stable_id(tmp_path: Path) -> None:
    one, two = regions_at(tmp_path, 0, 0)
    links = linked([one, two])
    one.call("XADD s * f v")
    reader = one.client()
    reader.call("XREAD", "BLOCK", "0", "STABLE", "STREAMS", "s", "$")  # not known yet: kept
    assert reader.waits
    sync(links)
    two.clock.ms += 10
    one.clock.ms += 20
    sync(links)
    assert reader.waits
    late = two.call("XADD s * f late")  # below what may be added here
    two.clock.ms += 20
    sync(links)
    assert ids_of(reader.reply()) == [late]


def test_a_stream_that_callers_number_has_no_stable_id(tmp_path: Path) -> None:
    one, two = regions_at(tmp_path, 0, 0)
    links = linked([one, two])
    reader = two.client()
    reader.call("XREAD", "BLOCK", "0", "STABLE", "STREAMS", "s", "0")
    one.call("XADD s 110 f v")
    sync(links)
    assert "no stable IDs" in str(reader.reply())
    for region in (one, two):
        assert stable_id(region, "s") is None
        assert "no stable IDs" in str(region.call("XREAD STABLE STREAMS s 0"))
    assert two.call("XADD s 115 f v") == b"115-2"
    assert one.call("XADD s * f v")
    assert one.call("XADD s 120 f v") is not None
    one.call("DEL s")
    one.call("XADD s * f v")
    sync(links)
    assert stable_id(one, "s") is None  # the other had added an entry that was not deleted


def test_an_id_below_what_was_promised_is_refused(tmp_path: Path) -> None:
    one, two = regions_at(tmp_path, 0, 0)
    links = linked([one, two])
    one.call("XADD s * f v")
    sync(links)
    assert two.call("XADD s * f v")
    sync(links)
    stable_id(one, "s")
    sync(links)
    for region in (one, two):
        assert "were promised" in str(region.call("XADD", "s", str(START_MS - 5), "f", "v"))
    two.server.config.aa_stable_ids = False
    assert two.call("XADD", "s", str(START_MS), "f", "v")
    two.clock.ms += 50
    sync(links)
    two.call("XTRIM s MAXLEN 0")
    assert two.call("XADD", "s", str(START_MS + 20), "f", "v")
    sync(links)
    assert stable_id(one, "s") is None


def test_a_promise_outlives_the_process(tmp_path: Path) -> None:
    one, two = regions_at(tmp_path, 0, 0)
    links = linked([one, two])
    two.call("XREAD STABLE STREAMS s 0")
    sync(links)
    promised = one.region.promise_ms
    assert promised == START_MS - 1
    twin = replayed(one, tmp_path)
    assert twin.region.promise_ms >= promised
    twin.clock.set_back(60_000)
    assert as_id(twin.call("XADD s * f v"))[0] > promised


def test_no_record_for_each_promise(tmp_path: Path) -> None:
    one, _ = regions_at(tmp_path, 0, 0)
    one.look_at_promises()
    assert not one.region.promise_ms  # nobody has asked
    one.call("XREAD STABLE STREAMS s 0")
    for _ in range(1000):
        one.clock.ms += 1
        one.look_at_promises()
    one.write()
    assert one.region.promise_ms == START_MS + 999
    assert one.paths[-1].read_bytes().count(b"PROMISE") == 1


def test_a_lost_tail_is_waited_for(tmp_path: Path) -> None:
    """What a region lost in a power cut may come back from one that had pulled it."""
    one, two, three = regions_at(tmp_path, 5000, 5000, 0)
    links = named(linked([one, two, three]))
    three.call("XADD s * f v")
    sync(list(links.values()))
    three.write()
    before = replayed(three, tmp_path, False)
    lost = three.call("XADD s * f lost")
    links[3, 2].post()
    three = before
    three.region.begin_epoch(1, 1, b"n")
    three.open_file()
    three.clock.ms += 9000
    all_links = linked([one, two, three])
    later = named([link for link in all_links if three in (link.source, link.target)])
    one.clock.ms += 5000
    two.clock.ms += 5000
    for link in (later[3, 1], links[2, 1]):
        link.post()
        link.deliver()
    assert as_id(stable_id(one, "s")) < as_id(lost)
    links[3, 2].deliver()
    for _ in range(3):
        for link in (links[2, 1], links[1, 2], *later.values()):
            link.post()
            while link.deliver():
                told = as_id(stable_id(one, "s"))
                there = ids_of([[b"s", one.call("XRANGE s - +")]])
                assert told < as_id(lost) or lost in there
    assert told >= as_id(lost)


def behind_in_three(folder: Path) -> tuple[list[NearRegion], dict[tuple[int, int], Link], bytes]:
    """An entry of region 3 is on its way to region 1, below what 1 and 2 have promised."""
    ahead_ms = FOLLOWED_MS + 5000  # else region 3 would promise, and add, more
    one, two, three = regions_at(folder, ahead_ms, ahead_ms, 0)
    links = named(linked([one, two, three]))
    three.call("XADD s * f v")
    for _ in range(3):
        sync(list(links.values()))
        stable_id(two, "s")
    late = added(three)
    links[3, 1].post()
    return [one, two, three], links, late


def test_a_life_that_nobody_knows_promises_nothing(tmp_path: Path) -> None:
    """Region 3 has lost its disk, and an entry that only region 1 has."""
    (one, two, _), links, late = behind_in_three(tmp_path)
    links[3, 1].deliver()
    three = NearRegion(3, tmp_path, others=(1, 2))
    three.clock.ms = one.clock.ms + 100
    three.region.begin_epoch(7, 0, b"n")
    three.region.refusal = b"-AASYNCING all is still to come"
    later = named(
        [link for link in linked([one, two, three]) if three in (link.source, link.target)]
    )
    for _ in range(2):
        for pair in ((2, 3), (3, 2)):
            later[pair].relays = False
            later[pair].post()
            later[pair].deliver()
        assert as_id(stable_id(two, "s")) < as_id(late)
    three.region.refusal = b""
    for pair in ((1, 3), (2, 3)):  # it hears of its earlier life, and may write
        later[pair].post()
        later[pair].deliver()
    told = (0, 0)
    for _ in range(4):
        for link in (later[3, 2], links[1, 2], links[2, 1], *later.values()):
            link.post()
            link.deliver()
            told = as_id(stable_id(two, "s"))
            assert told < as_id(late) or late in ids_of([[b"s", two.call("XRANGE s - +")]])
            for region in (one, two, three):
                region.clock.ms += 10
    assert told >= as_id(late)


def test_what_a_region_that_was_forgotten_wrote_is_waited_for(tmp_path: Path) -> None:
    (one, two, three), links, late = behind_in_three(tmp_path)
    forget(two.server, 3)
    two.server.changes.end_command()
    assert as_id(stable_id(two, "s")) < as_id(late)  # it may have come to region 1
    links[3, 1].deliver()
    links[2, 1].post()
    links[2, 1].deliver()
    assert three.region.id not in one.region.members()
    links[1, 2].post()
    links[1, 2].deliver()
    assert late in ids_of([[b"s", two.call("XRANGE s - +")]])
    assert as_id(stable_id(two, "s")) >= as_id(late)


def test_less_is_here_than_there_was(tmp_path: Path) -> None:
    """A copy that replaces what is here may lack entries that were here before."""
    one, two = regions_at(tmp_path, 0, 0)
    links = linked([one, two])
    two.call("XADD s * f v")
    sync(links)
    stable_id(one, "s")
    sync(links)
    assert as_id(stable_id(one, "s")) != (0, 0)
    one.region.forget_promises()
    assert as_id(stable_id(one, "s")) == (0, 0)
    sync(links)
    assert as_id(stable_id(one, "s")) != (0, 0)


class Observer:
    """Remembers what a region was told to be stable, and sees whether anything comes below."""

    def __init__(self, region: NearRegion, key: str) -> None:
        self.region = region
        self.key = key
        self.told = (0, 0)
        self.below: list[bytes] = []
        self.read: list[bytes] = []

    def ids(self) -> list[bytes]:
        return ids_of([[b"", self.region.call("XRANGE", self.key, "-", "+")]])

    def look(self) -> None:
        below = [each for each in self.ids() if as_id(each) <= self.told]
        assert below == self.below
        if self.region.call("EXISTS", self.key):
            told = stable_id(self.region, self.key)
            if told is not None:
                self.told = max(self.told, as_id(told))
        self.below = [each for each in self.ids() if as_id(each) <= self.told]
        after = self.read[-1] if self.read else b"0"
        reply = self.region.call("XREAD", "COUNT", "3", "STABLE", "STREAMS", self.key, after)
        self.read += ids_of(reply)


def test_nothing_is_promised_that_a_power_cut_could_take_back(tmp_path: Path) -> None:
    (one,) = regions_at(tmp_path, 0)
    one.call("XADD", "s", "*", "f", "v")
    one.clock.ms += 1000
    one.call("XINFO", "STREAM", "s")
    on_disk = one.region.synced_promise_ms
    one.clock.ms += 5000
    look_at_promises(one.dispatcher)
    assert one.region.promise_ms > on_disk, "that stands in the file, which is not synced"
    assert one.region.tells_promise_ms() == on_disk == one.region.stable_ms()
    one.keep_promises()
    assert one.region.tells_promise_ms() == one.region.promise_ms == one.region.stable_ms()


@pytest.mark.parametrize("seed", range(20))
def test_nothing_comes_at_or_below_what_was_stable(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    count = dice.choice((2, 2, 3))
    skews = [dice.choice((0, 3, -50, 4000, -100_000)) for _ in range(count)]
    regions = regions_at(tmp_path, *skews)
    links = linked(regions)
    observers = [Observer(region, key) for region in regions for key in ("s", "t")]
    for _ in range(250):
        region = dice.choice(regions)
        step = dice.random()
        key = dice.choice(("s", "t"))
        if step < 0.35:
            region.call("XADD", key, "*", "f", "v")
        elif step < 0.42:
            low = region.clock.ms + dice.choice((-1000, -2, -1, 0, 1, 30))
            if region.call("EXISTS", key):
                region.call("XADD", key, str(low), "f", "v")
        elif step < 0.60:
            region.clock.ms += dice.choice((0, 1, 1, 7, 300))
        elif step < 0.62:
            region.clock.set_back(dice.choice((1, 40, 5000)))
        elif step < 0.63:
            where = regions.index(region)
            twin = replayed(region, tmp_path)
            regions[where] = twin
            for link in links:
                link.replace(region, twin)
            for observer in observers:
                if observer.region is region:
                    observer.region = twin
            region = twin
        elif step < 0.80:
            dice.choice(links).post()
        else:
            link = dice.choice(links)
            link.deliver()
            region = link.target
        for observer in observers:
            if observer.region is region:
                observer.look()
    for region in regions:
        region.clock.ms = START_MS + 200_000
    for _ in range(4):
        for observer in observers:
            observer.look()
        for region in regions:
            region.clock.ms += 1000
        sync(links)
    for observer in observers:
        for _ in range(len(observer.ids())):
            observer.look()
        assert observer.read == observer.ids()


def test_regions_that_are_processes(two_regions: Mesh) -> None:
    """A blocked reader is given what has become stable; a promise outlives the process."""
    one, two = two_regions[1], two_regions[2]
    with one.client() as reader:
        reader.send_command("XREAD", "BLOCK", 0, "STABLE", "STREAMS", "s", 0)
        early = one.xadd("s")
        assert ids_of(reader.read_parsed()) == [early]
        two_regions.partition({1}, {2})
        late = two.xadd("s")
        last = one.xadd("s")
        reader.send_command("XREAD", "BLOCK", 0, "STABLE", "STREAMS", "s", early)
        assert one.call("XREAD", "BLOCK", 300, "STABLE", "STREAMS", "s", early) is None
        two_regions.heal()
        read = ids_of(reader.read_parsed())
        while len(read) < 2:
            reader.send_command("XREAD", "BLOCK", 0, "STABLE", "STREAMS", "s", read[-1])
            read += ids_of(reader.read_parsed())
        assert read == sorted(
            (late, last), key=as_id
        )  # in one millisecond the lower region is first
    told = two.info("activeactive")["aa_promise_ms"]
    assert int(told) > 0
    two.restart(crash=True)
    two.wait_until_writable()
    assert int(two.info("activeactive")["aa_promise_ms"]) >= int(told)


def shown_stable_id(region: RegionProcess) -> tuple[int, int]:
    reply = region.call("XINFO", "STREAM", "s")
    assert isinstance(reply, list)
    return as_id(dict(zip(reply[::2], reply[1::2], strict=True))[b"stable-id"])


def test_what_waits_for_the_disk_is_not_passed() -> None:
    """Entries wait here while the disk is full, and the region that has sent them ends."""
    with FaultyMesh(2, "--aa-beat-ms", "50") as mesh:
        one, two = mesh[1], mesh[2]
        first = one.xadd("s")
        wait_until(lambda: two.ids("s") == [first] and shown_stable_id(two) >= as_id(first), two)
        mesh.faulty(2).play(Rule("write", ".incr.aof", error=errno.ENOSPC))
        wait_until(lambda: is_refused(two), two)
        late = one.xadd("s")

        def has_promised_more() -> bool:
            shown_stable_id(one)  # so that it promises and beats
            return int(one.info("activeactive")["aa_promise_ms"]) > as_id(late)[0] + 200

        wait_until(has_promised_more, one)
        assert two.info("activeactive")["aa_waiting_bytes"] != "0"
        one.kill()
        wait_until(lambda: two.state_of(1) != b"up", two)
        assert two.ids("s") == [first]
        assert shown_stable_id(two) < as_id(late)
        mesh.faulty(2).play()
        wait_until(lambda: two.ids("s") == [first, late], two)
        one.start_again()
        wait_until(lambda: shown_stable_id(two) >= as_id(late), two)


def is_refused(region: RegionProcess) -> bool:
    with region.client() as client:
        return client.call("XADD", "t", "*", "f", "v").startswith(b"-MISCONF")
