"""What is measured: a table of workloads.

A row says which request is sent, what its replies look like, and what has to be there before: data
filled once (``setup``), put back before each lap (``reset``), and looked at after it (``check``).
Requests are encoded before the clock starts. Most workloads send the same request again and again
or a few thousand different ones in turn. Some use up what was prepared (XACK can acknowledge an
entry once): they run in laps, and what happens between laps is not measured.

A reply is checked without being parsed, which would make the load slower than the server. What one
reply looks like is found out by asking each server once, since fakeredis frames some replies in its
own way; then every reply has to be the same bytes, the same length, or the same number of lines,
and not an error. A check at the end of a lap finds what such a look cannot: entries that were not
appended, or not acknowledged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Final, NamedTuple

from bench.peers import Control, ServerError, encode

STREAM: Final = b"stream"
GROUP: Final = b"group"
CHANNEL: Final = b"channel"
FIELD: Final = b"field"
VALUE: Final = b"x" * 8
EACH_VALUE: Final = b"v%07x"  # as long, and another one for each entry: it cannot be stored once
EACH_MOST: Final = 0xFFFFFFF  # the greatest number that has seven digits there
RING: Final = 512  # requests with different values that a client sends again and again
MANY_READERS: Final = 100
MANY_WORKERS: Final = 50  # of whom half are producers
DELIVERY: Final = 1000  # entries that a consumer reads at once while preparing
BASE_MS: Final = 10**12  # long past, so `*` gives greater IDs; all have 13 digits


class Reply(Enum):
    """What is known of the replies to the requests of one workload."""

    SAME = "the same bytes"
    SIZED = "the same length"
    LINED = "the same number of lines"


class Loop(Enum):
    """Who waits for whom."""

    COMMANDS = "each client sends its next batch when all replies of the last are in"
    WORKERS = "each client appends a batch, reads as many entries, acknowledges these"
    WAITERS = "half of the clients append a batch when as many entries were done by the others"
    READERS = "one client appends a batch when all readers have read the last one"
    SUBSCRIBERS = "one client publishes a batch when all subscribers have the last one"

    @property
    def is_fan_out(self) -> bool:
        """Return whether one client, who comes on top, feeds all others."""
        return self in (Loop.READERS, Loop.SUBSCRIBERS)

    @property
    def is_together(self) -> bool:
        """Return whether what one client has been given decides what another one sends."""
        return self is Loop.WAITERS or self.is_fan_out


class Call(NamedTuple):
    """Which request is wanted."""

    number: int  # counts over all clients
    client: int
    entries: int  # how many were filled


def nothing(control: Control, entries: int) -> None:
    """Prepare nothing."""


def _believe(control: Control, sent: int, entries: int) -> None:
    """Check nothing: the replies say all."""


@dataclass(frozen=True)
class Workload:
    """A row of the table. The functions are called with a control connection and a size."""

    name: str
    title: str
    request: Callable[[Call], bytes]
    reply: Reply
    loop: Loop = Loop.COMMANDS
    unit: str = "commands"
    replies: int = 1  # to one request
    distinct: int = 1  # different requests of one client, sent in turn
    entries: int = 0  # filled by ``setup``
    uses: int = 0  # of these, what one request uses up
    most: int = 0  # requests in one lap; 0 is no limit
    setup: Callable[[Control, int], None] = nothing
    reset: Callable[[Control, int], None] = nothing
    check: Callable[[Control, int, int], None] = _believe
    clients: tuple[int, ...] = ()  # instead of those that the suite takes
    is_quick: bool = False  # belongs to the short run
    is_paced: bool = False  # is run at half load too

    def lap(self, entries: int) -> int:
        """Return how many requests one lap may send; 0 is no limit."""
        if not self.uses:
            return self.most
        available = entries // self.uses
        return min(available, self.most) if self.most else available


# Encoding


def entry_id(number: int) -> bytes:
    """The ID of the entry with this number, always of the same length."""
    return b"%d-0" % (BASE_MS + number)


def somewhere(number: int, count: int) -> int:
    """A place among ``count``, far from that of the next number, the same in each run."""
    return number * 2_654_435_761 % count


def always(request: bytes, call: Call) -> bytes:
    """The same request each time; bound to it with ``partial``."""
    return request


def the_same(*words: str | bytes | int) -> Callable[[Call], bytes]:
    """A maker of one request."""
    return partial(always, encode(*words))


# Filling


def each_value(words: Sequence[str | bytes | int], call: Call) -> bytes:
    """These words, with a value of this request's own where ``VALUE`` stands."""
    value = EACH_VALUE % (call.number & EACH_MOST)
    return encode(*[value if word == VALUE else word for word in words])


