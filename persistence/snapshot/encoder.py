"""Frozen keys as a snapshot: records in frames, each frame with its checksum.

Checksums are computed here, piece by piece, so that nothing is joined and the file can be written
from the result of ``take`` as it is. A large value is gone through in parts.
"""

from __future__ import annotations

from typing import Final

from xxhash import xxh3_64, xxh3_64_intdigest

from headrace.persistence.forms.form import Walk, Writer
from headrace.persistence.forms.records import (
    CHECKSUM,
    DATABASE,
    END,
    HEADER,
    LIBRARY,
    REGIONAL_VERSION,
    STREAM_PLACE,
    VERSION,
    Record,
    Records,
)
from headrace.persistence.forms.table import form_of, forms, frozen_type, member_form
from headrace.persistence.log import StreamPlace
from headrace.persistence.snapshot.file import FRAME_HEAD, MAGIC, PREAMBLE, PREAMBLE_CHECKED
from headrace.persistence.taker import Encoder
from headrace.storage.faces import frozen
from headrace.storage.freezing import FrozenKey
from headrace.storage.sharing import Member

CHECKED_AT_ONCE: Final = 1 << 21  # bytes of one value that are checksummed in one call


class SnapshotEncoder(Encoder):
    """Makes the bytes of one snapshot.

    Args:
        version: of the server, for people to read.
        created_ms: the moment whose state this is.
        is_base: it is the base of an append-only folder, and incr files may follow.
        databases: how many the server has.
        region: None without regions.
        place: where this is in the stream of replication; None where there is none.
    """

    def __init__(
        self,
        version: bytes,
        created_ms: int,
        is_base: bool,
        databases: int,
        region: Member | None = None,
        place: StreamPlace | None = None,
    ) -> None:
        super().__init__()
        self._version: Final = version
        self._created_ms: Final = created_ms
        self._is_base: Final = is_base
        self._databases: Final = databases
        self._region: Final = region
        self._place: Final = place
        self._records: Final = Records()
        self._db = -1
        self._made: list[bytes] = []
        self._number = 0  # of the next frame
        self._walk: Walk | None = None
        self._writers: Final[dict[bytes, Writer]] = {}  # by the names of their types
        for form in forms():
            self._writers[form.type_name] = form.writer(self._records)
        self._plain: Final = self._writers[form_of(b"").type_name]
        # The frame whose checksum is being computed.
        self._payload: list[bytes] = []
        self._piece = 0
        self._piece_at = 0
        self._digest = xxh3_64()

    def begin(self) -> None:
        """Make the preamble, the header, and what a region knows."""
        region = self._region
        version = VERSION if region is None else REGIONAL_VERSION
        head = PREAMBLE.pack(MAGIC, version, 0, 0)[:PREAMBLE_CHECKED]
        self._add(head + CHECKSUM.pack(xxh3_64_intdigest(head)))
        header = Record(HEADER)
        base = 1 if self._is_base else 0
        header.table = [self._created_ms, base, self._databases]
        header.add(self._version)
        self._records.put(header)
        if region is not None:
            self._records.put(member_form().record(region))
        place = self._place
        if place is not None:
            record = Record(STREAM_PLACE)
            record.table = [place.offset, place.db]
            record.add(place.data_id)
            self._records.put(record)

    def add_library(self, code: bytes) -> None:
        record = Record(LIBRARY)
        record.add(code)
        self._records.put(record)

    def add(self, key: FrozenKey) -> bool:
        if key.db != self._db:
            self._begin_database(key.db)
        value = key.value
        region = self._region
        if key.db == self._databases and region is not None and isinstance(value, bytes):
            value = frozen(member_form().from_tombstone(region, value))
        writer = self._plain
        if not isinstance(value, (bytes, int)):
            writer = self._writers[frozen_type(value)]
        walk = writer.add(key.key, value, key.expire_ms)
        if walk is not None:
            self._walk = walk
            return True
        return bool(self._records.payloads) and self._seal_some()

    def more(self) -> bool:
        if self._payload or self._records.payloads:
            return self._seal_some() or self._walk is not None
        if self._walk is not None and not self._walk.step():
            self._walk = None
        return self._walk is not None or bool(self._records.payloads)

    def finish(self) -> None:
        records = self._records
        self._flush_writers()
        end = Record(END)
        end.table = [records.keys, records.entries]
        records.put(end)
        records.flush()
        while self._seal_some():
            pass

    def take(self) -> list[bytes]:
        made = self._made
        self._made = []
        self.size_bytes = 0
        return made

    def _begin_database(self, index: int) -> None:
        self._db = index
        self._flush_writers()
        record = Record(DATABASE)
        record.table = [index]
        self._records.put(record)

    def _flush_writers(self) -> None:
        for writer in self._writers.values():
            writer.flush()

    def _seal_some(self) -> bool:
        """Go on with the checksums of whole payloads. Return True when there is more to do."""
        if not self._payload:
            waiting = self._records.payloads
            if not waiting:
                return False
            self._payload = waiting.pop(0)
            size = 0
            for piece in self._payload:
                size += len(piece)
            head = FRAME_HEAD.pack(size, self._number)
            self._number += 1
            self._digest = xxh3_64(head)
            self._piece = 0
            self._piece_at = 0
            self._add(head)
        payload = self._payload
        digest = self._digest
        budget = CHECKED_AT_ONCE
        while self._piece < len(payload) and budget > 0:
            piece = payload[self._piece]
            size = len(piece) - self._piece_at
            if size <= budget and not self._piece_at:
                digest.update(piece)
            else:
                size = min(size, budget)
                digest.update(memoryview(piece)[self._piece_at : self._piece_at + size])
            budget -= size
            self._piece_at += size
            if self._piece_at >= len(piece):
                self._piece += 1
                self._piece_at = 0
                self._add(piece)
        if self._piece < len(payload):
            return True
        self._add(CHECKSUM.pack(digest.intdigest()))
        self._payload = []
        return bool(self._records.payloads)

    def _add(self, piece: bytes) -> None:
        self._made.append(piece)
        self.size_bytes += len(piece)
