"""Regions under faults by chance: what clients were told has to hold in all of them in the end.

``make region-faults`` is the long form; ``support.region_faults`` says how it is done.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.region_faults.__main__ import play
from support.region_faults.campaign import Campaign
from support.region_faults.checker import Checker, Entries, Findings
from support.region_faults.history import (
    CUT,
    DONE,
    DRAINER,
    KEPT,
    KEYS,
    LOG,
    PAIRED,
    PAIRED_TOO,
    REFUSED,
    TRIMMED,
    Ack,
    Add,
    Delivery,
    Disaster,
    History,
    Read,
    Removal,
)

pytestmark = pytest.mark.once

ROUNDS = 3


@pytest.mark.parametrize("number", [1, 2, 3])
def test_nothing_is_lost_doubled_or_skipped(number: int) -> None:
    campaign = Campaign(1, number)
    done, failure = play(campaign, ROUNDS)
    assert not failure, failure
    assert done == ROUNDS
    counts = campaign.findings.counts
    assert counts["stable"] > 100
    assert counts["delivered"] > 100
    assert counts["delivered again: in another region"] > 0
    assert counts["reads"] > 0


# The judge itself


class Case:
    """A round in which an entry was added in region 1, read, deleted, trimmed and given to workers.

    Attributes:
        final: what is there at the end.
        before: what was there at the beginning.
    """

    def __init__(self) -> None:
        self.history = History()
        self.final: Entries = {key: [] for key in KEYS}
        self.before: Entries = {}
        self.settled: set[bytes] = set()
        self.first = self.add(LOG, b"1-1", b"first", 10.0)
        self.history.deliveries.append(Delivery(b"first", b"1-1", 1, "alice", 11.0, True, 11.0))
        self.history.deliveries.append(Delivery(b"first", b"1-1", 2, "bob", 12.0, True, 12.0))
        self.history.acks.append(Ack([b"1-1"], 1, "alice", 12.0, DONE))
        self.history.reads.append(Read(LOG, 1, 12.5, 12.6, {b"first"}))

    def add(self, key: str, entry_id: bytes, value: bytes, at_s: float, twin: bytes = b"") -> Add:
        """An entry that is there."""
        add = Add(value, key, 1, at_s, at_s + 0.1, DONE, entry_id, twin)
        self.history.adds.append(add)
        self.final[key].append((entry_id, value))
        return add

    def lose(self, key: str, value: bytes) -> None:
        self.final[key] = [entry for entry in self.final[key] if entry[1] != value]

    def judge(self) -> list[str]:
        """Return what is wrong, by its first words."""
        findings = Findings()
        checker = Checker(self.history, 5.0, findings)
        checker.check_entries(self.final)
        checker.check_kept(self.before, self.final, 2)
        checker.check_group(self.final[LOG], [1, 2])
        checker.check_settled(self.settled, 2)
        return sorted({text.partition(":")[0] for text in findings.wrong})


def test_a_good_history_is_good() -> None:
    case = Case()
    case.add(PAIRED, b"1-1", b"a", 10.0, b"b")
    case.add(PAIRED_TOO, b"1-1", b"b", 10.0, b"a")
    assert case.judge() == []


def test_what_was_acknowledged_is_missing() -> None:
    case = Case()
    case.add(LOG, b"2-1", b"second", 13.0)
    case.lose(LOG, b"second")
    assert case.judge() == ["lost"]
    case.history.disasters.append(Disaster("power", 1, 13.5, 10.5, "everysec"))
    assert case.judge() == []
    case.history.disasters[0].since_s = 13.2  # it was acknowledged earlier, and thus on the disk
    assert case.judge() == ["lost"]
    case.history.disasters[0] = Disaster("disk", 2, 13.5, 0.0, "always")  # of another region
    assert case.judge() == ["lost"]


def test_what_all_regions_had_is_missing() -> None:
    case = Case()
    case.before = {LOG: [(b"0-1", b"old")]}
    assert case.judge() == ["lost"]
    case.history.disasters.append(Disaster("disk", 1, 6.0, 0.0, "always"))
    assert case.judge() == ["lost"]  # region 2 had it
    case.history.disasters.append(Disaster("disk", 2, 6.0, 0.0, "always"))
    assert case.judge() == []


def test_an_entry_is_doubled() -> None:
    case = Case()
    case.final[LOG].append((b"1-2", b"first"))
    for region in (1, 2):
        case.history.deliveries.append(
            Delivery(b"first", b"1-2", region, DRAINER, 13.0, True, 13.0)
        )
    assert case.judge() == ["another ID", "doubled"]


def test_an_id_is_given_twice() -> None:
    case = Case()
    other = case.add(LOG, b"1-1", b"other", 13.0)
    assert case.judge() == ["duplicate ID"]
    case.lose(LOG, b"other")  # even where one of the two is gone
    case.history.disasters.append(Disaster("disk", other.region, 14.0, 0.0, "no"))
    assert case.judge() == ["duplicate ID"]


def test_entries_are_not_in_order() -> None:
    case = Case()
    case.add(TRIMMED, b"2-1", b"a", 13.0)
    case.add(TRIMMED, b"1-1", b"b", 13.0)
    assert case.judge() == ["not in order"]


def test_what_was_refused_or_never_sent_is_there() -> None:
    case = Case()
    add = case.add(CUT, b"2-1", b"second", 13.0)
    add.outcome = REFUSED
    assert case.judge() == ["refused but there"]
    case.history.adds.remove(add)
    assert case.judge() == ["unheard of"]


def test_half_of_a_transaction_is_there() -> None:
    case = Case()
    case.add(PAIRED, b"1-1", b"a", 10.0, b"b")
    add = case.add(PAIRED_TOO, b"1-1", b"b", 10.0, b"a")
    add.outcome = "unknown"
    case.lose(PAIRED_TOO, b"b")
    assert case.judge() == ["torn transaction"]


def test_what_was_deleted_is_there() -> None:
    case = Case()
    case.add(CUT, b"2-1", b"second", 13.0)
    case.history.removals.append(Removal("XDEL", CUT, 2, 14.0, b"2-1", 14.1, DONE, 1))
    assert case.judge() == ["deleted but there"]
    case.history.removals[0] = Removal("DEL", CUT, 1, 14.0, b"", 14.1, DONE, 1)
    assert case.judge() == ["deleted but there"]
    case.history.removals[0].region = 2  # it need not have seen the entry
    assert case.judge() == []


def test_an_id_is_given_again_after_a_deletion_by_a_clock_that_is_behind() -> None:
    case = Case()
    case.add(CUT, b"2-1", b"second", 13.0)
    case.history.removals.append(Removal("XDEL", CUT, 2, 14.0, b"2-1", 14.1, DONE, 1))
    case.lose(CUT, b"second")
    case.history.removals.append(Removal("DEL", CUT, 1, 15.0, b"", 15.1, DONE, 1))
    case.add(CUT, b"2-1", b"third", 16.0)
    assert case.judge() == ["deleted but there", "duplicate ID"]
    case.history.clocks_differ = True
    assert case.judge() == []


def test_what_nobody_removed_is_missing() -> None:
    case = Case()
    case.add(CUT, b"2-1", b"second", 13.0)
    case.lose(CUT, b"second")
    assert case.judge() == ["lost"]
    case.history.removals.append(Removal("XDEL", CUT, 2, 14.0, b"2-1"))
    assert case.judge() == []


def test_too_much_is_trimmed() -> None:
    case = Case()
    for number in range(KEPT + 1):
        case.add(TRIMMED, b"2-%d" % number, b"%d" % number, 13.0)
    case.history.removals.append(Removal("TRIM", TRIMMED, 2, 14.0, b"", 14.1, DONE, 1))
    case.lose(TRIMMED, b"0")
    assert case.judge() == []
    case.lose(TRIMMED, b"1")
    assert case.judge() == ["trimmed too much"]


def test_a_read_in_its_region_misses_an_entry() -> None:
    case = Case()
    case.history.reads.append(Read(LOG, 1, 21.0, 21.1, set()))
    assert case.judge() == ["stale in its own region"]
    case.history.reads[-1] = Read(LOG, 2, 21.0, 21.1, set())  # it may come there later
    assert case.judge() == []


def test_an_entry_comes_late_for_who_reads_what_is_stable() -> None:
    case = Case()
    case.history.stable[2] = [b"0-7", b"1-1"]  # of these one was lost
    assert case.judge() == []
    case.add(LOG, b"0-9", b"late", 12.6)
    case.final[LOG].sort()
    case.history.acks[0].entry_ids.append(b"0-9")
    assert case.judge() == ["late for who reads what is stable"]
    case.history.disasters.append(Disaster("disk", 1, 13.0, 0.0, "always"))
    assert case.judge() == ["late for who reads what is stable"]


def test_an_entry_is_skipped() -> None:
    case = Case()
    case.history.acks.clear()
    for region in (1, 2):
        last = Delivery(b"first", b"1-1", region, DRAINER, 13.0, False, 13.0)
        case.history.deliveries.append(last)
    assert case.judge() == []
    del case.history.deliveries[3]
    assert case.judge() == []
    del case.history.deliveries[1]
    assert case.judge() == ["skipped"]


def test_what_was_pending_is_forgotten() -> None:
    case = Case()
    case.history.acks.clear()
    assert case.judge() == ["pending, and forgotten"]
    case.history.disasters.append(Disaster("disk", 1, 12.5, 0.0, "always"))
    case.history.disasters.append(Disaster("disk", 2, 12.5, 0.0, "always"))
    assert case.judge() == []


def test_an_entry_is_given_twice_in_a_region() -> None:
    case = Case()
    again = replace(case.history.deliveries[0], at_s=13.0)
    case.history.deliveries.append(again)
    assert case.judge() == ["delivered twice in a region"]
    case.history.disasters.append(Disaster("power", 1, 12.5, 10.0, "everysec"))
    assert case.judge() == []
    case.history.disasters[0].policy = "always"
    assert case.judge() == ["delivered twice in a region"]
    again.fresh = False  # it asked for what was pending
    assert case.judge() == []


def test_what_was_settled_is_read_again() -> None:
    case = Case()
    case.settled = {b"1-1"}
    assert case.judge() == ["settled, but read again"]
    case.history.disasters.append(Disaster("disk", 1, 9.0, 0.0, "always"))
    assert case.judge() == ["settled, but read again"]  # it hears of it first
    case.history.disasters[0] = Disaster("power", 1, 9.0, 6.0, "everysec")
    assert case.judge() == ["settled, but read again"]  # it was on the disk, and see region 2
    case.history.disasters[0].since_s = 4.0
    assert case.judge() == ["settled, but read again"]
    case.history.deliveries[1].region = 1
    assert "settled, but read again" not in case.judge()
    case.history.deliveries[1].region = 2
    case.history.disasters.append(Disaster("disk", 2, 9.0, 0.0, "always"))
    assert case.judge() == []
