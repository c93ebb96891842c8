"""Documentation of the commands on tallies."""

from __future__ import annotations

from headrace.compat.doc_notation import Doc

DOCS = {
    "tally.add": Doc("generic", "1.0.0", "O(N)", "Makes a mark.", "key mark:integer"),
    "tally.get": Doc("generic", "1.0.0", "O(N)", "Adds all marks up.", "key"),
}
