"""Calls of every documented command, right and wrong, by chance from the trees of arguments."""

from __future__ import annotations

from collections.abc import Collection
from random import Random
from typing import Final

import headrace.server.commands.families  # noqa: F401  (importing it fills the command table)
from headrace.compat.doc_notation import Argument, Doc
from headrace.server.commands.documentation import documentation
from support.fuzz import families
from support.fuzz.words import ABOUT, WRONG, Words

# How often a chapter of the manual is opened.
_WEIGHTS: Final = {
    "stream": 50,
    "string": 22,
    "generic": 16,
    "transactions": 1,
    "pubsub": 4,
    "connection": 4,
    "server": 3,
    "scripting": 1,
    **dict.fromkeys(families.FAMILIES, 16),
}
_GENERIC_BESIDE: Final = 3  # where one or two families are called
# Within a chapter, where it is not 1: what fills streams and groups comes often, what empties
# everything, or changes nothing, seldom.
_OFTEN: Final = {
    **families.OFTEN,
    "xadd": 12, "xreadgroup": 7, "xclaim": 3, "xautoclaim": 2, "xack": 2, "xpending": 2, "xread": 2,
    "xrange": 2, "xgroup|create": 6, "set": 4, "expire": 2, "pexpire": 2,
    "xsetid": 0.5, "xgroup|destroy": 0.4, "xgroup|setid": 0.7, "xidmprecord": 0.5, "xtrim": 0.7,
    "flushall": 0.1, "flushdb": 0.2, "select": 0.4, "swapdb": 0.3, "move": 0.5, "reset": 0.3,
    "quit": 0.3, "del": 0.6, "unlink": 0.6, "rename": 0.6,
    "dump": 3, "restore": 3,
}  # fmt: skip
_HELP: Final = 0.2
# What does not show in the documentation: pairs of lists of the same length, and their number.
_STREAMS: Final = "streams"
_COUNTS: Final = {"numids", "numkeys", "numfields"}
_AS_MANY: Final = {"weight"}  # options with as many values as there were keys

DOCS = documentation()


def _how_often(name: str) -> float:
    return _HELP if name.endswith("|help") else _OFTEN.get(name, 1)


