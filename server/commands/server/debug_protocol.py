"""DEBUG PROTOCOL: one reply of each type, for those who test a client."""

from __future__ import annotations

from headrace.compat.errors import BAD_PROTOCOL_TYPE, PUSH_NEEDS_RESP3, CommandError
from headrace.protocol.replies import BigNumber, Encoded, Map, Push, Set, Verbatim, encode

_AFTER_ATTRIBUTE = b"Some real reply following the attribute"
_BESIDE_PUSH = b"Some real reply following the push reply"
_POPULARITY = b"|1\r\n$14\r\nkey-popularity\r\n*2\r\n$7\r\nkey:123\r\n:90\r\n"


def sample_reply(kind: bytes, resp3: bool) -> object:
    """The values that Redis uses, so that a client's tests can run against either.

    Raises: CommandError for a type that there is not, and for a push in RESP2.
    """
    if kind == b"attrib":
        # Attributes come before a reply and are none themselves.
        return Encoded((_POPULARITY if resp3 else b"") + encode(_AFTER_ATTRIBUTE, resp3))
    if kind == b"push":
        if not resp3:
            raise CommandError(PUSH_NEEDS_RESP3)
        # What is pushed while a command runs follows its reply.
        return Encoded(encode(_BESIDE_PUSH, True) + encode(Push([b"server-cpu-usage", 42]), True))
    if kind not in _SAMPLES:
        raise CommandError(BAD_PROTOCOL_TYPE)
    return _SAMPLES[kind]


_SAMPLES: dict[bytes, object] = {
    b"string": b"Hello World",
    b"integer": 12345,
    b"double": 3.141,
    b"bignum": BigNumber(1234567999999999999999999999999999999),
    b"null": None,
    b"array": [0, 1, 2],
    b"set": Set([0, 1, 2]),
    b"map": Map([(0, False), (1, True), (2, False)]),
    b"verbatim": Verbatim(b"This is a verbatim\nstring"),
    b"true": True,
    b"false": False,
}
