"""A disk whose syncs take long, or fail: the system calls themselves are tampered with."""

from __future__ import annotations

import contextlib
import errno
import itertools
import random
import select
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.client import RawClient, encode
from support.faults import HELD_S, FaultyServer, Rule, faulty_server
from support.load import Load
from support.waiting import DEADLINE_S, wait_until

pytestmark = pytest.mark.once

EIO = 5


@contextlib.contextmanager
def slow_disk(policy: str, delay_s: float) -> Iterator[FaultyServer]:
    """A server whose syncs take this much longer."""
    with faulty_server(policy, Rule("fdatasync", delay_s=delay_s)) as server:
        yield server


@contextlib.contextmanager
def held_disk(policy: str) -> Iterator[FaultyServer]:
    """A server that has noticed that syncs are slow, and whose next one ends with ``disk()``."""
    with slow_disk(policy, 0.02) as server:
        with server.client() as client:
            warm_up(client)
        server.disk(Rule("fdatasync", delay_s=HELD_S))
        yield server


def warm_up(client: RawClient) -> None:
    """Enough syncs for the server to notice that they are slow."""
    for number in range(3):
        client.call("SET", "warm", number)


def test_nothing_acknowledged_is_lost() -> None:
    with slow_disk("always", 0.02) as server:
        load = Load(server, 4, random.Random())
        for _ in range(2):
            load.begin()
            load.wait_for_steps(20)
            server.cut_power()
            load.end()
            server.start()
            load.check()


def test_a_reply_waits_for_the_sync_that_covers_it() -> None:
    with held_disk("always") as server, server.client() as one, server.client() as two:
        one.send_command("SET", "k", "1")
        wait_until(server.is_held)
        two.send_command("GET", "k")  # executed during the sync: it must not show "1" before
        assert two.silent()
        assert one.silent()
        server.disk()
        assert two.read() == b"$1\r\n1\r\n"
        assert one.read() == b"+OK\r\n"
        syncs = server.syncs()
        assert two.call("GET", "k") == b"$1\r\n1\r\n"  # nothing is unsynced now
        assert server.syncs() == syncs


def hear(client: RawClient, text: bytes) -> None:
    """Read messages up to one that has ``text``."""
    while text not in client.read():
        pass


def test_nobody_hears_of_what_is_not_on_the_disk_yet() -> None:
    """Messages, events, MONITOR and replies to the blocked are held back as any reply is."""
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(slow_disk("always", 0.02))
        writer, silent, reader, subscriber, watcher, monitor = [
            stack.enter_context(server.client()) for _ in range(6)
        ]
        writer.call("CONFIG", "SET", "notify-keyspace-events", "KEA")
        warm_up(writer)
        silent.send_command("CLIENT", "REPLY", "OFF")
        reader.send_command("XREAD", "BLOCK", 0, "STREAMS", "s", "$")
        subscriber.call("SUBSCRIBE", "news")
        watcher.call("PSUBSCRIBE", "__key*__:*")
        monitor.call("MONITOR")
        wait_until(lambda: server.info("clients")["blocked_clients"] == "1")
        wait_until(lambda: "cmd=client|reply" in str(writer.call_parsed("CLIENT", "LIST")))
        writer.call("ECHO", "so far")
        hear(monitor, b"so far")
        server.disk(Rule("fdatasync", delay_s=HELD_S))
        silent.send_command("SET", "k", "1")
        writer.send(encode("XADD", "s", "1-1", "f", "v") + encode("PUBLISH", "news", "now"))
        listeners = [writer, silent, reader, subscriber, watcher, monitor]
        heard, _, _ = select.select([each.sock for each in listeners], [], [], 0.2)
        assert not heard
        server.disk()
        assert writer.read() == b"$3\r\n1-1\r\n"
        assert reader.read().startswith(b"*1\r\n")
        assert subscriber.read().endswith(b"$3\r\nnow\r\n")
        hear(watcher, b"__keyspace@0__:k")  # the two requests may be taken in any order
        hear(monitor, b'"SET" "k" "1"')
        assert silent.silent(0.05)


def test_a_peer_that_stops_sending_gets_its_replies() -> None:
    with slow_disk("always", 0.1) as server, server.client() as client:
        warm_up(client)
        client.send(encode("SET", "k", 1) + encode("GET", "k"))
        client.sock.shutdown(socket.SHUT_WR)
        assert client.rest_until_close() == b"+OK\r\n$1\r\n1\r\n"


