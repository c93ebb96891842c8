"""Talking to the server: RESP2 over blocking sockets, and what to do when it does not answer.

``Client`` is one connection. ``Link`` makes one when it is needed, in a cluster to the node that
has a key. It tries again when the server is away, loading, or out of memory for the moment: Spark
never restarts a query by itself, so a server that restarts must not end one.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, TypeVar, cast

import hiredis

from pyspark_headrace.connecting import connect, explain
from pyspark_headrace.errors import OptionError, OversizeError, ServerError, UnreachableError
from pyspark_headrace.options import Connection
from pyspark_headrace.slots import Slots, key_of, keys_of, slot_of

T = TypeVar("T")
Word = bytes | str | int
Words = Sequence[Word]

log = logging.getLogger("pyspark_headrace")

# Codes of error replies that say "not now".
PASSING: Final = frozenset(
    (
        *("LOADING", "BUSY", "TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN", "READONLY", "OOM", "MISCONF"),
        *("MOVED", "ASK"),
    )
)
# And those of them that say that somebody else is to be asked.
ELSEWHERE: Final = frozenset(("MOVED", "ASK", "READONLY", "CLUSTERDOWN", "MASTERDOWN"))
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
        if connection.sentinels:
            connection = _master(connection)
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


def _master(connection: Connection) -> Connection:
    """Where the master is, as the first sentinel says that knows it.

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


class Link:
    """A connection that is made when it is needed, and again when it breaks.

    In a cluster there is one to each node that is asked, and who asks says for which key.

    Attributes:
        limits_replies: whether XREAD has MAXSIZE, as far as is known.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection: Final = connection
        self.limits_replies = True
        self._clients: dict[Connection, Client] = {}
        self._slots: Slots | None = None
        self._looked = False  # whether it is a cluster
        self._answered = False  # the server, ever

    def is_cluster(self) -> bool:
        """Whether keys lie on several nodes, so that a command takes those of one slot."""
        if not self._looked:
            self.run(lambda client: None)
        return self._slots is not None

    def masters(self) -> list[int]:
        """A slot of each node that has keys; what is to be asked everywhere is asked for each."""
        return list(self._slots.masters().values()) if self.is_cluster() and self._slots else [0]

    def run(self, work: Callable[[Client], T], slot: int = 0) -> T:
        """What ``work`` returns; it is run again, from its start, while the server is away.

        Args:
            slot: that of the key that is asked about, in a cluster.

        Raises:
            UnreachableError: the server did not come back in time.
            ServerError: the server refuses, for good.
            OptionError: an option leads nowhere, and will not at another try.
        """
        tries = self.connection.retries + 1
        for attempt in range(tries):
            try:
                done = work(self._client(slot))
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
                if refused.code in ELSEWHERE:
                    self.close()
                    if attempt == 0:
                        continue
            else:
                self._answered = True
                return done
            if attempt + 1 < tries:
                delay_ms = min(self.connection.retry_ms << attempt, MOST_DELAY_MS)
                where = self.connection.where()
                log.warning("%s: %s; trying again in %d ms", where, trouble, delay_ms)
                time.sleep(delay_ms / 1000)
        raise UnreachableError(
            f"{self.connection.where()} did not answer in {tries} tries: {trouble}. "
            "A restarted query goes on where this one stopped"
        )

    def _client(self, slot: int) -> Client:
        """A connection to who has a slot."""
        if not self._looked or (self._slots is not None and not self._clients):
            self._find_nodes()
        if self._slots is None:
            return self._connected(self.connection)
        master = self._slots.master_of(slot)
        if master is None:
            raise ServerError(f"CLUSTERDOWN no node has slot {slot}")
        return self._connected(master)

    def _connected(self, connection: Connection) -> Client:
        client = self._clients.get(connection)
        if client is None:
            client = self._clients[connection] = Client(connection)
        return client

    def _find_nodes(self) -> None:
        """Ask for the nodes of the cluster: where the options lead to, or else whom we know of."""
        known = [] if self._slots is None else list(self._slots.masters())
        trouble: OSError | None = None
        for each in dict.fromkeys((self.connection, *known)):
            try:
                client = self._connected(each)
                reply = client.pipeline([("CLUSTER", "SLOTS")])[0]
            except OSError as away:
                trouble = trouble or away
                continue
            if not isinstance(reply, ServerError):
                if self.connection.db:
                    raise OptionError(f"option db: {self.connection.db}: a cluster has 0 alone")
                self._slots = Slots(reply, each)
            elif reply.code in PASSING:
                raise reply
            self._looked = True
            return
        assert trouble is not None
        raise trouble

    def call(self, *words: Word) -> object:
        """One command and its reply, see ``run``."""
        key = key_of(words)
        return self.run(lambda client: client.call(*words), 0 if key is None else slot_of(key))

    def pipeline(self, commands: Sequence[Words]) -> list[object]:
        """Several commands in one go, see ``run``; errors stand among the replies."""
        return self.ask(list(map(encode, commands)), lambda: keys_of(commands))

    def ask(
        self, requests: Sequence[bytes], keys: Callable[[], Sequence[bytes | str | None]]
    ) -> list[object]:
        """As ``pipeline``, of commands that are encoded already.

        Args:
            keys: tells the key of each, if there is a cluster.
        """
        if not requests:
            return []
        if not self.is_cluster():
            return self.run(partial(_ask, requests=requests))
        slots = [0 if key is None else slot_of(key) for key in keys()]
        for attempt in range(self.connection.retries + 1):
            found = self._ask_nodes(requests, slots)
            moved = [
                each for each in found if isinstance(each, ServerError) and each.code == "MOVED"
            ]
            if not moved:
                return found
            self.close()
            if attempt:
                time.sleep(self.connection.retry_ms / 1000)
        raise moved[0]

    def _ask_nodes(self, requests: Sequence[bytes], slots: Sequence[int]) -> list[object]:
        """Ask each node for what it has; what has moved since is answered so."""
        assert self._slots is not None
        shares: dict[Connection | None, list[int]] = {}
        for number, slot in enumerate(slots):
            shares.setdefault(self._slots.master_of(slot), []).append(number)
        found: list[object] = [None] * len(requests)
        for numbers in shares.values():
            share = [requests[number] for number in numbers]
            replies = self.run(partial(_ask, requests=share), slots[numbers[0]])
            for number, reply in zip(numbers, replies, strict=True):
                found[number] = reply
        return found

    def close(self) -> None:
        """End the connections, if there are any."""
        for client in self._clients.values():
            client.close()
        self._clients.clear()

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_clients": {}, "_slots": None, "_looked": False}


def _ask(client: Client, requests: Sequence[bytes]) -> list[object]:
    replies = client.ask(requests)
    for reply in replies:
        if isinstance(reply, ServerError) and reply.code in PASSING and reply.code != "MOVED":
            raise reply
    return replies
