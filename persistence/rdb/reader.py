"""Takes over an RDB file of Redis: its strings and streams, in all versions up to Redis 8.4's.

Values of other types are gone past, and told of by name: whoever takes data over has to know what
is left behind.
"""

from __future__ import annotations

import os
from typing import Final

from persistence.errors import CorruptRDB, PersistenceError, os_refusal
from persistence.rdb.source import RdbSource
from persistence.rdb.streams import STREAM_5, STREAM_7_0, STREAM_7_2, read_stream
from storage.keyspace import NO_EXPIRY, Keyspace

MAGIC: Final = b"REDIS"
VERSION_MAX: Final = 14
CHECKSUM_SINCE: Final = 5  # the version that brought the checksum
EXAMPLES: Final = 3  # keys named for each type that is left behind

_EOF: Final = 0xFF
_SELECT: Final = 0xFE
_EXPIRE_S: Final = 0xFD
_EXPIRE_MS: Final = 0xFC
_SIZES: Final = 0xFB
_NOTE: Final = 0xFA
_FREQUENCY: Final = 0xF9
_IDLE: Final = 0xF8
_MODULE_NOTE: Final = 0xF7
_FUNCTIONS: Final = 0xF5
_SLOT: Final = 0xF4

_STRING: Final = 0
_LIST: Final = 1
_SET: Final = 2
_OLD_SORTED_SET: Final = 3
_HASH: Final = 4
_SORTED_SET: Final = 5
_MODULE: Final = 7
_QUICKLIST: Final = 14
_QUICKLIST_2: Final = 18
_MORTAL_HASH: Final = 24
_MORTAL_HASH_PACKED: Final = 25

_KINDS: Final = {
    1: "list", 2: "set", 3: "sorted set", 4: "hash", 5: "sorted set", 7: "value of a module",
    9: "hash", 10: "list", 11: "set", 12: "sorted set", 13: "hash", 14: "list", 16: "hash",
    17: "sorted set", 18: "list", 20: "set", 24: "hash", 25: "hash",
}  # fmt: skip
_PACKED: Final = (9, 10, 11, 12, 13, 16, 17, 20)  # one string holds all


class Left:
    """Values of one type that are left behind: how many, and the names of some."""

    def __init__(self) -> None:
        self.count = 0
        self.keys: list[bytes] = []


