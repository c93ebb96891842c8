"""A server that follows another one: it has the same data, and takes writes from there alone.

The link is made again whenever it is lost. The master is then asked for the bytes of the stream
that are lacking; only where it does not have them any more it sends all its data. What has been
received is run at once, is in the append-only file, and goes on to the replicas of this server byte
by byte as it came, so that these can go on at the master, and the other way round.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from typing import Final

from headrace.compat.errors import FORCED_UNBLOCK
from headrace.persistence.errors import CorruptAOF, PersistenceError
from headrace.protocol.client import request
from headrace.protocol.replies import ErrorReply
from headrace.protocol.requests import ProtocolError
from headrace.server.clients.session import PAUSED, Peer, describe_endpoints
from headrace.server.config.config import Config
from headrace.server.config.files import rewrite
from headrace.server.data import HELD_BY_MASTER
from headrace.server.dispatch.dispatcher import Dispatcher, resume_held
from headrace.server.following.applying import Applier
from headrace.server.following.loading import Payload, SyncLoading
from headrace.server.gate import BETWEEN_ROLES, FOLLOWS, LINK_DOWN
from headrace.server.links.link import Link, LinkUser
from headrace.server.loading.starting import user_lines
from headrace.server.replication.replicas import AllReplicas
from headrace.server.role import FAILOVER_UNDER_WAY, PATIENCE_MS, PROMOTED, Following
from headrace.server.state import StandbyInput

_MAY_FAIL: Final = (b"REPLCONF",)


class Refused(Exception):
    """The master refuses this server; the text says why."""


class Handshake:
    """The requests of one connection, up to PSYNC, each of which waits for the answer to the last.

    A master that does not know an option says so, and is followed all the same; one that refuses us
    is asked again later. ``data_id`` is that of our data, empty for none, ``offset`` that of the
    first byte that we lack. ``takes_over``: the other one is to become a master by this.
    ``is_ours``: the master is no Redis.
    """

    def __init__(self, config: Config, data_id: bytes, offset: int, takes_over: bool) -> None:
        self._sent: list[bytes] = []
        self.is_ours = False
        encrypts = config.tls_replication and config.tls_port
        port = config.replica_announce_port or (config.tls_port if encrypts else config.port)
        requests = [[b"PING"]]
        if config.masterauth:
            user = [config.masteruser] if config.masteruser else []
            requests.append([b"AUTH", *user, config.masterauth])
        requests.append([b"REPLCONF", b"listening-port", b"%d" % port])
        if config.replica_announce_ip:
            requests.append([b"REPLCONF", b"ip-address", config.replica_announce_ip])
        requests.append([b"REPLCONF", b"capa", b"eof", b"capa", b"psync2"])
        requests.append([b"REPLCONF", b"headrace", b"1"])
        if config.aa_region_id:
            requests.append([b"REPLCONF", b"region", config.region_text()])
        asked = [data_id, b"%d" % offset] if data_id else [b"?", b"-1"]
        requests.append([b"PSYNC", *asked, *([b"FAILOVER"] if takes_over else [])])
        self._requests: Final = requests

    def next(self) -> list[bytes]:
        """Return the next request."""
        self._sent = self._requests.pop(0)
        return self._sent

    def answered(self, line: bytes) -> None:
        """Take the answer to the last request. Raises: Refused; there is no use in going on."""
        if not line.startswith(b"-"):
            self.is_ours |= self._sent[1:2] == [b"headrace"]
            return
        name = self._sent[0]
        if name == b"PING" and line.startswith((b"-NOAUTH", b"-NOPERM", b"-ERR operation not")):
            return  # it is there, and wants to know who we are
        may_fail = name in _MAY_FAIL and self._sent[1] != b"region"
        if not may_fail or line.startswith((b"-NOAUTH", b"-NOPERM")):
            raise Refused(f"{name.decode()}: {line[1:].decode('utf-8', 'backslashreplace')}")

    def is_over(self) -> bool:
        """Return whether PSYNC has been sent."""
        return not self._requests


log: Final = logging.getLogger("headrace")

RETRY_MS: Final = 1000
LOST: Final = 0  # there is no link
CONNECTING: Final = 1
HANDSHAKE: Final = 2
ANSWER: Final = 3  # of PSYNC is awaited
HEAD: Final = 4  # the line in front of a snapshot is
RECEIVING: Final = 5
LOADING: Final = 6
CONNECTED: Final = 7
_NAMES: Final = (
    *(b"connect", b"connecting", b"handshake", b"handshake"),
    *(b"sync", b"sync", b"sync", b"connected"),
)
_SIGN_OF_LIFE: Final = b"\n"
_LONGEST_LINE: Final = 1 << 16


class MasterFollowing(Following, LinkUser):
    """The replica's side of replication; ``relay`` is our stream, ``new_link`` opens links."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        relay: AllReplicas,
        new_link: Callable[[LinkUser, bytes, int], Link],
    ) -> None:
        super().__init__()
        self._new_link: Final = new_link
        self._dispatcher: Final = dispatcher
        self._server: Final = dispatcher.server
        self._relay: Final = relay
        self._state = LOST
        self._link: Link | None = None
        self._handshake: Handshake | None = None
        self._is_ours = False  # the master is of our kind
        self._promoted_ms = 0  # when we reported to it that we are to be a master; 0: not yet
        self._lines = b""  # received and not used yet
        self._payload: Payload | None = None
        self._loading: SyncLoading | None = None
        self._applier: Applier | None = None
        self._of_region: StandbyInput | None = None
        self._next_id = b""  # of the data that is coming, and the offset of its moment
        self._next_offset = 0
        self._knows_stream = False  # what we have is up to where the stream of some data is
        self._db = 0  # that the stream is in, while there is no link
        self._on_disk = 0  # how much of the stream surely is on our disk
        now_ms = self._server.clock.monotonic_ms()
        self._io_ms = now_ms
        self._retry_ms = now_ms
        self._acked_ms = now_ms
        self._down_since_ms = 0  # 0: there never was a link
        self._up_since_ms = now_ms
        self._away_ms = 0  # in all: without a link, between two
        self._attempts = 0  # since there was a link
        self._all_attempts = 0

    # REPLICAOF

    def follow(self, host: bytes, port: int, db: int = 0, is_kept: bool = False) -> None:
        server = self._server
        self._close()
        self._end_promotion()
        if not self.is_on:
            self.is_on = True
            if server.neighbours is not None:
                self._of_region = server.neighbours.follow()
            self._knows_stream = self._relay.stop_recording()
            self._db = db
            server.data.hold_expiry(HELD_BY_MASTER, True)
            server.gate.set(FOLLOWS, True)
            self._unblock_all()
            server.limit_writes()
        self.host = host
        self.port = port
        server.gate.set(LINK_DOWN, True)
        self._down_since_ms = 0
        self._away_ms = 0
        self._attempts = 0
        self._all_attempts = 0
        log.info("Following %s:%d from now on", os.fsdecode(host), port)
        self._connect()
        if is_kept and server.config.file:
            try:
                rewrite(server.config, user_lines(server))
            except OSError as error:
                log.warning("CONFIG REWRITE failed: %s", error)

    def lead(self, has_all: bool = False) -> None:
        server = self._server
        if not self.is_on:
            return
        self._close()
        self.is_on = False
        self.host = b""
        self.port = 0
        server.data.hold_expiry(HELD_BY_MASTER, False)
        server.gate.set(FOLLOWS | LINK_DOWN, False)
        self._relay.lead(self._knows_stream)
        if server.neighbours is not None:
            server.neighbours.lead(has_all)
        server.limit_writes()
        log.info("MASTER MODE enabled")
        self._end_promotion()

    def promote(self, by_sentinel: bool) -> None:
        link = self._link
        if link is None or self._state != CONNECTED or not self._is_ours:
            self.lead()
            return
        self._promoted_ms = self._server.clock.monotonic_ms()
        self._server.gate.set(BETWEEN_ROLES, True)
        self._acknowledge(link, PROMOTED, b"%d" % by_sentinel)

    def _end_promotion(self) -> None:
        if self._promoted_ms:
            self._promoted_ms = 0
            self._server.gate.set(BETWEEN_ROLES, False)
            resume_held(self._server)

    def stop(self) -> None:
        self._close()

    def _unblock_all(self) -> None:
        server = self._server
        for session in list(server.clients.sessions.values()):
            if session.waiter is not None:
                server.end_wait(session, ErrorReply(FORCED_UNBLOCK))
                session.peer.close()

    # The link

    def _connect(self) -> None:
        self._state = CONNECTING
        self._attempts += 1
        self._all_attempts += 1
        self._lines = b""
        now_ms = self._server.clock.monotonic_ms()
        self._io_ms = now_ms
        self._retry_ms = now_ms
        self._link = self._new_link(self, self.host, self.port)

    def connected(self, link: Link) -> None:
        role = self._server.role
        data_id = role.id if self._knows_stream else b""
        takes_over = role.failover == FAILOVER_UNDER_WAY
        self._handshake = Handshake(self._server.config, data_id, role.offset() + 1, takes_over)
        self._state = HANDSHAKE
        self._ask(link, self._handshake)

    def _ask(self, link: Link, handshake: Handshake) -> None:
        link.send(request(handshake.next()))
        if handshake.is_over():
            self._state = ANSWER

    def lost(self, link: Link, reason: str) -> None:
        if link is self._link:
            where = f"{os.fsdecode(self.host)}:{self.port}"
            log.warning("The link with the master, %s, is down: %s", where, reason)
            self._give_up()

    def _give_up(self) -> None:
        self._close()
        self._server.gate.set(LINK_DOWN, True)
        if self._promoted_ms:
            self.lead()

    def _close(self) -> None:
        link = self._link
        self._link = None
        if link is not None:
            link.close()
        if self._applier is not None:
            self._db = self._applier.db
            self._server.clients.master = None
            self._server.session_closed(self._applier.session)
            self._applier = None
        if self._loading is not None:
            self._loading.cancel()
            self._loading = None
            self._knows_stream = False
        if self._payload is not None:
            self._payload.discard()
            self._payload = None
        if self._state == CONNECTED:
            self._down_since_ms = self._server.clock.monotonic_ms()
            self._attempts = 0
        self._handshake = None
        self._state = LOST

    # The received stream

    def received(self, link: Link, data: bytes) -> None:
        if link is not self._link:
            return
        self._server.statistics.counters.note_replicated(len(data), 0)
        self._io_ms = self._server.clock.monotonic_ms()
        try:
            self._take(link, data)
        except Refused as refusal:
            self.lost(link, str(refusal))
        except ProtocolError as broken:
            self.lost(link, f"what it sends is no stream of commands: {broken.text!r}")
        except CorruptAOF as damage:
            self._knows_stream = False
            self.lost(link, str(damage))
        except PersistenceError as obstacle:
            self.lost(link, str(obstacle))
        except OSError as error:
            self.lost(link, f"its snapshot cannot be kept: {error.strerror or error}")

    def resume(self, link: Link) -> None:
        """Go on with the stream, which was held back."""
        if link is self._link and self._applier is not None:
            self._applier.session.special &= ~PAUSED
            link.pause(False)
            self.received(link, b"")

    def _take(self, link: Link, data: bytes) -> None:
        while data or self._state == CONNECTED:
            if self._state == CONNECTED:
                self._apply(link, data)
                return
            if self._state == RECEIVING:
                assert self._payload is not None
                rest = self._payload.take(data)
                if rest is None:
                    return
                self._lines = rest
                self._load(link)
                return
            if self._state == LOADING:
                self._lines += data
                return
            line, end, rest = (self._lines + data).partition(b"\n")
            if not end:
                self._lines += data
                if len(self._lines) > _LONGEST_LINE:
                    raise Refused("it sends a line without an end")
                return
            self._lines = b""
            data = rest
            line = line.rstrip(b"\r")
            if line:  # an empty one is a sign of life
                self._take_line(link, line)

    def _take_line(self, link: Link, line: bytes) -> None:
        if self._state == HEAD:
            if line.startswith(b"-"):
                raise Refused(f"no snapshot: {_text(line)}")
            folder = os.path.abspath(self._server.config.dir)
            self._payload = Payload(line, folder)
            self._state = RECEIVING
            return
        handshake = self._handshake
        assert handshake is not None
        if self._state == HANDSHAKE:
            handshake.answered(line)
            self._ask(link, handshake)
            return
        words = line.split()
        if words[0] == b"+FULLRESYNC" and len(words) == 3 and words[2].isdigit():
            log.info("Full copy from the master: %s", _text(line))
            self._server.role.ready_failover().succeed()
            self._next_id = words[1]
            self._next_offset = int(words[2])
            self._state = HEAD
        elif words[0] == b"+CONTINUE" and self._knows_stream:
            log.info("The master goes on from offset %d", self._server.role.offset() + 1)
            self._server.role.ready_failover().succeed()
            self._relay.go_on(words[1] if len(words) > 1 else self._server.role.id)
            self._go_online(link)
        else:
            self._server.role.ready_failover().abort("Failover target rejected psync request")
            raise Refused(f"PSYNC: {_text(line)}")

    def _apply(self, link: Link, data: bytes) -> None:
        applier = self._applier
        assert applier is not None
        applier.take(data)
        if applier.session.special & PAUSED:
            link.pause(True)
        if applier.asked:
            applier.asked = False
            self._acknowledge(link)
        if applier.lacks_scripts:  # it sends them anew to one that has taken a full copy
            self._knows_stream = False
            self.lost(link, "it calls a script that it has sent before this server was started")

    # A full copy

    def _load(self, link: Link) -> None:
        payload = self._payload
        assert payload is not None
        payload.close()
        self._state = LOADING
        self._knows_stream = False
        link.pause(True)
        self._loading = SyncLoading(self._dispatcher, payload.path, self._loaded)
        self._relay.stop_relaying()
        keys = sum([len(db) for db in self._server.data.dbs])
        log.info("The %d keys that are here go, with what the master lacks of them", keys)
        self._loading.begin()

    def _loaded(self, failure: str) -> None:
        loading = self._loading
        link = self._link
        self._loading = None
        if failure or link is None or loading is None:
            log.warning("The snapshot of the master cannot be loaded: %s", failure)
            self._give_up()
            return
        if self._payload is not None:
            self._payload.discard()
            self._payload = None
        self._relay.begin_at(self._next_id, self._next_offset)
        self._knows_stream = True
        self._db = loading.db
        self._go_online(link)
        link.pause(False)
        rest = self._lines
        self._lines = b""
        if rest:
            self.received(link, rest)

    def _go_online(self, link: Link) -> None:
        self._is_ours = self._handshake is not None and self._handshake.is_ours
        self._handshake = None
        self._state = CONNECTED
        now_ms = self._server.clock.monotonic_ms()
        if self._down_since_ms:
            self._away_ms += now_ms - self._down_since_ms
        self._up_since_ms = now_ms
        master = MasterPeer(self, link)
        self._applier = Applier(self._dispatcher, self._relay, self._db, master, self._of_region)
        transport = link.transport()
        if transport is not None:
            describe_endpoints(self._applier.session, transport)
        self._server.clients.master = self._applier.session
        self._server.gate.set(LINK_DOWN, False)
        self._acknowledge(link)

    def _acknowledge(self, link: Link, *more: bytes) -> None:
        self._acked_ms = self._server.clock.monotonic_ms()
        offset = self._server.role.offset()
        words = [b"REPLCONF", b"ACK", b"%d" % offset]
        aof = self._dispatcher.durability.files.aof
        if aof is not None and aof.named:
            if not aof.pending and aof.is_synced():
                self._on_disk = offset
            words += [b"FACK", b"%d" % self._on_disk]
        wire = request([*words, *more])
        if self._applier is not None:
            self._applier.session.bytes_out += len(wire)
        link.send(wire)

    # Periodic work

    def tick(self, now_ms: int) -> None:
        if not self.is_on:
            return
        link = self._link
        if link is None:
            if now_ms - self._retry_ms >= RETRY_MS:
                self._connect()
            return
        if self._state == LOADING or self._is_held():
            self._io_ms = now_ms
        if self._promoted_ms and now_ms - max(self._promoted_ms, self._io_ms) > PATIENCE_MS:
            self.lost(link, "it does not answer to a replica that is to be a master")
        elif now_ms - self._io_ms > self._server.config.repl_timeout * 1000:
            self.lost(link, "it was silent for too long (repl-timeout)")
        elif now_ms - self._acked_ms >= RETRY_MS:
            if self._state == CONNECTED:
                self._acknowledge(link)
            elif self._state in (RECEIVING, LOADING):
                self._acked_ms = now_ms
                link.send(_SIGN_OF_LIFE)

    # Figures

    def _is_held(self) -> bool:
        """Return whether the stream is not read on, because of CLIENT PAUSE."""
        return self._applier is not None and bool(self._applier.session.special & PAUSED)

    def held_bytes(self) -> int:
        """Return how many received bytes of the stream are not run yet."""
        return 0 if self._applier is None else self._applier.held_bytes

    def link_is_up(self) -> bool:
        return self._state == CONNECTED

    def stream_db(self) -> int:
        return self._db if self._applier is None else self._applier.db

    def row(self) -> list[object]:
        offset = self._server.role.offset() if self._knows_stream else -1
        return [b"slave", self.host, self.port, _NAMES[self._state], offset]

    def info(self) -> list[bytes]:
        now_ms = self._server.clock.monotonic_ms()
        config = self._server.config
        is_up = self._state == CONNECTED
        syncs = self._state in (HEAD, RECEIVING, LOADING)
        offset = self._server.role.offset()
        lines = [
            b"master_host:" + self.host,
            b"master_port:%d" % self.port,
            b"master_link_status:" + (b"up" if is_up else b"down"),
            b"master_last_io_seconds_ago:%d" % ((now_ms - self._io_ms) // 1000 if is_up else -1),
            b"master_sync_in_progress:%d" % syncs,
            b"slave_read_repl_offset:%d" % (offset + self.held_bytes()),
            b"slave_repl_offset:%d" % offset,
            b"replica_full_sync_buffer_size:0",
            b"replica_full_sync_buffer_peak:0",
            b"master_current_sync_attempts:%d" % self._attempts,
            b"master_total_sync_attempts:%d" % self._all_attempts,
        ]
        if syncs:
            lines += self._transfer(now_ms)
        if not is_up:
            since_ms = self._down_since_ms
            seconds = (now_ms - since_ms) // 1000 if since_ms else -1
            lines.append(b"master_link_down_since_seconds:%d" % seconds)
        else:
            seconds = (now_ms - self._up_since_ms) // 1000
            lines.append(b"master_link_up_since_seconds:%d" % seconds)
            lines.append(b"master_client_io_thread:0")
        lines += [
            b"total_disconnect_time_sec:%d" % (self._away_ms // 1000),
            b"slave_priority:%d" % config.replica_priority,
            b"slave_read_only:%d" % config.replica_read_only,
            b"replica_announced:%d" % config.replica_announced,
        ]
        return lines

    def _transfer(self, now_ms: int) -> list[bytes]:
        payload = self._payload
        received = 0 if payload is None else payload.received_bytes
        total = 0 if payload is None else payload.total_bytes
        return [
            b"master_sync_total_bytes:%d" % total,
            b"master_sync_read_bytes:%d" % received,
            b"master_sync_left_bytes:%d" % (total - received),
            b"master_sync_perc:%.2f" % (100.0 * received / total if total else 0.0),
            b"master_sync_last_io_seconds_ago:%d" % ((now_ms - self._io_ms) // 1000),
        ]


class MasterPeer(Peer):
    """Closes the link with the master, as CLIENT KILL does."""

    def __init__(self, user: MasterFollowing, link: Link) -> None:
        self._user: Final = user
        self._link: Final = link

    def pending_input_bytes(self) -> int:
        return self._user.held_bytes()

    def abort(self) -> None:
        self._user.lost(self._link, "it was closed here")

    def close(self) -> None:
        self.abort()

    def resume_soon(self) -> None:
        asyncio.get_running_loop().call_soon(self._user.resume, self._link)


def _text(line: bytes) -> str:
    return line.decode("utf-8", "backslashreplace")
