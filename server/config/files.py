"""Configuration files and command lines: read, and rewritten by CONFIG REWRITE.

A file has one directive per line: a name and words, quoted as in an inline request; ``#`` starts a
comment line. ``include`` reads another file, or all that fit a glob pattern. A command line is
turned into such lines too: ``--name word word`` is one line, read after the file and after standard
input, so that the last value given counts.

CONFIG REWRITE updates a configuration file and keeps comments, blank lines and the order of lines.
The lines of a parameter are replaced one for one by its present values; lines left over are
emptied, and several empty lines become one. A value that is not the default and had no line is
appended behind a comment. A line that means nothing to us becomes a comment. The new file replaces
the old one in one step.
"""

from __future__ import annotations

import os
import re
from typing import Final

from headrace.compat.parameters import MULTI, BadValue, Parameter
from headrace.compat.server_errors import unmatched
from headrace.protocol.requests import quoted, split_words
from headrace.server.acl.rules import RuleError, UnmatchedError, check_rules
from headrace.server.build import VERSION
from headrace.server.config.config import Config
from headrace.server.config.parameters import (
    ALL,
    BY_NAME,
    OBSOLETE_DIRECTIVES,
    REFUSED_DIRECTIVES,
    is_sensitive,
)

SECRET_DIRECTIVES: Final = (b"user", b"sentinel", b"rename-command")  # may hold secrets
_NAME: Final = re.compile(rb"[^ \t='\"]*")
DEFAULTS: Final = "HEADRACE_DEFAULTS"  # the variable whose lines come before all others
MAX_INCLUDE_DEPTH: Final = 16
DUPLICATE_USER: Final = "Duplicate user found. A user can only be defined once in config files"
BAD_QUOTES: Final = "Unbalanced quotes in configuration line"
BAD_DIRECTIVE: Final = "Bad directive or wrong number of arguments"
NO_MODULES: Final = "modules are not supported"
TOO_DEEP: Final = "files include each other more than 16 deep"


class ConfigError(Exception):
    """A configuration that cannot be used, with a text for the user.

    Args:
        place: where it was read from, such as ``the configuration file '/etc/headrace.conf'``.
        number: the line's number, from 1; 0 when it is not about a line.
    """

    def __init__(self, place: str, number: int, line: bytes, reason: str) -> None:
        parts = [f"\n*** FATAL CONFIG FILE ERROR (Headrace {VERSION}) ***"]
        if number:
            parts.append(f"Reading {place}, at line {number}")
            parts.append(f">>> '{without_password(line).decode('utf-8', 'replace')}'")
        parts.append(reason)
        super().__init__("\n".join(parts))


def without_password(line: bytes) -> bytes:
    """Return a line to quote, without any password, even with a misspelled name or open quotes."""
    name = leading_name(line)
    meant = name.lower()
    if name != line and (
        meant in SECRET_DIRECTIVES or is_sensitive(meant) or is_sensitive(closest_name(meant))
    ):
        return name + b" (redacted)"
    return line


def leading_name(text: bytes) -> bytes:
    """Return what stands before the first space, quote or ``=`` of a line or an option."""
    found = _NAME.match(text)
    return b"" if found is None else found.group()


class Arguments:
    """A command line, taken apart.

    Attributes:
        file: the configuration file it names; empty when it names none.
        from_stdin: a lone ``-`` asks for standard input.
        lines: its options, as lines of a configuration file.
    """

    def __init__(self, words: list[bytes]) -> None:
        self.file = b""
        self.from_stdin = False
        self.lines: list[bytes] = []
        self._expects_value = False
        start = 0
        if words and words[0][:1] != b"-":
            self.file = words[0]
            start = 1
        last = len(words) - 1
        for at in range(start, len(words)):
            word = words[at]
            if word == b"-" and at in (0, last):
                self.from_stdin = True
            elif word[:2] == b"--" and not self._expects_value:
                self._begin_option(word[2:], words[at + 1] if at < last else None)
            else:
                self._add_word(quoted(word))
                self._expects_value = False

    def _begin_option(self, option: bytes, following: bytes | None) -> None:
        """Start the line of ``--option``; ``following`` is the next word, None at the end."""
        self.lines.append(option)
        parts = split_words(option)
        if parts is None or len(parts) != 1:
            return  # "--port 6380" in one word
        # The next word is the value even with dashes; only an empty list of save points may be left
        # out.
        if option.lower() == b"save" and (following is None or following[:2] == b"--"):
            self._add_word(b'""')
        else:
            self._expects_value = True

    def _add_word(self, word: bytes) -> None:
        if self.lines:
            self.lines[-1] += b" " + word
        else:
            self.lines.append(word)


