"""What is looked at first where several things are wrong with a call."""

from __future__ import annotations

import pytest

from support.fuzz.duel import Duel
from support.fuzz.steps import call, steps_of

pytestmark = pytest.mark.judge

CALLS = """
    XADD t MINID 0 LIMIT 0
    XADD t MAXLEN 5 LIMIT 5
    XADD t LIMIT 5 NOMKSTREAM
    XADD t LIMIT 0 KEEPREF
    XADD t MAXLEN ~ 5 LIMIT 5 KEEPREF
    XADD t MAXLEN ~ 5 LIMIT -1
    XADD t LIMIT 5 *
    XADD t LIMIT 5 x f v
    XADD t LIMIT x * f v
    XADD t MAXLEN = 1 LIMIT 1 * f v
    XADD t MAXLEN 1 MAXLEN 2 * f
    XADD t MAXLEN 1 MINID 2 * f v
    XADD t MINID x * f
    XADD t IDMP p i * f
    XADD t IDMP p i 1-1 f
    XADD t IDMPAUTO p IDMP p i * f v
    XADD t KEEPREF ACKED * f v
    XADD k MAXLEN x * f v
    XADD k 0-0 f v
    XADD k 0-0 f
    XADD t 5-* f
    XTRIM s MAXLEN -1 FOO
    XTRIM s LIMIT 1
    XTRIM s LIMIT 0
    XTRIM s LIMIT 1 FOO
    XTRIM s MAXLEN 1 LIMIT 0
    XTRIM s MAXLEN ~ 1 LIMIT 5 LIMIT x
    XTRIM s ACKED MAXLEN
    XTRIM k MAXLEN 1 LIMIT 1
"""


@pytest.mark.parametrize("line", [line.strip() for line in CALLS.strip().splitlines()])
def test_the_first_complaint(duel: Duel, line: str) -> None:
    before = steps_of("0 SET k 5\n 0 XADD s 1-1 f v")
    duel.player.play([*before, call(0, *line.encode().split())])
