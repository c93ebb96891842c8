"""Options: read once, checked whole, kept in objects that can be pickled and printed.

Names are those of Spark's Kafka source where the meaning is the same, and case does not matter.
Spark accepts any option in silence; here an unknown one is an error that names the nearest known.

A password is never an option's value, because Spark shows options in plans, logs and its web page.
Its place is an environment variable (``passwordEnv``) or a file (``passwordFile``) of whoever
connects: the driver and every executor.
"""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from pyspark_headrace.errors import OptionError
from pyspark_headrace.ids import (
    GREATEST,
    ID_MAX,
    LEAST,
    StreamID,
    before,
    parse_id,
    parse_moment,
)

READ: Final = "read"  # a batch
STREAM: Final = "readStream"
WRITE: Final = "write"  # a batch or a streaming query

_EVERYWHERE: Final = (READ, STREAM, WRITE)
_READERS: Final = (READ, STREAM)

NAMES: Final[dict[str, tuple[str, ...]]] = {
    "redis.url": _EVERYWHERE,
    "host": _EVERYWHERE,
    "port": _EVERYWHERE,
    "db": _EVERYWHERE,
    "username": _EVERYWHERE,
    "passwordEnv": _EVERYWHERE,
    "passwordFile": _EVERYWHERE,
    "clusterNodes": _EVERYWHERE,
    "sentinels": _EVERYWHERE,
    "sentinelMaster": _EVERYWHERE,
    "tls": _EVERYWHERE,
    "tlsCaFile": _EVERYWHERE,
    "tlsCertFile": _EVERYWHERE,
    "tlsKeyFile": _EVERYWHERE,
    "requestTimeoutMs": _EVERYWHERE,
    "fetchOffset.numRetries": _EVERYWHERE,
    "fetchOffset.retryIntervalMs": _EVERYWHERE,
    "path": _EVERYWHERE,
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
    "maxlen": (WRITE,),
    "minid": (WRITE,),
    "approximateTrim": (WRITE,),
    "pipelineDepth": (WRITE,),
    "maxInFlightBytes": (WRITE,),
}
# The names that lead to a server, in lower case.
CONNECTION_NAMES: Final = frozenset(
    name.lower() for name, uses in NAMES.items() if uses == _EVERYWHERE and name != "path"
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

FIELDS_FORMATS: Final = ("map", "pairs", "json")
MODES: Final = ("permissive", "dropmalformed", "failfast")
RESOURCES: Final = ("entries", "info", "groups", "consumers", "pending")
IDENTITIES: Final = ("auto", "column", "content", "ordinal", "marker", "none")
_WHICH: Final = ("subscribe", "subscribePattern", "assign", "path", "paths")
# What means nothing to the state of streams.
_OF_ENTRIES: Final = sorted(
    name
    for name, uses in NAMES.items()
    if READ in uses and uses != _EVERYWHERE and name not in (*_WHICH, "resource")
)
# What means nothing to rows that are not known again, or only by their place.
_OF_IIDS: Final = ("idColumn", "idmpProducers", "configureIdmp")
_IDLE: Final[dict[str, tuple[str, ...]]] = {
    "none": (*_OF_IIDS, "idScope", "writerId", "runId"),
    "marker": _OF_IIDS,
    "content": ("idColumn",),
    "ordinal": ("idColumn",),
}
DEFAULT_PORT: Final = 6379
SENTINEL_PORT: Final = 26_379
MOST_PORT: Final = 65_535
# Where a server and its password are looked for when no option names them.
URL_VARIABLE: Final = "HEADRACE_URL"
PASSWORD_VARIABLE: Final = "HEADRACE_PASSWORD"
_UNITS_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_UNITS_BYTES: Final = {"b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SIZE: Final = re.compile(r"(\d+)\s*(?:([kmgt])b?|b)?", re.ASCII)
_DURATION: Final = re.compile(rf"(\d+)\s*({'|'.join(_UNITS_MS)})?", re.ASCII)
TARGET_BYTES: Final = 64 << 20
MOST_POLL_MS: Final = 3_600_000
MOST_CUTS: Final = 256  # an offset is a line in a file: it does not grow without end


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
        """Whether an option was given."""
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


@dataclass(frozen=True)
class Connection:
    """Where the server is and how to talk to it. Holds the name of a secret, never the secret."""

    host: str = "localhost"
    port: int = DEFAULT_PORT
    unix_path: str = ""
    db: int = 0
    username: str = ""
    password_env: str = ""
    password_file: str = ""
    cluster_nodes: tuple[tuple[str, int], ...] = ()  # to be asked where the address is away
    sentinels: tuple[tuple[str, int], ...] = ()
    master: str = ""  # what they call the server that is wanted
    tls: bool = False
    tls_ca_file: str = ""
    tls_cert_file: str = ""
    tls_key_file: str = ""
    timeout_ms: int = 10_000
    retries: int = 5
    retry_ms: int = 500
    secret: bool = True  # whether a password is to be shown
    source: str = field(default="", compare=False)  # of the address: an option, or a variable

    @property
    def host_option(self) -> str:
        """Where the host was given, for messages."""
        return self.source or "option host"

    @property
    def tls_option(self) -> str:
        """What asked for TLS, for messages."""
        return f"{self.source} (rediss://)" if self.source else "option tls"

    def password(self) -> str:
        """The password, read where it lies; empty when there is none to send.

        Raises:
            OptionError: the place that the options name holds none.
        """
        if not self.secret:
            return ""
        if self.password_env:
            value = os.environ.get(self.password_env)
            if value is None:
                raise OptionError(f"passwordEnv: there is no variable {self.password_env} here")
            return value
        if self.password_file:
            try:
                return Path(self.password_file).read_text().strip()
            except UnicodeDecodeError:
                raise OptionError(f"passwordFile: {self.password_file} is not UTF-8") from None
            except (OSError, ValueError) as error:
                raise OptionError(f"passwordFile: {error}") from None
        return os.environ.get(PASSWORD_VARIABLE, "")

    @property
    def password_option(self) -> str:
        """Where the password is looked for, for messages."""
        if self.password_file:
            return f"passwordFile {self.password_file}"
        return f"passwordEnv {self.password_env}" if self.password_env else PASSWORD_VARIABLE

    def where(self) -> str:
        """The address, for messages."""
        if self.sentinels:
            return f"{self.master} of the sentinels"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.unix_path or f"{host}:{self.port}"

    @property
    def label(self) -> str:
        """The address and the database, for people: no user and no secret."""
        return f"{self.where()}/{self.db}" if self.db else self.where()


def connection_from(given: Given) -> Connection:
    """The connection that the options describe."""
    sentinels = _hosts(given, "sentinels", SENTINEL_PORT)
    if bool(sentinels) != given.has("sentinelMaster"):
        raise OptionError("options sentinels and sentinelMaster go together")
    url = given.text("redis.url")
    apart = [name for name in ("host", "port", "db", "username", "tls") if given.has(name)]
    if url is not None and apart:
        raise OptionError(f"options redis.url and {apart[0]} exclude each other")
    led = [name for name in ("redis.url", "host", "port", "clusterNodes") if given.has(name)]
    if sentinels and led:
        raise OptionError(f"options sentinels and {led[0]} exclude each other")
    source = "option redis.url"
    if url is None and not apart and not sentinels:
        url, source = os.environ.get(URL_VARIABLE) or None, URL_VARIABLE
    address = _from_parts(given) if url is None else _from_url(url, source)
    host = address.get("host", "")
    try:
        host.encode("idna")  # as it is looked up
    except UnicodeError:
        raise OptionError(f"{host!r} cannot be the name of a host") from None
    given.only_one_of("passwordEnv", "passwordFile")
    if given.has("tlsKeyFile") and not given.has("tlsCertFile"):
        raise OptionError("option tlsKeyFile wants tlsCertFile too")
    files = [name for name in ("tlsCaFile", "tlsCertFile", "tlsKeyFile") if given.has(name)]
    if files and not address["tls"]:
        raise OptionError(
            f"option {files[0]} means nothing without TLS: tls=true, or redis.url rediss://..."
        )
    return Connection(
        **address,
        source="" if url is None else source,
        cluster_nodes=_hosts(given, "clusterNodes", DEFAULT_PORT),
        sentinels=sentinels,
        master=given.text("sentinelMaster") or "",
        password_env=given.text("passwordEnv") or "",
        password_file=given.text("passwordFile") or "",
        tls_ca_file=given.text("tlsCaFile") or "",
        tls_cert_file=given.text("tlsCertFile") or "",
        tls_key_file=given.text("tlsKeyFile") or "",
        timeout_ms=given.integer("requestTimeoutMs", 10_000),
        retries=given.integer("fetchOffset.numRetries", 5, 0),
        retry_ms=given.integer("fetchOffset.retryIntervalMs", 500),
    )


def _hosts(given: Given, name: str, default_port: int) -> tuple[tuple[str, int], ...]:
    """An option that holds hosts and ports, with commas between."""
    text = given.text(name) or ""
    found = []
    for each in text.split(",") if text else []:
        try:
            parts = urlsplit(f"//{each.strip()}")
            port = parts.port or default_port
        except ValueError as error:
            raise OptionError(f"option {name}: {each.strip()}: {str(error).lower()}") from None
        if not parts.hostname or parts.path or parts.username is not None:
            raise OptionError(f"option {name}: {each.strip()!r} is not host or host:port")
        found.append((parts.hostname, port))
    return tuple(found)


def _from_parts(given: Given) -> dict[str, Any]:
    return {
        "host": given.text("host") or "localhost",
        "port": given.integer("port", DEFAULT_PORT, most=MOST_PORT),
        "db": given.integer("db", 0, 0),
        "username": given.text("username") or "",
        "tls": given.flag("tls", False),
    }


def _from_url(url: str, source: str) -> dict[str, Any]:
    shape = "redis://[user@]host[:port][/db], rediss://... or unix:///path[?db=n]"
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise OptionError(f"{source}: {error}; {shape} is wanted") from None
    if parts.password is not None:
        raise OptionError(
            f"{source} holds a password, which would show in plans and logs; name an environment "
            "variable with passwordEnv, or a file with passwordFile"
        )
    try:
        port = -1 if parts.port == 0 else parts.port
    except ValueError as error:  # "Port out of range 0-65535", or no number
        raise OptionError(f"{source}: {str(error).lower()}; {shape} is wanted") from None
    query = dict(parse_qsl(parts.query))
    db = parts.path.strip("/") if parts.scheme != "unix" else query.pop("db", "")
    fits = parts.scheme in ("redis", "rediss", "unix") and port != -1 and not query
    if not fits or (db and not db.isdecimal()):
        raise OptionError(f"{source}: {shape} is wanted")
    found: dict[str, Any] = {
        "db": int(db or 0),
        "username": unquote(parts.username or ""),
        "tls": parts.scheme == "rediss",
    }
    if parts.scheme == "unix":
        return {**found, "unix_path": parts.path}
    return {**found, "host": parts.hostname or "localhost", "port": port or DEFAULT_PORT}


@dataclass(frozen=True)
class Bound:
    """Where a stream's reading starts or ends: an ID, or a word for one.

    Attributes:
        word: ``earliest`` or ``latest``; empty when ``id`` counts.
        id: reading starts after it, or ends with it.
    """

    word: str = ""
    id: StreamID = LEAST


EARLIEST: Final = Bound("earliest")
LATEST: Final = Bound("latest")


@dataclass(frozen=True)
class Frame:
    """What the columns of a frame depend on; an option each."""

    resource: str = "entries"
    fields_format: str = "map"
    include_id: bool = True
    include_headers: bool = False
    include_corrupt: bool = False


def frame_options(options: Mapping[str, str]) -> Frame:
    """What the columns depend on.

    Raises:
        OptionError: an option is not known to any reader.
    """
    return _frame(Given(options, READ, STREAM))


def _frame(given: Given) -> Frame:
    return Frame(
        given.choice("resource", RESOURCES),
        given.choice("fieldsFormat", FIELDS_FORMATS),
        given.flag("includeId", True),
        given.flag("includeHeaders", False),
        given.flag("includeCorrupt", False),
    )


@dataclass(frozen=True)
class ReadOptions:
    """What a reader, for a batch or for a streaming query, has to know.

    Attributes:
        keys: the streams by name; ``pattern`` finds more of them.
        start, end: where reading starts and ends, of streams that ``starts`` and ``ends`` do not
            name.
        max_rows, max_bytes: the most entries of a micro-batch, and about the most bytes; 0 is all
            there are.
        target_bytes: about how many bytes a task reads.
        min_rows: fewer entries than that wait, up to ``max_delay_ms``.
    """

    connection: Connection
    keys: tuple[str, ...]
    pattern: str
    start: Bound
    starts: dict[str, Bound]
    end: Bound
    ends: dict[str, Bound]
    frame: Frame
    mode: str
    encoding: str
    fail_on_loss: bool
    fetch_count: int
    min_partitions: int
    max_rows_per_partition: int
    min_rows_per_partition: int
    target_bytes: int
    walk_limit: int
    max_rows: int = 0
    max_bytes: int = 0
    min_rows: int = 0
    max_delay_ms: int = 0
    poll_ms: int = 0
    mirror_group: str = ""

    def start_of(self, key: str) -> Bound:
        """Where the reading of a stream starts."""
        return self.starts.get(key, self.start)

    def end_of(self, key: str) -> Bound:
        """Where the reading of a stream ends."""
        return self.ends.get(key, self.end)


def read_options(options: Mapping[str, str], use: str) -> ReadOptions:
    """The options of ``spark.read`` or ``spark.readStream``.

    Args:
        use: ``READ`` or ``STREAM``.

    Raises:
        OptionError: an option is unknown, missing or does not fit.
    """
    given = Given(options, use)
    which = given.only_one_of(*_WHICH)
    if not which:
        raise OptionError(
            "which streams? Give one of subscribe (names), subscribePattern, assign, or load(name)"
        )
    keys, starts, ends = _subscribed(given, which)
    start = EARLIEST if use == READ else LATEST
    started_by = _only_bound(
        given, which, "startingOffsets", "startingTimestamp", "startingOffsetsByTimestamp"
    )
    if started_by:
        start, starts = _beginning(given, started_by, start)
    end = LATEST
    ended_by = _only_bound(given, which, "endingOffsets", "endingTimestamp")
    if ended_by:
        end, ends = _ending(given, ended_by)
    if which != "subscribePattern":
        _refuse_strangers(started_by, starts, keys)
        _refuse_strangers(ended_by, ends, keys)
    for key in sorted({"", *starts, *ends}):
        if _is_backwards(starts.get(key, start), ends.get(key, end)):
            which_end, which_start = ended_by or which, started_by or "the start"
            of = f" of stream {key}" if key else ""
            raise OptionError(f"option {which_end}: the end{of} is before {which_start}")
    frame = _frame(given)
    if frame.resource != "entries":
        given.refuse(_OF_ENTRIES, f"to resource={frame.resource}")
    if not given.has("minOffsetsPerTrigger"):
        given.refuse(["maxTriggerDelay"], "without minOffsetsPerTrigger")
    encoding = given.choice("encoding", ("utf-8", "latin-1"))
    min_rows = given.integer("minOffsetsPerTrigger", 0)
    max_rows = given.integer("maxOffsetsPerTrigger", 0)
    if max_rows and min_rows > max_rows:
        raise OptionError("option minOffsetsPerTrigger is above maxOffsetsPerTrigger")
    return ReadOptions(
        connection=connection_from(given),
        keys=keys,
        pattern=given.text("subscribePattern") or "",
        start=start,
        starts=starts,
        end=end,
        ends=ends,
        frame=frame,
        mode=_mode(given),
        encoding=encoding,
        fail_on_loss=given.flag("failOnDataLoss", True),
        fetch_count=given.integer("fetchCount", 2000),
        min_partitions=given.integer("minPartitions", 0),
        max_rows_per_partition=given.integer("maxRecordsPerPartition", 0),
        min_rows_per_partition=given.integer("minRowsPerPartition", 20_000),
        target_bytes=given.size_bytes("targetPartitionBytes", TARGET_BYTES),
        walk_limit=given.integer("planWalkLimit", 100_000, 0),
        max_rows=max_rows,
        max_bytes=given.size_bytes("maxBytesPerTrigger", 0),
        min_rows=min_rows,
        max_delay_ms=given.duration_ms("maxTriggerDelay", 15 * 60_000),
        poll_ms=given.integer("pollTimeoutMs", 200, 0, MOST_POLL_MS),
        mirror_group=given.text("mirrorGroup") or "",
    )


Bounds = dict[str, Bound]


def _subscribed(given: Given, which: str) -> tuple[tuple[str, ...], Bounds, Bounds]:
    """The streams that are named, and where each of them starts and ends if that is said there."""
    if which == "assign":
        return _assigned(given)
    if which == "paths":
        return tuple(sorted(set(json.loads(given.text(which) or "")))), {}, {}
    if which == "subscribePattern":
        return (), {}, {}
    return _names(given.text(which) or "", which), {}, {}


def _only_bound(given: Given, which: str, *options: str) -> str:
    """Which of these options is given; empty for none."""
    found = given.only_one_of(*options)
    if which == "assign" and found:
        raise OptionError(f"options assign and {found} exclude each other")
    return found


def _beginning(given: Given, option: str, start: Bound) -> tuple[Bound, Bounds]:
    """Where reading starts: by default, and of the streams that are named."""
    if option == "startingOffsets":
        return _offsets(given, option, start)
    return _start_by_time(given, option, start)


def _ending(given: Given, option: str) -> tuple[Bound, Bounds]:
    """Where reading ends: by default, and of the streams that are named."""
    if option != "endingOffsets":
        moment = parse_moment(given.text(option) or "", option)
        return Bound(id=before((moment, 0))), {}
    end, ends = _offsets(given, option, LATEST)
    if end == EARLIEST or EARLIEST in ends.values():
        raise OptionError("option endingOffsets: earliest is no end")
    return end, ends


def _refuse_strangers(option: str, named: Bounds, keys: tuple[str, ...]) -> None:
    strangers = sorted(set(named) - set(keys))
    if strangers:
        raise OptionError(f"option {option} names {strangers[0]}, which is not subscribed to")


def _is_backwards(start: Bound, end: Bound) -> bool:
    """Whether the bounds were mixed up; those that leave nothing between them were not."""
    return not start.word and not end.word and end.id < start.id


def _mode(given: Given) -> str:
    """What becomes of entries that do not fit; ``badValue`` is an older way to say it."""
    if given.only_one_of("mode", "badValue") == "badValue":
        bad_value = given.choice("badValue", ("null", "fail"))
        return "permissive" if bad_value == "null" else "failfast"
    return given.choice("mode", MODES)


def _names(text: str, option: str) -> tuple[str, ...]:
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise OptionError(f"option {option}: a stream without a name in {text!r}")
    return tuple(sorted(set(names)))


def _assigned(given: Given) -> tuple[tuple[str, ...], dict[str, Bound], dict[str, Bound]]:
    """``assign``: for each stream the first and the last ID, both included, or ``-`` and ``+``."""
    starts: dict[str, Bound] = {}
    ends: dict[str, Bound] = {}
    for key, pair in given.json_object("assign").items():
        fits = isinstance(pair, list) and len(pair) == 2
        if not fits or not all(isinstance(each, str) for each in pair):
            raise OptionError(f'option assign: {key} must have two IDs, such as ["-", "1700-0"]')
        try:
            first = LEAST if pair[0] == "-" else parse_id(pair[0])
            last = GREATEST if pair[1] == "+" else parse_id(pair[1], ID_MAX)
        except ValueError as error:
            raise OptionError(f"option assign: {error}") from None
        starts[key] = Bound(id=before(first))
        ends[key] = LATEST if last == GREATEST else Bound(id=last)
    return tuple(sorted(starts)), starts, ends


def _offsets(given: Given, option: str, default: Bound) -> tuple[Bound, dict[str, Bound]]:
    text = given.text(option) or ""
    if text.lower() in ("earliest", "latest"):
        return Bound(text.lower()), {}
    if not text.startswith("{"):
        raise OptionError(
            f"option {option}: {text!r} is neither earliest nor latest, nor JSON such as "
            '{"key":"1-0"}'
        )
    bounds: dict[str, Bound] = {}
    for key, value in given.json_object(option).items():
        if not isinstance(value, str):
            raise OptionError(f"option {option}: the ID of {key} must be a string")
        if value in ("earliest", "latest"):
            bounds[key] = Bound(value)
            continue
        try:
            bounds[key] = Bound(id=parse_id(value))
        except ValueError as error:
            raise OptionError(f"option {option}: {error}") from None
    return default, bounds


def _start_by_time(given: Given, option: str, default: Bound) -> tuple[Bound, dict[str, Bound]]:
    if option == "startingTimestamp":
        moment = parse_moment(given.text(option) or "", option)
        return Bound(id=before((moment, 0))), {}
    bounds: dict[str, Bound] = {}
    for key, value in given.json_object(option).items():
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise OptionError(f"option {option}: the time of {key} must be a number or a string")
        bounds[key] = Bound(id=before((parse_moment(str(value), option), 0)))
    return default, bounds


@dataclass(frozen=True)
class WriteOptions:
    """What a sink has to know.

    Attributes:
        stream: the stream to append to; empty when a column names it, row by row.
        error_stream: takes the rows that cannot be written; empty where these are an error.
        identity: how a row is known again, see ``identity``.
        run_id: makes a batch job's rows the same rows when the job runs again.
        producers: how many producer ids share the rows of a writer.
        trim: the words of XADD that cap the stream.
    """

    connection: Connection
    stream: str
    error_stream: str
    identity: str
    id_column: str
    id_scope: str
    writer_id: str
    run_id: str
    producers: int
    configure_idmp: bool
    depth: int
    max_bytes: int
    trim: tuple[str, ...] = field(default=())


def write_options(options: Mapping[str, str]) -> WriteOptions:
    """The options of ``df.write`` or ``df.writeStream``.

    Raises:
        OptionError: an option is unknown, missing or does not fit.
    """
    given = Given(options, WRITE)
    target = given.only_one_of("stream", "path")
    identity = given.choice("identity", IDENTITIES)
    given.refuse(_IDLE.get(identity, ()), f"to identity={identity}")
    stream = (given.text(target) or "") if target else ""
    error_stream = given.text("errorStream") or ""
    if error_stream and error_stream == stream:
        raise OptionError("option errorStream names the stream that is written to")
    return WriteOptions(
        connection=connection_from(given),
        stream=stream,
        error_stream=error_stream,
        identity=identity,
        id_column=given.text("idColumn") or "",
        id_scope=given.choice("idScope", ("batch", "query")),
        writer_id=given.text("writerId") or "",
        run_id=given.text("runId") or "",
        producers=given.integer("idmpProducers", 2048),
        configure_idmp=given.flag("configureIdmp", False),
        depth=given.integer("pipelineDepth", 1000),
        max_bytes=given.size_bytes("maxInFlightBytes", 4 << 20),
        trim=_trim_words(given),
    )


def _trim_words(given: Given) -> tuple[str, ...]:
    how = given.only_one_of("maxlen", "minid")
    exact = not given.flag("approximateTrim", True)
    if not how:
        given.refuse(["approximateTrim"], "without maxlen or minid")
        return ()
    if how == "maxlen":
        threshold = str(given.integer("maxlen", 0, 0))
    else:
        threshold = given.text("minid") or ""
        try:
            parse_id(threshold)
        except ValueError as error:
            raise OptionError(f"option minid: {error}") from None
    return (how.upper(), "=" if exact else "~", threshold)
