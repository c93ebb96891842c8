"""Effects: a command's changes of data that all regions share, in words that each of them applies.

An effect is deterministic, and commutes with the effects that other regions make meanwhile. Every
effect goes through one function: an own one when a command makes it, another region's when it
arrives, and both when the append-only file is loaded. So the state is the same wherever the same
effects have been applied. XADD alone has a shorter way for entries of this region, with the same
result.

A family of commands declares the functions of its effects with ``@effect``. They check all of their
words before they change anything.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Final

from headrace.compat.errors import TRANSACTION_TOO_LARGE, CommandError, aa_unaware
from headrace.regions.knowledge.records import EFFECTS, LOWEST_VERSION, OF_FILES, XADD
from headrace.regions.knowledge.region import Region, region_as
from headrace.server.changes.changes import Expiries
from headrace.server.data import HELD_BY_REFUSAL
from headrace.server.dispatch.dispatcher import Dispatcher
from headrace.server.dispatch.invoke import finish_own
from headrace.server.gate import (
    BETWEEN_ROLES,
    FOLLOWS,
    LOADING_DATA,
    NO_REPLICAS,
    PAUSED_ALL,
    PAUSED_WRITES,
    REGION_REFUSES,
    SAVE_FAILED,
    WRITES_REFUSED,
)
from headrace.server.state import Server
from headrace.storage.sharing import AA, REGION_MAX, Replicated
from headrace.storage.value import Value
from headrace.storage.vectors import BadVector, Dot, Numbers, encode_lanes, encode_numbers

Words = list[bytes]
_NUMBER_DIGITS: Final = 18
_WIRE_BYTES: Final = 12  # of a word, beside itself, at most
_NO_WRITES: Final = (
    LOADING_DATA
    | PAUSED_WRITES
    | PAUSED_ALL
    | WRITES_REFUSED
    | SAVE_FAILED
    | NO_REPLICAS
    | REGION_REFUSES
    | FOLLOWS
    | BETWEEN_ROLES
)
_EFFECTS: Final[dict[bytes, EffectHandler]] = {}
_LOCAL: Final[dict[bytes, LocalHandler]] = {}
# Number of words of a record, 0 where it varies, and the text for one with another number.
_WORDS: Final[dict[bytes, tuple[int, str]]] = {}


class EffectError(Exception):
    """A record that no region has written; the text says why. Nothing has changed."""


class Effect:
    """One effect while it is applied.

    Attributes:
        words: all of it.
        origin, number: which region made it, and its number.
        own: this region is about to make it.
        replaying: it is read from a file; the effects that follow from it are in the file, too.
        following: effects of this region that belong to the arrival of this one.
    """

    def __init__(
        self, server: Server, words: Words, origin: bytes, number: int, own: bool, replaying: bool
    ) -> None:
        self.server: Final = server
        self.words: Final = words
        self.origin: Final = origin
        self.number: Final = number
        self.own: Final = own
        self.replaying: Final = replaying
        self.now_ms: Final = server.clock.now_ns // 1_000_000
        self.following: Final[list[Words]] = []

    @property
    def dot(self) -> Dot:
        """Name that no other effect has."""
        return self.origin, self.number


EffectHandler = Callable[[Effect], object]
LocalHandler = Callable[[Server, Words], None]
# Joins a key with a copy of it by about a millisecond's work; False when nothing is left.
KeyJoin = Callable[[], bool]


def effect(
    name: bytes, words: int = 0, expected: str = ""
) -> Callable[[EffectHandler], EffectHandler]:
    """Declare an effect: ``XADD``, or the word behind ``AA``; its words, and its function."""
    _WORDS[name] = (words, expected)

    def declare(handler: EffectHandler) -> EffectHandler:
        _EFFECTS[name] = handler
        return handler

    return declare


def local(
    name: bytes, words: int = 0, expected: str = ""
) -> Callable[[LocalHandler], LocalHandler]:
    """Declare a record ``AA name`` that concerns this region alone; as ``effect``."""
    _WORDS[name] = (words, expected)

    def declare(handler: LocalHandler) -> LocalHandler:
        _LOCAL[name] = handler
        return handler

    return declare


def _check_words(name: bytes, words: Words) -> None:
    count, expected = _WORDS[name]
    if count and len(words) != count:
        raise EffectError(expected)


def region_of(server: Server) -> Region:
    """Return the region that a server is; it must be one."""
    return region_as(server.data.region)


def may_write(server: Server) -> bool:
    """Return whether this region may make effects by itself now."""
    return not server.gate.reasons & _NO_WRITES


def refuse_writes(server: Server, line: bytes) -> None:
    """Refuse writes of clients with this error line; an empty line takes them again."""
    region_of(server).refusal = line
    server.data.hold_expiry(HELD_BY_REFUSAL, bool(line))
    server.gate.set(REGION_REFUSES, bool(line))


def require_known(server: Server, name: bytes) -> None:
    """Raise CommandError unless all regions know effects of this kind; call before any change."""
    since = EFFECTS.get(name, LOWEST_VERSION)
    if since > LOWEST_VERSION:
        member = region_of(server).unaware(since)
        if member:
            raise CommandError(aa_unaware(name, since, member))


def emit(server: Server, words: Words) -> object:
    """Number, record and apply an effect of this region. Return the result of its function.

    Raises CommandError as ``require_known``; nothing has changed then.
    """
    name = words[1] if words[0] == AA else words[0]
    require_known(server, name)
    changes = server.changes
    if changes.expired:
        changes.report_expired()
    region = region_of(server)
    origin, number = region.next_dot()
    changes.record(0, words)
    region.learned(origin, number)
    region.emitted[name] = region.emitted.get(name, 0) + 1
    return _handler_of(words)(Effect(server, words, origin, number, True, False))


def apply_record(
    server: Server, origin: bytes, number: int, words: Words, replaying: bool
) -> list[Words]:
    """Apply the next record of an origin: of another region, or from a file.

    Return effects of this region that belong to it, to be made and recorded with it. Raises
    EffectError if it is no effect.
    """
    handler = _handler_of(words)
    found = Effect(server, words, origin, number, False, replaying)
    try:
        handler(found)
    except BadVector as error:
        raise EffectError(f"{error} is no vector, lane or ID") from None
    region_of(server).learned(origin, number)
    return found.following


def apply_local(server: Server, words: Words) -> None:
    """Apply a record again that concerns this region alone. Raises EffectError if it is none."""
    handler = _LOCAL.get(words[1]) if len(words) > 1 else None
    if handler is None:
        raise EffectError("not known here: start the version that has written it, or a later one")
    _check_words(words[1], words)
    try:
        handler(server, words)
    except BadVector as error:
        raise EffectError(f"{error} is no vector, lane or ID") from None


def is_local(name: bytes) -> bool:
    """Return whether ``AA name`` concerns one region alone."""
    return name in _LOCAL or name in OF_FILES


def _handler_of(words: Words) -> EffectHandler:
    name = words[0]
    if name == AA and len(words) > 1:
        name = words[1]
    elif name != XADD:
        raise EffectError("an unknown effect")
    handler = _EFFECTS.get(name)
    if handler is None:
        raise EffectError("an unknown effect")
    _check_words(name, words)
    return handler


class Replication:
    """The part of a type of values that keeps it the same in all regions."""

    @abstractmethod
    def rebuild(self, server: Server, key: bytes, value: object) -> None:
        """Make effects that put a plain value under a key that is free."""

    @abstractmethod
    def set_deadline(self, server: Server, key: bytes, moment_ms: int) -> None:
        """Make the effect that gives a key that is there a deadline, or with -1 none."""

    @abstractmethod
    def expiries(self, server: Server) -> Expiries:
        """Return the object that makes effects of keys that expire."""

    @abstractmethod
    def collect(self, server: Server, key: bytes, stable: Numbers) -> bool:
        """Forget what all regions know of a key. Return whether there is more to forget."""

    @abstractmethod
    def adopted(self, region: Region, value: object, deadline_ms: int) -> Value | None:
        """Return a plain value of this type as the region has it that takes it over.

        ``deadline_ms`` is that of its key, -1 for none. None where the value is of another type.
        ``value`` is of no use afterwards.
        """

    @abstractmethod
    def alone(self, value: Value) -> Value:
        """Return a value as it is outside of regions; ``value`` is of no use afterwards."""

    @abstractmethod
    def loaded(self, server: Server) -> None:
        """Note what is to be forgotten, or published, after all has been loaded."""

    @abstractmethod
    def remembered(self, server: Server, key: bytes) -> Replicated | None:
        """Return what is remembered of a gone key, not to be changed."""

    @abstractmethod
    def join(
        self, server: Server, key: bytes, copy: object | None, mine: Numbers, theirs: Numbers
    ) -> KeyJoin | None:
        """Join the state of a key here with a copy, into one that knows all that either does.

        Args:
            copy: it is of no use afterwards; None where the other side has nothing of the key.
            mine, theirs: what both sides know.

        Returns: the work to do; None where there is nothing to do.
        """

    @abstractmethod
    def replace(self, server: Server, key: bytes, copy: object | None, theirs: Numbers) -> None:
        """Replace the state of a key here by a copy, which knows ``theirs``."""

    @abstractmethod
    def move_group(self, server: Server, key: bytes, name: bytes, to: int, force: bool) -> None:
        """Have a group read in another region, or with 0 in all. Raises CommandError on failure."""

    @abstractmethod
    def publish(self, server: Server) -> None:
        """Make the effects that have waited for ``aa-ack-interval-ms``."""

    @abstractmethod
    def shared_state(self, value: object) -> list[bytes]:
        """Return all that regions have to agree on about a value, as lines."""

    @abstractmethod
    def fingerprint(self, value: object, newest: int) -> bytes:
        """Return some bytes that are equal where regions agree.

        ``newest`` is how many of the newest parts are looked at; the others are counted only. 0
        looks at all.
        """


_types: Final[list[Replication]] = []  # of values of which regions have copies: there is one


def replicates(replication: Replication) -> None:
    """Declare the replication of a type of values."""
    _types.append(replication)


def replication() -> Replication:
    """Return the replication of the type of values of which regions have copies."""
    return _types[-1]


def alone(value: Value) -> Value:
    """Return a value as it is outside of regions; ``value`` itself is of no use afterwards."""
    return replication().alone(value) if isinstance(value, Replicated) else value


def begin_region(server: Server) -> None:
    """Let a server that is a region make effects of keys that expire."""
    if server.data.region is not None:
        lazy = server.changes.expiries.lazy
        server.changes.expiries = replication().expiries(server)
        server.changes.expiries.lazy = lazy


def publish_all(dispatcher: Dispatcher) -> None:
    """Make the effects that have waited for more of their kind."""
    server = dispatcher.server
    if region_of(server).unpublished and may_write(server):
        replication().publish(server)
        finish_own(server)


def removal(name: bytes, key: bytes, value: object, region: Region) -> Words:
    """Return the effect that removes what this region knows of a key that others have, too."""
    assert isinstance(value, Replicated)
    return [AA, name, key, encode_lanes(value.seen()), encode_numbers(region.known())]


def number_in(text: bytes) -> int:
    """Return the number of a word without a sign. Raises EffectError if it is none."""
    if not text.isdigit() or len(text) > _NUMBER_DIGITS:
        raise EffectError("a number")
    return int(text)


def member_in(text: bytes, least: int = 1) -> int:
    """Return the region that a word of a record stands for; see ``number_in``."""
    number = number_in(text)
    if not least <= number <= REGION_MAX:
        raise EffectError("a region from 1 to 15")
    return number


def size_of(words: Words) -> int:
    """Return how many bytes an effect takes in a file and on a link, at most."""
    return sum([len(word) + _WIRE_BYTES for word in words])


def check_transaction(server: Server, size_bytes: int) -> bytes:
    """Return the error line if this is too large for a transaction between regions; else empty."""
    return TRANSACTION_TOO_LARGE if size_bytes > server.config.aa_transaction_max_bytes else b""
