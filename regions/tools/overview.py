"""``headrace regions``: the state of regions as seen from those that can be asked, and problems."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Final

from headrace.persistence.errors import shown
from headrace.regions.knowledge.stability import FOLLOWED_MS
from headrace.server.tools.client import Address, Client, ClientError

if TYPE_CHECKING:
    from headrace.server.tools.client import Encryption


_UNITS: Final = ("B", "kB", "MB", "GB", "TB")
_PEER: Final = "aa_peer"
_LAG_MAX_MS: Final = 60_000  # where aa-max-lag-ms cannot be read
STREAMS_COMPARED: Final = 20
NEWEST: Final = 1000  # entries that are compared of each lane
_TRIES: Final = 10
_PAUSE_S: Final = 0.2
_CLEAR: Final = "\x1b[H\x1b[2J"


def columns(head: list[str], rows: list[list[str]]) -> list[str]:
    """Return the lines of a table. A column whose cells all begin with a digit is right-aligned."""
    widths = [len(title) for title in head]
    numeric = [bool(rows)] * len(head)
    for row in rows:
        for at, cell in enumerate(row):
            widths[at] = max(widths[at], len(cell))
            numeric[at] = numeric[at] and cell[:1].isdigit()
    lines: list[str] = []
    for row in [head, *rows]:
        cells: list[str] = []
        for at, cell in enumerate(row):
            cells.append(cell.rjust(widths[at]) if numeric[at] else cell.ljust(widths[at]))
        lines.append("  ".join(cells).rstrip())
    return lines


def bytes_text(size: int) -> str:
    """Return a number of bytes as text, in three digits or so."""
    value = float(size)
    for unit in _UNITS:
        if value < 1000 or unit == _UNITS[-1]:
            break
        value /= 1000
    return f"{value:.0f} {unit}" if value >= 100 or unit == "B" else f"{value:.1f} {unit}"


def time_text(ms: int) -> str:
    """Return a time as text, in the unit that people would use."""
    if ms < 1000:
        return f"{ms} ms"
    seconds = ms / 1000
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"


class Link:
    """The facts that a region reports of another one. ``state`` is ``up``, or what else."""

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
    """The facts that a region, at ``address``, has reported."""

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
        self.is_writable: Final = self._number("aa_writable") == 1
        self.members: Final = [int(each) for each in self._found.get("aa_members", "0").split(",")]
        self.name: Final = f"region {self.region} ({address})"

    def _number(self, name: str) -> int:
        return int(self._found.get(name, "0"))

    def problems(self) -> list[str]:
        """Return the problems that an operator has to solve."""
        found: list[str] = []
        if not self.is_writable:
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
        """Return its row in the table of regions."""
        origin = f"{self.region}.{self._found['aa_epoch']}"
        numbers = self._found["aa_numbers"]
        records = sum([int(pair.partition("=")[2]) for pair in numbers.split(",") if "=" in pair])
        log_bytes = bytes_text(self._number("aa_backlog_bytes"))
        file_bytes = bytes_text(self._number("aa_log_bytes"))
        return [
            origin,
            self.address,
            "yes" if self.is_writable else "no",
            f"{records:,}",
            f"{log_bytes} ({file_bytes})",
            f"{self._number('aa_garbage_keys'):,}",
            f"{self._number('aa_checks'):,} ({self._number('aa_check_mismatches')})",
        ]

    def link_rows(self) -> list[list[str]]:
        """Return its rows in the table of links: this region pulls from each of the others.

        The reason why one is refused is left to ``problems``.
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


def facts_of(client: Client, address: str) -> Facts:
    """Return the facts of the server at an address.

    Raises ClientError if it does not answer, or is no region.
    """
    info = client.ask("INFO", "activeactive")
    text = info.decode("utf-8", "replace") if isinstance(info, bytes) else ""
    if "aa_region:" not in text:
        raise ClientError("it is no region: aa-region-id is 0")
    [limit] = client.ask_all([["CONFIG", "GET", "aa-max-lag-ms"]])
    lag_max_ms = _LAG_MAX_MS
    if isinstance(limit, list) and len(limit) == 2:
        lag_max_ms = int(limit[1])
    try:
        return Facts(address, text, lag_max_ms)
    except (KeyError, ValueError):
        raise ClientError("it says other things than this version of the tool knows") from None


class Look:
    """The facts of all servers at about the same time.

    Attributes:
        facts: of the servers that are regions.
        problems: what an operator has to solve, in sentences.
        compared: the result of the comparison of streams.
    """

    def __init__(self) -> None:
        self.facts: list[Facts] = []
        self.problems: list[str] = []
        self.compared = ""


