"""What DUMP answered before it answered as Redis does, and what RESTORE still takes.

The records of one key without a name and without a deadline, and a footer: the version of the
format in two bytes and XXH3-64 of all before in eight.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from xxhash import xxh3_64_intdigest

from headrace.persistence.forms.decoder import RecordDecoder
from headrace.persistence.forms.form import Unsound
from headrace.persistence.forms.records import (
    CHECKSUM,
    NO_DEADLINE,
    OLDEST_VERSION,
    VERSION,
    Malformed,
)
from headrace.persistence.forms.table import check

_VERSION: Final = Struct("<H")
FOOTER_BYTES: Final = _VERSION.size + CHECKSUM.size


class BadFooter(Exception):
    """The bytes were damaged, or come from a server that is newer or of another kind."""


class BadPayload(Exception):
    """The footer is right, but there is no value in front of it."""


class _OneValue(RecordDecoder):
    """Decodes one value, to be found in ``value``."""

    def __init__(self, now_ms: int) -> None:
        super().__init__(now_ms)
        self.value: object = None

    def finish(self) -> None:
        """All has been decoded.

        Raises:
            Malformed: something is missing, or there was more.
        """
        self._start = self.end
        self.finish_value()
        if self.keys != 1:
            raise self.malformed("the records of one key")

    def place(self, key: bytes, value: object, expire_ms: int) -> None:
        """The key is complete."""
        self.keys += 1
        if key or expire_ms != NO_DEADLINE:
            raise self.malformed("a key without name and deadline")
        self.value = value


def has_own_footer(data: bytes) -> bool:
    """Return whether the bytes end as a payload of this form, with the right checksum."""
    body_bytes = len(data) - CHECKSUM.size
    if body_bytes < _VERSION.size:
        return False
    (version,) = _VERSION.unpack_from(data, body_bytes - _VERSION.size)
    (checksum,) = CHECKSUM.unpack_from(data, body_bytes)
    known = OLDEST_VERSION <= version <= VERSION
    return bool(known and xxh3_64_intdigest(memoryview(data)[:body_bytes]) == checksum)


def load_own(data: bytes, now_ms: int) -> object:
    """The value of a payload whose footer is right.

    Args:
        now_ms: the present, as for ``Intake``.

    Raises:
        BadPayload: there is none.
    Complexity: O(its size), because every entry is looked at.
    """
    decoder = _OneValue(now_ms)
    decoder.take(data, len(data) - FOOTER_BYTES)
    try:
        while decoder.step():
            pass
        decoder.finish()
        value = decoder.value
        check(value)
    except (Malformed, Unsound) as error:
        raise BadPayload(str(error)) from error
    finally:
        decoder.close()
    return value
