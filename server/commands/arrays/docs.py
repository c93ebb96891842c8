"""Documentation of the commands on arrays."""

from __future__ import annotations

from typing import Final

from headrace.compat.doc_notation import Doc

_GROUP: Final = "array"
_SINCE: Final = "8.8.0"
_VALUES: Final = "O(N) for N values"
_INDEXES: Final = "O(N) for N indexes"
_RANGE: Final = "O(N) for N elements of the range"

DOCS: Final[dict[str, Doc]] = {
    "arcount": Doc(_GROUP, _SINCE, "O(1)", "Counts the elements of an array.", "key"),
    "ardel": Doc(
        _GROUP, _SINCE, _INDEXES, "Removes elements by their indexes.", "key index:integer..."
    ),
    "ardelrange": Doc(
        _GROUP,
        _SINCE,
        "O(N) for N elements that are removed",
        "Removes the elements of some ranges.",
        "key range(start:integer end:integer)...",
    ),
    "arget": Doc(_GROUP, _SINCE, "O(1)", "Reads the element of an index.", "key index:integer"),
    "argetrange": Doc(
        _GROUP,
        _SINCE,
        "O(N) for N indexes",
        "Reads a range of indexes, gaps included.",
        "key start:integer end:integer",
    ),
    "argrep": Doc(
        _GROUP,
        _SINCE,
        _RANGE + " and what looking at one of them takes",
        "Finds the elements of a range that look as asked for.",
        "key start end predicate(exact(EXACT string) | match(MATCH string)"
        " | glob(GLOB pattern:string) | re(RE pattern:string))..."
        " [options(AND | OR | LIMIT=limit:integer | WITHVALUES | NOCASE)...]",
    ),
    "arinfo": Doc(
        _GROUP,
        _SINCE,
        "O(N) for N slices",
        "Tells how an array is laid out.",
        "key [FULL]",
    ),
    "arinsert": Doc(
        _GROUP, _SINCE, _VALUES, "Sets the elements from the cursor on.", "key value..."
    ),
    "arlastitems": Doc(
        _GROUP,
        _SINCE,
        _VALUES,
        "Reads the elements that were inserted last.",
        "key count:integer [REV]",
    ),
    "arlen": Doc(_GROUP, _SINCE, "O(1)", "Tells the greatest index of an array and one.", "key"),
    "armget": Doc(
        _GROUP, _SINCE, _INDEXES, "Reads the elements of several indexes.", "key index:integer..."
    ),
    "armset": Doc(
        _GROUP,
        _SINCE,
        _INDEXES,
        "Sets the elements of several indexes.",
        "key data(index:integer value)...",
    ),
    "arnext": Doc(_GROUP, _SINCE, "O(1)", "Tells where the cursor of an array stands.", "key"),
    "arop": Doc(
        _GROUP,
        _SINCE,
        _RANGE,
        "Computes one number from the elements of a range.",
        "key start:integer end:integer"
        " operation(SUM | MIN | MAX | AND | OR | XOR | match(MATCH value) | USED)",
    ),
    "arring": Doc(
        _GROUP,
        _SINCE,
        "O(N) for N values, O(N+M) for a ring of M that changes its size",
        "Inserts values into a ring, where they replace the oldest ones.",
        "key size:integer value...",
    ),
    "arscan": Doc(
        _GROUP,
        _SINCE,
        _RANGE,
        "Reads the elements of a range with their indexes.",
        "key start:integer end:integer [LIMIT=limit:integer]",
    ),
    "arseek": Doc(_GROUP, _SINCE, "O(1)", "Sets the cursor of an array.", "key index:integer"),
    "arset": Doc(
        _GROUP,
        _SINCE,
        _VALUES,
        "Sets elements that lie next to each other.",
        "key index:integer value...",
    ),
}
