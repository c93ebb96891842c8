"""Documentation of the commands on strings."""

from __future__ import annotations

from typing import Final

from headrace.compat.doc_notation import Doc

_GROUP: Final = "string"
_SUBSTRING_COST: Final = "O(N) for a reply of N bytes"
_COMPARE: Final = (
    "IFEQ=ifeq-value{0} | IFNE=ifne-value{0} | IFDEQ=ifdeq-digest{0} | IFDNE=ifdne-digest{0}"
)
_EXPIRATION: Final = (
    "EX=seconds:integer{0} | PX=milliseconds:integer{0}"
    " | EXAT=unix-time-seconds:unix-time{1} | PXAT=unix-time-milliseconds:unix-time{1}"
)

DOCS: Final[dict[str, Doc]] = {
    "append": Doc(
        _GROUP,
        "2.0.0",
        "O(1) amortized, for a short text",
        "Adds text to the end of a string, which is created empty where it is missing.",
        "key value",
    ),
    "decr": Doc(_GROUP, "1.0.0", "O(1)", "Takes one from a number.", "key"),
    "decrby": Doc(
        _GROUP, "1.0.0", "O(1)", "Takes some amount from a number.", "key decrement:integer"
    ),
    "delex": Doc(
        _GROUP,
        "8.4.0",
        "O(1) for IFEQ and IFNE, O(N) for IFDEQ and IFDNE on a value of N bytes",
        "Deletes a key if its value, or the digest of it, is as asked for.",
        "key [condition(" + _COMPARE.format("") + ")]",
    ),
    "digest": Doc(
        _GROUP, "8.4.0", "O(N) for a value of N bytes", "Tells the XXH3 hash of a string.", "key"
    ),
    "get": Doc(_GROUP, "1.0.0", "O(1)", "Reads a string.", "key"),
    "getdel": Doc(_GROUP, "6.2.0", "O(1)", "Reads a string and deletes its key.", "key"),
    "getex": Doc(
        _GROUP,
        "6.2.0",
        "O(1)",
        "Reads a string and sets or takes off its expiry.",
        "key [expiration(" + _EXPIRATION.format("", "") + " | PERSIST)]",
    ),
    "getrange": Doc(
        _GROUP,
        "2.4.0",
        _SUBSTRING_COST,
        "Reads the part of a string between two offsets.",
        "key start:integer end:integer",
    ),
    "getset": Doc(
        _GROUP,
        "1.0.0",
        "O(1)",
        "Sets a string and answers with what it was.",
        "key value",
        deprecated_since="6.2.0",
        replaced_by="`SET` with the `!GET` argument",
    ),
    "incr": Doc(_GROUP, "1.0.0", "O(1)", "Adds one to a number.", "key"),
    "incrby": Doc(
        _GROUP, "1.0.0", "O(1)", "Adds some amount to a number.", "key increment:integer"
    ),
    "incrbyfloat": Doc(
        _GROUP, "2.6.0", "O(1)", "Adds a decimal amount to a number.", "key increment:double"
    ),
    "increx": Doc(
        _GROUP,
        "8.8.0",
        "O(1)",
        "Adds to a number within bounds and sets or takes off its expiry.",
        "key [increment(BYFLOAT=float:double | BYINT=integer:integer)] [SATURATE]"
        " [LBOUND=lowerbound] [UBOUND=upperbound]"
        " [expiration(" + _EXPIRATION.format("", "") + " | PERSIST)] [ENX]",
    ),
    "lcs": Doc(
        _GROUP,
        "7.0.0",
        "O(N*M) for strings of N and M bytes",
        "Finds the longest subsequence that two strings have in common.",
        "key1:key key2:key [LEN] [IDX] [MINMATCHLEN=min-match-len:integer] [WITHMATCHLEN]",
    ),
    "mget": Doc(_GROUP, "1.0.0", "O(N) for N keys", "Reads several strings at once.", "key..."),
    "mset": Doc(
        _GROUP, "1.0.1", "O(N) for N keys", "Sets several strings at once.", "data(key value)..."
    ),
    "msetex": Doc(
        _GROUP,
        "8.4.0",
        "O(N) for N keys",
        "Sets several strings at once, with one condition and one expiry for all.",
        "numkeys:integer data(key value)... [condition(NX | XX)]"
        " [expiration(" + _EXPIRATION.format("", "") + " | KEEPTTL)]",
    ),
    "msetnx": Doc(
        _GROUP,
        "1.0.1",
        "O(N) for N keys",
        "Sets several strings if none of the keys is there yet.",
        "data(key value)...",
    ),
    "psetex": Doc(
        _GROUP,
        "2.6.0",
        "O(1)",
        "Sets a string that expires some milliseconds from now.",
        "key milliseconds:integer value",
        deprecated_since="2.6.12",
        replaced_by="`SET` with the `PX` argument",
    ),
    "set": Doc(
        _GROUP,
        "1.0.0",
        "O(1)",
        "Makes a key hold a string, whatever it held, under a condition if one is given.",
        "key value [condition(NX | XX | " + _COMPARE.format("@8.4.0") + ")@2.6.12] [GET@6.2.0]"
        " [expiration(" + _EXPIRATION.format("@2.6.12", "@6.2.0") + " | KEEPTTL@6.0.0)]",
        history=(
            ("2.6.12", "EX, PX, NX and XX options."),
            ("6.0.0", "KEEPTTL option."),
            ("6.2.0", "GET, EXAT and PXAT options."),
            ("7.0.0", "NX goes together with GET."),
            ("8.4.0", "IFEQ, IFNE, IFDEQ and IFDNE options."),
        ),
    ),
    "setex": Doc(
        _GROUP,
        "2.0.0",
        "O(1)",
        "Sets a string that expires some seconds from now.",
        "key seconds:integer value",
        deprecated_since="2.6.12",
        replaced_by="`SET` with the `EX` argument",
    ),
    "setnx": Doc(
        _GROUP,
        "1.0.0",
        "O(1)",
        "Sets a string if the key is not there yet.",
        "key value",
        deprecated_since="2.6.12",
        replaced_by="`SET` with the `NX` argument",
    ),
    "setrange": Doc(
        _GROUP,
        "2.2.0",
        "O(1) for a short text, O(M) for one of M bytes",
        "Writes over a part of a string from an offset on, lengthening it as needed.",
        "key offset:integer value",
    ),
    "strlen": Doc(_GROUP, "2.2.0", "O(1)", "Tells how long a string is.", "key"),
    "substr": Doc(
        _GROUP,
        "1.0.0",
        _SUBSTRING_COST,
        "Reads the part of a string between two offsets.",
        "key start:integer end:integer",
        deprecated_since="2.0.0",
        replaced_by="`GETRANGE`",
    ),
}
