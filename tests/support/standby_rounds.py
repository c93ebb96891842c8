"""Fails a region over to its standbys again and again under sentinels, and counts what is lost.

``python -m support.standby_rounds --rounds 50``. Region 1 has three servers under three sentinels,
of which one is the region and the others follow it. Region 2 is one server. Writers write to region
1 through redis-py's client of sentinels, with WAIT 1, and others to region 2; workers of a group
read in region 1 and acknowledge. Each round is one of these:

- ``plan``: SENTINEL FAILOVER. Nothing that was acknowledged may be lost.
- ``kill``: the region is killed, and started anew with its files when another server is the region.
- ``behind``: the standbys end some time before that, and so lack what region 2 has got since.
- ``stop``: the region stands still (SIGSTOP), and goes on when another server is it.
- ``apart``: it is killed while the regions are cut off from each other.

No round may lose what WAIT has counted or what another region has got, give an ID twice, or leave
an entry out for the group; and in the end all servers have the same.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import signal
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Final, cast

import redis

from support import build, judges
from support.following import AT_ONCE, have_all
from support.mesh import RegionProcess
from support.process import Process, claim_port
from support.proxy import Proxy
from support.sentinels import Watched, Writer, lost, watched
from support.waiting import wait_until

DOWN_AFTER_MS: Final = 1000
SERVERS: Final = 3  # of region 1
KEY: Final = "s"
GROUP: Final = "g"
LOG: Final = 5000  # characters that are shown where a round fails
BEHIND_S: Final = 0.5  # for which standbys are not there


class Scene:
    """The servers of a campaign: ``two`` is region 2; ``links`` lead from a region to the other."""

    def __init__(self, stack: ExitStack, program: str) -> None:
        claims = [claim_port() for _ in range(SERVERS + 1)]
        for _, claim in claims:
            stack.enter_context(closing(claim))
        ports = [port for port, _ in claims]
        self.links: Final = [stack.enter_context(closing(Proxy(port))) for port in ports]
        ours, two = self.links[:SERVERS], self.links[SERVERS]
        addresses = ", ".join(f"1 127.0.0.1 {each.port}" for each in ours)
        self.two: Final = RegionProcess(2, ports[SERVERS], "--aa-peers", addresses)
        self.servers: Final = [
            RegionProcess(1, port, *AT_ONCE, "--aa-peers", f"2 127.0.0.1 {two.port}", config="#\n")
            for port in ports[:SERVERS]
        ]
        for each in (*self.servers, self.two):
            each.debug = False
            each.spawn()
            stack.callback(each.discard)
            each.wait_until_ready()
            if each is self.servers[0]:
                continue
            if each is not self.two:
                each.call("REPLICAOF", "127.0.0.1", self.servers[0].port)
                each.call("CONFIG", "REWRITE")
        self.servers[0].wait_until_writable()
        self.two.wait_until_writable()
        self.those: Final = stack.enter_context(
            watched(self.servers, [program] * 3, down_after_ms=DOWN_AFTER_MS)
        )

    def master(self) -> RegionProcess:
        """Return the server that is region 1."""
        found = self.those.agreed()
        assert isinstance(found, RegionProcess)
        return found

    def others(self, master: Process) -> list[RegionProcess]:
        """Return its standbys."""
        return [each for each in self.servers if each is not master]

    def silence(self) -> None:
        """Let nothing through between the regions."""
        for link in self.links:
            link.silence()

    def heal(self) -> None:
        for link in self.links:
            link.heal()

    def settle(self) -> RegionProcess:
        """Wait until all servers have the same, and return the one that is region 1."""
        self.heal()
        wait_until(self.those.are_in_place)
        master = self.master()
        master.wait_until_writable()
        self.two.wait_for_peer(1, b"up")
        self.two.sync()
        master.sync()
        self.two.sync()
        wait_until(lambda: have_all(master, *self.others(master)))
        everyone = [self.two, master, *self.others(master)]
        wait_until(lambda: len({bytes(_digest(each)) for each in everyone}) == 1)
        return master


def _digest(server: RegionProcess) -> bytes:
    return cast("bytes", server.call("AA", "DIGEST"))


def plan(scene: Scene, old: RegionProcess) -> Process:
    scene.those.fail_over()
    return scene.those.wait_for_other(old)


def kill(scene: Scene, old: RegionProcess) -> Process:
    old.kill()
    new = scene.those.wait_for_other(old)
    old.restart(crash=True)
    return new


def behind(scene: Scene, old: RegionProcess) -> Process:
    standbys = scene.others(old)
    for each in standbys:
        each.kill()
    time.sleep(BEHIND_S)
    old.kill()
    for each in standbys:
        each.restart(crash=True)
    return kill(scene, old)


def stop(scene: Scene, old: RegionProcess) -> Process:
    old.signal(signal.SIGSTOP)
    try:
        return scene.those.wait_for_other(old)
    finally:
        old.signal(signal.SIGCONT)


def apart(scene: Scene, old: RegionProcess) -> Process:
    scene.silence()
    time.sleep(random.uniform(0, 1))
    new = kill(scene, old)
    scene.heal()
    return new


FAULTS: Final[dict[str, Callable[[Scene, RegionProcess], Process]]] = {
    "plan": plan,
    "kill": kill,
    "behind": behind,
    "stop": stop,
    "apart": apart,
}


class Worker(threading.Thread):
    """Reads the group in region 1, and acknowledges; ``read``: the IDs that it was given."""

    def __init__(self, where: Watched, name: str) -> None:
        super().__init__()
        self._where: Final = where
        self._consumer: Final = name
        self._stopping = threading.Event()
        self.read: Final[set[bytes]] = set()
        self.start()

    def run(self) -> None:
        client = self._where.client()
        while not self._stopping.is_set():
            try:
                for after in ("0", ">"):
                    found = client.xreadgroup(GROUP, self._consumer, {KEY: after}, 200, 100)
                    self._take(
                        client, cast("list[tuple[bytes, list[tuple[bytes, object]]]]", found)
                    )
            except (redis.RedisError, OSError):
                client.connection_pool.disconnect()
                time.sleep(0.02)

    def _take(
        self, client: redis.Redis, found: list[tuple[bytes, list[tuple[bytes, object]]]]
    ) -> None:
        for _, entries in found:
            ids = [each for each, _ in entries]
            self.read.update(ids)
            if ids:
                client.xack(KEY, GROUP, *ids)

    def stop(self) -> None:
        self._stopping.set()
        self.join()


class Elsewhere(threading.Thread):
    """Adds entries in region 2; ``ids``: what they have got."""

    def __init__(self, two: RegionProcess) -> None:
        super().__init__()
        self._port: Final = two.port
        self._stopping = threading.Event()
        self.ids: Final[list[bytes]] = []
        self.start()

    def run(self) -> None:
        with closing(redis.Redis(port=self._port, socket_timeout=10)) as client:
            while not self._stopping.is_set():
                self.ids.append(cast("bytes", client.xadd(KEY, {"n": "elsewhere"})))
                time.sleep(0.002)

    def stop(self) -> None:
        self._stopping.set()
        self.join()


class Round:
    """The outcome of a round: ``away_s`` is the longest that a writer waited for an answer."""

    def __init__(self, fault: str, writers: list[Writer], new: Process, had: set[bytes]) -> None:
        acknowledged = [value for writer in writers for value in writer.acknowledged]
        promised = [value for writer in writers for value in writer.promised]
        self.fault: Final = fault
        self.count: Final = len(acknowledged)
        self.promised: Final = len(promised)
        self.lost: Final = len(lost(acknowledged, new))
        self.broken: Final = len(lost(promised, new))
        self.shipped: Final = len(lost(list(had), new))
        self.away_s: Final = max(writer.longest_s for writer in writers)

    def is_good(self) -> bool:
        return not self.broken and not self.shipped and (self.fault != "plan" or not self.lost)

    def __str__(self) -> str:
        return (
            f"{self.fault}: {self.count} acknowledged, {self.lost} of them lost; "
            f"{self.promised} promised by WAIT, {self.broken} of them lost; "
            f"{self.shipped} lost that region 2 had; {self.away_s:.2f} s without an answer"
        )


def play(scene: Scene, fault: str, ids: list[bytes]) -> Round:
    """Play one round, up to where all servers are in their places; ``ids`` gets those given."""
    old = scene.master()
    label = f"{fault}-{random.randrange(1 << 48)}"
    at_work = [Writer(scene.those, f"{label}-{number}", waits=True) for number in range(2)]
    elsewhere = Elsewhere(scene.two)
    try:
        time.sleep(0.5)
        FAULTS[fault](scene, old)
        had = values_in(scene.two, label)
        wait_until(scene.those.are_in_place)
        scene.master().wait_until_writable()
        time.sleep(0.5)
    finally:
        for writer in at_work:
            writer.stop()
        elsewhere.stop()
    new = scene.settle()
    for writer in at_work:
        ids += writer.ids
    ids += elsewhere.ids
    return Round(fault, at_work, new, had)


def values_in(server: RegionProcess, label: str) -> set[bytes]:
    """Return which of a round's values a server has."""
    with closing(redis.Redis(port=server.port, socket_timeout=60)) as client:
        entries = cast("list[tuple[bytes, dict[bytes, bytes]]]", client.xrange(KEY))
    values = {fields[b"n"] for _, fields in entries}
    return {value for value in values if value.startswith(label.encode())}


