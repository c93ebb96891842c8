"""Documentation of the commands on HyperLogLogs."""

from __future__ import annotations

from typing import Final

from headrace.compat.doc_notation import Doc

_GROUP: Final = "hyperloglog"

DOCS: Final[dict[str, Doc]] = {
    "pfadd": Doc(
        _GROUP,
        "2.8.9",
        "O(1) for each element",
        "Adds elements to a HyperLogLog, which is created where it is missing.",
        "key [element...]",
    ),
    "pfcount": Doc(
        _GROUP,
        "2.8.9",
        "O(1) for one key whose estimate is known, O(N) for N keys, with large constant factors",
        "Estimates how many different elements were added to some HyperLogLogs.",
        "key...",
    ),
    "pfdebug": Doc(
        _GROUP,
        "2.8.9",
        "O(1), for a fixed number of registers",
        "Shows what is inside a HyperLogLog.",
        "subcommand key",
        internal=True,
    ),
    "pfmerge": Doc(
        _GROUP,
        "2.8.9",
        "O(N) for N HyperLogLogs, with large constant factors",
        "Makes one HyperLogLog of several.",
        "destkey:key [sourcekey:key#1...]",
    ),
    "pfselftest": Doc(
        _GROUP, "2.8.9", "O(1)", "Tests the estimates of HyperLogLogs.", internal=True
    ),
}
