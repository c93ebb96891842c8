"""ROLE and REPLICAOF: what a server is to others that hold the same data."""

from __future__ import annotations

from headrace.compat.errors import (
    BAD_MASTER_PORT,
    REGION_FOLLOWS_NOBODY,
    REPLICAOF_IN_CLUSTER,
    REPLICAOF_IN_FAILOVER,
    CommandError,
)
from headrace.compat.numbers import parse_integer
from headrace.protocol.replies import OK, Status
from headrace.server.dispatch.call import Call
from headrace.server.role import NO_FAILOVER


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
    """Follow another server, or with NO ONE nobody. Reply: OK.

    Raises: in a region, which shares its database in another way, and in a cluster.
    """
    host, port = call.argv[1], call.argv[2]
    server = call.server
    if server.config.cluster_enabled:
        raise CommandError(REPLICAOF_IN_CLUSTER)
    if server.role.failover != NO_FAILOVER:
        raise CommandError(REPLICAOF_IN_FAILOVER)
    following = server.role.following
    if host.lower() == b"no" and port.lower() == b"one":
        server.config.replicaof = b""
        if following is not None:
            following.lead()
        return OK
    number = parse_integer(port)
    if number is None or not 0 <= number <= 65535:
        raise CommandError(BAD_MASTER_PORT)
    if server.data.region is not None:
        raise CommandError(REGION_FOLLOWS_NOBODY)
    if following is not None and following.is_at(host, number):
        return Status(b"OK Already connected to specified master")
    server.config.replicaof = b"%b %d" % (host, number)
    server.role.ready_following().follow(host, number)
    return OK


def slaveof(call: Call) -> object:
    """The older name of REPLICAOF."""
    return replicaof(call)
