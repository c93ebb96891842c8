"""The calls of a script to commands, and the other functions that the server has for it.

A call goes the way of every request: its row is found and its words are counted, what refuses a
client refuses a script, and ``invoke`` runs the command. A script has a session of its own, because
it may select another database and another version of the protocol than its client.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from headrace.compat import server_errors as errors
from headrace.compat.errors import (
    NO_REPLICAS,
    OUT_OF_MEMORY,
    READ_ONLY_REPLICA,
    TRANSACTION_TOO_LARGE,
    CommandError,
    c_text,
)
from headrace.protocol.doubles import double
from headrace.protocol.replies import ErrorReply
from headrace.server.acl.log import SCRIPT
from headrace.server.changes.changes import FILES, REPLICAS
from headrace.server.clients.session import (
    CACHING,
    IN_MULTI,
    IN_SCRIPT,
    NO_TOUCH,
    NOBODY,
    TRACKED,
    Session,
)
from headrace.server.dispatch.admission import (
    find_row,
    is_out_of_memory,
    is_read_only,
    is_stale,
    lacks_replicas,
    unsaved_line,
)
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.dispatcher import Dispatcher
from headrace.server.dispatch.invoke import count_call, invoke, lap, note_reads, show_monitors
from headrace.server.dispatch.key_specs import NO_SLOT, SEVERAL_SLOTS, slot_of_request
from headrace.server.dispatch.permission import denial_of, refused_line
from headrace.server.dispatch.rows import (
    DENYOOM,
    MAY_REPLICATE,
    NOSCRIPT,
    SCRIPT_RUNNER,
    STALE,
    WRITE,
    Command,
)
from headrace.server.gate import MONITORED, REGION_REFUSES, STRICT_SLOTS
from headrace.server.scripting.busy import Run
from headrace.server.scripting.errors import LibraryError, ScriptError
from headrace.server.scripting.memory import Memory
from headrace.server.scripting.values import Builders, number_of, spelled, whole
from headrace.server.state import Server

log: Final = logging.getLogger("headrace")

REPL_NONE: Final = 0
REPL_AOF: Final = FILES
REPL_REPLICA: Final = REPLICAS
REPL_ALL: Final = REPL_AOF | REPL_REPLICA
_MOST_DIGITS: Final = 1 << 62  # up to here a whole number is written with all of its digits
_MACHINE_WORD: Final = _MOST_DIGITS - 1  # up to here numbers are compared as machine words
LOG_LEVELS: Final = (logging.DEBUG, logging.DEBUG, logging.INFO, logging.WARNING)


class Rights:
    """The rights of a script, by its first line or by the way in which it is called.

    It may write, grow the data when memory is short, and use keys of several slots (``roams``),
    each only if the attribute is true.
    """

    def __init__(self, writes: bool, grows: bool, roams: bool) -> None:
        self.writes: Final = writes
        self.grows: Final = grows
        self.roams: Final = roams


class ScriptCalls:
    """The calls of the script that is being run, in a ``session`` of its own."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        server = dispatcher.server
        self._dispatcher: Final = dispatcher
        self._server: Final = server
        self.session: Final = Session(0, server.data.dbs[0], server.clock.started_ms, NOBODY)
        self.session.address = b"lua"
        self._call: Final = Call(server, dispatcher.durability, self.session)
        self._call.may_block = False
        self._rights = Rights(True, True, True)
        self._held = 0
        self._rows: Final[dict[bytes, Command]] = {}
        self.builders: Builders | None = None
        self._script: Run | None = None
        self._caller: Session = self.session
        self._written_bytes = 0  # in a region: by the current script and the transaction it is in
        self.memory: Final = Memory()
        self._slot = NO_SLOT  # of the keys of the current script, where that is looked at

    def begin(self, caller: Call, rights: Rights, run: Run) -> None:
        """Begin a script that ``caller`` runs: the next calls are its own."""
        session = self.session
        session.db = caller.db
        session.resp3 = False
        kept = caller.session.special & (NO_TOUCH | TRACKED | CACHING)
        session.special = IN_MULTI | IN_SCRIPT | kept  # all is one unit
        session.unit_ns = caller.session.unit_ns or self._server.clock.now_ns
        session.user = caller.session.user
        session.tracking = caller.session.tracking
        self._caller = caller.session
        call = self._call
        call.db = caller.db
        call.now_ms = caller.now_ms
        call.replaying = caller.replaying
        call.stamp_s = caller.stamp_s
        self._rights = rights
        self._held = 0
        self._script = run
        transaction = caller.session.transaction
        self._written_bytes = 0 if transaction is None else transaction.size_bytes
        self._slot = NO_SLOT
        if self._server.gate.reasons & STRICT_SLOTS and isinstance(caller.row, Command):
            self._slot = slot_of_request(caller.row, caller.argv)

    def end(self) -> None:
        """Reset what the script has set for itself, because the next one is another client's."""
        self.session.fieldsets.clear()

    # The functions that scripts call. A call raises ScriptError, and nothing else.

    def call(self, *words: Any) -> object:
        """``redis.call``: run a command. Returns the script's value of the reply."""
        try:
            return self._run(words)
        except ScriptError:
            raise
        except Exception:
            log.exception("a call of a script failed with an internal error")
            raise ScriptError(errors.INTERNAL) from None

    def _run(self, words: tuple[Any, ...]) -> object:
        self.memory.check(0)
        argv = _as_words(words)
        row = self._rows.get(argv[0])
        if row is None or row.subcommands or not row.arity_fits(len(argv)):
            row = self._found(argv)
        self._admit(row, argv)
        server = self._server
        call = self._call
        session = self.session
        call.db = session.db
        server.clock.refresh()  # the script's own time is not that of the call
        if not self._held:
            reply = invoke(call, row, argv)
        else:
            server.changes.hold_back(self._held)
            try:
                reply = invoke(call, row, argv)
            finally:
                server.changes.hold_back(0)
        if server.changes.has_listeners:
            server.tracking.of_script = True
            server.changes.notify_listeners()
            server.tracking.of_script = False
        if session.special & TRACKED:
            note_reads(server, session, row, argv)
        count_call(server, call, row, lap(server))
        if server.gate.reasons & MONITORED:
            show_monitors(server, session, row, argv)
        if isinstance(reply, ErrorReply):
            raise ScriptError(reply.text, True)
        builders = self.builders
        assert builders is not None
        return builders.value(reply, session.resp3, self.memory)

    def _found(self, argv: list[bytes]) -> Command:
        """Return the row of a call. Raises: ScriptError for an unknown one or too few words."""
        try:
            return find_row(self._rows, argv)
        except CommandError as error:
            line = errors.of_script(error.line)
            self._server.statistics.counters.count_error(line)
            raise ScriptError(line, True) from None

    def _refused(self, row: Command, line: bytes) -> ScriptError:
        """Return the error for a call that is not made, and count it at once."""
        row.rejected_calls += 1
        self._server.statistics.counters.count_error(line)
        return ScriptError(line, True)

    def _admit(self, row: Command, argv: list[bytes]) -> None:
        flags = row.flags
        server = self._server
        if flags & NOSCRIPT and (flags & SCRIPT_RUNNER or not allows_all(server)):
            raise self._refused(row, errors.NOT_FROM_SCRIPT)
        gated = server.gate.reasons and not self._call.replaying
        if gated and not flags & STALE and is_stale(server):
            raise self._refused(row, errors.STALE)
        if self.session.user.limited:
            line = refused_line(server, self._caller, row, argv, SCRIPT)
            if line:
                raise self._refused(row, errors.denied(line))
        if flags & (WRITE | MAY_REPLICATE) and not self._rights.writes:
            raise self._refused(row, errors.READ_ONLY)
        if gated:
            line = self._refusal_of(flags)
            if line:
                raise self._refused(row, line)
            if server.gate.reasons & STRICT_SLOTS:
                self._check_slots(row, argv)
        if flags & WRITE:
            if server.data.region is not None:
                self._note_size(row, argv)
            if self._script is not None:
                self._script.wrote = True

    def _check_slots(self, row: Command, argv: list[bytes]) -> None:
        """Raise for a call for keys of several slots, or of another one than those before."""
        slot = slot_of_request(row, argv)
        if slot == SEVERAL_SLOTS:
            raise self._refused(row, errors.CALL_CROSSES_SLOTS % row.name)
        if slot != NO_SLOT and not self._rights.roams:
            if self._slot not in (NO_SLOT, slot):
                raise self._refused(row, errors.SCRIPT_CROSSES_SLOTS)
            self._slot = slot

    def _refusal_of(self, flags: int) -> bytes:
        """Return why a call with these flags is refused; a script that has written may go on."""
        server = self._server
        region = server.data.region
        if flags & WRITE and server.gate.reasons & REGION_REFUSES and region is not None:
            return region.refusal
        if self._script is not None and self._script.wrote:
            return b""
        if flags & WRITE:
            if is_read_only(server):
                return READ_ONLY_REPLICA
            line = unsaved_line(self._dispatcher)
            if line:
                return line
            if lacks_replicas(server):
                return NO_REPLICAS
        short = flags & DENYOOM and not self._rights.grows and is_out_of_memory(server)
        return OUT_OF_MEMORY if short else b""

    def _note_size(self, row: Command, argv: list[bytes]) -> None:
        """Raise where the script would exceed the size of a transaction between regions."""
        before = self._written_bytes
        after = before + sum([len(word) for word in argv])
        if before and after > self._server.config.aa_transaction_max_bytes:
            raise self._refused(row, TRANSACTION_TOO_LARGE)
        self._written_bytes = after
        transaction = self._caller.transaction
        if transaction is not None:
            transaction.size_bytes = after

    def text_of(self, raised: object) -> tuple[bytes, bool, bool, bool]:
        """Return the error for an exception that was raised on this side.

        Returns: its text, whether it is of Lua's kind, whether the statistics have it, and whether
            the script has to end.
        """
        has_to_end = self.memory.exceeded or (self._script is not None and self._script.is_to_end)
        if isinstance(raised, ScriptError):
            is_plain = isinstance(raised, LibraryError)
            return raised.text, is_plain, raised.counted, has_to_end
        log.error("a library of scripts failed with an internal error: %r", raised)
        return errors.INTERNAL, False, False, has_to_end

    def log(self, *words: Any) -> None:
        """``redis.log``: write a line into the server's log."""
        if len(words) < 2:
            raise ScriptError(errors.LOG_NEEDS_TWO)
        level = words[0]
        if not isinstance(level, int | float):
            raise ScriptError(errors.LOG_NEEDS_LEVEL)
        if not 0 <= int(level) < len(LOG_LEVELS):
            raise ScriptError(errors.LOG_BAD_LEVEL)
        texts = [_text(word) for word in words[1:]]
        line = b" ".join([text for text in texts if text is not None])
        log.log(LOG_LEVELS[int(level)], "%s", line.decode("utf-8", "backslashreplace"))

    def sha1hex(self, *words: Any) -> bytes:
        """``redis.sha1hex``: the SHA-1 of a string, in hexadecimal digits."""
        if len(words) != 1:
            raise ScriptError(errors.WRONG_COUNT)
        from hashlib import sha1  # it brings OpenSSL with it

        return sha1(_text(words[0]) or b"").hexdigest().encode()

    def setresp(self, *words: Any) -> None:
        """``redis.setresp``: set the version of the protocol for replies."""
        if len(words) != 1:
            raise ScriptError(errors.SETRESP_NEEDS_ONE)
        version = _number(words[0])
        if version not in (2, 3):
            raise ScriptError(errors.BAD_VERSION)
        self.session.resp3 = version == 3

    def set_repl(self, *words: Any) -> None:
        """``redis.set_repl``: set whether the AOF and the replicas get the writes of next calls."""
        if len(words) != 1:
            raise ScriptError(errors.SET_REPL_NEEDS_ONE)
        flags = _number(words[0])
        if not 0 <= flags <= REPL_ALL:
            raise ScriptError(errors.BAD_REPL)
        if not flags & REPL_AOF and self._server.data.region is not None:
            raise ScriptError(errors.REGION_RECORDS_ALL)
        self._held = REPL_ALL & ~flags

    def replicate_commands(self, *words: Any) -> bool:
        """``redis.replicate_commands``: return True, because effects are always replicated."""
        return True

    def breakpoint(self, *words: Any) -> bool:
        """``redis.breakpoint``: return whether there is a debugger."""
        return False

    def error_line(self, text: bytes) -> bytes:
        """``redis.error_reply``: return an error with a code, which is ERR where it has none."""
        self.memory.check(len(text))
        return errors.with_code(c_text(text).removeprefix(b"-"))

    def acl_check_cmd(self, *words: Any) -> bool:
        """``redis.acl_check_cmd``: return whether the client of this script may call a command."""
        if not words:
            raise ScriptError(errors.NEEDS_ONE)
        argv = _as_words(words)
        try:
            row = find_row(self._rows, argv)
        except CommandError as error:
            raise ScriptError(errors.of_acl_check(error.line)) from None
        return denial_of(self.session.user, row, argv) is None


