"""The policies: their names, their values, and what they mean together.

A policy is a name and a value, as ``ack-wait 30s``. They are given for a stream, for one group of a
stream, or for all whose names fit a pattern; see ``policies.book``. Here they are read, and put
together to what holds for one group.

Durations are a number with ``ms``, ``s``, ``m``, ``h`` or ``d`` behind it; a number alone is
milliseconds. Moments are milliseconds since 1970.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Final, NamedTuple

from headrace.compat.numbers import INT64_MAX, parse_integer
from headrace.compat.parameters import BadValue, memory_size
from headrace.protocol.requests import quoted, split_words

MOST_MS: Final = 2**53  # of durations and moments: some 285,000 years
MOST_NUMBER: Final = 2**53
WINDOW: Final = 2_000_000  # entries of a group that are set aside, or to be tried again later
WINDOW_MOST: Final = 100_000_000
GRACE_MS: Final = 30_000  # for which the consumer of a closed connection is still taken to be there
_UNITS: Final = {b"ms": 1, b"s": 1000, b"m": 60_000, b"h": 3_600_000, b"d": 86_400_000}


class PolicyError(Exception):
    """A name, a value, or values that contradict each other; the message is for the client."""

    def __init__(self, message: bytes) -> None:
        super().__init__(message)
        self.message: Final = message


def duration_ms(word: bytes) -> int:
    """Return the milliseconds that a duration means; -1 for what is none, or too long."""
    digits = word.rstrip(b"abcdefghijklmnopqrstuvwxyz")
    factor = _UNITS.get(word[len(digits) :], 0) if len(digits) < len(word) else 1
    if not digits.isdigit() or len(digits) > 16 or not factor:
        return -1
    found = int(digits) * factor
    return found if found <= MOST_MS else -1


class _Kind:
    """A kind of value; ``range`` says which values there are."""

    def __init__(self, range_: bytes) -> None:
        self.range: Final = range_

    @abstractmethod
    def is_valid(self, word: bytes) -> bool:
        """Return whether a word is such a value."""


class _Number(_Kind):
    def __init__(self, least: int, most: int) -> None:
        super().__init__(b"a number from %d to %d" % (least, most))
        self._least: Final = least
        self._most: Final = most

    def is_valid(self, word: bytes) -> bool:
        number = parse_integer(word)
        return number is not None and self._least <= number <= self._most


class _Duration(_Kind):
    def __init__(self, several: bool = False) -> None:
        form = b"durations with commas between them, as 1s,5s,30s" if several else b"a duration, as"
        super().__init__(form if several else form + b" 500ms, 30s, 5m, 2h or 1d")
        self._several: Final = several

    def is_valid(self, word: bytes) -> bool:
        words = word.split(b",") if self._several else [word]
        return all(duration_ms(each) > 0 for each in words)


class _Choice(_Kind):
    def __init__(self, *words: bytes) -> None:
        super().__init__(b" or ".join(words))
        self._words: Final = words

    def is_valid(self, word: bytes) -> bool:
        return word in self._words


class _Size(_Kind):
    def __init__(self) -> None:
        super().__init__(b"a number of bytes, as 100mb or 2gb")

    def is_valid(self, word: bytes) -> bool:
        size = memory_size(word)
        return size is not None and 0 < size <= MOST_NUMBER


class _Text(_Kind):
    def is_valid(self, word: bytes) -> bool:
        return word != b""


_FIELD: Final = _Text(b"the name of a field")
_AT_LEAST_1: Final = _Number(1, MOST_NUMBER)
NAMES: Final[dict[bytes, _Kind]] = {
    b"ack-wait": _Duration(),
    b"auto-create": _Choice(b"0", b"$"),
    b"consumer-inactive-threshold": _Duration(),
    b"dead-letter-key": _Text(b"a key, in which %k is the stream and %g the group"),
    b"deliver-at-field": _FIELD,
    b"deliver-delay": _Duration(),
    b"delivery-limit": _AT_LEAST_1,
    b"inactive-threshold": _Duration(),
    b"keep-alive": _Choice(b"connection"),
    b"keep-alive-grace": _Duration(),
    b"max-age": _Duration(),
    b"max-bytes": _Size(),
    b"max-len": _AT_LEAST_1,
    b"max-pending": _AT_LEAST_1,
    b"max-pending-per-consumer": _AT_LEAST_1,
    b"message-ttl": _Duration(),
    b"message-ttl-field": _FIELD,
    b"on-consumer-delete": _Choice(b"drop", b"release"),
    b"order-key": _FIELD,
    b"order-on-dead": _Choice(b"release", b"hold"),
    b"overflow": _Choice(b"trim", b"reject"),
    b"pause-until": _Number(0, MOST_MS),
    b"retention": _Choice(b"acked"),
    b"retry-delay": _Duration(several=True),
    b"retry-delay-max": _Duration(),
    b"retry-delay-min": _Duration(),
    b"retry-delay-type": _Choice(b"failed", b"all"),
    b"window": _Number(1, WINDOW_MOST),
}
# Of the stream, whatever its groups are: these bound it, and the last one is for its groups to do.
BOUNDS: Final = (b"max-age", b"max-bytes", b"max-len", b"overflow")
OF_STREAM: Final = (*BOUNDS, b"retention")


def unknown(name: bytes) -> bytes:
    """Return the message for a name that no policy has."""
    return b"unknown policy '%b'. There are: %b" % (name[:128], b", ".join(NAMES))


def check(name: bytes, word: bytes) -> None:
    """Raise PolicyError unless there is a policy of this name that may have this value."""
    kind = NAMES.get(name)
    if kind is None:
        raise PolicyError(unknown(name))
    if not kind.is_valid(word):
        raise PolicyError(b"policy %b takes %b, not '%b'" % (name, kind.range, word[:128]))


def check_together(values: dict[bytes, bytes], of_group: bool) -> None:
    """Raise PolicyError if policies contradict each other, or ``of_group`` are the stream's."""
    for name in OF_STREAM if of_group else ():
        if name in values:
            raise PolicyError(b"%b is a policy of the stream: leave the group out" % name)
    if b"retry-delay" in values and (b"retry-delay-min" in values or b"retry-delay-max" in values):
        raise PolicyError(b"retry-delay names all delays: retry-delay-min and -max contradict it")
    if b"retry-delay-max" in values:
        if b"retry-delay-min" not in values:
            raise PolicyError(b"retry-delay-max needs retry-delay-min, from which delays grow")
        if duration_ms(values[b"retry-delay-max"]) < duration_ms(values[b"retry-delay-min"]):
            raise PolicyError(b"retry-delay-max is below retry-delay-min")


