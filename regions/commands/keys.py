"""Commands on keys in a region, where a key holds a value that other regions have, too.

A key is renamed, copied or restored by effects that remove the value of the new name, and add the
new one. Other regions may add to the old name meanwhile: their additions stay there.
"""

from __future__ import annotations

from typing import Final

from headrace.compat.errors import CommandError
from headrace.regions.exchange.effects import (
    check_transaction,
    emit,
    region_of,
    removal,
    replication,
    size_of,
)
from headrace.server.changes.events import DELETED
from headrace.server.clients.session import IN_MULTI
from headrace.server.commands.keys import COPIED_TO, RENAMED_FROM, RENAMED_TO
from headrace.server.commands.migrate import RESTORED
from headrace.server.commands.shared import is_replicated, remove_everywhere
from headrace.server.commands.shared_keys import SharedKeys, shares_keys
from headrace.server.dispatch.call import Call
from headrace.server.state import Server
from headrace.storage.entry import NO_EXPIRY, Entry
from headrace.storage.sharing import Replicated
from headrace.storage.value import Value

_TRANSACTION_BYTES: Final = 1 << 20  # a peer applies so much at once, and serves no client then


class RegionalKeys(SharedKeys):
    """The operations on keys that several regions share; see ``SharedKeys``."""

    def delete(self, server: Server, key: bytes, value: Replicated) -> None:
        emit(server, removal(b"DEL", key, value, region_of(server)))

    def delete_all(self, server: Server, found: list[Entry], in_multi: bool) -> None:
        # Each deletion can stand alone, and no link would carry those of millions of keys as one
        # transaction. So for other regions, and in the file, they are several.
        region = region_of(server)
        if in_multi:
            all_words = [removal(b"DEL", each.key, each.value, region) for each in found]
            line = check_transaction(server, sum([size_of(words) for words in all_words]))
            if line:
                raise CommandError(line)
        size_bytes = 0
        for entry in found:
            words = removal(b"DEL", entry.key, entry.value, region)
            size_bytes += size_of(words)
            if size_bytes > _TRANSACTION_BYTES and not in_multi:
                server.changes.end_command()
                size_bytes = size_of(words)
            emit(server, words)

    def set_deadline(self, server: Server, key: bytes, moment_ms: int) -> None:
        replication().set_deadline(server, key, moment_ms)

    def delete_named(self, call: Call, name: bytes) -> int:
        db = call.db
        replicated: dict[bytes, Entry] = {}
        others: dict[bytes, None] = {}
        for key in call.argv[1:]:
            found = db.entry(key, call.now_ms)
            if found is None:
                continue
            if isinstance(found.value, Replicated):
                replicated[key] = found
            else:
                others[key] = None
        self.delete_all(
            call.server, list(replicated.values()), bool(call.session.special & IN_MULTI)
        )
        for key in others:
            call.server.data.free_later(db.remove(key))
            call.changed(key, DELETED, None)
        if others:
            call.record([name, *others])
        return len(replicated) + len(others)

    def rename(self, call: Call, found: Entry) -> bool:
        source, target = call.argv[1], call.argv[2]
        value = found.value
        if not isinstance(value, Replicated):
            remove_everywhere(call, target)
            return False
        moment_ms = found.expire_ms
        plain = _checked(call, value.plain())
        remove_everywhere(call, source)
        _put(call, target, plain, moment_ms)
        call.changed(source, RENAMED_FROM, None)
        call.changed(target, RENAMED_TO, None, count=0)
        return True

    def copy(self, call: Call, value: object, moment_ms: int) -> bool:
        target = call.argv[2]
        if not isinstance(value, Replicated):
            call.refuse_other_keys()
            remove_everywhere(call, target)
            return False
        _put(call, target, _checked(call, value.plain()), moment_ms)
        call.changed(target, COPIED_TO, None)
        return True

    def restore(self, call: Call, key: bytes, value: object, moment_ms: int) -> bool:
        if not isinstance(value, Value) or value.type_name() != b"stream":
            call.refuse_other_keys()
            remove_everywhere(call, key)
            return False
        _put(call, key, _checked(call, value), moment_ms or NO_EXPIRY)
        call.changed(key, RESTORED, None)
        return True


shares_keys(RegionalKeys())


def _checked(call: Call, value: Value) -> Value:
    """Return ``value``. Raises CommandError if it does not fit into one transaction."""
    line = check_transaction(call.server, value.used_bytes(0))
    if line:
        raise CommandError(line)
    return value


def _put(call: Call, key: bytes, value: Value, moment_ms: int) -> None:
    server = call.server
    if not remove_everywhere(call, key) and call.db.lives(key, call.now_ms):
        server.data.free_later(call.db.remove(key))
        call.record([b"DEL", key])
    call.db.end_held(key, call.now_ms)
    if server.changes.expired:
        server.changes.report_expired()
    replication().rebuild(server, key, value)
    if moment_ms != NO_EXPIRY and is_replicated(call, key):
        replication().set_deadline(server, key, moment_ms)
