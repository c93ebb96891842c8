"""The sweep over all commands names each of them, and calls it as it may be called."""

from __future__ import annotations

import random

from conftest import Factory

import headrace.server.commands.families  # noqa: F401  (importing it fills the command table)
from bench.sweep import filling, workloads
from headrace.server.dispatch.rows import TABLE
from support.client import encode

# They have keys and are left out: what moves keys to other servers or databases, what Redis does
# not have, and what needs something first that is no key.
LEFT_OUT = {
    *("migrate", "move", "restore", "restore-asking", "pfdebug", "watch", "lmovem", "blmovem"),
    *("xlook", "xcount", "xsplit", "xidmprecord", "xread-group", "sunioncard", "sdiffcard"),
    *("xackf", "xnackin", "xredrive"),
    *("fcall", "fcall_ro", "evalsha", "evalsha_ro", "spublish", "ssubscribe", "sunsubscribe"),
}


def test_each_command_with_keys_is_swept() -> None:
    swept = {workload.name.split()[0].lower() for workload in workloads(set(), 10)}
    wanted = {name.decode() for name, row in TABLE.items() if row.keys and not row.subcommands}
    assert wanted - swept == LEFT_OUT


def test_no_call_is_refused(fresh_server: Factory) -> None:
    server = fresh_server()
    drawn = random.Random(1)
    with server.client() as client:
        for number, workload in enumerate(workloads(set(), 3)):
            server.call("FLUSHALL")
            for words in filling(workload.family, 3):
                server.call(*words)
            client.send(encode(*workload.command(number, 3, drawn)))
            assert not client.read().startswith(b"-"), workload.name
