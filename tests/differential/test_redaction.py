"""Passwords are not shown by SLOWLOG and MONITOR, where Redis does not show them."""

from __future__ import annotations

import re

import pytest

from support.client import RawClient
from support.process import Pair, RedisProcess, ServerProcess

pytestmark = [pytest.mark.judge, pytest.mark.since(8, 10)]

REQUESTS = [
    *("AUTH p", "AUTH u p", "HELLO 3 AUTH u p SETNAME n"),
    "CONFIG SET requirepass {}",
    *(
        f"MIGRATE 127.0.0.1 1 {{}} 9 500 {options}"
        for options in (
            *("AUTH p", "auth p", "AUTH2 u p", "COPY AUTH p", "COPY replace AUTH2 u p", "AUTH"),
            *("KEYS AUTH p", "NOSUCH AUTH p", "AUTH p NOSUCH", "AUTH2 u", "auth AUTH q", "COPY"),
            *("AUTH p AUTH q", "AUTH KEYS KEYS p q", "AUTH2 u p KEYS a AUTH b", "REPLACE x AUTH p"),
        )
    ),
]


def words(line: str) -> list[str]:
    return ["" if word == "{}" else word for word in line.split(" ")]


def logged(client: RawClient) -> list[object]:
    """The words of what SLOWLOG has, newest first."""
    entries = client.call_parsed("SLOWLOG", "GET", -1)
    assert isinstance(entries, list)
    return [entry[3] for entry in entries]


@pytest.mark.parametrize("line", REQUESTS)
def test_what_slowlog_shows(pair: Pair, line: str) -> None:
    pair.both("CONFIG", "SET", "slowlog-log-slower-than", 0)
    pair.both("SLOWLOG", "RESET")
    replies = [client.call(*words(line)) for client in (pair.ours, pair.real)]
    assert replies[0].startswith(b"%") or replies[0] == replies[1]
    found = [logged(client) for client in (pair.ours, pair.real)]
    assert found[0] == found[1]
    pair.both("CONFIG", "SET", "slowlog-log-slower-than", 10000)


@pytest.mark.parametrize("line", REQUESTS)
def test_what_monitor_shows(
    pair: Pair, server: ServerProcess, redis_server: RedisProcess, line: str
) -> None:
    shown = []
    for client, process in ((pair.ours, server), (pair.real, redis_server)):
        with process.client() as monitor:
            assert monitor.call("MONITOR") == b"+OK\r\n"
            client.call(*words(line))
            client.call("HELLO", 2)
            lines = [monitor.read()]
            while b'"HELLO" "2"' not in lines[-1]:
                lines.append(monitor.read())
        shown.append([re.sub(rb"[\d.]+ \[0 [^]]*\]", b"", each) for each in lines])
    assert shown[0] == shown[1]
