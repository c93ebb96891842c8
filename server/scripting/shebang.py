"""The first line of a script, which may say how it is to be run: ``#!lua flags=no-writes``."""

from __future__ import annotations

from typing import Final

from headrace.compat import server_errors as errors
from headrace.server.scripting.errors import ScriptError

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
    """The flags of a script, and the script itself: its lines keep their numbers.

    Raises:
        ScriptError: the first line is not understood.
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
