"""Reads the frames of a snapshot, and puts their keys into databases."""

from __future__ import annotations

import os
from typing import Final

from headrace.persistence.errors import PersistenceError, os_refusal
from headrace.persistence.forms import records
from headrace.persistence.forms.records import Malformed
from headrace.persistence.forms.table import RecordDecoder, form_of, member_form
from headrace.persistence.log import StreamPlace
from headrace.persistence.snapshot.file import FrameReader
from headrace.storage.keyspace import Keyspace, Keyspaces
from headrace.storage.sharing import REGION_MAX, Member, new_member

KEEP_ALL: Final = -1


class Unfit(Exception):
    """A record is sound, but has no place here; the text says why."""


class Decoder(RecordDecoder):
    """Puts the keys of records into databases.

    Args:
        now_ms: the present. Keys get it as their time of last access. What the snapshot dates later
            (the clock may have been set back since) counts as having happened now.
        drop_before_ms: keys with a deadline before this are left out; ``KEEP_ALL`` leaves none out.

    Attributes:
        version: of the server that wrote the header; created_ms: the moment whose state it is.
        is_base: it is the base of an append-only folder.
        keys, entries: how many keys and entries of streams were met.
        expired: how many of the keys were left out.
        done: the last record was decoded, and its totals are right.
        places_itself: ``place`` is not this one's, and every key has to go through it.
        replaces: keys of the snapshot take the place of those that are there.
        stream_place: where this is in the stream of replication; None where that is not said.
    """

    def __init__(self, databases: Keyspaces, now_ms: int, drop_before_ms: int) -> None:
        super().__init__(now_ms)
        self.version = b""
        self.created_ms = 0
        self.is_base = False
        self.expired = 0
        self.done = False
        self.replaces = False
        self.places_itself = False
        self.libraries: Final[list[bytes]] = []
        self._databases: Final = databases
        self._drop_before_ms = drop_before_ms
        self.stream_place: StreamPlace | None = None
        self._db: Keyspace | None = None
        self._in_tombstones = False
        self._any_database = False
        self._takes_regions = False
        self._whose: Member | None = None
        self._begun = False
        self._names[records.HEADER] = "header"
        self._names[records.DATABASE] = "database"
        self._names[records.END] = "end"
        self._names[records.REGION] = "region"
        self._names[records.LIBRARY] = "library"
        self._names[records.STREAM_PLACE] = "place in a stream"

    def take(self, frame: bytes, end: int) -> None:
        """Decode the records in ``frame[:end]`` next; those before must have been decoded.

        Raises Malformed if the last record has been there already.
        """
        self._start = 0
        if self.done:
            raise self._behind_the_last()
        super().take(frame, end)

    def accept_databases(self) -> None:
        """Accept keys of any database, because they go nowhere."""
        self._any_database = True

    def accept_region(self, region: Member | None) -> None:
        """Accept the snapshot of a region, whose last database is that of its tombstones.

        ``region`` is the one it has to be, and takes what the snapshot says that it knew; None
        accepts any region.
        """
        self._takes_regions = True
        self._whose = region

    def finish(self) -> None:
        """End the snapshot: no more frames follow. Raises Malformed if something is missing."""
        self._start = self.end
        if not self.done:
            raise self.malformed("more frames: the last record is missing")

    def place(self, key: bytes, value: object, expire_ms: int) -> None:
        self.keys += 1
        if expire_ms != records.NO_DEADLINE and expire_ms < self._drop_before_ms:
            self.expired += 1
            return
        db = self._db
        if db is None:
            raise self.malformed("a database before the first key")
        if self.replaces:
            db.remove(key)
        if self._in_tombstones:
            value = form_of(value).as_tombstone(value)
        if not db.load(key, value, expire_ms, self.now_ms):
            raise self.doubled(key)

    def database(self) -> Keyspace | None:
        return None if self.places_itself or self.replaces else self._db

    def before_record(self, kind: int) -> None:
        """Raise unless there is one header, in front, and nothing behind the end."""
        if self.done:
            raise self._behind_the_last()
        if not self._begun and kind != records.HEADER:
            raise self.malformed("a header first")

    def other_record(self, kind: int, table: list[int]) -> None:
        if kind == records.DATABASE:
            self._database(table[0])
        elif kind == records.HEADER:
            self._header(table)
        elif kind == records.END:
            self._total(table)
        elif kind == records.REGION:
            self._region(table)
        elif kind == records.LIBRARY:
            self.take_library(self.cut(table[0]))
        elif kind == records.STREAM_PLACE:
            self._stream_place(table)
        else:
            super().other_record(kind, table)

    def _stream_place(self, table: list[int]) -> None:
        """Keep expired keys from here on: replicas have them, and need the record of their end."""
        if self.keys or not (table[0] >= 0 and table[1] >= 0):
            raise self.malformed("a place in a stream in front of all keys")
        self.stream_place = StreamPlace(self.cut(table[2]), table[0], table[1])
        self._drop_before_ms = KEEP_ALL

    def take_library(self, code: bytes) -> None:
        """Take a complete library of functions."""
        self.libraries.append(code)

    def _behind_the_last(self) -> Malformed:
        return self.malformed("nothing behind the last record")

    def _header(self, table: list[int]) -> None:
        if self._begun:
            raise self.malformed("one header")
        self._begun = True
        self.created_ms = table[0]
        self.is_base = table[1] != 0
        self.version = self.cut(table[3])

    def _database(self, index: int) -> None:
        if index < 0:
            raise self.malformed("a database's number")
        if self._any_database:
            return
        count = len(self._databases)
        if self._whose is not None and self.region is None:
            count = 1  # the snapshot of a single server has no tombstones
            if index >= count:
                raise Unfit(
                    f"it holds keys of database {index}, and a region has database 0 alone: move "
                    "them there, or take them out"
                )
        if index >= count:
            raise Unfit(
                f"it holds keys of database {index}, and there are only {count}: "
                f"raise `databases` to {index + 1} or more"
            )
        self._db = self._databases[index]
        self._in_tombstones = self.region is not None and index == len(self._databases) - 1

    def _region(self, table: list[int]) -> None:
        if self.region is not None or self.keys:
            raise self.malformed("one region, in front of all keys")
        number = table[0]
        if not 0 < number <= REGION_MAX:
            raise self.malformed("the number of a region")
        database = self.cut(table[records.REGION_TEXTS_AT])
        nonce = self.cut(table[records.REGION_TEXTS_AT + 1])
        caught = self.cut(table[records.REGION_TEXTS_AT + 2])
        document = self.cut(table[records.REGION_TEXTS_AT + 3])
        whose = self._whose
        if not self._takes_regions:
            raise Unfit(
                f"it is that of a region (aa-region-id {number}). Start the server as that region, "
                "or take its streams over with headrace export"
            )
        if whose is None:
            whose = new_member(number)
            whose.database = database
        elif whose.id != number or whose.database != database:
            raise Unfit(
                f"it is that of region {number} of {database[:64]!r}, and this server is region "
                f"{whose.id} of {whose.database[:64]!r} (aa-region-id, aa-database)"
            )
        member_form().read(whose, table, nonce, caught, document)
        self.region = whose

    def _total(self, table: list[int]) -> None:
        if table[0] != self.keys or table[1] != self.entries:
            raise self.malformed(
                f"{table[0]} keys and {table[1]} entries, "
                f"but there were {self.keys} and {self.entries}"
            )
        self.done = True


