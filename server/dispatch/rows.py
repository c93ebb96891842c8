"""The command table: one row says what a command is; everything else about it reads the row.

The rows are read from the text files of ``server.commands``, one for each family of commands, when
this module is imported; ``server.commands.families`` then gives each its function. In such a file
an entry declares a command, or a subcommand as ``CONFIG|GET``, and documents it:

    [hashes.fields]
    HSET -4 write denyoom fast | RW UPDATE
        Sets fields.
        key data(field value)...
        since 2.0.0, O(N) for N fields
        4.0.0: Several fields at once.

The first line holds the name, the arity (negative: at least as many words, the name included), the
flags of ``FLAGS``, ACL categories that are not those of the group (``@dangerous``, or ``@`` alone
for none), tips (``+nondeterministic_output``), and behind a bar each of the key specs: see
``KeySpec``. The lines below document it: see ``server.commands.documentation``. A longer line goes
on in the next, which is further indented. Three kinds of lines are about all entries behind them:

- ``[hashes.fields]`` names the module of their functions, below ``server.commands`` where it is not
  in full. A function is called as its command, ``config_get`` for CONFIG|GET, with an underscore
  behind a name that Python has. ``[strings.strings:getrange]`` names the function, too. A module
  may be named for what it declares with ``alike`` alone.
- ``group hash`` is their chapter in the manual.
- ``WHOLE = O(N) for a hash of N fields`` is what ``{WHOLE}`` means where they are documented.

A container such as ``CONFIG`` is an entry without a function, and its row holds those of its
subcommands.

``rename-command`` is what clients call a command by. Files know nothing of it: what is recorded has
the command's own name, and so has what is loaded.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import Final

from headrace.protocol.replies import PackedReplies
from headrace.server.acl.rules import BOOK, CATEGORY_BITS
from headrace.server.dispatch.call import Call, Lengthy
from headrace.server.statistics.statistics import CallCounters

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
FLAGS: Final[dict[str, int]] = {name.decode(): flag for flag, name in FLAG_NAMES}
FLAGS["may_replicate"] = MAY_REPLICATE

# The ACL category of the commands of a chapter, where they have one.
_CATEGORY_OF_GROUP: Final = {
    name: name
    for name in (
        "array bitmap connection geo hash hyperloglog list scripting set stream string".split()
    )
} | {"generic": "keyspace", "sorted-set": "sortedset", "transactions": "transaction"}


# As tables have them, and as COMMAND INFO shows them, in the order in which Redis lists them.
KEY_FLAGS: Final[dict[str, bytes]] = {
    **{name: name.encode() for name in "RO RW OW RM".split()},
    **{name: name.lower().encode() for name in "ACCESS UPDATE INSERT DELETE NOT_KEY".split()},
    **{name: name.lower().encode() for name in "INCOMPLETE VARIABLE_FLAGS".split()},
}


class TableError(Exception):
    """A table of commands has a mistake, which the message says in a sentence."""


class KeySpec:
    """The positions of a command's keys, as ``COMMAND INFO`` describes them.

    In a table it is written as Redis's flags, then what differs from one key behind the name:
    ``RO ACCESS at 2 to -1 step 2 limit 2``, ``behind STREAMS from 1``, ``counted``, ``unknown``.

    Attributes:
        flags: Redis's words, such as ``RW UPDATE``.
        begin: index of the first key (``at``), or the keyword that stands before it (``behind``).
        begin_from: for a keyword: where the search starts (negative: from the end).
        last: last key relative to the first (-1: the last argument, -2: the one before).
        step: distance between keys.
        limit: with ``last`` -1: 2 means only the first half of the rest are keys.
        counted: their number stands where they would begin, and they follow it.
        unknown: no spec can say where the command's keys are.
    """

    def __init__(self, text: str) -> None:
        words = text.split()
        self.flags: Final = [word for word in words if word in KEY_FLAGS]
        self.begin: int | str = 1
        self.begin_from = 1
        self.last = 0
        self.step = 1
        self.limit = 0
        self.counted = False
        self.unknown = False
        at = len(self.flags)
        while at < len(words):
            at += self._take(words, at)

    def _take(self, words: list[str], at: int) -> int:
        """Read one word of a spec, and the word behind it; return how many words that were."""
        word = words[at]
        if word == "counted":
            self.counted = True
            return 1
        if word == "unknown":
            self.unknown = True
            return 1
        value = words[at + 1] if at + 1 < len(words) else ""
        if word == "behind":
            self.begin = value
        elif word == "at":
            self.begin = int(value)
        elif word == "from":
            self.begin_from = int(value)
        elif word == "to":
            self.last = int(value)
        elif word == "step":
            self.step = int(value)
        elif word == "limit":
            self.limit = int(value)
        else:
            raise TableError(f"{word} is not known in a key spec")
        return 2


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
        place: str,
        arity: int,
        flags: int,
        keys: tuple[KeySpec, ...],
        acl: tuple[str, ...],
        tips: tuple[str, ...],
    ) -> None:
        super().__init__(name, "connection" in acl and not flags & BLOCKING)
        self.place: Final = place  # of its function: ``package.module`` or ``package.module:name``
        self.run: Handler | None = None
        self.arity: Final = arity
        self.flags: Final = flags
        self.keys: Final = keys
        self.acl: Final = acl  # categories besides those that follow from the flags
        self.tips: Final = tips
        self.find_keys: KeyFinder | None = None  # see ``finds_keys``
        self.run_alike: AlikeHandler | None = None  # see ``alike``
        self.alike_of_any_key = False
        self.makes_others: Final = bool(  # it may make keys that are no streams
            flags & DENYOOM and keys and "stream" not in acl and "keyspace" not in acl
        )
        self.replaces = False
        self.remembers = False
        self.has_keys: Final = len(keys) > 0 and abs(arity) > 1
        self.has_one_key: Final = (  # the second word
            self.has_keys
            and len(keys) == 1
            and not keys[0].unknown
            and keys[0].begin == 1
            and keys[0].last == 0
            and not keys[0].counted
        )
        self.reads_keys: Final = bool(
            flags & READONLY and not flags & (SCRIPT_RUNNER | PUBSUB) and keys
        )
        self.reads_second_word: Final = self.reads_keys and self.has_one_key
        self.lengthy: LengthyMaker | None = None  # see ``lengthy``
        self.subcommands: dict[bytes, Command] = {}
        self.spelled: dict[bytes, Command] = {}  # of those, by name as typed

    def arity_fits(self, count: int) -> bool:
        """Return whether a request of ``count`` words, the name included, has the right length."""
        return count == self.arity if self.arity >= 0 else count >= -self.arity


TABLE: Final[dict[bytes, Command]] = {}  # by the names that clients use
ORIGINALS: Final[dict[bytes, Command]] = {}  # by the names that stand in files, whatever is renamed


def finds_keys(*names: str) -> Callable[[KeyFinder], KeyFinder]:
    """Declare the function that finds the keys of commands whose key specs cannot."""

    def declare(find: KeyFinder) -> KeyFinder:
        for name in names:
            TABLE[name.lower().encode()].find_keys = find
        return find

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
    """Declare how a request of very many words is run in slices; see ``server.dispatch.call``.

    The function is given the call and changes nothing. For None, where there is nothing to do or
    something is wrong, the command's own function answers.
    """

    def declare(make: LengthyMaker) -> LengthyMaker:
        TABLE[name.lower().encode()].lengthy = make
        return make

    return declare


def row_of(request: list[bytes]) -> Command | None:
    """Return the row of the command or subcommand that a request names, whatever its arity."""
    row = TABLE.get(request[0].lower())
    if row is not None and row.subcommands and len(request) > 1:
        return row.subcommands.get(request[1].lower())
    return row


_FAST: Final = CATEGORY_BITS[b"fast"]
_SLOW: Final = CATEGORY_BITS[b"slow"]
_READ: Final = CATEGORY_BITS[b"read"]
_BITS_OF_FLAG: Final = (
    (WRITE, CATEGORY_BITS[b"write"]),
    (READONLY, _READ),
    (ADMIN, CATEGORY_BITS[b"admin"] | CATEGORY_BITS[b"dangerous"]),
    (PUBSUB, CATEGORY_BITS[b"pubsub"]),
    (BLOCKING, CATEGORY_BITS[b"blocking"]),
)


def acl_categories(row: Command) -> list[bytes]:
    """Return a command's ACL categories without ``@``: its own and those that its flags bring."""
    found = _category_bits(row)
    return [name for name, bit in CATEGORY_BITS.items() if found & bit]


