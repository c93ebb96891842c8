"""A Lua interpreter with the libraries that scripts see in it, and the first line of a script."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from headrace.compat import server_errors as errors
from headrace.compat.errors import c_text
from headrace.server.build import REDIS_VERSION
from headrace.server.clients.clients import size_of
from headrace.server.scripting.busy import Busy
from headrace.server.scripting.calls import REPL_ALL, REPL_AOF, REPL_NONE, REPL_REPLICA, ScriptCalls
from headrace.server.scripting.errors import LibraryError, ScriptError
from headrace.server.scripting.memory import FAR_BEYOND_BYTES, VALUE_BYTES, Memory
from headrace.server.scripting.operations import (
    BIT_OPERATIONS,
    STRUCT_OPERATIONS,
    Chance,
    pack_double,
    unpack_double,
)
from headrace.server.scripting.patterns import MOST_WORK, Matching
from headrace.server.scripting.values import FAILED, Builders, Native, Operation

# Flags of the first line of a script, as in ``#!lua flags=no-writes``.
NO_WRITES: Final = 1 << 0
ALLOW_OOM: Final = 1 << 1
ALLOW_STALE: Final = 1 << 2
NO_CLUSTER: Final = 1 << 3
ALLOW_CROSS_SLOT: Final = 1 << 4
COMPATIBLE: Final = 1 << 5  # there is no first line that says anything

FLAGS: Final[dict[bytes, int]] = {
    b"no-writes": NO_WRITES,
    b"allow-oom": ALLOW_OOM,
    b"allow-stale": ALLOW_STALE,
    b"no-cluster": NO_CLUSTER,
    b"allow-cross-slot-keys": ALLOW_CROSS_SLOT,
}


def split_shebang(source: bytes) -> tuple[int, bytes]:
    """Return the flags and the text of a script, whose lines keep their numbers.

    Raises: ScriptError, where the first line is not understood.
    """
    if not source.startswith(b"#!"):
        return COMPATIBLE, source
    line, end, rest = source.partition(b"\n")
    if not end or b"\0" in line:  # where it ends for C
        raise ScriptError(errors.BAD_SHEBANG)
    words = line.split()
    if words[0] != b"#!lua":
        raise ScriptError(errors.UNEXPECTED_ENGINE % words[0])
    flags = 0
    for word in words[1:]:
        option, _, value = word.partition(b"=")
        if option != b"flags" or b"=" not in word:
            raise ScriptError(errors.UNKNOWN_SHEBANG_OPTION % word)
        for name in value.split(b","):
            if not name:
                continue
            if name not in FLAGS:
                raise ScriptError(errors.UNEXPECTED_FLAG % name)
            flags |= FLAGS[name]
    return flags, b"\n" + rest


_NAME: Final = re.compile(rb"[A-Za-z0-9_]+")
_NO_MEMORY: Final = (FAILED, errors.NOT_ENOUGH_MEMORY, None, None, False)
_MOST_WORDS: Final = 4000  # that are handed over one by one; more go as tables


def _refused(*_: object) -> str:
    """Deny Lua the attributes of Python's objects."""
    raise AttributeError("not for scripts")


def _version_number() -> int:
    major, minor, patch = [int(part) for part in REDIS_VERSION.split(".")]
    return major << 16 | minor << 8 | patch


_CONSTANTS: Final = {
    b"LOG_DEBUG": 0,
    b"LOG_VERBOSE": 1,
    b"LOG_NOTICE": 2,
    b"LOG_WARNING": 3,
    b"REPL_NONE": REPL_NONE,
    b"REPL_AOF": REPL_AOF,
    b"REPL_SLAVE": REPL_REPLICA,
    b"REPL_REPLICA": REPL_REPLICA,
    b"REPL_ALL": REPL_ALL,
    b"REDIS_VERSION": REDIS_VERSION.encode(),
    b"REDIS_VERSION_NUM": _version_number(),
}


def _functions(calls: ScriptCalls, of_functions: bool) -> dict[bytes, Callable[..., object]]:
    functions: dict[bytes, Callable[..., object]] = {
        b"call": calls.call,
        b"log": calls.log,
        b"sha1hex": calls.sha1hex,
        b"setresp": calls.setresp,
        b"set_repl": calls.set_repl,
        b"acl_check_cmd": calls.acl_check_cmd,
    }
    if not of_functions:
        functions[b"replicate_commands"] = calls.replicate_commands
        functions[b"breakpoint"] = calls.breakpoint
    return functions


