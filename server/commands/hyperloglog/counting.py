"""PFADD, PFCOUNT and PFMERGE."""

from __future__ import annotations

from headrace.compat.errors import CommandError
from headrace.compat.hyperloglog_errors import CORRUPTED
from headrace.protocol.replies import OK
from headrace.server.commands.hyperloglog.events import ADDED, ESTIMATED
from headrace.server.commands.hyperloglog.values import changing, created, is_sketch_at, sketch_at
from headrace.server.dispatch.call import Call
from headrace.storage.string.hyperloglog.sketch import (
    Union,
    add,
    forget_estimate,
    keep_estimate,
    known_estimate,
)
from headrace.storage.string.hyperloglog.sparse import Corrupted


def pfadd(call: Call) -> object:
    """Reply: 1 when a register was raised or the key is new, else 0."""
    argv = call.argv
    key = argv[1]
    changed = 0
    sketch = changing(call, key)
    if sketch is None:
        sketch = created(call, key)
        forget_estimate(sketch)
        changed = 1
    try:
        changed += add(sketch, argv, 2, call.server.config.hll_sparse_max_bytes)
    except Corrupted:
        raise CommandError(CORRUPTED) from None
    if not changed:
        return 0
    call.changed(key, ADDED, argv, count=changed)
    return 1


def pfcount(call: Call) -> object:
    """The estimate of a single one is kept in its string, which is a change, and recorded.

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
    if not is_sketch_at(call, key):
        return 0
    call.db.before_change(key)  # which is not done for a command that only reads
    sketch = changing(call, key)
    assert sketch is not None
    number = known_estimate(sketch)
    if number is None:
        union = Union()
        _take(union, bytes(sketch))
        number = union.estimate()
        keep_estimate(sketch, number)
        call.changed(key, ESTIMATED, call.argv)
    return number


def _take(union: Union, sketch: bytes | None) -> None:
    if sketch is None:
        return
    try:
        union.take(sketch)
    except Corrupted:
        raise CommandError(CORRUPTED) from None


def pfmerge(call: Call) -> object:
    """The target is one of the sources. Reply: OK."""
    argv = call.argv
    target = argv[1]
    union = Union()
    for key in argv[1:]:
        _take(union, sketch_at(call, key))
    sketch = changing(call, target)
    if sketch is None:
        sketch = created(call, target)
    union.write(sketch, call.server.config.hll_sparse_max_bytes)
    call.changed(target, ADDED, argv)
    return OK
