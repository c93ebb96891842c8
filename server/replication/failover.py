"""FAILOVER: a replica becomes the master, and this server its replica; nothing is lost by that.

Requests that write are held back until the replica has all that there is. Then this server follows
it, and asks for the stream with the word FAILOVER, by which the other one becomes a master. When it
has answered, those requests get the error that this is a replica.

A replica of ours reports REPLICAOF NO ONE before it obeys. Writes are held back in the
same way; when it has all, its link is closed, by which it becomes a master. Where a sentinel gave
that order, this server follows it at once. An operator may want two masters: so writes go on after
a second, unless REPLICAOF makes this server a replica before.
"""

from __future__ import annotations

import logging
from typing import Final

from headrace.compat import errors
from headrace.compat.errors import CommandError
from headrace.server.clients.session import Session
from headrace.server.dispatch.dispatcher import HELD_BY_FAILOVER, hold_writes, release_writes
from headrace.server.gate import HALF_JOINED, LENGTHY_AT_WORK, SCRIPT_AT_WORK
from headrace.server.replication.replica import ONLINE, Replica
from headrace.server.replication.replicas import GET_ACK, AllReplicas
from headrace.server.role import (
    FAILOVER_UNDER_WAY,
    FAILOVER_WAITS,
    HANDS_OVER,
    NO_FAILOVER,
    Failover,
)
from headrace.server.state import Server

_LONGEST_MS: Final = 5000  # until the replica has all
_HELD_MS: Final = 1000  # after it has left, for an operator's next command
_OF_NO_MOMENT: Final = LENGTHY_AT_WORK | SCRIPT_AT_WORK | HALF_JOINED
log: Final = logging.getLogger("headrace")


class ReplicaFailover(Failover):
    """Changes the roles of this server and one replica; one failover at a time."""

    def __init__(self, server: Server, replicas: AllReplicas) -> None:
        self._server: Final = server
        self._replicas: Final = replicas
        self._host = b""  # of the one that is to be the master; empty for any
        self._port = 0
        self._is_forced = False
        self._deadline_ms = 0  # 0: there is none
        self._heir: Replica | None = None  # is about to be a master
        self._is_split = False  # nobody has said that this server is to follow it
        self._wanted = -1  # how much of the stream that one has to have; below 0: more may come

    def begin(self, host: bytes, port: int, timeout_ms: int, is_forced: bool) -> None:
        server = self._server
        if server.role.follows:
            raise CommandError(errors.FAILOVER_AT_REPLICA)
        if not self._replicas.count():
            raise CommandError(errors.FAILOVER_ALONE)
        if is_forced and not (host and timeout_ms):
            raise CommandError(errors.FAILOVER_FORCED_TO_NOBODY)
        if host:
            target = self._replicas.at(host, port)
            if target is None:
                raise CommandError(errors.FAILOVER_TO_STRANGER)
            if target.state != ONLINE:
                raise CommandError(errors.FAILOVER_TO_ABSENT)
        log.info("FAILOVER requested to %s:%d.", _text(host) or "any replica", port)
        self._host = host
        self._port = port
        self._is_forced = is_forced
        now_ms = server.clock.monotonic_ms()
        self._deadline_ms = now_ms + timeout_ms if timeout_ms else 0
        server.role.failover = FAILOVER_WAITS
        hold_writes(server, HELD_BY_FAILOVER)

    def abort(self, reason: str) -> None:
        state = self._server.role.failover
        if state != NO_FAILOVER:
            log.info("Aborting failover: %s", reason)
            self._end()
            if state == FAILOVER_UNDER_WAY:
                self._lead()

    def succeed(self) -> None:
        if self._server.role.failover in (FAILOVER_UNDER_WAY, HANDS_OVER):
            log.info("Failover succeeded.")
            self._end()

    def _lead(self) -> None:
        server = self._server
        server.config.replicaof = b""
        server.role.ready_following().lead()

    def _end(self) -> None:
        self._server.role.failover = NO_FAILOVER
        release_writes(self._server, HELD_BY_FAILOVER)

    def hand_over(self, heir: Session, may: bool, by_sentinel: bool) -> None:
        server = self._server
        those = [each for each in self._replicas.all() if each.session is heir]
        may = may and not server.config.cluster_enabled
        if not (may and those) or server.role.follows or server.role.failover != NO_FAILOVER:
            heir.peer.close()  # it does not wait any longer
            return
        self._heir = those[0]
        log.info("Replica %s is about to be a master.", those[0].name())
        self._is_split = not by_sentinel
        server.role.failover = HANDS_OVER
        hold_writes(server, HELD_BY_FAILOVER)
        self._wanted = -1
        self._deadline_ms = server.clock.monotonic_ms() + _LONGEST_MS
        self._look_at_heir(0)

    def _look_at_heir(self, now_ms: int) -> None:
        server = self._server
        heir = self._heir
        if heir is None:
            if now_ms >= self._deadline_ms:
                self._end()
        elif 0 <= self._wanted <= heir.acked or heir.session.closed or now_ms >= self._deadline_ms:
            self._heir = None
            self._deadline_ms = now_ms + _HELD_MS
            heir.session.peer.close()  # by this it is the master
            if 0 <= self._wanted <= heir.acked and not self._is_split:
                self._follow(heir.address(), heir.facts.port, is_kept=True)
                self.succeed()
        elif self._wanted < 0 and not server.gate.reasons & _OF_NO_MOMENT:
            self._wanted = self._replicas.stream.end
            self._replicas.stream.say(GET_ACK)

    def tick(self, now_ms: int) -> None:
        if self._server.role.failover == HANDS_OVER:
            self._look_at_heir(now_ms)
        if self._server.role.failover != FAILOVER_WAITS:
            return
        target = self._replicas.at(self._host, self._port) if self._host else self._any()
        may = not self._server.gate.reasons & HALF_JOINED
        if may and target is not None and self._replicas.has_all(target):
            self._proceed(target.address(), target.facts.port)
        elif 0 < self._deadline_ms <= now_ms:
            if self._is_forced:
                log.warning("Failover target does not have all: going on, because it is forced.")
                self._proceed(self._host, self._port)
            else:
                self.abort("Replica never caught up before timeout")

    def _any(self) -> Replica | None:
        those = [each for each in self._replicas.all() if self._replicas.has_all(each)]
        return those[0] if those else None

    def _proceed(self, host: bytes, port: int) -> None:
        log.info("Failover target %s:%d is synced, failing over.", _text(host), port)
        self._server.role.failover = FAILOVER_UNDER_WAY
        self._follow(host, port)

    def _follow(self, host: bytes, port: int, *, is_kept: bool = False) -> None:
        self._server.config.replicaof = b"%b %d" % (host, port)
        self._server.role.ready_following().follow(host, port, 0, is_kept)


def _text(host: bytes) -> str:
    return host.decode("utf-8", "backslashreplace")
