"""Turns records back into keys and values, whatever forms they are of."""

from __future__ import annotations

from typing import Final

from msgspec.msgpack import Decoder as Unpacker

from headrace.persistence.forms.records import RECORD_HEAD, UNDECODABLE, Intake, Reader
from headrace.persistence.forms.table import forms

_numbers: Final = Unpacker(list[int]).decode


class RecordDecoder(Intake):
    """Leads each record to the form that it belongs to.

    Args:
        now_ms: the present; see ``Intake``.
    """

    def __init__(self, now_ms: int) -> None:
        super().__init__(now_ms)
        self._readers: Final[dict[int, Reader]] = {}  # by the kinds of their records
        self._names: Final[dict[int, str]] = {}
        self._reader: Reader | None = None  # the one that read the last record
        for form in forms():
            reader = form.reader(self)
            for kind, name in form.record_kinds().items():
                self._readers[kind] = reader
                self._names[kind] = name

    def take(self, frame: bytes, end: int) -> None:
        """Decode the records in ``frame[:end]`` next; those before must have been decoded."""
        self._start = 0
        self.frame = frame
        self.at = 0
        self.end = end

    def step(self) -> bool:
        """Decode the next record; False when there is none left in the frame.

        Raises:
            Malformed: it holds what no encoder writes.
        """
        if self.at >= self.end:
            return False
        self._start = self.at
        kind = self.frame[self.at]
        try:
            self._record(kind)
        except UNDECODABLE as error:
            name = self._names.get(kind, kind)
            raise self.malformed(f"a sound record ({name}): {error}") from error
        return True

    def finish_value(self) -> None:
        """No more records of the last value follow.

        Raises:
            Malformed: something of it is missing.
        """
        reader = self._reader
        if reader is not None:
            self._reader = None
            reader.finish()

    def close(self) -> None:
        """Drop the bytes being decoded, and the readers, which hold a reference to this decoder."""
        self.frame = b""
        self._reader = None
        self._readers.clear()

    def entries_met(self) -> int:
        """How many entries of streams have been met, those of an unfinished stream included."""
        reader = self._reader
        return self.entries if reader is None else self.entries + reader.entries_met()

    def _record(self, kind: int) -> None:
        _, table_bytes = RECORD_HEAD.unpack_from(self.frame, self.at)
        start = self.at + RECORD_HEAD.size
        self.at = start + table_bytes
        if self.at > self.end:
            raise self.malformed("a table that ends with its frame")
        table = _numbers(memoryview(self.frame)[start : self.at])
        self.before_record(kind)
        reader = self._readers.get(kind)
        if reader is None:
            self.finish_value()
            self.other_record(kind, table)
        else:
            if reader is not self._reader or not reader.goes_on(kind):
                self.finish_value()
            self._reader = reader
            reader.read(kind, table)
        if self.at > self.end:
            raise self.malformed("data that ends with its frame")

    def before_record(self, kind: int) -> None:
        """A record has been found; raises ``Malformed`` where none of its kind may stand."""

    def other_record(self, kind: int, table: list[int]) -> None:
        """Read a record that belongs to no form."""
        raise self.malformed(f"a record of a known kind, but this is {kind}")
