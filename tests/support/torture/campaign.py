"""A campaign: a server that is ended and started again, beside a twin that never ends.

The server gets pipelines of commands, and the clock it sees stands still within each. The twin is
given the same commands at the same times: what the server had acknowledged at its end, and then,
one by one, what was on its way. After one of these the server that came back has to hold the same
as the twin, or something was lost, doubled, half done or out of order.

Then the twin goes on from a copy of the files: which entries share a node is up to how they were
loaded, and what is trimmed by about a length is up to the nodes.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Final, Self

from support.clock import Clock
from support.faults import FaultyServer
from support.process import Process, ServerProcess
from support.torture.rounds import POWER, Plan, Rewriter, end_server, plan
from support.torture.state import DATABASES, differences, state
from support.torture.work import ENDING_FIELDS, MOVES_MS, Pipeline, Work, command_names

ROUNDS: Final = 10  # of one campaign; the next one begins with nothing


_FIRST: Final = [b"SET", b"m", b"1"]
_DATA: Final = ("appendonlydir", "dump.hrs")


class Failure(Exception):
    """Something was lost or refused; the text says what."""


class Campaign:
    """Some rounds with one folder.

    Args:
        seed, number: which campaign; it makes the same choices again.
        with_aof: keep an append-only file; otherwise a snapshot that is written at the end.
    """

    def __init__(self, seed: int, number: int, with_aof: bool) -> None:
        self._chance: Final = Random(f"{seed} {number}")
        self._with_aof: Final = with_aof
        # What some commands do to a field that has ended depends on whether it is still there. So
        # where the cron takes away what has ended, fields have no deadlines.
        self._cron_expires: Final = number % 2 == 0
        self._clock: Final = Clock()
        self._twin_clock: Final = Clock()
        kept = ("--appendonly", "yes") if with_aof else ("--save", "3600 1")
        options = (
            "--databases", str(DATABASES), "--stream-node-max-entries", "7",
            "--hz", "50" if self._cron_expires else "1", "--enable-debug-command", "yes",
        )  # fmt: skip
        self.server: Final = FaultyServer(
            *kept, *options, environment=self._clock.environment, check_log=True
        )
        self._twin: Final = ServerProcess(
            *kept, *options, environment=self._twin_clock.environment, debug=False
        )
        self._sent: list[Pipeline] = []  # in the round under way
        self._replies: list[bytes] = []  # the server's, to as many of these commands
        self._ended = False
        self.commands = 0

    def __enter__(self) -> Self:
        self._start_twin()
        writing, reading = command_names(self._twin)
        if self._cron_expires:
            writing -= ENDING_FIELDS
        self._writing = {name.encode() for name in writing}
        self._work = Work(self._chance, writing | reading)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.server.discard()
        self._twin.discard()
        for clock in (self._clock, self._twin_clock):
            clock.__exit__(None, None, None)

    def run(self, rounds: int = ROUNDS) -> None:
        """Play all rounds. Raises: Failure."""
        self._start()
        for number in range(rounds):
            chosen = plan(self._chance, self._with_aof)
            try:
                self._round(chosen)
            except Failure as failure:
                raise Failure(f"round {number} ({chosen}): {failure}") from failure

    def keep(self, folder: Path) -> None:
        """Copy the server's files and its log, and what it was asked in the last round."""
        self.server.kill()
        shutil.copytree(self.server.directory, folder, dirs_exist_ok=True)
        with (folder / "commands.txt").open("w") as file:
            replies = iter(self._replies)
            for pipeline in self._sent:
                for words in pipeline.commands:
                    file.write(f"{pipeline.at_ms} {words} -> {next(replies, None)!r}\n")

    # A round

    def _round(self, chosen: Plan) -> None:
        with self.server.client() as client:
            client.call("CONFIG", "SET", "appendfsync", chosen.policy)
        self.server.disk(*([chosen.rule] if chosen.rule else []))
        rewriter = Rewriter(self.server.port, chosen.rewrites)
        self._load(chosen)
        rewriter.end()
        self.server.wait()
        if chosen.end == POWER and chosen.rule is None:
            self.server.cut_power()
        self.server.disk()
        self._start()
        self._compare()
        self._align_twin()

    def _start(self) -> None:
        try:
            self.server.start()
        except RuntimeError as refusal:
            raise Failure(f"the server does not start: {refusal}") from refusal
        self._settle_cron(self.server)

    def _start_twin(self) -> None:
        self._twin.start()
        self._settle_cron(self._twin)

    def _settle_cron(self, server: Process) -> None:
        """Let the cron leave what has ended; its first turn comes after a second."""
        if not self._cron_expires:
            server.call("DEBUG", "SET-ACTIVE-EXPIRE", 0)

    def _load(self, chosen: Plan) -> None:
        """Send pipelines until the end, and read the replies that come."""
        self._sent = []
        self._replies = []
        self._ended = False
        with contextlib.suppress(OSError), self.server.client() as client:
            for number in range(chosen.pipelines):
                self._clock.advance(self._chance.choice(MOVES_MS))
                pipeline = self._work.next(self._clock.now_ms)
                if not number:  # so that all from rounds before is synced, where the policy says so
                    pipeline = Pipeline(self._clock.now_ms, [_FIRST])
                self._sent.append(pipeline)
                client.send(pipeline.encoded())
                if number == chosen.pipelines - 1:
                    time.sleep(chosen.wait_s)
                    self._end(chosen)
                for _ in pipeline.commands:
                    self._replies.append(client.read())
        assert self._ended or chosen.rule is not None

    def _end(self, chosen: Plan) -> None:
        """End the server, once: it would take a second signal for an order to lose data."""
        self._ended = True
        end_server(self.server, chosen.end)

    # The twin

    def _compare(self) -> None:
        """Bring the twin to where the server is. Raises: Failure."""
        with self.server.client() as client:
            ours = state(client)
        left = len(self._replies)
        least = ""  # of the differences after each command that was on its way, the shortest
        with self._twin.client() as twin, self._twin.client() as looking:
            for pipeline in self._sent:
                self._twin_clock.set(pipeline.at_ms)
                for words in pipeline.commands:
                    if not left:
                        shown = differences(ours, state(looking))
                        if not shown:
                            return
                        least = min(least or shown, shown, key=len)
                    reply = twin.call(*words)
                    self.commands += 1
                    if left:
                        left -= 1
                        self._compare_reply(words, self._replies[-left - 1], reply)
            shown = differences(ours, state(looking))
        if shown:
            least = min(least or shown, shown, key=len)
            raise Failure(f"what is there is not what was acknowledged:\n{least}")

    def _align_twin(self) -> None:
        """Let the twin go on from the files that the server has just loaded."""
        self._twin.kill()
        for name in _DATA:
            there, copy = self.server.directory / name, self._twin.directory / name
            if copy.is_dir():
                shutil.rmtree(copy)
            if there.is_dir():
                shutil.copytree(there, copy)
            elif there.exists():
                shutil.copyfile(there, copy)
        self._twin_clock.set(self._clock.now_ms)
        self._start_twin()

    def _compare_reply(self, words: list[bytes], ours: bytes, twin: bytes) -> None:
        """What the server had said must be what the twin says, where both changed something."""
        names = {words[0].lower(), b"|".join(words[:2]).lower()}
        if names & self._writing and ours != twin:
            raise Failure(f"{words} was answered {ours!r}, the twin says {twin!r}")
