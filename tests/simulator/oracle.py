"""What a stream and its groups have to be, by definition: a function of the set of records.

Nothing is applied in order here. Records are collected, and questions are answered by looking at
all of them. So this has nothing in common with what the servers do, and it does not matter in which
order they came.

An **entry** is there if no DEL, EXPIRE or TRIM of its lane reaches it, and no XDEL names it; one
that is made FOR another entry counts where that is known. A **create** of a group lives if its
maker had seen every DESTROY of that group and DEL of the key, and no EXPIRE had seen it. A group is
there while a create of it lives. A stream is there if a lane of it is not covered by DEL or EXPIRE,
or if a group is (rule E).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from simulator.ledger import Ledger, Numbers, Record
from simulator.resp import Words

ID = tuple[int, int]
Lanes = dict[bytes, ID]
Dot = tuple[bytes, int]
NO_ID: Final = (0, 0)


class Entry(NamedTuple):
    id: ID
    lane: bytes
    fields: Words


class Create(NamedTuple):
    name: bytes
    dot: Dot
    start: bytes
    numbers: Numbers

    def has_seen(self, other: Create) -> bool:
        """Return whether its maker knew another one."""
        origin, number = other.dot
        return self.numbers.get(origin, 0) >= number


class Ack(NamedTuple):
    creates: list[Dot]
    lane: bytes
    after: ID
    upto: ID


@lru_cache(65536)
def read_id(text: bytes) -> ID:
    ms, _, seq = text.partition(b"-")
    return int(ms), int(seq)


def show_id(entry_id: ID) -> bytes:
    return b"%d-%d" % entry_id


def read_lanes(text: bytes) -> Lanes:
    if text == b"-":
        return {}
    pairs = [part.split(b"=") for part in text.split(b",")]
    return {lane: read_id(entry_id) for lane, entry_id in pairs}


def read_numbers(text: bytes) -> Numbers:
    if text == b"-":
        return {}
    return {origin: int(number) for origin, number in (p.split(b"=") for p in text.split(b","))}


def read_dots(text: bytes) -> list[Dot]:
    if text == b"-":
        return []
    return [(origin, int(number)) for origin, number in (p.split(b"=") for p in text.split(b","))]


@lru_cache(65536)
def lane_key(lane: bytes) -> tuple[int, ...]:
    return tuple(int(part) for part in lane.split(b"."))


class Added(NamedTuple):
    """What an XADD record says."""

    key: bytes
    new_lane: int
    manual: bool
    pair: tuple[bytes, bytes] | None
    seen: Lanes
    id: ID
    fields: Words


def read_added(words: Words) -> Added:
    """Take an XADD record apart."""
    at = 2
    new_lane = 0
    manual = False
    pair = None
    seen: Lanes = {}
    while True:
        word = words[at]
        if word == b"NEWLANE":
            new_lane = int(words[at + 1])
            at += 2
        elif word == b"MANUAL":
            manual = True
            at += 1
        elif word == b"IDMP":
            pair = (words[at + 1], words[at + 2])
            at += 3
        elif word == b"SEEN":
            seen = read_lanes(words[at + 1])
            at += 2
        else:
            break
    return Added(words[1], new_lane, manual, pair, seen, read_id(words[at]), words[at + 1 :])


class KeyView:
    """What is known of one key."""

    def __init__(self) -> None:
        self.added: dict[tuple[bytes, ID], Entry] = {}
        self.last: Lanes = {}
        self.current: dict[bytes, bytes] = {}  # origin → lane
        self.deleted: Lanes = {}
        self.trimmed: Lanes = {}
        self.named: set[tuple[bytes, ID]] = set()  # by XDEL
        self.conditional: list[tuple[tuple[bytes, ID], tuple[bytes, ID]]] = []  # entry, winner
        self.creates: list[Create] = []
        self.destroyed: dict[bytes, list[Dot]] = {}
        self.deletes: list[Dot] = []
        self.expiries: list[Numbers] = []
        self.acks: dict[bytes, list[Ack]] = {}
        self.pairs: dict[tuple[bytes, bytes], list[tuple[bytes, ID]]] = {}
        self.moved: set[bytes] = set()  # groups
        self.manual = False
        self._entries: list[Entry] | None = None
        self._groups: list[bytes] | None = None
        self._replies = b""

    def changed(self) -> None:
        self._entries = None
        self._groups = None
        self._replies = b""

    def lanes_left(self, entry_id: ID) -> list[bytes]:
        """Of lanes with an entry of this ID, those that no deletion of the key covers so far."""
        lanes = [lane for lane, added_id in self.added if added_id == entry_id]
        return [lane for lane in lanes if self.deleted.get(lane, NO_ID) < entry_id]

    def created(self, create: Create) -> None:
        if all(known.dot != create.dot for known in self.creates):
            self.creates.append(create)

    def is_alive(self, lane: bytes, entry_id: ID) -> bool:
        if entry_id <= self.deleted.get(lane, NO_ID) or entry_id <= self.trimmed.get(lane, NO_ID):
            return False
        if (lane, entry_id) in self.named:
            return False
        return not any(
            entry == (lane, entry_id) and winner in self.added for entry, winner in self.conditional
        )

    def entries(self) -> list[Entry]:
        """The entries that are there, in their order."""
        if self._entries is None:
            alive = [e for e in self.added.values() if self.is_alive(e.lane, e.id)]
            orders = {lane: lane_key(lane) for lane in self.last}
            alive.sort(key=lambda e: (e.id, orders[e.lane]))
            self._entries = alive
        return self._entries

    def replies(self) -> bytes:
        """Return what ``XRANGE key - +``, ``XLEN`` and ``EXISTS`` have to answer, in RESP2."""
        if not self._replies:
            entries = self.entries()
            wire = [b"*%d\r\n" % len(entries)]
            for entry in entries:
                text = show_id(entry.id)
                wire.append(b"*2\r\n$%d\r\n%b\r\n" % (len(text), text))
                wire.append(b"*%d\r\n" % len(entry.fields))
                wire += [b"$%d\r\n%b\r\n" % (len(word), word) for word in entry.fields]
            wire.append(b":%d\r\n:%d\r\n" % (len(entries), self.exists()))
            self._replies = b"".join(wire)
        return self._replies

    def lives(self, create: Create) -> bool:
        numbers = create.numbers
        for origin, number in [*self.destroyed.get(create.name, []), *self.deletes]:
            if numbers.get(origin, 0) < number:
                return False
        origin, number = create.dot
        return not any(seen.get(origin, 0) >= number for seen in self.expiries)

    def living(self, name: bytes) -> list[Create]:
        """The creates of a group that live.

        Who made one knew that those before it are dead, even where that has not come so far.
        """
        left = [c for c in self.creates if c.name == name and self.lives(c)]
        return [c for c in left if not any(later.has_seen(c) for later in left)]

    def groups(self) -> list[bytes]:
        """The names of the groups that are there."""
        if self._groups is None:
            self._groups = sorted({c.name for c in self.creates if self.lives(c)})
        return self._groups

    def exists(self) -> bool:
        """Rule E."""
        for lane, last in self.last.items():
            if last > self.deleted.get(lane, NO_ID):
                return True
        return bool(self.groups())

    def acknowledged(self, name: bytes, lane: bytes, entry_id: ID) -> bool:
        """Return whether an interval that counts for a group holds an entry."""
        living = {c.dot for c in self.living(name)}
        return any(
            ack.lane == lane and ack.after < entry_id <= ack.upto and living & set(ack.creates)
            for ack in self.acks.get(name, [])
        )


class View:
    """What is known of all keys, by some set of records.

    Attributes:
        forgotten: the regions that take part no more, and in which epoch they did last.
    """

    def __init__(self) -> None:
        self.keys: dict[bytes, KeyView] = {}
        self.forgotten: dict[int, int] = {}

    def key(self, key: bytes) -> KeyView:
        found = self.keys.get(key)
        if found is None:
            found = self.keys[key] = KeyView()
        return found

    def apply(self, record: Record) -> None:
        """One record more is known."""
        words = record.words
        name = words[0] if words[0] == b"XADD" else words[1]
        if name in (b"BEAT", b"JOIN"):
            return
        if name == b"FORGET":  # all that is known of the region stays
            number, epoch = int(words[2]), int(words[3])
            self.forgotten[number] = max(epoch, self.forgotten.get(number, -1))
            return
        if name == b"XADD":
            self._added(record, read_added(words))
            return
        view = self.key(words[2])
        view.changed()
        dot = (record.origin, record.number)
        if name == b"XDEL":
            self._named(view, words[3:])
        elif name == b"TRIM":
            _raise(view.trimmed, read_lanes(words[3]))
        elif name == b"DEL":
            _raise(view.deleted, read_lanes(words[3]))
            view.deletes.append(dot)
        elif name == b"EXPIRE":
            _raise(view.deleted, read_lanes(words[3]))
            if words[4] != b"-":  # else it ends lanes that are empty, and nothing expires
                view.expiries.append(read_numbers(words[4]))
        elif name == b"GROUP":
            view.created(Create(words[3], dot, words[4], read_numbers(words[5])))
        elif name == b"HAND":  # the creates of the group stand in it
            for at in range(6, 6 + 3 * int(words[5]), 3):
                (made,) = read_dots(words[at])
                numbers = read_numbers(words[at + 2])
                view.created(Create(words[3], made, words[at + 1], numbers))
        elif name == b"MOVE":
            view.moved.add(words[3])
        elif name == b"UNGROUP":
            view.destroyed.setdefault(words[3], []).append(dot)
        elif name == b"ACK":
            creates = read_dots(words[4])
            acks = view.acks.setdefault(words[3], [])
            for at in range(5, len(words), 3):
                after, upto = read_id(words[at + 1]), read_id(words[at + 2])
                acks.append(Ack(creates, words[at], after, upto))

    def _added(self, record: Record, added: Added) -> None:
        view = self.key(added.key)
        view.changed()
        if added.new_lane:
            view.current[record.origin] = b"%b.%d" % (record.origin, added.new_lane)
        lane = view.current[record.origin]
        view.added[lane, added.id] = Entry(added.id, lane, added.fields)
        view.last[lane] = max(view.last.get(lane, NO_ID), added.id)
        view.manual = view.manual or added.manual
        if added.pair is not None:
            view.pairs.setdefault(added.pair, []).append((lane, added.id))

    def _named(self, view: KeyView, words: Words) -> None:
        at = 0
        winner = None
        while words[at] in (b"DELREF", b"FOR"):
            if words[at] == b"FOR":
                winner = (words[at + 1], read_id(words[at + 2]))
                at += 3
            else:
                at += 1
        for place in range(at, len(words), 2):
            entry = (words[place], read_id(words[place + 1]))
            if winner is None:
                view.named.add(entry)
            else:
                view.conditional.append((entry, winner))


def view_of(ledger: Ledger, known: Numbers) -> View:
    """Return what is known by whoever has these records."""
    view = View()
    for origin, number in known.items():
        for record in ledger.records.get(origin, [])[:number]:
            view.apply(record)
    return view


def _raise(lanes: Lanes, others: Lanes) -> None:
    for lane, entry_id in others.items():
        lanes[lane] = max(lanes.get(lane, NO_ID), entry_id)
