"""Documentation of the commands that work on keys of any type."""

from __future__ import annotations

from typing import Final

from headrace.compat.doc_notation import Doc

_GROUP: Final = "generic"
_CONDITION: Final = " [condition(NX | XX | GT | LT)@7.0.0]"
_CONDITION_HISTORY: Final = (("7.0.0", "NX, XX, GT and LT options."),)
_RESTORE: Final = (
    "key ttl:integer serialized-value [REPLACE@3.0.0] [ABSTTL@5.0.0]"
    " [IDLETIME=seconds:integer@5.0.0] [FREQ=frequency:integer@5.0.0]"
)
_RESTORE_HISTORY: Final = (
    ("3.0.0", "REPLACE option."),
    ("5.0.0", "ABSTTL, IDLETIME and FREQ options."),
)
_NO_KEY_HISTORY: Final = (("2.8.0", "Answers -2 for a key that is missing."),)

DOCS: Final[dict[str, Doc]] = {
    "copy": Doc(
        _GROUP,
        "6.2.0",
        "O(N) for a value of N items, O(1) for a string",
        "Copies a key's value and expiry to another key.",
        "source:key destination:key#1 [DB=destination-db:integer] [REPLACE]",
    ),
    "del": Doc(
        _GROUP,
        "1.0.0",
        "O(N) for N keys of strings; a value of M items adds O(M)",
        "Deletes keys.",
        "key...",
    ),
    "dump": Doc(
        _GROUP,
        "2.6.0",
        "O(N) for a value of N bytes",
        "Gives a key's value as bytes that RESTORE takes.",
        "key",
    ),
    "exists": Doc(
        _GROUP,
        "1.0.0",
        "O(N) for N keys",
        "Counts how many of the keys named are there.",
        "key...",
        history=(("3.0.3", "Takes several keys."),),
    ),
    "expire": Doc(
        _GROUP,
        "1.0.0",
        "O(1)",
        "Lets a key expire some seconds from now.",
        "key seconds:integer" + _CONDITION,
        history=_CONDITION_HISTORY,
    ),
    "expireat": Doc(
        _GROUP,
        "1.2.0",
        "O(1)",
        "Lets a key expire at a Unix time in seconds.",
        "key unix-time-seconds:unix-time" + _CONDITION,
        history=_CONDITION_HISTORY,
    ),
    "expiretime": Doc(
        _GROUP, "7.0.0", "O(1)", "Tells when a key expires, as a Unix time in seconds.", "key"
    ),
    "keys": Doc(
        _GROUP,
        "1.0.0",
        "O(N) for N keys in the database, as long as names and pattern are short",
        "Lists the keys that match a pattern.",
        "pattern",
    ),
    "move": Doc(_GROUP, "1.0.0", "O(1)", "Moves a key to another database.", "key db:integer"),
    "object": Doc(
        _GROUP, "2.2.3", "Depends on subcommand.", "Holds the commands that look inside a value."
    ),
    "object|encoding": Doc(_GROUP, "2.2.3", "O(1)", "Tells how a value is stored.", "key"),
    "object|freq": Doc(
        _GROUP, "4.0.0", "O(1)", "Tells how often a key is used, on a logarithmic scale.", "key"
    ),
    "object|help": Doc(_GROUP, "6.2.0", "O(1)", "Lists the OBJECT subcommands."),
    "object|idletime": Doc(
        _GROUP, "2.2.3", "O(1)", "Tells how many seconds ago a key was last used.", "key"
    ),
    "object|refcount": Doc(_GROUP, "2.2.3", "O(1)", "Counts the references to a value.", "key"),
    "persist": Doc(_GROUP, "2.2.0", "O(1)", "Takes the expiry off a key.", "key"),
    "migrate": Doc(
        _GROUP,
        "2.6.0",
        "O(N) for values of N bytes, which are sent and checked",
        "Moves keys to another server.",
        "host port:integer key-selector(key | ''=empty-string) destination-db:integer"
        " timeout:integer [COPY@3.0.0] [REPLACE@3.0.0]"
        " [authentication(AUTH=auth<password>@4.0.7 | AUTH2=auth2(username password)@6.0.0)]"
        " [KEYS=keys:key#1<key>...@3.0.6]",
        history=(
            ("3.0.0", "COPY and REPLACE options."),
            ("3.0.6", "KEYS option."),
            ("4.0.7", "AUTH option."),
            ("6.0.0", "AUTH2 option."),
        ),
    ),
    "pexpire": Doc(
        _GROUP,
        "2.6.0",
        "O(1)",
        "Lets a key expire some milliseconds from now.",
        "key milliseconds:integer" + _CONDITION,
        history=_CONDITION_HISTORY,
    ),
    "pexpireat": Doc(
        _GROUP,
        "2.6.0",
        "O(1)",
        "Lets a key expire at a Unix time in milliseconds.",
        "key unix-time-milliseconds:unix-time" + _CONDITION,
        history=_CONDITION_HISTORY,
    ),
    "pexpiretime": Doc(
        _GROUP, "7.0.0", "O(1)", "Tells when a key expires, as a Unix time in milliseconds.", "key"
    ),
    "pttl": Doc(
        _GROUP,
        "2.6.0",
        "O(1)",
        "Tells how many milliseconds a key has left.",
        "key",
        history=_NO_KEY_HISTORY,
    ),
    "randomkey": Doc(_GROUP, "1.0.0", "O(1)", "Picks a key of the database by chance."),
    "rename": Doc(
        _GROUP,
        "1.0.0",
        "O(1)",
        "Gives a key another name, in place of a key that had it.",
        "key newkey:key#1",
    ),
    "renamenx": Doc(
        _GROUP,
        "1.0.0",
        "O(1)",
        "Gives a key another name unless that is taken.",
        "key newkey:key#1",
        history=(("3.2.0", "The same name twice is no error."),),
    ),
    "restore": Doc(
        _GROUP,
        "2.6.0",
        "O(N) for a value of N bytes, all of which are checked",
        "Makes a key of what DUMP gave.",
        _RESTORE,
        history=_RESTORE_HISTORY,
    ),
    "restore-asking": Doc(
        "server",
        "3.0.0",
        "O(N) for a value of N bytes, all of which are checked",
        "Makes a key of what another node of a cluster has sent.",
        _RESTORE,
        internal=True,
        history=_RESTORE_HISTORY,
    ),
    "scan": Doc(
        _GROUP,
        "2.8.0",
        "O(1) for a call; O(N) for all the calls that visit N keys",
        "Visits the keys of the database, some with each call.",
        "cursor:integer [MATCH=pattern] [COUNT=count:integer] [TYPE=type@6.0.0]",
        history=(("6.0.0", "TYPE option."),),
    ),
    "touch": Doc(
        _GROUP,
        "3.2.1",
        "O(N) for N keys",
        "Counts the keys that are there and marks them as just used.",
        "key...",
    ),
    "ttl": Doc(
        _GROUP,
        "1.0.0",
        "O(1)",
        "Tells how many seconds a key has left.",
        "key",
        history=_NO_KEY_HISTORY,
    ),
    "type": Doc(_GROUP, "1.0.0", "O(1)", "Tells which type of value a key holds.", "key"),
    "unlink": Doc(
        _GROUP,
        "4.0.0",
        "O(1) for each key; freeing N parts of the values is put off",
        "Takes keys away now and frees their values later.",
        "key...",
    ),
}
