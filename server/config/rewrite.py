"""CONFIG REWRITE: bring a configuration file up to date and keep what its author wrote.

Comments, blank lines and the order of lines stay. The lines of a parameter are replaced one for
one by what it is now; lines left over are emptied, and several empty lines become one. A value
that is not the default and had no line is appended behind a comment. A line that means nothing to
us becomes a comment. The new file replaces the old one in one step.
"""

from __future__ import annotations

import os
from typing import Final

from headrace.protocol.inline import split_words
from headrace.server.config.config import Config
from headrace.server.config.parameters import ALL, BY_NAME

MARK: Final = b"# Appended by CONFIG REWRITE"
UNKNOWN: Final = b"# not understood: "
# Directives that are no parameters; their lines stay as they are.
KEPT_DIRECTIVES: Final = (b"include", b"rename-command", b"user")
_USER: Final = b"user"


def rewrite(config: Config, users: list[bytes]) -> None:
    """Rewrite the file that ``config`` was read from; a missing file is made again.

    Args:
        users: a line for each user that is to stand in it.

    Raises: OSError; then the file is as it was.
    """
    path = config.file
    try:
        with open(path, "rb") as file:
            text = file.read()
    except FileNotFoundError:
        text = b""
    replace_file(path, rewritten(config, text, users))


def rewritten(config: Config, text: bytes, users: list[bytes]) -> bytes:
    """The contents of the file ``text``, with the values of ``config`` and with these users."""
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
    """The lines of a file, and for each parameter the places where it stands."""
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
    """Put ``text`` in the place of the file ``path``, whole or not at all, and onto the disk."""
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
    """The permissions of the file to replace: a file with a password in it stays private."""
    try:
        return os.stat(path).st_mode & 0o777
    except FileNotFoundError:
        return 0o600