def _category_bits(row: Command) -> int:
    found = _FAST if row.flags & FAST else _SLOW
    for name in row.acl:
        found |= CATEGORY_BITS[name.encode()]
    for flag, bits in _BITS_OF_FLAG:
        if row.flags & flag:
            found |= bits
    return found & ~_READ if row.flags & SCRIPT_RUNNER else found  # EVAL_RO says no more than EVAL


_CHILDREN: Final[dict[bytes, dict[bytes, Command]]] = {}  # of every container, met or not


def every_row() -> list[Command]:
    """Return the rows of all commands by their own names, each before those of its subcommands."""
    return [each for row in ORIGINALS.values() for each in [row, *row.subcommands.values()]]


def add_row(row: Command) -> None:
    """Put a row into the table, below its container where its name has one."""
    BOOK.add(row.name, _category_bits(row))
    parent, _, child = row.name.partition(b"|")
    if child:
        _CHILDREN.setdefault(parent, {})[child] = row
        return
    row.subcommands = _CHILDREN.setdefault(row.name, {})
    TABLE[row.name] = row
    ORIGINALS[row.name] = row


TABLES: Final[list[tuple[str, str]]] = []  # those that were read: the path of each, and its text
MODULES: Final[dict[str, None]] = {}  # that they name


def read_tables(folder: str, package: str) -> None:
    """Add the commands of all tables of a folder; raises TableError where one has a mistake.

    ``package`` is the prefix of the names of modules, with a dot at its end.
    """
    for name in sorted(os.listdir(folder)):
        if name.endswith(".txt"):
            path = f"{folder}/{name}"
            with open(path, encoding="utf-8") as file:
                text = file.read()
            TABLES.append((path, text))
            _read_table(text, path, package)


