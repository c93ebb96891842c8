"""The start of a region: its files are loaded, and then its identity is decided.

Their numbered records are counted while they are loaded, and applied.

A file says how to count (``AA FROM``). The loader checks that this agrees with what is known
already: with the base, with the files before, with the records in between. So records are neither
missing nor doubled, or the file is refused.

The files may be those of a single server. Then they are loaded as if there were no regions, up to
where the region's own begin, or to the end. Their data becomes the region's then.
"""

from __future__ import annotations

import asyncio
import logging
from abc import abstractmethod
from typing import Final

from mypy_extensions import mypyc_attr

from headrace.persistence.aof.directory import AofDirectory
from headrace.persistence.errors import CorruptAOF, PersistenceError, os_refusal, shown
from headrace.regions.exchange.effects import (
    EffectError,
    apply_local,
    apply_record,
    refuse_writes,
    replication,
)
from headrace.regions.exchange.epochs import (
    ADOPTED,
    CUT,
    MOVED,
    NONE,
    WHOLE,
    Answer,
    CatchUp,
    Forgotten,
    Start,
    begin_empty,
    decide,
    new_nonce,
)
from headrace.regions.exchange.peer_sessions import TWIN_MS
from headrace.regions.exchange.regions import Regions
from headrace.regions.exchange.retention import LogManager, log_of
from headrace.regions.files.identity import Identity, Life, last_life
from headrace.regions.files.log_file import LogFile, counting_of
from headrace.regions.knowledge.records import is_numbered
from headrace.regions.knowledge.region import Region
from headrace.server.config.config import Config
from headrace.server.durability.durability import Durability
from headrace.server.loading.loader import RegionFiles, foreign
from headrace.server.state import Server
from headrace.storage.sharing import AA, CLOSED, FILE, FROM, Replicated
from headrace.storage.vectors import BadVector

log: Final = logging.getLogger("headrace")
LOOK_S: Final = 0.02  # between two looks whether all have answered


@mypyc_attr(allow_interpreted_subclasses=True)
class RecordLoader(RegionFiles):
    """Takes the records of a region's files.

    ``files`` holds what has been found of numbered records, by file.
    """

    def __init__(self, region: Region) -> None:
        super().__init__(region)
        self.region: Final = region
        self.files: Final[list[LogFile]] = []
        self._life: Life | None = None
        self._is_ours = False  # the current file has said which region writes it
        self._origin = b""  # of the next numbered record; empty where nothing says it
        self._next = 0
        self._first = 0  # the number since when that has not changed
        self._file = LogFile(b"")

    @abstractmethod
    def apply(self, origin: bytes, number: int, words: list[bytes]) -> str:
        """Apply the next record of an origin, which makes it known.

        Return why it is none; empty where all is well.
        """

    @abstractmethod
    def apply_local(self, words: list[bytes]) -> str:
        """Apply a record ``AA name`` that concerns this region alone; see ``apply``."""

    def take_up(self) -> None:
        """Give the region what was loaded so far, if it was a single server's.

        Raises PersistenceError if that cannot be.
        """

    async def start(self, life: Life | None) -> None:
        """Decide the identity of the region from now on; see ``RegionFiles.end_folder``.

        A standby stays what it is in its files until its region is there, or it has to lead.

        ``life`` is how the last writer of the files has ended; None where none was a region.
        """

    def begin_folder(self, config: Config, durability: Durability, directory: AofDirectory) -> None:
        directory.log = LogManager(config, durability).open(self.region)
        directory.load_kept()
        try:
            self._life = last_life([directory.file_path(file) for file in directory.manifest.incrs])
        except OSError as error:
            raise os_refusal(directory.path, "read", error) from error

    async def end_folder(self, durability: Durability) -> None:
        log = log_of(durability.files)
        if log is not None:
            for file in self.files:
                if file.last:
                    log.add(file)
        await self.start(self._life)

    def begin_file(self, path: bytes) -> None:
        self._file = LogFile(path)
        self._is_ours = False
        self._origin = b""

    def end_file(self, size_bytes: int) -> None:
        self._end_count()
        self._origin = b""
        self._file.sendable_bytes = size_bytes
        self.files.append(self._file)

    def take(self, name: bytes, words: list[bytes], offset: int) -> bool:
        if words[0] == AA and len(words) > 1:
            if words[1] == FROM:
                self._count_from(name, words, offset)
                return True
            if words[1] == FILE:
                self._read_identity(name, words, offset)
                return True
            if words[1] == CLOSED:
                return True
        if not is_numbered(words):
            if words[0] != AA:
                return False
            reason = self.apply_local(words)
        elif self._origin:
            reason = self.apply(self._origin, self._next, words)
            self._next += 1
        elif self._is_ours or words[0] == AA:
            raise CorruptAOF(name, offset, "AA FROM before the first numbered record")
        else:
            return False  # of the time before this was a region
        if reason:
            what = b" ".join(words[:2])
            raise CorruptAOF(name, offset, f"a record of a region, but {shown(what)} is {reason}")
        return True

    def _count_from(self, name: bytes, words: list[bytes], offset: int) -> None:
        try:
            origin, number = counting_of(words)
        except BadVector:
            expected = "an origin and a number behind AA FROM"
            raise CorruptAOF(name, offset, expected) from None
        known = self.region.number_of(origin)
        if number != known + 1:
            raise CorruptAOF(
                name,
                offset,
                f"AA FROM {origin.decode()} {known + 1}, for so many are known, not {number}",
            )
        self._end_count()
        self._origin = origin
        self._next = number
        self._first = number

    def _end_count(self) -> None:
        if self._origin and self._next > self._first:
            self._file.holds(self._origin, self._first, self._next - 1)
            self._first = self._next

    def _read_identity(self, name: bytes, words: list[bytes], offset: int) -> None:
        """Take the identity of the writer of the file."""
        try:
            found = Identity(words)
        except ValueError as error:
            expected = f"AA FILE of a version that is known here, not {error}"
            raise CorruptAOF(name, offset, expected) from None
        region = self.region
        if found.region != region.id or (region.database and found.database != region.database):
            raise foreign(
                name, words, f"this server is region {region.id} of {shown(region.database)}"
            )
        self._is_ours = True
        self.take_up()
        region.database = found.database
        if found.epoch == region.epoch:
            region.generation = found.generation
            region.nonce = found.nonce
        elif found.epoch > region.epoch:
            region.begin_epoch(found.epoch, found.generation, found.nonce)
        else:
            expected = f"an epoch of {region.epoch} at least, not {found.epoch}"
            raise CorruptAOF(name, offset, expected)


