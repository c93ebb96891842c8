"""Instructions for each command, counted by valgrind: what a change costs, on a machine at work.

    make instructions ARGS="--server before=/tmp/other/.venv/bin/headrace"

Times differ from one second to the next where others are at work; how many instructions a server
needs hardly does. Each server named, and the installed one as ``now``, is started under callgrind
and asked for the same: by one client, one command at a time and sixteen deep. What the interpreter
and the event loop need is counted, what the kernel does is not. Two builds can be compared when
both were made by the same compiler.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from bench import script_workload
from bench.peers import Peer, Server, encode, ours

COMMANDS: Final = 2000  # that are counted together
WARM: Final = 600  # that are run before, and not counted
DEPTHS: Final = (1, 16)
ROUNDS: Final = 5  # the one with the fewest counts: in others the server did something else, too
QUIET: Final = ("--hz", "1", "--busy-poll-us", "0")  # the less it does by itself, the better
_TOTALS: Final = re.compile(rb"^(?:totals|summary): (\d+)", re.MULTILINE)


class Workload(NamedTuple):
    """A command, and what makes a server ready for so many of it."""

    name: str
    prepare: Callable[[Server, int], None]
    request: Callable[[int], bytes]


def _nothing(server: Server, count: int) -> None:
    """All there needs to be is there."""
    server.control.call("SET", "key", "value")


def _entries(server: Server, count: int) -> None:
    """A group that has all of a stream to read."""
    server.control.call("DEL", "stream")
    server.control.call("XGROUP", "CREATE", "stream", "group", "$", "MKSTREAM")
    requests = [encode("XADD", "stream", f"{number + 1}-0", "f", "v") for number in range(count)]
    server.control.send_all([(b"".join(requests), count)])


def _pending(server: Server, count: int) -> None:
    """A group that has all of a stream pending."""
    _entries(server, count)
    words = "XREADGROUP GROUP group consumer COUNT".split()
    server.control.call(*words, count, "STREAMS", "stream", ">")


WORKLOADS: Final = (
    Workload("XADD", _entries, lambda number: encode("XADD", "stream", "*", "field", f"v{number}")),
    Workload(
        "XADD IDMP",
        _nothing,
        lambda number: encode("XADD", "sent", "IDMP", "pid", f"i{number}", "*", "field", "v"),
    ),
    Workload(
        "XREADGROUP",
        _entries,
        lambda number: encode(*"XREADGROUP GROUP group consumer COUNT 1 STREAMS stream >".split()),
    ),
    Workload(
        "XREAD", _entries, lambda number: encode(*f"XREAD COUNT 1 STREAMS stream {number}".split())
    ),
    Workload("XACK", _pending, lambda number: encode("XACK", "stream", "group", f"{number + 1}-0")),
    Workload(
        "XRANGE 10",
        _entries,
        lambda number: encode("XRANGE", "stream", f"{number + 1}-0", "+", "COUNT", "10"),
    ),
    Workload("GET", _nothing, lambda number: encode("GET", "key")),
    Workload("SET", _nothing, lambda number: encode("SET", "key", f"v{number}")),
    Workload("a script", script_workload.prepare, script_workload.request),
)


class Callgrind:
    """A server under callgrind, and what it has counted."""

    def __init__(self, peer: Peer, folder: Path) -> None:
        self._out: Final = folder / "callgrind.out"
        tool = ("valgrind", "--tool=callgrind", "--instr-atstart=no")
        command = (*tool, f"--callgrind-out-file={self._out}", *peer.command)
        self.server: Final = Server(Peer(peer.name, command), *QUIET)

    def control(self, *words: str) -> None:
        """Tell callgrind what to do."""
        command = ["callgrind_control", *words, str(self.server.pid)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def dumped(self) -> bytes:
        """Return what callgrind writes about what has run since the last call."""
        self.control("--dump")
        files = sorted(self._out.parent.glob("callgrind.out.*"))
        found = b"".join([file.read_bytes() for file in files])
        for file in files:
            file.unlink()
        return found

    def counted(self) -> int:
        """Instructions since the last call, or the last one of ``dumped``."""
        totals = [int(found[1]) for found in _TOTALS.finditer(self.dumped())]
        if not totals:
            raise SystemExit("callgrind has written nothing")
        return max(totals)


def measure(peer: Peer) -> Iterator[tuple[str, int, int]]:
    """Each command and depth with the instructions that one command takes."""
    with tempfile.TemporaryDirectory(prefix="headrace-instructions-") as folder:
        callgrind = Callgrind(peer, Path(folder))
        with callgrind.server as server:
            for workload in WORKLOADS:
                for depth in DEPTHS:
                    count = WARM + ROUNDS * COMMANDS
                    workload.prepare(server, count)
                    requests = [workload.request(number) for number in range(count)]
                    send(server, requests[:WARM], depth)
                    callgrind.control("--instr=on")
                    send(server, requests[WARM : WARM + depth], depth)
                    callgrind.counted()
                    counts = []
                    for first in range(WARM, count, COMMANDS):
                        send(server, requests[first : first + COMMANDS], depth)
                        counts.append(callgrind.counted() // COMMANDS)
                    callgrind.control("--instr=off")
                    yield workload.name, depth, min(counts)


def send(server: Server, requests: list[bytes], depth: int) -> None:
    """Ask, so many requests at a time, and read the replies."""
    for at in range(0, len(requests), depth):
        some = requests[at : at + depth]
        server.control.probe(b"".join(some), len(some))


def main() -> int:
    """The command line; the exit code of the process."""
    parser = argparse.ArgumentParser(
        prog="bench.instructions", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument(
        "--server",
        action="append",
        default=[],
        metavar="NAME=COMMAND",
        help="another build, to be compared with; may be repeated",
    )
    parser.add_argument("--without-installed", action="store_true")
    given = parser.parse_args()
    if shutil.which("valgrind") is None:
        parser.error("valgrind is not installed")
    os.environ["PYTHONHASHSEED"] = "0"  # dicts of the servers are laid out alike
    peers = {}
    for words in given.server:
        name, _, command = words.partition("=")
        peers[name] = ours(command)
    if not given.without_installed:
        peers["now"] = ours()
    table: dict[tuple[str, int], list[int]] = {}
    for peer in peers.values():
        for name, depth, count in measure(peer):
            table.setdefault((name, depth), []).append(count)
    print(f"{'instructions per command':28}" + "".join(f"{name:>12}" for name in peers))
    for (name, depth), counts in table.items():
        row = f"{name}, {depth} deep"
        line = f"{row:28}" + "".join(f"{count:12,}" for count in counts)
        if len(counts) > 1:
            line += f"{(counts[-1] / counts[0] - 1) * 100:+8.2f} %"
        print(line)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
