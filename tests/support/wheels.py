"""Building wheels of this checkout as pip and other installers do, without a network."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

from support.build import ROOT

PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]

# Names that the folders of this repository have too.
USERS = {
    "compat.py": 'WHOSE = "the user\'s compat"\n',
    "persistence.py": 'WHOSE = "the user\'s persistence"\n',
    "protocol/__init__.py": "",
    "protocol/requests.py": 'WHOSE = "the user\'s protocol"\n',
    "regions.py": 'WHOSE = "the user\'s regions"\n',
    "server/__init__.py": "",
    "server/cli.py": 'WHOSE = "the user\'s server"\n',
    "server/commands/__init__.py": "raise SystemExit('the user\\'s commands ran')\n",
    "storage.py": 'WHOSE = "the user\'s storage"\n',
}


def write_users(folder: Path) -> Path:
    """Write them into a folder, which is returned."""
    for name, text in USERS.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def run(*command: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program in an environment that asks for no build of its own."""
    return subprocess.run(
        command,
        env={**os.environ, "HEADRACE_PURE": "0", "HEADRACE_BUILD_DIR": "", **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def build_wheel(
    out: Path, source: Path = ROOT, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Have pip build the wheel of a folder, with the libraries of this environment."""
    options = ["--no-build-isolation", "--no-deps", "-v"]
    return run(*PIP, "wheel", *options, "--wheel-dir", out, source, **variables)


def only_wheel(out: Path, source: Path = ROOT, **variables: str) -> Path:
    """The wheel that was built of a folder."""
    done = build_wheel(out, source, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = out.glob("*.whl")
    return wheel


# What packages hold: modules, and what these read.
KINDS = (
    *("*.py", "*.lua", "commands/*.txt", "config/*.txt", "families.txt"),
    *("templates/*", "static/*"),
)


def modules(wheel: Path) -> set[str]:
    """Every file of a wheel except its metadata."""
    names = zipfile.ZipFile(wheel).namelist()
    return {name for name in names if ".dist-info/" not in name}


def sources(*folders: str) -> set[str]:
    """The modules, tables, templates and such in folders of this checkout, as paths from it."""
    return {
        path.relative_to(ROOT).as_posix()
        for folder in folders
        for kind in KINDS
        for path in (ROOT / folder).rglob(kind)
    }