def test_replies_keep_their_order_and_come_once() -> None:
    with slow_disk("always", 0.03) as server, server.client() as client:
        warm_up(client)
        sent = 0
        for burst in range(1, 30):
            commands = [encode("INCR", "n") + encode("ECHO", f"e{sent + i}") for i in range(burst)]
            client.send(b"".join(commands))
            sent += burst
            time.sleep(0.004)
        for number in range(1, sent + 1):
            assert client.read() == b":%d\r\n" % number
            echo = b"e%d" % (number - 1)
            assert client.read() == b"$%d\r\n%b\r\n" % (len(echo), echo)
        assert client.silent(0.05)


def test_one_sync_serves_many_clients() -> None:
    """Commands go on executing while the disk works: time is counted in syncs, not in commands."""
    with slow_disk("always", 0.05) as server, server.client() as first:
        warm_up(first)
        clients = [server.client() for _ in range(30)]
        before = server.syncs()
        for _ in range(5):
            for client in clients:
                client.send_command("INCR", "n")
            for client in clients:
                assert client.read().startswith(b":")
        spent = server.syncs() - before
        for client in clients:
            client.close()
        assert spent < 5 * 8


def test_quit_gets_the_replies_before_it() -> None:
    with slow_disk("always", 0.1) as server, server.client() as client:
        warm_up(client)
        client.send(encode("SET", "a", "1"))
        time.sleep(0.03)
        client.send(encode("SET", "b", "2") + encode("QUIT"))
        assert client.rest_until_close() == b"+OK\r\n" * 3


def test_a_shutdown_lets_held_replies_go() -> None:
    with held_disk("always") as server, server.client() as client:
        client.send_command("SET", "a", "1")
        wait_until(server.is_held)
        server.signal(signal.SIGTERM)
        assert client.silent()
        server.disk()
        assert server.wait() == 0
        assert client.rest_until_close() == b"+OK\r\n"
        server.start()
        assert server.call("GET", "a") == b"1"


def test_turning_it_off_lets_held_replies_go_first() -> None:
    with slow_disk("always", 0.2) as server, server.client() as one, server.client() as two:
        warm_up(one)
        one.send_command("SET", "a", "1")
        time.sleep(0.05)
        assert two.call("CONFIG", "SET", "appendonly", "no") == b"+OK\r\n"
        assert one.read() == b"+OK\r\n"
        assert one.call("GET", "a") == b"$1\r\n1\r\n"


def test_relaxing_the_policy_lets_no_reply_overtake() -> None:
    with slow_disk("always", 0.2) as server, server.client() as one, server.client() as two:
        warm_up(one)
        one.send_command("INCR", "n")
        time.sleep(0.05)
        two.send_command("CONFIG", "SET", "appendfsync", "everysec")
        one.send_command("INCR", "n")
        assert [one.read(), one.read()] == [b":1\r\n", b":2\r\n"]
        assert two.read() == b"+OK\r\n"


def test_a_sync_that_fails_in_the_background_stops_before_a_reply_leaves() -> None:
    rule = Rule("fdatasync", delay_s=0.05, skip=5, error=EIO)
    with faulty_server("always", rule, check_log=False) as server, server.client() as client:
        acknowledged = 0
        with contextlib.suppress(ConnectionError):
            for number in range(100):
                client.send_command("SET", "k", number)
                if client.read() != b"+OK\r\n":
                    break
                acknowledged += 1
        assert 3 <= acknowledged <= 5
        assert server.wait() == 1
        assert "cannot sync the append-only file under appendfsync always" in server.log()


def append_until_delayed(client: RawClient, server: FaultyServer) -> None:
    """Count up until a write has not waited for a sync any longer."""

    def is_delayed() -> bool:
        assert client.call("INCR", "n").startswith(b":")
        return server.info("persistence")["aof_delayed_fsync"] != "0"

    wait_until(is_delayed)


def test_everysec_does_not_wait_for_the_disk() -> None:
    """A sync that does not end holds nobody up, and after two seconds is told of."""
    with slow_disk("everysec", HELD_S) as server, server.client() as client:
        append_until_delayed(client, server)
        assert "Syncing the append-only file takes long" in server.log()
        value = server.call("GET", "n")
        server.kill()
        server.disk()
        server.start()
        assert server.call("GET", "n") == value


