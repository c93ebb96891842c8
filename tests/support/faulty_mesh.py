"""Regions that are killed, lose their power or their disk, or get an older folder back."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from random import Random
from types import TracebackType

from support.faults import FaultyDisk, Rule
from support.mesh import Mesh, RegionProcess
from support.process import claim_port

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def forget_boot(file: Path) -> None:
    """Let the first line of a region's file name another boot, as after a power cut."""
    data = file.read_bytes()[:4096]
    boot = BOOT_ID.read_bytes().strip()
    at = data.find(boot)
    if at >= 0:  # else it was written before another power cut
        with file.open("r+b") as there:  # it stays the same file
            there.seek(at)
            there.write(boot[::-1].replace(b"-", b"0"))


def _number_of(file: Path) -> int:
    return int(file.name.split(".")[-3])


class FaultyRegion(RegionProcess):
    """A region on a faulty disk."""

    def __init__(
        self,
        number: int,
        aa_port: int,
        *options: str,
        environment: dict[str, str] | None = None,
    ) -> None:
        super().__init__(number, aa_port, *options, environment=environment)
        self.disk = FaultyDisk(self.directory)
        self.debug = False

    def command(self) -> list[str]:
        return self.disk.command()

    @property
    def files(self) -> Path:
        """Return where its append-only file lies."""
        return self.directory / "appendonlydir"

    def play(self, *rules: Rule) -> None:
        """Let the disk behave like that from now on."""
        self.disk.play(*rules)

    def cut_power(self, chance: Random) -> int:
        """End it, and take from its files some of what no sync had put on the disk.

        Returns: how many bytes were taken.
        """
        self.kill()
        lost = self.disk.cut_power(chance)
        for file in self.files.glob("*.incr.aof"):
            forget_boot(file)
        return lost

    def lose_disk(self) -> None:
        """End it, and remove all that it has written."""
        self.kill()
        shutil.rmtree(self.files, ignore_errors=True)
        self.disk.forget()

    def keep(self, copy: Path) -> None:
        """Copy its folder; it must have ended."""
        assert not self.running
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.files, copy)

    def tear(self, chance: Random) -> int:
        """End it, and cut its newest file at any byte, as who has copied a part of it.

        Returns: how many bytes are gone.
        """
        self.kill()
        files = sorted(self.files.glob("*.incr.aof"), key=_number_of)
        if not files:
            return 0
        data = files[-1].read_bytes()
        kept = chance.randrange(len(data) + 1)
        files[-1].unlink()  # another file has its name from now on, as a copy has
        files[-1].write_bytes(data[:kept])
        self.disk.sync_all()
        return len(data) - kept

    def put_back(self, copy: Path) -> None:
        """End it, and put a copy in the place of its folder."""
        self.lose_disk()
        shutil.copytree(copy, self.files)
        self.disk.sync_all()


class FaultyMesh(Mesh):
    """Regions on faulty disks, with faulty links between them."""

    _later: RegionProcess | None = None

    def region(
        self, number: int, aa_port: int, *options: str, environment: dict[str, str] | None
    ) -> RegionProcess:
        return FaultyRegion(number, aa_port, *options, environment=environment)

    def begin_without(self, number: int) -> None:
        """Let a region join later; nothing has been started so far."""
        self._later = self.regions.pop(number)
        for other, region in self.regions.items():
            self._set_peers(region, self.peers_of(other, self.regions))

    def join(self) -> int:
        """Start the region that was left out, and tell the others of it. Returns: its number."""
        assert self._later is not None
        newcomer = self._later
        self._later = None
        newcomer.spawn()
        self.regions[newcomer.number] = newcomer
        for other, region in self.regions.items():
            peers = self.peers_of(other, self.regions)
            self._set_peers(region, peers)
            if region is not newcomer:
                with contextlib.suppress(RuntimeError, OSError):  # it ends, as its disk fails
                    region.wait_until_ready()
                    region.call("CONFIG", "SET", "aa-peers", peers)
        return newcomer.number

    @staticmethod
    def _set_peers(region: RegionProcess, peers: str) -> None:
        options = list(region.options)
        options[options.index("--aa-peers") + 1] = peers
        region.options = tuple(options)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._later is not None:
            self._later.discard()
        super().__exit__(kind, value, traceback)

    def twin(self, number: int) -> RegionProcess:
        """A copy of a region that has ended, with a port of its own; it is to be started."""
        region = self.faulty(number)
        port, claim = claim_port()
        self._claims.append(claim)
        twin = RegionProcess(number, port, *region.options, "--aa-port", str(port))
        shutil.copytree(region.files, twin.directory / "appendonlydir")
        return twin

    def faulty(self, number: int) -> FaultyRegion:
        region = self.regions[number]
        assert isinstance(region, FaultyRegion)
        return region
