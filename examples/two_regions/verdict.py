"""The verdict: what clients were told, held against what every region has in the end."""

from __future__ import annotations

import time
from collections.abc import Sequence

from rich.table import Table

from two_regions.clients import STREAM, Name, Worker, Writer
from two_regions.servers import Client, Region, client, facts

LEVEL_TIMEOUT_S = 120.0
CHECKS_TIMEOUT_S = 20.0
Entries = list[tuple[str, Name]]


class Finding:
    """One line of the verdict; all is well where ``found`` is 0."""

    def __init__(self, what: str, of: int, found: int) -> None:
        self.what = what
        self.of = of
        self.found = found


def wait_until_level(regions: Sequence[Region]) -> bool:
    """Wait until all regions know the same."""
    deadline = time.monotonic() + LEVEL_TIMEOUT_S
    while time.monotonic() < deadline:
        tokens = set()
        for region in regions:
            with client(region.port) as asking:
                tokens.add(asking.execute_command("AA", "TOKEN"))
        if len(tokens) == 1:
            return True
        time.sleep(0.1)
    return False


def wait_until_read(workers: Sequence[Worker], names: set[Name]) -> None:
    """Wait until each worker has been given everything; what is missing then was skipped."""
    deadline = time.monotonic() + LEVEL_TIMEOUT_S / 2
    while time.monotonic() < deadline:
        if all(names <= worker.done.keys() for worker in workers):
            return
        time.sleep(0.1)


def entries_of(region: Region) -> Entries:
    """All entries of the stream, as a region shows them."""
    with client(region.port) as asking:
        found = asking.xrange(STREAM)
    return [(entry_id, (fields["writer"], fields["number"])) for entry_id, fields in found]


def judge(
    regions: Sequence[Region],
    writers: Sequence[Writer],
    workers: Sequence[Worker],
    burnt: set[Name],
) -> list[Finding]:
    """Compare everything. Writers rest; workers go on until they have read all.

    Args:
        burnt: entries that nobody had fetched when their disk was lost.
    """
    is_level = wait_until_level(regions)
    shown = [entries_of(region) for region in regions]
    acknowledged: dict[Name, str] = {}
    for writer in writers:
        acknowledged.update(writer.acknowledged)
    for name in burnt:
        del acknowledged[name]
    names = {name for _, name in shown[0]}
    wait_until_read(workers, names)
    for worker in workers:
        worker.rest()
    is_level = wait_until_level(regions) and is_level
    total = len(shown[0])
    return [
        Finding("acknowledged writes that are lost", len(acknowledged), lost(shown, acknowledged)),
        Finding("entries that share an ID", total, max(same_ids(each) for each in shown)),
        Finding("entries that are there twice", total, max(doubled(each) for each in shown)),
        Finding(
            "entries that a group was never given",
            total * len(workers),
            sum(len(names - worker.done.keys()) for worker in workers),
        ),
        Finding(
            "regions that show something else",
            len(regions),
            sum(each != shown[0] for each in shown) + (not is_level),
        ),
        Finding("regions with another fingerprint", len(regions), _other_digests(regions)),
        _own_checks(regions),
    ]


def lost(shown: Sequence[Entries], acknowledged: dict[Name, str]) -> int:
    """Return how many are not in some region under the ID that their writer was told."""
    everywhere = set.intersection(*[set(each) for each in shown])
    return sum((entry_id, name) not in everywhere for name, entry_id in acknowledged.items())


def same_ids(entries: Entries) -> int:
    """Return how many entries have the ID of another one."""
    return len(entries) - len({entry_id for entry_id, _ in entries})


def doubled(entries: Entries) -> int:
    """Return how many entries say what another one says."""
    return len(entries) - len({name for _, name in entries})


def _other_digests(regions: Sequence[Region]) -> int:
    digests = []
    for region in regions:
        with client(region.port) as asking:
            digests.append(asking.execute_command("AA", "DIGEST", STREAM))
    return sum(digest != digests[0] for digest in digests)


def _own_checks(regions: Sequence[Region]) -> Finding:
    """What the regions find by comparing themselves, as they do now and then; wait for some."""
    deadline = time.monotonic() + CHECKS_TIMEOUT_S
    while True:
        made = [_checked(region) for region in regions]
        if all(checks for checks, _ in made) or time.monotonic() > deadline:
            break
        time.sleep(0.1)
    if not all(checks for checks, _ in made):
        return Finding("regions that never compared themselves", len(regions), 1)
    return Finding(
        "differences that the regions found themselves",
        sum(checks for checks, _ in made),
        sum(mismatches for _, mismatches in made),
    )


def _checked(region: Region) -> tuple[int, int]:
    """How often a region has compared itself with others, and how often there was a difference."""
    with client(region.port) as asking:
        found = dict(line.split(":", 1) for line in facts(asking).splitlines() if ":" in line)
    return int(found["aa_checks"]), int(found["aa_check_mismatches"])


def table(findings: Sequence[Finding]) -> Table:
    """The verdict, to be looked at."""
    shown = Table(title="verdict")
    shown.add_column("")
    shown.add_column("found", justify="right")
    shown.add_column("of", justify="right")
    for finding in findings:
        colour = "red" if finding.found else "green"
        shown.add_row(finding.what, f"[{colour}]{finding.found:,}[/]", f"{finding.of:,}")
    return shown


def lag_ms(asking: Client) -> int:
    """Return how far a region is behind the one that it is most behind of."""
    peers = asking.execute_command("AA", "PEERS")
    return max((int(peer["lag-ms"]) for peer in peers), default=0)
