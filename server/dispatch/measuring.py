"""What each request costs is put down to its keys, while HOTKEYS looks for those that cost most.

Meanwhile the gate has requests run one by one, so that nothing is tested while nobody looks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.server.dispatch.key_specs import key_positions
from headrace.server.dispatch.rows import Command
from headrace.server.gate import KEYS_MEASURED
from headrace.server.state import Server

if TYPE_CHECKING:
    from headrace.server.statistics.hot_keys import HotKeys


def begin_measuring(server: Server, hot_keys: HotKeys) -> None:
    """Look for hot keys; what was found before is forgotten."""
    server.statistics.hot_keys = hot_keys
    server.gate.set(KEYS_MEASURED, True)


def stop_measuring(server: Server) -> None:
    """Look no further; what was found stays."""
    hot_keys = server.statistics.hot_keys
    assert hot_keys is not None
    hot_keys.stop(server.clock.monotonic_ms())
    server.gate.set(KEYS_MEASURED, False)


def stop_if_over(server: Server) -> None:
    """Stop where that was to last no longer."""
    hot_keys = server.statistics.hot_keys
    assert hot_keys is not None
    if hot_keys.is_over(server.clock.monotonic_ms()):
        stop_measuring(server)


def measure(server: Server, row: Command, argv: list[bytes], ns: int, wire_bytes: int) -> None:
    """Put what a request has cost down to its keys, if it names any."""
    hot_keys = server.statistics.hot_keys
    assert hot_keys is not None
    positions = key_positions(row, argv)
    if positions:
        hot_keys.note([argv[position] for position in positions], ns, wire_bytes)
