"""Scenarios of ``simulator.scenarios`` with regions that are processes, over redis-py."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import redis

from simulator.scenarios import WAITS, Refused, Regions, Scenario, run
from support.clock import Clock
from support.mesh import SYNC_MS, Mesh, wait_until
from support.process import ServerProcess
from support.waiting import DEADLINE_S

# The pieces of ``AA FILE`` in a file: the boot that it names is changed.
_BOOT_BYTES = 36
SMALL_LOGS = ("--aa-log-max-bytes", "1mb", "--aa-backlog-bytes", "64kb")


class Client:
    """One connection of redis-py, whose replies are left as they come."""

    def __init__(self, port: int) -> None:
        make: Any = redis.Connection  # the library has no types for it
        self._connection = make(port=port, socket_timeout=DEADLINE_S, protocol=2)
        self._connection.connect()
        self.id = self.ask([b"CLIENT", b"ID"])

    def ask(self, words: list[bytes]) -> object:
        self.send(words)
        return self.read()

    def send(self, words: list[bytes]) -> None:
        self._connection.send_command(*words)

    def read(self) -> object:
        try:
            return self._connection.read_response()
        except redis.ResponseError as error:
            return Refused(str(error).encode())

    def has_reply(self) -> bool:
        return bool(self._connection.can_read(0.005))

    def close(self) -> None:
        self._connection.disconnect()


class Processes(Regions):
    """Regions as processes, whose links are paused: nothing travels except at ``sync``.

    Args:
        clocks: whether each has a clock of its own, which stands still unless it is set.
    """

    def __init__(self, count: int, mode: str, *options: str, clocks: bool = False) -> None:
        self.count = count
        self._exits = ExitStack()
        self._clocks = [self._exits.enter_context(Clock()) for _ in range(count if clocks else 0)]
        environments = [clock.environment for clock in self._clocks]
        self._mesh = Mesh(count, "--aa-xadd-id-mode", mode, *options, environments=environments)
        self._copies = Path(tempfile.mkdtemp(prefix="headrace-test-copies-"))
        self._clients: dict[tuple[int, str], Client] = {}
        self._synced: dict[int, int] = {}  # bytes of the file that are on the disk

    def __enter__(self) -> Self:
        self._exits.callback(shutil.rmtree, self._copies, ignore_errors=True)
        self._exits.enter_context(self._mesh)
        self._exits.callback(self._leave)
        for number in range(1, self.count + 1):
            self.settle(number)
        self._mesh.pause()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._exits.close()

    def logs(self) -> str:
        """Return what all of them have logged."""
        return "\n".join(region.log() for region in self._mesh.regions.values())

    def check_logs(self) -> None:
        for region in self._mesh.regions.values():
            region.check_log()

    # See ``Regions``

    def call(self, region: int, client: str, words: list[bytes]) -> object:
        asking = self._client(region, client)
        asking.send(words)
        if not {b"BLOCK", b"WAIT"}.intersection([word.upper() for word in words]):
            return asking.read()
        deadline = time.monotonic() + DEADLINE_S
        while not asking.has_reply():
            if self._is_blocked(region, asking):
                return WAITS
            assert time.monotonic() < deadline
        return asking.read()

    def _is_blocked(self, region: int, client: Client) -> bool:
        found = self._mesh[region].call("CLIENT", "LIST", "ID", str(client.id))
        assert isinstance(found, bytes)
        return b" flags=b " in found

    def reply(self, region: int, client: str) -> object:
        return self._client(region, client).read()

    def sync(self, regions: list[int]) -> None:
        """With several, each of them has what the others of them had, and nothing of the rest."""
        left_out = {*self._mesh.regions} - {*regions} if len(regions) > 1 else set()
        for number in regions:
            links = [self._mesh.proxies[number, other] for other in left_out]
            for link in links:
                link.cut()
            self._sync_one(number, left_out)
            for link in links:
                link.heal()

    def _sync_one(self, number: int, left_out: set[int]) -> None:
        """As ``AA SYNC``, and let a full copy come where the log of a peer begins too late."""
        region = self._mesh[number]
        pairs = region.call("AA", "SYNC", SYNC_MS)
        assert isinstance(pairs, list)
        states = dict(zip(pairs[::2], pairs[1::2], strict=True))
        if all(states[key] == b"level" for key in states if int(key) not in left_out):
            return
        assert not left_out, (states, region.log())
        region.call("AA", "RESUME", "ALL")
        for other in self._mesh.regions:
            token = self._mesh[other].call("AA", "TOKEN")
            assert isinstance(token, bytes)
            wait_until(lambda token=token: region.call("AA", "WAIT", token, "1000") == 1, region)
        region.call("AA", "PAUSE", "ALL")

    def resume(self) -> None:
        for region in self._mesh.regions.values():
            region.call("AA", "RESUME", "ALL")

    def rest(self) -> None:
        time.sleep(0.02)

    def set_clock(self, region: int, ms: int) -> None:
        self._clocks[region - 1].set(ms)

    def elapse(self, ms: int) -> None:
        for clock in self._clocks:
            clock.advance(ms)

    def fsync(self, region: int) -> None:
        self._synced[region] = self._file_of(region).stat().st_size

    def power(self, region: int) -> None:
        """Kill it, take from its file what was not on the disk, and have it name another boot."""
        process = self._mesh[region]
        self._forget_clients(region)
        process.kill()
        file = self._file_of(region)
        data = bytearray(file.read_bytes()[: self._synced[region]])
        at = data.index(Path("/proc/sys/kernel/random/boot_id").read_bytes().strip())
        data[at : at + _BOOT_BYTES] = data[at : at + _BOOT_BYTES][::-1].replace(b"-", b"0")
        with file.open("r+b") as there:  # it stays the same file
            there.write(data)
            there.truncate(len(data))
        self.start(region)

    def _file_of(self, region: int) -> Path:
        files = sorted((self._mesh[region].directory / "appendonlydir").glob("*.incr.aof"))
        return files[-1]

    def kill(self, region: int) -> None:
        self._forget_clients(region)
        self._mesh[region].kill()
        self.start(region)

    def stop(self, region: int) -> None:
        self._forget_clients(region)
        self._mesh[region].stop()

    def start(self, region: int) -> None:
        self._mesh[region].start_again()

    def keep(self, region: int, name: str) -> None:
        shutil.copytree(self._folder(region), self._copies / name)

    def restore(self, region: int, name: str) -> None:
        shutil.rmtree(self._folder(region))
        shutil.copytree(self._copies / name, self._folder(region))

    def _folder(self, region: int) -> Path:
        return self._mesh[region].directory / "appendonlydir"

    def cut(self) -> None:
        for proxy in self._mesh.proxies.values():
            proxy.cut()

    def heal(self) -> None:
        self._mesh.heal()

    def settle(self, region: int) -> None:
        process = self._mesh[region]
        wait_until(lambda: process.info("activeactive").get("aa_writable") == "1", process)

    def rewrite(self, region: int) -> None:
        process = self._mesh[region]
        process.call("BGREWRITEAOF")
        wait_until(lambda: _is_rewritten(process), process)

    # Clients

    def _client(self, region: int, name: str) -> Client:
        found = self._clients.get((region, name))
        if found is None:
            found = self._clients[region, name] = Client(self._mesh[region].port)
        return found

    def _forget_clients(self, region: int) -> None:
        for key in [key for key in self._clients if key[0] == region]:
            self._clients.pop(key).close()

    def _leave(self) -> None:
        for client in self._clients.values():
            client.close()


def _is_rewritten(process: ServerProcess) -> bool:
    facts = process.info("persistence")
    return facts["aof_rewrite_in_progress"] == facts["aof_rewrite_scheduled"] == "0"


def play(scenario: Scenario, *options: str) -> None:
    """Put processes through a scenario; what they have logged is shown where they fail."""
    words = {line.split()[0] for line in scenario.steps.strip().splitlines() if line.strip()}
    clocks = bool(words & {"clock", "pass"})
    small = SMALL_LOGS if "fill" in words else ()
    with Processes(scenario.regions, scenario.mode, *small, *options, clocks=clocks) as regions:
        with _telling(regions):
            run(scenario, regions)
        regions.check_logs()


@contextlib.contextmanager
def _telling(regions: Processes) -> Iterator[None]:
    try:
        yield
    except AssertionError as failure:
        failure.add_note(regions.logs())
        raise
