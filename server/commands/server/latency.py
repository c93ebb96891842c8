"""LATENCY: what took long, and how long commands take."""

from __future__ import annotations

from headrace.compat.errors import CommandError, no_latency_samples
from headrace.protocol.replies import Map, Verbatim
from headrace.server.commands.help import show_help
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.rows import TABLE, Command
from headrace.server.info.command_stats import all_rows, cumulative
from headrace.server.info.latency_report import doctor, graph


def latency_latest(call: Call) -> object:
    """Reply: list, for each event, of its name, the second and the milliseconds of its latest
    sample, and its highest milliseconds ever.
    """
    return [
        [event, series.samples[-1][0], series.samples[-1][1], series.highest_ms]
        for event, series in call.server.statistics.latency.events.items()
    ]


def latency_history(call: Call) -> object:
    """Reply: list of (second, milliseconds), oldest first."""
    series = call.server.statistics.latency.events.get(call.argv[2])
    if series is None:
        return []
    return [[at_s, ms] for at_s, ms in series.samples]


def latency_graph(call: Call) -> object:
    """Reply: text, the samples drawn. Raises: an event without samples."""
    event = call.argv[2]
    series = call.server.statistics.latency.events.get(event)
    if series is None:
        raise CommandError(no_latency_samples(event))
    return Verbatim(graph(event, series, call.now_ms // 1000))


def latency_doctor(call: Call) -> object:
    """Reply: text, what was slow and what may help."""
    return Verbatim(doctor(call.server))


def latency_reset(call: Call) -> object:
    """Forget samples, of all events where none is named.

    Reply: how many events were forgotten.
    """
    events = call.server.statistics.latency.events
    named = {word.lower() for word in call.argv[2:]}
    gone = [event for event in events if not named or event.lower() in named]
    for event in gone:
        del events[event]
    return len(gone)


def latency_histogram(call: Call) -> object:
    """How long commands took: all that were called where none is named.

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


def latency_help(call: Call) -> object:
    """Reply: list of lines."""
    return show_help(call)
