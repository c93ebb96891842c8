"""Documentation of the commands on sorted sets."""

from __future__ import annotations

from typing import Final

from headrace.compat.doc_notation import Doc

_GROUP: Final = "sorted-set"
_LOG: Final = "O(log N) for N members"
_POP_COST: Final = "O(M log N) to take M of N members"
_RANGE_COST: Final = "O(log N + M) for M of N members"
_UNION_COST: Final = "O(N + M log M) for N members of all sets and M of the result"
_INTER_COST: Final = "O(N K + M log M) for N members of the smallest of K sets, M in the result"
_DIFF_COST: Final = "O(N K + M log M) for N members of the first of K sets, M in the result"
_LIMIT: Final = "[LIMIT=limit(offset:integer count:integer){0}]"
_SOURCES: Final = (
    "numkeys:integer {0}... [WEIGHTS=weight:integer...]"
    " [AGGREGATE=aggregate(SUM | MIN | MAX | COUNT@8.8.0)]"
)
_READ_SOURCES: Final = _SOURCES.format("key") + " [WITHSCORES]"
_STORED_SOURCES: Final = "destination:key " + _SOURCES.format("key#1")
_COUNT_ADDED: Final = (("8.8.0", "AGGREGATE COUNT."),)
_WITH_SCORE: Final = (("7.2.0", "WITHSCORE option."),)

