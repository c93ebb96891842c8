"""Documentation of the commands for transactions."""

from __future__ import annotations

from typing import Final

from headrace.compat.doc_notation import Doc

_TRANSACTIONS: Final = "transactions"

DOCS: Final[dict[str, Doc]] = {
    "discard": Doc(_TRANSACTIONS, "2.0.0", "O(N) for N queued commands", "Gives a transaction up."),
    "exec": Doc(
        _TRANSACTIONS,
        "1.2.0",
        "Depends on the queued commands",
        "Runs the queued commands of a transaction, all in one go.",
    ),
    "multi": Doc(
        _TRANSACTIONS, "1.2.0", "O(1)", "Begins a transaction: commands queue up until EXEC."
    ),
    "unwatch": Doc(_TRANSACTIONS, "2.2.0", "O(1)", "Forgets the keys being watched."),
    "watch": Doc(
        _TRANSACTIONS,
        "2.2.0",
        "O(1) for each key",
        "Makes the next transaction fail if one of these keys changes before it.",
        "key...",
    ),
}
