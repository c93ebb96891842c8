"""The policies of a server, by the names of streams and groups.

There are three places where a policy is set, and the later one counts: lines of the configuration
(``stream-policy``), in their order; XPOLICY SET for a stream; XPOLICY SET for one of its groups.
They belong to names: they are there before the stream is, and stay when it is deleted.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Final, NamedTuple

from headrace.compat.errors import CommandError
from headrace.compat.glob import matches
from headrace.policies.policy import (
    BOUNDS,
    OF_STREAM,
    Bounds,
    Policy,
    PolicyError,
    PolicyLine,
    read_line,
)
from headrace.policies.rules import ID, Acked, Note
from headrace.protocol.client import request
from headrace.protocol.requests import RequestParser
from headrace.server.commands.streams.groups import find_group
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.invoke import invoke
from headrace.server.dispatch.rows import Command
from headrace.server.state import Policies, Server
from headrace.storage.stream.groups import Group

Scope = tuple[int, bytes, bytes | None]  # database, key, and group or None
Values = dict[bytes, bytes]
_CACHED: Final = 100_000  # groups whose policies are kept
_LONGEST: Final = 1 << 32
_DELAY: Final = b"retry-delay"
_GROWING: Final = (b"retry-delay-min", b"retry-delay-max")


class Idler(NamedTuple):
    """A group, or a consumer that holds nothing, and when it will be idle for so long that it goes.

    ``name`` is the consumer's, or None.
    """

    due_ms: int
    db: int
    key: bytes
    group: bytes
    name: bytes | None


class Counters:
    """Counts what policies have done since the start."""

    def __init__(self) -> None:
        self.dead_lettered = 0
        self.discarded = 0  # they died without a dead-letter-key
        self.expired = 0
        self.redelivered = 0
        self.redriven = 0
        self.rejected = 0
        self.removed = 0  # entries, because their stream is bounded, or they were acknowledged


class Book(Policies):
    """All policies of a server.

    Attributes:
        version: grows with each change.
        scopes: what XPOLICY SET has set.
        counters: what has been done.
        attended: the groups that have rules.
        idlers: consumers that go while the clock is moved.
        sweep, next_sweep_ms: the round over all consumers, and when the next one begins.
        next_round_ms: when all groups are looked at again, because names change hands.
        holders: the consumers whose names connections hold, in groups that keep them alive.
        history: the replication ID for which these are known; began_ms: since when it is that.
        acked: what was acknowledged in streams that need not keep it; dirty: the streams where
            something was lately.
        looked_version, looking, pages: the version for which groups are looked for, in which
            databases, from which cursor on, and how many pages of keys at once.
    """

    def __init__(self, server: Server) -> None:
        self._server: Final = server
        self.version = 1
        self.scopes: Final[dict[Scope, Values]] = {}
        self.notes: Final[dict[Scope, dict[ID, Note]]] = {}
        self.blocked: Final[dict[Scope, set[bytes]]] = {}
        self.counters: Final = Counters()
        self.attended: Final[dict[Scope, None]] = {}
        self.looked_version = 0
        self.looking: list[tuple[int, int]] = []
        self.pages = 0
        self.idlers: list[Idler] = []
        self.sweep: Iterator[int] | None = None
        self.next_sweep_ms = 0
        self.next_round_ms = 0
        self.holders: Final[list[tuple[Scope, bytes]]] = []
        self.history = b""
        self.began_ms = 0
        self.acked: Final[dict[Scope, Acked]] = {}
        self.dirty: Final[list[Acked]] = []
        self._alarms: Final[dict[Scope, int]] = {}
        self._heap: Final[list[tuple[int, int, Scope]]] = []  # the second number: of two of a time
        self._pushed = 0
        self._texts: list[bytes] = []
        self._lines: list[PolicyLine] = []
        self._cache: dict[Scope, Policy | None] = {}
        self._bounds: dict[Scope, Bounds | None] = {}
        self._names: Final[set[bytes]] = set()  # of policies that are set anywhere, or were

    def put(self, scope: Scope, values: Values) -> None:
        """Set policies that have been checked."""
        self.scopes[scope] = {**self.scopes.get(scope, {}), **values}
        self._names.update(values)
        self.changed()

    def unset(self, scope: Scope, names: list[bytes]) -> int:
        """Remove policies; return how many of them were set."""
        values = self.scopes.get(scope)
        if values is None:
            return 0
        found = [values.pop(name, None) for name in names]
        if b"order-key" in names or b"order-on-dead" in names:  # nothing is held by that any more
            for db, key, group in list(self.blocked):
                if (db, key) == scope[:2] and scope[2] in (None, group):
                    del self.blocked[db, key, group]
        if not values:
            del self.scopes[scope]
        self.changed()
        return len(found) - found.count(None)

    def changed(self) -> None:
        """Note that other policies hold from now on."""
        self.version += 1
        self._cache.clear()
        self._bounds.clear()

    def knows(self, name: bytes) -> bool:
        """Return whether a policy is set anywhere, or was since the start."""
        self._configured()
        return name in self._names

    def values_of(self, db: int, key: bytes, group: bytes | None) -> Values:
        """Return the policies that hold for a group, or for a stream as a whole."""
        values: Values = {}
        for line in self._configured():
            fits_group = line.group is None or (group is not None and matches(line.group, group))
            if fits_group and matches(line.key, key):
                _merge(values, line.values)
        _merge(values, self.scopes.get((db, key, None), {}))
        if group is not None:
            _merge(values, self.scopes.get((db, key, group), {}))
        return values

    def policy_of(self, db: int, key: bytes, group: bytes) -> Policy | None:
        """Return the policies that hold for a group together; None where there are none."""
        self._configured()
        scope = (db, key, group)
        if scope not in self._cache:
            if len(self._cache) >= _CACHED:
                self._cache.clear()
            values = self.values_of(db, key, group)
            for name in BOUNDS:
                values.pop(name, None)
            self._cache[scope] = Policy(values, key, group) if values else None
        return self._cache[scope]

    def bounds_of(self, db: int, key: bytes) -> Bounds | None:
        """Return what bounds a stream; None where nothing does."""
        self._configured()
        if self._names.isdisjoint(OF_STREAM):
            return None
        scope = (db, key, None)
        if scope not in self._bounds:
            if len(self._bounds) >= _CACHED:
                self._bounds.clear()
            values = self.values_of(db, key, None)
            bounded = any(name in values for name in OF_STREAM)
            self._bounds[scope] = Bounds(values) if bounded else None
        return self._bounds[scope]

    def acked_of(self, db: int, key: bytes) -> Acked:
        """Return what a stream's groups have acknowledged lately, to be added to."""
        scope = (db, key, None)
        found = self.acked.get(scope)
        if found is None:
            found = self.acked[scope] = Acked(scope, self.dirty)
        return found

    def _configured(self) -> list[PolicyLine]:
        lines = self._server.config.stream_policy
        if lines is not self._texts:
            self._texts = lines
            self._lines = [read_line(line) for line in lines]
            self._names.update(*[line.values for line in self._lines])
            self.changed()
        return self._lines

    def notes_of(self, scope: Scope) -> dict[ID, Note]:
        """Return the notes on entries of a group, to be changed."""
        return self.notes.setdefault(scope, {})

    def blocked_of(self, scope: Scope) -> set[bytes]:
        """Return the values of the order key that are held in a group, to be changed."""
        return self.blocked.setdefault(scope, set())

    # Time

    def look_at_all(self, pages: int) -> None:
        """Begin to look for the groups that policies hold for, some pages of keys at a time."""
        self.looked_version = self.version
        self.pages = pages
        self.looking = [(db.index, 0) for db in self._server.data.dbs if len(db)]

    def wake_at(self, scope: Scope, moment_ms: int) -> None:
        """Have a group looked at at a moment, or before."""
        set_ms = self._alarms.get(scope)
        if set_ms is None or moment_ms < set_ms:
            self._alarms[scope] = moment_ms
            self._pushed += 1
            heappush(self._heap, (moment_ms, self._pushed, scope))

    def wake_dirty(self) -> None:
        """Have the streams looked at in which something was acknowledged that may have to go."""
        for acked in self.dirty:
            self.wake_at(acked.scope, 1)
        self.dirty.clear()

    def next_ms(self) -> int:
        """Return when a group is to be looked at next; 0: none is."""
        while self._heap and self._alarms.get(self._heap[0][2]) != self._heap[0][0]:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else 0

    def take_due(self, now_ms: int) -> Scope | None:
        """Take a group that is to be looked at by now."""
        next_ms = self.next_ms()
        if not next_ms or next_ms > now_ms:
            return None
        scope = heappop(self._heap)[2]
        del self._alarms[scope]
        return scope

    # Files

    def codes(self) -> list[bytes]:
        wires: list[bytes] = []
        selected = -1
        for record, db in self._records():
            if db != selected:
                selected = db
                wires.append(request([b"SELECT", b"%d" % db]))
            wires.append(request(record))
        return [b"".join(wires)] if wires else []

    def _records(self) -> list[tuple[list[bytes], int]]:
        # The first changes nothing; where it is read, entries that go out by themselves do so.
        found: list[tuple[list[bytes], int]] = [([b"XPOLICY", b"UNSET", b"", b"window"], 0)]
        for scope, values in self.scopes.items():
            words = [word for pair in values.items() for word in pair]
            found.append(([b"XPOLICY", b"SET", *names_of(scope), *words], scope[0]))
        for scope, blocked in self.blocked.items():
            for value in sorted(blocked):
                found.append(([b"XPOLICY", b"HOLD", *names_of(scope), value], scope[0]))
        for scope, notes in self.notes.items():
            group = self._group(scope)
            for place, note in notes.items():
                if group is None or group.pel.get(place[0], place[1]) is None:
                    continue
                found.append((note_record(scope, place, note), scope[0]))
        return found

    def forget(self) -> None:
        self.scopes.clear()
        self.notes.clear()
        self.blocked.clear()
        self.attended.clear()
        self.acked.clear()
        self.dirty.clear()
        self._alarms.clear()
        self._heap.clear()
        self.changed()

    def _group(self, scope: Scope) -> Group | None:
        db, key, group = scope
        return find_group(self._server.data.dbs[db], key, group or b"")

    def take_back(self, code: bytes) -> None:
        parser = RequestParser(_LONGEST)
        parser.feed(code)
        db = 0
        requests: list[list[bytes]] = []
        while some := parser.take():
            requests += some
        for words in requests:
            if words[0] == b"SELECT":
                db = int(words[1])
            elif words[1] == b"SET":
                scope, at = scope_of(db, words, 2)
                values = dict(zip(words[at::2], words[at + 1 :: 2], strict=True))
                self.scopes[scope] = values
                self._names.update(values)
            elif words[1] == b"HOLD":
                scope, at = scope_of(db, words, 2)
                self.blocked_of(scope).add(words[at])
            elif words[1] == b"NOTE":
                scope, at = scope_of(db, words, 2)
                self.take_note(scope, words[at:])
        self.changed()

    def take_note(self, scope: Scope, words: list[bytes]) -> None:
        """Keep a note that a record holds."""
        ms, _, seq = words[0].partition(b"-")
        first_ms, last_ms, redrives = [int(word) for word in words[1:4]]
        note = Note(first_ms, last_ms, redrives, words[4])
        self.notes_of(scope)[int(ms), int(seq)] = note


