"""The parts of the suite that send commands: all workloads, the append-only file, half load, and
redis-benchmark as a second opinion."""

from __future__ import annotations

import contextlib
import csv
import resource
import shutil
import subprocess
import time
from functools import partial
from typing import Final

from bench.machine import stolen_s
from bench.measure import Missing, Shape, minus, per_unit
from bench.peers import Server, ServerError, pinned
from bench.ratios import AOF, DURABLE
from bench.results import Cell, Sample
from bench.session import Entrant, Plan, Session, calmest, say
from bench.workloads import FIELD, STREAM, VALUE, Workload

HALF_LOAD: Final = Shape(50, 1)
HALF_LOAD_RUNS: Final = 5  # times as long as others, so that a tail is of some ten thousand
DURABLE_ROUNDS: Final = 5  # at most
BENCHMARK_PROBE: Final = 5_000  # commands that tell how many make a run
BENCHMARK_TIMEOUT_S: Final = 300

# What redis-benchmark can say, in its words.
BENCHMARK_WORDS: Final[dict[str, tuple[str | bytes, ...]]] = {
    "ping": ("PING",),
    "set": ("SET", "key", VALUE),
    "get": ("GET", "key"),
    "xadd": ("XADD", STREAM, "*", FIELD, VALUE),
    "xadd-maxlen": ("XADD", STREAM, "MAXLEN", "~", "1000", "*", FIELD, VALUE),
    "xrevrange-10": ("XREVRANGE", STREAM, "+", "-", "COUNT", "10"),
}


def run_commands(session: Session) -> None:
    """Every workload in every shape, without an append-only file."""
    plan = session.plan
    runs = plan.races() * plan.rounds * len(plan.peers)
    with session.part("Commands", runs), session.servers() as servers:
        entrants = [Entrant(server) for server in servers]
        for workload in plan.workloads:
            if session.is_out_of_time():
                session.results.failures.append(f"{workload.title}: there was no time left")
                continue
            prepared = session.prepare(entrants, workload)
            for shape in plan.shapes(workload):
                session.compare("commands", prepared, workload, shape)
            session.save()


def durable_rounds(plan: Plan) -> int:
    """Return how many rounds it takes with an append-only file."""
    return min(plan.rounds, DURABLE_ROUNDS)


def run_durability(session: Session) -> None:
    """Every workload in every shape with an append-only file, under each fsync policy."""
    plan = session.plan
    peers = [peer for peer in plan.peers if not peer.is_slow]
    rounds = durable_rounds(plan)
    runs = plan.races() * rounds * len(peers) * len(DURABLE)
    with session.part("Append-only file", runs):
        for workload in plan.workloads:
            # For each of them anew: the files of all would be more than most disks have room for.
            with contextlib.ExitStack() as stack:
                entrants = []
                for policy in DURABLE:
                    options = ("--appendonly", "yes", "--appendfsync", policy)
                    for server in stack.enter_context(session.servers(*options, slow=False)):
                        entrants.append(Entrant(server, f"{AOF}{policy}"))
                prepared = session.prepare(entrants, workload)
                for shape in plan.shapes(workload):
                    session.compare("durability", prepared, workload, shape, rounds=rounds)
            session.save()


def run_half_load(session: Session) -> None:
    """Latency while requests come at half the rate that the slowest real server can take."""
    plan = session.plan
    workloads = [workload for workload in plan.workloads if workload.is_paced]
    peers = [peer for peer in plan.peers if not peer.is_slow]
    runs = len(workloads) * len(peers) * plan.rounds
    with session.part("Half load", runs), session.servers(slow=False) as servers:
        entrants = [Entrant(server) for server in servers]
        for workload in workloads:
            prepared = session.prepare(entrants, workload)
            peaks = []
            for _, ready in prepared:
                if not isinstance(ready, Missing):
                    session.step(f"{workload.title}: peak of {ready.server.name}")
                    peaks.append(ready.run(session.load, HALF_LOAD, plan.seconds).per_s)
            if not peaks:
                continue
            # The same rate for all: half the lowest peak, rounded to what can be quoted.
            rate_per_s = max(round(min(peaks) / 2, -2), 100.0)
            session.compare(
                "half-load",
                prepared,
                workload,
                HALF_LOAD,
                variant=f"{HALF_LOAD.clients} clients, {rate_per_s:,.0f}/s",
                seconds=plan.seconds * HALF_LOAD_RUNS,
                rate_per_s=rate_per_s,
            )


