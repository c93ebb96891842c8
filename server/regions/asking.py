"""At its start, a region asks all others what they know of it.

Each is asked over a connection of its own, which introduces the two and pulls nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from headrace.server.regions.asker import Asker
from headrace.server.regions.conversation import Conversation
from headrace.server.regions.starting import Answer

HELLO_BYTES: Final = 1 << 20  # an introduction is no longer


class Inquiry(Asker):
    """Asks who is there, and nothing else."""

    def begin(self) -> None:
        """See ``Asker``: that was all."""

    def answered(self, reply: object) -> None:
        """See ``Asker``."""
        self.damaged("a reply came that nobody asked for")


class Asking:
    """The others that are asked, and what they have answered.

    Args:
        members: whom to ask.
        ask: begins to ask one of them, in a conversation that does not pull.
    """

    def __init__(self, members: list[int], ask: Callable[[int], Conversation]) -> None:
        self._ask: Final = ask
        self._conversations: Final = {member: ask(member) for member in members}

    def look(self) -> bool:
        """Ask those again that could not be reached; whether all have answered."""
        done = True
        for member, conversation in self._conversations.items():
            if answer_of(conversation) is None:
                done = False
                if conversation.over:
                    self._conversations[member] = self._ask(member)
        return done

    def answers(self) -> dict[int, Answer]:
        """What has been answered so far, by region."""
        found: dict[int, Answer] = {}
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
    """What the other side has answered; None where it has not, or not to what it was asked.

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
