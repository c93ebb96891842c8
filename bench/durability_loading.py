"""Loading and file size against redis-server: the same data, a snapshot of each, the same run.

Both servers are filled with the same commands and write a snapshot by SAVE, Redis with
``rdbcompression no``. Then they are started on it by turns, so that whatever else the machine does
meets both. A server's own log says how long loading took; the CPU time is that of the process until
it answers. Run it with ``python -m bench.durability_loading``; ``--help`` tells the options.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
START_MS = 1_763_693_000_000
BATCH = 2_000  # commands in one write
LOADED = re.compile(
    r"(?:DB loaded from (?:disk|append only file)|Loaded \d+ keys .*): ([0-9.]+) seconds"
)


class Data(NamedTuple):
    """What a snapshot holds, and how many of it are made unless told otherwise."""

    name: str
    about: str
    many: int


DATA = (
    Data("text", "entries of two text fields in one stream", 5_000_000),
    Data("numbers", "entries of two integer fields in one stream", 5_000_000),
    Data("pending", "pending entries of one group", 1_000_000),
    Data("keys", "short strings", 1_000_000),
    Data("mortal", "short strings with a deadline", 1_000_000),
)


class Sample(NamedTuple):
    """One start."""

    load_s: float
    cpu_s: float


class Figures(NamedTuple):
    """What one server gave: medians, and the length of its snapshot."""

    name: str
    load_s: float
    cpu_s: float
    file_bytes: int


def request(*words: bytes) -> bytes:
    """One command."""
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(w), w) for w in words)


def commands(name: str, count: int) -> Iterator[bytes]:
    """Return what fills a server."""
    for number in range(count):
        ms, seq = START_MS + number // 10, number % 10
        entry_id = b"%d-%d" % (ms, seq)
        if name == "text":
            words = (b"f1", b"value:%07d" % number, b"f2", b"other-%d" % (number % 1000))
            yield request(b"XADD", b"s", entry_id, *words)
        elif name == "numbers":
            words = (b"f1", b"%d" % number, b"f2", b"%d" % (7 * number))
            yield request(b"XADD", b"s", entry_id, *words)
        elif name == "pending":
            yield request(b"XADD", b"s", entry_id, b"f", b"%d" % number)
        elif name == "keys":
            yield request(b"SET", b"key:%d" % number, b"value:%d" % number)
        else:
            moment = b"%d" % (4_000_000_000_000 + number * 7919 % 1_000_003)
            yield request(b"SET", b"key:%d" % number, b"value:%d" % number, b"PXAT", moment)
    if name == "pending":
        yield request(b"XGROUP", b"CREATE", b"s", b"g", b"0")
        for number in range(0, count, 1000):
            member = b"consumer-%d" % (number // 1000 % 10)
            read = (b"GROUP", b"g", member, b"COUNT", b"1000", b"STREAMS", b"s", b">")
            yield request(b"XREADGROUP", *read)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Server:
    """A server that is started again and again on one folder."""

    def __init__(self, name: str, command: list[str], folder: Path) -> None:
        self.name = name
        self.command = command
        self.folder = folder
        self.log_path = folder / "log"
        self.port = 0
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> Sample:
        """Start, wait until it answers; how long loading took, if it loaded something."""
        self.port = free_port()
        with self.log_path.open("wb") as log:
            self.process = subprocess.Popen(
                [*self.command, "--port", str(self.port), "--dir", str(self.folder)],
                stdout=log, stderr=log, cwd=self.folder,
            )  # fmt: skip
        deadline = time.monotonic() + 300
        while self.ask(b"PING\r\n") != b"+PONG\r\n":
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"{self.name} does not start:\n{self.log_path.read_text()}")
            time.sleep(0.01)
        # The second field, the program's name, may hold blanks: count from behind it.
        stat = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        found = LOADED.search(self.log_path.read_text())
        load_s = float(found[1]) if found else 0.0
        return Sample(load_s, (int(stat[11]) + int(stat[12])) / TICKS_PER_S)

    def ask(self, line: bytes) -> bytes:
        """One inline command; the first bytes of its reply."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=300) as connection:
                connection.sendall(line)
                return connection.recv(4096)
        except OSError:
            return b""

    def stop(self) -> None:
        """End it, without saving."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def fill(self, name: str, count: int) -> None:
        """Run the commands that make the data, then SAVE."""
        batch: list[bytes] = []
        with socket.create_connection(("127.0.0.1", self.port), timeout=300) as connection:
            for command in commands(name, count):
                batch.append(command)
                if len(batch) == BATCH:
                    exchange(connection, batch)
                    batch.clear()
            exchange(connection, batch)
        reply = self.ask(b"SAVE\r\n")
        if reply != b"+OK\r\n":
            raise SystemExit(f"{self.name}: SAVE answered {reply!r}")

    def file_bytes(self) -> int:
        """The length of its snapshot."""
        return max(file.stat().st_size for file in self.folder.glob("dump.*"))


def exchange(connection: socket.socket, batch: list[bytes]) -> None:
    """Send commands and see that all of them have been answered."""
    mark = b"$32\r\n" + os.urandom(16).hex().encode() + b"\r\n"
    connection.sendall(b"".join(batch) + b"*2\r\n$4\r\nECHO\r\n" + mark)
    tail = b""
    while not tail.endswith(mark):
        data = connection.recv(1 << 20)
        if not data:
            raise SystemExit("the connection was closed")
        tail = (tail + data)[-len(mark) :]


def measure_loading(name: str, count: int, rounds: int, folder: Path) -> list[Figures]:
    """Fill both servers, let both save, start both by turns; ours first."""
    servers = []
    redis = ["redis-server", "--save", "", "--rdbcompression", "no"]
    for title, command in (
        ("headrace", [sys.executable, "-P", "-m", "headrace", "--save", ""]),
        ("redis-server", redis),
    ):
        place = folder / f"{name}-{title}"
        place.mkdir()
        servers.append(Server(title, command, place))
    samples: dict[str, list[Sample]] = {server.name: [] for server in servers}
    try:
        for server in servers:
            server.start()
            server.fill(name, count)
            server.stop()
        for _ in range(rounds):
            for server in servers:
                samples[server.name].append(server.start())
                server.stop()
    finally:
        for server in servers:
            server.stop()
    return [
        Figures(
            server.name,
            median(sample.load_s for sample in samples[server.name]),
            median(sample.cpu_s for sample in samples[server.name]),
            server.file_bytes(),
        )
        for server in servers
    ]


def report(data: Data, count: int, figures: list[Figures]) -> None:
    """Print what was measured, and the ratios."""
    print(f"{count} {data.about}:", flush=True)
    for row in figures:
        size = f"{row.file_bytes / 1e6:8.1f} MB  {row.file_bytes / count:6.2f} bytes each"
        print(f"  {row.name:<14} loaded in {row.load_s:7.3f} s  CPU {row.cpu_s:6.2f} s  {size}")
    ours, real = figures
    load, cpu = ours.load_s / real.load_s, ours.cpu_s / real.cpu_s
    size_ratio = ours.file_bytes / real.file_bytes
    print(
        f"  ratio          load {load:12.2f}    CPU {cpu:8.2f}    size {size_ratio:.3f}", flush=True
    )


def main() -> None:
    """Measure every kind of data that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", action="append", choices=[data.name for data in DATA])
    parser.add_argument("--count", type=int, default=0, help="of entries or keys")
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args()
    if shutil.which("redis-server") is None:
        raise SystemExit("redis-server is needed to compare with")
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as folder:
        for data in DATA:
            if chosen.data is None or data.name in chosen.data:
                count = chosen.count or data.many
                report(data, count, measure_loading(data.name, count, chosen.rounds, Path(folder)))


if __name__ == "__main__":
    main()
