"""HOTKEYS: the keys that take most time or bytes."""

from __future__ import annotations

import resource
from typing import Final

from headrace.compat import errors
from headrace.compat.errors import SYNTAX, CommandError
from headrace.compat.numbers import INT32_MAX
from headrace.compat.server_errors import NO_SUCH_SLOT
from headrace.protocol.replies import OK, Map
from headrace.server.cluster import SLOTS
from headrace.server.dispatch.args import Args, bounded
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.invoke import begin_measuring, stop_measuring
from headrace.server.statistics.hot_keys import HeavyKeys, HotKeys, Search

_METRICS: Final = 2  # that there are
_MOST_KEYS: Final = 64
_LONGEST_S: Final = 1_000_000


def hotkeys_start(call: Call) -> object:
    """Run ``METRICS n [CPU] [NET] [COUNT k] [DURATION s] [SAMPLE ratio] [SLOTS n slot ...]``.

    Other metrics than these two are passed over, if there is one of these. Reply: OK.
    """
    server = call.server
    found = server.statistics.hot_keys
    if found is not None and found.is_active:
        raise CommandError(errors.HOTKEYS_IN_PROGRESS)
    search = _search(Args(call.argv, 2), server.cluster is not None)
    begin_measuring(server, HotKeys(search, call.now_ms, server.clock.monotonic_ms()))
    return OK


def _search(args: Args, in_cluster: bool) -> Search:
    search = Search()
    _read_metrics(args, search)
    while args.left:
        option = args.option()
        if not args.left:
            raise CommandError(SYNTAX)
        if option == b"COUNT":
            search.count = bounded(args.word(), 1, _MOST_KEYS, errors.HOTKEYS_BAD_COUNT)
        elif option == b"DURATION":
            search.duration_s = bounded(args.word(), 1, _LONGEST_S, errors.HOTKEYS_BAD_DURATION)
        elif option == b"SAMPLE":
            search.ratio = bounded(args.word(), 1, INT32_MAX, errors.HOTKEYS_BAD_SAMPLE)
        elif option == b"SLOTS":
            _read_slots(args, search, in_cluster)
        else:
            raise CommandError(SYNTAX)
    return search


def _read_metrics(args: Args, search: Search) -> None:
    if args.left < 2 or args.option() != b"METRICS":
        raise CommandError(errors.HOTKEYS_WITHOUT_METRICS)
    for _ in range(bounded(args.word(), 1, _METRICS, errors.HOTKEYS_BAD_METRICS)):
        if not args.left:
            raise CommandError(errors.HOTKEYS_TOO_FEW_METRICS)
        metric = args.option()
        if metric == b"CPU":
            if search.by_time:
                raise CommandError(errors.HOTKEYS_METRIC_TWICE % metric)
            search.by_time = True
        elif metric == b"NET":
            if search.by_bytes:
                raise CommandError(errors.HOTKEYS_METRIC_TWICE % metric)
            search.by_bytes = True
    if not search.by_time and not search.by_bytes:
        raise CommandError(errors.HOTKEYS_NO_METRIC)


def _read_slots(args: Args, search: Search, in_cluster: bool) -> None:
    if not in_cluster:
        raise CommandError(errors.HOTKEYS_SLOTS_WITHOUT_CLUSTER)
    if search.slots:
        raise CommandError(errors.HOTKEYS_SLOTS_TWICE)
    count = bounded(args.word(), 1, SLOTS, errors.HOTKEYS_BAD_SLOT_COUNT)
    if args.left < count:
        raise CommandError(errors.HOTKEYS_TOO_FEW_SLOTS)
    named: set[int] = set()
    for _ in range(count):
        slot = bounded(args.word(), 0, SLOTS - 1, NO_SUCH_SLOT)
        if slot in named:
            raise CommandError(errors.HOTKEYS_SLOT_TWICE)
        named.add(slot)
        search.slots.append(slot)


def hotkeys_stop(call: Call) -> object:
    """Reply: OK, or null where nothing was going on."""
    found = call.server.statistics.hot_keys
    if found is None or not found.is_active:
        return None
    stop_measuring(call.server)
    return OK


def hotkeys_reset(call: Call) -> object:
    """Reply: OK."""
    found = call.server.statistics.hot_keys
    if found is not None and found.is_active:
        raise CommandError(errors.HOTKEYS_STILL_IN_PROGRESS)
    call.server.statistics.hot_keys = None
    return OK


def hotkeys_get(call: Call) -> object:
    """Reply: list of one map, with the keys and their cost; null where none was looked for."""
    found = call.server.statistics.hot_keys
    if found is None:
        return None
    return [Map(_facts(found, call.server.clock.monotonic_ms()))]


def _facts(found: HotKeys, monotonic_ms: int) -> list[tuple[object, object]]:
    search = found.search
    facts: list[tuple[object, object]] = [
        (b"tracking-active", int(found.is_active)),
        (b"sample-ratio", search.ratio),
        (b"selected-slots", _ranges(sorted(search.slots)) if search.slots else [[0, SLOTS - 1]]),
    ]
    of_sample = search.ratio > 1 and search.slots
    if of_sample:
        facts.append((b"sampled-commands-selected-slots-us", found.sampled.ns // 1000))
    if search.slots:
        facts.append((b"all-commands-selected-slots-us", found.selected.ns // 1000))
    facts.append((b"all-commands-all-slots-us", found.all.ns // 1000))
    if of_sample:
        facts.append((b"net-bytes-sampled-commands-selected-slots", found.sampled.wire_bytes))
    if search.slots:
        facts.append((b"net-bytes-all-commands-selected-slots", found.selected.wire_bytes))
    facts.append((b"net-bytes-all-commands-all-slots", found.all.wire_bytes))
    facts.append((b"collection-start-time-unix-ms", found.began_ms))
    facts.append((b"collection-duration-ms", found.took_ms(monotonic_ms)))
    if found.by_time is not None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        facts.append((b"total-cpu-time-user-ms", int((used.ru_utime - found.user_s) * 1000)))
        facts.append((b"total-cpu-time-sys-ms", int((used.ru_stime - found.system_s) * 1000)))
    if found.by_bytes is not None:
        facts.append((b"total-net-bytes", found.by_bytes.total))
    if found.by_time is not None:
        facts.append((b"by-cpu-time-us", _shown(found.by_time, search.count, 1000)))
    if found.by_bytes is not None:
        facts.append((b"by-net-bytes", _shown(found.by_bytes, search.count, 1)))
    return facts


def _shown(keys: HeavyKeys, count: int, unit: int) -> list[object]:
    """Return keys and their cost, in whole units; those of cost 0 are left out."""
    shown: list[object] = []
    for key, weight in keys.heaviest(count):
        if weight >= unit:
            shown.append(key)
            shown.append(weight // unit)
    return shown


def _ranges(slots: list[int]) -> list[list[int]]:
    """Return slots in order, those without a gap between as first and last, others alone."""
    ranges: list[list[int]] = []
    for slot in slots:
        if ranges and ranges[-1][-1] == slot - 1:
            ranges[-1][1:] = [slot]
        else:
            ranges.append([slot])
    return ranges
