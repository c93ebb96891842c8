"""XREADGROUP BLOCK: one entry wakes one reader, time wakes claimers, what goes away wakes all."""

from __future__ import annotations

import resource
import select
import socket
import time
from collections.abc import Iterator
from functools import partial

import pytest
from conftest import Factory

from support.client import Argument, RawClient, encode, parse
from support.process import Process, ServerProcess
from support.scene import Scene
from support.waiting import DEADLINE_S, wait_until

NULL_ARRAY = b"*-1\r\n"
NOGROUP = b"-NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option\r\n"
WRONGTYPE = b"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"
CROWD = 2_000


@pytest.fixture
def scene(server: ServerProcess) -> Iterator[Scene]:
    scene = Scene(server)
    scene.do("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
    yield scene
    scene.close()


def read(consumer: str, *options: Argument, group: str = "g", key: str = "s") -> list[Argument]:
    return ["XREADGROUP", "GROUP", group, consumer, *options, "STREAMS", key, ">"]


def ids(reply: object) -> list[str]:
    """The IDs in an answer from one stream."""
    assert isinstance(reply, list), reply
    (stream,) = reply
    return [entry[0].decode() for entry in stream[1]]


def owners(scene: Scene, group: str = "g") -> dict[str, str]:
    pending = scene.do("XPENDING", "s", group, "-", "+", 100_000)
    assert isinstance(pending, list)
    return {entry[0].decode(): entry[1].decode() for entry in pending}


# One entry, one reader


def test_readers_are_served_first_come_first_served(scene: Scene) -> None:
    waiters = [scene.waiter() for _ in range(4)]
    for number, waiter in enumerate(waiters):
        scene.block(waiter, *read(f"c{number}", "BLOCK", 0))
    for number, waiter in enumerate(waiters):
        scene.do("XADD", "s", f"{number + 1}-0", "f", "v")
        assert scene.blocked() == 3 - number
        assert ids(waiter.read_parsed()) == [f"{number + 1}-0"]
    assert owners(scene) == {"1-0": "c0", "2-0": "c1", "3-0": "c2", "4-0": "c3"}


def test_the_first_takes_what_its_count_allows_and_the_next_the_rest(scene: Scene) -> None:
    first, second, third = scene.waiter(), scene.waiter(), scene.waiter()
    scene.block(first, *read("a", "COUNT", 2, "BLOCK", 0))
    scene.block(second, *read("b", "BLOCK", 0))
    scene.block(third, *read("c", "BLOCK", 0))
    scene.do_at_once(*[f"XADD s {number}-0 f v" for number in range(1, 6)])
    assert ids(first.read_parsed()) == ["1-0", "2-0"]
    assert ids(second.read_parsed()) == ["3-0", "4-0", "5-0"]
    assert scene.blocked() == 1
    assert third.silent()


def test_each_group_has_its_own_queue(scene: Scene) -> None:
    scene.do("XGROUP", "CREATE", "s", "h", "$")
    mine, other, plain = scene.waiter(), scene.waiter(), scene.waiter()
    late = scene.waiter()
    scene.block(mine, *read("a", "BLOCK", 0))
    scene.block(late, *read("b", "BLOCK", 0))
    scene.block(other, *read("a", "BLOCK", 0, group="h"))
    scene.block(plain, "XREAD", "BLOCK", 0, "STREAMS", "s", "$")
    scene.do("XADD", "s", "1-0", "f", "v")
    for waiter in (mine, other, plain):
        assert ids(waiter.read_parsed()) == ["1-0"]
    assert scene.blocked() == 1
    assert late.silent()


def test_a_reader_of_several_streams_is_served_by_any(scene: Scene) -> None:
    scene.do("XGROUP", "CREATE", "t", "g", "$", "MKSTREAM")
    both, one = scene.waiter(), scene.waiter()
    scene.block(both, "XREADGROUP", "GROUP", "g", "a", "BLOCK", 0, "STREAMS", "t", "s", ">", ">")
    scene.block(one, *read("b", "BLOCK", 0))
    assert scene.figure("total_blocking_keys") == 2
    scene.do("XADD", "s", "1-0", "f", "v")
    assert both.read_parsed() == [[b"s", [[b"1-0", [b"f", b"v"]]]]]
    assert scene.figure("total_blocking_keys") == 1
    scene.do("XADD", "s", "2-0", "f", "v")
    assert ids(one.read_parsed()) == ["2-0"]


def test_the_same_stream_twice_is_one_place(scene: Scene) -> None:
    waiter = scene.waiter()
    scene.block(waiter, "XREADGROUP", "GROUP", "g", "a", "BLOCK", 0, "STREAMS", "s", "s", ">", ">")
    scene.do("XADD", "s", "1-0", "f", "v")
    assert waiter.read_parsed() == [[b"s", [[b"1-0", [b"f", b"v"]]]]]
    assert scene.blocked() == 0
    assert scene.figure("total_blocking_keys") == 0


def test_an_entry_that_is_gone_at_once_serves_nobody(scene: Scene) -> None:
    waiter = scene.waiter()
    scene.block(waiter, *read("a", "BLOCK", 0))
    scene.do_at_once("XADD s 1-0 f v", "XDEL s 1-0")
    scene.do("XADD", "s", "MAXLEN", 0, "2-0", "f", "v")
    assert scene.blocked() == 1
    scene.do("XADD", "s", "3-0", "f", "v")
    assert ids(waiter.read_parsed()) == ["3-0"]


def test_entries_there_already_are_answered_at_once(scene: Scene) -> None:
    scene.do("XADD", "s", "1-0", "f", "v")
    assert ids(scene.do(*read("a", "BLOCK", 0))) == ["1-0"]


def test_a_history_is_answered_at_once(scene: Scene) -> None:
    words: list[Argument] = ["XREADGROUP", "GROUP", "g", "a", "BLOCK", 0, "STREAMS", "s", "0"]
    assert scene.do(*words) == [[b"s", []]]


def test_a_reader_with_noack(scene: Scene) -> None:
    waiter = scene.waiter()
    scene.block(waiter, *read("a", "BLOCK", 0, "NOACK"))
    scene.do("XADD", "s", "1-0", "f", "v")
    assert ids(waiter.read_parsed()) == ["1-0"]
    assert owners(scene) == {}


def test_resp3(scene: Scene) -> None:
    waiter = scene.waiter(resp3=True)
    scene.block(waiter, *read("a", "BLOCK", 0))
    scene.do("XADD", "s", "1-0", "f", "v")
    assert waiter.read_parsed() == {b"s": [[b"1-0", [b"f", b"v"]]]}


# What does not wake


def test_what_adds_nothing_wakes_nobody(scene: Scene) -> None:
    scene.do("XADD", "s", "1-0", "f", "v")
    scene.do(*read("x"))
    waiter = scene.waiter()
    scene.block(waiter, *read("a", "BLOCK", 0))
    scene.do("XGROUP", "CREATE", "s", "other", 0)
    scene.do("XGROUP", "DESTROY", "s", "other")
    scene.do("XGROUP", "SETID", "s", "g", 0)
    scene.do("XSETID", "s", "5-0")
    assert scene.blocked() == 1
    assert waiter.silent()
    scene.do("XADD", "s", "6-0", "f", "v")
    assert ids(waiter.read_parsed()) == ["1-0", "6-0"]


# What goes away


@pytest.mark.parametrize(
    "gone",
    [
        ["DEL s"],
        ["UNLINK s"],
        ["FLUSHALL"],
        ["FLUSHDB"],
        ["RENAME s t"],
        ["MOVE s 3"],
        ["SWAPDB 0 5"],
        ["XGROUP DESTROY s g"],
        ["PEXPIRE s 1"],
        ["DEL s", "XADD s 1-0 f v"],
        ["DEL s", "XGROUP CREATE s h $ MKSTREAM"],
        ["RENAME s t", "SET s v", "DEL s"],
    ],
    ids=" and ".join,
)
def test_a_group_that_goes_away(scene: Scene, gone: list[str]) -> None:
    waiters = [scene.waiter(), scene.waiter()]
    for waiter in waiters:
        scene.block(waiter, *read("a", "BLOCK", 0))
    if len(gone) == 1:
        scene.do(*gone[0].split())
    else:
        scene.do_at_once(*gone)
    for waiter in waiters:
        assert waiter.read() == NOGROUP
    assert scene.blocked() == 0
    scene.do("FLUSHALL")


@pytest.mark.parametrize(
    "changed",
    [
        ["SET s v"],
        ["DEL s", "SET s v"],
        ["SET other v", "RENAME other s"],
        ["SET other v", "COPY other s REPLACE"],
    ],
    ids=" and ".join,
)
def test_a_key_that_changes_its_type(scene: Scene, changed: list[str]) -> None:
    waiter = scene.waiter()
    scene.block(waiter, *read("a", "BLOCK", 0))
    scene.do_at_once(*changed)
    assert waiter.read() == WRONGTYPE


def test_a_database_swapped_for_one_with_another_type(scene: Scene) -> None:
    with scene.server.client() as client:
        client.call("SELECT", 4)
        client.call("SET", "s", "v")
    waiter = scene.waiter()
    scene.block(waiter, *read("a", "BLOCK", 0))
    scene.do("SWAPDB", 0, 4)
    assert waiter.read() == WRONGTYPE


def test_a_database_swapped_for_one_with_entries(scene: Scene) -> None:
    with scene.server.client() as client:
        client.call("SELECT", 4)
        client.call("XADD", "s", "7-0", "f", "v")
        client.call("XGROUP", "CREATE", "s", "g", 0)
    waiter = scene.waiter()
    scene.block(waiter, *read("a", "BLOCK", 0))
    scene.do("SWAPDB", 0, 4)
    assert ids(waiter.read_parsed()) == ["7-0"]


def test_a_stream_renamed_over_the_one_waited_for(scene: Scene) -> None:
    scene.do("XADD", "other", "7-0", "f", "v")
    scene.do("XGROUP", "CREATE", "other", "g", 0)
    waiter = scene.waiter()
    scene.block(waiter, *read("a", "BLOCK", 0))
    scene.do("RENAME", "other", "s")
    assert ids(waiter.read_parsed()) == ["7-0"]


def test_a_group_that_is_back_at_the_end_of_a_transaction_is_there(scene: Scene) -> None:
    waiter = scene.waiter()
    scene.block(waiter, *read("a", "BLOCK", 0))
    scene.do_at_once("DEL s", "XGROUP CREATE s g $ MKSTREAM")
    assert scene.blocked() == 1
    scene.do("XADD", "s", "1-0", "f", "v")
    assert ids(waiter.read_parsed()) == ["1-0"]


def test_failures_are_counted_when_woken(scene: Scene) -> None:
    scene.do("CONFIG", "RESETSTAT")
    served, failed = scene.waiter(), scene.waiter()
    scene.block(served, *read("a", "BLOCK", 0))
    scene.block(failed, *read("b", "BLOCK", 0))
    scene.do("XADD", "s", "1-0", "f", "v")
    served.read()
    scene.do("DEL", "s")
    failed.read()
    text = scene.do("INFO", "commandstats")
    assert isinstance(text, bytes)
    line = text.split(b"cmdstat_xreadgroup:")[1].split(b"\r\n")[0]
    assert b"calls=2," in line
    assert line.endswith(b"failed_calls=1")


# Other ends of waiting


def test_a_timeout(scene: Scene) -> None:
    waiter = scene.waiter()
    started = time.monotonic()
    assert waiter.call(*read("a", "BLOCK", 60)) == NULL_ARRAY
    assert 0.055 <= time.monotonic() - started < 30


def test_the_deadline_stays_when_a_wake_up_brings_nothing(scene: Scene) -> None:
    waiter = scene.waiter()
    started = time.monotonic()
    waiter.send_command(*read("a", "BLOCK", 400))
    while not select.select([waiter.sock], [], [], 0)[0]:
        scene.do_at_once("XADD s * f v", "XTRIM s MAXLEN 0")
        assert time.monotonic() - started < DEADLINE_S, "each time it begins to wait anew"
    assert waiter.read() == NULL_ARRAY
    assert time.monotonic() - started >= 0.395


def test_client_unblock(scene: Scene) -> None:
    waiter = scene.waiter()
    number = parse(waiter.call("CLIENT", "ID"))
    assert isinstance(number, int)
    scene.block(waiter, *read("a", "BLOCK", 0))
    assert scene.do("CLIENT", "UNBLOCK", number) == 1
    assert waiter.read() == NULL_ARRAY
    scene.block(waiter, *read("a", "BLOCK", 0))
    assert scene.do("CLIENT", "UNBLOCK", number, "ERROR") == 1
    assert waiter.read() == b"-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n"
    scene.do("XADD", "s", "1-0", "f", "v")
    assert owners(scene) == {}


def test_in_a_transaction_nobody_waits(scene: Scene) -> None:
    replies = scene.actor.pipeline(("MULTI",), tuple(read("a", "BLOCK", 0)), ("EXEC",))
    assert replies[2] == b"*1\r\n" + NULL_ARRAY


@pytest.mark.parametrize("claim", [[], ["CLAIM", 100_000], ["CLAIM", 10**15]])
def test_whoever_disconnects_leaves_nothing_behind(scene: Scene, claim: list[Argument]) -> None:
    before = scene.figure("clients_in_timeout_table")
    for _ in range(3):
        gone = scene.waiter()
        scene.block(gone, *read("gone", "BLOCK", 100_000, *claim))
        assert scene.figure("total_blocking_keys_on_nokey") == 1
        gone.close()
        scene.wait_for_blocked(0)
    assert scene.figure("total_blocking_keys") == 0
    assert scene.figure("total_blocking_keys_on_nokey") == 0
    assert scene.figure("clients_in_timeout_table") == before
    stays = scene.waiter()
    scene.block(stays, *read("stays", "BLOCK", 0))
    scene.do("XADD", "s", "1-0", "f", "v")
    assert ids(stays.read_parsed()) == ["1-0"]
    assert owners(scene) == {"1-0": "stays"}


def test_requests_behind_the_blocking_one_wait_with_it(scene: Scene) -> None:
    waiter = scene.waiter()
    waiter.send(encode(*read("a", "BLOCK", 0)) + encode("PING"))
    scene.wait_for_blocked(1)
    assert waiter.silent()
    scene.do("XADD", "s", "1-0", "f", "v")
    assert ids(waiter.read_parsed()) == ["1-0"]
    assert waiter.read() == b"+PONG\r\n"


# Claims


def claims(reply: object) -> list[tuple[str, int]]:
    """The IDs of an answer with CLAIM, each with how often it had been delivered."""
    assert isinstance(reply, list), reply
    (stream,) = reply
    return [(entry[0].decode(), entry[3]) for entry in stream[1]]


def test_time_alone_lets_an_entry_be_claimed(scene: Scene) -> None:
    scene.do("XADD", "s", "1-0", "f", "v")
    waiter = scene.waiter()
    started = time.monotonic()
    scene.do(*read("dead"))
    waiter.send_command(*read("a", "BLOCK", 0, "CLAIM", 600))
    assert claims(waiter.read_parsed()) == [("1-0", 1)]
    assert time.monotonic() - started >= 0.595
    assert owners(scene) == {"1-0": "a"}


def test_an_entry_delivered_while_waiting_can_be_claimed_in_time(scene: Scene) -> None:
    waiter = scene.waiter()
    scene.block(waiter, *read("a", "BLOCK", 50_000, "CLAIM", 500))
    # The new entry would go to the one who waits, were it not taken in the same transaction.
    started = time.monotonic()
    scene.do_at_once("XADD s 1-0 f v", "XREADGROUP GROUP g dead STREAMS s >")
    assert claims(waiter.read_parsed()) == [("1-0", 1)]
    assert time.monotonic() - started >= 0.495


def test_an_entry_made_older_while_waiting_can_be_claimed_in_time(scene: Scene) -> None:
    scene.do_at_once("XADD s 1-0 f v", "XREADGROUP GROUP g dead STREAMS s >")
    waiter = scene.waiter()
    scene.block(waiter, *read("a", "BLOCK", 50_000, "CLAIM", 60_000))
    scene.do("XCLAIM", "s", "g", "dead", 0, "1-0", "IDLE", 59_900, "JUSTID")
    assert claims(waiter.read_parsed()) == [("1-0", 1)]


def test_a_claimer_gets_a_new_entry_at_once(scene: Scene) -> None:
    waiter = scene.waiter()
    scene.block(waiter, *read("a", "BLOCK", 0, "CLAIM", 100_000))
    scene.do("XADD", "s", "1-0", "f", "v")
    assert waiter.read_parsed() == [[b"s", [[b"1-0", [b"f", b"v"], 0, 0]]]]


def test_claimers_take_turns_and_others_stay_asleep(scene: Scene) -> None:
    scene.do_at_once("XADD s 1-0 f v", "XADD s 2-0 f v")
    scene.do(*read("dead"))
    plain, patient, first, second = [scene.waiter() for _ in range(4)]
    scene.block(plain, *read("plain", "BLOCK", 0))
    scene.block(patient, *read("patient", "BLOCK", 0, "CLAIM", 600_000))
    scene.block(first, *read("first", "BLOCK", 0, "COUNT", 1, "CLAIM", 60_000))
    scene.block(second, *read("second", "BLOCK", 0, "COUNT", 1, "CLAIM", 120_000))
    scene.do("XCLAIM", "s", "g", "dead", 0, "1-0", "2-0", "IDLE", 59_900, "JUSTID")
    assert claims(first.read_parsed()) == [("1-0", 1)]
    assert scene.blocked() == 3
    scene.do("XCLAIM", "s", "g", "dead", 0, "2-0", "IDLE", 119_900, "JUSTID")
    assert claims(second.read_parsed()) == [("2-0", 1)]
    assert scene.blocked() == 2
    assert plain.silent()
    assert patient.silent(0.01)


def test_deleted_entries_are_waited_for_by_nobody(scene: Scene) -> None:
    scene.do_at_once("XADD s 1-0 f v", "XADD s 2-0 f v", "XREADGROUP GROUP g dead STREAMS s >")
    scene.do("XDEL", "s", "1-0")
    waiter = scene.waiter()
    waiter.send_command(*read("a", "BLOCK", 0, "CLAIM", 500))
    assert claims(waiter.read_parsed()) == [("2-0", 1)]
    assert owners(scene) == {"1-0": "dead", "2-0": "a"}


def test_an_acknowledged_entry_is_not_claimed(scene: Scene) -> None:
    scene.do_at_once("XADD s 1-0 f v", "XREADGROUP GROUP g x STREAMS s >")
    waiter = scene.waiter()
    started = time.monotonic()
    scene.block(waiter, *read("a", "BLOCK", 2000, "CLAIM", 60_000))
    scene.do_at_once("XCLAIM s g x 0 1-0 IDLE 59900 JUSTID", "XACK s g 1-0")
    assert waiter.read() == NULL_ARRAY
    assert time.monotonic() - started >= 1.995


def test_a_released_entry_goes_to_the_first_claimer(scene: Scene) -> None:
    scene.do_at_once("XADD s 1-0 f v", "XADD s 2-0 f v", "XREADGROUP GROUP g x STREAMS s >")
    plain, first, second = scene.waiter(), scene.waiter(), scene.waiter()
    scene.block(plain, *read("plain", "BLOCK", 0))
    scene.block(first, *read("first", "BLOCK", 0, "CLAIM", 60_000))
    scene.block(second, *read("second", "BLOCK", 0, "CLAIM", 60_000))
    scene.do("XNACK", "s", "g", "FAIL", "IDS", 1, "2-0")
    assert claims(first.read_parsed()) == [("2-0", 1)]
    assert scene.blocked() == 2
    scene.do("XNACK", "s", "g", "FAIL", "IDS", 1, "1-0")
    assert claims(second.read_parsed()) == [("1-0", 1)]
    assert scene.blocked() == 1


def test_a_pause_of_writes_holds_claims_back(scene: Scene) -> None:
    scene.do_at_once("XADD s 1-0 f v", "XREADGROUP GROUP g x STREAMS s >")
    waiter = scene.waiter()
    scene.block(waiter, *read("a", "BLOCK", 0, "CLAIM", 60_000))
    started = time.monotonic()
    scene.do_at_once("XCLAIM s g x 0 1-0 IDLE 59800 JUSTID", "CLIENT PAUSE 900 WRITE")
    assert claims(waiter.read_parsed()) == [("1-0", 1)]
    assert time.monotonic() - started >= 0.895


# A crowd


class Crowd:
    """Many readers parked on one group, of one stream, on bare sockets."""

    def __init__(self, server: Process, actor: RawClient, size: int, options: list[Argument]):
        actor.call("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
        self.sockets: list[socket.socket] = []
        for number in range(size):
            sock = socket.create_connection(("127.0.0.1", server.port), timeout=DEADLINE_S)
            self.sockets.append(sock)
            sock.sendall(encode(*read(f"c{number}", "COUNT", 1, "BLOCK", 0, *options)))
            if number % 100 == 99:  # the backlog of the listener is not endless
                wait_until(partial(self._are_blocked, actor, number + 1))

    def _are_blocked(self, actor: RawClient, count: int) -> bool:
        return b"blocked_clients:%d\r" % count in actor.call("INFO", "clients")

    def close(self) -> None:
        for sock in self.sockets:
            sock.close()


@pytest.mark.parametrize("options", [[], ["CLAIM", 600_000]], ids=["plain", "claiming"])
def test_a_crowd_is_served_one_entry_each_at_a_flat_cost(
    fresh_server: Factory, options: list[Argument]
) -> None:
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit[1], limit[1]))
    server = fresh_server(debug=False)
    with server.client() as actor:
        crowd = Crowd(server, actor, CROWD, options)
        try:
            spent: list[float] = []
            for part in range(4):
                started = server.cpu_s()
                for number in range(part * CROWD // 4, (part + 1) * CROWD // 4):
                    actor.call("XADD", "s", f"{number + 1}-0", "f", "v")
                spent.append(server.cpu_s() - started)
            for number, sock in enumerate(crowd.sockets):
                assert b"\r\n%d-0\r\n" % (number + 1) in sock.recv(1000)
            assert b"blocked_clients:0\r" in actor.call("INFO", "clients")
        finally:
            crowd.close()
        # Were each append to look at all who wait, the first part would cost seven times the last.
        assert spent[0] < 4 * spent[3], spent
        summary = actor.call_parsed("XPENDING", "s", "g")
        assert isinstance(summary, list)
        assert summary[0] == CROWD
