"""What a server is to others that hold the same data: a master, a replica, or alone.

The data has an ID, and its changes are a stream of bytes, in which an offset says how far somebody
has come. What does the work is imported with the first replica or master: many servers never have
one (``server.replication``).
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable
from typing import Final

from mypy_extensions import trait

from headrace.persistence.log import StreamPlace
from headrace.server.clients.session import Session
from headrace.server.waiting import Parked, Sleeper

NO_ID: Final = b"0" * 40
NO_OFFSET: Final = -1


def new_id() -> bytes:
    """An ID that no other data has."""
    return os.urandom(20).hex().encode()


class BacklogFigures:
    """What INFO shows of the latest part of the stream.

    Attributes:
        first: the offset of the first byte that is kept; size: how many are.
    """

    def __init__(self, first: int, size: int) -> None:
        self.first: Final = first
        self.size: Final = size


# What FAILOVER is doing, as INFO shows it.
NO_FAILOVER: Final = b"no-failover"
FAILOVER_WAITS: Final = b"waiting-for-sync"
FAILOVER_UNDER_WAY: Final = b"failover-in-progress"


class Failover:
    """FAILOVER: this server and one of its replicas change their roles."""

    @abstractmethod
    def begin(self, host: bytes, port: int, timeout_ms: int, is_forced: bool) -> None:
        """Begin to wait for a replica.

        Args:
            host: of the one that is to be the master; empty for any.
            timeout_ms: how long to wait; 0 is without an end.
            is_forced: go on then, even if it lacks something.

        Raises:
            CommandError: there is no such replica, or it is none to do that with.
        """

    @abstractmethod
    def abort(self, reason: str) -> None:
        """Be the master, as before."""

    @abstractmethod
    def succeed(self) -> None:
        """The other one is the master."""

    @abstractmethod
    def tick(self, now_ms: int) -> None:
        """Look whether the replica has all."""


class Replicas:
    """Those that copy from this server."""

    @abstractmethod
    def attach(self, session: Session, data_id: bytes, offset: int) -> None:
        """Let a client be a replica, which has the data up to there, or nothing."""

    @abstractmethod
    def acknowledge(self, session: Session, offset: int, on_disk: int) -> None:
        """A replica tells how far it is."""

    @abstractmethod
    def end_offset(self) -> int:
        """Return how long the stream is."""

    @abstractmethod
    def count(self) -> int:
        """Return how many there are."""

    @abstractmethod
    def good(self) -> int:
        """Return how many have reported of late how far they are; see ``min-replicas-max-lag``."""

    @abstractmethod
    def info(self) -> list[bytes]:
        """A line of INFO for each."""

    @abstractmethod
    def rows(self) -> list[object]:
        """An element of the reply of ROLE for each."""

    @abstractmethod
    def backlog(self) -> BacklogFigures | None:
        """Return what is kept of the stream; None where nothing is."""

    @abstractmethod
    def place(self) -> StreamPlace | None:
        """Return where in the stream the data is now; None where there is no stream."""

    @abstractmethod
    def resume(self, place: StreamPlace, follows: bool) -> None:
        """The data is what it was there, before the process ended.

        Args:
            follows: it goes on as the data of a master; else it is the master's, under another ID.
        """

    @abstractmethod
    def backlog_bytes(self) -> int:
        """Return how much is kept of the stream."""

    @abstractmethod
    def unread_bytes(self) -> int:
        """Return how much waits for the slowest replica; what it shares with others counts once."""

    @abstractmethod
    def feed(self, db: int, record: list[bytes]) -> None:
        """Let them have what is no change of the data, and so stands in no file."""

    @abstractmethod
    def acknowledged(self, offset: int, on_disk: bool) -> int:
        """Return how many have the stream up to there, or have it on their disk."""

    @abstractmethod
    def lagging(self, offset: int) -> int:
        """Return how many of those that tell how far they are lack something up to there."""

    @abstractmethod
    def ask_for_acks(self) -> None:
        """Let all tell now how far they are."""

    @abstractmethod
    def wait_for(
        self, client: Sleeper, parked: Parked, wanted: int, local: int, offset: int
    ) -> None:
        """Answer a client when so many have the stream up to there.

        Args:
            local: of WAITAOF: whether it waits for this server's disk, too; below 0 for WAIT.
        """

    @abstractmethod
    def synced(self, client: Sleeper) -> None:
        """What a client of WAITAOF waits for is on this server's disk."""

    @abstractmethod
    def tick(self, now_ms: int) -> None:
        """Do what is to be done from time to time."""

    @abstractmethod
    def flush(self) -> None:
        """Hand all that has been recorded to the connections."""

    @abstractmethod
    def settings_changed(self) -> str | None:
        """A parameter has another value."""


