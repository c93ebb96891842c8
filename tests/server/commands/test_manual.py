"""docs/commands.md: is it current, and does it name all commands of Redis?"""

from __future__ import annotations

import pytest

from headrace.compat.redis_commands import COMMANDS, commands
from headrace.server.commands.documentation import documentation
from headrace.server.commands.manual import MISSING, REMARKS, render
from support.build import ROOT
from support.client import parse
from support.process import Pair

NAMES = {name for chapter in COMMANDS for name, _ in commands(chapter)}


def test_the_document_is_current() -> None:
    assert (ROOT / "docs" / "commands.md").read_text() == render(), (
        "run: python -m headrace.server.commands.manual > docs/commands.md"
    )


def test_what_is_there_is_not_called_missing() -> None:
    there = documentation()
    for name in REMARKS:
        assert name in there, name
    for reason in MISSING:
        names = {name for name in NAMES if reason in (name, name.partition("|")[0])}
        names |= {name for name, _ in commands(reason)} if reason in COMMANDS else set()
        assert not names <= set(there), reason


@pytest.mark.judge
@pytest.mark.since(8, 10)
def test_all_commands_of_redis_are_named(pair: Pair) -> None:
    """Also those of containers; modules of its build aside."""
    docs = parse(pair.real.call("COMMAND", "DOCS"))
    assert isinstance(docs, list)
    told = {}
    for name, facts in zip(docs[::2], docs[1::2], strict=True):
        about = dict(zip(facts[::2], facts[1::2], strict=True))
        subcommands = about.get(b"subcommands", [])
        since = about[b"since"].decode()
        if not subcommands:
            told[name.decode().lower()] = since
        for subcommand, more in zip(subcommands[::2], subcommands[1::2], strict=True):
            its = dict(zip(more[::2], more[1::2], strict=True))
            told[subcommand.decode().lower()] = its[b"since"].decode()
    assert {name: since for chapter in COMMANDS for name, since in commands(chapter)} == told
