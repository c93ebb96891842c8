"""HOTKEYS: which keys take most time, and most of the network."""

from __future__ import annotations

import importlib
from typing import Final

from headrace.server.dispatch.call import Call

_ANSWERS: Final = "headrace.server.commands.server.hotkeys_answers"


def answer(call: Call) -> object:
    """What the subcommand answers."""
    answers = importlib.import_module(_ANSWERS)  # late, because few servers are asked for them
    reply: object = answers.ANSWERS[call.name()](call)
    return reply
