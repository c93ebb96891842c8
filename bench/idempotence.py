"""What idempotent production costs: XADD beside XADD with IDMP and with IDMPAUTO.

One client, without pipelining and then 16 deep, entries of one field with values of several sizes,
no persistence, maps of 10,000 iids that are full. All three kinds of command run on one server and
take turns, each on a stream of its own, so that whatever else the machine does meets all of them;
an overhead is the median of what the rounds give by themselves. Runs are short and rounds are many,
for the speed of a machine changes from second to second. The server and this client have a
processor each where there are two.

Memory is what a server of its own holds more after so many entries than before. ``--expiry`` lets
a thousand producers' thousand iids each expire at once and tells how long a command had to wait.

Run it from an environment in which headrace is installed: ``python bench/idempotence.py``.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

KINDS = ("XADD", "IDMP", "IDMPAUTO")
SIZES = (8, 21, 24, 26, 36, 64, 128, 256, 512)
DEPTHS = (1, 16)
MAXSIZE = 10_000
BATCH = 500  # commands in flight where nothing is timed
START_TIMEOUT_S = 20


class Sample(NamedTuple):
    """What one run gave."""

    per_s: float
    cpu_us: float  # of the server, per command


class Row(NamedTuple):
    """One size of values at one depth."""

    depth: int
    size: int
    samples: dict[str, list[Sample]]

    def middle(self, kind: str) -> Sample:
        """The medians of a kind."""
        taken = self.samples[kind]
        return Sample(median(s.per_s for s in taken), median(s.cpu_us for s in taken))

    def slower(self, kind: str) -> float:
        """By how much of XADD's throughput a kind is slower."""
        pairs = zip(self.samples[kind], self.samples["XADD"], strict=True)
        return 1 - median(taken.per_s / plain.per_s for taken, plain in pairs)

    def dearer(self, kind: str) -> float:
        """By how much of XADD's processor time a kind takes more."""
        pairs = zip(self.samples[kind], self.samples["XADD"], strict=True)
        return median(taken.cpu_us / plain.cpu_us for taken, plain in pairs) - 1


class Memory(NamedTuple):
    """What entries of one size take, in bytes."""

    size: int
    entries: int
    held: dict[str, int]

    def more(self, kind: str) -> float:
        """By how much a kind takes more than XADD."""
        return self.held[kind] / self.held["XADD"] - 1


def encode(*words: bytes) -> bytes:
    """One request."""
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(w), w) for w in words)


