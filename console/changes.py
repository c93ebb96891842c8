"""Changes that people make: each says what will go, does it, and reports what has happened.

Others change the same things at the same time. A claim asks the server for entries that have been
idle as long as the page showed, so of two people one gets it. Before entries are released or
acknowledged, it is looked whether they are still with the consumer that the page showed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from headrace.console.catalogue import Group, Row
from headrace.console.link import About, Error, Link
from headrace.console.streams import Pending, count_before, pending_rows, read_letters
from headrace.console.text import command_line, from_url, ms_of, shown, time_of, to_url

SELECTED: Final = 1_000  # entries in one form
REDRIVEN: Final = 10_000  # dead letters by one click
_ASKED: Final = 1_000  # requests that look what a deletion does to groups


class Rejected(Exception):
    """A change that cannot be made. The text says why."""


@dataclass(slots=True)
class Plan:
    """Says what a change is going to do, so that people can confirm it.

    Attributes:
        command: as redis-cli takes it.
        facts: what goes, in sentences.
        warnings: what somebody may miss.
        typed: what has to be typed to confirm; empty if nothing.
    """

    title: str
    command: str
    facts: list[str]
    warnings: list[str] = field(default_factory=list)
    button: str = ""
    typed: str = ""


def counted(number: int, noun: str) -> str:
    """Return a number and a noun: ``1 entry``, ``2,000 entries``."""
    if number == 1:
        return f"1 {noun}"
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {plural}"


def ticket(row: Pending) -> str:
    """Return a pending entry as a form sends it: how it was when the page was made."""
    return f"{row.id}/{row.idle_ms}/{row.deliveries}/{to_url(row.consumer)}"


def tickets(texts: list[str]) -> list[Pending]:
    """Return the pending entries of a form. Raises Rejected."""
    if not texts:
        raise Rejected("Nothing is selected.")
    found: list[Pending] = []
    try:
        for text in texts[:SELECTED]:
            entry_id, idle, deliveries, consumer = text.split("/")
            found.append(Pending(entry_id, from_url(consumer), int(idle), int(deliveries)))
    except ValueError:
        raise Rejected("The form is none of this page.") from None
    return found


def raise_error(reply: Any) -> Any:
    """Return a reply. Raises Rejected with the server's words if it is an error."""
    if isinstance(reply, Error):
        raise Rejected(f"The server refuses: {reply}")
    return reply


async def claim(
    link: Link, key: bytes, group: bytes, wanted: list[Pending], consumer: bytes
) -> str:
    """Give pending entries to a consumer; return what has happened. Their counts stay.

    Raises Unreachable, and Rejected.
    """
    if not consumer:
        raise Rejected("Say which consumer is to have them.")
    head = ("XCLAIM", key, group, consumer)
    replies = await link.change(*((*head, row.idle_ms, row.id, "JUSTID") for row in wanted))
    taken = sum(len(raise_error(reply)) for reply in replies)
    text = f"{counted(taken, 'entry')} claimed for {shown(consumer)}."
    left = len(wanted) - taken
    if left:
        text += (
            f" {left:,} not: claimed by somebody else, delivered again, acknowledged or deleted "
            "meanwhile, or kept by a policy."
        )
    return text


async def _still(link: Link, key: bytes, group: bytes, wanted: list[Pending]) -> list[Pending]:
    """Return those that are still pending as they were shown. Raises as ``claim`` does."""
    asked = [("XPENDING", key, group, row.id, row.id, 1) for row in wanted]
    kept: list[Pending] = []
    for row, reply in zip(wanted, await link.ask(*asked), strict=True):
        for now in pending_rows(raise_error(reply)):
            is_same = (now.consumer, now.deliveries) == (row.consumer, row.deliveries)
            if is_same and now.idle_ms >= row.idle_ms:
                kept.append(row)
    return kept


def _others(asked: int, done: int) -> str:
    left = asked - done
    return f" {left:,} not: no longer as the page showed." if left else ""


async def release(link: Link, key: bytes, group: bytes, wanted: list[Pending], mode: str) -> str:
    """Give pending entries back to their group; return what has happened. Raises as ``claim``.

    Args:
        mode: ``SILENT`` takes the delivery out of the count, ``FAIL`` leaves it.
    """
    if mode not in ("SILENT", "FAIL"):
        raise Rejected("The form is none of this page.")
    kept = await _still(link, key, group, wanted)
    done = 0
    if kept:
        ids = [row.id for row in kept]
        [reply] = await link.change(("XNACK", key, group, mode, "IDS", len(ids), *ids))
        done = raise_error(reply)
    return f"{counted(done, 'entry')} released." + _others(len(wanted), done)


