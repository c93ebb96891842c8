"""What is known to differ, or to depend on chance, each with its reason.

Whatever stands nowhere here has to be the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from headrace.compat.stream_ids import parse_id
from support.client import WireError, parse
from support.fuzz import families

# Never called: they end, stop or slow a server, or need a second one.
SPARED: Final[dict[str, str]] = {
    "shutdown": "ends the server",
    "debug": "a tool for tests of each server's own",
    "replicaof": "it would follow another server",
    "slaveof": "likewise",
    "failover": "it would hand over to a replica",
    "psync": "answers by chance, and makes the client a replica",
    "sync": "likewise",
    "save": "the judge has no other folder to write to while it is compared",
    "bgsave": "goes on in the background",
    "bgrewriteaof": "goes on in the background",
    "config|rewrite": "writes a file that one of them does not have",
    "config|set": "changes what all later sessions depend on; the opening uses it",
    "config|resetstat": "what it resets is compared at the end; sessions begin with it",
    "client|pause": "counts on a clock that is not the shared one",
    "client|reply": "a client that is not answered cannot be waited for",
    **dict.fromkeys(("module|load", "module|loadex", "module|unload"), "modules are not there"),
    "client|tracking": "tracking is not supported",
    "memory|malloc-stats": "the judge has no allocator that tells",
    "function|flush": "the judge takes a client's number for itself",
    "client|kill": "whom it meets depends on connections that only look on; sessions kill by ID",
    "monitor": "one client does that all the time",
    "script|debug": "there is no debugger of scripts",
    "migrate": "asks whatever server its words name; it has tests of its own",
}

# Only the kind of reply is compared: status, error, number, text, list.
SHAPES: Final[dict[str, str]] = {
    "randomkey": "picks by chance",
    "info": "figures of a process",
    "memory": "figures of a process",
    "latency": "figures of a process",
    "slowlog": "times taken",
    "hotkeys": "times taken",
    "lolwut": "a picture of our own",
    "client|list": "figures of connections, and those that only look on",
    "client|info": "figures of connections",
    "hello": "names the server and its version",
    "command": "the order is each server's own; its content has tests of its own",
    "config|get": "parameters are each server's own",
    "object|idletime": "counts on a clock that moves with the cron",
    "object|freq": "an estimate",
    "role": "offsets of replication",
    "lastsave": "when the server was started",
    "time": "the microseconds go on",
    "function": "functions are not there",
    "acl": "users are not there",
    "module": "the judge has one",
}
_SHAPED_SUBCOMMANDS: Final = {b"HELP", b"DOCS", b"STATS", b"DOCTOR"}
_LAST_ID: Final = b"18446744073709551615-18446744073709551615"

_MANY_ITEMS: Final = 10_000  # of a reply
_BY_CHANCE: Final = (b"SPOP", b"SRANDMEMBER", b"HRANDFIELD", b"ZRANDMEMBER")
_MANY: Final = 100  # words of a call that fills a collection beyond its limits

# Not compared where the counts of INFO are.
_ASKED: Final = "how often it is asked depends on when replies come"
_WAITS: Final = "Redis counts it when the wait is over, to whoever ended it"
UNCOUNTED: Final = {
    **dict.fromkeys(("cmdstat_ping", "cmdstat_client|list", "cmdstat_client|id"), _ASKED),
    **dict.fromkeys(("cmdstat_wait", "cmdstat_waitaof", "cmdstat_client|unblock"), _WAITS),
}


def _name(words: tuple[bytes, ...]) -> tuple[str, str]:
    """The name of the command and, with a bar between, that of its subcommand."""
    parts = [word.decode("latin-1").lower() for word in words[:2]]
    return parts[0], "|".join(parts)


def shape_only(words: tuple[bytes, ...]) -> bool:
    """Return whether replies to this call are compared by their kind alone."""
    name, full = _name(words)
    help_asked = len(words) > 1 and words[1].upper() in _SHAPED_SUBCOMMANDS
    return name in SHAPES or full in SHAPES or help_asked


def levelled(words: list[bytes] | tuple[bytes, ...]) -> tuple[bytes, ...] | None:
    """The call that makes both servers alike again after one whose effect depends on chance."""
    if len(words) > 1 and words[0].upper() == b"SPOP":
        return (b"DEL", words[1])
    return None


def huge(words: list[bytes] | tuple[bytes, ...]) -> bool:
    """Return whether a small call asks for a reply of gigabytes."""
    name = words[0].upper() if words else b""
    if name in _BY_CHANCE:
        return any(_number(word) < -_MANY_ITEMS for word in words[2:3])
    if name in (b"ARGETRANGE", b"ARSCAN", b"ARGREP"):
        return any(abs(_number(word)) > _MANY_ITEMS for word in words[2:4])
    return False


def _number(word: bytes) -> int:
    try:
        return int(word)
    except ValueError:
        return 0


def packs_anew(words: tuple[bytes, ...]) -> bool:
    """Return whether elements are put into a new collection, in the order in which they are met."""
    return bool(words) and words[0].upper() in (b"SUNIONSTORE", b"SDIFFSTORE", b"RESTORE")


def turns_large(words: tuple[bytes, ...]) -> bool:
    """Whether a collection may turn large by this call: its order is each server's own then."""
    name = words[0].upper() if words else b""
    if name == b"RESTORE":  # what it was dumped from had turned large before
        return False
    if len(words) > _MANY or any(len(word) > families.LIMIT for word in words):
        return True
    if name in (b"SORT", b"SORT_RO"):  # a sorted set, in Redis
        return True
    if name == b"HINCRBYFLOAT":  # to hundreds of digits
        return b"e" in words[-1]
    limits = {word.decode("latin-1").lower() for word in words[2::2]}
    return name == b"CONFIG" and not limits.isdisjoint(families.LIMITS)


