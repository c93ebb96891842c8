"""The index of a stream's blocks finds what a look at every block finds."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from storage.stream.block import Block
from storage.stream.ids import ID_MAX
from storage.stream.index import BlockIndex

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


@settings(max_examples=300, deadline=None)
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
