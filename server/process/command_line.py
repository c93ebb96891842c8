"""The command line as others see it: passwords do not stay in the list of processes.

Anybody on the machine may read the words that a process was started with. The kernel shows them
from the process's own memory, so what is written there is what is seen from then on.
"""

from __future__ import annotations

from typing import Final

from headrace.server.config.files import SECRET_DIRECTIVES, leading_name
from headrace.server.config.parameters import is_sensitive
from headrace.server.log import log

MASK: Final = b"*"
_ARG_START: Final = 45  # among the fields of /proc/PID/stat behind the name; proc(5) counts from 1
_ARG_END: Final = 46


def masked(words: list[bytes]) -> list[bytes]:
    """The words of a command line with ``*`` in the place of each password."""
    shown: list[bytes] = []
    secret = False  # what follows is a password, until another option does
    value = False  # the next word is a value, whatever it looks like
    for word in words:
        if word[:2] == b"--" and not value:
            name = leading_name(word[2:])
            secret = is_sensitive(name) or name.lower() in SECRET_DIRECTIVES
            value = len(name) == len(word) - 2
            if secret and not value:
                word = b"--" + name + b" " + MASK
        else:
            value = False
            if secret and word:
                word = MASK
        shown.append(word)
    return shown


def hide_passwords(words: list[bytes]) -> None:
    """Let the system show the process's own words, which are ``words``, without passwords."""
    shown = masked(words)
    if shown == words:
        return
    try:
        _write(words, shown)
    except (OSError, ValueError, IndexError) as error:
        log.warning("A password may be seen in the list of processes: %s", error)


def _write(words: list[bytes], shown: list[bytes]) -> None:
    """Put ``shown`` where the last words of the command line stand in memory."""
    with open("/proc/self/stat", "rb") as stat:
        fields = stat.read().rpartition(b")")[2].split()
    start, end = int(fields[_ARG_START]), int(fields[_ARG_END])
    old = b"\0".join([*words, b""])
    new = b"\0".join([*shown, b""]).ljust(len(old), b"\0")
    with open("/proc/self/mem", "r+b", buffering=0) as memory:
        memory.seek(end - len(old))
        if end - len(old) < start or memory.read(len(old)) != old:
            raise ValueError("the words are not where they should be")
        memory.seek(end - len(old))
        memory.write(new)