def _read_table(text: str, path: str, package: str) -> None:
    place = ""
    category = ""
    header = ""
    documented = 0  # lines
    for line in [*text.replace("\n        ", " ").splitlines(), ""]:  # a longer line goes on
        if line.startswith("    "):
            documented += 1
            continue
        if header:
            if documented < 2:  # what it does, and since when
                raise TableError(f"{path}: {header.split()[0]} is not documented")
            try:
                _read_entry(header, place, category)
            except (TableError, ValueError) as error:
                raise TableError(f"{path}: {error}") from error
        header = ""
        documented = 0
        if line.startswith("["):
            place = line[1:-1] if line.startswith("[headrace.") else f"{package}{line[1:-1]}"
            MODULES[place.partition(":")[0]] = None
        elif line.startswith("group "):
            category = _CATEGORY_OF_GROUP.get(line[6:], "")
        elif line and " = " not in line:
            header = line


_SPECS: Final[dict[str, KeySpec]] = {}


def _read_entry(header: str, place: str, category: str) -> None:
    parts = header.split(" | ")
    shown, arity, *words = parts[0].split()
    flags = 0
    acl: list[str] = []
    tips: list[str] = []
    for word in words:
        if word.startswith("+"):
            tips.append(word[1:])
        elif word == "@" or (word[:1] == "@" and word[1:].encode() in CATEGORY_BITS):
            acl.append(word[1:])
        elif word in FLAGS:
            flags |= FLAGS[word]
        else:
            raise TableError(f"{word} of {shown} is not known")
    if not acl:
        acl = [category]
    specs: list[KeySpec] = []
    for text in parts[1:]:
        if text not in _SPECS:
            _SPECS[text] = KeySpec(text)
        specs.append(_SPECS[text])
    name = shown.lower().encode()
    if BOOK.has(name):
        raise TableError(f"{shown} stands in the tables twice")
    own = tuple([each for each in acl if each])
    add_row(Command(name, place, int(arity), flags, tuple(specs), own, tuple(tips)))


_COMMANDS: Final = "headrace.server.commands"
read_tables(import_module(_COMMANDS).__path__[0], f"{_COMMANDS}.")


def rename_commands(renamed: list[tuple[bytes, bytes]]) -> str:
    """Rename or remove commands, by (name, new name or empty); return the error, or nothing."""
    for old, new in renamed:
        row = TABLE.pop(old.lower(), None)
        if row is None:
            return f"No such command in rename-command: {os.fsdecode(old)}"
        if not new:
            continue
        if new.lower() in TABLE:
            return f"Target command name already exists: {os.fsdecode(new)}"
        TABLE[new.lower()] = _recorded_by_name(row, new.lower())
    return ""


def _recorded_by_name(row: Command, first: bytes) -> Command:
    """Return a row that does the same for requests with another first word."""
    run = row.run
    if run is not None and row.flags & WRITE:
        run = _named(run, row.name.partition(b"|")[0].upper(), first)
    renamed = Command(row.name, row.place, row.arity, row.flags, row.keys, row.acl, row.tips)
    renamed.run = run
    renamed.find_keys = row.find_keys
    if not row.flags & WRITE:
        renamed.run_alike = row.run_alike
        renamed.alike_of_any_key = row.alike_of_any_key
        renamed.remembers = row.remembers
    for name, child in row.subcommands.items():
        renamed.subcommands[name] = _recorded_by_name(child, first)
    return renamed


def _named(run: Handler, name: bytes, other: bytes) -> Handler:
    """Return ``run`` with ``name`` for ``other``, because records are made of the request.

    Afterwards the request has the client's words again. A request that is run again because it has
    waited has the command's own name.
    """

    def run_named(call: Call) -> object:
        first = call.argv[0]
        if first.lower() != other:
            return run(call)
        call.argv = [name, *call.argv[1:]]
        try:
            return run(call)
        finally:
            call.argv = [first, *call.argv[1:]]

    return run_named
