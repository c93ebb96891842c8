"""Both sides show that they have the secret, and neither sends it.

The side that asks sends a nonce and gets one. It sends a code over both, made with the secret, and
is answered with another code over both. The codes begin with different words, so that one cannot be
sent back as the other; and who asks has to show first, so that a stranger gets nothing to guess
the secret from.
"""

from __future__ import annotations

import os
from _operator import _compare_digest  # hmac's own, without the OpenSSL that hmac loads
from typing import Final

NONCE_BYTES: Final = 32
_ASKING: Final = b"headrace asks\n"
_ANSWERING: Final = b"headrace answers\n"


def new_nonce() -> bytes:
    """A nonce, as text."""
    return os.urandom(NONCE_BYTES).hex().encode()


def is_nonce(word: bytes) -> bool:
    """Return whether a word may be a nonce of the other side."""
    return len(word) == 2 * NONCE_BYTES


def asking_code(secret: bytes, asking: bytes, answering: bytes) -> bytes:
    """Return what the side that asks shows for these nonces."""
    return _code(secret, _ASKING, asking, answering)


def answering_code(secret: bytes, asking: bytes, answering: bytes) -> bytes:
    """Return what the side that is asked shows for these nonces."""
    return _code(secret, _ANSWERING, asking, answering)


def same(code: bytes, other: bytes) -> bool:
    """Return whether two codes are the same; how long that takes does not depend on them."""
    return _compare_digest(code, other)


def _code(secret: bytes, role: bytes, asking: bytes, answering: bytes) -> bytes:
    import hmac  # late: OpenSSL comes with it
    from hashlib import sha256

    text = b"%b%b\n%b" % (role, asking, answering)
    return hmac.new(secret, text, sha256).hexdigest().encode()
