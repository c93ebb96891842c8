"""The clients that make the load: sockets of one process, and the loops that keep them busy.

Each loop does as little as possible between a reply and the next request: the requests are encoded
before, replies are checked by comparing, measuring or counting their bytes, never parsed (save
where the next request needs an ID out of the last reply). Times are taken once per batch.

In the usual **closed** loop a client sends its next batch when all replies to the last are in, so
the rate is what the server makes of it. In the **paced** loop requests leave at a given rate,
whether or not the server has answered earlier ones, and the latency counts from the moment when a
request was due: a server that stands still for 10 ms is seen to be late for everything that was due
in that time, which a closed loop would miss (it waits politely and asks once). The loop never waits
for the server, so when it is late itself the machine did something else; what would have been due
in such a gap is due after it, lest it count as the server's.
"""

from __future__ import annotations

import select
import socket
import time
from array import array
from collections import deque
from dataclasses import dataclass
from typing import Final, NamedTuple

import hiredis

from bench.peers import encode, first_error
from bench.workloads import (
    CHANNEL,
    GROUP,
    STREAM,
    VALUE,
    Call,
    Loop,
    Reply,
    Workload,
    entry_id,
)

STALL_S: Final = 30.0  # a server that says nothing for so long has lost a reply
LONGEST_READ: Final = 1 << 17
READABLE: Final = select.EPOLLIN
WRITABLE: Final = select.EPOLLIN | select.EPOLLOUT
MINUS: Final = ord("-")
NO_LIMIT: Final = 1 << 60
GAP_NS: Final = 500_000  # longer than a turn of the paced loop: the process was not at work


class WrongReplyError(Exception):
    """A server answered with something else than it did when it was asked first."""


@dataclass(frozen=True)
class Task:
    """What one process has to do."""

    port: int
    workload: Workload
    sample: bytes  # the reply to one request
    entries: int
    clients: int
    depth: int
    seconds: float
    rate_per_s: float = 0.0  # paced when above 0
    process: int = 0
    processes: int = 1

    def own_clients(self) -> range:
        """The numbers of this process's clients."""
        return range(self.process, self.clients, self.processes)


class Tally(NamedTuple):
    """What one process has done."""

    units: int
    requests: int
    started_ns: int
    ended_ns: int
    latencies_ns: bytes  # array("q"), one for each batch
    cpu_s: float


# One client


class Connection:
    """A client's socket, with what it has to send and to receive."""

    __slots__ = (
        "batches",
        "descriptor",
        "due_ns",
        "ids",
        "may_hold_errors",
        "missing",
        "position",
        "reader",
        "replies",
        "rest",
        "sent_ns",
        "socket",
        "step",
    )

    def __init__(self, port: int, batches: list[bytes]) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=STALL_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.descriptor = self.socket.fileno()
        self.batches = batches
        self.position = 0
        self.missing = 0  # bytes or lines until the batch is answered
        self.sent_ns = 0
        self.rest = b""  # what the kernel did not take
        self.due_ns: deque[int] = deque()
        self.reader = hiredis.Reader()  # for the loops that have to understand replies
        self.replies: list[object] = []
        self.may_hold_errors = False  # so each reply is looked through, which takes long
        self.step = 0
        self.ids: list[bytes] = []

    def send(self, data: bytes, poll: select.epoll) -> None:
        """Hand over what the kernel takes at once; the rest when it has room."""
        if self.rest:
            self.rest += data
            return
        try:
            sent = self.socket.send(data)
        except BlockingIOError:
            sent = 0
        if sent < len(data):
            self.rest = data[sent:]
            poll.modify(self.descriptor, WRITABLE)

    def send_rest(self, poll: select.epoll) -> None:
        """The socket has room again."""
        data, self.rest = self.rest, b""
        poll.modify(self.descriptor, READABLE)
        self.send(data, poll)

    def receive(self) -> bytes:
        """Return what has arrived.

        Raises: WrongReplyError when the server hung up.
        """
        data = self.socket.recv(LONGEST_READ)
        if not data:
            raise WrongReplyError("the server hung up")
        return data

    def parse(self, data: bytes, awaited: int) -> bool:
        """Collect replies; whether as many as awaited are there.

        Raises: WrongReplyError for an error among them.
        """
        if b"\n-" in data or (data[0] == MINUS and not data[1:2].isdigit()):  # no rest of an ID
            self.may_hold_errors = True
        self.reader.feed(data)
        while True:
            reply = self.reader.gets()
            if reply is False:
                break
            error = first_error(reply) if self.may_hold_errors else ""
            if error:
                raise WrongReplyError(error)
            self.replies.append(reply)
        return len(self.replies) >= awaited


