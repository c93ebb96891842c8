"""Parts of a stream, put into replies."""

from __future__ import annotations

from headrace.protocol.packing import NOT_SHOWN, Packer, entry_bytes
from headrace.protocol.replies import Packed
from headrace.protocol.streams_reply import SizeLimit
from headrace.storage.stream.part import Part


def packed_entries(parts: list[Part], reverse: bool, resp3: bool) -> Packed:
    """The array of all entries of ``parts``."""
    out = Packer(resp3)
    add_entries_array(out, parts, reverse)
    return out.packed()


def add_entries_array(out: Packer, parts: list[Part], reverse: bool) -> None:
    """Add the array of all entries of ``parts``."""
    out.array(count_entries(parts))
    add_entries(out, parts, reverse)


def add_entries(
    out: Packer, parts: list[Part], reverse: bool, idle_ms: int = NOT_SHOWN, deliveries: int = 0
) -> None:
    """Add all entries of ``parts``, one by one; see ``Packer.entries``."""
    for part in parts:
        run = part.run
        out.entries(
            run.ms,
            run.seq,
            run.names,
            run.flat,
            run.rows,
            part.dead,
            part.low,
            part.high,
            reverse,
            idle_ms,
            deliveries,
        )


def count_entries(parts: list[Part]) -> int:
    """How many live entries ``parts`` hold."""
    count = 0
    for part in parts:
        count += part.live()
    return count


def within(parts: list[Part], size: SizeLimit, idle_ms: int = NOT_SHOWN) -> list[Part]:
    """Those entries of ``parts`` that are to be given; they are counted as given.

    Args:
        idle_ms: as for ``add_entries``.
    """
    kept: list[Part] = []
    for part in parts:
        for number in range(part.low, part.high):
            if part.dead is not None and part.dead[number]:
                continue
            if size.is_reached():
                if number > part.low:
                    kept.append(part.until(number))
                return kept
            run = part.run
            size.give(entry_bytes(run.ms[number], run.seq[number], run.row(number), idle_ms))
        kept.append(part)
    return kept
