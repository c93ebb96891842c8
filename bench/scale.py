"""How cost grows: with the entries of a stream, the number of streams, of clients, of pending
entries.

Each of these axes has a row of sizes. At each size a few workloads run, and what counts is CPU per
command: it should be the same at every size. Each size of each peer is a server of its own, and
all of them hold their data at the same time: rounds go over all sizes, so that a machine that is
slow for a while is so for each of them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import Final, NamedTuple

from bench.machine import available_bytes
from bench.measure import Shape
from bench.peers import BATCH, Control, Server, encode
from bench.ratios import in_order
from bench.results import Figure
from bench.session import Runner, Session
from bench.workloads import (
    EACH_VALUE,
    FIELD,
    GROUP,
    STREAM,
    VALUE,
    Call,
    Loop,
    Reply,
    Workload,
    all_pending,
    check_acknowledged,
    deliver,
    entry_id,
    expect,
    fill,
    fill_from_start,
    named,
    new_group,
    new_group_alone,
    nothing,
    pending_count,
    somewhere,
    the_same,
    xack,
    xautoclaim,
    xrange_somewhere,
    xreadgroup,
)

WIDE: Final = Shape(50, 16)
LONGEST_RUN_S: Final = 1.0  # many cells: each is kept short
LAP: Final = 200_000  # requests of a lap that changes the stream

ENTRIES_PER_STREAM: Final = 10


class Axis(NamedTuple):
    """What grows, and how.

    Attributes:
        sizes: in ascending order.
        unit_bytes: memory for each, at most; with what a server needs while it is filled.
        fill: bring an empty server to a size.
        rows: what runs at a size, and in which shape; titles are the same at all sizes.
    """

    sizes: tuple[int, ...]
    unit_bytes: int
    fill: Callable[[Control, int], None]
    rows: Callable[[int], list[tuple[Workload, Shape]]]


def scale_part(axis: str) -> str:
    """The name of the part of the suite that measures along this axis."""
    return f"scale-{axis}"


def run_axis(session: Session, axis: str) -> None:
    """Measure along one axis, up to the size that the plan and the memory allow."""
    sizes, unit_bytes, fill_to, rows_at = AXES[axis]
    peers = [peer for peer in session.plan.peers if not peer.is_slow]
    fitting = available_bytes() // (unit_bytes * len(peers))
    wanted = [size for size in sizes if size <= session.plan.scale_most]
    chosen = [
        size for size, held in zip(wanted, accumulate(wanted), strict=True) if held <= fitting
    ]
    for size in wanted[len(chosen) :]:
        session.leave_out(f"{scale_part(axis)}, {size:,}: the servers need more memory")
    if not chosen:
        return
    rows = {size: rows_at(size) for size in chosen}
    runs = sum(len(found) for found in rows.values()) * len(peers) * session.plan.rounds
    with session.part(f"Scale: {axis}", runs), contextlib.ExitStack() as stack:
        servers = {size: stack.enter_context(session.servers(slow=False)) for size in chosen}
        for size in chosen:
            for server in servers[size]:
                session.step(f"{size:,} {axis}: filling {server.name}")
                fill_to(server.control, size)
            note_memory(session, servers[size], axis, size)
        for title in in_order(row.title for size in chosen for row, _ in rows[size]):
            runners = [
                Runner(
                    scale_part(axis), server.name, f"{size:,}", workload, shape,
                    session.ready(server, workload, keep=True),
                )
                for size in chosen
                for workload, shape in rows[size]
                if workload.title == title
                for server in servers[size]
            ]  # fmt: skip
            session.race(runners, session.plan.rounds, min(session.plan.seconds, LONGEST_RUN_S))
            session.save()


def note_memory(session: Session, servers: list[Server], axis: str, size: int) -> None:
    """How large the servers are now."""
    for server in servers:
        mib = server.resident_bytes() / (1 << 20)
        title = f"memory at {size:,}"
        session.add(Figure(scale_part(axis), title, "MiB", server.name, (mib,)))


# Entries of one stream


def at_entries(size: int) -> list[tuple[Workload, Shape]]:
    """Read, deliver, acknowledge, append. Laps that append begin at this size."""
    workloads = (
        Workload(
            "scale-xrange", "XRANGE, 10 entries", partial(xrange_somewhere, 10), Reply.SIZED,
            distinct=512, entries=size,
        ),
        Workload(
            "scale-xreadgroup", "XREADGROUP, 1 entry", partial(xreadgroup, 1), Reply.SIZED,
            entries=size, uses=1, most=LAP, reset=new_group,
        ),
        Workload(
            "scale-xack", "XACK, 1 entry", partial(xack, 1), Reply.SAME,
            entries=size, uses=1, most=LAP, reset=some_pending, check=check_some_acknowledged,
        ),
        Workload(
            "scale-xadd", "XADD, 1 field", the_same("XADD", STREAM, "*", FIELD, VALUE),
            Reply.LINED, entries=size, most=LAP, reset=trim, check=check_grown,
        ),
    )  # fmt: skip
    return [(workload, WIDE) for workload in workloads]


def some_pending(control: Control, entries: int) -> None:
    """A group to which as many entries are delivered as a lap acknowledges."""
    new_group(control, entries)
    deliver(control, min(entries, LAP))


def check_some_acknowledged(control: Control, sent: int, entries: int) -> None:
    """Each request acknowledged one of them."""
    expect("entries still pending", min(entries, LAP) - sent, pending_count(control))


def check_grown(control: Control, sent: int, entries: int) -> None:
    """Each request appended one entry to those that were there."""
    expect("entries", entries + sent, control.number("XLEN", STREAM))


def trim(control: Control, entries: int) -> None:
    """Bring the stream back to its size, at the other end."""
    control.call("XTRIM", STREAM, "MAXLEN", entries)
    expect("entries", entries, control.number("XLEN", STREAM))


# Streams


def fill_streams(control: Control, streams: int) -> None:
    """So many streams of a few entries."""
    control.send_all(stream_chunks(streams))


def at_streams(size: int) -> list[tuple[Workload, Shape]]:
    """Read from one after another, append to one after another."""
    different = max(2 * size // WIDE.clients, WIDE.depth)  # enough to reach every stream
    workloads = (
        Workload(
            "scale-xread", "XREAD, 10 entries", xread_some_stream, Reply.SIZED,
            distinct=different, entries=size,
        ),
        Workload(
            "scale-xadd-streams", "XADD, 1 field", xadd_some_stream, Reply.LINED,
            distinct=different, entries=size,
        ),
    )  # fmt: skip
    return [(workload, WIDE) for workload in workloads]


def stream_key(number: int) -> bytes:
    """The key of the stream with this number, always of the same length."""
    return b"stream:%06d" % number


def stream_chunks(streams: int) -> Iterator[tuple[bytes, int]]:
    """The requests that fill so many streams, with the number of their replies."""
    ids = [entry_id(number) for number in range(ENTRIES_PER_STREAM)]
    step = BATCH // ENTRIES_PER_STREAM
    for start in range(0, streams, step):
        keys = [stream_key(number) for number in range(start, min(start + step, streams))]
        requests = [
            encode("XADD", key, entry, FIELD, EACH_VALUE % number)
            for key in keys
            for number, entry in enumerate(ids)
        ]
        yield b"".join(requests), len(requests)


def xread_some_stream(call: Call) -> bytes:
    """The first entries of another stream each time."""
    key = stream_key(somewhere(call.number, call.entries))
    return encode("XREAD", "COUNT", ENTRIES_PER_STREAM, "STREAMS", key, "0-0")


def xadd_some_stream(call: Call) -> bytes:
    """An entry for another stream each time."""
    return encode("XADD", stream_key(somewhere(call.number, call.entries)), "*", FIELD, VALUE)


# Clients


def at_clients(size: int) -> list[tuple[Workload, Shape]]:
    """So many clients, each with one command at a time."""
    # The name tells the load's processes which encoded requests they may use again.
    return [
        (replace(named(name), name=f"scale-{name}"), Shape(size, 1)) for name in ("ping", "xadd")
    ]


# Pending entries


def fill_pending(control: Control, size: int) -> None:
    """A group with so many pending entries of a consumer that went away."""
    new_group_alone(control, size)
    fill(control, 0, size)
    deliver(control, size)


def at_pending(size: int) -> list[tuple[Workload, Shape]]:
    """Work, look and acknowledge beside what is pending."""
    append = the_same("XADD", STREAM, "*", FIELD, VALUE)
    look = the_same("XPENDING", STREAM, GROUP, "-", "+", 10)
    workloads = (
        Workload(
            "scale-worker", "produce, read, acknowledge", append, Reply.LINED,
            loop=Loop.WORKERS, unit="jobs", check=partial(check_left_pending, size),
        ),
        Workload("scale-xpending", "XPENDING, 10 entries", look, Reply.LINED),
        Workload("scale-xautoclaim", "XAUTOCLAIM, 10 entries", xautoclaim, Reply.SAME),
        Workload(
            "scale-xack-anywhere", "XACK, 1 entry anywhere", xack_anywhere, Reply.SAME,
            entries=size, uses=1, most=LAP, reset=all_pending,
            check=partial(check_acknowledged, 1),
        ),
    )  # fmt: skip
    # Where nothing is pending, all but the first would only tell what an empty reply costs.
    return [(workload, WIDE) for workload in (workloads if size else workloads[:1])]


def xack_anywhere(call: Call) -> bytes:
    """An entry far from the one before, of which none has been acknowledged."""
    return encode("XACK", STREAM, GROUP, entry_id(somewhere(call.number, call.entries)))


def check_left_pending(expected: int, control: Control, sent: int, entries: int) -> None:
    """The workers acknowledged all that they read."""
    expect("entries pending", expected, pending_count(control))


AXES: Final[dict[str, Axis]] = {
    "entries": Axis(
        (10_000, 100_000, 1_000_000, 10_000_000, 50_000_000), 40, fill_from_start, at_entries
    ),
    "streams": Axis((1, 10, 100, 1_000, 10_000, 100_000), 8_000, fill_streams, at_streams),
    "clients": Axis((1, 10, 100, 1_000, 10_000), 40_000, nothing, at_clients),
    "pending": Axis((0, 1_000, 10_000, 100_000, 1_000_000), 400, fill_pending, at_pending),
}
