"""The clients that wait, the lines in which they stand at a key, and what a kind of waiting says.

See ``server.waiting`` for how these work together.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

from mypy_extensions import trait


class Parked:
    """The reply of a blocking command that must wait.

    Args:
        keys: where to wait.
        deadline_ms: the moment to give up, in milliseconds since 1970, and of ``monotonic_ms`` once
            the client waits; 0 is never.
        argv: the request to run again, with what must not move (``$``) resolved.
        timeout_reply: what the peer gets when the deadline comes.
        interest: what is waited for at each of the keys; None where there are no keys.
    """

    def __init__(
        self,
        keys: list[bytes],
        deadline_ms: int,
        argv: list[bytes],
        timeout_reply: object,
        interest: Interest | None,
    ) -> None:
        self.keys: Final = keys
        self.deadline_ms = deadline_ms
        self.argv: Final = argv
        self.timeout_reply = timeout_reply
        self.interest: Final = interest


class Interest:
    """What a client waits for at its keys. Each kind of waiting is a class of its own.

    Args:
        name: of the line to stand in at each key: the same for all who are served by one rule.
        needs_key: whether the wait ends with an error when the key goes away.
    """

    def __init__(self, name: bytes, needs_key: bool) -> None:
        self.name: Final = name
        self.needs_key: Final = needs_key

    @abstractmethod
    def new_line(self, queue: Queue) -> Line:
        """A line at a key where nobody waits for this yet."""


@trait
class Sleeper:
    """A client, as far as waiting is concerned.

    Attributes:
        waiter: its wait; None while it does not wait.
    """

    waiter: Waiter | None


class Waiter:
    """A client that waits.

    Attributes:
        lines: where it stands, one for each of its keys.
        ticket: is lower for whoever came first; whoever was run again in vain has a new one.
        active: whether it waits.
    """

    def __init__(self, client: Sleeper, db_index: int, parked: Parked, ticket: int) -> None:
        self.client: Final = client
        self.db_index: Final = db_index
        self.parked = parked
        self.lines: list[Line] = []
        self.ticket = ticket
        self.deadline_ms: Final = parked.deadline_ms
        self.active = True


class Line:
    """Those who wait for one kind of thing at one key; one of the two classes below.

    Args:
        queue: the key's.
        interest: of the first who waits here.
    """

    def __init__(self, queue: Queue, interest: Interest) -> None:
        self.queue: Final = queue
        self.name: Final = interest.name
        self.needs_key: Final = interest.needs_key

    @abstractmethod
    def add(self, waiter: Waiter, number: int) -> None:
        """Let a waiter stand at the end, for the key of this number among its keys.

        It may stand here already, because it may name a key twice.
        """

    @abstractmethod
    def remove(self, waiter: Waiter, number: int) -> None:
        """Let a waiter go, if it stands here."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Whether nobody waits."""

    @abstractmethod
    def waiters(self) -> list[Waiter]:
        """All of them. Complexity: O(waiters)."""

    def ripens(self) -> bool:
        """Whether time alone may let somebody be served: then alarms are asked for."""
        return False

    def new_alarms(self, value: object | None, now_ms: int) -> list[Alarm]:
        """Alarms that are to be set, besides those that are.

        Args:
            value: what the key holds, or None.
            now_ms: the time of day.
        """
        return []

    def rang(self, alarm: Alarm) -> None:
        """One of the alarms has come, and is not set any more."""


class SharedLine(Line):
    """A line whose waiters may all be given the same."""

    @abstractmethod
    def candidates(self, value: object | None) -> list[Waiter]:
        """Who may be served now, first come first.

        Args:
            value: what the key holds, or None.

        Complexity: is to depend on those who are found, and not on those who wait.
        """


class ExclusiveLine(Line):
    """A line in which nobody is given what another is: its waiters are served one by one."""

    @abstractmethod
    def next(self, value: object | None, now_ms: int) -> Waiter | None:
        """Who is to be served next; None when what is there is used up.

        Args:
            value: what the key holds, or None.
            now_ms: the time of day.
        """


class Alarm:
    """A moment at which a line is to be looked at, though nothing happens to its key.

    Args:
        number: differs between the alarms of one line.
        moment_ms: by the time of day, in milliseconds since 1970.
    """

    def __init__(self, line: Line, number: int, moment_ms: int) -> None:
        self.line: Final = line
        self.number: Final = number
        self.moment_ms: Final = moment_ms
        self.is_set = True


class Queue:
    """All who wait for one key.

    Attributes:
        db_index: of the database that the key is in.
        lines: in which they stand, by name; the line that began first is looked at first.
        key_needed_by: how many of the lines need the key.
        is_ready: whether they are to be looked at after the command at hand.
    """

    def __init__(self, db_index: int, key: bytes) -> None:
        self.db_index: Final = db_index
        self.key: Final = key
        self.lines: Final[dict[bytes, Line]] = {}
        self.key_needed_by = 0
        self.is_ready = False

    def waiters(self) -> list[Waiter]:
        """All of them. Complexity: O(waiters)."""
        found: list[Waiter] = []
        for line in self.lines.values():
            found += line.waiters()
        return found
