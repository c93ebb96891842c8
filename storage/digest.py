"""A fingerprint of data: SHA-1 of each part, mixed so that places matter or do not.

Source: debug.c, mixDigest and xorDigest.
"""

from __future__ import annotations

from typing import Final

DIGEST_BYTES: Final = 20


class Digest:
    """A digest that parts are added to."""

    def __init__(self) -> None:
        self.value = 0

    def toggle(self, part: bytes) -> None:
        """Add a part whose place does not matter."""
        self.value ^= int.from_bytes(_sha1(part), "big")

    def mix(self, part: bytes) -> None:
        """Add a part whose place matters."""
        self.toggle(part)
        self.value = int.from_bytes(_sha1(self.value.to_bytes(DIGEST_BYTES, "big")), "big")

    def mix_type(self, number: int) -> None:
        """Add Redis's number of a type."""
        self.mix(number.to_bytes(4, "big"))

    def hexadecimal(self) -> bytes:
        """Forty digits."""
        return b"%040x" % self.value


def _sha1(data: bytes) -> bytes:
    from hashlib import sha1  # late: OpenSSL comes with it

    return sha1(data, usedforsecurity=False).digest()
