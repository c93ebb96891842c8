"""The table of docs/high-availability.md on what becomes of writes is true: each cell is played."""

from __future__ import annotations

import re
import shutil
from abc import abstractmethod
from contextlib import ExitStack, closing
from typing import Final

import pytest

from support.build import ROOT
from support.client import WireError
from support.following import AT_ONCE, have_all, is_up
from support.mesh import Mesh, RegionProcess, wait_until
from support.process import Process, ServerProcess
from support.proxy import Proxy
from support.standbys import Standbys

PAGE: Final = (ROOT / "docs/high-availability.md").read_text()
KILLED: Final = "the process is killed"
LOST: Final = "its disk is lost as well"
PLANNED: Final = "it is replaced as planned"
FAULTS: Final = (KILLED, LOST, PLANNED)
FILE: Final = ("--appendonly", "yes", "--appendfsync", "always", "--save", "")


def cells() -> dict[tuple[str, str], str]:
    """Return what the page says, by the way to run it and what happens."""
    rows = [
        [re.sub(r"\[(.*?)\]\(.*?\)", r"\1", cell).strip() for cell in line.strip("|").split("|")]
        for line in PAGE.splitlines()
        if line.startswith("|")
    ]
    head = next(row for row in rows if row[1:2] == ["one server with a file"])
    return {
        (way, row[0]): row[at]
        for row in rows
        if row[0] in FAULTS
        for at, way in enumerate(head)
        if at and ";" in row[at]
    }


class Way:
    """One way to run it; ``failing`` is the server to which something happens."""

    def __init__(self, stack: ExitStack) -> None:
        self.stack: Final = stack
        self.failing: Process = self.begin()

    @abstractmethod
    def begin(self) -> Process:
        """Start all of it."""

    def count(self) -> None:
        """Wait until another server has what was written."""

    def cut(self) -> None:
        """Let nothing reach another server from now on."""

    def heal(self) -> None:
        """Let it through again."""

    def replace(self) -> Process | None:
        """Let another server do the work of the one that is gone; None where there is none."""
        return None

    def hand_over(self) -> Process:
        """Replace it as planned; return what is there then."""
        self.failing.stop()
        return self.failing.restart()

    def returned(self, there: Process | None) -> None:
        """The one that was gone is back; ``there`` has done its work."""


class OneServer(Way):
    def begin(self) -> Process:
        return self.stack.enter_context(ServerProcess(*FILE))


class UnderSentinel(Way):
    """What a sentinel says is said here."""

    def begin(self) -> Process:
        master, self.replica = (
            self.stack.enter_context(ServerProcess(*FILE, *AT_ONCE)) for _ in range(2)
        )
        self.between = self.stack.enter_context(closing(Proxy(master.port)))
        self.replica.call("REPLICAOF", "127.0.0.1", self.between.port)
        wait_until(lambda: is_up(self.replica))
        return master

    def count(self) -> None:
        assert self.failing.call("WAIT", "1", "10000") == 1

    def cut(self) -> None:
        self.between.cut()

    def replace(self) -> Process:
        self.replica.call("REPLICAOF", "NO", "ONE")
        return self.replica

    def hand_over(self) -> Process:
        self.failing.call("FAILOVER")
        wait_until(lambda: self.replica.info("replication")["role"] == "master")
        return self.replica

    def returned(self, there: Process | None) -> None:
        assert there is not None
        self.failing.call("REPLICAOF", "127.0.0.1", there.port)
        wait_until(lambda: is_up(self.failing))
        wait_until(lambda: have_all(there, self.failing))


