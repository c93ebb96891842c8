"""Error texts that only commands on HyperLogLogs have; see ``compat.errors``."""

from __future__ import annotations

from typing import Final

NOT_A_SKETCH: Final = b"WRONGTYPE Key is not a valid HyperLogLog string value."
CORRUPTED: Final = b"INVALIDOBJ Corrupted HLL object detected"
NO_KEY_TO_DEBUG: Final = b"ERR The specified key does not exist"
NOT_SPARSE: Final = b"ERR HLL encoding is not sparse"
SWITCH: Final = b"ERR Argument must be ON or OFF"


def unknown_debug(subcommand: bytes) -> bytes:
    """For a subcommand of PFDEBUG that there is not."""
    return b"ERR Unknown PFDEBUG subcommand '%b'" % subcommand.partition(b"\0")[0]


def test_failed(what: bytes) -> bytes:
    """For PFSELFTEST that found an error of ours."""
    return b"ERR TESTFAILED " + what
