"""What holds between regions: who knows the same shows the same, and it is what the records say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.regions.lanes.stream import RegionalStream
from simulator.checks import LOOKER, Checks, ascends, field
from simulator.ledger import Violated
from simulator.oracle import KeyView, show_id
from simulator.process import Died
from simulator.region import Region
from simulator.resp import read_replies
from simulator.scenarios import Refused
from simulator.workload import STRICT

if TYPE_CHECKING:
    from simulator.world import World

AS_WANTED: Final = object()  # entries as they have to be


class States:
    """Compares what regions show: I1 to I3, I6, I7, I9 and I14."""

    def __init__(self, world: World, checks: Checks) -> None:
        self._world: Final = world
        self._checks: Final = checks

    def pairs(self) -> None:
        """I1, I2: look at all regions, and compare those that know the same."""
        seen: dict[tuple[tuple[bytes, int], ...], tuple[int, dict[bytes, object]]] = {}
        for region in self._world.regions.values():
            if not region.ready or region.shows_nothing:
                continue
            shown = self._shown(region)
            if region.unwritten:  # be it what expired because it was looked at
                continue
            self.state(region, shown)
            state = self.more_state(region, shown)
            numbers = tuple(sorted((o, n) for o, n in region.known.items() if n))
            if numbers in seen:
                other, found = seen[numbers]
                hidden = found.keys() ^ state.keys()  # their time has come, by one of two clocks
                found = {key: found[key] for key in found if key not in hidden}
                state = {key: state[key] for key in state if key not in hidden}
                if found != state:
                    raise Violated(
                        f"I1: regions {other} and {region.number} know the same and differ: "
                        f"{_difference(found, state)}"
                    )
            else:
                seen[numbers] = (region.number, state)

    # The state of one region

    def _shown(self, region: Region) -> dict[bytes, list[object]]:
        """Return what a region shows of each key, when all that is due has expired."""
        while True:
            view = region.view
            keys = sorted({*self._world.workload.keys, *view.keys})
            shown = {key: self._shown_of(region, key) for key in keys}
            # A copy that was joined makes another view, even where it brought nothing new.
            if not self._checks.look(region) and region.view is view:
                return shown

    def _shown_of(self, region: Region, key: bytes) -> list[object]:
        """The replies of what is asked for of one key at once."""
        view = region.view.key(key)
        requests = [
            [b"XRANGE", key, b"-", b"+"],
            [b"XLEN", key],
            [b"EXISTS", key],
            [b"XINFO", b"GROUPS", key],
            [b"XINFO", b"STREAM", key],
            [b"PEXPIRETIME", key],
            [b"AA", b"DIGEST", key],
        ]
        for group in view.groups():
            requests += [
                [b"XPENDING", key, group],
                [b"XPENDING", key, group, b"-", b"+", b"10000"],
                [b"XINFO", b"CONSUMERS", key, group],
            ]
        wire = region.call_all(LOOKER, requests)
        replies: list[object] = []
        wanted = view.replies()
        if wire.startswith(wanted):  # nobody needs to read them
            entries = view.entries()
            replies = [AS_WANTED, len(entries), int(view.exists())]
            wire = wire[len(wanted) :]
        replies += read_replies(wire)
        assert len(replies) == len(requests), replies
        for words, reply in zip(requests, replies, strict=True):
            if isinstance(reply, Refused) and b"internal error" in reply.text:
                raise Violated(f"internal error: region {region.number} at {words!r}")
        return replies

    def state(self, region: Region, shown: dict[bytes, list[object]]) -> None:
        """I2: what clients see is what the records say."""
        for key, (entries, length, exists, groups, _, _, _, *pending) in shown.items():
            view = region.view.key(key)
            if not exists and view.exists() and region.hides(key):
                continue  # its time has come, and it may not be removed yet
            wanted: object = AS_WANTED
            if entries is not AS_WANTED:
                wanted = [[show_id(e.id), e.fields] for e in view.entries()]
            if entries != wanted:
                raise Violated(
                    f"I2: {key!r} in region {region.number}: {_difference(entries, wanted)}"
                )
            if length != len(view.entries()):
                raise Violated(f"I2: XLEN {key!r} is {length} and not {len(view.entries())}")
            if exists != view.exists():
                raise Violated(
                    f"I2: EXISTS {key!r} in region {region.number} is {exists}: {view.last} "
                    f"{view.deleted} {view.groups()}"
                )
            found = groups if exists else []
            names = sorted(field(group, b"name") for group in found)  # type: ignore[attr-defined, type-var]
            if names != view.groups():
                raise Violated(
                    f"I2: groups of {key!r} in region {region.number}: {names}, "
                    f"and not {view.groups()}"
                )
            self._unique(region, key, view)
            for at, group in enumerate(view.groups()):
                self._pending(key, group, *pending[3 * at : 3 * at + 3])

    def _unique(self, region: Region, key: bytes, view: KeyView) -> None:
        """I3."""
        if self._world.mode == STRICT and not self._world.renames:
            again = self._checks.named_again
            ids = [e.id for e in view.entries() if (key, e.lane, e.id) not in again]
            if len(set(ids)) != len(ids):
                raise Violated(f"I3: {key!r} in region {region.number} has an ID twice: {ids}")

    def _pending(
        self, key: bytes, group: bytes, whole: object, rows: object, consumers: object
    ) -> None:
        """I7: what a group has pending is what its consumers have, each once."""
        assert isinstance(whole, list)
        assert isinstance(rows, list)
        assert isinstance(consumers, list)
        ids = [row[0] for row in rows]
        if whole[0] != len(ids) or not ascends(ids, True):
            raise Violated(f"I7: {key!r} {group!r} has {whole[0]} pending: {ids}")
        counts: dict[bytes, int] = {}
        for row in rows:
            counts[row[1]] = counts.get(row[1], 0) + 1
        for consumer in consumers:
            name = field(consumer, b"name")
            assert isinstance(name, bytes)
            if field(consumer, b"pending") != counts.pop(name, 0):
                raise Violated(f"I7: consumer {name!r} of {key!r} {group!r} has others pending")
        if set(counts) - {b""}:
            raise Violated(f"I7: {key!r} {group!r}: nobody has what {counts} have pending")

    def more_state(self, region: Region, shown: dict[bytes, list[object]]) -> dict[bytes, object]:
        """Return what else is the same where the numbers are."""
        found: dict[bytes, object] = {}
        for key, (_, _, _, groups, stream, deadline, digest, *_) in shown.items():
            modes: list[object] = []
            if isinstance(groups, list):
                modes = [(field(g, b"name"), field(g, b"max-pending")) for g in groups]
            last = field(stream, b"last-generated-id") if isinstance(stream, list) else None
            if last is None:
                continue
            if not region.view.key(key).exists():
                digest = None
            found[key] = (sorted(modes), last, deadline, digest)  # type: ignore[type-var]
        return found

    def local_state(self, region: Region) -> dict[tuple[bytes, bytes], object]:
        """Return what is of a region alone, and survives its process."""
        found: dict[tuple[bytes, bytes], object] = {}
        for key, view in sorted(region.view.keys.items()):
            for group in view.groups():
                rows = self._checks.call(region, b"XPENDING", key, group, b"-", b"+", b"10000")
                if isinstance(rows, list):
                    found[key, group] = [(row[0], row[1]) for row in rows]
        self._checks.look(region)
        return found

    def same_local_state(self, region: Region, before: dict[tuple[bytes, bytes], object]) -> None:
        """I9: a process that was killed has lost nothing that it had answered."""
        # What was hidden may be shown, because the clock was set back meanwhile.
        after = {group: rows for group, rows in self.local_state(region).items() if group in before}
        for key, group in list(before):
            # Its time may have come meanwhile.
            if group not in region.view.key(key).groups() or region.hides(key):
                del before[key, group]
        if after != before:
            raise Violated(f"I9: region {region.number} after a kill: {_difference(before, after)}")
        self.state(region, self._shown(region))

    # When all have met

    def everything(self, when: str) -> None:
        """All that has to hold when all know the same."""
        try:
            self.pairs()
            for region in self._world.regions.values():
                region.check_counts()
            self._one_of_a_pair()
        except Violated as violation:
            raise Violated(f"{violation} ({when})") from None
        except Died as died:
            raise Violated(f"a region stopped ({when}): {died}") from None

    def no_garbage(self) -> None:
        """I6: nothing is left to be remembered."""
        for region in self._world.regions.values():
            left = region.garbage()
            if left:
                raise Violated(f"I6: region {region.number} still remembers {left}")
            for key in region.view.keys:
                entry = region.server.data.dbs[0].peek(key)
                value = None if entry is None else entry.value
                if isinstance(value, RegionalStream) and (names := outlived(value)):
                    raise Violated(f"I6: region {region.number} keeps {names} of {key!r}")

    def _one_of_a_pair(self) -> None:
        """I14, where nothing has happened that the specification leaves out."""
        if self._world.forgets_pairs or any(each.has_joined for each in self._world.everyone()):
            return
        for region in self._world.regions.values():
            for key, view in region.view.keys.items():
                if view.deletes or view.expiries:
                    continue
                for pair, places in view.pairs.items():
                    alive = [p for p in places if view.is_alive(*p)]
                    if len(alive) > 1:
                        raise Violated(f"I14: {key!r} has {pair} as {alive}")


def outlived(stream: RegionalStream) -> list[bytes]:
    """Lanes that are empty, of epochs after which their regions have written others above them.

    One of which more was removed than has come is none: what it waits for may be lost everywhere.
    """
    return [
        lane.name
        for lane in stream.lanes
        if not lane.log.length and not lane.early and lane.last() != (0, 0)
        if max(lane.deleted, lane.trimmed) <= lane.last()
        for later in stream.lanes
        if later.key[0] == lane.key[0] and later.key[1] > lane.key[1]
        if later.last() >= lane.last()
    ]


def _difference(one: object, other: object) -> str:
    """Return where two states differ, as short as can be."""
    if isinstance(one, dict) and isinstance(other, dict):
        keys = [key for key in {**one, **other} if one.get(key) != other.get(key)]
        return "; ".join(f"{key!r}: {one.get(key)!r} and {other.get(key)!r}" for key in keys[:2])
    if isinstance(one, list) and isinstance(other, list):
        mine = [item for item in one if item not in other]
        yours = [item for item in other if item not in one]
        return f"{mine[:4]} alone, and missing {yours[:4]} (of {len(one)} and {len(other)})"
    return f"{one!r} and {other!r}"