def imports(words: tuple[bytes, ...]) -> bool:
    """Return whether HIMPORT makes a hash."""
    return [word.upper() for word in words[:2]] == [b"HIMPORT", b"SET"]


def has_own_order(words: tuple[bytes, ...]) -> bool:
    """Return whether each server puts elements in an order of its own from this call on."""
    return imports(words) or turns_large(words)


def _takes_nearest(upper: list[bytes]) -> bool:
    """Return whether so many members of a sorted set are taken, by their distance."""
    return upper[0].startswith(b"GEO") and b"COUNT" in upper and b"ANY" not in upper


def avoided(words: tuple[bytes, ...]) -> str | None:
    """Return why this call is not made, or None."""
    if not words:
        return None
    upper = [word.upper() for word in words]
    if huge(words):
        return "a reply of gigabytes"
    sorts_by = upper[0] in (b"SORT", b"SORT_RO") and b"BY" in upper
    chosen = {b"LIMIT", b"STORE"} & set(upper)
    if sorts_by and chosen and (b"ALPHA" in upper or not words[1].startswith(b"l")):
        return "in which order equal elements come is nobody's promise"
    if upper[:2] == [b"HIMPORT", b"SET"] and turns_large(words):
        return "Redis looks at the limits of a hash that HIMPORT has made only when it changes form"
    stored = upper[0] == b"GEOSEARCHSTORE" or not {b"STORE", b"STOREDIST"}.isdisjoint(upper)
    if stored and _takes_nearest(upper):
        return "which ones of those that are equally far are taken is nobody's promise"
    if b"GET" in upper[3:] and any(word in (b"IFDEQ", b"IFDNE") for word in upper[3:]):
        return "8.10.2 sends two replies to SET with IFDEQ and GET on a string"
    if upper[0] == b"XACK" and len(words) > 4 and parse_id(words[3]) is None:
        return "a consumer before the IDs is taken, docs/consumer-groups.md"
    if {b"BLOCK", b"CLAIM"} <= set(upper):
        return "Redis runs it again as time goes by, which the consumer's idle time shows"
    if b"AUTH" in upper and (upper[0] == b"HELLO" or len(words) > 2):
        return "8.10.2 leaves its reply out of EXEC; we hide its words from MONITOR always"
    if upper[0] in (b"WAIT", b"WAITAOF") and any(len(word) > 9 for word in words[1:-1]):
        return "8.10.2 cuts the number of replicas off at 32 bits"
    if upper[0] == b"XAUTOCLAIM" and any(len(word) > 6 for word in words[6:]):
        return "8.10.2 asks for memory for all that COUNT allows, and may be given none"
    if upper[0] in (b"CLIENT", b"HELLO") and b"\0" in b"".join(words):
        return "8.10.2 takes a name with a NUL and looks at what stands before it"
    return None