def plan_acknowledge(key: bytes, group: bytes, wanted: list[Pending]) -> Plan:
    """Return what acknowledging is going to do."""
    ids = [row.id for row in wanted]
    number, them = counted(len(ids), "entry"), "it" if len(ids) == 1 else "them"
    facts = [
        f"{number} will count as done in the group {shown(group)}.",
        f"Nobody will get {them} there again. The stream keeps {them}.",
    ]
    command = command_line([b"XACK", key, group, *(each.encode() for each in ids)])
    return Plan(f"Acknowledge {number}", command, facts, button="Acknowledge")


async def acknowledge(link: Link, key: bytes, group: bytes, wanted: list[Pending]) -> str:
    """Acknowledge pending entries; return what has happened. Raises as ``claim`` does."""
    kept = await _still(link, key, group, wanted)
    done = 0
    if kept:
        [reply] = await link.change(("XACK", key, group, *(row.id for row in kept)))
        done = raise_error(reply)
    return f"{counted(done, 'entry')} acknowledged." + _others(len(wanted), done)


async def append(link: Link, key: bytes, entry_id: str, fields: list[tuple[bytes, bytes]]) -> str:
    """Append an entry to a stream that is there; return its ID. Raises as ``claim`` does."""
    if not fields:
        raise Rejected("An entry has one field at least.")
    flat = [part for pair in fields for part in pair]
    [reply] = await link.change(("XADD", key, "NOMKSTREAM", entry_id or "*", *flat))
    if raise_error(reply) is None:
        raise Rejected("The stream is gone.")
    new_id: str = reply.decode()
    return new_id


def _unread(row: Row, goes: int) -> list[str]:
    """Return which groups have not read all of the oldest ``goes`` entries."""
    found: list[str] = []
    for group in row.groups:
        lost = (group.lag or 0) - (row.length - goes)
        if lost > 0:
            found.append(f"The group {shown(group.name)} has not read {lost:,} of them.")
        elif group.lag is None:
            found.append(f"How far the group {shown(group.name)} has read is not known.")
    return found


async def plan_trim(link: Link, about: About, row: Row, words: list[str]) -> Plan:
    """Return what XTRIM with these words, MAXLEN or MINID and its value, is going to do.

    Raises as ``claim`` does.
    """
    kind, value = words
    more = False
    if kind == "MAXLEN":
        goes = max(row.length - int(value), 0)
    elif "XCOUNT" not in about.missing:
        goes = raise_error(await link.one("XCOUNT", row.key, "-", f"({value}"))
    else:
        goes, more = await count_before(link, row.key, value)
    number = f"{'More than ' if more else ''}{counted(goes, 'entry')}"
    facts = [f"{number} of {row.length:,} will be deleted, the oldest ones."]
    if kind == "MINID":
        facts.append(f"Those before {value}{_at(value)} go.")
    elif row.length > goes:
        facts.append("What is appended before you confirm makes as many more go.")
    warnings = _unread(row, goes) if goes else []
    for group in row.groups:
        if not group.oldest or not goes:
            continue
        if kind == "MAXLEN" or _before(group.oldest.id, value):
            warnings.append(
                f"The group {shown(group.name)} has pending entries, {group.pending:,} in all; "
                "those that go stay pending without their content."
            )
    command = command_line([b"XTRIM", row.key, kind.encode(), b"=", value.encode()])
    button = f"Delete {'them' if more else counted(goes, 'entry')}" if goes else ""
    return Plan("Trim the stream", command, facts, warnings, button)


def _at(entry_id: str) -> str:
    return f" ({time_of(entry_id)} UTC)" if ms_of(entry_id) else ""


def _before(one: str, other: str) -> bool:
    return _pair(one) < _pair(other)


def _pair(entry_id: str) -> tuple[int, int]:
    ms, _, seq = entry_id.partition("-")
    return int(ms), int(seq or 0)


async def trim(link: Link, key: bytes, words: list[str]) -> str:
    """Trim a stream; return what has happened. Raises as ``claim`` does."""
    [reply] = await link.change(("XTRIM", key, words[0], "=", words[1]))
    return f"{counted(raise_error(reply), 'entry')} deleted."


