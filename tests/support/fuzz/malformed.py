"""Malformed requests by the million: does the server stay up, answer, and keep its memory?

Several connections at once send random bytes, valid requests with bytes changed, cut, doubled and
spliced, absurd lengths, broken inline lines and calls of real commands with random words. Whatever
a connection gets back is read and thrown away; when the server closes one, a new one takes its
place. After each round another connection asks PING and for the memory in use.
"""

from __future__ import annotations

import random
import selectors
import socket
import time
from collections.abc import Sequence
from pathlib import Path

import headrace.server.commands.families  # noqa: F401  (importing it fills the command table)
from headrace.server.commands.documentation import documentation
from support.client import RawClient, encode
from support.fuzz.calls import Calls
from support.fuzz.families import FAMILIES, filled
from support.fuzz.known import huge
from support.fuzz.payloads import is_named, wrecked
from support.fuzz.words import WRONG

CONNECTIONS = 16
ROUND = 20_000  # requests between two looks at the server
HANG_S = 10.0  # an answer to PING that takes longer is a hang
CONNECTION_LIFE = 12  # requests after which it is replaced: a broken one swallows what follows
OUTPUT_ENOUGH = 1 << 20

# What ends or silences the server, or makes it wait: no subject of this test.
SPARED = {
    "shutdown", "debug", "monitor", "replicaof", "slaveof", "client", "config", "quit",
    "bgrewriteaof", "bgsave", "save", "acl",
}  # fmt: skip

DOCS = documentation()


class Fuzzer:
    """Makes requests out of chance; the same seed makes the same ones.

    Args:
        calls: only calls of commands, more often right than wrong, so that much happens to keys.
        payloads: what RESTORE is given, some of it wrecked.
    """

    def __init__(self, seed: int, calls: bool = False, payloads: Sequence[bytes] = ()) -> None:
        self._random = random.Random(seed)
        self._payloads = payloads
        names = [name for name in DOCS if name.partition("|")[0] not in SPARED]
        self._calls = Calls(self._random, names, spoilt=0.12 if calls else 0.8)
        self._calls.words.long = True
        self._makers = (
            [self.spoilt]
            if calls
            else [
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
        )

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
        words = self._random.choices(WRONG, k=self._random.randint(0, 8))
        return encode(*self._calls.next()[:2], *words)

    def spoilt(self) -> bytes:
        """A call that works, most often with a word changed, dropped or doubled."""
        words = [self._filled_in(word) for word in self._calls.next()]
        return encode(*words) if not huge(words) else b""

    def _filled_in(self, word: bytes) -> bytes:
        """The word, or the payload that it stands for."""
        if not self._payloads or not is_named(word):
            return word
        payload = self._random.choice(self._payloads)
        return payload if self._random.random() < 0.4 else wrecked(payload, self._random)

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
        name = b" ".join(self._calls.next()[:2])
        quote = chance.choice([b"", b'"', b"'", b'"\\x', b"'\\"])
        rest = b" ".join(chance.choices(WRONG, k=chance.randint(0, 5)))
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
        sock.sendall(encode(*words))
        return sock.recv(1 << 16)


_SMALL = (
    b"SET {} text", b"SET {} 12345", b"RPUSH {} a 1 bc", b"HSET {} f v g 1", b"SADD {} 1 2 300000",
    b"SADD {} a b", b"ZADD {} 1.5 a -inf b", b"XADD {} 1-1 f v g w", b"PFADD {} a b",
    b"ARSET {} 5 v w", b"GEOADD {} 13.4 38.1 a", b"SETBIT {} 77 1",
)  # fmt: skip
_MORE = (b"HEXPIRE 3 1000 FIELDS 1 f", b"XGROUP CREATE 7 g 0")


def payloads_of(port: int) -> list[bytes]:
    """Return what the server dumps of values of all types, small and large ones."""
    chance = random.Random(1)
    with RawClient(port) as client:
        keys = [b"%d" % number for number in range(len(_SMALL))]
        for key, line in zip(keys, _SMALL, strict=True):
            client.call(*line.replace(b"{}", key).split())
        for line in _MORE:
            client.call(*line.split())
        client.call("XREADGROUP", "GROUP", "g", "c", "STREAMS", "7", ">")
        for family in FAMILIES:
            keys.append(family.encode())
            for name, _, *rest in filled(family, chance):
                client.call(name, keys[-1], *rest)
        found = [client.call_parsed("DUMP", key) for key in keys]
        client.call("FLUSHALL")
    payloads = [payload for payload in found if isinstance(payload, bytes)]
    assert len(payloads) == len(keys), found
    return payloads


def memory_bytes(pid: int) -> int:
    """Resident memory of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


class Campaign:
    """Sends requests over several connections and counts what happens."""

    def __init__(
        self, port: int, seed: int, connections: int = CONNECTIONS, calls: bool = False
    ) -> None:
        self.port = port
        self.fuzzer = Fuzzer(seed, calls, payloads_of(port))
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


def campaign(port: int, pid: int, total: int, seed: int, calls: bool = False) -> None:
    """Send ``total`` requests, or calls that are mostly right, and tell how the server does.

    Raises: TimeoutError when it hangs, OSError when it is gone, MemoryError when it grows.
    """
    attack = Campaign(port, seed, calls=calls)
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
