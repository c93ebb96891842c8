"""A judge that is older than the Redis whose ways ours has.

What it lacks is not called, be it a command or an option: it tells so itself, by COMMAND DOCS. What
has changed since is known, each with its reason.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from headrace.compat.doc_notation import Argument
from headrace.server.commands.documentation import documentation
from support.client import parse
from support.clock import START_MS
from support.fuzz.known import KNOWN, Known
from support.fuzz.sides import Side

_NEWEST: Final = (8, 10)
# Its payloads have a version of their own, and it does not take those of the newest.
_UNCALLED: Final = ("dump", "restore")
DOCS: Final = documentation()


class Older:
    """What is to be known of one judge.

    Args:
        side: asks it.

    Attributes:
        uncalled: commands that both know, and that are not called all the same.
        known: differences that are meant to be.
    """

    def __init__(self, side: Side) -> None:
        older = _version(side) < _NEWEST
        self._older: Final = older
        self.uncalled: Final = _UNCALLED if older else ()
        self.known: Final[tuple[Known, ...]] = CHANGED if older else ()
        self._lacking: Final[dict[str, set[bytes]]] = _lacking(side) if older else {}

    def lacks(self, words: tuple[bytes, ...]) -> bool:
        """Return whether a call has a word that was no option then, or is read in another way."""
        upper = [word.upper() for word in words]
        if self._older and words and _has_changed(upper):
            return True
        name = words[0].decode("latin-1").lower() if words else ""
        if len(words) > 1 and name not in self._lacking:
            name = f"{name}|{words[1].decode('latin-1').lower()}"
        lacking = self._lacking.get(name)
        return lacking is not None and not lacking.isdisjoint([word.upper() for word in words[1:]])


def _version(side: Side) -> tuple[int, int]:
    told = side.call("INFO", "server").partition(b"redis_version:")[2]
    major, minor = told.split(b".")[:2]
    return int(major), int(minor)


def _lacking(side: Side) -> dict[str, set[bytes]]:
    """By the names of commands: the options that the judge does not know."""
    found: dict[str, set[bytes]] = {}
    told = parse(side.call("COMMAND", "DOCS"))
    assert isinstance(told, list)
    for name, there in _commands(told).items():
        if name in DOCS:
            lacking = _tokens(DOCS[name].arguments()) - there
            if lacking:
                found[name] = lacking
    return found


def _commands(told: list[object]) -> dict[str, set[bytes]]:
    """The options of all commands that a reply to COMMAND DOCS tells of."""
    found: dict[str, set[bytes]] = {}
    for name, facts in zip(told[::2], told[1::2], strict=True):
        assert isinstance(name, bytes)
        assert isinstance(facts, list)
        about = dict(zip(facts[::2], facts[1::2], strict=True))
        found[name.decode()] = _told_tokens(about.get(b"arguments", []))
        found |= _commands(about.get(b"subcommands", []))
    return found


def _told_tokens(arguments: list[list[object]]) -> set[bytes]:
    found: set[bytes] = set()
    for argument in arguments:
        facts = dict(zip(argument[::2], argument[1::2], strict=True))
        token = facts.get(b"token")
        if isinstance(token, bytes):
            found.add(token.upper())
        inner = facts.get(b"arguments", [])
        assert isinstance(inner, list)
        found |= _told_tokens(inner)
    return found


def _tokens(arguments: list[Argument]) -> set[bytes]:
    found = {argument.token.upper().encode() for argument in arguments if argument.token}
    for argument in arguments:
        found |= _tokens(argument.arguments)
    return found


def _has_changed(upper: list[bytes]) -> bool:
    """Return whether an older Redis does something else, so that the servers would be apart."""
    name = upper[0]
    if name in _OPTIONS_AT and not _read_alike(upper):
        return True
    if name in _BOUNDED and any(_is_bound_since(word) for word in upper):
        return True
    if name.startswith(b"Z") and any(  # that gives nothing since, of a skiplist neither
        word == b"LIMIT" and number.startswith(b"-") for word, number in pairwise(upper)
    ):
        return True
    if name in (b"SORT", b"SORT_RO"):  # an empty text was a number
        return b"ALPHA" not in upper
    if name == b"LSET":  # an index was cut to 32 bits
        return any(_is_wide(word) for word in upper[2:3])
    if name == b"XREAD":  # which refuses an option of another command by name since
        return b"CLAIM" in upper
    return name in _DATED and _may_be_over(upper)


def _is_wide(word: bytes) -> bool:
    return word.removeprefix(b"-").isdigit() and abs(int(word)) >= 2**31


def _is_bound_since(word: bytes) -> bool:
    """Return whether a score is hexadecimal, or begins with a space."""
    return word.lstrip(b"(-+").startswith((b"0X", b" "))


def _may_be_over(upper: list[bytes]) -> bool:
    """Whether the deadline that is given may have come: what has it stayed for a moment then."""
    deadlines = [(word, number) for word, number in pairwise(upper) if word in _UNITS]
    if upper[0] in _LIFETIMES:
        deadlines.append((_UNIT_OF[upper[0]], upper[2]))
    for unit, number in deadlines:
        if number.isdigit() and int(number) * _UNITS[unit] < (_SOON_MS if b"AT" in unit else 1):
            return True
    return False


def _read_alike(upper: list[bytes]) -> bool:
    """Whether a call about fields has its options, and then as many fields as it says, at the end.

    Since 8.8 options may come in any order, and what is wrong is met in another one.
    """
    start = _OPTIONS_AT[upper[0]]
    if b"FIELDS" not in upper[start:]:
        return False
    at = upper.index(b"FIELDS", start)
    options = upper[start:at]
    width = 2 if upper[0] == b"HSETEX" else 1
    told = upper[at + 1] if at + 1 < len(upper) else b""
    there = len(upper) - at - 2
    if not told.isdigit() or there < 1 or int(told) * width != there:
        return False
    if upper[0] == b"HSETEX" and options[:1] in ([b"FNX"], [b"FXX"]):
        options = options[1:]
    if options and options[0] in (b"EX", b"PX", b"EXAT", b"PXAT") and upper[0] in _GIVE:
        return len(options) == 2
    return len(options) < 2 and (not options or options[0] in _ALONE[upper[0]])


_GIVE: Final = (b"HSETEX", b"HGETEX")
_CONDITIONS: Final = (b"NX", b"XX", b"GT", b"LT")
_LIFETIMES: Final = (b"HEXPIRE", b"HPEXPIRE", b"HEXPIREAT", b"HPEXPIREAT")
_UNIT_OF: Final = dict(zip(_LIFETIMES, (b"EX", b"PX", b"EXAT", b"PXAT"), strict=True))
_UNITS: Final = {b"EX": 1000, b"PX": 1, b"EXAT": 1000, b"PXAT": 1}
_SOON_MS: Final = START_MS + 3_600_000  # no session goes on until then
_DATED: Final = (b"SET", b"GETEX", *_GIVE, *_LIFETIMES)
_BOUNDED: Final = (
    b"ZCOUNT", b"ZRANGE", b"ZRANGESTORE", b"ZRANGEBYSCORE", b"ZREVRANGEBYSCORE",
    b"ZREMRANGEBYSCORE",
)  # fmt: skip
_OPTIONS_AT: Final = {
    **dict.fromkeys(_LIFETIMES, 3),
    **dict.fromkeys((*_GIVE, b"HGETDEL"), 2),
}
_ALONE: Final = {
    **dict.fromkeys(_LIFETIMES, _CONDITIONS),
    b"HSETEX": (b"KEEPTTL",),
    b"HGETEX": (b"PERSIST",),
    b"HGETDEL": (),
}


def _told_less(words: tuple[bytes, ...], ours: object, real: object) -> bool:
    """Return whether all is the same, or may differ, but for facts that were not told then."""
    if words[0].upper() != b"XINFO":
        return False
    told = _told(ours, real)
    return told == real or any(known.meant(words, told, real) for known in KNOWN)


def _told(ours: object, real: object) -> object:
    """Ours, without the names, and what stands behind them, that real does not have."""
    if isinstance(ours, dict) and isinstance(real, dict):
        return {name: _told(ours.get(name), value) for name, value in real.items()}
    if not (isinstance(ours, list) and isinstance(real, list)):
        return ours
    names = real[::2]
    if len(ours) > len(real) and all(isinstance(name, bytes) for name in names):
        kept = [at for at in range(0, len(ours), 2) if ours[at] in names]
        ours = [item for at in kept for item in ours[at : at + 2]]
    if len(ours) != len(real):
        return ours
    return [_told(our, their) for our, their in zip(ours, real, strict=True)]


CHANGED: Final = (Known("facts that an older Redis does not tell", _told_less),)
