"""A replica without data: it asks a server for its stream of records and reads them."""

from __future__ import annotations

import re
import shlex
import time
from types import TracebackType
from typing import Final, Self

from support.client import Argument, RawClient
from support.following import Copy
from support.process import Process
from support.records.cases import Case
from support.waiting import wait_until

Record = tuple[str, ...]

_CHANNEL: Final = b"end of a case"
_SIGNS_OF_LIFE: Final = (b"PING", b"REPLCONF")
_STREAM_ID: Final = re.compile(r"\d{13}-\d+")
_BY_CHANCE: Final = re.compile(r"~\w+")  # members of which a command picks any
_NEAR_MS: Final = 10**7  # a moment is one where it is so near to now
_STEP_MS: Final = 10_000  # moments are told apart by so much


class StreamReader(Copy):
    """A link to a server as a replica has it, behind the copy.

    Args:
        process: the server.
    """

    def __init__(self, process: Process) -> None:
        super().__init__(process.port)
        self.sync(b"PSYNC ? -1\r\n")

    def until_end(self) -> list[Record]:
        """The records up to the end of a case, as ``plain`` has them."""
        records: list[Record] = []
        while True:
            words = self.record()
            name = words[0].upper()
            if name == b"PUBLISH" and words[1] == _CHANNEL:
                return records
            elif name not in _SIGNS_OF_LIFE:
                records.append(plain(words))


def plain(words: list[bytes]) -> Record:
    """A record in which moments, IDs, payloads and what chance picks are classes."""
    record = [plain_word(word) for word in words]
    if record[0].upper() == "RESTORE":
        record[3] = "<payload>"
    return tuple(record)


def plain_word(word: bytes) -> str:
    """A word as it is compared."""
    text = word.decode("latin-1")
    if text.isdigit() and len(text) == 13:
        distance = int(text) - time.time() * 1000
        if abs(distance) < _NEAR_MS:
            return f"<now{round(distance / _STEP_MS) * 10:+d}s>"
    if _BY_CHANCE.fullmatch(text):
        return "~"
    return _STREAM_ID.sub("<id>", text)


class Stage:
    """A server that plays cases, one line after another.

    A line is a request, with words in quotes as in a shell. Behind ``b:`` another client says it,
    which blocks. ``!pass N`` waits until so many milliseconds have passed on the server.

    The word ``@100000`` is the moment so many milliseconds from now, ``@s100`` that in seconds,
    and ``%k`` what DUMP answers about the key ``k``.
    """

    def __init__(self, process: Process) -> None:
        self.process = process
        self._client = process.client()
        self._reader = StreamReader(process)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._client.close()
        self._reader.client.close()

    def play(self, case: Case) -> list[Record]:
        """Empty the server and play a case; the records that its lines leave."""
        self._client.call("SELECT", 0)
        self._client.call("FLUSHALL")
        self._client.call("FUNCTION", "FLUSH")
        for line in case.before:
            self._say(line)
        self._end()
        blocked: list[RawClient] = []
        for line in case.lines:
            if line.startswith("b: "):
                client = self.process.client()
                client.send_command(*self._words(line[3:]))
                blocked.append(client)
                wait_until(lambda: self._blocked() == len(blocked))
            else:
                self._say(line)
        for client in blocked:
            client.close()
        wait_until(lambda: self._blocked() == 0)
        return self._end()

    def _end(self) -> list[Record]:
        self._client.call("PUBLISH", _CHANNEL, "")
        return self._reader.until_end()

    def _say(self, line: str) -> None:
        if line.startswith("!pass "):
            self._pass(int(line[6:]))
            return
        self._client.call(*self._words(line))

    def _now_us(self) -> int:
        reply = self._client.call_parsed("TIME")
        assert isinstance(reply, list)
        return int(reply[0]) * 1_000_000 + int(reply[1])

    def _pass(self, duration_ms: int) -> None:
        end = self._now_us() + duration_ms * 1000
        wait_until(lambda: self._now_us() > end)

    def _blocked(self) -> int:
        return int(self.process.info("clients")["blocked_clients"])

    def _words(self, line: str) -> list[Argument]:
        return [self._word(word) for word in shlex.split(line)]

    def _word(self, word: str) -> Argument:
        if re.fullmatch(r"@s-?\d+", word):
            return int(time.time()) + int(word[2:])
        if re.fullmatch(r"@-?\d+", word):
            return int(time.time() * 1000) + int(word[1:])
        if re.fullmatch(r"%\w+", word):
            payload = self._client.call_parsed("DUMP", word[1:])
            assert isinstance(payload, bytes)
            return payload
        return word.replace("\\n", "\n")
