"""PFDEBUG and PFSELFTEST: what tests and the curious ask."""

from __future__ import annotations

from typing import Final

from headrace.compat.errors import CommandError
from headrace.compat.hyperloglog_errors import (
    CORRUPTED,
    NO_KEY_TO_DEBUG,
    NOT_SPARSE,
    SWITCH,
    test_failed,
    unknown_debug,
)
from headrace.protocol.replies import OK, Status
from headrace.server.commands.hyperloglog.events import MADE_DENSE
from headrace.server.commands.hyperloglog.values import changing
from headrace.server.dispatch.call import Call
from headrace.storage.string.hyperloglog.hashing import REGISTERS
from headrace.storage.string.hyperloglog.sketch import EMPTY, Union, add, is_dense, made_dense
from headrace.storage.string.hyperloglog.sparse import Corrupted, described

_TESTED: Final = 100_000  # elements
_SPARSE_ELEMENTS: Final = 1000  # that fit into the sparse form
_SPARSE_BYTES: Final = 3000
_ERRORS: Final = 6  # times the standard error; a test of chance may go so far
_STANDARD_ERROR: Final = 1.04 / 128  # 128 being the root of the number of registers


def pfdebug(call: Call) -> object:
    """``GETREG|DECODE|ENCODING|TODENSE key``; ``SIMD ON|OFF``, which has no effect.

    Reply: the registers; the runs of the sparse form; its name; 1 where it was made dense.
    """
    _, word, key = call.argv
    name = word.upper()
    if name == b"SIMD":
        return _switched(key)
    sketch = changing(call, key)
    if sketch is None:
        raise CommandError(NO_KEY_TO_DEBUG)
    if name == b"ENCODING":
        return Status(b"dense" if is_dense(sketch) else b"sparse")
    if name == b"DECODE":
        if is_dense(sketch):
            raise CommandError(NOT_SPARSE)
        return described(bytes(sketch))
    if name == b"TODENSE":
        return 1 if _make_dense(call, key, sketch) else 0
    if name == b"GETREG":
        _make_dense(call, key, sketch)
        union = Union()
        union.take(bytes(sketch))
        registers: list[object] = [int(union.registers[index]) for index in range(REGISTERS)]
        return registers
    raise CommandError(unknown_debug(word))


def _switched(word: bytes) -> object:
    switch = word.upper()
    if switch not in (b"ON", b"OFF"):
        raise CommandError(SWITCH)
    return Status(b"enabled" if switch == b"ON" else b"disabled")


def _make_dense(call: Call, key: bytes, sketch: bytearray) -> bool:
    if is_dense(sketch):
        return False
    try:
        sketch[:] = made_dense(bytes(sketch))
    except Corrupted:
        raise CommandError(CORRUPTED) from None
    call.changed(key, MADE_DENSE, call.argv)
    return True


def pfselftest(call: Call) -> object:
    """Give elements to both forms, and look whether they agree and estimate well.

    Reply: OK. Raises: CommandError where something is wrong.
    """
    sparse = bytearray(EMPTY)
    dense = made_dense(EMPTY)
    checkpoint = 10
    for number in range(1, _TESTED + 1):
        element = [b"%d:%d" % (number, call.now_ms)]
        if add(sparse, element, 0, _SPARSE_BYTES) != add(dense, element, 0, _SPARSE_BYTES):
            raise CommandError(test_failed(b"dense/sparse disagree"))
        if number == checkpoint:
            _check(sparse, dense, number)
            checkpoint *= 10
    return OK


def _check(sparse: bytearray, dense: bytearray, number: int) -> None:
    if number <= _SPARSE_ELEMENTS and is_dense(sparse):
        raise CommandError(test_failed(b"sparse encoding not used"))
    estimates: list[int] = []
    for sketch in (sparse, dense):
        union = Union()
        union.take(bytes(sketch))
        estimates.append(union.estimate())
    if estimates[0] != estimates[1]:
        raise CommandError(test_failed(b"dense/sparse disagree"))
    error = abs(estimates[0] - number)
    if error > _ERRORS * _STANDARD_ERROR * number + 1:
        raise CommandError(test_failed(b"Too big error. card:%d abserr:%d" % (number, error)))
