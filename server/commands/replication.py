"""SYNC, PSYNC, REPLCONF, ROLE, REPLICAOF and FAILOVER."""

from __future__ import annotations

import logging
from typing import Final

from headrace.compat import errors
from headrace.compat.errors import CommandError
from headrace.compat.numbers import parse_integer
from headrace.protocol.replies import NO_REPLY, OK, Status
from headrace.server.clients.session import REPLICA, ReplicaFacts
from headrace.server.clock import Clock, is_moved
from headrace.server.dispatch.admission import drop_replica, find_recorded_row
from headrace.server.dispatch.args import Args, bounded, integer
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.permission import refused_line
from headrace.server.role import HANDS_OVER, NO_FAILOVER, PROMOTED


class Wanted:
    """The options of FAILOVER; a value that is empty, 0 or False was not given."""

    def __init__(self, argv: list[bytes]) -> None:
        self.host = b""
        self.port = 0
        self.timeout_ms = 0
        self.is_forced = False
        self.aborts = False
        args = Args(argv)
        while args.left:
            self._take(args)

    def _take(self, args: Args) -> None:
        if not self.timeout_ms and args.left > 1 and args.flag(b"TIMEOUT"):
            self.timeout_ms = args.integer()
            if self.timeout_ms <= 0:
                raise CommandError(errors.FAILOVER_TIMEOUT_NOT_POSITIVE)
        elif not self.host and args.left > 2 and args.flag(b"TO"):
            self.host = args.word()
            self.port = args.integer()
        elif not self.is_forced and args.flag(b"FORCE"):
            self.is_forced = True
        elif not self.aborts and args.flag(b"ABORT"):
            self.aborts = True
        else:
            raise CommandError(errors.SYNTAX)


def failover(call: Call) -> object:
    """Begin to make a replica the master, or with ABORT stop that.

    Reply: OK, when it has begun; INFO says how it goes on.
    Raises: in a cluster, where there is no such replica, and while one is going on.
    """
    server = call.server
    if server.config.cluster_enabled:
        raise CommandError(errors.FAILOVER_IN_CLUSTER)
    wanted = Wanted(call.argv)
    if wanted.aborts and len(call.argv) > 2:
        raise CommandError(errors.SYNTAX)
    if server.role.failover == NO_FAILOVER and wanted.aborts:
        raise CommandError(errors.NO_FAILOVER_UNDER_WAY)
    failover = server.role.ready_failover()
    if wanted.aborts:
        failover.abort("Failover manually aborted")
        return OK
    if server.role.failover != NO_FAILOVER:
        raise CommandError(errors.FAILOVER_UNDER_WAY)
    failover.begin(wanted.host, wanted.port, wanted.timeout_ms, wanted.is_forced)
    return OK


log: Final = logging.getLogger("headrace")

_LONGEST_ADDRESS: Final = 255
_OF_SENTINEL: Final = b"sentinel-"  # so the names of its connections begin


def refuse_where_moved(clock: Clock) -> None:
    """Raise CommandError where DEBUG has moved the clock: no other server can live by it."""
    if is_moved(clock):
        raise CommandError(errors.CLOCK_WAS_MOVED)


def sync(call: Call) -> object:
    """Send a snapshot, and all that changes from then on. Reply: none but that."""
    refuse_where_moved(call.server.clock)
    call.server.role.ready_replicas().attach(call.session, b"", 0)
    return NO_REPLY


def psync(call: Call) -> object:
    """As SYNC; or go on with the stream of that data, from that offset on.

    Reply: CONTINUE or FULLRESYNC, and then the stream, or a snapshot and the stream.
    """
    argv = call.argv
    offset = Args(argv[1:]).integer()
    refuse_where_moved(call.server.clock)
    if len(argv) > 3 and argv[3].lower() == b"failover":
        _take_over(call)
    call.server.role.ready_replicas().attach(call.session, argv[1], offset)
    return NO_REPLY


def _take_over(call: Call) -> None:
    """Make this server the master, as its own master wants."""
    role = call.server.role
    following = role.following
    if following is None or not following.is_on:
        raise CommandError(errors.FAILOVER_TO_MASTER)
    if call.argv[1] != role.id:
        raise CommandError(errors.FAILOVER_OF_OTHER_DATA)
    log.info("Failover request received for replid %s.", role.id.decode())
    call.server.config.replicaof = b""
    following.lead(parse_integer(call.argv[2]) == role.offset() + 1)


