"""At its start, a region asks all others what they know of it.

Each is asked over a connection of its own, which introduces the two and pulls nothing. A region
that takes part without an address here cannot be asked: it says what it knows when it calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from headrace.regions.exchange.asker import Asker
from headrace.regions.exchange.conversation import Conversation
from headrace.regions.exchange.starting import Answer
from headrace.storage.vectors import Numbers

HELLO_BYTES: Final = 1 << 20  # an introduction is no longer


class Inquiry(Asker):
    """Asks who is there, and nothing else."""

    def begin(self) -> None:
        """See ``Asker``: that was all."""

    def answered(self, reply: object) -> None:
        self.damaged("a reply came that nobody asked for")


class Asking:
    """The others that are asked, and what they have answered.

    Args:
        peers: whom to ask.
        callers: of whom a call is waited for.
        ask: begins to ask one of them, in a conversation that does not pull.
    """

    def __init__(
        self, peers: list[int], callers: list[int], ask: Callable[[int], Conversation]
    ) -> None:
        self._ask: Final = ask
        self._conversations: Final = {member: ask(member) for member in peers}
        self._callers: Final = callers
        self._called: Final[dict[int, Numbers]] = {}

    @property
    def asked(self) -> list[int]:
        """Whose answers are waited for."""
        return sorted([*self._conversations, *self._callers])

    def called(self, member: int, numbers: Numbers) -> None:
        """A region has called, and said what it knows.

        One that can be asked says more when it answers: which life of this region it has met.
        """
        if member not in self._conversations:
            self._called[member] = numbers

    def look(self) -> bool:
        """Ask those again that could not be reached; whether all have answered."""
        done = all(member in self._called for member in self._callers)
        for member, conversation in self._conversations.items():
            if answer_of(conversation) is None:
                done = False
                if conversation.over:
                    self._conversations[member] = self._ask(member)
        return done

    def answers(self) -> dict[int, Answer]:
        """Return what has been answered so far, by region."""
        found = {member: Answer(self._called[member]) for member in self._called}
        for region, conversation in self._conversations.items():
            answer = answer_of(conversation)
            if answer is not None:
                found[region] = answer
        return found

    def end(self) -> None:
        """Close the connections."""
        for conversation in self._conversations.values():
            conversation.end("it has been asked")


def answer_of(conversation: Conversation) -> Answer | None:
    """Return what the other side has answered; None where it has not, or not to what it was asked.

    That this side refuses the other one, which may be starting, too, is no answer.
    """
    puller = conversation.puller
    if puller.hello is not None:
        answer = Answer(puller.hello.numbers)
        answer.remembered = puller.hello.remembered
        return answer
    if puller.ahead and puller.known:
        return Answer(puller.known)
    if puller.twin or puller.rival:
        answer = Answer({})
        answer.is_twin = True
        return answer
    if puller.forgotten >= 0:
        answer = Answer({})
        answer.forgotten = puller.forgotten
        return answer
    return None
