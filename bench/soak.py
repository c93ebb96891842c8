"""A soak: many kinds of clients at once for a long while, and what the server's memory does.

    make soak                        # 20 minutes
    make soak ARGS="--minutes 60 --server /tmp/other/.venv/bin/headrace"

The load comes to the same amount of data again and again: streams are trimmed, keys expire, groups,
consumers and clients come and go under ever new names. So whatever still grows after the first
minutes is kept without need. Resident memory is looked at every ten seconds, and the median of each
minute counts: peaks, as of a rewrite, say nothing of what stays.

It ends with 1 when the median of a later minute is more than ``--most`` MiB above that of the first
one after ``--settle`` minutes.
"""

from __future__ import annotations

import argparse
import random
import socket
import statistics
import time
from collections.abc import Sequence
from typing import Final

import hiredis

from bench.peers import Server, encode, ours

MIB: Final = 1 << 20
BEAT_S: Final = 0.02
SAMPLE_S: Final = 10.0
REWRITE_S: Final = 60.0
STREAMS: Final = 8
KEYS: Final = 20_000
GROUPS: Final = 3
LARGE_BYTES: Final = 1 << 20
ANSWER_TIMEOUT_S: Final = 60.0


class Client:
    """A connection that sends a batch of requests and reads off as many replies."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=ANSWER_TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reader = hiredis.Reader()

    def send(self, requests: Sequence[bytes]) -> None:
        """Send requests, the replies of which are read later or never."""
        self._socket.sendall(b"".join(requests))

    def ask(self, requests: Sequence[bytes]) -> list[object]:
        """Send requests and read a reply to each; errors are replies, too."""
        self.send(requests)
        replies: list[object] = []
        while len(replies) < len(requests):
            reply = self._reader.gets()
            if reply is not False:
                replies.append(reply)
                continue
            data = self._socket.recv(1 << 18)
            if not data:
                raise ConnectionError("the server hung up")
            self._reader.feed(data)
        return replies

    def drain(self) -> None:
        """Throw away what has come in unasked."""
        self._socket.setblocking(False)
        try:
            while self._socket.recv(1 << 18):
                pass
        except BlockingIOError:
            pass
        self._socket.settimeout(ANSWER_TIMEOUT_S)

    def close(self) -> None:
        """Hang up."""
        self._socket.close()


class Load:
    """All kinds of clients; ``beat`` has each of them do a little."""

    def __init__(self, port: int, seed: int) -> None:
        self._port: Final = port
        self._random: Final = random.Random(seed)
        self._producer: Final = Client(port)
        self._workers: Final = [Client(port) for _ in range(GROUPS)]
        self._strings: Final = Client(port)
        self._listener: Final = Client(port)
        self._waiting: Final = Client(port)
        self._operator: Final = Client(port)
        self._beats = 0
        for stream in range(STREAMS):
            self._operator.ask(
                [
                    encode(
                        "XGROUP", "CREATE", f"stream-{stream}", f"group-{group}", "$", "MKSTREAM"
                    )
                    for group in range(GROUPS)
                ]
            )
        self._listener.send([encode("PSUBSCRIBE", "news.*")])

    def beat(self) -> None:
        """One round."""
        self._beats += 1
        self._produce()
        for number, worker in enumerate(self._workers):
            self._work(worker, f"group-{number}")
        self._use_strings()
        self._publish()
        if self._beats % 5 == 0:
            self._visit()
        if self._beats % 25 == 0:
            self._come_and_go()
            self._wait()
        if self._beats % 50 == 0:
            self._look()
        if self._beats % 250 == 0:
            self._be_large()

    def rewrite(self) -> None:
        """Have the append-only file written anew."""
        self._operator.ask([encode("BGREWRITEAOF")])

    def _name(self) -> str:
        return f"{self._random.getrandbits(48):012x}"

    def _value(self) -> bytes:
        return self._random.randbytes(self._random.choice((4, 8, 20, 60, 200, 700)))

    def _stream(self) -> str:
        return f"stream-{self._random.randrange(STREAMS)}"

    def _produce(self) -> None:
        requests = []
        for _ in range(20):
            fields: list[str | bytes] = []
            for number in range(self._random.choice((1, 1, 2, 5))):
                fields += [f"field-{number}", self._value()]
            requests.append(encode("XADD", self._stream(), "MAXLEN", "~", 1000, "*", *fields))
        requests.append(
            encode(
                "XADD",
                self._stream(),
                "IDMP",
                f"producer-{self._random.randrange(50)}",
                self._name(),
                "MAXLEN",
                "~",
                1000,
                "*",
                "f",
                self._value(),
            )
        )
        self._producer.ask(requests)

    def _work(self, worker: Client, group: str) -> None:
        stream = self._stream()
        consumer = f"consumer-{self._random.randrange(5)}"
        read = encode("XREADGROUP", "GROUP", group, consumer, "COUNT", 40, "STREAMS", stream, ">")
        reply = worker.ask([read])[0]
        if isinstance(reply, list) and reply:
            ids = [entry[0] for entry in reply[0][1]]
            kept = len(ids) if self._random.random() < 0.9 else len(ids) // 2
            if kept:
                worker.ask([encode("XACK", stream, group, *ids[:kept])])
        if self._random.random() < 0.1:
            claim = encode("XAUTOCLAIM", stream, group, consumer, 100, "-", "COUNT", 1000, "JUSTID")
            claimed = worker.ask([claim])[0]
            if isinstance(claimed, list) and claimed[1]:
                worker.ask([encode("XACK", stream, group, *claimed[1])])

    def _use_strings(self) -> None:
        requests = []
        for _ in range(20):
            key = f"key-{self._random.randrange(KEYS)}"
            kind = self._random.random()
            if kind < 0.5:
                life_ms = self._random.randrange(1, 30_000)
                requests.append(encode("SET", key, self._value(), "PX", life_ms))
            elif kind < 0.8:
                requests.append(encode("GET", key))
            elif kind < 0.9:
                requests.append(encode("EXPIRE", key, self._random.randrange(1, 30)))
            else:
                requests.append(encode("DEL", key))
        self._strings.ask(requests)

    def _publish(self) -> None:
        self._strings.ask([encode("PUBLISH", f"news.{self._name()}", self._value())])
        self._listener.drain()

    def _visit(self) -> None:
        """A client comes, does this and that, mistakes among it, and leaves, mostly in a hurry."""
        name = self._name()
        spelled = "".join(self._random.choice((c.upper(), c)) for c in "xrevrange")
        client = Client(self._port)
        try:
            client.ask(
                [
                    encode("HELLO", self._random.choice((2, 3)), "SETNAME", name),
                    encode("CLIENT", "SETINFO", "LIB-NAME", name),
                    encode(spelled, self._stream(), "+", "-", "COUNT", 100),
                    encode(name, "an", "unknown", "command"),
                    encode("XADD", self._stream(), "no-id", "f", "v"),
                    encode("WATCH", f"watched-{name}"),
                    encode("MULTI"),
                    encode("SET", f"watched-{name}", name, "PX", 1000),
                    encode("EXEC"),
                    encode("XINFO", "STREAM", self._stream(), "FULL"),
                    encode("PING"),
                ]
            )
            ends = self._random.randrange(4)
            if ends == 0:
                client.ask([encode("QUIT")])
            elif ends == 1:
                client.send([encode("SUBSCRIBE", f"news.{name}", f"other.{name}")])
            elif ends == 2:
                client.send([encode("XREAD", "BLOCK", 0, "STREAMS", f"none-{name}", "$")])
            else:
                client.send([b"*3\r\n$3\r\nSET\r\n$5\r\nunfin"])
        finally:
            client.close()

    def _come_and_go(self) -> None:
        """A key, a group and a consumer under new names, and what was there before goes."""
        name = self._name()
        stream = self._stream()
        self._operator.ask(
            [
                encode("XGROUP", "CREATE", stream, name, "0"),
                encode("XREADGROUP", "GROUP", name, name, "COUNT", 50, "STREAMS", stream, ">"),
                encode("XGROUP", "DELCONSUMER", stream, name, name),
                encode("XGROUP", "DESTROY", stream, name),
                encode("XADD", name, "*", name, name),
                encode("XADD", name, "IDMPAUTO", name, "*", name, name),
                encode("UNLINK", name),
            ]
        )

    def _wait(self) -> None:
        name = f"wake-{self._name()}"
        self._waiting.send([encode("XREAD", "BLOCK", 5000, "STREAMS", name, "$")])
        self._strings.ask([encode("XADD", name, "*", "f", "v"), encode("DEL", name)])
        time.sleep(0.001)
        self._waiting.drain()

    def _look(self) -> None:
        self._operator.ask(
            [
                encode("INFO", "everything"),
                encode("CLIENT", "LIST"),
                encode("SLOWLOG", "GET", 10),
                encode("COMMAND", "DOCS", "XADD"),
                encode("SCAN", 0, "COUNT", 100),
                encode("CONFIG", "GET", "*"),
            ]
        )

    def _be_large(self) -> None:
        self._operator.ask(
            [
                encode("SET", "large", self._random.randbytes(LARGE_BYTES)),
                encode("GET", "large"),
                encode("DEL", "large"),
                encode("XRANGE", self._stream(), "-", "+"),
            ]
        )


def soak(server: Server, minutes: float, seed: int) -> list[float]:
    """Load a server; the median of its resident memory in each minute, in MiB."""
    load = Load(server.port, seed)
    medians: list[float] = []
    samples: list[float] = []
    started_s = time.monotonic()
    next_sample_s = started_s + SAMPLE_S
    next_rewrite_s = started_s + REWRITE_S / 2
    next_beat_s = started_s
    while time.monotonic() < started_s + minutes * 60:
        load.beat()
        now_s = time.monotonic()
        if now_s >= next_sample_s:
            next_sample_s += SAMPLE_S
            samples.append(server.resident_bytes() / MIB)
            if len(samples) * SAMPLE_S >= 60:
                medians.append(statistics.median(samples))
                minute = len(medians)
                least, most = min(samples), max(samples)
                print(
                    f"minute {minute:3}: {medians[-1]:7.2f} MiB ({least:.2f} to {most:.2f})",
                    flush=True,
                )
                samples.clear()
        if now_s >= next_rewrite_s:
            next_rewrite_s += REWRITE_S
            load.rewrite()
        next_beat_s = max(next_beat_s + BEAT_S, now_s - 1)
        time.sleep(max(0.0, next_beat_s - now_s))
    return medians


def main() -> int:
    """The command line; the exit code of the process."""
    parser = argparse.ArgumentParser(prog="bench.soak", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--settle", type=int, default=5, help="minutes that do not count")
    parser.add_argument("--most", type=float, default=3.0, help="MiB that it may grow by then")
    parser.add_argument("--server", default="", help="a command; else the installed headrace")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with Server(ours(given.server), "--appendonly", "yes") as server:
        medians = soak(server, given.minutes, given.seed)
    counted = medians[given.settle :]
    if len(counted) < 2:
        print("too short to tell")
        return 0
    grown = max(counted) - counted[0]  # which may be back by the end, and was there all the same
    print(f"grown by {grown:.2f} MiB after minute {given.settle}, {given.most:.2f} allowed")
    return 1 if grown > given.most else 0


if __name__ == "__main__":
    raise SystemExit(main())
