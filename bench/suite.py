"""Headrace beside its peers: the same load for each server in turn, round after round.

Run with ``make bench``, options in ``ARGS``: ``make bench ARGS="--only xadd,worker --rounds 5"``.
``make bench-quick`` ends within a minute. What is measured, how, and how to read it stands in
docs/performance.md.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NoReturn

from bench import report
from bench.footprint import run_memory, run_pauses, run_start
from bench.load import Load
from bench.machine import facts
from bench.parts import (
    DURABLE_ROUNDS,
    durable_rounds,
    run_commands,
    run_durability,
    run_half_load,
    run_redis_benchmark,
)
from bench.peers import OURS, OURS_PURE, USUAL, Peer, ServerError, divide_cores, found, ours, pure
from bench.results import Results, load
from bench.scale import AXES, run_axis, scale_part
from bench.session import Plan, Session, say
from bench.workloads import WORKLOADS, Workload, named

PARTS: Final[dict[str, Callable[[Session], None]]] = {
    "commands": run_commands,
    "durability": run_durability,
    "half-load": run_half_load,
    "memory": run_memory,
    "start": run_start,
    "pauses": run_pauses,
    "redis-benchmark": run_redis_benchmark,
    **{scale_part(axis): partial(run_axis, axis=axis) for axis in AXES},
}
SCALE_PARTS: Final = [scale_part(axis) for axis in AXES]
QUICK_PARTS: Final = ("commands",)
ROUNDS: Final = 15
QUICK_ROUNDS: Final = 1
RUN_S: Final = 0.1  # a shared machine changes its speed within seconds: rounds are to be shorter
QUICK_RUN_S: Final = 0.2
QUICK_BUDGET_S: Final = 40.0  # a slow machine gets fewer workloads in its minute
RESULTS: Final = "results.json"
ENDED_EARLY: Final = "ended early"
LONGEST_S: Final = 3600
INTERRUPTED: Final = 130  # the exit code, as a shell has it


def names(text: str) -> list[str]:
    """Words between commas, at least one."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words:
        raise argparse.ArgumentTypeError("names, between commas")
    return words


def number(text: str) -> int:
    """A whole number above 0."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"a whole number above 0 and not {text!r}")
    return value


def numbers(text: str) -> list[int]:
    """Numbers between commas, all above 0."""
    return [number(word) for word in names(text)]


def seconds(text: str) -> float:
    """A length of time above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < LONGEST_S:
        raise argparse.ArgumentTypeError(f"seconds, above 0 and below {LONGEST_S}, not {text!r}")
    return value


def folder(text: str) -> Path:
    """A folder that is there."""
    path = Path(text)
    if not path.is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {text}")
    return path


