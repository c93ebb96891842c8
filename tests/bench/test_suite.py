"""The benchmark suite: its arithmetic, its tables, and small runs of it. No time is asserted."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from array import array
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import load, measure, peers, report, results, session, suite, workloads
from bench.clients import Run, Tally, Task, WrongReplyError, batches_of
from bench.results import Cell, Figure, Results, Sample
from bench.workloads import Reply, Workload, the_same
from support import build

pytestmark = pytest.mark.once

# Arithmetic


@given(st.lists(st.integers(0, 1000), min_size=1), st.sampled_from([0.5, 0.99, 0.999, 1.0]))
def test_percentile_is_the_least_value_that_covers_the_share(
    values: list[int], share: float
) -> None:
    ordered = sorted(values)
    found = results.percentile(ordered, share)

    def covered(limit: int) -> int:
        return 1000 * sum(value <= limit for value in ordered)

    needed = round(share * 1000) * len(ordered)
    assert found in ordered
    assert covered(found) >= needed
    assert covered(found - 1) < needed


@pytest.mark.parametrize(
    ("count", "share", "rank"), [(100, 0.99, 99), (1000, 0.999, 999), (3, 0.5, 2), (1, 0.5, 1)]
)
def test_percentile_at_whole_ranks(count: int, share: float, rank: int) -> None:
    assert results.percentile(range(1, count + 1), share) == rank


def sample(per_s: float = 1000.0, cpu_us: float = 1.0, **others: float) -> Sample:
    values = {
        "p50_us": 100.0, "p99_us": 200.0, "p999_us": 300.0, "max_us": 400.0,
        "server_busy": 1.0, "load_busy": 0.5,
    }  # fmt: skip
    return Sample(per_s=per_s, user_us=cpu_us, system_us=0.0, **{**values, **others})


def test_middle_takes_the_median_of_each_number() -> None:
    found = results.middle([sample(1.0, 30.0), sample(2.0, 10.0), sample(9.0, 20.0)])
    assert (found.per_s, found.user_us, found.p50_us) == (2.0, 20.0, 100.0)


def test_laps_are_added_up_to_one_sample() -> None:
    laps = [
        load.Outcome(100, 100, 1.0, [1_000, 5_000], 0.25),
        load.Outcome(300, 300, 1.0, [2_000, 4_000], 0.75),
    ]
    used = [peers.CpuTime(0.5, 30, 20), peers.CpuTime(1.5, 120, 30)]
    found = measure.sample_of(laps, used, 0.1)
    assert found.per_s == 200.0
    assert found.cpu_us == pytest.approx(2.0 / 400 * 1e6)
    assert found.user_us == pytest.approx(found.cpu_us * 150 / 200)
    assert (found.p50_us, found.p99_us, found.max_us) == (2.0, 5.0, 5.0)
    assert found.server_busy == pytest.approx(1.0)
    assert found.stolen == pytest.approx(0.05)
    assert found.load_busy == 0.75


def test_processes_are_added_up_from_the_first_start_to_the_last_reply() -> None:
    tallies = [
        Tally(10, 10, 1_000_000_000, 2_000_000_000, array("q", [5, 3]).tobytes(), 0.5),
        Tally(20, 20, 1_500_000_000, 3_000_000_000, array("q", [4]).tobytes(), 1.0),
    ]
    outcome = load.add_up(tallies)
    assert (outcome.units, outcome.elapsed_s, outcome.latencies_ns) == (30, 2.0, [3, 4, 5])
    assert outcome.busiest == 0.5


def test_cpu_time_of_a_process() -> None:
    before = time.process_time()
    found = peers.cpu_time(os.getpid())
    after = time.process_time()
    assert before <= found.total_s <= after
    ticks = (found.user_ticks + found.system_ticks) / peers.TICKS_PER_S
    assert found.total_s == pytest.approx(ticks, abs=0.1)


# Requests


def task_of(workload: Workload, port: int = 0, **others: object) -> Task:
    """A task; the others are any of its fields, whose types mypy cannot tell apart here."""
    settings = {"sample": b"", "entries": workload.entries, "clients": 1, "depth": 1, "seconds": 10}
    return Task(port=port, workload=workload, **{**settings, **others})  # type: ignore[arg-type]


@pytest.mark.parametrize(("clients", "depth"), [(1, 1), (3, 4), (7, 2)])
@pytest.mark.parametrize("per_request", [1, 10])
def test_a_lap_acknowledges_each_entry_at_most_once(
    clients: int, depth: int, per_request: int
) -> None:
    name = "xack-1" if per_request == 1 else "xack-100"
    workload = replace(
        workloads.named(name),
        request=lambda call: workloads.xack(per_request, call),
        uses=per_request,
    )
    task = task_of(workload, entries=1000, clients=clients, depth=depth)
    sent = b"".join(b"".join(batches_of(task, client)) for client in range(clients))
    ids = [word for word in sent.split(b"\r\n") if word.endswith(b"-0")]
    assert len(ids) == len(set(ids))
    assert set(ids) <= {workloads.entry_id(number) for number in range(1000)}
    left_over = 1000 - len(ids)
    assert 0 <= left_over < clients * depth * per_request


def test_clients_send_different_requests_in_a_ring() -> None:
    workload = workloads.named("xadd-idmp")
    task = task_of(workload, clients=2, depth=16)
    rings = [batches_of(task, client) for client in range(2)]
    batches = rings[0] + rings[1]
    assert len(batches) == len(set(batches)) == 2 * workload.distinct // 16
    assert all(batch.count(b"XADD") == 16 for batch in batches)


def test_filled_entries_have_ids_of_one_length() -> None:
    chunks = list(workloads.fill_chunks(0, 2500, b"100%", 1000))
    assert [count for _, count in chunks] == [1000, 1000, 500]
    assert chunks[0][0].startswith(
        peers.encode("XADD", "100%", workloads.entry_id(0), workloads.FIELD, workloads.VALUE)
    )
    assert {len(workloads.entry_id(number)) for number in (0, 9, 50_000_000)} == {15}


def test_places_are_spread() -> None:
    places = {workloads.somewhere(number, 1000) for number in range(1000)}
    assert places == set(range(1000))


# Counting replies


class Scripted:
    """A server that sends the given pieces for each request that it gets."""

    def __init__(self, request: bytes, pieces: list[bytes]) -> None:
        self._request = request
        self._pieces = pieces
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._threads.append(threading.Thread(target=self._serve, args=(client,)))
            self._threads[-1].start()

    def _serve(self, client: socket.socket) -> None:
        received = b""
        with client, contextlib.suppress(ConnectionError):
            while data := client.recv(1 << 16):
                received += data
                while received.startswith(self._request):
                    received = received[len(self._request) :]
                    for piece in self._pieces:
                        client.sendall(piece)


@pytest.fixture
def scripted() -> Iterator[Callable[..., Scripted]]:
    started: list[Scripted] = []

    def start(request: bytes, *pieces: bytes) -> Scripted:
        started.append(Scripted(request, list(pieces)))
        return started[-1]

    yield start
    for server in started:
        server.close()


PING = the_same("PING")


def run_against(server: Scripted, reply: Reply, one: bytes, requests: int, depth: int) -> Tally:
    workload = Workload("w", "w", PING, reply, uses=1)
    task = task_of(workload, server.port, sample=one, entries=requests, depth=depth)
    run = Run(task, [batches_of(task, 0)])
    try:
        return run.go()
    finally:
        run.close()


def bytewise(reply: bytes) -> list[bytes]:
    return [reply[place : place + 1] for place in range(len(reply))]


@pytest.mark.parametrize("reply", Reply)
@pytest.mark.parametrize("depth", [1, 4])
@pytest.mark.parametrize("is_cut", [False, True], ids=["whole", "bytewise"])
def test_replies_are_counted(
    scripted: Callable[..., Scripted], reply: Reply, depth: int, is_cut: bool
) -> None:
    one = b"*2\r\n$3\r\n1-0\r\n:5\r\n"
    pieces = bytewise(one * depth) if is_cut else [one * depth]
    server = scripted(peers.encode("PING") * depth, *pieces)
    tally = run_against(server, reply, one, requests=24, depth=depth)
    assert tally.requests == tally.units == 24
    assert len(tally.latencies_ns) == 8 * 24 // depth


def test_lines_may_be_of_any_length(scripted: Callable[..., Scripted]) -> None:
    server = scripted(peers.encode("PING"), b"$5\r\n12345\r\n")
    assert run_against(server, Reply.LINED, b"$1\r\n1\r\n", requests=3, depth=1).requests == 3


@pytest.mark.parametrize(
    ("reply", "sent"),
    [
        (Reply.LINED, b"-ERR no\r\n"),
        (Reply.LINED, b"$1\r\n1\r\n-ERR no\r\n"),
        (Reply.LINED, b"$1\r\n1\r\n$1\r\n1\r\n$1\r\n1\r\n"),
        (Reply.SAME, b"$1\r\n1\r\n$1\r\n2\r\n"),
        (Reply.SAME, b"-ERR no\r\n"),
        (Reply.SIZED, b"$1\r\n1\r\n$2\r\n12\r\n"),
        (Reply.SIZED, b"$1\r\n1\r\n$1\r\n1\r\n:1\r\n"),
    ],
)
def test_other_replies_are_found(
    scripted: Callable[..., Scripted], reply: Reply, sent: bytes
) -> None:
    server = scripted(peers.encode("PING") * 2, sent)
    with pytest.raises(WrongReplyError):
        run_against(server, reply, b"$1\r\n1\r\n", requests=2, depth=2)


def test_a_server_that_hangs_up_is_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        run = Run(
            task_of(Workload("w", "w", PING, Reply.LINED), listener.getsockname()[1], sample=b"\n"),
            [[b"PING\r\n"]],
        )
        listener.accept()[0].close()
        with pytest.raises((WrongReplyError, ConnectionError)):
            run.go()
        run.close()


def test_subscribers_that_are_refused_leave_nothing_open(
    scripted: Callable[..., Scripted],
) -> None:
    """What is left open is a warning when it is collected, and warnings fail the run."""
    server = scripted(peers.encode("SUBSCRIBE", workloads.CHANNEL), b"-NOPERM no\r\n")
    with pytest.raises(WrongReplyError, match="NOPERM"):
        Run(task_of(workloads.named("pubsub"), server.port), [[b""], [b""]])


def test_a_paced_load_counts_from_when_a_request_was_due() -> None:
    """A server that answers nothing until it has 50 requests was late for the first by 49 steps."""
    ping, pong = peers.encode("PING"), b"+PONG\r\n"

    def answer_late(listener: socket.socket) -> None:
        with listener.accept()[0] as client:
            received = 0
            while received < 50 * len(ping):
                received += len(client.recv(1 << 16))
            client.sendall(pong * 50)
            client.recv(1)  # the end of the run

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer_late, args=(listener,))
        thread.start()
        workload = Workload("w", "w", PING, Reply.SAME)
        task = task_of(
            workload, listener.getsockname()[1], sample=pong, seconds=0.05, rate_per_s=1000.0
        )
        run = Run(task, [batches_of(task, 0)])
        tally = run.go()
        run.close()
        thread.join()
    late_ns = array("q")
    late_ns.frombytes(tally.latencies_ns)
    assert tally.requests == 50
    assert late_ns[0] >= 49_000_000
    assert late_ns[0] > late_ns[-1]


def test_what_the_kernel_does_not_take_is_sent_later() -> None:
    """Twenty megabytes into a socket that nobody reads at first."""
    large = peers.encode("ECHO", b"x" * 20_000_000)
    received = []

    def read_all(listener: socket.socket) -> None:
        with listener.accept()[0] as client:
            size = 0
            while size < len(large):
                size += len(client.recv(1 << 20))
            received.append(size)
            client.sendall(b":1\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=read_all, args=(listener,))
        thread.start()
        workload = Workload("w", "w", lambda call: large, Reply.SAME, uses=1)
        task = task_of(workload, listener.getsockname()[1], sample=b":1\r\n", entries=1)
        run = Run(task, [[large]])
        assert run.go().requests == 1
        run.close()
        thread.join()
    assert received == [len(large)]


# Tables


def cell(server: str, *samples: Sample, workload: str = "xadd", variant: str = report.WIDE) -> Cell:
    title = workloads.named(workload).title
    return Cell("commands", workload, title, "commands", variant, server, list(samples))


def three_servers(*cells: Cell, figures: tuple[Figure, ...] = ()) -> Results:
    return Results(
        servers={"headrace": "1", "redis-server": "7", "valkey-server": "9", "fakeredis": "2"},
        rivals=["redis-server", "valkey-server"],
        cells=list(cells),
        figures=list(figures),
    )


def rows(text: str) -> list[list[str]]:
    """The words of each row of the tables in a report."""
    lines = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    return [[word.strip() for word in line] for line in lines]


def test_a_table_is_straight() -> None:
    assert report.table(["", "a", "long name"], [["row", "1,000", "2"], ["r", "3", ""]]) == (
        "|     |     a | long name |\n"
        "| --- | ----: | --------: |\n"
        "| row | 1,000 |         2 |\n"
        "| r   |     3 |           |"
    )


def test_ratios_are_taken_to_the_best_rival() -> None:
    found = three_servers(
        cell("headrace", sample(600_000, 1.0), sample(1, 9.0), sample(900_000, 0.5)),
        cell("redis-server", sample(400_000, 2.0)),
        cell("valkey-server", sample(500_000, 4.0)),
        cell("fakeredis", sample(4_000, 0.1)),
    )
    shown = rows(report.text(found))
    assert ["XADD, 1 field", "600,000", "400,000", "500,000", "4,000", "**1.20**"] in shown
    cpu = next(row for row in shown if row[1] == "1.00 (1.00 + 0.00)")
    assert cpu[-1] == "**0.50**"
    assert ["throughput to fakeredis's, XADD, 50 clients, 16 deep", "**150**", "**150**"] in shown


def test_a_losing_ratio_is_not_bold() -> None:
    found = three_servers(cell("headrace", sample(300_000)), cell("redis-server", sample(400_000)))
    assert ["XADD, 1 field", "300,000", "400,000", "0.75"] in rows(report.text(found))


def test_the_worst_is_named() -> None:
    cells = []
    for workload, per_s in (("xrange-100", 50_000), ("xread-10", 90_000), ("xack-1", 120_000)):
        cells.append(cell("headrace", sample(per_s), workload=workload))
        cells.append(cell("redis-server", sample(100_000), workload=workload))
    shown = report.short(three_servers(*cells))
    what = "throughput, other streams, 50 clients, 16 deep"
    assert [what, "0.90", "0.50 (XRANGE, 100 entries)"] in rows(shown)


def test_what_is_missing_is_said() -> None:
    missing = cell("redis-server", workload="xadd-idmp")
    missing.missing = "ERR Invalid stream ID"
    found = three_servers(cell("headrace", sample(), workload="xadd-idmp"), missing)
    text = report.text(found)
    assert ["XADD IDMP", "1,000", "n/a", ""] in rows(text)
    assert "- XADD IDMP, redis-server: ERR Invalid stream ID" in text


def test_a_run_that_the_load_limited_is_marked() -> None:
    bound = sample(50_000, load_busy=0.99, server_busy=0.5)
    found = three_servers(cell("headrace", bound), cell("redis-server", sample(50_000)))
    assert "50,000*" in report.text(found)
    assert "the load was the limit" in report.text(found)


def test_growth_is_the_last_size_to_the_first() -> None:
    cells = []
    for size, cost in (("1,000", 2.0), ("10,000", 9.0), ("100,000", 3.0)):
        found = cell("headrace", sample(cpu_us=cost), variant=size)
        cells.append(replace(found, part="scale-entries"))
    assert report.growth(cells, cells[0].title, "headrace") == 1.5
    assert ["XADD, 1 field", "1.50"] in rows(report.text(three_servers(*cells)))


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1234567.0, "1,234,567"), (99.94, "99.9"), (0.01234, "0.0123"), (100.0, "100")],
)
def test_numbers_keep_three_digits(value: float, shown: str) -> None:
    assert report.show_count(value) == shown


def test_results_are_read_as_they_were_written(tmp_path: Path) -> None:
    written = three_servers(
        cell("headrace", sample(), sample(5.0)),
        figures=(Figure("memory", "entry", "bytes", "headrace", (1.5, 2.5)),),
    )
    written.facts["date"] = "2026-01-01"
    written.failures.append("pauses ended early")
    path = tmp_path / "results.json"
    written.save(path)
    assert results.load(path) == written
    path.write_text('{"format": 99}')
    with pytest.raises(ValueError, match="no results of this version"):
        results.load(path)


@pytest.mark.parametrize(
    ("shares", "runs", "best"),
    [
        ([0.01], 1, 0.01),
        ([0.2, 0.02], 2, 0.02),
        ([0.2, 0.3, 0.1], 3, 0.1),
        ([0.1, 0.3, 0.3], 3, 0.1),
    ],
)
def test_a_run_that_others_disturbed_is_done_again(
    shares: list[float], runs: int, best: float
) -> None:
    left = list(shares)
    assert session.calmest(lambda: sample(stolen=left.pop(0))).stolen == best
    assert len(left) == len(shares) - runs


def test_what_others_took_is_said() -> None:
    disturbed = three_servers(cell("headrace", sample(stolen=0.125), sample(stolen=0.25), sample()))
    assert "machines: 12.5% of the CPU time in the median run, 25.0% in" in report.text(disturbed)
    assert "taken by" not in report.text(three_servers(cell("headrace", sample())))


def test_only_what_can_be_better_or_worse_has_a_ratio() -> None:
    pauses = [Figure("pauses", "filling", "ms", name, (2.0,)) for name in three_servers().servers]
    shares = [replace(pause, title="taken by others", unit="%") for pause in pauses]
    table = rows(report.figure_table(three_servers(), [*pauses, *shares]))
    assert [row[-1] for row in table[2:]] == ["**1.00**", ""]


def test_results_of_several_runs_are_put_together(tmp_path: Path) -> None:
    first = three_servers(cell("headrace", sample(1.0)))
    second = three_servers(
        cell("headrace", sample(2.0)),
        figures=(Figure("memory", "entry", "bytes", "headrace", (1.0,)),),
    )
    first.failures += [f"{suite.ended_early(part)}: refused" for part in ("memory", "pauses")]
    second.failures.append("one of its own")
    first.save(tmp_path / "first")
    second.save(tmp_path / "second")
    merged = suite.merged([tmp_path / "first", tmp_path / "second"])
    assert [found.samples[0].per_s for found in merged.cells] == [2.0]
    assert [figure.title for figure in merged.figures] == ["entry"]
    assert merged.failures == ["pauses ended early: refused", "one of its own"]


def test_plots_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="only with the extra `bench`")
    from bench import plots

    cells = [cell(name, sample()) for name in ("headrace", "redis-server")]
    for part in ("durability", "half-load"):
        cells += [replace(found, part=part) for found in cells[:2]]
    cells += [replace(found, part="scale-streams", variant="1,000") for found in cells[:2]]
    figures = tuple(
        Figure(part, "entry", "bytes", name, (median((1.0, 2.0)),))
        for part in ("memory", "pauses")
        for name in ("headrace", "redis-server")
    )
    drawn = plots.draw(three_servers(*cells, figures=figures), tmp_path)
    assert [path.stem for path in drawn] == [
        "throughput", "cpu", "durability", "half-load", "memory", "pauses", "scale-streams",
    ]  # fmt: skip
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in drawn)


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
    [["--only", "nothing"], ["--parts", "nothing"], ["--scale", "nothing"], ["--peer", "nothing"]],
)
def test_unknown_words_are_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        suite.main([*words, "--ours", "/nowhere/headrace"])
    assert "nothing" in str(refused.value) or "name=command" in capsys.readouterr().err


def test_every_name_is_used_once() -> None:
    names = [workload.name for workload in workloads.WORKLOADS]
    assert len(names) == len(set(names))
    assert all(workloads.named(name).name == name for name in names)


# Small runs


def run_suite(output: Path, *words: str) -> Results:
    """The suite as ``make bench`` starts it: ours in the build under test, and redis-server."""
    variables = build.environment()
    del variables["PYTHONSAFEPATH"]
    ours = f"{sys.executable} -P -m server"
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
@pytest.mark.usefixtures("_judge")
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
            assert [sample.per_s > 0 and sample.p50_us > 0 for sample in cell.samples] == [True]
    policies = {cell.variant.partition(",")[0] for cell in found.cells if cell.part == "durability"}
    assert policies == {"AOF off", "AOF everysec", "AOF always"}
    paced = {cell.workload for cell in found.cells if cell.part == "half-load"}
    assert paced == {workload.name for workload in workloads.WORKLOADS if workload.is_paced}
    shown = [row[0] for row in rows((tmp_path / "report.md").read_text())]
    assert shown.count("XADD, 1 field") == 3


@pytest.mark.judge
@pytest.mark.usefixtures("_judge")
def test_scale(tmp_path: Path) -> None:
    found = run_suite(tmp_path, "--scale", "streams,pending", "--scale-most", "1000")
    assert [cell.missing for cell in found.cells] == [""] * len(found.cells)
    assert found.parts() == ["scale-streams", "scale-pending"]


def test_what_was_deleted_is_gone_before_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in build.environment().items():
        monkeypatch.setenv(name, value)
    ours = peers.Peer(peers.OURS, (sys.executable, "-P", "-m", "server"))
    with peers.Server(ours) as server:
        workloads.fill(server.control, 0, 50_000)
        workloads.all_pending(server.control, 50_000)
        server.control.call("DEL", workloads.STREAM)
        server.settle()
        info = server.info("memory")
        assert info["lazyfree_pending_objects"] == "0"
        assert info["lazyfreed_objects"] != "0"


def test_every_lap_begins_when_nothing_is_left_to_free(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in build.environment().items():
        monkeypatch.setenv(name, value)
    steps: list[str] = []
    workload = replace(workloads.named("xack-1"), entries=200)
    ours = peers.Peer(peers.OURS, (sys.executable, "-P", "-m", "server"))
    with peers.Server(ours) as server, load.Load(frozenset(os.sched_getaffinity(0)), 1) as clients:
        prepared = measure.Prepared(server, workload)
        call = server.control.call

        def watched(*words: str | bytes | int) -> object:
            if words[:2] == ("XGROUP", "DESTROY"):
                steps.append("reset")
            return call(*words)

        monkeypatch.setattr(server.control, "call", watched)
        monkeypatch.setattr(server, "settle", lambda: steps.append("settle"))
        prepared.run(clients, measure.Shape(1, 1), 60.0)
    assert steps == ["reset", "settle"] * measure.MOST_LAPS


def test_only_results_that_were_asked_for_are_written(tmp_path: Path) -> None:
    """Without ``--output`` a part of the suite is shown, and the report stays as it is."""
    report_path = Path(suite.__file__).with_name("report.md")
    before = report_path.read_bytes() if report_path.exists() else None
    ours = f"{sys.executable} -P -m server"
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