# Requests


def batches_of(task: Task, client: int) -> list[bytes]:
    """Return what a client sends: a list that ends with the lap, or a ring without end."""
    workload, depth = task.workload, task.depth
    if workload.uses:
        count = workload.lap(task.entries) // (task.clients * depth)
    elif workload.distinct == 1:
        return [workload.request(Call(client, client, task.entries)) * depth]
    else:
        count = max(1, workload.distinct // depth)
    batches = []
    size = depth * task.clients  # one batch of every client
    for start in range(0, count * size, size):
        numbers = range(start + client, start + size, task.clients)
        calls = [Call(number, client, task.entries) for number in numbers]
        batches.append(b"".join([workload.request(call) for call in calls]))
    return batches


# Loops


class Run:
    """The clients of one process in one run."""

    def __init__(self, task: Task, requests: list[list[bytes]]) -> None:
        self.task = task
        self.connections: list[Connection] = []
        self.poll = select.epoll()
        self.latencies: array[int] = array("q")
        self.deadline_ns = 0
        self.ended_ns = 0
        try:
            for batches in requests:
                self.connections.append(Connection(task.port, batches))
            if task.workload.loop is Loop.SUBSCRIBERS:
                for connection in self.connections[1:]:
                    subscribe(connection)
            for connection in self.connections:
                connection.socket.setblocking(False)
                self.poll.register(connection.descriptor, READABLE)
        except BaseException:
            self.close()
            raise
        self.by_descriptor = {known.descriptor: known for known in self.connections}

    def close(self) -> None:
        """Hang up."""
        self.poll.close()
        for connection in self.connections:
            connection.socket.close()

    def go(self) -> Tally:
        """Run to the end of the time or of the requests.

        Raises: WrongReplyError.
        """
        cpu_s = time.process_time()
        started_ns = time.perf_counter_ns()
        self.ended_ns = started_ns
        self.deadline_ns = started_ns + int(self.task.seconds * 1e9)
        requests = 0
        units_per_request = 1
        if self.task.rate_per_s:
            requests = self._paced()
        elif self.task.workload.loop is Loop.COMMANDS:
            requests = self._commands()
        elif self.task.workload.loop is Loop.WORKERS:
            requests = self._workers()
        elif self.task.workload.loop is Loop.WAITERS:
            requests = self._waiters()
        else:
            units_per_request = len(self.connections) - 1
            if self.task.workload.loop is Loop.READERS:
                requests = self._readers()
            else:
                requests = self._subscribers()
        return Tally(
            requests * units_per_request,
            requests,
            started_ns,
            self.ended_ns,
            self.latencies.tobytes(),
            time.process_time() - cpu_s,
        )

    def _events(self, timeout_s: float = STALL_S) -> list[tuple[int, int]]:
        events = self.poll.poll(timeout_s)
        if not events and timeout_s:
            raise WrongReplyError(f"no reply within {STALL_S:.0f} s")
        return events

    def _commands(self) -> int:
        task = self.task
        kind, depth = task.workload.reply, task.depth
        expected = task.sample * depth
        awaited = expected.count(b"\n") if kind is Reply.LINED else len(expected)
        is_lined, is_same = kind is Reply.LINED, kind is Reply.SAME
        is_ring = not task.workload.uses  # else each client's batches are all it may send
        budget = (task.workload.most or NO_LIMIT) // depth // task.processes
        by_descriptor, poll, record = self.by_descriptor, self.poll, self.latencies.append
        clock, deadline_ns = time.perf_counter_ns, self.deadline_ns
        now_ns = clock()
        running = 0
        for connection in self.connections:
            if connection.batches:
                connection.missing = awaited
                connection.sent_ns = now_ns
                connection.position = 1
                connection.send(connection.batches[0], poll)
                running += 1
        budget -= running
        while running:
            for descriptor, event in self._events():
                connection = by_descriptor[descriptor]
                if event & select.EPOLLOUT:
                    connection.send_rest(poll)
                    continue
                data = connection.receive()
                missing = connection.missing
                if is_lined:
                    if b"\n-" in data or (missing == awaited and data[0] == MINUS):
                        raise WrongReplyError(data[:200].decode(errors="replace"))
                    missing -= data.count(b"\n")
                else:
                    if is_same:
                        place = awaited - missing
                        if data != expected[place : place + len(data)]:
                            raise WrongReplyError(f"{data[:200]!r} instead of {task.sample!r}")
                    missing -= len(data)
                connection.missing = missing
                if missing > 0:
                    continue
                if missing < 0:
                    raise WrongReplyError(f"longer than awaited: ...{data[-200:]!r}")
                now_ns = clock()
                record(now_ns - connection.sent_ns)
                batches = connection.batches
                position = connection.position
                if is_ring and position == len(batches):
                    position = 0
                if now_ns >= deadline_ns or budget <= 0 or position == len(batches):
                    running -= 1
                    continue
                budget -= 1
                connection.position = position + 1
                connection.missing = awaited
                connection.sent_ns = now_ns
                connection.send(batches[position], poll)
        self.ended_ns = now_ns
        return len(self.latencies) * depth

    def _paced(self) -> int:
        """One request at a time, on one connection after another, each when it is due."""
        task = self.task
        is_lined = task.workload.reply is Reply.LINED
        awaited = task.sample.count(b"\n") if is_lined else len(task.sample)
        by_descriptor, poll, record = self.by_descriptor, self.poll, self.latencies.append
        clock, deadline_ns = time.perf_counter_ns, self.deadline_ns
        step_ns = 1e9 / (task.rate_per_s / task.processes)
        first_ns = deadline_ns - task.seconds * 1e9
        sent = answered = 0
        connections, count = self.connections, len(self.connections)
        most = NO_LIMIT  # requests; those of a lap can be sent once
        if task.workload.uses:
            most = count * min(len(connection.batches) for connection in connections)
        now_ns = clock()
        last_ns = turned_ns = now_ns
        while (now_ns < deadline_ns and sent < most) or answered < sent:
            if now_ns - turned_ns > GAP_NS:
                first_ns += now_ns - turned_ns
            turned_ns = now_ns
            due_ns = first_ns + sent * step_ns
            while due_ns <= now_ns and due_ns < deadline_ns and sent < most:
                connection = connections[sent % count]
                batches = connection.batches
                connection.due_ns.append(int(due_ns))
                connection.send(batches[sent // count % len(batches)], poll)
                sent += 1
                due_ns = first_ns + sent * step_ns
            for descriptor, event in self.poll.poll(0):
                connection = by_descriptor[descriptor]
                if event & select.EPOLLOUT:
                    connection.send_rest(poll)
                    continue
                data = connection.receive()
                if b"\n-" in data or (not connection.missing and data[0] == MINUS):
                    raise WrongReplyError(data[:200].decode(errors="replace"))
                # Here `missing` counts what has arrived of a reply that is not whole.
                arrived = connection.missing + (data.count(b"\n") if is_lined else len(data))
                last_ns = clock()
                while arrived >= awaited:
                    arrived -= awaited
                    record(last_ns - connection.due_ns.popleft())
                    answered += 1
                connection.missing = arrived
            now_ns = clock()
            if now_ns - last_ns > STALL_S * 1e9 and answered < sent:
                raise WrongReplyError(f"no reply within {STALL_S:.0f} s")
        self.ended_ns = last_ns
        return answered

    def _workers(self) -> int:
        depth, clock, poll = self.task.depth, time.perf_counter_ns, self.poll
        now_ns = clock()
        reads = []
        for number, connection in zip(self.task.own_clients(), self.connections, strict=True):
            consumer = f"consumer-{number}"
            words = ("XREADGROUP", "GROUP", GROUP, consumer, "COUNT", 1, "STREAMS", STREAM, ">")
            reads.append(encode(*words) * depth)
            connection.position = len(reads) - 1
            connection.sent_ns = now_ns
            connection.send(connection.batches[0], poll)
        running = len(self.connections)
        while running:
            for descriptor, event in self._events():
                connection = self.by_descriptor[descriptor]
                if event & select.EPOLLOUT:
                    connection.send_rest(poll)
                    continue
                if not connection.parse(connection.receive(), depth):
                    continue
                replies, connection.replies = connection.replies, []
                if connection.step == 0:
                    connection.step = 1
                    connection.send(reads[connection.position], poll)
                elif connection.step == 1:
                    connection.step = 2
                    acks = [encode("XACK", STREAM, GROUP, only_id(reply)) for reply in replies]
                    connection.send(b"".join(acks), poll)
                else:
                    if replies != [1] * depth:
                        raise WrongReplyError(f"XACK gave {replies[:20]!r}")
                    now_ns = clock()
                    self.latencies.append(now_ns - connection.sent_ns)
                    if now_ns >= self.deadline_ns:
                        running -= 1
                        continue
                    connection.step = 0
                    connection.sent_ns = now_ns
                    connection.send(connection.batches[0], poll)
        self.ended_ns = now_ns
        return len(self.latencies) * depth

    def _waiters(self) -> int:
        """As many batches under way as there are producers; what was sent first counts as done."""
        depth, clock, poll = self.task.depth, time.perf_counter_ns, self.poll
        producers = self.connections[::2]
        idle = deque(producers)
        reads = {}
        for number, worker in enumerate(self.connections[1::2]):
            words = ("XREADGROUP", "GROUP", GROUP, f"consumer-{number}", "COUNT", depth)
            read = encode(*words, "BLOCK", 0, "STREAMS", STREAM, ">")
            reads[worker] = read
            worker.send(read, poll)
            worker.missing = 1
        batches = len(producers)  # that may be sent
        sent_ns: deque[int] = deque()  # of the entries that are under way
        done = 0
        now_ns = clock()
        while batches or sent_ns or len(idle) < len(producers):
            while batches and idle:
                producer = idle.popleft()
                sent_ns.extend([now_ns] * depth)
                producer.missing = depth
                producer.send(producer.batches[0], poll)
                batches -= 1
            for descriptor, event in self._events():
                connection = self.by_descriptor[descriptor]
                if event & select.EPOLLOUT:
                    connection.send_rest(poll)
                    continue
                if not connection.parse(connection.receive(), connection.missing):
                    continue
                replies, connection.replies = connection.replies, []
                if connection not in reads:
                    idle.append(connection)
                    continue
                if connection.step == 0:
                    entries = entries_of(replies[0])
                    connection.step = 1
                    connection.missing = len(entries)
                    acks = [encode("XACK", STREAM, GROUP, entry) for entry, _ in entries]
                    connection.send(b"".join(acks), poll)
                    continue
                if replies != [1] * connection.missing:
                    raise WrongReplyError(f"XACK gave {replies[:20]!r}")
                now_ns = clock()
                for _ in replies:
                    self.latencies.append(now_ns - sent_ns.popleft())
                if now_ns < self.deadline_ns:
                    batches += (done + len(replies)) // depth - done // depth
                done += len(replies)
                connection.step = 0
                connection.missing = 1
                connection.send(reads[connection], poll)
        self.ended_ns = now_ns
        return done

    def _readers(self) -> int:
        depth, clock, poll = self.task.depth, time.perf_counter_ns, self.poll
        writer, readers = self.connections[0], self.connections[1:]
        head, tail = self.task.workload.request(Call(0, 0, 0)).split(entry_id(0))
        block = encode("XREAD", "BLOCK", 0, "STREAMS", STREAM, entry_id(0))
        read_head, read_tail = block.split(entry_id(0))
        for reader in readers:
            reader.send(encode("XREAD", "BLOCK", 0, "STREAMS", STREAM, "0-0"), poll)
        written = 0
        now_ns = 0
        while now_ns < self.deadline_ns:
            ids = [entry_id(number) for number in range(written, written + depth)]
            last = ids[-1]
            written += depth
            waiting = len(readers) + 1
            writer.sent_ns = clock()
            writer.send(b"".join([head + entry + tail for entry in ids]), poll)
            while waiting:
                for descriptor, event in self._events():
                    connection = self.by_descriptor[descriptor]
                    if event & select.EPOLLOUT:
                        connection.send_rest(poll)
                        continue
                    is_writer = connection is writer
                    if not connection.parse(connection.receive(), depth if is_writer else 1):
                        continue
                    replies, connection.replies = connection.replies, []
                    if is_writer:
                        waiting -= 1
                        continue
                    reached = last_id(replies[-1])
                    connection.send(read_head + reached + read_tail, poll)
                    if reached == last:
                        now_ns = clock()
                        self.latencies.append(now_ns - writer.sent_ns)
                        waiting -= 1
        self.ended_ns = now_ns
        return written

    def _subscribers(self) -> int:
        depth, clock, poll = self.task.depth, time.perf_counter_ns, self.poll
        publisher, readers = self.connections[0], self.connections[1:]
        batch = publisher.batches[0]
        message = encode("message", CHANNEL, VALUE) * depth
        count = b":%d\r\n" % len(readers) * depth
        published = 0
        now_ns = 0
        while now_ns < self.deadline_ns:
            published += depth
            for connection in readers:
                connection.missing = len(message)
            publisher.missing = len(count)
            waiting = len(self.connections)
            publisher.sent_ns = clock()
            publisher.send(batch, poll)
            while waiting:
                for descriptor, event in self._events():
                    connection = self.by_descriptor[descriptor]
                    if event & select.EPOLLOUT:
                        connection.send_rest(poll)
                        continue
                    data = connection.receive()
                    expected = count if connection is publisher else message
                    place = len(expected) - connection.missing
                    if data != expected[place : place + len(data)]:
                        raise WrongReplyError(f"{data[:200]!r} instead of {expected[:100]!r}")
                    connection.missing -= len(data)
                    if not connection.missing:
                        waiting -= 1
                        if connection is not publisher:
                            now_ns = clock()
                            self.latencies.append(now_ns - publisher.sent_ns)
        self.ended_ns = now_ns
        return published


def subscribe(connection: Connection) -> None:
    """Have this client receive what is published.

    Raises: WrongReplyError.
    """
    connection.socket.sendall(encode("SUBSCRIBE", CHANNEL))
    while not connection.parse(connection.receive(), 1):
        pass
    connection.replies.clear()


def entries_of(reply: object) -> list[list[bytes]]:
    """The entries in a reply to a read of one stream.

    Raises: WrongReplyError when there are none.
    """
    if isinstance(reply, list) and reply and isinstance(reply[0], list):
        entries: list[list[bytes]] = reply[0][1]
        if entries:
            return entries
    raise WrongReplyError(f"nothing was read: {reply!r}")


def only_id(reply: object) -> bytes:
    """The ID of the first entry that was read."""
    return entries_of(reply)[0][0]


def last_id(reply: object) -> bytes:
    """The ID of the last entry that was read."""
    return entries_of(reply)[-1][0]
