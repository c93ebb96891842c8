"""What a person can do about a link that is of no use: it stands behind the reason in the log."""

from __future__ import annotations

import logging
from typing import Final

from headrace.server.state import Server

log: Final = logging.getLogger("headrace")

_BY_CODE: Final = {
    "AASECRET": "Give both the same aa-secret",
    "NOAUTH": "That region has an aa-secret: give both the same",
    "AADATABASE": "One of the two belongs elsewhere: look at aa-peers and aa-database",
    "AAVERSION": "The link rests until then; nothing is lost",
    "AATWIN": (
        "Two servers are one region, or a copy of its folder runs besides. End one of them; it may "
        "come back with an empty folder and another aa-region-id"
    ),
    "AATLS": "Give both the same aa-tls, and certificates that each lets in",
    "AAFORGOTTEN": "Start that region with an empty folder, to let it take part again",
}
_BY_TEXT: Final = {
    "has to be upgraded": (
        "The link rests, and no data is passed over. It goes on when a later version is started"
    ),
    "cannot be applied": (
        "The link rests, and no data is passed over. Install the newer version of both in both; if "
        "they have it, keep a copy of both folders and report this"
    ),
    "address of the region that calls": "Give that region's own address there",
    "only another region may ask": "aa-peers has to name the aa-port of that region",
    "TLS: ": "Look at aa-tls and the certificates of both, and here at tls-expected-peer-name",
    "answers instead of region": "Look at aa-peers here, and at aa-region-id there",
    "aa-allow-plaintext": (
        "Turn aa-tls on, or allow plain text if the network between the two is protected otherwise"
    ),
}
_REFUSED_EVERY_MS: Final = 3_600_000
_MOST_REFUSED: Final = 1000  # hosts and reasons that are remembered


def warn_refused(server: Server, host: str, reason: str) -> None:
    """Say in the log that a region that called from a host was refused, the same once an hour."""
    told_ms = server.clients.refused_ms
    now_ms = server.clock.monotonic_ms()
    known = f"{host} {reason}"
    if known in told_ms and now_ms - told_ms[known] < _REFUSED_EVERY_MS:
        return
    if len(told_ms) >= _MOST_REFUSED:
        told_ms.clear()
    told_ms[known] = now_ms
    what_to_do = advice(reason)
    text = f"{reason}. {what_to_do}" if what_to_do else reason
    log.warning("Whoever called from %s at aa-port was refused: %s", host, text)


def advice(reason: str) -> str:
    """Return what to do about it; empty where it will mend by itself, or the reason says all."""
    found = _BY_CODE.get(reason.partition(" ")[0], "")
    if found:
        return found
    for text, sentence in _BY_TEXT.items():
        if text in reason:
            return sentence
    return ""
