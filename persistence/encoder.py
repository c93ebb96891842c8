"""What turns frozen keys into the bytes of a file: the face that all forms of a base share.

A file is ``begin``, then any number of keys, then ``finish``. Each call does a bounded amount of
work and adds to what ``take`` returns, so that whoever drives it can stop after any call, let the
server run, and go on: a key is begun with ``add`` and is done when ``more`` says so.
"""

from __future__ import annotations

from headrace.storage.freezing import FrozenKey


class Encoder:
    """Makes the bytes of one file.

    Attributes:
        size_bytes: the length of what ``take`` would return.
    """

    def __init__(self) -> None:
        self.size_bytes = 0

    def begin(self) -> None:
        """Make what stands at the head of the file."""

    def add_library(self, code: bytes) -> None:
        """Take a library of functions, in front of all keys."""
        raise NotImplementedError

    def add(self, key: FrozenKey) -> bool:
        """Take a key; True when more is to be done for it, so that ``more`` is to be called.

        A ``FrozenStream`` stays the caller's, to be thawed when nothing is left to do for it.
        """
        raise NotImplementedError

    def more(self) -> bool:
        """Do a part of the work that is left for the last key; True when there is still more.

        One call takes some tenths of a millisecond at most, where entries are of ordinary size.
        """
        return False

    def finish(self) -> None:
        """Make what stands at the end of the file."""

    def take(self) -> list[bytes]:
        """What has been made since the last call, in the order of the file."""
        raise NotImplementedError
