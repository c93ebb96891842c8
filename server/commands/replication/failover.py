"""FAILOVER: a replica becomes the master, and this server its replica."""

from __future__ import annotations

from headrace.compat import errors
from headrace.compat.errors import CommandError
from headrace.protocol.replies import OK
from headrace.server.dispatch.args import Args
from headrace.server.dispatch.call import Call
from headrace.server.role import NO_FAILOVER


class Wanted:
    """What the words ask for; what is empty, 0 or False was not said."""

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
    """Begin, or with ABORT give up, to make a replica the master.

    Reply: OK, when it has begun; INFO says how it goes on.
    Raises: in a cluster and in a region, where there is no such replica, and while one is going on.
    """
    server = call.server
    if server.config.cluster_enabled:
        raise CommandError(errors.FAILOVER_IN_CLUSTER)
    wanted = Wanted(call.argv)
    if wanted.aborts and len(call.argv) > 2:
        raise CommandError(errors.SYNTAX)
    if server.role.failover == NO_FAILOVER and wanted.aborts:
        raise CommandError(errors.NO_FAILOVER_UNDER_WAY)
    failing = server.role.ready_failing()
    if wanted.aborts:
        failing.abort("Failover manually aborted")
        return OK
    if server.role.failover != NO_FAILOVER:
        raise CommandError(errors.FAILOVER_UNDER_WAY)
    failing.begin(wanted.host, wanted.port, wanted.timeout_ms, wanted.is_forced)
    return OK
