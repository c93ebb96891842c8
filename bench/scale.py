"""How cost grows: with the entries of a stream, the number of streams, of clients, of pending
entries.

Each of these axes has a row of sizes. At each size a few workloads run, and what counts is CPU per
command: it should be the same at every size. All servers hold the same data at the same time, so
rounds are interleaved here too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Final

from bench.machine import available_bytes
from bench.measure import Shape
from bench.peers import BATCH, Control, ServerError, encode
from bench.results import Figure
from bench.session import Entrant, Session
from bench.workloads import (
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
    named,
    new_group,
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

SIZES: Final[dict[str, tuple[int, ...]]] = {
    "entries": (10_000, 100_000, 1_000_000, 10_000_000, 50_000_000),
    "streams": (1, 10, 100, 1_000, 10_000, 100_000),
    "clients": (1, 10, 100, 1_000, 10_000),
    "pending": (0, 1_000, 10_000, 100_000, 1_000_000),
}
AXES: Final = tuple(SIZES)
ENTRIES_PER_STREAM: Final = 10
ENTRY_BYTES: Final = 40  # of memory, at most; with what a server needs while it is filled


def scale_part(axis: str) -> str:
    """The name of the part of the suite that measures along this axis."""
    return f"scale-{axis}"


def run_axis(session: Session, axis: str) -> None:
    """Measure along one axis, up to the size that the plan and the memory allow."""
    peers = [peer for peer in session.plan.peers if not peer.is_slow]
    fitting = available_bytes() // (ENTRY_BYTES * len(peers))
    wanted = [size for size in SIZES[axis] if size <= session.plan.scale_most]
    sizes = [size for size in wanted if size <= fitting]
    for size in wanted[len(sizes) :]:
        session.leave_out(f"{scale_part(axis)}, {size:,}: the servers need more memory")
    if not sizes:
        return
    counts = {"entries": 4, "streams": 2, "clients": 2, "pending": 4}
    runs = len(sizes) * counts[axis] * len(peers) * session.plan.rounds
    with session.part(f"Scale: {axis}", runs), session.servers(slow=False) as servers:
        entrants = [Entrant(server) for server in servers]
        measure_at = {
            "entries": at_entries,
            "streams": at_streams,
            "clients": at_clients,
            "pending": at_pending,
        }[axis]
        before = 0
        for size in sizes:
            measure_at(session, entrants, before, size)
            before = size
            session.save()


def compare(
    session: Session,
    entrants: list[Entrant],
    axis: str,
    size: int,
    workload: Workload,
    shape: Shape = WIDE,
) -> None:
    """One workload at one size, on what the servers hold."""
    seconds = min(session.plan.seconds, LONGEST_RUN_S)
    prepared = session.prepare(entrants, workload, keep=True)
    session.compare(
        scale_part(axis), prepared, workload, shape, variant=f"{size:,}", seconds=seconds
    )


def note_memory(session: Session, entrants: list[Entrant], axis: str, size: int) -> None:
    """How large the servers are now."""
    for entrant in entrants:
        mib = entrant.server.resident_bytes() / (1 << 20)
        title = f"memory at {size:,}"
        session.add(Figure(scale_part(axis), title, "MiB", entrant.server.name, (mib,)))


# Entries of one stream


def at_entries(session: Session, entrants: list[Entrant], before: int, size: int) -> None:
    """Grow the stream to this size; read, deliver, acknowledge, append."""
    for entrant in entrants:
        session.step(f"{size:,} entries: filling {entrant.server.name}")
        fill(entrant.server.control, before, size)
    note_memory(session, entrants, "entries", size)
    # Appends take IDs between the last entry and the one that will be filled next: the last ID of
    # a stream cannot be put back, not even when what was appended is deleted.
    after_last = entry_id(size - 1).replace(b"-0", b"-*")
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
            "scale-xadd", "XADD, 1 field", the_same("XADD", STREAM, after_last, FIELD, VALUE),
            Reply.LINED, entries=size, most=min(size // 10, LAP), reset=remove_appended,
            check=check_grown,
        ),
    )  # fmt: skip
    for workload in workloads:
        compare(session, entrants, "entries", size, workload)
    for entrant in entrants:
        remove_appended(entrant.server.control, size)
        entrant.server.control.call("XGROUP", "DESTROY", STREAM, GROUP)


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


def remove_appended(control: Control, entries: int) -> None:
    """Bring the stream back to its size."""
    last = entry_id(entries - 1)
    while True:
        appended = control.call("XRANGE", STREAM, b"(" + last, "+", "COUNT", BATCH)
        if not isinstance(appended, list):
            raise ServerError(f"XRANGE gave {appended!r}")
        if not appended:
            break
        control.call("XDEL", STREAM, *[entry[0] for entry in appended])
    expect("entries", entries, control.number("XLEN", STREAM))


# Streams


def at_streams(session: Session, entrants: list[Entrant], before: int, size: int) -> None:
    """Fill so many streams; read from one after another, append to one after another."""
    for entrant in entrants:
        session.step(f"{size:,} streams: filling {entrant.server.name}")
        entrant.server.control.call("FLUSHALL")
        entrant.server.control.send_all(stream_chunks(size))
    note_memory(session, entrants, "streams", size)
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
    for workload in workloads:
        compare(session, entrants, "streams", size, workload)


def stream_key(number: int) -> bytes:
    """The key of the stream with this number, always of the same length."""
    return b"stream:%06d" % number


def stream_chunks(streams: int) -> Iterator[tuple[bytes, int]]:
    """The requests that fill so many streams, with the number of their replies."""
    ids = [entry_id(number) for number in range(ENTRIES_PER_STREAM)]
    step = BATCH // ENTRIES_PER_STREAM
    for start in range(0, streams, step):
        keys = [stream_key(number) for number in range(start, min(start + step, streams))]
        requests = [encode("XADD", key, entry, FIELD, VALUE) for key in keys for entry in ids]
        yield b"".join(requests), len(requests)


def xread_some_stream(call: Call) -> bytes:
    """The first entries of another stream each time."""
    key = stream_key(somewhere(call.number, call.entries))
    return encode("XREAD", "COUNT", ENTRIES_PER_STREAM, "STREAMS", key, "0-0")


def xadd_some_stream(call: Call) -> bytes:
    """An entry for another stream each time."""
    return encode("XADD", stream_key(somewhere(call.number, call.entries)), "*", FIELD, VALUE)


# Clients


def at_clients(session: Session, entrants: list[Entrant], before: int, size: int) -> None:
    """So many clients, each with one command at a time."""
    for name in ("ping", "xadd"):
        # The name tells the load's processes which encoded requests they may use again.
        workload = replace(named(name), name=f"scale-{name}")
        compare(session, entrants, "clients", size, workload, Shape(size, 1))


# Pending entries


def at_pending(session: Session, entrants: list[Entrant], before: int, size: int) -> None:
    """A group with so many pending entries of a consumer that went away."""
    for entrant in entrants:
        session.step(f"{size:,} pending: filling {entrant.server.name}")
        control = entrant.server.control
        control.call("FLUSHALL")
        control.call("XGROUP", "CREATE", STREAM, GROUP, "0", "MKSTREAM")
        fill(control, 0, size)
        deliver(control, size)
    note_memory(session, entrants, "pending", size)
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
    for workload in workloads if size else workloads[:1]:
        compare(session, entrants, "pending", size, workload)


def xack_anywhere(call: Call) -> bytes:
    """An entry far from the one before, of which none has been acknowledged."""
    return encode("XACK", STREAM, GROUP, entry_id(somewhere(call.number, call.entries)))


def check_left_pending(expected: int, control: Control, sent: int, entries: int) -> None:
    """The workers acknowledged all that they read."""
    expect("entries pending", expected, pending_count(control))
