"""Kinds of configuration parameter that take several words or a grammar of their own."""

from __future__ import annotations

import errno
import os
from importlib import import_module
from socket import AF_INET6, inet_pton
from typing import Final, NamedTuple, cast

from headrace.compat.event_classes import flags_of, letters_of
from headrace.compat.parameters import (
    BadValue,
    Parameter,
    Text,
    loose_integer,
    memory_size,
    memory_text,
    text,
)
from headrace.protocol.requests import quoted
from headrace.storage.sharing import REGION_MAX

MAX_BIND_ADDRESSES: Final = 16
MAX_SAVE_CHANGES: Final = (1 << 31) - 1
BAD_SAVE: Final = "Invalid save parameters"
TOO_MANY_ADDRESSES: Final = "Too many bind addresses specified."
BAD_LIMIT_COUNT: Final = "Wrong number of arguments in buffer limit configuration."
BAD_LIMIT_CLASS: Final = "Invalid client class specified in buffer limit configuration."
BAD_LIMIT: Final = "Error in hard, soft or soft_seconds setting in buffer limit configuration."
BAD_PERCENTILES: Final = "Invalid latency-tracking-info-percentiles parameters"
PERCENTILES_OUT_OF_RANGE: Final = (
    "latency-tracking-info-percentiles parameters should sit between [0.0,100.0]"
)
BAD_PEERS: Final = "Peers are given as '<region> <host> <port>', separated by commas"
BAD_PEER_REGION: Final = f"The number of a region is 1 to {REGION_MAX}"
PEER_TWICE: Final = "An address stands twice among the peers"
BAD_HOST_NAME: Final = "Hostnames may only contain alphanumeric characters, hyphens or dots"
HOST_NAME_MAX_BYTES: Final = 256
ADDRESS_MAX_BYTES: Final = 46
BAD_EVENT_CLASS: Final = "Invalid event class character. Use 'Ag$lshzxeKEtmdnocaSTIV'."
STRANGE_SPACE: Final = (
    "tls-expected-peer-name must not contain whitespace other than spaces separating names; "
    "use an empty string to disable it"
)
NO_NAME: Final = "tls-expected-peer-name contains no usable name; use an empty string to disable it"

SavePoints = list[tuple[int, int]]


class Save(Parameter):
    """Save points; kept as a list of (seconds, changes)."""

    def parse(self, words: list[bytes], current: object) -> object:
        if words == [b""]:
            return []
        if len(words) % 2:
            raise BadValue(BAD_SAVE)
        points: SavePoints = []
        for at in range(0, len(words), 2):
            seconds = loose_integer(words[at])
            changes = loose_integer(words[at + 1])
            if seconds is None or changes is None or seconds < 1 or changes < 0:
                raise BadValue(BAD_SAVE)
            points.append((seconds, min(changes, MAX_SAVE_CHANGES)))
        return points

    def show(self, value: object) -> bytes:
        return b" ".join([b"%d %d" % point for point in cast("SavePoints", value)])

    def lines(self, value: object) -> list[tuple[bytes, bool]]:
        """Return a line for each point, and one that says so when there is none."""
        points = cast("SavePoints", value)
        if not points:
            return [(b'save ""', True)]
        return [(b"save %d %d" % point, True) for point in points]

    def range_text(self) -> str:
        return '`<seconds> <changes>` pairs, or `""` for never'


class Bind(Parameter):
    """Addresses to listen at; kept as a list, a leading ``-`` included."""

    def parse(self, words: list[bytes], current: object) -> object:
        if words == [b""]:
            return []
        if len(words) > MAX_BIND_ADDRESSES:
            raise BadValue(TOO_MANY_ADDRESSES)
        return words

    def show(self, value: object) -> bytes:
        assert isinstance(value, list)
        return b" ".join(value)

    def lines(self, value: object) -> list[tuple[bytes, bool]]:
        if value == self.default:
            return []
        return [(b"%b %b" % (self.wire, self.show(value) or b'""'), True)]

    def range_text(self) -> str:
        return "up to 16 addresses; `*` and `-::*` mean all; a leading `-` lets one be missing"


class HostName(Text):
    """The name of a machine, or nothing."""

    def parse(self, words: list[bytes], current: object) -> object:
        word = words[0]
        if len(word) >= HOST_NAME_MAX_BYTES:
            raise BadValue(f"Hostnames must be less than {HOST_NAME_MAX_BYTES} characters")
        if word and not _is_host_name(word):
            raise BadValue(BAD_HOST_NAME)
        return word


