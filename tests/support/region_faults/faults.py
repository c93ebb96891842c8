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
from support.faults import Rule
from support.faulty_mesh import FaultyMesh
from support.region_faults.history import Disaster, History, now_s

ONE_SECOND_S: Final = 3.0  # what everysec may lose, on a machine that others keep busy


class Faults:
    """Plays faults; what was done is in ``told``.

    Args:
        policies: of ``appendfsync``, by region.
        copies: a folder for copies of the regions' folders.
        disasters: whether a region may lose what it has acknowledged: its disk, its newest files,
            or what was not synced.
    """

    def __init__(
        self,
        mesh: FaultyMesh,
        history: History,
        chance: Random,
        policies: dict[int, str],
        copies: Path,
        disasters: bool,
    ) -> None:
        self.told: list[str] = []
        self._mesh: Final = mesh
        self._history: Final = history
        self._chance: Final = chance
        self._policies: Final = policies
        self._copies: Final = copies
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
        ]
        if disasters:
            kinds += [(self._cut_power, 3), (self._lose_disk, 1), (self._put_back, 1)]
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
        for number in sorted(self._failing):
            self._mend_disk(number)
        for region in self._mesh.regions.values():
            with contextlib.suppress(OSError, ValueError, WireError):  # it is down, or starts
                region.call("AA", "RESUME", "ALL")
        for number in sorted(self._mesh.regions):
            if not self._mesh[number].running:
                self._start(number)

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

    def _cut_power(self, number: int) -> None:
        policy = self._policies[number]
        region = self._mesh.faulty(number)
        lost = region.cut_power(self._chance)
        self._note(f"cut the power of {number} ({policy}), {lost} bytes are gone")
        # Before the end, because what was acknowledged just before it may be older than that.
        since_s = {"always": 1e18, "everysec": now_s() - ONE_SECOND_S, "no": 0.0}[policy]
        self._history.disasters.append(Disaster("power", number, now_s(), since_s, policy))

    def _lose_disk(self, number: int) -> None:
        if self._others_are_up(number):
            self._note(f"lose the disk of {number}")
            self._mesh.faulty(number).lose_disk()
            disaster = Disaster("disk", number, now_s(), 0.0, self._policies[number])
            self._history.disasters.append(disaster)

    def _put_back(self, number: int) -> None:
        kept_s = self._kept_s.get(number)
        if kept_s is not None and self._others_are_up(number):
            self._note(f"put an older folder of {number} back")
            self._mesh.faulty(number).put_back(self._copies / str(number))
            disaster = Disaster("older", number, now_s(), kept_s, self._policies[number])
            self._history.disasters.append(disaster)

    def _others_are_up(self, number: int) -> bool:
        """One disaster at a time: two of them at once may cost what only these two had."""
        return all(self._mesh[other].running for other in self._mesh.regions if other != number)

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