class PolicyLine(NamedTuple):
    """Policies of streams whose keys fit a pattern, and of groups that fit another; None is all."""

    key: bytes
    group: bytes | None
    values: dict[bytes, bytes]

    def text(self) -> bytes:
        """Return it as it is written."""
        names = [self.key] if self.group is None else [self.key, b"group", self.group]
        words = [word for pair in self.values.items() for word in pair]
        return b" ".join([_as_needed(word) for word in [*names, *words]])


def _as_needed(word: bytes) -> bytes:
    """Return a word in quotes, if it needs them to stay one word."""
    shown = quoted(word)
    is_plain = shown[1:-1] == word and word and word != b";" and not set(word) & set(b" '#")
    return word if is_plain else shown


def lines_of(words: list[bytes], current: list[bytes]) -> list[bytes]:
    """Return the lines of ``stream-policy``, with ``;`` between those that ``words`` add.

    A line takes the place of one for the same patterns. Raises BadValue.
    """
    lines = {(line.key, line.group): line for line in map(read_line, current)}
    while words:
        end = words.index(b";") if b";" in words else len(words)
        line = _line_of(words[:end])
        lines[line.key, line.group] = line
        words = words[end + 1 :]
    return [line.text() for line in lines.values()]


def read_line(line: bytes) -> PolicyLine:
    """Return what a line of ``lines_of`` says."""
    return _line_of(split_words(line) or [])


def _line_of(words: list[bytes]) -> PolicyLine:
    has_group = len(words) > 2 and words[1].lower() == b"group"
    at = 3 if has_group else 1
    if len(words) <= at or (len(words) - at) % 2:
        raise BadValue("A policy is a key pattern, and then names and values")
    names = [word.lower() for word in words[at::2]]
    pairs = list(zip(names, words[at + 1 :: 2], strict=True))
    try:
        for name, word in pairs:
            check(name, word)
        check_together(dict(pairs), has_group)
    except PolicyError as error:
        raise BadValue(error.message.decode("utf-8", "backslashreplace")) from None
    return PolicyLine(words[0], words[2] if has_group else None, dict(pairs))


