"""What a history says: was anything lost, doubled, skipped, or given twice without a reason?

The words are those of Jepsen's ``set-full``. An acknowledged entry is *stable* when it ends in
every region; *lost* when it is in none; *never read* when no read has found it; *stale* when a read
in its region missed it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Final

from support.region_faults.history import (
    CUT,
    DONE,
    DRAINER,
    KEPT,
    KEYS,
    LOG,
    ONCE,
    REFUSED,
    TRIMMED,
    Add,
    Delivery,
    Disaster,
    History,
    Removal,
)

Entries = dict[str, list[tuple[bytes, bytes]]]  # by key: IDs and values, in order


class Findings:
    """What was found.

    Attributes:
        wrong: what must not be, in words.
        counts: everything that was counted, the bad and the good.
    """

    def __init__(self) -> None:
        self.wrong: Final[list[str]] = []
        self.counts: Final[Counter[str]] = Counter()

    def blame(self, kind: str, text: str) -> None:
        self.counts[kind] += 1
        if self.counts[kind] <= 5:
            self.wrong.append(f"{kind}: {text}")


class Checker:
    """Judges the history of a campaign, after a round.

    Args:
        history: of the campaign.
        began_s: when the round began.
    """

    def __init__(self, history: History, began_s: float, findings: Findings) -> None:
        self._history: Final = history
        self._began_s: Final = began_s
        self._findings: Final = findings
        self._given_again: Final[set[bytes]] = set()  # IDs of CUT, to another entry after a DEL

    def check_entries(self, final: Entries) -> None:
        """Compare the entries that are there, which are the same in all regions."""
        by_value = {add.value: add for add in self._history.adds}
        for key in KEYS:
            self._check_order(key, final[key])
            for entry_id, value in final[key]:
                add = by_value.get(value)
                if add is None or add.key != key:
                    self._findings.blame("unheard of", f"{value!r} is in {key}")
                elif add.outcome == REFUSED:
                    self._findings.blame("refused but there", f"{add}")
                elif add.outcome == DONE and add.entry_id != entry_id and key != ONCE:
                    self._findings.blame("another ID", f"{add} is {entry_id!r}")
        self._check_unique()
        there = {key: {value for _, value in final[key]} for key in KEYS}
        self._check_removals(final)
        for add in self._new(self._history.adds):
            self._check_add(add, there)
        self._check_reads()
        self._check_stable([entry_id for entry_id, _ in final[LOG]])

    def _new(self, adds: Iterable[Add]) -> list[Add]:
        return [add for add in adds if add.began_s >= self._began_s]

    def _check_order(self, key: str, entries: list[tuple[bytes, bytes]]) -> None:
        ids = [_id(entry_id) for entry_id, _ in entries]
        if ids != sorted(ids):
            self._findings.blame("not in order", key)
        if len(set(ids)) != len(ids):
            self._findings.blame("duplicate ID", f"{key}, an ID stands there twice")
        for value, times in Counter(value for _, value in entries).items():
            if times > 1 and not (key == ONCE and self._may_stay_doubled()):
                self._findings.blame("doubled", f"{value!r} is {times} times in {key}")
            elif times > 1:
                self._findings.counts["doubled, as documented"] += 1

    def _may_stay_doubled(self) -> bool:
        """After a lost tail or a full copy a pair of an IDMP producer may stay."""
        return bool(self._history.disasters) or self._history.copies > 0

    def _check_unique(self) -> None:
        """No ID was given to two entries, wherever and whatever became of them."""
        self._given_again.clear()
        given: dict[tuple[str, bytes], bytes] = {}
        for add in self._history.adds:
            if add.outcome == DONE:
                other = given.setdefault((add.key, add.entry_id), add.value)
                if other == add.value:
                    continue
                if add.key == CUT and self._history.clocks_differ:  # as with Redis: see DEL
                    self._given_again.add(add.entry_id)
                    self._findings.counts["an ID once more, after a DEL, by a clock behind"] += 1
                else:
                    self._findings.blame("duplicate ID", f"{add} and {other!r}")

    def _check_add(self, add: Add, there: dict[str, set[bytes]]) -> None:
        counts = self._findings.counts
        is_there = add.value in there[add.key]
        if add.twin:
            twin_key = {"paired": "paired-too", "paired-too": "paired"}[add.key]
            if is_there != (add.twin in there[twin_key]):
                self._findings.blame("torn transaction", f"{add}")
        if add.outcome != DONE:
            counts[f"{add.outcome} XADD"] += 1
            return
        counts["acknowledged XADD"] += 1
        if is_there:
            counts["stable"] += 1
        elif add.key in (CUT, TRIMMED):
            counts["removed or lost"] += 1  # see _check_removals
        elif self._excuse(add.region, add.ended_s):
            counts[f"lost, as may be: {self._excuse(add.region, add.ended_s)}"] += 1
        else:
            self._findings.blame("lost", f"{add}")

    def _excuse(self, region: int, at_s: float) -> str:
        """The disaster that may have cost a region what it acknowledged at a time; or nothing."""
        for disaster in self._history.disasters:
            if disaster.region == region and disaster.since_s <= at_s <= disaster.at_s:
                return disaster.kind
        return ""

    def check_kept(self, before: Entries, after: Entries, regions: int) -> None:
        """What was in all regions before the round is there after it.

        Where all of them have lost something at once, it may be gone.
        """
        hit = {each.region for each in self._history.disasters if self._is_lossy(each)}
        if len(hit) == regions:
            return
        for key in KEYS:
            if key not in (CUT, TRIMMED):
                now = {value for _, value in after[key]}
                for _, value in before.get(key, []):
                    if value not in now:
                        self._findings.blame("lost", f"{value!r} of {key}, which all regions had")

    # Removals

    def _check_removals(self, final: Entries) -> None:
        adds = {add.entry_id: add for add in self._history.adds if add.outcome == DONE}
        cut_there = {entry_id for entry_id, _ in final[CUT]} - self._given_again
        named = defaultdict(list)
        wipes: list[Removal] = []
        trims: list[Removal] = []
        for removal in self._history.removals:
            if removal.kind == "XDEL":
                named[removal.entry_id].append(removal)
            elif removal.outcome != REFUSED:
                (wipes if removal.kind == "DEL" else trims).append(removal)
        for entry_id, removals in named.items():
            done = [each for each in removals if each.outcome == DONE and each.reply]
            kept = [each for each in done if not self._excuse(each.region, each.ended_s)]
            if kept and entry_id in cut_there:
                self._findings.blame("deleted but there", f"{kept[0]}")
        for wipe in wipes:
            self._check_wipe(wipe, cut_there)
        trimmed = sorted(
            (_id(add.entry_id), add.began_s)
            for add in self._history.adds
            if add.key == TRIMMED and add.entry_id
        )
        there = {entry_id for entry_id, _ in final[TRIMMED]} | cut_there
        last_wipe_s = max([wipe.ended_s or 1e18 for wipe in wipes], default=0.0)
        last_trim_s = max([trim.ended_s or 1e18 for trim in trims], default=0.0)
        unsure = sum(add.key == TRIMMED and not add.entry_id for add in self._history.adds)
        newest = {entry_id for entry_id, _ in trimmed[-max(1, KEPT - unsure) :]}
        for add in self._new(adds.values()):
            if add.entry_id in there or self._excuse(add.region, add.ended_s):
                continue
            if add.entry_id in self._given_again:
                continue
            if add.key == CUT and add.entry_id not in named and add.began_s > last_wipe_s:
                self._findings.blame("lost", f"{add}, which nobody removed")
            if add.key == TRIMMED and add.began_s > last_trim_s:
                self._findings.blame("lost", f"{add}, which nobody trimmed")
            if add.key == TRIMMED and _id(add.entry_id) in newest:
                self._findings.blame("trimmed too much", f"{add}")

    def _check_wipe(self, wipe: Removal, there: set[bytes]) -> None:
        """A DEL removes what its region had acknowledged before."""
        if wipe.outcome != DONE or self._excuse(wipe.region, wipe.ended_s):
            return
        for add in self._history.adds:
            seen = add.key == CUT and add.region == wipe.region and add.outcome == DONE
            was_seen = seen and add.ended_s < wipe.began_s
            if was_seen and add.entry_id in there and not self._excuse(add.region, add.ended_s):
                self._findings.blame("deleted but there", f"{add}, by {wipe}")

    # Reads

    def _check_reads(self) -> None:
        """What a region has acknowledged is in each later read of it there."""
        adds = [add for add in self._new(self._history.adds) if add.key == LOG]
        done = [add for add in adds if add.outcome == DONE]
        read: set[bytes] = set()
        for each in self._history.reads:
            if each.began_s < self._began_s:
                continue
            read |= each.values
            self._findings.counts["reads"] += 1
            for add in done:
                if add.region != each.region or add.ended_s >= each.began_s:
                    continue
                if add.value not in each.values and not self._excuse(add.region, add.ended_s):
                    self._findings.blame("stale in its own region", f"{add} at {each.began_s}")
        for region, one, other in self._history.pairs:
            if one != other:
                self._findings.blame("half of a transaction", f"{one} and {other} in {region}")
        last_s = max([each.began_s for each in self._history.reads], default=0.0)
        for add in done:
            if add.value not in read and add.ended_s < last_s:
                self._findings.counts["not read within the round"] += 1

    def _check_stable(self, there: list[bytes]) -> None:
        """Who read what is stable has read all that is there up to the last one, in order."""
        for region, read in self._history.stable.items():
            if not read:
                continue
            self._findings.counts["read as stable"] += sum(1 for _ in read)
            last = _id(read[-1])
            missed = {each for each in there if _id(each) <= last} - set(read)
            ids = [_id(each) for each in read]
            if ids != sorted(set(ids)):
                self._findings.blame("not in order", f"read as stable in region {region}")
            for each in sorted(missed):
                self._findings.blame("late for who reads what is stable", f"{each!r} in {region}")

    # Groups

    def check_group(self, entries: list[tuple[bytes, bytes]], regions: Iterable[int]) -> None:
        """Nobody was skipped, and nobody given twice without a reason.

        Args:
            entries: what is there, after all regions have read all.
        """
        acked = {entry_id for ack in self._history.acks for entry_id in ack.entry_ids}
        given: dict[int, set[bytes]] = {region: set() for region in regions}
        for delivery in self._history.deliveries:
            given[delivery.region].add(delivery.entry_id)
        for entry_id, value in entries:
            for region, ids in given.items():
                if entry_id not in ids and entry_id not in acked:
                    self._findings.blame("skipped", f"{entry_id!r} {value!r} in region {region}")
        self._check_pending(min(given))
        self._check_again()

    def _check_pending(self, first: int) -> None:
        """What was given, and acknowledged by no worker, is pending: so it was taken at the end.

        Args:
            first: the region where all was taken first. In the others it may have been acknowledged
                from there before it was taken.
        """
        taken: dict[bytes, set[int]] = {}
        for each in self._history.deliveries:
            if each.consumer == DRAINER:
                taken.setdefault(each.entry_id, set()).add(each.region)
        acked = {
            entry_id
            for ack in self._history.acks
            for entry_id in ack.entry_ids
            if ack.consumer != DRAINER
        }
        for each in self._history.deliveries:
            if each.at_s < self._began_s or each.consumer == DRAINER or each.entry_id in acked:
                continue
            regions = taken.get(each.entry_id, set())
            is_kept = first in regions if each.region == first else bool(regions)
            if self._was_moved(each.asked_s, 1e18):  # with what is pending
                is_kept = bool(regions) or self._has_lost_anything()
            if not is_kept and not self._lost_since(each.region, each.at_s):
                self._findings.blame("pending, and forgotten", f"{each}")

    def _check_again(self) -> None:
        counts = self._findings.counts
        fresh: dict[tuple[int, bytes], float] = {}
        anywhere: set[bytes] = set()
        for delivery in sorted(self._history.deliveries, key=_when):
            is_new = delivery.at_s >= self._began_s
            if not delivery.fresh:
                counts["delivered again: asked for what is pending"] += is_new
                continue
            key = (delivery.region, delivery.entry_id)
            before_s = fresh.get(key)
            fresh[key] = delivery.at_s
            if not is_new:
                anywhere.add(delivery.entry_id)
                continue
            counts["delivered"] += 1
            if before_s is not None:
                if self._lost_since(delivery.region, before_s):
                    counts["delivered again: its region lost its place"] += 1
                elif self._was_moved(before_s, delivery.at_s):
                    counts["delivered again: the group has moved meanwhile"] += 1
                else:
                    self._findings.blame("delivered twice in a region", f"{delivery}")
            elif delivery.entry_id in anywhere:
                counts["delivered again: in another region"] += 1
            anywhere.add(delivery.entry_id)

    def check_settled(self, settled: set[bytes], regions: int) -> None:
        """What all regions had read and acknowledged before the round is not read again.

        A region whose newest records are gone may read it again before they come back from others.
        One that has lost more may not: it hears what all others know before it reads. So only if
        none of them knows it any more, it may be read again.
        """
        lossy = [each for each in self._history.disasters if self._is_lossy(each)]
        if len({each.region for each in lossy}) == regions:
            return
        hasty = {each.region for each in lossy if each.kind in ("power", "failing")}
        for delivery in self._history.deliveries:
            if delivery.at_s < self._began_s or not delivery.fresh:
                continue
            if delivery.entry_id in settled:
                if delivery.region in hasty:
                    self._findings.counts["settled, and read again where the end was lost"] += 1
                else:
                    self._findings.blame("settled, but read again", f"{delivery}")

    def _is_lossy(self, disaster: Disaster) -> bool:
        """Return whether something may be lost by it that was settled before the round."""
        return disaster.at_s >= self._began_s and disaster.since_s <= self._began_s

    def _was_moved(self, since_s: float, until_s: float) -> bool:
        """Return whether the group was read in other regions at some time between."""
        before = [at_s for at_s in self._history.moves if at_s <= until_s]
        return any(at_s >= since_s for at_s in before)

    def _has_lost_anything(self) -> bool:
        """Whether a region has lost something in this round, be it what another one gave it."""
        return any(disaster.at_s >= self._began_s for disaster in self._history.disasters)

    def _lost_since(self, region: int, at_s: float) -> bool:
        """Return whether a region may have lost what it did at a time."""
        return any(
            disaster.region == region
            and disaster.at_s >= at_s
            and (disaster.kind != "power" or disaster.policy != "always")
            for disaster in self._history.disasters
        )


def _when(delivery: Delivery) -> float:
    return delivery.at_s


def _id(text: bytes) -> tuple[int, int]:
    ms, _, seq = text.partition(b"-")
    return int(ms), int(seq)
