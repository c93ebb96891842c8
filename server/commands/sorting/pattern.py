"""The patterns of BY and GET, which lead from an element to what another key holds."""

from __future__ import annotations

from typing import Final

from headrace.server.dispatch.call import Call
from headrace.storage.hash.hash import Hash
from headrace.storage.hash.timed import has_passed
from headrace.storage.string.string import string_bytes

_ARROW: Final = b"->"
_ITSELF: Final = b"#"


class Pattern:
    """``#``, a key with ``*`` in the place of the element, or ``key*->field`` of a hash.

    Attributes:
        text: as it was given.
        varies: there is a ``*``; without, it leads nowhere.
        is_element: it is ``#``.
    """

    def __init__(self, text: bytes) -> None:
        self.text: Final = text
        self.is_element: Final = text == _ITSELF
        before, star, rest = text.partition(b"*")
        self.varies: Final = bool(star)
        self._before: Final = before
        after, _, field = rest.partition(_ARROW)
        self._after: Final = after if field else rest
        self._field: Final = field

    def of(self, call: Call, element: bytes) -> bytes | None:
        """Where an element leads, or None. A key that is not there is a miss."""
        if self.is_element:
            return element
        if not self.varies:
            return None
        value = call.lookup(self._before + element + self._after)
        if value is None:
            return None
        if not self._field:
            return string_bytes(value)
        if not isinstance(value, Hash):
            return None
        if call.db.expire_enabled and has_passed(value.deadline_ms(self._field), call.now_ms):
            return None
        return value.get(self._field)
