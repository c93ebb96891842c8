"""How often a key is used, as far as that is known: OBJECT FREQ, and FREQ of RESTORE.

Accesses are not counted, since nothing is evicted by them. A key that was just used stands where
Redis lets a new one begin, and falls by one for each minute without an access. So a frequency is a
moment of access: one above where keys begin lies ahead.
"""

from __future__ import annotations

from typing import Final

from headrace.server.dispatch.call import Call

FREQUENCY_MAX: Final = 255
_FIRST_FREQUENCY: Final = 5  # what Redis gives a new key
_STEP_MS: Final = 60_000


def counts_frequency(call: Call) -> bool:
    """Whether the policy of eviction asks how often keys are used, and not when."""
    return call.server.config.maxmemory_policy.endswith(b"-lfu")


def frequency(call: Call, access_ms: int) -> int:
    """That of a key that was last used at some moment."""
    passed = (call.now_ms - access_ms) // _STEP_MS
    return min(FREQUENCY_MAX, max(0, _FIRST_FREQUENCY - passed))


def access_ms_of(call: Call, wanted: int) -> int:
    """The moment that stands for a frequency."""
    return call.now_ms + (wanted - _FIRST_FREQUENCY) * _STEP_MS
