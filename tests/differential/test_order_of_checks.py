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
    XDELEX s IDS 1 1-1 IDS 1 2-1
    XDELEX s IDS 1 x IDS 1 1-1
    XDELEX s IDS 1 1-1 IDS 1 x
    XDELEX s IDS 1 1-1 IDS x
    XDELEX s IDS 1 1-1 IDS 2 1-1
    XDELEX s IDS 1 1-1 IDS
    XDELEX s IDS 1 1-1 ACKED IDS 1 2-1 KEEPREF
    XDELEX s KEEPREF KEEPREF IDS 1 1-1
    XACKDEL s g IDS 1 1-1 IDS 1 2-1
    XACKDEL s g IDS 1 x DELREF IDS 1 2-1
    XACKDEL s g IDS 1 1-1 IDS 1 x
    XACKDEL s none IDS 1 1-1 IDS x
    XNACK s g FAIL IDS 1 1-1 IDS 1 2-1
    XNACK s g FAIL IDS 1 x IDS 1 1-1
    XNACK s g FAIL IDS 1 1-1 IDS 1 x
    XNACK s g FAIL IDS 1 1-1 IDS 2 1-1
    XNACK s g FAIL IDS 1 1-1 IDS
    XNACK s g FAIL IDS 1 1-1 RETRYCOUNT 1 IDS 1 2-1 FORCE RETRYCOUNT 2
    XNACK s g FAIL RETRYCOUNT IDS 1 1-1
    XTRIM s MAXLEN -1 FOO
    XTRIM s LIMIT 1
    XTRIM s LIMIT 0
    XTRIM s LIMIT 1 FOO
    XTRIM s MAXLEN 1 LIMIT 0
    XTRIM s MAXLEN ~ 1 LIMIT 5 LIMIT x
    XTRIM s ACKED MAXLEN
    XTRIM k MAXLEN 1 LIMIT 1
"""


@pytest.mark.parametrize("word", [b"a\r\nb\r\n", b"\r\n", b"\n\na\n\n", b"a \r\n ", b"\r"])
def test_line_breaks_in_errors(duel: Duel, word: bytes) -> None:
    duel.player.play(
        [
            call(0, b"EXPIRE", b"k", b"1", word),
            call(0, word, word),
            call(0, b"CLIENT", word),
            call(0, b"XREADGROUP", b"GROUP", word, b"c", b"STREAMS", word, b">"),
        ]
    )


@pytest.mark.parametrize("line", [line.strip() for line in CALLS.strip().splitlines()])
def test_the_first_complaint(duel: Duel, line: str) -> None:
    before = steps_of("""
        0 SET k 5
        0 XADD s 1-1 f v
        0 XADD s 2-1 f v
        0 XGROUP CREATE s g 0
        0 XREADGROUP GROUP g c STREAMS s >
    """)
    duel.player.play([*before, call(0, *line.encode().split())])
