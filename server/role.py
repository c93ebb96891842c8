"""The role of a server among others that hold the same data: a master, a replica, or alone.

The data has an ID, and its changes are a stream of bytes; an offset in it says how far a server has
come. The code behind these classes, ``server.replication``, is imported with the first replica or
master, because many servers never have one.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable
from typing import Final

from headrace.persistence.log import StreamPlace
from headrace.server.clients.session import Session
from headrace.server.waiting import Parked, Sleeper

NO_ID: Final = b"0" * 40
NO_OFFSET: Final = -1


def new_id() -> bytes:
    """Return an ID that no other data has."""
    return os.urandom(20).hex().encode()


# The states of FAILOVER, as INFO shows them.
NO_FAILOVER: Final = b"no-failover"
FAILOVER_WAITS: Final = b"waiting-for-sync"
FAILOVER_UNDER_WAY: Final = b"failover-in-progress"
HANDS_OVER: Final = b"handing-over"  # writes wait, because a replica is about to be a master
PROMOTED: Final = b"PROMOTED"  # what such a replica adds to its REPLCONF ACK, and 1 for a sentinel
PATIENCE_MS: Final = 1000  # for which it waits for a word of the master


class Failover:
    """FAILOVER: this server and one of its replicas change their roles."""

    @abstractmethod
    def begin(self, host: bytes, port: int, timeout_ms: int, is_forced: bool) -> None:
        """Begin to wait for the replica ``host``, or for any if that is empty.

        ``timeout_ms`` is 0 without an end. ``is_forced``: go on then, even if it lacks something.
        Raises CommandError: there is no such replica, or it cannot become the master.
        """

    @abstractmethod
    def abort(self, reason: str) -> None:
        """Be the master, as before."""

    @abstractmethod
    def hand_over(self, heir: Session, may: bool, by_sentinel: bool) -> None:
        """Let a replica, if it may, have all there is: it has been told to be a master."""

    @abstractmethod
    def succeed(self) -> None:
        """Note that the other server is the master."""

    @abstractmethod
    def tick(self, now_ms: int) -> None:
        """Check whether the replica has everything."""


class Replicas:
    """The servers that copy from this one."""

    @abstractmethod
    def attach(self, session: Session, data_id: bytes, offset: int) -> None:
        """Make a client a replica; it has the data up to ``offset``, or nothing."""

    @abstractmethod
    def acknowledge(self, session: Session, offset: int, on_disk: int) -> None:
        """Note how far a replica is."""

    @abstractmethod
    def end_offset(self) -> int:
        """Return the length of the stream."""

    @abstractmethod
    def count(self) -> int:
        """Return how many there are."""

    @abstractmethod
    def good(self) -> int:
        """Return how many have reported of late how far they are; see ``min-replicas-max-lag``."""

    @abstractmethod
    def info(self) -> list[bytes]:
        """Return a line of INFO for each."""

    @abstractmethod
    def rows(self) -> list[object]:
        """Return an element of the reply of ROLE for each."""

    @abstractmethod
    def backlog(self) -> tuple[int, int] | None:
        """Return the first offset that is kept, and how many bytes are; None where none is."""

    @abstractmethod
    def place(self) -> StreamPlace | None:
        """Return the data's present place in the stream; None where there is no stream."""

    @abstractmethod
    def resume(self, place: StreamPlace, follows: bool) -> None:
        """Go on with the data of a place in the stream, which was there before the process ended.

        ``follows``: as the data of a master; else it is the master's, under another ID.
        """

    @abstractmethod
    def backlog_bytes(self) -> int:
        """Return how many bytes of the stream are kept."""

    @abstractmethod
    def unread_bytes(self) -> int:
        """Return how much waits for the slowest replica; what it shares with others counts once."""

    @abstractmethod
    def begin_anew(self) -> None:
        """Have all copy the data anew: it has changed in a way that the stream does not say."""

    @abstractmethod
    def feed(self, db: int, record: list[bytes]) -> None:
        """Send replicas a record that changes no data, and so stands in no file."""

    @abstractmethod
    def acknowledged(self, offset: int, on_disk: bool) -> int:
        """Return how many have the stream up to there, or have it on their disk."""

    @abstractmethod
    def lagging(self, offset: int) -> int:
        """Return how many of those that report their offset lack something up to this one."""

    @abstractmethod
    def ask_for_acks(self) -> None:
        """Ask all to report now how far they are."""

    @abstractmethod
    def wait_for(
        self, client: Sleeper, parked: Parked, wanted: int, local: int, offset: int
    ) -> None:
        """Answer a client when so many replicas have the stream up to ``offset``.

        ``local``: of WAITAOF: whether it waits for this server's disk, too; below 0 for WAIT.
        """

    @abstractmethod
    def synced(self, client: Sleeper) -> None:
        """Note that a client of WAITAOF has its writes on this server's disk."""

    @abstractmethod
    def tick(self, now_ms: int) -> None:
        """Do the periodic work."""

    @abstractmethod
    def flush(self) -> None:
        """Hand all that has been recorded to the connections."""

    @abstractmethod
    def settings_changed(self) -> str | None:
        """Apply the new value of a parameter."""


