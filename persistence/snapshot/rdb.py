"""Frozen keys as a file of Redis's own: dump.rdb.

``REDIS`` and the version in four digits, or ``VALKEY`` and three, notes on the writer, then the
keys of each database in turn: a deadline where there is one, the number of the type, the key, the
value, and notes on what the type has no place for. A checksum of all ends it.
"""

from __future__ import annotations

from typing import Final

from headrace.persistence.errors import PersistenceError
from headrace.persistence.forms.form import Form, Walk
from headrace.persistence.forms.table import form_of
from headrace.persistence.rdb import kinds
from headrace.persistence.rdb.crc64 import crc64, crc64_ahead
from headrace.persistence.rdb.primitives import RdbOutput
from headrace.persistence.taker import Encoder
from headrace.storage.entry import NO_EXPIRY
from headrace.storage.freezing import FrozenKey


class RdbEncoder(Encoder):
    """Makes the bytes of one file.

    Args:
        version: of the form; see ``Form.rdb_version`` and ``Form.fits_valkey``.
        notes: names and values in turn, which name the writer; ``redis-ver`` comes first.
    """

    def __init__(self, version: int, notes: list[bytes]) -> None:
        super().__init__()
        self._version = version
        self._notes: Final = notes
        self._output: Final = RdbOutput(version)
        self._db = -1
        self._walk: Walk | None = None
        self.crc = 0
        self._summed_bytes = 0
        self._plain: Final = form_of(b"")
        self._made: list[bytes] = []

    def begin(self) -> None:
        output = self._output
        output.raw(self.first())
        output.write_notes(self._notes)
        self.size_bytes = output.size_bytes

    def first(self) -> bytes:
        """Return the head as far as it is known when nothing has been added yet."""
        return self.head()

    def head(self) -> bytes:
        """Return the bytes that the file begins with."""
        if kinds.is_valkey_version(self._version):
            return b"%b%03d" % (kinds.VALKEY, self._version)
        return b"%b%04d" % (kinds.REDIS, self._version)

    def add_library(self, code: bytes) -> None:
        if code.startswith(b"*"):
            self._output.write_notes([kinds.REQUESTS, code])
        else:
            self._output.byte(kinds.FUNCTIONS)
            self._output.string(code)
        self.size_bytes = self._output.size_bytes

    def add(self, key: FrozenKey) -> bool:
        output = self._output
        if key.db != self._db:
            self._db = key.db
            output.byte(kinds.SELECT)
            output.length(key.db)
        if key.expire_ms != NO_EXPIRY:
            output.byte(kinds.EXPIRE_MS)
            output.little(key.expire_ms, 8)
        value = key.value
        form = self._plain if isinstance(value, (bytes, int)) else form_of(value)
        self.look_at(form, value)
        output.byte(kinds.file_number(form.rdb_type(value, self._version)))
        output.string(key.key)
        self._walk = form.write_rdb(output, value)
        if self._walk is None:
            output.end_value()
        self.size_bytes = output.size_bytes
        return self._walk is not None

    def look_at(self, form: Form, value: object) -> None:
        """Check a frozen value that is about to be written."""

    def more(self) -> bool:
        if self._walk is not None and not self._walk.step():
            self._walk = None
            self._output.end_value()
        self.size_bytes = self._output.size_bytes
        return self._walk is not None

    def finish(self) -> None:
        self._output.byte(kinds.END)
        self._made = self.checked()
        self._made.append(self.checksum().to_bytes(8, "little"))
        self.size_bytes = sum([len(piece) for piece in self._made])

    def checksum(self) -> int:
        """Return the checksum of the file."""
        return self.crc

    def take(self) -> list[bytes]:
        made = self._made or self.checked()
        self._made = []
        self.size_bytes = 0
        return made

    def checked(self) -> list[bytes]:
        """Return the bytes of the output, and add them to the checksum."""
        pieces = self._output.take()
        for piece in pieces:
            self.crc = crc64(piece, self.crc)
            self._summed_bytes += len(piece)
        return pieces


class RisingRdbEncoder(RdbEncoder):
    """Makes a file of the lowest version that holds all keys, which is known when it ends.

    ``head`` then says what the file has to begin with, which its checksum already knows. ``add``
    raises PersistenceError when Valkey cannot hold a value.

    Args:
        version: Valkey's, which stays; or the lowest that it may have, 0 for the first one.

    Attributes:
        needed: the lowest version that would have held all keys so far; 0 is the first one.
    """

    def __init__(self, version: int, notes: list[bytes]) -> None:
        super().__init__(max(version, kinds.FUNCTIONS_SINCE), notes)
        self._written_head: Final = self.head()
        self.needed = 0

    def look_at(self, form: Form, value: object) -> None:
        """Raise the version to the one that this value needs."""
        needed = form.frozen_rdb_version(value)
        if kinds.is_valkey_version(self._version):
            if not form.frozen_fits_valkey(value):
                raise PersistenceError(f"Valkey cannot hold {form.plural} as there are here")
        elif not needed:
            raise PersistenceError(f"Redis has no {form.plural} as there are here")
        elif needed > self.needed:
            self.needed = needed
            if needed > self._version:
                self.rise(needed)

    def rise(self, version: int) -> None:
        """Raise the version from here on."""
        self._version = version
        self._output.version = version

    def checksum(self) -> int:
        """Return the checksum of the file with its final head."""
        head = self.head()
        difference = crc64(head, 0) ^ crc64(self._written_head, 0)
        return self.crc ^ crc64_ahead(difference, self._summed_bytes - len(head))


class SteadyRdbEncoder(RisingRdbEncoder):
    """Makes a file whose head is written with the first part that is taken.

    ``add`` raises PersistenceError when a value needs a higher version after that: ``needed``.
    """

    def __init__(self, version: int, notes: list[bytes]) -> None:
        super().__init__(version, notes)
        self._has_left = False

    def first(self) -> bytes:
        return b""

    def rise(self, version: int) -> None:
        if self._has_left:
            raise PersistenceError(f"a value needs version {version} of the form, which is newer")
        super().rise(version)

    def checked(self) -> list[bytes]:
        if self._has_left:
            return super().checked()
        self._has_left = True
        head = self.head()
        self.crc = crc64(head, 0)
        return [head, *super().checked()]

    def checksum(self) -> int:
        return self.crc
