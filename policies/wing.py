"""The wing behind its faces; importing this module registers all that is in it."""

from __future__ import annotations

from headrace.policies.book import Book
from headrace.policies.rules import rules_of
from headrace.policies.steps import Steps
from headrace.server.commands.streams.groups import find_group
from headrace.server.commands.streams.shared import steps_by
from headrace.server.dispatch.call import Call
from headrace.server.info.sections import add_section
from headrace.server.state import Server

steps_by(Steps())


def begin(server: Server) -> Book:
    """Return a new book, for a server that has policies from now on."""
    return Book(server)


def streams(call: Call) -> list[bytes]:
    """Return the lines of section ``streams``: what policies hold back, and have done."""
    book = call.server.policies
    if not isinstance(book, Book):
        return []
    held = delayed = backing = dying = full = groups = 0
    for db, key, name in list(book.attended):
        group = find_group(call.server.data.dbs[db], key, name or b"")
        rules = None if group is None else rules_of(group)
        if rules is None:
            del book.attended[db, key, name]
            continue
        groups += 1
        held += rules.held
        delayed += rules.delayed
        backing += rules.backing_off()
        dying += len(rules.dying)
        full += not rules.window_left()
    counters = book.counters
    return [
        b"policies:%d" % len(book.scopes),
        b"policy_groups:%d" % groups,
        b"policy_held:%d" % held,
        b"policy_delayed:%d" % delayed,
        b"policy_backing_off:%d" % backing,
        b"policy_dead_pending:%d" % dying,
        b"policy_windows_full:%d" % full,
        b"total_dead_lettered:%d" % counters.dead_lettered,
        b"total_discarded:%d" % counters.discarded,
        b"total_expired_entries:%d" % counters.expired,
        b"total_redelivered:%d" % counters.redelivered,
        b"total_redriven:%d" % counters.redriven,
        b"total_rejected_entries:%d" % counters.rejected,
        b"total_removed_entries:%d" % counters.removed,
    ]


add_section(b"streams", b"Streams", streams)
