"""Regions as processes, with a proxy for each directed link between them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from support.client import Argument
from support.process import ServerProcess, claim_port
from support.proxy import Proxy
from support.waiting import DEADLINE_S

SYNC_MS = "45000"
QUICK = ("--aa-ack-interval-ms", "0", "--aa-relay-after-ms", "300")


class RegionProcess(ServerProcess):
    """One region.

    Args:
        number: of the region; aa_port: where others reach it.
    """

    def __init__(
        self,
        number: int,
        aa_port: int,
        *options: str,
        directory: Path | None = None,
        config: str = "",
        environment: dict[str, str] | None = None,
    ) -> None:
        super().__init__(
            "--aa-region-id",
            str(number),
            "--aa-port",
            str(aa_port),
            "--appendonly",
            "yes",
            "--save",
            "",
            *QUICK,
            *options,
            directory=directory,
            config=config,
            environment=environment,
        )
        self.number = number
        self.aa_port = aa_port

    def start_again(self) -> None:
        """Start on the same folder and port, after an end of whatever kind."""
        self.spawn_again()
        self.wait_until_ready()

    def spawn_again(self) -> None:
        """The same, without waiting for it to answer."""
        self._any_port = False
        self.spawn()

    def wait_until_writable(self) -> None:
        """Wait until it has heard all others."""
        wait_until(lambda: self.info("activeactive")["aa_writable"] == "1", self)

    def sync(self) -> None:
        """Wait until all is here that each peer has."""
        reply = self.call("AA", "SYNC", SYNC_MS)
        assert isinstance(reply, list)
        for state in reply[1::2]:
            assert state == b"level", (self.number, reply, self.log())

    def peer(self, number: int) -> dict[bytes, object]:
        """Return what AA PEERS says of one."""
        peers = self.call("AA", "PEERS")
        assert isinstance(peers, list)
        for each in peers:
            found = dict(zip(each[::2], each[1::2], strict=True))
            if found[b"region"] == number:
                return found
        raise AssertionError(peers)

    def state_of(self, number: int) -> bytes:
        """Return how another region is, seen from here."""
        state = self.peer(number)[b"state"]
        assert isinstance(state, bytes)
        return state

    def aof(self) -> bytes:
        """Return what its incr files hold."""
        files = sorted((self.directory / "appendonlydir").glob("*.incr.aof"))
        return b"".join([file.read_bytes() for file in files])

    def wait_for_peer(self, number: int, state: bytes) -> None:
        wait_until(lambda: self.state_of(number) == state, self)

    def xadd(self, key: str, entry_id: str = "*", *fields: Argument) -> bytes:
        found = self.call("XADD", key, entry_id, *(fields or ("f", "v")))
        assert isinstance(found, bytes)
        return found

    def ids(self, key: str) -> list[bytes]:
        found = self.call("XRANGE", key, "-", "+")
        assert isinstance(found, list)
        return [entry[0] for entry in found]


def wait_until(condition: object, region: RegionProcess | None = None) -> None:
    """Wait for a condition, with a deadline."""
    assert callable(condition)
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        log = "" if region is None else region.log()
        assert time.monotonic() < deadline, log
        time.sleep(0.01)


class Mesh:
    """Regions 1 to ``count``, each of which pulls from all others through proxies.

    Args:
        environments: more environment variables of each region.
    """

    def __init__(
        self, count: int, *options: str, environments: Sequence[dict[str, str]] = ()
    ) -> None:
        self.regions: dict[int, RegionProcess] = {}
        self.proxies: dict[tuple[int, int], Proxy] = {}
        numbers = range(1, count + 1)
        claims = {number: claim_port() for number in numbers}
        self._claims = [claim for _, claim in claims.values()]
        for asking in numbers:
            for asked in numbers:
                if asking != asked:
                    self.proxies[asking, asked] = Proxy(claims[asked][0])
        for number in numbers:
            self.regions[number] = self.region(
                number,
                claims[number][0],
                *("--aa-start-wait-ms", "5000"),  # all begin together, however slow that is
                *("--aa-peers", self.peers_of(number, numbers), *options),
                environment=environments[number - 1] if environments else None,
            )

    def peers_of(self, number: int, among: Iterable[int]) -> str:
        """Return what ``aa-peers`` of a region is, where these take part."""
        return ", ".join(
            f"{asked} 127.0.0.1 {self.proxies[number, asked].port}"
            for asked in among
            if asked != number
        )

    def region(
        self, number: int, aa_port: int, *options: str, environment: dict[str, str] | None
    ) -> RegionProcess:
        """One of them, to be started."""
        return RegionProcess(number, aa_port, *options, environment=environment)

    def __enter__(self) -> Self:
        for region in self.regions.values():
            region.spawn()
        for region in self.regions.values():
            region.wait_until_ready()
        for region in self.regions.values():
            region.wait_until_writable()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for region in self.regions.values():
            region.discard()
        for proxy in self.proxies.values():
            proxy.close()
        for claim in self._claims:
            claim.close()

    def __getitem__(self, number: int) -> RegionProcess:
        return self.regions[number]

    def pause(self) -> None:
        """Let nothing travel but at ``sync``."""
        for region in self.regions.values():
            region.call("AA", "PAUSE", "ALL")

    def resume(self) -> None:
        for region in self.regions.values():
            region.call("AA", "RESUME", "ALL")

    def sync(self, *numbers: int) -> None:
        """Let all regions, or those named, have all that the others have."""
        for number in numbers or self.regions:
            self.regions[number].sync()

    def partition(self, *sides: set[int]) -> None:
        """Cut all links between regions of different sides."""
        for (asking, asked), proxy in self.proxies.items():
            if any((asking in side) != (asked in side) for side in sides):
                proxy.cut()

    def heal(self) -> None:
        for proxy in self.proxies.values():
            proxy.heal()

    def wait_until_level(self) -> None:
        """Wait until all regions know the same."""
        wait_until(
            lambda: len({region.call("AA", "TOKEN") for region in self.regions.values()}) == 1
        )
