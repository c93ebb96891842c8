"""XADD against redis-server: throughput and CPU per command, side by side.

Both servers run at the same time on this machine, without persistence, and take turns, so that
whatever else the machine does meets both. ``redis-benchmark`` makes the load. Run it with
``make bench``, options in ``ARGS``: ``make bench ARGS="--rounds 5 --seconds 4"``.
"""

from __future__ import annotations

import argparse
import csv
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
VALUE = "xxxxxxxx"


class Load(NamedTuple):
    """One way of sending: how many clients, how many commands in flight for each."""

    clients: int
    depth: int

    def __str__(self) -> str:
        """The words of the report."""
        return f"{self.clients} clients, {self.depth} deep"


class Sample(NamedTuple):
    """What one run gave."""

    per_s: float
    cpu_us: float  # user and system time of the server per command


LOADS = (Load(50, 16), Load(50, 1), Load(1, 1))


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def ask(port: int, line: bytes) -> bytes:
    """One inline command; the first bytes of its reply."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(line + b"\r\n")
        return connection.recv(4096)


class Server:
    """A server under measurement."""

    def __init__(self, name: str, command: list[str], directory: Path) -> None:
        self.name = name
        self.port = free_port()
        options = ["--port", str(self.port), "--dir", str(directory), "--save", ""]
        self.process = subprocess.Popen(
            [*command, *options], cwd=directory, stdout=subprocess.DEVNULL
        )

    def wait_until_ready(self) -> None:
        """Return when PING is answered."""
        for _ in range(500):
            try:
                if ask(self.port, b"PING") == b"+PONG\r\n":
                    return
            except OSError:
                time.sleep(0.02)
        raise SystemExit(f"{self.name} does not answer")

    def cpu_s(self) -> float:
        """User and system time so far."""
        # The second field, the program's name, may hold blanks: count from behind it.
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_S

    def run(self, load: Load, count: int) -> Sample:
        """Send ``count`` XADDs to an empty stream."""
        ask(self.port, b"DEL stream")
        before = self.cpu_s()
        options = f"-p {self.port} -c {load.clients} -P {load.depth} -n {count} --csv".split()
        done = subprocess.run(
            ["redis-benchmark", *options, "XADD", "stream", "*", "field", VALUE],
            check=True,
            capture_output=True,
            text=True,
        )
        cpu_s = self.cpu_s() - before
        header, row = list(csv.reader(done.stdout.splitlines()))[-2:]
        return Sample(float(row[header.index("rps")]), cpu_s / count * 1e6)


def measure(servers: list[Server], load: Load, rounds: int, seconds: float) -> None:
    """Print the medians of interleaved runs of about ``seconds`` each, and their ratios."""
    probe = min(server.run(load, 5_000).per_s for server in servers)
    count = max(1_000, int(probe * seconds))
    samples: dict[str, list[Sample]] = {server.name: [] for server in servers}
    for _ in range(rounds):
        for server in servers:
            samples[server.name].append(server.run(load, count))
    print(f"{load}: {rounds} rounds of {count} commands")
    medians = []
    for name, taken in samples.items():
        middle = Sample(median(s.per_s for s in taken), median(s.cpu_us for s in taken))
        medians.append(middle)
        print(f"  {name:<14} {middle.per_s:>10,.0f}/s   {middle.cpu_us:6.2f} us CPU per command")
    ours, real = medians
    print(f"  ratio          {ours.per_s / real.per_s:>10.2f}     {ours.cpu_us / real.cpu_us:6.2f}")


def main() -> None:
    """Start both servers, measure every load, stop them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0, help="about how long one run takes")
    chosen = parser.parse_args()
    for program in ("redis-server", "redis-benchmark"):
        if shutil.which(program) is None:
            raise SystemExit(f"{program} is needed to compare with")
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as folder:
        servers = [
            Server("headrace", [sys.executable, "-P", "-m", "server"], Path(folder)),
            Server("redis-server", ["redis-server"], Path(folder)),
        ]
        try:
            for server in servers:
                server.wait_until_ready()
            build = ask(servers[0].port, b"INFO server")
            kind = [line for line in build.decode().splitlines() if line.startswith("headrace_")]
            print("headrace:", ", ".join(kind))
            for load in LOADS:
                measure(servers, load, chosen.rounds, chosen.seconds)
        finally:
            for server in servers:
                server.process.terminate()
                server.process.wait()


if __name__ == "__main__":
    main()