DOCS: Final[dict[str, Doc]] = {
    "bzmpop": Doc(
        _GROUP,
        "7.0.0",
        "O(K + M log N) to take M of N members, for K keys",
        "Takes the least or greatest members of the first sorted set there is, or waits for one.",
        "timeout:double numkeys:integer key... where(MIN | MAX) [COUNT=count:integer]",
    ),
    "bzpopmax": Doc(
        _GROUP,
        "5.0.0",
        _LOG,
        "Takes the greatest member of the first sorted set there is, or waits for one.",
        "key... timeout:double",
        history=(("6.0.0", "The timeout may be a fraction."),),
    ),
    "bzpopmin": Doc(
        _GROUP,
        "5.0.0",
        _LOG,
        "Takes the least member of the first sorted set there is, or waits for one.",
        "key... timeout:double",
        history=(("6.0.0", "The timeout may be a fraction."),),
    ),
    "zadd": Doc(
        _GROUP,
        "1.2.0",
        "O(log N) for each member, of N",
        "Adds members with scores to a sorted set, or gives them other scores.",
        "key [condition(NX | XX)@3.0.2] [comparison(GT | LT)@6.2.0] ['CH'=change@3.0.2]"
        " ['INCR'=increment@3.0.2] data(score:double member)...",
        history=(
            ("2.4.0", "Several members."),
            ("3.0.2", "XX, NX, CH and INCR options."),
            ("6.2.0", "GT and LT options."),
        ),
    ),
    "zcard": Doc(_GROUP, "1.2.0", "O(1)", "Tells how many members a sorted set has.", "key"),
    "zcount": Doc(
        _GROUP,
        "2.0.0",
        _LOG,
        "Tells how many members have scores in a range.",
        "key min:double max:double",
    ),
    "zdiff": Doc(
        _GROUP,
        "6.2.0",
        _DIFF_COST,
        "Reads the members of the first sorted set that no other one has.",
        "numkeys:integer key... [WITHSCORES]",
    ),
    "zdiffstore": Doc(
        _GROUP,
        "6.2.0",
        _DIFF_COST,
        "Stores the members of the first sorted set that no other one has.",
        "destination:key numkeys:integer key#1...",
    ),
    "zincrby": Doc(
        _GROUP, "1.2.0", _LOG, "Adds to the score of a member.", "key increment:integer member"
    ),
    "zinter": Doc(
        _GROUP,
        "6.2.0",
        _INTER_COST,
        "Reads the members that all sorted sets have.",
        _READ_SOURCES,
        history=_COUNT_ADDED,
    ),
    "zintercard": Doc(
        _GROUP,
        "7.0.0",
        "O(N K) for N members of the smallest of K sets",
        "Tells how many members all sorted sets have.",
        "numkeys:integer key... [LIMIT=limit:integer]",
    ),
    "zinterstore": Doc(
        _GROUP,
        "2.0.0",
        _INTER_COST,
        "Stores the members that all sorted sets have.",
        _STORED_SOURCES,
        history=_COUNT_ADDED,
    ),
    "zlexcount": Doc(
        _GROUP, "2.8.9", _LOG, "Tells how many members are in a range of names.", "key min max"
    ),
    "zmpop": Doc(
        _GROUP,
        "7.0.0",
        "O(K + M log N) to take M of N members, for K keys",
        "Takes the least or greatest members of the first sorted set there is.",
        "numkeys:integer key... where(MIN | MAX) [COUNT=count:integer]",
    ),
    "zmscore": Doc(
        _GROUP, "6.2.0", "O(N) for N members", "Reads the scores of members.", "key member..."
    ),
    "zpopmax": Doc(
        _GROUP, "5.0.0", _POP_COST, "Takes the greatest members.", "key [count:integer]"
    ),
    "zpopmin": Doc(_GROUP, "5.0.0", _POP_COST, "Takes the least members.", "key [count:integer]"),
    "zrandmember": Doc(
        _GROUP,
        "6.2.0",
        "O(M log N) for M of N members",
        "Reads members by chance.",
        "key [options(count:integer [WITHSCORES])]",
    ),
    "zrange": Doc(
        _GROUP,
        "1.2.0",
        _RANGE_COST,
        "Reads a range of members: by rank, score or name.",
        "key start stop [sortby(BYSCORE | BYLEX)@6.2.0] [REV@6.2.0] "
        + _LIMIT.format("@6.2.0")
        + " [WITHSCORES]",
        history=(("6.2.0", "REV, BYSCORE, BYLEX and LIMIT options."),),
    ),
    "zrangebylex": Doc(
        _GROUP,
        "2.8.9",
        _RANGE_COST,
        "Reads a range of members by name.",
        "key min max " + _LIMIT.format(""),
        deprecated_since="6.2.0",
        replaced_by="`ZRANGE` with the `BYLEX` argument",
    ),
    "zrangebyscore": Doc(
        _GROUP,
        "1.0.5",
        _RANGE_COST,
        "Reads a range of members by score.",
        "key min:double max:double [WITHSCORES@2.0.0] " + _LIMIT.format(""),
        history=(("2.0.0", "WITHSCORES option."),),
        deprecated_since="6.2.0",
        replaced_by="`ZRANGE` with the `BYSCORE` argument",
    ),
    "zrangestore": Doc(
        _GROUP,
        "6.2.0",
        _RANGE_COST,
        "Stores a range of members: by rank, score or name.",
        "dst:key src:key#1 min max [sortby(BYSCORE | BYLEX)] [REV] " + _LIMIT.format(""),
    ),
    "zrank": Doc(
        _GROUP,
        "2.0.0",
        _LOG,
        "Tells how many members stand before one.",
        "key member [WITHSCORE]",
        history=_WITH_SCORE,
    ),
    "zrem": Doc(
        _GROUP,
        "1.2.0",
        "O(M log N) to take M of N members",
        "Takes members out of a sorted set.",
        "key member...",
        history=(("2.4.0", "Several members."),),
    ),
    "zremrangebylex": Doc(
        _GROUP, "2.8.9", _RANGE_COST, "Takes out a range of members by name.", "key min max"
    ),
    "zremrangebyrank": Doc(
        _GROUP,
        "2.0.0",
        _RANGE_COST,
        "Takes out a range of members by rank.",
        "key start:integer stop:integer",
    ),
    "zremrangebyscore": Doc(
        _GROUP,
        "1.2.0",
        _RANGE_COST,
        "Takes out a range of members by score.",
        "key min:double max:double",
    ),
    "zrevrange": Doc(
        _GROUP,
        "1.2.0",
        _RANGE_COST,
        "Reads a range of members by rank, counted from the greatest.",
        "key start:integer stop:integer [WITHSCORES]",
        deprecated_since="6.2.0",
        replaced_by="`ZRANGE` with the `REV` argument",
    ),
    "zrevrangebylex": Doc(
        _GROUP,
        "2.8.9",
        _RANGE_COST,
        "Reads a range of members by name, the last one first.",
        "key max min " + _LIMIT.format(""),
        deprecated_since="6.2.0",
        replaced_by="`ZRANGE` with the `REV` and `BYLEX` arguments",
    ),
    "zrevrangebyscore": Doc(
        _GROUP,
        "2.2.0",
        _RANGE_COST,
        "Reads a range of members by score, the greatest first.",
        "key max:double min:double [WITHSCORES] " + _LIMIT.format(""),
        history=(("2.1.6", "The bounds may be exclusive."),),
        deprecated_since="6.2.0",
        replaced_by="`ZRANGE` with the `REV` and `BYSCORE` arguments",
    ),
    "zrevrank": Doc(
        _GROUP,
        "2.0.0",
        _LOG,
        "Tells how many members stand behind one.",
        "key member [WITHSCORE]",
        history=_WITH_SCORE,
    ),
    "zscan": Doc(
        _GROUP,
        "2.8.0",
        "O(1) for a call, O(N) for N members",
        "Walks the members of a sorted set.",
        "key cursor:integer [MATCH=pattern] [COUNT=count:integer]",
    ),
    "zscore": Doc(_GROUP, "1.2.0", "O(1)", "Reads the score of a member.", "key member"),
    "zunion": Doc(
        _GROUP,
        "6.2.0",
        _UNION_COST,
        "Reads the members that any of the sorted sets has.",
        _READ_SOURCES,
        history=_COUNT_ADDED,
    ),
    "zunionstore": Doc(
        _GROUP,
        "2.0.0",
        _UNION_COST,
        "Stores the members that any of the sorted sets has.",
        _STORED_SOURCES,
        history=_COUNT_ADDED,
    ),
}
