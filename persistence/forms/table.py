"""The forms, one line for each type, and how records find the forms they belong to."""

from __future__ import annotations

from typing import Final

from msgspec.msgpack import Decoder as Unpacker

from headrace.persistence.forms.array import ArrayForm
from headrace.persistence.forms.form import Form, MemberForm, Unsound
from headrace.persistence.forms.hash import HashForm
from headrace.persistence.forms.list import ListForm
from headrace.persistence.forms.records import (
    DATABASE,
    END,
    HEADER,
    RECORD_HEAD,
    UNDECODABLE,
    Intake,
    Reader,
)
from headrace.persistence.forms.set import SetForm
from headrace.persistence.forms.sorted_set import SortedSetForm
from headrace.persistence.forms.stream.form import StreamForm
from headrace.persistence.forms.stream.records import NAMES, StreamReader, StreamWriter
from headrace.persistence.forms.string import StringForm
from headrace.storage.faces import face, type_name
from headrace.storage.value import Frozen

_FORMS: Final[dict[bytes, Form]] = {}  # by the name of the type
_TAKEN: Final = {HEADER, DATABASE, END}  # kinds of records


def register(form: Form) -> None:
    """Register the form of a type; no file may have been read or written before.

    It replaces one that is registered already, if it has all records of that one.
    """
    before = _FORMS.get(form.type_name)
    own = set() if before is None else set(before.record_kinds)
    for kind in form.record_kinds:
        assert kind in own or kind not in _TAKEN, f"records of kind {kind} belong to another form"
        _TAKEN.add(kind)
    _FORMS[form.type_name] = form


def forms() -> list[Form]:
    """Return all forms, in the order in which they were registered."""
    return list(_FORMS.values())


def form_of(value: object) -> Form:
    """Return the form of a value, as a keyspace holds it or frozen."""
    return _FORMS[frozen_type(value)]


def frozen_type(value: object) -> bytes:
    """Return the name of the type of a value, as a keyspace holds it or frozen."""
    return value.type_name() if isinstance(value, Frozen) else type_name(value)


_members: Final[list[MemberForm]] = []  # the form of regions: there is one at the most


def register_members(form: MemberForm) -> None:
    """Register the form of regions."""
    _members.append(form)


def member_form() -> MemberForm:
    """Return the form of regions, which must be registered."""
    return _members[0]


def check(value: object) -> None:
    """Check all of a value from a stranger. Raises Unsound if commands could not have made it."""
    if face(value).is_empty():
        raise Unsound("a value without elements")
    form_of(value).check(value)


register(StringForm())
register(StreamForm(NAMES, StreamWriter, StreamReader))
register(HashForm())
register(SetForm())
register(SortedSetForm())
register(ListForm())
register(ArrayForm())


_numbers: Final = Unpacker(list[int]).decode


class RecordDecoder(Intake):
    """Passes each record to the form that it belongs to."""

    def __init__(self, now_ms: int) -> None:
        super().__init__(now_ms)
        self._readers: Final[dict[int, Reader]] = {}  # by the kinds of their records
        self._names: Final[dict[int, str]] = {}
        self._reader: Reader | None = None  # the one that read the last record
        for form in forms():
            reader = form.reader(self)
            for kind, name in form.record_kinds.items():
                self._readers[kind] = reader
                self._names[kind] = name

    def take(self, frame: bytes, end: int) -> None:
        """Decode the records in ``frame[:end]`` next; those before must have been decoded."""
        self._start = 0
        self.frame = frame
        self.at = 0
        self.end = end

    def step(self) -> bool:
        """Decode the next record. Return False when there is none left in the frame.

        Raises Malformed if it holds what no encoder writes.
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
        """End the last value: no records of it follow. Raises Malformed if some are missing."""
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
        """Return how many entries of streams were met, those of an unfinished stream included."""
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
        """Raise ``Malformed`` where no record of this kind may stand."""

    def other_record(self, kind: int, table: list[int]) -> None:
        """Read a record that belongs to no form."""
        raise self.malformed(f"a record of a known kind, but this is {kind}")
