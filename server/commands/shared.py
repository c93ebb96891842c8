"""Functions for commands of several families: deadlines, pops, scans, random draws, storing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.random import randrange
from mypy_extensions import i64

from headrace.compat import errors
from headrace.compat.errors import CommandError
from headrace.compat.glob import matches
from headrace.compat.numbers import INT64_MAX, parse_unsigned
from headrace.protocol.replies import NULL_ARRAY
from headrace.server.changes.events import DEADLINE_SET, DELETED, OVERWRITTEN, TYPE_CHANGED, Event
from headrace.server.clients.session import REPLAY
from headrace.server.commands.shared_keys import shared_keys
from headrace.server.dispatch.args import Args, at_least, integer
from headrace.server.dispatch.call import Call
from headrace.server.waiting import ElementOf, Parked
from headrace.storage.collection import Collection
from headrace.storage.faces import type_name
from headrace.storage.keyspace import Keyspace
from headrace.storage.sharing import Replicated
from headrace.storage.value import Value

if TYPE_CHECKING:
    from random import Random


def has_passed(call: Call, moment_ms: int) -> bool:
    """Return whether a key given this deadline goes at once; while the AOF is loaded it stays.

    A key that has this deadline already lives to the end of that millisecond.
    """
    return moment_ms <= call.now_ms and not call.session.special & REPLAY


def delete_expired(call: Call, key: bytes) -> None:
    """Remove a key that is there because its new deadline has passed already."""
    _delete(call, key, call.server.config.lazyfree_lazy_expire)


def expired_at_once(call: Call, key: bytes, there: bool) -> None:
    """Count a value whose time is over as not stored, and remove what is ``there``."""
    call.server.changes.expired_keys += 1
    if there:
        _delete(call, key, call.server.config.lazyfree_lazy_server_del)


def _delete(call: Call, key: bytes, unlinks: bool) -> None:
    if remove_everywhere(call, key):
        return
    call.server.data.free_later(call.db.remove(key))
    call.changed(key, DELETED, deletion(key, unlinks))


def deletion(key: bytes, unlinks: bool) -> list[bytes]:
    """Return the record of a key that goes without a DEL of a client."""
    return [b"UNLINK" if unlinks else b"DEL", key]


def set_deadline(call: Call, key: bytes, moment_ms: int, record: list[bytes] | None = None) -> None:
    """Give a key that is there a deadline; ``record`` replaces PEXPIREAT without a condition."""
    if is_replicated(call, key) and not call.replaying:
        shared_keys().set_deadline(call.server, key, max(0, moment_ms))
        return
    call.db.expire_at(key, max(0, moment_ms))
    if record is None and call.recorded:
        record = [b"PEXPIREAT", key, b"%d" % moment_ms]
    call.changed(key, DEADLINE_SET, record)


def is_replicated(call: Call, key: bytes) -> bool:
    """Return whether a key holds what other regions have, too."""
    if call.server.data.region is None:
        return False
    found = call.db.peek(key)
    return found is not None and isinstance(found.value, Replicated)


def remove_everywhere(call: Call, key: bytes) -> bool:
    """Remove a key in all regions, if it is replicated; return whether it is."""
    if call.server.data.region is None or call.replaying:
        return False
    found = call.db.peek(key)
    if found is None or not isinstance(found.value, Replicated):
        return False
    shared_keys().delete(call.server, key, found.value)
    return True


def report_replaced(call: Call, db: Keyspace, key: bytes, old: object, new: object) -> None:
    """Free what a key held, and report that it holds another value now, maybe of another type."""
    call.server.data.free_later(old)
    call.changed_in(db, key, OVERWRITTEN, None, count=0)
    if type_name(old) != type_name(new):
        call.changed_in(db, key, TYPE_CHANGED, None, count=0)


def positive(word: bytes) -> int:
    """Return the number of elements that a request is about; at least one."""
    return at_least(word, 1, errors.COUNT_BELOW_ONE)


class Pop:
    """The request ``numkeys key [key ...] LEFT|RIGHT [COUNT count]`` of LMPOP and ZMPOP.

    ``at`` is where ``numkeys`` stands; ``ends`` are the words for the two ends, of which ``last``
    is the second. Raises: CommandError.
    """

    def __init__(self, argv: list[bytes], at: int, ends: tuple[bytes, bytes]) -> None:
        args = Args(argv, at)
        number = args.integer(errors.NUMKEYS_BELOW_ONE)
        if number < 1:
            raise CommandError(errors.NUMKEYS_BELOW_ONE)
        if number >= args.left:
            raise CommandError(errors.SYNTAX)
        self.keys: Final = argv[args.at : args.at + number]
        args.at += number
        end = args.option()
        if end not in ends:
            raise CommandError(errors.SYNTAX)
        self.last: Final = end == ends[1]
        self.count = positive(args.word()) if args.flag(b"COUNT") else 1
        args.end()


def wait(
    call: Call,
    keys: list[bytes],
    deadline_ms: int,
    interest: ElementOf,
    at_once: object = NULL_ARRAY,
) -> object:
    """Wait for an element of one of the keys, or answer ``at_once`` where that may not be."""
    if not call.may_block:
        return at_once
    return Parked(keys, deadline_ms, call.argv, NULL_ARRAY, interest)


_DEFAULT_COUNT: Final = 10
_COUNT_MOST: Final = 1 << 40  # no collection has as many elements
_CURSOR_BITS: Final = (1 << 32) - 1  # of a table; the others are ignored, as in Redis
EMPTY_SCAN: Final[list[object]] = [b"0", []]  # the reply where there is no key


def scan_cursor(call: Call) -> int:
    """Return the cursor of the request as tables have it; it is looked at before the key."""
    cursor = parse_unsigned(call.argv[2])
    if cursor is None:
        raise CommandError(errors.INVALID_CURSOR)
    return cursor & _CURSOR_BITS


class ScanOptions:
    """The options of SCAN and its kin; where there is a key, they are looked at behind it.

    Args:
        at: where they begin.
        hash_, keys: NOVALUES is one of them; TYPE is one of them.

    Attributes:
        count: about how many elements are asked for.
        values: the values of fields, too.
        kind: the type of the keys; None is any, and of one that does not exist there is no key.

    Raises: CommandError, where they are not well formed.
    """

    def __init__(self, call: Call, at: int, hash_: bool = False, keys: bool = False) -> None:
        self.count = _DEFAULT_COUNT
        self.values = True
        self.kind: bytes | None = None
        self._pattern = b"*"
        args = Args(call.argv, at)
        while args.left:
            option = args.option()
            if option == b"COUNT" and args.left:
                self.count = args.integer()
                if self.count < 1:
                    raise CommandError(errors.SYNTAX)
                self.count = min(self.count, _COUNT_MOST)
            elif option == b"MATCH" and args.left:
                self._pattern = args.word()
            elif option == b"TYPE" and args.left and keys:
                self.kind = args.word().lower()
            elif option == b"NOVALUES":
                if not hash_:
                    raise CommandError(errors.NOVALUES_NOT_HERE)
                self.values = False
            else:
                raise CommandError(errors.SYNTAX)
        self.all: Final = self._pattern == b"*"

    def takes(self, element: bytes) -> bool:
        """Return whether a key, an element or a field fits the pattern."""
        return self.all or matches(self._pattern, element)


_GENERATORS: Final[list[Random]] = []  # one, made at the first use
LOOK_EVERY: Final = 1024  # elements by chance, between two looks how long the reply has become
_MOST_PAIRS: Final = INT64_MAX // 2
_SHUFFLED: Final = 512  # elements, in less time than ``generator`` takes
_SEEDS: Final[i64] = 0x2000000000000000  # 1 << SEED_BITS


def random_count(argv: list[bytes], option: bytes) -> tuple[int, bool]:
    """Read ``count [option]`` of a random draw; return whether the option is there."""
    count = integer(argv[2])
    if count < -INT64_MAX:
        raise CommandError(errors.NOT_BETWEEN % (-INT64_MAX, INT64_MAX))
    if len(argv) == 3:
        return count, False
    if len(argv) > 4 or argv[3].upper() != option:
        raise CommandError(errors.SYNTAX)
    if not -_MOST_PAIRS <= count <= _MOST_PAIRS:
        raise CommandError(errors.VALUE_OUT_OF_RANGE)
    return count, True


def generator() -> Random:
    """Return the generator that all commands share."""
    if not _GENERATORS:
        import random  # late: few ask

        _GENERATORS.append(random.Random())
    return _GENERATORS[0]


def random_bits() -> i64:
    """Return SEED_BITS unpredictable bits, in less time than ``generator`` takes."""
    return randrange(_SEEDS)


def random_places(size: int, count: int) -> list[int]:
    """Return ``count`` different numbers below ``size``, as unpredictable as their order."""
    if size > _SHUFFLED:
        return generator().sample(range(size), count)
    places = list(range(size))
    for at in range(count):
        other = at + int(randrange(size - at))
        places[at], places[other] = places[other], places[at]
    return places[:count]


def store(call: Call, key: bytes, value: object, keep_ttl: bool = False) -> None:
    """Set ``key`` whatever it held; without ``keep_ttl`` a deadline goes."""
    db = call.db
    old = db.value_of(key, call.now_ms)
    if old is None:
        call.put(key, value)
        return
    if isinstance(old, Replicated):
        _store_over(call, key, value)
        return
    if isinstance(value, Value):
        value.attach(db.expiring)
    db.replace(key, value, call.now_ms)
    if db.volatile and not keep_ttl:
        db.persist(key)
    is_plain = isinstance(old, (bytes, int))
    if not is_plain or isinstance(value, Value):
        db.note_parts(key, value)
    if not is_plain or call.server.changes.has_listeners:
        report_replaced(call, call.db, key, old, value)


def _store_over(call: Call, key: bytes, value: object) -> None:
    """Store where other regions have what the key holds."""
    call.refuse_other_keys()
    remove_everywhere(call, key)
    call.put(key, value)


def drop_empty(call: Call, key: bytes, value: Collection) -> bool:
    """Remove a key whose value is empty, and report that; return whether it was so.

    It is called behind the report of what removed the last element. That record does the same when
    it is run again, so there is none here.
    """
    if not value.is_empty():
        return False
    call.db.remove(key)
    call.changed(key, DELETED, None, count=0)
    return True


def store_result(
    call: Call, key: bytes, value: Collection, event: Event, record: list[bytes]
) -> None:
    """Set a key to the result of a command, whatever the key held; an empty result deletes it.

    That is reported as a deletion even if the key had expired before, as Redis does. ``event`` is
    reported where there are elements; ``record`` repeats either.
    """
    if value.is_empty():
        call.delete(key, record, expired_too=True)
        return
    store(call, key, value)
    call.changed(key, event, record)
