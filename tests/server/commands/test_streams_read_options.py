"""The options of XREAD and XREADGROUP are the same whether they are read or were the last ones."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headrace.compat.errors import CommandError
from headrace.server.commands.streams.args import ReadOptions, read_options_of

WORDS = [
    *(b"COUNT", b"count", b"MAXCOUNT", b"MAXSIZE", b"BLOCK", b"NOACK", b"CLAIM"),
    *(b"0", b"1", b"2", b"-1", b"9223372036854775807", b"STREAMS", b"s", b">"),
]
ENDS: list[list[bytes]] = [
    *[[b"STREAMS", b"s", b">"]] * 3,
    [b"STREAMS", b"s", b"t", b">", b"0"],
    [b"streams", b"s", b"t", b">"],
    [b"STREAMS"],
    [],
]
Words = st.tuples(
    st.sampled_from([b"GROUP g c", b"GROUP g d", b"GROUP g STREAMS", b"GROUP g", b""]).map(
        bytes.split
    ),
    st.lists(st.sampled_from(WORDS), max_size=5) | st.just([b"COUNT", b"1", b"BLOCK", b"5"]),
    st.sampled_from(ENDS),
).map(lambda parts: [*parts[0], *parts[1], *parts[2]])


def told(argv: list[bytes], now_ms: int, for_group: bool, remembered: bool) -> object:
    """All that is read, or the error."""
    try:
        if remembered:
            options = read_options_of(argv, now_ms, for_group)
        else:
            options = ReadOptions(for_group)
            options.read(argv, now_ms)
    except CommandError as error:
        return error.line
    return (
        (options.group, options.consumer, options.consumer_at, options.noack, options.claim_ms),
        (options.count, options.max_count, options.max_size),
        (options.block_at, options.deadline_ms, options.streams_at, options.words),
    )


@given(st.lists(st.tuples(Words, st.booleans()), max_size=6))
@example(
    [
        ([b"GROUP", b"g", b"c", b"STREAMS", b"s", b">"], True),
        ([b"GROUP", b"g", b"c", b"STREAMS", b"s", b"t", b">"], True),
        ([b"GROUP", b"g", b"c", b"STREAMS", b"s", b">"], False),
        ([b"GROUP", b"g", b"c", b"STREAMS"], True),
    ]
)
@example(
    [
        ([b"GROUP", b"g", b"c", b"BLOCK", b"5", b"STREAMS", b"s", b">"], True),
        ([b"GROUP", b"g", b"d", b"COUNT", b"5", b"STREAMS", b"s", b">"], True),
        ([b"GROUP", b"h", b"e", b"BLOCK", b"5", b"STREAMS", b"s", b">"], True),
    ]
)
@example([([b"BLOCK", b"5", b"STREAMS", b"s", b">"], False)] * 2)
def test_options_read_again_are_the_same(requests: list[tuple[list[bytes], bool]]) -> None:
    for now_ms, (words, for_group) in enumerate(requests, 1000):
        argv = [b"XREADGROUP" if for_group else b"XREAD", *words]
        for later_ms in (now_ms, now_ms + 500):
            found = told(argv, later_ms, for_group, True)
            assert found == told(argv, later_ms, for_group, False)


def test_the_last_options_are_kept() -> None:
    argv = [b"XREAD", b"BLOCK", b"5", b"STREAMS", b"s", b"$"]
    kept = read_options_of(argv, 1000, False)
    assert read_options_of([*argv[:4], b"t", b"0"], 2000, False) is kept
    assert kept.deadline_ms == 2005
    assert read_options_of(argv[:1] + argv[3:], 3000, False) is not kept


def test_options_are_kept_whoever_reads() -> None:
    argv = [b"XREADGROUP", b"COUNT", b"1", b"GROUP", b"g", b"c", b"STREAMS", b"s", b">"]
    kept = read_options_of(argv, 1000, True)
    argv[4:6] = [b"h", b"d"]
    assert read_options_of(argv, 1000, True) is kept
    assert (kept.group, kept.consumer) == (b"h", b"d")
    argv[3] = b"COUNT"
    with pytest.raises(CommandError):
        read_options_of(argv, 1000, True)
    argv[2:4] = [b"2", b"GROUP"]
    assert read_options_of(argv, 1000, True) is not kept


def test_options_of_many_words_are_not_kept() -> None:
    argv = [b"XREAD", b"BLOCK", b"5", b"STREAMS", b"s", b"$"]
    kept = read_options_of(argv, 1000, False)
    many = [b"XREAD", *[b"COUNT", b"1"] * 5, b"STREAMS", b"s", b"$"]
    assert read_options_of(many, 1000, False) is not read_options_of(many, 1000, False)
    assert read_options_of(argv, 1000, False) is kept