def _is_host_name(word: bytes) -> bool:
    return (word.replace(b"-", b"").replace(b".", b"") or b"0").isalnum()


def _is_ipv6(word: bytes) -> bool:
    try:
        inet_pton(AF_INET6, os.fsdecode(word))
    except (OSError, ValueError):
        return False
    return True


class Address(Text):
    """The address or the name of a machine, or nothing."""

    def parse(self, words: list[bytes], current: object) -> object:
        if len(words[0]) >= ADDRESS_MAX_BYTES:
            reason = f"Hostnames for {self.name} must be less than {ADDRESS_MAX_BYTES} characters"
            raise BadValue(reason)
        if words[0] and not _is_host_name(words[0]) and not _is_ipv6(words[0]):
            raise BadValue(BAD_HOST_NAME)
        return words[0]


class OutputLimit(NamedTuple):
    """The limits of output that waits for a client of one class; 0 is no limit.

    More than ``hard_bytes`` disconnects at once, more than ``soft_bytes`` after ``soft_s`` seconds.
    """

    hard_bytes: int
    soft_bytes: int
    soft_s: int


LIMIT_NORMAL: Final = 0
LIMIT_REPLICA: Final = 1
LIMIT_PUBSUB: Final = 2
_LIMIT_CLASSES: Final[dict[bytes, int]] = {
    b"normal": LIMIT_NORMAL,
    b"slave": LIMIT_REPLICA,
    b"replica": LIMIT_REPLICA,
    b"pubsub": LIMIT_PUBSUB,
}


class OutputLimits(Parameter):
    """Limits of the three client classes; kept as a list indexed by the ``LIMIT_`` numbers."""

    def first(self, words: list[bytes]) -> object:
        return self.parse(words, [OutputLimit(0, 0, 0)] * 3)

    def parse(self, words: list[bytes], current: object) -> object:
        """Change the classes that are named; raises BadValue when one group of four is wrong."""
        if len(words) % 4:
            raise BadValue(BAD_LIMIT_COUNT)
        limits = list(cast("list[OutputLimit]", current))
        for at in range(0, len(words), 4):
            index = _LIMIT_CLASSES.get(words[at].lower())
            if index is None:
                raise BadValue(BAD_LIMIT_CLASS)
            hard = memory_size(words[at + 1])
            soft = memory_size(words[at + 2])
            soft_s = loose_integer(words[at + 3])
            if hard is None or soft is None or soft_s is None or soft_s < 0:
                raise BadValue(BAD_LIMIT)
            limits[index] = OutputLimit(hard, soft, soft_s)
        return limits

    def show(self, value: object) -> bytes:
        limits = cast("list[OutputLimit]", value)
        named = zip((b"normal", b"slave", b"pubsub"), limits, strict=True)
        return b" ".join([b"%b %d %d %d" % (name, *limit) for name, limit in named])

    def lines(self, value: object) -> list[tuple[bytes, bool]]:
        defaults = cast("list[OutputLimit]", self.default)
        lines: list[tuple[bytes, bool]] = []
        for index, name in enumerate((b"normal", b"replica", b"pubsub")):
            limit = cast("list[OutputLimit]", value)[index]
            hard = memory_text(limit.hard_bytes)
            soft = memory_text(limit.soft_bytes)
            line = b"%b %b %b %b %d" % (self.wire, name, hard, soft, limit.soft_s)
            lines.append((line, limit != defaults[index]))
        return lines

    def range_text(self) -> str:
        return "`<normal, replica or pubsub> <hard> <soft> <soft seconds>`, once or more"


class PolicyLines(Parameter):
    """Policies by patterns, a list of lines; their wing is imported where there are some."""

    def parse(self, words: list[bytes], current: object) -> object:
        if words == [b""] or not words:
            return []
        lines = import_module("headrace.policies.policy").lines_of
        return lines(words, cast("list[bytes]", current or []))

    def show(self, value: object) -> bytes:
        return b" ; ".join(cast("list[bytes]", value))

    def lines(self, value: object) -> list[tuple[bytes, bool]]:
        return [(b"%b %b" % (self.wire, line), True) for line in cast("list[bytes]", value)]

    def range_text(self) -> str:
        return "`<key pattern> [group <pattern>] <name> <value> ...`, once or more"


class PeerAddress(NamedTuple):
    """The address of another region, which has the number ``region``."""

    region: int
    host: bytes
    port: int


