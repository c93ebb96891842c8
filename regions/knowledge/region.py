"""One region: its identity, and its knowledge of the others."""

from __future__ import annotations

from typing import Final

from headrace.regions.knowledge.records import XADD
from headrace.regions.knowledge.stability import (
    NO_STABLE_MS,
    Beat,
    covers_all,
    has_all_before,
    least_promise,
    stable_numbers,
)
from headrace.storage.sharing import Member, makes_members
from headrace.storage.vectors import (
    Dot,
    Numbers,
    encode_numbers,
    epoch_of,
    lane_name,
    origin_of,
    raise_numbers,
    region_of,
)

NONCE_ENDS: Final = b"sj"  # each says why an epoch began without taking writes

GENERATION_SHIFT: Final = 20
LANE_SHIFT: Final = 40  # where a lane stands in a sequence, mostly none does
LANE_PARTS: Final = 1 << 22  # a sequence has no more than 63 bits: many clients have no more
STEP_SHIFT: Final = 4  # the lower bits of a sequence are the region
STEP: Final = 1 << STEP_SHIFT
STEPS: Final = 1 << (GENERATION_SHIFT - STEP_SHIFT)  # sequences that a region has in a millisecond


NEVER_MS: Final = -(2**40)


class Region(Member):
    """This region.

    Attributes:
        epoch: with its number, it makes the name of this origin.
        generation: how many times a tail may have been lost; it stands in every ID.
        nonce: distinguishes two lives that took the same epoch.
        process: distinguishes this process from any other one; empty where that is not needed.
        caught: the nonce of the latest epoch in which it has caught up with the others.
        count: how many records this origin has written.
        numbers: how many are known here of each other origin, earlier own epochs included.
        last_lane: the highest number that this origin has given a lane.
        promise_ms: every ID that will be made here has more milliseconds than this.
        joined: the other regions as they have joined while all ran.
        forgotten: regions that take part no more, and their last epoch.
        met: the latest epoch in which the folder of each region that has introduced itself since
            this start was empty.
        nonces: of the epochs in which others have introduced themselves, by origin.
        unkept: origins of these of which the file does not say that yet.
        versions: the latest version of the exchange that each region has said it speaks.
        beats: the latest of each region.
        kept_promise_ms: the promise in its file, which may be higher, because not each is recorded.
        synced_promise_ms: how much of that is on the disk. Others are promised no more, because a
            power cut would take it back, and then lower IDs could come.
        promises: up to which millisecond a region makes no more IDs, all that it wrote before being
            here.
        promised_in: in which epoch each of them has promised, the latest.
        reported: what each of them said it knew, when its promise was noted last.
        partings: the records that have let regions take part no more, since this start.
        asked_ms, others_asked_ms: when a client asked here, or may have asked in another region,
            what is stable; by the monotonic clock.
        beaten_ms: when it said so to the others.
        stable_readers: keys on which clients wait until more is stable.
        synced: what is known here and on the disk.
        garbage: living keys that remember what may be forgotten once all regions know of it. All
            tombstones are like that, and are not listed here.
        garbage_known: what was known here when the latest of that came.
        looks_again: garbage is to be looked at though no more is stable: some came that is old, or
            its end could not be recorded.
        emitted: how many effects of each name, XADD left out, it has made since its start.
        unpublished: groups, as (key, name), of which more may be acknowledged than others know.
        pairs_merged: how often it has removed one of two entries for one message.
        others_lost: how many keys that it had alone have given way to streams of their name.
    """

    def __init__(self, region: int) -> None:
        super().__init__(region, origin_of(region, 0))
        self.process = b""
        self.asked_ms = NEVER_MS
        self.others_asked_ms = NEVER_MS
        self.beaten_ms = NEVER_MS
        self.stable_readers: dict[bytes, None] = {}
        self.emitted: dict[bytes, int] = {}
        self.pairs_merged = 0
        self.others_lost = 0
        self.begin_anew()

    def begin_anew(self) -> None:
        """Know nothing, not even of itself."""
        self.origin = origin_of(self.id, 0)
        self.epoch = 0
        self.generation = 0
        self.nonce = b""
        self.caught = b""
        self.count = 0
        self.numbers: Numbers = {}
        self.last_lane = 0
        self.promise_ms = 0
        self.joined: set[int] = set()
        self.forgotten: dict[int, int] = {}
        self.met: dict[int, int] = {}
        self.nonces: dict[bytes, bytes] = {}
        self.unkept: dict[bytes, None] = {}
        self.versions: dict[int, int] = {}
        self.beats: dict[int, Beat] = {}
        self.kept_promise_ms = 0
        self.synced_promise_ms = 0
        self.promises: dict[int, int] = {}
        self.promised_in: dict[int, int] = {}
        self.reported: dict[int, Numbers] = {}
        self.partings: Numbers = {}
        self.synced: Numbers = {}
        self.garbage: dict[bytes, None] = {}
        self.garbage_known: Numbers = {}
        self.looks_again = False
        self._counted_from = 0  # the number of its last record before that start, or this epoch
        self._made_before = 0  # how many records it has made since that start in earlier epochs
        self.unpublished: dict[tuple[bytes, bytes], None] = {}
        self._stable_ms = NO_STABLE_MS

    def note_garbage(self, key: bytes, dot: Dot) -> None:
        """Note a key that remembers a removal until all regions know of it."""
        self.garbage[key] = None
        self.garbage_known = self.known()
        self.note_left([dot])

    def note_garbage_of_copy(self, key: bytes, theirs: Numbers) -> None:
        """Note a key that remembers something, from a copy whose maker knows ``theirs``."""
        self.garbage[key] = None
        self.looks_again = True
        self.garbage_known = self.known()
        raise_numbers(self.garbage_known, theirs)

    def note_left(self, dots: list[Dot]) -> None:
        """Note records that something is remembered for until all regions know of them."""
        for origin, number in dots:
            raise_numbers(self.garbage_known, {origin: number})

    def wants_beat(self, remembers: bool) -> bool:
        """Return whether a beat could let others forget something that none before has let them.

        ``remembers``: there is something here that may be forgotten.
        """
        if len(self.members()) < 2:
            return False
        beat = self.beats.get(self.id)
        numbers: Numbers = {} if beat is None else beat.numbers
        if not covers_all(numbers, self.partings) and covers_all(self.synced, self.partings):
            return True
        if not remembers:
            return False
        if not self.garbage_known:
            self.garbage_known = self.known()
        for origin, number in self.synced.items():
            wanted = max(1, self.garbage_known.get(origin, 0))
            if numbers.get(origin, 0) < min(number, wanted):
                return True
        return beat is None

    def members(self) -> list[int]:
        """Return the regions that take part, this one included."""
        found = {self.id} | self.peers | self.joined
        return sorted([member for member in found if not self.is_forgotten(member)])

    @property
    def begun(self) -> int:
        """The epoch in which the folder of this region was empty."""
        return begun_in(self.nonce, self.epoch)

    def meet(self, member: int, begun: int) -> None:
        """Note that a region has introduced itself, whose folder was empty in an epoch."""
        self.met[member] = max(begun, self.met.get(member, -1))

    def latest_met(self, member: int) -> int:
        """Return the latest epoch in which a region has introduced itself; -1 for none."""
        epochs = [epoch_of(origin) for origin in self.nonces if region_of(origin) == member]
        return max(epochs, default=-1)

    def note_met(self, origin: bytes, nonce: bytes, version: int) -> None:
        """Note the nonce of another region's epoch, if it has one, and its version."""
        if not nonce:
            return  # its identity is not known yet
        member = region_of(origin)
        if self.nonces.get(origin) != nonce or self.versions.get(member) != version:
            self.nonces[origin] = nonce
            self.versions[member] = version
            self.unkept[origin] = None

    def unaware(self, version: int) -> int:
        """Return a member that has not said that it speaks a version; 0 where all have."""
        for member in self.members():
            if member != self.id and self.versions.get(member, 0) < version:
                return member
        return 0

    def note_beat(self, member: int, beat: Beat) -> None:
        """Note the beat of a region: what it has on its disk, unless its epoch is forgotten."""
        if self.forgotten.get(member, -1) < beat.epoch:
            self.beats[member] = beat

    def forget(self, member: int, epoch: int) -> None:
        """Note that a region takes part no more, in this epoch or an earlier one."""
        epoch = self.forgotten[member] = max(epoch, self.forgotten.get(member, 0))
        beat = self.beats.get(member)
        if beat is not None and beat.epoch <= epoch:
            del self.beats[member]  # the disk of an earlier life says nothing of a later one

    def is_forgotten(self, member: int) -> bool:
        """Return whether a region takes part no more, and has not come back as a new one."""
        epoch = self.forgotten.get(member)
        if epoch is None:
            return False
        if member == self.id:
            return self.begun <= epoch
        latest = max(self.met.get(member, -1), latest_epoch(self.numbers, member))
        if latest <= epoch:  # one that had come back before this start may have written nothing
            latest = max([latest, *self._begun_by(member)])
        return latest <= epoch

    def _begun_by(self, member: int) -> list[int]:
        """Return in which epochs a region that has introduced itself had an empty folder."""
        return [
            begun_in(nonce, epoch_of(origin))
            for origin, nonce in self.nonces.items()
            if region_of(origin) == member
        ]

    def has_heard_of(self, member: int) -> bool:
        """Return whether a region has ever taken part, or was to, as far as is known here."""
        if member in self.peers or member in self.joined or member in self.forgotten:
            return True
        if member in self.met or latest_epoch(self.numbers, member) >= 0:
            return True
        return any(region_of(origin) == member for origin in self.nonces)

    def stable(self) -> Numbers:
        """Return what every member has on its disk, and all that is concurrent with it is here."""
        members = self.members()
        if members == [self.id]:
            return self.synced.copy()
        return stable_numbers(self.beats, members, self.known(), self.partings)

    def stable_ms(self) -> int:
        """Return the ms up to which no ID can come any more, or ``NO_STABLE_MS``; never falls."""
        others = self._others()
        least_ms = least_promise(others, self.promises, self._safe_promise_ms())
        if least_ms > self._stable_ms and self._has_all_before(others):
            self._stable_ms = least_ms
        return self._stable_ms

    def _others(self) -> list[int]:
        """Return all others of which something may come: those that take part, or are about to."""
        found = {*self.members(), *self.met}
        return [member for member in found if member != self.id and not self.is_forgotten(member)]

    def _has_all_before(self, others: list[int]) -> bool:
        """Return whether no more can come of what was made before the others promised."""
        vectors = [self.known()]
        epochs = {self.id: self.epoch}
        for member in others:
            if member not in self.reported:
                return False
            vectors.append(self.reported[member])
            epochs[member] = self.promised_in.get(member, 0)
        if not all(covers_all(numbers, self.partings) for numbers in vectors):
            return False  # a region may still learn more from one that takes part no more
        return has_all_before(vectors, epochs)

    def forget_promises(self) -> None:
        """Forget the promises, because less is here than there was: nothing is stable so far."""
        self.promises.clear()
        self.reported.clear()
        self._stable_ms = NO_STABLE_MS

    def latest_promise(self, own_ms: int, most_ms: int) -> int:
        """Return the most that a member has promised, up to ``most_ms``; at least ``own_ms``."""
        found = own_ms
        for member, promise_ms in self.promises.items():
            if found < promise_ms <= most_ms and not self.is_forgotten(member):
                found = promise_ms
        return found

    def tells_promise_ms(self) -> int:
        """Return what others may be promised: nothing until they can see which epoch this is."""
        return 0 if self.is_in_unseen_epoch() else self._safe_promise_ms()

    def _safe_promise_ms(self) -> int:
        """Return what this region promises, as far as no power cut can make it forget that."""
        return min(self.promise_ms, self.synced_promise_ms)

    def is_in_unseen_epoch(self) -> bool:
        """Return whether nothing was written in this epoch, and there may be an earlier one."""
        return not self.count and (self.epoch > 0 or latest_epoch(self.numbers, self.id) >= 0)

    def has_outlived(self, member: int, epoch: int, begun: int) -> bool:
        """Return whether an epoch of another region is over: nothing is taken from it any more."""
        return latest_epoch(self.numbers, member) > epoch or self.forgotten.get(member, -1) >= begun

    def known(self) -> Numbers:
        """Return all that is known here, own records included."""
        numbers = self.numbers.copy()
        if self.count:
            numbers[self.origin] = self.count
        return numbers

    def known_text(self) -> bytes:
        return encode_numbers(self.known())

    def number_of(self, origin: bytes) -> int:
        """Return how many records of an origin are known here."""
        return self.count if origin == self.origin else self.numbers.get(origin, 0)

    def learned(self, origin: bytes, number: int) -> None:
        """Note that a record of an origin, and all before it, has been applied here."""
        if origin == self.origin:
            self.count = number
        else:
            self.numbers[origin] = number

    def knows(self, dot: Dot) -> bool:
        """Return whether a record has been applied here."""
        return self.number_of(dot[0]) >= dot[1]

    def is_outdone(self, numbers: Numbers) -> bool:
        """Return whether another region with these numbers has met more of this one than it knows.

        It may be more of this epoch, or a later one, in which nothing of an earlier one is taken.
        """
        return (
            numbers.get(self.origin, 0) > self.count or latest_epoch(numbers, self.id) > self.epoch
        )

    def next_dot(self) -> Dot:
        """Return the name of the next record of this region."""
        return self.origin, self.count + 1

    def next_lane(self) -> int:
        """Return the number that a new lane of this origin would have."""
        return max(self.count + 1, self.last_lane + 1)

    def new_lane(self) -> int:
        """Return a number for a new lane of this origin; no number is given twice."""
        self.last_lane = self.next_lane()
        return self.last_lane

    def met_lane(self, origin: bytes, number: int) -> None:
        """Note that a record of an origin has named a lane."""
        if origin == self.origin and number > self.last_lane:
            self.last_lane = number

    def count_from_here(self) -> None:
        """Count from here what this region makes: all has been loaded."""
        self._counted_from = self.count
        self._made_before = 0

    def made(self, name: bytes) -> int:
        """Return how many effects of a name it has made since its start.

        Those of XADD are all that no other name has: so XADD need not count.
        """
        if name != XADD:
            return self.emitted.get(name, 0)
        others = sum([count for other, count in self.emitted.items() if other != XADD])
        return self._made_before + self.count - self._counted_from - others

    def base_seq(self) -> int:
        """Return the lowest sequence that this region gives."""
        return self.generation << GENERATION_SHIFT | self.id

    def base_seq_in(self, lane: int) -> int:
        """Return the lowest sequence that this region gives in one lane of this epoch alone."""
        return (1 + (self.epoch + lane) % LANE_PARTS) << LANE_SHIFT | self.base_seq()

    def begin_epoch(self, epoch: int, generation: int, nonce: bytes) -> None:
        """Become another origin; what was written as the one before stays known."""
        self.generation = generation
        self.nonce = nonce
        if epoch == self.epoch:
            return
        if self.count:
            self.numbers[self.origin] = self.count
        self._made_before += self.count - self._counted_from
        self.epoch = epoch
        self.origin = origin_of(self.id, epoch)
        self.count = self.numbers.pop(self.origin, 0)
        self._counted_from = self.count
        self.last_lane = self.count


makes_members(Region)


def region_as(member: Member | None) -> Region:
    """Return a member as a region: there are no others."""
    assert isinstance(member, Region)
    return member


def begun_in(nonce: bytes, epoch: int) -> int:
    """Return in which epoch the folder of a region was empty, as the nonce of a later one says.

    A region that joins as a new one has an empty folder in its present epoch. One that was
    forgotten, and goes on with its files, had it in an epoch that is forgotten. Nonces that older
    versions have made do not say it.
    """
    _, _, text = nonce.rpartition(b".")
    digits = text.rstrip(NONCE_ENDS)
    return min(int(digits), epoch) if b"." in nonce and digits.isdigit() else epoch


def latest_epoch(numbers: Numbers, region: int) -> int:
    """Return the highest epoch of a region that a number vector knows; -1 where it knows none."""
    epochs = [epoch_of(origin) for origin in numbers if region_of(origin) == region]
    return max(epochs, default=-1)


def first_lane(region: int) -> bytes:
    """Return the lane of the entries that a single server held before it became a region."""
    return lane_name(origin_of(region, 0), 0)
