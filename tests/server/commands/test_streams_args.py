"""Arguments that commands on streams share."""

from __future__ import annotations

from headrace.compat.stream_ids import ID_MAX
from headrace.server.commands.streams.args import bound_id


def test_bounds_have_ends() -> None:
    assert bound_id(b"-") == (0, 0)
    assert bound_id(b"+") == (ID_MAX, ID_MAX)
    assert bound_id(b"3") == (3, 0)
