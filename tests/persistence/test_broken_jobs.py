"""What goes wrong in a background job that nobody expected: it ends, is told of, and others follow.

Memory that runs out is the way to make it happen in any build: the process may have no more of it
than it has, and a value is long enough that a copy of it does not fit.
"""

from __future__ import annotations

import resource
import signal
from pathlib import Path

import pytest
from conftest import Factory

from support.process import Process
from support.waiting import wait_until

pytestmark = pytest.mark.once

LONG = 40 << 20
LITTLE = 16 << 20  # less than a copy of a long value takes
NO_THREAD = 6 << 20  # less than the stack of a thread takes
MANUAL = ("--save", "", "--auto-aof-rewrite-percentage", "0")


def bound(server: Process, more_bytes: int) -> None:
    """Let a server have so much more memory."""
    status = Path(f"/proc/{server.pid}/status").read_text()
    used = next(line for line in status.splitlines() if line.startswith("VmSize"))
    limit = int(used.split()[1]) * 1024 + more_bytes
    resource.prlimit(server.pid, resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))


def unbound(server: Process) -> None:
    infinite = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    resource.prlimit(server.pid, resource.RLIMIT_AS, infinite)


def save(server: Process) -> object:
    """SAVE, on a disk that others use."""
    with server.client(timeout_s=60.0) as client:
        return client.call("SAVE")


def is_idle(server: Process) -> bool:
    info = server.info("persistence")
    return info["rdb_bgsave_in_progress"] == info["aof_rewrite_in_progress"] == "0"


def leftovers(server: Process) -> list[Path]:
    return [*server.directory.glob("temp-*"), *server.directory.glob("*/temp-*")]


def make_long(server: Process, *, changeable: bool) -> None:
    """A value that is copied before it is written, or as it is."""
    if changeable:
        server.call("SETRANGE", "long", LONG - 1, "x")
    else:
        server.call("SET", "long", b"x" * LONG)


@pytest.mark.parametrize(
    ("command", "form", "status"),
    [
        ("BGSAVE", "yes", "rdb_last_bgsave_status"),
        ("BGREWRITEAOF", "yes", "aof_last_bgrewrite_status"),
        ("BGREWRITEAOF", "no", "aof_last_bgrewrite_status"),
    ],
)
def test_a_slice_that_fails(fresh_server: Factory, command: str, form: str, status: str) -> None:
    options = ("--appendonly", "yes", "--aof-use-rdb-preamble", form, *MANUAL)
    server = fresh_server(*options, check_log=False, debug=False)
    server.call(command)  # the thread is there from now on
    wait_until(lambda: is_idle(server))
    with server.client() as client:
        for number in range(50):
            client.call("XADD", "stream", "*", "n", number)
    make_long(server, changeable=form == "yes")
    bound(server, LITTLE)
    for _ in range(2):
        server.call(command)
        wait_until(lambda: is_idle(server))
        assert server.info("persistence")[status] == "err"
    assert "Traceback" in server.log()
    assert "failed: internal error (MemoryError)" in server.log()
    wait_until(lambda: not leftovers(server))
    server.call("XADD", "stream", "*", "n", 50)
    unbound(server)
    for each in ("BGSAVE", "BGREWRITEAOF"):
        server.call(each)
        wait_until(lambda: is_idle(server))
    assert server.info("persistence")[status] == "ok"
    assert save(server) == b"+OK\r\n"
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    server.start()
    assert server.call("XLEN", "stream") == 51
    assert server.call("STRLEN", "long") == LONG


def test_a_key_that_cannot_be_kept(fresh_server: Factory) -> None:
    """A change goes on although the snapshot under way cannot have what was there before."""
    options = ("--rdb-key-save-delay", "1000000", *MANUAL)
    server = fresh_server(*options, check_log=False, debug=False)
    make_long(server, changeable=True)
    for number in range(200):
        server.call("SET", f"key:{number}", number)
    server.call("BGSAVE")
    bound(server, LITTLE)
    assert server.call("SETRANGE", "long", 0, "y") == LONG
    wait_until(lambda: is_idle(server))
    assert server.info("persistence")["rdb_last_bgsave_status"] == "err"
    assert not (server.directory / "dump.hrs").exists()
    unbound(server)
    server.call("CONFIG", "SET", "rdb-key-save-delay", 0)
    assert save(server) == b"+OK\r\n"
    server.restart(crash=True)
    assert server.call("GETRANGE", "long", 0, 0) == b"y"


def test_the_last_snapshot_that_fails(fresh_server: Factory) -> None:
    """As any that fails, it holds the end up, until there is room; no end comes out of it."""
    server = fresh_server("--save", "3600 1", check_log=False, debug=False)
    make_long(server, changeable=True)
    bound(server, LITTLE)
    with server.client() as client:
        assert client.call("SAVE").startswith(b"-ERR")
        server.signal(signal.SIGTERM)
        server.wait_for_log("The snapshot could not be saved: not ending now")
        assert client.call("PING") == b"+PONG\r\n"
    unbound(server)
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert server.start().call("STRLEN", "long") == LONG


def test_no_room_for_a_thread(fresh_server: Factory) -> None:
    options = ("--appendonly", "yes", "--appendfsync", "everysec", *MANUAL)
    server = fresh_server(*options, check_log=False, debug=False)
    with server.client() as client:
        bound(server, NO_THREAD)
        assert client.call("SET", "k", "v") == b"+OK\r\n"
        assert client.call("WAITAOF", 1, 0, 10_000) == b"*2\r\n:1\r\n:0\r\n"
        assert client.call("BGREWRITEAOF").startswith(b"-ERR Can't execute an AOF background")
        assert server.info("persistence")["aof_last_bgrewrite_status"] == "err"
        assert client.call("BGSAVE") == b"+Background saving started\r\n"
        wait_until(lambda: server.info("persistence")["rdb_last_bgsave_status"] == "err")
        unbound(server)
        for command in ("BGSAVE", "BGREWRITEAOF"):
            assert client.call(command).startswith(b"+")
            wait_until(lambda: is_idle(server))
    info = server.info("persistence")
    assert info["rdb_last_bgsave_status"] == info["aof_last_bgrewrite_status"] == "ok"
    assert "can't start new thread" in server.log()
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
