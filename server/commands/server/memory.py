"""MEMORY: what takes how much."""

from __future__ import annotations

import gc

from headrace.compat.errors import SYNTAX, CommandError
from headrace.protocol.replies import OK, Map, Verbatim
from headrace.server.commands.help import show_help
from headrace.server.dispatch.args import Args
from headrace.server.dispatch.call import Call
from headrace.server.info.memory_report import doctor
from headrace.server.info.memory_section import MemoryFigures
from headrace.server.statistics.memory import give_back, resident_bytes
from headrace.storage.costs import SAMPLES, cost_of
from headrace.storage.entry import NO_EXPIRY


def memory_usage(call: Call) -> object:
    """SAMPLES 0 looks at all parts of the value.

    Reply: about how many bytes the key and its value take; null when it is not there.
    """
    args = Args(call.argv, 3)
    samples = SAMPLES
    while args.left:
        if not args.flag(b"SAMPLES"):
            raise CommandError(SYNTAX)
        samples = args.integer()
        if samples < 0:
            raise CommandError(SYNTAX)
    key = call.argv[2]
    found = call.db.peek(key)  # as in Redis, even if its time is over
    if found is None:
        return None
    return cost_of(key, found.value, found.expire_ms != NO_EXPIRY, samples)


def memory_stats(call: Call) -> object:
    """Reply: map of names to bytes, counts and ratios."""
    figures = MemoryFigures(call.server, call.durability.files)
    used = figures.used
    scripts = figures.scripts
    pairs: list[tuple[object, object]] = [
        (b"peak.allocated", figures.peak),
        (b"total.allocated", used),
        (b"startup.allocated", figures.startup),
        (b"replication.backlog", figures.backlog),
        (b"replica.fullsync.buffer", 0),
        (b"clients.slaves", figures.replicas),
        (b"clients.normal", figures.clients),
        (b"clients.normal.shared", 0),
        (b"clients.normal.unshared", call.server.clients.unread_bytes()),
        (b"cluster.links", 0),
        (b"aof.buffer", figures.aof_buffer),
        (b"lua.caches", scripts.script_text_bytes),
        (b"functions.caches", scripts.library_text_bytes),
        (b"script.VMs", scripts.interpreter_bytes + scripts.functions_bytes),
        (b"hash.templates", 0),
    ]
    if call.server.data.region is not None:
        pairs += [(b"aa.backlog", figures.regions_backlog), (b"aa.graves", figures.graves)]
    for index, table, expiries in figures.databases:
        main: tuple[object, object] = (b"overhead.hashtable.main", table)
        pairs.append((b"db.%d" % index, Map([main, (b"overhead.hashtable.expires", expiries)])))
    pairs += [
        (b"overhead.db.hashtable.lut", 0),
        (b"overhead.db.hashtable.rehashing", 0),
        (b"overhead.total", figures.overhead),
        (b"db.dict.rehashing.count", 0),
        (b"keys.count", figures.keys),
        (b"keys.bytes-per-key", figures.bytes_per_key),
        (b"dataset.bytes", figures.dataset),
        (b"dataset.percentage", figures.dataset_percentage),
        (b"peak.percentage", figures.peak_percentage),
        (b"allocator.allocated", used),
        (b"allocator.active", figures.allocated),
        (b"allocator.resident", figures.allocated),
        (b"allocator.muzzy", 0),
        (b"allocator-fragmentation.ratio", figures.allocated_share),
        (b"allocator-fragmentation.bytes", figures.allocated - used),
        (b"allocator-rss.ratio", 1.0),
        (b"allocator-rss.bytes", 0),
        (b"rss-overhead.ratio", figures.overhead_share),
        (b"rss-overhead.bytes", figures.resident - figures.allocated),
        (b"fragmentation", figures.fragmentation),
        (b"fragmentation.bytes", figures.resident - used),
    ]
    return Map(pairs)


def memory_doctor(call: Call) -> object:
    """Reply: text, what looks odd and what may help."""
    return Verbatim(doctor(call.server, call.durability.files))


def memory_malloc_stats(call: Call) -> object:
    """Reply: text, what the collector of Python counts."""
    lines = [
        b"generation %d: %d objects, %d collections"
        % (number, count, gc.get_stats()[number]["collections"])
        for number, count in enumerate(gc.get_count())
    ]
    lines.append(b"frozen: %d objects" % gc.get_freeze_count())
    lines.append(b"resident: %d bytes" % resident_bytes())
    return Verbatim(b"\n".join(lines) + b"\n")


def memory_purge(call: Call) -> object:
    """Give memory that is free back to the system. Reply: OK."""
    give_back()
    return OK


def memory_help(call: Call) -> object:
    """Reply: list of lines."""
    return show_help(call)
