"""Without regions the append-only file has the bytes of a run that was recorded."""

from __future__ import annotations

from pathlib import Path

from conftest import Factory

from support.clock import START_MS, Clock

RECORDED = Path(__file__).parent / "recorded-run.aof"
LATER_MS = START_MS + 3_600_000
COMMANDS = (
    "XADD s * f v",
    "XADD s 1900000000000-1 f v g w",
    "XADD s IDMP producer message * f v",
    "XADD s MAXLEN ~ 1000 NOMKSTREAM * f v",
    "XADD t MAXLEN = 1 1-1 f v",
    "XGROUP CREATE s g 0",
    "XGROUP CREATE u g $ MKSTREAM",
    "XREADGROUP GROUP g alice COUNT 2 STREAMS s >",
    "XACK s g 1900000000000-1",
    "XCLAIM s g bob 0 1900000000000-1 JUSTID",
    "XDEL s 1900000000000-1",
    "XTRIM s MAXLEN 2",
    "XGROUP SETID s g $",
    "XGROUP DESTROY s g",
    "XSETID s 1900000000009-9",
    "SET a 1",
    f"SET b 2 PXAT {LATER_MS}",
    "INCR a",
    "GETSET a 5",
    f"PEXPIREAT s {LATER_MS}",
    "PERSIST s",
    "RENAME a c",
    "SELECT 3",
    "SET d 1",
    "MULTI",
    "XADD m 1-1 f v",
    "XADD m 1-2 f v",
    "SET e 1",
    "EXEC",
    "SELECT 0",
    "COPY s s2",
    "DEL t c",
    "SWAPDB 0 3",
    "FLUSHDB",
    "XADD last 5-5 f v",
)


def test_the_bytes_are_those_of_a_recorded_run(
    fresh_server: Factory, settable_clock: Clock
) -> None:
    server = fresh_server("--appendonly", "yes", environment=settable_clock.environment)
    with server.client() as client:
        for line in COMMANDS:
            assert not client.call(*line.split()).startswith(b"-"), line
    server.stop()
    (file,) = (server.directory / "appendonlydir").glob("*.incr.aof")
    assert file.read_bytes() == RECORDED.read_bytes()