class Peers(Parameter):
    """The other regions; kept as a list of ``PeerAddress``, in the order of their numbers.

    One that has standbys may have several addresses, which stay in the given order.
    """

    def parse(self, words: list[bytes], current: object) -> object:
        whole = b" ".join(words)
        if not whole.strip():
            return []
        peers = [_peer(part.split()) for part in whole.split(b",")]
        if len(set(peers)) < len(peers):
            raise BadValue(PEER_TWICE)
        return sorted(peers, key=lambda peer: peer.region)

    def show(self, value: object) -> bytes:
        return b", ".join([b"%d %b %d" % peer for peer in cast("list[PeerAddress]", value)])

    def rewritten(self, value: object) -> bytes:
        """Return the line in quotes, because of its commas."""
        return b'"%b"' % self.show(value)

    def range_text(self) -> str:
        return "`<region> <host> <port>`, separated by commas"


class Percentiles(Parameter):
    """Percentiles to show; kept as a list of float."""

    def parse(self, words: list[bytes], current: object) -> object:
        if words == [b""]:
            return []
        values: list[float] = []
        for word in words:
            try:
                value = float(word.decode("ascii"))
            except ValueError:
                raise BadValue(BAD_PERCENTILES) from None
            if value != value or b"_" in word or word.strip() != word:
                raise BadValue(BAD_PERCENTILES)
            if not 0.0 <= value <= 100.0:
                raise BadValue(PERCENTILES_OUT_OF_RANGE)
            values.append(value)
        return values

    def show(self, value: object) -> bytes:
        assert isinstance(value, list)
        return b" ".join([f"{each:.6f}".rstrip("0").rstrip(".").encode() for each in value])

    def lines(self, value: object) -> list[tuple[bytes, bool]]:
        """Return a line in any case, so that none is not taken for the default."""
        return [(b"%b %b" % (self.wire, self.show(value) or b'""'), True)]

    def range_text(self) -> str:
        return '0 to 100, any number of them; `""` for none'


class KeyspaceEvents(Parameter):
    """Events to publish; kept as bits, see ``compat.event_classes``."""

    def parse(self, words: list[bytes], current: object) -> object:
        flags = flags_of(words[0])
        if flags is None:
            raise BadValue(BAD_EVENT_CLASS)
        return flags

    def show(self, value: object) -> bytes:
        assert isinstance(value, int)
        return letters_of(value)

    def rewritten(self, value: object) -> bytes:
        return quoted(self.show(value))

    def range_text(self) -> str:
        return "letters of `Ag$lshzxeKEtmdnocaSTIV`"


class Directory(Parameter):
    """The folder of the data files; kept as an absolute path."""

    def first(self, words: list[bytes]) -> object:
        """Return no value, because the folder is the one in which the server is started."""
        return b""

    def parse(self, words: list[bytes], current: object) -> object:
        """Raises BadValue, with the system's words, when the process may not go there."""
        path = os.path.normpath(os.path.join(text(current), words[0]))
        reason = 0
        if not words[0] or not os.path.exists(path):
            reason = errno.ENOENT
        elif not os.path.isdir(path):
            reason = errno.ENOTDIR
        elif not os.access(path, os.X_OK):
            reason = errno.EACCES
        if reason:
            raise BadValue(os.strerror(reason))
        return path

    def lines(self, value: object) -> list[tuple[bytes, bool]]:
        """Return a line in any case: the folder at start is no default for another start."""
        return [(b"dir %b" % quoted(text(value)), True)]

    def range_text(self) -> str:
        return "a folder that exists"


class PeerNames(Text):
    """Names of hosts with spaces between them; kept as they were written."""

    def parse(self, words: list[bytes], current: object) -> object:
        value = words[0]
        if any(char in value for char in b"\t\n\v\f\r"):
            raise BadValue(STRANGE_SPACE)
        if value and not value.strip(b" "):
            raise BadValue(NO_NAME)
        return super().parse(words, current)


def _peer(words: list[bytes]) -> PeerAddress:
    """Raises BadValue for what is no region, host and port."""
    if len(words) != 3:
        raise BadValue(BAD_PEERS)
    region = loose_integer(words[0])
    port = loose_integer(words[2])
    if region is None or not 0 < region <= REGION_MAX:
        raise BadValue(BAD_PEER_REGION)
    if port is None or not 0 < port <= 65535:
        raise BadValue(BAD_PEERS)
    return PeerAddress(region, words[1], port)
