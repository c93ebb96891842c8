"""The steps in which commands on streams differ: between regions, and where there are policies.

The wing of regions implements the first, and registers itself. A stream that regions share is
``Replicated``, and its groups have ``places``. The wing of policies implements the others, and a
group that has policies has ``rules``.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

from headrace.protocol.packing import Packer
from headrace.server.commands.streams.args import AddOptions, ReadOptions, TrimOptions
from headrace.server.dispatch.call import Call
from headrace.server.state import Server
from headrace.server.waiting import Parked
from headrace.storage.stream.delivery import PendingEntry
from headrace.storage.stream.groups import Consumer, Group
from headrace.storage.stream.idmp import Iid
from headrace.storage.stream.part import Part
from headrace.storage.stream.pel import Nack
from headrace.storage.stream.stream import Stream

ID = tuple[int, int]
LANE_FIGURES: Final = 2  # pairs that XINFO STREAM has beside those that every stream has


class SharedStreams:
    """The steps of stream commands that run differently in a region."""

    # Entries

    @abstractmethod
    def new(self, call: Call, key: bytes) -> Stream:
        """Return the new stream of XADD and XGROUP CREATE where there is no key."""

    @abstractmethod
    def finds_seq(self, call: Call, word: bytes, next_seq: bool) -> bool:
        """Return whether to find the sequence of an XADD's ID, as ``next_seq`` asks for.

        Raises: CommandError, where the region takes no full IDs.
        """

    @abstractmethod
    def is_manual(self, call: Call, stream: Stream, ms: int) -> bool:
        """Return whether the milliseconds of an XADD's ID may be below what was promised.

        Raises: CommandError, where there are IDs in the stream that were made here.
        """

    @abstractmethod
    def added(
        self,
        call: Call,
        stream: Stream,
        at: int,
        options: AddOptions | None,
        pid: bytes,
        iid: Iid,
        manual: bool,
        created: bool,
    ) -> None:
        """Report the entry that XADD has just added, and trim as its options say.

        Args:
            at: where its ID stands.
            pid, iid: the message that it stands for; an empty pid is none.
            manual: its ID is its caller's; see ``is_manual``.
        """

    @abstractmethod
    def trim(self, call: Call, key: bytes, stream: Stream, options: TrimOptions) -> int:
        """Trim a stream that is there; return how many entries were removed."""

    @abstractmethod
    def delete(self, call: Call, key: bytes, stream: Stream, ids: list[ID]) -> int:
        """Run XDEL on a stream that is there; return how many entries had one of these IDs."""

    @abstractmethod
    def delete_by_mode(
        self, call: Call, key: bytes, stream: Stream, mode: int, ids: list[ID]
    ) -> object:
        """Run XDELEX on a stream that is there; return the reply."""

    @abstractmethod
    def set_id(self, call: Call, stream: Stream, new_id: ID) -> object:
        """Run XSETID on a stream that is there; return the reply.

        Raises: CommandError, where the ID is below the last one, or comes with options.
        """

    @abstractmethod
    def set_limits(
        self, call: Call, key: bytes, stream: Stream, duration_s: int, maxsize: int
    ) -> None:
        """Set the limits of the IDMP map of a stream that is there."""

    # Groups

    @abstractmethod
    def create_group(self, call: Call, stream: Stream, position: ID, created: bool) -> object:
        """Run XGROUP CREATE for a new group, from ``position`` or the end on; return the reply."""

    @abstractmethod
    def destroy_group(self, call: Call, stream: Stream) -> int:
        """Run XGROUP DESTROY; return 1, or 0 where there is no such group."""

    @abstractmethod
    def set_mode(self, call: Call, stream: Stream, name: bytes, most: int) -> None:
        """Run XGROUP SETMODE on a group that is there; ``most`` limits its pending entries."""

    @abstractmethod
    def set_place(self, stream: Stream, group: Group, position: ID | None) -> None:
        """Run XGROUP SETID: read on after an ID, or with None behind all entries that are here."""

    @abstractmethod
    def place_record(self, key: bytes, group: Group, parts: list[Part]) -> list[bytes]:
        """Return the record of a group's position after these parts were given to it."""

    @abstractmethod
    def release_held(
        self, call: Call, key: bytes, stream: Stream, group: Group, consumer: bytes
    ) -> None:
        """Release all that a consumer holds in this region alone, before it is deleted."""

    @abstractmethod
    def note_acknowledged(self, call: Call, key: bytes, stream: object, group: Group) -> None:
        """Let other regions know, now or soon, that something was acknowledged."""

    @abstractmethod
    def ack_and_delete(
        self, call: Call, key: bytes, stream: Stream, group: Group, mode: int, ids: list[ID]
    ) -> object:
        """Run XACKDEL on a group that is there; return the reply."""

    # XREAD STABLE

    @abstractmethod
    def bound_of(self, call: Call, stream: Stream | None) -> ID:
        """Return the ID up to which a stream may be read; (0, 0) while that is not known.

        Raises: CommandError, where callers have given it IDs that may come late.
        """

    @abstractmethod
    def first_after(self, text: bytes, stream: Stream | None, bound: ID) -> ID:
        """Return the ID after which to read: an ID, ``$`` (the bound) or ``+`` (the last)."""

    @abstractmethod
    def parts_up_to(
        self, stream: Stream, after: ID, bound: ID, count: int, most_bytes: int
    ) -> list[Part]:
        """Return the parts after an ID, up to a bound. See ``EntryLog.parts``."""

    @abstractmethod
    def wait_for_stable(
        self, call: Call, options: ReadOptions, keys: list[bytes], after: list[ID], bounds: list[ID]
    ) -> Parked:
        """Wait until more is stable; resolve ``$`` now, if its ID is known."""

    # XINFO

    @abstractmethod
    def add_lanes(self, out: Packer, server: Server, stream: Stream) -> None:
        """Add ``LANE_FIGURES`` pairs: the lanes, and the ID up to which no entry can come."""

    @abstractmethod
    def add_places(self, out: Packer, group: Group) -> None:
        """Add the group's position in each lane, and the region where it is read."""


