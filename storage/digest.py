"""A fingerprint of data: SHA-1 of each part, mixed so that places matter or do not.

Source: debug.c, mixDigest and xorDigest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from _hashlib import HASH

DIGEST_BYTES: Final = 20


def _plainly(value: float) -> bytes:
    return repr(value).encode()


class Digest:
    """A digest that parts are added to, with ``spelled`` for the doubles that it depends on."""

    def __init__(self, spelled: Callable[[float], bytes] = _plainly) -> None:
        from hashlib import sha1  # late: OpenSSL comes with it

        self.value = 0
        self.spelled: Final = spelled
        self._made: Final[Callable[..., HASH]] = sha1

    def toggle(self, part: bytes) -> None:
        """Add a part whose place does not matter."""
        self.value ^= int.from_bytes(self._sha1(part), "big")

    def mix(self, part: bytes) -> None:
        """Add a part whose place matters."""
        self.toggle(part)
        self.value = int.from_bytes(self._sha1(self.value.to_bytes(DIGEST_BYTES, "big")), "big")

    def mix_type(self, number: int) -> None:
        """Add Redis's number of a type."""
        self.mix(number.to_bytes(4, "big"))

    def _sha1(self, data: bytes) -> bytes:
        return self._made(data, usedforsecurity=False).digest()

    def hexadecimal(self) -> bytes:
        """Return the digest in forty digits."""
        return b"%040x" % self.value
