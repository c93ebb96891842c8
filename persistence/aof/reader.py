"""Reads an append-only file of commands, exactly, and knows where it is.

Between commands a file may hold comment lines that start with ``#``. A command is written the one
canonical way::

    *2\\r\\n$6\\r\\nSELECT\\r\\n$1\\r\\n0\\r\\n

Everything else is damage, at a known offset, with one exception: a file may end in the middle of a
command, when the machine stopped during a write. A damaged length in the middle looks alike,
because it asks for more bytes than there are, too. But then the last command seems to contain whole
commands, one behind the other, up to the very end of the file.
"""

from __future__ import annotations

import os
from typing import Final

from mypy_extensions import i64

from headrace.persistence.errors import CorruptAOF, PersistenceError, advice
from headrace.persistence.files import open_to_read
from headrace.persistence.forms.form import STAMP
from headrace.protocol.client import request
from headrace.storage.sharing import AA, CLOSED, FILE, FROM

CHUNK_BYTES: Final = 64 * 1024
TRIES: Final = 16  # places looked at that might be the command behind a damaged one
MOST_DIGITS: Final = 16  # of a second that is one
BULK_MAX_BYTES: Final = 1 << 40  # whatever limit the server had when it wrote the file
_HEAD_BYTES: Final = 4096
_STAR: Final = 0x2A
_DOLLAR: Final = 0x24
_HASH: Final = 0x23
_CR: Final = 0x0D
_LF: Final = 0x0A


