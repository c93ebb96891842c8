"""Rules of users by chance, right and wrong ones, and requests to try them with."""

from __future__ import annotations

import random

FLAGS = ["on", "off", "nopass", "resetpass", "sanitize-payload", "skip-sanitize-payload", "OFF"]
RESETS = ["reset", "resetkeys", "resetchannels", "clearselectors", "nocommands", "allcommands"]
CATEGORIES = [
    *("keyspace", "read", "write", "set", "sortedset", "list", "hash", "string", "array"),
    *("bitmap", "hyperloglog", "geo", "stream", "pubsub", "admin", "fast", "slow", "blocking"),
    *("dangerous", "connection", "transaction", "scripting", "all", "ALL", "nosuch", "Read"),
]
PATTERNS = ["*", "a*", "b?", "ab", "[a-b]c", "", "k:\\*", "x y", "**", "a"]
PASSWORDS = ["p", "q", "", "secret word"]
HASHES = ["0" * 64, "ab" * 32, "AB" * 32, "0" * 63, ""]
NAMES = [
    *("get", "GET", "set", "mget", "del", "config", "config|get", "CONFIG|SET", "client|list"),
    *("client", "select", "select|0", "select|x", "debug|object", "get|a|b", "config|nosuch"),
    *("config|get|x", "config|", "nosuch", "|x", "get|", "xinfo|stream", "xinfo", "acl", "acl|log"),
    *("publish", "subscribe", "psubscribe", "eval", "sync", "cluster|nodes", "sort", "copy", "@"),
    *("command|docs", "command", "object|freq", "script|load", "xadd", "xreadgroup", "migrate"),
]
KEYS = ["a", "ab", "abc", "bc", "bx", "k:*", "", "z", "x y", "*"]
REQUESTS = [
    *("GET k", "SET k v", "SET k v GET", "MGET k k k", "MSET k v k v", "DEL k k", "EXISTS k k"),
    *("COPY k k", "RENAME k k", "SORT k", "SORT k STORE k", "SORT_RO k BY x", "OBJECT FREQ k"),
    *(
        "XADD k * f v",
        "XREAD STREAMS k k 0 0",
        "XREADGROUP GROUP g c STREAMS k >",
        "XINFO STREAM k",
    ),
    *("PUBLISH k v", "SPUBLISH k v", "SUBSCRIBE k k", "PSUBSCRIBE k k", "SSUBSCRIBE k"),
    *("UNSUBSCRIBE k", "PUNSUBSCRIBE k", "CONFIG GET x", "CONFIG SET x y", "CLIENT LIST", "CLIENT"),
    *("CLIENT KILL x", "SELECT 0", "SELECT x", "AUTH x", "HELLO 3", "PING", "INFO", "KEYS k"),
    *("ZADD k 1 m", "ZUNIONSTORE k 2 k k", "ZRANGESTORE k k 0 1", "ZUNION 2 k k", "BLPOP k k 0"),
    *("LMOVE k k LEFT LEFT", "LMPOP 2 k k LEFT", "BITOP NOT k k", "BITFIELD k GET u8 0", "TYPE k"),
    *("GEORADIUS k 0 0 1 m STORE k", "GEOSEARCHSTORE k k FROMMEMBER m BYRADIUS 1 m", "PFCOUNT k k"),
    *("PFMERGE k k", "MIGRATE h 1 k 0 1", "MIGRATE h 1 NONE 0 1 KEYS k k", "WATCH k", "MULTI"),
    *(
        "EXEC",
        "DUMP k",
        "RESTORE k 0 v",
        "EXPIRE k 1",
        "TTL k",
        "HGETALL k",
        "HSET k f v",
        "LCS k k",
    ),
    *("ACL LIST", "ACL WHOAMI", "ACL LOG", "COMMAND DOCS", "COMMAND", "NOSUCH k", "GET", "SCAN 0"),
    *(
        "DELEX k",
        "SINTERCARD 1 k",
        "SINTERCARD 2 k",
        "SMOVE k k m",
        "INCR k",
        "APPEND k v",
        "FLUSHALL",
    ),
    *("TOUCH k k", "UNLINK k", "RANDOMKEY", "WAIT 0 0", "MEMORY USAGE k", "DEBUG OBJECT k", "TIME"),
]


class RandomRules:
    """Makes them."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def rules(self) -> list[str]:
        """The rules of one ACL SETUSER."""
        rules = []
        for _ in range(self._chance.choice((1, 1, 2, 3, 5, 8))):
            rules += self._rule()
        return rules

    def _rule(self) -> list[str]:
        chance = self._chance
        kind = chance.random()
        if kind < 0.1:
            return [chance.choice(FLAGS)]
        if kind < 0.15:
            return [chance.choice(RESETS)]
        if kind < 0.22:
            return [chance.choice("><") + chance.choice(PASSWORDS)]
        if kind < 0.25:
            return [chance.choice("#!") + chance.choice(HASHES)]
        if kind < 0.35:
            return self._selector()
        if kind < 0.37:
            return [
                chance.choice(("", ")", "()", "foo", "%", "%~a", "%RR~a", "%x~a", "+", "-"))[:3]
            ]
        return [self._right()]

    def _right(self) -> str:
        """A rule that a selector may have, too."""
        chance = self._chance
        kind = chance.random()
        if kind < 0.25:
            sign = chance.choice(("~", "~", "%R~", "%W~", "%RW~", "%w~", "%wr~"))
            return sign + chance.choice(PATTERNS)
        if kind < 0.28:
            return chance.choice(("allkeys", "allchannels", "resetkeys", "resetchannels"))
        if kind < 0.4:
            return "&" + chance.choice(PATTERNS)
        if kind < 0.6:
            return chance.choice("+-") + "@" + chance.choice(CATEGORIES)
        return chance.choice("+++-") + chance.choice(NAMES)

    def _selector(self) -> list[str]:
        inner = [self._right() for _ in range(self._chance.randint(1, 4))]
        text = "(" + " ".join(inner) + ")"
        kind = self._chance.random()
        if kind < 0.6:
            return [text]
        if kind < 0.9:
            return text.split(" ")
        return [text[:-1]]

    def request(self) -> list[str]:
        """A request whose keys are by chance."""
        words = self._chance.choice(REQUESTS).split(" ")
        return [words[0]] + [
            self._chance.choice(KEYS) if word == "k" else word for word in words[1:]
        ]
