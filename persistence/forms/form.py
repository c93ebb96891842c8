"""The form of a type: all that the files of a server, and DUMP, ask of a value of it.

Code that writes or reads a file finds the form in ``persistence.forms.table`` and knows no type.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Final, cast

from mypy_extensions import mypyc_attr

from headrace.persistence.forms.records import Intake, Reader, Record, Records
from headrace.persistence.rdb.kinds import VERSION_MIN, VERSION_SHARED
from headrace.persistence.rdb.primitives import RdbOutput
from headrace.persistence.rdb.values import RdbValues
from headrace.protocol.client import request
from headrace.storage.sharing import Member
from headrace.storage.value import Value

STAMP: Final = b"#TS:"


def annotation(second: int) -> bytes:
    """Return the comment line with the time of what follows, in seconds since 1970."""
    return b"%b%d\r\n" % (STAMP, second)


class Commands:
    """Collects commands.

    Attributes:
        stamped: comments may say when something happened; only files have a place for them.
        portable: they are for Redis, so commands of ours alone are left out.
        size_bytes: the length of what ``take`` would return.
    """

    def __init__(self, stamped: bool, portable: bool) -> None:
        self.stamped: Final = stamped
        self.portable: Final = portable
        self.size_bytes = 0
        self._made: list[bytes] = []

    def add(self, words: list[bytes]) -> None:
        """Add a command."""
        wire = request(words)
        self._made.append(wire)
        self.size_bytes += len(wire)

    def add_wire(self, wire: bytes) -> None:
        """Add commands that are encoded already."""
        self._made.append(wire)
        self.size_bytes += len(wire)

    def take(self) -> list[bytes]:
        """Return the commands added since the last call."""
        made = self._made
        self._made = []
        self.size_bytes = 0
        return made


class Unsound(Exception):
    """A value holds what cannot be in one; the text says what."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Walk:
    """The rest of the work on a value that is gone through in parts."""

    @abstractmethod
    def step(self) -> bool:
        """Do the next part, some tenths of a millisecond at most. Return False at the end."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Writer:
    """Turns frozen values of one type into records; one file has one."""

    def __init__(self, records: Records) -> None:
        self.records: Final = records

    @abstractmethod
    def add(self, key: bytes, value: object, expire_ms: int) -> Walk | None:
        """Write a key and count it in ``records.keys``. Return the rest of the work if it is much.

        ``value`` is the result of ``Value.freeze``, ``expire_ms`` may be ``NO_DEADLINE``.
        """

    def flush(self) -> None:
        """Write what waits for more of its kind: another database follows, or the end."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Form(RdbValues):
    """The form of one type.

    Attributes:
        type_name: the type, as ``Value.type_name`` returns it; plural: of its name.
        record_kinds: the numbers of its records, which no other form has, and their names.
        part_names: the names of the parts of a value that are worth counting.
        writer: makes a writer that turns values into records.
        reader: makes a reader that turns records back into values.
    """

    def __init__(
        self,
        type_name: bytes,
        plural: str,
        record_kinds: dict[int, str],
        rdb_types: tuple[int, ...],
        part_names: list[str],
        writer: Callable[[Records], Writer],
        reader: Callable[[Intake], Reader],
    ) -> None:
        super().__init__(rdb_types)
        self.type_name: Final = type_name
        self.plural: Final = plural
        self.record_kinds: Final = record_kinds
        self.part_names: Final = part_names
        self.writer: Final = writer
        self.reader: Final = reader

    # Records

    @abstractmethod
    def check(self, value: object) -> None:
        """Check a value that was read from records of a stranger, and is not empty.

        Raises Unsound if commands could not have made it.
        """

    def as_tombstone(self, value: object) -> object:
        """Return the form in which a gone value is kept that has to be remembered; maybe itself."""
        return value

    # Commands

    @abstractmethod
    def rewrite(self, commands: Commands, key: bytes, value: object) -> Walk | None:
        """Make a key, without its deadline, by commands. Return the rest of the work if it is much.

        ``value`` is the result of ``Value.freeze``.
        """

    # Redis's own form

    def rdb_version(self, value: object) -> int:
        """Return the lowest version of RDB that can hold all of a value; 0 where none can.

        ``value`` is as a keyspace holds it. Every version can, where a form does not say otherwise.
        """
        return VERSION_MIN

    def frozen_rdb_version(self, value: object) -> int:
        """As ``rdb_version``, of the result of ``Value.freeze``."""
        return self.rdb_version(value)

    def fits_valkey(self, value: object) -> bool:
        """Return whether the form of Valkey 9 can hold all of a value, as a keyspace holds it."""
        return 0 < self.rdb_version(value) <= VERSION_SHARED

    def frozen_fits_valkey(self, value: object) -> bool:
        """As ``fits_valkey``, of the result of ``Value.freeze``."""
        return 0 < self.frozen_rdb_version(value) <= VERSION_SHARED

    def rdb_type(self, value: object, version: int) -> int:
        """Return the number of the type that holds a frozen value in a file of ``version``."""
        raise NotImplementedError

    def write_rdb(self, output: RdbOutput, value: object) -> Walk | None:
        """Write a frozen value in that type. Return the rest of the work if it is much."""
        raise NotImplementedError

    # Figures for tools

    def part_counts(self, value: object) -> list[int]:
        """Return how many of each a value has: elements, where these are all its parts."""
        return [cast("Value", value).size()]

    def lacking_counts(self, value: object) -> list[int]:
        """Return how much of each kind of thing there is that some servers of Redis cannot read."""
        return []

    def lacking_elsewhere(self, counts: list[int]) -> list[str]:
        """Return a sentence for each kind, given the sums of these figures over all values."""
        return []


class MemberForm:
    """The form of a server as a region: what a snapshot says of it, beside its keys."""

    @abstractmethod
    def record(self, member: Member) -> Record:
        """Return a record of what it knows now."""

    @abstractmethod
    def read(
        self, member: Member, table: list[int], nonce: bytes, caught: bytes, document: bytes
    ) -> None:
        """Restore what a record says that it knew.

        ``nonce``, ``caught`` and ``document`` are the texts behind the name of its database. Raises
        one of ``UNDECODABLE`` if the record says nothing that a region knows.
        """

    @abstractmethod
    def from_tombstone(self, member: Member, value: object | None) -> object | None:
        """Return one of its tombstones as the value it remembers: see ``Form.as_tombstone``."""
