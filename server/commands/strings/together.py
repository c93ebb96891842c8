"""GETs and SETs that come in a pipeline, whatever keys they name: all at once."""

from __future__ import annotations

from typing import Final

from headrace.compat.numbers import encode_string
from headrace.protocol.packing import Packer, repeated
from headrace.protocol.replies import NO_REPLIES, OK, PackedReplies
from headrace.server.clients.session import NO_TOUCH, TRACKED
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import ALIKE_BYTES, NONE_ALIKE, alike
from headrace.storage.key_table import MOST_AHEAD
from headrace.storage.string.string import string_bytes

_SET_WORDS: Final = 3  # without options


@alike("GET", of_any_key=True, remembers=True)
def get_alike(
    call: Call, requests: list[list[bytes]], first: int, end: int
) -> tuple[int, PackedReplies]:
    """Values of strings, written into one buffer."""
    db = call.db
    table = db.table
    now_ms = call.now_ms
    touches = not call.session.special & NO_TOUCH
    tracking = call.server.tracking
    reader = tracking.reader_of(call.session) if call.session.special & TRACKED else 0
    noted = b""  # the key that was remembered last
    scattered = table.is_scattered()
    out = Packer(call.session.resp3)
    hits = 0
    at = first
    seen = first  # the requests up to here were looked at ahead, from ``began`` on
    began = first
    while at < end:
        key = requests[at][1]
        if scattered:
            if at == seen:
                began = at
                seen = min(end, at + MOST_AHEAD)
                table.look_ahead(requests, at, seen)
            table.find_ahead(key, at - began)
        value = db.get(key, now_ms) if touches else db.value_of(key, now_ms)
        if value is None:
            if call.reports_misses():
                break
            out.null()
            if reader:
                tracking.remember_one(call.session, key)
        else:
            text = value if isinstance(value, bytes) else string_bytes(value)
            if text is None:
                break
            out.text(text)
            hits += 1
            if reader and key is not noted:
                noted = key
                readers = table.value_in(tracking.readers(), key)
                if not isinstance(readers, int) or readers != reader:
                    tracking.remember_found(reader, table, key, readers)
        at += 1
        if out.wire_bytes() >= ALIKE_BYTES:
            break
    call.count_reads(hits, at - first - hits)
    return at - first, out.replies()


@alike("SET", of_any_key=True, replaces=True)
def set_alike(
    call: Call, requests: list[list[bytes]], first: int, end: int
) -> tuple[int, PackedReplies]:
    """Values of keys that hold strings or are not there."""
    db = call.db
    if len(requests[first]) != _SET_WORDS or not call.needs_no_events_of_any():
        return NONE_ALIKE, NO_REPLIES
    table = db.table
    now_ms = call.now_ms
    scattered = table.is_scattered()
    at = first
    seen = first
    began = first
    while at < end:
        words = requests[at]
        key = words[1]
        if scattered:
            if at == seen:
                began = at
                seen = min(end, at + MOST_AHEAD)
                table.look_ahead(requests, at, seen)
            table.find_ahead(key, at - began)
        old = db.value_of(key, now_ms)
        if old is None:
            if call.server.changes.expired:
                break
            db.put(key, encode_string(words[2]), now_ms)
        elif isinstance(old, (bytes, int)):
            db.replace(key, encode_string(words[2]), now_ms)
            if db.volatile:
                db.persist(key)
        else:
            break
        at += 1
    done = at - first
    call.changed_alike(requests, first, at, done)
    return done, repeated(OK, done)