def show_regions(
    urls: list[Address], encryption: Encryption | None, watch: bool, every_s: float
) -> int:
    """Print the state of regions, once or until interrupted. Return 1 where something is wrong."""
    while True:
        look = look_at(urls, encryption)
        if watch and sys.stdout.isatty():
            print(_CLEAR, end="")
        print("\n".join(lines_of(look)), flush=True)
        if not watch:
            return 1 if look.problems else 0
        time.sleep(every_s)
        if not sys.stdout.isatty():
            print()


def look_at(addresses: list[Address], encryption: Encryption | None = None) -> Look:
    """Ask all servers, and compare what they say."""
    look = Look()
    clients: list[Client] = []
    regions: list[tuple[Facts, Client]] = []
    try:
        for address in addresses:
            try:
                client = Client(address, encryption)
                clients.append(client)
                facts = facts_of(client, address.shown)
                regions.append((facts, client))
                look.facts.append(facts)
                look.problems += [f"{facts.name}: {problem}" for problem in facts.problems()]
            except ClientError as error:
                look.problems.append(f"{address.shown}: {error}")
        look.problems += _strangers(look.facts)
        if len(regions) > 1:
            _compare(look, regions)
    finally:
        for client in clients:
            client.close()
    return look


def _strangers(all_facts: list[Facts]) -> list[str]:
    found: list[str] = []
    by_number: dict[int, Facts] = {}
    for facts in all_facts:
        other = by_number.setdefault(facts.region, facts)
        if other is not facts:
            found.append(f"{other.address} and {facts.address} are both region {facts.region}")
        if facts.database != all_facts[0].database:
            found.append(
                f"{facts.name} has the database {facts.database}, and {all_facts[0].name} "
                f"has {all_facts[0].database}"
            )
    return found


def _compare(look: Look, regions: list[tuple[Facts, Client]]) -> None:
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(_PAUSE_S)
        try:
            said = [_fingerprints(client) for _, client in regions]
        except ClientError as error:
            look.compared = f"streams were not compared: {error}"
            return
        if all(token and token == said[0][0] for token, _ in said):
            _judge(look, regions, [prints for _, prints in said])
            return
    look.compared = "streams were not compared: the regions do not know the same changes now"


def _fingerprints(client: Client) -> tuple[bytes, dict[bytes, object]]:
    """Return a region's numbers, and fingerprints of streams; nothing if it changed meanwhile."""
    reply = client.ask("SCAN", "0", "COUNT", str(10 * STREAMS_COMPARED), "TYPE", "stream")
    keys = reply[1] if isinstance(reply, list) else []
    chosen = sorted(keys)[:STREAMS_COMPARED]
    requests: list[list[str | bytes]] = [["AA", "TOKEN"]]
    for key in chosen:
        requests.append(["AA", "DIGEST", key, "NEWEST", str(NEWEST)])
    requests.append(["AA", "TOKEN"])
    replies = client.ask_all(requests)
    token = replies[0]
    if not isinstance(token, bytes) or token != replies[-1]:
        return b"", {}
    return token, dict(zip(chosen, replies[1:-1], strict=True))


def _judge(
    look: Look, regions: list[tuple[Facts, Client]], said: list[dict[bytes, object]]
) -> None:
    compared: set[bytes] = set()
    for number in range(1, len(regions)):
        for key in said[0]:
            if key not in said[number]:
                continue
            compared.add(key)
            if said[number][key] != said[0][key]:
                look.problems.append(
                    f"the stream {shown(key)} differs between {regions[0][0].name} and "
                    f"{regions[number][0].name}, though both know the same changes. Keep a copy "
                    "of both folders, and compare what AA STREAM says in both"
                )
    what = "1 stream" if len(compared) == 1 else f"{len(compared)} streams"
    look.compared = f"{what} compared between regions that know the same"
    if not look.problems:
        look.compared += ": all are equal"


def lines_of(look: Look) -> list[str]:
    """Return the lines to print."""
    lines: list[str] = []
    if look.facts:
        head = ["origin", "at", "writes", "records", "log (on disk)", "deleted"]
        lines += columns([*head, "checks (differ)"], [facts.row() for facts in look.facts])
        lines.append("")
        head = ["link", "state", "lag", "missing", "not yet on its disk", "heard", "copies"]
        lines += columns(head, [row for facts in look.facts for row in facts.link_rows()])
        lines.append("")
    if look.compared:
        lines.append(look.compared)
    lines += [f"WRONG  {problem}" for problem in look.problems]
    if not look.problems:
        lines.append("all is well")
    return lines
