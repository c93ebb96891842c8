"""Groups are read to their end once all have met: nothing is skipped, and nothing read again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from simulator.checks import Checks
from simulator.ledger import Violated
from simulator.oracle import ID, NO_ID, read_id, read_lanes, show_id
from simulator.region import Delivery, Dots, Region, reply_ids
from simulator.scenarios import Refused

if TYPE_CHECKING:
    from simulator.world import World

READER: Final = b"drain"


class GroupsEnd:
    """Reads all groups: I4 and I5."""

    def __init__(self, world: World, checks: Checks) -> None:
        self._world: Final = world
        self._checks: Final = checks

    def read(self) -> None:
        """I4, I5: read all groups to the end, acknowledge it in one region, move to another."""
        for region in self._world.regions.values():  # a key may be hidden in one of them
            for key, view in sorted(region.view.keys.items()):
                for group in view.groups():  # they may have as much pending as they like
                    self._checks.call(
                        region, b"XGROUP", b"SETMODE", key, group, b"MAX-PENDING", b"0"
                    )
                    if group in view.moved:
                        self._checks.call(region, b"AA", b"MOVE", key, group, b"*", b"FORCE")
            self._checks.look(region)
        self._world.meet()
        for region in self._world.regions.values():
            for key, view in sorted(region.view.keys.items()):
                for group in view.groups():
                    if self._drain(region, key, group):
                        self._skipped(region, key, group)
        self._world.meet()
        first, *others = self._world.regions.values()
        simple: list[tuple[bytes, bytes]] = []
        for key, view in sorted(first.view.keys.items()):
            for group in view.groups():
                if self._acknowledge(first, key, group) and self._is_simple(key, group):
                    simple.append((key, group))
        self._world.pass_time(100)
        self._world.meet()
        for region in others:
            for key, group in simple:
                if group in region.view.key(key).groups():
                    self._moved(region, key, group)

    def _drain(self, region: Region, key: bytes, group: bytes) -> bool:
        """Read a group to its end; whether it is there."""
        words = [b"XREADGROUP", b"GROUP", group, READER, b"COUNT", b"50", b"STREAMS", key, b">"]
        for _ in range(1000):
            reply = self._checks.call(region, *words)
            if isinstance(reply, Refused):
                self._checks.look(region)
                if region.hides(key) or group not in region.view.key(key).groups():
                    return False  # its time has come
                raise Violated(f"I4: region {region.number} cannot read {key!r}: {reply}")
            ids = reply_ids(reply)
            self._checks.look(region)
            if not ids:
                return True
            self._checks.given(region, words, ids, True)
        raise Violated(f"I4: {key!r} {group!r} is read without end in region {region.number}")

    def _skipped(self, region: Region, key: bytes, group: bytes) -> None:
        """I4."""
        view = region.view.key(key)
        living = view.living(group)
        creates = region.knows(key, group)
        everywhere = self._world.everyone()
        readers = everywhere if group in view.moved else [region]  # what they had may have moved
        # What is pending here was given out, be it by a region that has lost its disk since.
        rows = self._checks.call(region, b"XPENDING", key, group, b"-", b"+", b"100000")
        here: set[bytes] = {row[0] for row in rows} if isinstance(rows, list) else set()
        acked: set[bytes] = set()
        passed: list[ID] = []
        for other in readers:
            here |= _ids(other.delivered.get((key, group), []), creates)
            passed += [read_id(i) for i in _ids(other.moved.get((key, group), []), creates)]
        for other in everywhere:
            acked |= _ids(other.acked.get((key, group), []), creates)
        limit = max(passed, default=NO_ID)
        for entry in view.entries():
            text = show_id(entry.id)
            if view.acknowledged(group, entry.lane, entry.id) and text not in acked:
                raise Violated(f"I4: nobody has acknowledged {text!r} of {key!r} {group!r}")
            if text in here or text in acked or entry.id <= limit:
                continue
            if all(_is_above(create.start, entry.lane, entry.id) for create in living):
                raise Violated(
                    f"I4: {key!r} {group!r} in region {region.number} has skipped {text!r} of "
                    f"lane {entry.lane!r}, start {[c.start for c in living]}"
                )

    def _acknowledge(self, region: Region, key: bytes, group: bytes) -> bool:
        """Acknowledge all that is pending; whether the group is there."""
        rows = self._checks.call(region, b"XPENDING", key, group, b"-", b"+", b"100000")
        if isinstance(rows, list) and rows:
            ids = [row[0] for row in rows]
            self._checks.call(region, b"XACK", key, group, *ids)
            self._checks.note(region, region.acked, (key, group), ids)
        self._checks.look(region)
        return isinstance(rows, list)

    def _is_simple(self, key: bytes, group: bytes) -> bool:
        """Whether a group has begun at 0, once, and all it gave is pending or acknowledged."""
        if (key, group) in self._checks.pending_by_hand:
            return False
        for region in self._world.everyone():
            if region.moved.get((key, group)):
                return False
        view = next(iter(self._world.regions.values())).view.key(key)
        if group in view.moved:
            return False
        living = view.living(group)
        return len(living) == 1 and living[0].start in (b"0", b"0-0")

    def _moved(self, region: Region, key: bytes, group: bytes) -> None:
        """I5: what was acknowledged in another region is not read here."""
        rows = self._checks.call(region, b"XPENDING", key, group, b"-", b"+", b"100000")
        self._checks.look(region)
        if region.hides(key) or group not in region.view.key(key).groups():  # its time has come
            return
        assert isinstance(rows, list), rows
        there = {show_id(entry.id) for entry in region.view.key(key).entries()}
        pending = [row for row in rows if row[0] in there]
        if pending:
            raise Violated(f"I5: region {region.number} has {key!r} {group!r} pending: {pending}")
        for back in (False, True):
            if back:
                self._checks.call(region, b"XGROUP", b"SETID", key, group, b"0")
            words = [b"XREADGROUP", b"GROUP", group, READER, b"STREAMS", key, b">"]
            ids = reply_ids(self._checks.call(region, *words))
            self._checks.look(region)
            if ids:
                raise Violated(
                    f"I5: {key!r} {group!r} moved to region {region.number} is read again: {ids}"
                )


def _ids(deliveries: list[Delivery], creates: Dots) -> set[bytes]:
    """The IDs of those that a create which lives had to do with."""
    found: set[bytes] = set()
    for delivery in deliveries:
        if delivery.creates & creates:
            found.update(delivery.ids)
    return found


def _is_above(start: bytes, lane: bytes, entry_id: ID) -> bool:
    """Return whether an entry is one that a group which starts there is to read."""
    if start in (b"0", b"-"):
        return True
    if b"=" in start:
        return entry_id > read_lanes(start).get(lane, NO_ID)
    return entry_id > read_id(start)
