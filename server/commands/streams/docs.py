"""Documentation of the commands on streams."""

from __future__ import annotations

from typing import Final

from headrace.compat.doc_notation import Doc
from headrace.server.commands.streams import dialect_docs, group_docs

_GROUP: Final = "stream"
_RANGE_COST: Final = "O(N) for N entries answered, wherever the range lies"
_RANGE_HISTORY: Final = (("6.2.0", "A bound may be exclusive."),)
_REFERENCES: Final = "condition(KEEPREF | DELREF | ACKED)"
_PRODUCER: Final = "idmp(IDMPAUTO=pid | IDMP=idmp(pid iid))@8.6.0"
_TRIM: Final = (
    "strategy(MAXLEN | MINID@6.2.0) [operator('='=equal | '~'=approximately)] threshold"
    " [LIMIT=count:integer@6.2.0]"
)

DOCS: Final[dict[str, Doc]] = {
    "xackdel": Doc(
        _GROUP,
        "8.2.0",
        "O(1) for each entry, however long the stream",
        "Acknowledges entries of a group and deletes them, with heed to other groups.",
        f"key group [{_REFERENCES}] IDS=ids(numids:integer id...)",
    ),
    "xadd": Doc(
        _GROUP,
        "5.0.0",
        "O(1), and O(N) more when N entries are trimmed",
        "Appends an entry to a stream, which is created where it is missing.",
        f"key [NOMKSTREAM@6.2.0] [{_REFERENCES}] [{_PRODUCER}] [trim({_TRIM})]"
        " id-selector('*'=auto-id | id) data(field value)...",
        history=(
            ("6.2.0", "NOMKSTREAM, MINID and LIMIT options."),
            ("7.0.0", "An ID of the form <ms>-*."),
            ("8.2.0", "KEEPREF, DELREF and ACKED options."),
            ("8.6.0", "IDMP and IDMPAUTO options."),
        ),
    ),
    "xcfgset": Doc(
        _GROUP,
        "8.6.0",
        "O(1); what is forgotten is freed later",
        "Limits for how long, and how many, idempotent IDs of a producer a stream remembers.",
        "key [IDMP-DURATION=idmp-duration:integer] [IDMP-MAXSIZE=idmp-maxsize:integer]",
    ),
    "xdel": Doc(
        _GROUP,
        "5.0.0",
        "O(1) for each entry, however long the stream",
        "Deletes entries and counts those that were there.",
        "key id...",
    ),
    "xdelex": Doc(
        _GROUP,
        "8.2.0",
        "O(1) for each entry, however long the stream",
        "Deletes entries with heed to groups that refer to them, and tells how each one went.",
        f"key [{_REFERENCES}] IDS=ids(numids:integer id...)",
    ),
    "xidmprecord": Doc(
        _GROUP,
        "8.6.2",
        "O(log N) for a stream of N entries",
        "Makes the idempotent ID of an entry known; the append-only file consists of these.",
        "key pid iid stream-id",
    ),
    "xinfo": Doc(
        _GROUP, "5.0.0", "Depends on subcommand.", "Holds the commands that look into streams."
    ),
    "xinfo|help": Doc(_GROUP, "5.0.0", "O(1)", "Lists the XINFO subcommands."),
    "xinfo|stream": Doc(
        _GROUP,
        "5.0.0",
        "O(1)",
        "Describes a stream, with its entries and groups if asked.",
        "key [full-block(FULL [COUNT=count:integer])]",
        history=(
            ("6.0.0", "FULL option."),
            (
                "7.0.0",
                "Tells max-deleted-entry-id, entries-added, recorded-first-entry-id and lag.",
            ),
            ("7.2.0", "Tells active-time; seen-time is any attempt."),
            ("8.6.0", "Tells of idempotent IDs: limits, producers, IDs, duplicates."),
        ),
    ),
    "xlen": Doc(_GROUP, "5.0.0", "O(1)", "Counts the entries of a stream.", "key"),
    "xnack": Doc(
        _GROUP,
        "8.8.0",
        "O(1) for each entry, however many are pending",
        "Hands pending entries back to their group, to be the next ones claimed.",
        "key group mode(SILENT | FAIL | FATAL) IDS=ids(numids:integer id...)"
        " [RETRYCOUNT=count:integer] [FORCE]",
    ),
    "xrange": Doc(
        _GROUP,
        "5.0.0",
        _RANGE_COST,
        "Reads the entries between two IDs, oldest first.",
        "key start end [COUNT=count:integer]",
        history=_RANGE_HISTORY,
    ),
    "xread": Doc(
        _GROUP,
        "5.0.0",
        "",
        "Reads the entries after given IDs from several streams, waiting for some if asked.",
        "[COUNT=count:integer] [MAXCOUNT=maxcount:integer@8.10.0]"
        " [MAXSIZE=maxsize:integer@8.10.0] [BLOCK=milliseconds:integer]"
        " STREAMS=streams(key... id...)",
    ),
    "xreadgroup": Doc(
        _GROUP,
        "5.0.0",
        "O(N) for N entries answered",
        "Reads for a consumer of a group what is new, or what it has pending already.",
        "GROUP=group-block(group consumer) [COUNT=count:integer]"
        " [MAXCOUNT=maxcount:integer@8.10.0] [MAXSIZE=maxsize:integer@8.10.0]"
        " [BLOCK=milliseconds:integer] [CLAIM=min-idle-time:integer@8.4.0] [NOACK]"
        " STREAMS=streams(key... id...)",
        history=(("8.4.0", "CLAIM option."),),
    ),
    "xrevrange": Doc(
        _GROUP,
        "5.0.0",
        _RANGE_COST,
        "Reads the entries between two IDs, newest first.",
        "key end start [COUNT=count:integer]",
        history=_RANGE_HISTORY,
    ),
    "xsetid": Doc(
        _GROUP,
        "5.0.0",
        "O(1)",
        "Sets the last ID of a stream, as replication and loading need it.",
        "key last-id [ENTRIESADDED=entries-added:integer@7.0.0]"
        " [MAXDELETEDID=max-deleted-id@7.0.0]",
        history=(("7.0.0", "ENTRIESADDED and MAXDELETEDID options."),),
    ),
    "xtrim": Doc(
        _GROUP,
        "5.0.0",
        "O(N) for N entries trimmed, most of them dropped a block at a time",
        "Deletes the oldest entries of a stream, down to a length or up to an ID.",
        f"key trim({_TRIM} [{_REFERENCES}])",
        history=(
            ("6.2.0", "MINID and LIMIT options."),
            ("8.2.0", "KEEPREF, DELREF and ACKED options."),
        ),
    ),
    **group_docs.DOCS,
    **dialect_docs.DOCS,
}
