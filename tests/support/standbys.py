"""Regions one of which has a standby."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import Self

from support.following import AT_ONCE, have_all, is_up
from support.mesh import Mesh, RegionProcess
from support.process import claim_port
from support.proxy import Proxy
from support.waiting import wait_until


class Standbys(Mesh):
    """Regions 1 to ``count``; the servers of region 1 are ``one`` and ``other``.

    ``one`` begins as the region, and ``other`` follows it, through ``between``. The others know
    both addresses.
    """

    def __init__(self, count: int, *options: str) -> None:
        self._port, claim = claim_port()
        self.to_other = {number: Proxy(self._port) for number in range(2, count + 1)}
        super().__init__(count, *AT_ONCE, *options)
        self._claims.append(claim)
        self.one = self.regions[1]
        self.other = self.region(
            1,
            self._port,
            *("--aa-start-wait-ms", "5000", *AT_ONCE, *options),
            *("--aa-peers", self.peers_of(1, range(1, count + 1))),
            environment=None,
        )

    def peers_of(self, number: int, among: Iterable[int]) -> str:
        found = super().peers_of(number, among)
        if number == 1:
            return found
        return f"{found}, 1 127.0.0.1 {self.to_other[number].port}"

    def __enter__(self) -> Self:
        super().__enter__()
        self.one.call("CONFIG", "SET", "repl-ping-replica-period", "1")
        self.between = Proxy(self.one.port)
        master = f"127.0.0.1 {self.between.port}"
        self.other.options = (*self.other.options, "--replicaof", master)
        self.other.start()
        wait_until(lambda: is_up(self.other))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.other.discard()
        super().__exit__(kind, value, traceback)
        for proxy in (self.between, *self.to_other.values()):
            proxy.close()

    def servers(self) -> list[RegionProcess]:
        """Return all servers."""
        return [*self.regions.values(), self.other]

    def wait_until_copied(self) -> None:
        """Wait until the standby has all that its region has."""
        wait_until(lambda: have_all(self.one, self.other))

    def sync(self, *numbers: int) -> None:
        """As of all regions; those that ask region 1 have found the server first that is it."""
        for number in self.to_other:
            self[number].wait_for_peer(1, b"up")
            self.one.wait_for_peer(number, b"up")
        super().sync(*numbers)

    def swap(self) -> None:
        """Note that the two servers of region 1 have changed their roles."""
        self.one, self.other = self.other, self.one
        self.regions[1] = self.one
