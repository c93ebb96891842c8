"""What durability costs, beside redis-server on this machine, in the same run.

``policies``: appends under each fsync policy, for 1, 50 and 500 clients, one command and 16 in
flight for each. ``replay``: how fast the commands of an append-only file are run again at start.
``snapshots`` and ``loading`` are programs of their own, ``bench.durability_snapshots`` and
``bench.durability_loading``, which are run as they are.

Run with ``make bench-durability``, options in ``ARGS``. Servers take turns, round after round, and
medians are shown. Mind the machine: with a disk that others keep busy, or fewer cores than two, the
figures of ``always`` say little.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from tqdm import tqdm

from bench.durability_loading import Server, request
from bench.load import Load
from bench.machine import facts
from bench.parts import run_durability
from bench.peers import OURS, Peer, ServerError, divide_cores, ours
from bench.results import Results, middle
from bench.session import Plan, Session, say
from bench.suite import names, numbers
from bench.workloads import named

REDIS: Final = "redis-server"
PARTS: Final = ("policies", "replay", "snapshots", "loading")
LEAST_OF_REDIS: Final = 0.9  # of its throughput under always
LEAST_OF_OFF: Final = 0.85  # of our own throughput without a file, under everysec
LEAST_OF_REPLAY: Final = 0.7
INCR: Final = "appendonly.aof.1.incr.aof"
MANIFEST: Final = "appendonly.aof.manifest"
BATCH: Final = 10_000
START_MS: Final = 1_763_693_000_000


class Row(NamedTuple):
    """A line of the table: one figure of both servers."""

    title: str
    unit: str
    ours: float
    redis: float
    beside: str = ""  # what it is measured by, in words, and whether that is met

    @property
    def ratio(self) -> float:
        """Ours of Redis's."""
        return self.ours / self.redis if self.redis else 0.0


# Policies


def measure_policies(options: argparse.Namespace, peers: tuple[Peer, ...]) -> list[Row]:
    """Throughput of XADD under each policy."""
    plan = Plan(
        peers=peers,
        workloads=(named("xadd"),),
        clients=tuple(options.clients),
        depths=tuple(options.depth),
        rounds=options.rounds,
        seconds=options.seconds,
        folder=options.folder,
    )
    cores = divide_cores()
    results = Results(servers={peer.name: "" for peer in peers}, rivals=[REDIS])
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores.load)  # this process too keeps away from the servers
    try:
        with Load(cores.load) as load:
            run_durability(Session(plan, cores, load, results))
    finally:
        os.sched_setaffinity(0, before)
    return list(policy_rows(results))


def policy_rows(results: Results) -> Iterator[Row]:
    """A line for each policy and shape."""
    per_s: dict[str, dict[str, float]] = {}
    for cell in results.cells:
        if cell.samples:
            per_s.setdefault(cell.variant, {})[cell.server] = middle(cell.samples).per_s
    for variant, found in per_s.items():
        mine, theirs = found.get(OURS, 0.0), found.get(REDIS, 0.0)
        policy, _, shape = variant.partition(", ")
        beside = ""
        if policy == "AOF always" and theirs:
            beside = verdict("of Redis's", mine / theirs, LEAST_OF_REDIS)
        if policy == "AOF everysec":
            off = per_s.get(f"AOF off, {shape}", {}).get(OURS, 0.0)
            if off:
                beside = verdict("of AOF off", mine / off, LEAST_OF_OFF)
        yield Row(variant, "commands/s", mine, theirs, beside)


def verdict(what: str, share: float, least: float) -> str:
    """Return what a figure comes to, and whether that is enough."""
    return f"{share:.2f} {what} ({'ok' if share >= least else 'below'} {least})"


# Replay


def appended(number: int) -> Iterator[bytes]:
    """An entry of two fields."""
    fields = (b"f1", b"value:%07d" % number, b"f2", b"other-%d" % (number % 1000))
    yield request(b"XADD", b"s", entry_id(number), *fields)


def worked_on(number: int) -> Iterator[bytes]:
    """An entry that a group is given, and acknowledges."""
    name = entry_id(number)
    yield request(b"XADD", b"s", name, b"job", b"%d" % number)
    words = (b"TIME", b"%d" % (START_MS + number), b"RETRYCOUNT", b"1", b"FORCE", b"JUSTID")
    before = entry_id(number - 1) if number else b"0-0"
    yield request(b"MULTI")
    yield request(b"XCLAIM", b"s", b"g", b"c", b"0", name, *words, b"LASTID", before)
    yield request(b"XGROUP", b"SETID", b"s", b"g", name, b"ENTRIESREAD", b"%d" % (number + 1))
    yield request(b"EXEC")
    yield request(b"XACK", b"s", b"g", name)


def set_again(number: int) -> Iterator[bytes]:
    """One of a hundred thousand strings."""
    yield request(b"SET", b"key:%d" % (number % 100_000), b"value:%d" % number)


