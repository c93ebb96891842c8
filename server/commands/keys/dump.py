"""DUMP and RESTORE: one value as bytes, to be put back here or on another server, of Redis too."""

from __future__ import annotations

from headrace.compat.errors import (
    BAD_DATA_FORMAT,
    BAD_DUMP_FOOTER,
    BUSY_KEY,
    INVALID_FREQ,
    INVALID_IDLE_TIME,
    INVALID_TTL,
    SYNTAX,
    CommandError,
)
from headrace.compat.numbers import INT64_MAX
from headrace.persistence.aof.rewrite import key_commands
from headrace.persistence.forms.dumped import dump_value, load_value
from headrace.persistence.forms.payload import BadFooter, BadPayload
from headrace.protocol.replies import OK
from headrace.server.commands.deadlines import expired_at_once, has_passed, report_replaced
from headrace.server.commands.keys.accesses import counts_frequency, use_as_counted, use_long_ago
from headrace.server.commands.keys.events import RESTORED
from headrace.server.commands.shared_keys import in_region, shared_keys
from headrace.server.config.new_values import sizes
from headrace.server.dispatch.args import Args
from headrace.server.dispatch.call import Call
from headrace.server.eviction.usage import COUNTER_MAX
from headrace.storage.freezing import frozen_key
from headrace.storage.sharing import Replicated


def dump(call: Call) -> object:
    """Reply: the value as bytes for RESTORE, or nil."""
    value = call.lookup(call.argv[1])
    if isinstance(value, Replicated):
        value = value.plain()
    return None if value is None else dump_value(value)


class _Options:
    """What stands behind the value: ``[REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]``."""

    def __init__(self, argv: list[bytes]) -> None:
        self.replace = False
        self.absolute = False
        self.idle_s = -1
        self.frequency = -1
        args = Args(argv, 4)
        while args.left:
            option = args.option()
            if option == b"REPLACE":
                self.replace = True
            elif option == b"ABSTTL":
                self.absolute = True
            elif option == b"IDLETIME" and args.left and self.frequency < 0:
                self.idle_s = args.integer()
                if self.idle_s < 0:
                    raise CommandError(INVALID_IDLE_TIME)
            elif option == b"FREQ" and args.left and self.idle_s < 0:
                self.frequency = args.integer()
                if not 0 <= self.frequency <= COUNTER_MAX:
                    raise CommandError(INVALID_FREQ)
            else:
                raise CommandError(SYNTAX)


def restore(call: Call) -> object:
    """Make a key of what DUMP gave. Reply: OK.

    IDLETIME and FREQ hold where the policy of eviction asks for them. A deadline that has passed
    leaves no key, which counts as expired. Source: cluster.c, restoreCommand.
    """
    key = call.argv[1]
    db = call.db
    options = _Options(call.argv)
    if not options.replace and db.entry(key, call.now_ms) is not None:
        raise CommandError(BUSY_KEY)
    moment_ms = Args(call.argv, 2).integer()
    if moment_ms < 0:
        raise CommandError(INVALID_TTL)
    value = _value(call)
    there = db.entry(key, call.now_ms) is not None
    if moment_ms and not options.absolute:
        moment_ms += call.now_ms
        if moment_ms > INT64_MAX:  # in Redis the sum is negative then, and has passed
            moment_ms = 1
    if moment_ms and has_passed(call, moment_ms):
        expired_at_once(call, key, there)
        return OK
    if in_region(call) and shared_keys().restore(call, key, value, moment_ms):
        return OK
    replaced = db.remove(key)
    call.created(key)
    db.put(key, value, call.now_ms)
    if moment_ms:
        db.expire_at(key, moment_ms)
    if counts_frequency(call):
        if options.frequency >= 0:
            use_as_counted(call, key, options.frequency)
    elif options.idle_s >= 0:
        use_long_ago(call, key, options.idle_s)
    _report(call, key, moment_ms, options, there)
    if replaced is not None:
        report_replaced(call, db, key, replaced, value)
    return OK


def _report(call: Call, key: bytes, moment_ms: int, options: _Options, replaced: bool) -> None:
    """Report what was done.

    The record is the command as it came, its deadline absolute. Where the files are to be such that
    Redis can read them, it is what makes the key: Redis has no use for our bytes.
    """
    record = call.argv
    if moment_ms and not options.absolute:
        record = [*record[:2], b"%d" % moment_ms, *record[3:], b"ABSTTL"]
    if not call.recorded or call.server.config.aof_use_rdb_preamble:
        call.changed(key, RESTORED, record)
        return
    records = key_commands(frozen_key(call.db.index, call.db[key]))
    if replaced:
        records.insert(0, [b"DEL", key])
    call.changed(key, RESTORED, records[0])
    for more in records[1:]:
        call.record(more)


def _value(call: Call) -> object:
    try:
        return load_value(call.argv[3], sizes(call.server.config), call.now_ms)
    except BadFooter:
        raise CommandError(BAD_DUMP_FOOTER) from None
    except BadPayload:
        raise CommandError(BAD_DATA_FORMAT) from None
