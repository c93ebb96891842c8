"""Documentation of the commands on hashes."""

from __future__ import annotations

from typing import Final

from headrace.compat.doc_notation import Doc

_GROUP: Final = "hash"
_OF_FIELDS: Final = "O(N) for N fields"
_WHOLE: Final = "O(N) for a hash of N fields"
_FIELDS: Final = "FIELDS=fields(numfields:integer field...)"
_CONDITION: Final = "[condition(NX | XX | GT | LT)]"
_EXPIRATION: Final = (
    "EX=seconds:integer | PX=milliseconds:integer"
    " | EXAT=unix-time-seconds:unix-time | PXAT=unix-time-milliseconds:unix-time"
)

DOCS: Final[dict[str, Doc]] = {
    "hdel": Doc(
        _GROUP,
        "2.0.0",
        _OF_FIELDS,
        "Deletes fields, and the hash with the last one.",
        "key field...",
        history=(("2.4.0", "Several fields at once."),),
    ),
    "hexists": Doc(_GROUP, "2.0.0", "O(1)", "Tells whether a hash has a field.", "key field"),
    "hget": Doc(_GROUP, "2.0.0", "O(1)", "Reads a field.", "key field"),
    "hgetall": Doc(_GROUP, "2.0.0", _WHOLE, "Reads all fields with their values.", "key"),
    "hincrby": Doc(
        _GROUP, "2.0.0", "O(1)", "Adds to the number in a field.", "key field increment:integer"
    ),
    "hincrbyfloat": Doc(
        _GROUP,
        "2.6.0",
        "O(1)",
        "Adds a decimal amount to the number in a field.",
        "key field increment:double",
    ),
    "hkeys": Doc(_GROUP, "2.0.0", _WHOLE, "Reads the names of all fields.", "key"),
    "hlen": Doc(_GROUP, "2.0.0", "O(1)", "Counts the fields of a hash.", "key"),
    "hmget": Doc(_GROUP, "2.0.0", _OF_FIELDS, "Reads several fields at once.", "key field..."),
    "hmset": Doc(
        _GROUP,
        "2.0.0",
        _OF_FIELDS,
        "Sets several fields at once.",
        "key data(field value)...",
        deprecated_since="4.0.0",
        replaced_by="`HSET` with multiple field-value pairs",
    ),
    "hrandfield": Doc(
        _GROUP,
        "6.2.0",
        "O(N) for N fields in the reply",
        "Chooses fields by chance.",
        "key [options(count:integer [WITHVALUES])]",
    ),
    "hscan": Doc(
        _GROUP,
        "2.8.0",
        "O(1) a call, O(N) for a walk over N fields",
        "Walks over the fields of a hash in portions.",
        "key cursor:integer [MATCH=pattern] [COUNT=count:integer] [NOVALUES]",
    ),
    "hset": Doc(
        _GROUP,
        "2.0.0",
        _OF_FIELDS,
        "Sets fields to values, and makes the hash where it is missing.",
        "key data(field value)...",
        history=(("4.0.0", "Several fields at once."),),
    ),
    "hsetnx": Doc(
        _GROUP, "2.0.0", "O(1)", "Sets a field if it is not there yet.", "key field value"
    ),
    "hstrlen": Doc(_GROUP, "3.2.0", "O(1)", "Tells how long a value is.", "key field"),
    "hvals": Doc(_GROUP, "2.0.0", _WHOLE, "Reads the values of all fields.", "key"),
    "hexpire": Doc(
        _GROUP,
        "7.4.0",
        _OF_FIELDS,
        "Lets fields expire some seconds from now.",
        "key seconds:integer " + _CONDITION + " " + _FIELDS,
    ),
    "hpexpire": Doc(
        _GROUP,
        "7.4.0",
        _OF_FIELDS,
        "Lets fields expire some milliseconds from now.",
        "key milliseconds:integer " + _CONDITION + " " + _FIELDS,
    ),
    "hexpireat": Doc(
        _GROUP,
        "7.4.0",
        _OF_FIELDS,
        "Lets fields expire at a moment given in seconds.",
        "key unix-time-seconds:unix-time " + _CONDITION + " " + _FIELDS,
    ),
    "hpexpireat": Doc(
        _GROUP,
        "7.4.0",
        _OF_FIELDS,
        "Lets fields expire at a moment given in milliseconds.",
        "key unix-time-milliseconds:unix-time " + _CONDITION + " " + _FIELDS,
    ),
    "httl": Doc(
        _GROUP, "7.4.0", _OF_FIELDS, "Tells how many seconds fields have left.", "key " + _FIELDS
    ),
    "hpttl": Doc(
        _GROUP,
        "7.4.0",
        _OF_FIELDS,
        "Tells how many milliseconds fields have left.",
        "key " + _FIELDS,
    ),
    "hexpiretime": Doc(
        _GROUP,
        "7.4.0",
        _OF_FIELDS,
        "Tells when fields expire, in seconds since 1970.",
        "key " + _FIELDS,
    ),
    "hpexpiretime": Doc(
        _GROUP,
        "7.4.0",
        _OF_FIELDS,
        "Tells when fields expire, in milliseconds since 1970.",
        "key " + _FIELDS,
    ),
    "hpersist": Doc(
        _GROUP, "7.4.0", _OF_FIELDS, "Takes the deadlines of fields away.", "key " + _FIELDS
    ),
    "hgetdel": Doc(_GROUP, "8.0.0", _OF_FIELDS, "Reads fields and deletes them.", "key " + _FIELDS),
    "hgetex": Doc(
        _GROUP,
        "8.0.0",
        _OF_FIELDS,
        "Reads fields and sets or takes off their deadlines.",
        "key [expiration(" + _EXPIRATION + " | PERSIST)] " + _FIELDS,
    ),
    "hsetex": Doc(
        _GROUP,
        "8.0.0",
        _OF_FIELDS,
        "Sets fields with a condition and a deadline for all of them.",
        "key [condition(FNX | FXX)] [expiration(" + _EXPIRATION + " | KEEPTTL)]"
        " FIELDS=fields(numfields:integer data(field value)...)",
    ),
    "himport": Doc(
        _GROUP,
        "8.10.0",
        "Depends on subcommand.",
        "Makes many hashes with the same fields, which are named once.",
    ),
    "himport|prepare": Doc(
        _GROUP,
        "8.10.0",
        "O(N log N) for N fields",
        "Gives a row of fields a name, for this connection.",
        "fieldset-name field...",
    ),
    "himport|set": Doc(
        _GROUP,
        "8.10.0",
        _OF_FIELDS,
        "Makes a hash of named fields and these values.",
        "key fieldset-name value...",
    ),
    "himport|discard": Doc(_GROUP, "8.10.0", "O(1)", "Forgets a row of fields.", "fieldset-name"),
    "himport|discardall": Doc(
        _GROUP, "8.10.0", "O(N) for N rows of fields", "Forgets all rows of fields."
    ),
}