def entry_id(number: int) -> bytes:
    """Ten entries in each millisecond."""
    return b"%d-%d" % (START_MS + number // 10, number % 10)


HISTORIES: Final[dict[str, Callable[[int], Iterator[bytes]]]] = {
    "appends": appended,
    "group work": worked_on,
    "strings": set_again,
}


def write_history(folder: Path, name: str, count: int) -> int:
    """An append-only folder with so many commands, or a few more; how many."""
    folder = folder / "appendonlydir"
    folder.mkdir(parents=True)
    (folder / MANIFEST).write_text(f"file {INCR} seq 1 type i\n")
    written, number = 0, 0
    batch = [request(b"SELECT", b"0"), request(b"XGROUP", b"CREATE", b"s", b"g", b"0", b"MKSTREAM")]
    with (folder / INCR).open("wb") as file:
        while written < count:
            batch += HISTORIES[name](number)
            number += 1
            if len(batch) >= BATCH or written + len(batch) >= count:
                file.write(b"".join(batch))
                written += len(batch)
                batch.clear()
    return written


def measure_replay(options: argparse.Namespace, peers: tuple[Peer, ...]) -> list[Row]:
    """Commands of a file that are run again at start, per second."""
    rows = []
    runs = len(HISTORIES) * options.rounds * len(peers)
    bar = tqdm(total=runs, unit="start", leave=False, disable=None)  # none without a terminal
    with bar, tempfile.TemporaryDirectory(prefix="headrace-bench-", dir=options.folder) as place:
        for name in HISTORIES:
            bar.set_description(f"replay: {name}")
            servers = []
            count = 0
            for peer in peers:
                folder = Path(place) / f"{name}-{peer.name}"
                count = write_history(folder, name, options.commands)
                command = [*peer.command, "--appendonly", "yes", "--save", ""]
                command += ["--auto-aof-rewrite-percentage", "0"]
                servers.append(Server(peer.name, command, folder))
            spent: dict[str, list[float]] = {peer.name: [] for peer in peers}
            for _ in range(options.rounds):
                for server in servers:
                    try:
                        spent[server.name].append(server.start().load_s)
                    finally:
                        server.stop()
                    bar.update()
            mine, theirs = (count / median(spent[peer.name]) for peer in peers)
            beside = verdict("of Redis's", mine / theirs, LEAST_OF_REPLAY)
            rows.append(Row(f"replay, {name}", "commands/s", mine, theirs, beside))
            say(line(rows[-1]))
    return rows


# Programs of their own


def run_program(name: str, arguments: Sequence[str]) -> None:
    """Run ``bench.<name>``, if it is there."""
    if importlib.util.find_spec(f"bench.{name}") is None:
        say(f"bench.{name} is not there: left out")
        return
    say(f"bench.{name}")
    subprocess.run([sys.executable, "-m", f"bench.{name}", *arguments], check=True)


# Reports


def line(row: Row) -> str:
    """A row as text."""
    figures = f"{row.ours:>12,.0f} {row.redis:>14,.0f} {row.ratio:>7.2f}"
    return f"{row.title:<36} {figures}  {row.beside}"


def table(rows: Sequence[Row]) -> str:
    """All rows, under a heading."""
    head = f"{'':<36} {'headrace':>12} {REDIS:>14} {'ratio':>7}"
    return "\n".join([head, *(line(row) for row in rows)])


def draw(rows: Sequence[Row], path: Path) -> None:
    """The ratios as bars, where matplotlib is there to draw them."""
    if importlib.util.find_spec("matplotlib") is None:
        say("matplotlib is not there: no picture")
        return
    matplotlib = importlib.import_module("matplotlib")
    matplotlib.use("Agg")
    pyplot = importlib.import_module("matplotlib.pyplot")
    canvas, axes = pyplot.subplots(figsize=(8, 1 + 0.3 * len(rows)))
    titles = [row.title for row in reversed(rows)]
    ratios = [row.ratio for row in reversed(rows)]
    axes.barh(titles, ratios, color=["#2a7f62" if ratio >= 1 else "#c8553d" for ratio in ratios])
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xlabel("headrace / redis-server")
    canvas.savefig(path, dpi=110, bbox_inches="tight")
    say(f"wrote {path}")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="make bench-durability ARGS=...", description=__doc__)
    made.add_argument(
        "--parts", type=names, default=list(PARTS), metavar="PART,...",
        help=f"of {', '.join(PARTS)}; default all",
    )  # fmt: skip
    made.add_argument("--rounds", type=int, default=5, metavar="N", help="default 5")
    made.add_argument(
        "--seconds", type=float, default=2.0, metavar="S", help="of one run of a policy; default 2"
    )
    made.add_argument(
        "--clients", type=numbers, default=[1, 50, 500], metavar="N,...", help="default 1,50,500"
    )
    made.add_argument(
        "--depth", type=numbers, default=[1, 16], metavar="N,...", help="default 1,16"
    )
    made.add_argument(
        "--commands", type=int, default=1_000_000, metavar="N",
        help="in the file that is replayed; default 1000000",
    )  # fmt: skip
    made.add_argument("--folder", type=Path, help="where servers keep files; default $TMPDIR")
    made.add_argument("--ours", default="", metavar="COMMAND", help="our server")
    made.add_argument("--plot", type=Path, metavar="FILE", help="draw the ratios into a PNG")
    return made


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is asked for, and show it."""
    options = parser().parse_args(arguments)
    for part in options.parts:
        if part not in PARTS:
            raise SystemExit(f"part {part!r} is none of {', '.join(PARTS)}")
    program = shutil.which(REDIS)
    if program is None:
        raise SystemExit(f"{REDIS} is needed to compare with")
    peers = (ours(options.ours), Peer(REDIS, (program,)))
    for name, value in facts(options.folder).items():
        say(f"{name}: {value}")
    rows: list[Row] = []
    try:
        if "policies" in options.parts:
            rows += measure_policies(options, peers)
        if "replay" in options.parts:
            rows += measure_replay(options, peers)
    except ServerError as error:
        raise SystemExit(str(error)) from None
    if rows:
        sys.stdout.write(table(rows) + "\n")
        sys.stdout.flush()
        if options.plot is not None:
            draw(rows, options.plot)
    for part in ("snapshots", "loading"):
        if part in options.parts:
            run_program(f"durability_{part}", [])


if __name__ == "__main__":
    main()
