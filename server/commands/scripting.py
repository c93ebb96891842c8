"""EVAL, EVALSHA, SCRIPT, FUNCTION, FCALL: scripts and libraries of functions in Lua."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, cast

from headrace.compat import server_errors as errors
from headrace.compat.errors import (
    BAD_DUMP_FOOTER,
    FUNCTION_FLUSH_MODE,
    CommandError,
    bad_subcommand,
    c_text,
)
from headrace.compat.glob import matches
from headrace.compat.numbers import parse_integer
from headrace.persistence.errors import CorruptRDB
from headrace.persistence.forms.dump import dump_libraries, libraries_of
from headrace.protocol.replies import OK, Map, Set, Status
from headrace.server.dispatch.args import integer
from headrace.server.dispatch.call import Call
from headrace.server.gate import MONITORED

if TYPE_CHECKING:
    from headrace.server.scripting.engine import ScriptEngine
    from headrace.server.scripting.libraries import Library


def scripting_of(call: Call) -> ScriptEngine:
    """Return the script engine of a server, imported at the first call."""
    server = call.server
    scripting = server.scripting
    return cast("ScriptEngine", server.ready_scripting() if scripting is None else scripting)


def show(call: Call) -> None:
    """Show the request to monitors now, because the commands of the script follow it."""
    server = call.server
    if server.gate.reasons & MONITORED:
        server.clients.feed_monitors(call.session, call.argv, server.clock.now_ns)


def key_count(call: Call) -> int:
    """Return how many of the words are keys. Raises: CommandError."""
    count = integer(call.argv[2])
    if count > len(call.argv) - 3:
        raise CommandError(errors.TOO_MANY_KEYS)
    if count < 0:
        raise CommandError(errors.NEGATIVE_KEYS)
    return count


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
    # A master or a file that says EVALSHA relies on all scripts that it has named before.
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
    """Load a script. Reply: its SHA-1."""
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


def fcall(call: Call) -> object:
    """Run a function. Reply: what it returns."""
    return _call_function(call, False)


def fcall_ro(call: Call) -> object:
    """Run a function that does not write. Reply: what it returns."""
    return _call_function(call, True)


def _call_function(call: Call, read_only: bool) -> object:
    show(call)
    engine = scripting_of(call)
    argv = call.argv
    function = engine.libraries.functions.get(argv[1].lower())
    if function is None:
        raise CommandError(errors.FUNCTION_NOT_FOUND)
    if parse_integer(argv[2]) is None:
        raise CommandError(errors.BAD_KEY_COUNT)
    return engine.call_function(call, function, key_count(call), read_only)


def function_load(call: Call) -> object:
    """Load a library. Reply: its name."""
    argv = call.argv
    replaces = False
    for word in argv[2:-1]:
        if word.lower() != b"replace":
            raise CommandError(errors.UNKNOWN_LOAD_OPTION % c_text(word))
        replaces = True
    name = scripting_of(call).load_library(argv[-1], replaces, not call.replaying)
    call.record(argv, 1)
    return name


def function_delete(call: Call) -> object:
    """Delete a library. Reply: OK."""
    if not scripting_of(call).libraries.remove(call.argv[2]):
        raise CommandError(errors.LIBRARY_NOT_FOUND)
    call.record(call.argv, 1)
    return OK


def function_flush(call: Call) -> object:
    """Delete all libraries. Reply: OK."""
    argv = call.argv
    if len(argv) > 3:
        raise CommandError(bad_subcommand(b"function", argv[1]))
    if len(argv) == 3 and argv[2].lower() not in (b"async", b"sync"):
        raise CommandError(FUNCTION_FLUSH_MODE)
    engine = scripting_of(call)
    if len(argv) < 3 or argv[2].lower() == b"async":
        call.server.data.freed += len(engine.libraries.by_name) + 1  # and the interpreter
    engine.forget_functions()
    call.record(argv, 1)
    return OK


def function_list(call: Call) -> object:
    """Reply: for each library its name, engine, functions and, with WITHCODE, its code."""
    pattern: bytes | None = None
    with_code = False
    words = iter(call.argv[2:])
    for word in words:
        option = word.lower()
        if option == b"withcode" and not with_code:
            with_code = True
        elif option == b"libraryname" and pattern is None:
            pattern = next(words, None)
            if pattern is None:
                raise CommandError(errors.NO_LIST_PATTERN)
        else:
            raise CommandError(errors.unknown_list_argument(c_text(word)))
    libraries = scripting_of(call).libraries.by_name.values()
    return [
        _shown(library, with_code)
        for library in libraries
        if pattern is None or matches(pattern, library.name, True)
    ]


def _shown(library: Library, with_code: bool) -> Map:
    functions = [
        Map(
            [
                (b"name", function.name),
                (b"description", function.description),
                (b"flags", Set([Status(flag) for flag in function.flag_names])),
            ]
        )
        for function in library.functions.values()
    ]
    pairs: list[tuple[object, object]] = [
        (b"library_name", library.name),
        (b"engine", b"LUA"),
        (b"functions", functions),
    ]
    if with_code:
        pairs.append((b"library_code", library.code))
    return Map(pairs)


def function_stats(call: Call) -> object:
    """Reply: the function that runs, and how many there are for each engine."""
    engine = scripting_of(call)
    run = engine.busy.run
    running: object = None
    if run is not None and run.is_function:
        spent_ms = (time.monotonic_ns() - run.began_ns) // 1_000_000
        running = Map(
            [(b"name", run.name), (b"command", list(run.argv)), (b"duration_ms", spent_ms)]
        )
    counts = Map(
        [
            (b"libraries_count", len(engine.libraries.by_name)),
            (b"functions_count", len(engine.libraries.functions)),
        ]
    )
    return Map([(b"running_script", running), (b"engines", Map([(b"LUA", counts)]))])


def function_kill(call: Call) -> object:
    """End the function that runs, unless it has written. Reply: OK."""
    scripting_of(call).busy.kill(True)
    return OK


def function_dump(call: Call) -> object:
    """Reply: all libraries, as FUNCTION RESTORE takes them."""
    return dump_libraries(scripting_of(call).codes())


def function_restore(call: Call) -> object:
    """Load the libraries of a dump: all of them or none. Reply: OK."""
    argv = call.argv
    if len(argv) > 4:
        raise CommandError(bad_subcommand(b"function", argv[1]))
    policy = argv[3].lower() if len(argv) == 4 else b"append"
    if policy not in (b"append", b"replace", b"flush"):
        raise CommandError(errors.BAD_POLICY)
    try:
        codes = libraries_of(argv[2])
    except CorruptRDB:
        raise CommandError(errors.NOT_LIBRARIES) from None
    if codes is None:
        raise CommandError(BAD_DUMP_FOOTER)
    scripting_of(call).restore(codes, policy == b"flush", policy == b"replace")
    call.record(argv, 1)
    return OK
