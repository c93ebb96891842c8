"""DUMP, RESTORE and MIGRATE: a value as bytes, and keys that move to another server."""

from __future__ import annotations

import contextlib
import os
import socket
from typing import Final

from hiredis import ProtocolError, Reader, ReplyError

from headrace.compat import errors
from headrace.compat.errors import CommandError
from headrace.compat.event_classes import EVENT_GENERIC
from headrace.compat.numbers import INT64_MAX
from headrace.persistence.aof.rewrite import key_commands
from headrace.persistence.forms.dump import BadFooter, BadPayload, dump_value, load_value
from headrace.protocol.client import request
from headrace.protocol.replies import OK, Status
from headrace.server.changes.events import Event
from headrace.server.clients.session import source_address
from headrace.server.commands.shared import (
    expired_at_once,
    has_passed,
    remove_everywhere,
    report_replaced,
)
from headrace.server.commands.shared_keys import in_region, shared_keys
from headrace.server.config.config import sizes
from headrace.server.dispatch.args import Args
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.permission import redacted
from headrace.server.dispatch.rows import finds_keys
from headrace.server.eviction import COUNTER_MAX, counted, counts_uses
from headrace.storage.entry import NO_EXPIRY
from headrace.storage.freezing import frozen_key
from headrace.storage.sharing import Replicated

RESTORED: Final = Event(b"restore", EVENT_GENERIC, touches=True, wakes=True)


def dump(call: Call) -> object:
    """Reply: the value as bytes for RESTORE, or nil."""
    value = call.lookup(call.argv[1])
    if isinstance(value, Replicated):
        value = value.plain()
    return None if value is None else dump_value(value)


class _Options:
    """The options behind the value: ``[REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]``."""

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
                    raise CommandError(errors.INVALID_IDLE_TIME)
            elif option == b"FREQ" and args.left and self.idle_s < 0:
                self.frequency = args.integer()
                if not 0 <= self.frequency <= COUNTER_MAX:
                    raise CommandError(errors.INVALID_FREQ)
            else:
                raise CommandError(errors.SYNTAX)


def restore(call: Call) -> object:
    """Set a key to the value of a DUMP. Reply: OK. Source: cluster.c, restoreCommand.

    IDLETIME and FREQ hold where the policy of eviction asks for them. A deadline that has passed
    leaves no key, which counts as expired.
    """
    key = call.argv[1]
    db = call.db
    options = _Options(call.argv)
    if not options.replace and db.lives(key, call.now_ms):
        raise CommandError(errors.BUSY_KEY)
    moment_ms = Args(call.argv, 2).integer()
    if moment_ms < 0:
        raise CommandError(errors.INVALID_TTL)
    value = _value(call)
    there = db.lives(key, call.now_ms)
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
    if counts_uses(call.server.config.maxmemory_policy):
        if options.frequency >= 0:
            db.use(key, counted(options.frequency, call.now_ms))
    elif options.idle_s >= 0:
        db.use(key, max(0, call.now_ms - 1000 * options.idle_s))
    _report(call, key, moment_ms, options, there)
    if replaced is not None:
        report_replaced(call, db, key, replaced, value)
    return OK


def _report(call: Call, key: bytes, moment_ms: int, options: _Options, replaced: bool) -> None:
    """Report a RESTORE, recorded as it came, but with an absolute deadline.

    Where Redis is to read the files, the record is what makes the key, because Redis cannot read
    our bytes.
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
        raise CommandError(errors.BAD_DUMP_FOOTER) from None
    except BadPayload:
        raise CommandError(errors.BAD_DATA_FORMAT) from None


_CHUNK_BYTES: Final = 4096


class Peer:
    """A connection, which is to be closed.

    Args:
        timeout_ms: how long each step may take.
        source: the local address; None leaves it to the system.

    Raises:
        CommandError: the name means no address, or there is no socket for it; in ``send`` and
            ``reply``: the server is not there, or takes too long.
    """

    def __init__(
        self, host: str, port: str, timeout_ms: int, source: tuple[str, int] | None
    ) -> None:
        try:
            [found, *_] = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            self._socket: Final = socket.socket(found[0], socket.SOCK_STREAM)
        except (OSError, UnicodeError, ValueError) as error:
            raise CommandError(errors.PEER_NOT_CONNECTED) from error
        self._address: Final = found[4]
        if source is not None:
            with contextlib.suppress(OSError):  # it may be of another family
                self._socket.bind(source)
        self._socket.settimeout(timeout_ms / 1000)
        self._reader: Final = Reader()

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def send(self, wire: bytes) -> None:
        """Connect, and send ``wire``."""
        try:
            self._socket.connect(self._address)
            self._socket.sendall(wire)
        except (OSError, OverflowError) as error:
            raise CommandError(errors.PEER_NOT_WRITTEN) from error

    def reply(self) -> object:
        """Return the next reply; one that is an error is a ``hiredis.ReplyError``."""
        while True:
            try:
                reply = self._reader.gets()
                if reply is not False:
                    return reply
                more = self._socket.recv(_CHUNK_BYTES)
            except (OSError, ProtocolError) as error:
                raise CommandError(errors.PEER_NOT_READ) from error
            if not more:
                raise CommandError(errors.PEER_NOT_READ)
            self._reader.feed(more)


_NO_KEY: Final = Status(b"NOKEY")
_DEFAULT_TIMEOUT_MS: Final = 1000
_OPTIONS_AT: Final = 6


class _Request:
    """The keys to move, and how; ``login`` has the words of AUTH, if any.

    ``host port key|"" database timeout [COPY] [REPLACE] [AUTH word|AUTH2 user word] [KEYS key...]``
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
                    raise CommandError(errors.KEYS_BESIDE_A_KEY)
                self.keys = argv[args.at :]
                break
            else:
                raise CommandError(errors.SYNTAX)
        args = Args(argv, 4)
        self.database: Final = args.integer()
        self.timeout_ms = args.integer()
        if self.timeout_ms <= 0:
            self.timeout_ms = _DEFAULT_TIMEOUT_MS


_WORDS_OF_LOGIN: Final = {b"AUTH": 1, b"AUTH2": 2}


@finds_keys("MIGRATE")
def _keys(argv: list[bytes]) -> list[int]:
    """Return the positions of the keys; none if one stands besides those behind KEYS."""
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
    there = [key for key in wanted.keys if call.counted(key)]
    if not there:
        return _NO_KEY
    commands: list[list[bytes]] = [wanted.login] if wanted.login else []
    commands.append([b"SELECT", b"%d" % wanted.database])
    before = len(commands)
    commands += [_restore(call, key, wanted.replaces) for key in there]
    host, port = os.fsdecode(argv[1]), os.fsdecode(argv[2])
    source = source_address(call.server.config)
    call.server.host.lend_files()
    with contextlib.closing(Peer(host, port, wanted.timeout_ms, source)) as peer:
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
        raise CommandError(errors.TARGET_REPLIED % refusal)
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
