"""Talking to the server: what to do when it does not answer, or is not the one to ask.

``Client`` is one connection, and ``Nodes`` has those that are open. ``Link`` tries again when the
server is away, loading, or out of memory for the moment: Spark never restarts a query by itself, so
a server that restarts must not end one. In a cluster it follows a key that has moved (MOVED), or
that is being moved (ASK).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import count
from typing import Final, TypeVar

import hiredis

from pyspark_headrace.client import PASSING, Client, Word, Words, encode
from pyspark_headrace.connecting import explain, supposed
from pyspark_headrace.connection import Connection
from pyspark_headrace.errors import ServerError, UnreachableError
from pyspark_headrace.nodes import Nodes
from pyspark_headrace.slots import key_of, keys_of, slot_of

T = TypeVar("T")

log = logging.getLogger("pyspark_headrace")

# Those of the passing errors that say that somebody else is to be asked.
ELSEWHERE: Final = frozenset(("MOVED", "ASK", "READONLY", "CLUSTERDOWN", "MASTERDOWN"))
MOST_DELAY_MS: Final = 10_000
NAMED_BY: Final = "(passwordEnv or passwordFile names where the password is)"


class Link:
    """A connection that is made when it is needed, and again when it breaks.

    In a cluster there is one to each node that is asked, and who asks says for which key.

    Attributes:
        limits_replies: whether XREAD has MAXSIZE, as far as is known.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection: Final = connection
        self.limits_replies = True
        self._nodes: Final = Nodes(connection)
        self._answered = False  # the server, ever

    def is_cluster(self) -> bool:
        """Return whether keys lie on several nodes, so that a command takes those of one slot."""
        if not self._nodes.looked:
            self.run(lambda client: None)
        return self._nodes.slots is not None

    def masters(self) -> list[int]:
        """A slot of each node that has keys; what is to be asked everywhere is asked for each."""
        slots = self._nodes.slots if self.is_cluster() else None
        return [0] if slots is None else list(slots.masters().values())

    def run(self, work: Callable[[Client], T], slot: int = 0) -> T:
        """Return what ``work`` returns; it is run again, from its start, while the server is away.

        Args:
            slot: that of the key that is asked about, in a cluster.

        Raises:
            UnreachableError: the server did not come back in time.
            ServerError: the server refuses, for good.
            OptionError: an option leads nowhere, and will not at another try.
        """
        for attempt in count():
            try:
                done = self._run_once(work, slot)
            except (OSError, hiredis.ProtocolError) as broken:
                self.close()
                trouble = str(broken) or type(broken).__name__
                if not self._answered:
                    never = explain(self.connection, broken)
                    if never is not None:
                        raise never from None
                    trouble += supposed(self.connection, broken)
            except ServerError as refused:
                if refused.code == "NOAUTH":
                    raise ServerError(f"{refused} {NAMED_BY}") from None
                if refused.code not in PASSING:
                    raise
                trouble = str(refused)
                if refused.code in ELSEWHERE:
                    self.close()
                    if attempt == 0:
                        continue
            else:
                self._answered = True
                return done
            self._pause(attempt, trouble)
        raise AssertionError("there is always another try, or an error")

    def _run_once(self, work: Callable[[Client], T], slot: int) -> T:
        """A key that is being moved is asked for where it is by now."""
        try:
            return work(self._nodes.client(slot))
        except ServerError as refused:
            if refused.code != "ASK":
                raise
            return work(self._nodes.importing(refused, slot))

    def _pause(self, attempt: int, trouble: str) -> None:
        """Wait before another try, longer each time.

        Raises:
            UnreachableError: there have been enough.
        """
        connection = self.connection
        if attempt >= connection.retries:
            raise UnreachableError(
                f"{connection.where()} did not answer in {connection.retries + 1} tries: "
                f"{trouble}. A restarted query goes on where this one stopped"
            )
        delay_ms = min(connection.retry_ms << attempt, MOST_DELAY_MS)
        log.warning("%s: %s; trying again in %d ms", connection.where(), trouble, delay_ms)
        time.sleep(delay_ms / 1000)

    def call(self, *words: Word) -> object:
        """One command and its reply, see ``run``."""
        key = key_of(words)
        return self.run(lambda client: client.call(*words), 0 if key is None else slot_of(key))

    def pipeline(self, commands: Sequence[Words]) -> list[object]:
        """Several commands in one go, see ``run``; errors stand among the replies."""
        return self.ask(list(map(encode, commands)), lambda: keys_of(commands))

    def ask(
        self,
        requests: Sequence[bytes],
        keys: Callable[[], Sequence[bytes | str | None]],
        once: bool = False,
    ) -> list[object]:
        """As ``pipeline``, of commands that are encoded already.

        Args:
            keys: tells the key of each, if there is a cluster.
            once: in a cluster, only what a node has refused for the moment is sent again, not what
                it has answered; otherwise all that was asked about the same slot is, in order.
        """
        if not requests:
            return []
        if not self.is_cluster():
            return self.run(partial(_ask, requests=requests))
        slots = [0 if key is None else slot_of(key) for key in keys()]
        found: list[object] = [None] * len(requests)
        left = list(range(len(requests)))
        for attempt in count():
            self._ask_nodes(requests, slots, left, found)
            refused = [number for number in left if _is_passing(found[number])]
            if not refused:
                return found
            left = refused
            if not once:
                again = {slots[number] for number in refused}
                left = [number for number, slot in enumerate(slots) if slot in again]
            self.close()
            if attempt:
                self._pause(attempt - 1, str(found[refused[0]]))
        raise AssertionError("there is always another try, or an error")

    def _ask_nodes(
        self,
        requests: Sequence[bytes],
        slots: Sequence[int],
        numbers: Iterable[int],
        found: list[object],
    ) -> None:
        """Put the reply to each of some requests into its place; an error may be one."""
        assert self._nodes.slots is not None
        shares: dict[Connection | None, list[int]] = {}
        for number in numbers:
            shares.setdefault(self._nodes.slots.master_of(slots[number]), []).append(number)
        for share in shares.values():
            asked = partial(Client.ask, requests=[requests[number] for number in share])
            for number, reply in zip(share, self.run(asked, slots[share[0]]), strict=True):
                found[number] = reply
            self._follow(requests, slots, share, found)

    def _follow(
        self,
        requests: Sequence[bytes],
        slots: Sequence[int],
        share: Iterable[int],
        found: list[object],
    ) -> None:
        """Ask again about keys that are being moved, at the node that has them by now."""
        try:
            targets: dict[Client, list[int]] = {}
            for number in share:
                reply = found[number]
                if isinstance(reply, ServerError) and reply.code == "ASK":
                    target = self._nodes.importing(reply, slots[number])
                    targets.setdefault(target, []).append(number)
            for client, numbers in targets.items():
                replies = client.ask([requests[number] for number in numbers])
                for number, reply in zip(numbers, replies, strict=True):
                    found[number] = reply
        except (OSError, hiredis.ProtocolError):
            self.close()  # what has no other answer yet is asked once more

    def close(self) -> None:
        """End the connections, if there are any."""
        self._nodes.close()

    def __reduce__(self) -> tuple[type[Link], tuple[Connection]]:
        return Link, (self.connection,)


def _is_passing(reply: object) -> bool:
    return isinstance(reply, ServerError) and reply.code in PASSING


def _ask(client: Client, requests: Sequence[bytes]) -> list[object]:
    replies = client.ask(requests)
    for reply in replies:
        if isinstance(reply, ServerError) and reply.code in PASSING:
            raise reply
    return replies
