"""What keys take, and give back: as resident memory of a server that holds many."""

from __future__ import annotations

import ctypes

import pytest
from conftest import Factory

from headrace.storage.key_table import COMPILED
from support.client import Argument
from support.process import Process
from support.waiting import wait_until

KEYS = 300_000
MOST_BYTES = 120  # of a key of 16 bytes; Redis takes 60 to 70


def resident_bytes(server: Process) -> int:
    with open(f"/proc/{server.pid}/statm", "rb") as file:
        return int(file.read().split()[1]) * 4096


@pytest.mark.skipif(not COMPILED, reason="a key takes more in the pure build")
def test_a_key_takes_little(fresh_server: Factory) -> None:
    """The requests of a pipeline share one value, because the parser makes a repeated word once."""
    server = fresh_server()
    with server.client() as client:

        def store(first: int, end: int) -> None:
            for start in range(first, end, 1000):
                numbers = range(start, start + 1000)
                requests = [("SET", f"key:{number:012}", "a value") for number in numbers]
                assert client.pipeline(*requests) == [b"+OK\r\n"] * 1000

        store(0, 1000)
        before = resident_bytes(server)
        store(1000, KEYS + 1000)
    assert (resident_bytes(server) - before) / KEYS < MOST_BYTES


HAS_GLIBC = hasattr(ctypes.CDLL(None), "mallinfo2")
VALUES = 15_000  # of 10 kB
KEPT = 100  # of so many keys one stays


@pytest.mark.skipif(not HAS_GLIBC, reason="only glibc has to be asked")
@pytest.mark.parametrize("kind", ["keys", "list", "stream"])
def test_what_was_freed_goes_back_to_the_system(fresh_server: Factory, kind: str) -> None:
    """Though here and there something stays."""
    server = fresh_server("--save", "")
    empty_bytes = resident_bytes(server)
    value = "v" * 10_000
    with server.client() as client:
        for first in range(0, VALUES, 500):
            numbers = range(first, first + 500)
            kept = [("SET", f"kept:{n}", value) for n in numbers if n % KEPT == 0]
            requests: dict[str, list[tuple[Argument, ...]]] = {
                "keys": [("SET", f"key:{n}", value) for n in numbers],
                "list": [("RPUSH", "k", f"{n} {value}") for n in numbers],
                "stream": [("XADD", "k", f"{n + 1}-1", "f", f"{n} {value}") for n in numbers],
            }
            client.pipeline(*requests[kind], *kept)
        assert resident_bytes(server) > empty_bytes + 10_000 * VALUES * 3 // 4
        if kind == "keys":
            client.pipeline(*[("DEL", f"key:{n}") for n in range(VALUES)])
        else:
            client.call("UNLINK", "k")
    wait_until(lambda: resident_bytes(server) < empty_bytes + (48 << 20), 60)