class Policy:
    """Says what holds for one group; durations and moments are in milliseconds, 0 is none.

    Args:
        values: the policies by name, each with a value that ``check`` allows.
        key, group: the names that ``%k`` and ``%g`` stand for.
    """

    def __init__(self, values: dict[bytes, bytes], key: bytes, group: bytes) -> None:
        self.values: Final = values
        self.delivery_limit: Final = _number(values, b"delivery-limit")
        self.dead_letter_key: Final = expanded(values.get(b"dead-letter-key", b""), key, group)
        self.ack_wait_ms: Final = _duration(values, b"ack-wait")
        self.max_pending: Final = _number(values, b"max-pending")
        self.max_per_consumer: Final = _number(values, b"max-pending-per-consumer")
        self.order_key: Final = values.get(b"order-key", b"")
        self.holds_dead: Final = values.get(b"order-on-dead") == b"hold"
        self.deliver_at_field: Final = values.get(b"deliver-at-field", b"")
        self.deliver_delay_ms: Final = _duration(values, b"deliver-delay")
        self.ttl_ms: Final = _duration(values, b"message-ttl")
        self.ttl_field: Final = values.get(b"message-ttl-field", b"")
        self.pause_until_ms: Final = _number(values, b"pause-until")
        self.created_at: Final = values.get(b"auto-create", b"")
        self.consumer_inactive_ms: Final = _duration(values, b"consumer-inactive-threshold")
        self.inactive_ms: Final = _duration(values, b"inactive-threshold")
        self.keeps_alive: Final = b"keep-alive" in values
        self.grace_ms: Final = _duration(values, b"keep-alive-grace") or GRACE_MS
        self.drops_acked: Final = b"retention" in values
        self.releases: Final = values.get(b"on-consumer-delete") == b"release"
        self.window: Final = _number(values, b"window") or WINDOW
        delays = values.get(b"retry-delay", b"")
        self._delays_ms: Final = (
            [duration_ms(each) for each in delays.split(b",")] if delays else []
        )
        self._delay_min_ms: Final = _duration(values, b"retry-delay-min")
        self._delay_max_ms: Final = _duration(values, b"retry-delay-max") or MOST_MS
        self.delays_all: Final = values.get(b"retry-delay-type") == b"all"
        delayed = bool(self._delays_ms) or self._delay_min_ms > 0
        # Whether ``>`` hands out again what was released.
        self.redelivers: Final = delayed or self.ack_wait_ms > 0
        # Whether each new entry is looked at before it may go out.
        self.looks: Final = bool(
            self.order_key
            or self.deliver_at_field
            or self.deliver_delay_ms
            or self.ttl_ms
            or self.ttl_field
        )

    def delay_ms(self, deliveries: int, failed: bool) -> int:
        """Return how long to wait after so many deliveries; 0: not at all.

        ``failed``: the last one was reported as failed, and did not end otherwise.
        """
        if deliveries < 1 or (not failed and not self.delays_all):
            return 0
        if self._delays_ms:
            return self._delays_ms[min(deliveries, len(self._delays_ms)) - 1]
        return min(self._delay_min_ms * deliveries, self._delay_max_ms)

    def is_dead(self, deliveries: int) -> bool:
        """Return whether an entry that was delivered so often may not be delivered again."""
        return 0 < self.delivery_limit <= deliveries

    def due_ms(self, row: list[bytes], ms: int) -> int:
        """Return from when on an entry may go out: its fields in a row, and its ID's time."""
        if self.deliver_at_field:
            word = value_of(row, self.deliver_at_field)
            at_ms = None if word is None else parse_integer(word)
            if at_ms is not None and at_ms >= 0:
                return min(at_ms, MOST_MS)
        return min(ms + self.deliver_delay_ms, MOST_MS) if self.deliver_delay_ms else 0

    def expires_ms(self, row: list[bytes], ms: int) -> int:
        """Return from when on an entry is not to go out any more; ``INT64_MAX``: never."""
        if self.ttl_field:
            word = value_of(row, self.ttl_field)
            lives_ms = -1 if word is None else duration_ms(word)
            if lives_ms >= 0:
                return ms + lives_ms
        return ms + self.ttl_ms if self.ttl_ms else INT64_MAX

    def order_of(self, row: list[bytes]) -> bytes | None:
        """Return the value by which an entry is kept in order; None: it stands alone."""
        return value_of(row, self.order_key) if self.order_key else None


class Bounds:
    """Says how long and how old a stream may become; 0 is any.

    Attributes:
        rejects: new entries are refused, and nothing is removed that a group has still to do.
        drops_acked: what all groups have acknowledged goes.
    """

    def __init__(self, values: dict[bytes, bytes]) -> None:
        self.most: Final = _number(values, b"max-len")
        self.most_bytes: Final = memory_size(values.get(b"max-bytes", b"0")) or 0
        self.age_ms: Final = _duration(values, b"max-age")
        self.rejects: Final = values.get(b"overflow") == b"reject"
        self.drops_acked: Final = b"retention" in values


def expanded(template: bytes, key: bytes, group: bytes) -> bytes:
    """Return a key with the names of stream and group in the places of ``%k`` and ``%g``."""
    # One pass, because a name may have such letters itself.
    pieces = template.split(b"%")
    found = [pieces[0]]
    for piece in pieces[1:]:
        name = {b"k": key, b"g": group}.get(piece[:1])
        found.append(b"%" + piece if name is None else name + piece[1:])
    return b"".join(found)


def value_of(row: list[bytes], field: bytes) -> bytes | None:
    """Return the first value of a field, of fields and values in a row."""
    for at in range(0, len(row), 2):
        if row[at] == field:
            return row[at + 1]
    return None


def _number(values: dict[bytes, bytes], name: bytes) -> int:
    return int(values.get(name, b"0"))


def _duration(values: dict[bytes, bytes], name: bytes) -> int:
    word = values.get(name)
    return 0 if word is None else duration_ms(word)
