"""Clients of all kinds over encrypted connections, each as its own documentation has it."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator

import pytest
import redis
import redis.asyncio

from support.certificates import Certificates
from support.process import ServerProcess, claim_port
from support.programs import program
from support.waiting import DEADLINE_S


@pytest.fixture(scope="module")
def tls_port(certificates: Certificates) -> Iterator[int]:
    """Return where a server awaits encrypted connections, and nothing else."""
    port, claim = claim_port()
    with claim, ServerProcess("--tls-port", str(port), *certificates.options()):
        yield port


def test_redis_cli(tls_port: int, certificates: Certificates) -> None:
    def cli(*words: str, given: str = "") -> str:
        done = subprocess.run(
            [program("redis-cli"), "-p", str(tls_port), *certificates.cli_options(), *words],
            input=given,
            capture_output=True,
            text=True,
            check=True,
            timeout=30,
        )
        return done.stdout

    assert cli("--sni", "localhost", "SET", "k", "v") == "OK\n"
    assert cli("-3", "GET", "k") == "v\n"
    many = "".join([f"SET key:{number} {number}\r\n" for number in range(50_000)])
    assert "errors: 0, replies: 50000" in cli("--pipe", given=many)
    assert cli("DBSIZE") == "50001\n"


def test_redis_benchmark(tls_port: int, certificates: Certificates) -> None:
    done = subprocess.run(
        [
            *(program("redis-benchmark"), "-p", str(tls_port), *certificates.cli_options()),
            *("-n", "20000", "-P", "16", "-t", "set,get,lpush", "--csv"),
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.count("\n") >= 3, done.stdout


def test_redis_py(tls_port: int, certificates: Certificates) -> None:
    with redis.Redis(
        host="localhost",
        port=tls_port,
        ssl=True,
        ssl_ca_certs=str(certificates.authority.file),
        ssl_certfile=str(certificates.client.file),
        ssl_keyfile=str(certificates.client.key),
        decode_responses=True,
    ) as client:
        assert client.set("k", "v" * 100_000)
        assert client.get("k") == "v" * 100_000
        with client.pipeline() as pipeline:
            for number in range(1000):
                pipeline.rpush("l", number)
            assert pipeline.execute() == list(range(1, 1001))
        listener = client.pubsub(ignore_subscribe_messages=True)
        listener.subscribe("c")
        client.publish("c", "hello")
        told = [listener.get_message(timeout=DEADLINE_S), listener.get_message(timeout=DEADLINE_S)]
        assert "hello" in [message["data"] for message in told if message]
        listener.close()


async def test_redis_py_asyncio(tls_port: int, certificates: Certificates) -> None:
    url = (
        f"rediss://localhost:{tls_port}?ssl_ca_certs={certificates.authority.file}"
        f"&ssl_certfile={certificates.client.file}&ssl_keyfile={certificates.client.key}"
    )
    async with redis.asyncio.from_url(url, protocol=3) as client:
        await client.delete("queue")
        waiting = asyncio.ensure_future(client.blpop(["queue"], timeout=10))
        await client.rpush("queue", "x")
        assert await waiting == [b"queue", b"x"]