class Loader:
    """Reads configuration into a ``Config``, line by line."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self._save_seen = False

    def load(self, arguments: Arguments, stdin: bytes, defaults: bytes = b"") -> None:
        """Read defaults, file, stdin and options; raises ConfigError for the first wrong line."""
        self.load_text(defaults, f"the environment variable {DEFAULTS}", 0)
        self._save_seen = False  # save points of a file take the place of those before
        if arguments.file:
            self.config.file = os.path.abspath(arguments.file)
            try:
                self._load_file(self.config.file, 0)
            except BadValue as refusal:
                raise ConfigError("", 0, b"", refusal.reason) from None
        if arguments.from_stdin:
            self.load_text(stdin, "standard input", 0)
        self._load_lines(arguments.lines, "the command line", 0)
        self._check_logfile()
        self._check_regions()

    def load_text(self, text: bytes, place: str, depth: int) -> None:
        """Read the lines of ``text``; ``place`` is where they come from, ``depth`` of includes."""
        self._load_lines(text.split(b"\n"), place, depth)

    def _load_file(self, path: bytes, depth: int) -> None:
        """Raises BadValue when the file cannot be read, ConfigError for a line in it."""
        try:
            with open(path, "rb") as file:
                text = file.read()
        except OSError as error:
            shown = _shown(path)
            reason = f"Fatal error, can't open config file '{shown}': {error.strerror}"
            raise BadValue(reason) from None
        self.load_text(text, f"the configuration file '{_shown(path)}'", depth)

    def _load_lines(self, lines: list[bytes], place: str, depth: int) -> None:
        for number, line in enumerate(lines, 1):
            stripped = line.strip(b" \t\r\n")
            if not stripped or stripped[:1] == b"#":
                continue
            try:
                self._apply(stripped, depth)
            except BadValue as refusal:
                raise ConfigError(place, number, stripped, refusal.reason) from None

    def _apply(self, line: bytes, depth: int) -> None:
        words = split_words(line)
        if words is None:
            raise BadValue(BAD_QUOTES)
        if not words:
            return
        name = words[0].lower()
        row = BY_NAME.get(name)
        if row is not None:
            self._set(row, words[1:])
        elif name == b"include" and len(words) == 2:
            self._include(words[1], depth)
        elif name == b"rename-command" and len(words) == 3:
            self.config.renamed_commands.append((words[1], words[2]))
        elif name == b"user" and len(words) >= 2:
            self._declare_user(words[1:])
        elif name in OBSOLETE_DIRECTIVES and len(words) == 2:
            self.config.ignored.append(name)
        elif name in REFUSED_DIRECTIVES:
            raise BadValue(REFUSED_DIRECTIVES[name])
        elif b"." in name:
            raise BadValue(NO_MODULES)
        else:
            raise BadValue(BAD_DIRECTIVE + _suggestion(name))

    def _set(self, row: Parameter, words: list[bytes]) -> None:
        config = self.config
        if row.flags & MULTI and len(words) == 1 and words[0]:
            # One quoted word may hold them all, as in --save "3600 1".
            parts = split_words(words[0])
            if parts is None:
                raise BadValue(BAD_QUOTES)
            words = parts
        value = row.read(words, config.value(row))
        if row.name == "save":
            # Several lines add up, from the first one on: the default does not count.
            assert isinstance(value, list)
            if self._save_seen and value:
                value = [*config.save, *value]
            self._save_seen = True
        config.store(row, value)
        if config.is_active(row) or value == row.default:
            return
        if row.wire not in config.ignored:
            config.ignored.append(row.wire)

    def _declare_user(self, words: list[bytes]) -> None:
        """Note a user; rules are checked against the commands only at the start."""
        name = words[0].decode("utf-8", "backslashreplace")
        if any(words[0] == known[0] for known in self.config.users):
            raise BadValue(f"Error in user declaration '{name}': {DUPLICATE_USER}")
        try:
            check_rules(words[1:])
        except RuleError as error:
            raise BadValue(f"Error in user declaration '{name}': {error}") from None
        except UnmatchedError as opened:
            reason = unmatched(opened.word).decode("utf-8", "backslashreplace")
            reason = reason.removeprefix("ERR ")
            raise BadValue(f"Error in user declaration '{name}': {reason}") from None
        self.config.users.append(words)

    def _include(self, pattern: bytes, depth: int) -> None:
        if depth >= MAX_INCLUDE_DEPTH:
            raise BadValue(TOO_DEEP)
        path = os.path.join(self.config.dir, pattern)
        if not any(char in pattern for char in b"*?["):
            self._load_file(path, depth + 1)
            return
        # A pattern that fits nothing is an empty folder, no mistake.
        import glob  # late: few files include others

        for found in sorted(glob.glob(path)):
            self._load_file(found, depth + 1)

    def _check_logfile(self) -> None:
        """Check now that the log can be written; later nothing would show the error."""
        if not self.config.logfile:
            return
        path = os.path.join(self.config.dir, self.config.logfile)
        try:
            with open(path, "ab"):
                pass
        except OSError as error:
            reason = f"Can't open the log file: {error.strerror}"
            raise ConfigError("", 0, b"", reason) from None

    def _check_regions(self) -> None:
        """Raise for a contradiction; a region or a node of a cluster gets one database."""
        refusal = self.config.contradiction()
        if refusal is not None:
            raise ConfigError("", 0, b"", refusal[1])
        if self.config.aa_region_id or self.config.cluster_enabled:
            self.config.overrule(BY_NAME[b"databases"], 1)


def _shown(path: bytes) -> str:
    return path.decode("utf-8", "replace")


def _suggestion(name: bytes) -> str:
    """Return the known name that looks most like ``name``, as a sentence; or nothing."""
    close = closest_name(name)
    return f"\nDid you mean '{close.decode()}'?" if close else ""


def closest_name(name: bytes) -> bytes:
    """Return the known name that looks most like ``name``; empty when there is none."""
    from difflib import get_close_matches  # late: for mistakes alone

    if name in BY_NAME:
        return name
    known = [row.name for row in ALL]
    close = get_close_matches(name.decode("utf-8", "replace"), known, 1, 0.7)
    return close[0].encode() if close else b""


MARK: Final = b"# Appended by CONFIG REWRITE"
UNKNOWN: Final = b"# not understood: "
# Directives that are no parameters; their lines stay as they are.
KEPT_DIRECTIVES: Final = (b"include", b"rename-command", b"user")
_USER: Final = b"user"


def rewrite(config: Config, users: list[bytes]) -> None:
    """Rewrite the file that ``config`` was read from, or make it again.

    ``users`` has a line for each user to write. Raises: OSError; then the file is as it was.
    """
    path = config.file
    try:
        with open(path, "rb") as file:
            text = file.read()
    except FileNotFoundError:
        text = b""
    replace_file(path, rewritten(config, text, users))


def rewritten(config: Config, text: bytes, users: list[bytes]) -> bytes:
    """Return the contents of the file ``text``, with the values of ``config`` and these users."""
    lines, places = _read(text)
    appended: list[bytes] = []
    for row in ALL:
        free = places.pop(row.wire, [])
        now = row.lines(config.asked(row))
        wanted = sum([needed for _, needed in now])
        for line, needed in now:
            # A line that only repeats the default takes no place that another one needs.
            if free and (needed or len(free) > wanted):
                lines[free.pop(0)] = line
            elif needed:
                appended.append(line)
            wanted -= needed
        for place in free:
            lines[place] = b""
    _place_users(lines, appended, users)
    if appended and MARK not in lines:
        lines.append(MARK)
    lines += appended
    out: list[bytes] = []
    for line in lines:
        if line or not out or out[-1]:
            out.append(line)
    return b"".join([line + b"\n" for line in out])


def _place_users(lines: list[bytes], appended: list[bytes], users: list[bytes]) -> None:
    """Replace the lines of users, those of the same name in their places."""
    left = {line.split(b" ")[1]: line for line in users}
    for place, line in enumerate(lines):
        words = split_words(line) or [b""]
        if words[0].lower() == _USER and len(words) > 1:
            lines[place] = left.pop(words[1], b"")
    appended += left.values()


def _read(text: bytes) -> tuple[list[bytes], dict[bytes, list[int]]]:
    """Return the lines of a file, and for each parameter their indexes."""
    lines: list[bytes] = []
    places: dict[bytes, list[int]] = {}
    for raw in text.split(b"\n"):
        line = raw.strip(b" \t\r\n")
        if line and line[:1] != b"#":
            words = split_words(line)
            name = words[0].lower() if words else b""
            row = BY_NAME.get(name)
            if row is not None:
                places.setdefault(row.wire, []).append(len(lines))
            elif name not in KEPT_DIRECTIVES:
                line = UNKNOWN + line
        lines.append(line)
    if lines and not lines[-1]:
        lines.pop()  # what follows the last newline is no line
    return lines, places


def replace_file(path: bytes, text: bytes) -> None:
    """Replace the file ``path`` by ``text``, whole or not at all, and sync it to the disk."""
    from tempfile import mkstemp  # late: a start needs none

    folder = os.path.dirname(path)
    handle, temporary = mkstemp(prefix=os.path.basename(path) + b".", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
            os.fchmod(file.fileno(), _mode(path))
        os.rename(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise
    folder_handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(folder_handle)
    finally:
        os.close(folder_handle)


def _mode(path: bytes) -> int:
    """Return the permissions of the file to replace: a file with a password in it stays private."""
    try:
        return os.stat(path).st_mode & 0o777
    except FileNotFoundError:
        return 0o600
