"""HIMPORT: many hashes with the same fields, which are named once for a connection."""

from __future__ import annotations

from headrace.compat.errors import CommandError
from headrace.compat.hash_errors import DOUBLE_FIELD, NO_SUCH_FIELDSET, VALUE_COUNT_MISMATCH
from headrace.protocol.replies import OK
from headrace.server.commands.hashes.events import FIELDS_SET
from headrace.server.commands.hashes.values import changeable, report
from headrace.server.commands.storing import store
from headrace.server.dispatch.call import Call
from headrace.storage.hash.hash import Hash


def himport_prepare(call: Call) -> object:
    """Name fields, for this connection. Reply: OK."""
    fields = call.argv[3:]
    if len(set(fields)) < len(fields):
        raise CommandError(DOUBLE_FIELD)
    call.session.fieldsets[call.argv[2]] = fields
    return OK


def himport_set(call: Call) -> object:
    """Make a hash of named fields, in the place of one that is there. Reply: OK."""
    argv = call.argv
    key = argv[2]
    old = changeable(call, key)
    fields = call.session.fieldsets.get(argv[3])
    if fields is None:
        raise CommandError(NO_SUCH_FIELDSET)
    if len(fields) != len(argv) - 4:
        raise CommandError(VALUE_COUNT_MISMATCH)
    pairs = sorted(zip(fields, argv[4:], strict=True), key=_rank)
    words = [word for pair in pairs for word in pair]
    limits = call.server.data.hash_limits
    value = Hash()
    value.fit(words, 0, limits)
    for field, text in pairs:
        value.put(field, text, limits)
    if old is not None:
        call.record([b"DEL", key])
    store(call, key, value)
    report(call, key, FIELDS_SET, [b"HSET", key, *words], [pair[0] for pair in pairs])
    return OK


def _rank(pair: tuple[bytes, bytes]) -> tuple[int, bytes]:
    """The order in which fields of an imported hash stand: shorter ones first."""
    return len(pair[0]), pair[0]


def himport_discard(call: Call) -> object:
    """Forget fields that were named. Reply: 1, or 0 where there are none of that name."""
    return 0 if call.session.fieldsets.pop(call.argv[2], None) is None else 1


def himport_discardall(call: Call) -> object:
    """Forget all fields that were named. Reply: how many names that were."""
    count = len(call.session.fieldsets)
    call.session.fieldsets.clear()
    return count
