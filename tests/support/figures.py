"""Figures of INFO, asked on a client's own connection."""

from __future__ import annotations

from support.client import RawClient
from support.waiting import wait_until


def info(client: RawClient, name: str) -> int:
    """A figure that is a whole number."""
    text = client.call_parsed("INFO", "everything")
    assert isinstance(text, bytes)
    lines = dict(line.split(b":", 1) for line in text.splitlines() if b":" in line)
    return int(lines[name.encode()])


def done(client: RawClient, name: str) -> None:
    """Wait until a figure, such as whether something is in progress, is 0."""
    wait_until(lambda: info(client, name) == 0)
