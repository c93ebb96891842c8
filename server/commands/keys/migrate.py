"""MIGRATE: keys are moved to another server, which may be Redis."""

from __future__ import annotations

import os
from typing import Final

from hiredis import ReplyError

from headrace.compat.errors import KEYS_BESIDE_A_KEY, SYNTAX, CommandError, target_replied
from headrace.persistence.forms.dumped import dump_value
from headrace.protocol.outgoing import request
from headrace.protocol.replies import OK, Status
from headrace.server.clients.endpoints import source_address
from headrace.server.commands.deadlines import remove_everywhere
from headrace.server.commands.keys.peer import Peer
from headrace.server.dispatch.args import Args
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.redaction import redacted
from headrace.server.dispatch.rows import finds_keys
from headrace.storage.entry import NO_EXPIRY
from headrace.storage.sharing import Replicated

_NO_KEY: Final = Status(b"NOKEY")
_DEFAULT_TIMEOUT_MS: Final = 1000
_OPTIONS_AT: Final = 6


class _Request:
    """What is to be moved, and how.

    ``host port key|"" database timeout [COPY] [REPLACE] [AUTH word|AUTH2 user word] [KEYS key...]``

    Attributes:
        keys: those that are to be moved, there or not.
        login: the words of AUTH that come first; none without them.
    """

    def __init__(self, argv: list[bytes]) -> None:
        self.copies = False
        self.replaces = False
        self.login: list[bytes] = []
        self.keys = [argv[3]]
        args = Args(argv, _OPTIONS_AT)
        while args.left:
            option = args.option()
            if option == b"COPY":
                self.copies = True
            elif option == b"REPLACE":
                self.replaces = True
            elif option == b"AUTH":
                self.login = [b"AUTH", args.word()]
            elif option == b"AUTH2":
                self.login = [b"AUTH", args.word(), args.word()]
            elif option == b"KEYS":
                if argv[3]:
                    raise CommandError(KEYS_BESIDE_A_KEY)
                self.keys = argv[args.at :]
                break
            else:
                raise CommandError(SYNTAX)
        args = Args(argv, 4)
        self.database: Final = args.integer()
        self.timeout_ms = args.integer()
        if self.timeout_ms <= 0:
            self.timeout_ms = _DEFAULT_TIMEOUT_MS


_WORDS_OF_LOGIN: Final = {b"AUTH": 1, b"AUTH2": 2}


@finds_keys("MIGRATE")
def _keys(argv: list[bytes]) -> list[int]:
    """Where the keys stand; nowhere if there is one besides those behind KEYS."""
    at = _OPTIONS_AT
    while at + 1 < len(argv):
        option = argv[at].upper()
        if option == b"KEYS":
            return [] if argv[3] else list(range(at + 1, len(argv)))
        at += 1 + _WORDS_OF_LOGIN.get(option, 0)
    return [3]


def migrate(call: Call) -> object:
    """Put keys on another server with RESTORE, and delete here what it has taken.

    The server waits for the other one as long as the timeout says, as Redis does.

    Reply: OK, or NOKEY where none of the keys is there. Source: cluster.c, migrateCommand.
    """
    argv = call.argv
    call.argv = redacted(call.name(), argv)
    wanted = _Request(argv)
    there = [key for key in wanted.keys if call.counted_entry(key) is not None]
    if not there:
        return _NO_KEY
    commands: list[list[bytes]] = [wanted.login] if wanted.login else []
    commands.append([b"SELECT", b"%d" % wanted.database])
    before = len(commands)
    commands += [_restore(call, key, wanted.replaces) for key in there]
    host, port = os.fsdecode(argv[1]), os.fsdecode(argv[2])
    source = source_address(call.server.config)
    call.server.host.lend_files()
    with Peer(host, port, wanted.timeout_ms, source) as peer:
        peer.send(b"".join([request(words) for words in commands]))
        refusal = b""
        for number in range(len(commands)):
            reply = peer.reply()
            if isinstance(reply, ReplyError):
                refusal = refusal or str(reply).encode()
                if number < before:
                    break
            elif number >= before and not wanted.copies:
                _delete(call, there[number - before])
    if refusal:
        raise CommandError(target_replied(refusal))
    return OK


def _restore(call: Call, key: bytes, replaces: bool) -> list[bytes]:
    found = call.db.entry(key, call.now_ms)
    assert found is not None
    value = found.value
    if isinstance(value, Replicated):
        value = value.plain()
    left_ms = 0 if found.expire_ms == NO_EXPIRY else max(1, found.expire_ms - call.now_ms)
    words = [b"RESTORE", key, b"%d" % left_ms, dump_value(value)]
    return [*words, b"REPLACE"] if replaces else words


def _delete(call: Call, key: bytes) -> None:
    """Remove a key that the other server has now; in all regions, if they have it."""
    if not remove_everywhere(call, key):
        call.delete(key)