class Producer:
    """Makes requests that no other one equals."""

    def __init__(self) -> None:
        self._number = 0

    def request(self, kind: str, size: int, key: bytes) -> bytes:
        """An XADD of one field with a value of ``size`` bytes."""
        self._number += 1
        value = b"%0*d" % (size, self._number)
        if kind == "IDMP":
            who = [b"IDMP", b"producer", b"iid-%012d" % self._number]
        elif kind == "IDMPAUTO":
            who = [b"IDMPAUTO", b"producer"]
        else:
            who = []
        return encode(b"XADD", key, *who, b"*", b"field", value)

    def batches(self, kind: str, size: int, key: bytes, count: int, depth: int) -> list[bytes]:
        """``count`` requests, ``depth`` in each piece."""
        return [
            b"".join([self.request(kind, size, key) for _ in range(depth)])
            for _ in range(count // depth)
        ]


class Server:
    """A server under measurement, and a connection to it."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        options = ["--port", str(port), "--dir", str(folder), "--save", ""]
        options += ["--enable-debug-command", "yes"]
        self.port: int = port
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "headrace", *options],
            cwd=folder,
            stdout=subprocess.DEVNULL,
        )
        self.socket = self._connect()
        self.key_of = {kind: b"stream:%b" % kind.encode() for kind in KINDS}
        settle_down(self.process.pid)

    def _connect(self) -> socket.socket:
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                connection = socket.create_connection(("127.0.0.1", self.port), timeout=60)
            except OSError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    raise SystemExit("the server does not answer") from None
                time.sleep(0.02)
                continue
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection

    def close(self) -> None:
        """End it."""
        self.socket.close()
        self.process.terminate()
        self.process.wait()

    def answer(self, request: bytes) -> bytes:
        """The reply to a request, which must come in one piece."""
        self.socket.sendall(request)
        return self.socket.recv(1 << 16)

    def ask(self, *words: bytes) -> bytes:
        """As ``answer``, where the reply must be no error."""
        reply = self.answer(encode(*words))
        if reply.startswith(b"-"):
            raise SystemExit(f"{words[0].decode()} answered {reply.decode()}")
        return reply

    def send(self, batch: bytes, count: int) -> None:
        """Send ``count`` requests at once and read their replies, one bulk string for each."""
        self.socket.sendall(batch)
        lines = 0
        while lines < 2 * count:
            lines += self.socket.recv(1 << 16).count(b"\n")

    def figure(self, section: bytes, name: bytes) -> bytes:
        """One line of INFO."""
        return self.ask(b"INFO", section).partition(b"\r\n%b:" % name)[2].partition(b"\r\n")[0]

    def cpu_ns(self) -> int:
        """Processor time so far."""
        return int(Path(f"/proc/{self.process.pid}/schedstat").read_text().split()[0])

    def prepare(self, key: bytes) -> None:
        """Make an empty stream that remembers as many iids as can be, for a long time."""
        self.ask(b"XADD", key, b"MAXLEN", b"0", b"*", b"field", b"value")
        self.ask(b"XCFGSET", key, b"IDMP-MAXSIZE", b"%d" % MAXSIZE, b"IDMP-DURATION", b"86400")

    def run(self, batches: list[bytes], depth: int) -> Sample:
        """Send the requests of ``batches``, of ``depth`` each, one batch after the other."""
        cpu_ns = self.cpu_ns()
        started_ns = time.perf_counter_ns()
        if depth == 1:
            send, receive = self.socket.sendall, self.socket.recv
            for request in batches:
                send(request)
                receive(4096)
        else:
            for batch in batches:
                self.send(batch, depth)
        spent_ns = time.perf_counter_ns() - started_ns
        count = len(batches) * depth
        return Sample(count / spent_ns * 1e9, (self.cpu_ns() - cpu_ns) / count / 1000)


def settle_down(pid: int) -> None:
    """Give the server and this process a processor each."""
    processors = sorted(os.sched_getaffinity(0))
    if len(processors) > 1:
        os.sched_setaffinity(pid, processors[:1])
        os.sched_setaffinity(0, processors[1:])


@contextlib.contextmanager
def running() -> Iterator[Server]:
    """A server of its own, and this process as free as it was afterwards."""
    processors = os.sched_getaffinity(0)
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as folder:
        server = Server(Path(folder))
        try:
            yield server
        finally:
            server.close()
            os.sched_setaffinity(0, processors)


def measure_speed(sizes: list[int], rounds: int, seconds: float) -> list[Row]:
    """All depths and sizes; each run takes about ``seconds``."""
    rows = []
    producer = Producer()
    with running() as server:
        for kind, key in server.key_of.items():
            server.prepare(key)
            for batch in producer.batches(kind, 8, key, 2 * MAXSIZE, BATCH):
                server.send(batch, BATCH)
        for depth in DEPTHS:
            probe = server.run(
                producer.batches("XADD", 8, server.key_of["XADD"], 1600, depth), depth
            )
            count = max(1, int(probe.per_s * seconds) // depth) * depth
            for size in sizes:
                row = Row(depth, size, {kind: [] for kind in KINDS})
                for turn in range(rounds):
                    for kind in KINDS[turn % 3 :] + KINDS[: turn % 3]:
                        key = server.key_of[kind]
                        sample = server.run(producer.batches(kind, size, key, count, depth), depth)
                        row.samples[kind].append(sample)
                        server.ask(b"XTRIM", key, b"MAXLEN", b"0")
                rows.append(row)
                print(speed_line(row), flush=True)
    return rows


def measure_memory(sizes: list[int], entries: int) -> list[Memory]:
    """Return what ``entries`` entries of each size take, in a server for each kind."""
    found = []
    for size in sizes:
        memory = Memory(size, entries, {})
        for kind in KINDS:
            with running() as server:
                key = server.key_of[kind]
                server.prepare(key)
                before = int(server.figure(b"memory", b"used_memory_rss"))
                producer = Producer()
                for _ in range(entries // BATCH):
                    server.send(producer.batches(kind, size, key, BATCH, BATCH)[0], BATCH)
                memory.held[kind] = int(server.figure(b"memory", b"used_memory_rss")) - before
        found.append(memory)
        print(memory_line(memory), flush=True)
    return found


def measure_iid(producers: int, each: int) -> float:
    """Bytes for one iid of 16 bytes, of many; their entries are trimmed away."""
    with running() as server:
        key = b"stream"
        server.prepare(key)
        before = int(server.figure(b"memory", b"used_memory_rss"))
        for number in range(producers):
            server.send(b"".join(iid_requests(key, number, each)), each)
        return (int(server.figure(b"memory", b"used_memory_rss")) - before) / (producers * each)


def iid_requests(key: bytes, producer: int, count: int) -> list[bytes]:
    """Requests of one producer with iids of 16 bytes, whose entries do not stay."""
    pid = b"producer-%d" % producer
    return [
        encode(
            *(b"XADD", key, b"IDMP", pid, b"iid-%012d" % number, b"MAXLEN", b"0"),
            *(b"*", b"field", b"value"),
        )
        for number in range(count)
    ]


def measure_expiry(producers: int, each: int) -> tuple[float, float]:
    """Let all iids expire at once; how long a PING waited at most in ms, before that and then."""
    with running() as server:
        key = b"stream"
        server.prepare(key)
        server.ask(b"XCFGSET", key, b"IDMP-DURATION", b"1")
        server.ask(b"DEBUG", b"PAUSE-CRON", b"1")
        for number in range(producers):
            server.send(b"".join(iid_requests(key, number, each)), each)
        time.sleep(2)
        idle_s = time.monotonic() + 1
        idle_ms = longest_ping_ms(server, lambda: time.monotonic() > idle_s)
        server.ask(b"DEBUG", b"PAUSE-CRON", b"0")
        gone = encode(b"XIDMP", b"PRODUCERS", key, b"COUNT", b"1")
        return idle_ms, longest_ping_ms(server, lambda: server.answer(gone) == b"*0\r\n")


def longest_ping_ms(server: Server, is_over: Callable[[], bool]) -> float:
    """The longest that a PING waited until ``is_over`` says so."""
    longest_ns = 0
    ping = encode(b"PING")
    for _ in range(10_000_000):
        started_ns = time.perf_counter_ns()
        server.answer(ping)
        longest_ns = max(longest_ns, time.perf_counter_ns() - started_ns)
        if is_over():
            break
    return longest_ns / 1e6


def speed_line(row: Row) -> str:
    """A row of the table of speed."""
    cells = [f"{row.depth:>3} {row.size:>5} B"]
    for kind in KINDS:
        middle = row.middle(kind)
        cells.append(f"{middle.per_s:>9,.0f}/s {middle.cpu_us:6.2f} us")
        if kind != "XADD":
            cells[-1] += f" {row.slower(kind):>+7.1%} {row.dearer(kind):>+7.1%}"
    return " | ".join(cells)


def memory_line(memory: Memory) -> str:
    """A row of the table of memory."""
    cells = [f"{memory.size:>9} B"]
    for kind in KINDS:
        cells.append(f"{memory.held[kind] / 1e6:>9,.1f} MB")
        if kind != "XADD":
            cells[-1] += f" {memory.more(kind):>+7.2%}"
    return " | ".join(cells)


def plot(path: Path, rows: list[Row], memories: list[Memory]) -> None:
    """Draw overheads by size: throughput, processor time, memory."""
    try:
        import matplotlib
    except ImportError:
        raise SystemExit("a plot needs matplotlib: pip install '.[bench]'") from None
    matplotlib.use("agg")
    from matplotlib import pyplot

    panels: list[tuple[str, list[tuple[str, list[int], list[float]]]]] = []
    for depth in DEPTHS:
        chosen = [row for row in rows if row.depth == depth]
        sizes = [row.size for row in chosen]
        name = "one by one" if depth == 1 else f"{depth} deep"
        panels.append(
            (f"throughput lost, {name}",
             [(kind, sizes, [row.slower(kind) for row in chosen]) for kind in KINDS[1:]])
        )  # fmt: skip
        panels.append(
            (f"CPU per command more, {name}",
             [(kind, sizes, [row.dearer(kind) for row in chosen]) for kind in KINDS[1:]])
        )  # fmt: skip
    if memories:
        sizes = [memory.size for memory in memories]
        panels.append(
            (f"memory more, {memories[0].entries:,} entries",
             [(kind, sizes, [memory.more(kind) for memory in memories]) for kind in KINDS[1:]])
        )  # fmt: skip
    figure, axes = pyplot.subplots(1, len(panels), figsize=(4 * len(panels), 4), squeeze=False)
    for axis, (title, lines) in zip(axes[0], panels, strict=True):
        for kind, sizes, shares in lines:
            axis.plot(sizes, [100 * share for share in shares], marker="o", label=kind)
        axis.axhline(0, color="grey", linewidth=0.8)
        axis.set_xscale("log", base=2)
        axis.set_xlabel("bytes of the value")
        axis.set_ylabel("% of plain XADD")
        axis.set_title(title)
        axis.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    print(f"plot: {path}")


def main() -> None:
    """Measure, print the tables, draw the plot."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=81)
    parser.add_argument("--seconds", type=float, default=0.05, help="about how long one run takes")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument(
        "--entries", type=int, default=2_000_000, help="for memory; 0 is not at all"
    )
    parser.add_argument("--expiry", action="store_true", help="let a million iids expire at once")
    parser.add_argument("--plot", type=Path, metavar="PNG", help="where to draw the overheads")
    chosen = parser.parse_args()
    print("             XADD                  | IDMP: lost throughput, more CPU     | IDMPAUTO")
    rows = measure_speed(chosen.sizes, chosen.rounds, chosen.seconds) if chosen.rounds else []
    memories: list[Memory] = []
    if chosen.entries:
        print(f"memory of {chosen.entries:,} entries, {MAXSIZE:,} iids")
        memories = measure_memory(chosen.sizes, chosen.entries)
        for producers, each in ((1000, 1000), (100, MAXSIZE)):
            size = measure_iid(producers, each)
            print(f"an iid of 16 bytes, {producers:,} producers with {each:,}: {size:.0f} bytes")
    if chosen.expiry:
        idle_ms, expiring_ms = measure_expiry(1000, 1000)
        print(f"longest PING while a million iids expire: {expiring_ms:.1f} ms")
        print(f"longest PING at rest: {idle_ms:.1f} ms")
    if chosen.plot:
        plot(chosen.plot, rows, memories)


if __name__ == "__main__":
    main()
