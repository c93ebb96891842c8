"""Talking to the server: RESP2 over one blocking socket, and what to do when it does not answer.

``Client`` is one connection. ``Link`` makes one when it is needed and tries again when the server
is away, loading, or out of memory for the moment: Spark never restarts a query by itself, so a
server that restarts must not end one.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import hiredis

from pyspark_headrace.connecting import connect, explain
from pyspark_headrace.errors import OversizeError, ServerError, UnreachableError
from pyspark_headrace.options import Connection

T = TypeVar("T")
Word = bytes | str | int
Words = Sequence[Word]

log = logging.getLogger("pyspark_headrace")

# Codes of error replies that say "not now".
PASSING: Final = frozenset(
    ("LOADING", "BUSY", "TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN", "READONLY", "OOM", "MISCONF")
)
MOST_DELAY_MS: Final = 10_000
WINDOW: Final = 256  # requests whose replies a server holds, and as many behind them
NAMED_BY: Final = "(passwordEnv or passwordFile names where the password is)"
_CHUNK: Final = 1 << 18


def encode(words: Words) -> bytes:
    """A request: an array of bulk strings."""
    pieces = [b"*%d\r\n" % len(words)]
    for word in words:
        data = word if isinstance(word, bytes) else str(word).encode()
        pieces.append(b"$%d\r\n%b\r\n" % (len(data), data))
    return b"".join(pieces)


class Client:
    """One connection, ready for commands.

    Raises:
        OSError: the server cannot be reached.
        ServerError: it refuses the password or the database.
    """

    def __init__(self, connection: Connection) -> None:
        self._timeout_s = connection.timeout_ms / 1000
        self._reader = hiredis.Reader(replyError=ServerError)
        self._asked: Words | None = None
        self._socket = connect(connection)
        try:
            self._greet(connection)
        except BaseException:
            self.close()
            raise

    def _greet(self, connection: Connection) -> None:
        password = connection.password()
        if password or connection.username:  # a user may need none
            user = [connection.username] if connection.username else []
            try:
                self.call("AUTH", *user, password)
            except ServerError as refused:
                if refused.code != "WRONGPASS":
                    raise
                whose = f" of user {connection.username}" if connection.username else ""
                raise ServerError(
                    f"{refused} ({connection.password_option} is to hold the password{whose})"
                ) from None
        if connection.db:
            self.call("SELECT", connection.db)

    def close(self) -> None:
        """End the connection."""
        self._socket.close()

    def send(self, data: bytes) -> None:
        """Send requests; their replies are to be read one by one."""
        self._socket.sendall(data)

    def read(self) -> object:
        """The next reply; an error is returned, not raised."""
        while True:
            reply: object = self._reader.gets()
            if reply is not False:  # a RESP2 reply is never a boolean
                return reply
            self._reader.feed(self._receive())

    def _receive(self) -> bytes:
        data = self._socket.recv(_CHUNK)
        if not data:
            raise ConnectionResetError("the server closed the connection")
        return data

    def call(self, *words: Word, wait_ms: int = 0) -> object:
        """One command and its reply.

        Args:
            wait_ms: how long the command itself may block.

        Raises:
            ServerError: the reply is an error.
        """
        if wait_ms:
            self._socket.settimeout(self._timeout_s + wait_ms / 1000)
        try:
            self.send(encode(words))
            reply = self.read()
        finally:
            if wait_ms:
                self._socket.settimeout(self._timeout_s)
        if isinstance(reply, ServerError):
            raise reply
        return reply

    def pipeline(self, commands: Sequence[Words]) -> list[object]:
        """Several commands in one go; errors stand among the replies."""
        return self.ask(list(map(encode, commands)))

    def ask(self, requests: Sequence[bytes]) -> list[object]:
        """The replies to requests; errors stand among them.

        Two windows are on their way at a time, so that the server never holds all replies.
        """
        found: list[object] = []
        sent = 0
        while len(found) < len(requests):
            while sent < min(len(requests), len(found) + 2 * WINDOW):
                self.send(b"".join(requests[sent : sent + WINDOW]))
                sent += WINDOW
            found += [self.read() for _ in requests[len(found) : len(found) + WINDOW]]
        return found

    # Pages: whole replies as bytes. A request is followed by ECHO with a word that nobody can
    # guess, so the end of a reply of any shape is known without reading through it.

    def ask_page(self, words: Words, then: Sequence[Words] = ()) -> None:
        """Ask for a page ahead of time, and for what is to be known right behind it."""
        self._token = secrets.token_hex(8).encode()
        echo = encode((b"ECHO", self._token))
        self.send(encode(words) + echo + b"".join(map(encode, then)))
        self._asked = words

    def page(
        self, words: Words, then: Sequence[Words] = (), most_bytes: int = 0
    ) -> tuple[bytes, list[object]]:
        """The bytes of one reply; that of ``ask_page`` where it asked for the same.

        Args:
            most_bytes: how long the reply may be; 0 is any length.

        Returns:
            The page, and the replies to what was asked behind it; errors stand among these.

        Raises:
            OversizeError: it is longer; the connection is of no more use.
            ServerError: the page is an error.
        """
        if self._asked is None:
            self.ask_page(words, then)
        elif self._asked != words:
            raise ConnectionError("another page is on its way")
        end = b"$16\r\n%b\r\n" % self._token
        whole = bytearray()
        at = -1
        while at < 0:
            if most_bytes and len(whole) > most_bytes:
                raise OversizeError(f"the reply has more than {most_bytes} bytes")
            looked = max(0, len(whole) - len(end))  # the end may come in two parts
            whole += self._receive()
            at = whole.find(end, looked)
        self._asked = None
        self._reader.feed(bytes(whole[at + len(end) :]))
        del whole[at:]
        data = bytes(whole)
        replies = [self.read() for _ in then]
        if data[:1] == b"-":
            raise ServerError(data[1:-2].decode("utf-8", "replace"))
        return data, replies


class Link:
    """A connection that is made when it is needed, and again when it breaks.

    Attributes:
        limits_replies: whether XREAD has MAXSIZE, as far as is known.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection: Final = connection
        self.limits_replies = True
        self._client: Client | None = None
        self._answered = False  # the server, ever

    def run(self, work: Callable[[Client], T]) -> T:
        """What ``work`` returns; it is run again, from its start, while the server is away.

        Raises:
            UnreachableError: the server did not come back in time.
            ServerError: the server refuses, for good.
            OptionError: an option leads nowhere, and will not at another try.
        """
        tries = self.connection.retries + 1
        for attempt in range(tries):
            try:
                if self._client is None:
                    self._client = Client(self.connection)
                done = work(self._client)
                self._answered = True
                return done
            except (OSError, hiredis.ProtocolError) as broken:
                self.close()
                never = None if self._answered else explain(self.connection, broken)
                if never is not None:
                    raise never from None
                trouble = str(broken) or type(broken).__name__
            except ServerError as refused:
                if refused.code == "NOAUTH":
                    raise ServerError(f"{refused} {NAMED_BY}") from None
                if refused.code not in PASSING:
                    raise
                trouble = str(refused)
            if attempt + 1 < tries:
                delay_ms = min(self.connection.retry_ms << attempt, MOST_DELAY_MS)
                where = self.connection.where()
                log.warning("%s: %s; trying again in %d ms", where, trouble, delay_ms)
                time.sleep(delay_ms / 1000)
        raise UnreachableError(
            f"{self.connection.where()} did not answer in {tries} tries: {trouble}. "
            "A restarted query goes on where this one stopped"
        )

    def call(self, *words: Word) -> object:
        """One command and its reply, see ``run``."""
        return self.run(lambda client: client.call(*words))

    def pipeline(self, commands: Sequence[Words]) -> list[object]:
        """Several commands in one go, see ``run``; errors stand among the replies."""
        return self.ask(list(map(encode, commands)))

    def ask(self, requests: Sequence[bytes]) -> list[object]:
        """As ``pipeline``, of commands that are encoded already."""

        def work(client: Client) -> list[object]:
            replies = client.ask(requests)
            for reply in replies:
                if isinstance(reply, ServerError) and reply.code in PASSING:
                    raise reply
            return replies

        return self.run(work)

    def close(self) -> None:
        """End the connection, if there is one."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_client": None}
