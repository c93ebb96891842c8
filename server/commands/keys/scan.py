"""Walking the keys of a database: SCAN, KEYS, RANDOMKEY."""

from __future__ import annotations

from typing import Final

from headrace.compat.errors import INVALID_CURSOR, NOVALUES_NOT_HERE, SYNTAX, CommandError
from headrace.compat.glob import matches
from headrace.compat.numbers import parse_unsigned
from headrace.server.commands.randomness import generator
from headrace.server.dispatch.args import Args
from headrace.server.dispatch.call import Call
from headrace.storage.entry import NO_EXPIRY
from headrace.storage.faces import face

_DEFAULT_COUNT: Final = 10


def scan(call: Call) -> object:
    """See ``storage.keyspace``.

    Reply: the next cursor, 0 at the end, and the keys found among ``count``.
    """
    cursor = parse_unsigned(call.argv[1])
    if cursor is None:
        raise CommandError(INVALID_CURSOR)
    options = _ScanOptions(Args(call.argv, 2))
    cursor, entries = call.db.scan(cursor, options.count)
    keys: list[object] = []
    for entry in entries:
        key = entry.key
        if not matches(options.pattern, key) or call.db.entry(key, call.now_ms) is None:
            continue
        if options.kind is None or face(entry.value).type_name() == options.kind:
            keys.append(key)
    call.report_expired_apart()
    return [b"%d" % cursor, keys]


class _ScanOptions:
    def __init__(self, args: Args) -> None:
        self.count = _DEFAULT_COUNT
        self.pattern = b"*"
        self.kind: bytes | None = None  # any; of one that does not exist there is no key
        while args.left:
            option = args.option()
            if option == b"NOVALUES":
                raise CommandError(NOVALUES_NOT_HERE)
            if not args.left:
                raise CommandError(SYNTAX)
            self._take(option, args)

    def _take(self, option: bytes, args: Args) -> None:
        if option == b"COUNT":
            self.count = args.integer()
            if self.count < 1:
                raise CommandError(SYNTAX)
        elif option == b"MATCH":
            self.pattern = args.word()
        elif option == b"TYPE":
            self.kind = args.word().lower()
        else:
            raise CommandError(SYNTAX)


def keys(call: Call) -> object:
    """Reply: the keys that fit; expired ones are left out, not removed."""
    pattern = call.argv[1]
    now_ms = call.now_ms
    found: list[object] = []
    for entry in call.db.every():
        key = entry.key
        if matches(pattern, key) and not NO_EXPIRY < entry.expire_ms < now_ms:
            found.append(key)
    return found


def randomkey(call: Call) -> object:
    """Reply: a key, each as likely as the other, or nil in an empty database."""
    db = call.db
    while len(db):
        key = db.at(generator().randrange(len(db))).key
        if call.db.entry(key, call.now_ms) is not None:
            call.report_expired_apart()
            return key
    call.report_expired_apart()
    return None
