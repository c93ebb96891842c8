"""The introduction of two regions, and the reasons to refuse one.

Both sides show that they have the secret, and neither sends it. The side that asks sends a nonce
and gets one. It sends a code over both, made with the secret, and is answered with another code
over both. The codes begin with different words, so that one cannot be sent back as the other; and
the side that asks has to show first, so that a stranger gets nothing to guess the secret from.

``AA HELLO version database region epoch generation nonce mode numbers`` is answered with the same
of the other side, and with the nonce that it remembers of the asking side's epoch, the reach of its
log, the regions that it knows to take part, and the time of day there. One more word of the asking
side may name its process, so that it notices a call to itself. All of it is readable text.

A version is written as ``1-3``: such a region has all kinds of records up to version 3, and still
speaks with those that have no more than version 1. ``2`` is ``2-2``. Two regions exchange records
if what they speak overlaps.
"""

from __future__ import annotations

import os
from _operator import _compare_digest  # hmac's own, without the OpenSSL that hmac loads
from typing import Final

from headrace.compat import errors
from headrace.compat.errors import CommandError
from headrace.compat.numbers import parse_integer
from headrace.regions.files.pieces import TIME_MAX_MS
from headrace.regions.knowledge.records import LOWEST_VERSION, newest_version
from headrace.regions.knowledge.region import Region, begun_in
from headrace.storage.sharing import MODES, NAME_MAX_BYTES, REGION_MAX
from headrace.storage.vectors import (
    EPOCH_MAX,
    BadVector,
    Numbers,
    decode_numbers,
    encode_numbers,
    origin_of,
)

NONCE_BYTES: Final = 32
_ASKING: Final = b"headrace asks\n"
_ANSWERING: Final = b"headrace answers\n"
NONCE_MAX_BYTES: Final = 64
GENERATION_MAX: Final = 2**44 - 1
VERSION_MAX: Final = 2**31
NONE: Final = b"-"
_MODE_NAMES: Final = {mode: name for name, mode in MODES.items()}
WORDS: Final = 8  # that introduce a region; one more may say which process it is
_REPLY_ITEMS: Final = 11


def new_nonce() -> bytes:
    """Return a nonce, as text."""
    return os.urandom(NONCE_BYTES).hex().encode()


def is_nonce(word: bytes) -> bool:
    """Return whether a word may be a nonce of the other side."""
    return len(word) == 2 * NONCE_BYTES


def asking_code(secret: bytes, asking: bytes, answering: bytes) -> bytes:
    """Return the code that the side that asks shows for these nonces."""
    return _code(secret, _ASKING, asking, answering)


def answering_code(secret: bytes, asking: bytes, answering: bytes) -> bytes:
    """Return the code that the side that is asked shows for these nonces."""
    return _code(secret, _ANSWERING, asking, answering)


def same(code: bytes, other: bytes) -> bool:
    """Return whether two codes are the same, in a time that does not depend on them."""
    return _compare_digest(code, other)


def _code(secret: bytes, role: bytes, asking: bytes, answering: bytes) -> bytes:
    import hmac  # late: OpenSSL comes with it
    from hashlib import sha256

    text = b"%b%b\n%b" % (role, asking, answering)
    return hmac.new(secret, text, sha256).hexdigest().encode()


class BadHello(ValueError):
    """The words introduce no region."""


