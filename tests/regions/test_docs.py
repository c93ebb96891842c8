"""What docs/active-active.md says is true: each of its tables is played, each file starts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final, NamedTuple

import pytest

from headrace.compat import errors
from simulator.scenarios import Scenario
from support.build import ROOT
from support.certificates import Certificates
from support.client import RawClient
from support.clock import can_be_set
from support.mesh import Mesh, wait_until
from support.process import ServerProcess, claim_port
from support.scenes import play

PAGE: Final = (ROOT / "docs/active-active.md").read_text()
MODES: Final = ("semi-strict", "liberal")
SIZES: Final = {"16777216": "16mb", "4294967296": "4gb", "67108864": "64mb", "": ""}

# What stands in italics in a cell, as steps of a scenario; REGION is that of its column.
HAPPENINGS: Final = {
    "sync": "sync",
    "the links are there": "resume",
    "its clock shows": "clock REGION MS",
    "what it wrote is on the disk": "fsync REGION",
    "loses power, and starts again": "power REGION\nsettle REGION",
    "its folder is copied": "stop REGION\nkeep REGION copy\nstart REGION\nsettle REGION",
    "the copy is put back": "stop REGION\nrestore REGION copy\nstart REGION",
    "takes writes again": "settle REGION",
    "writes more than its log keeps": "fill REGION",
    "the links are cut": "cut",
    "the links are healed": "heal",
}
READING: Final = ("XRANGE", "XREVRANGE", "XREAD", "XREADGROUP", "XCLAIM")
STEP: Final = re.compile(r"(?:(?P<client>\w+): )?`(?P<words>[^`]+)` → (?P<reply>.+)")
ANSWER: Final = re.compile(r"(?P<client>\w+) ← (?P<reply>.+)")


class Table(NamedTuple):
    """A table of regions.

    Attributes:
        name: the heading above it, and which table below that it is.
    """

    name: str
    regions: int
    mode: str
    rows: list[list[str]]


def tables(page: str) -> Iterator[Table]:
    """Those whose columns are regions."""
    heading = ""
    numbers: dict[str, int] = {}
    found: Table | None = None
    for line in [*page.splitlines(), ""]:
        if line.startswith("#"):
            heading = line.lstrip("# ").lower().replace(" ", "-")
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| region 1"):
            numbers[heading] = numbers.get(heading, 0) + 1
            mode = next((mode for mode in MODES if mode in cells[0]), "strict")
            found = Table(f"{heading}-{numbers[heading]}", len(cells), mode, [])
        elif found is not None and line.startswith("|"):
            if not line.startswith("| ---"):
                found.rows.append(cells)
        elif found is not None:
            yield found
            found = None


def scenario(table: Table) -> Scenario:
    """The steps of a table, row by row, in each row from the left to the right."""
    steps: list[str] = []
    bound: set[str] = set()
    for row in table.rows:
        assert len(row) == table.regions, row
        if set(row) == {"*sync*"}:
            steps.append("sync")
            continue
        for region, cell in enumerate(row, 1):
            if cell:
                steps.append(step(region, cell, bound))
    return Scenario(
        table.name, "docs/active-active.md", table.regions, table.mode, "\n".join(steps)
    )


def step(region: int, cell: str, bound: set[str]) -> str:
    if cell.startswith("*"):
        return happening(region, cell)
    found = ANSWER.fullmatch(cell)
    if found is not None:
        return f"{region}:{found['client']} => {expected('XREAD', found['reply'], bound)}"
    found = STEP.fullmatch(cell)
    assert found is not None, cell
    words = [f"${word}" if word in bound else word for word in found["words"].split()]
    client = f":{found['client']}" if found["client"] else ""
    reply = expected(found["words"], found["reply"], bound)
    return f"{region}{client}> {' '.join(words)} => {reply}"


def happening(region: int, cell: str) -> str:
    found = re.fullmatch(r"\*([^*]+)\*(?: `(\d+)`)?", cell)
    assert found is not None, cell
    text, number = found[1], found[2] or ""
    with_one = re.fullmatch(r"sync with (\d)", text)
    if with_one is not None:
        return f"sync {region} {with_one[1]}"
    return HAPPENINGS[text].replace("REGION", str(region)).replace("MS", number)


def expected(words: str, reply: str, bound: set[str]) -> str:
    """A reply as a scenario has it."""
    if reply in ("nil", "waits"):
        return reply
    found = re.fullmatch(r"error `([^`]+)`", reply)
    if found is not None:
        return f"error {found[1]}"
    found = re.fullmatch(r"`(\d+)` pending", reply)
    if found is not None:
        return f"pending {found[1]}"
    shown = [] if reply == "nothing" else [token.strip("`") for token in reply.split()]
    command = words.split()[0]
    named = [f"${token}" if token in bound else token for token in shown]
    if command in READING or words.startswith("XPENDING"):
        return " ".join(["ids", *named])
    if command == "XINFO":
        return " ".join(["names", *named])
    if re.fullmatch("[A-Z]", reply):  # the ID that the server has chosen
        bound.add(reply)
        return f"${reply}"
    return " ".join(shown)


TABLES: Final = list(tables(PAGE))


def test_there_are_tables() -> None:
    """At least as many as the page has now: none is passed over."""
    headers = [line for line in PAGE.splitlines() if line.startswith("| region 1")]
    assert len(TABLES) == len(headers) > 25
    assert len({table.name for table in TABLES}) == len(TABLES)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_tables(table: Table) -> None:
    played = scenario(table)
    if "clock" in played.steps and not can_be_set():
        pytest.skip("there is no C compiler, or this is no Linux")
    play(played)


def column(heading: str, number: int) -> list[str]:
    """The words in backticks of one column of the first table below a heading."""
    section = PAGE.partition(f"\n{heading}\n")[2].partition("\n#")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")]
    found = [re.findall(r"`([^`]+)`", row.split("|")[number]) for row in rows[2:]]
    return [" ".join(words) for words in found]


def test_parameters_and_their_defaults() -> None:
    names, defaults = column("## Parameters", 1), column("## Parameters", 2)
    server = ServerProcess()
    told = dict(zip(names, defaults, strict=True))
    with server:
        reply = server.call("CONFIG", "GET", "aa-*")
        assert isinstance(reply, list)
        words = [word.decode() for word in reply]
        there = dict(zip(words[::2], words[1::2], strict=True))
    assert told.keys() == there.keys()
    for name, default in told.items():
        shown = there[name]
        assert default in (shown, SIZES.get(shown, shown)), name


def test_fields_of_info(two_regions: Mesh) -> None:
    info = two_regions[1].info("activeactive")
    names = {name for cell in column("### What to watch", 1) for name in cell.split()}
    names -= {"aa_peerN", "aa_warning"}  # one for each peer; only where something is wrong
    assert len(names) > 8
    assert sorted(names - info.keys()) == []
    facts = info["aa_peer2"].replace("=", ",").split(",")
    for name in ("state", "lag_ms", "missing_records", "unacknowledged_records", "full_copies"):
        assert name in facts


def test_the_codes_in_the_log_are_those_that_there_are() -> None:
    lines = [value for value in vars(errors).values() if isinstance(value, bytes)]
    made = [errors.aa_version(1, 1, 2, 2), errors.aa_twin(b"1.0")]
    made += [errors.aa_forgotten(1, 0), errors.aa_behind(b"1.0", 1)]
    codes = {line.split(b" ")[0].decode() for line in lines + made}
    told = set(re.findall(r"\b(AA[A-Z]{4,})\b", PAGE))
    assert len(told) > 5
    assert told <= codes


def configurations() -> list[str]:
    return re.findall(r"^```conf\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def takes_writes(client: RawClient) -> bool:
    info = client.call_parsed("INFO", "activeactive")
    assert isinstance(info, bytes)
    return b"aa_writable:1" in info


def test_the_three_files(certificates: Certificates) -> None:
    """They are started as they stand; only hosts, ports and folders are those of the test."""
    places = {
        "/srv/tls/region.crt": certificates.server.file,
        "/srv/tls/region.key": certificates.server.key,
        "/srv/tls/ca.crt": certificates.authority.file,
    }
    files = configurations()
    assert len(files) == 3
    with ExitStack() as stack:
        ports: dict[str, int] = {}
        for text in files:
            host = text.splitlines()[0].lstrip("# ")
            ports[host], claim = claim_port()
            stack.enter_context(claim)
        servers = []
        for text in files:
            port = ports[text.splitlines()[0].lstrip("# ")]
            text = text.replace("aa-port 7400", f"aa-port {port}").replace("dir /srv/headrace", "")
            for place, file in places.items():
                text = text.replace(place, str(file))
            for host, other in ports.items():
                text = text.replace(f"{host} 7400", f"127.0.0.1 {other}")
            text = text.replace("bind * -::*", "bind 127.0.0.1")
            servers.append(stack.enter_context(ServerProcess(config=text)))
        found: list[bytes] = []
        for server in servers:
            with server.client() as client:
                assert client.call("AUTH", "for-clients") == b"+OK\r\n"
                wait_until(lambda client=client: takes_writes(client))
                added = client.call_parsed("XADD", "s", "*", "f", "v")
                assert isinstance(added, bytes)
                found.append(added)
        for server in servers:
            with server.client() as client:
                client.call("AUTH", "for-clients")
                wait_until(lambda client=client: client.call_parsed("XLEN", "s") == 3)
                entries = client.call_parsed("XRANGE", "s", "-", "+")
                assert isinstance(entries, list)
                assert [entry[0] for entry in entries] == sorted(found)