async def plan_delete(link: Link, row: Row, ids: list[str]) -> Plan:
    """Return what deleting entries is going to do. Raises as ``claim`` does."""
    if not ids:
        raise Rejected("Nothing is selected.")
    number = counted(len(ids), "entry")
    warnings: list[str] = []
    groups = [group for group in row.groups if group.pending][: max(_ASKED // len(ids), 1)]
    for group in groups:
        asked = [("XPENDING", row.key, group.name, each, each, 1) for each in ids]
        waiting = sum(isinstance(reply, list) and bool(reply) for reply in await link.ask(*asked))
        if waiting:
            warnings.append(
                f"{counted(waiting, 'entry')} of them "
                f"{'is' if waiting == 1 else 'are'} pending in the group {shown(group.name)}."
            )
    warnings += [
        f"The group {shown(group.name)} has not read the newest of them."
        for group in row.groups
        if _before(group.last_id, max(ids, key=_pair))
    ]
    command = command_line([b"XDEL", row.key, *(each.encode() for each in ids)])
    facts = [f"{number} will be deleted for all groups, and cannot be brought back:"]
    facts += [f"{each}{_at(each)}" for each in ids[:10]]
    facts += [f"and {len(ids) - 10:,} more"] if len(ids) > 10 else []
    return Plan(f"Delete {number}", command, facts, warnings, f"Delete {number}")


async def delete(link: Link, key: bytes, ids: list[str]) -> str:
    """Delete entries; return what has happened. Raises as ``claim`` does."""
    [reply] = await link.change(("XDEL", key, *ids))
    done = raise_error(reply)
    return f"{counted(done, 'entry')} deleted." + (
        f" {len(ids) - done:,} were gone before." if done < len(ids) else ""
    )


def plan_drop(row: Row) -> Plan:
    """Return what deleting a whole stream is going to do."""
    facts = [f"The stream with its {counted(row.length, 'entry')} will be deleted, for good."]
    return Plan(
        "Delete the stream",
        command_line([b"UNLINK", row.key]),
        facts,
        [_loss(group) for group in row.groups],
        "Delete the stream",
        shown(row.key),
    )


def _loss(group: Group) -> str:
    lag = "an unknown number" if group.lag is None else f"{group.lag:,}"
    return f"The group {shown(group.name)} goes, too: {group.pending:,} pending, {lag} not read."


async def drop(link: Link, key: bytes) -> str:
    """Delete a whole stream; return what has happened. Raises as ``claim`` does."""
    [reply] = await link.change(("UNLINK", key))
    return f"The stream {shown(key)} " + ("is deleted." if raise_error(reply) else "was gone.")


async def redrive(link: Link, key: bytes, ids: list[str]) -> str:
    """Put dead letters back to the group that gave up; return what has happened.

    Raises as ``claim`` does.
    """
    if not ids:
        raise Rejected("Nothing is selected.")
    [reply] = await link.change(("XREDRIVE", key, "IDS", len(ids), *ids))
    return _redriven(Counter(each[1] for each in raise_error(reply)))


async def redrive_all(link: Link, key: bytes, group: bytes) -> str:
    """Put all dead letters back, or those of one group; as ``redrive``, ``REDRIVEN`` at most."""
    outcome: Counter[bytes] = Counter()
    start = "-"
    while outcome.total() < REDRIVEN:
        letters = await read_letters(link, key, start, newer=True, group=group)
        ids = [entry.id for entry in letters.entries]
        if ids:
            [reply] = await link.change(("XREDRIVE", key, "IDS", len(ids), *ids))
            outcome.update(each[1] for each in raise_error(reply))
        if letters.ended:
            return _redriven(outcome)
        start = f"({letters.last}"
    return _redriven(outcome) + " There are more: do it again."


def _redriven(outcome: Counter[bytes]) -> str:
    done = outcome.total() - outcome[b"skipped"]
    text = f"{counted(done, 'dead letter')} put back"
    if outcome[b"appended"]:
        text += f", {outcome[b'appended']:,} of them as new entries, because theirs were gone"
    if outcome[b"skipped"]:
        text += f"; {outcome[b'skipped']:,} skipped: no dead letter, or its stream cannot take it"
    return text + "."
