"""The options of XADD are the same whether they are read or were the last ones read."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from headrace.compat.errors import CommandError
from headrace.server.commands.streams.args import AddOptions, add_options_of

WORDS = [
    *(b"MAXLEN", b"maxlen", b"MINID", b"~", b"=", b"LIMIT", b"NOMKSTREAM", b"DELREF", b"ACKED"),
    *(b"IDMP", b"IDMPAUTO", b"0", b"1", b"2", b"-1", b"5-5", b"*", b"f", b"v"),
]
Requests = st.lists(st.lists(st.sampled_from(WORDS), min_size=2, max_size=9), max_size=6)


def told(argv: list[bytes], remembered: bool) -> object:
    """All that is read, or the error."""
    try:
        if remembered:
            options = add_options_of(argv)
        else:
            options = AddOptions()
            assert options.read(argv) == 2 + len(options.words)
    except CommandError as error:
        return error.line
    return (
        (options.strategy, options.approximate, options.threshold, options.limit),
        (options.limit_given, options.min_ms, options.min_seq, options.mode),
        (options.operator_at, options.threshold_at, options.idmp_at, options.words),
        (options.make_stream, options.pid, options.iid),
    )


@given(Requests)
@example([[b"MAXLEN", b"~", b"1", b"*", b"f", b"v"], [b"MAXLEN", b"~", b"2", b"*", b"f", b"v"]])
@example([[b"MAXLEN", b"1", b"*", b"f", b"v"], [b"MAXLEN", b"1", b"5-5", b"f", b"v"]])
def test_options_read_again_are_the_same(requests: list[list[bytes]]) -> None:
    for words in requests:
        argv = [b"XADD", b"s", *words]
        for _ in range(2):
            assert told(argv, True) == told(argv, False)
