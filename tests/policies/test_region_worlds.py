"""Random lives of a group with policies that moves between two regions, as one process.

Whatever happens, an entry is acknowledged or has one dead letter at the end. Nothing goes out
before its time, while another entry with its order key is out, or after its end.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, Final

import pytest

from headrace.server.cron import act_on_policies
from support.near_regions import NearRegion, linked, replayed, sync

STEPS: Final = 250
PARTS: Final[tuple[dict[str, str], ...]] = (
    {"order-key": "k"},
    {"retry-delay": "1s,3s"},
    {"ack-wait": "4s"},
    {"ack-wait": "2s", "retry-delay": "500ms", "retry-delay-type": "all"},
    {"delivery-limit": "2", "dead-letter-key": "d"},
    {"deliver-delay": "2s"},
    {"deliver-at-field": "at"},
    {"max-pending": "4"},
)


class World:
    """Two regions, and what a client that sees both knows of their group."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random: Final = random.Random(seed)
        self.folder: Final = folder
        self.regions = [NearRegion(1, folder, others=(2,)), NearRegion(2, folder, others=(1,))]
        self.links: Final = linked(self.regions)
        self.home = 0
        parts = self.random.sample(PARTS, self.random.randint(1, 4))
        self.policy: Final = {name: value for part in parts for name, value in part.items()}
        self.entries: Final[dict[bytes, dict[str, str]]] = {}
        self.given: Final[dict[bytes, int]] = {}
        self.acked: Final[set[bytes]] = set()
        self.not_before: Final[dict[bytes, int]] = {}
        self.redriven: Final[dict[bytes, int]] = {}
        words = [word for pair in self.policy.items() for word in pair]
        assert self.regions[0].call("XGROUP CREATE s g 0 MKSTREAM") == b"OK"
        self.sync()
        assert self.regions[0].call("AA MOVE s g 1") == b"OK"
        self.sync()
        for region in self.regions:
            assert region.call("XPOLICY", "SET", "s", "GROUP", "g", *words) == b"OK"

    @property
    def reader(self) -> NearRegion:
        return self.regions[self.home]

    @property
    def now_ms(self) -> int:
        return self.reader.clock.ms

    def sync(self) -> None:
        sync(self.links)

    def letters(self, region: NearRegion) -> list[bytes]:
        """Return the IDs of the dead, and check that what is said of them is true."""
        rows: Any = region.call("XRANGE d - +")
        found: list[bytes] = []
        for _, words in rows:
            fields = dict(zip(words[::2], words[1::2], strict=True))
            found.append(fields[b"__dlq.errors.offset"])
            assert fields[b"k"].decode() == self.entries[found[-1]]["k"]
        return found

    def over(self) -> set[bytes]:
        """Return what has come to its end: acknowledged, or dead and not put back."""
        return self.acked.union(self.letters(self.reader))

    # Steps

    def add(self) -> None:
        fields = {"k": self.random.choice("abc")}
        if self.random.random() < 0.3:
            fields["at"] = str(self.now_ms + self.random.randint(-100, 5000))
        words = [word for pair in fields.items() for word in pair]
        place = self.random.choice(self.regions).call("XADD", "s", "*", *words)
        assert isinstance(place, bytes)
        self.entries[place] = fields
        due_ms = 0
        if "deliver-delay" in self.policy:
            due_ms = int(place.split(b"-")[0]) + 2000
        if "deliver-at-field" in self.policy and "at" in fields:
            due_ms = int(fields["at"])
        self.not_before[place] = due_ms

    def read(self, count: int = 3) -> None:
        over = self.over()
        held = self.held()
        consumer = self.random.choice("xyz")
        reply: Any = self.reader.call(f"XREADGROUP GROUP g {consumer} COUNT {count} STREAMS s >")
        over |= set(self.letters(self.reader))
        for place, _ in [] if reply is None else reply[0][1]:
            assert place not in over, place
            assert self.not_before[place] <= self.now_ms, (place, self.not_before[place])
            if "order-key" in self.policy:
                value = self.entries[place]["k"]
                same = [each for each in self.given if self.entries[each]["k"] == value]
                assert [each for each in same if each not in over and each != place] == []
            self.given[place] = self.given.get(place, 0) + 1
        if "max-pending" in self.policy:
            assert self.held() <= max(4, held)

    def held(self) -> int:
        """Return how many entries consumers hold."""
        reply: Any = self.reader.call("XPENDING s g")
        return sum(int(row[1]) for row in reply[3] or [])

    def one_given(self) -> bytes | None:
        rows: Any = self.reader.call("XPENDING s g - + 1000")
        places = [row[0] for row in rows if row[1]]
        return self.random.choice(places) if places else None

    def ack(self) -> None:
        place = self.one_given()
        if place is not None:
            assert self.reader.call("XACK", "s", "g", place) == 1
            self.acked.add(place)

    def fail(self) -> None:
        place = self.one_given()
        if place is not None:
            assert self.reader.call("XNACK", "s", "g", "FAIL", "IDS", 1, place) == 1
            delays = {"1s,3s": 1000, "500ms": 500}
            delay_ms = delays.get(self.policy.get("retry-delay", ""), 0)
            self.not_before[place] = self.now_ms + delay_ms

    def claim(self) -> None:
        over = self.over()
        reply: Any = self.reader.call("XAUTOCLAIM s g y 1500 0 COUNT 2")
        for place, _ in reply[1]:
            assert place not in over, place
            self.given[place] = self.given.get(place, 0) + 1

    def move_on(self) -> None:
        ms = self.random.choice((1, 300, 1000, 4000))
        for region in self.regions:
            region.clock.ms += ms
            region.server.clock.refresh()
            act_on_policies(region.dispatcher)

    def change_home(self) -> None:
        self.sync()
        to = self.random.randint(1, 2)
        assert self.reader.call(f"AA MOVE s g {to}") == b"OK"
        self.home = to - 1
        self.sync()

    def start_again(self) -> None:
        number = self.random.randint(0, 1)
        before = self.regions[number]
        twin = self.regions[number] = replayed(before, self.folder)
        for link in self.links:
            link.replace(before, twin)

    def redrive(self) -> None:
        self.sync()
        dead = self.letters(self.reader)
        rows: Any = self.reader.call("XREDRIVE d COUNT 1")
        for _, what, place in rows:
            assert what == b"requeued"
            assert place == dead[0]
            self.given.pop(place)
            self.not_before[place] = 0

    def run(self) -> None:
        steps = [*[self.add] * 5, *[self.read] * 5, *[self.ack] * 3, self.fail, self.claim]
        steps += [self.move_on, self.move_on, self.sync, self.change_home, self.start_again]
        steps.append(self.redrive)
        for _ in range(STEPS):
            self.random.choice(steps)()
        self.sync()
        for _ in range(3 * len(self.entries) + 20):
            self.move_on()
            self.read(100)
            self.claim()
            while (place := self.one_given()) is not None:
                assert self.reader.call("XACK", "s", "g", place) == 1
                self.acked.add(place)
        self.sync()
        dead = self.letters(self.reader)
        lost = self.entries.keys() - self.acked - set(dead)
        assert not lost
        assert sorted([*self.acked, *dead]) == sorted(self.entries)
        assert dead == self.letters(self.regions[1 - self.home])
        assert self.reader.call("XPENDING s g - + 10") == []


@pytest.mark.parametrize("seed", range(12))
def test_nothing_is_lost_and_nothing_goes_out_too_early(tmp_path: Path, seed: int) -> None:
    World(tmp_path, seed).run()
