"""What is run and what is refused beside Redis, in whichever way a command comes.

A table: each command, alone, in a transaction, and in scripts and functions of all flags, while
writes are refused, held back or not to be trusted for each of the reasons there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha1
from itertools import chain, zip_longest
from pathlib import Path

import pytest

from support.client import Argument, RawClient, encode
from support.file_limit import limit_files
from support.process import Process, RedisProcess, ServerProcess
from support.waiting import wait_until

pytestmark = pytest.mark.since(8, 10)

Request = tuple[Argument, ...]

CALLS = (
    "GET k", "SET k v", "DEL x", "PFCOUNT visits", "PUBLISH c m", "SPUBLISH c m", "PING", "ECHO hi",
    "SCRIPT EXISTS x", "HIMPORT PREPARE fields a",
)  # fmt: skip
FLAGS = (
    "no-writes", "allow-oom", "allow-stale", "no-writes,allow-stale", "allow-oom,allow-stale", "",
)  # fmt: skip
HEADS = ("", *(f"#!lua flags={flags}\n" for flags in FLAGS))

FOLLOWS = "REPLICAOF 127.0.0.1 1"
STALE = "CONFIG SET replica-serve-stale-data no"
FEW_REPLICAS = "CONFIG SET min-replicas-to-write 1"
NO_MEMORY = "CONFIG SET maxmemory 1"
NO_SNAPSHOT = "BGSAVE"
NO_AOF = "CONFIG SET appendonly yes"
PAUSED = "CLIENT PAUSE 100000 WRITE"
CONDITIONS = {
    "none": (),
    "replica": (FOLLOWS,),
    "stale": (STALE, FOLLOWS),
    "writable replica": ("CONFIG SET replica-read-only no", FOLLOWS, NO_MEMORY),
    "few replicas": (FEW_REPLICAS,),
    "no memory": (NO_MEMORY,),
    "no snapshot": (NO_SNAPSHOT,),
    "no snapshot of a replica": (NO_SNAPSHOT, FOLLOWS),
    "no append-only file": (NO_AOF,),
    "no file, no memory": (NO_AOF, NO_MEMORY),
    "no snapshot, few replicas": (NO_SNAPSHOT, FEW_REPLICAS),
    "few replicas, no memory": (FEW_REPLICAS, NO_MEMORY),
    "all": (NO_AOF, FEW_REPLICAS, NO_MEMORY, STALE, FOLLOWS),
    "paused": (PAUSED,),
}


def lua(call: str) -> str:
    words = ",".join([f"'{word}'" for word in call.split()])
    return f"return redis.call({words})"


def function(head: str, call: str) -> str:
    return "".join([letter if letter.isalnum() else "_" for letter in f"f{head}{call}"])


def library() -> str:
    lines = ["#!lua name=calls"]
    for head, flags in zip(HEADS[1:], FLAGS, strict=True):
        listed = "".join([f"'{flag}'," for flag in flags.split(",") if flag])
        lines += [
            f"redis.register_function{{function_name='{function(head, call)}', "
            f"flags={{{listed}}}, callback=function() {lua(call)} end}}"
            for call in CALLS
        ]
    return "\n".join(lines)


def ways(call: str) -> Iterator[Request]:
    """The requests that make a call."""
    yield tuple(call.split())
    for head in HEADS:
        text = head + lua(call)
        yield "EVAL", text, 0
        yield "EVAL_RO", text, 0
        yield "EVAL", f"{head}redis.call('SET', 'x', 1) {lua(call)}", 0
        yield "EVAL", f"{head}redis.pcall('SET', 'x', 1) {lua(call)}", 0
        if head:
            yield "FCALL", function(head, call), 0
            yield "FCALL_RO", function(head, call), 0


@pytest.fixture
def both(judge: str, tmp_path: Path) -> Iterator[list[Process]]:
    """Ours and Redis, neither ended by a file that may not grow."""
    program = tmp_path / "redis"
    program.write_text(f"#!/bin/sh\ntrap '' XFSZ\nexec {judge} \"$@\"\n")
    program.chmod(0o755)
    ours = ServerProcess("--save", "", check_log=False)
    with ours, RedisProcess("--save", "", program=str(program)) as real:
        for process in (ours, real):
            process.call("SET", "k", "v")
            process.call("PFADD", "visits", "ada")
            process.call("FUNCTION", "LOAD", library())
        yield [ours, real]


def bring_about(process: Process, conditions: tuple[str, ...]) -> None:
    for condition in conditions:
        if condition == NO_SNAPSHOT:
            process.call("CONFIG", "SET", "save", "3600 100000")
            for name in ("dump.rdb", "dump.hrs"):  # in the way of what is to be put there
                (process.directory / name / "full").mkdir(parents=True)
        process.call(*condition.split())
        if condition == NO_SNAPSHOT:
            wait_until(lambda: process.info()["rdb_last_bgsave_status"] == "err")
        elif condition == NO_AOF:
            wait_until(lambda: process.info()["aof_rewrite_in_progress"] == "0")
            limit_files(process, 3)
            process.call("SET", "k", "v")
            wait_until(lambda: process.info()["aof_last_write_status"] == "err")


def replies(process: Process, requests: list[Request]) -> list[bytes]:
    """What comes at once on a connection of its own; less than was asked for if it is held back."""
    with process.client() as client, process.client() as other:
        client.send(b"".join([encode(*request) for request in requests]))
        for _ in range(3):  # what was sent before has been read
            other.call("ECHO", "x")
        found: list[bytes] = []
        while len(found) < len(requests) and client.is_answered():
            found.append(client.read())
        return found


LATE = tuple(f"{head}redis.call('SET', 'x', 1)" for head in HEADS)


def queue(process: Process, transactions: list[list[Request]]) -> list[RawClient]:
    """Clients that have called MULTI, and these requests after it."""
    clients = []
    for requests in transactions:
        clients.append(process.client())
        clients[-1].pipeline(("MULTI",), *requests)
    return clients


def run_queued(process: Process, clients: list[RawClient]) -> list[bytes]:
    """Return what EXEC replies to each; nothing where it is held back."""
    for client in clients:
        client.send_command("EXEC")
    with process.client() as other:
        for _ in range(3):
            other.call("ECHO", "x")
    found = [client.read() if client.is_answered() else b"" for client in clients]
    for client in clients:
        client.close()
    return found


@pytest.mark.parametrize("condition", CONDITIONS)
def test_every_way(both: list[Process], condition: str) -> None:
    """EXEC is refused for what was known as it was queued; a script is asked once more."""
    hashes = [sha1(text.encode()).hexdigest() for text in LATE]
    single: list[Request] = [tuple(call.split()) for call in CALLS]
    single += [("EVAL", text, 0) for text in LATE]
    single += [("EVAL", text + lua("GET k"), 0) for text in HEADS]
    single += [("EVALSHA", digest, 0) for digest in hashes]  # of what is not known yet
    transactions = [[request] for request in single]
    transactions += [[("GET", "k"), ("PUBLISH", "c", "m")], [("GET", "k"), ("SET", "k", "v")]]
    queued = [queue(process, transactions) for process in both]
    for process in both:
        for text in LATE:
            process.call("SCRIPT", "LOAD", text)
        bring_about(process, CONDITIONS[condition])
    found = [run_queued(process, clients) for process, clients in zip(both, queued, strict=True)]
    for requests, one, other in zip(transactions, *found, strict=True):
        assert one == other, requests
    for call in CALLS:
        parts: list[list[Request]] = [[way] for way in ways(call)]
        parts += [[("MULTI",), way, ("EXEC",)] for way in ways(call)]
        if PAUSED not in CONDITIONS[condition]:  # nobody holds up the others
            parts = [list(chain(*parts))]
        for requests in parts:
            ours, real = [replies(process, requests) for process in both]
            if ours != real:
                for request, one, other in zip_longest(requests, ours, real):
                    assert one == other, request


def test_changed_within_a_transaction(both: list[Process]) -> None:
    requests: list[Request] = [("MULTI",), tuple(STALE.split()), tuple(FOLLOWS.split())]
    requests += [("EVAL", text + lua("GET k"), 0) for text in HEADS]
    requests += [("FCALL", function(head, "SET k v"), 0) for head in HEADS[1:]]
    requests += [("GET", "k"), ("SET", "k", "v"), ("EXEC",)]
    ours, real = [replies(process, requests) for process in both]
    assert ours == real
