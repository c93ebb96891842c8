"""Scrapes: what a server says at its metrics-port, and what redis_exporter says of it."""

from __future__ import annotations

import http.client
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from support.process import ServerProcess, free_port
from support.waiting import wait_until

OPENMETRICS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
EXPORTER = shutil.which("prometheus-redis-exporter")
PROMTOOL = shutil.which("promtool")

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def get(port: int, path: str = "/metrics", method: str = "GET", **headers: str) -> tuple[int, str]:
    """The status and the text of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def scrape(port: int) -> str:
    status, page = get(port)
    assert status == 200, page
    return page


def samples(page: str) -> Samples:
    """The values of a page in the text format, by name and labels."""
    from prometheus_client.parser import text_string_to_metric_families

    # The parser would give these another name.
    page = re.sub(
        r"^# TYPE (\w+)(?<!_total) counter$", r"# TYPE \1 untyped", page, flags=re.MULTILINE
    )
    found: Samples = {}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            place = (sample.name, frozenset(sample.labels.items()))
            assert place not in found, place
            found[place] = sample.value
    return found


def value(page: str, name: str, **labels: str) -> float:
    return samples(page)[name, frozenset(labels.items())]


def names(page: str) -> set[str]:
    return {name for name, _ in samples(page)}


@contextmanager
def exporter(server: ServerProcess) -> Iterator[int]:
    """redis_exporter, which looks at a server; the port at which it is scraped."""
    assert EXPORTER is not None
    port = free_port()
    address = ("-web.listen-address", f"127.0.0.1:{port}")
    looks = ("-redis.addr", f"redis://127.0.0.1:{server.port}", "-check-streams", "*")
    with subprocess.Popen(
        [EXPORTER, *address, *looks], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            wait_until(lambda: _answers(port))
            yield port
        finally:
            process.kill()


def _answers(port: int) -> bool:
    try:
        return get(port, "/health")[0] == 200
    except OSError:
        time.sleep(0.02)
        return False
