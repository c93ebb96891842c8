"""The scripts of a server: those that it knows, and the one that it runs."""

from __future__ import annotations

from typing import Any, Final

from headrace.compat import server_errors as errors
from headrace.compat.errors import MASTER_DOWN, NO_REPLICAS, CommandError, c_text
from headrace.protocol.replies import ErrorReply
from headrace.server.dispatch.admission import (
    is_out_of_memory,
    is_read_only,
    is_stale,
    lacks_replicas,
    unsaved_line,
)
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.dispatcher import Dispatcher
from headrace.server.dispatch.rows import DENYOOM, MAY_REPLICATE, STALE, WRITE
from headrace.server.gate import MEMORY_LIMITED
from headrace.server.scripting.busy import Busy
from headrace.server.scripting.calls import Rights, ScriptCalls
from headrace.server.scripting.errors import ScriptError
from headrace.server.scripting.interpreter import (
    ALLOW_CROSS_SLOT,
    ALLOW_OOM,
    ALLOW_STALE,
    COMPATIBLE,
    NO_CLUSTER,
    NO_WRITES,
    Failure,
    Function,
    Interpreter,
    split_shebang,
)
from headrace.server.scripting.libraries import Libraries, Library, library_name, made_library
from headrace.server.scripting.values import reply_of
from headrace.server.state import ScriptFigures, Scripting

MOST_EVALUATED: Final = 500  # scripts that EVAL has brought; those loaded by SCRIPT LOAD stay


class Script:
    """A script that has been compiled.

    Attributes:
        sha: its SHA-1 in hexadecimal digits, by which clients call it.
        source: as it was sent.
        flags: those of its first line; see ``split_shebang``.
        chunk: the function that Lua made of it.
        is_loaded: SCRIPT LOAD has brought it, so it stays.
    """

    def __init__(self, sha: bytes, source: bytes, flags: int, chunk: Any) -> None:
        self.sha: Final = sha
        self.source: Final = source
        self.flags: Final = flags
        self.chunk: Final = chunk
        self.is_loaded = False


class _World:
    """An interpreter and its calls: scripts have one, and functions have another."""

    def __init__(self, dispatcher: Dispatcher, busy: Busy, of_functions: bool) -> None:
        self.calls: Final = ScriptCalls(dispatcher)
        self._server: Final = dispatcher.server
        self._busy: Final = busy
        self._of_functions: Final = of_functions
        self._interpreter: Interpreter | None = None

    def ready(self) -> Interpreter:
        interpreter = self._interpreter
        if interpreter is None:
            self._server.host.lend_files()  # for its libraries
            interpreter = Interpreter(self.calls, self._busy, self._of_functions)
            self._interpreter = interpreter
            self.calls.builders = interpreter.builders
        return interpreter

    def forget(self) -> None:
        if self._interpreter is not None:
            self._interpreter.close()
        self._interpreter = None
        self.calls.builders = None

    def memory_bytes(self) -> int:
        return 0 if self._interpreter is None else self._interpreter.memory_bytes()


