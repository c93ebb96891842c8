"""Saving beside redis-server, and what clients notice of it: the same data, the same run.

SAVE: both servers are filled with the same commands and save by turns, Redis with ``rdbcompression
no``. Pauses: while a writer keeps a server busy, a prober sends one command each millisecond; its
longest waits are shown without any saving, during BGSAVE, and during BGREWRITEAOF with a base of
either form, with the memory that the process took more meanwhile. Run it with
``python -m bench.durability_snapshots``; ``--help`` tells the options.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from multiprocessing.synchronize import Event
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from bench.durability_loading import DATA, Data, Server, exchange, request

SAVE_AT_MOST: Final = 2.0  # of Redis's time
WAIT_AT_MOST_MS: Final = 20.0
GROWTH_AT_MOST: Final = 0.1
PAGE: Final = os.sysconf("SC_PAGE_SIZE")
PROBE_S: Final = 0.001
SETTLE_S: Final = 1.0  # of load before anything is measured
QUIET_S: Final = 3.0
DEPTH: Final = 20
HOT_KEYS: Final = 100_000


class Pause(NamedTuple):
    """What the prober saw, and how much more memory there was.

    Attributes:
        growth: the greatest resident set of the time, over that before.
    """

    name: str
    seconds: float
    median_ms: float
    p999_ms: float
    worst_ms: float
    growth: float


# Load


def write_all_the_time(port: int, stop: Event) -> None:
    """Append to a stream, trim it, and overwrite strings, until told to stop."""
    number = 0
    with socket.create_connection(("127.0.0.1", port)) as connection:
        while not stop.is_set():
            batch = []
            for _ in range(DEPTH // 2):
                number += 1
                value = b"value:%07d" % number
                options = (b"MAXLEN", b"~", b"100000")
                batch.append(request(b"XADD", b"hot", *options, b"*", b"f1", value, b"f2", b"x"))
                batch.append(request(b"SET", b"hot:%d" % (number % HOT_KEYS), value))
            exchange(connection, batch)


def probe(port: int, stop: Event, waits: multiprocessing.Queue[list[float]]) -> None:
    """Send a command each millisecond until told to stop; how long each took."""
    taken = []
    command = request(b"SET", b"probe", b"1")
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        due = time.perf_counter()
        while not stop.is_set():
            started = time.perf_counter()
            connection.sendall(command)
            connection.recv(64)
            ended = time.perf_counter()
            taken.append(ended - started)
            due = max(due + PROBE_S, ended)
            time.sleep(due - ended)
    waits.put(taken)


def resident_bytes(server: Server) -> int:
    """The memory that a server's process has."""
    assert server.process is not None
    return int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[1]) * PAGE


def is_saving(server: Server) -> bool:
    """Return whether something is being written in the background."""
    info = server.ask(b"INFO persistence\r\n")
    return b"_in_progress:1" in info or b"aof_rewrite_scheduled:1" in info


