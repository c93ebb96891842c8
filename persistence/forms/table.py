"""Which forms there are: one line for each type."""

from __future__ import annotations

from typing import Final

from headrace.persistence.forms.array import ArrayForm
from headrace.persistence.forms.form import Form, MemberForm, Unsound
from headrace.persistence.forms.hash import HashForm
from headrace.persistence.forms.list import ListForm
from headrace.persistence.forms.records import DATABASE, END, HEADER
from headrace.persistence.forms.set import SetForm
from headrace.persistence.forms.sorted_set import SortedSetForm
from headrace.persistence.forms.stream.form import StreamForm
from headrace.persistence.forms.string import StringForm
from headrace.persistence.rdb.values import RdbValues
from headrace.storage.faces import face, type_name
from headrace.storage.value import Frozen

_FORMS: Final[dict[bytes, Form]] = {}  # by the name of the type
_TAKEN: Final = {HEADER, DATABASE, END}  # kinds of records


def register(form: Form) -> None:
    """Make the form of a type known; no file may have been read or written before.

    One that is known already gives way to it, if it has all records of that one.
    """
    before = _FORMS.get(form.type_name())
    own = set() if before is None else set(before.record_kinds())
    for kind in form.record_kinds():
        assert kind in own or kind not in _TAKEN, f"records of kind {kind} belong to another form"
        _TAKEN.add(kind)
    _FORMS[form.type_name()] = form


def forms() -> list[Form]:
    """All there are, in the order in which they were registered."""
    return list(_FORMS.values())


def rdb_values() -> list[RdbValues]:
    """Return what reads the values of all types from an RDB file."""
    return list(_FORMS.values())


def form_of(value: object) -> Form:
    """The form of a value, as a keyspace holds it or frozen."""
    return _FORMS[frozen_type(value)]


def frozen_type(value: object) -> bytes:
    """The name of the type of a value, as a keyspace holds it or frozen."""
    return value.type_name() if isinstance(value, Frozen) else type_name(value)


class _Members:
    """The form of regions: there is one."""

    def __init__(self) -> None:
        self.only: MemberForm | None = None


_members: Final = _Members()


def register_members(form: MemberForm) -> None:
    """Make the form of regions known."""
    _members.only = form


def member_form() -> MemberForm:
    """The form of regions, where they are known at all."""
    form = _members.only
    assert form is not None
    return form


def check(value: object) -> None:
    """Look at all of a value that comes from a stranger.

    Raises:
        Unsound: it is none that commands could have made.
    """
    if face(value).is_empty():
        raise Unsound("a value without elements")
    form_of(value).check(value)


register(StringForm())
register(StreamForm())
register(HashForm())
register(SetForm())
register(SortedSetForm())
register(ListForm())
register(ArrayForm())
