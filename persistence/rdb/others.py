"""Values of an RDB file that are left behind: what they are called, and where they end.

Whoever reads the file has to go past them, and reports them by name.
"""

from __future__ import annotations

from typing import Final

from headrace.persistence.rdb.source import RdbSource

_LIST: Final = 1
_SET: Final = 2
_OLD_SORTED_SET: Final = 3
_HASH: Final = 4
_SORTED_SET: Final = 5
_MODULE: Final = 7
_QUICKLIST: Final = 14
_QUICKLIST_2: Final = 18
_EARLY_MORTAL_HASH: Final = 22  # of release candidates of Redis 7.4; of Valkey another
_VALKEY_MORTAL_HASH: Final = 22
_EARLY_MORTAL_HASH_PACKED: Final = 23
_MORTAL_HASH: Final = 24
_MORTAL_HASH_PACKED: Final = 25
_SHAPED_HASH: Final = 32  # its field names stand once for many, in front of all keys

_KINDS: Final = {
    1: "list", 2: "set", 3: "sorted set", 4: "hash", 5: "sorted set", 9: "hash", 10: "list",
    11: "set", 12: "sorted set", 13: "hash", 14: "list", 16: "hash", 17: "sorted set", 18: "list",
    20: "set", 22: "hash", 23: "hash", 24: "hash", 25: "hash", 28: "array", 30: "hash", 32: "hash",
}  # fmt: skip
_PACKED: Final = (9, 10, 11, 12, 13, 16, 17, 20, 30)  # one string holds all
_OF_REDIS_ALONE: Final = 23  # the types from here on are no types of Valkey
_ARRAY_TEXTS: Final = (0, 3)
_ARRAY_NUMBERS: Final = (1, 2)
_MODULE_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_MODULE_NAME_LENGTH: Final = 9


class Others:
    """Goes past values of types that are not known here.

    Args:
        valkey: whether the file counts its types as Valkey does.
    """

    def __init__(self, source: RdbSource, valkey: bool) -> None:
        self._source: Final = source
        self._valkey: Final = valkey
        self._shapes: dict[int, int] = {}  # how many fields a shape has, by its number

    def skip(self, kind: int) -> str:
        """Go past a value of this type.

        Returns: what such a value is called; empty where nobody knows where it ends.

        Raises:
            CorruptRDB: there is none.
        """
        if kind == _MODULE:
            name = module_name(self._source.length())
            self.skip_parts()
            return f"value of the module {name}"
        if kind not in _KINDS or (self._valkey and kind >= _OF_REDIS_ALONE):
            return ""
        self._skip(kind)
        return _KINDS[kind]

    def shape(self) -> None:
        """Take note of field names that hashes share, which stand in front of all keys."""
        number = self._source.length()
        count = self._source.length()
        self._skip_strings(count)
        self._shapes[number] = count

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
        if kind in _PACKED:
            source.string()
        elif kind in (_LIST, _SET, _QUICKLIST):
            self._skip_strings(source.length())
        elif kind == _HASH:
            self._skip_strings(2 * source.length())
        elif kind == _QUICKLIST_2:
            for _ in range(source.length()):
                source.length()
                source.string()
        elif kind == _SORTED_SET:
            for _ in range(source.length()):
                source.string()
                source.raw(8)
        elif kind == _OLD_SORTED_SET:
            for _ in range(source.length()):
                source.string()
                digits = source.byte()
                source.raw(digits if digits < 253 else 0)  # else infinite, or not a number
        elif kind == _VALKEY_MORTAL_HASH and self._valkey:
            for _ in range(source.length()):
                self._skip_strings(2)
                source.raw(8)
        elif kind in (_MORTAL_HASH, _EARLY_MORTAL_HASH):
            if kind == _MORTAL_HASH:
                source.raw(8)
            for _ in range(source.length()):
                source.length()
                self._skip_strings(2)
        elif kind == _EARLY_MORTAL_HASH_PACKED:
            source.string()
        elif kind == _MORTAL_HASH_PACKED:
            source.raw(8)
            source.string()
        elif kind == _SHAPED_HASH:
            number = source.length()
            if number not in self._shapes:
                raise source.damage("the number of a list of field names")
            self._skip_strings(self._shapes[number])
        else:
            self._skip_array()

    def _skip_array(self) -> None:
        """How many elements, where the next one would be inserted or 0, and each with its place."""
        source = self._source
        count = source.length()
        if source.length():
            source.length()
        for _ in range(count):
            source.length()
            tag = source.byte()
            if tag in _ARRAY_TEXTS:
                source.string()
            elif tag in _ARRAY_NUMBERS:
                source.raw(8)
            else:
                raise source.damage("an element of an array")

    def _skip_strings(self, count: int) -> None:
        for _ in range(count):
            self._source.string()


def module_name(number: int) -> str:
    """The name of a module, of which a letter is in six bits and the version in the lowest ten."""
    name = ""
    number >>= 10
    for _ in range(_MODULE_NAME_LENGTH):
        name = _MODULE_LETTERS[number & 0x3F] + name
        number >>= 6
    return name