# Where the time stands that a call may wait, among its words.
_TIME_LAST: Final = (
    b"WAIT", b"WAITAOF", b"BLPOP", b"BRPOP", b"BLMOVE", b"BRPOPLPUSH", b"BZPOPMIN", b"BZPOPMAX",
)  # fmt: skip
_TIMES_AT: Final = {
    **dict.fromkeys(_TIME_LAST, -1),
    b"BLMPOP": 1, b"BZMPOP": 1, b"BLMOVEM": 5,
}  # fmt: skip


def waits(words: list[bytes]) -> bool:
    """Return whether the client may have to wait."""
    upper = [word.upper() for word in words]
    return b"BLOCK" in upper or upper[0] in _TIMES_AT


def calmed(words: list[bytes]) -> list[bytes]:
    """The call with waits that end only when a client ends them: real time is not shared."""
    far = b"1000000000"
    place = _TIMES_AT.get(words[0].upper(), 0)
    if place and len(words) > abs(place):
        # Of those that pop, a wrong place of the time, or a wrong time, shows in no wait.
        return (
            [*words[:place], far, *words[len(words) + place + 1 if place < 0 else place + 1 :]]
            if _runs_out(words[place])
            else words
        )
    for place in range(1, len(words)):
        if words[place - 1].upper() == b"BLOCK" and _runs_out(words[place]):
            words[place] = far
    return words


def _runs_out(word: bytes) -> bool:
    try:
        return 0 < float(word) < 10**9
    except ValueError:
        return False


class Known:
    """A difference between replies that is meant to be.

    Args:
        reason: why.
        meant: tells from the call and both replies, parsed, whether it is this one.
    """

    def __init__(
        self, reason: str, meant: Callable[[tuple[bytes, ...], object, object], bool]
    ) -> None:
        self.reason: Final = reason
        self.meant: Final = meant


def _without(value: object, names: set[bytes]) -> object:
    """A reply without what stands behind some names, in maps and in lists of pairs alike."""
    if isinstance(value, dict):
        return {k: None if k in names else _without(v, names) for k, v in value.items()}
    if isinstance(value, list):
        result: list[object] = []
        for place, item in enumerate(value):
            behind = place > 0 and isinstance(value[place - 1], bytes) and value[place - 1] in names
            result.append(None if behind else _without(item, names))
        return result
    return value


def _same_without(*names: bytes) -> Callable[[tuple[bytes, ...], object, object], bool]:
    def meant(words: tuple[bytes, ...], ours: object, real: object) -> bool:
        hidden = set(names)
        return words[0].upper() == b"XINFO" and _without(ours, hidden) == _without(real, hidden)

    return meant


_ALLOCATED: Final = {
    b"directory-size", b"super-dir-entries", b"dense-slices", b"sparse-slices", b"avg-dense-size",
    b"avg-dense-fill", b"avg-sparse-size",
}  # fmt: skip


def _allocated(words: tuple[bytes, ...], ours: object, real: object) -> bool:
    """Return whether all is the same that does not depend on how an array came about."""
    asked = words[0].upper() == b"ARINFO"
    return asked and _without(ours, _ALLOCATED) == _without(real, _ALLOCATED)


