"""Whether the keys of a request are of one slot, as they have to be where nodes share the slots."""

from __future__ import annotations

from typing import Final

from headrace.compat.slots import slot_of
from headrace.server.clients.session import Session
from headrace.server.dispatch.key_specs import key_positions
from headrace.server.dispatch.rows import Command

NO_SLOT: Final = -1
SEVERAL_SLOTS: Final = -2


def slot_of_request(row: Command, argv: list[bytes]) -> int:
    """The slot of all keys of a request; ``NO_SLOT`` without keys, or ``SEVERAL_SLOTS``."""
    slot = NO_SLOT
    for position in key_positions(row, argv, True):
        other = slot_of(argv[position])
        if slot not in (NO_SLOT, other):
            return SEVERAL_SLOTS
        slot = other
    return slot


def crosses_slots(session: Session, row: Command, argv: list[bytes]) -> bool:
    """Whether a request has keys of several slots; EXEC has those of all that was queued."""
    transaction = session.transaction
    if row.name != b"exec" or transaction is None:
        return slot_of_request(row, argv) == SEVERAL_SLOTS
    slot = NO_SLOT
    for queued, words in zip(transaction.rows, transaction.requests, strict=True):
        assert isinstance(queued, Command)
        other = slot_of_request(queued, words)
        if other != NO_SLOT:
            if slot not in (NO_SLOT, other):
                return True
            slot = other
    return False