def replconf(call: Call) -> object:
    """Note a replica's options, and later its offsets. Reply: OK, but none to ACK and GETACK."""
    argv = call.argv
    if call.session.special & REPLICA:
        _take_from_replica(call)
        return NO_REPLY
    if len(argv) % 2 == 0:
        raise CommandError(errors.SYNTAX)
    for at in range(1, len(argv), 2):
        option = argv[at].lower()
        if option in (b"ack", b"getack"):  # this client is no replica
            return NO_REPLY
        if call.session.facts is None:
            call.session.facts = ReplicaFacts()
        if not _take(call.session.facts, option, argv[at + 1]):
            raise CommandError(errors.UNKNOWN_REPLCONF % argv[at])
    return OK


def _take_from_replica(call: Call) -> None:
    """Read ``ACK offset [FACK offset]``: what it has, and what of that is on its disk."""
    argv = call.argv
    replicas = call.server.role.replicas
    if len(argv) < 3 or argv[1].lower() != b"ack":
        drop_replica(call.session, argv[0])
        return
    offset = parse_integer(argv[2])
    has_disk = len(argv) > 4 and argv[3].lower() == b"fack"
    on_disk = (parse_integer(argv[4]) or -1) if has_disk else -1
    if offset is not None and replicas is not None:
        replicas.acknowledge(call.session, offset, on_disk)
        if argv[-2] == PROMOTED:
            row = find_recorded_row({}, [b"failover"])  # which it is, so it takes the same right
            may = not refused_line(call.server, call.session, row, [b"failover"])
            call.server.role.ready_failover().hand_over(call.session, may, argv[-1] == b"1")


def _take(facts: ReplicaFacts, option: bytes, word: bytes) -> bool:
    """Note one option of a replica; False where it is not known."""
    if option == b"listening-port":
        facts.port = integer(word)
    elif option == b"ip-address":
        if len(word) > _LONGEST_ADDRESS:
            raise CommandError(errors.REPLCONF_LONG_ADDRESS)
        facts.address = word
    elif option == b"capa":  # all others are passed over, as Redis does
        name = word.lower()
        facts.psync2 = facts.psync2 or name == b"psync2"
        facts.knows_end = facts.knows_end or name == b"eof"
    elif option == b"version":
        facts.is_valkey = True
    elif option == b"rdb-only":
        facts.rdb_only = _bit(word)
    elif option == b"rdb-filter-only":
        _take_filter(facts, word)
    elif option == b"region":
        facts.region = word
    elif option in (b"rdb-channel", b"headrace"):
        _bit(word)  # a second connection for the snapshot is not used, whatever a replica can
    else:
        return False
    return True


def _take_filter(facts: ReplicaFacts, word: bytes) -> None:
    """Limit the snapshot to what is named: functions, or nothing."""
    wants_functions = False
    for name in word.split():
        if name.lower() != b"functions":
            raise CommandError(errors.UNKNOWN_RDB_FILTER % name)
        wants_functions = True
    facts.wants_keys = False
    facts.wants_functions = wants_functions


def _bit(word: bytes) -> bool:
    number = integer(word)
    if not 0 <= number <= 1:
        raise CommandError(errors.REPLCONF_NO_BIT)
    return number == 1


def role(call: Call) -> object:
    """Reply: list of ``master``, the offset of the stream, and a list of address, port and offset
    for each replica; or of ``slave``, its master's address and port, the state of the link, and
    the offset.
    """
    of_server = call.server.role
    if of_server.following is not None and of_server.following.is_on:
        return of_server.following.row()
    rows = [] if of_server.replicas is None else of_server.replicas.rows()
    return [b"master", of_server.offset(), rows]


def replicaof(call: Call) -> object:
    """Follow another server, or with NO ONE none. Reply: OK.

    Raises: in a cluster, and while FAILOVER is under way.
    """
    host, port = call.argv[1], call.argv[2]
    server = call.server
    if server.config.cluster_enabled:
        raise CommandError(errors.REPLICAOF_IN_CLUSTER)
    if server.role.failover not in (NO_FAILOVER, HANDS_OVER):
        raise CommandError(errors.REPLICAOF_IN_FAILOVER)
    following = server.role.following
    if host.lower() == b"no" and port.lower() == b"one":
        server.config.replicaof = b""
        if following is not None:
            following.promote(call.session.name.startswith(_OF_SENTINEL))
        return OK
    number = bounded(port, 0, 65535, errors.BAD_MASTER_PORT)
    refuse_where_moved(server.clock)
    if following is not None and following.is_at(host, number):
        return Status(b"OK Already connected to specified master")
    server.config.replicaof = b"%b %d" % (host, number)
    server.role.ready_following().follow(host, number)
    if server.role.failover == HANDS_OVER:
        server.role.ready_failover().succeed()
    return OK
