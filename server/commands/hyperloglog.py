"""The commands on HyperLogLogs: PFADD, PFCOUNT and PFMERGE; PFDEBUG and PFSELFTEST."""

from __future__ import annotations

from typing import Final

from headrace.compat import type_errors
from headrace.compat.errors import CommandError
from headrace.compat.event_classes import EVENT_STRING
from headrace.protocol.packing import Packer
from headrace.protocol.replies import NO_REPLIES, OK, Status
from headrace.server.changes.events import Event
from headrace.server.clients.session import NO_TOUCH
from headrace.server.commands.together import Ran, Reader, Requests, Values
from headrace.server.commands.typed_keys import buffer_at, in_place, writable
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import NONE_ALIKE, alike
from headrace.storage.string.hyperloglog import (
    EMPTY,
    REGISTERS,
    Corrupted,
    Union,
    add,
    add_to_dense,
    described,
    forget_estimate,
    is_dense,
    is_sketch,
    keep_estimate,
    known_estimate,
    made_dense,
)

ADDED: Final = Event(b"pfadd", EVENT_STRING, touches=True)
ESTIMATED: Final = Event(b"", EVENT_STRING, touches=True)  # the string holds its estimate now
MADE_DENSE: Final = Event(b"", EVENT_STRING)


def sketch_at(call: Call, key: bytes) -> bytes | bytearray | None:
    """Return the HyperLogLog of a key or None, only to be read; raises WRONGTYPE."""
    value = buffer_at(call, key)
    if value is not None and not is_sketch(value):
        raise CommandError(type_errors.NOT_A_SKETCH)
    return value


def sketch_to_change(call: Call, key: bytes) -> bytearray | None:
    """Return the HyperLogLog of a key that is about to change, or None; raises WRONGTYPE."""
    found = writable(call, key)
    if found is None:
        return None
    value = found.value
    if isinstance(value, int) or not isinstance(value, (bytes, bytearray)) or not is_sketch(value):
        raise CommandError(type_errors.NOT_A_SKETCH)
    return in_place(call, found)


def created(call: Call, key: bytes) -> bytearray:
    """Return a new HyperLogLog for a key, without elements."""
    sketch = bytearray(EMPTY)
    call.put(key, sketch)
    return sketch


def pfadd(call: Call) -> object:
    """Reply: 1 when a register was raised or the key is new, else 0."""
    argv = call.argv
    key = argv[1]
    changed = 0
    sketch = sketch_to_change(call, key)
    if sketch is None:
        sketch = created(call, key)
        forget_estimate(sketch)
        changed = 1
    try:
        changed += add(sketch, argv, 2, call.server.config.hll_sparse_max_bytes)
    except Corrupted:
        raise CommandError(type_errors.CORRUPTED) from None
    if not changed:
        return 0
    call.changed(key, ADDED, argv, count=changed)
    return 1


def pfcount(call: Call) -> object:
    """The estimate of a single key is kept in its string, which is a change, and recorded.

    Reply: about how many different elements all of them together have been given.
    """
    keys = call.argv[1:]
    if len(keys) == 1:
        return _count_one(call, keys[0])
    union = Union()
    for key in keys:
        _take(union, sketch_at(call, key))
    return union.estimate()


def _count_one(call: Call, key: bytes) -> int:
    if sketch_at(call, key) is None:
        return 0
    call.db.before_change(key)  # which is not done for a command that only reads
    sketch = sketch_to_change(call, key)
    assert sketch is not None
    number = known_estimate(sketch)
    if number is None:
        union = Union()
        _take(union, sketch)
        number = union.estimate()
        keep_estimate(sketch, number)
        call.changed(key, ESTIMATED, call.argv)
    return number


def _take(union: Union, sketch: bytes | bytearray | None) -> None:
    if sketch is None:
        return
    try:
        union.take(bytes(sketch))
    except Corrupted:
        raise CommandError(type_errors.CORRUPTED) from None


def pfmerge(call: Call) -> object:
    """The target is one of the sources. Reply: OK."""
    argv = call.argv
    target = argv[1]
    union = Union()
    for key in argv[1:]:
        _take(union, sketch_at(call, key))
    sketch = sketch_to_change(call, target)
    if sketch is None:
        sketch = created(call, target)
    union.write(sketch, call.server.config.hll_sparse_max_bytes)
    call.changed(target, ADDED, argv)
    return OK


_TESTED: Final = 100_000  # elements
_SPARSE_ELEMENTS: Final = 1000  # that fit into the sparse form
_SPARSE_BYTES: Final = 3000
_ERRORS: Final = 6  # times the standard error; a test of chance may go so far
_STANDARD_ERROR: Final = 1.04 / 128  # 128 being the root of the number of registers


