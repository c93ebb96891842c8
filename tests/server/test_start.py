"""What the server imports before it listens: each module takes time and memory of every start."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Factory

from headrace.server.build import build_kind
from support import build
from support.process import ServerProcess

# What stays out until somebody asks for it, each with its reason.
LATE = {
    "_hashlib": "OpenSSL comes with it; only DEBUG DIGEST wants it",
    "_ssl": "OpenSSL comes with it; no connection is encrypted",
    "ast": "nobody looks into Python's text",
    "asyncio.sslproto": "encrypted connections are ours",
    "argparse": "tools read their arguments with it",
    "crcmod": "only a file of Redis's has such a sum",
    "ctypes": "the allocator is asked later, of some systems",
    "encodings.idna": "addresses are seldom in other scripts",
    "glob": "few configurations include others",
    "headrace.compat.doc_notation": "it is documentation",
    "headrace.compat.regex": "few ask ARGREP for regular expressions",
    "h11": "few let metrics be scraped",
    "headrace.console.cli": "another program",
    "headrace.metrics.wing": "few let metrics be scraped",
    "headrace.server.commands.server.cluster": "most servers are of no cluster",
    "headrace.testkit.debug": "few servers allow DEBUG",
    "headrace.server.commands.server.hotkeys": "few servers are asked for HOTKEYS",
    "headrace.server.config.docs": "it is documentation",
    "headrace.server.tools.cli": "another program, in a way",
    "headrace.server.scripting.engine": "many servers never run a script",
    "headrace.server.statistics.hot_keys": "few servers are asked for HOTKEYS",
    "importlib.metadata": "the version is known without it",
    "inspect": "the event loop looks at functions with it: ours are few, and known",
    "lupa": "many servers never run a script",
    "logging.handlers": "only a log file that is moved away wants it",
    "msgspec.inspect": "nobody asks msgspec about types",
    "prometheus_client": "few let metrics be scraped",
    "random": "few ask for a key by chance",
    "sortedcontainers": "readers after many different IDs want an order",
    "subprocess": "no programs are started",
    "syslog": "few want it",
    "tempfile": "CONFIG REWRITE makes a file by chance",
    "tqdm": "tools show how far they are",
    "typing_extensions": "msgspec does without it",
}
# What must be there already: without files, memory or time left, nothing can be imported.
EARLY = {
    "headrace.persistence.aof.file": "an append-only file may be turned on at any time",
    "headrace.persistence.snapshot.encoder": "the data is saved at the end",
    "headrace.server.durability.rewriting": "a rewrite begins by itself",
    "headrace.server.durability.saving": "the data is saved at the end",
    "headrace.server.durability.durability": "the end may come at any time",
    "headrace.server.info.sections": "who looks for what is wrong asks for INFO",
    "msgspec": "blocks are packed with it",
}

STARTED = """
import atexit, sys
atexit.register(lambda: print(*sys.modules, file=open("modules.txt", "w")))
from headrace.server.cli import main
sys.exit(main())
"""


class TellingServer(ServerProcess):
    """A server that says at its end what it has imported."""

    def command(self) -> list[str]:
        return [sys.executable, "-P", "-c", STARTED]


@pytest.fixture(scope="module")
def imported() -> Iterator[set[str]]:
    """Return what a server imports that answers one PING, and ends."""
    with TellingServer() as server:
        server.stop()
        yield set((server.directory / "modules.txt").read_text().split())


@pytest.mark.parametrize("module", LATE)
def test_what_few_need_is_imported_late(imported: set[str], module: str) -> None:
    assert module not in imported, LATE[module]


@pytest.mark.parametrize("module", EARLY)
def test_what_an_emergency_needs_is_imported_early(imported: set[str], module: str) -> None:
    assert module in imported, EARLY[module]


def test_a_server_that_is_alone_imports_nothing_of_regions(imported: set[str]) -> None:
    assert [module for module in imported if module.startswith("headrace.regions")] == []


def test_a_region_imports_all_of_them_at_its_start() -> None:
    with TellingServer("--appendonly", "yes", "--aa-region-id", "1") as server:
        server.stop()
        imported = (server.directory / "modules.txt").read_text().split()
    wing = [path.relative_to(build.ROOT) for path in (build.ROOT / "regions").rglob("*.py")]
    wanted = {
        f"headrace.{'.'.join(path.with_suffix('').parts)}"
        for path in wing
        if path.name != "__init__.py" and "tools" not in path.parts
    }
    assert wanted - set(imported) == set()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux tells what is resident")
def test_an_empty_server_is_small(fresh_server: Factory) -> None:
    """Python and the machine have a part in it; a pure build holds Python code of all modules."""
    server = fresh_server()
    told = Path(f"/proc/{server.pid}/status").read_text()
    (resident_kib,) = (line.split()[1] for line in told.splitlines() if line.startswith("VmRSS"))
    most_mib = 32 if build_kind() == "compiled" else 34
    assert int(resident_kib) < most_mib * 1024


# Libraries without what they import for others


def run(code: str, path: Path | None = None) -> str:
    """Return what code prints in a process of its own."""
    variables = build.environment()
    if path is not None:
        known = variables.get("PYTHONPATH")
        variables["PYTHONPATH"] = f"{path}:{known}" if known else str(path)
    ran = subprocess.run(
        [sys.executable, "-P", "-c", f"from headrace.server.process import lean\n{code}"],
        capture_output=True,
        check=False,
        env=variables,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def test_what_was_kept_out_can_be_imported_afterwards() -> None:
    code = """
