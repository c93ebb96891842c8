"""Plays a session on both servers under one clock, and stops at the first difference."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Final

from support.client import parse
from support.clock import START_MS, Clock
from support.fuzz import known
from support.fuzz.payloads import Payloads, payloads_in
from support.fuzz.sides import CLOSED, Side, split_items, split_replies
from support.fuzz.steps import CLIENTS, ID_OF, Step
from support.process import Process

_LOOK_EVERY: Final = 8  # steps between two looks at events and MONITOR
_STATE_EVERY: Final = 60  # steps between two looks at all keys
_LATE_S: Final = 5.0  # how long the rest of a reply may take that the other server has sent
_EVENTS: Final = ("AKEnmoc", "AKEmn")  # the classes that servers know, all that they can
_DATABASES: Final = 4
_RESTORED_IN: Final = b"3"  # where payloads are looked at, and under which name
_RESTORED: Final = b"restored to be looked at"
_UNDIGESTED: Final = {b"string", b"array"}  # told whole; a digest walks what is not there, too
_BY_CHANCE: Final = {b"SCAN", b"RANDOMKEY"}  # which keys they meet is nobody's promise


class Difference(Exception):
    """The servers differ.

    Args:
        place: the step after which it showed.
        what: where: ``reply``, ``events``, ``monitor`` or ``state``.
        ours: what our server said.
        real: what the judge said.
        words: the call that was answered, if that is what differs.
    """

    def __init__(
        self, place: int, what: str, ours: bytes, real: bytes, words: tuple[bytes, ...] = ()
    ) -> None:
        super().__init__(f"{what} after step {place}: {words}\n  ours {ours!r}\n  real {real!r}")
        self.place: Final = place
        self.what: Final = what
        self.ours: Final = ours
        self.real: Final = real
        self.words: Final = words

    @property
    def kind(self) -> tuple[str, ...]:
        """Return what it has in common with others that have the same cause, probably."""
        if self.what == "events":  # those that one of them has more of, without the keys
            ours, real = (
                Counter(line.split(b" ")[1] for line in lines.split(b"\n") if line)
                for lines in (self.ours, self.real)
            )
            return self.what, str(sorted(ours - real)), str(sorted(real - ours))
        name = b" ".join(self.words[:1]).upper().decode("latin-1")
        return self.what, name, _kind(self.ours), _kind(self.real)


def _kind(reply: bytes) -> str:
    """An error as far as it quotes nothing, of others the kind alone."""
    error = reply.partition(b"\r\n")[0].partition(b"'")[0]
    return (error if reply.startswith(b"-") else reply[:1]).decode("latin-1")


def _name(words: tuple[bytes, ...]) -> bytes:
    return words[0].upper() if words else b""


def _in_order(events: list[bytes], large: bool) -> list[bytes]:
    """Keys that were found expired at once in the order of their names.

    Args:
        large: so are those that SORT did not find, by elements of a large collection.
    """
    ordered: list[bytes] = []
    for kind, run in groupby(events, _found_in_any_order):
        together = list(run)
        in_any_order = kind == b"expired" or (large and kind == b"keymiss")
        ordered += sorted(together) if in_any_order else together
    return ordered


def _found_in_any_order(event: bytes) -> bytes:
    kind = event.split(b" ")[1]
    return kind if kind in (b"expired", b"keymiss") else b""


def _contents(kind: bytes, key: bytes) -> list[tuple[bytes, ...]]:
    """Calls that tell all that is in a key."""
    if kind == b"stream":
        full = (b"XINFO", b"STREAM", key, b"FULL", b"COUNT", b"0")
        return [(b"XRANGE", key, b"-", b"+"), full]
    told: dict[bytes, tuple[bytes, ...]] = {
        b"string": (b"GET", key),
        b"list": (b"LRANGE", key, b"0", b"-1"),
        b"hash": (b"HGETALL", key),
        b"set": (b"SMEMBERS", key),
        b"zset": (b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"),
        b"array": (b"ARSCAN", key, b"0", b"18446744073709551614", b"LIMIT", b"1000"),
    }
    encoding = (b"OBJECT", b"ENCODING", key)
    return [told[kind], encoding, *[(b"DEBUG", b"DIGEST-VALUE", key)] * (kind not in _UNDIGESTED)]


class Player:
    """Plays sessions.

    Args:
        ours, real: the servers, running under ``clock``.
        clock: the time of day that both see.
    """

    def __init__(self, ours: Process, real: Process, clock: Clock) -> None:
        self.ours: Final = Side(ours)
        self.real: Final = Side(real)
        self.sides: Final = (self.ours, self.real)
        self._clock: Final = clock
        self._waiting: dict[int, tuple[bytes, ...]] = {}
        self._queued: dict[int, list[tuple[bytes, ...]]] = {}
        self._held: dict[int, list[tuple[bytes, ...]]] = {}
        self._syncs = 0
        self._has_waited = False
        self._somebody_waited = False
        self._large = False
        self._packed_large = False
        self._imported = False
        self._listening: set[int] = set()
        self._payloads = Payloads()
        self._counts_alike = True
        self._events = next(events for events in _EVENTS if self._both_know(events))
        self.calls = 0
        self.changed: tuple[known.Known, ...] = ()  # since the judge
        self.tolerated: dict[str, int] = {}
        for side in self.sides:
            side.call("DEBUG", "SET-ACTIVE-EXPIRE", "0")
            side.call("DEBUG", "PAUSE-CRON", "1")  # which looks at the time when it likes to

    def _both_know(self, events: str) -> bool:
        replies = [s.call("CONFIG", "SET", "notify-keyspace-events", events) for s in self.sides]
        return replies == [b"+OK\r\n"] * 2

    def play(self, steps: Sequence[Step], trace: bool = False) -> None:
        """Play the steps on servers that are as good as new. Raises: Difference."""
        self._begin()
        for place, step in enumerate(steps):
            if step.alone:
                for side in self.sides:
                    side.look_away()
            elif step.client < 0:
                self._clock.advance(step.move_ms)
                if trace:
                    print(f"{step}: {self._clock.now_ms}")
            elif not step.words:
                for side in self.sides:
                    side.reconnect(step.client)
                self._waiting.pop(step.client, None)
                self._queued.pop(step.client, None)
                self._held.pop(step.client, None)
            else:
                self._call(place, step, trace)
            for client in list(self._waiting):
                self._look_at_waiting(place, client)
            if place % _LOOK_EVERY == _LOOK_EVERY - 1:
                self._overhear(place)
            if place % _STATE_EVERY == _STATE_EVERY - 1:
                self._compare_state(place)
        self._overhear(len(steps) - 1)
        self._compare_state(len(steps) - 1)
        self._compare_counts(len(steps) - 1)

    def _begin(self) -> None:
        self._clock.set(START_MS)
        self._waiting = {}
        self._has_waited = False
        self._somebody_waited = False
        self._large = False
        self._packed_large = False
        self._imported = False
        self._listening = set()
        self._payloads = Payloads()
        self._counts_alike = True
        self._queued = {}
        self._held = {}
        for side in self.sides:
            side.reset()
        ours, real = (side.next_client_id() for side in self.sides)
        while ours != real:  # the same numbers for the same clients
            if ours < real:
                ours = self.ours.next_client_id()
            else:
                real = self.real.next_client_id()
        for side in self.sides:
            side.connect(CLIENTS, self._events)
            side.call("CONFIG", "RESETSTAT")

    # Replies

    def _call(self, place: int, step: Step, trace: bool) -> None:
        client = step.client
        if client in self._waiting:
            return
        words = tuple(self._filled_in(word) for word in step.words)
        held = self._held.setdefault(client, [])
        if step.held:
            held.append(words)
            return
        if self.ours.wires[client].closed or self.real.wires[client].closed:
            for side in self.sides:
                side.reconnect(client)
            self._queued.pop(client, None)
        calls = [*held, words]
        held.clear()
        self.calls += len(calls)
        self._large = self._large or any(known.has_own_order(each) for each in calls)
        self._packed_large |= self._large and any(known.packs_anew(each) for each in calls)
        self._imported |= any(known.imports(each) for each in calls)
        names = [_name(each) for each in calls]
        if client in self._listening:
            self._hear_out(place, client)
        pushes = any(b"SUBSCRIBE" in name for name in names)
        if pushes:
            self._listening.add(client)
        queued = self._queued.get(client, []) if b"EXEC" in names else []
        if not _BY_CHANCE.isdisjoint([*names, *map(_name, queued)]):
            self._expire_all()
        for side in self.sides:
            side.wires[client].send(calls)
        may_wait = not any(name.startswith(b"FLUSH") for name in names)
        answered = [side.answer(client, pushes, may_wait, len(calls)) for side in self.sides]
        if trace:
            print(f"{step}\n  ours {self.ours.wires[client].peek()!r}"
                  f"\n  real {self.real.wires[client].peek()!r}")  # fmt: skip
        if answered == [False, False]:
            self._waiting[client] = words
            self._has_waited = True
            self._somebody_waited = True
        elif answered[0] != answered[1]:
            ours, real = (w.wires[client].peek() or b"<waits>" for w in self.sides)
            raise Difference(place, "reply", ours, real, words)
        self._compare(place, client, calls)

    def _hear_out(self, place: int, client: int) -> None:
        """Compare the messages that have come, so that the next reply is not taken for one."""
        for side in self.sides:
            side.call("PING")  # what was sent to a listener before is on its way by now
            while side.wires[client].receive(0):
                pass
        self._compare(place, client, [])

    def _expire_all(self) -> None:
        """See that no key is left that has expired, because only some of them would be met."""
        for database in reversed(range(_DATABASES)):
            for side in self.sides:
                side.call("SELECT", database)
                side.call("SCAN", 0, "COUNT", 1000)

    def _filled_in(self, word: bytes) -> bytes:
        word = self._payloads.filled_in(word)
        for client in range(CLIENTS):
            if word == ID_OF % client:
                return str(self.real.wires[client].client_id).encode()
        return word

    def _look_at_waiting(self, place: int, client: int) -> None:
        """Whether a client that waits was answered meanwhile, by both or by none."""
        words = self._waiting[client]
        waits = [side.waiting(client) for side in self.sides]
        if waits == [True, True]:
            return
        if waits[0] != waits[1]:
            self._look_at_one_side(place, client, waits[0])
            return
        del self._waiting[client]
        for side in self.sides:
            side.answer(client)
        self._compare(place, client, [words])

    def _look_at_one_side(self, place: int, client: int, ours_waits: bool) -> None:
        """One server has answered a client that waits on the other."""
        side = self.real if ours_waits else self.ours
        side.answer(client)
        reply = side.wires[client].take()
        if not (ours_waits and known.told_later(reply)):
            ours, real = (b"<waits>", reply) if ours_waits else (reply, b"<waits>")
            raise Difference(place, "reply", ours, real, self._waiting[client])
        self.ours.call("CLIENT", "UNBLOCK", str(self.ours.wires[client].client_id))
        self.ours.answer(client)
        self.ours.wires[client].take()
        del self._waiting[client]

    def _compare(self, place: int, client: int, calls: list[tuple[bytes, ...]]) -> None:
        """Compare all that a client has received since it was last compared.

        Args:
            calls: what it called; none where it is messages that have come.
        """
        our_bytes, real_bytes = self._take(client)
        our_replies, real_replies = split_replies(our_bytes), split_replies(real_bytes)
        words = calls[-1] if calls else ()
        if client in self._listening and our_bytes != real_bytes:
            if self._has_waited:
                our_replies = known.without_misses(our_replies)
                real_replies = known.without_misses(real_replies)
            if sorted(our_replies) == sorted(real_replies):
                return  # which of its patterns comes first is each server's own
        if len(our_replies) != len(real_replies):
            raise Difference(place, "reply", our_bytes, real_bytes, words)
        if len(calls) != len(real_replies):  # messages, or a reply for each channel
            calls = [words] * len(real_replies)
        for each, our_reply, real_reply in zip(calls, our_replies, real_replies, strict=True):
            queued = self._queued.get(client, [])
            if real_reply == b"+QUEUED\r\n":
                self._queued.setdefault(client, []).append(each)
            elif _name(each) in (b"EXEC", b"DISCARD", b"RESET") or real_reply == CLOSED:
                self._queued.pop(client, None)
            self._compare_replies(place, each, our_reply, real_reply, queued)

    def _take(self, client: int) -> tuple[bytes, bytes]:
        """Return what has come to a client; where one side is behind, the rest is waited for."""
        ours, real = (side.wires[client] for side in self.sides)
        deadline = time.monotonic() + _LATE_S
        while ours.peek() != real.peek() and time.monotonic() < deadline:
            for behind, ahead in ((ours, real), (real, ours)):
                if ahead.peek().startswith(behind.peek()):
                    behind.receive(0.02)
            if not (ours.peek().startswith(real.peek()) or real.peek().startswith(ours.peek())):
                break
        return ours.take(), real.take()

    def _compare_replies(
        self,
        place: int,
        words: tuple[bytes, ...],
        ours: bytes,
        real: bytes,
        queued: list[tuple[bytes, ...]],
    ) -> None:
        dumped = _name(words) == b"DUMP" and payloads_in(ours, real)
        if dumped and (ours == real or self._same_values(place, ours, real)):
            self._payloads.note(ours, real)
        if dumped or ours == real:
            return
        if _name(words) == b"EXEC" and ours[:1] == b"*" == real[:1]:
            our_items, real_items = split_items(ours), split_items(real)
            if len(our_items) == len(real_items) == len(queued):
                for done, our_item, real_item in zip(queued, our_items, real_items, strict=True):
                    self._compare_replies(place, done, our_item, real_item, [])
                return
        if words and known.shape_only(words) and ours[:1] == real[:1] and ours[:1] != b"-":
            return
        reason = None
        if words:
            packed = self._packed_large or (self._large and _RESTORED in words)
            more = (*self.changed, known.IMPORTED) if self._imported else self.changed
            reason = known.reason(
                words, ours, real, self._somebody_waited, self._large, packed, more
            )
        if reason is None:
            raise Difference(place, "reply", ours, real, words)
        self._tolerate(reason)

    def _same_values(self, place: int, ours: bytes, real: bytes) -> bool:
        """Restore two payloads that are not the same bytes, and see that they hold the same.

        Raises: Difference. Returns False where the judge does not take what it has dumped itself.
        """
        told = []
        for reply in (ours, real):
            payload = parse(reply)
            assert isinstance(payload, bytes)
            restored = (b"RESTORE", _RESTORED, b"0", payload)
            opening = [(b"SELECT", _RESTORED_IN), restored, (b"TYPE", _RESTORED)]
            here, there = (side.call_all(opening) for side in self.sides)
            refused = reply == real and there[1].startswith(b"-")
            if refused:
                self._tolerate(known.REFUSED)
                self._counts_alike = False
            elif here != there or here[1] != b"+OK\r\n":
                raise Difference(place, "payload", here[1], there[1], restored)
            kind = there[2].strip(b"+\r\n")
            contents = [] if refused else _contents(kind, _RESTORED)
            here, there = (side.call_all(contents) for side in self.sides)
            for each, of_ours, of_real in zip(contents, here, there, strict=True):
                self._compare_replies(place, each, of_ours, of_real, [])
            told.append(there)
            for side in self.sides:
                side.call_all([(b"DEL", _RESTORED), (b"SELECT", b"0")])
            if refused:
                return False
        for each, of_ours, of_real in zip(contents, *told, strict=True):
            self._compare_replies(place, each, of_ours, of_real, [])
        self._tolerate(known.PLAINLY_WRITTEN)
        return True

    def _tolerate(self, reason: str) -> None:
        self.tolerated[reason] = self.tolerated.get(reason, 0) + 1

    # What shows elsewhere

    def _overhear(self, place: int) -> None:
        """Compare what those heard who look on."""
        self._syncs += 1
        (our_events, our_calls), (real_events, real_calls) = (
            side.overheard(self._syncs) for side in self.sides
        )
        our_events = _in_order(our_events, self._large)
        real_events = _in_order(real_events, self._large)
        if self._has_waited:  # how often those who wait look again for what is not there
            our_events, real_events = (
                known.without_misses(our_events),
                known.without_misses(real_events),
            )
        self._has_waited = bool(self._waiting)
        for what, ours, real in (
            ("events", our_events, real_events),
            ("monitor", our_calls, real_calls),
        ):
            if ours != real:
                raise Difference(place, what, b"\n".join(ours), b"\n".join(real))

    def _compare_state(self, place: int) -> None:
        """Compare all keys with all that is in them."""
        for database in range(_DATABASES):
            [_, keys] = self._states_of(place, [(b"SELECT", b"%d" % database), (b"KEYS", b"*")])
            names = sorted(keys)
            kinds = self._states_of(place, [(b"TYPE", key) for key in names])
            self._states_of(
                place,
                [
                    words
                    for key, [kind] in zip(names, kinds, strict=True)
                    for words in ((b"PEXPIRETIME", key), *_contents(kind, key))
                ],
            )
        self._states_of(place, [(b"SELECT", b"0")])

    def _states_of(self, place: int, calls: list[tuple[bytes, ...]]) -> list[list[bytes]]:
        """Compare the replies to some calls; the texts in each."""
        told = zip(*(side.call_all(calls) for side in self.sides), strict=True)
        found = []
        for words, (ours, real) in zip(calls, told, strict=True):
            try:
                self._compare_replies(place, words, ours, real, [])
            except Difference as other:
                raise Difference(place, "state", other.ours, other.real, words) from None
            if words[:2] == (b"XINFO", b"STREAM") and (group := known.wrong_lag(parse(ours))):
                raise Difference(place, f"lag of {group!r}", ours, b"exact", words)
            value = parse(real)
            values = value if isinstance(value, list) else [value]
            found.append([item for item in values if isinstance(item, bytes)])
        return found

    def _compare_counts(self, place: int) -> None:
        """Compare what INFO has counted: calls of each command, errors, misses."""
        if not self._counts_alike:
            return
        ours, real = (side.counts() for side in self.sides)
        left_out = set(known.UNCOUNTED)
        if self._somebody_waited:  # how often it has looked is each server's own
            left_out.add("keyspace_misses")
        for name in sorted((ours.keys() | real.keys()) - left_out):
            if ours.get(name) != real.get(name):
                our_count, real_count = (str(told.get(name)).encode() for told in (ours, real))
                raise Difference(place, "counts", our_count, real_count, (name.encode(),))
