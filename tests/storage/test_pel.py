"""The chunks that hold pending entries: cut and joined, with holes that are filled and closed."""

from __future__ import annotations

import random

import pytest

from headrace.storage.stream.groups import Group
from headrace.storage.stream.pel import CHUNK, Chunk
from support.group_model import World


@pytest.mark.parametrize("consumers", [1, 3])
def test_entries_are_acknowledged_around_a_place_that_wanders(consumers: int) -> None:
    chance = random.Random(consumers)
    total = 40 * CHUNK
    group = Group(b"g", 0, 0, 0)
    members = [group.create_consumer(b"%d" % number, 0) for number in range(consumers)]
    for number in range(total):
        group.deliver(number // 7, number % 7, members[number % consumers], number)
    left = list(range(total))
    while left:
        around = chance.choice([0, 0, 0, len(left) // 2, len(left) - 1])
        window = left[around : around + chance.choice([1, 50, 5 * CHUNK])]
        chance.shuffle(window)
        for number in window[:-3] or window:
            assert group.ack(number // 7, number % 7)
            assert not group.ack(number // 7, number % 7)
            left.remove(number)
        assert [7 * nack.ms + nack.seq for nack in group.pel.from_id(0, 0, 0)] == left
        for member in members:
            held = [7 * nack.ms + nack.seq for nack in member.pel.from_id(0, 0, 0)]
            assert held == [n for n in left if members[n % consumers] is member]
        by_time = [
            7 * nack.ms + nack.seq for chunk in group.by_time.chunks for nack in chunk.live()
        ]
        assert by_time == left


def grown_chunk(world: World) -> list[Chunk]:
    """The chunks of a group by ID: one with all of 1 to 2 * CHUNK, as large as one gets."""
    world.create(b"g", (0, 0))
    world.add(4 * CHUNK)
    for number in range(2, 2 * CHUNK + 1, 2):
        world.assign(b"g", b"a", (number, 0), 1000)
    for number in range(1, 2 * CHUNK, 2):  # in between, so it grows
        world.assign(b"g", b"a", (number, 0), 999)
    chunks = world.stream.groups[b"g"].pel.chunks
    assert [len(chunk.slots) for chunk in chunks] == [2 * CHUNK]
    return chunks


def test_what_comes_again_fills_the_hole_it_left() -> None:
    world = World()
    chunks = grown_chunk(world)
    for number in range(1, CHUNK + 30):
        world.acknowledge(b"g", (number, 0))
    assert [chunk.start for chunk in chunks] == [CHUNK + 29]
    world.acknowledge(b"g", (CHUNK + 50, 0))
    for number in (CHUNK + 50, 7):
        world.assign(b"g", b"a", (number, 0), 999)
        world.agree()
    assert [(chunk.start, len(chunk.slots)) for chunk in chunks] == [(CHUNK + 28, 2 * CHUNK)]
    world.assign(b"g", b"a", (8, 0), 999)  # for which there is no hole
    world.agree()
    assert [(chunk.start, len(chunk.slots)) for chunk in chunks] == [(0, CHUNK - 27)]
    world.copy()
    world.delete_consumer(b"g", b"a")
    world.agree()


def test_a_full_chunk_with_holes_is_cut_in_half() -> None:
    world = World()
    chunks = grown_chunk(world)
    for number in range(1, 2 * CHUNK, 10):
        world.acknowledge(b"g", (number, 0))
    live = chunks[0].size
    world.stream.groups[b"g"].add_pending(7, 5, None, 0)
    assert [chunk.size for chunk in chunks] == [(live + 1) // 2, live + 1 - (live + 1) // 2]
    assert [len(chunk.slots) for chunk in chunks] == [chunk.size for chunk in chunks]
    world.stream.groups[b"g"].ack(7, 5)
    world.agree()


@pytest.mark.parametrize("step", [1, -1, 7, 97])
def test_holes_are_closed_where_few_entries_are_left(step: int) -> None:
    """Entries go in an order of their own; ``agree`` says what a chunk has to be like."""
    world = World()
    world.create(b"g", (0, 0))
    world.add(3 * CHUNK)
    world.read(b"g", b"a", 0, False)
    total = 3 * CHUNK
    for number in range(total):
        world.acknowledge(b"g", (number * step % total + 1, 0))
        if number % 16 == 0:
            world.agree()
    for number in range(total):
        world.acknowledge(b"g", (number + 1, 0))
    world.agree()
