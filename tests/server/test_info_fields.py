"""INFO and MEMORY STATS beside Redis 8.10: the same sections, the same names in the same order."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from conftest import Factory

from support.process import Pair, RedisProcess

pytestmark = [pytest.mark.once, pytest.mark.since(8, 10)]

# Names that one of the two has alone.
OURS = re.compile("headrace_")
THEIRS = ("module",)  # one that comes with Redis: there are none here
# Of the build.
BUILT = ("redis_git_sha1", "redis_build_id")
NUMBER = re.compile(r"-?\d+(\.\d+)?%?$")


@pytest.fixture
def both(fresh_server: Factory, fresh_redis: Factory) -> Iterator[Pair]:
    real = fresh_redis()
    assert isinstance(real, RedisProcess)
    pair = Pair.of(fresh_server("--save", ""), real)
    for words in (("SET", "k", "v"), ("RPUSH", "l", "1"), ("NOSUCH",), ("EVAL", "return 1", 0)):
        pair.ours.call(*words)
        pair.real.call(*words)
    yield pair
    pair.close()


def lines(text: object) -> list[str]:
    assert isinstance(text, bytes)
    return text.decode().split("\r\n")


def shown(client: object, *words: object) -> list[tuple[str, str]]:
    found = lines(client.call_parsed("INFO", *words))  # type: ignore[attr-defined]
    return [(name, value) for name, _, value in (line.partition(":") for line in found)]


def names(client: object, *words: object) -> list[str]:
    measured = ("cmdstat_", "latency_percentiles_")  # of commands that have been called
    return [
        name
        for name, _ in shown(client, *words)
        if name not in THEIRS and not OURS.match(name) and not name.startswith(measured)
    ]


@pytest.mark.parametrize(
    "words",
    [
        "",
        "everything",
        "all",
        "default",
        "commandstats default",
        "keyspace cpu CPU nosuch memory",
        "everything keyspace",
        "nosuch",
        "stats all",
    ],
)
def test_names(both: Pair, words: str) -> None:
    assert names(both.ours, *words.split()) == names(both.real, *words.split())


def test_kinds_of_values(both: Pair) -> None:
    """A number here is a number there, with as many digits behind the point."""
    ours, real = dict(shown(both.ours, "everything")), dict(shown(both.real, "everything"))

    def kind(value: str) -> str:
        found = NUMBER.match(value)
        if found is None:
            return "word"
        places = len(found[1] or "")
        return f"number with {places} places" + "%" * value.endswith("%")

    different = {
        name: (ours[name], value)
        for name, value in real.items()
        if name in ours and name not in BUILT and kind(ours[name]) != kind(value)
    }
    assert not different


def test_with_an_append_only_file(fresh_server: Factory, fresh_redis: Factory) -> None:
    ours, real = fresh_server("--appendonly", "yes"), fresh_redis("--appendonly", "yes")
    with ours.client() as our_client, real.client() as real_client:
        assert names(our_client, "persistence") == names(real_client, "persistence")


def test_memory_stats(both: Pair) -> None:
    ours, real = both.ours.call_parsed("MEMORY", "STATS"), both.real.call_parsed("MEMORY", "STATS")
    assert isinstance(ours, list)
    assert isinstance(real, list)
    assert ours[::2] == real[::2]


def test_clients_and_replication_are_in_what_is_used(fresh_server: Factory) -> None:
    """What stands in a part of the memory is in the whole of it, and in the overhead."""
    server = fresh_server("--save", "")
    with server.client() as replica, server.client() as client:
        replica.send_command("SYNC")
        while server.info("replication").get("slave0", "").find("state=online") < 0:
            pass
        before = server.info("memory")
        client.call("SET", "k", "v" * 500_000)
        client.call("DEL", "k")
        after = server.info("memory")
    for name in ("mem_replication_backlog", "mem_total_replication_buffers", "used_memory"):
        assert int(after[name]) - int(before[name]) > 400_000, name
    assert int(after["mem_clients_slaves"]) > 0
    assert int(after["used_memory_overhead"]) - int(before["used_memory_overhead"]) > 400_000
    assert int(after["used_memory_dataset"]) < 100_000