class EffectLoader(RecordLoader):
    """Applies the data in the files of a region."""

    def __init__(self, server: Server, region: Region) -> None:
        super().__init__(region)
        self._server: Final = server
        server.data.region = None  # until some data is the region's

    def apply(self, origin: bytes, number: int, words: list[bytes]) -> str:
        try:
            apply_record(self._server, origin, number, words, True)
        except EffectError as error:
            return str(error)
        return ""

    def apply_local(self, words: list[bytes]) -> str:
        try:
            apply_local(self._server, words)
        except EffectError as error:
            return str(error)
        return ""

    def take_up(self) -> None:
        data = self._server.data
        if data.region is not None:
            return
        data.region = self.region
        db = data.dbs[0]
        now_ms = self._server.clock.now_ns // 1_000_000
        for entry in list(db.every()):
            if isinstance(entry.value, Replicated):
                continue
            value = replication().adopted(self.region, entry.value, entry.expire_ms)
            if value is None:
                if not self.region.nonce:
                    self._refuse_other(entry.key)
                continue  # else it was let in here, in the region's own time
            self.wants_base = True
            if isinstance(value, Replicated) and value.exists():
                db.put(entry.key, value, now_ms)
            else:
                db.remove(entry.key)
        if self.wants_base:
            self.region.learned(self.region.origin, 1)

    def _refuse_other(self, key: bytes) -> None:
        if self._server.config.aa_other_keys != b"local":
            raise PersistenceError(
                f"There are keys that are no streams, as {shown(key)} is, and other regions would "
                "not get them. Start with aa-other-keys local to keep them in this region alone, "
                "or take them out."
            )


class RegionStart(EffectLoader):
    """Applies the data in the files of a region, and begins its life."""

    def __init__(self, server: Server, regions: Regions) -> None:
        super().__init__(server, regions.region)
        self._regions: Final = regions

    async def start(self, life: Life | None) -> None:
        self.take_up()
        region = self.region
        region.synced = region.known()
        replication().loaded(self._server)
        files = self._kind(life)
        if self._server.config.replicaof:
            if files == NONE:
                self.begin(begin_empty(self._server.clock.refresh()), {})
            return
        asked, answers = await self._ask()
        now_ms = self._server.clock.refresh()
        try:
            start = decide(region, files, asked, answers, now_ms)
        except Forgotten as reason:
            raise PersistenceError(f"The region cannot start: {reason}.") from reason
        self.begin(start, answers)

    def begin(self, start: Start, answers: dict[int, Answer]) -> None:
        """Take the identity that was decided."""
        region = self.region
        if not start.goes_on:
            begun = region.begun if region.nonce else start.epoch
            nonce = new_nonce(start.refusal, begun)
            region.begin_epoch(start.epoch, start.generation, nonce)
        name = region.origin.decode()
        log.info("Region %d of %s is %s: %s", region.id, shown(region.database), name, start.reason)
        if start.is_taken:
            self._regions.stop()
        elif start.refusal:
            catch_up = CatchUp(region, start.refusal)
            for member, answer in answers.items():
                if not (answer.is_twin or answer.is_taken) and answer.forgotten < 0:
                    catch_up.heard(member, answer.numbers)
            self._regions.catch_up = catch_up
            refuse_writes(self._server, start.refusal)
            log.warning("Writes are refused until all is here that the other regions know")

    def _kind(self, life: Life | None) -> int:
        if life is None:
            if self.wants_base:
                return ADOPTED
            return MOVED if self.region.nonce else NONE
        if not life.is_same_file:
            return MOVED
        always = self._server.config.appendfsync == b"always"
        return WHOLE if life.is_closed or life.is_same_boot or always else CUT

    async def _ask(self) -> tuple[list[int], dict[int, Answer]]:
        """Ask all others, for a configured time. Return their numbers and the answers."""
        regions = self._regions
        clock = self._server.clock
        survey = regions.ask()
        until_ms = clock.monotonic_ms() + self._server.config.aa_start_wait_ms
        try:
            while not survey.look():
                if clock.monotonic_ms() >= until_ms + TWIN_MS * survey.is_taken():
                    break
                await asyncio.sleep(LOOK_S)
                clock.refresh()
            return survey.asked, survey.answers()
        finally:
            survey.end()
