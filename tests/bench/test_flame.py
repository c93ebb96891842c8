"""The flame graph: from what perf prints to a picture."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.flame import Box, draw, frame_of, tree_of

pytestmark = pytest.mark.once

SCRIPT = """\
\t      7f1a2b3c4d5e CPyDef_requests____take_plain+0x1be (/venv/headrace__mypyc.so)
\t      7f1a2b3c4d11 CPyPy_requests___RequestParser___take+0x2 (/venv/headrace__mypyc.so)
\t      7f1a2b3c4d01 uv__io_poll+0x44 (/venv/uvloop/loop.so)
\t      7f1a2b3c4d00 uv_run+0x44 (/venv/uvloop/loop.so)
\t            5581f0 Py_BytesMain+0x1d (/usr/bin/python3.11)

\tffffffff81a00080 entry_SYSCALL_64_after_hwframe+0x7e ([kernel.kallsyms])
\t      7f1a2b3c4d01 uv__io_poll+0x44 (/venv/uvloop/loop.so)
\t      7f1a2b3c4d00 uv_run+0x44 (/venv/uvloop/loop.so)
\t            5581f0 Py_BytesMain+0x1d (/usr/bin/python3.11)

\t      7f1a2b3c4d99 CPyDef_requests____take_plain+0x11 (/venv/headrace__mypyc.so)
\t      7f1a2b3c4d77 CPyDef_requests___RequestParser___take+0x99 (/venv/headrace__mypyc.so)
\t      7f1a2b3c4d11 CPyPy_requests___RequestParser___take+0x2 (/venv/headrace__mypyc.so)
\t      7f1a2b3c4d01 uv__io_poll+0x44 (/venv/uvloop/loop.so)
\t                 0 [unknown] ([unknown])

"""


def flat(box: Box) -> dict[str, int]:
    """All boxes by their path."""
    found = {box.name: box.samples}
    for callee in box.callees.values():
        for path, samples in flat(callee).items():
            found[f"{box.name} {path}"] = samples
    return found


def test_who_called_whom() -> None:
    root = tree_of(SCRIPT)
    assert flat(root) == {
        "all": 3,
        "all uv__io_poll": 3,
        "all uv__io_poll requests.RequestParser.take": 2,
        "all uv__io_poll requests.RequestParser.take requests._take_plain": 2,
        "all uv__io_poll entry_SYSCALL_64_after_hwframe": 1,
    }
    assert root.depth(1) == 4
    assert root.depth(3) == 2


def test_whose_a_function_is() -> None:
    for symbol, module, kind in (
        ("CPyDef_execute___run", "/venv/headrace__mypyc.cpython-311.so", "ours"),
        ("CPyBytes_GetSlice", "/venv/headrace__mypyc.cpython-311.so", "Python"),
        ("list_dealloc", "/usr/bin/python3.11", "Python"),
        ("__pyx_f_6uvloop_4loop___uv_stream_on_read", "/venv/uvloop/loop.so", "event loop"),
        ("tcp_sendmsg", "[kernel.kallsyms]", "kernel"),
        ("memcpy", "/lib/libc.so.6", "libraries"),
    ):
        assert frame_of(symbol, module)[1] == kind


def test_a_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="only with the extra `bench`")
    path = tmp_path / "folder" / "flame.png"
    draw(tree_of(SCRIPT), "three samples", path)
    assert path.read_bytes().startswith(b"\x89PNG")
