"""Documentation of the commands on consumer groups and their pending entries."""

from __future__ import annotations

from typing import Final

from headrace.compat.doc_notation import Doc

_GROUP: Final = "stream"

DOCS: Final[dict[str, Doc]] = {
    "xack": Doc(
        _GROUP,
        "5.0.0",
        "O(log N) for each ID, N being the pending entries of the group",
        "Acknowledges entries, which are pending no more, and counts those that were.",
        "key group id...",
    ),
    "xautoclaim": Doc(
        _GROUP,
        "6.2.0",
        "O(COUNT)",
        "Gives a consumer what has been pending with others for long enough, page by page.",
        "key group consumer min-idle-time start [COUNT=count:integer] [JUSTID]",
        history=(("7.0.0", "Tells which pending entries had been deleted; they are dropped."),),
    ),
    "xclaim": Doc(
        _GROUP,
        "5.0.0",
        "O(log N) for each ID, N being the pending entries of the group",
        "Gives a consumer pending entries of others, with a time and count of delivery if asked.",
        "key group consumer min-idle-time id... [IDLE=ms:integer]"
        " [TIME=unix-time-milliseconds:unix-time] [RETRYCOUNT=count:integer] [FORCE] [JUSTID]"
        " [LASTID=lastid]",
    ),
    "xgroup": Doc(
        _GROUP, "5.0.0", "Depends on subcommand.", "Holds the commands that manage groups."
    ),
    "xgroup|create": Doc(
        _GROUP,
        "5.0.0",
        "O(1)",
        "Makes a consumer group that starts after an ID.",
        "key group id-selector(id | '$'=new-id) [MKSTREAM]"
        " [ENTRIESREAD=entriesread:integer<entries-read>]",
        history=(("7.0.0", "ENTRIESREAD option."),),
    ),
    "xgroup|createconsumer": Doc(
        _GROUP, "6.2.0", "O(1)", "Makes a consumer in a group.", "key group consumer"
    ),
    "xgroup|delconsumer": Doc(
        _GROUP,
        "5.0.0",
        "O(N) for N pending entries of the consumer",
        "Removes a consumer with what it has pending.",
        "key group consumer",
    ),
    "xgroup|destroy": Doc(
        _GROUP,
        "5.0.0",
        "O(1); what was pending is freed later",
        "Removes a group with what it has pending.",
        "key group",
    ),
    "xgroup|help": Doc(_GROUP, "5.0.0", "O(1)", "Lists the XGROUP subcommands."),
    "xgroup|setid": Doc(
        _GROUP,
        "5.0.0",
        "O(1)",
        "Moves a group to another ID.",
        "key group id-selector(id | '$'=new-id) [ENTRIESREAD=entriesread:integer<entries-read>]",
        history=(("7.0.0", "ENTRIESREAD option."),),
    ),
    "xinfo|consumers": Doc(
        _GROUP,
        "5.0.0",
        "O(N) for N consumers",
        "Lists the consumers of a group.",
        "key group",
        history=(("7.2.0", "Tells inactive; idle is since any attempt."),),
    ),
    "xinfo|groups": Doc(
        _GROUP,
        "5.0.0",
        "O(N) for N groups",
        "Lists the groups of a stream.",
        "key",
        history=(("7.0.0", "Tells entries-read and lag."),),
    ),
    "xpending": Doc(
        _GROUP,
        "5.0.0",
        "O(N) for N entries answered, or met where IDLE is given; without a range O(consumers)",
        "Tells what a group has delivered and nobody has acknowledged.",
        "key group [filters([IDLE=min-idle-time:integer@6.2.0] start end count:integer"
        " [consumer])]",
        history=(("6.2.0", "IDLE option; a bound may be exclusive."),),
    ),
}
