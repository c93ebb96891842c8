"""What one region says of itself and of the others: INFO activeactive, as facts and problems."""

from __future__ import annotations

from typing import Final

from headrace.regions.knowledge.promises import FOLLOWED_MS
from headrace.regions.tools.asking import Asker, AskError
from headrace.regions.tools.columns import bytes_text, time_text

_PEER: Final = "aa_peer"
_LAG_MAX_MS: Final = 60_000  # where aa-max-lag-ms cannot be read


class Link:
    """What a region says of another one.

    Attributes:
        state: ``up``, or what else.
    """

    def __init__(self, region: int, line: str) -> None:
        facts, _, self.state = line.partition(",state=")
        pairs = [part.partition("=") for part in facts.split(",")]
        found = {name: value for name, _, value in pairs}
        self.region: Final = region
        self.lag_ms: Final = int(found["lag_ms"])
        self.answered_ms_ago: Final = int(found["answered_ms_ago"])
        self.missing: Final = int(found["missing_records"])
        self.unacknowledged: Final = int(found["unacknowledged_records"])
        self.unacknowledged_bytes: Final = int(found["unacknowledged_bytes"])
        self.copies: Final = int(found["full_copies"])
        self.clock_ahead_ms: Final = int(found["clock_ahead_ms"])


class Facts:
    """What a region has said.

    Attributes:
        address: where it is.
    """

    def __init__(self, address: str, info: str, lag_max_ms: int) -> None:
        self.address: Final = address
        self._found: dict[str, str] = {}
        self._warnings: list[str] = []
        self.links: list[Link] = []
        self._lag_max_ms: Final = lag_max_ms
        for line in info.splitlines():
            name, _, value = line.partition(":")
            if name.startswith(_PEER):
                self.links.append(Link(int(name[len(_PEER) :]), value))
            elif name == "aa_warning":
                self._warnings.append(value)
            else:
                self._found[name] = value
        self.region: Final = self._number("aa_region")
        self.database: Final = self._found["aa_database"]
        self.name: Final = f"region {self.region} ({address})"

    def _number(self, name: str) -> int:
        return int(self._found.get(name, "0"))

    def problems(self) -> list[str]:
        """Return what needs a person."""
        found: list[str] = []
        if not self._number("aa_writable"):
            found.append(f"it takes no writes: {self._found['aa_not_writable_because']}")
        resting = self._found["aa_resting_because"]
        if resting:
            found.append(f"it applies nothing of the others: {resting}")
        if self._number("aa_check_mismatches"):
            key = self._found["aa_check_mismatch_key"]
            found.append(f"its stream {key} differed from that of a region that knew the same")
        for link in self.links:
            if link.state == "forgotten":  # it may come back as a new one, or never
                continue
            if link.state != "up":
                found.append(f"region {link.region} is {link.state}")
            elif self._lag_max_ms and link.lag_ms > self._lag_max_ms:
                found.append(f"it is {time_text(link.lag_ms)} behind region {link.region}")
            if link.state == "up" and link.clock_ahead_ms > FOLLOWED_MS:
                ahead = time_text(link.clock_ahead_ms)
                found.append(
                    f"the clock of region {link.region} is {ahead} ahead: what that writes is not "
                    "stable before"
                )
        return found + self._warnings

    def row(self) -> list[str]:
        """Return what stands in the table of regions."""
        origin = f"{self.region}.{self._found['aa_epoch']}"
        numbers = self._found["aa_numbers"]
        records = sum([int(pair.partition("=")[2]) for pair in numbers.split(",") if "=" in pair])
        log_bytes = bytes_text(self._number("aa_backlog_bytes"))
        file_bytes = bytes_text(self._number("aa_log_bytes"))
        return [
            origin,
            self.address,
            "yes" if self._number("aa_writable") else "no",
            f"{records:,}",
            f"{log_bytes} ({file_bytes})",
            f"{self._number('aa_garbage_keys'):,}",
            f"{self._number('aa_checks'):,} ({self._number('aa_check_mismatches')})",
        ]

    def link_rows(self) -> list[list[str]]:
        """Return what stands in the table of links: this region pulls from each of the others.

        Why one is refused is left to ``problems``.
        """
        rows: list[list[str]] = []
        for link in self.links:
            waits = f"{link.unacknowledged:,} ({bytes_text(link.unacknowledged_bytes)})"
            heard = "never" if link.answered_ms_ago < 0 else time_text(link.answered_ms_ago)
            rows.append(
                [
                    f"{link.region} to {self.region}",
                    link.state.partition(":")[0],
                    time_text(link.lag_ms),
                    f"{link.missing:,}",
                    waits,
                    heard if heard == "never" else f"{heard} ago",
                    str(link.copies),
                ]
            )
        return rows


def facts_of(asker: Asker, address: str) -> Facts:
    """Return what the server at an address says.

    Raises:
        AskError: it does not answer, or is no region.
    """
    info = asker.ask("INFO", "activeactive")
    text = info.decode("utf-8", "replace") if isinstance(info, bytes) else ""
    if "aa_region:" not in text:
        raise AskError("it is no region: aa-region-id is 0")
    [limit] = asker.ask_all([["CONFIG", "GET", "aa-max-lag-ms"]])
    lag_max_ms = _LAG_MAX_MS
    if isinstance(limit, list) and len(limit) == 2:
        lag_max_ms = int(limit[1])
    try:
        return Facts(address, text, lag_max_ms)
    except (KeyError, ValueError):
        raise AskError("it says other things than this version of the tool knows") from None
