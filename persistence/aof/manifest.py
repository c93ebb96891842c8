"""The manifest: which files an append-only folder consists of, and in which order.

One line for each file, in the format of Redis 7 and later::

    file appendonly.aof.2.base.aof seq 2 type b
    file appendonly.aof.1.incr.aof seq 1 type h
    file appendonly.aof.2.incr.aof seq 2 type i
    file appendonly.aof.3.incr.aof seq 3 type i

``b`` is the base, at most one: the data as it was at some moment. ``i`` are the incr files, in
rising order: what was written since. ``h`` are history: files of an earlier time, which are no
longer needed and about to be deleted. Lines that start with ``#`` are comments. A line may carry
further pairs of words, which are ignored; names with blanks or quotes stand in double quotes.
"""

from __future__ import annotations

import os
from typing import Final

from headrace.persistence.errors import PersistenceError
from headrace.persistence.files import open_to_read, replace_file
from headrace.protocol.requests import split_words
from headrace.storage.vectors import BadVector, Numbers, decode_numbers, encode_numbers

BASE: Final = b"b"
INCR: Final = b"i"
HISTORY: Final = b"h"
KEPT: Final = b"k"
LINE_MAX_BYTES: Final = 1024
KEPT_LINE_MAX_BYTES: Final = 64 * 1024  # it names origins
MAX_BYTES: Final = 16 << 20  # a longer file is no manifest, and is not read


class AofFile:
    """One line of the manifest."""

    def __init__(self, name: bytes, seq: int, kind: bytes) -> None:
        self.name: Final = name
        self.seq: Final = seq
        self.kind: Final = kind

    def line(self) -> bytes:
        """Return the line, its end included."""
        return b"file %b seq %d type %b\n" % (_word(self.name), self.seq, self.kind)


class KeptFile(AofFile):
    """A line of a file that is kept for other regions, because of records ``first`` to ``last``."""

    def __init__(self, name: bytes, seq: int, first: Numbers, last: Numbers) -> None:
        super().__init__(name, seq, KEPT)
        self.first: Final = first
        self.last: Final = last

    def line(self) -> bytes:
        start = super().line()[:-1]
        first = encode_numbers(self.first)
        return b"%b first %b last %b\n" % (start, first, encode_numbers(self.last))


class Manifest:
    """The files of one append-only folder.

    Attributes:
        base: the base file, or None.
        history: files to delete.
        kept: files that are kept for other regions, oldest first.
        incrs: incr files, oldest first; the last one is written to.
        base_seq, incr_seq: the highest sequence numbers given so far.
    """

    def __init__(self) -> None:
        self.base: AofFile | None = None
        self.history: list[AofFile] = []
        self.kept: list[KeptFile] = []
        self.incrs: list[AofFile] = []
        self.base_seq = 0
        self.incr_seq = 0

    def copy(self) -> Manifest:
        """Return a copy that can be changed without changing this one."""
        twin = Manifest()
        twin.base = self.base
        twin.history = list(self.history)
        twin.kept = list(self.kept)
        twin.incrs = list(self.incrs)
        twin.base_seq = self.base_seq
        twin.incr_seq = self.incr_seq
        return twin

    def encode(self) -> bytes:
        """Return the text of the manifest file."""
        lines = [] if self.base is None else [self.base.line()]
        lines += [file.line() for file in self.history]
        lines += [file.line() for file in self.kept]
        lines += [file.line() for file in self.incrs]
        return b"".join(lines)

    def to_load(self) -> list[AofFile]:
        """Return the files that hold the data, in the order in which they are loaded."""
        return self.incrs if self.base is None else [self.base, *self.incrs]

    def add_incr(self, prefix: bytes) -> AofFile:
        """Start a new incr file, the one to write to from now on."""
        self.incr_seq += 1
        file = AofFile(b"%b.%d.incr.aof" % (prefix, self.incr_seq), self.incr_seq, INCR)
        self.incrs.append(file)
        return file

    def add_base(self, prefix: bytes, suffix: bytes, incrs_kept: int) -> AofFile:
        """Put a new base in the place of the old one and of all except the last incr files.

        Args:
            prefix: what the names of all files begin with.
            suffix: says the form of the base: ``aof`` is commands.
            incrs_kept: how many incr files were started after the new base was taken.
        """
        if self.base is not None:
            self.retire_file(self.base)
        kept_from = len(self.incrs) - incrs_kept
        for file in self.incrs[:kept_from]:
            self.retire_file(file)
        self.incrs = self.incrs[kept_from:]
        self.base_seq += 1
        name = b"%b.%d.base.%b" % (prefix, self.base_seq, suffix)
        self.base = AofFile(name, self.base_seq, BASE)
        return self.base

    def keep(self, file: AofFile, first: Numbers, last: Numbers) -> None:
        """Keep a file for other regions that has just been retired."""
        self.history = [each for each in self.history if each.name != file.name]
        self.kept.append(KeptFile(file.name, file.seq, first, last))

    def drop_kept(self, file: KeptFile) -> None:
        """Retire a kept file."""
        self.kept = [each for each in self.kept if each is not file]
        self.retire_file(file)

    def drop_incr(self, file: AofFile) -> None:
        """Retire an empty incr file."""
        self.incrs = [each for each in self.incrs if each is not file]
        self.retire_file(file)

    def retire(self, other: Manifest) -> None:
        """Take all files of another one as history."""
        self.history += other.history
        for file in [*other.kept, *other.to_load()]:
            self.retire_file(file)

    def retire_file(self, file: AofFile) -> None:
        """Take a file as history."""
        self.history.append(AofFile(file.name, file.seq, HISTORY))

    def store(self, folder: bytes, name: bytes) -> None:
        """Write the manifest file, all or nothing."""
        replace_file(folder, name, self.encode())


