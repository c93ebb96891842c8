"""Regions of different versions, with processes: they are upgraded one by one.

The later version is ``support/later_version.py``, which has one more kind of effect.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.client import WireError
from support.mesh import Mesh, RegionProcess, wait_until

# It is not imported, which would give this process, too, what it has.
LATER = Path(__file__).parents[1] / "support" / "later_version.py"


class AnyVersion(RegionProcess):
    """A region that is of this version, or of a later one."""

    later = False

    def command(self) -> list[str]:
        command = super().command()
        return [*command[: command.index("-m")], str(LATER)] if self.later else command

    def become(self, later: bool) -> None:
        """Install a version, and start it."""
        if self.running:
            self.stop()
        self.later = later
        self.start_again()

    def notes(self) -> list[bytes]:
        found = self.call("AA", "NOTES")
        assert isinstance(found, list)
        return found

    def knows(self, number: int, version: int) -> bool:
        """Return whether another region has said here that it speaks a version."""
        return f"version={version}," in self.info("activeactive")[f"aa_peer{number}"]


class Versions(Mesh):
    """Regions that can be upgraded."""

    def region(
        self, number: int, aa_port: int, *options: str, environment: dict[str, str] | None
    ) -> RegionProcess:
        return AnyVersion(number, aa_port, *options, environment=environment)

    def at(self, number: int) -> AnyVersion:
        region = self.regions[number]
        assert isinstance(region, AnyVersion)
        return region


@pytest.fixture
def three() -> Iterator[Versions]:
    with Versions(3, "--aa-start-wait-ms", "2000") as mesh:
        yield mesh
        for region in mesh.regions.values():
            region.check_log()


def refusal_of_note(region: AnyVersion) -> str:
    with pytest.raises(WireError) as refused:
        region.call("AA", "NOTE", "too early")
    return str(refused.value)


def wait_until_known(version: int, mesh: Versions, *numbers: int) -> None:
    """Wait until these regions know that all others speak a version."""
    for number in numbers:
        region = mesh.at(number)
        for other in mesh.regions:
            if other != number:
                wait_until(lambda: region.knows(other, version), region)  # noqa: B023


def test_a_later_kind_of_record_waits_for_the_last_region(three: Versions) -> None:
    one, two, last = three.at(1), three.at(2), three.at(3)
    added = [one.xadd("s")]
    one.become(later=True)
    two.become(later=True)
    added += [region.xadd("s") for region in (one, two, last)]
    three.sync()
    wait_until_known(2, three, 3)
    wait_until(lambda: one.knows(3, 1), one)
    assert "AAVERSION region 3 has to be upgraded before" in refusal_of_note(one)
    last.kill()
    one.become(later=True)  # nobody can be asked now
    assert "AAVERSION region 3 has to be upgraded before" in refusal_of_note(one)
    last.become(later=True)
    wait_until_known(2, three, 1, 2, 3)
    assert one.call("AA", "NOTE", "first") == b"OK"
    three.sync()
    assert one.notes() == two.notes() == last.notes() == [b"first"]
    assert one.ids("s") == two.ids("s") == last.ids("s") == added


def test_what_a_region_speaks_is_known_while_it_is_down(three: Versions) -> None:
    one, last = three.at(1), three.at(3)
    for region in (one, three.at(2), last):
        region.become(later=True)
    wait_until_known(2, three, 1, 2, 3)
    wait_until(lambda: one.aof().count(b"MET") >= 4, one)
    last.kill()
    for rewritten in (False, True):
        if rewritten:
            one.call("BGREWRITEAOF")
            wait_until(lambda: b"MET" not in one.aof(), one)
        one.become(later=True)
        assert one.call("AA", "NOTE", f"rewritten {rewritten}") == b"OK"
    last.become(later=True)
    three.sync()
    assert last.notes() == [b"rewritten False", b"rewritten True"]


def test_a_region_that_is_too_old_stops_at_what_it_does_not_know(three: Versions) -> None:
    one, two, old = three.at(1), three.at(2), three.at(3)
    for region in (one, two, old):
        region.become(later=True)
    wait_until_known(2, three, 1, 2, 3)
    first = one.xadd("s")
    three.sync()
    old.stop()
    before = one.xadd("s")
    one.call("AA", "NOTE", "for all")
    after = one.xadd("s")
    wait_until(lambda: two.call("AA", "TOKEN") == one.call("AA", "TOKEN"), two)
    for _ in range(2):  # and a restart does not help
        old.become(later=False)
        wait_until(lambda: "region 3 has to be upgraded" in str(old.peer(1)[b"problem"]), old)
        assert old.state_of(1).startswith(b"refused: record ")
        assert old.ids("s") == [first, before]
        old.stop()
    assert "AA NOTE is of a later version of the exchange than 1" in old.log()
    assert "goes on when a later version is started" in old.log()
    old.become(later=False)
    own = old.xadd("s")
    one.sync()
    assert one.ids("s") == [first, before, after, own]  # the other direction goes on
    old.become(later=True)
    three.sync()
    assert one.ids("s") == two.ids("s") == old.ids("s") == [first, before, after, own]
    assert old.notes() == [b"for all"]
    old.stop()
    old.later = False
    old.spawn_again()
    old.wait()  # its own file has now what it does not know
    assert "AA NOTE is not known here: start the version that has written it" in old.log()
    old.become(later=True)
    assert old.notes() == [b"for all"]
