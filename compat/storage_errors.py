"""The error line of each way in which storage refuses; a test finds every subclass here."""

from __future__ import annotations

from typing import Final

from headrace.compat import errors
from headrace.storage.stream.entry_log import ElementsTooLarge, IDNotGreater, IDsExhausted
from headrace.storage.value import StorageError

LINES: Final[dict[type[StorageError], bytes]] = {
    IDNotGreater: errors.XADD_SMALL_ID,
    IDsExhausted: errors.STREAM_EXHAUSTED,
    ElementsTooLarge: errors.ELEMENTS_TOO_LARGE,
}


def storage_error_line(error: StorageError) -> bytes:
    """The wire text of a refusal, without the leading dash."""
    return LINES[type(error)]