class ScriptEngine(Scripting):
    """The scripts and functions of a server."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        super().__init__()
        self._dispatcher: Final = dispatcher
        self._server: Final = dispatcher.server
        self.busy: Final = Busy(dispatcher)
        self._of_scripts: Final = _World(dispatcher, self.busy, False)
        self._of_functions: Final = _World(dispatcher, self.busy, True)
        self.libraries = Libraries()
        self._scripts: Final[dict[bytes, Script]] = {}
        self._evaluated: Final[dict[bytes, Script]] = {}  # those that may go, the oldest first
        self._last: Script | None = None  # that was loaded last: mostly the next is the same

    # Scripts

    def find(self, sha: bytes) -> Script | None:
        """Return the script with this SHA-1, in lower-case digits."""
        return self._scripts.get(sha)

    def load(self, source: bytes, stays: bool) -> Script:
        """Return the script of a source, kept until all are forgotten if it ``stays``.

        Raises: CommandError, where it does not compile.
        """
        last = self._last
        if last is not None and not stays and last.source == source:
            return last
        from hashlib import sha1  # it brings OpenSSL with it

        sha = sha1(source).hexdigest().encode()
        script = self._scripts.get(sha)
        if script is None:
            try:
                flags, text = split_shebang(source)
                chunk = self._of_scripts.ready().compile(text)
            except ScriptError as error:
                raise CommandError(error.text) from None
            script = Script(sha, source, flags, chunk)
            self._scripts[sha] = script
            if not stays:
                self._evaluated[sha] = script
                self._forget_oldest()
        if stays and not script.is_loaded:
            script.is_loaded = True
            self._evaluated.pop(sha, None)
        self._last = script
        return script

    def _forget_oldest(self) -> None:
        while len(self._evaluated) > MOST_EVALUATED:
            sha = next(iter(self._evaluated))
            del self._evaluated[sha]
            del self._scripts[sha]
            self._server.statistics.counters.evicted_scripts += 1

    def holds_scripts(self) -> bool:
        return len(self._scripts) > len(self._evaluated)

    def forget_all(self) -> None:
        """Forget all scripts, and what they have changed in the interpreter."""
        self._scripts.clear()
        self._evaluated.clear()
        self._last = None
        self._of_scripts.forget()

    # Running

    def run(self, call: Call, script: Script, keys: int, read_only: bool) -> object:
        """Run a script with ``keys`` keys for a call; return the reply.

        Raises:
            CommandError: it may not be run now, or not so.
        """
        flags = script.flags
        if not script.is_loaded:
            sha = script.sha
            if sha in self._evaluated:  # it is the youngest again
                del self._evaluated[sha]
                self._evaluated[sha] = script
        rights = self._rights(call, flags, read_only)
        left = self._run(call, self._of_scripts, rights, script.sha, script.chunk, keys)
        if isinstance(left, Failure):
            return _failed(call, left, script.sha, b"@user_script", b"\n" not in script.source)
        return self._reply(call, left, self._of_scripts.calls)

    def _run(
        self, call: Call, world: _World, rights: Rights, name: bytes, chunk: Any, keys: int
    ) -> object:
        """Run a chunk; return a ``Failure``, or what ``values.reply_of`` takes."""
        interpreter = world.ready()
        world.calls.begin(call, rights, self.busy.begin(name, interpreter.of_functions, call))
        clock = self._server.clock
        began_ns = clock.now_ns
        self.runs += 1
        try:
            return interpreter.run(chunk, call.argv, keys)
        finally:
            clock.now_ns = began_ns  # what its calls have taken is its time, too
            world.calls.end()
            self.busy.end()

    def _rights(self, call: Call, flags: int, read_only: bool) -> Rights:
        """Return the rights of a script with these flags; raises CommandError for a refused one."""
        server = self._server
        line = self._refusal_of(flags, read_only, call.replaying)
        if line:
            raise CommandError(line)
        grows = bool(flags & ALLOW_OOM) or not server.gate.reasons & MEMORY_LIMITED
        roams = bool(flags & (COMPATIBLE | ALLOW_CROSS_SLOT))
        return Rights(not read_only and not flags & NO_WRITES, grows, roams)

    def _refusal_of(self, flags: int, read_only: bool, replaying: bool) -> bytes:
        """Return why a script with these flags is not run now; empty if it is.

        Mostly its request was admitted by the same flags. But EXEC runs what was admitted before
        the script was loaded, or before something else changed (``scriptPrepareForRun``).
        """
        server = self._server
        if flags & NO_CLUSTER and server.cluster is not None:
            return errors.NOT_ON_CLUSTER
        if is_stale(server) and not flags & ALLOW_STALE and not replaying:
            return MASTER_DOWN if flags & COMPATIBLE else errors.STALE_SCRIPT
        if flags & (NO_WRITES | COMPATIBLE):
            return b""
        if not replaying and is_read_only(server):
            return errors.SCRIPT_ON_REPLICA
        unsaved = unsaved_line(self._dispatcher, errors.UNSAVED_SNAPSHOT, errors.UNSAVED_AOF)
        if unsaved and not replaying:
            return unsaved
        if read_only:
            return errors.WRITES_IN_READ_ONLY
        if lacks_replicas(server) and not replaying:
            return NO_REPLICAS
        out_of_memory = not replaying and not flags & ALLOW_OOM and is_out_of_memory(server)
        return errors.NO_ROOM_TO_RUN if out_of_memory else b""

    def _reply(self, call: Call, left: object, calls: ScriptCalls) -> object:
        failures: list[bytes] = []
        reply = reply_of(left, call.session.resp3, not calls.session.resp3, failures)
        for line in failures:
            self._server.statistics.counters.count_error(line)
        if isinstance(reply, ErrorReply) and call.row is not None:
            call.row.failed_calls += 1
        return reply

    def flags_of(self, flags: int, name: bytes, argv: list[bytes]) -> int:
        said = self._said_by(name, argv)
        if said & COMPATIBLE:
            return flags
        flags &= ~(MAY_REPLICATE | STALE)
        if said & ALLOW_STALE:
            flags |= STALE
        if not said & NO_WRITES:
            flags |= WRITE if said & ALLOW_OOM else WRITE | DENYOOM
        return flags

    def _said_by(self, name: bytes, argv: list[bytes]) -> int:
        """Return the flags of what a request runs; ``COMPATIBLE`` if it has no first line."""
        if name.startswith(b"fcall"):
            function = self.libraries.functions.get(argv[1].lower())
            return COMPATIBLE if function is None else function.flags
        if name.startswith(b"evalsha"):
            script = self.find(argv[1].lower())
            return COMPATIBLE if script is None else script.flags
        try:
            return split_shebang(argv[1])[0]
        except ScriptError:
            return COMPATIBLE

    # Functions

    def load_library(self, code: bytes, replaces: bool, is_limited: bool) -> bytes:
        """Load a library; return its name. Raises: CommandError for an invalid or existing one.

        With ``replaces`` one of the same name goes; if ``is_limited``, it may not take long.
        """
        if not replaces:  # asked before the library runs
            self.libraries.check_absent(library_name(code)[0], errors.LIBRARY_EXISTS)
        library = self._made(code, is_limited)
        self.libraries.add(library, replaces, errors.LIBRARY_EXISTS)
        return library.name

    def _made(self, code: bytes, is_limited: bool) -> Library:
        self.busy.begin_loading(is_limited)
        try:
            return made_library(self._of_functions.ready(), code)
        finally:
            self.busy.end()

    def codes(self) -> list[bytes]:
        return [library.code for library in self.libraries.by_name.values()]

    def take_back(self, codes: list[bytes], replaces: bool) -> None:
        for code in codes:
            self.load_library(code, replaces, False)

    def restore(self, codes: list[bytes], flushes: bool, replaces: bool) -> None:
        """Add libraries to those that are there, or replace all of them with ``flushes``.

        Raises: CommandError, where one is invalid or there already; then nothing has changed.
        """
        found = Libraries() if flushes else self.libraries.copy()
        for code in codes:
            library = self._made(code, True)
            found.add(library, replaces, errors.LIBRARY_EXISTS_RESTORING)
        self.libraries = found

    def forget_functions(self) -> None:
        self.libraries = Libraries()
        self._of_functions.forget()

    def call_function(self, call: Call, function: Function, keys: int, read_only: bool) -> object:
        """Run a function for a call; return the reply. Raises: CommandError, as ``run``."""
        rights = self._rights(call, function.flags, read_only)
        world = self._of_functions
        left = self._run(call, world, rights, function.name, function.callback, keys)
        if isinstance(left, Failure):
            return _failed(call, left, function.name, b"@user_function", False)
        return self._reply(call, left, world.calls)

    # Figures for INFO

    def figures(self) -> ScriptFigures:
        """Return the figures of scripts and functions for INFO and MEMORY."""
        figures = ScriptFigures()
        figures.scripts = len(self._scripts)
        figures.functions = len(self.libraries.functions)
        figures.libraries = len(self.libraries.by_name)
        figures.interpreter_bytes = self._of_scripts.memory_bytes()
        figures.functions_bytes = self._of_functions.memory_bytes()
        scripts = self._scripts.values()
        figures.script_text_bytes = sum([len(each.source) + len(each.sha) for each in scripts])
        libraries = self.libraries.by_name.values()
        figures.library_text_bytes = sum([len(each.code) + len(each.name) for each in libraries])
        return figures


def _failed(
    call: Call, failure: Failure, name: bytes, chunk: bytes, is_one_line: bool
) -> ErrorReply:
    """Return the reply to a failed script. Raises: CommandError, where that is still to count."""
    line = failure.line
    if line is None and is_one_line:
        line = 1
    text = errors.located(c_text(failure.text), name, failure.chunk or chunk, line)
    row = call.row
    assert row is not None
    if not failure.counted:
        raise CommandError(text)
    row.failed_calls += 1
    return ErrorReply(text)
