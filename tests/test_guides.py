"""The guides of docs/ for those who extend the server: what they say is done, and works."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from support.build import ROOT
from support.client import WireError
from support.process import ServerProcess

pytestmark = pytest.mark.once
PACKAGES = (
    *("compat", "console", "headrace", "metrics", "testkit", "persistence", "policies"),
    *("protocol", "regions", "server", "storage"),
)


def blocks(guide: str, kind: str) -> list[str]:
    """The blocks of code of a guide that are of one kind."""
    text = (ROOT / "docs" / guide).read_text()
    return re.findall(rf"^```{kind}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


class Copied(ServerProcess):
    """The server of a checkout, as Python."""

    def variables(self) -> dict[str, str]:
        return {**super().variables(), "PYTHONPATH": str(self.directory)}


def checkout(folder: Path) -> Path:
    """A copy of what the server consists of."""
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package, folder / package, symlinks=True, ignore=shutil.ignore_patterns("*.pyc")
        )
    return folder


def test_add_a_command(tmp_path: Path) -> None:
    folder = checkout(tmp_path)
    (entry,) = blocks("add-a-command.md", "text")
    (function,) = blocks("add-a-command.md", "python")
    (session,) = blocks("add-a-command.md", "console")
    with (folder / "server/commands/strings.txt").open("a") as table:
        table.write(entry)
    (folder / "server/commands/strings/swapcase.py").write_text(function)
    asked = re.findall(r"^127.0.0.1:6380> (.*)\n(.*)$", session, re.MULTILINE)
    assert len(asked) == 4
    with Copied("--appendonly", "yes", directory=folder) as server:
        with server.client() as client:
            for request, shown in asked:
                assert printed(client.call_parsed(*request.split())) == shown, request
            assert client.call("COMMAND", "GETKEYS", "SWAPCASE", "k") == b"*1\r\n$1\r\nk\r\n"
            assert b"Makes small letters capital" in client.call("COMMAND", "DOCS", "SWAPCASE")
        server.restart(crash=True)
        assert server.call("GET", "k") == b"hELLO"


def printed(reply: object) -> str:
    """A reply as redis-cli shows it."""
    if isinstance(reply, WireError):
        return f"(error) {reply.args[0].decode()}"
    if isinstance(reply, int):
        return f"(integer) {reply}"
    assert isinstance(reply, bytes)
    return reply.decode() if reply == b"OK" else f'"{reply.decode()}"'


def test_add_a_type_shows_what_is_there() -> None:
    folder = ROOT / "tests" / "support" / "tally"
    sources = [path.read_text() for path in folder.iterdir() if path.suffix in (".py", ".txt")]
    shown = blocks("add-a-type.md", "python") + blocks("add-a-type.md", "text")
    assert len(shown) == 6
    for block in shown:
        assert any(block in source for source in sources), block
