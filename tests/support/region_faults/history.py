"""What clients asked and were told, each with the times at which it began and was answered.

Times are of one clock, because all clients are threads of one process.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Final

LOG: Final = "log"  # keys that are only added to
PAIRED: Final = "paired"  # gets an entry in each transaction, and so does its twin
PAIRED_TOO: Final = "paired-too"
ONCE: Final = "once"  # added to with IDMP, retried in any region
CUT: Final = "cut"  # entries are deleted one by one, and sometimes all of them
TRIMMED: Final = "trimmed"  # trimmed to a length
MIXED: Final = "mixed"  # goes through everything, and is only compared; so does the other one
OTHER_MIXED: Final = "other-mixed"
KEYS: Final = (LOG, PAIRED, PAIRED_TOO, ONCE, CUT, TRIMMED)
GROUP: Final = "group"  # of LOG

KEPT: Final = 300  # entries that trims of TRIMMED leave

DRAINER: Final = "drainer"  # the consumer that takes all in the end, in each region

UNKNOWN: Final = "unknown"  # no reply has come
DONE: Final = "done"
REFUSED: Final = "refused"  # an error reply: nothing has changed


def now_s() -> float:
    return time.monotonic()


@dataclass(slots=True)
class Add:
    """One XADD, or all attempts at one with IDMP.

    Attributes:
        value: what no other one has.
        region: where, or where the attempt was made that was answered.
        entry_id: the answer.
        twin: the value of the other entry in the same transaction.
    """

    value: bytes
    key: str
    region: int
    began_s: float
    ended_s: float = 0.0
    outcome: str = UNKNOWN
    entry_id: bytes = b""
    twin: bytes = b""
    attempts: int = 1
    regions: set[int] = field(default_factory=set)  # where attempts were made


@dataclass(slots=True)
class Removal:
    """XDEL of one ID, DEL of the key, or XTRIM."""

    kind: str
    key: str
    region: int
    began_s: float
    entry_id: bytes = b""
    ended_s: float = 0.0
    outcome: str = UNKNOWN
    reply: int = 0


@dataclass(slots=True)
class Read:
    """A read of a whole key, by the number of entries that were there."""

    key: str
    region: int
    began_s: float
    ended_s: float
    values: set[bytes]


@dataclass(slots=True)
class Delivery:
    """An entry that a group's worker was given.

    Attributes:
        fresh: by ``>``, and not of what was pending.
    """

    value: bytes
    entry_id: bytes
    region: int
    consumer: str
    at_s: float
    fresh: bool
    asked_s: float


@dataclass(slots=True)
class Ack:
    entry_ids: list[bytes]
    region: int
    consumer: str
    began_s: float
    outcome: str = UNKNOWN


@dataclass(slots=True)
class Disaster:
    """Something that may cost a region what it had acknowledged.

    Attributes:
        kind: ``power``, ``failing``, ``disk`` or ``older``.
        region: which one.
        at_s: when its process had ended.
        since_s: what was acknowledged earlier than this has to be there.
        policy: of ``appendfsync``.
    """

    kind: str
    region: int
    at_s: float
    since_s: float
    policy: str


class History:
    """All of a campaign. Lists are only appended to, from many threads."""

    def __init__(self) -> None:
        self.adds: Final[list[Add]] = []
        self.removals: Final[list[Removal]] = []
        self.reads: Final[list[Read]] = []
        self.pairs: Final[list[tuple[int, object, object]]] = []  # region, lengths of PAIRED
        self.deliveries: Final[list[Delivery]] = []
        self.acks: Final[list[Ack]] = []
        self.disasters: Final[list[Disaster]] = []
        self.moves: Final[list[float]] = []  # when the group was moved to another region
        self.stable: Final[dict[int, list[bytes]]] = {}  # IDs of LOG read as stable, by region
        self.clocks_differ = False
        self.copies = 0  # full copies that were taken
        self._number = 0
        self._lock = threading.Lock()

    def new_value(self) -> bytes:
        """A value that nobody else has."""
        with self._lock:
            self._number += 1
            return b"v%d" % self._number
