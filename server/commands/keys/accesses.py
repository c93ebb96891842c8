"""How a key is used, as OBJECT shows it and RESTORE sets it."""

from __future__ import annotations

from headrace.server.dispatch.call import Call
from headrace.server.eviction.usage import counted, counter_of, counts_uses, last_ms
from headrace.storage.entry import Entry


def counts_frequency(call: Call) -> bool:
    """Whether the policy of eviction asks how often keys are used, and not when."""
    return counts_uses(call.server.config.maxmemory_policy)


def frequency(call: Call, found: Entry) -> int:
    """The counter of a key."""
    return counter_of(found.usage, call.now_ms, call.server.config.lfu_decay_time)


def idle_s(call: Call, found: Entry) -> int:
    """For how long nobody has used a key."""
    return max(0, call.now_ms - last_ms(found.usage)) // 1000


def use_as_counted(call: Call, key: bytes, counter: int) -> None:
    """Give a key this counter."""
    call.db.use(key, counted(counter, call.now_ms))


def use_long_ago(call: Call, key: bytes, seconds: int) -> None:
    """Let a key have been used so long ago."""
    call.db.use(key, max(0, call.now_ms - 1000 * seconds))
