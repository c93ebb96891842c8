"""LATENCY, SLOWLOG and MEMORY show what took long, and what takes much memory."""

from __future__ import annotations

import gc
from typing import Final

from headrace.compat import errors
from headrace.compat.errors import CommandError
from headrace.protocol.replies import OK, Map, Verbatim
from headrace.server.dispatch.args import Args, at_least
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import TABLE, Command
from headrace.server.info.command_stats import all_rows, cumulative
from headrace.server.info.reports import graph, latency_diagnosis, memory_diagnosis
from headrace.server.info.sections import MemoryFigures
from headrace.server.statistics.memory import give_back, resident_bytes
from headrace.server.statistics.statistics import SlowCommand
from headrace.storage.entry import NO_EXPIRY
from headrace.storage.faces import SAMPLES, cost_of


def latency_latest(call: Call) -> object:
    """Reply: for each event its name, the second and ms of its latest sample, its highest ms."""
    return [
        [event, series.samples[-1][0], series.samples[-1][1], series.highest_ms]
        for event, series in call.server.statistics.latency.events.items()
    ]


def latency_history(call: Call) -> object:
    """Reply: list of (second, milliseconds), oldest first."""
    series = call.server.statistics.latency.events.get(call.argv[2])
    return [] if series is None else [[at_s, ms] for at_s, ms in series.samples]


def latency_graph(call: Call) -> object:
    """Reply: text, the samples drawn. Raises: an event without samples."""
    event = call.argv[2]
    series = call.server.statistics.latency.events.get(event)
    if series is None:
        raise CommandError(errors.no_latency_samples(event))
    return Verbatim(graph(event, series, call.now_ms // 1000))


def latency_doctor(call: Call) -> object:
    """Reply: text, what was slow and what may help."""
    return Verbatim(latency_diagnosis(call.server))


def latency_reset(call: Call) -> object:
    """Forget samples, of all events where none is named. Reply: how many events were forgotten."""
    events = call.server.statistics.latency.events
    named = {word.lower() for word in call.argv[2:]}
    gone = [event for event in events if not named or event.lower() in named]
    for event in gone:
        del events[event]
    return len(gone)


def latency_histogram(call: Call) -> object:
    """Return how long commands took: all that were called where none is named.

    Reply: map of a command to a map of ``calls`` and ``histogram_usec``, which says for powers of
        two how many calls took less microseconds. A container stands for its subcommands.
    """
    rows = _named(call.argv[2:]) if len(call.argv) > 2 else all_rows()
    pairs: list[tuple[object, object]] = []
    for row in rows:
        histogram = cumulative(row)
        if histogram:
            usec: list[tuple[object, object]] = [(upper, count) for upper, count in histogram]
            shown = Map([(b"calls", histogram[-1][1]), (b"histogram_usec", Map(usec))])
            pairs.append((row.name, shown))
    return Map(pairs)


def _named(words: list[bytes]) -> list[Command]:
    rows: list[Command] = []
    for word in words:
        parent, _, child = word.lower().partition(b"|")
        row = TABLE.get(parent)
        if row is not None and child:
            row = row.subcommands.get(child)
        if row is not None:
            rows.append(row)
            rows.extend(row.subcommands.values())
    return rows


DEFAULT_COUNT: Final = 10


def slowlog_get(call: Call) -> object:
    """A count of -1 is all of them.

    Reply: list, newest first, of number, time in seconds since 1970, microseconds, words (as many
        as are kept), the client's address, its name, and how many words there were.
    """
    argv = call.argv
    log = call.server.statistics.slowlog
    count = DEFAULT_COUNT
    if len(argv) > 3:
        raise CommandError(errors.bad_subcommand(b"slowlog", argv[1]))
    if len(argv) == 3:
        wanted = at_least(argv[2], -1, errors.BAD_SLOWLOG_COUNT)
        count = wanted if wanted >= 0 else len(log.commands)
    return [_shown(entry) for entry in list(log.commands)[:count]]


def _shown(entry: SlowCommand) -> list[object]:
    return [
        entry.number,
        entry.at_s,
        entry.usec,
        entry.argv,
        entry.address,
        entry.name,
        entry.words,
    ]


def slowlog_len(call: Call) -> object:
    """Reply: how many commands are remembered."""
    return len(call.server.statistics.slowlog.commands)


def slowlog_reset(call: Call) -> object:
    """Forget all entries. Reply: OK."""
    call.server.statistics.slowlog.commands.clear()
    return OK


def memory_usage(call: Call) -> object:
    """SAMPLES 0 looks at all parts. Reply: about the bytes of key and value; null without a key."""
    args = Args(call.argv, 3)
    samples = SAMPLES
    while args.left:
        if not args.flag(b"SAMPLES"):
            raise CommandError(errors.SYNTAX)
        samples = args.integer()
        if samples < 0:
            raise CommandError(errors.SYNTAX)
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
        pairs += [(b"aa.backlog", figures.regions_backlog), (b"aa.graves", figures.tombstones)]
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
    return Verbatim(memory_diagnosis(call.server, call.durability.files))


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
