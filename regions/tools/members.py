"""``headrace regions add`` and ``remove``: who takes part, set everywhere in the right order."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from typing import Final, cast

from headrace.regions.tools.overview import Facts, facts_of
from headrace.server.tools.client import Address, Client, ClientError, Encryption

PATIENCE_S: Final = 600.0  # for a copy of everything
LOOK_S: Final = 0.3
PAUSED_MS: Final = "3600000"


class Member:
    """A region that can be asked; ``peers`` are the others by number, ``place`` is its own."""

    def __init__(self, client: Client, address: Address) -> None:
        self.client: Final = client
        self._shown: Final = address.shown
        self.number: Final = self.facts().region
        self.name: Final = f"region {self.number} ({address.shown})"
        self.peers: Final[dict[int, str]] = {}
        for line in self.value("aa-peers").split(", "):
            number, _, place = line.partition(" ")
            if place:  # a region with standbys has several, of which each is a peer of its own
                before = self.peers.get(int(number), "")
                self.peers[int(number)] = f"{before}, {line}" if before else place
        port = self.value("aa-port")
        self.place: Final = f"{address.host} {address.port if port == '0' else port}"

    def facts(self) -> Facts:
        """Return what it reports now."""
        return facts_of(self.client, self._shown)

    def reached(self) -> set[int]:
        """Return the regions that it reaches."""
        return {link.region for link in self.facts().links if link.state == "up"}

    def value(self, parameter: str) -> str:
        """Return the value of a parameter."""
        reply = cast("list[bytes]", self.client.ask("CONFIG", "GET", parameter))
        return reply[1].decode()

    def set_peers(self, peers: dict[int, str]) -> None:
        """Set where it finds the others, in its file too, and say so."""
        if peers == self.peers:
            return
        text = ", ".join([f"{number} {place}" for number, place in sorted(peers.items())])
        self.client.ask("CONFIG", "SET", "aa-peers", text)
        print(f"{self.name}: aa-peers is now '{text}'")
        try:
            self.client.ask("CONFIG", "REWRITE")
        except ClientError as error:
            print(f"{self.name}: write it into its configuration, too: {error}")


def change_members(
    action: str, number: int, urls: list[Address], encryption: Encryption | None
) -> int:
    """Let regions join, or one go for good. Return 1, with the reason printed, if that fails."""
    with ExitStack() as opened:
        try:
            clients = [opened.enter_context(closing(Client(url, encryption))) for url in urls]
            members = [Member(*each) for each in zip(clients, urls, strict=True)]
            if action == "add":
                _add(members)
            else:
                _remove(number, members)
        except ClientError as error:
            print(f"Not done: {error}", file=sys.stderr)
            return 1
    return 0


def _add(members: list[Member]) -> None:
    """Let each region know all others: first those that take part, then those that are new."""
    known = {number for member in members for number in member.peers}
    old = [each for each in members if each.number in known] or members[:1]  # one alone, with data
    new = [member for member in members if member not in old]
    for number in known - {member.number for member in members}:
        raise ClientError(f"region {number} takes part, too. Name its URL")
    for member in new:
        if member.client.ask("DBSIZE") != 0:
            raise ClientError(f"{member.name} has data of its own. Begin with an empty folder")
    for member in [*old, *new]:
        others = {each.number: each.place for each in members if each is not member}
        member.set_peers({**others, **member.peers})
    numbers = {member.number for member in members}
    for member in members:
        _wait(member, "takes writes, and reaches all others", lambda m: _is_in(m, numbers))


def _is_in(member: Member, numbers: set[int]) -> bool:
    facts = member.facts()
    agrees = "has the members" not in str(facts.problems())
    return facts.is_writable and agrees and numbers - {member.number} <= member.reached()


def _remove(number: int, members: list[Member]) -> None:
    """Let a region go for good, after the others have all that it knows, if it is there."""
    rest = [member for member in members if member.number != number]
    leaving = [member for member in members if member.number == number]
    if not rest:
        raise ClientError("name the regions that stay")
    if leaving:
        leaving[0].client.ask("CLIENT", "PAUSE", PAUSED_MS, "WRITE")
        token = cast("bytes", leaving[0].client.ask("AA", "TOKEN"))
        for member in rest:
            _wait(member, "has all of it", lambda m: m.client.ask("AA", "WAIT", token, "300") == 1)
        with suppress(ClientError):  # it closes the connection
            leaving[0].client.ask("SHUTDOWN")
    for member in rest:
        _wait(member, f"does not reach region {number}", lambda m: number not in m.reached())
    rest[0].client.ask("AA", "FORGET", str(number))
    for member in rest:
        _wait(member, "has forgotten it", lambda m: number not in m.facts().members)
        member.set_peers({each: place for each, place in member.peers.items() if each != number})
    numbers = {member.number for member in rest}
    for member in rest:
        _wait(member, "agrees with the others", lambda m: _is_in(m, numbers))


def _wait(member: Member, what: str, is_so: Callable[[Member], bool]) -> None:
    """Wait until something is so, and say it. Raises ClientError if it takes too long."""
    patience_s = time.monotonic() + PATIENCE_S
    while not is_so(member):
        if time.monotonic() > patience_s:
            raise ClientError(f"{member.name}, after {PATIENCE_S:.0f} s, is not where it {what}")
        time.sleep(LOOK_S)
    print(f"{member.name} {what}", flush=True)
