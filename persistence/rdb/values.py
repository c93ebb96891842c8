"""What reads the values of one type from an RDB file."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

from mypy_extensions import mypyc_attr

from headrace.persistence.rdb.source import RdbSource


@mypyc_attr(allow_interpreted_subclasses=True)
class RdbValues:
    """Values of one type, which RDB files may know by several numbers."""

    @abstractmethod
    def rdb_types(self) -> list[int]:
        """Those numbers; none where Redis has no such type."""
        raise NotImplementedError

    @abstractmethod
    def read_rdb(
        self, source: RdbSource, number: int, defaults: dict[str, int]
    ) -> Iterator[object]:
        """Read the value that comes next in parts: None after some of it, at last the value.

        That is as a keyspace holds it, and one that commands could have made. It may come from a
        stranger. All of it is looked at.

        Args:
            number: of the type, one of ``rdb_types``.
            defaults: what new values get, by the names of parameters, where the file says nothing,
                and up to which sizes values are small.

        Raises:
            CorruptRDB: there is none.
        """
        raise NotImplementedError

    def take_note(self, value: object, name: bytes, source: RdbSource) -> None:
        """Learn what a note of ours behind a value says of it that Redis's form has no place for.

        Args:
            value: what ``read_rdb`` has read.
            name: of the note; others than those that are known say nothing here.
            source: its text.

        Raises:
            CorruptRDB: it says nothing that can be.
        """


def whole(parts: Iterator[object]) -> object:
    """The value that ``RdbValues.read_rdb`` reads, in one go."""
    value: object = None
    for last in parts:
        value = last
    return value
