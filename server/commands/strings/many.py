"""Several strings at once: MGET, MSET, MSETNX, MSETEX."""

from __future__ import annotations

from headrace.compat.errors import (
    INVALID_NUMKEYS,
    SYNTAX,
    WRONG_PAIR_COUNT,
    CommandError,
    wrong_arity,
)
from headrace.compat.numbers import INT32_MAX, encode_string
from headrace.protocol.replies import OK
from headrace.server.commands.storing import store
from headrace.server.commands.strings.events import SET
from headrace.server.commands.strings.values import (
    ALWAYS,
    IF_MISSING,
    StringOptions,
    report_deadline,
    store_until,
)
from headrace.server.dispatch.args import Args
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.lengthy import Lengthy
from headrace.server.dispatch.rows import lengthy
from headrace.storage.string.string import string_bytes


def mget(call: Call) -> object:
    """Reply: the values in order, nil for a key that holds no string."""
    return [string_bytes(call.lookup(key)) for key in call.argv[1:]]


def mset(call: Call) -> object:
    """Reply: OK."""
    _check_pairs(call)
    _set_all(call)
    return OK


def msetnx(call: Call) -> object:
    """Reply: 1, or 0 when any key was there: none is set."""
    _check_pairs(call)
    for key in call.argv[1::2]:
        if call.db.entry(key, call.now_ms) is not None:
            return 0
    _set_all(call)
    return 1


def _check_pairs(call: Call) -> None:
    if len(call.argv) % 2 == 0:
        raise CommandError(wrong_arity(call.name()))


def _set_all(call: Call) -> None:
    argv = call.argv
    _set_some(call, argv, 1, len(argv))
    call.record(argv)


def _set_some(call: Call, argv: list[bytes], low: int, high: int) -> None:
    for at in range(low, high, 2):
        store(call, argv[at], encode_string(argv[at + 1]))
        call.changed(argv[at], SET, None)


class _Setting(Lengthy):
    """MSET of very many pairs."""

    def prepare(self, call: Call, low: int, high: int) -> None:
        """Note the keys."""
        for key in self.argv[low:high:2]:
            self.keys.add(key)

    def change(self, call: Call, low: int, high: int) -> None:
        """Set some."""
        if call.server.data.guarded:
            for key in self.argv[low:high:2]:
                call.db.before_change(key)
        _set_some(call, self.argv, low, high)
        self.note(call, self.argv[low:high])

    def finish(self, call: Call) -> object:
        """OK."""
        self.record(call, b"MSET")
        return OK


@lengthy("MSET")
def mset_lengthy(call: Call) -> Lengthy | None:
    """Very many pairs; in a region the first one may be refused."""
    _check_pairs(call)
    if call.server.data.region is not None:
        return None
    return _Setting(call.argv, 1, 2)


def msetex(call: Call) -> object:
    """Recorded as SETs, which any version can read.

    Reply: 1, or 0 when NX met a key that is there or XX one that is not: none is set.
    """
    args = Args(call.argv)
    count = args.integer(INVALID_NUMKEYS)
    if not 1 <= count <= INT32_MAX:
        raise CommandError(INVALID_NUMKEYS)
    if args.left < 2 * count:
        raise CommandError(WRONG_PAIR_COUNT)
    pairs = [(args.word(), args.word()) for _ in range(count)]
    options = StringOptions()
    while args.left:
        option = args.option()
        if not (options.take_existence(option) or options.take_ttl(args, option, b"KEEPTTL")):
            raise CommandError(SYNTAX)
    moment_ms = options.deadline_ms(call)
    if options.condition != ALWAYS:
        wanted = options.condition != IF_MISSING
        for key, _ in pairs:
            if (call.db.entry(key, call.now_ms) is not None) != wanted:
                return 0
    for key, value in pairs:
        _set_one(call, key, value, moment_ms, bool(options.ttl))
    return 1


def _set_one(call: Call, key: bytes, value: bytes, moment_ms: int, keep_ttl: bool) -> None:
    record = [b"SET", key, value]
    if moment_ms >= 0:
        store_until(call, key, encode_string(value), moment_ms)
        record += [b"PXAT", b"%d" % moment_ms]
        report_deadline(call, key)
    else:
        store(call, key, encode_string(value), keep_ttl)
        if keep_ttl:
            record.append(b"KEEPTTL")
    call.changed(key, SET, record)
