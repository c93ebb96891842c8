"""Scripts by chance that call commands, and look at what comes back."""

from __future__ import annotations

import random

from support.random_scripts import RandomScripts

KEYS = [f"k{number}" for number in range(1, 8)]
_CALLS = (
    "'SET', KEYS[1], %s", "'GET', KEYS[1]", "'INCRBY', KEYS[2], %s", "'LPUSH', KEYS[3], %s, %s",
    "'LRANGE', KEYS[3], 0, -1", "'HSET', KEYS[4], %s, %s", "'HGETALL', KEYS[4]", "'NOSUCH', %s",
    "'SADD', KEYS[5], %s", "'SCARD', KEYS[5]", "'ZADD', KEYS[6], %s, %s", "'DEL', KEYS[1]",
    "'ZRANGE', KEYS[6], 0, -1, 'WITHSCORES'", "'ZSCORE', KEYS[6], %s", "'TYPE', KEYS[1]",
    "'EXISTS', KEYS[1], KEYS[2]", "'APPEND', KEYS[1], %s", "'INCRBYFLOAT', KEYS[2], %s", "'GET'",
    "'XADD', KEYS[7], '1-1', 'f', %s", "'XRANGE', KEYS[7], '-', '+'", "'LPOP', KEYS[3]",
    "'HINCRBYFLOAT', KEYS[4], 'n', %s", "'MGET', KEYS[1], KEYS[2], 'none'", "'PING'",
    "'SETEX', KEYS[1], %s, %s", "'ECHO', %s", "'EVAL', 'return 1', 0", "'LINDEX', KEYS[3], %s",
    "'GETRANGE', KEYS[1], %s, %s",
)  # fmt: skip
_WORDS = (
    "ARGV[1]", "ARGV[2]", "'x'", "5", "-1", "1.5", "'7'", "1e20", "0.1", "'a b'", "true", "nil",
    "{}", "''", "3", "1/3", "2^53", "-2^63", "'\\0'",
)  # fmt: skip


class RandomCalls:
    """Makes scripts for seven keys and two arguments."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._values = RandomScripts(rng)

    def script(self) -> bytes:
        """A script."""
        rng = self._rng
        lines = ["redis.setresp(3)"] if rng.random() < 0.3 else []
        for number in range(rng.randrange(1, 5)):
            call = self._call()
            lines.append(
                rng.choice(
                    [
                        call,
                        f"local ok{number}, e{number} = pcall(function() return {call} end)",
                        f"for _ = 1, 2 do {call} end",
                        f"local v{number} = {call}",
                    ]
                )
            )
        ways = [
            self._call(),
            self._values.value(2),
            f"{{{self._call()}, {self._call()}}}",
            f"cjson.encode({{pcall(function() return {self._call()} end)}})",
        ]
        lines.append(f"return {rng.choice(ways)}")
        return "\n".join(lines).encode("latin-1")

    def _call(self) -> str:
        rng = self._rng
        pieces = rng.choice(_CALLS).split("%s")
        words = [pieces[0]]
        for piece in pieces[1:]:
            words += [rng.choice([*_WORDS, self._values.value(1)]), piece]
        return f"redis.{rng.choice(['call', 'call', 'pcall'])}({''.join(words)})"
