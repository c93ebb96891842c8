"""Epochs: which one a region is in, and whether it takes writes.

A region that does not know yet all that the others do takes no writes. The nonce of its epoch says
so, in the first line of the file that the epoch begins with: a later start finds it there. ``AA
CAUGHT nonce`` in the file ends it. The nonce also says in which epoch the folder of the region was
empty (``regions.knowledge.region``).

A region whose files are of an earlier time may be given a copy, which replaces its data. The base
written then says so, with a nonce that ends as that of a region which joins the others.

The epoch and generation of a region are decided at its start. A number stands for one record only.
So an epoch goes on where it is certain that nothing of it is missing: the files are whole, and all
other regions have said that they know no more of it. In doubt another epoch begins. IDs have to be
unique even against entries that are lost and were never sent. So where entries may be lost, another
generation begins, which stands in every ID.

Others forget what this region has reported to have. Where its files may be older than that report,
or are gone, it takes no writes until it knows all that the others do.

For that, it asks all others what they know of it (``Survey``), each over a connection of its own
that pulls nothing. A region that takes part without an address here cannot be asked: it says what
it knows when it calls.

There may be other lives of a region (``OtherLives``): another server that is it, or records of it
that it does not know. Where another life writes, too, this one stops: what both write would be
taken for the same. It also stops once the others have forgotten it, because they would take none of
its writes.

While this region runs, it may find that others know more of it than it does itself, or that they
have met another life in the same epoch, or in a later one: the clock may have been set back. Then
its files were of an earlier time, or gone, and no region could say so at its start. As long as it
has written nothing since then, no number stands for two records. So it does what it would have done
at its start: another epoch begins, and it takes no writes until it knows all that the others do.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Final

from headrace.compat import errors
from headrace.compat.errors import AASTART, AASYNCING
from headrace.persistence.errors import PersistenceError
from headrace.regions.exchange.effects import Words, local, refuse_writes, region_of
from headrace.regions.exchange.peer_connection import MET, PeerClient, PeerConnection
from headrace.regions.exchange.peer_sessions import TWIN_MS
from headrace.regions.exchange.retention import LogManager
from headrace.regions.knowledge.region import NONCE_ENDS, Region, latest_epoch
from headrace.regions.knowledge.stability import covers_all
from headrace.server.state import Server
from headrace.storage.sharing import AA
from headrace.storage.vectors import Numbers
from headrace.storage.vectors import region_of as number_of

NONCE_BYTES: Final = 8
_ENDS: Final = {b"s": AASTART, b"j": AASYNCING}  # of nonces
_CAUGHT: Final = b"CAUGHT"
# The states of the files
NONE: Final = 0  # there is no data
ADOPTED: Final = 1  # a single server's
WHOLE: Final = 2  # the region's, and nothing that it has written is missing
CUT: Final = 3  # the region's, and their end may be missing
MOVED: Final = 4  # the region's, but of an unknown time: copied or restored
SECOND_MS: Final = 1000  # no two lives of a region begin within one, even if none can be asked
EPOCHS_SINCE_MS: Final = 1_767_225_600_000  # 2026-01-01, from which on epochs are counted
HELLO_BYTES: Final = 1 << 20  # an introduction is no longer
log: Final = logging.getLogger("headrace")


def new_nonce(refusal: bytes, begun: int) -> bytes:
    """Return the nonce of an epoch.

    Args:
        refusal: why it begins without taking writes; empty where it takes them.
        begun: the epoch in which the folder was empty.
    """
    nonce = b"%b.%d" % (os.urandom(NONCE_BYTES).hex().encode(), begun)
    for end, line in _ENDS.items():
        if line == refusal:
            return nonce + end
    return nonce


def refusal_of(region: Region) -> bytes:
    """Return the reason in its files why a region takes no writes; empty where it takes them."""
    if region.nonce == region.caught:
        return b""
    if region.caught == replaced_nonce(region):
        return AASYNCING
    return _ENDS.get(region.nonce[-1:], b"")


def replaced_nonce(region: Region) -> bytes:
    """Return the nonce that a region catches up with once a copy has replaced its data."""
    return region.nonce.rstrip(NONCE_ENDS) + b"j"


@local(_CAUGHT, 3, "CAUGHT has a nonce")
def apply_caught(server: Server, words: Words) -> None:
    """Apply ``AA CAUGHT nonce``: this region knows all that the others did when the epoch began."""
    region_of(server).caught = words[2]


def safe_generation(region: Region) -> int:
    """Return a generation that no earlier life of a region has had, as far as is known.

    Each generation began with an epoch of its own.
    """
    lives = [origin for origin in region.numbers if number_of(origin) == region.id]
    return max(region.generation, len(lives))


def note_caught(server: Server) -> None:
    """Record the catching up, so that no start asks again. The caller ends the command."""
    region = region_of(server)
    region.caught = region.nonce
    server.changes.record(0, [AA, _CAUGHT, region.nonce])


class CatchUp:
    """The records that a region still lacks before it takes writes.

    Attributes:
        refusal: the error line meanwhile.
    """

    def __init__(self, region: Region, refusal: bytes) -> None:
        self.refusal = refusal
        self._region: Final = region
        self._wanted: Final[dict[int, Numbers]] = {}  # what each of the others knew
        self._also = 0  # the region to be caught up with, member or not

    def heard(self, member: int, numbers: Numbers) -> None:
        """Note what another region has said it knows.

        The first time since the start counts, except what it has lost itself since then, because no
        region can know again what is nowhere any more.
        """
        wanted = self._wanted.setdefault(member, numbers.copy())
        for origin in wanted:
            wanted[origin] = min(wanted[origin], numbers.get(origin, 0))

    def outdone(self, member: int, numbers: Numbers) -> None:
        """Note that another region, member or not, knows more of this one."""
        self._also = member
        self.heard(member, numbers)

    def lacking(self) -> list[int]:
        """Return the other regions that have records missing here, or have said nothing yet."""
        region = self._region
        known = region.known()
        found: list[int] = []
        members = {*region.members(), self._also} - {region.id, 0}
        for member in sorted(members):
            if region.is_forgotten(member):
                continue
            wanted = self._wanted.get(member)
            if wanted is None or not covers_all(known, wanted):
                found.append(member)
        return found


class Forgotten(Exception):
    """The region must not start with the data that it has; the text says why."""


class Answer:
    """The answer of another region.

    Attributes:
        numbers: what it knows.
        remembered: the nonce of the epoch that it was asked about; empty where it remembers none.
        is_twin: it has met another region of this number in the same epoch.
        is_taken: another server is this region, and has asked it a moment ago.
        forgotten: in which epoch it has forgotten this region; -1 where it has not.
    """

    def __init__(
        self,
        numbers: Numbers,
        remembered: bytes = b"",
        is_twin: bool = False,
        is_taken: bool = False,
        forgotten: int = -1,
    ) -> None:
        self.numbers: Final = numbers
        self.remembered = remembered
        self.is_twin = is_twin
        self.is_taken = is_taken
        self.forgotten = forgotten


class Start:
    """The decision how a region starts.

    Attributes:
        goes_on: the epoch is the one before, and goes on.
        is_taken: another server is the region, so that this one must not be.
        refusal: why no writes are taken so far, as an error line; empty where they are.
        reason: text for the log.
    """

    def __init__(self, epoch: int, generation: int, refusal: bytes, reason: str) -> None:
        self.epoch: Final = epoch
        self.generation: Final = generation
        self.goes_on = False
        self.is_taken = False
        self.refusal: Final = refusal
        self.reason: Final = reason


def decide(
    region: Region, files: int, asked: list[int], answers: dict[int, Answer], now_ms: int
) -> Start:
    """Return how a region starts whose files have been loaded.

    ``files`` is their state, ``NONE`` to ``MOVED``; ``asked`` are the other members, ``answers``
    those that came in time. Raises Forgotten if it must not start.
    """
    answered = all(member in answers for member in asked)
    if any(answer.is_taken for answer in answers.values()):
        return _taken(region, files, now_ms)
    _refuse_forgotten(region, files, answers)
    known = max(
        [latest_epoch(answer.numbers, region.id) for answer in answers.values()], default=-1
    )
    if _remember_another(region, answers):
        known = max(known, region.epoch)  # even where it has written nothing
    forgotten = max([answer.forgotten for answer in answers.values()], default=-1)
    if files == NONE:
        if answered and known < 0 and forgotten < 0 and not _know_anything(answers):
            return Start(0, 0, b"", "all begins")
        if answered and known < 0 and forgotten < 0:
            return Start(0, 0, AASYNCING, "it joins the others")
        epoch = _next_epoch(max(known, forgotten), now_ms)
        return Start(epoch, 0, AASYNCING, "there is no data, and others may know some of it")
    if files == ADOPTED:
        if known >= 0:
            raise Forgotten(
                f"others know of a region {region.id} already: give the data of a single server "
                "another number (aa-region-id)"
            )
        if _know_anything(answers):
            return Start(0, 0, AASYNCING, "it joins the others with data of a single server")
        return Start(0, 0, b"", "the data of a single server becomes a region's")
    epoch = _next_epoch(max(known, region.epoch, forgotten), now_ms)
    generation = region.generation
    lacking = refusal_of(region)
    if files == MOVED:
        return Start(epoch, generation + 1, AASTART, "its files were copied or restored")
    if files == CUT:
        return Start(epoch, generation + 1, lacking, "the end of its file may be missing")
    if _know_more(region, answers):
        return _later(region, max(known, forgotten), now_ms)
    if not answered:
        silent = ", ".join([str(member) for member in asked if member not in answers])
        reason = f"not all others have answered: {silent} has not"
        return Start(epoch, generation, lacking, reason)
    start = Start(region.epoch, generation, lacking, "its epoch goes on")
    start.goes_on = True
    return start


def _taken(region: Region, files: int, now_ms: int) -> Start:
    """Return how a region begins that another server is: it waits to be its standby."""
    start = begin_empty(now_ms)
    if files != NONE:
        lacking = refusal_of(region)
        start = Start(region.epoch, region.generation, lacking, "another server is this region")
        start.goes_on = True
    start.is_taken = True
    return start


def begin_empty(now_ms: int) -> Start:
    """Return how a region begins whose data is gone: as another one that joins, in a new epoch."""
    return Start(_next_epoch(0, now_ms), 0, AASYNCING, "there is no data yet")


def take_over(region: Region, has_all: bool, now_ms: int) -> Start:
    """Return how a standby begins to lead; ``has_all``: nothing is missing that its region had."""
    start = _later(region, -1, now_ms)
    refusal = refusal_of(region) if has_all else start.refusal
    return Start(start.epoch, start.generation, refusal, "its standby takes over")


def begin_later(region: Region, known: Numbers, now_ms: int) -> Start:
    """Return how a region goes on that has begun when another one knows more of it: ``known``."""
    return _later(region, latest_epoch(known, region.id), now_ms)


def _later(region: Region, known: int, now_ms: int) -> Start:
    epoch = _next_epoch(max(known, region.epoch), now_ms)
    return Start(epoch, region.generation + 1, AASTART, "others know more of it than its files")


def _refuse_forgotten(region: Region, files: int, answers: dict[int, Answer]) -> None:
    if files == NONE:
        return
    for member, answer in answers.items():
        if answer.forgotten >= 0:
            raise Forgotten(
                f"region {member} has forgotten region {region.id}, which can only come back as a "
                "new one: start with an empty folder"
            )


def _know_anything(answers: dict[int, Answer]) -> bool:
    return any(answer.numbers for answer in answers.values())


def _remember_another(region: Region, answers: dict[int, Answer]) -> bool:
    """Return whether another region has met one of this number and epoch that had another nonce."""
    return any(
        answer.is_twin or answer.remembered not in (b"", region.nonce)
        for answer in answers.values()
    )


def _know_more(region: Region, answers: dict[int, Answer]) -> bool:
    """Return whether another region has met more of this one than the files say, or another one."""
    if _remember_another(region, answers):
        return True
    return any(region.is_outdone(answer.numbers) for answer in answers.values())


def _next_epoch(known: int, now_ms: int) -> int:
    """Return an epoch above all that are known, and above those that were never reported."""
    return max(known + 1, (now_ms - EPOCHS_SINCE_MS) // SECOND_MS)


class Probe(PeerClient):
    """Introduces itself to a peer, and asks nothing else."""

    def begin(self) -> None:
        """Do nothing: the introduction was all."""

    def answered(self, reply: object) -> None:
        self.damaged("a reply came that was not asked for")


class Survey:
    """The other regions that are asked, and their answers.

    Args:
        peers: regions to ask.
        callers: regions whose call is waited for.
        ask: begins to ask one of them, over a connection that does not pull.
    """

    def __init__(
        self, peers: list[int], callers: list[int], ask: Callable[[int], PeerConnection]
    ) -> None:
        self._ask: Final = ask
        self._connections: Final = {member: ask(member) for member in peers}
        self._callers: Final = callers
        self._called: Final[dict[int, Numbers]] = {}
        self._taken: Final[set[int]] = set()  # those that another life of this one has just asked

    @property
    def asked(self) -> list[int]:
        """Regions whose answers are waited for."""
        return sorted([*self._connections, *self._callers])

    def called(self, member: int, numbers: Numbers) -> None:
        """Note what a region that has called knows.

        One that can be asked says more when it answers: which life of this region it has met.
        """
        if member not in self._connections:
            self._called[member] = numbers

    def look(self) -> bool:
        """Ask those again that could not be reached. Return whether all have answered."""
        done = all(member in self._called for member in self._callers)
        for member, connection in self._connections.items():
            answer = answer_of(connection)
            if answer is None or answer.is_taken:
                done = False
                if answer is not None:
                    self._taken.add(member)
                if connection.over:
                    self._connections[member] = self._ask(member)
            else:
                self._taken.discard(member)
        return done

    def is_taken(self) -> bool:
        """Return whether a region has been asked by another server that is this one.

        It may be one that has ended since, and was not seen to.
        """
        return bool(self._taken)

    def answers(self) -> dict[int, Answer]:
        """Return the answers so far, by region."""
        found = {member: Answer(self._called[member]) for member in self._called}
        for region, connection in self._connections.items():
            answer = answer_of(connection)
            if answer is not None:
                found[region] = answer
            elif region in self._taken:
                found[region] = Answer({}, is_taken=True)
        return found

    def end(self) -> None:
        """Close the connections."""
        for connection in self._connections.values():
            connection.end("it has been asked")


def answer_of(connection: PeerConnection) -> Answer | None:
    """Return the other side's answer; None where it has none, or none to this question.

    It is no answer that this side refuses the other one, which may be starting, too.
    """
    client = connection.client
    if client.hello is not None:
        return Answer(client.hello.numbers, client.hello.remembered)
    if client.ahead and client.known:
        return Answer(client.known)
    if client.rival:
        return Answer({}, is_taken=True)
    if client.twin:
        return Answer({}, is_twin=True)
    if client.forgotten >= 0:
        return Answer({}, forgotten=client.forgotten)
    return None


class OtherLives:
    """Looks for other lives of this region.

    Attributes:
        is_stopped: there is one, or this one is forgotten: no writes until it is started again.
    """

    def __init__(self, server: Server, log_manager: LogManager) -> None:
        self.is_stopped = False
        self._server: Final = server
        self._log_manager: Final = log_manager
        self._region: Final = region_of(server)
        self._rivals: Final[dict[int, int]] = {}  # since when a region has met one
        self._begun = self._region.next_dot()
        self._member = 0  # a region that knows more of this one, or another life of this epoch
        self._known: Numbers = {}  # and what it knows, if that is more
        self._has_lost = False  # another server was this region in a later life, and not before
        self._heir = False  # this is a standby that takes over
        self._has_all = False  # and nothing is missing that its region had

    def begun(self) -> None:
        """Note that others may know as something else what this region writes from now on."""
        self._begun = self._region.next_dot()

    def look_at(self, client: PeerClient, now_ms: int) -> None:
        """Look for signs of another life in what a peer knows of this region.

        A connection of this one that has just ended may look like a rival for a moment.
        """
        if client.state == MET:
            self._rivals.pop(client.peer_region, None)
        if self._has_lost and (client.state == MET or client.ahead):
            self._go_on(client)
        if client.rival:
            since_ms = self._rivals.setdefault(client.peer_region, now_ms)
            if now_ms - since_ms >= TWIN_MS:
                self.stop(_of_member(client.peer_region, client.failure))
                self._has_lost = True
        elif client.twin:
            self._outdone(client.peer_region, {}, client.failure)
        elif client.forgotten >= self._region.begun:
            self.left_out()
        elif client.ahead:
            self.outdone(client.peer_region, client.known)

    def _go_on(self, client: PeerClient) -> None:
        """Begin another life, because the later one that this gave way to is not there any more.

        A sentinel may have let that follow this one.
        """
        self.forget()
        self._outdone(client.peer_region, client.known, "")

    def outdone(self, member: int, known: Numbers) -> None:
        """Note that another region knows more of this one than it does itself."""
        reason = "it knows more of this region, which has written something else"
        if self._region.is_outdone(known):
            self._outdone(member, known, reason)

    def _outdone(self, member: int, known: Numbers, reason: str) -> None:
        region = self._region
        if self.is_stopped:
            return
        if reason and region.next_dot() != self._begun:
            self.stop(_of_member(member, reason))
            return
        if not self._member:
            refuse_writes(self._server, errors.AASTART)
        self._member = member
        self._known = known

    def begin_later(self) -> CatchUp | None:
        """Begin another epoch if one is due, between two commands.

        Returns: the records to be learned then; None where no epoch begins.
        """
        region = self._region
        now_ms = self._server.clock.now_ns // 1_000_000
        if self._heir:
            start = take_over(region, self._has_all, now_ms)
        elif self._member:
            start = begin_later(region, self._known, now_ms)
        else:
            return None
        nonce = new_nonce(start.refusal, region.begun)
        try:
            if not self._log_manager.begin_epoch(start.epoch, start.generation, nonce):
                return None
        except (OSError, PersistenceError) as error:
            log.warning("Writes are refused still, for the files cannot be written: %s", error)
            return None
        catch_up = CatchUp(region, start.refusal)
        if self._known:
            catch_up.outdone(self._member, self._known)
        self._heir = False
        self._member = 0
        self._known = {}
        self.begun()
        name = region.origin.decode()
        log.warning("Region %d is %s from now on: %s", region.id, name, start.reason)
        if start.refusal:
            log.warning("Writes are refused until all is here that the other regions know")
        refuse_writes(self._server, start.refusal)
        return catch_up

    def take_over(self, has_all: bool) -> None:
        """Let another epoch be due, in which this standby is the region; see ``take_over``."""
        self.forget()
        self._heir = True
        self._has_all = has_all
        refuse_writes(self._server, errors.AASTART)

    def forget(self) -> None:
        """Forget what was met of other lives, because this is another one."""
        self.is_stopped = False
        self._has_lost = False
        self._heir = False
        self._rivals.clear()
        self._member = 0
        self._known = {}

    def left_out(self) -> None:
        """Stop writes until this region comes back as a new one: the others have forgotten it."""
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

    def stop(self, reason: str) -> None:
        """Stop writes until this region is started again, or follows the other life of it."""
        self._member = 0
        self._known = {}
        if not self.is_stopped:
            self.is_stopped = True
            log.critical(
                "%s: writes are refused. End the other one, and start this one again; or let this "
                "one be its standby (REPLICAOF)",
                reason,
            )
        refuse_writes(self._server, errors.AA_STOPPED)


def _of_member(member: int, reason: str) -> str:
    return f"Region {member} has met another life of this region ({reason})"
