"""A full copy joined with the data here, so that nothing of either is lost; or replacing the data.

The copy is another region's base. It is loaded beside the data, and then joined key by key, in
slices between clients' requests. Meanwhile this region takes no writes, and nothing of others: what
is known does not change. From the first key to the last nothing is read either, because some of a
transaction would be seen in one key, and not in another. At the end all numbers rise at once, and
one record says which file was joined. A start that comes to it does the same again. When the files
have been written anew, the copy is of no use any more.

Where the files here are of an earlier time, the copy replaces the data. Records that are in the log
here, and that the copy does not know, are applied again. Nothing says so in the file: until it has
been written anew, a start finds the old data, and takes another copy.
"""

from __future__ import annotations

import logging
import os
from time import perf_counter_ns
from typing import Final

from headrace.persistence.errors import PersistenceError
from headrace.persistence.forms.table import member_form
from headrace.persistence.snapshot.decode import KEEP_ALL, Decoder, SnapshotLoader
from headrace.regions.exchange.effects import (
    EffectError,
    KeyJoin,
    Words,
    apply_record,
    local,
    region_of,
    replication,
)
from headrace.regions.files.backlog import Batch
from headrace.regions.files.log_file import NUMBERED, Scanner
from headrace.regions.files.region_log import RegionLog
from headrace.regions.knowledge.records import JOINED
from headrace.regions.knowledge.region import Region, region_as
from headrace.server.gate import HALF_JOINED
from headrace.server.state import Server
from headrace.storage.keyspace import Keyspace
from headrace.storage.sharing import AA
from headrace.storage.value import Expiring
from headrace.storage.vectors import Numbers, origin_key, raise_numbers

COPY_PREFIX: Final = b"copy-"
COPY_SUFFIX: Final = b".hrs"
log: Final = logging.getLogger("headrace")
BATCH_BYTES: Final = 64 * 1024


class CopyJoin:
    """One copy on its way into the data.

    ``raised`` has the origins of which the copy knows more, and how much.
    """

    def __init__(self, server: Server, path: bytes, replaces: bool) -> None:
        """Open it; with ``replaces`` it replaces the data. PersistenceError: it cannot be read."""
        self.raised: Numbers = {}
        self.replaces: Final = replaces
        self._server: Final = server
        self._name: Final = os.path.basename(path)
        self._region: Final = region_of(server)
        self._mine: Numbers = {}
        unused = server.data.unused
        self._there: Final = Keyspace(0, [], unused, Expiring())
        self._tombstones: Final = Keyspace(1, [], unused, Expiring())
        decoder = Decoder(
            [self._there, self._tombstones], server.clock.now_ns // 1_000_000, KEEP_ALL
        )
        decoder.accept_region(None)
        self._decoder: Final = decoder
        self._loader: Final = SnapshotLoader(path, decoder)
        self._walk: _Walk | None = None
        self._key_join: KeyJoin | None = None

    def step(self, budget_ns: int) -> bool:
        """Go on for about so long. Return whether more is to be done.

        Raises PersistenceError if the copy cannot be trusted, or belongs to another database.
        """
        until_ns = perf_counter_ns() + budget_ns
        while perf_counter_ns() < until_ns:
            if self._walk is None:
                if not self._loader.step():
                    self._loaded()
            elif not self._go_on(self._walk):
                self._learn()
                return False
        return True

    def close(self) -> None:
        """Close the file."""
        self._loader.close()
        self._server.gate.set(HALF_JOINED, False)

    def record(self) -> Words:
        """Return the record that it was joined."""
        return [AA, JOINED, self._name]

    def _loaded(self) -> None:
        copy = self._copy()
        own = self._region
        if copy.database != own.database or copy.id == own.id:
            raise PersistenceError("the copy belongs to another database, or to this region")
        if copy.known().get(own.origin, 0) > own.count:
            raise PersistenceError("the copy knows more of this region than it does itself")
        gate = self._server.gate
        gate.finish_work()  # it would see a part of the copy
        gate.set(HALF_JOINED, True)
        self._mine = own.known()
        data = self._server.data
        self._walk = _Walk(self._there, self._tombstones, data.dbs[0], data.tombstones)

    def _copy(self) -> Region:
        """Return the region of the copy. Raises PersistenceError if the copy does not say."""
        found = self._decoder.region
        if found is None:
            raise PersistenceError("the copy does not say what its region knew")
        return region_as(found)

    def _go_on(self, walk: _Walk) -> bool:
        if self._key_join is not None:
            if not self._key_join():
                self._key_join = None
            return True
        if not walk.next():
            return False
        theirs = self._copy().known()
        value = walk.value
        if walk.is_tombstone:
            value = member_form().from_tombstone(self._region, value)
        if self.replaces:
            replication().replace(self._server, walk.key, value, theirs)
        else:
            self._key_join = replication().join(self._server, walk.key, value, self._mine, theirs)
        return True

    def lost(self) -> Numbers:
        """Return what was known here and is not known to a copy that has replaced it."""
        theirs = self._copy().known()
        mine = self._mine
        return {origin: mine[origin] for origin in mine if mine[origin] > theirs.get(origin, 0)}

    def _learn(self) -> None:
        own = self._region
        copy = self._copy()
        known = own.known()
        if self.replaces:
            self._mine = known
            known = copy.known()
            own.forget_promises()
            own.numbers = {origin: known[origin] for origin in known if origin != own.origin}
            own.count = known.get(own.origin, 0)
            self.raised = known
        raise_numbers(known, copy.known())
        for origin in sorted(known, key=origin_key):
            if known[origin] > own.number_of(origin):
                self.raised[origin] = known[origin]
                own.learned(origin, known[origin])
        own.joined |= {member for member in copy.members() if member != own.id}
        for member, epoch in copy.forgotten.items():
            own.forget(member, epoch)
        for member, beat in copy.beats.items():
            mine = own.beats.get(member)
            later = mine is None or (mine.epoch, mine.promise_ms) < (beat.epoch, beat.promise_ms)
            if later and member != own.id:
                own.note_beat(member, beat)