@trait
class Relay:
    """The stream of this server, while it is that of the master."""

    @abstractmethod
    def stop_recording(self) -> bool:
        """Take no more records; whether the stream says all that the data is."""

    @abstractmethod
    def relay(self, wire: bytes) -> None:
        """Take what comes next, as the master has sent it."""

    @abstractmethod
    def go_on(self, data_id: bytes) -> None:
        """The data has this ID from here on."""

    @abstractmethod
    def stop_relaying(self) -> None:
        """All data is about to be other data: the replicas have to begin anew."""

    @abstractmethod
    def begin_at(self, data_id: bytes, offset: int) -> None:
        """The data is this, up to this offset."""

    @abstractmethod
    def lead(self, knows_stream: bool) -> None:
        """Record again, under an ID of our own.

        Args:
            knows_stream: whether the stream says all that the data is.
        """


class Following:
    """What a server does that follows another one.

    Attributes:
        is_on: it follows one; host, port: which.
    """

    def __init__(self) -> None:
        self.is_on = False
        self.host = b""
        self.port = 0

    def is_at(self, host: bytes, port: int) -> bool:
        """Return whether that is the one that is followed."""
        return self.is_on and self.host.lower() == host.lower() and self.port == port

    @abstractmethod
    def follow(self, host: bytes, port: int, db: int = 0) -> None:
        """Follow this one from now on.

        Args:
            db: the number of the database that the stream of the data is in.
        """

    @abstractmethod
    def lead(self) -> None:
        """Follow nobody any more, with the data that there is."""

    @abstractmethod
    def stop(self) -> None:
        """Close the link, because the process ends."""

    @abstractmethod
    def tick(self, now_ms: int) -> None:
        """Do what is to be done from time to time."""

    @abstractmethod
    def link_is_up(self) -> bool:
        """Return whether what the master does comes at once."""

    @abstractmethod
    def stream_db(self) -> int:
        """The number of the database that the stream is in."""

    @abstractmethod
    def row(self) -> list[object]:
        """The reply of ROLE."""

    @abstractmethod
    def info(self) -> list[bytes]:
        """Lines of INFO."""


class Role:
    """What this server is.

    Attributes:
        id: of the data; its changes since the stream began are the same wherever it is that.
        second_id: what it was before, up to ``second_offset``.
        replicas: who copies from here; None before the first one.
        following: what it does as a replica; None where it never was one.
        resumed_db: the database that the stream was in where the last process ended.
        failover: what FAILOVER is doing; failover_job: what does it; None before the first one.
        make_replicas, make_following, make_failover: make that ready.
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
        self.make_failover: Callable[[], Failover] | None = None
        self.make_replicas: Callable[[], Replicas] | None = None
        self.make_following: Callable[[], Following] | None = None

    def ready_replicas(self) -> Replicas:
        """Return what replicas are sent from, made ready by the first of them."""
        replicas = self.replicas
        if replicas is None:
            assert self.make_replicas is not None
            replicas = self.make_replicas()
            self.replicas = replicas
        return replicas

    def ready_following(self) -> Following:
        """Return what makes a replica, made ready when that is first wanted."""
        following = self.following
        if following is None:
            assert self.make_following is not None
            following = self.make_following()
            self.following = following
        return following

    def ready_failover(self) -> Failover:
        """Return what changes the roles, made ready when that is first wanted."""
        failover = self.failover_job
        if failover is None:
            assert self.make_failover is not None
            failover = self.make_failover()
            self.failover_job = failover
        return failover

    @property
    def follows(self) -> bool:
        """Return whether this server is a replica."""
        return self.following is not None and self.following.is_on

    def stream_db(self) -> int:
        """The number of the database that the stream of a master is in.

        It is 0 where there is no master: a stream of our own begins by saying its database.
        """
        following = self.following
        return following.stream_db() if following is not None and following.is_on else 0

    def place(self) -> StreamPlace | None:
        """Return where in the stream the data is now; None where there is no stream."""
        return None if self.replicas is None else self.replicas.place()

    def backlog_bytes(self) -> int:
        """Return how much is kept of the stream."""
        return 0 if self.replicas is None else self.replicas.backlog_bytes()

    def unread_bytes(self) -> int:
        """Return how much of it waits for replicas."""
        return 0 if self.replicas is None else self.replicas.unread_bytes()

    def offset(self) -> int:
        """Return how long the stream is."""
        return 0 if self.replicas is None else self.replicas.end_offset()

    def become(self, data_id: bytes) -> None:
        """Be the data of another server."""
        self.id = data_id
        self.second_id = NO_ID
        self.second_offset = NO_OFFSET

    def renamed(self, data_id: bytes, offset: int) -> None:
        """The data has another ID from this byte of the stream on."""
        self.second_id = self.id
        self.second_offset = offset
        self.id = data_id

    def change_id(self) -> None:
        """Be other data from here on, with nothing in common with what was before."""
        self.id = new_id()
        self.second_id = NO_ID
        self.second_offset = NO_OFFSET
