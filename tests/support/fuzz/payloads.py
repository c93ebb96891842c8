"""What RESTORE is given: payloads that DUMP has answered on either server, whole and damaged.

A session is made before it is played, so its calls name the payload that they want: which server's,
how many DUMPs ago, and what is done to it.
"""

from __future__ import annotations

import re
from random import Random
from typing import Final

from support.client import parse
from support.rdb_forms import sealed

_NAMED: Final = re.compile(rb"\{payload:(\d+):(\d+):(\d+)\}")
_MISSING: Final = b"no payload"
_SERVERS: Final = 2
_KEPT: Final = 4  # payloads of each server
_WHOLE: Final = 0
_DAMAGES: Final = 10_000
_CHECKSUM_BYTES: Final = 8
_FOOTER_BYTES: Final = 10


def named(chance: Random) -> bytes:
    """Return what stands for a payload in a call; most are whole."""
    damage = _WHOLE if chance.random() < 0.8 else chance.randint(1, _DAMAGES)
    return b"{payload:%d:%d:%d}" % (chance.randrange(_SERVERS), chance.randrange(_KEPT), damage)


def payloads_in(ours: bytes, real: bytes) -> bool:
    """Return whether both servers, as they were asked to DUMP, have answered with a payload."""
    return all(reply.startswith(b"$") and not reply.startswith(b"$-") for reply in (ours, real))


class Payloads:
    """The payloads that both servers have answered in a session."""

    def __init__(self) -> None:
        self._pairs: list[tuple[bytes, bytes]] = []

    def note(self, ours: bytes, real: bytes) -> None:
        """Keep the replies to a DUMP, as they were sent."""
        payloads = parse(ours), parse(real)
        assert isinstance(payloads[0], bytes)
        assert isinstance(payloads[1], bytes)
        self._pairs = [(payloads[0], payloads[1]), *self._pairs[: _KEPT - 1]]

    def filled_in(self, word: bytes) -> bytes:
        """The payload that a word stands for; another word as it is."""
        named = _NAMED.fullmatch(word)
        if named is None:
            return word
        server, ago, damage = map(int, named.groups())
        if ago >= len(self._pairs):
            return _MISSING
        payload = self._pairs[ago][server]
        return payload if damage == _WHOLE else damaged(payload, Random(damage))


def damaged(payload: bytes, chance: Random) -> bytes:
    """A payload that was changed, more often than not so that its checksum shows it."""
    kind = chance.randrange(6)
    body = bytearray(payload[:-_CHECKSUM_BYTES])
    place = chance.randrange(len(payload))
    if kind == 0:
        return payload[:place]
    if kind == 1:
        return payload[:place] + payload[place + 1 :]
    if kind == 2:
        return payload[:place] + chance.randbytes(1) + payload[place:]
    if kind == 3:  # a version of another server
        body[-2:] = chance.choice((b"\x01\x00", b"\x09\x00", b"\xff\x00", b"\xff\xff"))
        return sealed(bytes(body)) if body[-1] else bytes(body) + payload[-_CHECKSUM_BYTES:]
    if kind == 4:  # more than a value, with a checksum that says that all is well
        return sealed(bytes(body[:-2] + chance.randbytes(3) + body[-2:]))
    flipped = bytearray(payload)
    flipped[place] ^= 1 << chance.randrange(8)
    return bytes(flipped)


def is_named(word: bytes) -> bool:
    """Return whether a word stands for a payload."""
    return _NAMED.fullmatch(word) is not None


def wrecked(payload: bytes, chance: Random) -> bytes:
    """A payload with another value in it, or none, whose checksum says that all is well."""
    value = bytearray(payload[:-_FOOTER_BYTES])
    for _ in range(chance.randint(1, 3)):
        place = chance.randrange(len(value) + 1)
        kind = chance.randrange(4)
        if kind == 0:
            value[place : place + 1] = chance.randbytes(1)
        elif kind == 1:
            del value[place : place + chance.randint(1, 4)]
        elif kind == 2:
            value[place:place] = chance.choice((b"\x00", b"\xff", b"\x80\xff\xff\xff\xff", b"\xc3"))
        elif place < len(value):
            value[place] ^= 1 << chance.randrange(8)
    return sealed(bytes(value) + payload[-_FOOTER_BYTES:-_CHECKSUM_BYTES])