def _template(words: tuple[bytes, ...], ours: object, real: object) -> bool:
    """Return whether a hash that HIMPORT has made shares its fields with others, in Redis."""
    told = isinstance(real, bytes) and real.startswith(b"template-")
    return told and words[0].upper() == b"OBJECT" and ours in (b"listpack", b"hashtable")


def _same_keys(words: tuple[bytes, ...], ours: object, real: object) -> bool:
    return (
        words[0].upper() == b"KEYS"
        and isinstance(ours, list)
        and isinstance(real, list)
        and sorted(ours) == sorted(real)
    )


def _same_channels(words: tuple[bytes, ...], ours: object, real: object) -> bool:
    """One channel or another where all are listed, or left one by one."""
    if not (isinstance(ours, list) and isinstance(real, list)):
        return False
    if words[0].upper() == b"PUBSUB":
        return sorted(ours) == sorted(real)
    all_left = words[0].upper().endswith(b"UNSUBSCRIBE") and len(words) == 1
    return all_left and (ours[0], ours[2]) == (real[0], real[2])


def _same_encoding(words: tuple[bytes, ...], ours: object, real: object) -> bool:
    return words[0].upper() == b"OBJECT" and {ours, real} == {b"raw", b"embstr"}


def _same_scan(words: tuple[bytes, ...], ours: object, real: object) -> bool:
    """Whole scans have the same keys; of others only the shape is the same."""
    if words[0].upper() != b"SCAN" or not (isinstance(ours, list) and isinstance(real, list)):
        return False
    whole = ours[0] == real[0] == b"0" and len(words) > 1 and words[1] == b"0"
    return sorted(ours[1]) == sorted(real[1]) if whole else len(ours) == len(real) == 2


def _references(words: tuple[bytes, ...], ours: object, real: object) -> bool:
    counted = isinstance(ours, int) and isinstance(real, int)
    return counted and [word.upper() for word in words[:2]] == [b"OBJECT", b"REFCOUNT"]


def _fewer_nodes(words: tuple[bytes, ...], ours: object, real: object) -> bool:
    """Return whether we have dropped a node in front that Redis keeps, and nothing else differs."""
    told = (b"radix-tree-nodes", b"radix-tree-keys", b"lag")
    if not (isinstance(ours, list) and isinstance(real, list) and told[1] in real):
        return False
    if not _same_without(*told)(words, ours, real):
        return False
    fewer: bool = ours[ours.index(told[1]) + 1] < real[real.index(told[1]) + 1]
    return fewer


def _exhausted(words: tuple[bytes, ...], ours: object, real: object) -> bool:
    """Whether a stream has come to its last ID, and replies differ in its producers alone."""
    full = _LAST_ID in _flat(real)
    return full and _same_without(b"radix-tree-nodes", b"lag", b"pids-tracked")(words, ours, real)


def _forgotten(words: tuple[bytes, ...], ours: object, real: object) -> bool:
    """Return whether Redis has taken fewer iids from a payload, and nothing else differs."""
    told = b"iids-tracked"
    here, there = _flat(ours), _flat(real)
    if told not in here or told not in there:
        return False
    same = _same_without(b"radix-tree-nodes", b"lag", told, b"pids-tracked")
    fewer: bool = there[there.index(told) + 1] < here[here.index(told) + 1]  # type: ignore[operator]
    return fewer and same(words, ours, real)


def _behind_a_nul(words: tuple[bytes, ...], ours: object, real: object) -> bool:
    wrong = isinstance(ours, WireError) and isinstance(real, WireError)
    return wrong and b"\0" in b"".join(words)


def _counters(words: tuple[bytes, ...], ours: object, real: object) -> bool:
    """Whether replies are the same but for counters of groups that Redis lets run too far."""
    return _same_without(b"radix-tree-nodes", b"lag", b"entries-read")(words, ours, real)


def _flat(value: object) -> list[object]:
    """All that stands in a reply, wherever."""
    if isinstance(value, dict):
        return [item for pair in value.items() for each in pair for item in _flat(each)]
    if isinstance(value, list | set | frozenset):
        return [item for each in value for item in _flat(each)]
    return [value]


