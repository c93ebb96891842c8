"""The minute in which every plug is pulled, one after the other."""

from __future__ import annotations

from two_regions.stage import Stage


class Script:
    """One run of it.

    Args:
        seconds: how long it takes, about.
    """

    def __init__(self, stage: Stage, seconds: float) -> None:
        self._stage = stage
        self._view = stage.view
        self._links = stage.links
        self._seconds = seconds

    def run(self) -> None:
        """Go through all disturbances; each takes its share of the time."""
        for step in (
            self._undisturbed,
            self._cut_one_link,
            self._cut_one_region_off,
            self._hear_one_way,
            self._kill,
            self._move_billing,
            self._lose_disk,
            self._undisturbed,
        ):
            step()

    def _pass(self, share: float) -> None:
        """Let this share of the whole time go by."""
        self._stage.show_for(share * self._seconds)

    def _undisturbed(self) -> None:
        self._pass(0.08)

    def _heal(self) -> None:
        self._links.heal()
        self._view.tell("healed: each gets what it has missed")
        self._pass(0.04)

    def _cut_one_link(self) -> None:
        self._view.tell("the links between 1 and 2 are cut, both ways; 3 hears and is heard")
        self._links.cut((1, 2), (2, 1))
        self._pass(0.1)
        self._heal()

    def _cut_one_region_off(self) -> None:
        self._view.tell("region 3 is cut off; it goes on writing, and so do the others")
        self._links.cut(*self._links.around(3))
        self._pass(0.12)
        self._heal()

    def _hear_one_way(self) -> None:
        self._view.tell("1 hears nobody, but all hear 1")
        self._links.cut((1, 2), (1, 3))
        self._pass(0.08)
        self._heal()

    def _kill(self) -> None:
        victim = self._stage.regions[1]
        self._view.tell("kill -9 of region 2, in the middle of its writes")
        victim.kill()
        self._pass(0.06)
        victim.start()
        victim.wait_until_it_writes()
        self._view.tell("region 2 is back, with all that it has acknowledged")
        self._pass(0.06)

    def _move_billing(self) -> None:
        self._view.tell("billing moves from region 1 to region 2: its worker stops,")
        self._stage.move_billing(self._stage.regions[1])
        self._view.tell("... AA MOVE carries what the group has read, and it goes on in region 2")
        self._pass(0.06)

    def _lose_disk(self) -> None:
        """What nobody has fetched would be gone with the disk: so the writer rests before."""
        victim = self._stage.regions[0]
        self._view.tell("the writer of region 1 rests until the others have its entries,")
        self._stage.let_others_fetch(victim)
        self._view.tell("... then kill -9 of region 1, and its disk is lost")
        self._stage.lose_disk(victim)
        self._pass(0.08)
        victim.start()
        self._view.tell("region 1 starts on an empty disk, and takes a copy of another one's state")
        victim.wait_until_it_writes()
        self._view.tell("region 1 has everything again, and takes writes")
        self._stage.writers[0].go_on()
        self._pass(0.08)
