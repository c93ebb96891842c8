"""Running the programs of examples/rocket_rides."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable

from support import build

Start = Callable[..., "subprocess.Popen[bytes]"]


def environment(dsn: str, port: int) -> dict[str, str]:
    """Environment variables of a program of the example."""
    variables = build.environment()
    paths = (str(build.ROOT / "examples"), variables.get("PYTHONPATH", ""))
    return {
        **variables,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "ROCKET_RIDES_DSN": dsn,
        "ROCKET_RIDES_REDIS_URL": f"redis://127.0.0.1:{port}",
    }
