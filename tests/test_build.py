"""Installing: pure where asked for or where no compiler is, never silently, never in place."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from support.build import ROOT

# Caches, environments and what other tests change meanwhile: in pytest's cache is a node_modules.
ELSEWHERE = (".venv", ".git", ".mypy", ".ruff", ".hypothesis", ".pytest_cache", "data")


def listing() -> set[str]:
    """What lies in the checkout."""
    return {
        path.relative_to(ROOT).as_posix()
        for top in ROOT.iterdir()
        if not top.name.startswith(ELSEWHERE)
        for path in [top, *top.rglob("*")]
        if "__pycache__" not in path.parts and path.suffix in ("", ".so", ".c", ".egg-info")
    }


def build(out: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    options = ["--no-build-isolation", "--no-deps", "--disable-pip-version-check", "-v"]
    return subprocess.run(
        [sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", out, ROOT],
        env={**os.environ, "HEADRACE_PURE": "0", "HEADRACE_BUILD_DIR": "", **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"HEADRACE_PURE": "1"}, "headrace: pure build (HEADRACE_PURE=1)"),
        ({"CC": "no-such-compiler"}, "headrace: pure build, slower: no C compiler"),
        ({"CC": "false"}, "headrace: pure build, slower: false cannot compile"),
    ],
)
def test_pure_build_says_why(variables: dict[str, str], message: str, tmp_path: Path) -> None:
    before = listing()
    done = build(tmp_path, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    assert message in done.stdout + done.stderr
    (wheel,) = tmp_path.iterdir()
    assert wheel.name.endswith("-py3-none-any.whl")
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.partition("/")[0] for name in names if ".dist-info" not in name}
    assert tops == {"headrace", "pyspark_headrace"}
    assert listing() == before, "the build wrote into the checkout"


@pytest.mark.slow
@pytest.mark.skipif(
    os.environ.get("HEADRACE_EXPECT_BUILD") != "compiled", reason="needs a C compiler"
)
def test_a_compiler_that_fails_is_an_error_and_not_a_slow_server(tmp_path: Path) -> None:
    real = (sysconfig.get_config_var("CC") or "cc").split()[0]
    compiler = tmp_path / "cc"
    compiler.write_text(
        f'#!/bin/sh\ncase "$*" in *probe.c*) exec {shutil.which(real)} "$@" ;; esac\nexit 1\n'
    )
    compiler.chmod(0o755)
    done = build(tmp_path / "out", CC=str(compiler))
    assert done.returncode != 0
    assert "compiling" in done.stdout + done.stderr
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


def test_the_version_is_told_once() -> None:
    from importlib.metadata import version

    from headrace.server.build import VERSION

    if os.environ.get("HEADRACE_EXPECT_BUILD") != "tree":
        assert version("headrace") == VERSION
    assert VERSION in (ROOT / "CHANGELOG.md").read_text()
