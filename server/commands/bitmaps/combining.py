"""BITOP: strings combined bit by bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from headrace.compat.bitmap_errors import NOT_ONE_SOURCE, too_few_sources
from headrace.compat.errors import SYNTAX, CommandError
from headrace.server.commands.bitmaps.events import COMBINED
from headrace.server.commands.storing import store
from headrace.server.commands.string_keys import buffer_at
from headrace.server.dispatch.call import Call
from headrace.storage.string.bits import AND, AND_NOT, OR, XOR, combine, complement, piece


def bitop(call: Call) -> object:
    """A source that is missing is an empty string; zeros stand behind the end of each.

    Reply: the length of the result; where that is 0, the target is gone.
    """
    argv = call.argv
    name = argv[1].upper()
    operation = _OPERATIONS.get(name)
    if operation is None:
        raise CommandError(SYNTAX)
    if name == b"NOT" and len(argv) != 4:
        raise CommandError(NOT_ONE_SOURCE)
    if name in _OF_TWO and len(argv) < 5:
        raise CommandError(too_few_sources(name))
    sources = [buffer_at(call, key) or b"" for key in argv[3:]]
    size = max([len(source) for source in sources])
    target = argv[2]
    if not size:
        call.delete(target, argv, expired_too=True)
        return 0
    # Written into on purpose: as in Redis, the result is ``raw`` whatever it spells.
    result = bytearray()
    for at in range(0, size, _PIECE_BYTES):
        result += operation([piece(source, at, at + _PIECE_BYTES) for source in sources])
    store(call, target, result)
    call.changed(target, COMBINED, argv)
    return size


def _folded(operation: int, sources: list[bytes]) -> bytes:
    result = sources[0]
    for source in sources[1:]:
        result = combine(operation, result, source)
    return result


def _and(sources: list[bytes]) -> bytes:
    return _folded(AND, sources)


def _or(sources: list[bytes]) -> bytes:
    return _folded(OR, sources)


def _xor(sources: list[bytes]) -> bytes:
    return _folded(XOR, sources)


def _not(sources: list[bytes]) -> bytes:
    return complement(sources[0])


def _diff(sources: list[bytes]) -> bytes:
    """What the first has and none of the others."""
    return combine(AND_NOT, sources[0], _or(sources[1:]))


def _diff1(sources: list[bytes]) -> bytes:
    """What one of the others has and not the first."""
    return combine(AND_NOT, _or(sources[1:]), sources[0])


def _andor(sources: list[bytes]) -> bytes:
    """What the first has and one of the others."""
    return combine(AND, sources[0], _or(sources[1:]))


def _one(sources: list[bytes]) -> bytes:
    """What exactly one has."""
    any_has = sources[0]
    several_have = b""
    for source in sources[1:]:
        several_have = combine(OR, several_have, combine(AND, any_has, source))
        any_has = combine(OR, any_has, source)
    return combine(AND_NOT, any_has, several_have)


_OPERATIONS: Final[dict[bytes, Callable[[list[bytes]], bytes]]] = {
    b"AND": _and,
    b"OR": _or,
    b"XOR": _xor,
    b"NOT": _not,
    b"DIFF": _diff,
    b"DIFF1": _diff1,
    b"ANDOR": _andor,
    b"ONE": _one,
}
_PIECE_BYTES: Final = 1 << 15  # of each source: few enough to stay in the processor's caches
_OF_TWO: Final = (b"DIFF", b"DIFF1", b"ANDOR")