@contextmanager
def workers(scene: Scene) -> Iterator[list[Worker]]:
    """Have the group read, and at the end let it read all that there is."""
    scene.master().call("XGROUP", "CREATE", KEY, GROUP, "0", "MKSTREAM")
    at_work = [Worker(scene.those, f"worker-{number}") for number in range(2)]
    try:
        yield at_work
        wait_until(lambda: not unread(scene, at_work))
    finally:
        for each in at_work:
            each.stop()


def unread(scene: Scene, at_work: list[Worker]) -> set[bytes]:
    """Return the entries that the group was not given."""
    there = set(scene.master().ids(KEY))
    return there - set().union(*(each.read for each in at_work))


def campaign(rounds: int, faults: list[str], program: str) -> list[Round]:
    """Play rounds; each is told when it is over. Raises AssertionError: something is wrong."""
    found: list[Round] = []
    ids: list[bytes] = []
    with ExitStack() as stack:
        scene = Scene(stack, program)
        with workers(scene) as at_work:
            for number in range(rounds):
                try:
                    found.append(play(scene, faults[number % len(faults)], ids))
                except AssertionError:
                    for each in (*scene.servers, scene.two):
                        print(f"--- {each.port}, aa-port {each.aa_port}\n{each.log()[-LOG:]}")
                    raise
                print(f"{number + 1}: {found[-1]}", flush=True)
        assert not unread(scene, at_work)
    twice = len(ids) - len(set(ids))
    assert not twice, f"{twice} IDs were given twice"
    print(f"{len(ids)} IDs, none twice; the group has read all of the entries")
    return found


def judged(count: int, faults: list[str], sentinel: str) -> int:
    """Play so many rounds, and print what came of them; how many of them were bad."""
    print(build.check())
    rounds = campaign(count, faults, judges.program_of(sentinel))
    for fault in dict.fromkeys(each.fault for each in rounds):
        away = [each.away_s for each in rounds if each.fault == fault]
        print(f"{fault}: {statistics.median(away):.2f} s without an answer, median of {len(away)}")
    bad = [each for each in rounds if not each.is_good()]
    print(f"{len(rounds)} rounds, {len(bad)} of them bad")
    return len(bad)


def main() -> int:
    reader = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    reader.add_argument("--rounds", type=int, default=50)
    reader.add_argument("--faults", default=",".join(FAULTS), help="of which each round has one")
    reader.add_argument("--sentinels", default="redis-7.0", help="such as redis-7.0 or redis-8.10")
    given = reader.parse_args()
    return min(1, judged(given.rounds, given.faults.split(","), given.sentinels))


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
