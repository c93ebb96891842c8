"""Pages by bytes: what a reader holds does not depend on how large entries are."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyspark_headrace import paging
from pyspark_headrace.given import READ
from pyspark_headrace.ids import LEAST, parse_id
from pyspark_headrace.options import read_options
from pyspark_headrace.paging import Pages
from pyspark_headrace.resp import Link
from support import build, judges
from support.client import RawClient
from support.process import Process, RedisProcess

pytestmark = pytest.mark.once

MEGABYTE = 1 << 20
MOST_RESIDENT = 256 * MEGABYTE
READ_ALL = """
import re, sys
from pathlib import Path
from pyspark_headrace.offsets import Piece
from pyspark_headrace.given import READ
from pyspark_headrace.options import Frame, read_options
from pyspark_headrace.reader import read_pieces
from pyspark_headrace.shape import Shape, default_schema
frame = Frame(fields_format=sys.argv[2])
shape = Shape(default_schema(frame), frame, "permissive", "utf-8")
options = read_options({"port": sys.argv[1], "path": "s"}, READ)
rows = size = 0
for batch in read_pieces(options, shape, [Piece("s", (0, 0), (10**9, 0))]):
    rows += batch.num_rows
    size += batch.nbytes
peak = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())
print(rows, size, int(peak[1]) * 1024)
"""


def fill(client: RawClient, first: int, count: int, size: int) -> None:
    value = b"x" * size
    for low in range(first, first + count, 100):
        high = min(low + 100, first + count)
        client.pipeline(*[("XADD", "s", f"{n}-0", "document", value) for n in range(low, high)])


def read_all(server: Process, form: str) -> list[int]:
    """Read the stream in a process of its own: rows, bytes, and the most memory it had."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", READ_ALL, str(server.port), form],
        env=build.environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return list(map(int, done.stdout.split()))


def test_memory_stays_small_whatever_the_entries(every_server: Process) -> None:
    """Small entries first: then large ones come where pages have become long."""
    with every_server.client() as client:
        fill(client, 1, 20_000, 100)
        fill(client, 20_001, 150, MEGABYTE)
        fill(client, 20_151, 1000, 100)
        for form in ("map", "pairs", "json"):
            rows, size, resident = read_all(every_server, form)
            assert rows == 21_150
            assert size > 150 * MEGABYTE
            assert resident < MOST_RESIDENT, form
        client.call("DEL", "s")


@pytest.fixture
def link(every_server: Process) -> Link:
    return Link(read_options({"port": str(every_server.port), "path": "s"}, READ).connection)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sizes=st.lists(st.sampled_from([1, 50, 3000, 40_000]), min_size=1, max_size=40),
    low=st.integers(0, 41),
    high=st.integers(0, 45),
    count=st.integers(1, 60),
    most=st.integers(0, 5),
)
def test_pages_of_any_size_give_each_entry_once(
    every_server: Process,
    link: Link,
    monkeypatch: pytest.MonkeyPatch,
    sizes: list[int],
    low: int,
    high: int,
    count: int,
    most: int,
) -> None:
    monkeypatch.setattr(paging, "TARGET", 8192)
    monkeypatch.setattr(paging, "MOST", 16_384)
    with every_server.client() as client:
        client.call("DEL", "s")
        for number, size in enumerate(sizes, 1):
            client.call("XADD", "s", f"{number}-0", "f", b"\r\n" * (size // 2) + b"x")
    pages = Pages(link, "s", (low, 0), (high, 0), count, [("PING",)])
    found: list[int] = []
    while not pages.done:
        page, replies = pages.next(most)
        assert replies == [b"PONG"] or replies == ["PONG"]
        assert not most or len(page) <= most
        if not most:
            pages.ask_ahead()
        found += [parse_id(each)[0] for each in page.ids]
    assert found == [n for n in range(1, len(sizes) + 1) if low < n <= high]
    link.close()


def test_a_reader_hangs_up_where_the_server_does_not_limit_its_reply(
    redis_server: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging, "TARGET", 100_000)
    monkeypatch.setattr(paging, "MOST", 200_000)
    with redis_server.client() as client:
        fill(client, 1, 2000, 10)
        fill(client, 2001, 200, 100_000)
    link = Link(read_options({"port": str(redis_server.port), "path": "s"}, READ).connection)
    link.limits_replies = False
    pages = Pages(link, "s", LEAST, (10**9, 0), 2000)
    found: list[bytes] = []
    sizes: list[int] = []
    while not pages.done:
        page, _ = pages.next()
        sizes.append(len(page))
        found += page.ids
    assert len(found) == len(set(found)) == 2200
    assert sizes[:3] == [8, 64, 256]
    assert max(sizes[-50:]) == 1
    link.close()


def test_a_server_that_does_not_limit_its_reply_writes_a_bounded_one() -> None:
    """Entries that suddenly are 10,000 times as large: hundreds of MB of them were one reply."""
    program = judges.program_of("redis-8.0")
    with RedisProcess(program=program) as old, old.client() as client:
        fill(client, 1, 2000, 100)
        fill(client, 2001, 500, MEGABYTE)
        before = int(old.info("memory")["used_memory"])
        rows, _, resident = read_all(old, "map")
        assert rows == 2500
        assert resident < MOST_RESIDENT
        assert int(old.info("memory")["used_memory_peak"]) - before < 280 * MEGABYTE


def test_a_user_without_xread_reads_by_ranges(redis_server: Process) -> None:
    redis_server.call("ACL", "SETUSER", "eve", "on", "nopass", "~*", "+@all", "-xread")
    try:
        with redis_server.client() as client:
            fill(client, 1, 20, 10)
        options = read_options(
            {"port": str(redis_server.port), "username": "eve", "path": "s"}, READ
        )
        link = Link(options.connection)
        pages = Pages(link, "s", LEAST, (10**9, 0), 2000)
        assert sum(len(pages.next()[0]) for _ in range(2)) == 20
        assert not link.limits_replies
        link.close()
    finally:
        redis_server.call("ACL", "DELUSER", "eve")