def peer(text: str) -> Peer:
    """``name=command``: a server that takes redis-server's options."""
    name, equals, command = text.partition("=")
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None
    if not (name and equals and words):
        raise argparse.ArgumentTypeError("name=command, such as redis-8=/opt/redis-8/redis-server")
    if name in (OURS, OURS_PURE):
        raise argparse.ArgumentTypeError(f"{name} is our own: see --ours and --pure")
    return Peer(name, tuple(words))


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        prog="make bench ARGS=...",
        description="Measure Headrace and every peer found (redis-server, valkey-server, fakeredis)"
        " and write bench/report.md.",
        epilog="Workloads: " + ", ".join(workload.name for workload in WORKLOADS) + ".",
    )
    what = made.add_argument_group("what is measured")
    what.add_argument("--quick", action="store_true", help="a selection that ends in a minute")
    what.add_argument(
        "--only", type=names, metavar="NAME,...", help="these workloads, see the list below"
    )
    what.add_argument(
        "--parts", type=names, metavar="PART,...", help=f"of {', '.join(PARTS)}; default all"
    )
    what.add_argument(
        "--scale", dest="parts", action="store_const", const=SCALE_PARTS,
        help="the parts that show how cost grows",
    )  # fmt: skip
    what.add_argument(
        "--scale-most", type=number, default=50_000_000, metavar="N", help="the greatest size"
    )
    what.add_argument(
        "--pause-entries", type=number, default=10_000_000, metavar="N",
        help="how many entries the part `pauses` works with",
    )  # fmt: skip
    how = made.add_argument_group("how")
    how.add_argument(
        "--rounds", type=number, metavar="N",
        help=f"default {ROUNDS}, quick {QUICK_ROUNDS};"
        f" with an append-only file {DURABLE_ROUNDS} at most",
    )  # fmt: skip
    how.add_argument(
        "--seconds", type=seconds, metavar="S",
        help=f"of a run; default {RUN_S:g}, quick {QUICK_RUN_S:g}; longer at half load",
    )  # fmt: skip
    how.add_argument("--clients", type=numbers, metavar="N,...", help="default 1,50")
    how.add_argument("--depth", type=numbers, metavar="N,...", help="default 1,16")
    how.add_argument(
        "--divide", type=number, metavar="N", help="prepare so many times fewer entries; quick 5"
    )
    how.add_argument(
        "--folder", type=folder, help="where servers keep files; default $TMPDIR or /tmp"
    )
    who = made.add_argument_group("who takes part")
    who.add_argument(
        "--peer", type=peer, action="append", default=[], metavar="NAME=COMMAND",
        help="one more server that takes redis-server's options; may be repeated",
    )  # fmt: skip
    who.add_argument(
        "--without", action="append", default=[], metavar="NAME", help="leave out; may be repeated"
    )
    who.add_argument(
        "--ours", default="", metavar="COMMAND", help="our server; default the installed one"
    )
    who.add_argument(
        "--pure", nargs="?", const="", metavar="COMMAND",
        help="our server uncompiled as well; default the checkout",
    )  # fmt: skip
    where = made.add_argument_group("where the results go")
    where.add_argument(
        "--output", type=Path, metavar="FOLDER",
        help="for report.md, plots and results.json; default bench/ for the whole suite,"
        " else nothing is written",
    )  # fmt: skip
    where.add_argument(
        "--render", type=Path, action="append", metavar="FILE",
        help="measure nothing: write the report of these results.json, put together",
    )  # fmt: skip
    return made


def chosen_workloads(only: list[str] | None, *, quick: bool) -> tuple[Workload, ...]:
    """Return what is asked for.

    Raises: SystemExit for a name that there is not.
    """
    if only is None:
        return tuple(workload for workload in WORKLOADS if workload.is_quick or not quick)
    try:
        return tuple(named(name) for name in only)
    except KeyError as unknown:
        raise SystemExit(f"no workload is called {unknown}; --help lists them") from None


def check_parts(asked: list[str]) -> None:
    """Raise SystemExit for a part that there is not."""
    for part in asked:
        if part not in PARTS:
            raise SystemExit(f"part {part!r} is none of {', '.join(PARTS)}")


def participants(options: argparse.Namespace) -> tuple[Peer, ...]:
    """Ours first, then those found, then those named, who may take the name of one found.

    Raises: SystemExit for a name that is there twice or not at all.
    """
    try:
        peers = [ours(options.ours)]
        if options.pure is not None:
            peers.append(pure(options.pure))
    except ServerError as error:
        raise SystemExit(str(error)) from None
    named_peers = {peer.name: peer for peer in options.peer}
    if len(named_peers) < len(options.peer):
        raise SystemExit("two of --peer have one name")
    by_name = {peer.name: peer for peer in (*peers, *found())} | named_peers
    for name in options.without:
        if by_name.pop(name, None) is None and name not in USUAL:
            raise SystemExit(f"--without {name}: there is no such peer")
    if not by_name:
        raise SystemExit("nobody takes part")
    return tuple(by_name.values())


def check_participants(session: Session) -> None:
    """Start each of them once: one that cannot run is told before hours have gone by.

    Raises: SystemExit.
    """
    for peer in session.plan.peers:
        try:
            with session.server(peer):
                pass
        except (OSError, ServerError) as error:
            raise SystemExit(f"{peer.name} does not start: {error}") from None


def plan_of(options: argparse.Namespace) -> Plan:
    """The plan that the command line asks for."""
    quick: bool = options.quick
    return Plan(
        peers=participants(options),
        workloads=chosen_workloads(options.only, quick=quick),
        clients=tuple(options.clients or (1, 50)),
        depths=tuple(options.depth or (1, 16)),
        rounds=options.rounds or (QUICK_ROUNDS if quick else ROUNDS),
        seconds=options.seconds or (QUICK_RUN_S if quick else RUN_S),
        divisor=options.divide or (5 if quick else 1),
        budget_s=QUICK_BUDGET_S if quick else 0.0,
        folder=options.folder,
        scale_most=options.scale_most,
        pause_entries=options.pause_entries,
    )