def with_each_value(*words: str | bytes | int) -> Callable[[Call], bytes]:
    """As ``the_same``, but with another value for each request."""
    return partial(each_value, words)


def fill(control: Control, first: int, last: int, key: bytes = STREAM) -> None:
    """Append the entries with numbers from ``first`` up to, not including, ``last``.

    Their values differ.
    """
    control.send_all(fill_chunks(first, last, key, control.batch))


def fill_chunks(first: int, last: int, key: bytes, batch: int) -> Iterator[tuple[bytes, int]]:
    """The requests of ``fill``, so many at a time, with the number of their replies."""
    head, tail = encode("XADD", key, entry_id(0), FIELD, VALUE).split(entry_id(0))
    tail = tail.replace(b"%", b"%%").replace(VALUE, EACH_VALUE)
    template = head.replace(b"%", b"%%") + b"%d-0" + tail
    for start in range(BASE_MS + first, BASE_MS + last, batch):
        stop = min(start + batch, BASE_MS + last)
        requests = [template % (ms, ms & EACH_MOST) for ms in range(start, stop)]
        yield b"".join(requests), stop - start


def fill_from_start(control: Control, entries: int) -> None:
    """A stream of so many entries."""
    fill(control, 0, entries)


def empty_stream(control: Control, entries: int) -> None:
    """No stream."""
    control.call("DEL", STREAM)


def set_key(control: Control, entries: int) -> None:
    """A string to get."""
    control.call("SET", "key", VALUE)


def new_group(control: Control, entries: int) -> None:
    """A group that has read nothing."""
    control.call("XGROUP", "DESTROY", STREAM, GROUP)
    control.call("XGROUP", "CREATE", STREAM, GROUP, "0")


def new_group_alone(control: Control, entries: int) -> None:
    """An empty stream with a group."""
    control.call("DEL", STREAM)
    control.call("XGROUP", "CREATE", STREAM, GROUP, "0", "MKSTREAM")


def deliver(control: Control, entries: int, consumer: str = "first") -> None:
    """Have a consumer of the group read so many entries, which are pending then."""
    chunks = []
    for start in range(0, entries, DELIVERY):
        count = min(DELIVERY, entries - start)
        words = ("XREADGROUP", "GROUP", GROUP, consumer, "COUNT", count, "STREAMS", STREAM, ">")
        chunks.append((encode(*words), 1))
    control.send_all(chunks)


def all_pending(control: Control, entries: int) -> None:
    """A group to which every entry is delivered."""
    new_group(control, entries)
    deliver(control, entries)


# Checking


def expect(what: str, expected: int, actual: int) -> None:
    """Raise ServerError unless both are the same."""
    if expected != actual:
        raise ServerError(f"{what}: {actual} instead of {expected}")


def pending_count(control: Control) -> int:
    """Return how many entries of the group are pending."""
    summary = control.call("XPENDING", STREAM, GROUP)
    if not isinstance(summary, list) or not isinstance(summary[0], int):
        raise ServerError(f"XPENDING gave {summary!r}")
    return summary[0]


def check_appended(per_request: int, control: Control, sent: int, entries: int) -> None:
    """Each request appended so many entries."""
    expect("entries appended", sent * per_request, control.number("XLEN", STREAM))


def check_delivered(per_request: int, control: Control, sent: int, entries: int) -> None:
    """Each request delivered so many entries of the group."""
    expect("entries delivered", sent * per_request, pending_count(control))


def check_acknowledged(per_request: int, control: Control, sent: int, entries: int) -> None:
    """Each request acknowledged so many of the entries, which were all pending."""
    expect("entries still pending", entries - sent * per_request, pending_count(control))


def check_none_pending(control: Control, sent: int, entries: int) -> None:
    """Everything was acknowledged."""
    expect("entries still pending", 0, pending_count(control))