class SnapshotLoader:
    """Loads one file.

    Any method raises PersistenceError when the file cannot be read or trusted. The databases then
    hold some of its keys.

    Attributes:
        decoder: what it found so far.
        size_bytes: the length of the file; loaded_bytes: how much of it has been loaded.
    """

    def __init__(self, path: bytes, decoder: Decoder) -> None:
        self.decoder: Final = decoder
        self.loaded_bytes = 0
        try:
            self._reader: Final = FrameReader(path)
        except OSError as error:
            raise os_refusal(path, "read", error) from error
        self.size_bytes: Final = self._reader.size_bytes

    def step(self) -> bool:
        """Load the next record, about a megabyte at most. Return False when all is loaded."""
        reader = self._reader
        try:
            if self.decoder.step():
                return True
            self.loaded_bytes = reader.offset
            frame = self._next()
            if frame is not None:
                self.decoder.take(frame, len(frame) - records.CHECKSUM.size)
                return True
            self.decoder.finish()
        except Malformed as damage:
            raise reader.damage(reader.frame_offset + damage.position, str(damage)) from damage
        except Unfit as reason:
            raise PersistenceError(
                f"{os.fsdecode(reader.name)} cannot be loaded: {reason}."
            ) from reason
        return False

    def _next(self) -> bytes | None:
        try:
            return self._reader.next()
        except OSError as error:
            raise os_refusal(self._reader.name, "read", error) from error

    def frame_offset(self) -> int:
        """Return where the frame begins that was read last."""
        return self._reader.frame_offset

    def close(self) -> None:
        """Close the file."""
        self._reader.close()
        self.decoder.close()
