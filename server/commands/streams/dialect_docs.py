"""Documentation of the commands of our own, and of the first spellings of Redis's."""

from __future__ import annotations

from typing import Final

from headrace.compat.doc_notation import Doc

_GROUP: Final = "stream"
_SINCE: Final = "0.1.0"

DOCS: Final[dict[str, Doc]] = {
    "xcount": Doc(
        _GROUP,
        _SINCE,
        "O(log N) for a stream of N entries",
        "Counts the entries between two IDs.",
        "key start end",
    ),
    "xidmp": Doc(
        _GROUP,
        _SINCE,
        "Depends on subcommand.",
        "Holds the commands that manage idempotent production.",
    ),
    "xidmp|cfgget": Doc(
        _GROUP,
        _SINCE,
        "O(1)",
        "Tells the limits of a stream's idempotent IDs: those asked for, or both.",
        "key [DURATION] [MAXSIZE]",
    ),
    "xidmp|cfgset": Doc(
        _GROUP,
        _SINCE,
        "O(1); what is forgotten is freed later",
        "XCFGSET in the spelling of the first design.",
        "key [DURATION=duration:integer] [MAXSIZE=maxsize:integer]",
    ),
    "xidmp|help": Doc(_GROUP, _SINCE, "O(1)", "Lists the XIDMP subcommands."),
    "xidmp|producers": Doc(
        _GROUP,
        _SINCE,
        "O(N) for N producers",
        "Lists producers: how many idempotent IDs they hold, for which oldest and newest entry.",
        "key [MATCH=pattern] [COUNT=count:integer]",
    ),
    "xread-group": Doc(
        _GROUP,
        _SINCE,
        "",
        "XREADGROUP in the spelling of the first specification.",
        "group-block(GROUP=group NAME=consumer) [COUNT=count:integer]"
        " [BLOCK=milliseconds:integer] [CLAIM=min-idle-time:integer] [NOACK]"
        " STREAMS=streams(key... id...)",
    ),
    "xgroup|claim": Doc(
        _GROUP,
        _SINCE,
        "O(log N) for each ID, N being the pending entries of the group",
        "XCLAIM with JUSTID, in the spelling of the first specification.",
        "key group consumer min-idle-time:integer id...",
    ),
    "xgroup|consumers": Doc(
        _GROUP,
        _SINCE,
        "O(1) for each consumer",
        "XINFO CONSUMERS in the spelling of the first specification.",
        "key group",
    ),
    "xgroup|del": Doc(
        _GROUP,
        _SINCE,
        "O(N) for N pending entries of the group",
        "XGROUP DESTROY in the spelling of the first specification.",
        "key group",
    ),
    "xgroup|del-consumer": Doc(
        _GROUP,
        _SINCE,
        "O(N) for N pending entries of the consumer",
        "XGROUP DELCONSUMER in the spelling of the first specification.",
        "key group consumer",
    ),
    "xgroup|get-pending": Doc(
        _GROUP,
        _SINCE,
        "O(N) for N entries answered",
        "XPENDING with a range, in the spelling of the first specification: idle in seconds.",
        "key group min max count:integer",
    ),
    "xgroup|pel": Doc(
        _GROUP,
        _SINCE,
        "O(log N) for N pending entries of the group",
        "Sets who holds one entry, for how long, and how often it was delivered.",
        "key group id consumer idle:integer deliveries:integer",
    ),
    "xgroup|pending": Doc(
        _GROUP,
        _SINCE,
        "O(1)",
        "Tells the first and the last ID pending, and how many there are.",
        "key group",
    ),
    "xgroup|setmode": Doc(
        _GROUP,
        _SINCE,
        "O(1)",
        "Limits how many entries of a group may be pending at which new ones still go out.",
        "key group MAX-PENDING=count:integer",
    ),
    "xlook": Doc(
        _GROUP,
        _SINCE,
        "O(N) for N keys",
        "Tells for each of many streams who it is, its length and its last ID, in one string.",
        "key...",
    ),
    "xsplit": Doc(
        _GROUP,
        _SINCE,
        "O(M log N) for M shares of a stream of N entries",
        "Cuts the entries between two IDs into shares, without reading them.",
        "key start end shares(rows(ROWS=rows:integer [COUNT=count:integer]) | PARTS=parts:integer)",
    ),
}
