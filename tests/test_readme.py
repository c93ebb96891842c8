"""README and the guides say what is true: snippets run, commands, files and targets exist."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable

import pytest

from support.build import ROOT, environment
from support.process import ServerProcess
from support.waiting import wait_until

PAGES = ("README.md", "docs/consumer-groups.md", "docs/idempotent-producers.md")
README = (ROOT / "README.md").read_text()
MAKEFILE = (ROOT / "Makefile").read_text()
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CHOSEN_ID = re.compile(r"\b\d{13}-\d+\b")


def snippets(page: str, language: str) -> list[str]:
    return [body for name, body in FENCE.findall((ROOT / page).read_text()) if name == language]


def dialogue(body: str) -> list[tuple[str, str]]:
    """The commands of a console snippet, each with the output it shows."""
    steps: list[tuple[str, str]] = []
    for line in body.splitlines():
        if line.startswith("$ "):
            steps.append((line[2:], ""))
        else:
            command, output = steps[-1]
            steps[-1] = (command, f"{output}{line}\n")
    return steps


def without_chosen_ids(text: str) -> str:
    return CHOSEN_ID.sub("<id>", text)


def need(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed")
    return found


@pytest.mark.parametrize("page", PAGES)
def test_console_snippets(page: str, fresh_server: Callable[..., ServerProcess]) -> None:
    need("redis-cli")
    server = fresh_server()
    steps = [step for body in snippets(page, "console") for step in dialogue(body)]
    assert len(steps) > 5
    for command, output in steps:
        program, *words = shlex.split(command)
        assert program == "redis-cli", command
        done = subprocess.run(
            ["redis-cli", "-p", str(server.port), "--no-raw", *words],
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
        assert without_chosen_ids(done.stdout) == without_chosen_ids(output), command


@pytest.mark.parametrize("body", [body for page in PAGES for body in snippets(page, "python")])
def test_python_snippets(body: str, fresh_server: Callable[..., ServerProcess]) -> None:
    """A ``print`` shows in its comment what it prints."""
    server = fresh_server()
    shown = re.findall(r"print\(.*\)  # (.*)$", body, re.MULTILINE)
    assert shown
    done = subprocess.run(
        [sys.executable, "-P", "-c", body.replace("6379", str(server.port))],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == shown


def table_of_commands() -> set[str]:
    section = README.partition("## What is supported")[2].partition("\n## ")[0]
    rows = [line.split("|")[2] for line in section.splitlines() if line.startswith("| ")][1:]
    return {name for row in rows for name in re.findall(r"\b[A-Z][A-Z0-9_-]+\b", row)}


def test_the_table_names_exactly_the_commands_there_are(server: ServerProcess) -> None:
    listed = server.call("COMMAND", "LIST")
    assert isinstance(listed, list)
    there = {name.decode().upper() for name in listed if b"|" not in name}
    told = table_of_commands()
    assert sorted(told - there) == [], "told, but not there"
    assert sorted(there - told) == [], "there, but not told"


def table_of_parameters() -> list[tuple[str, str]]:
    """Each parameter with the default that is told; a row may hold several of both."""
    section = README.partition("## Configure")[2].partition("\n## ")[0]
    told: list[tuple[str, str]] = []
    for line in section.splitlines():
        if line.startswith("| `"):
            names, defaults = (re.findall(r"`([^`]+)`", cell) for cell in line.split("|")[1:3])
            if len(names) > len(defaults):
                defaults += [""] * (len(names) - len(defaults))
            told += zip(names, defaults, strict=False)
    return told


def test_parameters_and_their_defaults(fresh_server: Callable[..., ServerProcess]) -> None:
    server = fresh_server()
    for name, default in table_of_parameters():
        name = "stream-node-max-bytes" if name == "-bytes" else name
        reply = server.call("CONFIG", "GET", name)
        assert isinstance(reply, list), name
        assert len(reply) == 2, name
        if name not in ("port", "dir"):  # the test's own
            assert reply[1].decode() == default, name


def test_the_reader_in_a_second_terminal(fresh_server: Callable[..., ServerProcess]) -> None:
    found = re.search(r"`(XREAD BLOCK [^`]+)`", README)
    assert found is not None
    server = fresh_server()
    with subprocess.Popen(
        [need("redis-cli"), "-p", str(server.port), *shlex.split(found[1])],
        stdout=subprocess.PIPE,
        text=True,
    ) as reader:
        try:
            wait_until(lambda: server.info("clients")["blocked_clients"] == "1")
            server.call("XADD", "rides", "1-1", "driver", "ada")
            shown, _ = reader.communicate(timeout=10)
        finally:
            reader.kill()
    assert shown.split() == ["rides", "1-1", "driver", "ada"]


def test_links_lead_somewhere() -> None:
    pages = [*(ROOT / "docs").glob("*.md"), *(ROOT / "examples").glob("*/README.md")]
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *pages):
        for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_tests_that_are_named_exist() -> None:
    named = 0
    for page in (ROOT / "docs").glob("*.md"):
        text = page.read_text()
        for path, name in re.findall(r"(tests/[\w/]+\.py)::(\w+)", text):
            assert f"\ndef {name}(" in (ROOT / path).read_text(), f"{page.name}: {path}::{name}"
            named += 1
        for path in re.findall(r"\btests/[\w/]+\.py\b", text):
            assert (ROOT / path).exists(), f"{page.name}: {path}"
    assert named > 30


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
    for page in (README, (ROOT / "CONTRIBUTING.md").read_text()):
        told = re.findall(r"^make ([a-z]+)|`make(?: -C \S+)? ([a-z]+)", page, re.MULTILINE)
        assert {first or second for first, second in told} <= targets
