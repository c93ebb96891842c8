"""Malformed requests by the million: does the server stay up, answer, and keep its memory?

Several connections at once send random bytes, valid requests with bytes changed, cut, doubled and
spliced, absurd lengths, broken inline lines and calls of real commands with random words. Whatever
a connection gets back is read and thrown away; when the server closes one, a new one takes its
place. After each round another connection asks PING and for the memory in use.

Run ``make install`` first, or give a server that runs: ``python bench/fuzz.py --port 6379``.
Without ``--port`` one is started from the installed build and its log is looked through at the end.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import re
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

CONNECTIONS = 16
ROUND = 20_000  # requests between two looks at the server
HANG_S = 10.0  # an answer to PING that takes longer is a hang
CONNECTION_LIFE = 12  # requests after which it is replaced: a broken one swallows what follows
OUTPUT_ENOUGH = 1 << 20

TROUBLE = re.compile(r"Traceback|internal error|never awaited|never retrieved", re.IGNORECASE)

WORDS = [
    b"", b"a", b"k", b"s", b"0", b"1", b"-1", b"2", b"100", b"x", b"*", b"$", b"~", b"=", b"+",
    b"-", b"(", b"0-0", b"0-1", b"5-*", b"18446744073709551615", b"9223372036854775807", b"1e400",
    b"nan", b"-9223372036854775808", b"9223372036854775808", b"inf", b"\x00", b"\xff\xfe", b"\r\n",
    b"[", b"[a-", b"\\", b"**a*", b"EX", b"PX", b"NX", b"XX", b"GT", b"GET", b"SET", b"COUNT",
    b"MATCH", b"TYPE", b"MAXLEN", b"MINID", b"LIMIT", b"STREAMS", b"NOMKSTREAM", b"IDLE", b"ID",
    b"YES", b"NO", b"FULL", b"STREAM", b"HELP", b"ON", b"OFF", b"SKIP", b"REPLACE", b"DB", b"3",
    b"2", b"AUTH", b"f", b"v", b"10", b"99999999999", b"mystream", b"notify-keyspace-events",
    b"KEA", b"y" * 300,
]  # fmt: skip

# Calls that work, to be spoilt word by word.
TEMPLATES = [
    line.split()
    for line in (
        b"SET k v EX 100 NX GET", b"GET k", b"GETEX k PX 100", b"INCRBYFLOAT k 1.5", b"APPEND k v",
        b"SETRANGE k 5 v", b"GETRANGE k 0 -1", b"MSET k v a b", b"MSETNX k v a b", b"INCRBY k 5",
        b"XADD s MAXLEN ~ 10 LIMIT 5 * f v", b"XADD s 5-* f v", b"XADD s MINID = 1 * f v",
        b"XRANGE s - + COUNT 5", b"XREVRANGE s + (0-1", b"XREAD COUNT 2 BLOCK 1 STREAMS s k 0 $",
        b"XTRIM s MAXLEN ~ 5", b"XDEL s 0-1 1-1", b"XSETID s 9-9 ENTRIESADDED 5 MAXDELETEDID 1-1",
        b"XINFO STREAM s FULL COUNT 1", b"XLEN s", b"EXPIRE k 100 GT", b"PEXPIREAT k 5", b"TTL k",
        b"SCAN 0 MATCH a* COUNT 5 TYPE string", b"KEYS [a-", b"COPY k a DB 3 REPLACE", b"MOVE k 2",
        b"RENAME k a", b"OBJECT ENCODING s", b"TOUCH k a", b"SELECT 3", b"SWAPDB 0 3", b"MULTI",
        b"EXEC", b"DISCARD", b"WATCH k s", b"SUBSCRIBE a b", b"PSUBSCRIBE a* [b", b"UNSUBSCRIBE a",
        b"SSUBSCRIBE a", b"PUBLISH a m", b"SPUBLISH a m", b"PUBSUB CHANNELS a*", b"HELLO 3",
        b"HELLO 2 SETNAME x", b"RESET", b"COMMAND DOCS get", b"COMMAND GETKEYS MSET a b c d",
        b"MEMORY USAGE s SAMPLES 5", b"DUMP k", b"RESTORE k 0 x", b"OBJECT FREQ k", b"LOLWUT 5 1 2",
        b"SLOWLOG GET 5", b"LATENCY HISTOGRAM get", b"INFO all", b"XDELEX s KEEPREF IDS 1 0-1",
    )
]  # fmt: skip

# What ends or silences the server, or makes it wait: no subject of this test.
SPARED = {
    b"shutdown", b"debug", b"monitor", b"replicaof", b"slaveof", b"client", b"config", b"quit",
    b"bgrewriteaof", b"bgsave", b"save", b"sync", b"psync", b"failover", b"acl",
}  # fmt: skip


def request(words: list[bytes]) -> bytes:
    """A request, well formed."""
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(w), w) for w in words)


class Fuzzer:
    """Makes requests out of chance; the same seed makes the same ones."""

    def __init__(self, seed: int, commands: list[list[bytes]]) -> None:
        self._random = random.Random(seed)
        self._commands = commands
        self._makers = [
            self.noise,
            self.call,
            self.spoilt,
            self.spoilt,
            self.spoilt,
            self.mutant,
            self.mutant,
            self.lengths,
            self.inline,
            self.splice,
        ]

    def next(self) -> bytes:
        """One malformed, or at least unreasonable, request."""
        return self._random.choice(self._makers)()

    def noise(self) -> bytes:
        """Bytes without sense, more often than not such as the protocol uses."""
        chance = self._random
        if chance.random() < 0.5:
            return chance.randbytes(chance.randint(1, 64))
        alphabet = b"*$+-:_,#!=%~>|(\r\n0123456789 '\"\\x"
        return bytes(chance.choices(alphabet, k=chance.randint(1, 48)))

    def call(self) -> bytes:
        """A real command with random words."""
        chance = self._random
        words = chance.choices(WORDS, k=chance.randint(0, 8))
        return request([*chance.choice(self._commands), *words])

    def spoilt(self) -> bytes:
        """A call that works, most often with a word changed, dropped or doubled."""
        chance = self._random
        words = list(chance.choice(TEMPLATES))
        for _ in range(chance.choice([0, 1, 1, 1, 2, 3])):
            place = chance.randrange(len(words)) if words else 0
            kind = chance.randrange(4)
            if kind == 0:
                words.insert(place, chance.choice(WORDS))
            elif kind == 1:
                del words[place : place + 1]
            elif words:
                words[place] = chance.choice(WORDS)
        return request(words)

    def mutant(self) -> bytes:
        """A request with some bytes changed, taken out, put in, or its end cut off."""
        chance = self._random
        data = bytearray(chance.choice([self.call, self.spoilt])())
        for _ in range(chance.randint(1, 4)):
            place = chance.randrange(len(data)) if data else 0
            kind = chance.randrange(5)
            if kind == 0 and data:
                data[place] = chance.randrange(256)
            elif kind == 1:
                del data[place : place + chance.randint(1, 6)]
            elif kind == 2:
                data[place:place] = chance.choice([b"\r\n", b"$", b"*", b"-", b"0", b"9", b"\x00"])
            elif kind == 3:
                del data[place:]
            else:
                data[place:place] = data[place : place + chance.randint(1, 12)]
        return bytes(data)

    def lengths(self) -> bytes:
        """Headers that promise too much, too little or nonsense."""
        chance = self._random
        number = chance.choice(
            [b"0", b"-1", b"-0", b"+1", b"01", b"", b"1e3", b"2147483647", b"2147483648", b"x",
             b"999999999999999999999", b"536870912", b"536870913", b"1000000", b"-2147483649"]
        )  # fmt: skip
        kind = chance.choice([b"*%b\r\n", b"*1\r\n$%b\r\n", b"*2\r\n$1\r\na\r\n$%b\r\nb\r\n",
                              b"*1\r\n*%b\r\n", b"%%%b\r\n", b">%b\r\n", b"$%b\r\n",
                              b"*3\r\n$3\r\nSET\r\n$%b\r\nk\r\n$1\r\nv\r\n"])  # fmt: skip
        return kind % number

    def inline(self) -> bytes:
        """A line of words, its quotes balanced or not; now and then far too long."""
        chance = self._random
        if chance.random() < 0.002:
            return b"x" * chance.choice([60_000, 70_000, 200_000])
        name = b" ".join(chance.choice(self._commands))
        quote = chance.choice([b"", b'"', b"'", b'"\\x', b"'\\"])
        rest = b" ".join(chance.choices(WORDS, k=chance.randint(0, 5)))
        return name + b" " + quote + rest + chance.choice([b"\r\n", b"\n", b"\r", quote + b"\r\n"])

    def splice(self) -> bytes:
        """The front of one request and the back of another."""
        one, other = self.call(), self.call()
        return (
            one[: self._random.randint(0, len(one))] + other[self._random.randint(0, len(other)) :]
        )


class Peer:
    """One connection: what waits to be sent, and how many requests it has carried."""

    def __init__(self, port: int) -> None:
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=HANG_S)
        self.sock.setblocking(False)
        self.waiting = bytearray()
        self.carried = 0
        self.ending = False  # all is sent: read what still comes, then the end


def ask(port: int, *words: bytes) -> bytes:
    """A command on a connection of its own; the bytes of its reply, as far as they came at once."""
    with socket.create_connection(("127.0.0.1", port), timeout=HANG_S) as sock:
        sock.settimeout(HANG_S)
        sock.sendall(request(list(words)))
        return sock.recv(1 << 16)


def memory_bytes(pid: int) -> int:
    """Resident memory of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


