"""What happens to the regions and their links in a round."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final

from support.client import WireError
from support.clock import Clock
from support.faults import Rule
from support.faulty_mesh import FaultyMesh
from support.mesh import RegionProcess
from support.region_faults.history import GROUP, LOG, Disaster, History, now_s

SKEWS_MS: Final = (0, 0, 40, -40, 700, -700, 5000, -5000)
ONE_SECOND_S: Final = 3.0  # what everysec may lose, on a machine that others keep busy


class Faults:
    """Plays faults; what was done is in ``told``.

    Args:
        policies: of ``appendfsync``, by region.
        copies: a folder for copies of the regions' folders.
        disasters: whether a region may lose what it has acknowledged: its disk, its newest files,
            or what was not synced.
        clocks: that the regions look at, if they can be set.
    """

    def __init__(
        self,
        mesh: FaultyMesh,
        history: History,
        chance: Random,
        policies: dict[int, str],
        copies: Path,
        disasters: bool,
        clocks: dict[int, Clock],
    ) -> None:
        self.told: list[str] = []
        self._mesh: Final = mesh
        self._history: Final = history
        self._chance: Final = chance
        self._policies: Final = policies
        self._copies: Final = copies
        self._clocks: Final = clocks
        self._twins: list[RegionProcess] = []
        self._kept_s: dict[int, float] = {}  # when a copy was made
        self._failing: dict[int, Disaster] = {}  # regions whose disk takes nothing
        self._may_end: set[int] = set()  # those whose disk did, so that they end by themselves
        kinds: list[tuple[Callable[[int], None], int]] = [
            (self._kill, 6),
            (self._shut_down, 1),
            (self._cut_link, 3),
            (self._cut_within_messages, 3),
            (self._break_off, 3),
            (self._silence, 2),
            (self._delay, 2),
            (self._partition, 3),
            (self._heal_links, 3),
            (self._rewrite, 4),
            (self._fail_disk, 2),
            (self._pause_peer, 2),
            (self._pause_a_little, 4),
            (self._move_group, 2),
            (self._start_twin, 1),
        ]
        if clocks:
            kinds.append((self._set_clock, 3))
        if disasters:
            kinds += [(self._cut_power, 3), (self._lose_disk, 1), (self._put_back, 1)]
            kinds += [(self._tear, 1), (self._forget, 1)]
        self._kinds: Final = kinds

    def play(self, seconds: float) -> None:
        """Let things happen for so long."""
        began_s = now_s()
        actions = [action for action, _ in self._kinds]
        weights = [weight for _, weight in self._kinds]
        while now_s() - began_s < seconds:
            time.sleep(self._chance.random() * 0.6)
            for number in sorted(self._mesh.regions):
                if not self._mesh[number].running and self._chance.random() < 0.5:
                    self._start(number)
            action = self._chance.choices(actions, weights)[0]
            action(self._chance.choice(sorted(self._mesh.regions)))

    def mend(self) -> None:
        """Heal all links, and start all that has ended."""
        self._mesh.heal()
        for proxy in self._mesh.proxies.values():
            proxy.delay(0)
        self.end_twins()
        for number in sorted(self._failing):
            self._mend_disk(number)
        for region in self._mesh.regions.values():
            with contextlib.suppress(OSError, ValueError, WireError):  # it is down, or starts
                region.call("AA", "RESUME", "ALL")
        for number in sorted(self._mesh.regions):
            if not self._mesh[number].running:
                self._start(number)

    def end_twins(self) -> None:
        """End the servers that are a region a second time."""
        for twin in self._twins:
            twin.discard()
        self._twins.clear()

    def start_ended(self, number: int) -> bool:
        """Start a region again that has ended because its disk failed; whether that is why."""
        if number not in self._may_end:
            return False
        self._may_end.discard(number)
        self._start(number)
        return True

    # Processes

    def _start(self, number: int) -> None:
        self._note(f"start {number}")
        self._mesh.faulty(number).spawn_again()

    def _kill(self, number: int) -> None:
        region = self._mesh.faulty(number)
        if not region.running:
            return
        self._note(f"kill -9 {number}")
        region.kill()
        if self._chance.random() < 0.5 and region.files.exists():
            region.keep(self._copies / str(number))
            self._kept_s[number] = now_s()

    def _shut_down(self, number: int) -> None:
        region = self._mesh.faulty(number)
        if region.running and number not in self._failing:  # else it refuses to
            self._note(f"shut down {number}")
            region.signal(signal.SIGTERM)
            assert region.wait() in (0, -signal.SIGTERM), region.log()  # it may just have begun

    def _start_twin(self, number: int) -> None:
        """Start a copy of a region beside it; no client knows of it."""
        region = self._mesh.faulty(number)
        region.kill()
        if not self._twins and region.files.exists():
            self._note(f"start a copy of {number} beside it")
            twin = self._mesh.twin(number)
            self._twins.append(twin)
            twin.spawn_again()

    def start_stopped(self, number: int) -> bool:
        """Start a region again that takes no writes since it has met its twin; whether it is one.

        An operator would have to do so, too.
        """
        facts = self._mesh[number].info("activeactive")
        if "AATWIN" not in facts["aa_not_writable_because"]:
            return False
        self._note(f"shut down {number}, which has met its twin")
        self._mesh[number].signal(signal.SIGTERM)
        self._mesh[number].wait()
        self._start(number)
        return True

    def _set_clock(self, number: int) -> None:
        skew_ms = self._chance.choice(SKEWS_MS)
        self._note(f"set the clock of {number} to {skew_ms} ms ahead")
        self._clocks[number].skew(skew_ms)

    def _cut_power(self, number: int) -> None:
        policy = self._policies[number]
        region = self._mesh.faulty(number)
        lost = region.cut_power(self._chance)
        self._note(f"cut the power of {number} ({policy}), {lost} bytes are gone")
        # Before the end, because what was acknowledged just before it may be older than that.
        since_s = {"always": 1e18, "everysec": now_s() - ONE_SECOND_S, "no": 0.0}[policy]
        self._history.disasters.append(Disaster("power", number, now_s(), since_s, policy))

    def _lose_disk(self, number: int) -> None:
        if self._others_are_whole(number):
            self._take_disk(number)

    def _take_disk(self, number: int) -> None:
        self._note(f"lose the disk of {number}")
        self._mesh.faulty(number).lose_disk()
        disaster = Disaster("disk", number, now_s(), 0.0, self._policies[number])
        self._history.disasters.append(disaster)

    def _put_back(self, number: int) -> None:
        kept_s = self._kept_s.get(number)
        if kept_s is not None and self._others_are_whole(number):
            self._note(f"put an older folder of {number} back")
            self._mesh.faulty(number).put_back(self._copies / str(number))
            disaster = Disaster("older", number, now_s(), kept_s, self._policies[number])
            self._history.disasters.append(disaster)

    def _tear(self, number: int) -> None:
        if self._others_are_whole(number):
            lost = self._mesh.faulty(number).tear(self._chance)
            self._note(f"put a copy of the folder of {number} back, of which {lost} bytes are gone")
            disaster = Disaster("older", number, now_s(), 0.0, self._policies[number])
            self._history.disasters.append(disaster)

    def _forget(self, number: int) -> None:
        """Lose a disk, and have the region forgotten: it comes back as a new one."""
        if not self._others_are_whole(number):
            return
        self._take_disk(number)
        other = self._chance.choice([each for each in self._mesh.regions if each != number])
        self._kept_s.pop(number, None)  # whoever was forgotten must not come back with that
        self._note(f"forget {number} in {other}")
        try:
            self._mesh[other].call("AA", "FORGET", number)
        except (OSError, ValueError, WireError):  # it takes no writes, or starts
            self._note("  refused")

    def _move_group(self, number: int) -> None:
        to = self._chance.choice(sorted(self._mesh.regions))
        force = ("FORCE",) if self._chance.random() < 0.3 else ()
        self._history.moves.append(now_s())
        with contextlib.suppress(OSError, ValueError, WireError):  # it is read elsewhere, or down
            self._mesh[number].call("AA", "MOVE", LOG, GROUP, to, *force)
            self._note(f"move the group to {to} in {number} {' '.join(force)}")
            self._history.moves.append(now_s())

    def _others_are_whole(self, number: int) -> bool:
        """One disaster at a time: two of them at once may cost what only these two had.

        A region that takes no writes is fetching what it has lost, or fails to keep what it has.
        """
        for other, region in self._mesh.regions.items():
            if other != number:
                try:
                    if other in self._failing or not region.running:
                        return False
                    if region.info("activeactive").get("aa_writable") != "1":
                        return False
                except (OSError, ValueError, WireError):  # it starts
                    return False
        return True

    def _fail_disk(self, number: int) -> None:
        """Its disk takes nothing; what was acknowledged meanwhile is in memory only."""
        if number in self._failing:
            self._mend_disk(number)
            return
        error = self._chance.choice((errno.ENOSPC, errno.EIO))
        call = self._chance.choice(("write", "fdatasync"))
        self._note(f"{call} of {number} fails: {os.strerror(error)}")
        policy = self._policies[number]
        since_s = 1e18 if policy == "always" else now_s() - ONE_SECOND_S
        disaster = Disaster("failing", number, 1e18, since_s, policy)
        self._history.disasters.append(disaster)
        self._failing[number] = disaster
        self._may_end.add(number)
        self._mesh.faulty(number).play(Rule(call, ".incr.aof", error=error))

    def _mend_disk(self, number: int) -> None:
        self._note(f"mend the disk of {number}")
        self._mesh.faulty(number).play()
        self._failing.pop(number).at_s = now_s() + ONE_SECOND_S

    def _pause_peer(self, number: int) -> None:
        other = self._chance.choice([each for each in self._mesh.regions if each != number])
        word = self._chance.choice(("PAUSE", "RESUME"))
        with contextlib.suppress(OSError, ValueError, WireError):  # it is down, or starts
            self._mesh[number].call("AA", word, other)
            self._note(f"{word} {other} in {number}")

    def _rewrite(self, number: int) -> None:
        region = self._mesh[number]
        if region.running:
            self._note(f"rewrite {number}")
            try:
                region.call("BGREWRITEAOF")
            except (OSError, ValueError, WireError):  # it is loading, or at it already
                self._note("  refused")

    # Links

    def _link(self) -> tuple[int, int]:
        return self._chance.choice(sorted(self._mesh.proxies))

    def _cut_link(self, _: int) -> None:
        link = self._link()
        self._note(f"cut {link}")
        self._mesh.proxies[link].cut()

    def _cut_within_messages(self, _: int) -> None:
        link = self._link()
        after = self._chance.choice((1, 100, 3000, 40000))
        self._note(f"cut {link} after {after} bytes")
        self._mesh.proxies[link].cut_after(after)

    def _break_off(self, _: int) -> None:
        link = self._link()
        self._note(f"break {link} off")
        self._mesh.proxies[link].break_off()

    def _silence(self, _: int) -> None:
        link = self._link()
        self._note(f"silence {link}")
        self._mesh.proxies[link].silence()

    def _delay(self, _: int) -> None:
        link = self._link()
        seconds = self._chance.choice((0.0, 0.02, 0.3))
        self._note(f"delay {link} by {seconds} s")
        self._mesh.proxies[link].delay(seconds)

    def _partition(self, number: int) -> None:
        side = {other for other in self._mesh.regions if self._chance.random() < 0.4} | {number}
        self._note(f"partition {sorted(side)} from the rest")
        self._mesh.partition(side)

    def _heal_links(self, _: int) -> None:
        self._note("heal all links")
        self._mesh.heal()

    def _pause_a_little(self, _: int) -> None:
        time.sleep(0.5)

    def _note(self, text: str) -> None:
        self.told.append(f"{now_s():.3f} {text}")
