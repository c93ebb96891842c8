"""COMMAND DOCS: what programs read of it, the trees of arguments, is what Redis 8.10 says."""

from __future__ import annotations

import pytest

from support.client import parse
from support.fuzz.duel import Duel

pytestmark = pytest.mark.judge

# Words for people are our own.
OWN_WORDS = {b"summary", b"complexity", b"history", b"replaced_by", b"subcommands"}


def documentation(reply: bytes) -> dict[bytes, object]:
    """Return what is told of each command and subcommand, without what is in words."""
    found: dict[bytes, object] = {}
    listed = parse(reply)
    assert isinstance(listed, dict)
    for name, told in listed.items():
        assert isinstance(told, dict)
        found[name] = without_words(told)
        for subcommand, more in told.get(b"subcommands", {}).items():
            found[subcommand] = without_words(more)
    return found


def without_words(told: object) -> object:
    if isinstance(told, dict):
        left = set(told) - OWN_WORDS
        return {key: without_words(told[key]) for key in left}
    return [without_words(item) for item in told] if isinstance(told, list) else told


def test_arguments(duel: Duel) -> None:
    names = [name for name in sorted(duel.names()) if "|" not in name]
    with duel.player.ours.process.client(resp3=True) as ours:
        our_docs = documentation(ours.call("COMMAND", "DOCS", *names))
    with duel.player.real.process.client(resp3=True) as real:
        real_docs = documentation(real.call("COMMAND", "DOCS", *names))
    shared = {name.encode() for name in duel.names()} & set(our_docs)
    assert len(shared) > 150
    for name in sorted(shared):
        assert our_docs[name] == real_docs[name]