def command_names(port: int) -> list[list[bytes]]:
    """Every command and subcommand that the server knows, but for those spared."""
    with socket.create_connection(("127.0.0.1", port), timeout=HANG_S) as sock:
        sock.sendall(request([b"COMMAND", b"LIST"]) + request([b"PING"]))
        data = b""
        while not data.endswith(b"+PONG\r\n"):
            data += sock.recv(1 << 16)
    names = [line for line in data.split(b"\r\n") if line and line[:1] not in b"*$+"]
    words = sorted(name.split(b"|") for name in names)
    return [name for name in words if name[0] not in SPARED]


class Campaign:
    """Sends requests over several connections and counts what happens."""

    def __init__(self, port: int, seed: int, connections: int = CONNECTIONS) -> None:
        self.port = port
        self.fuzzer = Fuzzer(seed, command_names(port))
        self.sent = 0
        self.closed_by_server = 0
        self.received_bytes = 0
        self._selector = selectors.DefaultSelector()
        self._peers = [self._open() for _ in range(connections)]

    def _open(self) -> Peer:
        peer = Peer(self.port)
        self._selector.register(peer.sock, selectors.EVENT_READ | selectors.EVENT_WRITE, peer)
        return peer

    def _replace(self, peer: Peer) -> None:
        self._selector.unregister(peer.sock)
        peer.sock.close()
        self._peers.remove(peer)
        self._peers.append(self._open())

    def run(self, requests: int) -> None:
        """Send that many more requests."""
        goal = self.sent + requests
        progress = time.monotonic()
        while self.sent < goal:
            if time.monotonic() - progress > HANG_S:
                raise TimeoutError(f"nothing was taken for {HANG_S} s")
            for key, mask in self._selector.select(1.0):
                peer: Peer = key.data
                if self._serve(peer, mask):
                    progress = time.monotonic()

    def _serve(self, peer: Peer, mask: int) -> bool:
        """Read and write what can be; whether anything moved."""
        moved = False
        try:
            if mask & selectors.EVENT_READ:
                data = peer.sock.recv(OUTPUT_ENOUGH)
                self.received_bytes += len(data)
                moved = True
                if not data:
                    self.closed_by_server += not peer.ending
                    self._replace(peer)
                    return True
            if mask & selectors.EVENT_WRITE:
                self._write(peer)
                moved = True
        except BlockingIOError:
            return moved
        except OSError:  # reset, broken, or gone before it could be ended
            self.closed_by_server += 1
            self._replace(peer)
            return True
        return moved

    def _write(self, peer: Peer) -> None:
        if not peer.waiting:
            if peer.carried >= CONNECTION_LIFE:
                # Not closed at once: a reset would make the server lose what it has not read.
                peer.ending = True
                peer.sock.shutdown(socket.SHUT_WR)
                self._selector.modify(peer.sock, selectors.EVENT_READ, peer)
                return
            for _ in range(4):
                peer.waiting += self.fuzzer.next()
                peer.carried += 1
                self.sent += 1
        taken = peer.sock.send(peer.waiting)
        del peer.waiting[:taken]

    def close(self) -> None:
        """Close all connections."""
        for peer in self._peers:
            peer.sock.close()
        self._selector.close()


