"""Kills a server with policies again and again, with producers and workers at work.

``python -m support.policy_crashes --rounds 300``. With ``appendfsync always`` what was acknowledged
holds: no entry is lost (it is done, dead, or still there), none has two dead letters, entries with
one value of the order key are begun in their order and never side by side, and none goes out before
its time. What is checked is what workers have seen, and at the end what the server has. The stream
loses what is acknowledged and rejects what is too much, so in the end it is empty.
"""

from __future__ import annotations

import argparse
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Final

from support.client import RawClient, WireError
from support.process import ServerProcess
from support.waiting import wait_until

OPTIONS: Final = ("--appendonly", "yes", "--appendfsync", "always", "--save", "")
LETTERS: Final = "dead"
VALUES: Final = 5
DELAY_MS: Final = 40
POLICIES: Final = (
    *("ack-wait", "1500ms", "delivery-limit", "4", "dead-letter-key", LETTERS),
    *("retry-delay", "20ms,50ms", "order-key", "k", "deliver-at-field", "at"),
    *("keep-alive", "connection", "keep-alive-grace", "100ms"),
    *("consumer-inactive-threshold", "1s"),
)
BOUNDS: Final = ("retention", "acked", "max-len", "60", "overflow", "reject")
GONE: Final = (OSError, TimeoutError, EOFError)


class Story:
    """What producers and workers know."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.added: dict[str, tuple[str, int]] = {}  # by ID: the value, and when it is due
        self.done: Counter[str] = Counter()
        self.tried: set[str] = set()  # a reply may have been lost
        self.wrong: list[str] = []
        self.held: dict[str, str] = {}  # by value: the entry that a worker of this life has begun
        self.over = False

    def begin(self, entry_id: str, value: str, at_ms: int) -> None:
        """Note that a worker has been given an entry."""
        now_ms = time.time() * 1000
        with self.lock:
            if now_ms < at_ms - 1:
                self.wrong.append(f"{entry_id} went out {at_ms - now_ms:.0f} ms before its time")
            other = self.held.get(value)
            if other is not None and other != entry_id and not self.done[entry_id]:
                self.wrong.append(f"{entry_id} went out beside {other}, both of {value}")
            self.held[value] = entry_id

    def end(self, entry_id: str, value: str) -> None:
        with self.lock:
            if self.held.get(value) == entry_id:
                del self.held[value]


def produce(port: int, story: Story, chance: random.Random) -> None:
    with RawClient(port) as client:
        while not story.over:
            value = str(chance.randrange(VALUES))
            at_ms = int(time.time() * 1000) + chance.choice((0, 0, DELAY_MS))
            reply = client.call_parsed("XADD", "s", "*", "k", value, "at", at_ms)
            if isinstance(reply, bytes):
                with story.lock:
                    story.added[reply.decode()] = (value, at_ms)
            time.sleep(chance.random() * 0.004)


def work(port: int, story: Story, chance: random.Random, name: str) -> None:
    with RawClient(port) as client:
        while not story.over:
            words = ("XREADGROUP", "GROUP", "g", name, "COUNT", 2, "BLOCK", 50, "STREAMS", "s", ">")
            reply = client.call_parsed(*words)
            if reply is None or isinstance(reply, WireError):
                continue
            for entry, words_of in reply[0][1]:  # type: ignore[index]
                fields = [word.decode() for word in words_of]
                _do(client, story, chance, entry.decode(), fields[1], int(fields[3]))


def _do(
    client: RawClient, story: Story, chance: random.Random, entry_id: str, value: str, at_ms: int
) -> None:
    story.begin(entry_id, value, at_ms)
    time.sleep(chance.random() * 0.003)
    story.end(entry_id, value)  # before the next one can be given
    if chance.random() < 0.15:
        client.call("XNACK", "s", "g", "FAIL", "IDS", 1, entry_id)
    elif chance.random() < 0.95:
        with story.lock:
            story.tried.add(entry_id)
        if client.call_parsed("XACK", "s", "g", entry_id) == 1:
            with story.lock:
                story.done[entry_id] += 1


def until_gone(run: Callable[[], None]) -> None:
    try:
        run()
    except GONE:
        return


def live(server: ServerProcess, story: Story, seed: int, lasts_s: float) -> None:
    """Let producers and workers work for a while; then the server is killed."""
    story.over = False
    story.held.clear()
    runs: list[Callable[[], None]] = [
        lambda: produce(server.port, story, random.Random(seed)),
        *[
            lambda number=number: work(
                server.port, story, random.Random(seed + number), f"worker-{seed}-{number}"
            )
            for number in range(1, 5)
        ],
    ]
    threads = [threading.Thread(target=until_gone, args=(run,)) for run in runs]
    for thread in threads:
        thread.start()
    time.sleep(lasts_s)
    server.kill()
    story.over = True
    for thread in threads:
        thread.join()


def settle(server: ServerProcess, story: Story) -> None:
    """Let workers that never fail end what is left, and compare."""
    with server.client() as client:
        patience_s = time.monotonic() + 60
        while time.monotonic() < patience_s:
            words = ("XREADGROUP", "GROUP", "g", "last", "BLOCK", 2000, "STREAMS", "s", ">")
            reply = client.call_parsed(*words)
            if reply is None:
                break
            for entry, _ in reply[0][1]:  # type: ignore[index]
                client.call("XACK", "s", "g", entry)
                story.done[entry.decode()] += 1
        letters: Counter[str] = Counter()
        for _, words_of in client.call_parsed("XRANGE", LETTERS, "-", "+"):  # type: ignore[attr-defined]
            fields = [word.decode() for word in words_of]
            letters[fields[fields.index("__dlq.errors.offset") + 1]] += 1
        row = client.call_parsed("XINFO", "GROUPS", "s")[0]  # type: ignore[index]
        left = dict(zip(row[::2], row[1::2], strict=True))
        wait_until(lambda: client.call_parsed("XLEN", "s") == 0)
    story.wrong += [
        f"{each} is lost"
        for each in story.added
        if not (story.done[each] or letters[each] or each in story.tried)
    ]
    if left[b"pending"] or left[b"lag"]:
        story.wrong.append(f"{left[b'pending']} are pending, {left[b'lag']} not given: {left}")
    story.wrong += [
        f"{each} has {count} dead letters" for each, count in letters.items() if count > 1
    ]
    story.wrong += [f"{each} is done and dead" for each in letters if story.done[each]]


def run(rounds: int, seed: int) -> tuple[Story, int]:
    """Run so many lives; return what is known in the end, and how many letters there were."""
    story = Story()
    chance = random.Random(seed)
    with ServerProcess(*OPTIONS) as server:
        server.call("XGROUP", "CREATE", "s", "g", 0, "MKSTREAM")
        server.call("XPOLICY", "SET", "s", "GROUP", "g", *POLICIES)
        server.call("XPOLICY", "SET", "s", *BOUNDS)
        for number in range(rounds):
            live(server, story, seed * 1000 + 10 * number, 0.15 + chance.random() * 0.35)
            server.start()
            if number % 10 == 9:
                server.call("BGREWRITEAOF")
            if story.wrong:
                break
        settle(server, story)
        letters = server.call("XLEN", LETTERS)
        assert isinstance(letters, int)
    return story, letters


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    story, letters = run(options.rounds, options.seed)
    print(*story.wrong[:20], sep="\n")
    print(
        f"{options.rounds} rounds, {len(story.added)} entries, {len(story.done)} done, "
        f"{letters} dead letters: {len(story.wrong)} wrong"
    )
    return min(1, len(story.wrong))


if __name__ == "__main__":
    sys.exit(main())
