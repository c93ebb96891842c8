"""LOLWUT: the version, and some water to look at."""

from __future__ import annotations

from typing import Final

from headrace.protocol.replies import Verbatim
from headrace.server.build import REDIS_VERSION, VERSION
from headrace.server.dispatch.args import Args
from headrace.server.dispatch.call import Call

_COLUMNS: Final = 66
_ROWS: Final = 7
_MARKS: Final = "~~~~~^-.,_ "


def lolwut(call: Call) -> object:
    """Reply: text that ends with the version."""
    import random  # late: nobody waits for it

    args = Args(call.argv)
    if args.left >= 2 and args.flag(b"VERSION"):
        args.integer()
    stream = random.Random(call.now_ms)
    lines = []
    for row in range(_ROWS):
        shift = stream.randrange(_COLUMNS)
        water = [stream.choice(_MARKS[: 5 + row]) for _ in range(_COLUMNS)]
        lines.append("".join(water[shift:] + water[:shift]).rstrip())
    lines.append("")
    lines.append(f"Headrace {VERSION}. Redis ver. {REDIS_VERSION}")
    return Verbatim(("\n".join(lines) + "\n").encode())
