"""What the configuration says of values that files of Redis bring: when they are large."""

from __future__ import annotations

from typing import Final

from headrace.server.config.config import Config
from headrace.server.config.parameters import BY_NAME

_SIZES: Final = (
    "list-max-listpack-size",
    "hash-max-listpack-entries",
    "hash-max-listpack-value",
    "set-max-intset-entries",
    "set-max-listpack-entries",
    "set-max-listpack-value",
    "zset-max-listpack-entries",
    "zset-max-listpack-value",
)
_IDMP: Final = ("stream-idmp-duration", "stream-idmp-maxsize")


def sizes(config: Config) -> dict[str, int]:
    """Up to which sizes values are small, by the names of parameters.

    They decide how a value is kept, and not what it is. So a record in the append-only file may
    depend on them.
    """
    return _values(config, _SIZES)


def defaults(config: Config) -> dict[str, int]:
    """What a value gets where a file says nothing, by the names of parameters."""
    return _values(config, (*_SIZES, *_IDMP))


def _values(config: Config, names: tuple[str, ...]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name in names:
        value = config.value(BY_NAME[name.encode()])
        assert isinstance(value, int)
        found[name] = value
    return found
