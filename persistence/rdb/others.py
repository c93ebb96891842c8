"""Values of an RDB file that are left behind: what they are called, and where they end.

Whoever reads the file has to go past them, and reports them by name.
"""

from __future__ import annotations

from typing import Final

from headrace.persistence.rdb.arrays import ArrayHead, array_parts
from headrace.persistence.rdb.hashes import HASH_KINDS, hash_parts
from headrace.persistence.rdb.kinds import ARRAY, MODULE
from headrace.persistence.rdb.parts import (
    LIST_KINDS,
    SET_KINDS,
    SORTED_SET_KINDS,
    list_parts,
    set_parts,
    sorted_set_parts,
)
from headrace.persistence.rdb.source import RdbSource

_NAMES: Final = {
    **dict.fromkeys(LIST_KINDS, "list"),
    **dict.fromkeys(SET_KINDS, "set"),
    **dict.fromkeys(SORTED_SET_KINDS, "sorted set"),
    **dict.fromkeys(HASH_KINDS, "hash"),
    ARRAY: "array",
}
_MODULE_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_MODULE_NAME_LENGTH: Final = 9


class Others:
    """Goes past values of types that are not known here."""

    def __init__(self, source: RdbSource) -> None:
        self._source: Final = source

    def skip(self, kind: int) -> str:
        """Go past a value of this type.

        Returns: what such a value is called; empty where nobody knows where it ends.

        Raises:
            CorruptRDB: there is none.
        """
        if kind == MODULE:
            name = module_name(self._source.length())
            self.skip_parts()
            return f"value of the module {name}"
        if kind in _NAMES:
            self._skip(kind)
        return _NAMES.get(kind, "")

    def slot_import(self) -> None:
        """Go past what Valkey notes of slots that it was taking over: a name, ranges of slots."""
        self._source.string()
        for _ in range(self._source.length()):
            self._source.length()
            self._source.length()

    def key_notes(self) -> None:
        """Go past what modules of Redis have noted of the key that comes next."""
        for _ in range(self._source.length()):
            self._source.raw(4)
            self.skip_parts()

    def skip_parts(self) -> None:
        """Go past what a module wrote.

        Each part says what it is: 0 is the end, then integers, floats of two sizes, a string.
        """
        source = self._source
        while True:
            part = source.length()
            if part == 0:
                return
            if part in (1, 2):
                source.length()
            elif part == 3:
                source.raw(4)
            elif part == 4:
                source.raw(8)
            elif part == 5:
                source.string()
            else:
                raise source.damage("a part of a module's value")

    def _skip(self, kind: int) -> None:
        source = self._source
        if kind in LIST_KINDS:
            for _ in list_parts(source, kind):
                pass
        elif kind in SET_KINDS:
            for _ in set_parts(source, kind):
                pass
        elif kind in SORTED_SET_KINDS:
            for _ in sorted_set_parts(source, kind):
                pass
        elif kind in HASH_KINDS:
            for _ in hash_parts(source, kind):
                pass
        else:
            for _ in array_parts(source, ArrayHead(source).count):
                pass


def module_name(number: int) -> str:
    """The name of a module, of which a letter is in six bits and the version in the lowest ten."""
    name = ""
    number >>= 10
    for _ in range(_MODULE_NAME_LENGTH):
        name = _MODULE_LETTERS[number & 0x3F] + name
        number >>= 6
    return name