def measure(options: argparse.Namespace) -> Results:
    """Run all that is asked for."""
    started_s = time.monotonic()
    parts: list[str] = options.parts or list(QUICK_PARTS if options.quick else PARTS)
    check_parts(parts)
    plan = plan_of(options)
    cores = divide_cores()
    results = Results(
        facts=facts(plan.folder),
        servers={peer.name: "" for peer in plan.peers},
        rivals=[peer.name for peer in plan.peers if peer.is_rival],
    )
    results.facts["cores"] = f"servers {sorted(cores.server)}, load {sorted(cores.load)}"
    results.facts["runs"] = (
        f"{plan.rounds} rounds of {plan.seconds:g} s each, interleaved;"
        f" {durable_rounds(plan)} with an append-only file"
    )
    for key, value in results.facts.items():
        say(f"{key}: {value}")
    os.sched_setaffinity(0, cores.load)  # this process too keeps away from the servers
    path = None
    if options.output is not None:
        try:
            options.output.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SystemExit(f"--output: {error}") from None
        path = options.output / RESULTS
    with Load(cores.load) as load_processes:
        session = Session(plan, cores, load_processes, results, path)
        check_participants(session)
        for part in parts:
            try:
                PARTS[part](session)
            except (OSError, ServerError) as error:
                # One server that fails must not cost what hours have measured.
                session.leave_out(f"{ended_early(part)}: {error}")
    results.servers = {name: version for name, version in results.servers.items() if version}
    results.facts["duration"] = f"{(time.monotonic() - started_s) / 60:.0f} minutes"
    session.save()
    return results


def ended_early(part: str) -> str:
    """Return how a failure of a whole part begins; another run of that part makes up for it."""
    return f"{part} {ENDED_EARLY}"


def merged(paths: Sequence[Path]) -> Results:
    """Results of several runs as one; of the facts and versions, the first run's count.

    Raises: SystemExit for a file that holds none.
    """
    try:
        first, *others = [load(path) for path in paths]
    except (OSError, ValueError) as error:
        raise SystemExit(f"--render: {error}") from None
    for other in others:
        first.servers = {**other.servers, **first.servers}
        first.rivals = list(dict.fromkeys([*first.rivals, *other.rivals]))
        parts = set(other.parts())
        first.cells = [cell for cell in first.cells if cell.part not in parts] + other.cells
        first.figures = [f for f in first.figures if f.part not in parts] + other.figures
        again = tuple(ended_early(part) for part in parts)
        first.failures = [text for text in first.failures if not text.startswith(again)]
        first.failures += other.failures
    return first


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and report."""
    options = parser().parse_args(arguments)
    is_whole = not (options.quick or options.only or options.parts)
    is_usual = options.output is None and (is_whole or options.render)
    if is_usual:
        options.output = Path(__file__).parent
    try:
        results = merged(options.render) if options.render else measure(options)
    except KeyboardInterrupt:
        say("interrupted" + kept(options))
        raise SystemExit(INTERRUPTED) from None
    failed = [text for text in results.failures if ENDED_EARLY in text]
    if failed and is_usual and not options.render:
        raise SystemExit("no report is written, for a part " + ENDED_EARLY + kept(options))
    if options.output is None:
        sys.stdout.write("\n\n".join(report.sections(results)) + "\n")
    else:
        for path in report.write(results, options.output):
            say(f"wrote {path}")
    if failed:
        raise SystemExit(1)


def kept(options: argparse.Namespace) -> str:
    """Return what can be made of a run that did not come to its end, as the rest of a sentence."""
    if options.output is None or not (options.output / RESULTS).exists():
        return ""
    return f"; --render {options.output / RESULTS} makes a report of what there is"


def end_in_order(number: int, frame: object) -> NoReturn:
    """For signals that would leave servers behind."""
    raise SystemExit(128 + number)


if __name__ == "__main__":
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, end_in_order)
    main()
