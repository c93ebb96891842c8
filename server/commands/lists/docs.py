"""Documentation of the commands on lists."""

from __future__ import annotations

from typing import Final

from headrace.compat.doc_notation import Doc

_GROUP: Final = "list"
_ENDS: Final = "wherefrom(LEFT | RIGHT) whereto(LEFT | RIGHT)"
_SOME: Final = (
    "[how-many(selector(COUNT=count:integer | EXACTLY=exactly:integer) ordering(OBO | BULK))]"
)
_MOVED: Final = f"source:key destination:key#1 {_ENDS}"
_FRACTION: Final = (("6.0.0", "The timeout may be a fraction of a second."),)
_SEARCH_COST: Final = "O(N) for N elements up to the one that is found"
_MOVE_COST: Final = "O(1)"
_MOVE_SOME_COST: Final = "O(N) for N elements moved"

DOCS: Final[dict[str, Doc]] = {
    "blmove": Doc(
        _GROUP,
        "6.2.0",
        _MOVE_COST,
        "Moves an element from one list to another, and waits for one where there is none.",
        f"{_MOVED} timeout:double",
    ),
    "blmovem": Doc(
        _GROUP,
        "8.10.0",
        _MOVE_SOME_COST,
        "Moves elements from one list to another, and waits for them where there are too few.",
        f"{_MOVED} timeout:double {_SOME}",
    ),
    "blmpop": Doc(
        _GROUP,
        "7.0.0",
        "O(N+M) for N keys and M elements answered",
        "Takes elements away from the first list there is, and waits for one where there is none.",
        "timeout:double numkeys:integer key... where(LEFT | RIGHT) [COUNT=count:integer]",
    ),
    "blpop": Doc(
        _GROUP,
        "2.0.0",
        "O(N) for N keys",
        "Takes the first element away, and waits for one where there is none.",
        "key... timeout:double",
        history=_FRACTION,
    ),
    "brpop": Doc(
        _GROUP,
        "2.0.0",
        "O(N) for N keys",
        "Takes the last element away, and waits for one where there is none.",
        "key... timeout:double",
        history=_FRACTION,
    ),
    "brpoplpush": Doc(
        _GROUP,
        "2.2.0",
        _MOVE_COST,
        "Moves the last element to the front of a list, and waits for one where there is none.",
        "source:key destination:key#1 timeout:double",
        history=_FRACTION,
        deprecated_since="6.2.0",
        replaced_by="`BLMOVE` with the `RIGHT` and `LEFT` arguments",
    ),
    "lindex": Doc(
        _GROUP,
        "1.0.0",
        "O(log N) for N elements, and O(1) at the ends",
        "Returns the element at an index.",
        "key index:integer",
    ),
    "linsert": Doc(
        _GROUP,
        "2.2.0",
        _SEARCH_COST,
        "Puts an element before or behind another.",
        "key where(BEFORE | AFTER) pivot element",
    ),
    "llen": Doc(_GROUP, "1.0.0", "O(1)", "Counts the elements of a list.", "key"),
    "lmove": Doc(
        _GROUP,
        "6.2.0",
        _MOVE_COST,
        "Moves an element from one end of a list to an end of another.",
        _MOVED,
    ),
    "lmovem": Doc(
        _GROUP,
        "8.10.0",
        _MOVE_SOME_COST,
        "Moves elements from one end of a list to an end of another.",
        f"{_MOVED} {_SOME}",
    ),
    "lmpop": Doc(
        _GROUP,
        "7.0.0",
        "O(N+M) for N keys and M elements answered",
        "Takes elements away from the first list there is.",
        "numkeys:integer key... where(LEFT | RIGHT) [COUNT=count:integer]",
    ),
    "lpop": Doc(
        _GROUP,
        "1.0.0",
        "O(N) for N elements answered",
        "Takes the first elements away.",
        "key [count:integer@6.2.0]",
        history=(("6.2.0", "A count."),),
    ),
    "lpos": Doc(
        _GROUP,
        "6.0.6",
        "O(N) for N elements looked at",
        "Finds the indexes of elements that are equal to one.",
        "key element [RANK=rank:integer] [COUNT=num-matches:integer] [MAXLEN=len:integer]",
    ),
    "lpush": Doc(
        _GROUP,
        "1.0.0",
        "O(1) for each element",
        "Adds elements at the front, each before the last, to a list that is created if missing.",
        "key element...",
        history=(("2.4.0", "Several elements."),),
    ),
    "lpushx": Doc(
        _GROUP,
        "2.2.0",
        "O(1) for each element",
        "Adds elements at the front of a list that is there.",
        "key element...",
        history=(("4.0.0", "Several elements."),),
    ),
    "lrange": Doc(
        _GROUP,
        "1.0.0",
        "O(log N) for N elements, and a copy of what is answered",
        "Returns a range of elements.",
        "key start:integer stop:integer",
    ),
    "lrem": Doc(
        _GROUP,
        "1.0.0",
        "O(N) for N elements of the list",
        "Removes elements that are equal to one.",
        "key count:integer element",
    ),
    "lset": Doc(
        _GROUP,
        "1.0.0",
        "O(log N) for N elements, and O(1) at the ends",
        "Replaces the element at an index.",
        "key index:integer element",
    ),
    "ltrim": Doc(
        _GROUP,
        "1.0.0",
        "O(N) for N elements removed",
        "Removes all elements outside of a range.",
        "key start:integer stop:integer",
    ),
    "rpop": Doc(
        _GROUP,
        "1.0.0",
        "O(N) for N elements answered",
        "Takes the last elements away.",
        "key [count:integer@6.2.0]",
        history=(("6.2.0", "A count."),),
    ),
    "rpoplpush": Doc(
        _GROUP,
        "1.2.0",
        _MOVE_COST,
        "Moves the last element of a list to the front of another.",
        "source:key destination:key#1",
        deprecated_since="6.2.0",
        replaced_by="`LMOVE` with the `RIGHT` and `LEFT` arguments",
    ),
    "rpush": Doc(
        _GROUP,
        "1.0.0",
        "O(1) for each element",
        "Adds elements at the end of a list, which is created if missing.",
        "key element...",
        history=(("2.4.0", "Several elements."),),
    ),
    "rpushx": Doc(
        _GROUP,
        "2.2.0",
        "O(1) for each element",
        "Adds elements at the end of a list that is there.",
        "key element...",
        history=(("4.0.0", "Several elements."),),
    ),
}
