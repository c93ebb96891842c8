"""Appending to the open block, which is full when Redis would start a new node."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from headrace.storage.packed.strings import (
    EMPTY_BYTES,
    are_as_long,
    delta_bytes,
    integer_bytes,
    text_bytes,
)
from headrace.storage.stream.block import Block
from headrace.storage.stream.run import Run, has_names, names_of

NODE_BYTES_MAX: Final = 1 << 30
NO_LIMIT: Final = 1 << 60


class NodeLimits:
    """The limits at which Redis starts a new node, by its two parameters.

    Args:
        node_bytes_max: ``stream-node-max-bytes``; 0 is no limit except ``NODE_BYTES_MAX``.
        node_entries_max: ``stream-node-max-entries``; 0 is no limit.

    Attributes:
        too_many_bytes: a node stays smaller.
        most_entries: a node has no more.
    """

    def __init__(self, node_bytes_max: int, node_entries_max: int) -> None:
        self.too_many_bytes: Final = min(node_bytes_max or NODE_BYTES_MAX, NODE_BYTES_MAX)
        self.most_entries: Final = min(node_entries_max or NO_LIMIT, NO_LIMIT)

    def is_full(self, block: Block, size: int) -> bool:
        """Return whether an entry of ``size`` bytes of fields and values needs a new node."""
        return block.total >= self.most_entries or block.node_bytes + size >= self.too_many_bytes


def open_block(ms: int, seq: int, words: list[bytes], at: int) -> Block:
    """Return an open, empty block, whose first entry will be (ms, seq) ``words[at:]``."""
    block = Block(ms, seq)
    names = names_of(words, at)
    run = Run(names)
    run.names_of_node = names
    block.run = run
    # Counts of live and deleted entries, number of names, the names, a closing 0.
    size: i64 = EMPTY_BYTES + 2 + 2 + integer_bytes(len(names)) + 2
    for name in names:
        size += text_bytes(name)
    block.node_bytes = int(size)
    return block


def size_of(words: list[bytes], at: i64) -> int:
    """Return how many bytes the fields and values ``words[at:]`` have."""
    size: i64 = 0
    end: i64 = len(words)
    while at < end:
        size += len(words[at])
        at += 1
    return int(size)


def append(block: Block, ms: int, seq: int, words: list[bytes], at: int) -> None:
    """Add the entry ``words[at:]`` to an open block; the ID is above all of its IDs."""
    run = block.run
    assert run is not None
    # Flags, the ID's two halves, the values or all there is, how many elements that were.
    size: i64 = 2 + delta_bytes(ms - block.first_ms) + delta_bytes(seq - block.first_seq)
    names = run.names_of_node
    end: i64 = len(words)
    if has_names(words, at, names):
        size += integer_bytes(len(names) + 3)
        flat = run.flat
        mixed = run.names is None
        number: i64 = at + 1
        while number < end:
            value = words[number]
            size += text_bytes(value)
            if not mixed:
                flat.append(value)
            number += 2
        if mixed:
            run.rows.append(words[at:])
    else:
        if run.names is not None:
            run.mix()
        row = words[at:]
        size += integer_bytes(len(row) // 2) + integer_bytes(len(row) + 4)
        for element in row:
            size += text_bytes(element)
        run.rows.append(row)
    block.node_bytes += int(size)
    run.ms.append(ms)
    run.seq.append(seq)
    if block.dead is not None:
        block.dead.append(0)
    block.last_ms = ms
    block.last_seq = seq
    block.total += 1
    block.live += 1


def append_alike(
    block: Block,
    ms: int,
    seq: int,
    step: i64,
    requests: list[list[bytes]],
    first: int,
    end: int,
    at: int,
    limits: NodeLimits,
) -> int:
    """Add entries to an open block, while they fit; return how many were added.

    They are ``requests[first:end]``, of each ``[at:]``, all of as many words; (ms, seq) is the ID
    of the first, above all that the block has, and the next go on by ``step``. They fit while they
    have the names that all entries before have, and Redis would not start a new node. One by one,
    ``append`` comes to the same sizes.
    """
    run = block.run
    assert run is not None
    names = run.names
    if names is None or len(requests[first]) != at + 2 * len(names):
        return 0
    end = min(end, first + max(0, limits.most_entries - block.total))
    too_many_bytes: i64 = limits.too_many_bytes
    width = len(names)
    flat = run.flat
    size: i64 = block.node_bytes
    # Flags, the ID's two halves, the values, how many elements that were.
    head: i64 = 2 + delta_bytes(ms - block.first_ms) + integer_bytes(width + 3)
    delta = seq - block.first_seq
    delta_size: i64 = delta_bytes(delta)
    steady = are_as_long(delta, delta + span_of(step, end - first))
    names_bytes: i64 = size_of(names, 0)
    added: i64 = 0
    for words in requests[first:end]:
        if not steady:
            delta_size = delta_bytes(delta + int(added * step))
        filled = size + head + delta_size
        compared = size + names_bytes
        place: i64 = at
        for name in names:
            if words[place] != name:
                break
            value = words[place + 1]
            compared += len(value)
            filled += text_bytes(value)
            flat.append(value)
            place += 2
        else:
            if compared < too_many_bytes:
                size = filled
                added += 1
                continue
        break
    _settle(block, width, ms, seq, step, int(added), int(size))
    return int(added)


def span_of(step: i64, count: int) -> int:
    """Return how far ``count`` steps go; nearly always they are of 1, and nothing is multiplied."""
    return count if step == 1 else int(step) * count


def _settle(block: Block, width: int, ms: int, seq: int, step: i64, added: int, size: int) -> None:
    """Add the IDs of entries of ``width`` values that are in the block already.

    The first ID is (ms, seq), the next ones go on by ``step``; the block has ``size`` bytes then.
    """
    run = block.run
    assert run is not None
    del run.flat[(len(run.ms) + added) * width :]  # of an entry that did not fit
    if not added:
        return
    block.node_bytes = size
    run.ms.extend([ms] * added)
    if step == 1:
        run.seq.extend(range(seq, seq + added))
    else:
        run.seq.extend(range(seq, seq + span_of(step, added), int(step)))
    block.last_ms = ms
    block.last_seq = seq + span_of(step, added - 1)
    block.total += added
    block.live += added
    if block.dead is not None:
        block.dead.extend(bytes(added))
