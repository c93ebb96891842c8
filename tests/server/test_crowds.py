"""Thousands who wait at once: what they cost others, and what is left when they leave."""

from __future__ import annotations

import contextlib
import resource
import socket

from conftest import Factory

from support.client import encode, parse
from support.process import ServerProcess
from support.scene import Scene
from support.waiting import DEADLINE_S

CROWD = 5_000


class Crowd:
    """Many connections that send a request and wait."""

    def __init__(self, port: int, size: int) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft < size + 200:
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, size + 200), hard))
        self.sockets: list[socket.socket] = []
        for _ in range(size):
            self.sockets.append(socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S))

    def send(self, *words: str) -> None:
        for sock in self.sockets:
            sock.sendall(encode(*words))

    def close(self) -> None:
        for sock in self.sockets:
            sock.close()


def spent_per_add(scene: Scene, first_ms: int) -> float:
    """The server's processor time for 2,000 XADDs in one write, the fastest of five rounds."""
    best = 1e9
    for number in range(5):
        start = first_ms + number * 2000
        wire = b"".join(encode("XADD", "s", f"{start + n}-0", "f", "v") for n in range(2000))
        started = scene.server.cpu_s()
        scene.actor.send(wire)
        for _ in range(2000):
            scene.actor.read()
        best = min(best, scene.server.cpu_s() - started)
    return best


def test_a_crowd_that_waits_for_something_else_costs_nothing(fresh_server: Factory) -> None:
    server = fresh_server("--maxclients", "6000", debug=False)
    assert isinstance(server, ServerProcess)
    scene = Scene(server)
    alone_s = spent_per_add(scene, 1)
    crowd = Crowd(server.port, CROWD)
    with contextlib.closing(crowd):
        crowd.send("XREAD", "BLOCK", "0", "STREAMS", "s", "1000000")
        scene.wait_for_blocked(CROWD)
        beside_s = spent_per_add(scene, 20_000)
        assert scene.blocked() == CROWD
        assert beside_s < 2 * alone_s + 0.05, (alone_s, beside_s)

        waiter = scene.waiter()
        scene.block(waiter, "XREAD", "BLOCK", 0, "STREAMS", "s", "$")
        scene.do("XADD", "s", "40000-0", "f", "v")
        assert waiter.read_parsed() == [[b"s", [[b"40000-0", [b"f", b"v"]]]]]
        assert scene.blocked() == CROWD

        scene.do("XADD", "s", "1000000-1", "f", "v")
        assert scene.blocked() == 0
        wanted = [[b"s", [[b"1000000-1", [b"f", b"v"]]]]]
        for sock in crowd.sockets:
            assert parse(sock.recv(1000)) == wanted
    scene.close()


def test_a_crowd_that_leaves_at_once(fresh_server: Factory) -> None:
    server = fresh_server("--maxclients", "6000", debug=False)
    assert isinstance(server, ServerProcess)
    scene = Scene(server)
    began_s = server.cpu_s()
    crowd = Crowd(server.port, CROWD)
    scene.do("SET", "watched", 1)
    crowd.send("WATCH", "watched")
    crowd.send("XREAD", "BLOCK", "600000", "STREAMS", "s", "t", "$", "$")
    scene.wait_for_blocked(CROWD)
    assert scene.figure("total_blocking_keys") == 2
    blocked_s = server.cpu_s()
    crowd.close()
    scene.wait_for_blocked(0)
    assert server.cpu_s() - blocked_s < 3 * (blocked_s - began_s), (
        "to leave costs more than to come"
    )
    assert scene.figure("total_blocking_keys") == 0
    assert scene.figure("clients_in_timeout_table") == 0
    scene.close()
