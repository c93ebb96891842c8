"""What reads the values of one type from an RDB file."""

from __future__ import annotations

from abc import abstractmethod

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
    def read_rdb(self, source: RdbSource, number: int, defaults: dict[str, int]) -> object:
        """The value that comes next, as a keyspace holds it: one that commands could have made.

        It may come from a stranger. All of it is looked at.

        Args:
            number: of the type, one of ``rdb_types``.
            defaults: what new values get, by the names of parameters, where the file says nothing,
                and up to which sizes values are small.

        Raises:
            CorruptRDB: there is none.
        """
        raise NotImplementedError
