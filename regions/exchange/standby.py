"""The standby of a region: a replica that can be the region.

Its stream is the region's file as it grows: records of this region and of others, numbered by ``AA
FROM``, and commands that concern the region alone. ``AA FILE`` stands in front of the first record
of each life. So a standby takes it as a start takes a file, and has the same file. Its full copy is
what the region's base is.

While it follows, a standby has no link to another region, answers none, and makes no record of its
own. When it is to lead, it is the region in its next life, as after a start with files of an
earlier time: it takes no writes before all others have said what they know, and it has all of that.
What the region had sent to others and not yet to its standby comes back from there. A standby that
has all, because the region itself has handed over, takes writes at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from headrace.persistence.aof.file import MULTI_WIRE
from headrace.persistence.errors import CorruptAOF, PersistenceError, shown
from headrace.protocol.client import request
from headrace.regions.exchange.effects import EffectError, apply_local, apply_record, region_of
from headrace.regions.exchange.retention import LogManager
from headrace.regions.files.identity import Identity, life_words
from headrace.regions.files.journal import Received, records_in
from headrace.regions.files.log_file import counting_of
from headrace.regions.knowledge.records import JOINED, is_numbered
from headrace.regions.knowledge.region import Region
from headrace.server.durability.durability import Durability
from headrace.server.replication.stream import CommandStream
from headrace.server.state import Server, StandbyInput
from headrace.storage.sharing import AA, FILE, FROM
from headrace.storage.vectors import BadVector, Dot

NO_LIFE: Final = (-1, 0, b"")
NAME: Final = b"the stream of the region"


class RegionStream(CommandStream):
    """Makes the stream that the standbys of a region get."""

    def __init__(self, on_piece: Callable[[bytes], None], region: Region) -> None:
        super().__init__(on_piece)
        self._region: Final = region
        self._life = NO_LIFE  # epoch, generation and nonce, as the stream has said them last
        self._own = (region.origin, 0)  # the latest record of this region
        self._next: Dot = (b"", 0)  # how the next numbered record counts
        self._held: Received | None = None  # all that the current command has left so far

    def select_again(self) -> None:
        super().select_again()
        self._life = NO_LIFE
        self._own = (self._region.origin, self._region.count)
        self._next = (b"", 0)

    def append(self, db: int, record: list[bytes]) -> bool:
        if record[:2] == [AA, JOINED]:
            return False  # no standby has that copy: all begin anew
        self._go_on()
        if self._in_transaction:
            self._write(db, record)
        else:
            self._first = record
            self._first_db = db
        return False

    def append_received(self, origin: bytes, first: int, count: int, payload: bytes) -> bool:
        self._go_on()
        received = Received(origin, first, count, payload)
        if self._in_transaction:
            self._add_inside(received)
        else:
            self._held = received
        return False

    def end_command(self) -> bool:
        held = self._held
        if held is None:
            return super().end_command()
        self._held = None
        self._select(0)
        self._count(held.origin, held.first, held.records)
        self._add(held.payload)
        self._leave_soon()
        return True

    def _go_on(self) -> None:
        """Begin a command, or a transaction where the present one has left a record before."""
        if self._in_transaction:
            return
        first = self._first
        held = self._held
        self._first = None
        self._held = None
        if first is None and held is None:
            self.say_life()
            return
        self._in_transaction = True
        self._add(MULTI_WIRE)
        if first is not None:
            self._write(self._first_db, first)
        elif held is not None:
            self._add_inside(held)

    def say_life(self) -> None:
        """Say which life this is, between two commands, unless that was said."""
        region = self._region
        life = (region.epoch, region.generation, region.nonce)
        if life != self._life:
            self._life = life
            if self._own[0] != region.origin:
                self._own = (region.origin, 0)
            self.say(life_words(region, b"-"))

    def _add_inside(self, received: Received) -> None:
        self._select(0)
        self._count(received.origin, received.first, received.records)
        self._add(b"".join(records_in(received.payload)))

    def _write(self, db: int, record: list[bytes]) -> None:
        if is_numbered(record):
            origin, number = self._own
            self._own = (origin, number + 1)
            self._select(db)
            self._count(origin, number + 1, 1)
        super()._write(db, record)

    def _count(self, origin: bytes, first: int, count: int) -> None:
        """Make the next numbered record count as this one."""
        if self._next != (origin, first):
            self._add(request([AA, FROM, origin, b"%d" % first]))
        self._next = (origin, first + count)


class RegionInput(StandbyInput):
    """Applies the stream of a region, and keeps it in the file as it came."""

    def __init__(self, server: Server, durability: Durability, log_manager: LogManager) -> None:
        self._server: Final = server
        self._files: Final = durability.files
        self._log_manager: Final = log_manager
        self._region: Final = region_of(server)
        self._origin = b""  # of the next numbered record; empty where nothing has said it

    def restart(self) -> None:
        """Begin behind a full copy."""
        self._origin = b""

    def take(self, words: list[bytes]) -> bool:
        if is_numbered(words):
            self._apply(words)
        elif words[0] != AA or len(words) < 2:
            return False
        elif words[1] == FROM:
            self._count_from(words)
        elif words[1] == FILE:
            self._begin_life(words)
        else:
            self.keep(words)
            try:
                apply_local(self._server, words)
            except EffectError as error:
                raise self._damage(words, str(error)) from None
        return True

    def _apply(self, words: list[bytes]) -> None:
        origin = self._origin
        number = self._region.number_of(origin) + 1
        if not origin:
            raise self._damage(words, "not counted")
        if origin == self._region.origin:
            self.keep(words)
        else:
            self._keep_received(origin, number, words)
        try:
            apply_record(self._server, origin, number, words, True)
        except EffectError as error:
            raise self._damage(words, str(error)) from None

    def _count_from(self, words: list[bytes]) -> None:
        try:
            origin, number = counting_of(words)
        except BadVector:
            raise self._damage(words, "without an origin and a number") from None
        known = self._region.number_of(origin)
        if number != known + 1:
            raise self._damage(words, f"not the next one, for {known} are known")
        self._origin = origin

    def _begin_life(self, words: list[bytes]) -> None:
        """Go on as the region does, in a new file where that is another life of it."""
        region = self._region
        try:
            found = Identity(words)
        except ValueError as error:
            raise self._damage(words, str(error)) from None
        if found.region != region.id or found.database != region.database:
            raise self._damage(words, "another region's")
        if found.epoch < region.epoch:
            raise self._damage(words, f"of an earlier epoch than {region.epoch}")
        life = (found.epoch, found.generation, found.nonce)
        if life == (region.epoch, region.generation, region.nonce):
            return
        try:
            has_begun = self._log_manager.begin_epoch(*life)
        except OSError as reason:
            raise PersistenceError(f"its next life cannot be written: {reason}") from reason
        if not has_begun:
            raise PersistenceError("its next life begins when the files have been written anew")

    def keep(self, words: list[bytes]) -> None:
        aof = self._files.aof
        if aof is not None and aof.append(0, words):
            self._server.host.flush_soon()

    def _keep_received(self, origin: bytes, number: int, words: list[bytes]) -> None:
        aof = self._files.aof
        if aof is not None and aof.append_received(origin, number, 1, request(words)):
            self._server.host.flush_soon()

    def end_unit(self) -> None:
        if self._files.aof is not None:
            self._files.aof.end_command()

    def _damage(self, words: list[bytes], reason: str) -> CorruptAOF:
        what = shown(b" ".join(words[:2]))
        offset = self._server.role.offset()
        return CorruptAOF(NAME, offset, f"a record of a region, but {what} is {reason}")