def _outline(value: object) -> object:
    """Return what kind of reply it is, and how long its parts are."""
    if isinstance(value, dict):
        return "map", len(value)
    if isinstance(value, list | set | frozenset):
        return type(value).__name__, [_outline(each) for each in value]
    return type(value).__name__


_UNORDERED: Final = (
    b"SMEMBERS", b"SUNION", b"SDIFF", b"SINTER", b"HGETALL", b"HKEYS", b"HVALS", b"SORT",
    b"SORT_RO",
)  # fmt: skip
_SCANS: Final = (b"SSCAN", b"HSCAN", b"ZSCAN")


def _chosen_by_chance(words: tuple[bytes, ...], ours: object, real: object) -> bool:
    """As many elements, of the same kinds."""
    return words[0].upper() in _BY_CHANCE and _outline(ours) == _outline(real)


def _same_elements(words: tuple[bytes, ...], ours: object, real: object) -> bool:
    """The same elements; of a scan that goes on, only the shape."""
    name = words[0].upper()
    if name in _SCANS and isinstance(ours, list) and isinstance(real, list):
        whole = ours[0] == real[0] == b"0" and len(words) > 2 and words[2] == b"0"
        if not whole:
            return len(ours) == len(real) == 2
    elif name not in _UNORDERED:
        return False
    return _same_items(ours, real)


def _same_items(ours: object, real: object) -> bool:
    return type(ours) is type(real) and sorted(map(repr, _flat(ours))) == sorted(
        map(repr, _flat(real))
    )


def _same_in_no_order(words: tuple[bytes, ...], ours: object, real: object) -> bool:
    """The same elements where Redis takes them from a table that it makes for the reply."""
    upper = [word.upper() for word in words]
    tied = upper[0] in (b"SORT", b"SORT_RO") and b"BY" in upper
    return (tied or upper[0] in (b"SUNION", b"SDIFF")) and _same_items(ours, real)


def _up_to_a_nul(words: tuple[bytes, ...], ours: object, real: object) -> bool:
    """Whether texts are put in order that are the same for Redis, which compares up to a NUL."""
    upper = [word.upper() for word in words]
    if upper[0] not in (b"SORT", b"SORT_RO") or b"ALPHA" not in upper or b"STORE" in upper:
        return False
    told = [item for item in (*_flat(ours), *_flat(real)) if isinstance(item, bytes)]
    seen = b"GET" in upper or b"\0" in b"".join(told)
    return seen and _outline(ours) == _outline(real)


def _equally_far(words: tuple[bytes, ...], ours: object, real: object) -> bool:
    """As many members, of the same kinds, and with the same distances."""
    upper = [word.upper() for word in words]
    if not _takes_nearest(upper) or _outline(ours) != _outline(real):
        return False
    if b"WITHDIST" not in upper or not (isinstance(ours, list) and isinstance(real, list)):
        return True
    return [each[1] for each in ours] == [each[1] for each in real]


# Only in sessions in which a large collection was packed anew.
_FORMS: Final = {b"listpack", b"hashtable"}
PACKED: Final = Known(
    "what comes out of a table is packed in its order",
    lambda words, ours, real: words[0].upper() == b"OBJECT" and {ours, real} == _FORMS,
)

# Payloads are compared by what they hold where their bytes differ.
REFUSED: Final = "8.10.2 does not take what it dumps of some streams"
PLAINLY_WRITTEN: Final = "DUMP does not compress, and writes tables in its own order"

# Only in sessions in which a collection may have turned large.
LARGE: Final = Known(
    "the order of large and of imported collections is each server's own", _same_elements
)

# Only in sessions in which HIMPORT has made a hash.
IMPORTED: Final = Known(
    "Redis looks at the limits of a hash that HIMPORT has made only when it takes another form",
    lambda words, ours, real: (
        words[0].upper() == b"OBJECT"
        and ours == b"hashtable"
        and real in (b"listpack", b"listpackex")
    ),
)

