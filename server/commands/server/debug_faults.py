"""DEBUG FAULT: tests have requests of clients delayed or refused, and replies lost.

``close-after`` runs the request, and the connection ends without its reply: a producer cannot know
whether its entry was added. ``silence`` runs it, too, and the connection stays and answers nothing
any more: that is a client's time-out.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

from headrace.compat import errors
from headrace.compat.errors import CommandError
from headrace.compat.numbers import parse_integer
from headrace.protocol.replies import Map
from headrace.server import gate
from headrace.server.dispatch import rows
from headrace.server.dispatch.call import Call
from headrace.server.faults import (
    ANY,
    CLOSE_AFTER,
    CLOSE_BEFORE,
    DELAY,
    ERROR,
    SILENCE,
    Fault,
)

FAULTS: Final = (
    "ADD COMMAND name [KEY pattern] [CLIENT name-pattern] [PERCENT p] [TIMES n] [SEED s] ACTION "
    "delay ms | error text | close-before | close-after | silence; or LIST, or CLEAR [id]"
)
LONGEST_DELAY_MS: Final = 1 << 40
_WORDS_OF: Final = {DELAY: 2, ERROR: 2, CLOSE_BEFORE: 1, CLOSE_AFTER: 1, SILENCE: 1}


def fault_tool(call: Call) -> object:
    """Add, list or clear faults. Reply: the ID of the fault; a list of maps; how many have gone."""
    word = call.argv[2].lower()
    if word == b"add" and len(call.argv) > 3:
        return _add(call)
    if word == b"list" and len(call.argv) == 3:
        return _list(call)
    if word == b"clear" and len(call.argv) in (3, 4):
        return _clear(call)
    raise CommandError(errors.BAD_FAULT % FAULTS.encode())


def _add(call: Call) -> int:
    words = call.argv[3:]
    options: dict[bytes, bytes] = {}
    while len(words) >= 2 and words[0].lower() != b"action":
        name = words[0].lower()
        if name != b"command" and name not in _OPTIONS:
            raise _wrong(b"'%b' is none of COMMAND, KEY, CLIENT, PERCENT, TIMES, SEED" % words[0])
        if name in options:
            raise _wrong(b"%b stands twice" % name.upper())
        options[name] = words[1]
        words = words[2:]
    if b"command" not in options:
        raise _wrong(b"COMMAND is missing, * is any")
    action = words[1].lower() if len(words) > 1 else b""
    if len(words) - 1 != _WORDS_OF.get(action):
        raise _wrong(b"ACTION is delay ms, error text, close-before, close-after or silence")
    fault = Fault(_command(options[b"command"]), action)
    fault.sow(int.from_bytes(os.urandom(4), "big"))
    for name, option in _OPTIONS.items():
        if name in options:
            option(fault, options[name])
    if action == DELAY:
        fault.delay_ms = _number(words[2], 0, LONGEST_DELAY_MS, b"the delay")
    elif action == ERROR:
        fault.line = _line(words[2])
    faults = call.server.faults
    call.server.gate.set(gate.FAULTY, True)
    return faults.add(fault)


def _command(name: bytes) -> bytes:
    """Return the name of a command as its row has it; ``config|get`` is a subcommand."""
    name = name.lower()
    container, _, subcommand = name.partition(b"|")
    row = rows.TABLE.get(container)
    if name == ANY or (row is not None and (not subcommand or subcommand in row.subcommands)):
        return name
    raise _wrong(b"there is no command '%b'" % name)


def _line(text: bytes) -> bytes:
    if not text or b"\r" in text or b"\n" in text:
        raise _wrong(b"an error is one line, such as 'LOADING Redis is loading'")
    return text.removeprefix(b"-")


def _number(text: bytes, least: int, most: int, what: bytes) -> int:
    number = parse_integer(text)
    if number is None or not least <= number <= most:
        raise _wrong(b"%b is a number from %d to %d" % (what, least, most))
    return number


def _set_percent(fault: Fault, text: bytes) -> None:
    try:
        percent = float(text)
    except ValueError:
        percent = -1.0
    if not 0 <= percent <= 100:
        raise _wrong(b"PERCENT is a number from 0 to 100")
    fault.percent = percent


def _set_key(fault: Fault, text: bytes) -> None:
    fault.key = text


def _set_client(fault: Fault, text: bytes) -> None:
    fault.client = text


def _set_times(fault: Fault, text: bytes) -> None:
    fault.times = _number(text, 1, 1 << 40, b"TIMES")


def _set_seed(fault: Fault, text: bytes) -> None:
    fault.sow(_number(text, 0, (1 << 63) - 1, b"SEED"))


_OPTIONS: Final[dict[bytes, Callable[[Fault, bytes], None]]] = {
    b"key": _set_key,
    b"client": _set_client,
    b"percent": _set_percent,
    b"times": _set_times,
    b"seed": _set_seed,
}


def _wrong(text: bytes) -> CommandError:
    return CommandError(errors.BAD_FAULT_PART % text)


def _list(call: Call) -> list[object]:
    return [
        Map(
            [
                (b"id", number),
                (b"command", fault.command),
                (b"key", fault.key),
                (b"client", fault.client),
                (b"percent", b"%g" % fault.percent),
                (b"times", fault.times),
                (b"seed", fault.seed),
                (b"action", _action(fault)),
                (b"fired", fault.fired),
            ]
        )
        for number, fault in call.server.faults.by_id.items()
    ]


def _action(fault: Fault) -> bytes:
    if fault.action == DELAY:
        return b"delay %d" % fault.delay_ms
    return b"error " + fault.line if fault.action == ERROR else fault.action


def _clear(call: Call) -> int:
    by_id = call.server.faults.by_id
    gone = len(by_id)
    if len(call.argv) == 4:
        number = parse_integer(call.argv[3])
        if number is None or by_id.pop(number, None) is None:
            raise CommandError(errors.NO_SUCH_FAULT)
        gone = 1
    else:
        by_id.clear()
    call.server.gate.set(gate.FAULTY, bool(by_id))
    return gone
