"""Options as a user gave them: known by their names, and taken one by one.

Names are those of Spark's Kafka source where the meaning is the same, and case does not matter.
Spark accepts any option in silence; here an unknown one is an error that names the nearest known.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pyspark_headrace.errors import OptionError

READ: Final = "read"  # a batch
STREAM: Final = "readStream"
WRITE: Final = "write"  # a batch or a streaming query

EVERYWHERE: Final = (READ, STREAM, WRITE)
_READERS: Final = (READ, STREAM)

NAMES: Final[dict[str, tuple[str, ...]]] = {
    "redis.url": EVERYWHERE,
    "host": EVERYWHERE,
    "port": EVERYWHERE,
    "db": EVERYWHERE,
    "username": EVERYWHERE,
    "passwordEnv": EVERYWHERE,
    "passwordFile": EVERYWHERE,
    "clusterNodes": EVERYWHERE,
    "sentinels": EVERYWHERE,
    "sentinelMaster": EVERYWHERE,
    "tls": EVERYWHERE,
    "tlsCaFile": EVERYWHERE,
    "tlsCertFile": EVERYWHERE,
    "tlsKeyFile": EVERYWHERE,
    "requestTimeoutMs": EVERYWHERE,
    "fetchOffset.numRetries": EVERYWHERE,
    "fetchOffset.retryIntervalMs": EVERYWHERE,
    "path": EVERYWHERE,
    "paths": _READERS,
    "subscribe": _READERS,
    "subscribePattern": _READERS,
    "assign": _READERS,
    "startingOffsets": _READERS,
    "startingTimestamp": _READERS,
    "startingOffsetsByTimestamp": _READERS,
    "endingOffsets": (READ,),
    "endingTimestamp": _READERS,
    "maxOffsetsPerTrigger": (STREAM,),
    "maxBytesPerTrigger": (STREAM,),
    "minOffsetsPerTrigger": (STREAM,),
    "maxTriggerDelay": (STREAM,),
    "minPartitions": _READERS,
    "maxRecordsPerPartition": _READERS,
    "minRowsPerPartition": _READERS,
    "targetPartitionBytes": _READERS,
    "failOnDataLoss": _READERS,
    "fetchCount": _READERS,
    "planWalkLimit": _READERS,
    "pollTimeoutMs": (STREAM,),
    "mirrorGroup": (STREAM,),
    "includeId": _READERS,
    "includeHeaders": _READERS,
    "includeCorrupt": _READERS,
    "fieldsFormat": _READERS,
    "mode": _READERS,
    "badValue": _READERS,
    "encoding": _READERS,
    "resource": (READ,),
    "stream": (WRITE,),
    "errorStream": (WRITE,),
    "identity": (WRITE,),
    "idColumn": (WRITE,),
    "idScope": (WRITE,),
    "writerId": (WRITE,),
    "runId": (WRITE,),
    "idmpProducers": (WRITE,),
    "configureIdmp": (WRITE,),
    "idmpMaxsize": (WRITE,),
    "failOnForgotten": (WRITE,),
    "maxlen": (WRITE,),
    "minid": (WRITE,),
    "approximateTrim": (WRITE,),
    "pipelineDepth": (WRITE,),
    "maxInFlightBytes": (WRITE,),
}
# The names that lead to a server, in lower case.
CONNECTION_NAMES: Final = frozenset(
    name.lower() for name, uses in NAMES.items() if uses == EVERYWHERE and name != "path"
)
_BY_LOWER: Final = {name.lower(): name for name in NAMES}
# What Spark puts beside our options by itself.
_OF_SPARK: Final = {"checkpointlocation", "queryname"}
_ALSO: Final = {"redis.group": "mirrorgroup"}
# Names of other sources (Kafka's, spark-redis's) that do not look like ours.
_ELSEWHERE: Final = {
    "kafka.bootstrap.servers": "redis.url",
    "groupidprefix": "mirrorGroup",
    "kafka.group.id": "mirrorGroup",
    "topic": "stream",
    "stream.keys": "subscribe",
    "stream.offsets": "startingOffsets",
    "stream.group.name": "mirrorGroup",
    "stream.parallelism": "minPartitions",
    "stream.read.batch.size": "fetchCount",
    "stream.read.block": "pollTimeoutMs",
}
# What somebody may well try; the answer is better than "unknown".
_BY_VALUE: Final = {"password", "auth", "redis.password", "spark.redis.auth", "redis.auth"}
_UNITS_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_UNITS_BYTES: Final = {"b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SIZE: Final = re.compile(r"(\d+)\s*(?:([kmgt])b?|b)?", re.ASCII)
_DURATION: Final = re.compile(rf"(\d+)\s*({'|'.join(_UNITS_MS)})?", re.ASCII)


def uses_of(name: str) -> tuple[str, ...]:
    """Return what an option is for; nothing where there is none of that name."""
    lower = name.lower()
    known = _BY_LOWER.get(_ALSO.get(lower, lower))
    return () if known is None else NAMES[known]


class Given:
    """The options as given, taken one by one; a wrong one is refused with what is right."""

    def __init__(self, given: Mapping[str, str], *uses: str) -> None:
        self._values: dict[str, str] = {}
        for name, value in given.items():
            lower = name.lower()
            self._check_name(_ALSO.get(lower, lower), uses)
            if _ALSO.get(lower, lower) in self._values:
                raise OptionError(f"options {_BY_LOWER[_ALSO[lower]]} and {lower} are the same")
            self._values[_ALSO.get(lower, lower)] = value

    def _check_name(self, name: str, uses: tuple[str, ...]) -> None:
        if name in _OF_SPARK:
            return
        if name in _BY_VALUE:
            raise OptionError(
                f"option {name}: a password would show in plans and logs; name an environment "
                "variable with passwordEnv, or a file with passwordFile"
            )
        known = _BY_LOWER.get(name)
        if known is None:
            right = [each for each, its in NAMES.items() if set(uses) & set(its)]
            near = difflib.get_close_matches(name, [each.lower() for each in right], 1, 0.5)
            meant = _BY_LOWER[near[0]] if near else ""
            if _ELSEWHERE.get(name) in right:
                meant = _ELSEWHERE[name]
            hint = f"; did you mean {meant}?" if meant else ""
            raise OptionError(f"unknown option {name}{hint}")
        if not set(uses) & set(NAMES[known]):
            raise OptionError(
                f"option {known} is for {' and '.join(NAMES[known])}, and means nothing to "
                f"{' or '.join(uses)}"
            )

    def has(self, name: str) -> bool:
        """Return whether an option was given."""
        return name.lower() in self._values

    def text(self, name: str) -> str | None:
        """The value of an option; None when it was not given."""
        value = self._values.get(name.lower())
        if value is not None and not value:
            raise OptionError(f"option {name} is empty")
        return value

    def integer(self, name: str, default: int, least: int = 1, most: int | None = None) -> int:
        """A whole number that is neither below ``least`` nor above ``most``."""
        value = self.text(name)
        if value is None:
            return default
        try:
            number = int(value)
        except ValueError:
            raise OptionError(f"option {name}: {value!r} is not a whole number") from None
        if number < least:
            raise OptionError(f"option {name}: {number} is below {least}")
        if most is not None and number > most:
            raise OptionError(f"option {name}: {number} is above {most}")
        return number

    def duration_ms(self, name: str, default: int) -> int:
        """A length of time such as ``15m``, in milliseconds."""
        value = self.text(name)
        if value is None:
            return default
        found = _DURATION.fullmatch(value.strip().lower())
        if found is None:
            raise OptionError(f"option {name}: {value!r} is no time such as 500ms, 30s, 15m or 2h")
        return int(found[1]) * _UNITS_MS[found[2] or "ms"]

    def size_bytes(self, name: str, default: int) -> int:
        """A size such as ``64m``, in bytes."""
        value = self.text(name)
        if value is None:
            return default
        found = _SIZE.fullmatch(value.strip().lower())
        size = int(found[1]) * _UNITS_BYTES[found[2] or "b"] if found else 0
        if not size:
            raise OptionError(
                f"option {name}: {value!r} is no size such as 1000000, 512k, 64m or 1g"
            )
        return size

    def flag(self, name: str, default: bool) -> bool:
        """True or false."""
        value = self.text(name)
        if value is None:
            return default
        if value.lower() not in ("true", "false"):
            raise OptionError(f"option {name}: {value!r} is neither true nor false")
        return value.lower() == "true"

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        """One of some words; the first of them is the default."""
        value = self.text(name)
        if value is None:
            return choices[0]
        if value.lower() not in choices:
            near = difflib.get_close_matches(value.lower(), choices, 1, 0.5)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise OptionError(f"option {name}: {value!r} is none of {', '.join(choices)}{hint}")
        return value.lower()

    def only_one_of(self, *names: str) -> str:
        """The one of ``names`` that was given; empty when none was."""
        found = [name for name in names if self.has(name)]
        if len(found) > 1:
            raise OptionError(f"options {' and '.join(found)} exclude each other")
        return found[0] if found else ""

    def refuse(self, names: Iterable[str], why: str) -> None:
        """Refuse options that mean nothing beside others.

        Raises:
            OptionError: one of them is given.
        """
        for name in names:
            if self.has(name):
                raise OptionError(f"option {name} means nothing {why}")

    def json_object(self, name: str) -> dict[str, Any]:
        """A JSON object that is not empty; the option was given."""
        text = self.text(name)
        assert text is not None
        try:
            value = json.loads(text)
        except ValueError as error:
            raise OptionError(f"option {name} is not JSON: {error}") from None
        if not isinstance(value, dict) or not value:
            raise OptionError(f"option {name}: a JSON object with the streams as names is wanted")
        return value
