"""The benchmark suite: its command line, and small runs of it. No time is asserted."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench import load, measure, peers, results, scale, suite, workloads
from bench.results import Results
from bench.session import Session
from support import build, judges
from support.reports import rows

pytestmark = pytest.mark.once


# The command line


def test_peers_are_named_on_the_command_line() -> None:
    assert suite.peer("redis-8=/opt/my redis --io-threads 4") == peers.Peer(
        "redis-8", ("/opt/my", "redis", "--io-threads", "4")
    )
    options = suite.parser().parse_args(
        ["--peer", "redis-server=/other/redis-server", "--without", "fakeredis", "--ours", "h"]
    )
    found = suite.participants(options)
    assert [(peer.name, peer.command) for peer in found if peer.name != "valkey-server"] == [
        ("headrace", ("h",)),
        ("redis-server", ("/other/redis-server",)),
    ]


@pytest.mark.parametrize(
    "words",
    [["--only", "nothing"], ["--parts", "nothing"], ["--peer", "nothing"]],
)
def test_unknown_words_are_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        suite.main([*words, "--ours", "/nowhere/headrace"])
    assert "nothing" in str(refused.value) or "name=command" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--only ,", "argument --only: names"),
        ("--parts ,", "argument --parts: names"),
        ("--rounds 0", "argument --rounds: a whole number above 0 and not '0'"),
        ("--divide x", "argument --divide: a whole number above 0"),
        ("--clients 1,-1", "argument --clients: a whole number above 0 and not '-1'"),
        ("--seconds nan", "argument --seconds: seconds, above 0"),
        ("--folder /nowhere", "argument --folder: there is no folder /nowhere"),
        ("--peer headrace=redis-server", "headrace is our own"),
        ("--peer a='x", "No closing quotation"),
        ("--peer a=x --peer a=y", "two of --peer have one name"),
        ("--without somebody", "there is no such peer"),
        ("--without headrace --without redis-server --without fakeredis", "nobody takes part"),
        ("--render /nowhere", "--render: [Errno 2]"),
        ("--peer gone=/nowhere/redis-server", "gone does not start: [Errno 2]"),
        ("--peer silent=/bin/true", "silent does not start: silent does not answer"),
    ],
)
def test_what_cannot_be_is_told_at_once(
    words: str,
    told: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in build.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(os, "sched_setaffinity", lambda process, cores: None)
    ours = f"{sys.executable} -P -m headrace"
    with pytest.raises(SystemExit) as refused:
        suite.main(["--quick", "--ours", ours, *words.split()])
    assert told in str(refused.value) + capsys.readouterr().err


def test_a_server_that_a_script_starts_is_refused(tmp_path: Path) -> None:
    """Its time would be that of the script; and what the script has started is ended."""
    script = tmp_path / "script"
    script.write_text(f'#!/bin/sh\n{sys.executable} -P -m headrace "$@"\n')
    script.chmod(0o755)
    with (
        pytest.raises(peers.ServerError, match="start it with exec"),
        peers.Server(peers.Peer("script", (str(script),))),
    ):
        pass


@pytest.mark.parametrize(
    ("words", "rounds", "seconds"),
    [([], 15, 0.1), (["--rounds", "3"], 3, 0.1), (["--quick"], 1, 0.2)],
)
def test_rounds_are_many_and_short(words: list[str], rounds: int, seconds: float) -> None:
    plan = suite.plan_of(suite.parser().parse_args(["--ours", "h", "--only", "xadd,ping", *words]))
    assert (plan.rounds, plan.seconds) == (rounds, seconds)
    assert plan.races() == 2 * 4


def test_every_name_is_used_once() -> None:
    names = [workload.name for workload in workloads.WORKLOADS]
    assert len(names) == len(set(names))
    assert all(workloads.named(name).name == name for name in names)


@pytest.fixture
def _own_cores() -> Iterator[None]:
    """The suite keeps its process away from the servers' core, for good."""
    cores = os.sched_getaffinity(0)
    yield
    os.sched_setaffinity(0, cores)


# Small runs


@pytest.fixture
def _redis_server() -> None:
    """The suite measures the redis-server that is on the PATH."""
    if shutil.which("redis-server") is None:
        judges.missing("no redis-server on the PATH")