def run_own(call: Call, command: Command, argv: list[bytes]) -> object:
    """Run a command on the way of another one; return its reply."""
    row, words = call.row, call.argv
    failed = command.failed_calls
    try:
        return invoke(call, command, argv)
    finally:
        command.failed_calls = failed
        call.row, call.argv = row, words


def _merge(values: Values, more: Values) -> None:
    """Let later policies take the place of others of their name, and of those they contradict."""
    if _DELAY in more:
        for name in _GROWING:
            values.pop(name, None)
    elif more.keys() & set(_GROWING):
        values.pop(_DELAY, None)
    values.update(more)


def names_of(scope: Scope) -> list[bytes]:
    """Return a stream, and perhaps a group, as commands name them."""
    return [scope[1]] if scope[2] is None else [scope[1], b"GROUP", scope[2]]


def note_record(scope: Scope, place: ID, note: Note) -> list[bytes]:
    """Return the record of a note."""
    times = [b"%d-%d" % place, b"%d" % note.first_ms, b"%d" % note.last_ms]
    last = [b"%d" % note.redrives, note.consumer]
    return [b"XPOLICY", b"NOTE", *names_of(scope), *times, *last]


def scope_of(db: int, argv: list[bytes], at: int) -> tuple[Scope, int]:
    """Return what ``key [GROUP group]`` at a place of a request names, and what comes after."""
    key = argv[at]
    if at + 2 < len(argv) and argv[at + 1].lower() == b"group":
        return (db, key, argv[at + 2]), at + 3
    return (db, key, None), at + 1


def refusal(error: PolicyError) -> CommandError:
    """Return the error that a client gets."""
    return CommandError(b"ERR " + error.message)