def test_much_is_synced_in_pieces() -> None:
    """Much data does not wait for the end of the second, but for as long as a slow disk needs."""
    value = "x" * 1_000_000
    with faulty_server("everysec") as server, server.client() as client:
        server.call("CONFIG", "SET", "auto-aof-rewrite-percentage", 0)
        before = server.syncs()
        started_s = time.monotonic()

        def are_more_than_one_a_second() -> bool:
            assert client.call("SET", "k", value) == b"+OK\r\n"
            return server.syncs() - before > 5 + time.monotonic() - started_s

        wait_until(are_more_than_one_a_second)
    with slow_disk("everysec", 0.25) as server, server.client() as client:
        server.call("CONFIG", "SET", "auto-aof-rewrite-percentage", 0)
        before = server.syncs()
        started_s = time.monotonic()
        while (passed_s := time.monotonic() - started_s) < 2:
            assert client.call("SET", "k", value) == b"+OK\r\n"
            time.sleep(0.02)
        assert server.syncs() - before < 2 + 1.5 * passed_s


def test_a_reply_follows_the_write_while_a_sync_is_under_way() -> None:
    """A write that has to wait for a sync a little keeps its promise: it comes before the reply.

    A machine may be so busy that it waits for long now and then.
    """
    rules = (
        Rule("fdatasync", "incr", delay_s=1.5),
        Rule("write", "incr", during="fdatasync", delay_s=0.01),
    )
    with faulty_server("everysec", *rules) as server, server.client() as client:
        path = server.directory / "appendonlydir" / "appendonly.aof.1.incr.aof"
        client.call("SET", "first", "1")
        wait_until(lambda: server.info("persistence")["aof_pending_bio_fsync"] == "1")
        early = 0
        for number in range(12):
            assert client.call("SET", "k", f"value-{number}") == b"+OK\r\n"
            early += b"value-%d" % number not in path.read_bytes()
        assert early < 10


def test_only_what_tells_of_no_data_is_told_before_the_write() -> None:
    rules = (
        Rule("fdatasync", "incr", delay_s=3.0),
        Rule("write", "incr", during="fdatasync", delay_s=0.02),
    )
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(faulty_server("everysec", *rules))
        writer, other = [stack.enter_context(server.client()) for _ in range(2)]
        path = server.directory / "appendonlydir" / "appendonly.aof.1.incr.aof"
        writer.call("SET", "first", "1")
        wait_until(lambda: server.info("persistence")["aof_pending_bio_fsync"] == "1")
        early = dict.fromkeys(("PING", "GET", "SET", "one behind it", "EXEC"), 0)

        def replied(what: str, value: bytes) -> None:
            early[what] += value not in path.read_bytes()

        for number in range(10):
            value = b"value-%d" % number
            writer.send_command("SET", "k", value)
            assert other.call("PING") == b"+PONG\r\n"
            replied("PING", value)
            assert other.call("GET", "k") == b"$7\r\n%b\r\n" % value
            replied("GET", value)
            assert writer.read() == b"+OK\r\n"
            writer.send_command("SET", "k", value + b".")
            assert other.call("PING") == b"+PONG\r\n"
            writer.send_command("PING")  # behind a reply that waits
            assert writer.read() == b"+OK\r\n"
            replied("SET", value + b".")
            assert writer.read() == b"+PONG\r\n"
            writer.send(encode("SET", "k", value + b"!") + encode("PING"))
            assert writer.read() == b"+OK\r\n"
            assert writer.read() == b"+PONG\r\n"
            replied("one behind it", value + b"!")
            writer.send(encode("MULTI") + encode("SET", "k", value + b"?") + encode("PING"))
            writer.send(encode("EXEC"))
            assert [writer.read() for _ in range(4)][-1] == b"*2\r\n+OK\r\n+PONG\r\n"
            replied("EXEC", value + b"?")
        assert early.pop("PING")
        assert all(count < 9 for count in early.values()), early  # where the machine is very busy


def test_a_disk_that_is_full_when_a_torn_end_is_cut_off() -> None:
    """The server does not start, and says with which file it could not."""
    with faulty_server("everysec", check_log=False) as server:
        server.call("SET", "k", "v")
        server.kill()
        (file,) = server.directory.glob("appendonlydir/*.incr.aof")
        with file.open("ab") as torn:
            torn.write(b"*3\r\n$3\r\nSET")
        server.disk(Rule("fdatasync", ".incr.aof", error=errno.ENOSPC))
        with pytest.raises(RuntimeError, match=r"incr\.aof cannot be truncated: No space left"):
            server.start()
        server.disk()
        server.start()
        assert server.call("GET", "k") == b"v"


