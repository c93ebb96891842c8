"""The last incr file, cut off at every byte of its last 4 KB: what is whole is there, no more.

The pure build, which takes a while for that, tries each fourth byte, other ones each time.
"""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest
from conftest import Factory

import headrace.server.commands.families  # noqa: F401  (importing it fills the command table)
from headrace.persistence.aof.reader import AofReader
from headrace.server.build import build_kind
from headrace.server.durability.durability import Durability
from headrace.server.loading.loader import Replayer
from headrace.server.loading.starting import start_persistence
from headrace.server.start import load_config
from headrace.server.state import Server
from headrace.storage.stream.stream import Stream
from support.client import RawClient
from support.snapshots import plain_stream

pytestmark = pytest.mark.once

LAST_BYTES = 4096
STRIDE = 1 if build_kind() == "compiled" else 4
LONG = "v" * 150
FOLDER = "appendonlydir"
INCR = "appendonly.aof.1.incr.aof"


def write_history(client: RawClient) -> None:
    """A few more than 4 KB of all kinds: groups, transactions, databases, stamps, iids."""
    client.call("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
    for number in range(1, 11):
        client.call("XADD", "s", f"{number}-1", "n", LONG)
        client.call("XADD", "p", "IDMP", "pid", f"iid-{number}", "*", "n", number)
        if number % 3 == 0:
            client.call("XREADGROUP", "GROUP", "g", "c", "COUNT", 2, "STREAMS", "s", ">")
        if number % 4 == 0:
            client.call("SELECT", number % 2 + 1)
            client.pipeline(("MULTI",), ("SET", "k", LONG), ("INCR", "n"), ("EXEC",))
            client.call("SELECT", 0)
            client.call("XTRIM", "s", "MAXLEN", "~", 5)
            client.call("XACK", "s", "g", "1-1", "3-1")
            client.call("SET", "mortal", number, "EX", 10_000)


def state_of(server: Server) -> dict[tuple[int, bytes], object]:
    """All that there is, but for the times of loading."""
    found: dict[tuple[int, bytes], object] = {}
    for db in server.data.dbs:
        for entry in db.every():
            key = entry.key
            value = entry.value
            if isinstance(value, Stream):
                facts = list(plain_stream(value))
                facts[6] = [
                    (*group[:4], [(name, ids) for name, _, _, ids in group[4]], group[5])
                    for group in facts[6]
                ]
                found[db.index, key] = facts
            else:
                found[db.index, key] = (value, int(entry.expire_ms))
    return found


def new_server(directory: Path) -> Server:
    return Server(load_config([b"--dir", bytes(directory), b"--appendonly", b"yes"]))


def states_by_offset(directory: Path) -> dict[int, object]:
    """The state behind each command of the file, and behind each transaction."""
    server = new_server(directory)
    replayer = Replayer(server, Durability(server))
    path = bytes(directory / FOLDER / INCR)
    reader = AofReader(path, path)
    states: dict[int, object] = {0: state_of(server)}
    in_transaction = False
    stamp_s = 0
    while (argv := reader.next()) is not None:
        stamp_s = reader.stamp_s or stamp_s
        if argv in ([b"MULTI"], [b"EXEC"]):
            in_transaction = argv == [b"MULTI"]
        else:
            assert replayer.run(argv, stamp_s) == b""
        if not in_transaction:
            states[reader.offset] = state_of(server)
    reader.close()
    return states


def loaded(directory: Path) -> tuple[object, int]:
    """Return what a start makes of the folder: the state, and how long the file is afterwards."""
    server = new_server(directory)
    durability = Durability(server)
    asyncio.run(start_persistence(server, durability))
    files = durability.files
    assert files.aof is not None
    assert files.directory is not None
    size_bytes = files.aof.size_bytes
    files.aof.close()
    files.directory.close()
    files.worker.close()
    return state_of(server), size_bytes


def test_cut_at_every_byte(fresh_server: Factory, caplog: pytest.LogCaptureFixture) -> None:
    process = fresh_server("--appendonly", "yes", "--save", "")
    caplog.set_level("CRITICAL", "headrace")
    with process.client() as client:
        write_history(client)
    process.kill()
    path = process.directory / FOLDER / INCR
    data = path.read_bytes()
    assert len(data) > LAST_BYTES
    states = states_by_offset(process.directory)
    assert loaded(process.directory) == (states[len(data)], len(data))
    whole = 0
    first = len(data) - LAST_BYTES + random.randrange(STRIDE)
    for cut in range(first, len(data), STRIDE):
        path.write_bytes(data[:cut])
        whole = max(offset for offset in states if offset <= cut)
        assert loaded(process.directory) == (states[whole], whole), cut
        assert path.stat().st_size == whole
    assert whole > 0
