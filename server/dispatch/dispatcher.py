"""What running requests needs besides the server: the call at hand, and the rows that were met."""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

from headrace.server.clients.session import NOBODY, Session
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import Command
from headrace.server.durability.durability import Durability
from headrace.server.gate import Work
from headrace.server.state import Server
from headrace.server.waiting import Queue


class Slicing(Work):
    """A request that is being run in slices; see ``server.dispatch.slicing``."""

    @abstractmethod
    def holds_back(self, session: Session, row: Command, argv: list[bytes]) -> bool:
        """Whether an admitted request has to wait; it is offered again when this one is done."""

    @abstractmethod
    def postpones(self, queue: Queue) -> bool:
        """Whether those who wait for a key that is ready have to wait until this is done."""


class Dispatcher:
    """Runs requests, one at a time.

    Attributes:
        call: the command at hand.
        rows: by name as typed; filled as names are met.
        last_name: the name met last, because the next is often the same; last_row: its row. The
            name before that is kept as well, because two often take turns.
        slicing: the request that is being run in slices.
    """

    def __init__(self, server: Server, durability: Durability) -> None:
        self.server: Final = server
        self.durability: Final = durability
        nobody = Session(0, server.data.dbs[0], server.clock.started_ms, NOBODY)
        self.call: Final = Call(server, durability, nobody)
        self.rows: Final[dict[bytes, Command]] = {}
        self.last_name = b""
        self.last_row: Command | None = None
        self.slicing: Slicing | None = None
        self._other_name = b""
        self._other_row: Command | None = None

    def turn_to(self, name: bytes) -> Command | None:
        """Make a name the last one; its row, or None where it was not met yet."""
        row = self._other_row
        if row is None or name != self._other_name:
            row = self.rows.get(name)
        self._other_name = self.last_name
        self._other_row = self.last_row
        self.last_name = name
        self.last_row = row
        return row