# Only in sessions in which somebody has waited.
WAITED: Final = Known(
    "a consumer that waits is seen again when Redis looks for it, we look when there is something",
    _same_without(b"radix-tree-nodes", b"lag", b"entries-read", b"seen-time", b"idle"),
)

KNOWN: Final = (
    Known("elements chosen by chance", _chosen_by_chance),
    Known(
        "the order of unions, of what is left, and of equals changes from run to run",
        _same_in_no_order,
    ),
    Known("SORT with ALPHA compares texts up to a NUL in Redis", _up_to_a_nul),
    Known("COUNT takes one or another of members that are equally far", _equally_far),
    Known("a transaction holds its words until its end, which REFCOUNT counts", _references),
    Known("a node of deleted entries in front goes when MINID trims", _fewer_nodes),
    Known("an XADD that is refused leaves no producer behind", _exhausted),
    Known("an iid in a payload is as old as its entry in Redis, and new here", _forgotten),
    Known("errors, and names of clients, end at a NUL in Redis", _behind_a_nul),
    Known("a hash that HIMPORT has made shares its fields with others in Redis", _template),
    Known("what was removed from an array, and in which order it grew, shows in Redis", _allocated),
    Known("the order of channels is each server's own", _same_channels),
    Known("raw or embstr depends on the key's length, too", _same_encoding),
    Known("the order of KEYS is each server's own", _same_keys),
    Known("cursors and order of SCAN are each server's own", _same_scan),
    Known("radix-tree-nodes: our blocks are no tree", _same_without(b"radix-tree-nodes")),
    Known(
        "lag is exact where Redis answers nil, or -1 after ENTRIESREAD above entries-added",
        _same_without(b"radix-tree-nodes", b"lag"),
    ),
    Known("entries-read is not more than entries-added, which Redis lets it be", _counters),
)


def without_misses(events: list[bytes]) -> list[bytes]:
    """Events, or messages of them, without those that tell how often somebody who waits has looked.

    Redis runs a client that waits again whenever one of its keys is written to, we when there is
    something for it.
    """
    return [event for event in events if b"keymiss" not in event]


def wrong_lag(info: object) -> bytes | None:
    """A group of XINFO STREAM FULL whose lag is not the number of entries after its last ID."""
    if not isinstance(info, list):
        return None
    told = dict(zip(info[::2], info[1::2], strict=True))
    ids = [_id(entry[0]) for entry in told[b"entries"]]
    for group in told[b"groups"]:
        facts = dict(zip(group[::2], group[1::2], strict=True))
        last = _id(facts[b"last-delivered-id"])
        if facts[b"lag"] != len([each for each in ids if each > last]):
            name = facts[b"name"]
            assert isinstance(name, bytes)
            return name
    return None


def _id(text: bytes) -> tuple[int, int]:
    ms, _, seq = text.partition(b"-")
    return int(ms), int(seq)


def told_later(reply: bytes) -> bool:
    """Whether this reply to somebody who waits comes from us when there is something for it."""
    return reply.startswith(b"-WRONGTYPE")


def reason(
    words: tuple[bytes, ...],
    ours: bytes,
    real: bytes,
    waited: bool = False,
    large: bool = False,
    packed: bool = False,
    more: tuple[Known, ...] = (),
) -> str | None:
    """Return why two replies may differ, or None when they must not.

    Args:
        waited: somebody has waited in this session.
        large: a collection may have turned large in it.
        packed: and such a one may have been packed anew.
        more: what else is known, because of the judge or of the session.
    """
    try:
        our_value, real_value = parse(ours), parse(real)
    except (ValueError, AssertionError, IndexError, TypeError):
        return None
    for known in (*KNOWN, *more, *[WAITED] * waited, *[LARGE] * large, *[PACKED] * packed):
        if known.meant(words, our_value, real_value):
            return known.reason
    return None
