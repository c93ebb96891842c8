"""HOTKEYS: which keys take most time, and most of the network."""

from __future__ import annotations

import importlib
from typing import Final

from headrace.server.commands.help import show_help
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import ADMIN, LOADING, NOSCRIPT, STALE, command, container

_ANSWERS: Final = "headrace.server.commands.server.hotkeys_answers"
_FLAGS: Final = ADMIN | NOSCRIPT
_SPECIAL: Final = "request_policy:special"
_OF_GET: Final = ("nondeterministic_output", _SPECIAL, "response_policy:special")


def answer(call: Call) -> object:
    """What the subcommand answers."""
    answers = importlib.import_module(_ANSWERS)  # late, because few servers are asked for them
    reply: object = answers.ANSWERS[call.name()](call)
    return reply


container("HOTKEYS")
command("HOTKEYS|START", arity=-2, flags=_FLAGS, tips=(_SPECIAL,))(answer)
command("HOTKEYS|STOP", arity=2, flags=_FLAGS, tips=(_SPECIAL,))(answer)
command("HOTKEYS|GET", arity=2, flags=_FLAGS, tips=_OF_GET)(answer)
command("HOTKEYS|RESET", arity=2, flags=_FLAGS, tips=(_SPECIAL,))(answer)
command("HOTKEYS|HELP", arity=2, flags=LOADING | STALE)(show_help)