class Regions(Way):
    def begin(self) -> Process:
        self.mesh = self.stack.enter_context(Mesh(2, "--appendfsync", "always"))
        return self.mesh[1]

    def count(self) -> None:
        token = self.failing.call("AA", "TOKEN")
        assert isinstance(token, bytes)
        assert self.mesh[2].call("AA", "WAIT", token, "10000") == 1

    def cut(self) -> None:
        self.mesh.partition({1})

    def heal(self) -> None:
        self.mesh.heal()

    def replace(self) -> Process:
        return self.mesh[2]

    def hand_over(self) -> Process:
        self.failing.stop()
        self.failing.restart()
        return self.mesh[2]

    def returned(self, there: Process | None) -> None:
        self.mesh[1].wait_until_writable()
        self.mesh.sync()


class WithStandbys(Way):
    def begin(self) -> Process:
        self.mesh = self.stack.enter_context(Standbys(2, "--appendfsync", "always"))
        return self.mesh.one

    def count(self) -> None:
        assert self.failing.call("WAIT", "1", "10000") == 1

    def cut(self) -> None:
        self.mesh.partition({1})
        for link in (self.mesh.between, *self.mesh.to_other.values()):
            link.cut()

    def heal(self) -> None:
        self.mesh.heal()
        for link in (self.mesh.between, *self.mesh.to_other.values()):
            link.heal()

    def replace(self) -> Process:
        self.heal()
        self.mesh.swap()
        self.mesh.one.call("REPLICAOF", "NO", "ONE")
        self.mesh.one.wait_until_writable()
        return self.mesh.one

    def hand_over(self) -> Process:
        self.failing.call("FAILOVER")
        self.mesh.swap()
        wait_until(lambda: self.mesh.one.info("replication")["role"] == "master")
        self.mesh.one.wait_until_writable()
        return self.mesh.one

    def returned(self, there: Process | None) -> None:
        assert isinstance(there, RegionProcess)
        if not is_follower(self.failing):
            with pytest.raises(WireError, match="AATWIN"):
                self.failing.call("XADD", "s", "*", "f", "from the old one")
            self.failing.call("REPLICAOF", "127.0.0.1", there.port)
        wait_until(lambda: is_up(self.failing))
        self.mesh.sync()
        self.mesh.wait_until_copied()


def is_follower(server: Process) -> bool:
    return server.info("replication")["role"] == "slave"


WAYS: Final[dict[str, type[Way]]] = {
    "one server with a file": OneServer,
    "replicas under Sentinel": UnderSentinel,
    "regions": Regions,
    "regions with standbys": WithStandbys,
}


def add(server: Process, value: str) -> None:
    assert isinstance(server.call("XADD", "s", "*", "f", value), bytes)


def there_are(server: Process) -> set[bytes]:
    found = server.call("XRANGE", "s", "-", "+")
    assert isinstance(found, list)
    return {entry[1][1] for entry in found}


def play(way: Way, fault: str) -> str:
    """Return what happens, in the words of the page."""
    add(way.failing, "counted")
    way.count()
    if fault == PLANNED:
        add(way.failing, "alone")
        there: Process | None = way.hand_over()
        writes = "writes wait" if there is way.failing else "writes go on"
    else:
        way.cut()
        add(way.failing, "alone")
        way.failing.kill()
        there = way.replace()
        writes = "writes wait" if there is None else "writes go on"
        if there is not None:
            add(there, "later")
        if fault == LOST:
            shutil.rmtree(way.failing.directory / "appendonlydir")
        way.failing.restart(crash=True)
        way.heal()
    way.returned(there)
    found = there_are(way.failing)
    assert there is None or found == there_are(there)
    left = found & {b"counted", b"alone"}
    stay = {2: "both", 1: "counted", 0: "none"}[len(left)]
    assert b"counted" in left or not left
    elsewhere = " elsewhere" if isinstance(way, Regions) else ""
    return f"{stay} stay; {writes}{elsewhere}"


def test_the_page_has_all_of_them() -> None:
    assert set(cells()) == {(way, fault) for way in WAYS for fault in FAULTS}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("way", WAYS)
def test_what_becomes_of_writes(way: str, fault: str) -> None:
    with ExitStack() as stack:
        assert play(WAYS[way](stack), fault) == cells()[way, fault]