@contextlib.contextmanager
def own_server() -> Iterator[tuple[int, int, Path]]:
    """A server of our own: its port, its process and its log."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="headrace-fuzz-") as folder:
        log = Path(folder) / "log"
        with log.open("wb") as output:
            command = [sys.executable, "-m", "server", "--port", str(port), "--dir", folder]
            process = subprocess.Popen(command, stdout=output, stderr=output)
        try:
            deadline = time.monotonic() + HANG_S
            while True:
                with contextlib.suppress(OSError):
                    if ask(port, b"PING") == b"+PONG\r\n":
                        break
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"the server did not start:\n{log.read_text()}")
                time.sleep(0.05)
            yield port, process.pid, log
            if process.poll() is not None:
                raise RuntimeError(f"the server ended with {process.returncode}:\n{tail(log)}")
        finally:
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(HANG_S)
            process.kill()
            process.wait()


def tail(log: Path) -> str:
    """The end of a log."""
    return log.read_text(errors="backslashreplace")[-4000:]


def campaign(port: int, pid: int, total: int, seed: int) -> None:
    """Send ``total`` requests and tell how the server does.

    Raises: TimeoutError when it hangs, OSError when it is gone, MemoryError when it grows.
    """
    attack = Campaign(port, seed)
    started = time.monotonic()
    settled_bytes = 0
    try:
        while attack.sent < total:
            attack.run(min(ROUND, total - attack.sent))
            asked = time.monotonic()
            answer = ask(port, b"PING")
            answered_ms = (time.monotonic() - asked) * 1000
            if answer != b"+PONG\r\n":
                raise RuntimeError(f"PING was answered with {answer!r}")
            ask(port, b"FLUSHALL")
            held = memory_bytes(pid) if pid else 0
            settled_bytes = settled_bytes or held
            rate = attack.sent / (time.monotonic() - started)
            print(
                f"{attack.sent:>9} requests  {rate:7.0f}/s  closed {attack.closed_by_server:>7}  "
                f"PING {answered_ms:5.1f} ms  RSS {held / 2**20:6.1f} MB",
                flush=True,
            )
    finally:
        attack.close()
    growth = memory_bytes(pid) - settled_bytes if pid else 0
    print(f"growth since the first round: {growth / 2**20:.1f} MB")
    if growth > 64 * 2**20:
        raise MemoryError(f"the server grew by {growth} bytes")


def main() -> int:
    """Run a campaign from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--port", type=int, default=0, help="a server that runs already")
    parser.add_argument("--pid", type=int, default=0, help="its process, to watch its memory")
    options = parser.parse_args()
    if options.port:
        campaign(options.port, options.pid, options.requests, options.seed)
        return 0
    with own_server() as (port, pid, log):
        campaign(port, pid, options.requests, options.seed)
        trouble = TROUBLE.search(log.read_text(errors="backslashreplace"))
        if trouble is not None:
            print(tail(log))
            return 1
    print("no crash, no hang, no trouble in the log")
    return 0


if __name__ == "__main__":
    sys.exit(main())
