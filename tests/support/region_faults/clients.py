"""Clients: they write, delete, read and work in groups, in one region and then in another one."""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from collections.abc import Mapping
from random import Random
from typing import Final

from support.client import Argument, RawClient, WireError, parse
from support.mesh import RegionProcess
from support.region_faults.history import (
    CUT,
    DONE,
    GROUP,
    KEPT,
    LOG,
    ONCE,
    PAIRED,
    PAIRED_TOO,
    REFUSED,
    TRIMMED,
    Ack,
    Add,
    Delivery,
    History,
    Read,
    Removal,
    now_s,
)
from support.waiting import DEADLINE_S

PADDINGS: Final = (1, 20, 200, 1500)  # bytes of a second field
PAUSE_S: Final = 0.004
TIMEOUT_S: Final = 8.0


class Away(Exception):
    """No reply has come: nobody knows what was done."""


class Client:
    """A thread that asks one region at a time.

    Args:
        regions: all of them.
        history: gets what was asked and answered.
        chance: decides.
    """

    def __init__(
        self, regions: Mapping[int, RegionProcess], history: History, chance: Random
    ) -> None:
        self.history: Final = history
        self.chance: Final = chance
        self.region = chance.choice(sorted(regions))
        self.failure = ""
        self._regions: Final = regions
        self._connection: RawClient | None = None
        self._ending = threading.Event()
        self._thread: Final = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Ask it to stop."""
        self._ending.set()

    def join(self) -> None:
        self._thread.join(DEADLINE_S)
        assert not self._thread.is_alive()
        assert not self.failure, self.failure

    @abstractmethod
    def step(self) -> None:
        """Ask something."""

    def move(self, region: int) -> None:
        """Go to another region."""
        if region != self.region:
            self.disconnect()
            self.region = region

    def move_anywhere(self) -> None:
        self.move(self.chance.choice(sorted(self._regions)))

    def ask(self, *words: Argument) -> object:
        """The reply, an error among them. Raises: Away."""
        return self.ask_all([words])[0]

    def ask_all(self, commands: list[tuple[Argument, ...]]) -> list[object]:
        """The replies to commands that are sent together. Raises: Away."""
        try:
            if self._connection is None:
                region = self._regions[self.region]
                self._connection = RawClient(region.port, timeout_s=TIMEOUT_S)
            return [parse(reply) for reply in self._connection.pipeline(*commands)]
        except (OSError, ValueError):
            self.disconnect()
            raise Away from None

    def disconnect(self) -> None:
        """Leave the region; the next request connects anew."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _run(self) -> None:
        try:
            while not self._ending.is_set():
                try:
                    self.step()
                    time.sleep(PAUSE_S)
                except Away:
                    self._ending.wait(0.05)
                    if self.chance.random() < 0.3:
                        self.move_anywhere()
        except Exception as error:  # shown by ``join``
            self.failure = f"{type(self).__name__}: {error!r}"
            raise
        finally:
            self.disconnect()


class Writer(Client):
    """Adds to keys that only grow, alone and in transactions."""

    def step(self) -> None:
        if self.chance.random() < 0.25:
            self._add_pair()
            return
        adds: list[Add] = []
        commands: list[tuple[Argument, ...]] = []
        for _ in range(self.chance.choice((1, 1, 3, 10))):
            key = self.chance.choice((LOG, LOG, LOG, CUT, TRIMMED))
            add = Add(self.history.new_value(), key, self.region, now_s())
            adds.append(add)
            padding = b"x" * self.chance.choice(PADDINGS)
            limit = ("MAXLEN", "~", KEPT) if key == TRIMMED and self.chance.random() < 0.3 else ()
            if limit:
                self.history.removals.append(Removal("TRIM", key, self.region, add.began_s))
            commands.append(("XADD", key, *limit, "*", "v", add.value, "p", padding))
        self.history.adds.extend(adds)
        for add, reply in zip(adds, self.ask_all(commands), strict=True):
            _note(add, reply)

    def _add_pair(self) -> None:
        values = [self.history.new_value(), self.history.new_value()]
        adds = [
            Add(value, key, self.region, now_s(), twin=twin)
            for value, twin, key in zip(values, reversed(values), (PAIRED, PAIRED_TOO), strict=True)
        ]
        self.history.adds.extend(adds)
        commands = [("XADD", add.key, "*", "v", add.value) for add in adds]
        replies = self.ask_all([("MULTI",), *commands, ("EXEC",)])[-1]
        for at, add in enumerate(adds):
            _note(add, replies[at] if isinstance(replies, list) else replies)


class Retrier(Client):
    """Adds with IDMP, and asks until it is answered, here or elsewhere."""

    def __init__(
        self, regions: Mapping[int, RegionProcess], history: History, chance: Random
    ) -> None:
        super().__init__(regions, history, chance)
        self._producer = history.new_value()
        self._open: Add | None = None

    def step(self) -> None:
        add = self._open
        if add is None:
            add = Add(self.history.new_value(), ONCE, self.region, now_s())
            self.history.adds.append(add)
        else:
            add.attempts += 1
        self._open = add
        add.regions.add(self.region)
        words = ("XADD", ONCE, "IDMP", self._producer, add.value, "*", "v", add.value)
        reply = self.ask(*words)
        if isinstance(reply, WireError):
            self.move_anywhere()
            return
        _note(add, reply)
        add.region = self.region
        self._open = None
        if self.chance.random() < 0.05:  # as if the answer had been lost
            self.move_anywhere()
            add.regions.add(self.region)
            self.ask(*words)


