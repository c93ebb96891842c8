"""What the benchmark writes: tables, ratios, results in a file, plots."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest

from bench import ratios, report, results, session, suite, workloads
from bench.results import Cell, Figure, Results, Sample
from support.build import ROOT
from support.reports import rows, sample

pytestmark = pytest.mark.once


def cell(server: str, *samples: Sample, workload: str = "xadd", variant: str = ratios.WIDE) -> Cell:
    title = workloads.named(workload).title
    return Cell("commands", workload, title, "commands", variant, server, list(samples))


def three_servers(*cells: Cell, figures: tuple[Figure, ...] = ()) -> Results:
    return Results(
        servers={"headrace": "1", "redis-server": "7", "valkey-server": "9", "fakeredis": "2"},
        rivals=["redis-server", "valkey-server"],
        cells=list(cells),
        figures=list(figures),
    )


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
    assert [
        "XADD, 1 field",
        "600,000",
        "400,000",
        "500,000",
        "4,000",
        "**1.20**",
        "**1.20**",
    ] in shown
    cpu = next(row for row in shown if row[1] == "1.00 (1.00 + 0.00)")
    assert cpu[-2:] == ["**0.50**", "**0.50**"]
    what = "throughput to fakeredis's, XADD, 50 clients, 16 deep"
    assert [what, "**150**", "**150**", "", ""] in shown


def test_rounds_are_compared_by_themselves_too() -> None:
    """A machine that is slow in every other round says little by its medians."""
    found = three_servers(
        cell("headrace", *map(sample, (90_000, 132_000, 91_000, 92_000, 130_000))),
        cell("redis-server", *map(sample, (100_000, 120_000, 120_000, 80_000, 125_000))),
        cell("valkey-server", *map(sample, (80_000, 80_000))),
    )
    shown = rows(report.text(found))
    assert ["XADD, 1 field", "92,000", "120,000", "80,000", "0.77", "**1.04**"] in shown
    what = f"throughput, XADD, {ratios.WIDE}"
    assert [what, "0.77", "0.77", "**1.04**", "**1.04**"] in rows(report.short(found))


def test_a_losing_ratio_is_not_bold() -> None:
    found = three_servers(cell("headrace", sample(300_000)), cell("redis-server", sample(400_000)))
    assert ["XADD, 1 field", "300,000", "400,000", "0.75", "0.75"] in rows(report.text(found))


def test_the_worst_is_named() -> None:
    cells = []
    for workload, per_s in (("xrange-100", 50_000), ("xread-10", 90_000), ("xack-1", 120_000)):
        cells.append(cell("headrace", sample(per_s), workload=workload))
        cells.append(cell("redis-server", sample(100_000), workload=workload))
    shown = report.short(three_servers(*cells))
    what = "throughput, other streams, 50 clients, 16 deep"
    assert [what, *2 * ["0.90", "0.50 (XRANGE, 100 entries)"]] in rows(shown)


def test_what_is_missing_is_said() -> None:
    missing = cell("redis-server", workload="xadd-idmp")
    missing.missing = "ERR Invalid stream ID"
    found = three_servers(cell("headrace", sample(), workload="xadd-idmp"), missing)
    text = report.text(found)
    assert ["XADD IDMP", "1,000", "n/a", "", ""] in rows(text)
    assert "- XADD IDMP, redis-server: ERR Invalid stream ID" in text


def test_an_append_only_file_is_shown_beside_none() -> None:
    """Each policy beside the others, with shapes of its own, and the fan-outs for themselves."""
    plain = [cell("headrace", sample(300_000)), cell("redis-server", sample(200_000))]
    durable = []
    for policy, per_s in (("everysec", 80_000), ("always", 90_000)):
        for shape in (ratios.WIDE, "fan-out, 1 deep"):
            for server, served in (("headrace", per_s), ("redis-server", 100_000)):
                each = cell(server, sample(served), variant=f"AOF {policy}, {shape}")
                durable.append(replace(each, part="durability"))
    text = report.text(three_servers(*plain, *durable))
    assert "Throughput to the best rival's: off / everysec / always." in text
    shown = rows(text)
    assert ["XADD, 1 field", "1.50 / 0.80 / 0.90"] in shown
    headings = [line for line in text.splitlines() if line.startswith("### ")]
    assert headings == [
        "### 50 clients, 16 deep",
        "### AOF everysec, 50 clients, 16 deep",
        "### AOF always, 50 clients, 16 deep",
        "### AOF everysec, fan-out",
        "### AOF always, fan-out",
    ]
    assert ["XADD, 1 field, 1 deep", "80,000", "100,000", "0.80", "0.80"] in shown
    worst = "0.80 (XADD, 1 field, 50 clients, 16 deep)"
    assert ["throughput, streams, AOF everysec", *2 * ["0.80", worst]] in shown


def test_a_run_that_the_load_limited_is_marked() -> None:
    bound = sample(50_000, load_busy=0.99, server_busy=0.5)
    found = three_servers(cell("headrace", bound), cell("redis-server", sample(50_000)))
    assert "50,000*" in report.text(found)
    assert "the load was the limit" in report.text(found)


def test_growth_is_the_last_size_to_the_first() -> None:
    cells = []
    for size, costs in (("1,000", (1, 4, 2)), ("10,000", (9, 9, 9)), ("100,000", (2, 3, 5))):
        found = cell("headrace", *(sample(cpu_us=cost) for cost in costs), variant=size)
        cells.append(replace(found, part="scale-entries"))
    assert ratios.growth(cells, cells[0].title, "headrace") == 1.5
    assert ratios.growth(cells, cells[0].title, "headrace", by_round=True) == 2.0
    shown = rows(report.text(three_servers(*cells)))
    assert ["XADD, 1 field", "1.50"] in shown
    assert ["ours at most to ours at fewest entries", "1.50", "1.50", "2.00", "2.00"] in shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1234567.0, "1,234,567"), (99.94, "99.9"), (0.01234, "0.0123"), (100.0, "100")],
)
def test_numbers_keep_three_digits(value: float, shown: str) -> None:
    assert ratios.show_quantity(value) == shown


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
    cells += [replace(c, part="durability", variant=f"AOF always, {c.variant}") for c in cells[:2]]
    cells += [replace(found, part="half-load") for found in cells[:2]]
    cells += [replace(found, part="scale-streams", variant="1,000") for found in cells[:2]]
    figures = tuple(
        Figure(part, "entry", unit, name, (median((1.0, 2.0)),))
        for part, unit in (("memory", "bytes"), ("pauses", "ms"))
        for name in ("headrace", "redis-server")
    )
    drawn = plots.draw(three_servers(*cells, figures=figures), tmp_path)
    assert [path.stem for path in drawn] == [
        "overview", "throughput", "cpu", "durability", "half-load", "memory", "pauses",
        "scale-streams",
    ]  # fmt: skip
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in drawn)


# What the guides say about the committed report

IN_SHORT = {  # rows of docs/performance.md, and those of the report that they repeat
    "XADD, 50 clients, 16 deep": "throughput, XADD, 50 clients, 16 deep",
    "other stream commands, 50 clients, 16 deep": "throughput, other streams, 50 clients, 16 deep",
    "stream commands, one client, 16 deep": "throughput, streams, 1 client, 16 deep",
    "stream commands, 50 clients, not pipelined": "throughput, streams, 50 clients, 1 deep",
    "stream commands, one client, not pipelined": "throughput, streams, 1 client, 1 deep",
    "stream commands, append-only file, `everysec`, all of these shapes": (
        "throughput, streams, AOF everysec"
    ),
    "the same, `always`": "throughput, streams, AOF always",
    "99th percentile of the time to the answer, one client, not pipelined": (
        "p99, streams, 1 client, 1 deep"
    ),
    "99.9th percentile at half load": "p99.9 at half load",
    "CPU time per stream command, 50 clients, 16 deep": "CPU, streams, 50 clients, 16 deep",
    "CPU time per stream command, one client, 16 deep": "CPU, streams, 1 client, 16 deep",
    "memory per entry": "memory per entry",
    "memory per pending entry": "memory per pending entry",
    "longest pause while 10 million entries come and go": "longest pause",
    "10 thousand to 50 million entries": "ours at most to ours at fewest entries",
    "1 to 100 thousand streams": "ours at most to ours at fewest streams",
    "1 to 10 thousand clients": "ours at most to ours at fewest clients",
    "none, or a thousand, to a million pending entries": "ours at most to ours at fewest pending",
}


def table_rows(text: str) -> dict[str, list[str]]:
    """The cells behind the first one of every row, of all tables."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith("| "):
            first, *others = [cell.strip().replace("**", "") for cell in line.split("|")[1:-1]]
            found.setdefault(first, others)
    return found


def number(shown: str) -> str:
    return shown.partition(" ")[0]


def test_the_guide_repeats_the_report() -> None:
    """Ratios by round where there are rounds, with the worst beside them."""
    page = table_rows((ROOT / "docs/performance.md").read_text())
    made = table_rows((ROOT / "bench/report.md").read_text())
    for row, claim in IN_SHORT.items():
        middle, worst, middle_by_round, worst_by_round = made[claim]
        expected = [middle_by_round or middle, worst_by_round or worst]
        shown = page[row][:2]
        assert number(shown[0]) == number(expected[0]), row
        if shown[1] or "(" in expected[1]:
            assert number(shown[1]) == number(expected[1]), row


def test_readme_repeats_the_guide() -> None:
    sentence = (ROOT / "README.md").read_text().partition("XADD runs ")[2].partition(":")[0]
    page = table_rows((ROOT / "docs/performance.md").read_text())
    rows = ("XADD, 50 clients, 16 deep", "other stream commands, 50 clients, 16 deep")
    assert re.findall(r"\d+\.\d\d", sentence) == [number(page[row][0]) for row in rows]