def watch(server: Server, name: str, begin: bytes) -> Pause:
    """Probe while ``begin``, a command, is carried out; without one for a while."""
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    waits: multiprocessing.Queue[list[float]] = context.Queue()
    prober = context.Process(target=probe, args=(server.port, stop, waits))
    prober.start()
    time.sleep(SETTLE_S)
    before = peak = resident_bytes(server)
    started = time.monotonic()
    if begin:
        server.ask(begin)
    while is_saving(server) if begin else time.monotonic() < started + QUIET_S:
        peak = max(peak, resident_bytes(server))
        time.sleep(0.02)
    spent = time.monotonic() - started
    stop.set()
    taken = sorted(waits.get())
    prober.join()
    return Pause(
        name,
        spent,
        1000 * median(taken),
        1000 * taken[len(taken) * 999 // 1000],
        1000 * taken[-1],
        peak / before - 1,
    )


# Measuring


def save_times(servers: Sequence[Server], rounds: int) -> dict[str, list[float]]:
    """Return how long SAVE takes, by turns."""
    times: dict[str, list[float]] = {server.name: [] for server in servers}
    for _ in range(rounds):
        for server in servers:
            started = time.perf_counter()
            if server.ask(b"SAVE\r\n") != b"+OK\r\n":
                raise SystemExit(f"{server.name} could not save:\n{server.log_path.read_text()}")
            times[server.name].append(time.perf_counter() - started)
    return times


def pauses(server: Server) -> list[Pause]:
    """Return what clients notice of each way of saving, under load."""
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    writer = context.Process(target=write_all_the_time, args=(server.port, stop))
    writer.start()
    time.sleep(SETTLE_S)
    try:
        found = [watch(server, "nothing", b""), watch(server, "BGSAVE", b"BGSAVE\r\n")]
        server.ask(b"CONFIG SET appendonly yes\r\n")
        wait_while(lambda: is_saving(server))
        for form in (b"yes", b"no"):
            server.ask(b"CONFIG SET aof-use-rdb-preamble %b\r\n" % form)
            name = f"BGREWRITEAOF, preamble {form.decode()}"
            found.append(watch(server, name, b"BGREWRITEAOF\r\n"))
    finally:
        stop.set()
        writer.join()
    return found


def wait_while(condition: Callable[[], bool]) -> None:
    """Return when it holds no longer."""
    while condition():
        time.sleep(0.05)


def measure(data: Data, count: int, rounds: int, folder: Path) -> None:
    """Fill both servers, compare SAVE, then look at the pauses of each."""
    servers = []
    ours = [sys.executable, "-P", "-m", "headrace", "--save", ""]
    redis = ["redis-server", "--save", "", "--rdbcompression", "no"]
    for title, command in (("headrace", ours), ("redis-server", redis)):
        place = folder / f"{data.name}-{title}"
        place.mkdir()
        servers.append(Server(title, command, place))
    print(f"{count} {data.about}:", flush=True)
    try:
        for server in servers:
            server.start()
            server.fill(data.name, count)
        show_saves(save_times(servers, rounds))
        for server in servers:
            for pause in pauses(server):
                show_pause(server.name, pause)
            server.stop()
    finally:
        for server in servers:
            server.stop()


def show_saves(times: dict[str, list[float]]) -> None:
    """Print medians, and whether they are as they should be."""
    ours, real = (median(each) for each in times.values())
    for name, each in times.items():
        print(f"  {name:<14} SAVE {median(each):8.3f} s  (from {min(each):.3f} to {max(each):.3f})")
    good = "ok" if ours / real <= SAVE_AT_MOST else f"above {SAVE_AT_MOST}"
    print(f"  ratio          SAVE {ours / real:8.2f} ({good})", flush=True)


def show_pause(server: str, pause: Pause) -> None:
    """Print a line, with a verdict where the server is ours and something was written."""
    verdict = ""
    if server == "headrace" and pause.name != "nothing":
        good = pause.worst_ms <= WAIT_AT_MOST_MS and pause.growth <= GROWTH_AT_MOST
        verdict = "  ok" if good else f"  above {WAIT_AT_MOST_MS:.0f} ms or {GROWTH_AT_MOST:.0%}"
    print(
        f"  {server:<14} {pause.name:<26} {pause.seconds:7.2f} s  waits: median "
        f"{pause.median_ms:6.2f} ms, p99.9 {pause.p999_ms:6.2f} ms, worst {pause.worst_ms:6.2f} ms"
        f"  memory {pause.growth:+.1%}{verdict}",
        flush=True,
    )


def main() -> None:
    """Measure every kind of data that was asked for."""
    names = ("text", "pending", "keys")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", action="append", choices=names)
    parser.add_argument("--count", type=int, default=0, help="of entries or keys")
    parser.add_argument("--rounds", type=int, default=5, help="of SAVE")
    chosen = parser.parse_args()
    if shutil.which("redis-server") is None:
        raise SystemExit("redis-server is needed to compare with")
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as folder:
        for data in DATA:
            if data.name in (chosen.data or names):
                measure(data, chosen.count or data.many, chosen.rounds, Path(folder))


if __name__ == "__main__":
    main()