class Deleter(Client):
    """Deletes entries and keys, and trims."""

    def step(self) -> None:
        kind = self.chance.choices(("XDEL", "TRIM", "DEL"), (60, 3, 1))[0]
        if kind == "XDEL":
            self._delete_one()
        elif kind == "TRIM":
            removal = self._begin(kind, TRIMMED)
            how = self.chance.choice(("=", "~"))
            self._end(removal, self.ask("XTRIM", TRIMMED, "MAXLEN", how, KEPT))
        else:
            removal = self._begin(kind, CUT)
            self._end(removal, self.ask("DEL", CUT))

    def _delete_one(self) -> None:
        found = self.ask("XRANGE", CUT, "-", "+", "COUNT", 30)
        if isinstance(found, list) and found:
            entry = self.chance.choice(found)
            removal = self._begin("XDEL", CUT, entry[0])
            self._end(removal, self.ask("XDEL", CUT, entry[0]))

    def _begin(self, kind: str, key: str, entry_id: bytes = b"") -> Removal:
        removal = Removal(kind, key, self.region, now_s(), entry_id)
        self.history.removals.append(removal)
        return removal

    def _end(self, removal: Removal, reply: object) -> None:
        if isinstance(reply, int):
            removal.reply = reply
            removal.ended_s = now_s()
            removal.outcome = DONE
        else:
            removal.outcome = REFUSED
            self.move_anywhere()


class Reader(Client):
    """Reads the whole of a key that only grows, and how long those are that grow together."""

    def step(self) -> None:
        lengths = [("XLEN", PAIRED), ("XLEN", PAIRED_TOO)]
        pair = self.ask_all([("MULTI",), *lengths, ("EXEC",)])[-1]
        if isinstance(pair, list):
            self.history.pairs.append((self.region, pair[0], pair[1]))
        began_s = now_s()
        found = self.ask("XRANGE", LOG, "-", "+")
        if isinstance(found, list):
            values = {entry[1][1] for entry in found}
            self.history.reads.append(Read(LOG, self.region, began_s, now_s(), values))
        self._ending.wait(0.3)
        if self.chance.random() < 0.3:
            self.move_anywhere()


class StableReader(Client):
    """Reads in order what is stable, in each region from where the last one there came to."""

    def step(self) -> None:
        read = self.history.stable.setdefault(self.region, [])
        last = read[-1] if read else b"0"
        reply = self.ask("XREAD", "STABLE", "COUNT", 1000, "STREAMS", LOG, last)
        if isinstance(reply, list):
            read.extend([entry[0] for entry in reply[0][1]])
        self._ending.wait(0.05)
        if self.chance.random() < 0.02:
            self.move_anywhere()


class Worker(Client):
    """Works in a group: takes entries, acknowledges most of them, moves sometimes."""

    def __init__(
        self, regions: Mapping[int, RegionProcess], history: History, chance: Random
    ) -> None:
        super().__init__(regions, history, chance)
        self._name = chance.choice(("alice", "bob", "carol"))

    def step(self) -> None:
        ids = [entry_id for entry_id in self._take() if self.chance.random() < 0.9]
        if ids:
            if self.chance.random() < 0.3:
                self.chance.shuffle(ids)
            acknowledge(self, self._name, ids)
        if self.chance.random() < 0.02:
            self.move_anywhere()

    def _take(self) -> list[bytes]:
        count = self.chance.choice((1, 5, 20, 100))
        what = self.chance.choices((">", "0", "claim"), (85, 10, 5))[0]
        if what == "claim":
            return claim(self, self._name, 2000, count)
        block: tuple[Argument, ...] = ("BLOCK", 30) if what == ">" else ()
        return take(self, self._name, count, what, *block)


def take(client: Client, consumer: str, count: int, from_id: str, *block: Argument) -> list[bytes]:
    """Read in the group; what was delivered is noted. Returns: IDs."""
    asked_s = now_s()
    words = ("XREADGROUP", "GROUP", GROUP, consumer, "COUNT", count, *block, "STREAMS", LOG)
    reply = client.ask(*words, from_id)
    if not isinstance(reply, list) or not reply:
        return []
    return _delivered(client, consumer, reply[0][1], from_id == ">", asked_s)


def claim(client: Client, consumer: str, idle_ms: int, count: int) -> list[bytes]:
    """Claim what has been pending for long. Returns: IDs."""
    asked_s = now_s()
    reply = client.ask("XAUTOCLAIM", LOG, GROUP, consumer, idle_ms, "0", "COUNT", count)
    if not isinstance(reply, list):
        return []
    return _delivered(client, consumer, reply[1], False, asked_s)


def acknowledge(client: Client, consumer: str, ids: list[bytes]) -> None:
    """Acknowledge entries."""
    ack = Ack(ids, client.region, consumer, now_s())
    client.history.acks.append(ack)
    reply = client.ask("XACK", LOG, GROUP, *ids)
    ack.outcome = DONE if isinstance(reply, int) else REFUSED


def _delivered(
    client: Client, consumer: str, entries: object, fresh: bool, asked_s: float
) -> list[bytes]:
    assert isinstance(entries, list)
    ids: list[bytes] = []
    for entry_id, fields in entries:
        if fields:
            client.history.deliveries.append(
                Delivery(fields[1], entry_id, client.region, consumer, now_s(), fresh, asked_s)
            )
            ids.append(entry_id)
    return ids


def _note(add: Add, reply: object) -> None:
    """An ID, or an error."""
    if isinstance(reply, bytes):
        add.entry_id = reply
        add.ended_s = now_s()
        add.outcome = DONE
    else:
        add.outcome = REFUSED
