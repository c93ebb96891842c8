"""Documentation of the commands on bitmaps."""

from __future__ import annotations

from typing import Final

from headrace.compat.doc_notation import Doc

_GROUP: Final = "bitmap"
_UNIT: Final = "[unit(BYTE | BIT)@7.0.0]"
_UNIT_HISTORY: Final = (("7.0.0", "BYTE and BIT options."),)
_FIELD: Final = "encoding offset:integer"

DOCS: Final[dict[str, Doc]] = {
    "bitcount": Doc(
        _GROUP,
        "2.6.0",
        "O(N) for N bytes looked at",
        "Counts the bits of a string that are set.",
        f"key [range(start:integer end:integer {_UNIT})]",
        history=_UNIT_HISTORY,
    ),
    "bitfield": Doc(
        _GROUP,
        "3.2.0",
        "O(1) for each field",
        "Reads, sets and increments integers of any width within a string.",
        f"key [operation(GET=get-block({_FIELD})"
        " | write([OVERFLOW=overflow-block(WRAP | SAT | FAIL)]"
        f" write-operation(SET=set-block({_FIELD} value:integer)"
        f" | INCRBY=incrby-block({_FIELD} increment:integer))))...]",
    ),
    "bitfield_ro": Doc(
        _GROUP,
        "6.0.0",
        "O(1) for each field",
        "Reads integers of any width within a string.",
        f"key [GET=get-block({_FIELD})...+]",
    ),
    "bitop": Doc(
        _GROUP,
        "2.6.0",
        "O(N) for strings of N bytes in all",
        "Combines strings bit by bit and stores the result.",
        "operation(AND | OR | XOR | NOT | DIFF | DIFF1 | ANDOR | ONE) destkey:key key#1...",
    ),
    "bitpos": Doc(
        _GROUP,
        "2.8.7",
        "O(N) for N bytes looked at",
        "Finds the first bit of a string that is set, or clear.",
        f"key bit:integer [range(start:integer [end-unit-block(end:integer {_UNIT})])]",
        history=_UNIT_HISTORY,
    ),
    "getbit": Doc(_GROUP, "2.2.0", "O(1)", "Reads one bit of a string.", "key offset:integer"),
    "setbit": Doc(
        _GROUP,
        "2.2.0",
        "O(1)",
        "Sets or clears one bit of a string, lengthening it as needed.",
        "key offset:integer value:integer",
    ),
}
