"""Files that version 0.1.0 wrote are loaded as they are, and what it dumped is restored."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from conftest import Factory

from support.client import RawClient
from support.clock import Clock
from support.process import Process
from support.tools import tool

WRITTEN = Path(__file__).parent / "written-by-0.1.0"
DEBUG = ("--enable-debug-command", "yes")
Replies = list[tuple[list[str], bytes]]
KINDS = ("snapshot-base", "resp-base", "snapshot")


def replies_of(kind: str) -> Replies:
    """Return what 0.1.0 was asked when it had loaded this, and what it replied."""
    found = json.loads((WRITTEN / "replies.json").read_text())[kind]["replies"]
    return [(words, reply.encode("latin-1")) for words, reply in found]


def options_of(kind: str) -> list[str]:
    options = json.loads((WRITTEN / "replies.json").read_text())[kind]["options"]
    assert isinstance(options, list)
    return options


def start_on(kind: str, fresh_server: Factory, folder: Path, settable_clock: Clock) -> Process:
    shutil.copytree(WRITTEN / kind, folder)
    options = options_of(kind)
    return fresh_server(*options, *DEBUG, directory=folder, environment=settable_clock.environment)


def check(client: RawClient, replies: Replies) -> None:
    """All is as it was, but for what DUMP answers, which has another form."""
    for words, reply in replies:
        if words[0] != "DUMP":
            assert client.call(*words) == reply, words


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_loaded_as_it_is(
    kind: str, fresh_server: Factory, tmp_path: Path, settable_clock: Clock
) -> None:
    server = start_on(kind, fresh_server, tmp_path / "data", settable_clock)
    with server.client() as client:
        replies = replies_of(kind)
        assert len(replies) > 100
        check(client, replies)
    server.stop()


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_the_same_when_it_was_written_anew(
    kind: str, fresh_server: Factory, tmp_path: Path, settable_clock: Clock
) -> None:
    server = start_on(kind, fresh_server, tmp_path / "data", settable_clock)
    with server.client() as client:
        assert client.call("DEBUG", "RELOAD") == b"+OK\r\n"
        check(client, replies_of(kind))


def test_what_was_dumped_is_restored(fresh_server: Factory, settable_clock: Clock) -> None:
    server = fresh_server(*DEBUG, environment=settable_clock.environment)
    restored = set()
    replies = replies_of("snapshot")
    with server.client() as client:
        for words, reply in replies:
            if words[0] == "DUMP" and reply != b"$-1\r\n":
                data = reply[reply.index(b"\r\n") + 2 : -2]
                assert client.call("RESTORE", words[1], "0", data) == b"+OK\r\n"
                restored.add(words[1])
        assert len(restored) == 14
        asked = 0
        for words, reply in replies:
            if words[0] == "SELECT":
                break
            alike = words[0] in ("TYPE", "GET", "XINFO", "XPENDING")
            if alike and not restored.isdisjoint(words):
                assert client.call(*words) == reply, words
                asked += 1
        assert asked > 40


@pytest.mark.parametrize("kind", ["snapshot-base", "resp-base"])
def test_tools_find_it_sound(kind: str, tmp_path: Path) -> None:
    shutil.copytree(WRITTEN / kind, tmp_path / "data")
    checked = tool("check-aof", str(tmp_path / "data"))
    assert checked.returncode == 0, checked.stdout


def test_nothing_of_it_is_missing_from_the_repository() -> None:
    """A folder of this name is one that git ignores elsewhere."""
    names = {path.relative_to(WRITTEN).as_posix() for path in WRITTEN.rglob("*") if path.is_file()}
    assert names == {
        "README.md",
        "replies.json",
        "snapshot/dump.hrs",
        "snapshot-base/appendonlydir/appendonly.aof.1.base.hrs",
        "snapshot-base/appendonlydir/appendonly.aof.2.incr.aof",
        "snapshot-base/appendonlydir/appendonly.aof.manifest",
        "resp-base/appendonlydir/appendonly.aof.1.base.aof",
        "resp-base/appendonlydir/appendonly.aof.2.incr.aof",
        "resp-base/appendonlydir/appendonly.aof.manifest",
    }
