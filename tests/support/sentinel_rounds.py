"""Fails servers over again and again under sentinels and writers, and counts what is lost.

``python -m support.sentinel_rounds --rounds 50``, with ``--over redis-8.10`` for real servers.
Writers use redis-py's client of sentinels, and write XADD with WAIT 1. Each round is one of these:

- ``plan``: SENTINEL FAILOVER. Nothing that was acknowledged may be lost between servers of ours.
- ``kill``: the master is killed, and started anew with its files when another one is the master.
- ``stop``: it stands still (SIGSTOP), and goes on then.
- ``cut``: nothing comes through to it any more, and nobody is told; then the network is whole.
  With this fault all servers are reached through proxies, which cost most of the speed.

No round may lose what WAIT has counted on a replica; with two replicas the sentinels choose the one
that has more of the stream.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Final

from support import build, judges
from support.process import Process, RedisProcess, ServerProcess
from support.proxy import Proxy
from support.sentinels import Watched, Writer, lost, watched
from support.waiting import wait_until

OPTIONS: Final = ("--repl-diskless-sync-delay", "0", "--appendonly", "yes", "--save", "")
OURS: Final = "headrace"
DOWN_AFTER_MS: Final = 1000  # as short as users set it


def plan(those: Watched, old: Process) -> Process:
    those.fail_over()
    return those.wait_for_other(old)


def kill(those: Watched, old: Process) -> Process:
    old.kill()
    new = those.wait_for_other(old)
    old.restart(crash=True)
    return new


def stop(those: Watched, old: Process) -> Process:
    old.signal(signal.SIGSTOP)
    try:
        return those.wait_for_other(old)
    finally:
        old.signal(signal.SIGCONT)


def cut(those: Watched, old: Process) -> Process:
    those.links[old].silence()
    new = those.wait_for_other(old)
    those.links[old].heal()
    return new


FAULTS: Final[dict[str, Callable[[Watched, Process], Process]]] = {
    "plan": plan,
    "kill": kill,
    "stop": stop,
    "cut": cut,
}


class Round:
    """What one round came to: ``away_s`` is the longest that a writer waited for an answer."""

    def __init__(self, fault: str, writers: list[Writer], new: Process) -> None:
        acknowledged = [value for writer in writers for value in writer.acknowledged]
        promised = [value for writer in writers for value in writer.promised]
        self.fault: Final = fault
        self.count: Final = len(acknowledged)
        self.promised: Final = len(promised)
        self.lost: Final = len(lost(acknowledged, new))
        self.broken: Final = len(lost(promised, new))
        self.away_s: Final = max(writer.longest_s for writer in writers)

    def __str__(self) -> str:
        return (
            f"{self.fault}: {self.count} acknowledged, {self.lost} of them lost; "
            f"{self.promised} promised by WAIT, {self.broken} of them lost; "
            f"{self.away_s:.2f} s without an answer"
        )


def play(those: Watched, fault: str, *, waits: bool, writers: int = 4) -> Round:
    """Play one round, up to where all servers are in their places."""
    old = those.agreed()
    assert old is not None
    label = f"{fault}-{random.randrange(1 << 48)}"
    at_work = [Writer(those, f"{label}-{number}", waits=waits) for number in range(writers)]
    try:
        time.sleep(0.5)
        new = FAULTS[fault](those, old)
        wait_until(those.are_in_place)
    finally:
        for writer in at_work:
            writer.stop()
    return Round(fault, at_work, new)


def server_of(kind: str) -> Process:
    """Return a server of ours, or a real one of that version."""
    if kind == OURS:
        return ServerProcess(*OPTIONS, debug=False, check_log=False)
    return RedisProcess(*OPTIONS, program=judges.program_of(kind))


@contextmanager
def scene(kinds: list[str], program: str, *, by_links: bool) -> Iterator[Watched]:
    """Have three servers of these kinds, in turn, under three sentinels."""
    with ExitStack() as stack:
        servers = [stack.enter_context(server_of(kinds[n % len(kinds)])) for n in range(3)]
        links: dict[Process, Proxy] = {}
        for each in servers if by_links else ():
            links[each] = stack.enter_context(closing(Proxy(each.port)))
            each.call("CONFIG", "SET", "replica-announce-port", links[each].port)
        ports = {links[each].port if links else each.port: each for each in servers}
        for each in servers[1:]:
            each.call("REPLICAOF", "127.0.0.1", next(iter(ports)))
        those = stack.enter_context(
            watched(servers, [program] * 3, down_after_ms=DOWN_AFTER_MS, ports=ports)
        )
        those.links.update(links)
        yield those


def main() -> int:
    reader = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    reader.add_argument("--rounds", type=int, default=50)
    reader.add_argument("--faults", default="plan,kill,stop", help="of which each round has one")
    reader.add_argument("--over", default=OURS, help="the servers: headrace, or such as redis-8.10")
    reader.add_argument("--sentinels", default="redis-7.0", help="such as redis-7.0 or redis-8.10")
    reader.add_argument("--no-wait", action="store_true", help="write without WAIT 1")
    given = reader.parse_args()
    if given.over == OURS:
        print(build.check())
    rounds: list[Round] = []
    faults = given.faults.split(",")
    program = judges.program_of(given.sentinels)
    with scene(given.over.split(","), program, by_links="cut" in faults) as those:
        for number in range(given.rounds):
            fault = random.choice(faults)
            rounds.append(play(those, fault, waits=not given.no_wait))
            print(number + 1, rounds[-1], flush=True)
    for fault in FAULTS:
        of_fault = [each for each in rounds if each.fault == fault]
        if of_fault:
            away_s = statistics.median(each.away_s for each in of_fault)
            print(
                f"{len(of_fault)} x {fault}: {sum(each.lost for each in of_fault)} acknowledged "
                f"and {sum(each.broken for each in of_fault)} promised writes lost; "
                f"median of {away_s:.2f} s without an answer"
            )
    broken = [each for each in rounds if each.broken or (each.fault == "plan" and each.lost)]
    return 1 if broken and given.over == OURS else 0


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
