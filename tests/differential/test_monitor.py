"""What MONITOR shows of requests that are refused."""

from __future__ import annotations

import pytest

from support.fuzz.duel import Duel
from support.fuzz.steps import steps_of

pytestmark = pytest.mark.judge


@pytest.mark.parametrize(
    "session",
    [
        "0 EXEC",
        "0 EXEC x",
        "0 MULTI\n 0 SET k v\n 0 EXEC x\n 0 EXEC",
        "0 MULTI\n 0 NOSUCH x\n 0 EXEC",
        "0 MULTI\n 0 SET k v\n 0 DISCARD x\n 0 EXEC",
        "0 PSUBSCRIBE a\n 0 EXEC\n 0 GET k\n 0 MULTI",
        "0 GET\n 0 NOSUCH x\n 0 XREAD x y z",
        "0 MULTI\n 0 SSUBSCRIBE b\n 0 SUBSCRIBE a\n 0 EXEC\n 0 PING",
        "0 HELLO 3\n 0 MULTI\n 0 SSUBSCRIBE b\n 0 EXEC\n 1 SPUBLISH b x",
        "0 HELLO 4\n 0 SELECT 99\n 0 CLIENT ID x",
    ],
)
def test_refused(duel: Duel, session: str) -> None:
    """An EXEC is shown whatever became of it, because its MULTI was."""
    duel.player.play(steps_of(session))
