"""The recipe of docs/security.md, as it stands there."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

from conftest import Factory

from support.build import ROOT
from support.programs import program


def blocks() -> list[str]:
    """The commands and programs of the chapter, in order."""
    chapter = (ROOT / "docs" / "security.md").read_text().partition("\n## Encryption\n")[2]
    return re.findall(r"```(?:sh|python|js)\n(.*?)```", chapter, re.DOTALL)


def test_the_recipe(fresh_server: Factory, tmp_path: Path, tls_port: int) -> None:
    program("openssl")
    making, starting, python = blocks()[:3]
    subprocess.run(["sh", "-e", "-c", making], cwd=tmp_path, check=True, capture_output=True)
    start, call = starting.replace("\\\n", "").replace("6379", str(tls_port)).splitlines()
    options = shlex.split(start.replace("tls/", f"{tmp_path}/tls/"))[1:]
    server = fresh_server(*options, start=False)
    server.spawn()
    server.wait_for_log("Ready to accept connections")
    called = shlex.split(call)
    called[0:1] = [program("redis-cli"), "-p", str(tls_port)]
    done = subprocess.run(called, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout == "PONG\n"
    code = python.replace("6379", str(tls_port)).replace("client.ping()", "print(client.ping())")
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout == "True\n"
