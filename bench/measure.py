"""One run of one workload against one server, from preparing to a sample."""

from __future__ import annotations

import time
from typing import Final, NamedTuple

from bench.clients import Task
from bench.load import Load, Outcome
from bench.machine import stolen_s
from bench.peers import CpuTime, Server, ServerError
from bench.results import Sample, percentile
from bench.workloads import Call, Workload

FEWEST_LAPS: Final = 6  # in one run, if they are short; more where not much lies between them
MOST_TIMES: Final = 3.0  # of the planned time, that a run may take with what lies between laps
SLOW_DIVISOR: Final = 50  # a slow peer gets so many times fewer entries prepared
FEWEST_ENTRIES: Final = 2_000  # but not fewer than that
WARM_UP_S: Final = 0.2
WARM_UP_SHARE: Final = 0.1  # of a run, when that is less


class Shape(NamedTuple):
    """How the load is spread."""

    clients: int
    depth: int

    def words(self, workload: Workload) -> str:
        """As it stands in a report."""
        if workload.loop.is_fan_out:
            return f"fan-out, {self.depth} deep"
        return f"{self.clients} client{'s' * (self.clients > 1)}, {self.depth} deep"


class Missing(Exception):
    """This workload cannot be measured with this server; the text says why."""


class Prepared:
    """A workload with what it needs, set up on one server.

    Args:
        divisor: how many times fewer entries than the workload names, for a short run.
        keep: leave what the server holds as it is.

    Raises: Missing.
    """

    def __init__(
        self, server: Server, workload: Workload, divisor: int = 1, *, keep: bool = False
    ) -> None:
        self.server = server
        self.workload = workload
        if server.peer.is_slow:
            divisor *= SLOW_DIVISOR
        self.entries = max(workload.entries // divisor, min(FEWEST_ENTRIES, workload.entries))
        try:
            if not keep:
                server.control.call("FLUSHALL")
            workload.setup(server.control, self.entries)
            workload.reset(server.control, self.entries)
            self.sample = self._ask_once()
        except (OSError, ServerError) as error:
            server.hang_up()  # whatever was still on its way is not to be taken for later replies
            raise Missing(str(error)) from None

    def _ask_once(self) -> bytes:
        workload = self.workload
        request = workload.request(Call(0, 0, self.entries))
        return self.server.control.probe(request, workload.replies)

    def fits(self, shape: Shape) -> bool:
        """Return whether one lap has a batch for every client."""
        return not self.workload.uses or (
            self.workload.lap(self.entries) >= shape.clients * shape.depth
        )

    def run(self, load: Load, shape: Shape, seconds: float, rate_per_s: float = 0.0) -> Sample:
        """Measure for about so long, or for as many laps as are allowed.

        Raises: ServerError when the server gave wrong replies or did not do what it was told.
        """
        server, workload = self.server, self.workload
        outcomes: list[Outcome] = []
        used: list[CpuTime] = []
        left_s = seconds
        taken_s = 0.0
        started_s = time.monotonic()
        while left_s > seconds * 0.1:
            if len(outcomes) >= FEWEST_LAPS and time.monotonic() - started_s > MOST_TIMES * seconds:
                break
            workload.reset(server.control, self.entries)
            server.settle()
            task = Task(
                port=server.port,
                workload=workload,
                sample=self.sample,
                entries=self.entries,
                clients=shape.clients,
                depth=shape.depth,
                seconds=left_s,
                rate_per_s=rate_per_s,
            )
            load.prepare(task)
            before, stolen_before_s = server.cpu_time(), stolen_s()
            load.go()
            outcome = load.finish()
            taken_s += stolen_s() - stolen_before_s
            used.append(minus(server.cpu_time(), before))
            outcomes.append(outcome)
            workload.check(server.control, outcome.requests, self.entries)
            left_s -= outcome.elapsed_s
        return sample_of(outcomes, used, taken_s)

    def warm_up(self, load: Load, shape: Shape, seconds: float) -> None:
        """Run for a moment; what takes long to prepare is warm from that."""
        if not self.workload.uses:
            self.run(load, shape, min(seconds * WARM_UP_SHARE, WARM_UP_S))


def minus(after: CpuTime, before: CpuTime) -> CpuTime:
    """Return what was used in between."""
    return CpuTime(
        after.total_s - before.total_s,
        after.user_ticks - before.user_ticks,
        after.system_ticks - before.system_ticks,
    )


def per_unit(used: CpuTime, units: int) -> tuple[float, float]:
    """Microseconds outside of the kernel and inside, for each unit."""
    ticks = used.user_ticks + used.system_ticks
    # A run too short for a tick: nothing is known of the share, so all counts as the server's own.
    user_share = used.user_ticks / ticks if ticks else 1.0
    cpu_us = used.total_s / units * 1e6
    return cpu_us * user_share, cpu_us * (1.0 - user_share)


def sample_of(outcomes: list[Outcome], used: list[CpuTime], taken_s: float) -> Sample:
    """The laps of one run as one sample; other machines took so much of a core meanwhile."""
    units = sum(outcome.units for outcome in outcomes)
    elapsed_s = sum(outcome.elapsed_s for outcome in outcomes)
    latencies_ns = sorted([ns for outcome in outcomes for ns in outcome.latencies_ns])
    if not units or not latencies_ns:
        raise ServerError("nothing was answered")
    total = CpuTime(
        sum(time.total_s for time in used),
        sum(time.user_ticks for time in used),
        sum(time.system_ticks for time in used),
    )
    user_us, system_us = per_unit(total, units)
    return Sample(
        per_s=units / elapsed_s,
        user_us=user_us,
        system_us=system_us,
        p50_us=percentile(latencies_ns, 0.5) / 1e3,
        p99_us=percentile(latencies_ns, 0.99) / 1e3,
        p999_us=percentile(latencies_ns, 0.999) / 1e3,
        max_us=latencies_ns[-1] / 1e3,
        server_busy=total.total_s / elapsed_s,
        load_busy=max(outcome.busiest for outcome in outcomes),
        stolen=taken_s / elapsed_s,
    )