class RdbReader:
    """Puts what it finds into databases.

    Args:
        databases: where keys go.
        idmp_duration_s, idmp_maxsize: what streams get, as those do that are made here.

    Attributes:
        keys, entries: keys taken over, and entries of streams in them.
        left: what was left behind, by the name of its type.
        end: after the last step, where the file goes on with commands, or its length.

    Raises:
        PersistenceError: from any method, when the file cannot be read or trusted.
    """

    def __init__(
        self, path: bytes, databases: list[Keyspace], idmp_duration_s: int, idmp_maxsize: int
    ) -> None:
        self.keys = 0
        self.entries = 0
        self.left: dict[str, Left] = {}
        self.end = 0
        self._databases: Final = databases
        self._idmp_duration_s: Final = idmp_duration_s
        self._idmp_maxsize: Final = idmp_maxsize
        self._db: Keyspace = databases[0]
        self._expire_ms: int = NO_EXPIRY
        try:
            self._source: Final = RdbSource(path)
            self._version: Final = self._read_magic()
        except OSError as error:
            raise os_refusal(path, "read", error) from error

    @property
    def size_bytes(self) -> int:
        """The length of the file."""
        return self._source.size_bytes

    @property
    def loaded_bytes(self) -> int:
        """How much of it has been read."""
        return self._source.offset

    def close(self) -> None:
        """Let go of the file."""
        self._source.close()

    def step(self) -> bool:
        """Read what comes next, one key at most; False at the end."""
        try:
            return self._step(self._source.byte())
        except OSError as error:
            raise os_refusal(self._source.name, "read", error) from error

    def _read_magic(self) -> int:
        source = self._source
        digits = b""
        if source.size_bytes >= 9 and source.raw(5) == MAGIC:
            digits = source.raw(4)
        if not digits.isdigit():
            raise CorruptRDB(source.name, 0, "REDIS and a version in four digits")
        version = int(digits)
        if not 1 <= version <= VERSION_MAX:
            raise PersistenceError(
                f"{os.fsdecode(source.name)} has RDB version {version}; versions up to "
                f"{VERSION_MAX} can be taken over."
            )
        return version

    def _step(self, kind: int) -> bool:
        source = self._source
        if kind == _EOF:
            self._finish()
            return False
        if kind == _SELECT:
            self._select(source.length())
        elif kind == _EXPIRE_S:
            self._expire_ms = source.signed(4) * 1000
        elif kind == _EXPIRE_MS:
            self._expire_ms = source.signed(8)
        elif kind == _SIZES:
            source.length()
            source.length()
        elif kind == _NOTE:
            source.string()
            source.string()
        elif kind == _FREQUENCY:
            source.byte()
        elif kind == _IDLE:
            source.length()
        elif kind == _SLOT:
            for _ in range(3):
                source.length()
        elif kind == _FUNCTIONS:
            source.string()
            self._leave("function library", b"")
        elif kind == _MODULE_NOTE:
            source.length()
            self._skip_module_parts()
        else:
            self._key(kind)
        return True

    def _finish(self) -> None:
        source = self._source
        crc = source.crc()
        if self._version >= CHECKSUM_SINCE:
            stored = source.little(8)
            if stored and stored != crc:  # zero: the checksum was turned off
                raise source.damage("the checksum of what was read")
        self.end = source.offset

    def _select(self, index: int) -> None:
        if index >= len(self._databases):
            raise self._source.damage(f"a database below {len(self._databases)}, not {index}")
        self._db = self._databases[index]

    def _key(self, kind: int) -> None:
        source = self._source
        key = source.string()
        expire_ms = self._expire_ms
        self._expire_ms = NO_EXPIRY
        value: object
        if kind == _STRING:
            value = _as_integer(source.value())
        elif kind in (STREAM_5, STREAM_7_0, STREAM_7_2):
            stream = read_stream(source, kind)
            stream.idmp_duration_s = self._idmp_duration_s
            stream.idmp_maxsize = self._idmp_maxsize
            self.entries += stream.length
            value = stream
        else:
            self._skip(kind)
            self._leave(_KINDS[kind], key)
            return
        self.keys += 1
        if not self._db.load(key, value, max(expire_ms, NO_EXPIRY), 0):
            raise source.damage(f"each key once, but {key[:64]!r} is there already")

    def _leave(self, name: str, key: bytes) -> None:
        left = self.left.setdefault(name, Left())
        left.count += 1
        if len(left.keys) < EXAMPLES:
            left.keys.append(key)

    # Values that are left behind

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
        elif kind == _MORTAL_HASH:
            source.raw(8)
            for _ in range(source.length()):
                source.length()
                self._skip_strings(2)
        elif kind == _MORTAL_HASH_PACKED:
            source.raw(8)
            source.string()
        elif kind == _MODULE:
            source.length()
            self._skip_module_parts()
        else:
            raise PersistenceError(
                f"{os.fsdecode(source.name)} holds a value of type {kind} before offset "
                f"{source.offset}, which this version cannot take over: streams of Redis 8.6 and "
                "later, for one. Let that server write commands: set aof-use-rdb-preamble to no "
                "there, run BGREWRITEAOF, and take over its append-only folder."
            )

    def _skip_strings(self, count: int) -> None:
        for _ in range(count):
            self._source.string()

    def _skip_module_parts(self) -> None:
        """Each part says what it is: 0 is the end, then integers, floats of two sizes, a string."""
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


def _as_integer(value: bytes | int) -> object:
    """A string as a keyspace holds it: an integer where it spells one."""
    if isinstance(value, bytes) and 0 < len(value) <= 20 and value.lstrip(b"-").isdigit():
        number = int(value)
        if -(2**63) <= number < 2**63 and b"%d" % number == value:
            return number
    return value
