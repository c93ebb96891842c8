"""What a key takes beside its value: as resident memory of a server that holds many."""

from __future__ import annotations

import pytest
from conftest import Factory

from headrace.storage.key_table import COMPILED
from support.process import Process

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
