"""MEMORY DOCTOR: it finds what a real server finds, in words of its own."""

from __future__ import annotations

import contextlib
import re

import pytest
from conftest import Factory

from support.process import Process
from support.waiting import wait_until

pytestmark = [pytest.mark.once, pytest.mark.since(8, 10)]

# How much a process takes beside its data is its own, and its allocator's.
_OF_THE_PROCESS = {"High total RSS", "High allocator fragmentation", "High allocator RSS overhead",
                   "High process RSS overhead", "Huge pages"}  # fmt: skip
_EMPTY = re.compile(rb"too little data|is empty or is using very little memory")
_FINE = re.compile(rb"Nothing looks odd|can't find any memory issue")


@pytest.fixture(params=["ours", "real"])
def server(request: pytest.FixtureRequest, fresh_server: Factory, fresh_redis: Factory) -> Process:
    factory = {"ours": fresh_server, "real": fresh_redis}[request.param]
    return factory("--enable-debug-command", "yes")


def _report(server: Process) -> bytes:
    found = server.call("MEMORY", "DOCTOR")
    assert isinstance(found, bytes)
    return found


def _found(server: Process) -> set[str]:
    titles = re.findall(rb"^ \* ([^:]+):", _report(server), re.MULTILINE)
    return {title.decode() for title in titles} - _OF_THE_PROCESS


def _fill(server: Process) -> None:
    server.call("DEBUG", "POPULATE", 8_000, "key", 1_000)  # few enough to be looked at all


def test_an_empty_server(server: Process) -> None:
    assert _EMPTY.search(_report(server))
    server.call("SET", "k", "v" * 1_000_000)
    assert _EMPTY.search(_report(server))


def test_a_server_that_is_well(server: Process) -> None:
    _fill(server)
    report = _report(server)
    assert _FINE.search(report) or not _found(server)


def test_a_peak(server: Process) -> None:
    _fill(server)
    server.call("SET", "large", "v" * 30_000_000)
    server.call("INFO", "memory")
    server.call("DEL", "large")
    wait_until(lambda: _found(server) == {"Peak memory"})
    server.call("FLUSHALL")
    wait_until(lambda: bool(_EMPTY.search(_report(server))))


def test_clients_that_do_not_read(server: Process) -> None:
    _fill(server)
    with server.client() as client, contextlib.ExitStack() as stack:
        client.call("SET", "large", "v" * 3_000_000)
        for _ in range(2):
            reader = stack.enter_context(server.client())
            reader.send_command("GET", "large")
            reader.send_command("GET", "large")
        wait_until(lambda: "Big client buffers" in _found(server))


def test_many_scripts(server: Process) -> None:
    _fill(server)
    with server.client() as client:
        for number in range(1000):
            client.send_command("SCRIPT", "LOAD", f"return {number}")
        for _ in range(1000):
            client.read()
        assert _found(server) == set()
        client.call("SCRIPT", "LOAD", "return 'one more'")
    assert _found(server) == {"Many scripts"}
