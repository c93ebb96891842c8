"""The tables of regions and of a cluster, from what the server says of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from headrace.console.link import About
from headrace.console.text import UNKNOWN, age


@dataclass(slots=True)
class Table:
    """A table: texts, and the rows that need a person.

    Attributes:
        lack: why there is none; then the other fields say nothing.
        bad: numbers of the rows where something is wrong.
        facts: what else is to be known, as pairs of a name and a text.
        warnings: what needs a person, in sentences.
    """

    title: str
    lack: str = ""
    head: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    bad: set[int] = field(default_factory=set)
    facts: list[tuple[str, str]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def _ago(milliseconds: str) -> str:
    ms = int(milliseconds)
    return "never" if ms < 0 else f"{age(ms)} ago" if ms >= 100 else "now"


def regions_table(about: About, info: dict[str, str] | None) -> Table:
    """Return the regions that a server knows, from its INFO activeactive; None: it is refused."""
    table = Table("Regions")
    if info is None:
        table.lack = "The user of --url may not ask for INFO."
        return table
    if "aa_region" not in info:
        table.lack = f"Regions are Headrace's; this is {about}."
        if about.name == "Headrace":
            table.lack = "This server is alone: its aa-region-id is 0."
        return table
    table.head = [
        *("region", "link", "behind", "records missing here", "not yet on its disk", "heard"),
        *("clock ahead", "full copies"),
    ]
    for name, value in info.items():
        if name.startswith("aa_peer") and name[7:].isdigit():
            facts, _, state = value.partition(",state=")
            said = dict(part.partition("=")[::2] for part in facts.split(","))
            if state.partition(":")[0] not in ("up", "forgotten"):
                table.bad.add(len(table.rows))
                table.warnings.append(f"Region {name[7:]} is {state}.")
            table.rows.append(
                [
                    name[7:],
                    state.partition(":")[0],
                    age(int(said.get("lag_ms", "0"))) if int(said.get("lag_ms", "0")) else "0 s",
                    f"{int(said.get('missing_records', '0')):,}",
                    f"{int(said.get('unacknowledged_records', '0')):,}",
                    _ago(said.get("answered_ms_ago", "-1")),
                    f"{int(said.get('clock_ahead_ms', '0')):,} ms",
                    said.get("full_copies", UNKNOWN),
                ]
            )
    if info.get("aa_writable") == "0":
        table.warnings.append(f"It takes no writes: {info.get('aa_not_writable_because', '')}")
    if info.get("aa_resting_because"):
        table.warnings.append(f"It applies nothing of the others: {info['aa_resting_because']}")
    if info.get("aa_warning"):
        table.warnings.append(info["aa_warning"])
    table.facts = [
        ("this region", f"{info['aa_region']}.{info.get('aa_epoch', '?')}"),
        ("database", info.get("aa_database", UNKNOWN)),
        ("members", info.get("aa_members", UNKNOWN).replace(",", ", ")),
        ("takes writes", "yes" if info.get("aa_writable") == "1" else "no"),
    ]
    return table


_SLOTS: Final = 8  # after these words come the slots of a node


def cluster_table(
    server: str, nodes: Any, replication: dict[str, str], cluster: dict[str, str]
) -> Table:
    """Return the nodes of a cluster; of a server that is none, itself and its replicas."""
    if isinstance(nodes, bytes):
        return _nodes(nodes.decode("utf-8", "replace"), cluster)
    table = Table("Master and replicas", head=["server", "role", "state", "behind", "offset"])
    role = replication.get("role", "")
    if not role:
        table.lack = "The user of --url may ask neither for CLUSTER NODES nor for INFO."
        return table
    table.facts = [("cluster", "no: this server stands alone")]
    offset = replication.get("master_repl_offset", "0")
    if role in ("slave", "replica"):
        place = f"{replication.get('master_host')}:{replication.get('master_port')}"
        state = replication.get("master_link_status", "?")
        table.rows.append([place, "master", state, UNKNOWN, UNKNOWN])
        if state != "up":
            table.bad.add(0)
            table.warnings.append(f"The link to the master {place} is {state}.")
        offset = replication.get("slave_repl_offset", offset)
    table.rows.append([f"{server} (this one)", role, "up", UNKNOWN, f"{int(offset):,}"])
    for name, value in replication.items():
        if name.startswith("slave") and name[5:].isdigit():
            said = dict(part.partition("=")[::2] for part in value.split(","))
            behind = max(int(offset) - int(said.get("offset", "0")), 0)
            if said.get("state") != "online":
                table.bad.add(len(table.rows))
            place = f"{said.get('ip')}:{said.get('port')}"
            state, at = said.get("state", "?"), int(said.get("offset", "0"))
            table.rows.append([place, "replica", state, f"{behind:,} bytes", f"{at:,}"])
    return table


def _nodes(text: str, cluster: dict[str, str]) -> Table:
    table = Table("Cluster", head=["node", "role", "state", "slots", "heard", "of", "ID"])
    for line in text.splitlines():
        words = line.split()
        if len(words) < _SLOTS:
            continue
        node_id, place, flags, master = words[:4]
        kinds = flags.split(",")
        slots = [word for word in words[_SLOTS:] if not word.startswith("[")]
        here = " (this one)" if "myself" in kinds else ""
        if words[7] != "connected" or {"fail", "fail?"} & set(kinds):
            table.bad.add(len(table.rows))
            table.warnings.append(f"The node {place.partition('@')[0]} is {flags}, {words[7]}.")
        table.rows.append(
            [
                place.partition("@")[0].partition(",")[0] + here,
                "master" if "master" in kinds else "replica",
                ", ".join(k for k in kinds if k not in ("myself", "master", "slave")) or words[7],
                f"{sum(_span(word) for word in slots):,} in {len(slots):,}" if slots else UNKNOWN,
                UNKNOWN if words[5] == "0" else words[5],
                UNKNOWN if master == "-" else master[:8],
                node_id[:8],
            ]
        )
    table.facts = [
        ("state", cluster.get("cluster_state", UNKNOWN)),
        ("slots served", cluster.get("cluster_slots_ok", UNKNOWN)),
        ("epoch", cluster.get("cluster_current_epoch", UNKNOWN)),
    ]
    table.facts.append(("streams here", "of this node alone; --url of another one shows its own"))
    return table


def _span(word: str) -> int:
    first, _, last = word.partition("-")
    return int(last or first) - int(first) + 1
