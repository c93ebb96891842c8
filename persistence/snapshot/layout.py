"""How a snapshot is laid out; docs/snapshot-format.md goes through it byte by byte.

A file is a preamble and then frames, numbered from 0, each with a checksum of its own. The frames
together hold records (``persistence.forms.records``)::

    preamble   "HEADRACE", version u32, zero u32, XXH3-64 of these 16 bytes
    frame      payload length u64, number u32, payload, XXH3-64 of all that

A record lies whole in one frame. Records come in this order: ``HEADER``; for each database that
holds keys ``DATABASE`` and then its keys, as the forms of their types have them; at last ``END``,
with totals.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

MAGIC: Final = b"HEADRACE"
SUFFIX: Final = b"hrs"  # of the names of snapshots

PREAMBLE: Final = Struct("<8sIIQ")
PREAMBLE_CHECKED: Final = 16  # bytes of it that its checksum covers
FRAME_HEAD: Final = Struct("<QI")
