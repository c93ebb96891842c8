"""The files of a region, as they are loaded: what of them goes another way than commands do.

What other regions have, too, is numbered in these files, and is applied as it is when it comes from
another region. The wing of regions does that.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from typing import Final

from mypy_extensions import mypyc_attr

from headrace.persistence.aof.directory import AofDirectory
from headrace.persistence.errors import PersistenceError, shown
from headrace.server.config.config import Config
from headrace.server.durability.durability import Durability
from headrace.storage.sharing import FILE, Member


@mypyc_attr(allow_interpreted_subclasses=True)
class RegionFiles:
    """The files of a region.

    Attributes:
        member: whose files they are.
        wants_base: a base is to be written before anything else: the files are a single server's.
    """

    def __init__(self, member: Member) -> None:
        self.member: Final = member
        self.wants_base = False

    @abstractmethod
    def begin_folder(self, config: Config, durability: Durability, directory: AofDirectory) -> None:
        """A folder is about to be loaded, and is to be written to then.

        Raises:
            PersistenceError: a file cannot be read.
        """
        raise NotImplementedError

    @abstractmethod
    def begin_file(self, path: bytes) -> None:
        """A file of commands follows."""
        raise NotImplementedError

    @abstractmethod
    def take(self, name: bytes, words: list[bytes], offset: int) -> bool:
        """Take a command, if it is one of a region's; False where it goes the usual way.

        Args:
            name: of the file.
            offset: where it stands, or the transaction that it is in.

        Raises:
            PersistenceError: it is another region's, or does not fit to what came before.
        """
        raise NotImplementedError

    @abstractmethod
    def end_file(self, size_bytes: int) -> None:
        """End the file that is being read; so many bytes of it stay."""
        raise NotImplementedError

    @abstractmethod
    async def end_folder(self, durability: Durability) -> None:
        """All is loaded, and nothing is written yet: decide who the region is from now on.

        Raises:
            PersistenceError: the region must not start with these files.
        """
        raise NotImplementedError


def foreign(name: bytes, words: list[bytes], reason: str) -> PersistenceError:
    """Says that a file belongs to a region, and not to this server."""
    whose = "a region"
    if words[1:2] == [FILE] and len(words) > 4:
        whose = f"region {shown(words[4])} of {shown(words[3])}"
    return PersistenceError(f"{os.fsdecode(name)} belongs to {whose}: {reason}.")