def check_all_done(control: Control, sent: int, entries: int) -> None:
    """As many were appended as were acknowledged, and no other is pending."""
    about = control.call("XINFO", "STREAM", STREAM)
    if not isinstance(about, list) or b"entries-added" not in about:
        raise ServerError(f"XINFO STREAM gave {about!r}")
    expect("entries appended", sent, about[about.index(b"entries-added") + 1])
    check_none_pending(control, sent, entries)


# Requests that differ


def xadd_idmp(call: Call) -> bytes:
    """An append under an idempotent ID of its own, each client a producer."""
    words = ("XADD", STREAM, "IDMP", f"producer-{call.client}", call.number, "*", FIELD, VALUE)
    return encode(*words)


def xadd_idmpauto(call: Call) -> bytes:
    """An append whose content is the idempotent ID, each client a producer."""
    value = b"%0*d" % (len(VALUE), call.number)
    return encode("XADD", STREAM, "IDMPAUTO", f"producer-{call.client}", "*", FIELD, value)


def xrange_somewhere(count: int, call: Call) -> bytes:
    """So many entries from a place that changes."""
    start = entry_id(somewhere(call.number, call.entries - count))
    return encode("XRANGE", STREAM, start, "+", "COUNT", count)


def xread_somewhere(count: int, call: Call) -> bytes:
    """So many entries after a place that changes."""
    after = entry_id(somewhere(call.number, call.entries - count))
    return encode("XREAD", "COUNT", count, "STREAMS", STREAM, after)


def xreadgroup(count: int, call: Call) -> bytes:
    """So many new entries, each client a consumer."""
    consumer = f"consumer-{call.client}"
    return encode(
        "XREADGROUP", "GROUP", GROUP, consumer, "COUNT", count, "STREAMS", STREAM, ">"
    )  # fmt: skip


def xack(count: int, call: Call) -> bytes:
    """So many entries of which none has been acknowledged."""
    first = call.number * count
    ids = [entry_id(number) for number in range(first, first + count)]
    return encode("XACK", STREAM, GROUP, *ids)


def xautoclaim(call: Call) -> bytes:
    """The ten oldest pending entries, each client a consumer."""
    consumer = f"consumer-{call.client}"
    return encode("XAUTOCLAIM", STREAM, GROUP, consumer, "0", "0-0", "COUNT", 10)


def xadd_large(call: Call) -> bytes:
    """An append of a kilobyte."""
    value = EACH_VALUE % (call.number & EACH_MOST)
    return encode("XADD", STREAM, "*", FIELD, value.ljust(1024, b"x"))


def transaction(call: Call) -> bytes:
    """Ten appends that are made together."""
    appends = []
    for number in range(10 * call.number, 10 * call.number + 10):
        appends.append(encode("XADD", STREAM, "*", FIELD, EACH_VALUE % (number & EACH_MOST)))
    return encode("MULTI") + b"".join(appends) + encode("EXEC")


FIVE_FIELDS: Final = [word for n in range(1, 6) for word in (b"field%d" % n, VALUE)]

