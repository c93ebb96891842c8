"""Other lives of this region: another server that is it, or records of it that it does not know.

Where another life writes, too, this one stops: what both write would be taken for the same. It
stops as well once the others have forgotten it: what it would write came to nobody.

It may also be found, while this region runs, that others know more of it than it does itself, or
that they have met another life in the same epoch, or in a later one: the clock may have been set
back. Then its files were of an earlier time, or gone, and nobody could say so when it started. As
long as it has written nothing since then, no number stands for two records. So it does what it
would have done at its start: another epoch begins, and it takes no writes until it knows all that
the others do.
"""

from __future__ import annotations

import logging
from typing import Final

from headrace.compat import errors
from headrace.persistence.errors import PersistenceError
from headrace.regions.exchange.asker import MET, Asker
from headrace.regions.exchange.callers import TWIN_MS
from headrace.regions.exchange.catching import Catching, new_nonce
from headrace.regions.exchange.effects import refuse_writes, region_of
from headrace.regions.exchange.keeping import Keeping
from headrace.regions.exchange.starting import begin_later
from headrace.server.state import Server
from headrace.storage.vectors import Numbers

log: Final = logging.getLogger("headrace")


class Lives:
    """Looks for other lives of this region.

    Attributes:
        is_stopped: there is one, or this one is forgotten, and so this region takes no writes until
            it is started again.
    """

    def __init__(self, server: Server, keeping: Keeping) -> None:
        self.is_stopped = False
        self._server: Final = server
        self._keeping: Final = keeping
        self._region: Final = region_of(server)
        self._rivals: Final[dict[int, int]] = {}  # since when a region has met one
        self._begun = self._region.next_dot()
        self._member = 0  # a region that knows more of this one, or another life of this epoch
        self._known: Numbers = {}  # and what it knows, if that is more

    def begun(self) -> None:
        """What this region writes from now on, others may know as something else."""
        self._begun = self._region.next_dot()

    def look_at(self, asker: Asker, now_ms: int) -> None:
        """See what another region knows of this one.

        A connection of this one that has just ended may look like a rival for a moment.
        """
        if asker.state == MET:
            self._rivals.pop(asker.peer_region, None)
        if asker.rival:
            since_ms = self._rivals.setdefault(asker.peer_region, now_ms)
            if now_ms - since_ms >= TWIN_MS:
                self._stop(asker.peer_region, asker.failure)
        elif asker.twin:
            self._outdone(asker.peer_region, {}, asker.failure)
        elif asker.forgotten >= self._region.begun:
            self.left_out()
        elif asker.ahead:
            self.outdone(asker.peer_region, asker.known)

    def outdone(self, member: int, known: Numbers) -> None:
        """Another region knows more of this one than it does itself."""
        reason = "it knows more of this region, which has written something else"
        if self._region.is_outdone(known):
            self._outdone(member, known, reason)

    def _outdone(self, member: int, known: Numbers, reason: str) -> None:
        region = self._region
        if self.is_stopped:
            return
        if region.next_dot() != self._begun:
            self._stop(member, reason)
            return
        if not self._member:
            refuse_writes(self._server, errors.AASTART)
        self._member = member
        self._known = known

    def begin_later(self) -> Catching | None:
        """Begin another epoch if one is due, between two commands.

        Returns: what is to be learned then; None where none begins now.
        """
        region = self._region
        if not self._member:
            return None
        start = begin_later(region, self._known, self._server.clock.now_ns // 1_000_000)
        nonce = new_nonce(start.refusal, region.begun)
        try:
            if not self._keeping.begin_epoch(start.epoch, start.generation, nonce):
                return None
        except (OSError, PersistenceError) as error:
            log.warning("Writes are refused still, for the files cannot be written: %s", error)
            return None
        catching = Catching(region, start.refusal)
        if self._known:
            catching.outdone(self._member, self._known)
        self._member = 0
        self._known = {}
        self.begun()
        name = region.origin.decode()
        log.warning("Region %d is %s from now on: %s", region.id, name, start.reason)
        log.warning("Writes are refused until all is here that the other regions know")
        return catching

    def left_out(self) -> None:
        """The others have forgotten this region: no writes until it comes back as a new one."""
        if self.is_stopped:
            return
        self._member = 0
        self._known = {}
        self.is_stopped = True
        log.critical(
            "This region has been forgotten (AA FORGET): writes are refused. Start it with an "
            "empty folder, to let it take part again. Keep its own: it may hold what no other has"
        )
        refuse_writes(self._server, errors.AA_LEFT_OUT)

    def _stop(self, member: int, reason: str) -> None:
        """Take no writes until this region is started again."""
        self._member = 0
        self._known = {}
        if not self.is_stopped:
            self.is_stopped = True
            log.critical(
                "Region %d has met another life of this region (%s): writes are refused. End the "
                "other one, and start this one again",
                member,
                reason,
            )
        refuse_writes(self._server, errors.AA_STOPPED)