def run_suite(output: Path, *words: str) -> Results:
    """The suite as ``make bench`` starts it: ours in the build under test, and redis-server."""
    variables = build.environment()
    del variables["PYTHONSAFEPATH"]
    ours = f"{sys.executable} -P -m headrace"
    who = ["--without", "fakeredis", "--without", "valkey-server", "--ours", ours]
    how = ["--rounds", "1", "--seconds", "0.02", "--divide", "1000", "--output", str(output)]
    command = [sys.executable, "-m", "bench.suite", *who, *how, *words]
    done = subprocess.run(
        command, cwd=build.ROOT, env=variables, capture_output=True, text=True, timeout=300,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = results.load(output / suite.RESULTS)
    assert found.failures == []
    return found


@pytest.mark.judge
@pytest.mark.usefixtures("_redis_server")
def test_every_workload_runs_on_both_servers(tmp_path: Path) -> None:
    words = ["--parts", "commands,durability,half-load", "--clients", "2", "--depth", "3"]
    found = run_suite(tmp_path, *words)
    commands = [cell for cell in found.cells if cell.part == "commands"]
    assert [(cell.workload, cell.server) for cell in commands] == [
        (workload.name, server)
        for workload in workloads.WORKLOADS
        for server in ("headrace", "redis-server")
    ]
    for cell in found.cells:
        if cell.missing:  # a Redis older than 8.6 has no idempotent producers
            assert cell.server == "redis-server", cell
            assert cell.workload in ("xadd-idmp", "xadd-idmpauto"), cell
        else:
            assert len(cell.samples) == 1
            assert all(sample.per_s > 0 and sample.p50_us > 0 for sample in cell.samples)
    durable = [cell for cell in found.cells if cell.part == "durability"]
    assert {(cell.workload, cell.variant.partition(",")[0]) for cell in durable} == {
        (workload.name, policy)
        for workload in workloads.WORKLOADS
        for policy in ("AOF everysec", "AOF always")
    }
    paced = {cell.workload for cell in found.cells if cell.part == "half-load"}
    assert paced == {workload.name for workload in workloads.WORKLOADS if workload.is_paced}
    shown = [row[0] for row in rows((tmp_path / "report.md").read_text())]
    assert shown.count("XADD, 1 field") == 3 + 1 + 2 * 3  # the last ones with a file


@pytest.mark.judge
@pytest.mark.usefixtures("_redis_server")
def test_scale(tmp_path: Path) -> None:
    found = run_suite(tmp_path, "--scale", "--scale-most", "1000")
    assert [cell.missing for cell in found.cells] == [""] * len(found.cells)
    assert sorted(found.parts()) == ["scale-clients", "scale-pending", "scale-streams"]


@pytest.mark.usefixtures("_own_cores")
def test_the_whole_suite_has_the_scale(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One command measures all that the report shows, and says what a machine is too small for."""
    run: list[str] = []

    def noted(part: str) -> Callable[[Session], None]:
        return lambda session: run.append(part)

    for part in suite.PARTS:
        monkeypatch.setitem(suite.PARTS, part, noted(part))
    monkeypatch.setitem(suite.PARTS, "scale-entries", partial(scale.run_axis, axis="entries"))
    monkeypatch.setattr(scale, "available_bytes", lambda: 0)
    words = ["--without", "redis-server", "--without", "valkey-server", "--output", str(tmp_path)]
    measured = suite.measure(suite.parser().parse_args(words))
    assert run == [part for part in suite.PARTS if part != "scale-entries"]
    assert {f"scale-{axis}" for axis in scale.AXES} < set(suite.PARTS)
    assert measured.failures == [
        f"scale-entries, {size:,}: the servers need more memory"
        for size in scale.AXES["entries"].sizes
    ]


def test_what_was_deleted_is_gone_before_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in build.environment().items():
        monkeypatch.setenv(name, value)
    ours = peers.Peer(peers.OURS, (sys.executable, "-P", "-m", "headrace"))
    with peers.Server(ours) as server:
        workloads.fill(server.control, 0, 50_000)
        workloads.all_pending(server.control, 50_000)
        server.control.call("DEL", workloads.STREAM)
        server.settle()
        info = server.info("memory")
        assert info["lazyfree_pending_objects"] == "0"
        assert info["lazyfreed_objects"] != "0"


@pytest.mark.parametrize("between_s", [0.0, 60.0])
def test_every_lap_begins_when_nothing_is_left_to_free(
    between_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And there are few of them where much lies between, by a clock that shows only that."""
    now_s = 0.0
    monkeypatch.setattr(measure, "time", SimpleNamespace(monotonic=lambda: now_s))
    for name, value in build.environment().items():
        monkeypatch.setenv(name, value)
    steps: list[str] = []
    workload = replace(workloads.named("xack-1"), entries=200)
    ours = peers.Peer(peers.OURS, (sys.executable, "-P", "-m", "headrace"))
    with peers.Server(ours) as server, load.Load(frozenset(os.sched_getaffinity(0)), 1) as clients:
        prepared = measure.Prepared(server, workload)
        call = server.control.call

        def watched(*words: str | bytes | int) -> object:
            if words[:2] == ("XGROUP", "DESTROY"):
                steps.append("reset")
            return call(*words)

        monkeypatch.setattr(server.control, "call", watched)

        def settle() -> None:
            nonlocal now_s
            steps.append("settle")
            now_s += between_s

        monkeypatch.setattr(server, "settle", settle)
        prepared.run(clients, measure.Shape(1, 1), 1.0)
    laps = len(steps) // 2
    assert laps == measure.FEWEST_LAPS if between_s else laps > measure.FEWEST_LAPS
    assert steps == ["reset", "settle"] * laps


def test_only_results_that_were_asked_for_are_written(tmp_path: Path) -> None:
    """Without ``--output`` a part of the suite is shown, and the report stays as it is."""
    report_path = Path(suite.__file__).with_name("report.md")
    before = report_path.read_bytes() if report_path.exists() else None
    ours = f"{sys.executable} -P -m headrace"
    variables = {**build.environment(), "PATH": str(tmp_path)}
    del variables["PYTHONSAFEPATH"]
    words = ["--quick", "--only", "ping", "--seconds", "0.02", "--without", "fakeredis"]
    done = subprocess.run(
        [sys.executable, "-m", "bench.suite", *words, "--ours", ours],
        cwd=build.ROOT, env=variables, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "| PING |" in done.stdout
    assert (report_path.read_bytes() if report_path.exists() else None) == before
