"""The load of the benchmark: what it sends, and how it counts what comes back."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
import time
from array import array
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace

import pytest

from bench import clients, peers, workloads
from bench.clients import Connection, Run, Tally, Task, WrongReplyError, batches_of
from bench.workloads import Reply, Workload, the_same
from support.accepting import accepted

pytestmark = pytest.mark.once


# Requests


def task_of(workload: Workload, port: int = 0, **others: object) -> Task:
    """A task; the others are any of its fields, whose types mypy cannot tell apart here."""
    settings = {"sample": b"", "entries": workload.entries, "clients": 1, "depth": 1, "seconds": 10}
    return Task(port=port, workload=workload, **{**settings, **others})  # type: ignore[arg-type]


@pytest.mark.parametrize(("clients", "depth"), [(1, 1), (3, 4), (7, 2)])
@pytest.mark.parametrize("per_request", [1, 10])
def test_a_lap_acknowledges_each_entry_at_most_once(
    clients: int, depth: int, per_request: int
) -> None:
    name = "xack-1" if per_request == 1 else "xack-100"
    workload = replace(
        workloads.named(name),
        request=lambda call: workloads.xack(per_request, call),
        uses=per_request,
    )
    task = task_of(workload, entries=1000, clients=clients, depth=depth)
    sent = b"".join(b"".join(batches_of(task, client)) for client in range(clients))
    ids = [word for word in sent.split(b"\r\n") if word.endswith(b"-0")]
    assert len(ids) == len(set(ids))
    assert set(ids) <= {workloads.entry_id(number) for number in range(1000)}
    left_over = 1000 - len(ids)
    assert 0 <= left_over < clients * depth * per_request


def test_clients_send_different_requests_in_a_ring() -> None:
    workload = workloads.named("xadd-idmp")
    task = task_of(workload, clients=2, depth=16)
    rings = [batches_of(task, client) for client in range(2)]
    batches = rings[0] + rings[1]
    assert len(batches) == len(set(batches)) == 2 * workload.distinct // 16
    assert all(batch.count(b"XADD") == 16 for batch in batches)


def test_filled_entries_have_ids_of_one_length() -> None:
    chunks = list(workloads.fill_chunks(0, 2500, b"100%", 1000))
    first = workloads.EACH_VALUE % (workloads.BASE_MS & 0xFFFFFFF)
    assert [count for _, count in chunks] == [1000, 1000, 500]
    assert chunks[0][0].startswith(
        peers.encode("XADD", "100%", workloads.entry_id(0), workloads.FIELD, first)
    )
    assert len(first) == len(workloads.VALUE)
    assert len(set(re.findall(rb"v[0-9a-f]{7}\r", b"".join(sent for sent, _ in chunks)))) == 2500
    assert {len(workloads.entry_id(number)) for number in (0, 9, 50_000_000)} == {15}


def test_places_are_spread() -> None:
    places = {workloads.somewhere(number, 1000) for number in range(1000)}
    assert places == set(range(1000))


# Counting replies


class Scripted:
    """A server that sends the given pieces for each request that it gets."""

    def __init__(self, request: bytes, pieces: list[bytes]) -> None:
        self._request = request
        self._pieces = pieces
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def _accept(self) -> None:
        for client in accepted(self._listener):
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._threads.append(threading.Thread(target=self._serve, args=(client,)))
            self._threads[-1].start()

    def _serve(self, client: socket.socket) -> None:
        received = b""
        with client, contextlib.suppress(ConnectionError):
            while data := client.recv(1 << 16):
                received += data
                while received.startswith(self._request):
                    received = received[len(self._request) :]
                    for piece in self._pieces:
                        client.sendall(piece)


@pytest.fixture
def scripted() -> Iterator[Callable[..., Scripted]]:
    started: list[Scripted] = []

    def start(request: bytes, *pieces: bytes) -> Scripted:
        started.append(Scripted(request, list(pieces)))
        return started[-1]

    yield start
    for server in started:
        server.close()


PING = the_same("PING")


def run_against(server: Scripted, reply: Reply, one: bytes, requests: int, depth: int) -> Tally:
    workload = Workload("w", "w", PING, reply, uses=1)
    task = task_of(workload, server.port, sample=one, entries=requests, depth=depth)
    run = Run(task, [batches_of(task, 0)])
    try:
        return run.go()
    finally:
        run.close()


def bytewise(reply: bytes) -> list[bytes]:
    return [reply[place : place + 1] for place in range(len(reply))]


@pytest.mark.parametrize("reply", Reply)
@pytest.mark.parametrize("depth", [1, 4])
@pytest.mark.parametrize("is_cut", [False, True], ids=["whole", "bytewise"])
def test_replies_are_counted(
    scripted: Callable[..., Scripted], reply: Reply, depth: int, is_cut: bool
) -> None:
    one = b"*2\r\n$3\r\n1-0\r\n:5\r\n"
    pieces = bytewise(one * depth) if is_cut else [one * depth]
    server = scripted(peers.encode("PING") * depth, *pieces)
    tally = run_against(server, reply, one, requests=24, depth=depth)
    assert tally.requests == tally.units == 24
    assert len(tally.latencies_ns) == 8 * 24 // depth


def test_lines_may_be_of_any_length(scripted: Callable[..., Scripted]) -> None:
    server = scripted(peers.encode("PING"), b"$5\r\n12345\r\n")
    assert run_against(server, Reply.LINED, b"$1\r\n1\r\n", requests=3, depth=1).requests == 3


@pytest.mark.parametrize(
    ("reply", "sent"),
    [
        (Reply.LINED, b"-ERR no\r\n"),
        (Reply.LINED, b"$1\r\n1\r\n-ERR no\r\n"),
        (Reply.LINED, b"$1\r\n1\r\n$1\r\n1\r\n$1\r\n1\r\n"),
        (Reply.SAME, b"$1\r\n1\r\n$1\r\n2\r\n"),
        (Reply.SAME, b"-ERR no\r\n"),
        (Reply.SIZED, b"$1\r\n1\r\n$2\r\n12\r\n"),
        (Reply.SIZED, b"$1\r\n1\r\n$1\r\n1\r\n:1\r\n"),
    ],
)
def test_other_replies_are_found(
    scripted: Callable[..., Scripted], reply: Reply, sent: bytes
) -> None:
    server = scripted(peers.encode("PING") * 2, sent)
    with pytest.raises(WrongReplyError):
        run_against(server, reply, b"$1\r\n1\r\n", requests=2, depth=2)


@pytest.mark.parametrize(
    "chunks",
    [
        [b"-ERR no\r\n"],
        [b"-", b"ERR no\r\n"],
        [b":1\r\n-ER", b"R no\r\n"],
        [b":1\r\n", b"-ERR no\r\n"],
        [b"*2\r\n*1\r\n$3\r\n1-0\r\n", b"-ERR", b" no\r\n"],
    ],
)
def test_errors_among_parsed_replies_are_found(chunks: list[bytes]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        connection = Connection(listener.getsockname()[1], [])
        with connection.socket:
            for chunk in chunks[:-1]:
                assert not connection.parse(chunk, 3)
            with pytest.raises(WrongReplyError, match="ERR no"):
                connection.parse(chunks[-1], 3)


def test_a_server_that_hangs_up_is_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        run = Run(
            task_of(Workload("w", "w", PING, Reply.LINED), listener.getsockname()[1], sample=b"\n"),
            [[b"PING\r\n"]],
        )
        listener.accept()[0].close()
        with pytest.raises((WrongReplyError, ConnectionError)):
            run.go()
        run.close()


def test_subscribers_that_are_refused_leave_nothing_open(
    scripted: Callable[..., Scripted],
) -> None:
    """What is left open is a warning when it is collected, and warnings fail the run."""
    server = scripted(peers.encode("SUBSCRIBE", workloads.CHANNEL), b"-NOPERM no\r\n")
    with pytest.raises(WrongReplyError, match="NOPERM"):
        Run(task_of(workloads.named("pubsub"), server.port), [[b""], [b""]])


PONG = b"+PONG\r\n"
PINGS = Workload("w", "w", PING, Reply.SAME)


@contextlib.contextmanager
def ponging(first: int = 1) -> Iterator[int]:
    """The port of a server that answers each PING of one client, the first ones together."""
    ping = peers.encode("PING")

    def answer(listener: socket.socket) -> None:
        with listener.accept()[0] as client:
            received = answered = 0
            while data := client.recv(1 << 16):
                received += len(data)
                whole = received // len(ping)
                if whole >= first:
                    client.sendall(PONG * (whole - answered))
                    answered = whole

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer, args=(listener,))
        thread.start()
        yield listener.getsockname()[1]
        thread.join()


def paced_latencies_ms(
    port: int, workload: Workload, seconds: float, entries: int = 0
) -> list[float]:
    """Return what a paced run of 1,000 requests a second measures."""
    task = task_of(workload, port, sample=PONG, seconds=seconds, rate_per_s=1000.0, entries=entries)
    run = Run(task, [batches_of(task, 0)])
    tally = run.go()
    run.close()
    late_ns = array("q")
    late_ns.frombytes(tally.latencies_ns)
    assert len(late_ns) == tally.requests
    return [ns / 1e6 for ns in late_ns]


def test_a_paced_load_counts_from_when_a_request_was_due() -> None:
    """A server that answers nothing until it has 30 requests was late for the first by 29 steps."""
    with ponging(first=30) as port:
        late_ms = paced_latencies_ms(port, PINGS, 0.5)
    assert 30 <= len(late_ms) <= 500
    assert late_ms[0] >= 29
    assert late_ms[0] > min(late_ms)


def test_a_paced_load_does_not_blame_the_server_for_its_own_gaps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By a clock that goes on by 200 ms once: only what was on its way then has taken so long.

    Else half of the 200 requests that were due then would be more than 100 ms late.
    """
    looks = 0

    def clock_ns() -> int:
        nonlocal looks
        looks += 1
        return time.perf_counter_ns() + (200_000_000 if looks > 200 else 0)

    monkeypatch.setattr(
        clients, "time", SimpleNamespace(perf_counter_ns=clock_ns, process_time=time.process_time)
    )
    with ponging() as port:
        late_ms = paced_latencies_ms(port, PINGS, 0.5)
    assert looks > 200
    assert len([ms for ms in late_ms if ms > 100]) < 50
    assert len(late_ms) <= 301  # none for the time that there was not


def test_a_paced_load_sends_the_requests_of_a_lap_once() -> None:
    workload = replace(PINGS, uses=1)
    with ponging() as port:
        assert len(paced_latencies_ms(port, workload, 10.0, entries=20)) == 20


def test_what_the_kernel_does_not_take_is_sent_later() -> None:
    """Twenty megabytes into a socket that nobody reads at first."""
    large = peers.encode("ECHO", b"x" * 20_000_000)
    received = []

    def read_all(listener: socket.socket) -> None:
        with listener.accept()[0] as client:
            size = 0
            while size < len(large):
                size += len(client.recv(1 << 20))
            received.append(size)
            client.sendall(b":1\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=read_all, args=(listener,))
        thread.start()
        workload = Workload("w", "w", lambda call: large, Reply.SAME, uses=1)
        task = task_of(workload, listener.getsockname()[1], sample=b":1\r\n", entries=1)
        run = Run(task, [[large]])
        assert run.go().requests == 1
        run.close()
        thread.join()
    assert received == [len(large)]
