"""DEBUG PROTOCOL: one reply of each type, for tests of a client."""

from __future__ import annotations

from headrace.compat.errors import BAD_PROTOCOL_TYPE, PUSH_NEEDS_RESP3, CommandError
from headrace.protocol.packing import packed_replies
from headrace.protocol.replies import Attributed, BigNumber, Map, Push, Set, Verbatim

_AFTER_ATTRIBUTE = b"Some real reply following the attribute"
_BESIDE_PUSH = b"Some real reply following the push reply"


def sample_reply(kind: bytes, resp3: bool) -> object:
    """The values that Redis uses, so that a client's tests can run against either.

    Raises: CommandError for a type that there is not, and for a push in RESP2.
    """
    if kind == b"attrib":
        return Attributed([(b"key-popularity", [b"key:123", 90])], _AFTER_ATTRIBUTE)
    if kind == b"push":
        if not resp3:
            raise CommandError(PUSH_NEEDS_RESP3)
        # What is pushed while a command runs follows its reply.
        return packed_replies([_BESIDE_PUSH, Push([b"server-cpu-usage", 42])], True)
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
