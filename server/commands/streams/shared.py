"""What the commands of streams do where several regions write a stream.

Each step that differs there is a method here. What does it is in the wing of regions, and registers
itself. A stream that regions share is ``Replicated``, and its groups have ``places``.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

from headrace.protocol.packing import Packer
from headrace.server.commands.streams.args import AddOptions, ReadOptions, TrimOptions
from headrace.server.dispatch.call import Call
from headrace.server.state import Server
from headrace.server.waiting import Parked
from headrace.storage.stream.groups import Group
from headrace.storage.stream.idmp import Iid
from headrace.storage.stream.part import Part
from headrace.storage.stream.stream import Stream

ID = tuple[int, int]
LANE_FIGURES: Final = 2  # pairs that XINFO STREAM has beside those that every stream has


class SharedStreams:
    """What it means in a region to add, trim, delete, read, and so on."""

    # Entries

    @abstractmethod
    def new(self, call: Call, key: bytes) -> Stream:
        """Return what XADD and XGROUP CREATE begin with where there is no key."""
        raise NotImplementedError

    @abstractmethod
    def finds_seq(self, call: Call, word: bytes, next_seq: bool) -> bool:
        """Return whether the sequence of the ID that a caller of XADD gave is to be found.

        Args:
            word: the ID.
            next_seq: its caller has asked for that.

        Raises:
            CommandError: the region takes no full IDs.
        """
        raise NotImplementedError

    @abstractmethod
    def is_manual(self, call: Call, stream: Stream, ms: int) -> bool:
        """Whether the milliseconds that a caller of XADD gave may be below what was promised.

        Raises:
            CommandError: there are IDs in the stream that were made here.
        """
        raise NotImplementedError

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
    ) -> object:
        """Report the entry that XADD has just added, and trim as its options say.

        Args:
            at: where its ID stands.
            pid, iid: for which message it stands; no pid is none.
            manual: its ID is its caller's; see ``is_manual``.
            created: the stream is a new one.

        Returns: the reply.
        """
        raise NotImplementedError

    @abstractmethod
    def trim(self, call: Call, key: bytes, stream: Stream, options: TrimOptions) -> int:
        """Trim a stream that is there; how many entries were removed."""
        raise NotImplementedError

    @abstractmethod
    def delete(self, call: Call, key: bytes, stream: Stream, ids: list[ID]) -> int:
        """XDEL of a stream that is there; how many entries had one of these IDs."""
        raise NotImplementedError

    @abstractmethod
    def delete_by_mode(
        self, call: Call, key: bytes, stream: Stream, mode: int, ids: list[ID]
    ) -> object:
        """XDELEX of a stream that is there; its reply."""
        raise NotImplementedError

    @abstractmethod
    def set_id(self, call: Call, stream: Stream, new_id: ID) -> object:
        """XSETID of a stream that is there; its reply.

        Raises:
            CommandError: it is below the last one, or comes with options.
        """
        raise NotImplementedError

    @abstractmethod
    def set_limits(
        self, call: Call, key: bytes, stream: Stream, duration_s: int, maxsize: int
    ) -> None:
        """Set the limits of the IDMP map of a stream that is there."""
        raise NotImplementedError

    # Groups

    @abstractmethod
    def create_group(self, call: Call, stream: Stream, position: ID, created: bool) -> object:
        """XGROUP CREATE of a group that is not there; its reply.

        Args:
            position: where it starts, if not at the end.
            created: the stream is a new one.
        """
        raise NotImplementedError

    @abstractmethod
    def destroy_group(self, call: Call, stream: Stream) -> int:
        """XGROUP DESTROY; 1, or 0 where there is no such group."""
        raise NotImplementedError

    @abstractmethod
    def set_mode(self, call: Call, stream: Stream, name: bytes, most: int) -> None:
        """XGROUP SETMODE of a group that is there: the most pending entries."""
        raise NotImplementedError

    @abstractmethod
    def set_place(self, stream: Stream, group: Group, position: ID | None) -> None:
        """XGROUP SETID: read on after an ID, or behind all that is here."""
        raise NotImplementedError

    @abstractmethod
    def place_record(self, key: bytes, group: Group, parts: list[Part]) -> list[bytes]:
        """The record of how far a group has come that has been given these parts."""
        raise NotImplementedError

    @abstractmethod
    def release_held(
        self, call: Call, key: bytes, stream: Stream, group: Group, consumer: bytes
    ) -> None:
        """A consumer is to go with all it holds, in this region alone."""
        raise NotImplementedError

    @abstractmethod
    def note_acknowledged(self, call: Call, key: bytes, stream: object, group: Group) -> None:
        """Something was acknowledged: see that other regions get to know, now or soon."""
        raise NotImplementedError

    @abstractmethod
    def ack_and_delete(
        self, call: Call, key: bytes, stream: Stream, group: Group, mode: int, ids: list[ID]
    ) -> object:
        """XACKDEL in a group that is there; its reply."""
        raise NotImplementedError

    # XREAD STABLE

    @abstractmethod
    def bound_of(self, call: Call, stream: Stream | None) -> ID:
        """Up to which ID a stream may be read; (0, 0) while that is not known.

        Raises:
            CommandError: callers have given it IDs that may come late.
        """
        raise NotImplementedError

    @abstractmethod
    def first_after(self, text: bytes, stream: Stream | None, bound: ID) -> ID:
        """The ID after which entries are wanted: an ID, ``$`` (the bound) or ``+`` (the last)."""
        raise NotImplementedError

    @abstractmethod
    def parts_up_to(
        self, stream: Stream, after: ID, bound: ID, count: int, most_bytes: int
    ) -> list[Part]:
        """Return where the entries after an ID are, up to a bound. See ``EntryLog.parts``."""
        raise NotImplementedError

    @abstractmethod
    def wait_for_stable(
        self, call: Call, options: ReadOptions, keys: list[bytes], after: list[ID], bounds: list[ID]
    ) -> Parked:
        """Wait until more is stable; ``$`` is from now on what it stands for, if that is known."""
        raise NotImplementedError

    # XINFO

    @abstractmethod
    def add_lanes(self, out: Packer, server: Server, stream: Stream) -> None:
        """Add ``LANE_FIGURES`` pairs: its lanes, and the ID up to which nothing can come."""
        raise NotImplementedError

    @abstractmethod
    def add_places(self, out: Packer, group: Group) -> None:
        """Add how far a group has come in each lane, and the region where it is read."""
        raise NotImplementedError


class _Registered:
    def __init__(self) -> None:
        self.only: SharedStreams | None = None


_registered: Final = _Registered()


def shares_streams(shared: SharedStreams) -> None:
    """Declare what commands of streams do in a region."""
    _registered.only = shared


def shared_streams() -> SharedStreams:
    """Return what commands of streams do in a region; the server is one."""
    found = _registered.only
    assert found is not None
    return found