lean.import_libraries()
import asyncio, ssl, sys
context = ssl.create_default_context()
print(asyncio.__name__, type(context).__name__, ssl.SSL_ERROR_WANT_READ, sys.modules["ssl"] is ssl)
"""
    assert run(code) == "asyncio SSLContext 2 True"


@pytest.mark.parametrize("library", ["asyncio", "uvloop"])
def test_a_loop_can_run_programs_and_await_what_is_awaitable(library: str) -> None:
    code = f"""
lean.import_libraries()
import asyncio, {library}, sys
class Awaitable:
    def __await__(self):
        yield from ()
        return "awaited"
async def run():
    program = await asyncio.create_subprocess_exec(
        sys.executable, "-c", "print('run')", stdout=asyncio.subprocess.PIPE)
    print((await program.stdout.read()).decode().strip(), await program.wait(),
        await asyncio.ensure_future(Awaitable()), asyncio.iscoroutinefunction(run))
loop = {library}.new_event_loop()
asyncio.set_event_loop(loop)
asyncio.get_child_watcher().attach_loop(loop) if sys.version_info < (3, 12) else None
loop.run_until_complete(run())
"""
    assert run(code) == "run 0 awaited True"


def test_a_loop_refuses_a_coroutine_function_for_a_signal() -> None:
    code = """
lean.import_libraries()
import asyncio, signal
class Handler:
    async def handle(self): ...
    def plain(self): ...
loop = asyncio.new_event_loop()
loop.add_signal_handler(signal.SIGUSR1, Handler().plain)
try:
    loop.add_signal_handler(signal.SIGUSR1, Handler().handle)
except TypeError as refusal:
    print("refused")
"""
    assert run(code) == "refused"


def test_a_library_can_use_what_it_has_of_a_module_that_was_kept_out() -> None:
    code = """
lean.import_libraries()
import msgspec
print(type(msgspec.inspect.type_info(int)).__name__, type(msgspec.inspect.type_info(str)).__name__)
"""
    assert run(code) == "IntType StrType"


def test_a_uvloop_that_wants_more_of_ssl_gets_it(tmp_path: Path) -> None:
    (tmp_path / "uvloop.py").write_text("import ssl\nwanted = ssl.SSLContext, ssl.HAS_SNI\n")
    code = """
lean.import_libraries()
import ssl, uvloop
print(uvloop.wanted[0] is not ssl.SSLContext, uvloop.wanted[1], ssl.__spec__.name)
"""
    assert run(code, tmp_path) == "True True ssl"


def test_what_is_there_already_stays() -> None:
    code = """
import ssl, sys
lean.import_libraries()
import asyncio.sslproto, uvloop
print(sys.modules["ssl"] is ssl, asyncio.sslproto.ssl is ssl)
"""
    assert run(code) == "True True"
