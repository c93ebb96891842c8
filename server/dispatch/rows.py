"""The command table: one row says what a command is; everything else about it reads the row.

A module of ``server.commands`` declares its rows with the ``command`` decorator; importing the
module fills ``TABLE``. A container such as ``CONFIG`` is a row whose ``subcommands`` hold rows of
their own, declared as ``"CONFIG|GET"``; the container row itself needs no function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from headrace.protocol.replies import PackedReplies
from headrace.server.acl.commands import BOOK, CATEGORIES
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.lengthy import Lengthy
from headrace.server.statistics.calls import CallCounters

# Flags, with Redis's own names (``FLAG_NAMES`` spells them for COMMAND INFO).
WRITE: Final = 1 << 0
READONLY: Final = 1 << 1
DENYOOM: Final = 1 << 2
FAST: Final = 1 << 3
ADMIN: Final = 1 << 4
PUBSUB: Final = 1 << 5
NOSCRIPT: Final = 1 << 6
BLOCKING: Final = 1 << 7
LOADING: Final = 1 << 8  # allowed while data is being loaded
STALE: Final = 1 << 9
SKIP_MONITOR: Final = 1 << 10
SKIP_SLOWLOG: Final = 1 << 11
NO_AUTH: Final = 1 << 12  # allowed before AUTH
NO_ASYNC_LOADING: Final = 1 << 13
NO_MULTI: Final = 1 << 14  # refused inside MULTI
MOVABLEKEYS: Final = 1 << 15
ALLOW_BUSY: Final = 1 << 16
NO_MANDATORY_KEYS: Final = 1 << 17
SCRIPT_RUNNER: Final = 1 << 18  # it may do whatever a script does
MAY_REPLICATE: Final = 1 << 19  # replicas may get something of it though it is no write; not shown
ASKING: Final = 1 << 20  # it says itself that the cluster has sent the client

FLAG_NAMES: Final[list[tuple[int, bytes]]] = [
    (WRITE, b"write"),
    (READONLY, b"readonly"),
    (DENYOOM, b"denyoom"),
    (ADMIN, b"admin"),
    (PUBSUB, b"pubsub"),
    (NOSCRIPT, b"noscript"),
    (BLOCKING, b"blocking"),
    (LOADING, b"loading"),
    (STALE, b"stale"),
    (SKIP_MONITOR, b"skip_monitor"),
    (SKIP_SLOWLOG, b"skip_slowlog"),
    (ASKING, b"asking"),
    (FAST, b"fast"),
    (NO_AUTH, b"no_auth"),
    (NO_MANDATORY_KEYS, b"no_mandatory_keys"),
    (NO_ASYNC_LOADING, b"no_async_loading"),
    (NO_MULTI, b"no_multi"),
    (MOVABLEKEYS, b"movablekeys"),
    (ALLOW_BUSY, b"allow_busy"),
    (SCRIPT_RUNNER, b"script_runner"),
]


class KeySpec:
    """Where a command's keys stand, as ``COMMAND INFO`` describes it.

    Args:
        flags: Redis's words, such as ``"RW UPDATE"``.
        begin: index of the first key, or the keyword that stands before it.
        begin_from: for a keyword: where the search starts (negative: from the end).
        last: last key relative to the first (-1: the last argument, -2: the one before).
        step: distance between keys.
        limit: with ``last`` -1: 2 means only the first half of the rest are keys.
        keynum: for ``numkeys key ...``: (index of the number, index of the first key, step).
        unknown: no spec can say where the command's keys are.
    """

    def __init__(
        self,
        flags: str,
        begin: int | str = 1,
        begin_from: int = 1,
        last: int = 0,
        step: int = 1,
        limit: int = 0,
        keynum: tuple[int, int, int] | None = None,
        unknown: bool = False,
    ) -> None:
        self.flags: Final = flags.split()
        self.begin: Final = begin
        self.begin_from: Final = begin_from
        self.last: Final = last
        self.step: Final = step
        self.limit: Final = limit
        self.keynum: Final = keynum
        self.unknown: Final = unknown


Handler = Callable[[Call], object]
NONE_ALIKE: Final = -1
ALIKE_BYTES: Final = 64 * 1024  # of replies that are written into one buffer, about
AlikeHandler = Callable[[Call, list[list[bytes]], int, int], tuple[int, PackedReplies]]
LengthyMaker = Callable[[Call], Lengthy | None]
KeyFinder = Callable[[list[bytes]], list[int]]


class Command(CallCounters):
    """One row of the command table, and the counters kept for it."""

    def __init__(
        self,
        name: bytes,
        run: Handler | None,
        arity: int,
        flags: int,
        keys: tuple[KeySpec, ...],
        acl: tuple[str, ...],
        tips: tuple[str, ...],
        find_keys: KeyFinder | None,
    ) -> None:
        super().__init__(name, "connection" in acl and not flags & BLOCKING)
        self.run = run
        self.arity: Final = arity
        self.flags: Final = flags
        self.keys: Final = keys
        self.acl: Final = acl  # categories besides those that follow from the flags
        self.tips: Final = tips
        self.find_keys: Final = find_keys  # indexes of the keys where ``keys`` cannot say
        self.run_alike: AlikeHandler | None = None  # see ``alike``
        self.alike_of_any_key = False
        self.makes_others: Final = bool(  # it may make keys that are no streams
            flags & DENYOOM and keys and "stream" not in acl and "keyspace" not in acl
        )
        self.replaces = False
        self.remembers = False
        self.begins_with_key: Final = len(keys) > 0 and keys[0].begin == 1 and abs(arity) > 1
        self.reads_keys: Final = bool(
            flags & READONLY and not flags & (SCRIPT_RUNNER | PUBSUB) and (keys or find_keys)
        )
        self.reads_second_word: Final = (
            self.reads_keys
            and find_keys is None
            and len(keys) == 1
            and keys[0].begin == 1
            and keys[0].last == 0
            and keys[0].keynum is None
        )
        self.lengthy: LengthyMaker | None = None  # see ``lengthy``
        self.subcommands: dict[bytes, Command] = {}
        self.spelled: dict[bytes, Command] = {}  # of those, by name as typed

    def arity_fits(self, count: int) -> bool:
        """Whether a request of ``count`` words, the name included, has the right length."""
        return count == self.arity if self.arity >= 0 else count >= -self.arity


TABLE: Final[dict[bytes, Command]] = {}  # by the names that clients use
ORIGINALS: Final[dict[bytes, Command]] = {}  # by the names that stand in files, whatever is renamed


def command(
    name: str,
    *,
    arity: int,
    flags: int = 0,
    keys: tuple[KeySpec, ...] = (),
    acl: tuple[str, ...] = (),
    tips: tuple[str, ...] = (),
    find_keys: KeyFinder | None = None,
) -> Callable[[Handler], Handler]:
    """Declare a command, or with ``"CONTAINER|SUB"`` a subcommand of one; see ``Command``."""

    def declare(run: Handler) -> Handler:
        add_row(Command(name.lower().encode(), run, arity, flags, keys, acl, tips, find_keys))
        return run

    return declare


def alike(
    name: str, of_any_key: bool = False, replaces: bool = False, remembers: bool = False
) -> Callable[[AlikeHandler], AlikeHandler]:
    """Declare how a command is run for several requests of a pipeline or a transaction at once.

    The function is given the requests, the place of the first and where to end. Between these are
    two or more requests with as many words, the same name, spelled alike, and the same second word,
    the key. The function runs the first one and those after it for as long as they are ordinary, to
    the same effect as one by one. It returns how many it has run, and their replies.

    None of these fails. The first request that is out of the ordinary is run by itself. After 0 the
    function is asked again for the requests behind that one. After ``NONE_ALIKE`` all with as many
    words are run one by one, because what rules out the first is likely to rule them out, too.

    Args:
        of_any_key: the second words need not be the same.
        replaces: values are replaced, and none is changed in place.
        remembers: the function itself has remembered what a client that tracks has read.
    """

    def declare(run: AlikeHandler) -> AlikeHandler:
        row = TABLE[name.lower().encode()]
        row.run_alike = run
        row.alike_of_any_key = of_any_key
        row.replaces = replaces
        row.remembers = remembers
        return run

    return declare


def lengthy(name: str) -> Callable[[LengthyMaker], LengthyMaker]:
    """Declare how a request of very many words is run in slices; see ``server.dispatch.lengthy``.

    The function is given the call and changes nothing. It returns None where there is nothing to
    do, or something is wrong. The command's own function then answers.
    """

    def declare(make: LengthyMaker) -> LengthyMaker:
        TABLE[name.lower().encode()].lengthy = make
        return make

    return declare


def container(name: str, *, arity: int = -2, flags: int = 0, acl: tuple[str, ...] = ()) -> None:
    """Declare a command that only holds subcommands, wherever those are declared."""
    add_row(Command(name.lower().encode(), None, arity, flags, (), acl, (), None))


def row_of(request: list[bytes]) -> Command | None:
    """The row of a command or subcommand that a request names, however many words it has."""
    row = TABLE.get(request[0].lower())
    if row is not None and row.subcommands and len(request) > 1:
        return row.subcommands.get(request[1].lower())
    return row


_CATEGORIES_OF_FLAG: Final = (
    (WRITE, (b"write",)),
    (READONLY, (b"read",)),
    (ADMIN, (b"admin", b"dangerous")),
    (PUBSUB, (b"pubsub",)),
    (BLOCKING, (b"blocking",)),
)


def acl_categories(row: Command) -> list[bytes]:
    """The ACL categories of a command, without the ``@``: its own and those its flags bring."""
    categories = {name.encode() for name in row.acl}
    for flag, names in _CATEGORIES_OF_FLAG:
        if row.flags & flag:
            categories.update(names)
    if row.flags & SCRIPT_RUNNER:  # EVAL_RO says no more than EVAL does
        categories.discard(b"read")
    categories.add(b"fast" if row.flags & FAST else b"slow")
    return [name for name in CATEGORIES if name in categories]


_CHILDREN: Final[dict[bytes, dict[bytes, Command]]] = {}  # of every container, met or not


def add_row(row: Command) -> None:
    """Put a row into the table, below its container where its name has one."""
    BOOK.add(row.name, acl_categories(row))
    parent, _, child = row.name.partition(b"|")
    if child:
        _CHILDREN.setdefault(parent, {})[child] = row
        return
    row.subcommands = _CHILDREN.setdefault(row.name, {})
    TABLE[row.name] = row
    ORIGINALS[row.name] = row