class Following:
    """The replica's side of replication; ``is_on``: it follows ``host`` and ``port``."""

    def __init__(self) -> None:
        self.is_on = False
        self.host = b""
        self.port = 0

    def is_at(self, host: bytes, port: int) -> bool:
        """Return whether that is the server that is followed."""
        return self.is_on and self.host.lower() == host.lower() and self.port == port

    @abstractmethod
    def follow(self, host: bytes, port: int, db: int = 0, is_kept: bool = False) -> None:
        """Follow this server from now on; its stream goes on in database ``db``.

        ``is_kept``: also after a restart, by the configuration file.
        """

    @abstractmethod
    def lead(self, has_all: bool = False) -> None:
        """Follow no other server any more, with the data that there is.

        ``has_all``: the master has said that nothing of its own is missing.
        """

    @abstractmethod
    def promote(self, by_sentinel: bool) -> None:
        """As ``lead``, but with all that a master of ours has; it may follow this one then."""

    @abstractmethod
    def stop(self) -> None:
        """Close the link, because the process ends."""

    @abstractmethod
    def tick(self, now_ms: int) -> None:
        """Do the periodic work."""

    @abstractmethod
    def link_is_up(self) -> bool:
        """Return whether the master's changes arrive at once."""

    @abstractmethod
    def stream_db(self) -> int:
        """Return the number of the database that the stream is in."""

    @abstractmethod
    def row(self) -> list[object]:
        """Return the reply of ROLE."""

    @abstractmethod
    def info(self) -> list[bytes]:
        """Return lines of INFO."""


class Role:
    """The role of this server.

    Attributes:
        id: of the data; its changes since the stream began are the same wherever it is that.
        second_id: what it was before, up to ``second_offset``; failover: the state of FAILOVER.
        replicas, following: None until ``make_...`` makes them, when first wanted; failover_job: as
            ``replicas``.
        resumed_db: the database that the stream was in where the last process ended.
    """

    def __init__(self) -> None:
        self.id = new_id()
        self.second_id = NO_ID
        self.second_offset = NO_OFFSET
        self.replicas: Replicas | None = None
        self.following: Following | None = None
        self.resumed_db = 0
        self.failover = NO_FAILOVER
        self.failover_job: Failover | None = None
        self.make_replicas: Callable[[], Replicas] | None = None
        self.make_following: Callable[[], Following] | None = None

    def ready_replicas(self) -> Replicas:
        """Return the replicas' part, which is made with the first replica."""
        if self.replicas is None:
            assert self.make_replicas is not None
            self.replicas = self.make_replicas()
        return self.replicas

    def ready_following(self) -> Following:
        """Return the replica's side, which is made when it is first wanted."""
        if self.following is None:
            assert self.make_following is not None
            self.following = self.make_following()
        return self.following

    def ready_failover(self) -> Failover:
        """Return the failover part, which is made with that of the replicas."""
        self.ready_replicas()
        assert self.failover_job is not None
        return self.failover_job

    @property
    def follows(self) -> bool:
        """Return whether this server is a replica."""
        return self.following is not None and self.following.is_on

    def stream_db(self) -> int:
        """Return the number of the database that the stream of a master is in.

        It is 0 where there is no master: a stream of our own begins by saying its database.
        """
        following = self.following
        return following.stream_db() if following is not None and following.is_on else 0

    def place(self) -> StreamPlace | None:
        """Return the data's present place in the stream; None where there is no stream."""
        return None if self.replicas is None else self.replicas.place()

    def backlog_bytes(self) -> int:
        """Return how many bytes of the stream are kept."""
        return 0 if self.replicas is None else self.replicas.backlog_bytes()

    def offset(self) -> int:
        """Return the length of the stream."""
        return 0 if self.replicas is None else self.replicas.end_offset()

    def become(self, data_id: bytes) -> None:
        """Take over the ID of another server's data."""
        self.id = data_id
        self.second_id = NO_ID
        self.second_offset = NO_OFFSET

    def renamed(self, data_id: bytes, offset: int) -> None:
        """Give the data another ID from this byte of the stream on."""
        self.second_id = self.id
        self.second_offset = offset
        self.id = data_id

    def change_id(self) -> None:
        """Give the data a new ID, because it has nothing in common with what was before."""
        self.become(new_id())