def allows_all(server: Server) -> bool:
    """Return whether scripts may call any command, as tests ask for by DEBUG."""
    return server.scripting is not None and server.scripting.allows_all


def _number(word: object) -> int:
    """Return a number of Lua, cut to a whole one; 0 for what is none."""
    if isinstance(word, bytes):
        return whole(number_of(word) or 0.0)
    return whole(word) if isinstance(word, int | float) and not isinstance(word, bool) else 0


def _text(word: object) -> bytes | None:
    """Return a string of Lua, or a number as ``tostring`` writes it."""
    if isinstance(word, bytes):
        return word
    return spelled(word) if isinstance(word, int | float) and not isinstance(word, bool) else None


def _as_words(words: tuple[Any, ...]) -> list[bytes]:
    """Return the words of a request. Raises: ScriptError, where one is no string and no number."""
    if not words:
        raise ScriptError(errors.NEEDS_ONE)
    argv: list[bytes] = list(words)
    for at, word in enumerate(words):
        if not isinstance(word, bytes):
            argv[at] = _written(word)
    return argv


def _written(word: object) -> bytes:
    """Return a number as a word of a request. Raises: ScriptError, where it is none."""
    if isinstance(word, bool):
        raise ScriptError(errors.BAD_ARGUMENT)
    if isinstance(word, int):
        if -_MACHINE_WORD <= word <= _MACHINE_WORD or abs(word) == _MOST_DIGITS:
            return b"%d" % word
        return double(float(word))
    if isinstance(word, float):
        return double(word)
    raise ScriptError(errors.BAD_ARGUMENT)
