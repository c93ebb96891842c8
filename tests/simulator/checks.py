"""The invariants, and what of them is looked at with each reply and record.

I1 equal numbers, equal state. I2 the entries are those that the records say. I3 an ID is there once
in strict mode, and an entry for whoever added it. I4 a group's readers skip nothing. I5 what was
acknowledged is not read again. I6 garbage leaves nothing. I7 replies ascend, and what is pending is
pending once. I8 the order of records of different origins changes nothing. I9 a crash leaves what
the file says. I10 a copy that is joined is as if records had come. I11 MAXLEN leaves the newest.
I12 what was seen has a lower ID than what is added then. I13 all meet. I14 one entry for a pair.
I15 nothing arrives below a stable ID. I16 records are those of clients, and counted once. I17 who
is forgotten takes no writes, until it comes back as a new one.

I1, I8 and I10 need no look of their own: the state of every region is compared with what the set of
its records means, whatever the order they came in, or whether a copy brought them (``states``).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from simulator.ledger import Numbers, Record, Violated
from simulator.oracle import (
    ID,
    NO_ID,
    Entry,
    KeyView,
    read_added,
    read_id,
    read_numbers,
    show_id,
)
from simulator.process import Client
from simulator.region import WAITERS, Delivery, Region, reply_ids
from simulator.resp import Words
from simulator.scenarios import WAITS, Refused
from simulator.workload import STRICT, Asked

if TYPE_CHECKING:
    from simulator.world import World

LOOKER: Final = "oracle"
READER: Final = b"drain"
AS_WANTED: Final = object()  # entries as they have to be
OF_TIME: Final = frozenset((b"ACK", b"BEAT", b"EXPIRE", b"HAND"))
OF_ARRIVAL: Final = frozenset((b"XDEL", b"BEAT", b"ACK", b"EXPIRE", b"HAND"))
OF_COMMAND: Final[dict[bytes, frozenset[bytes]]] = {
    b"XADD": frozenset((b"XADD", b"TRIM", b"XDEL", b"LIMITS")),
    b"XDEL": frozenset((b"XDEL",)),
    b"XDELEX": frozenset((b"XDEL",)),
    b"XACKDEL": frozenset((b"XDEL", b"ACK")),
    b"XTRIM": frozenset((b"TRIM", b"XDEL")),
    b"DEL": frozenset((b"DEL",)),
    b"UNLINK": frozenset((b"DEL",)),
    b"FLUSHALL": frozenset((b"DEL",)),
    b"FLUSHDB": frozenset((b"DEL",)),
    b"PERSIST": frozenset((b"TTL",)),
    b"PEXPIRE": frozenset((b"TTL", b"DEL")),
    b"PEXPIREAT": frozenset((b"TTL", b"DEL")),
    b"EXPIRE": frozenset((b"TTL", b"DEL")),
    b"RENAME": frozenset((b"DEL", b"XADD", b"XDEL", b"TTL", b"TOP", b"LIMITS")),
    b"RENAMENX": frozenset((b"DEL", b"XADD", b"XDEL", b"TTL", b"TOP", b"LIMITS")),
    b"COPY": frozenset((b"DEL", b"XADD", b"XDEL", b"TTL", b"TOP", b"LIMITS")),
    b"RESTORE": frozenset((b"DEL", b"XADD", b"XDEL", b"TTL", b"TOP", b"LIMITS")),
    b"AA": frozenset((b"MOVE", b"ACK", b"HAND", b"FORGET")),
    b"XSETID": frozenset((b"TOP",)),
    b"XGROUP": frozenset((b"GROUP", b"UNGROUP", b"MODE", b"LIMITS")),
    b"XREADGROUP": frozenset((b"ACK",)),
    b"XACK": frozenset((b"ACK",)),
    b"XCFGSET": frozenset((b"LIMITS",)),
    b"EXEC": frozenset(
        b"XADD TRIM XDEL ACK DEL TTL TOP LIMITS GROUP UNGROUP MODE EXPIRE MOVE HAND".split()
    ),
}
MAKES_ENTRIES: Final = frozenset((b"RENAME", b"RENAMENX", b"COPY", b"RESTORE"))


def kind_of(record: Record) -> bytes:
    return record.words[0] if record.words[0] == b"XADD" else record.words[1]


def ascends(ids: list[bytes], strictly: bool) -> bool:
    found = [read_id(text) for text in ids]
    for before, after in pairwise(found):
        if before > after or (strictly and before == after):
            return False
    return True


class _Told(NamedTuple):
    """A stable ID that a region has answered with, and what it knew then."""

    stable: ID
    known: Numbers


class Checks:
    """Asks regions, and compares."""

    def __init__(self, world: World) -> None:
        self.world: Final = world
        self.pending_by_hand: Final[set[tuple[bytes, bytes]]] = set()  # dropped, or made, in these
        self._given_ids: Final[dict[tuple[bytes, bytes], int]] = {}
        self.named_again: Final[set[tuple[bytes, bytes, ID]]] = set()  # by callers, after a DEL
        self._told: Final[dict[tuple[int, bytes], _Told]] = {}
        self._wanted: Final[dict[tuple[int, str], list[tuple[int, Numbers]]]] = {}

    # While it runs

    def ask(self, region: Region, asked: Asked) -> None:
        """Have a region run what a client asks for, and look at the replies."""
        client = region.client(asked.client)
        if region.is_held(client):
            return  # it waits for an answer
        before: dict[bytes, list[Entry]] = {}
        if len(asked.requests) == 1 and asked.requests[0][0] in (b"XADD", b"XTRIM"):
            key = asked.requests[0][1]
            if key in region.view.keys:
                before[key] = region.view.keys[key].entries()
        if asked.requests[0][:2] == [b"AA", b"SYNC"]:
            others = [each for each in self.world.regions.values() if each.ready]
            self._wanted[region.number, asked.client] = [
                (each.number, self._answered(each)) for each in others if each is not region
            ]
        region.ask(client, asked.requests)
        replies = client.received
        client.received = []
        records = self.look(region)
        fresh = region.fresh_own
        if self.world.plan.told:
            self.world.tell(f"{region.number}:{asked.client}> {asked.requests} => {replies}")
        if not region.was_unwritten:
            self._emitted(region, fresh, asked.requests[-1], asked.requests)
        is_whole = not region.was_unwritten and not region.unwritten
        region.was_unwritten = region.unwritten
        for words, reply in self._pairs(asked.requests, replies):
            if isinstance(reply, Refused):
                self.world.tally.refused += 1
                if b"internal error" in reply.text:
                    raise Violated(f"internal error: region {region.number} at {words!r}")
                continue
            alone = len(asked.requests) == 1
            self._served(region, words, reply, alone)
            if is_whole:  # what the file says is all
                self._replied(region, words, reply, records, before, alone)
        self._waited(region)

    def _pairs(
        self, requests: list[Words], replies: list[object]
    ) -> Iterable[tuple[Words, object]]:
        if requests[0] != [b"MULTI"]:
            yield from zip(requests, replies, strict=False)
        elif replies and isinstance(replies[-1], list):
            yield from zip(requests[1:-1], replies[-1], strict=False)
        else:
            yield from ((requests[-1], reply) for reply in replies if isinstance(reply, Refused))

    def happened(self, region: Region) -> None:
        """Something happened in a region that no client asked for."""
        if not region.ready or not region.has_news():
            return
        self.look(region)
        was_unwritten = region.was_unwritten
        region.was_unwritten = region.unwritten
        for record in region.fresh_own:
            if was_unwritten:
                continue
            if kind_of(record) not in OF_TIME | OF_ARRIVAL:
                raise Violated(f"I16: region {region.number} made {record} by itself")
            if kind_of(record) == b"XDEL" and b"FOR" not in record.words[3:4]:
                raise Violated(f"I16: region {region.number} removed {record} by itself")
        self._waited(region)

    def _beats(self, region: Region) -> None:
        """I6: a region tells others what is on its disk, and nothing else."""
        aof = region.durability.files.aof
        assert aof is not None
        for record in region.fresh_own:
            if kind_of(record) == b"BEAT":
                synced = region.shelf.known_upto(aof.synced_bytes)
                for origin, number in read_numbers(record.words[2]).items():
                    if number > synced.get(origin, 0):
                        raise Violated(f"I6: {record} says more than is on the disk: {synced}")

    def look(self, region: Region) -> list[Record]:
        records = region.observe()
        if self.world.plan.told:
            for record in region.shelf.fresh:
                self.world.tell(f"  {record.origin!r} {record.number} {record.words}")
        if records:
            self._beats(region)
            self._arrived(region, records)
        return records

    def _emitted(
        self, region: Region, fresh: list[Record], last: Words, requests: list[Words]
    ) -> None:
        """I16: a command leaves records of its own kind alone."""
        allowed = OF_COMMAND.get(last[0], frozenset()) | OF_TIME | {b"XDEL"}
        added = 0
        for record in fresh:
            kind = kind_of(record)
            if kind not in allowed:
                raise Violated(f"I16: {last!r} in region {region.number} left {record}")
            added += kind == b"XADD"
        names = [words[0] for words in requests]
        if not MAKES_ENTRIES.intersection(names) and added > names.count(b"XADD"):
            raise Violated(f"I16: {requests!r} left {added} entries")

    def _replied(
        self,
        region: Region,
        words: Words,
        reply: object,
        records: list[Record],
        before: dict[bytes, list[Entry]],
        alone: bool,
    ) -> None:
        name = words[0]
        if name == b"XADD" and isinstance(reply, bytes):
            self._added(region, words, reply, records, before, alone)
        elif name == b"XTRIM" and words[2] == b"MAXLEN" and alone:
            self._trimmed(region, words, records, before.get(words[1], []))
        elif name == b"XLEN" and alone:
            self._shows(region, words, reply)
        elif name in (b"XRANGE", b"XREAD"):
            ids = reply_ids(reply) if name == b"XREAD" else [e[0] for e in reply]  # type: ignore[attr-defined]
            self._ascends(region, words, ids)
            if name == b"XRANGE" and words[2:] == [b"-", b"+"] and alone:
                self._shows(region, words, ids)
            if b"STABLE" in words:
                self._read_stable(region, words, ids, alone)
        elif words[:2] == [b"XINFO", b"STREAM"] and len(words) == 3:
            stable = field(reply, b"stable-id")
            if isinstance(stable, bytes) and not region.view.key(words[2]).deletes:
                self._told[region.number, words[2]] = _Told(read_id(stable), region.known.copy())
        elif name == b"XREVRANGE":
            ids = [entry[0] for entry in reply]  # type: ignore[attr-defined]
            self._ascends(region, words, ids[::-1])

    def _served(self, region: Region, words: Words, reply: object, alone: bool) -> None:
        """Note what readers of groups were given, and what they have acknowledged."""
        name = words[0]
        if name == b"XREADGROUP" and words[-1] == b">":
            self.given(region, words, reply_ids(reply), alone)
        elif name == b"XACK" and isinstance(reply, int) and reply:
            group = (words[1], words[2])
            self.note(region, region.acked, group, words[3:])
            if reply == len(set(words[3:])):
                self._all_done(region, group, words[3:])
        elif name == b"XACKDEL":
            done = [i for i, r in zip(words[-len(reply) :], reply, strict=True) if r != -1]  # type: ignore[arg-type, call-overload]
            self.note(region, region.acked, (words[1], words[2]), done)
        elif words[:2] == [b"XGROUP", b"SETID"]:
            seen = [show_id(entry.id) for entry in region.view.key(words[2]).entries()]
            at = [words[4]] if words[4] not in (b"0", b"$") else seen[-1:]
            self.note(region, region.moved, (words[2], words[3]), at)
            region.done.pop((words[2], words[3]), None)
        elif words[:2] == [b"XGROUP", b"DELCONSUMER"] and reply:
            self.pending_by_hand.add((words[2], words[3]))
            region.done.pop((words[2], words[3]), None)
        elif words[:2] == [b"AA", b"WAIT"]:
            self._followed(region, words, reply)
        elif words[0] == b"XCLAIM" and b"FORCE" in words and reply:
            self.pending_by_hand.add((words[1], words[2]))
            region.done.pop((words[1], words[2]), None)

    def _all_done(self, region: Region, group: tuple[bytes, bytes], ids: list[bytes]) -> None:
        """All of this was pending, and is acknowledged now."""
        creates = region.knows(*group)
        known, done = region.done.get(group, (creates, set()))
        region.done[group] = (creates, {*(done if known == creates else ()), *ids})

    def _shows(self, region: Region, words: Words, reply: object) -> None:
        """I2: a reader is shown what the records say that are known here, and nothing else.

        Args:
            reply: how many entries a stream has, or the IDs of all of them.
        """
        key = words[1]
        ids = [show_id(entry.id) for entry in region.view.key(key).entries()]
        there: object = len(ids) if isinstance(reply, int) else ids
        if reply != there and not region.hides(key):
            raise Violated(f"I2: {words!r} in region {region.number} gave {reply} and not {there}")

    def _read_stable(self, region: Region, words: Words, ids: list[bytes], alone: bool) -> None:
        """I15: a reader of what is stable is given all, in order, and nothing comes before that."""
        if not ids:
            return
        key, after, upto = words[-2], read_id(words[-1]), read_id(ids[-1])
        region.read_upto[key] = upto
        view = region.view.key(key)
        wanted = [show_id(e.id) for e in view.entries() if after < e.id <= upto]
        if alone and ids != wanted:
            raise Violated(f"I15: {words!r} in region {region.number} gave {ids} and not {wanted}")
        told = self._told.get((region.number, key))
        if not view.deletes and (told is None or told.stable < upto):
            self._told[region.number, key] = _Told(upto, region.known.copy())

    def _added(
        self,
        region: Region,
        words: Words,
        reply: bytes,
        records: list[Record],
        before: dict[bytes, list[Entry]],
        alone: bool,
    ) -> None:
        key = words[1]
        own = [r for r in records if kind_of(r) == b"XADD" and r.words[1] == key]
        made = [r for r in own if read_added(r.words).id == read_id(reply)]
        if not made:
            view = region.view.key(key)
            if b"IDMP" in words or b"IDMPAUTO" in words:
                return  # it was there; which one, I14 says
            raise Violated(f"I3: {words!r} answered {reply!r} and wrote {own} ({view.last})")
        self._unused(region, key, words, reply)
        if not alone:
            return
        seen = before.get(key)
        if seen and not _is_deleted(key, records) and seen[-1].id >= read_id(reply):
            raise Violated(f"I12: {reply!r} was added where {seen[-1]} was seen")
        trims = any(word in words for word in (b"MAXLEN", b"MINID"))
        entries = region.view.key(key).entries()
        if not trims and not any(show_id(entry.id) == reply for entry in entries[-3:]):
            raise Violated(f"I3: {words!r} answered {reply!r}, which is not there")

    def _trimmed(
        self, region: Region, words: Words, records: list[Record], before: list[Entry]
    ) -> None:
        """I11: the newest stay, and with ``=`` nothing else does.

        With ACKED as many stay, which are perhaps others: it passes over what is not acknowledged.
        """
        if _is_deleted(words[1], records) or region.hides(words[1]):
            return
        most = int(words[4])
        newest = before[-most:] if most else []
        after = region.view.key(words[1]).entries()
        is_exact = words[3] == b"=" and len(words) == 5
        are_kept = all(entry in after for entry in newest)
        if words[-1] == b"ACKED":
            are_kept = len(after) >= len(newest)
        if not are_kept or (is_exact and after != newest):
            raise Violated(f"I11: {words!r} left {after} of {before}")

    def _unused(self, region: Region, key: bytes, words: Words, reply: bytes) -> None:
        """I3: an ID of the server was never given before, whatever is left of that entry.

        Where the key was deleted, IDs may begin anew, once no region shows those of before. The
        milliseconds that a caller gives may do so at once.
        """
        world = self.world
        if world.mode != STRICT:
            return
        view = region.view.key(key)
        made = read_id(reply)
        if b"*" not in words:
            lanes = [lane for lane, added in view.added if added == made]
            if any(view.deleted.get(lane, NO_ID) >= made for lane in lanes):
                self.named_again.update((key, lane, made) for lane in view.lanes_left(made))
            return
        if world.disks_lost:
            return
        before = self._given_ids.get((key, reply), 0)
        if before and len(view.lanes_left(made)) > 1:
            raise Violated(f"I3: {reply!r} of {key!r} was given twice, by region {before} before")
        self._given_ids[key, reply] = region.number

    def _ascends(self, region: Region, words: Words, ids: list[bytes]) -> None:
        if not ascends(ids, False):
            raise Violated(f"I7: {words!r} in region {region.number} answered {ids}")

    def given(self, region: Region, words: Words, ids: list[bytes], alone: bool) -> None:
        """A reader of a group was given new entries."""
        key = words[-2]
        group = words[2]
        self._ascends(region, words, ids)
        view = region.view.keys.get(key)
        if view is not None and alone and b"NOACK" not in words:
            self._not_again(region, view, key, group, ids)
        self.note(region, region.delivered, (key, group), ids)
        if b"NOACK" in words:
            self.note(region, region.acked, (key, group), ids)

    def _not_again(
        self, region: Region, view: KeyView, key: bytes, group: bytes, ids: list[bytes]
    ) -> None:
        """I5: none of it is within what is acknowledged."""
        for text in set(ids):
            lanes = [entry.lane for entry in view.entries() if show_id(entry.id) == text]
            if lanes and all(view.acknowledged(group, lane, read_id(text)) for lane in lanes):
                raise Violated(
                    f"I5: {key!r} {group!r} in region {region.number} was given {text!r} again"
                )

    def note(
        self,
        region: Region,
        where: dict[tuple[bytes, bytes], list[Delivery]],
        group: tuple[bytes, bytes],
        ids: list[bytes],
    ) -> None:
        if ids:
            where.setdefault(group, []).append(Delivery(ids, region.knows(*group)))
            if where is region.delivered and group in region.done:
                region.done[group][1].difference_update(ids)

    def _waited(self, region: Region) -> None:
        """Look at what those who waited were given."""
        for name in WAITERS:
            client = region.connected(name)
            if client is None:
                continue
            for reply in client.received:
                if isinstance(reply, list) and client.waits_for:
                    words = client.waits_for
                    ids = reply_ids(reply)
                    self._ascends(region, words, ids)
                    if words[0] == b"XREADGROUP":
                        self.note(region, region.delivered, (words[-2], words[2]), ids)
                elif client.waits_for[:2] == [b"AA", b"WAIT"]:
                    self._followed(region, client.waits_for, reply)
                if client.waits_for[:2] == [b"AA", b"SYNC"]:
                    self._synced(region, client, self._wanted[region.number, name], reply)
            client.received = []

    def _answered(self, region: Region) -> Numbers:
        """Return what a region knows, which is at least what its clients have been answered."""
        return {origin: number for origin, number in region.known.items() if number}

    def _synced(
        self, region: Region, client: Client, wanted: list[tuple[int, Numbers]], reply: object
    ) -> None:
        """I13: who was told that a barrier is level has what others had, and took writes then."""
        if not isinstance(reply, list) or region.unwritten or region.was_unwritten:
            return
        states = {int(reply[at]): reply[at + 1] for at in range(0, len(reply), 2)}
        for number, numbers in wanted:
            if states.get(number) != b"level":
                continue
            for origin, count in numbers.items():
                if region.known.get(origin, 0) < count and self._is_there(origin, count):
                    raise Violated(f"I13: region {region.number} is level with {region.known}")
        is_level = all(state == b"level" for state in states.values())
        if is_level and client.was_refusing and region.obstacle().startswith(b"AASYNCING"):
            raise Violated(f"I13: region {region.number} is level and takes no writes")

    def _is_there(self, origin: bytes, number: int) -> bool:
        """Return whether a record is anywhere: it may have been lost since."""
        return len(self.world.ledger.records.get(origin, [])) >= number

    def _followed(self, region: Region, words: Words, reply: object) -> None:
        """Who was told that all is here finds it."""
        if reply != 1 or region.unwritten or region.was_unwritten:
            return
        for origin, number in read_numbers(words[2]).items():
            if region.known.get(origin, 0) < number:
                raise Violated(f"{words!r} in region {region.number} is done with {region.known}")

    def _arrived(self, region: Region, records: list[Record]) -> None:
        """I15: nothing arrives below what was told to be stable. I5: a move undoes nothing."""
        for record in records:
            if kind_of(record) == b"HAND" and int(record.words[4]) == region.number:
                self._undoes_nothing(region, record.words[2], record.words[3])
            if kind_of(record) != b"XADD":
                continue
            added = read_added(record.words)
            told = self._told.get((region.number, added.key))
            if told is None:
                continue
            if added.manual:
                del self._told[region.number, added.key]
            elif added.id <= told.stable and told.known.get(record.origin, 0) < record.number:
                raise Violated(
                    f"I15: {added.id} of {added.key!r} came to region {region.number} after "
                    f"{told.stable} was stable"
                )

    def forget_told(self, number: int) -> None:
        """Expect no more that a region keeps what it has told: nobody is left who knows."""
        for told in [told for told in self._told if told[0] == number]:
            del self._told[told]

    def _undoes_nothing(self, region: Region, key: bytes, group: bytes) -> None:
        """I5: what is acknowledged here is not pending, whatever was where a group was read."""
        creates, done = region.done.get((key, group), (frozenset(), ()))
        if not done or creates != region.knows(key, group) or region.hides(key):
            return
        if region.obstacle() or region.unwritten:
            return
        rows = self.call(region, b"XPENDING", key, group, b"-", b"+", b"100000")
        assert isinstance(rows, list), rows
        there = [show_id(entry.id) for entry in region.view.key(key).entries()]
        back = [row for row in rows if row[0] in done and there.count(row[0]) == 1]
        if back:
            raise Violated(f"I5: a move makes {back} of {key!r} {group!r} pending again")

    def call(self, region: Region, *words: bytes) -> object:
        reply = region.call(LOOKER, list(words))
        assert reply is not WAITS, words
        if isinstance(reply, Refused) and b"internal error" in reply.text:
            raise Violated(f"internal error: region {region.number} at {words!r}")
        return reply


def field(items: object, name: bytes) -> object:
    """Return what a reply of names and values has under a name; None where it has not."""
    assert isinstance(items, list)
    for at in range(0, len(items), 2):
        if items[at] == name:
            return items[at + 1]
    return None


def _is_deleted(key: bytes, records: list[Record]) -> bool:
    """Return whether one of these has deleted the key, or says that it has expired."""
    return any(kind_of(r) in (b"DEL", b"EXPIRE") and r.words[2] == key for r in records)
