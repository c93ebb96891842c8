"""Whether a hash that comes from a stranger is one that commands could have made."""

from __future__ import annotations

from typing import Final

from librt.strings import read_i64_le
from mypy_extensions import i64

from headrace.storage.hash.hash import Hash
from headrace.storage.hash.small import HEAD, count_of
from headrace.storage.hash.timed import DEADLINE_BYTES, NEVER, TimedPiece
from headrace.storage.hash.timed_table import TimedTable
from headrace.storage.packed.strings import NOWHERE, sound_end, string_at
from headrace.storage.packed.table import SCORES as SCORE_TABLE
from headrace.storage.packed.table import Table, keys_of

_LAST_MS: Final = (1 << 46) - 1


def flaw(value: Hash) -> str:
    """What is wrong with a hash; empty if nothing is. Complexity: O(fields)."""
    rep = value.rep
    if isinstance(rep, bytes):
        return _flaw_of_piece(rep, False)
    if isinstance(rep, TimedPiece):
        return _flaw_of_piece(rep.piece, True)
    if isinstance(rep, Table):
        return rep.flaw()
    assert isinstance(rep, TimedTable)
    return rep.table.flaw() or rep.times.flaw() or _flaw_of_times(rep)


def _flaw_of_piece(piece: bytes, timed: bool) -> str:
    met: set[bytes] = set()
    last_ms: i64 = 1
    at = HEAD
    end: i64 = len(piece)
    while at < end:
        middle = sound_end(piece, at)
        stop = NOWHERE if middle == NOWHERE else sound_end(piece, middle)
        if stop == NOWHERE or (timed and stop + DEADLINE_BYTES > end):
            return "a small hash that cannot be read"
        met.add(string_at(piece, at))
        if timed:
            deadline_ms = read_i64_le(piece, stop)
            if last_ms == NEVER and deadline_ms != NEVER:
                return "a field with a deadline behind one without"
            if deadline_ms != NEVER and not last_ms <= deadline_ms <= _LAST_MS:
                return "deadlines out of order"
            last_ms = deadline_ms
            stop += DEADLINE_BYTES
        at = stop
    return "" if len(met) == count_of(piece) else f"{len(met)} fields where others are counted"


def _flaw_of_times(rep: TimedTable) -> str:
    for directory in rep.times.directories:
        for bucket in directory:
            for field in keys_of(bucket, SCORE_TABLE):
                deadline = rep.times.score(field)
                if not 1 <= deadline <= _LAST_MS or deadline != int(deadline):
                    return "a deadline that is none"
                if not rep.table.has(field):
                    return "a deadline without a field"
    return ""
