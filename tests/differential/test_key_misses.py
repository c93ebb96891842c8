"""Which commands tell that a key is not there, how often, and before which checks."""

from __future__ import annotations

import pytest

from support.fuzz.duel import Duel
from support.fuzz.steps import Step, call, steps_of

pytestmark = pytest.mark.judge

ON_NOTHING = """
    SCAN 0 TYPE nosuch
    SCAN 0 TYPE nosuch COUNT x
    SCAN 0 TYPE nosuch COUNT 0
    SCAN 0 TYPE nosuch TYPE string
    XREAD STREAMS a b 0 $
    XREAD COUNT 1 STREAMS a 0
    XREAD MAXCOUNT 1 STREAMS a +
    XREAD STREAMS a b 0 x
    XREAD STREAMS a b > 0
    XREADGROUP GROUP g c STREAMS a b > >
    XREADGROUP GROUP g c STREAMS a 0
    XACK a g 1-1
    XACK a g x
    XACKDEL a g IDS 1 1-1
    XACKDEL a g IDS 1 x
    XACKDEL a g IDS 2 1-1
    XDEL a 1-1
    XDELEX a IDS 1 1-1
    XTRIM a MAXLEN 1
    XLEN a
    XRANGE a - +
    XRANGE a x +
    XREVRANGE a + -
    XPENDING a g
    XPENDING a g - + 1
    XPENDING a g - + x
    XCLAIM a g c 0 1-1
    XCLAIM a g c x 1-1
    XAUTOCLAIM a g c 0 0
    XAUTOCLAIM a g c x 0
    XAUTOCLAIM a g c 0 x
    XAUTOCLAIM a g c 0 0 COUNT 0
    XNACK a g FAIL IDS 1 1-1
    XNACK a g FOO IDS 1 1-1
    XSETID a 1-1
    XINFO STREAM a
    XINFO GROUPS a
    XINFO CONSUMERS a g
    XGROUP CREATE a g 0
    XCFGSET a IDMP-DURATION 1
    XADD a NOMKSTREAM * f v
    DELEX a
    DELEX a IFEQ v
    DELEX a FOO v
    DIGEST a
    GETDEL a
    GETEX a EX x
    GETSET a v
    SET a v XX
    SET a v XX GET
    SET a v IFEQ v
    SET a v IFEQ v GET
    SET a v IFNE v GET
    MSETEX 1 a 1 XX
    STRLEN a
    GETRANGE a 0 1
    PERSIST a
    EXPIRE a 1
    TTL a
    TYPE a
    OBJECT ENCODING a
    TOUCH a
    EXISTS a
    RENAME a b
    COPY a b
    MOVE a 1
    MGET a b
    UNLINK a
"""


CURSORS = (
    [b"0", b"00", b"+0", b"-0", b" 0", b"\t0", b"0 ", b"", b" ", b"0x0", b"1x", b"-1", b" -1"]
    + [b"\n +7", b"0\0x", b"\0", b"+", b"-", b"--1", b"+-1", b"1.0", b"1e2"]
    + [b"%d" % number for number in (2**63, 2**64 - 1, 2**64, -(2**63), -(2**64) + 1, -(2**64))]
)


@pytest.mark.parametrize("cursor", CURSORS)
def test_cursors(duel: Duel, cursor: bytes) -> None:
    """What is a cursor, and not where it leads."""
    duel.player.play([call(0, b"SCAN", cursor)])


def commands(text: str) -> list[bytes]:
    return [line.strip().encode() for line in text.strip().splitlines()]


def on(before: list[Step], command: bytes) -> list[Step]:
    return [*before, call(0, *command.split())]


@pytest.mark.parametrize("command", commands(ON_NOTHING))
def test_misses(duel: Duel, command: bytes) -> None:
    """Where there is no key, one of another type, and one that has just expired."""
    duel.player.play(on([], command))
    duel.player.play(on(steps_of("0 SET a v"), command))
    duel.player.play(on(steps_of("0 XADD a 1-1 f v"), command))
    duel.player.play(on(steps_of("0 XADD a 1-1 f v\n 0 PEXPIRE a 1\n tick 2"), command))


def test_misses_of_a_reader_that_is_woken(duel: Duel) -> None:
    duel.player.play(
        steps_of("""
            2 XREAD BLOCK 0 STREAMS a b c 0 0 0
            0 XADD b 1-1 f v
            2 XREAD STREAMS a b c 0 0 0
            2 XREAD MAXCOUNT 1 STREAMS a b c 0 0 0
        """)
    )
