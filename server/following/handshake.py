"""The handshake: what a replica says before it is given anything, line by line.

Each request waits for the answer to the one before. A master that does not know an option says so,
and is followed all the same; one that lets nobody in is asked again later.
"""

from __future__ import annotations

from typing import Final

from headrace.server.config.config import Config

_MAY_FAIL: Final = (b"REPLCONF",)


class Refused(Exception):
    """The master does not want us; the text says why."""


class Handshake:
    """The requests of one connection, up to PSYNC.

    Args:
        config: who we are.
        data_id: of the data that we have; empty for none.
        offset: of the first byte of the stream that we lack.
        takes_over: the other one is to become a master by this.
    """

    def __init__(self, config: Config, data_id: bytes, offset: int, takes_over: bool) -> None:
        self._sent: list[bytes] = []
        port = config.replica_announce_port or config.port
        requests = [[b"PING"]]
        if config.masterauth:
            user = [config.masteruser] if config.masteruser else []
            requests.append([b"AUTH", *user, config.masterauth])
        requests.append([b"REPLCONF", b"listening-port", b"%d" % port])
        if config.replica_announce_ip:
            requests.append([b"REPLCONF", b"ip-address", config.replica_announce_ip])
        requests.append([b"REPLCONF", b"capa", b"eof", b"capa", b"psync2"])
        asked = [data_id, b"%d" % offset] if data_id else [b"?", b"-1"]
        requests.append([b"PSYNC", *asked, *([b"FAILOVER"] if takes_over else [])])
        self._requests: Final = requests

    def next(self) -> list[bytes]:
        """The next request."""
        self._sent = self._requests.pop(0)
        return self._sent

    def answered(self, line: bytes) -> None:
        """Take the answer to the last request.

        Raises:
            Refused: there is no use in going on.
        """
        if not line.startswith(b"-"):
            return
        name = self._sent[0]
        if name == b"PING" and line.startswith((b"-NOAUTH", b"-NOPERM", b"-ERR operation not")):
            return  # it is there, and wants to know who we are
        if name not in _MAY_FAIL or line.startswith((b"-NOAUTH", b"-NOPERM")):
            raise Refused(f"{name.decode()}: {line[1:].decode('utf-8', 'backslashreplace')}")

    def is_over(self) -> bool:
        """Return whether PSYNC has been sent."""
        return not self._requests
