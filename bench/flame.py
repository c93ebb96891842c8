"""A flame graph: in which functions a server spends its time while a workload runs.

    make flame ARGS="--workload xadd --clients 50 --depth 16"

Linux's ``perf`` looks many times a second at what the server is doing, and the picture has a box
for every function: as wide as the share of looks that found it at work, standing on who called it.
Functions of ours are named by module, as ``requests._take_plain``. To look at one's own processes
must be allowed (``sysctl kernel.perf_event_paranoid`` of 2 or less), and the server be compiled.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.load import Load
from bench.measure import Missing, Shape
from bench.peers import divide_cores, ours
from bench.results import Results
from bench.session import Entrant, Plan, Session, say
from bench.workloads import named

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HERTZ: Final = 499  # not a divisor of what happens each second
STACK_BYTES: Final = 16_384  # of a stack that are kept to find the callers
LONGER_S: Final = 1.0  # than the looking, does the load run
LEAST_SHARE: Final = 0.002  # of all samples; narrower boxes are left out
NAMED_SHARE: Final = 0.0075  # from here on a box has room for a letter or two
LETTERS_PER_SHARE: Final = 215
_ENTRANCES: Final = ("uv_run", "uv__io_poll")  # what stands outside of them is always the same
WIDTH_INCHES: Final = 18.0
ROW_INCHES: Final = 0.24
COLOURS: Final = {
    "ours": "#2a7f62",
    "Python": "#e0a458",
    "event loop": "#5b7db1",
    "kernel": "#c8553d",
    "libraries": "#9a9a9a",
}
_OURS: Final = re.compile(r"^CPy(?:Def|Py)_(.+)$")
FRAME: Final = re.compile(r"^\s+[0-9a-f]+ (.+?)(?:\+0x[0-9a-f]+)? \((.+)\)$")


class Box:
    """A function in one place of the call tree: how often it was met, and whom it called."""

    def __init__(self, name: str, kind: str) -> None:
        self.name: Final = name
        self.kind: Final = kind
        self.samples = 0
        self.callees: Final[dict[str, Box]] = {}

    def callee(self, name: str, kind: str) -> Box:
        """The box of a function that this one called."""
        if name not in self.callees:
            self.callees[name] = Box(name, kind)
        return self.callees[name]

    def depth(self, least: float) -> int:
        """Rows that it and its callees take, without those met less than ``least`` times."""
        rows = [box.depth(least) for box in self.callees.values() if box.samples >= least]
        return 1 + max(rows, default=0)


def frame_of(symbol: str, module: str) -> tuple[str, str]:
    """Return how a function is called in the picture, and what it belongs to."""
    mine = _OURS.match(symbol)
    if mine is not None:
        return mine[1].replace("___", "."), "ours"
    if "kernel" in module or module.endswith(".ko"):
        return symbol, "kernel"
    if "uvloop" in module:
        return symbol.removeprefix("__pyx_f_6uvloop_4loop_"), "event loop"
    if symbol.startswith(("Py", "_Py", "CPy")) or "python" in Path(module).name:
        return symbol, "Python"
    return symbol, "libraries"


def stacks(script: str) -> Iterator[list[tuple[str, str]]]:
    """The stacks in what ``perf script`` prints, each from the outermost function inwards."""
    for sample in script.split("\n\n"):
        frames = [FRAME.match(line) for line in sample.splitlines()]
        known = [found for found in frames if found is not None and found[1] != "[unknown]"]
        stack = [frame_of(found[1], found[2]) for found in known]
        if stack:
            yield stack[::-1]


def tree_of(script: str) -> Box:
    """The call tree of all samples, from where the event loop waits for its clients inwards."""
    root = Box("all", "libraries")
    for stack in stacks(script):
        names = [name for name, _ in stack]
        start = max((names.index(name) for name in _ENTRANCES if name in names), default=0)
        root.samples += 1
        box = root
        for name, kind in stack[start:]:
            if name == box.name:  # how a function of ours is called from Python, and itself
                continue
            box = box.callee(name, kind)
            box.samples += 1
    return root


def perf() -> str:
    """Return where perf is.

    Raises: SystemExit where it is not.
    """
    program = shutil.which("perf")
    if program is None:
        raise SystemExit("perf is not on the PATH: install linux-perf (Debian) or linux-tools")
    return program


def look(pid: int, seconds: float, data: Path) -> subprocess.Popen[str]:
    """Begin to look at a process, for some seconds."""
    sampling = f"record -q -F {HERTZ} -e cpu-clock --call-graph dwarf,{STACK_BYTES}".split()
    command = [perf(), *sampling, "-o", str(data), "-p", str(pid), "--", "sleep", str(seconds)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def told(data: Path) -> str:
    """Return what was seen, in words of perf's."""
    show = [perf(), "script", "-i", str(data), "--no-inline", "-F", "ip,sym,symoff,dso"]
    return subprocess.run(show, stdout=subprocess.PIPE, text=True, check=True).stdout