class _Walk:
    """Goes through the keys of both sides, and through each once.

    The keys of the copy are taken out of it. Those that are here alone come last, from the last
    slot to the first: what is joined meanwhile may bring others, but those have been met.

    Attributes:
        key, value: the current key, and what the copy has of it, or None.
        is_tombstone: that lay in the tombstones of the copy.
    """

    def __init__(
        self, there: Keyspace, tombstones: Keyspace, mine: Keyspace, my_tombstones: Keyspace
    ) -> None:
        self.key = b""
        self.value: object | None = None
        self.is_tombstone = False
        self._theirs: Final = [there, tombstones]
        self._mine: Final = [mine, my_tombstones]
        self._met: Final[set[bytes]] = set()
        self._position = len(mine)

    def next(self) -> bool:
        while self._theirs:
            theirs = self._theirs[0]
            if len(theirs):
                self.key = theirs.at(len(theirs) - 1).key
                self.value = theirs.remove(self.key)
                self.is_tombstone = len(self._theirs) == 1
                self._met.add(self.key)
                return True
            self._theirs.pop(0)
        while self._mine:
            mine = self._mine[0]
            self._position = min(self._position, len(mine))
            while self._position > 0:
                self._position -= 1
                self.key = mine.at(self._position).key
                if self.key not in self._met:
                    self.value = None
                    self._met.add(self.key)
                    return True
            self._mine.pop(0)
            self._position = len(self._mine[0]) if self._mine else 0
        return False


@local(JOINED)
def join_again(server: Server, words: Words) -> None:
    """Apply ``AA JOINED file``: a file being loaded says that a copy was joined."""
    if len(words) != 3 or not is_copy(words[2]):
        raise EffectError("JOINED has a file")
    config = server.config
    folder = os.path.join(os.path.abspath(config.dir), config.appenddirname)
    try:
        join = CopyJoin(server, os.path.join(folder, words[2]), False)
    except PersistenceError as error:
        raise EffectError(str(error)) from None
    try:
        while join.step(1_000_000_000):
            pass
    except PersistenceError as error:
        raise EffectError(str(error)) from None
    finally:
        join.close()


def is_copy(name: bytes) -> bool:
    """Return whether a file is named as copies are, and lies in the folder of the files."""
    return name.startswith(COPY_PREFIX) and name.endswith(COPY_SUFFIX) and b"/" not in name


class LogReplay:
    """Applies records in a log beyond what is known, up to ``wanted`` of each origin."""

    def __init__(self, server: Server, kept: RegionLog, wanted: Numbers) -> None:
        self._server: Final = server
        self._kept: Final = kept
        self._wanted: Final = wanted
        self._origins: Final = sorted(wanted, key=origin_key)

    def step(self, budget_ns: int) -> bool:
        """Go on for about so long. Return whether more is to be done."""
        until_ns = perf_counter_ns() + budget_ns
        region = region_of(self._server)
        while self._origins:
            origin = self._origins[-1]
            number = region.number_of(origin)
            if number >= self._wanted[origin] or not self._apply_some(origin, number):
                self._origins.pop()
            if perf_counter_ns() >= until_ns:
                break
        return bool(self._origins)

    def _apply_some(self, origin: bytes, number: int) -> bool:
        """Apply the next records of an origin. Return False where that cannot be."""
        try:
            batch = self._kept.read(origin, number, BATCH_BYTES)
            if batch is not None:
                self._apply(batch, number)
                return True
            reason = "they are not in the log any more"
        except (PersistenceError, EffectError) as error:
            reason = str(error)
        log.warning(
            "Records %d to %d of %s are lost, which only this region had: %s",
            number + 1,
            self._wanted[origin],
            origin.decode(),
            reason,
        )
        return False

    def _apply(self, batch: Batch, known: int) -> None:
        scanner = Scanner(batch.payload)
        number = batch.first - 1
        at = 0
        while at < len(batch.payload):
            end = int(scanner.scan(at))
            if scanner.kind == NUMBERED:
                number += 1
                if number > known:
                    words = scanner.words(at)
                    apply_record(self._server, batch.origin, number, words, True)
            at = end
