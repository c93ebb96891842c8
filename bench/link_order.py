"""Which functions requests run through: the linker puts them side by side.

    make link-order

A server that has just been woken finds little of itself in the processor's caches. What it runs
then should be in few pages: spread over the whole library, a pipelined XADD takes a tenth longer.
Linux's ``perf`` looks at the compiled server while one workload after another runs, and the
functions of ours that it meets are written to ``server/link_order.txt``, which setup.py reads: what
most commands run through comes first, and what is one command's own is together. What commands on
values of other types and a script run is what valgrind meets, because it misses nothing. What runs
at a start comes behind, as valgrind met it: a server that nobody asks has then fetched few other
pages, and its memory is less by them.

A line of that file is a function of mypyc's runtime, or ``kind module:name`` with the module's full
name. In C, mypyc shortens the name of a module as far as no other module ends in the same words, so
such names change when a module comes or goes; setup.py makes them when it builds.
"""

from __future__ import annotations

import argparse
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from mypyc.namegen import exported_name, make_module_translation_map

from bench import script_workload
from bench.flame import FRAME, sample
from bench.instructions import WARM, Callgrind, send
from bench.measure import Shape
from bench.peers import Peer, Server, encode, ours
from bench.session import say
from bench.type_workloads import WORKLOADS as OF_TYPES
from bench.types import DEPTH, fill
from bench.workloads import WORKLOADS, Workload

ORDER: Final = Path("server/link_order.txt")
SHAPES: Final = (Shape(1, 1), Shape(50, 1), Shape(50, 16))
HEADER: Final = """\
# The functions of the compiled server that requests run through, as `make link-order` met them.
# setup.py has the linker put them side by side.
"""
AT_START: Final = "# What a start runs besides.\n"
ELEMENTS: Final = 12_000  # of large values: so many that they are looked at ahead
IDLE_S: Final = 3.0  # what is done now and then has been done
# What no workload here meets, because keys fold when they rest and few fields have deadlines.
UNMET: Final = {
    "headrace.storage.folded": "is_key value_at key_at touch touch_object _start _end",
    "headrace.storage.key_table": "KeyTable._held",
    "headrace.storage.key_page": "Page.take_out",
    "headrace.storage.due": "DueOrder._is_fresh DueOrder.add DueOrder.first_ms Heap._own Heap._pop "
    "Heap._put Heap._rise Heap._sink Heap.add Heap.at Heap.take _is_less pair_of",
}
KINDS: Final = ("CPyDef_", "CPyPy_")  # a function as compiled code calls it, and as Python does
_RUN: Final = re.compile(r"^c?fn=\(\d+\) (\w+)$", re.MULTILINE)  # a name, in callgrind's files
_NAME: Final = re.compile(r"\w+")  # and nothing that perf or the linker made up
_OURS: Final = re.compile(r"__mypyc\.[^/]*so")


def functions(script: str) -> set[str]:
    """The functions of ours in what ``perf script`` prints."""
    found = [FRAME.match(line) for line in script.splitlines()]
    ours = {each[1] for each in found if each is not None and _OURS.search(each[2])}
    return {name for name in ours if _NAME.fullmatch(name)}


def run_at_start(command: str) -> set[str]:
    """The functions that a server runs until it has answered, and while nobody asks it anything.

    Those of libraries are among them.
    """
    with tempfile.TemporaryDirectory(prefix="headrace-link-order-") as folder:
        out = Path(folder, "callgrind.out")
        tool = ("valgrind", "--tool=callgrind", f"--callgrind-out-file={out}")
        peer = ours(command)
        with Server(Peer(peer.name, (*tool, *peer.command))) as server:
            time.sleep(IDLE_S)
            subprocess.run(
                ["callgrind_control", "--dump", str(server.pid)],
                check=True,
                stdout=subprocess.DEVNULL,
            )
        files = [file.read_text() for file in Path(folder).iterdir()]
        return {name for text in files for name in _RUN.findall(text)}


def run_by_types(command: str) -> Iterator[tuple[str, set[str]]]:
    """Commands on values of each type, and the functions that they run, those of libraries too."""
    for workload in OF_TYPES:
        drawn = random.Random(1)
        calls = [workload.command(at, ELEMENTS, drawn) for at in range(2 * WARM)]
        requests = [encode(*words) for words in calls]
        prepare = partial(fill, calls=workload.prepare(ELEMENTS))
        yield workload.name, run_by(command, prepare, requests)


def run_by_a_script(command: str) -> set[str]:
    """The functions that a script of a job queue runs, those of libraries too."""
    requests = [script_workload.request(number) for number in range(2 * WARM)]
    return run_by(command, lambda server: script_workload.prepare(server, len(requests)), requests)


