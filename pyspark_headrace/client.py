"""One connection to a server: RESP2 over a blocking socket."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, cast

import hiredis

from pyspark_headrace.connecting import connect
from pyspark_headrace.connection import Connection
from pyspark_headrace.errors import OptionError, OversizeError, ServerError

Word = bytes | str | int
Words = Sequence[Word]

# Codes of error replies that say "not now".
PASSING: Final = frozenset(
    (
        *("LOADING", "BUSY", "TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN", "READONLY", "OOM", "MISCONF"),
        *("MOVED", "ASK"),
    )
)
WINDOW: Final = 256  # requests whose replies a server holds, and as many behind them
_CHUNK: Final = 1 << 18


def encode(words: Words) -> bytes:
    """A request: an array of bulk strings."""
    pieces = [b"*%d\r\n" % len(words)]
    for word in words:
        data = word if isinstance(word, bytes) else str(word).encode()
        pieces.append(b"$%d\r\n%b\r\n" % (len(data), data))
    return b"".join(pieces)


# What lets a node answer for a key whose slot it does not have yet; itself without a reply.
_ASKING: Final = encode(("CLIENT", "REPLY", "SKIP")) + encode(("ASKING",))


class Client:
    """One connection, ready for commands.

    Args:
        asking: whether every request is to be answered as ASK wants it, see ``Nodes``.

    Raises:
        OSError: the server cannot be reached.
        ServerError: it refuses the password or the database.
    """

    def __init__(self, connection: Connection, asking: bool = False) -> None:
        if connection.sentinels:
            connection = _master(connection)
        self._timeout_s = connection.timeout_ms / 1000
        self._reader = hiredis.Reader(replyError=ServerError)
        self._asked: Words | None = None
        self._before = b""  # goes before each request
        self._socket = connect(connection)
        try:
            self._greet(connection)
        except BaseException:
            self.close()
            raise
        if asking:
            self._before = _ASKING

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

    def request(self, words: Words) -> bytes:
        """A command as it goes out on this connection."""
        return self._before + encode(words)

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
            self.send(self.request(words))
            reply = self.read()
        finally:
            if wait_ms:
                self._socket.settimeout(self._timeout_s)
        if isinstance(reply, ServerError):
            raise reply
        return reply

    def call_words(self, words: Words) -> object:
        """As ``call``, of words that stand together."""
        return self.call(*words)

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
                self.send(self._before.join([b"", *requests[sent : sent + WINDOW]]))
                sent += WINDOW
            found += [self.read() for _ in requests[len(found) : len(found) + WINDOW]]
        return found

    # Pages: whole replies as bytes. A request is followed by ECHO with a word that nobody can
    # guess, so the end of a reply of any shape is known without reading through it.

    def ask_page(self, words: Words, then: Sequence[Words] = ()) -> None:
        """Ask for a page ahead of time, and for what is to be known right behind it."""
        self._token = secrets.token_hex(8).encode()
        echo = encode((b"ECHO", self._token))
        self.send(self.request(words) + echo + b"".join(map(self.request, then)))
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


def _master(connection: Connection) -> Connection:
    """Return where the master is, as the first sentinel says that knows it.

    Raises:
        OptionError: they answer, and none knows such a master.
        OSError: none answers.
    """
    unknown = False
    trouble: Exception = ConnectionError("no sentinel answers")
    for host, port in connection.sentinels:
        asked = Connection(
            host,
            port,
            tls=connection.tls,
            tls_ca_file=connection.tls_ca_file,
            tls_cert_file=connection.tls_cert_file,
            tls_key_file=connection.tls_key_file,
            secret=False,
            timeout_ms=connection.timeout_ms,
            source="option sentinels",
        )
        try:
            client = Client(asked)
            try:
                reply = client.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", connection.master)
            finally:
                client.close()
        except (OSError, ServerError) as error:
            trouble = error
            continue
        if reply is None:
            unknown = True
            continue
        name, number = cast("list[bytes]", reply)
        return replace(connection, host=name.decode(), port=int(number), sentinels=(), master="")
    if unknown:
        raise OptionError(
            f"option sentinelMaster: {connection.master}: the sentinels know no such master"
        )
    if isinstance(trouble, OSError):
        raise trouble
    raise ConnectionError(f"no sentinel answers: {trouble}")
