"""``headrace console`` as a subprocess, and streams for it to show."""

from __future__ import annotations

import json
import re
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import httpx

from support import build
from support.client import RawClient
from support.process import Process, free_port
from support.waiting import wait_until

TOKEN = re.compile(r'name="token" value="([^"]+)"')
NAMES = "ada grace linus barbara edsger katherine alan margaret".split()
CITIES = "Lisbon Bergen Graz Porto Ghent Turku Leeds Basel".split()


class Console:
    """A console with a port of its own, and one visitor.

    Args:
        url: of the server that it shows.
        options: its command line besides.
        password: that it asks for; empty for none.
    """

    def __init__(self, url: str, *options: str, password: str = "", verify: str = "") -> None:
        self.port = free_port()
        self.scheme = "https" if "--tls-cert" in options else "http"
        command = [sys.executable, "-P", "-m", "headrace", "console", "--url", url]
        command += ["--port", str(self.port), *options]
        environment = build.environment() | {"HEADRACE_CONSOLE_PASSWORD": password}
        with tempfile.NamedTemporaryFile(prefix="headrace-console-", delete=False) as log:
            self.log_path = Path(log.name)
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment
            )
        self.home = f"{self.scheme}://127.0.0.1:{self.port}/"
        self.visitor = self.another(verify)

    def another(self, verify: str = "") -> httpx.Client:
        """A visitor with cookies of its own."""
        trust = ssl.create_default_context(cafile=verify) if verify else True
        return httpx.Client(base_url=self.home, timeout=60, verify=trust)

    def __enter__(self) -> Self:
        wait_until(lambda: self._listens() or self.process.poll() is not None)
        assert self.process.poll() is None, self.log()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.visitor.close()
        self.process.terminate()
        self.process.wait(30)
        log = self.log()
        self.log_path.unlink()
        assert "Traceback" not in log, log

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def log(self) -> str:
        return self.log_path.read_text()

    def get(self, place: str, status: int = 200) -> str:
        """The text of a page, which has to have this status."""
        answer = self.visitor.get(place)
        assert answer.status_code == status, (place, answer.status_code, answer.text[-2000:])
        return answer.text

    def token(self) -> str:
        """What forms of this visitor have to send."""
        key = self.visitor.get("trim?key=orders").text
        found = TOKEN.search(key)
        assert found, key
        return found[1]

    def post(self, place: str, **fields: str | list[str]) -> httpx.Response:
        """Send a form with the token that belongs to it; follow where it leads."""
        form: dict[str, str | list[str]] = {"token": self.token(), **fields}
        return self.visitor.post(place, data=form, follow_redirects=True)


class Shop(NamedTuple):
    """A server with the streams of a shop, and a console that shows it."""

    server: Process
    console: Console
    ours: bool


def furnish(client: RawClient, ours: bool) -> None:
    """Streams as a shop has them: one group stuck, one behind, some dead letters."""
    call = client.call_parsed
    now_ms = int(time.time() * 1000)
    for n in range(240):
        fields = {
            "order": str(48_000 + n),
            "customer": NAMES[n % 8],
            "city": CITIES[n * 5 % 8],
            "total": f"{(n * 37) % 400 + 9}.50",
            "items": json.dumps([{"sku": f"A-{n % 17}", "count": n % 3 + 1}]),
        }
        flat = [part for pair in fields.items() for part in pair]
        call("XADD", "orders", f"{now_ms - 7_200_000 + n * 29_000}-0", *flat)
    call("XGROUP", "CREATE", "orders", "billing", "0")
    call("XGROUP", "CREATE", "orders", "shipping", "0")
    if ours:
        call(
            *("XPOLICY", "SET", "orders", "GROUP", "billing", "delivery-limit", "5"),
            *("dead-letter-key", "orders.dead", "retry-delay", "1s,30s"),
        )
        call("XPOLICY", "SET", "orders", "max-len", "1000000")
    call("XREADGROUP", "GROUP", "billing", "billing-1", "COUNT", 6, "STREAMS", "orders", ">")
    if ours:
        pending = call("XPENDING", "orders", "billing", "-", "+", 4)
        assert isinstance(pending, list)
        call("XNACK", "orders", "billing", "FATAL", "IDS", 4, *(row[0] for row in pending))
    call("XREADGROUP", "GROUP", "billing", "billing-1", "COUNT", 218, "STREAMS", "orders", ">")
    call("XREADGROUP", "GROUP", "shipping", "shipper-a", "COUNT", 150, "STREAMS", "orders", ">")
    rows = call("XPENDING", "orders", "billing", "-", "+", 300)
    assert isinstance(rows, list)
    ids = [row[0] for row in rows]
    call("XACK", "orders", "billing", *ids[9:-4])
    for at, entry_id in enumerate(ids[:9]):
        idle = ("IDLE", 1_340_000 - at * 71_000, "RETRYCOUNT", 4 - at // 3)
        call("XCLAIM", "orders", "billing", "billing-2", 0, entry_id, *idle)
    rows = call("XPENDING", "orders", "shipping", "-", "+", 300)
    assert isinstance(rows, list)
    call("XACK", "orders", "shipping", *(row[0] for row in rows))
    call("XGROUP", "CREATECONSUMER", "orders", "billing", "billing-3")
    for name, count in (("payments", 90), ("emails", 40), ("clicks", 400), ("invoices.pdf", 5)):
        for n in range(count):
            value = "x" * (9_000 if name == "invoices.pdf" else 20)
            call("XADD", name, f"{now_ms - 90_000 * (count - n)}-0", "n", n, "note", value)
    for name, group, read in (
        ("payments", "ledger", 90),
        ("emails", "smtp", 31),
        ("clicks", "stats", 12),
    ):
        call("XGROUP", "CREATE", name, group, "0")
        words = ("COUNT", read, "NOACK", "STREAMS", name, ">")
        call("XREADGROUP", "GROUP", group, f"{group}-1", *words)
    for n in range(9):
        call("XADD", f"audit:2026-{n + 1:02}", f"{now_ms - (9 - n) * 2_592_000_000}-0", "by", "ada")
