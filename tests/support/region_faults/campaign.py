"""A campaign: some regions, and rounds of work and faults that end with all healed and compared."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Final, Self

from support.client import RawClient, WireError
from support.clock import Clock, can_be_set
from support.faulty_mesh import FaultyMesh
from support.region_faults.checker import Checker, Entries, Findings
from support.region_faults.clients import (
    Client,
    Deleter,
    Reader,
    Retrier,
    StableReader,
    Worker,
    Writer,
    acknowledge,
    claim,
    take,
)
from support.region_faults.faults import SKEWS_MS, Faults
from support.region_faults.history import (
    DRAINER,
    GROUP,
    KEYS,
    LOG,
    MIXED,
    OTHER_MIXED,
    History,
    now_s,
)
from support.region_faults.mixer import Mixer

POLICIES: Final = ("always", "everysec", "no")
SMALL_LOGS: Final = ("--aa-log-max-bytes", "1mb", "--aa-backlog-bytes", "64kb")
MEET_S: Final = 60.0
ROUND_S: Final = 2.5
EXPIRED_S: Final = 10.0  # in which all regions have removed what has expired


class Failure(Exception):
    """Something went wrong; the text says what."""


class Campaign:
    """Rounds with the same regions.

    Args:
        seed, number: which campaign; it makes the same choices again.
        policy: of ``appendfsync``, for all; empty for one by chance.
        disasters: whether a region may lose what it has acknowledged.
    """

    def __init__(self, seed: int, number: int, policy: str = "", disasters: bool = True) -> None:
        self._chance: Final = Random(f"{seed} {number}")
        self.count: Final = self._chance.choice((2, 2, 3, 3, 4, 5))
        numbers = range(1, self.count + 1)
        chosen = policy or self._chance.choice(("", "", *POLICIES))
        self.policies: Final = {n: chosen or self._chance.choice(POLICIES) for n in numbers}
        self.small_logs: Final = self._chance.random() < 0.3
        options = ["--aa-start-wait-ms", "500"]  # some of the others may be down, or cut off
        options += ["--stream-idmp-maxsize", "10000"]  # more than is added while links are cut
        options += ["--aa-ack-interval-ms", self._chance.choice(("0", "10"))]
        options += ["--aa-beat-ms", self._chance.choice(("50", "1000"))]
        # Nobody waits for the disk under `no`, so nothing would be sent.
        when = self._chance.choice(("written", "written", "synced"))
        options += ["--aa-send", "written" if "no" in self.policies.values() else when]
        options += ["--aa-compress", self._chance.choice(("yes", "no"))]
        options += ["--aa-secret", self._chance.choice(("", "hush"))]
        options += SMALL_LOGS if self.small_logs else ()
        self._clocks: Final = self._set_clocks() if self._chance.random() < 0.4 else {}
        environments = [clock.environment for clock in self._clocks.values()]
        self.mesh: Final = FaultyMesh(self.count, *options, environments=environments)
        for region, its in self.policies.items():
            self.mesh[region].options += ("--appendfsync", its)
        self._copies: Final = Path(tempfile.mkdtemp(prefix="headrace-copies-"))
        self.history: Final = History()
        self.history.clocks_differ = bool(self._clocks)
        self.findings: Final = Findings()
        self.faults: Final = Faults(
            self.mesh,
            self.history,
            self._chance,
            self.policies,
            self._copies,
            disasters,
            self._clocks,
        )
        self._rounds = 0
        self._joins_in = 0  # the round in which one more region joins; 0 for never
        if self.count > 2 and self._chance.random() < 0.3:
            self._joins_in = self._chance.choice((1, 2))
            self.mesh.begin_without(self.count)
        self._final: Entries = {}
        self._settled: set[bytes] = set()

    def __str__(self) -> str:
        policies = ", ".join(f"{n} {policy}" for n, policy in self.policies.items())
        small = ", small logs" if self.small_logs else ""
        later = f", one of them from round {self._joins_in} on" if self._joins_in else ""
        clocks = ", clocks that differ" if self._clocks else ""
        return f"{self.count} regions ({policies}){small}{later}{clocks}"

    def _set_clocks(self) -> dict[int, Clock]:
        clocks: dict[int, Clock] = {}
        if can_be_set():
            for number in range(1, self.count + 1):
                clocks[number] = Clock()
                clocks[number].skew(self._chance.choice(SKEWS_MS))
        return clocks

    def __enter__(self) -> Self:
        self.mesh.__enter__()
        try:
            self.mesh[1].call("XGROUP", "CREATE", LOG, GROUP, "0", "MKSTREAM")
            self._settle()
        except BaseException:
            self.mesh.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.faults.end_twins()
        self.mesh.__exit__(kind, value, traceback)
        for clock in self._clocks.values():
            clock.__exit__(kind, value, traceback)
        shutil.rmtree(self._copies, ignore_errors=True)

    def keep(self, folder: Path) -> None:
        """Copy what the regions have written, their logs, and what was done to them."""
        for number, region in self.mesh.regions.items():
            region.kill()
            shutil.copytree(region.directory, folder / str(number), dirs_exist_ok=True)
        (folder / "faults.txt").write_text("\n".join(self.faults.told) + "\n")
        with (folder / "history.txt").open("w") as file:
            for name in ("adds", "removals", "deliveries", "acks", "disasters"):
                for each in getattr(self.history, name):
                    file.write(f"{each}\n")

    # A round

    def round(self, seconds: float = ROUND_S) -> None:
        """Work, faults, healing, comparing. Raises: Failure."""
        began_s = now_s()
        self._rounds += 1
        clients = self._clients()
        for client in clients:
            client.start()
        try:
            if self._rounds == self._joins_in:
                self.faults.play(0.3 * seconds)
                self.faults.mend()
                self.mesh.join()
                self.faults.told.append(f"{now_s():.3f} join {self.count}")
            self.faults.play(seconds)
            self.faults.mend()
            time.sleep(0.3)  # so that they go on with what was healed
        finally:
            for client in clients:
                client.end()
            for client in clients:
                client.join()
        self._settle()
        if self.count == len({each.region for each in self.history.disasters}):
            with contextlib.suppress(WireError):  # all may have lost it; mostly it is there
                self.mesh[1].call("XGROUP", "CREATE", LOG, GROUP, "0", "MKSTREAM")
                self._settle()
        if self.history.moves:
            self._read_anywhere()
            self._settle()
        self._drain()
        self._look_at_all()
        self._settle()
        final = self._compared()
        checker = Checker(self.history, began_s, self.findings)
        checker.check_entries(final)
        checker.check_kept(self._final, final, self.count)
        checker.check_group(final[LOG], self.mesh.regions)
        checker.check_settled(self._settled, self.count)
        self._final = final
        self._settled = {entry_id for entry_id, _ in final[LOG]}
        if self.findings.wrong:
            raise Failure("\n".join(self.findings.wrong))
        for region in self.mesh.regions.values():
            region.check_log()

    def _clients(self) -> list[Client]:
        kinds: list[type[Client]] = [Writer] * self.count
        kinds += [Retrier, Retrier, Deleter, Reader, StableReader]
        kinds += [Worker, Worker, Worker, Mixer]
        regions = self.mesh.regions
        return [kind(regions, self.history, Random(self._chance.random())) for kind in kinds]

    def _settle(self) -> None:
        """Wait until all take writes, and have what each of them has. Raises: Failure."""
        deadline_s = now_s() + MEET_S
        while not self._are_level():
            if now_s() > deadline_s:
                raise Failure(f"not level after {MEET_S:.0f} s:\n{self._state()}")
            time.sleep(0.05)
        for number in self.mesh.regions:
            facts = self.mesh[number].info("activeactive")
            for name, value in facts.items():
                if name.startswith("aa_peer"):
                    self.history.copies += int(value.partition("full_copies=")[2].split(",")[0])
                if name == "aa_check_mismatches" and value != "0":
                    raise Failure(f"region {number} has found other digests than its own: {facts}")

    def _are_level(self) -> bool:
        tokens: set[object] = set()
        for number, region in self.mesh.regions.items():
            if not region.running:
                if self.faults.start_ended(number):
                    return False
                raise Failure(f"region {number} has ended by itself:\n{region.log()[-4000:]}")
            try:
                facts = region.info("activeactive")
                if facts.get("aa_writable") != "1":
                    self.faults.start_stopped(number)
                    return False
                tokens.add(facts["aa_numbers"])
            except (OSError, ValueError, WireError):
                return False
        return len(tokens) == 1

    def _state(self) -> str:
        lines: list[str] = []
        for number, region in self.mesh.regions.items():
            try:
                facts = region.info("activeactive")
                lines += [f"{number} {name}: {value}" for name, value in facts.items()]
            except (OSError, ValueError, WireError) as error:
                lines.append(f"{number} {error!r}")
            lines.append(region.log()[-1500:])
        return "\n".join(lines)

    def _read_anywhere(self) -> None:
        """Let the group be read in all regions: where it is read now says so, or the first one.

        Who has given away what it had begins anew then.
        """
        self.history.moves.append(now_s())
        for force in ((), ("FORCE",)):
            for number in self.mesh.regions:
                with contextlib.suppress(WireError):
                    self.mesh[number].call("AA", "MOVE", LOG, GROUP, "*", *force)
                    return

    def _drain(self) -> None:
        """Let a worker read all in each region, and acknowledge it."""
        for number in self.mesh.regions:
            worker = Worker({number: self.mesh[number]}, self.history, self._chance)
            while True:
                ids = claim(worker, DRAINER, 0, 1000) + take(worker, DRAINER, 1000, ">")
                if not ids:
                    break
                acknowledge(worker, DRAINER, ids)
            worker.disconnect()

    def _look_at_all(self) -> None:
        """Let what has expired go, which may leave a record."""
        for region in self.mesh.regions.values():
            for key in (MIXED, OTHER_MIXED):
                region.call("EXISTS", key)

    def _compared(self) -> Entries:
        """As ``_compare``. A key whose time has come may still be hidden in some regions only."""
        deadline_s = now_s() + EXPIRED_S
        while True:
            try:
                return self._compare()
            except Failure:
                if now_s() > deadline_s:
                    raise
            time.sleep(0.1)
            self._look_at_all()
            self._settle()

    def _compare(self) -> Entries:
        """Return what is there, the same in all regions. Raises: Failure."""
        first: dict[str, tuple[list[tuple[bytes, bytes]], list[object]]] = {}
        entries: Entries = {}
        for number, region in self.mesh.regions.items():
            with region.client(timeout_s=30) as client:
                for key in (*KEYS, MIXED, OTHER_MIXED):
                    found = _look(client, key)
                    expected = first.setdefault(key, found)
                    if found != expected:
                        with self.mesh[1].client() as other:
                            state = _state_difference(other, client, key)
                        raise Failure(
                            f"{key} differs in regions 1 and {number}:\n"
                            f"{_difference(expected, found)}\n{state}"
                        )
                    if number == 1:
                        entries[key] = found[0]
                summary = client.call_parsed("XPENDING", LOG, GROUP)
                if not isinstance(summary, list) or summary[0] != 0:
                    raise Failure(f"region {number} has entries pending: {summary}")
        return entries


def _look(client: RawClient, key: str) -> tuple[list[tuple[bytes, bytes]], list[object]]:
    """Entries (ID and value), and what else regions share: names of groups, a digest of all."""
    entries = client.call_parsed("XRANGE", key, "-", "+")
    assert isinstance(entries, list), entries
    groups = client.call_parsed("XINFO", "GROUPS", key)
    names = [each[1] for each in groups] if isinstance(groups, list) else []
    more: list[object] = [names, client.call("EXISTS", key), client.call("AA", "DIGEST", key)]
    return [(entry[0], entry[1][1]) for entry in entries], more


def _difference(
    one: tuple[list[tuple[bytes, bytes]], list[object]],
    other: tuple[list[tuple[bytes, bytes]], list[object]],
) -> str:
    mine, theirs = set(one[0]), set(other[0])
    return (
        f"only there: {sorted(mine - theirs)[:5]}, only here: {sorted(theirs - mine)[:5]}, "
        f"{len(mine)} and {len(theirs)} entries; else {one[1]} and {other[1]}"
    )


def _state_difference(one: RawClient, other: RawClient, key: str) -> str:
    """Return what AA STREAM says in one region alone."""
    mine, theirs = one.call_parsed("AA", "STREAM", key), other.call_parsed("AA", "STREAM", key)
    lines = [set(each) if isinstance(each, list) else set() for each in (mine, theirs)]
    return (
        f"state only there: {sorted(lines[0] - lines[1])}\nonly here: {sorted(lines[1] - lines[0])}"
    )
