"""What a command does with its keys is what it asks rights for."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest
from conftest import Factory

import headrace.server.commands.families  # noqa: F401  (importing it fills the command table)
from headrace.compat.redis_commands import COMMANDS, commands
from headrace.server.commands.documentation import documentation
from headrace.server.dispatch.key_specs import has_keys
from headrace.server.dispatch.rows import READONLY, TABLE, WRITE, Command
from support.client import RawClient, WireError
from support.fuzz.calls import Calls
from support.process import Process

REGION = ("--aa-region-id", "1", "--appendonly", "yes", "--aa-other-keys", "local")
OF_REDIS = {name.encode() for chapter in COMMANDS for name, _ in commands(chapter)}
ROWS = [row for each in TABLE.values() for row in (each, *each.subcommands.values())]
KEYED = [row for row in ROWS if has_keys(row)]
OURS = [row for row in KEYED if row.name not in OF_REDIS]
CHANGES = {"INSERT", "UPDATE", "DELETE"}
AS_IN_REDIS = (b"pfdebug", b"pfcount", b"xreadgroup", b"xread-group")  # they ask for less
SETTINGS = (b"xpolicy|set", b"xpolicy|unset", b"xpolicy|hold", b"xpolicy|free")  # beside the key
CALLS = int(os.environ.get("HEADRACE_ACL_CALLS", "1500"))
# Two states of a stream, between which whoever learns something of it can tell.
STATES = (
    (
        *("XADD s 1-1 f v", "XADD s 2-1 f v", "XGROUP CREATE s g 0", "XCFGSET s IDMP-DURATION 50"),
        *("XREADGROUP GROUP g c COUNT 1 STREAMS s >", "XIDMPRECORD s p i 1-1"),
    ),
    (
        *("XADD s 1-1 f v", "XADD s 3-1 f v", "XADD s 4-1 f v", "XGROUP CREATE s g 0"),
        *("XCFGSET s IDMP-DURATION 60", "XREADGROUP GROUP g d COUNT 2 STREAMS s >"),
        "XIDMPRECORD s q j 3-1",
    ),
)
REQUESTS = {
    b"xlook": "XLOOK s",
    b"xcount": "XCOUNT s 2 +",
    b"xsplit": "XSPLIT s - + ROWS 1",
    b"xidmp|cfgget": "XIDMP CFGGET s",
    b"xidmp|cfgset": "XIDMP CFGSET s DURATION 70",
    b"xidmp|producers": "XIDMP PRODUCERS s",
    b"xgroup|pending": "XGROUP PENDING s g",
    b"xgroup|get-pending": "XGROUP GET-PENDING s g - + 9",
    b"xgroup|claim": "XGROUP CLAIM s g e 0 1-1 2-1 3-1",
    b"xgroup|consumers": "XGROUP CONSUMERS s g",
    b"xgroup|del": "XGROUP DEL s g",
    b"xgroup|del-consumer": "XGROUP DEL-CONSUMER s g c",
    b"xgroup|pel": "XGROUP PEL s g 1-1 e 0 5",
    b"xgroup|setmode": "XGROUP SETMODE s g MAX-PENDING 9",
    b"xpolicy|set": "XPOLICY SET s ack-wait 1h",
    b"xpolicy|get": "XPOLICY GET s",
    b"xpolicy|hold": "XPOLICY HOLD s GROUP g x",
    b"xpolicy|free": "XPOLICY FREE s GROUP g x",
    b"xpolicy|unset": "XPOLICY UNSET s ack-wait",
    b"xpolicy|note": "XPOLICY NOTE s GROUP g 1-1 0 0 0 c",
    b"xredrive": "XREDRIVE s COUNT 1 TO t",
    b"xnackin": "XNACKIN s g 5 IDS 1 1-1",
    b"xackf": "XACKF s g c 1 IDS 1 1-1",
    b"xread-group": "XREAD-GROUP GROUP g NAME n STREAMS s $",
    b"aa|stream": "AA STREAM s",
    b"aa|digest": "AA DIGEST s",
    b"aa|move": "AA MOVE s g 1",
}


def name_of(row: Command) -> str:
    return row.name.decode()


@pytest.mark.parametrize("row", KEYED, ids=name_of)
def test_specs_say_what_a_row_says(row: Command) -> None:
    uses = [set(spec.flags) for spec in row.keys if "NOT_KEY" not in spec.flags]
    for flags in uses:
        [kind] = flags & {"RO", "RW", "OW", "RM"}
        if row.name not in AS_IN_REDIS:
            assert bool(flags & CHANGES) is (kind != "RO")
    changes = any(flags & CHANGES for flags in uses)
    if row.flags & READONLY:
        assert not changes
    if row.flags & WRITE and row.name not in AS_IN_REDIS:
        assert changes
    if row in OURS and not row.flags & WRITE:
        assert all("ACCESS" in flags for flags in uses)


@pytest.fixture
def asked(client: RawClient, fresh_server: Factory) -> Iterator[tuple[RawClient, RawClient]]:
    """A server, and a region."""
    region = fresh_server(*REGION, "--aa-xadd-id-mode", "liberal")
    with region.client() as of_region:
        yield client, of_region
    client.call("ACL", "DELUSER", "none", "reads", "writes")


def test_ours_ask_for_what_they_do(asked: tuple[RawClient, RawClient]) -> None:
    """Who is told what only this state of the key explains has to read, who changes it to write."""
    assert {row.name for row in OURS} == set(REQUESTS)
    for client in asked:
        client.call("ACL", "SETUSER", "none", "+@all")
        client.call("ACL", "SETUSER", "reads", "+@all", "%R~*")
        client.call("ACL", "SETUSER", "writes", "+@all", "%W~*")
    for row in OURS:
        if row.name == b"xpolicy|note":  # files alone hold it
            continue
        client = asked[row.name.startswith(b"aa|")]
        look = ("AA", "STREAM", "s") if row.name == b"aa|move" else ("DUMP", "s")
        request = REQUESTS[row.name].split(" ")
        replies = []
        changes = False
        for state in STATES:
            client.call("FLUSHALL")
            for line in state:
                assert not client.call(*line.split(" ")).startswith(b"-"), line
            before = client.call(*look)
            replies.append(client.call(*request))
            assert not replies[-1].startswith(b"-"), (request, replies)
            changes |= client.call(*look) != before
        changes |= row.name in SETTINGS
        told = replies[0] != replies[1] and not (changes and replies[0][:1] in b":+")
        told |= row.name == b"xpolicy|get"  # which shows a setting
        may = {
            user: client.call("ACL", "DRYRUN", user, *request) == b"+OK\r\n"
            for user in ("none", "reads", "writes")
        }
        only_reads = not changes or row.name in AS_IN_REDIS
        assert may == {"none": False, "reads": only_reads, "writes": not told}, request


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), REGION], ids=["server", "region"])
def test_who_may_use_no_key_is_told_of_none(
    fresh_server: Factory, options: tuple[str, ...]
) -> None:
    """Every command with keys is refused or wrong, whatever is between its words."""
    server: Process = fresh_server(*options, check_log=False)
    server.call("ACL", "SETUSER", "none", "on", "nopass", "+@all", "&*")
    chance = random.Random(int(os.environ.get("HEADRACE_ACL_SEED", "1")))
    documented = documentation()
    spared = ("migrate", "ssubscribe", "sunsubscribe", "spublish")
    names = sorted({name_of(row) for row in KEYED} & set(documented) - set(spared))
    words = [b"STABLE", b"STREAMS", b"GROUP", b"NAME", b"NOACK", b"COUNT", b"STORE", b"KEYS", b"1"]
    words += [b"GET", b"BY", b"CLAIM", b"LIMIT", b"IDMP", b"0"]
    calls = Calls(chance, names, 0.2)
    with server.client() as client, server.client() as other:
        for _ in range(CALLS // 2):
            call = calls.call(chance.choice(names))
            if not call[0].upper().startswith((b"B", b"XREAD")):
                other.call(*call)
        assert client.call("AUTH", "none", "x") == b"+OK\r\n"
        if options:
            for read in ("XREAD STABLE STREAMS s 0", "XREAD COUNT 1 STABLE BLOCK 1 STREAMS s $"):
                assert client.call(*read.split(" ")).startswith(b"-NOPERM")
        for _ in range(CALLS):
            call = calls.call(chance.choice(names))
            for _ in range(chance.choice((0, 1, 2))):
                call.insert(chance.randint(1, len(call)), chance.choice(words))
            reply = client.call_parsed(*call)
            if isinstance(reply, WireError) and reply.text.startswith((b"NOPERM", b"ERR")):
                continue
            keyless = (
                other.call_parsed("COMMAND", "GETKEYS", *call) == [] or call[0].upper() == b"AA"
            )
            assert keyless, (call, reply)
