"""The founding document's tables, and more of that kind, as scenarios for regions.

They are in ``scenarios.txt``. Each line of one is a step, and every link is paused before the first
one, so that nothing travels except at ``sync``:

    sync [region ...]       these regions, or all, pull until they have what each other one has
    clock REGION MS         set its time of day; pass MS lets time go by everywhere
    REGION> words           a command, in one of the regions; in ``both`` or ``all`` of them in turn
    REGION:NAME> words      the same, by a client that has a name, because it waits, or watches
    ... => reply            what it answers; ``REGION:NAME => reply`` is what one that waited gets
    quiet REGION> words     a command that leaves no record for other regions
    until REGION> words     a command that is asked again until it is answered like that
    resume                  from here on the links carry by themselves

A reply is a number or text as it is, or

    $a                      whatever it is, to be used later as ``$a``
    ids 1-1 2-1             these entries, or pending ones, in this order; ``ids`` alone is none
    texts a b               these are the last values of the entries
    names g h               these groups or consumers, in any order
    distinct 4              so many entries, none of which has the ID of another
    pending 3               so many pending entries, of XPENDING
    lanes 2                 so many lanes, of XINFO STREAM
    field NAME VALUE        a field of XINFO; ``below VALUE`` and ``from VALUE`` compare IDs, and
                            ``is $a`` binds it
    error TEXT              an error that has this in its text
    nil, waits

What only some runners can do has words of its own, which are described at ``Regions``: ``fsync``,
``power``, ``kill``, ``stop``, ``start``, ``keep``, ``restore``, ``cut``, ``heal``, ``settle``,
``rewrite``, ``fill``, ``full``, ``room``.

The same steps run in the simulator and with processes. Where the document contradicts itself, a
comment at the scenario says which reading is asserted.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple


class Refused(NamedTuple):
    """A reply that is an error."""

    text: bytes


class Waiting:
    """There is no reply yet."""


WAITS: Final = Waiting()

NEEDS_PROCESS: Final = "process"  # stopping, power cuts, folders
NEEDS_NETWORK: Final = "network"  # links that are cut


class Scenario(NamedTuple):
    """One of them.

    Attributes:
        name: as the specification has it, such as ``S2b``.
        regions: how many there are.
        mode: of IDs, at the start.
        steps: the text.
        needs: what the runner has to be able to do besides.
    """

    name: str
    title: str
    regions: int
    mode: str
    steps: str
    needs: frozenset[str] = frozenset()


class Regions:
    """Several regions that a scenario is put through; they are numbered from 1."""

    count: int

    @abstractmethod
    def call(self, region: int, client: str, words: list[bytes]) -> object:
        """Run a command as a client of a region; the reply, or ``WAITS``."""

    @abstractmethod
    def reply(self, region: int, client: str) -> object:
        """What a client that waited has been answered, or ``WAITS`` when that does not come."""

    @abstractmethod
    def sync(self, regions: list[int]) -> None:
        """The barrier: these regions pull until they have what each other one had at the call."""

    @abstractmethod
    def set_clock(self, region: int, ms: int) -> None:
        """Set the time of day of a region."""

    @abstractmethod
    def elapse(self, ms: int) -> None:
        """Let time go by in all of them, and what happens by itself happen."""

    def cut_between(self, one: int, other: int) -> None:
        """These two regions do not reach each other."""
        raise NotImplementedError

    @abstractmethod
    def resume(self) -> None:
        """Let the links carry by themselves from now on."""

    def rest(self) -> None:
        """Let processes work for a moment, where they need one."""

    def fsync(self, region: int) -> None:
        """What has been written so far survives a power cut."""
        raise NotImplementedError

    def power(self, region: int) -> None:
        """Cut its power, which takes what was written after the last ``fsync``; start it again."""
        raise NotImplementedError

    def kill(self, region: int) -> None:
        """End it at once, and start it again."""
        raise NotImplementedError

    def stop(self, region: int) -> None:
        """End it in order."""
        raise NotImplementedError

    def start(self, region: int) -> None:
        """Start it again."""
        raise NotImplementedError

    def keep(self, region: int, name: str) -> None:
        """Make a copy of the folder of a region that has been stopped."""
        raise NotImplementedError

    def restore(self, region: int, name: str) -> None:
        """Put a copy in the place of the folder of a region that has been stopped."""
        raise NotImplementedError

    def cut(self) -> None:
        """No region reaches another one, not even to say hello."""
        raise NotImplementedError

    def heal(self) -> None:
        """All of them reach each other; what is paused stays so."""
        raise NotImplementedError

    def settle(self, region: int) -> None:
        """Wait until a region takes writes."""
        raise NotImplementedError

    def rewrite(self, region: int) -> None:
        """Have its files written anew, and wait for that."""
        raise NotImplementedError

    def full(self, region: int) -> None:
        """Nothing more can be written to its disk."""
        raise NotImplementedError

    def room(self, region: int) -> None:
        """Its disk has room again."""
        raise NotImplementedError


class Failed(AssertionError):
    """A step went another way; says which one, and how."""


# The scenarios

_LIST: Final = Path(__file__).with_name("scenarios.txt")
_PARAMETERS: Final = re.compile(r"(\d) regions?, ([\w -]+)(?:; needs ([\w, ]+))?")
_IDS: Final = re.compile(r"\{(\d+)(-?)\}")


def _scenarios() -> Iterator[Scenario]:
    """Read the scenarios in ``scenarios.txt``, whose first lines say how they are written."""
    _, *texts = _LIST.read_text().split("\n== ")
    for text in texts:
        lines = text.splitlines()
        names = lines[0].split(", ")
        head = [line.strip() for line in lines if line.startswith("   ")]
        steps = [line for line in lines[1:] if line[:1] not in (" ", "#")]
        found = _PARAMETERS.fullmatch(head[1])
        assert found is not None, head
        count, modes, needs = found.groups("")
        words = dict(line.split(": ", 1) for line in head[2:])
        for number, name in enumerate(names):
            mode = modes.split(" or ")[number if " or " in modes else 0]
            whole = _with_ids("\n".join(steps), mode)
            for word, choices in words.items():
                whole = whole.replace(f"{{{word}}}", choices.split(" | ")[number])
            needed = frozenset(filter(None, needs.split(", ")))
            yield Scenario(name, head[0], int(count), mode, whole, needed)


def _with_ids(steps: str, mode: str) -> str:
    """Return steps with IDs as a caller may give them, and as they come back, in a mode."""
    whole = mode == "semi-strict"
    return _IDS.sub(lambda found: found[1] + ("-0" if whole else "-1" if found[2] else ""), steps)


SCENARIOS: Final = {scenario.name: scenario for scenario in _scenarios()}


# How they run

_STEP: Final = re.compile(
    r"(?P<how>quiet |until )?(?P<where>both|all|\d+)(:(?P<client>\w+))?(?P<asks>>)?(?P<rest> .*)"
)
_BARE: Final = frozenset(
    "fsync power kill stop start cut heal settle rewrite resume full room".split()
)
DEFAULT_CLIENT: Final = "client"
_TRIES: Final = 200
_TRY_MS: Final = 100


def run(scenario: Scenario, regions: Regions) -> None:
    """Put regions through a scenario.

    Raises:
        Failed: a step went another way.
    """
    bound: dict[str, bytes] = {}
    for line in scenario.steps.strip().splitlines():
        if line.strip():
            try:
                _step(line.strip(), regions, bound)
            except Failed as failure:
                text = f"{scenario.name} ({scenario.title}): `{line.strip()}`: {failure}"
                raise Failed(text) from None


def _step(line: str, regions: Regions, bound: dict[str, bytes]) -> None:
    everywhere = range(1, regions.count + 1)
    found = _STEP.fullmatch(line)
    if found is None:
        words = line.split()
        numbers = [int(word) for word in words[1:] if word.isdigit()]
        if words[0] == "sync":
            regions.sync(numbers or list(everywhere))
        elif words[0] == "clock":
            regions.set_clock(*numbers)
        elif words[0] == "pass":
            regions.elapse(*numbers)
        elif words[0] in ("keep", "restore"):
            getattr(regions, words[0])(numbers[0], words[2])
        elif words[0] == "cut" and numbers:
            regions.cut_between(*numbers)
        elif words[0] == "fill":
            _fill(regions, numbers[0])
        elif words[0] in _BARE:
            getattr(regions, words[0])(*numbers)
        else:
            raise Failed("this is no step")
        return
    where = found["where"]
    asked, _, expected = found["rest"].partition("=>")
    client = found["client"] or DEFAULT_CLIENT
    for region in everywhere if where in ("both", "all") else (int(where),):
        if not found["asks"]:
            problem = compare(regions.reply(region, client), expected.split(), bound)
        else:
            request = [_bind(word, bound) for word in asked.split()]
            before = _told(regions, region) if found["how"] == "quiet " else None
            problem = compare(regions.call(region, client, request), expected.split(), bound)
            if before is not None and _told(regions, region) != before:
                raise Failed("it left a record for other regions")
            tries = _TRIES if found["how"] == "until " else 0
            while problem and tries:
                tries -= 1
                regions.elapse(_TRY_MS)
                regions.rest()
                problem = compare(regions.call(region, client, request), expected.split(), bound)
        if problem:
            raise Failed(f"in region {region}, {problem}")


def _told(regions: Regions, region: int) -> object:
    """Return how many records a region has written."""
    return regions.call(region, DEFAULT_CLIENT, [b"AA", b"TOKEN"])


def _fill(regions: Regions, region: int) -> None:
    """Write more than the log may keep, twice, so that what went before is in no log any more."""
    for _ in range(2):
        for _ in range(1000):
            value = b"v" * 2000
            regions.call(region, DEFAULT_CLIENT, [b"XADD", b"other", b"*", b"f", value])
        regions.rewrite(region)


def _bind(word: str, bound: dict[str, bytes]) -> bytes:
    if len(word) > 1 and word[0] == "$":
        return bound[word[1:]]
    return word.encode()


def compare(reply: object, expected: list[str], bound: dict[str, bytes]) -> str:
    """Return why a reply is not what was expected; empty where it is. May bind a name."""
    kind = expected[0]
    if kind == "error":
        text = " ".join(expected[1:]).encode()
        if isinstance(reply, Refused) and text in reply.text:
            return ""
        return f"{reply!r} and not an error with {text!r}"
    if kind == "waits":
        return "" if reply is WAITS else f"{reply!r} and no waiting"
    if isinstance(reply, Refused) or reply is WAITS:
        return f"{reply!r}"
    if kind[0] == "$" and len(expected) == 1:
        name = kind[1:]
        if name not in bound:
            bound[name] = reply if isinstance(reply, bytes) else b""
            return ""
    binds = kind == "field" and expected[2] == "is"
    wanted = [_bind(word, bound) for word in expected[: 2 if binds else None]]
    shown: object = reply
    if kind == "nil":
        return "" if reply is None else f"{reply!r} and not nil"
    if kind == "ids":
        shown = entry_ids(reply)
    elif kind == "texts":
        shown = [_list(_list(entry)[1])[-1] for entry in _list(reply)]
    elif kind == "names":
        shown = sorted(str(_field(each, b"name")) for each in _list(reply))
        return "" if shown == sorted(map(str, wanted[1:])) else f"{shown!r} and not {expected[1:]}"
    elif kind == "values":
        shown = reply
    elif kind == "claimed":
        shown = _list(reply)[1]
    elif kind == "distinct":
        ids = entry_ids(reply)
        shown = [b"%d" % len(ids)] if len(set(ids)) == len(ids) else ids
    elif kind == "pending":
        shown = [b"%d" % _int(_list(reply)[0])]
    elif kind == "lanes":
        shown = [b"%d" % len(_list(_field(reply, b"lanes")))]
    elif kind == "field":
        return _compare_field(reply, wanted, expected, bound)
    else:
        shown = [b"%d" % reply if isinstance(reply, int) else reply]
        wanted = [b"", b" ".join(wanted)]
    return "" if shown == wanted[1:] else f"{shown!r} and not {wanted[1:]!r}"


def _compare_field(
    reply: object, wanted: list[bytes], expected: list[str], bound: dict[str, bytes]
) -> str:
    items = _list(reply)
    if items and isinstance(items[0], list):  # of the first group
        items = items[0]
    value = _field(items, wanted[1])
    if expected[2] == "is":
        bound[expected[3][1:]] = value if isinstance(value, bytes) else b""
        return "" if isinstance(value, bytes) else f"{value!r}"
    if wanted[2] in (b"below", b"from"):
        if not isinstance(value, bytes):
            return f"{value!r}"
        is_below = _id(value) < _id(wanted[3])
        return "" if is_below == (wanted[2] == b"below") else f"{value!r}"
    shown = b"%d" % value if isinstance(value, int) else value
    return "" if shown == wanted[2] else f"{value!r}"


def entry_ids(reply: object) -> list[bytes]:
    """The IDs of entries, or of pending ones, in the reply of a command that reads one stream."""
    if reply is None:
        return []
    items = _list(reply)
    if len(items) == 1 and isinstance(items[0], list) and isinstance(items[0][1], list):
        entries = items[0][1]
        if not entries or isinstance(entries[0], list):  # the stream's name, and its entries
            items = entries
    ids = [each[0] if isinstance(each, list) else each for each in items]
    return [each for each in ids if isinstance(each, bytes)]


def _field(items: object, name: bytes) -> object:
    pairs = _list(items)
    for at in range(0, len(pairs), 2):
        if pairs[at] == name:
            return pairs[at + 1]
    raise Failed(f"no field {name!r} in {items!r}")


def _id(text: bytes) -> tuple[int, int]:
    ms, _, seq = text.partition(b"-")
    return int(ms), int(seq or b"0")


def _list(reply: object) -> list[object]:
    if not isinstance(reply, list):
        raise Failed(f"{reply!r} is no array")
    return reply


def _int(reply: object) -> int:
    if not isinstance(reply, int):
        raise Failed(f"{reply!r} is no number")
    return reply