def _native(complain: Any, memory: Memory) -> dict[bytes, dict[bytes, Native]]:
    """Return the libraries written in Python, and the replacements of Lua's functions."""
    chance = Chance()
    libraries: dict[str, dict[str, Operation]] = {
        "bit": BIT_OPERATIONS,
        "struct": STRUCT_OPERATIONS,
        "math": {"random": chance.random, "randomseed": chance.seed},
    }
    return {
        library.encode(): {
            name.encode(): Native(run, complain, memory) for name, run in operations.items()
        }
        for library, operations in libraries.items()
    }


def _matching(busy: Busy) -> dict[bytes, Callable[..., object]]:
    """Return the functions that match patterns which may take very long."""
    matching = Matching(busy)
    return {b"find": matching.find, b"matcher": matching.matcher}


class Failure:
    """A run that failed: its error, whether that is counted, and the place, if it is known."""

    def __init__(self, text: bytes, counted: bool, chunk: bytes | None, line: int | None) -> None:
        self.text: Final = text
        self.counted: Final = counted
        self.chunk: Final = chunk
        self.line: Final = line


class Function:
    """A function of a library; ``callback`` is what Lua calls."""

    def __init__(
        self, name: bytes, callback: Any, flags: list[bytes], description: bytes | None
    ) -> None:
        self.name: Final = name
        self.callback: Final = callback
        self.flag_names: Final = flags
        self.flags: Final = sum({FLAGS[flag] for flag in flags})
        self.description: Final = description


def _function(registered: Any) -> Function:
    flags = list(registered[b"flags"].values())
    description = registered[b"description"]
    return Function(registered[b"name"], registered[b"callback"], flags, description)


class Interpreter:
    """A Lua interpreter; what scripts have changed in its libraries stays for the next one.

    ``busy`` knows whether the script has to end; ``of_functions`` if it is for functions.
    """

    def __init__(self, calls: ScriptCalls, busy: Busy, of_functions: bool) -> None:
        lua = import_module("lupa.lua51").LuaRuntime(
            encoding=None,
            register_eval=False,
            register_builtins=False,
            unpack_returned_tuples=True,
            attribute_filter=_refused,
            max_memory=FAR_BEYOND_BYTES,
        )
        self.of_functions: Final = of_functions
        memory = calls.memory
        memory.watch(lua)
        table = lua.table_from
        complaints = _load(lua, "complaints")
        ending = _Ending(busy, memory)
        native = _native(complaints[b"native"], memory)
        self._native: Final = [each for library in native.values() for each in library.values()]
        server = {
            b"functions": table(_functions(calls, of_functions)),
            b"native": table(
                {
                    library: table({name: each.call for name, each in operations.items()})
                    for library, operations in native.items()
                }
            ),
            b"constants": table(_CONSTANTS),
            b"patterns": _load(lua, "patterns", complaints, table(_matching(busy)), MOST_WORK),
            b"text_of": calls.text_of,
            b"error_line": calls.error_line,
            b"is_to_end": ending.is_to_end,
            b"refusal_of_function": refusal_of_function,
            b"end_script": ending.end_script,
        }
        made = _load(
            lua,
            "sandbox",
            table(server),
            _libraries(lua, complaints),
            _load(lua, "tail_calls"),
            complaints,
        )
        self._compile: Final = made[b"compile"]
        self._run: Final = made[b"run"]
        self._compile_library: Final = made[b"compile_library"]
        self._load_library: Final = made[b"load_library"]
        self._run_with_tables: Final = made[b"run_function" if of_functions else b"run_of_many"]
        self._set_hook: Final = made[b"set_hook"]
        self._lua: Final = lua
        self._memory: Final = memory
        self.builders: Final = Builders(made, table, busy)

    def close(self) -> None:
        """Break the references to it, so that it is freed at once when nothing else needs it."""
        for native in self._native:
            native.release()
        self._memory.forget()

    def memory_bytes(self) -> int:
        """Return the bytes that it holds."""
        return self._memory.used_bytes()

    def compile(self, source: bytes) -> Any:
        """Compile a script. Raises: ScriptError for invalid Lua."""
        compiled = self._compile(source)
        if isinstance(compiled, tuple):
            raise ScriptError(errors.DOES_NOT_COMPILE % compiled[1])
        return compiled

    def run(self, chunk: Any, argv: list[bytes], keys: int) -> object:
        """Run a script or a function; return a ``Failure``, or what ``values.reply_of`` takes.

        ``argv`` is the request: ``keys`` keys from its fourth word on, and then ARGV.
        """
        count = len(argv)
        try:
            self._memory.begin(size_of(argv) + VALUE_BYTES * count)
            if count <= _MOST_WORDS and not self.of_functions:
                given: list[Any] = argv[1:]
                given[0] = chunk
                given[1] = keys
                left = self._run(*given)
            else:
                table = self._lua.table_from if count <= _MOST_WORDS else self.builders.table
                end = 3 + keys
                left = self._run_with_tables(chunk, table(argv[3:end]), table(argv[end:]))
        except ScriptError as error:  # there is no room for what it is given, or it is ended
            left = Failure(error.text, error.counted, None, None)
        except MemoryError:
            left = _NO_MEMORY
        return self._outcome(left)

    def _outcome(self, left: object) -> object:
        if self._memory.exceeded or left is _NO_MEMORY:
            self._memory.end()
            self._set_hook()
        if isinstance(left, tuple) and left[0] == FAILED:
            return self._failure(left[1], left[2], left[3], left[4])
        return left

    def load_library(self, source: bytes) -> list[Function] | Failure:
        """Return the functions of a library, or its failure. Raises: ScriptError for bad Lua."""
        chunk = self._compile_library(source)
        if isinstance(chunk, tuple):
            raise ScriptError(errors.LIBRARY_NO_LUA % chunk[1])
        try:
            loaded = self._load_library(chunk)
        except MemoryError:
            loaded = _NO_MEMORY
        outcome = self._outcome(loaded)
        if isinstance(outcome, Failure):
            return outcome
        return [_function(each) for each in loaded.values()]

    def _failure(
        self, raised: object, chunk: bytes | None, line: int | None, counted: bool
    ) -> Failure:
        if isinstance(raised, ScriptError):
            text = b"ERR " + raised.text if isinstance(raised, LibraryError) else raised.text
            return Failure(text, raised.counted, chunk, line)
        assert isinstance(raised, bytes)
        return Failure(c_text(raised), counted, chunk, line)


