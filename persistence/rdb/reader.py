"""Takes over an RDB file, of Redis up to 8.10 and of Valkey up to 9.1.

Values of types that are not known here are skipped to their ends, and reported by name, so that an
operator who moves data knows what is left behind. Keys that hold nothing are skipped and counted,
as Redis does.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Final

from headrace.persistence.errors import CorruptRDB, EmptyValue, PersistenceError, os_refusal, shown
from headrace.persistence.rdb import kinds
from headrace.persistence.rdb.kinds import is_rdb, known_number, writer_of
from headrace.persistence.rdb.primitives import RdbFile, RdbSource
from headrace.persistence.rdb.values import (
    HASH_KINDS,
    LIST_KINDS,
    SET_KINDS,
    SORTED_SET_KINDS,
    ArrayHead,
    RdbValues,
    array_parts,
    hash_parts,
    list_parts,
    read_shape,
    set_parts,
    sorted_set_parts,
)
from headrace.persistence.taker import KeyTaker
from headrace.storage.entry import NO_EXPIRY

_NAMES: Final = {
    **dict.fromkeys(LIST_KINDS, "list"),
    **dict.fromkeys(SET_KINDS, "set"),
    **dict.fromkeys(SORTED_SET_KINDS, "sorted set"),
    **dict.fromkeys(HASH_KINDS, "hash"),
    kinds.ARRAY: "array",
}
_MODULE_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_MODULE_NAME_LENGTH: Final = 9


class Others:
    """Skips values of types that are not known here."""

    def __init__(self, source: RdbSource) -> None:
        self._source: Final = source

    def skip(self, kind: int) -> str:
        """Skip a value of this type. Raises CorruptRDB if there is none.

        Return the name of such a value; empty where its end cannot be found.
        """
        if kind == kinds.MODULE:
            name = module_name(self._source.length())
            self.skip_parts()
            return f"value of the module {name}"
        if kind in _NAMES:
            self._skip(kind)
        return _NAMES.get(kind, "")

    def slot_import(self) -> None:
        """Skip Valkey's note of slots that it was taking over: a name, ranges of slots."""
        self._source.string()
        for _ in range(self._source.length()):
            self._source.length()
            self._source.length()

    def key_notes(self) -> None:
        """Skip the notes of Redis's modules on the key that comes next."""
        for _ in range(self._source.length()):
            self._source.raw(4)
            self.skip_parts()

    def skip_parts(self) -> None:
        """Skip the data of a module.

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
        parts: Iterator[object]
        if kind in LIST_KINDS:
            parts = list_parts(source, kind)
        elif kind in SET_KINDS:
            parts = set_parts(source, kind)
        elif kind in SORTED_SET_KINDS:
            parts = sorted_set_parts(source, kind)
        elif kind in HASH_KINDS:
            parts = hash_parts(source, kind)
        else:
            parts = array_parts(source, ArrayHead(source).count)
        for _ in parts:
            pass


def module_name(number: int) -> str:
    """Return the name of a module: six bits a letter, and its version in the lowest ten."""
    name = ""
    number >>= 10
    for _ in range(_MODULE_NAME_LENGTH):
        name = _MODULE_LETTERS[number & 0x3F] + name
        number >>= 6
    return name


CHECKSUM_SINCE: Final = 5  # the version that brought the checksum
MOST_NOTES: Final = 32  # on the file that are kept
STEPS: Final = 16  # between two looks at the clock
EXAMPLES: Final = 3  # keys named for each type that is left behind

_BY_COMMANDS: Final = (
    "Let that server write commands: set aof-use-rdb-preamble to no there, run BGREWRITEAOF, and "
    "take over its append-only folder."
)


class Left:
    """Values of one type that are left behind: how many, and the names of some."""

    def __init__(self) -> None:
        self.count = 0
        self.keys: list[bytes] = []


class RdbReader:
    """Puts the keys of a file into databases.

    Any method raises PersistenceError when the file cannot be read or trusted.

    Args:
        taker: where keys go.
        values: the types that are known here.
        defaults: what new values get; see ``RdbValues``.
        now_ms: the present; see ``RdbSource``.

    Attributes:
        keys: how many were taken over.
        empty: how many were skipped because they held nothing.
        left: what was left behind, by the name of its type.
        beside: the modules whose data beside the keys was left behind.
        writer: the server that wrote the file, such as ``Valkey 9.1.2``.
        notes: on the file, by name.
        key_offset: where the last key begins.
        end: after the last step, where the file goes on with commands, or its length.
    """

    def __init__(
        self,
        path: bytes,
        taker: KeyTaker,
        values: Iterable[RdbValues],
        defaults: dict[str, int],
        now_ms: int,
    ) -> None:
        self.keys = 0
        self.empty = 0
        self.left: dict[str, Left] = {}
        self.beside: set[str] = set()
        self.end = 0
        self._taker: Final = taker
        self._defaults: Final = defaults
        self._values: Final[dict[int, RdbValues]] = {}  # by RDB's numbers of their types
        for known in values:
            for number in known.rdb_types:
                self._values[number] = known
        self.notes: Final[dict[bytes, bytes]] = {}
        self._db = 0
        self._expire_ms: int = NO_EXPIRY
        self._key = b""
        self._parts: Iterator[object] | None = None  # of the value that is being read
        self._known: RdbValues | None = None  # its reader
        self._value: object = None  # it has been read, but notes on it may follow
        self.key_offset = 0
        try:
            self._source: Final = RdbFile(path, now_ms)
        except OSError as error:
            raise os_refusal(path, "read", error) from error
        try:
            head = self._source.peek(kinds.HEAD_BYTES)
            self.writer: Final = writer_of(head)
            self._valkey: Final = head.startswith(kinds.VALKEY)
            self._version: Final = self._read_magic(head)
        except PersistenceError:
            self._source.close()
            raise
        self._others: Final = Others(self._source)

    @property
    def size_bytes(self) -> int:
        """Length of the file."""
        return self._source.size_bytes

    @property
    def loaded_bytes(self) -> int:
        """Bytes read so far."""
        return self._source.offset

    def close(self) -> None:
        """Close the file."""
        self._source.close()

    def step(self) -> bool:
        """Read what comes next, a part of a value at most. Return False at the end."""
        if self._parts is not None:
            self._go_on(self._parts)
            return True
        return self._step(self._source.byte())

    def steps(self) -> bool:
        """Read some keys, or a part of a large value. Return False at the end."""
        for _ in range(STEPS):
            if not self.step():
                return False
            if self._parts is not None:
                break
        return True

    def _read_magic(self, head: bytes) -> int:
        source = self._source
        magic = kinds.VALKEY if self._valkey else kinds.REDIS
        digits = head[len(magic) : kinds.VERSION_END]
        if not is_rdb(head) or len(head) < kinds.VERSION_END or not digits.isdigit():
            raise CorruptRDB(source.name, 0, "REDIS and four digits, or VALKEY and three")
        source.raw(kinds.VERSION_END)
        version = int(digits)
        lowest = kinds.VALKEY_VERSION_MIN if self._valkey else 1
        highest = kinds.VALKEY_VERSION_MAX if self._valkey else kinds.VERSION
        if not lowest <= version <= highest:
            raise PersistenceError(
                f"{os.fsdecode(source.name)} was written by {self.writer} in version {version} of "
                f"its format; versions {lowest} to {highest} can be taken over. {_BY_COMMANDS}"
            )
        return version

    def _step(self, kind: int) -> bool:
        source = self._source
        if self._value is not None and kind != kinds.NOTE:
            self._pass_on()
        if kind == kinds.END:
            self._finish()
            return False
        if kind == kinds.SELECT:
            self._select(source.length())
        elif kind == kinds.EXPIRE_S:
            self._expire_ms = source.signed(4) * 1000
        elif kind == kinds.EXPIRE_MS:
            self._expire_ms = source.signed(8)
        elif kind == kinds.SIZES:
            source.length()
            source.length()
        elif kind == kinds.NOTE:
            self._note(source.string(), source.string())
        elif kind == kinds.FREQUENCY:
            source.byte()
        elif kind == kinds.IDLE:
            source.length()
        elif kind == kinds.SLOT:
            for _ in range(3):
                source.length()
        elif kind == kinds.FUNCTIONS:
            self._taker.take_library(source.string())
        elif kind == kinds.MODULE_NOTE:
            self.beside.add(module_name(source.length()))
            self._others.skip_parts()
        elif kind == kinds.SLOT_IMPORT and self._valkey:
            self._others.slot_import()
        elif kind == kinds.KEY_NOTES:
            self._others.key_notes()
            self._leave("note of a module on a key", b"")
        elif kind == kinds.SHAPE and not self._valkey:
            read_shape(source)
        elif kind > kinds.HIGHEST_TYPE:
            raise PersistenceError(
                f"{os.fsdecode(source.name)}, written by {self.writer}, holds something of kind "
                f"{kind} at offset {source.offset - 1} that is not known here. {_BY_COMMANDS}"
            )
        else:
            self._begin(kind)
        return True

    def _finish(self) -> None:
        source = self._source
        crc = source.crc()
        if self._version >= CHECKSUM_SINCE:
            stored = source.little(8)
            if stored and stored != crc:  # zero: the checksum was turned off
                raise source.damage("the checksum of what was read")
        self.end = source.offset

    def losses(self) -> list[str]:
        """Return what an operator has to know of a read file, besides what is ``left``."""
        found: list[str] = []
        if self.empty:
            found.append(f"skipped {self.empty} keys that hold nothing")
        if self.beside:
            names = ", ".join([shown(name.encode()) for name in sorted(self.beside)])
            found.append(f"left out what modules had besides their keys: {names}")
        return found

    def _select(self, index: int) -> None:
        databases = self._taker.databases
        if index >= databases:
            raise self._source.damage(f"a database below {databases}, not {index}")
        self._db = index

    def _begin(self, kind: int) -> None:
        """Read a key, and begin with its value."""
        source = self._source
        self.key_offset = source.offset - 1
        key = source.string()
        number = known_number(kind, self._valkey)
        known = self._values.get(number)
        if known is None:
            name = self._others.skip(number)
            if not name:
                raise PersistenceError(
                    f"{os.fsdecode(source.name)}, written by {self.writer}, holds the key "
                    f"{shown(key)} of type {kind}, which is not known here, and so its end "
                    f"cannot be found. {_BY_COMMANDS}"
                )
            self._expire_ms = NO_EXPIRY
            self._leave(name, key)
            return
        self._key = key
        self._known = known
        self._parts = parts = known.read_rdb(source, number, self._defaults)
        self._go_on(parts)

    def _go_on(self, parts: Iterator[object]) -> None:
        try:
            self._value = next(parts, None)
        except EmptyValue:
            self.empty += 1
            self._parts = None
            self._expire_ms = NO_EXPIRY
            return
        if self._value is not None:
            self._parts = None

    def _note(self, name: bytes, text: bytes) -> None:
        """Take a note: on the value before it, if it is one of ours, or on the file."""
        if self._value is None or self._known is None:
            if name == kinds.REQUESTS:
                self._taker.take_library(text)
            elif not self.keys and len(self.notes) < MOST_NOTES:
                self.notes[name] = text
            return
        source = self._source
        try:
            self._known.take_note(
                self._value, name, RdbSource(source.name, text, len(text), source.now_ms)
            )
        except CorruptRDB as error:
            raise source.damage(f"a note ({shown(name)}) with {error.expected}") from error

    def _pass_on(self) -> None:
        value = self._value
        expire_ms = max(self._expire_ms, NO_EXPIRY)
        self._value = None
        self._expire_ms = NO_EXPIRY
        self.keys += 1
        if not self._taker.take(self._db, self._key, value, expire_ms):
            raise self._source.damage(f"each key once, but {shown(self._key)} is there already")

    def _leave(self, name: str, key: bytes) -> None:
        left = self.left.setdefault(name, Left())
        left.count += 1
        if len(left.keys) < EXAMPLES:
            left.keys.append(key)
