"""What each type costs beside real servers: CPU time of a command, and memory of an element.

    python -m bench.types --only hash --elements 100000

Fifty clients send sixteen commands at once. What the server's process has used meanwhile is counted
in rounds in which the servers take turns, and the least counts. Each ratio is to the cheapest of
the others, and stands beside the bar: what is meant to be reached. Memory is what the process grows
by; of Redis 8.0, whose allocator tells, what it says itself.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shlex
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import hiredis

from bench.peers import BATCH, OURS, Peer, Server, ServerError, divide_cores, encode, ours, pinned
from bench.type_workloads import KINDS, WORKLOADS, Kind, Words, Workload

CLIENTS: Final = 50
DEPTH: Final = 16
WAVES: Final = 12  # of all clients, in a round
ROUNDS: Final = 5
ELEMENTS: Final = 100_000
MEMORY_ELEMENTS: Final = 300_000
MEMORY_KEYS: Final = 20_000
JUDGES: Final = ("redis-8.0", "redis-8.10", "valkey-9.1")
BY_ITSELF: Final = "redis-8.0"  # its memory is what it says

# Measuring


class Clients:
    """Connections that send together."""

    def __init__(self, port: int) -> None:
        self._sockets: Final = [
            socket.create_connection(("127.0.0.1", port)) for _ in range(CLIENTS)
        ]
        self._readers: Final = [hiredis.Reader() for _ in range(CLIENTS)]

    def wave(self, requests: list[bytes], replies: int) -> None:
        """Send each client's request, and read so many replies from each. Raises: ServerError."""
        for connection, request in zip(self._sockets, requests, strict=True):
            connection.sendall(request)
        for connection, reader in zip(self._sockets, self._readers, strict=True):
            owed = replies
            while owed:
                reply = reader.gets()
                if reply is False:
                    reader.feed(connection.recv(1 << 18))
                    continue
                if isinstance(reply, hiredis.ReplyError):
                    raise ServerError(str(reply))
                owed -= 1

    def close(self) -> None:
        """Hang up."""
        for connection in self._sockets:
            connection.close()


def _requests(workload: Workload, elements: int, seed: int) -> list[list[bytes]]:
    """The waves of a round, each with a request for each client."""
    drawn = random.Random(seed)
    number = seed * WAVES * CLIENTS * DEPTH
    waves = []
    for _ in range(WAVES):
        wave = []
        for _ in range(CLIENTS):
            calls = range(number, number + DEPTH)
            wave.append(b"".join(encode(*workload.command(i, elements, drawn)) for i in calls))
            number += DEPTH
        waves.append(wave)
    return waves


def fill(server: Server, calls: Iterator[Words]) -> None:
    """Make calls that fill keys, many at a time."""
    chunk: list[bytes] = []
    for words in calls:
        chunk.append(encode(*words))
        if len(chunk) == BATCH:
            server.control.send_all([(b"".join(chunk), len(chunk))])
            chunk = []
    server.control.send_all([(b"".join(chunk), len(chunk))])


def cpu_of(
    workload: Workload, servers: list[Server], elements: int, rounds: int, keep: bool = False
) -> dict[str, float | str]:
    """Return nanoseconds of CPU that one command takes, on each server, or why there are none.

    Args:
        keep: the keys that are there, and are not filled anew.
    """
    told: dict[str, float | str] = {}
    clients: dict[str, Clients] = {}
    for server in servers:
        if not keep:
            server.control.call("FLUSHALL")
        try:
            fill(server, workload.prepare(elements))
            clients[server.name] = Clients(server.port)
        except ServerError as error:
            server.hang_up()
            told[server.name] = str(error)
    for number in range(rounds + 1):  # the first one warms up
        waves = _requests(workload, elements, number)
        for server in servers:
            if server.name not in clients:
                continue
            before_s = server.cpu_time().total_s
            try:
                for wave in waves:
                    clients[server.name].wave(wave, DEPTH)
            except ServerError as error:
                clients.pop(server.name).close()
                told[server.name] = str(error)
                continue
            taken = (server.cpu_time().total_s - before_s) * 1e9 / (WAVES * CLIENTS * DEPTH)
            least = told.get(server.name)
            if number and not (isinstance(least, float) and least <= taken):
                told[server.name] = taken
    for each in clients.values():
        each.close()
    return told