def test_a_write_that_is_stuck_holds_nobody_up_for_long() -> None:
    """Where the disk takes no write while it syncs, replies leave without it, as Redis's do."""
    rules = (
        Rule("fdatasync", "incr", times=1, delay_s=1.8),
        Rule("write", "incr", during="fdatasync", delay_s=1.5),
    )
    with faulty_server("everysec", *rules) as server, server.client() as client:
        client.call("SET", "first", "1")
        wait_until(lambda: server.info("persistence")["aof_pending_bio_fsync"] == "1")
        answered = 0
        while server.info("persistence")["aof_pending_bio_fsync"] == "1":
            client.call("INCR", "n")
            answered += 1
        assert answered > 5, "each has waited for a write"
        value = client.call("GET", "n")
        wait_until(lambda: server.info("persistence")["aof_buffer_length"] == "0")
        server.kill()
        server.disk()
        with server.start().client() as after:
            assert after.call("GET", "n") == value


def test_a_write_that_is_stuck_for_long_is_waited_for() -> None:
    """After two seconds the server waits, so that what is not written does not fill the memory."""
    rules = (
        Rule("fdatasync", "incr", times=1, delay_s=4.0),
        Rule("write", "incr", during="fdatasync", delay_s=3.0),
    )
    with faulty_server("everysec", *rules) as server, server.client() as client:
        client.call("SET", "first", "1")
        wait_until(lambda: server.info("persistence")["aof_pending_bio_fsync"] == "1")
        append_until_delayed(client, server)
        value = client.call("GET", "n")
        server.kill()
        server.disk()
        with server.start().client() as after:
            assert after.call("GET", "n") == value


def test_waitaof_waits_for_the_sync() -> None:
    with slow_disk("everysec", 0.3) as server, server.client() as client:
        for number in range(3):
            before = server.syncs()
            client.call("SET", "k", number)
            assert client.call_parsed("WAITAOF", 1, 0, 20_000) == [1, 0]
            assert server.syncs() > before
        assert client.call_parsed("WAITAOF", 1, 0, 0) == [1, 0]  # nothing has been written since
        server.disk(Rule("fdatasync", delay_s=HELD_S))
        client.call("SET", "k", "late")
        assert client.call_parsed("WAITAOF", 1, 0, 50) == [0, 0]
        replies = client.pipeline(("MULTI",), ("SET", "k", "1"), ("WAITAOF", 1, 0, 0), ("EXEC",))
        assert replies[-1].endswith(b"*2\r\n:0\r\n:0\r\n")
        server.disk()


def test_waitaof_waits_in_vain_where_nobody_syncs() -> None:
    with slow_disk("no", 0.0) as server, server.client() as client:
        client.call("SET", "k", "1")
        assert client.call_parsed("WAITAOF", 1, 0, 50) == [0, 0]
        client.send_command("WAITAOF", 1, 0, 0)
        server.call("CONFIG", "SET", "appendfsync", "always")
        server.call("SET", "k", "2")
        assert client.read() == b"*2\r\n:1\r\n:0\r\n"


def test_syncs_wait_for_a_rewrite_where_that_is_asked_for() -> None:
    """no-appendfsync-on-rewrite: a busy disk is left to the rewrite, and synced after it."""
    base = Rule("fsync", "temp-rewriteaof", delay_s=HELD_S)
    options = ("--no-appendfsync-on-rewrite", "yes")
    with faulty_server("always", base, options=options) as server, server.client() as client:
        client.call("SET", "k", "1")
        server.call("BGREWRITEAOF")
        wait_until(lambda: server.info("persistence")["aof_rewrite_in_progress"] == "1")
        before = server.syncs()
        for _ in range(30):
            assert client.call("SET", "k", "2") == b"+OK\r\n"
        assert server.info("persistence")["aof_rewrite_in_progress"] == "1"
        # Some as the rewrite begins to go on in another file.
        assert server.syncs() - before <= 5
        server.disk()
        wait_until(lambda: server.info("persistence")["aof_rewrite_in_progress"] == "0")
        after = server.syncs()
        client.call("SET", "k", "3")
        wait_until(lambda: server.syncs() > after)


