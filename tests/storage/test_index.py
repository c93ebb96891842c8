"""The index of a stream's blocks finds what a look at every block finds."""

from __future__ import annotations

from itertools import accumulate

from hypothesis import example, given, settings
from hypothesis import strategies as st
from librt.vecs import append, vec
from mypy_extensions import i64

from headrace.storage.stream.block import Block
from headrace.storage.stream.index import BlockIndex
from headrace.storage.stream.reach import REACH_MAX
from headrace.storage.stream.run import ID_MAX

STEPS = (0, 1, 1, 1, 10, 1000, 10**9, 2**41)  # between two blocks, in milliseconds


@st.composite
def last_ids(draw: st.DrawFn) -> list[tuple[int, int]]:
    """The last IDs of the blocks of a stream: even stretches, bursts, gaps of a century."""
    ids: list[tuple[int, int]] = []
    ms = draw(st.sampled_from([0, 5, 1_700_000_000_000, 2**61]))
    for step, count in draw(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(1, 40)))):
        for _ in range(count):
            ms += step
            ids.append((ms, ids[-1][1] + 1 if ids and ids[-1][0] == ms else 0))
    return ids


@settings(max_examples=300)
@given(last_ids(), st.integers(0, 30), st.data())
@example([(ms, 0) for ms in range(0, 100_000, 97)], 0, None)
def test_find_is_the_first_block_that_reaches_an_id(
    ids: list[tuple[int, int]], gone: int, data: st.DataObject | None
) -> None:
    index = BlockIndex()
    for ms, seq in ids:
        block = Block(ms, seq)
        block.total = block.live = 1
        index.add(block)
    for place in range(min(gone, len(ids) - 1)):
        index.blocks[place].live = 0
        index.shrink(place, 1)
    left = [(block.last_ms, block.last_seq) for block in index.blocks]
    near = [(ms + by, seq) for ms, seq in ids for by in (-1, 0, 1) if ms + by >= 0]
    wanted = [*near, *((ms, seq + 1) for ms, seq in ids), (0, 0), (ID_MAX, ID_MAX)]
    if data is not None:
        wanted = data.draw(st.lists(st.sampled_from(wanted), max_size=60))
    head = index.first()
    for ms, seq in wanted:
        reaching = [number for number in range(head, len(left)) if left[number] >= (ms, seq)]
        assert index.find(ms, seq) == (reaching[0] if reaching else len(left))
    if not left:
        return
    all_ms = vec[i64]()
    for ms, _ in wanted:
        all_ms = append(all_ms, min(ms, REACH_MAX))
    reach = [min(ms, REACH_MAX) for ms, _ in left]
    for place, ms in zip(index.find_all(all_ms), all_ms, strict=True):
        reaching = [number for number, last_ms in enumerate(reach) if last_ms >= ms]
        assert place == (reaching[0] if reaching else len(left) - 1)


@settings(max_examples=300)
@given(st.lists(st.integers(1, 200), min_size=1, max_size=150), st.data())
def test_what_is_left_after_a_cut_is_an_index(sizes: list[int], data: st.DataObject) -> None:
    index = BlockIndex()
    for number, size in enumerate(sizes):
        index.add(made(number, size))
    lives = list(sizes)
    for place in data.draw(st.lists(st.integers(0, len(sizes) - 1), max_size=len(sizes) // 3)):
        if lives[place]:
            gone = data.draw(st.integers(1, lives[place]))
            lives[place] -= gone
            index.blocks[place].live -= gone
            index.shrink(place, gone)
    if len(index.blocks) < len(lives):
        return  # most of it was empty: it was made anew
    place = data.draw(st.integers(index.first(), len(lives)))
    cut = index.cut(place)
    assert cut.count == sum(lives[:place])
    lives = lives[place:]
    for number in range(data.draw(st.integers(0, 3))):
        index.add(made(len(sizes) + number, 7))
        lives.append(7)
    assert [block.live for block in index.blocks] == lives
    assert index.entries == sum(lives)
    assert index.live_blocks == len([live for live in lives if live])
    assert [index.count_before(n) for n in range(len(lives) + 1)] == list(accumulate([0, *lives]))
    ranks = [place for place, live in enumerate(lives) for _ in range(live)]
    assert [index.place_of_rank(rank) for rank in range(len(ranks))] == ranks
    assert index.place_of_rank(len(ranks)) == index.place_of_rank(2**40) == len(lives)
    for number, block in enumerate(index.blocks[index.first() :], index.first()):
        assert index.find(block.last_ms, 0) == number
    while not cut.free_some(10):
        pass


def made(ms: int, size: int) -> Block:
    block = Block(ms, 0)
    block.total = block.live = size
    return block
