"""EVAL, EVALSHA, SCRIPT: Lua scripts."""

from __future__ import annotations

from typing import Final

from headrace.compat import scripting_errors as errors
from headrace.compat.errors import CommandError
from headrace.protocol.replies import OK
from headrace.server.commands.scripting.running import key_count, scripting_of, show
from headrace.server.dispatch.call import Call

_SHA_DIGITS: Final = 40


def eval_(call: Call) -> object:
    """Run a script. Reply: what it returns."""
    return _evaluate(call, False)


def eval_ro(call: Call) -> object:
    """Run a script that may not write. Reply: what it returns."""
    return _evaluate(call, True)


def evalsha(call: Call) -> object:
    """Run a script that is known, by its SHA-1. Reply: what it returns."""
    return _evaluate_known(call, False)


def evalsha_ro(call: Call) -> object:
    """Run a script that is known and may not write, by its SHA-1. Reply: what it returns."""
    return _evaluate_known(call, True)


def _evaluate(call: Call, read_only: bool) -> object:
    show(call)
    keys = key_count(call)
    # A master or a file that says EVALSHA counts on all scripts that it has named before.
    script = scripting_of(call).load(call.argv[1], call.replaying)
    return scripting_of(call).run(call, script, keys, read_only)


def _evaluate_known(call: Call, read_only: bool) -> object:
    show(call)
    sha = call.argv[1]
    if len(sha) != _SHA_DIGITS:
        raise CommandError(errors.NO_SCRIPT)
    keys = key_count(call)
    engine = scripting_of(call)
    script = engine.find(sha) or engine.find(sha.lower())
    if script is None:
        raise CommandError(errors.NO_SCRIPT)
    return engine.run(call, script, keys, read_only)


def script_load(call: Call) -> object:
    """Have a script known. Reply: its SHA-1."""
    return scripting_of(call).load(call.argv[2], True).sha


def script_exists(call: Call) -> object:
    """Reply: for each SHA-1 1 where the script is known, else 0."""
    engine = scripting_of(call)
    return [int(engine.find(sha.lower()) is not None) for sha in call.argv[2:]]


def script_flush(call: Call) -> object:
    """Forget all scripts. Reply: OK."""
    argv = call.argv
    if len(argv) > 3 or (len(argv) == 3 and argv[2].lower() not in (b"async", b"sync")):
        raise CommandError(errors.SCRIPT_FLUSH_MODE)
    scripting_of(call).forget_all()
    return OK


def script_kill(call: Call) -> object:
    """End the script that runs, unless it has written. Reply: OK."""
    scripting_of(call).busy.kill(False)
    return OK


def script_debug(call: Call) -> object:
    """Reply: OK to NO; there is no debugger that could be turned on."""
    mode = call.argv[2].lower()
    if mode == b"no":
        return OK
    raise CommandError(errors.NO_DEBUGGER if mode in (b"yes", b"sync") else errors.DEBUG_MODE)