class PolicySteps:
    """The steps of commands of groups that have policies."""

    @abstractmethod
    def attend(self, call: Call, key: bytes, stream: Stream, group: Group) -> None:
        """Give a group the rules of its policies as they are now."""

    @abstractmethod
    def create(self, call: Call, key: bytes, name: bytes) -> bool:
        """Create a group that is not there, if a policy says so; return whether it did."""

    @abstractmethod
    def choose(
        self,
        call: Call,
        key: bytes,
        stream: Stream,
        group: Group,
        options: ReadOptions,
        claims: list[PendingEntry],
        limit: int,
        most_bytes: int,
    ) -> list[PendingEntry]:
        """Return what XREADGROUP hands out before new entries: of ``claims`` what may go, and more.

        Args:
            limit: how many at most; negative is any number. most_bytes: as in ``EntryLog.parts``.

        Raises: CommandError, where a policy does not allow such a request.
        """

    @abstractmethod
    def may_claim(
        self, call: Call, key: bytes, stream: Stream, group: Group, nack: Nack, renews: bool
    ) -> bool:
        """Return whether a consumer may get a pending entry; one at its limit dies instead.

        ``renews``: its consumer gets it again, and no delivery is counted.
        """

    @abstractmethod
    def released(
        self,
        call: Call,
        key: bytes,
        stream: Stream,
        group: Group,
        nacks: list[Nack],
        counts: list[int],
        mode: bytes,
    ) -> None:
        """Decide when entries that XNACK has just released go out again, if at all.

        ``counts``: how often each had been delivered.
        """

    @abstractmethod
    def add_figures(self, out: Packer, stream: Stream, group: Group, now_ms: int) -> None:
        """Add ``POLICY_FIGURES`` pairs about a group that has policies."""

    @abstractmethod
    def figures(self, stream: Stream, group: Group, now_ms: int) -> list[int]:
        """Return the numbers among these."""

    @abstractmethod
    def deleted(self, call: Call, key: bytes, stream: Stream, ids: list[ID]) -> None:
        """Cancel what policies hold back, where XDEL has deleted the entry."""

    @abstractmethod
    def leaves(
        self, call: Call, key: bytes, stream: Stream, group: Group, consumer: Consumer
    ) -> None:
        """Release what a consumer holds that is about to be deleted, where a policy says so."""

    @abstractmethod
    def is_bounded(self, call: Call, key: bytes) -> bool:
        """Return whether a policy bounds a stream."""

    @abstractmethod
    def make_room(self, call: Call, key: bytes, stream: Stream) -> bool:
        """Return whether XADD is to call ``added``; raise CommandError if the stream is full."""

    @abstractmethod
    def added(self, call: Call, key: bytes, stream: Stream) -> None:
        """Remove what is too much."""

    @abstractmethod
    def list_consumers(self, call: Call, key: bytes, group: Group) -> None:
        """Remove the idle consumers of a group that is about to be listed."""

    @abstractmethod
    def foresee(self, call: Call, until_ms: int) -> None:
        """Find what idle consumers will go up to a moment, to which the clock is to be moved."""

    @abstractmethod
    def tick(self, call: Call) -> int:
        """Do what time brings, though no client asks; return when more is to be done, or 0."""


POLICY_FIGURES: Final = 10
_policies: Final[list[PolicySteps]] = []  # one at the most
_registered: Final[list[SharedStreams]] = []  # likewise


def steps_by(steps: PolicySteps) -> None:
    """Register the implementation of policies."""
    _policies.append(steps)


def policies() -> PolicySteps:
    """Return the implementation of policies, which the server must have."""
    return _policies[0]


def shares_streams(shared: SharedStreams) -> None:
    """Register the implementation for a region."""
    _registered.append(shared)


def shared_streams() -> SharedStreams:
    """Return the implementation for a region; the server must be one."""
    return _registered[0]