class Hello:
    """The introduction of a region.

    Attributes:
        lowest, version: of the exchange, that it speaks.
        numbers: what it knows.
        remembered: the nonce of the other side's epoch, as far as it remembers one.
        reach: of each origin, the lowest number that its log still has.
        members: the regions that it knows to take part.
        now_ms: the time of day there; 0 where it does not say.
    """

    def __init__(self, words: list[bytes]) -> None:
        """Read the words of ``AA HELLO``, of any version. Raises BadHello if they are wrong."""
        if len(words) < WORDS:
            raise BadHello("too few words")
        nonce = _nonce(words[5])
        mode = MODES.get(words[6])
        if len(words[1]) > NAME_MAX_BYTES:
            raise BadHello("a name is too long")
        if mode is None:
            raise BadHello("there is no such mode")
        first, dash, last = words[0].partition(b"-")
        lowest = _number(first, 1, VERSION_MAX)
        self.lowest: Final = lowest
        self.version: Final = _number(last, lowest, VERSION_MAX) if dash else lowest
        self.database: Final = words[1]
        self.region: Final = _number(words[2], 1, REGION_MAX)
        self.epoch: Final = _number(words[3], 0, EPOCH_MAX)
        self.generation: Final = _number(words[4], 0, GENERATION_MAX)
        self.nonce: Final = nonce
        self.mode: Final = mode
        self.numbers: Final = _numbers(words[7])
        self.remembered = b""
        self.reach: Numbers = {}
        self.members: list[int] = []
        self.now_ms = 0

    @property
    def origin(self) -> bytes:
        """The origin of the region."""
        return origin_of(self.region, self.epoch)

    @property
    def begun(self) -> int:
        """The epoch in which its folder was empty."""
        return begun_in(self.nonce, self.epoch)


def hello_words(region: Region, known: Numbers) -> list[bytes]:
    """Return the words of ``AA HELLO`` for this region, which says that it knows ``known``."""
    newest = newest_version()
    return [
        b"%d" % newest if newest == LOWEST_VERSION else b"%d-%d" % (LOWEST_VERSION, newest),
        region.database,
        b"%d" % region.id,
        b"%d" % region.epoch,
        b"%d" % region.generation,
        region.nonce or NONE,
        _MODE_NAMES[region.mode],
        encode_numbers(known),
    ]


def read_reply(items: object) -> Hello:
    """Return the region that a reply to ``AA HELLO`` introduces. Raises BadHello for none."""
    if not isinstance(items, list) or len(items) < _REPLY_ITEMS:
        raise BadHello("the reply has too few items")
    words: list[bytes] = []
    for item in items:
        if not isinstance(item, bytes):
            raise BadHello("the reply has items that are no words")
        words.append(item)
    hello = Hello(words)
    hello.remembered = _nonce(words[8])
    hello.reach = _numbers(words[9])
    if words[10] != NONE:
        hello.members = [_number(word, 1, REGION_MAX) for word in words[10].split(b",")]
    if len(words) > _REPLY_ITEMS:
        hello.now_ms = _number(words[11], 0, TIME_MAX_MS)
    return hello


def refusal(region: Region, hello: Hello, sent: int, is_asked: bool) -> bytes:
    """Return the error line to refuse another region with; empty where there is no reason.

    Args:
        sent: how many records this origin has given away, or may.
        is_asked: the other side asks, so it is answered; else this side has asked.
    """
    newest = newest_version()
    if hello.version < LOWEST_VERSION:
        return errors.aa_version(hello.region, hello.version, region.id, LOWEST_VERSION)
    if hello.lowest > newest:
        return errors.aa_version(region.id, newest, hello.region, hello.lowest)
    if hello.database != region.database:
        return errors.AA_DATABASE
    if hello.region == region.id:
        return errors.aa_twin(hello.origin)
    if region.forgotten.get(hello.region, -1) >= hello.begun:
        return errors.aa_forgotten(hello.region, region.forgotten[hello.region])
    known = region.nonces.get(hello.origin, b"")
    if known and hello.nonce and known != hello.nonce:
        return errors.aa_twin(hello.origin)
    if is_asked and hello.numbers.get(region.origin, 0) > sent:
        return errors.aa_ahead(region.origin, sent)
    return b""


def _nonce(word: bytes) -> bytes:
    if len(word) > NONCE_MAX_BYTES:
        raise BadHello("a nonce is too long")
    return b"" if word == NONE else word


def _number(word: bytes, low: int, high: int) -> int:
    number = parse_integer(word)
    if number is None or not low <= number <= high:
        raise BadHello("a number is none, or out of range")
    return number


def _numbers(word: bytes) -> Numbers:
    try:
        return decode_numbers(word)
    except BadVector:
        raise BadHello("what it knows is no number vector") from None


def as_reply(error: BadHello) -> CommandError:
    """Return the error for the sender of such words."""
    return CommandError(errors.aa_malformed(str(error).encode()))