def pfdebug(call: Call) -> object:
    """Run ``GETREG|DECODE|ENCODING|TODENSE key``; ``SIMD ON|OFF`` has no effect.

    Reply: the registers; the runs of the sparse form; its name; 1 where it was made dense.
    """
    _, word, key = call.argv
    name = word.upper()
    if name == b"SIMD":
        return _switched(key)
    sketch = sketch_to_change(call, key)
    if sketch is None:
        raise CommandError(type_errors.NO_KEY_TO_DEBUG)
    if name == b"ENCODING":
        return Status(b"dense" if is_dense(sketch) else b"sparse")
    if name == b"DECODE":
        if is_dense(sketch):
            raise CommandError(type_errors.NOT_SPARSE)
        return described(bytes(sketch))
    if name == b"TODENSE":
        return 1 if _make_dense(call, key, sketch) else 0
    if name == b"GETREG":
        _make_dense(call, key, sketch)
        union = Union()
        union.take(bytes(sketch))
        registers: list[object] = [int(union.registers[index]) for index in range(REGISTERS)]
        return registers
    raise CommandError(type_errors.unknown_debug(word))


def _switched(word: bytes) -> object:
    switch = word.upper()
    if switch not in (b"ON", b"OFF"):
        raise CommandError(type_errors.SWITCH)
    return Status(b"enabled" if switch == b"ON" else b"disabled")


def _make_dense(call: Call, key: bytes, sketch: bytearray) -> bool:
    if is_dense(sketch):
        return False
    try:
        sketch[:] = made_dense(bytes(sketch))
    except Corrupted:
        raise CommandError(type_errors.CORRUPTED) from None
    call.changed(key, MADE_DENSE, call.argv)
    return True


def pfselftest(call: Call) -> object:
    """Check that both forms agree and estimate well. Reply: OK. Raises: CommandError if not."""
    sparse = bytearray(EMPTY)
    dense = made_dense(EMPTY)
    checkpoint = 10
    for number in range(1, _TESTED + 1):
        element = [b"%d:%d" % (number, call.now_ms)]
        if add(sparse, element, 0, _SPARSE_BYTES) != add(dense, element, 0, _SPARSE_BYTES):
            raise CommandError(type_errors.TEST_FAILED % b"dense/sparse disagree")
        if number == checkpoint:
            _check(sparse, dense, number)
            checkpoint *= 10
    return OK


def _check(sparse: bytearray, dense: bytearray, number: int) -> None:
    if number <= _SPARSE_ELEMENTS and is_dense(sparse):
        raise CommandError(type_errors.TEST_FAILED % b"sparse encoding not used")
    estimates: list[int] = []
    for sketch in (sparse, dense):
        union = Union()
        union.take(bytes(sketch))
        estimates.append(union.estimate())
    if estimates[0] != estimates[1]:
        raise CommandError(type_errors.TEST_FAILED % b"dense/sparse disagree")
    error = abs(estimates[0] - number)
    if error > _ERRORS * _STANDARD_ERROR * number + 1:
        raise CommandError(
            type_errors.TEST_FAILED % (b"Too big error. card:%d abserr:%d" % (number, error))
        )


_COUNT_WORDS: Final = 2  # of one key


@alike("PFADD", of_any_key=True)
def pfadd_alike(call: Call, requests: Requests, first: int, end: int) -> Ran:
    """Add elements to HyperLogLogs that are there, and were written into before."""
    if not call.needs_no_events_of_any():
        return NONE_ALIKE, NO_REPLIES
    values = Values(call, requests, end, writes=True)
    most = call.server.config.hll_sparse_max_bytes
    noted = call.notes_changes
    records: list[list[bytes]] = []
    last: object = None  # it has been looked at
    dense = False  # which it stays
    changes = 0
    out = Packer(call.session.resp3)
    at = first
    while at < end:
        words = requests[at]
        value = values.of(at)
        if not isinstance(value, bytearray):
            break
        if value is not last:
            if not is_sketch(value):
                break
            last = value
            dense = is_dense(value)
        try:
            raised = add_to_dense(value, words, 2) if dense else add(value, words, 2, most)
        except Corrupted:
            break
        if raised:
            changes += raised
            if noted:
                records.append(words)
        out.number(1 if raised else 0)
        at += 1
    call.changed_alike(records, 0, len(records), changes)
    return at - first, out.replies()


class _Estimate(Reader):
    """Answers with known estimates; it reads a sketch that is asked for again only once."""

    def __init__(self) -> None:
        super().__init__(_COUNT_WORDS)
        self._last: object = None
        self._number: int | None = None

    def absent(self, out: Packer) -> None:
        out.number(0)

    def read(self, out: Packer, value: object, words: list[bytes]) -> bool:
        if not isinstance(value, bytearray):
            return False
        if value is not self._last:
            self._number = known_estimate(value) if is_sketch(value) else None
            self._last = value
        number = self._number
        if number is None:
            return False
        out.number(number)
        return True


@alike("PFCOUNT", of_any_key=True)
def pfcount_alike(call: Call, requests: Requests, first: int, end: int) -> Ran:
    """Answer with the estimates that single HyperLogLogs hold."""
    if call.session.special & NO_TOUCH:
        return NONE_ALIKE, NO_REPLIES
    return _Estimate().run(call, requests, first, end)
