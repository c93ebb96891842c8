"""``make wheel-check``: the wheels are installed as people do it, and used.

The compiled wheel, of what ``make install`` has compiled, and the pure one are each installed into
an empty environment, without a compiler and from a folder that has the wheels of all libraries. It
is said what a download is of, and how long it takes until the server answers; a user's own packages
lie where it is started.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path

from support.process import Process
from support.wheels import PIP, only_wheel, run, write_users

SUM_MB = 15  # half of it is ours; then come uvloop, and lupa, which has six Luas
PONG_S = 10
LIBRARIES = ("--quiet", "--only-binary=:all:")


class Installed(Process):
    """The server of an environment, in a user's folder, which Python looks into first."""

    name = "headrace"

    def __init__(self, environment: Path, folder: Path) -> None:
        super().__init__("--appendonly", "yes", directory=write_users(folder))
        self._environment_of = environment

    def command(self) -> list[str]:
        return [str(self._environment_of / "bin/headrace")]

    def variables(self) -> dict[str, str]:
        return {"PATH": str(self._environment_of / "bin"), "PYTHONPATH": "."}


def fetch(wheels: list[Path], folder: Path) -> None:
    """Put the wheels of a server and all that they need into a folder, and say how large it is."""
    done = run(*PIP, "download", *LIBRARIES, "--dest", folder, wheels[0])
    assert done.returncode == 0, done.stderr
    sizes = {each.name: each.stat().st_size / 1e6 for each in folder.iterdir()}
    for name, size_mb in sorted(sizes.items(), key=lambda item: -item[1]):
        print(f"{size_mb:6.2f} MB  {name}")
    total_mb = sum(sizes.values())
    print(f"{total_mb:6.2f} MB  in all")
    assert total_mb < SUM_MB, f"more than {SUM_MB} MB"
    for wheel in wheels[1:]:
        shutil.copy(wheel, folder)


def use(kind: str, wheels: Path, folder: Path) -> None:
    """Install from a folder, start, write, start again, read; this kind of build it must be."""
    environment = folder / "environment"
    assert run(sys.executable, "-m", "venv", environment).returncode == 0
    python = environment / "bin/python"
    began_s = time.monotonic()
    done = run(
        *(python, "-m", "pip", "install", "--quiet", "--no-index", "--find-links", wheels),
        "headrace",
        PATH=str(environment / "bin"),  # no compiler
    )
    assert done.returncode == 0, done.stderr
    with Installed(environment, folder / "project") as server:
        took_s = time.monotonic() - began_s
        assert server.info("server")["headrace_build"] == kind
        server.call("XADD", "s", "1-1", "f", "v")
        server.restart()
        assert server.call("XRANGE", "s", "-", "+") == [[b"1-1", [b"f", b"v"]]]
        server.stop()
    print(f"the {kind} one: PONG {took_s:.1f} s after `pip install` began", flush=True)
    assert took_s < PONG_S, f"more than {PONG_S} s"


def main() -> None:
    """Try both; an assertion fails where one is not as it should be."""
    with tempfile.TemporaryDirectory(prefix="headrace-wheels-") as name:
        folder = Path(name)
        compiled = only_wheel(folder / "compiled", HEADRACE_BUILD_DIR=f"{sys.prefix}/build")
        pure = only_wheel(folder / "pure", HEADRACE_PURE="1")
        assert pure.name.endswith("-py3-none-any.whl"), pure.name
        fetch([compiled, pure], folder / "all")
        use("compiled", folder / "all", folder / "1")  # where both fit, pip takes this one
        (folder / "all" / compiled.name).unlink()
        use("pure", folder / "all", folder / "2")


if __name__ == "__main__":
    main()
