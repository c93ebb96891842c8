"""The log that other regions are sent from: what an append-only folder asks of it.

A rewrite makes older incr files useless for a region itself. They are kept while another region may
need them. What is in the log, and how it is read, is in the wing of regions.
"""

from __future__ import annotations

from abc import abstractmethod

from headrace.persistence.aof.file import AppendOnlyFile
from headrace.storage.vectors import Numbers


class PeerLog:
    """The numbered records in the files of a region.

    Attributes:
        most_bytes: how much is kept that this region itself does not need.
        dropped: how many files have gone although another region needs them.
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self.dropped = 0

    @abstractmethod
    def begin_file(self, path: bytes, older_bytes: int, base_bytes: int) -> AppendOnlyFile:
        """Begin a new incr file, which says who the region is now; see ``AppendOnlyFile``."""

    @abstractmethod
    def add_kept(self, path: bytes, first: Numbers, last: Numbers, size_bytes: int) -> None:
        """A file that was kept holds these records."""

    @abstractmethod
    def numbers_in(self, path: bytes) -> tuple[Numbers, Numbers] | None:
        """The first and the last numbers of records in a file, if another region may need them."""

    @abstractmethod
    def is_needed(self, last: Numbers) -> bool:
        """Return whether another region may ask for one of the records up to these."""

    @abstractmethod
    def remove(self, path: bytes) -> None:
        """A file is about to go."""

    @abstractmethod
    def clear(self) -> None:
        """None of the files belongs to what is in memory."""

    @abstractmethod
    def memory_bytes(self) -> int:
        """Return how much of it is in memory."""


class RecordCount:
    """Counts the records of regions in a file of commands."""

    @abstractmethod
    def count(self, argv: list[bytes]) -> str:
        """A command comes next, of a region or not; what is wrong with how the file counts."""

    @abstractmethod
    def found(self) -> str:
        """Return what there is of them, for people; empty where nothing is."""
