"""What the linker puts side by side: how it is found, and that it lies there in the end."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from bench.link_order import (
    ORDER,
    as_python,
    compiled_modules,
    functions,
    in_order,
    of_a_start,
    prefixes,
    write,
)
from support.build import ROOT, location

pytestmark = pytest.mark.once

SCRIPT = """\
\t      7f1a2b3c4d5e CPyDef_requests____take_plain+0x1be (/venv/headrace__mypyc.cpython-311.so)
\t      7f1a2b3c4d11 CPyBytes_GetSlice+0x2 (/venv/headrace__mypyc.cpython-311.so)
\t      7f1a2b3c4d01 uv__io_poll+0x44 (/venv/uvloop/loop.so)
\t            5581f0 Py_BytesMain+0x1d (/usr/bin/python3.11)

\t      7f1a2b3c4d5f CPyDef_requests____take_plain+0x1bf (/venv/headrace__mypyc.cpython-311.so)
\t      7f1a2b3c4d60 PyList_Append@plt+0x4 (/venv/headrace__mypyc.cpython-311.so)
\t      7f1a2b3c4d61 [unknown] (/venv/headrace__mypyc.cpython-311.so)
\t                 0 [unknown] ([unknown])
"""


def names_in(path: Path) -> list[str]:
    """Return what setup.py reads of such a file."""
    return [line for line in path.read_text().splitlines() if not line.startswith("#")]


def test_functions_of_ours() -> None:
    found = functions(SCRIPT)
    assert found == {"CPyDef_requests____take_plain", "CPyBytes_GetSlice"}


def test_what_most_workloads_need_comes_first(tmp_path: Path) -> None:
    order = in_order([{"ping", "run"}, {"xadd", "seal", "run", "at"}, {"at", "run", "xack"}])
    assert order == ["run", "at", "ping", "seal", "xadd", "xack"]
    write(order, ["serve", "run", "listen"], tmp_path / "order.txt")
    expected = ["at", "ping", "seal", "xadd", "xack", "run", "listen", "serve"]
    assert names_in(tmp_path / "order.txt") == expected  # what a start runs stands together


def test_what_libraries_run_is_not_listed() -> None:
    names = ["CPyDef_ server.app:run", "CPyDef_ server.app:__top_level__", "CPyList_Get", "malloc"]
    assert of_a_start(names) == names[:3]


MODULES = ["headrace.server.run", "headrace.storage.stream.run", "headrace.storage.stream.pel"]


@pytest.mark.parametrize(
    ("in_c", "in_python"),
    [
        ("CPyDef_pel____half", "CPyDef_ headrace.storage.stream.pel:_half"),
        ("CPyDef_stream___run___Run___at", "CPyDef_ headrace.storage.stream.run:Run.at"),
        ("CPyPy_server___run___start", "CPyPy_ headrace.server.run:start"),
        ("stream___run___Run_dealloc", "headrace.storage.stream.run:Run_dealloc"),
        ("CPyList_GetItem", "CPyList_GetItem"),
    ],
)
def test_names_hold_when_modules_come_and_go(in_c: str, in_python: str) -> None:
    assert as_python(in_c, prefixes(MODULES)) == in_python


def test_each_module_named_is_there() -> None:
    """Whoever moves a module replaces its name in this file too."""
    named = {line.rpartition(" ")[2].partition(":")[0] for line in names_in(ROOT / ORDER)}
    modules = {name for name in named if "." in name}
    assert modules
    gone = [
        name
        for name in modules
        if not (ROOT / name.removeprefix("headrace.").replace(".", "/")).with_suffix(".py").exists()
    ]
    assert gone == []


@pytest.mark.skipif(
    os.environ.get("HEADRACE_EXPECT_BUILD") != "compiled" or shutil.which("nm") is None,
    reason="looks into the compiled library",
)
def test_what_requests_run_through_lies_together() -> None:
    (library,) = location().glob("*__mypyc*.so")
    told = subprocess.run(["nm", "-S", library], stdout=subprocess.PIPE, text=True, check=True)
    modules = prefixes(compiled_modules())
    places: dict[str, tuple[int, int]] = {}
    for line in told.stdout.splitlines():
        words = line.split()
        if len(words) == 4 and words[2] in "tT":
            place = int(words[0], 16), int(words[1], 16)
            places[as_python(words[3], modules)] = place
    wanted = names_in(ROOT / ORDER)
    found = [places[name] for name in wanted if name in places]
    assert len(found) > 0.9 * len(wanted), "functions have other names now: `make link-order`"
    start = min(address for address, _ in found)
    end = max(address + size for address, size in found)
    assert end - start < 1.1 * sum(size for _, size in found)
