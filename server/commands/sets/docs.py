"""Documentation of the commands on sets."""

from __future__ import annotations

from typing import Final

from headrace.compat.doc_notation import Doc

_GROUP: Final = "set"
_ALL_MEMBERS: Final = "O(N) for N members of all sets together"
_SMALLEST: Final = "O(N*M) for N members of the smallest of M sets"
_COUNTED: Final = "numkeys:integer key... [LIMIT=limit:integer]"
_STORED: Final = "destination:key key#1..."
_SEVERAL_MEMBERS: Final = (("2.4.0", "Several members at once."),)

DOCS: Final[dict[str, Doc]] = {
    "sadd": Doc(
        _GROUP,
        "1.0.0",
        "O(N) for N members, O(1) for each",
        "Adds members to a set, which is created where it is missing.",
        "key member...",
        history=_SEVERAL_MEMBERS,
    ),
    "scard": Doc(_GROUP, "1.0.0", "O(1)", "Counts the members of a set.", "key"),
    "sdiff": Doc(
        _GROUP,
        "1.0.0",
        _ALL_MEMBERS,
        "Reads the members of the first set that are in none of the others.",
        "key...",
    ),
    "sdiffcard": Doc(
        _GROUP,
        "8.10.0",
        _ALL_MEMBERS,
        "Counts the members of the first set that are in none of the others.",
        _COUNTED,
    ),
    "sdiffstore": Doc(
        _GROUP,
        "1.0.0",
        _ALL_MEMBERS,
        "Stores the members of the first set that are in none of the others.",
        _STORED,
    ),
    "sinter": Doc(
        _GROUP, "1.0.0", _SMALLEST, "Reads the members that are in all of the sets.", "key..."
    ),
    "sintercard": Doc(
        _GROUP, "7.0.0", _SMALLEST, "Counts the members that are in all of the sets.", _COUNTED
    ),
    "sinterstore": Doc(
        _GROUP, "1.0.0", _SMALLEST, "Stores the members that are in all of the sets.", _STORED
    ),
    "sismember": Doc(
        _GROUP, "1.0.0", "O(1)", "Tells whether something is a member of a set.", "key member"
    ),
    "smembers": Doc(_GROUP, "1.0.0", "O(N) for N members", "Reads all members of a set.", "key"),
    "smismember": Doc(
        _GROUP,
        "6.2.0",
        "O(N) for N members that are asked for",
        "Tells of several things whether they are members of a set.",
        "key member...",
    ),
    "smove": Doc(
        _GROUP,
        "1.0.0",
        "O(1)",
        "Moves a member from one set to another.",
        "source:key destination:key#1 member",
    ),
    "spop": Doc(
        _GROUP,
        "1.0.0",
        "O(N) for N members that are taken",
        "Takes members out of a set by chance; the last one takes the key with it.",
        "key [count:integer@3.2.0]",
        history=(("3.2.0", "A count."),),
    ),
    "srandmember": Doc(
        _GROUP,
        "1.0.0",
        "O(N) for N members that are read",
        "Reads members of a set by chance.",
        "key [count:integer@2.6.0]",
        history=(("2.6.0", "A count."),),
    ),
    "srem": Doc(
        _GROUP,
        "1.0.0",
        "O(N) for N members that are named",
        "Removes members from a set; the last one takes the key with it.",
        "key member...",
        history=_SEVERAL_MEMBERS,
    ),
    "sscan": Doc(
        _GROUP,
        "2.8.0",
        "O(1) for a call, O(N) for all of N members",
        "Walks the members of a set, some with each call.",
        "key cursor:integer [MATCH=pattern] [COUNT=count:integer]",
    ),
    "sunion": Doc(
        _GROUP, "1.0.0", _ALL_MEMBERS, "Reads the members that are in any of the sets.", "key..."
    ),
    "sunioncard": Doc(
        _GROUP,
        "8.10.0",
        _ALL_MEMBERS,
        "Counts the members that are in any of the sets.",
        "numkeys:integer key... [APPROX] [LIMIT=limit:integer]",
    ),
    "sunionstore": Doc(
        _GROUP,
        "1.0.0",
        _ALL_MEMBERS,
        "Stores the members that are in any of the sets.",
        _STORED,
    ),
}
