"""Full copies for regions that need more than the log holds: the newest base, piece by piece."""

from __future__ import annotations

import os
from typing import Final

from xxhash import xxh3_64_hexdigest

from headrace.compat import errors
from headrace.compat.errors import CommandError
from headrace.compat.numbers import parse_integer
from headrace.persistence.errors import PersistenceError
from headrace.persistence.files import open_to_read
from headrace.persistence.forms.records import REGIONAL_VERSION
from headrace.persistence.snapshot.file import MAGIC, PREAMBLE
from headrace.protocol.replies import ErrorReply
from headrace.server.clients.session import Session
from headrace.server.durability.durability import Durability
from headrace.server.durability.worker import ThreadCall, Worker
from headrace.server.state import Server
from headrace.server.waiting import Parked

CHUNK_BYTES: Final = 1 << 20


class BaseFile:
    """The base of a region, open for reading; it stays there when another one takes its place.

    ``name`` is without its folder.
    """

    def __init__(self, path: bytes) -> None:
        """Open it. Raises PersistenceError or OSError if it cannot be read."""
        self.name: Final = os.path.basename(path)
        self._fd = open_to_read(path)
        self.size_bytes: Final = os.fstat(self._fd).st_size

    def is_of_region(self) -> bool:
        """Return whether it says what the region knew, so that another one can go on from there."""
        head = os.pread(self._fd, PREAMBLE.size, 0)
        if len(head) < PREAMBLE.size or not head.startswith(MAGIC):
            return False
        version = PREAMBLE.unpack(head)[1]
        return bool(version >= REGIONAL_VERSION)

    def read(self, offset: int, most_bytes: int) -> bytes:
        """Return so many bytes from a place on, fewer at the end; may run in a thread.

        Raises PersistenceError or OSError if they cannot be read.
        """
        parts: list[bytes] = []
        left = min(most_bytes, self.size_bytes - offset)
        while left > 0:
            data = os.pread(self._fd, left, offset)
            if not data:
                raise PersistenceError(f"{os.fsdecode(self.name)} has become shorter")
            parts.append(data)
            offset += len(data)
            left -= len(data)
        return b"".join(parts)

    def close(self) -> None:
        """Close it."""
        os.close(self._fd)


class _Copy:
    """A copy that one session takes."""

    def __init__(self, session: Session, number: int, base: BaseFile) -> None:
        self.session: Final = session
        self.number: Final = number
        self.base: Final = base
        self.busy = 0  # pieces that a thread reads
        self.over = False

    def close_if_idle(self) -> None:
        """Close the file, once no thread reads it any more."""
        if self.over and not self.busy:
            self.base.close()


class CopySource:
    """Gives copies to all sessions that ask."""

    def __init__(self, server: Server, durability: Durability, worker: Worker) -> None:
        self._server: Final = server
        self._durability: Final = durability
        self._worker: Final = worker
        self._copies: Final[dict[int, _Copy]] = {}  # by session
        self._given = 0

    def begin(self, session: Session) -> list[object]:
        """Open the newest base for a session. Raises CommandError if there is none yet.

        Returns: the number of the copy, the name and the length of the file.
        """
        self._end(session.id)
        base = self._newest()
        if base is None:
            if not self._durability.rewriting.is_running():
                self._durability.rewriting.rewrite_soon()
            raise CommandError(errors.AA_NO_BASE)
        self._given += 1
        self._copies[session.id] = _Copy(session, self._given, base)
        return [self._given, base.name, base.size_bytes]

    def piece(self, session: Session, argv: list[bytes]) -> Parked:
        """Let a session wait for a piece of its copy.

        Raises CommandError if it has no such copy, or the copy ends before that.
        """
        number = parse_integer(argv[2])
        offset = parse_integer(argv[3])
        copy = self._copies.get(session.id)
        if number is None or offset is None:
            raise CommandError(errors.NOT_AN_INTEGER)
        if copy is None or copy.number != number or not 0 <= offset < copy.base.size_bytes:
            raise CommandError(errors.AA_NO_COPY)
        parked = Parked([], 0, argv, [], None)
        copy.busy += 1

        def read() -> list[object]:
            data = copy.base.read(offset, CHUNK_BYTES)
            return [data, xxh3_64_hexdigest(data).encode()]

        def answer(found: object, failure: str) -> None:
            reply = ErrorReply(b"AANOCOPY " + failure.encode()) if failure else found
            self._was_read(copy, parked, reply)

        self._worker.give(ThreadCall(read, answer))
        return parked

    def _was_read(self, copy: _Copy, parked: Parked, reply: object) -> None:
        copy.busy -= 1
        copy.close_if_idle()
        if copy.session.waits_for(parked):
            self._server.end_wait(copy.session, reply)

    def forget_closed(self) -> None:
        """Close the files of sessions that have left."""
        for session_id, copy in list(self._copies.items()):
            if copy.session.closed:
                self._end(session_id)

    def _end(self, session_id: int) -> None:
        copy = self._copies.pop(session_id, None)
        if copy is not None:
            copy.over = True
            copy.close_if_idle()

    def _newest(self) -> BaseFile | None:
        """Return the newest base, if it says what the region knew then."""
        directory = self._durability.files.directory
        if directory is None or directory.manifest.base is None:
            return None
        try:
            base = BaseFile(os.path.join(directory.path, directory.manifest.base.name))
        except (OSError, PersistenceError):
            return None
        if base.is_of_region():
            return base
        base.close()
        return None
