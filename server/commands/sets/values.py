"""What the commands on sets share: finding one, its limits, and replies of members."""

from __future__ import annotations

from typing import Final

from headrace.compat.errors import WRONGTYPE, CommandError
from headrace.protocol.packing import Packer
from headrace.protocol.replies import Packed
from headrace.server.config.config import Config
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import KeySpec
from headrace.storage.packed.strings import pack
from headrace.storage.set.limits import SetLimits
from headrace.storage.set.set import Set

READ_KEY: Final = (KeySpec("RO ACCESS"),)


def set_at(call: Call, key: bytes) -> Set | None:
    """The set of a key, or None, for a command that reads; raises WRONGTYPE."""
    value = call.lookup(key)
    if value is None or isinstance(value, Set):
        return value
    raise CommandError(WRONGTYPE)


def changeable(call: Call, key: bytes) -> Set | None:
    """The set of a key that may be about to change, or None; raises WRONGTYPE."""
    value = call.db.get(key, call.now_ms)
    if value is None or isinstance(value, Set):
        return value
    raise CommandError(WRONGTYPE)


class _Limits:
    """The limits that were used last."""

    def __init__(self) -> None:
        self.last = SetLimits(512, 128, 64)


_limits: Final = _Limits()


def set_limits(config: Config) -> SetLimits:
    """Up to which size sets are small."""
    last = _limits.last
    if (
        last.integers != config.set_max_intset_entries
        or last.elements != config.set_max_listpack_entries
        or last.element_bytes != config.set_max_listpack_value
    ):
        last = SetLimits(
            config.set_max_intset_entries,
            config.set_max_listpack_entries,
            config.set_max_listpack_value,
        )
        _limits.last = last
    return last


def all_members(call: Call, value: Set | None) -> Packed:
    """A reply of all members of a set."""
    out = Packer(call.session.resp3)
    if value is None:
        out.set(0)
    else:
        out.set(value.size())
        for piece in value.pieces():
            out.strings(piece)
    return out.packed()


def members_reply(call: Call, members: list[bytes]) -> Packed:
    """A reply of these members, as a set."""
    out = Packer(call.session.resp3)
    out.set(len(members))
    out.strings(pack(members))
    return out.packed()
