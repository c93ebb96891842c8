"""New files: keys are encoded one after another, and what was made is written at once."""

from __future__ import annotations

import contextlib
import os
from shutil import rmtree
from typing import Final

from headrace.persistence.aof.directory import AofDirectory
from headrace.persistence.errors import PersistenceError, os_refusal
from headrace.persistence.files import NewFile, sync_folder, write_pieces
from headrace.persistence.source import FOLDER_NAME
from headrace.persistence.taker import Encoder, KeyTaker
from headrace.server.tools.keys import Keys
from headrace.storage.faces import frozen
from headrace.storage.freezing import FrozenKey

BATCH_BYTES: Final = 1 << 20
_PREFIX: Final = b"appendonly.aof"


class KeyWriter(KeyTaker):
    """Encodes keys, and writes what the encoder makes.

    Args:
        descriptor: of an open file, where ``file`` is None.
    """

    def __init__(
        self, databases: int, encoder: Encoder, file: NewFile | None, descriptor: int = -1
    ) -> None:
        super().__init__(databases)
        self._encoder: Final = encoder
        self._file: Final = file
        self._descriptor: Final = descriptor
        encoder.begin()

    def take_library(self, code: bytes) -> None:
        self._encoder.add_library(code)

    def take(self, db: int, key: bytes, value: object, expire_ms: int) -> bool:
        """See ``KeyTaker``.

        Raises:
            OSError: it cannot be written.
        """
        encoder = self._encoder
        more = encoder.add(FrozenKey(db, key, frozen(value), expire_ms))
        while more:
            if encoder.size_bytes > BATCH_BYTES:
                self._write()
            more = encoder.more()
        if encoder.size_bytes > BATCH_BYTES:
            self._write()
        return True

    def finish(self) -> None:
        """There are no more keys.

        Raises:
            OSError: nobody knows what is on the disk.
        """
        self._encoder.finish()
        self._write()
        if self._file is not None:
            self._file.finish()

    def _write(self) -> None:
        pieces = self._encoder.take()
        if self._file is not None:
            self._file.write(pieces)
        else:
            write_pieces(self._descriptor, pieces)


def write_file(path: bytes, keys: Keys, encoder: Encoder) -> None:
    """Write keys into a new file, which is there whole or not at all.

    Raises:
        PersistenceError: it is there already, or cannot be written, or the keys cannot be read.
    """
    if os.path.lexists(path):
        raise PersistenceError(f"{os.fsdecode(path)} is there already. Name a new file.")
    file = NewFile(path + b".part", True)
    try:
        _fill(keys, encoder, file)
        os.rename(file.path, path)
        sync_folder(os.path.dirname(os.path.abspath(path)))
    except OSError as error:
        file.discard()
        raise os_refusal(path, "written", error) from error
    except BaseException:
        file.discard()
        raise


def write_folder(path: bytes, keys: Keys, encoder: Encoder, suffix: bytes) -> None:
    """Write keys into the base of an append-only folder in a new ``dir``.

    Raises:
        PersistenceError: the folder holds something, or cannot be written, or the keys cannot be
            read; nothing has been made then.
    """
    folder = NewFolder(path)
    directory = AofDirectory(path, FOLDER_NAME, _PREFIX)
    try:
        directory.open()
        directory.add_incr()
        file = NewFile(directory.temporary_base(), True)
        _fill(keys, encoder, file)
        directory.adopt_base(file.path, suffix, 1)
    except OSError as error:
        folder.discard()
        raise os_refusal(path, "written", error) from error
    except BaseException:
        folder.discard()
        raise
    finally:
        directory.close()


def _fill(keys: Keys, encoder: Encoder, file: NewFile) -> None:
    writer = KeyWriter(keys.databases, encoder, file)
    keys.pass_to(writer, "writing")
    writer.finish()


class NewFolder:
    """A folder that holds nothing so far: it is made, unless it is there and empty.

    Raises:
        PersistenceError: there is something in it, or it cannot be made.
    """

    def __init__(self, path: bytes) -> None:
        self._path: Final = path
        self._was_there: Final = os.path.lexists(path)
        try:
            os.makedirs(path, exist_ok=True)
            if os.listdir(path):
                raise PersistenceError(f"{os.fsdecode(path)} is not empty. Name a new folder.")
        except OSError as error:
            raise os_refusal(path, "written", error) from error

    def discard(self) -> None:
        """Take out what was put there since, and the folder, if it was made; never fails."""
        with contextlib.suppress(OSError):
            for name in os.listdir(self._path):
                inner = os.path.join(self._path, name)
                if os.path.isdir(inner):
                    rmtree(inner, ignore_errors=True)
                else:
                    os.unlink(inner)
            if not self._was_there:
                os.rmdir(self._path)
