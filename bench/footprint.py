"""The parts of the suite that are no runs: memory, the start, and the longest pause."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import random
import socket
import subprocess
import time
from array import array
from collections.abc import Callable, Iterator
from dataclasses import replace
from multiprocessing.connection import Connection as Pipe
from typing import Final, NamedTuple, Self

from bench.clients import Task
from bench.load import Load
from bench.machine import stolen_s
from bench.peers import BATCH, Peer, Server, ServerError, encode, pinned
from bench.results import SHARE, Figure, percentile
from bench.session import Session
from bench.workloads import (
    FIELD,
    STREAM,
    deliver,
    fill,
    named,
    new_group,
)

MIB: Final = 1 << 20

# Memory


class EntryKind(NamedTuple):
    """What the entries of a stream look like."""

    fields: int
    value_bytes: int

    def __str__(self) -> str:
        """As it stands in a report."""
        return f"{self.fields} field{'s' * (self.fields > 1)} of {self.value_bytes} bytes"


ENTRY_KINDS: Final = tuple(EntryKind(fields, size) for size in (8, 64, 512) for fields in (1, 5))
# What makes a key with a small value; behind its name, words of question marks are drawn by chance.
SMALL_KEYS: Final = {
    "a string of 10 bytes": ("SET", "??????????"),
    "a hash of 5 short fields": ("HSET", *[word for n in range(5) for word in (f"f{n}", "?????")]),
    "a list of 5 times 10 bytes": ("RPUSH", *["??????????"] * 5),
    "a set of 5 times 10 bytes": ("SADD", *["??????????"] * 5),
    "a sorted set of 5": ("ZADD", *[word for n in range(5) for word in (str(n), "?????")]),
}
KEYS: Final = 500_000
KEPT_S: Final = 3.0  # after which a server has put new keys where they stay
DATA_BYTES: Final = 256 * MIB  # values written for one measurement, about
MOST_ENTRIES: Final = 1_000_000
PENDING: Final = 1_000_000
CONSUMERS: Final = 10


def run_memory(session: Session) -> None:
    """Resident memory per entry, per pending entry and per key with a small value."""
    peers = [peer for peer in session.plan.peers if not peer.is_slow]
    with session.part("Memory", (len(ENTRY_KINDS) + 1 + len(SMALL_KEYS)) * len(peers)):
        for kind in ENTRY_KINDS:
            for peer in peers:
                title = f"entry, {kind}"
                session.step(f"memory per {title}: {peer.name}")
                with session.server(peer) as server:
                    value = bytes_per_entry(server, kind, session.plan.divisor)
                session.add(Figure("memory", title, "bytes", peer.name, (value,)))
                session.step(f"memory per {title}", 1)
        for peer in peers:
            session.step(f"memory per pending entry: {peer.name}")
            with session.server(peer) as server:
                value = bytes_per_pending(server, PENDING // session.plan.divisor)
            session.add(Figure("memory", "pending entry", "bytes", peer.name, (value,)))
            session.step("memory per pending entry", 1)
        for title in SMALL_KEYS:
            for peer in peers:
                session.step(f"memory per key with {title}: {peer.name}")
                with session.server(peer) as server:
                    value = bytes_per_key(server, title, KEYS // session.plan.divisor)
                session.add(Figure("memory", f"key with {title}", "bytes", peer.name, (value,)))
                session.step(f"memory per key with {title}", 1)


def bytes_per_entry(server: Server, kind: EntryKind, divisor: int) -> float:
    """Fill one stream; what the process grew by."""
    count = min(DATA_BYTES // (kind.fields * kind.value_bytes), MOST_ENTRIES) // divisor
    # What appending needs once (buffers, requests at work) is not the price of an entry.
    server.control.send_all(entry_chunks(kind, min(BATCH, count)))
    server.control.call("DEL", STREAM)
    server.settle()
    before = server.resident_bytes()
    server.control.send_all(entry_chunks(kind, count))
    grown = server.resident_bytes() - before
    if server.control.number("XLEN", STREAM) != count:
        raise ServerError("not all entries are there")
    return grown / count


def entry_chunks(kind: EntryKind, count: int) -> Iterator[tuple[bytes, int]]:
    """Requests that append so many entries, whose values have nothing in common."""
    words: list[str | bytes | int] = ["XADD", STREAM, "*"]
    mark = b"?" * kind.value_bytes
    for number in range(kind.fields):
        words += [b"field%d" % number, mark]
    pieces = encode(*words).split(mark)
    drawn = random.Random(kind.value_bytes)
    made = 0
    while made < count:
        size = min(BATCH, count - made)
        requests = []
        for _ in range(size):
            # A letter first, so that no server takes the value for an integer.
            text = "v" + drawn.randbytes(kind.value_bytes // 2).hex()
            requests.append(text[: kind.value_bytes].encode().join(pieces))
        yield b"".join(requests), size
        made += size


def bytes_per_pending(server: Server, count: int) -> float:
    """Have a group's consumers read a stream; what the process grew by."""
    fill(server.control, 0, count)
    new_group(server.control, count)
    # What reading itself needs once (buffers, blocks unpacked) is not the price of an entry.
    server.control.call("XRANGE", STREAM, "-", "+", "COUNT", BATCH)
    before = server.resident_bytes()
    for number in range(CONSUMERS):
        deliver(server.control, count // CONSUMERS, f"consumer-{number}")
    return (server.resident_bytes() - before) / count


def bytes_per_key(server: Server, title: str, count: int) -> float:
    """Make keys with one of ``SMALL_KEYS``; what the process grew by."""
    server.control.send_all(key_chunks(title, min(BATCH, count)))
    server.control.call("FLUSHALL")
    server.settle()
    before = server.resident_bytes()
    server.control.send_all(key_chunks(title, count))
    time.sleep(KEPT_S)
    return (server.resident_bytes() - before) / count


def key_chunks(title: str, count: int) -> Iterator[tuple[bytes, int]]:
    """Requests that make so many keys, whose values have nothing in common."""
    name, *words = SMALL_KEYS[title]
    drawn = random.Random(count)
    for start in range(0, count, BATCH):
        numbers = range(start, min(start + BATCH, count))
        requests = []
        for number in numbers:
            made = [
                f"v{drawn.getrandbits(60):015x}"[: len(word)] if word[0] == "?" else word
                for word in words
            ]
            requests.append(encode(name, f"key:{number:08d}", *made))
        yield b"".join(requests), len(numbers)


# The start


def run_start(session: Session) -> None:
    """From the start of the process to its first answer, and what it takes while empty."""
    plan = session.plan
    with session.part("Start", plan.rounds * len(plan.peers)):
        figures: dict[tuple[str, str, str], list[float]] = {}
        for _ in range(plan.rounds):
            for peer in plan.peers:
                session.step(f"start: {peer.name}")
                with session.server(peer) as server:
                    key = ("start to first answer", "ms", peer.name)
                    figures.setdefault(key, []).append(server.start_s * 1e3)
                    key = ("memory when empty", "MiB", peer.name)
                    figures.setdefault(key, []).append(server.resident_bytes() / MIB)
                if peer.is_redis_like:
                    key = ("--version", "ms", peer.name)
                    figures.setdefault(key, []).append(time_version(peer, session) * 1e3)
                session.step("start", 1)
        for (title, unit, name), values in figures.items():
            session.add(Figure("start", title, unit, name, tuple(values)))


def time_version(peer: Peer, session: Session) -> float:
    """Return how long the program takes to tell its version, in seconds."""
    with pinned(session.cores.server):
        started_s = time.perf_counter()
        subprocess.run([*peer.command, "--version"], stdout=subprocess.DEVNULL, check=True)
        return time.perf_counter() - started_s


# Pauses

PROBES_PER_S: Final = 1_000
LOADER_NICENESS: Final = 10
LOADER_CLIENTS: Final = 4
LOADER_DEPTH: Final = 64
LOADER_TIMEOUT_S: Final = 600.0
REWRITE_LOOK_S: Final = 0.1
SETTLE_S: Final = 1.0


def run_pauses(session: Session) -> None:
    """What a client that asks a thousand times a second sees of operations on a great stream.

    The stream is filled, trimmed to its half, written anew into the append-only file and deleted.
    All cores serve all processes here: a rewrite may use another one than the server does.
    """
    plan = session.plan
    peers = [peer for peer in plan.peers if not peer.is_slow]
    options = ("--appendonly", "yes", "--appendfsync", "everysec")
    with session.part("Pauses", len(peers) * 4):
        for peer in peers:
            with session.server(peer, *options, pin=False) as server:
                for title, late_ns, stolen in pauses(session, server, plan.pause_entries):
                    for what, unit, value in (
                        ("longest", "ms", late_ns[-1] / 1e6),
                        ("p99.9", "ms", percentile(late_ns, 0.999) / 1e6),
                        ("taken by other machines", SHARE, stolen * 100),
                    ):
                        name = f"{title}, {what}"
                        session.add(Figure("pauses", name, unit, peer.name, (value,)))
                    session.step("pauses", 1)


def pauses(
    session: Session, server: Server, entries: int
) -> Iterator[tuple[str, list[int], float]]:
    """Each operation, with how late the answers came while it ran, in order of size.

    And with the share of the time that other machines took meanwhile: what waits for them is late
    as well.
    """
    with Prober(server.port) as prober:
        operations: tuple[tuple[str, Callable[[], None]], ...] = (
            ("filling", lambda: fill_by_load(session, server, entries)),
            ("trimming", lambda: discard(server, "XTRIM", STREAM, "MAXLEN", entries // 2)),
            ("rewriting", lambda: rewrite(server)),
            ("deleting", lambda: discard(server, "DEL", STREAM)),
        )
        for title, operation in operations:
            session.step(f"pauses: {server.name}, {title}")
            prober.forget()
            started_s, stolen_before_s = time.perf_counter(), stolen_s()
            operation()
            time.sleep(SETTLE_S)  # freeing memory may go on behind the reply
            taken_s, elapsed_s = stolen_s() - stolen_before_s, time.perf_counter() - started_s
            yield title, prober.seen(), taken_s / elapsed_s


def fill_by_load(session: Session, server: Server, entries: int) -> None:
    """Fill a stream from a process that gives way to the prober."""
    workload = replace(named("xadd"), most=entries)
    with Load(session.cores.load, processes=1, niceness=LOADER_NICENESS) as load:
        sample = server.control.probe(encode("XADD", STREAM, "*", FIELD, b"x" * 8))
        task = Task(
            port=server.port,
            workload=workload,
            sample=sample,
            entries=0,
            clients=LOADER_CLIENTS,
            depth=LOADER_DEPTH,
            seconds=LOADER_TIMEOUT_S,
        )
        load.prepare(task)
        load.go()
        load.finish()


def discard(server: Server, *words: str | bytes | int) -> None:
    """One command that replies with a number."""
    server.control.number(*words)


def rewrite(server: Server) -> None:
    """Write the append-only file anew, and wait for its end.

    Raises: ServerError when it fails.
    """
    server.control.call("BGREWRITEAOF")
    while True:
        time.sleep(REWRITE_LOOK_S)
        info = server.info("persistence")
        if info["aof_rewrite_in_progress"] == "0" and info["aof_rewrite_scheduled"] == "0":
            break
    if info["aof_last_bgrewrite_status"] != "ok":
        raise ServerError("the rewrite failed")


class Prober:
    """A process that sends PING at a steady rate and notes how late the answers are."""

    def __init__(self, port: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=probe, args=(port, theirs), daemon=True)
        self._process.start()
        theirs.close()

    def __enter__(self) -> Self:
        self._pipe.recv()  # it has begun
        return self

    def __exit__(self, *_: object) -> None:
        self._pipe.close()
        self._process.join()

    def seen(self) -> list[int]:
        """Return how late the answers were since the last call: nanoseconds, sorted."""
        self._pipe.send("tell")
        latencies: array[int] = array("q")
        try:
            latencies.frombytes(self._pipe.recv())
        except EOFError:
            raise ServerError("PING was not answered") from None
        return sorted(latencies)

    def forget(self) -> None:
        """Begin anew."""
        self.seen()


def probe(port: int, pipe: Pipe) -> None:
    """The life of the prober's process: until the pipe is closed."""
    gc.disable()
    ping = encode("PING")
    step_ns = 1_000_000_000 // PROBES_PER_S
    latencies: array[int] = array("q")
    with (
        socket.create_connection(("127.0.0.1", port)) as client,
        contextlib.suppress(EOFError, BrokenPipeError, KeyboardInterrupt),
    ):
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        pipe.send("begun")
        due_ns = time.perf_counter_ns()
        while True:
            due_ns += step_ns
            ahead_ns = due_ns - time.perf_counter_ns()
            if ahead_ns > 0:
                time.sleep(ahead_ns / 1e9)
            client.sendall(ping)
            if client.recv(64) != b"+PONG\r\n":
                return
            latencies.append(time.perf_counter_ns() - due_ns)
            if pipe.poll(0):
                pipe.recv()
                pipe.send(latencies.tobytes())
                del latencies[:]
