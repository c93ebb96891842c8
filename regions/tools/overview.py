"""``headrace regions``: how regions are, seen from those that can be asked, and what is wrong."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Final

from headrace.persistence.errors import shown
from headrace.regions.tools.asking import Address, Asker, AskError
from headrace.regions.tools.columns import columns
from headrace.regions.tools.facts import Facts, facts_of

if TYPE_CHECKING:
    from headrace.regions.tools.encrypting import Encryption

STREAMS_COMPARED: Final = 20
NEWEST: Final = 1000  # entries that are compared of each lane
_TRIES: Final = 10
_PAUSE_S: Final = 0.2
_CLEAR: Final = "\x1b[H\x1b[2J"


class Look:
    """What all servers have said at about the same time.

    Attributes:
        facts: of the servers that are regions.
        problems: what needs a person, in sentences.
        compared: what is to be said of the comparison of streams.
    """

    def __init__(self) -> None:
        self.facts: list[Facts] = []
        self.problems: list[str] = []
        self.compared = ""


def show_regions(
    urls: list[Address], encryption: Encryption | None, watch: bool, every_s: float
) -> int:
    """Print how regions are, once or until it is interrupted; 1 where something is wrong."""
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
    askers: list[Asker] = []
    regions: list[tuple[Facts, Asker]] = []
    try:
        for address in addresses:
            try:
                asker = Asker(address, encryption)
                askers.append(asker)
                facts = facts_of(asker, address.shown)
                regions.append((facts, asker))
                look.facts.append(facts)
                look.problems += [f"{facts.name}: {problem}" for problem in facts.problems()]
            except AskError as error:
                look.problems.append(f"{address.shown}: {error}")
        look.problems += _strangers(look.facts)
        if len(regions) > 1:
            _compare(look, regions)
    finally:
        for asker in askers:
            asker.close()
    return look


def _strangers(all_facts: list[Facts]) -> list[str]:
    """Return whether these are different regions of one database."""
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


# Whether they have the same


def _compare(look: Look, regions: list[tuple[Facts, Asker]]) -> None:
    """Compare fingerprints of streams between regions that know the same changes."""
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(_PAUSE_S)
        try:
            said = [_fingerprints(asker) for _, asker in regions]
        except AskError as error:
            look.compared = f"streams were not compared: {error}"
            return
        if all(token and token == said[0][0] for token, _ in said):
            _judge(look, regions, [prints for _, prints in said])
            return
    look.compared = "streams were not compared: the regions do not know the same changes now"


def _fingerprints(asker: Asker) -> tuple[bytes, dict[bytes, object]]:
    """What a region knows, and fingerprints of some streams; nothing where it changed meanwhile."""
    reply = asker.ask("SCAN", "0", "COUNT", str(10 * STREAMS_COMPARED), "TYPE", "stream")
    keys = reply[1] if isinstance(reply, list) else []
    chosen = sorted(keys)[:STREAMS_COMPARED]
    requests: list[list[str | bytes]] = [["AA", "TOKEN"]]
    for key in chosen:
        requests.append(["AA", "DIGEST", key, "NEWEST", str(NEWEST)])
    requests.append(["AA", "TOKEN"])
    replies = asker.ask_all(requests)
    token = replies[0]
    if not isinstance(token, bytes) or token != replies[-1]:
        return b"", {}
    return token, dict(zip(chosen, replies[1:-1], strict=True))


def _judge(look: Look, regions: list[tuple[Facts, Asker]], said: list[dict[bytes, object]]) -> None:
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


# As text


def lines_of(look: Look) -> list[str]:
    """Return what is printed."""
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