def run_redis_benchmark(session: Session) -> None:
    """The workloads that redis-benchmark can say, said by it."""
    plan = session.plan
    program = shutil.which("redis-benchmark")
    workloads = [workload for workload in plan.workloads if workload.name in BENCHMARK_WORDS]
    if program is None:
        say("redis-benchmark is not on the PATH: no second opinion")
        return
    peers = [peer for peer in plan.peers if not peer.is_slow]
    shapes = len(plan.clients) * len(plan.depths)
    runs = len(workloads) * shapes * len(peers) * plan.rounds
    with session.part("redis-benchmark", runs), session.servers(slow=False) as servers:
        for workload in workloads:
            for shape in plan.shapes(workload):
                second_opinion(session, program, servers, workload, shape)


def second_opinion(
    session: Session, program: str, servers: list[Server], workload: Workload, shape: Shape
) -> None:
    """Rounds of redis-benchmark."""
    plan = session.plan
    words = shape.words(workload)
    cells = [
        Cell("redis-benchmark", workload.name, workload.title, workload.unit, words, server.name)
        for server in servers
    ]
    counts = []
    for server in servers:
        server.control.call("FLUSHALL")
        workload.setup(server.control, workload.entries)
        probe = redis_benchmark(session, program, server, workload, shape, BENCHMARK_PROBE)
        counts.append(max(1_000, int(probe.per_s * plan.seconds)))
    for _ in range(plan.rounds):
        for server, cell, count in zip(servers, cells, counts, strict=True):
            workload.reset(server.control, workload.entries)
            run = partial(redis_benchmark, session, program, server, workload, shape, count)
            cell.samples.append(calmest(run))
            session.step(f"redis-benchmark: {workload.title}, {words}", 1)
    session.results.cells += cells


def redis_benchmark(
    session: Session, program: str, server: Server, workload: Workload, shape: Shape, count: int
) -> Sample:
    """One run. It knows no p99.9: that is 0 here.

    Raises: ServerError when it fails.
    """
    count += -count % shape.depth  # a batch too long, and it may take its own end for the server's
    options = f"-p {server.port} -c {shape.clients} -P {shape.depth} -n {count} --csv".split()
    before, stolen_before_s, started_s = server.cpu_time(), stolen_s(), time.perf_counter()
    load_before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with pinned(session.cores.load):
        done = subprocess.run(
            [program, *options, *BENCHMARK_WORDS[workload.name]],
            capture_output=True,
            text=True,
            timeout=BENCHMARK_TIMEOUT_S,
            check=False,
        )
    elapsed_s = time.perf_counter() - started_s
    taken_s = stolen_s() - stolen_before_s
    used = minus(server.cpu_time(), before)
    load_after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise ServerError(f"redis-benchmark: {done.stderr or done.stdout}")
    said = next(csv.DictReader(done.stdout.splitlines()), {})
    if "rps" not in said:
        raise ServerError(f"redis-benchmark 6.2 or later is needed, this one said {done.stdout}")
    load_s = load_after.ru_utime + load_after.ru_stime - load_before.ru_utime - load_before.ru_stime
    user_us, system_us = per_unit(used, count)
    return Sample(
        per_s=float(said["rps"]),
        user_us=user_us,
        system_us=system_us,
        p50_us=float(said["p50_latency_ms"]) * 1e3,
        p99_us=float(said["p99_latency_ms"]) * 1e3,
        p999_us=0.0,
        max_us=float(said["max_latency_ms"]) * 1e3,
        server_busy=used.total_s / elapsed_s,
        load_busy=load_s / elapsed_s,
        stolen=taken_s / elapsed_s,
    )