# The limits on laps keep what an append leaves behind under a few hundred MB.
WORKLOADS: Final[tuple[Workload, ...]] = (
    Workload("ping", "PING", the_same("PING"), Reply.SAME, is_quick=True),
    Workload("set", "SET", the_same("SET", "key", VALUE), Reply.SAME),
    Workload(
        "get", "GET", the_same("GET", "key"), Reply.SAME,
        setup=set_key, is_paced=True,
    ),
    Workload(
        "xadd", "XADD, 1 field", with_each_value("XADD", STREAM, "*", FIELD, VALUE), Reply.LINED,
        distinct=RING, most=4_000_000, reset=empty_stream, check=partial(check_appended, 1),
        is_quick=True, is_paced=True,
    ),
    Workload(
        "xadd-5", "XADD, 5 fields", with_each_value("XADD", STREAM, "*", *FIVE_FIELDS),
        Reply.LINED, distinct=RING, most=2_000_000, reset=empty_stream,
        check=partial(check_appended, 1),
    ),
    Workload(
        "xadd-1k", "XADD, 1 KB", xadd_large, Reply.LINED,
        distinct=RING // 8, most=300_000, reset=empty_stream, check=partial(check_appended, 1),
    ),
    Workload(
        "xadd-maxlen", "XADD MAXLEN ~ 1000",
        with_each_value("XADD", STREAM, "MAXLEN", "~", 1000, "*", FIELD, VALUE), Reply.LINED,
        distinct=RING, reset=empty_stream,
    ),
    Workload(
        "xadd-idmp", "XADD IDMP", xadd_idmp, Reply.LINED,
        distinct=4096, most=4_000_000, reset=empty_stream, check=partial(check_appended, 1),
    ),
    Workload(
        "xadd-idmpauto", "XADD IDMPAUTO", xadd_idmpauto, Reply.LINED,
        distinct=4096, most=4_000_000, reset=empty_stream, check=partial(check_appended, 1),
    ),
    Workload(
        "xrange-100", "XRANGE, 100 entries", partial(xrange_somewhere, 100), Reply.SIZED,
        distinct=512, entries=100_000, setup=fill_from_start, is_quick=True,
    ),
    Workload(
        "xrevrange-10", "XREVRANGE, last 10 entries",
        the_same("XREVRANGE", STREAM, "+", "-", "COUNT", 10), Reply.SAME,
        entries=100_000, setup=fill_from_start,
    ),
    Workload(
        "xread-10", "XREAD, 10 entries", partial(xread_somewhere, 10), Reply.SIZED,
        distinct=512, entries=100_000, setup=fill_from_start, is_quick=True, is_paced=True,
    ),
    Workload(
        "xreadgroup-1", "XREADGROUP, 1 entry", partial(xreadgroup, 1), Reply.SIZED,
        entries=500_000, uses=1, setup=fill_from_start, reset=new_group,
        check=partial(check_delivered, 1), is_quick=True, is_paced=True,
    ),
    Workload(
        "xreadgroup-100", "XREADGROUP, 100 entries", partial(xreadgroup, 100), Reply.SIZED,
        entries=1_000_000, uses=100, setup=fill_from_start, reset=new_group,
        check=partial(check_delivered, 100),
    ),
    Workload(
        "xack-1", "XACK, 1 entry", partial(xack, 1), Reply.SAME,
        entries=300_000, uses=1, setup=fill_from_start, reset=all_pending,
        check=partial(check_acknowledged, 1), is_quick=True, is_paced=True,
    ),
    Workload(
        "xack-100", "XACK, 100 entries", partial(xack, 100), Reply.SAME,
        entries=500_000, uses=100, setup=fill_from_start, reset=all_pending,
        check=partial(check_acknowledged, 100),
    ),
    Workload(
        "xautoclaim", "XAUTOCLAIM, 10 entries", xautoclaim, Reply.SAME,
        entries=10_000, setup=fill_from_start, reset=all_pending,
    ),
    Workload(
        "worker", "produce, read, acknowledge",
        with_each_value("XADD", STREAM, "MAXLEN", "~", 100_000, "*", FIELD, VALUE), Reply.LINED,
        loop=Loop.WORKERS, unit="jobs", reset=new_group_alone, check=check_none_pending,
        is_quick=True,
    ),
    Workload(
        "worker-block", "produce for workers that wait",
        with_each_value("XADD", STREAM, "MAXLEN", "~", 100_000, "*", FIELD, VALUE), Reply.LINED,
        loop=Loop.WAITERS, unit="jobs", reset=new_group_alone, check=check_all_done,
        clients=(MANY_WORKERS,),
    ),
    Workload(
        "multi-10", "MULTI, 10 XADD, EXEC", transaction, Reply.LINED,
        distinct=RING // 8, unit="transactions", replies=12, most=400_000, reset=empty_stream,
        check=partial(check_appended, 10),
    ),
    Workload(
        "xread-block", "XREAD BLOCK, 1 writer, 100 readers",
        the_same("XADD", STREAM, entry_id(0), FIELD, VALUE), Reply.LINED,
        loop=Loop.READERS, unit="deliveries", reset=empty_stream, clients=(MANY_READERS,),
        is_quick=True,
    ),
    Workload(
        "pubsub", "PUBLISH, 1 publisher, 100 subscribers",
        the_same("PUBLISH", CHANNEL, VALUE), Reply.LINED,
        loop=Loop.SUBSCRIBERS, unit="deliveries", clients=(MANY_READERS,),
    ),
)  # fmt: skip


def named(name: str) -> Workload:
    """The workload of this name.

    Raises: KeyError.
    """
    for workload in WORKLOADS:
        if workload.name == name:
            return workload
    raise KeyError(name)