class Calls:
    """Makes calls.

    Args:
        chance: where all choices come from.
        names: the commands to call, as ``xinfo|stream``; containers are left out.
        spoilt: how often a call has words changed that made sense.

    Attributes:
        about: the families of collections that are called.
    """

    def __init__(self, chance: Random, names: Collection[str], spoilt: float = 0.12) -> None:
        self._chance: Final = chance
        self._spoilt: Final = spoilt
        containers = {name.partition("|")[0] for name in DOCS if "|" in name}
        self._families: Final[dict[str, list[str]]] = {}
        self._tokens: Final[list[bytes]] = [b"COUNT"]
        for name in sorted(names):
            if name in DOCS and name not in containers:
                self._families.setdefault(DOCS[name].group, []).append(name)
                self._collect(DOCS[name].arguments())
        about = [family for family in ABOUT if family in self._families]
        self.about: Final = [family for family in about if family in families.KEYS]
        self.words: Final = Words(chance, about=about or ("string",))
        weights = _WEIGHTS if len(about) > 2 else {**_WEIGHTS, "generic": _GENERIC_BESIDE}
        self._weights: Final = [weights.get(family, 1) for family in self._families]

    @property
    def names(self) -> set[str]:
        """The commands that are called."""
        return {name for names in self._families.values() for name in names}

    def next(self) -> list[bytes]:
        """The words of one call."""
        return self.call(self.any_name())

    def any_name(self) -> str:
        """A command, by how often it is to be called."""
        chance = self._chance
        [family] = chance.choices(list(self._families), self._weights)
        names = self._families[family]
        [name] = chance.choices(names, [_how_often(name) for name in names])
        return name

    def call(self, name: str) -> list[bytes]:
        """A call of one command."""
        words = self.right(name)
        if self._chance.random() < self._spoilt and not families.levels(words):
            self._spoil(words, len(name.split("|")))
        return words

    def right(self, name: str) -> list[bytes]:
        """A call in which every word stands where it may, though values may be wrong."""
        doc = DOCS[name]
        head = [self._case(word) for word in name.encode().upper().split(b"|")]
        words = head + self._several(doc.arguments(), doc, name)
        if name == "restore" and self._chance.random() < 0.6:  # there are few keys
            words.append(b"REPLACE")
        return families.suited(words, name, self._chance) if doc.group == "sorted-set" else words

    # Along the tree

    def _several(self, arguments: list[Argument], doc: Doc, name: str) -> list[bytes]:
        chance = self._chance
        parts: list[list[bytes]] = []
        options: list[list[bytes]] = []  # a run of options: their order is free
        counted = 0
        for argument in arguments:
            if argument.name in _COUNTS and not argument.token:
                counted = chance.choice((1, 1, 1, 2, 3))
                right = chance.random() > 0.06
                parts.append([b"%d" % counted if right else self._value(argument, doc, name)])
                continue
            if argument.optional:
                if argument.name == "idmp" and not self.words.takes_producers():
                    continue
                as_many = counted if argument.name in _AS_MANY else 0
                for _ in range(self._times()):
                    options.append(self._one(argument, doc, name, as_many))
                continue
            parts += self._shuffled(options)
            options = []
            parts.append(self._one(argument, doc, name, counted))
        parts += self._shuffled(options)
        return [word for part in parts for word in part]

    def _times(self) -> int:
        """Return how often an option is given."""
        kind = self._chance.random()
        return 0 if kind < 0.7 else 1 if kind < 0.98 else 2

    def _shuffled(self, options: list[list[bytes]]) -> list[list[bytes]]:
        if self._chance.random() < 0.3:
            self._chance.shuffle(options)
        return options

    def _one(self, argument: Argument, doc: Doc, name: str, times: int = 0) -> list[bytes]:
        if argument.multiple and not times:
            times = self._chance.choice((1, 1, 1, 2, 3))
        words: list[bytes] = []
        for _ in range(times if argument.multiple else 1):
            if words and argument.multiple_token:
                words.append(argument.token.encode())
            words += self._content(argument, doc, name)
        return [self._case(argument.token.encode()), *words] if argument.token else words

    def _content(self, argument: Argument, doc: Doc, name: str) -> list[bytes]:
        chance = self._chance
        if argument.name == _STREAMS:
            return self._streams(name)
        if argument.kind == "block":
            return self._several(argument.arguments, doc, name)
        if argument.kind == "oneof":
            words = self._one(chance.choice(argument.arguments), doc, name)
            if chance.random() < 0.03:  # two that exclude each other
                words += self._one(chance.choice(argument.arguments), doc, name)
            return words
        if argument.kind == "pure-token":
            return []
        if name.startswith("command|getkeys"):
            return self.next() if argument.name == "command" else []
        if name == "xadd" and argument.name == "id":
            return [self.words.new_id()]
        return [self._value(argument, doc, name)]

    def _streams(self, name: str) -> list[bytes]:
        """Keys, and as many IDs."""
        chance = self._chance
        number = chance.choice((1, 1, 1, 1, 2, 2, 3))
        keys = [self.words.value("key", "key", "stream") for _ in range(number)]
        new = (b"$", b"+") if name == "xread" else (b">",)
        ids = [
            chance.choice(new) if chance.random() < 0.6 else self.words.value("id", "string", "")
            for _ in range(number)
        ]
        return keys + ids[: number - (chance.random() < 0.03)]

    def _value(self, argument: Argument, doc: Doc, name: str) -> bytes:
        return self.words.value(argument.name, argument.kind, doc.group, name)

    # Wrong on purpose

    def _case(self, word: bytes) -> bytes:
        return word.lower() if self._chance.random() < 0.1 else word

    def _spoil(self, words: list[bytes], name_length: int) -> None:
        chance = self._chance
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            place = chance.randint(name_length, len(words))
            kind = chance.randrange(7)
            if kind == 0:
                del words[place : place + 1]
            elif kind == 1:
                del words[place:]
            elif kind == 2:
                words[place:place] = words[place : place + chance.randint(1, 2)]
            elif kind == 3:
                words.insert(place, chance.choice(self._tokens))
            elif kind == 4:
                words[place:place] = [chance.choice(self._tokens), chance.choice((b"1", b"0-1"))]
            elif kind == 5 and place < len(words):
                words[place] = chance.choice(WRONG)
            elif kind == 6 and place < len(words):
                other = chance.randint(name_length, len(words) - 1)
                words[place], words[other] = words[other], words[place]

    def _collect(self, arguments: list[Argument]) -> None:
        for argument in arguments:
            if argument.token:
                self._tokens.append(argument.token.encode())
            self._collect(argument.arguments)
