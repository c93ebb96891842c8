"""Documentation of SORT and SORT_RO."""

from __future__ import annotations

from typing import Final

from headrace.compat.doc_notation import Doc

_COST: Final = "O(N log N) for N elements, and O(N) where they are not sorted"
_OPTIONS: Final = (
    "key [BY=by-pattern:pattern#1<pattern>] [LIMIT=limit(offset:integer count:integer)]"
    " [GET=get-pattern:pattern#1<pattern>...+] [order(ASC | DESC)] ['ALPHA'=sorting]"
)

DOCS: Final[dict[str, Doc]] = {
    "sort": Doc(
        "generic",
        "1.0.0",
        _COST,
        "Sorts the elements of a list, a set or a sorted set, and returns or stores them.",
        f"{_OPTIONS} [STORE=destination:key#2]",
    ),
    "sort_ro": Doc(
        "generic",
        "7.0.0",
        _COST,
        "Returns the elements of a list, a set or a sorted set, sorted.",
        _OPTIONS,
    ),
}