def read(path: bytes) -> Manifest:
    """Read a manifest file. Raises PersistenceError if it is none, OSError if it is unreadable."""
    with os.fdopen(open_to_read(path), "rb") as file:
        text = file.read(MAX_BYTES + 1)
    if len(text) > MAX_BYTES:
        raise PersistenceError(f"The manifest {os.fsdecode(path)} is too long to be one.")
    return parse(text, path)


def parse(text: bytes, name: bytes) -> Manifest:
    """Parse the manifest file ``name``. Raises PersistenceError for anything but a manifest."""
    manifest = Manifest()
    names: set[bytes] = set()
    lines = text.split(b"\n")
    rest = lines.pop()
    if not lines and not rest:
        raise PersistenceError(f"The manifest {os.fsdecode(name)} is empty.")
    if rest:
        raise _refused(name, len(lines) + 1, rest, "the line has no end")
    for number, line in enumerate(lines, 1):
        if line.startswith(b"#"):
            continue
        if len(line) >= (KEPT_LINE_MAX_BYTES if b" type k " in line else LINE_MAX_BYTES):
            raise _refused(name, number, line[:80], "the line is too long")
        reason = _add_line(manifest, line, names)
        if reason:
            raise _refused(name, number, line, reason)
    return manifest


def _add_line(manifest: Manifest, line: bytes, names: set[bytes]) -> str:
    """Take one line into the manifest. Return why it cannot be; empty if it can."""
    words = split_words(line)
    if words is None or len(words) < 6 or len(words) % 2:
        return "it must be pairs of words: file, seq and type"
    pairs: dict[bytes, bytes] = {}
    for key, value in zip(words[::2], words[1::2], strict=True):
        if key.lower() in pairs:
            return f"{os.fsdecode(key)} stands there twice"
        pairs[key.lower()] = value
    name = pairs.get(b"file", b"")
    seq_text = pairs.get(b"seq", b"")
    kind = pairs.get(b"type", b"")
    if not name or name in (b".", b"..") or b"/" in name or b"\\" in name or b"\0" in name:
        return "the file must be a plain file name"
    if not seq_text.isdigit() or len(seq_text) > 18 or int(seq_text) == 0:
        return "seq must be a number above 0"
    if name in names:
        return "the file stands there twice"
    names.add(name)
    file = AofFile(name, int(seq_text), kind)
    if kind == BASE:
        if manifest.base is not None:
            return "there is a base file already"
        manifest.base = file
        manifest.base_seq = file.seq
    elif kind == INCR:
        if file.seq <= manifest.incr_seq:
            return "the sequence numbers of incr files must rise"
        manifest.incrs.append(file)
        manifest.incr_seq = file.seq
    elif kind == HISTORY:
        manifest.history.append(file)
    elif kind == KEPT:
        try:
            first = decode_numbers(pairs.get(b"first", b""))
            last = decode_numbers(pairs.get(b"last", b""))
        except BadVector:
            return "first and last must be the numbers of records"
        manifest.kept.append(KeptFile(name, file.seq, first, last))
    else:
        return "type must be b, i, h or k"
    return ""


def _refused(name: bytes, number: int, line: bytes, reason: str) -> PersistenceError:
    return PersistenceError(
        f"The manifest {os.fsdecode(name)} cannot be used: line {number} ({line!r}): {reason}."
    )


def _word(name: bytes) -> bytes:
    """Return a file name as one word of a line."""
    plain = True
    for char in name:
        if not 0x21 <= char <= 0x7E or char in b"\"'\\#":
            plain = False
    if plain:
        return name
    shown = [
        b"\\%c" % char
        if char in b'"\\'
        else (b"%c" % char if 0x20 <= char <= 0x7E else b"\\x%02x" % char)
        for char in name
    ]
    return b'"' + b"".join(shown) + b'"'