def run_by(command: str, prepare: Callable[[Server], None], requests: list[bytes]) -> set[str]:
    """The functions that the second half of these requests runs."""
    with tempfile.TemporaryDirectory(prefix="headrace-link-order-") as folder:
        callgrind = Callgrind(ours(command), Path(folder))
        with callgrind.server as server:
            prepare(server)
            send(server, requests[:WARM], DEPTH)
            callgrind.control("--instr=on")
            send(server, requests[WARM:], DEPTH)
            return set(_RUN.findall(callgrind.dumped().decode()))


def compiled_modules() -> list[str]:
    """The modules of the installed build that are compiled: the library has a capsule for each."""
    code = "from headrace import native__mypyc; print(*vars(native__mypyc))"  # not the checkout's
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
    )
    made = [name.removeprefix("init_") for name in done.stdout.split() if name.startswith("init_")]
    return [name.replace("___", ".") for name in made]


def prefixes(modules: Iterable[str]) -> dict[str, str]:
    """Return what the names in C of each module's functions begin with, behind their kind.

    Args:
        modules: all modules that were compiled.
    """
    short = make_module_translation_map(list(modules))
    return {exported_name(short[module]): module for module in short}


def as_python(name: str, modules: Mapping[str, str]) -> str:
    """A function of the compiled library as ``server/link_order.txt`` calls it.

    Args:
        name: the function's name in C.
        modules: by what begins their names in C, as ``prefixes`` gives it.
    """
    kind = next((each for each in KINDS if name.startswith(each)), "")
    words = name.removeprefix(kind).split("___")
    for count in range(len(words) - 1, 0, -1):
        prefix = "___".join([*words[:count], ""])
        if prefix in modules:
            return f"{kind} {modules[prefix]}:{'.'.join(words[count:])}".lstrip()
    return name  # mypyc's runtime


def of_a_start(names: Iterable[str]) -> list[str]:
    """Those that are ours, without what libraries run.

    What each module and each type has is among them: what a module runs that is imported later, or
    by the tools alone, is then not between them.
    """
    return [name for name in names if ":" in name or name.startswith("CPy")]


def shapes_of(workload: Workload) -> list[Shape]:
    """Return how the load is spread while perf looks."""
    if not workload.clients:
        return list(SHAPES)
    return [Shape(workload.clients[0], depth) for depth in sorted({each.depth for each in SHAPES})]


def in_order(met: Sequence[set[str]]) -> list[str]:
    """All functions, those of most workloads first, and next to each other those of the same ones.

    Args:
        met: the functions of each workload.
    """
    where: dict[str, list[int]] = {}
    for number, names in enumerate(met):
        for name in names:
            where.setdefault(name, []).append(number)
    return sorted(where, key=lambda name: (-len(where[name]), where[name], name))


def write(requests: Sequence[str], start: Iterable[str], path: Path) -> None:
    """Write the file that setup.py reads.

    Args:
        requests: what requests run through, in order.
        start: what a start runs.
    """
    started = set(start)
    besides = sorted(started - set(requests))
    # What a start runs, too, comes last of it: before that, a start then fetches nothing.
    lines = [HEADER, *(f"{name}\n" for name in sorted(requests, key=started.__contains__))]
    lines += [AT_START, *(f"{name}\n" for name in besides)]
    path.write_text("".join(lines))


def main(arguments: Sequence[str] | None = None) -> None:
    """Look at every workload and write what was met."""
    made = argparse.ArgumentParser(prog="make link-order ARGS=...", description=__doc__)
    made.formatter_class = argparse.RawDescriptionHelpFormatter
    made.add_argument("--seconds", type=float, default=2.0, metavar="S", help="of each; default 2")
    made.add_argument("--ours", default="", metavar="COMMAND", help="the server; default ours")
    made.add_argument("--output", type=Path, default=ORDER, metavar="FILE")
    asked = made.parse_args(arguments)
    met: list[set[str]] = []
    for workload in WORKLOADS:
        names: set[str] = set()
        for shape in shapes_of(workload):
            seen = sample(workload.name, shape, asked.seconds, asked.ours, "--appendonly", "yes")
            names |= functions(seen)
        met.append(names)
        say(f"{workload.name}: {len(names)} functions")
    for name, functions_met in (
        *run_by_types(asked.ours),
        ("a script", run_by_a_script(asked.ours)),
    ):
        met.append({each for each in functions_met if each.startswith((*KINDS, "CPy"))})
        say(f"{name}: {len(met[-1])} functions")
    modules = prefixes(compiled_modules())
    start = of_a_start([as_python(name, modules) for name in run_at_start(asked.ours)])
    say(f"a start: {len(start)} functions")
    unmet = [f"CPyDef_ {module}:{name}" for module in UNMET for name in UNMET[module].split()]
    requests = [as_python(name, modules) for name in in_order(met)]
    write(list(dict.fromkeys([*requests, *unmet])), start, asked.output)
    say(f"wrote {asked.output}")


if __name__ == "__main__":
    main()