@pytest.mark.parametrize("policy", ["always", "everysec", "no"])
def test_a_rewrite_begins_without_a_stop(policy: str) -> None:
    """However long the old file takes to sync, whoever writes and reads nothing is answered."""
    with slow_disk(policy, 0.02) as server, server.client() as client:
        client.call("MSET", *itertools.chain(*[(f"k{number}", "v") for number in range(2000)]))
        warm_up(client)
        written: list[int] = []

        def write() -> None:
            with server.client() as writer:
                while server.info("persistence")["aof_rewrite_in_progress"] == "1":
                    written.append(int(writer.call("INCR", "n")[1:]))

        server.disk(Rule("fdatasync", ".incr.", delay_s=HELD_S))
        client.call("BGREWRITEAOF")
        writing = threading.Thread(target=write)
        writing.start()
        for _ in range(1000):
            assert client.call("PING") == b"+PONG\r\n"
        server.disk()
        writing.join(DEADLINE_S)
        assert not writing.is_alive()
        server.restart(crash=True)
        assert server.call("GET", "n") == b"%d" % len(written)
        assert written == list(range(1, len(written) + 1))
        assert server.call("DBSIZE") == 2002


def test_a_power_cut_as_a_rewrite_begins_loses_nothing() -> None:
    """Records go to the new file by then, and a part of the old one is not on the disk."""
    chance = random.Random(1)
    with slow_disk("always", 0.05) as server:
        load = Load(server, 2, chance)
        for _ in range(3):
            load.begin()
            load.wait_for_steps(5)
            manifest = server.directory / "appendonlydir" / "appendonly.aof.manifest"
            before = manifest.read_text()
            server.call("BGREWRITEAOF")
            wait_until_changed(manifest, before)
            load.wait_for_steps(chance.randrange(3))
            server.cut_power()
            load.end()
            server.start()
            load.check()


def wait_until_changed(path: Path, known: str) -> None:
    wait_until(lambda: path.read_text() != known)


@pytest.mark.parametrize("policies", [["always"], ["everysec"], ["always", "everysec", "no"]])
def test_many_clients_at_once(policies: list[str]) -> None:
    """Pipelines, reads and writes mixed, also while the policy changes: each its own replies."""
    rules = (
        Rule("fdatasync", delay_s=0.01),
        Rule("write", "incr", during="fdatasync", delay_s=0.002),
    )
    with faulty_server(policies[0], *rules) as server:
        trouble: list[str] = []

        def work(name: str) -> None:
            with server.client() as client:
                for number in range(1, 60):
                    replies = client.pipeline(("INCR", name), ("GET", name), ("ECHO", name))
                    value = str(number).encode()
                    echo = b"$%d\r\n%b\r\n" % (len(name), name.encode())
                    bulk = b"$%d\r\n%b\r\n" % (len(value), value)
                    if replies != [b":%b\r\n" % value, bulk, echo]:
                        trouble.append(f"{name} {number}: {replies!r}")

        threads = [threading.Thread(target=work, args=(f"client{n}",)) for n in range(8)]
        for thread in threads:
            thread.start()
        with server.client() as client:
            for policy in itertools.cycle(policies):
                if not any(thread.is_alive() for thread in threads):
                    break
                assert client.call("CONFIG", "SET", "appendfsync", policy) == b"+OK\r\n"
        for thread in threads:
            thread.join(DEADLINE_S)
            assert not thread.is_alive()
        assert not trouble


@pytest.mark.parametrize("policy", ["always", "everysec", "no"])
def test_a_long_record_is_written_beside_the_others(policy: str) -> None:
    """Who asks of the connection does not wait for the disk; all that tell of data do."""
    keys = [f"k{number}" for number in range(20_000)]
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(faulty_server(policy))
        one, two, three = [stack.enter_context(server.client()) for _ in range(3)]
        one.call("MSET", *(word for key in keys for word in (key, "v")))
        wait_until(lambda: server.info("persistence")["aof_pending_bio_fsync"] == "0")
        server.disk(Rule("write", "incr", delay_s=HELD_S))
        one.send_command("DEL", *keys)
        wait_until(server.is_held)
        two.send_command("EXISTS", *keys[:3])
        two.send(encode("SET", "after", 1) + encode("PING"))
        for _ in range(20):
            assert three.call("PING") == b"+PONG\r\n"
        assert one.silent(0.05)
        assert two.silent(0.05)
        server.disk()
        assert one.read() == b":20000\r\n"
        assert [two.read() for _ in range(3)] == [b":0\r\n", b"+OK\r\n", b"+PONG\r\n"]
        if policy == "always":
            server.cut_power()
        else:
            server.kill()
        server.start()
        with server.client() as client:
            assert client.call("EXISTS", *keys, "after") == b":1\r\n"
