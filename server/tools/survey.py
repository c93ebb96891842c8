"""What data is like before it is written elsewhere: how much there is, and who can read it."""

from __future__ import annotations

from typing import Final

from headrace.persistence.errors import PersistenceError
from headrace.persistence.forms.table import form_of, forms
from headrace.persistence.rdb.kinds import FUNCTIONS_SINCE, VALKEY_VERSION_MIN, VERSION_MIN
from headrace.persistence.taker import KeyTaker
from headrace.server.tools import READERS, VALKEY


class Survey(KeyTaker):
    """Looks at keys, and keeps none.

    Attributes:
        keys: how many there are.
    """

    def __init__(self, databases: int) -> None:
        super().__init__(databases)
        self.keys = 0
        self._parts: Final[dict[str, int]] = {}  # of values, the first kind of each type
        self._lacking: Final[dict[str, list[int]]] = {}
        self._needed = VERSION_MIN
        self._why = ""
        self._not_in_redis = ""
        self._not_in_valkey = ""
        for form in forms():
            if form.part_names():
                self._parts[form.plural()] = 0

    def take(self, db: int, key: bytes, value: object, expire_ms: int) -> bool:
        """See ``KeyTaker``."""
        self.keys += 1
        form = form_of(value)
        version = form.rdb_version(value)
        if version > self._needed:
            self._needed = version
            self._why = f", because of {form.plural()} that it holds"
        elif not version:
            self._not_in_redis = form.plural()
        if not form.fits_valkey(value):
            self._not_in_valkey = form.plural()
        counts = form.part_counts(value)
        if counts:
            self._parts[form.plural()] += counts[0]
        lacking = form.lacking_counts(value)
        if lacking:
            total = self._lacking.get(form.plural())
            if total is not None:
                lacking = [one + other for one, other in zip(lacking, total, strict=True)]
            self._lacking[form.plural()] = lacking
        return True

    def take_library(self, code: bytes) -> None:
        """See ``KeyTaker``."""
        super().take_library(code)
        if self._needed < FUNCTIONS_SINCE:
            self._needed = FUNCTIONS_SINCE
            self._why = ", because of functions that it holds"

    def totals(self) -> str:
        """How much there is."""
        totals = [f"{self.keys} keys"]
        if self.libraries:
            totals.append(f"{len(self.libraries)} libraries of functions")
        for form in forms():
            names = form.part_names()
            if names:
                totals.append(f"{self._parts[form.plural()]} {names[0]} of {form.plural()}")
        return ", ".join(totals)

    def lacking_elsewhere(self) -> list[str]:
        """What only some servers can read, each in a sentence."""
        found: list[str] = []
        for form in forms():
            counts = self._lacking.get(form.plural())
            if counts is not None:
                found += form.lacking_elsewhere(counts)
        return found

    def rdb_version(self, for_server: str) -> int:
        """In which version of RDB to write.

        Args:
            for_server: who is to read it, one of ``READERS`` or ``VALKEY``; empty for the oldest
                Redis that can.

        Raises:
            PersistenceError: that one cannot hold all there is, or no server can.
        """
        if self._not_in_redis:
            raise PersistenceError(f"Redis has no {self._not_in_redis}. Nothing has been written.")
        if for_server == VALKEY:
            if self._not_in_valkey:
                raise PersistenceError(
                    f"Valkey cannot hold all of it, because of {self._not_in_valkey} that it holds."
                    " Nothing has been written."
                )
            return VALKEY_VERSION_MIN
        chosen = READERS[for_server] if for_server else self._needed
        if chosen < self._needed:
            raise PersistenceError(
                f"Redis {for_server} cannot hold all of it: Redis {oldest_reader(self._needed)} is "
                f"the oldest that can{self._why}. Nothing has been written."
            )
        return chosen


def oldest_reader(version: int) -> str:
    """The oldest Redis that reads a version of RDB."""
    return next(name for name, known in READERS.items() if known >= version)
