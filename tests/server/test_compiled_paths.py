"""What requests run through is compiled: setup.py leaves only modules in Python that rarely run."""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from pathlib import Path

import pytest
from conftest import Factory

from support.build import location
from support.waiting import wait_until

pytestmark = pytest.mark.skipif(
    os.environ.get("HEADRACE_EXPECT_BUILD") != "compiled", reason="looks at the compiled build"
)

# Between two signals, notes each function that runs as Python.
DRIVER = """\
import signal, sys
from headrace.server.cli import main

met = []

def note(frame, event, argument):
    if event == "call":
        met.append(frame.f_code.co_filename + ":" + frame.f_code.co_qualname)

def on_signal(*_):
    if sys.getprofile() is None:
        sys.setprofile(note)
        text = "begun"
    else:
        sys.setprofile(None)
        text = "\\n".join(met)
    with open("met.new", "w") as file:
        file.write(text)
    import os
    os.rename("met.new", "met")

signal.signal(signal.SIGUSR1, on_signal)
sys.exit(main())
"""
ROUNDS = 50
COMMANDS = [
    ("PING",),
    ("SET", "k", "v", "EX", "100"),
    ("GET", "k"),
    ("INCR", "n"),
    ("XADD", "s", "*", "f", "v"),
    ("XADD", "s", "IDMPAUTO", "p", "*", "f", "v"),
    ("XLEN", "s"),
    ("XRANGE", "s", "-", "+", "COUNT", "10"),
    ("XREAD", "COUNT", "1", "STREAMS", "s", "0"),
    ("XREADGROUP", "GROUP", "g", "c", "COUNT", "1", "STREAMS", "s", ">"),
    ("XACK", "s", "g", "1-1"),
    ("XTRIM", "s", "MAXLEN", "~", "1000"),
    ("EXPIRE", "k", "100"),
    ("MULTI",),
    ("XADD", "s", "*", "f", "v"),
    ("EXEC",),
    ("PUBLISH", "channel", "message"),
]


def test_no_request_runs_through_python(fresh_server: Factory) -> None:
    server = fresh_server("--appendonly", "yes", start=False)
    server.command = lambda: [sys.executable, "-P", "-c", DRIVER]  # type: ignore[method-assign]
    server.start()
    met = server.directory / "met"
    with server.client() as client:
        client.call("XGROUP", "CREATE", "s", "g", "0", "MKSTREAM")
        server.signal(signal.SIGUSR1)
        wait_until(met.exists)
        for _ in range(ROUNDS):
            for command in COMMANDS:
                reply = client.call(*command)
                assert not reply.startswith(b"-"), (command, reply)
        met.unlink()
        server.signal(signal.SIGUSR1)
        wait_until(met.exists)
    ours = [line for line in met.read_text().splitlines() if Path(line).is_relative_to(location())]
    frequent = {name: count for name, count in Counter(ours).items() if count >= ROUNDS}
    assert frequent == {}
