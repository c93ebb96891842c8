"""The unified log: everything that is said to the server of the stream."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self
from uuid import UUID, uuid4

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from rocket_rides.database import StagedRecord
from rocket_rides.records import START, Entry, EntryID

# How long the server remembers what it was given: the most there is. A streamer that died between
# sending and deleting has a day to come back.
REMEMBER_S = 86_400

# The server remembers at least so many records of each producer, so every so many records come
# under a producer id of their own, and none is forgotten for the sake of another.
RECORDS_PER_PRODUCER = 100


class Facts(NamedTuple):
    """What the stream says of itself."""

    length: int
    entries_added: int
    last_entry_id: EntryID


class GroupFacts(NamedTuple):
    """What the stream says of a group."""

    pending: int
    lag: int
    done: EntryID
    """Everything up to this entry was delivered and acknowledged."""


NOTHING = Facts(0, 0, START)


def client(url: str) -> Any:
    """A connection to the server.

    It tries nothing twice by itself: what to do after a failure is the programs' to say. (redis-py
    types replies as those of its blocking or of its asynchronous client; hence ``Any``.)
    """
    return redis.Redis.from_url(
        url,
        decode_responses=True,
        encoding_errors="replace",  # whatever somebody may have put into the log, it can be read
        socket_timeout=10,
        retry=Retry(NoBackoff(), 0),
    )


class Log:
    """One stream, as producers and consumers of this example use it."""

    def __init__(self, url: str, stream: str) -> None:
        self.stream = stream
        self.client = client(url)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connection."""
        self.client.close()

    # Producing

    def knows_idmp(self) -> bool:
        """Return whether the server can recognize what it was given before."""
        try:
            self.client.execute_command("XCFGSET", self.stream, "IDMP-DURATION", REMEMBER_S)
        except redis.ResponseError as error:
            return "unknown command" not in str(error)  # no such stream: that is no matter
        return True

    def open(self, *, remember: bool) -> None:
        """Make the stream where there is none; let it remember what it is given."""
        with self.client.pipeline(transaction=True) as together:
            # Only a group can bring an empty stream into being; how long to remember is set before
            # the first entry comes, because a change forgets what was there.
            nobody = str(uuid4())
            together.xgroup_create(self.stream, nobody, mkstream=True)
            if remember:
                together.execute_command("XCFGSET", self.stream, "IDMP-DURATION", REMEMBER_S)
            together.xgroup_destroy(self.stream, nobody)
            together.execute()

    def append(self, records: Iterable[StagedRecord], producer: UUID | None) -> list[EntryID]:
        """Append records, all or none.

        Args:
            producer: the origin of the records. The stream then holds each of them once, however
                often it is sent; without it, as often as it is sent.

        Returns: the ID of the entry of each record, be it new or there already.
        """
        with self.client.pipeline(transaction=True) as together:
            for record in records:
                fields = {
                    "record": str(record.id),
                    "action": record.action,
                    "object": record.object,
                    **record.data,
                }
                if producer is None:
                    together.xadd(self.stream, fields)
                else:
                    chunk = record.id // RECORDS_PER_PRODUCER
                    sent_as = (f"{producer}:{chunk}", str(record.id).encode())
                    together.xadd(self.stream, fields, idmp=sent_as)
            return [EntryID.parse(entry_id) for entry_id in together.execute()]

    def trim(self, keep: int, read_by_all: EntryID) -> int:
        """Remove the oldest entries beyond ``keep`` that nobody needs any more.

        Args:
            read_by_all: the slowest checkpoint. Entries after it stay, however many they are, and
                so do those that some group has not acknowledged.

        Returns: how many were removed; whole blocks go at a time.
        """
        too_many = self.facts().length - keep
        if too_many <= 0:
            return 0
        removed: int = self.client.xtrim(
            self.stream,
            minid=f"{read_by_all.ms}-{read_by_all.seq + 1}",
            approximate=True,
            limit=too_many,
            ref_policy="ACKED",
        )
        return removed

    # Consuming

    def read_after(self, last: EntryID, most: int) -> tuple[list[Entry], Facts]:
        """Up to ``most`` entries after ``last``, and the state of the stream at that moment."""
        with self.client.pipeline(transaction=True) as together:
            together.xrange(self.stream, min=f"({last}", count=most)
            together.xinfo_stream(self.stream)
            entries, facts = together.execute(raise_on_error=False)
        if isinstance(entries, Exception):
            raise entries
        return _entries(entries), _facts(facts)

    def wait_after(self, last: EntryID, timeout_ms: int) -> None:
        """Return when there is an entry after ``last``, or at the end of the time."""
        self.client.xread({self.stream: str(last)}, count=1, block=timeout_ms)

    # Consuming as one of a group

    def join(self, group: str) -> None:
        """Make sure that the group is there; it starts with the first entry that is."""
        try:
            self.client.xgroup_create(self.stream, group, id="0", mkstream=True)
        except redis.ResponseError as error:
            if not str(error).startswith("BUSYGROUP"):
                raise

    def held(self, group: str, member: str, after: EntryID, most: int) -> list[Entry]:
        """Return what a member was given and has not acknowledged."""
        return self._read_group(group, member, str(after), count=most)

    def take(
        self, group: str, member: str, most: int, timeout_ms: int, dead_after_ms: int
    ) -> list[Entry]:
        """New entries, after those that another member left lying for ``dead_after_ms``."""
        return self._read_group(
            group, member, ">", count=most, block=timeout_ms, claim_min_idle_time=dead_after_ms
        )

    def _read_group(self, group: str, member: str, after: str, **options: int) -> list[Entry]:
        reply = self.client.xreadgroup(group, member, {self.stream: after}, **options)
        return _entries(reply[0][1]) if reply else []

    def acknowledge(self, group: str, entry_ids: Iterable[EntryID]) -> None:
        """Say that entries are done."""
        self.client.xack(self.stream, group, *map(str, entry_ids))

    def group_facts(self, group: str) -> GroupFacts | None:
        """Return how far a group is; None when there is no such group."""
        with self.client.pipeline(transaction=True) as together:
            together.xinfo_groups(self.stream)
            together.xpending(self.stream, group)
            groups, pending = together.execute(raise_on_error=False)
        for error in (groups, pending):
            if isinstance(error, redis.ResponseError):
                return None
            if isinstance(error, Exception):
                raise error
        [about] = [about for about in groups if about["name"] == group]
        done = EntryID.parse(about["last-delivered-id"])
        if pending["pending"]:
            done = _before(EntryID.parse(pending["min"]))
        return GroupFacts(pending["pending"], about["lag"] or 0, done)

    # Watching

    def facts(self) -> Facts:
        """Return what the stream says of itself; all zero where there is none."""
        with self.client.pipeline(transaction=False) as one:
            one.xinfo_stream(self.stream)
            return _facts(one.execute(raise_on_error=False)[0])

    def all(self, page: int = 1000) -> Iterable[Entry]:
        """Every entry that is there."""
        last = START
        while True:
            entries, _ = self.read_after(last, page)
            yield from entries
            if len(entries) < page:
                return
            last = entries[-1].id


def _entries(reply: Sequence[Sequence[Any]]) -> list[Entry]:
    # Entries read with CLAIM have two more items, for how long and how often they were pending.
    found = []
    for entry_id, fields, *_ in reply:
        known: Mapping[str, str] | None = fields or None
        found.append(Entry(EntryID.parse(entry_id), known))
    return found


def _facts(reply: Any) -> Facts:
    if isinstance(reply, redis.ResponseError):  # no such key
        return NOTHING
    if isinstance(reply, Exception):
        raise reply
    return Facts(reply["length"], reply["entries-added"], EntryID.parse(reply["last-generated-id"]))


def _before(entry_id: EntryID) -> EntryID:
    if entry_id.seq:
        return EntryID(entry_id.ms, entry_id.seq - 1)
    return EntryID(entry_id.ms - 1, 2**63 - 1)