def sample(workload: str, shape: Shape, seconds: float, command: str, *options: str) -> str:
    """Put our server under the load of a workload, and look at it meanwhile; what was seen.

    Args:
        command: how the server is started, ours where that is empty.
        options: of the server.

    Raises: SystemExit where that cannot be done.
    """
    cores = divide_cores()
    peer = ours(command)
    plan = Plan((peer,), (named(workload),), (shape.clients,), (shape.depth,), 1, seconds)
    with tempfile.TemporaryDirectory(prefix="headrace-flame-") as name, Load(cores.load) as load:
        data = Path(name) / "perf.data"
        session = Session(plan, cores, load, Results({}, {peer.name: ""}, []))
        with session.servers(*options) as servers:
            _, ready = session.prepare([Entrant(servers[0])], plan.workloads[0])[0]
            if isinstance(ready, Missing):
                raise SystemExit(f"{workload}: {ready}")
            ready.warm_up(load, shape, seconds)
            with look(servers[0].pid, seconds, data) as looking:
                ready.run(load, shape, seconds + LONGER_S)
                complaint = looking.communicate()[1]
            if looking.returncode != 0:
                raise SystemExit(f"perf record failed: {complaint.strip()}")
            return told(data)


def draw(root: Box, title: str, path: Path) -> None:
    """Draw the tree, the outermost function at the bottom."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot
    from matplotlib.patches import Patch

    least = LEAST_SHARE * root.samples
    rows = root.depth(least)
    canvas, axes = pyplot.subplots(figsize=(WIDTH_INCHES, ROW_INCHES * rows + 1))
    draw_box(axes, root, 0.0, 0, root.samples, least)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, rows)
    axes.axis("off")
    axes.set_title(title, loc="left")
    patches = [Patch(color=colour, label=kind) for kind, colour in COLOURS.items()]
    axes.legend(handles=patches, loc="upper right", ncols=len(patches), frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    canvas.savefig(path, dpi=90, bbox_inches="tight")
    pyplot.close(canvas)


def draw_box(axes: Axes, box: Box, left: float, row: int, total: int, least: float) -> None:
    """Draw a box whose left side is at a share of the width, and those that stand on it."""
    share = box.samples / total
    axes.barh(
        row + 0.5, share, 0.94, left, color=COLOURS[box.kind], edgecolor="white", linewidth=0.5
    )
    letters = int(share * LETTERS_PER_SHARE)
    if share >= NAMED_SHARE:
        axes.text(left + share / 2, row + 0.5, box.name[:letters], ha="center", va="center", size=7)
    for callee in sorted(box.callees.values(), key=lambda each: -each.samples):
        if callee.samples >= least:
            draw_box(axes, callee, left, row + 1, total, least)
            left += callee.samples / total


def main(arguments: Sequence[str] | None = None) -> None:
    """Look and draw."""
    made = argparse.ArgumentParser(prog="make flame ARGS=...", description=__doc__)
    made.formatter_class = argparse.RawDescriptionHelpFormatter
    made.add_argument("--workload", default="xadd", help="of the suite; default xadd")
    made.add_argument("--clients", type=int, default=50, metavar="N", help="default 50")
    made.add_argument("--depth", type=int, default=16, metavar="N", help="default 16")
    made.add_argument("--seconds", type=float, default=5.0, metavar="S", help="default 5")
    made.add_argument("--ours", default="", metavar="COMMAND", help="the server; default ours")
    made.add_argument("--output", type=Path, default=Path("flame.png"), metavar="PNG")
    asked = made.parse_args(arguments)
    shape = Shape(asked.clients, asked.depth)
    root = tree_of(sample(asked.workload, shape, asked.seconds, asked.ours))
    clients = f"{shape.clients} clients, {shape.depth} deep"
    draw(root, f"{asked.workload}, {clients}: {root.samples:,} samples", asked.output)
    say(f"wrote {asked.output}")


if __name__ == "__main__":
    main()