def memory_of(kind: Kind, server: Server, elements: int, keys: int) -> float | str:
    """Bytes of an element of a large value, or of a small one with its key."""

    def calls(prefix: str, count: int) -> Iterator[Words]:
        if kind.each:
            for key in range(count):
                numbers = range(key * kind.each, (key + 1) * kind.each)
                yield kind.words(f"{prefix}{key:08d}", numbers)
            return
        for first in range(0, count, 100):
            yield kind.words(prefix, range(first, min(count, first + 100)))

    def held() -> int:
        if server.name == BY_ITSELF:
            return int(server.info("memory")["used_memory"])
        return server.resident_bytes()

    count = keys if kind.each else elements
    try:
        fill(server, calls("warm", 1_000))
        server.control.call("FLUSHALL")
        before = held()
        fill(server, calls("key:", count))
        return (held() - before) / count
    except ServerError as error:
        return str(error)


def line(
    family: str, name: str, told: dict[str, float | str], bar: float, judges: list[str]
) -> str:
    """Return what was measured, in one line."""
    shown = []
    for server, value in told.items():
        shown.append(f"{server} {value:8.1f}" if isinstance(value, float) else f"{server} {'-':>8}")
    mine = told.get(OURS)
    others = [told[judge] for judge in judges if isinstance(told.get(judge), float)]
    if not isinstance(mine, float):
        verdict = str(mine)[:40]
    elif not others:
        verdict = ""
    else:
        ratio = mine / min(value for value in others if isinstance(value, float))
        verdict = f"{ratio:5.2f}, bar {bar:4.2f}{'' if ratio <= bar else '  OVER'}"
    return f"{family:11} {name:24} {'  '.join(shown)}  {verdict}"


def judges_found() -> list[Peer]:
    """The real servers that ``make judges`` has fetched."""
    folder = Path(os.environ.get("HEADRACE_JUDGES") or Path(__file__).parents[1] / ".judges/bin")
    return [Peer(name, (str(folder / name),)) for name in JUDGES if (folder / name).exists()]


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.types", description=(__doc__ or "").strip()
    )
    parser.add_argument("--only", default="", help="these families, with commas between")
    parser.add_argument("--elements", type=int, default=0, help="of large values")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--what", choices=("cpu", "memory", "both"), default="both")
    parser.add_argument("--ours", default="", metavar="COMMAND", help="default: the installed one")
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=COMMAND")
    given = parser.parse_args()
    only = set(filter(None, given.only.split(",")))
    peers = [ours(given.ours), *judges_found()]
    for words in given.peer:
        name, _, command = words.partition("=")
        peers.append(Peer(name, tuple(shlex.split(command))))
    judges = [peer.name for peer in peers if peer.name != OURS]
    cores = divide_cores()
    if given.what != "memory":
        print("ns of CPU per command, 50 clients, 16 deep", flush=True)
        with contextlib.ExitStack() as stack, pinned(cores.load):
            servers = [stack.enter_context(Server(peer, cores=cores.server)) for peer in peers]
            for workload in WORKLOADS:
                if only and workload.family not in only:
                    continue
                told = cpu_of(workload, servers, given.elements or ELEMENTS, given.rounds)
                print(line(workload.family, workload.name, told, workload.bar, judges), flush=True)
    if given.what != "cpu":
        print("bytes per element, or per key with a small value", flush=True)
        for kind in KINDS:
            if only and kind.family not in only:
                continue
            told = {}
            for peer in peers:
                with Server(peer, cores=cores.server) as server:
                    told[peer.name] = memory_of(
                        kind, server, given.elements or MEMORY_ELEMENTS, MEMORY_KEYS
                    )
            print(line(kind.family, kind.name, told, kind.bar, [BY_ITSELF]), flush=True)


if __name__ == "__main__":
    main()
