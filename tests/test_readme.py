"""README and the guides say what is true: snippets run, commands, files and targets exist."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from support.build import ROOT, environment
from support.process import RedisProcess, ServerProcess
from support.tools import tool
from support.waiting import wait_until

PAGES = (
    "README.md",
    "docs/first-steps.md",
    "docs/consumer-groups.md",
    "docs/idempotent-producers.md",
    "docs/policies.md",
)
README = (ROOT / "README.md").read_text()
OPERATIONS = (ROOT / "docs/operations.md").read_text()
TOOLS = ("check-aof", "check-snapshot", "export", "import")
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


_ONLY_OURS: Final = {
    *("AA", "XACKF", "XCOUNT", "XIDMP", "XLOOK", "XNACKIN", "XPOLICY", "XREAD-GROUP", "XREDRIVE"),
    "XSPLIT",
}


def commands_told() -> set[str]:
    """The commands that docs/commands.md says are there, without subcommands."""
    text = (ROOT / "docs" / "commands.md").read_text()
    tables, _, ours = text.partition("\n## Not in Redis\n")
    rows = re.findall(r"^\| ([A-Z][^ |]*)[^|]*\|[^|]*\| (.*) \|$", tables, re.MULTILINE)
    there = {name for name, remark in rows if not remark.startswith("**no**")}
    return there | {
        name for name in re.findall(r"\b[A-Z][A-Z0-9_-]+\b", ours) if name in _ONLY_OURS
    }


def test_the_tables_name_exactly_the_commands_there_are(server: ServerProcess) -> None:
    listed = server.call("COMMAND", "LIST")
    assert isinstance(listed, list)
    there = {name.decode().upper() for name in listed if b"|" not in name}
    told = commands_told()
    assert sorted(told - there) == [], "told, but not there"
    assert sorted(there - told) == [], "there, but not told"


def table_of_parameters() -> list[tuple[str, str]]:
    """Each parameter with the default that is told; a row may hold several of both."""
    section = OPERATIONS.partition("## Configure")[2].partition("\n## ")[0]
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
    told = table_of_parameters()
    assert len(told) > 10
    for name, default in told:
        name = "stream-node-max-bytes" if name == "-bytes" else name
        reply = server.call("CONFIG", "GET", name)
        assert isinstance(reply, list), name
        assert len(reply) == 2, name
        if name not in ("port", "dir"):  # the test's own
            assert reply[1].decode() == default, name


def tools_shown(page: str) -> list[list[str]]:
    """The words behind ``headrace`` of each line that runs one of the tools on files."""
    lines = [
        shlex.split(line, comments=True)
        for body in snippets(page, "sh")
        for line in body.splitlines()
    ]
    return [words[1:] for words in lines if words[:1] == ["headrace"] and words[1] in TOOLS]


@pytest.mark.judge
def test_the_tools_that_are_shown(
    fresh_server: Callable[..., ServerProcess],
    fresh_redis: Callable[..., RedisProcess],
    tmp_path: Path,
) -> None:
    """Each line as it stands, in a folder of its own; what it reads are the test's own data."""
    ours = fresh_server("--appendonly", "yes")
    real = fresh_redis("--appendonly", "yes")
    for server in (ours, real):
        server.call("XADD", "rides", "1-1", "driver", "ada")
        server.call("SAVE")
        server.stop()
    shown = tools_shown("docs/operations.md") + tools_shown("docs/from-redis.md")
    assert {words[0] for words in shown} == set(TOOLS)
    for number, words in enumerate(shown):
        here = tmp_path / str(number)
        here.mkdir()
        for old, folder in (("/srv/headrace", ours.directory), ("/var/lib/redis", real.directory)):
            words = [word.replace(old, str(folder)) for word in words]
        if "|" in words:
            words = words[: words.index("|")]
        done = tool(*words, folder=here)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        if words[0] == "import":
            again = fresh_server("--appendonly", "yes", directory=here / "new")
            assert again.call("XLEN", "rides") == 1


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
            shown, _ = reader.communicate(timeout=60)
        finally:
            reader.kill()
    assert shown.split() == ["rides", "1-1", "driver", "ada"]


def test_links_lead_somewhere() -> None:
    for page in prose():
        for target, anchor in re.findall(r"\]\((?!http)([^)#]*)(?:#([^)]*))?\)", page.read_text()):
            leads_to = page.parent / target if target else page
            assert leads_to.exists(), f"{page.name}: {target}"
            if anchor:
                assert anchor in anchors(leads_to), f"{page.name}: {target}#{anchor}"


def anchors(page: Path) -> set[str]:
    """The names that GitHub gives to a page's headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


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


def test_sources_that_are_named_exist() -> None:
    named = 0
    for page in prose():
        for path in re.findall(
            r"`((?:compat|docker|headrace|persistence|protocol|server|storage)/[\w/-]*(?:\.\w+)?)`",
            page.read_text(),
        ):
            assert (ROOT / path).exists(), f"{page.name}: {path}"
            named += 1
    assert named > 30


def prose() -> list[Path]:
    """Every page that people write."""
    guides = [*(ROOT / "docs").glob("*.md"), *(ROOT / "examples").glob("*/README.md")]
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *guides]


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
    named = 0
    for page in prose():
        lines = "".join(snippets(str(page.relative_to(ROOT)), "sh"))
        told = re.findall(r"^make ([a-z-]+)", lines, re.MULTILINE)
        told += re.findall(r"`make(?: -C \S+)? ([a-z-]+)", page.read_text())
        assert set(told) <= targets, page.name
        named += len(told)
    assert named > 30
