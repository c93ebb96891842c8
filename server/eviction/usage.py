"""How keys are used, as policies of eviction ask for it.

Most policies, and those who evict nothing, have the time of the last access, in milliseconds since
1970. The others remember something else in its place:

- ``-lrm``: the time of the last change. Reading a key leaves it alone.
- ``-lfu``: a counter from 0 to 255, and the minute in which it was brought up to date::

      bit   60   8..59                  0..7
            1    minutes since 1970     counter

  A key begins with 5. An access adds 1 with a chance that falls as the counter rises, by
  ``lfu-log-factor``; each ``lfu-decay-time`` minutes without one take 1 away.

When the policy changes, keys keep what they have. Each is understood, whatever policy it is of.
"""

from __future__ import annotations

from typing import Final

from librt.random import randrange
from mypy_extensions import i64

from headrace.server.changes.changes import Change, Listener
from headrace.server.clock import Clock
from headrace.server.config.config import Config
from headrace.storage.key_table import NO_SLOT, Usage
from headrace.storage.keyspace import Keyspace

COUNTER_MAX: Final = 255
_FIRST: Final = 5  # the counter of a new key
_COUNTED: Final[i64] = 0x1000000000000000
_MINUTE_MS: Final = 60_000


def counts_uses(policy: bytes) -> bool:
    """Return whether a policy asks how often keys are used, and not when."""
    return policy.endswith(b"-lfu")


def last_ms(usage: int) -> int:
    """Return when a key was used last, in milliseconds since 1970."""
    if usage < int(_COUNTED):
        return usage
    return (usage - int(_COUNTED) >> 8) * _MINUTE_MS


def counted(counter: int, now_ms: int) -> int:
    """The usage of a key that has this counter now."""
    return int(_COUNTED) + (max(0, now_ms) // _MINUTE_MS << 8) + counter


def counter_of(usage: int, now_ms: int, decay_minutes: int) -> int:
    """The counter of a key by now."""
    counter = usage & COUNTER_MAX if usage >= int(_COUNTED) else _FIRST
    if not decay_minutes:
        return counter
    minutes = (now_ms - last_ms(usage)) // _MINUTE_MS
    return max(0, counter - max(0, minutes) // decay_minutes)


class Frequencies(Usage):
    """Counts how often keys are used."""

    def __init__(self, config: Config) -> None:
        self._config: Final = config

    def of_new(self, now_ms: i64) -> i64:
        return counted(_FIRST, int(now_ms))

    def of_asked(self, usage: i64, now_ms: i64) -> i64:
        config = self._config
        counter = counter_of(int(usage), int(now_ms), config.lfu_decay_time)
        if counter < COUNTER_MAX:
            above = max(0, counter - _FIRST)
            if not above or not randrange(above * config.lfu_log_factor + 1):
                counter += 1
        return counted(counter, int(now_ms))

    def of_replaced(self, usage: i64, now_ms: i64) -> i64:
        """Another value does not make another key."""
        return self.of_asked(usage, now_ms)


class LastWrites(Usage):
    """Notes when keys get other values, and leaves them alone when they are read."""

    def of_new(self, now_ms: i64) -> i64:
        return now_ms

    def of_asked(self, usage: i64, now_ms: i64) -> i64:
        """Whoever reads a key does not change it."""
        return usage

    def of_replaced(self, usage: i64, now_ms: i64) -> i64:
        return now_ms


class WriteClock(Listener):
    """Notes when keys change in place, as most values do."""

    def __init__(self, databases: list[Keyspace], clock: Clock) -> None:
        self._databases: Final = databases
        self._clock: Final = clock

    def asks_for_events(self) -> bool:
        """Return False: what the change was does not matter."""
        return False

    def heard(self, change: Change) -> None:
        """A key has changed."""
        if change.event.touches:
            self.touched(change.db, change.key)

    def touched(self, db: int, key: bytes) -> None:
        """As ``heard``."""
        table = self._databases[db].table
        slot = table.find(key)
        if slot != NO_SLOT:
            table.use(slot, self._clock.now_ns // 1_000_000)

    def database_replaced(self, db: Keyspace, replaced_by: Keyspace | None, now_ms: int) -> None:
        """The keys bring their times with them."""