class AofReader:
    """Yields the commands of one file, in order.

    Attributes:
        name: the file's name, for messages.
        offset: the bytes up to here were read and are good: the end of the last command.
        torn: after the last command: the file ends in the middle of one.
        stamp_s: the second that comments directly before the last command gave; 0 for none.
    """

    def __init__(self, path: bytes, name: bytes, start: int = 0) -> None:
        self.name: Final = name
        self.offset = start
        self.torn = False
        self.stamp_s = 0
        self._path: Final = path
        self._buffer = b""
        self._at: i64 = 0  # where the next command starts in the buffer
        self._scan: i64 = 0  # how far the current command has been read
        self._beyond = False  # the current command asks for more than the file has
        self._fd = open_to_read(path)
        self.size_bytes = os.fstat(self._fd).st_size
        if start:
            os.lseek(self._fd, start, os.SEEK_SET)

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)

    def next(self) -> list[bytes] | None:
        """Return the next command, or None at the end. Raises CorruptAOF if the file is damaged."""
        self.stamp_s = 0
        command = self._step()
        if command is None and self.offset < self.size_bytes:
            if self._swallows_commands():
                raise self._damage("a command that ends before the next one starts")
            self.torn = True
        return command

    def _step(self) -> list[bytes] | None:
        """Return the next command, or None when no whole one is left."""
        while True:
            command = self._parse()
            if command is None:
                if self._beyond or not self._fill():
                    return None
                continue
            self.offset += self._scan - self._at
            self._at = self._scan
            if command:
                return command

    def _fill(self) -> bool:
        """Read on. Return False at the end of the file."""
        rest = self._buffer[self._at :]
        try:
            chunk = os.read(self._fd, max(CHUNK_BYTES, len(rest)))
        except OSError as error:
            raise PersistenceError(
                f"{os.fsdecode(self._path)} cannot be read behind offset "
                f"{self.offset + len(rest)}: {advice(error)}"
            ) from error
        self._buffer = rest + chunk
        self._at = 0
        return bool(chunk)

    def _swallows_commands(self) -> bool:
        """Return whether only whole commands stand behind the torn one, to the end."""
        position = self.offset
        tries = 0
        while position < self.size_bytes and tries < TRIES:
            window = os.pread(self._fd, CHUNK_BYTES, position)
            found = window.find(b"\r\n*")
            while found >= 0 and tries < TRIES:
                tries += 1
                if self._whole_from(position + found + 2):
                    return True
                found = window.find(b"\r\n*", found + 1)
            position += max(1, len(window) - 2)
        return False

    def _whole_from(self, start: int) -> bool:
        probe = AofReader(self._path, self.name, start)
        try:
            while probe._step() is not None:
                pass
            return probe.offset == probe.size_bytes
        except CorruptAOF:
            return False
        finally:
            probe.close()

    # One command

    def _parse(self) -> list[bytes] | None:
        """Return the current command, empty for a comment, or None when more bytes are needed."""
        buffer = self._buffer
        size: i64 = len(buffer)
        position = self._at
        if position >= size:
            return None
        if buffer[position] == _HASH:
            end: i64 = buffer.find(b"\n", position)
            self._scan = end + 1
            if end < 0:
                return None
            self._note_stamp(buffer[position:end].rstrip())
            return []
        self._scan = position
        count = self._header(_STAR)
        if count < 0:
            return None
        if count == 0:
            raise self._damage("a command of at least one word")
        words: list[bytes] = []
        while count > 0:
            length = self._header(_DOLLAR)
            if length < 0:
                return None
            start = self._scan
            end = start + length
            if self.offset + end + 2 - self._at > self.size_bytes:
                self._beyond = True
                return None
            if end < size and buffer[end] != _CR:
                raise self._damage("a line end behind each word")
            if end + 1 >= size:
                return None
            if buffer[end + 1] != _LF:
                raise self._damage("a line end behind each word")
            words.append(buffer[start:end])
            self._scan = end + 2
            count -= 1
        return words

    def _note_stamp(self, comment: bytes) -> None:
        digits = comment.removeprefix(STAMP)
        if digits is not comment and digits.isdigit() and len(digits) < MOST_DIGITS:
            self.stamp_s = int(digits)

    def _header(self, kind: i64) -> i64:
        """Return the number of a header line, or -1 when more bytes are needed."""
        buffer = self._buffer
        size: i64 = len(buffer)
        position = self._scan
        if position >= size:
            return -1
        if buffer[position] != kind:
            raise self._damage("'*' before a command" if kind == _STAR else "'$' before a word")
        position += 1
        first = position
        number: i64 = 0
        while position < size:
            char: i64 = buffer[position]
            if char == _CR:
                break
            if char < 0x30 or char > 0x39 or number > BULK_MAX_BYTES:
                raise self._damage("a number")
            number = number * 10 + char - 0x30
            position += 1
        if position > first + 1 and buffer[first] == 0x30:
            raise self._damage("a number without leading zeros")
        if position >= size:
            return -1
        if position == first:
            raise self._damage("a number")
        if position + 1 >= size:
            return -1
        if buffer[position + 1] != _LF:
            raise self._damage("a line end")
        self._scan = position + 2
        return number

    def _damage(self, expected: str) -> CorruptAOF:
        return CorruptAOF(self.name, self.offset, expected)


def is_blank(path: bytes) -> bool:
    """Return whether a file of commands holds none but those that say what file it is.

    So does one of a region in which nothing has been written yet; its first line may be cut. Raises
    OSError if it cannot be read.
    """
    reader = AofReader(path, path)
    try:
        while True:
            words = reader.next()
            if words is None:
                return not reader.torn or (not reader.offset and _is_beginning(path))
            is_said = words[0] == AA and len(words) > 1 and words[1] in (FILE, FROM, CLOSED)
            if not is_said and words[0] != b"SELECT":
                return False
    except CorruptAOF:
        return False
    finally:
        reader.close()


def _is_beginning(path: bytes) -> bool:
    """Return whether a file is the beginning of a region file's first line, of any writer."""
    line = request([AA, FILE, *[b""] * 8])
    start = line[: line.index(FILE) + len(FILE)]
    with open(path, "rb") as file:
        text = file.read(_HEAD_BYTES + 1)
    return len(text) <= _HEAD_BYTES and (text.startswith(start) or start.startswith(text))
