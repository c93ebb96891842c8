"""An environment that has what one of our packages asks for, and nothing else of what is here.

Made of links to what this environment has, so it costs neither a download nor a second.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path

from packaging.requirements import Requirement

from support.build import ROOT

PROJECT = ROOT / "pyspark_headrace/pyproject.toml"


def python_with(folder: Path, *extras: str) -> Path:
    """The interpreter of an environment that ``pip install pyspark-headrace[extra]`` would make."""
    made = subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", folder], capture_output=True, check=False
    )
    assert made.returncode == 0, made.stderr
    (libraries,) = folder.glob("lib/python*/site-packages")
    spec = find_spec("pyspark_headrace")
    assert spec is not None
    assert spec.origin is not None
    (libraries / "pyspark_headrace").symlink_to(Path(spec.origin).resolve().parent)
    project = tomllib.loads(PROJECT.read_text())["project"]
    wanted = [*project["dependencies"]]
    for extra in extras:
        wanted += project["optional-dependencies"][extra]
    _link(libraries, [Requirement(each) for each in wanted])
    return folder / "bin/python"


def _link(libraries: Path, wanted: list[Requirement]) -> None:
    """Link what is wanted, what that wants, and so on."""
    done: set[tuple[str, str]] = set()
    while wanted:
        requirement = wanted.pop()
        found = distribution(requirement.name)
        for extra in ("", *requirement.extras):
            if (found.name, extra) in done:
                continue
            done.add((found.name, extra))
            more = [Requirement(each) for each in found.requires or ()]
            wanted += [
                each for each in more if not each.marker or each.marker.evaluate({"extra": extra})
            ]
        tops = {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}
        for top in tops:
            link = libraries / top
            if not link.is_symlink():
                link.symlink_to(Path(str(found.locate_file(top))))