def is_name(name: bytes) -> bool:
    """Return whether libraries and functions may have this name."""
    return _NAME.fullmatch(name) is not None


def refusal_of_function(name: bytes, *flags: bytes) -> bytes | None:
    """Return why a function may not be registered; None where it may."""
    if not is_name(name):
        return errors.BAD_NAME
    return errors.UNKNOWN_FLAG if any(flag not in FLAGS for flag in flags) else None


class _Ending:
    """Ends a script whose time is over, or which takes too much memory."""

    def __init__(self, busy: Busy, memory: Memory) -> None:
        self._busy: Final = busy
        self._memory: Final = memory

    def is_to_end(self, *_: object) -> tuple[bool, bool]:
        """Return whether it has to end, and whether the last check is long ago; serves others."""
        to_end = self._memory.is_exceeded() or self._busy.is_to_end()
        return to_end, self._busy.was_long

    def end_script(self, *_: object) -> bool:
        """Raise the ScriptError that ends it, or return if it may go on."""
        if self._memory.exceeded:
            raise ScriptError(errors.NOT_ENOUGH_MEMORY)
        if self._busy.is_to_end():
            raise ScriptError(self._busy.refusal())
        return False


def _libraries(lua: Any, complaints: Any) -> Any:
    settings = _load(lua, "json_settings", complaints)
    encode = _load(lua, "json_encoder", complaints, settings)
    decode = _load(lua, "json_decoder", complaints, settings)
    doubles = lua.table_from({b"pack_double": pack_double, b"unpack_double": unpack_double})
    pack = _load(lua, "msgpack_encoder", doubles)
    unpack = _load(lua, "msgpack_decoder", complaints, doubles)
    libraries = {
        b"cjson": _load(lua, "cjson", encode, decode, settings),
        b"cmsgpack": _load(lua, "cmsgpack", complaints, pack, unpack),
    }
    return lua.table_from(libraries)


def _load(lua: Any, name: str, *arguments: object) -> Any:
    """Run one of our own files; return what it returns."""
    # ``importlib.resources`` would take as long to be imported as most of the rest.
    folder = import_module("headrace.server.scripting.lua").__path__[0]
    with open(f"{folder}/{name}.lua", "rb") as file:
        source = file.read()
    return lua.execute(source, *arguments, name=f"@{name}.lua".encode(), mode=b"t")
