"""Building: pure where asked for or where no compiler is, never silently, never in place."""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from functools import cache
from pathlib import Path

import pytest

from support.build import ROOT, in_library
from support.wheels import build_wheel, modules, only_wheel, sources

# Caches, environments and what other tests change meanwhile: in pytest's cache is a node_modules.
ELSEWHERE = (".venv", ".git", ".mypy", ".ruff", ".hypothesis", ".pytest_cache", "data")
NOT_COPIED = (".*", "data", "build", "__pycache__", "node_modules")
PACKAGES = (
    *("compat", "console", "metrics", "testkit", "persistence", "policies", "protocol", "regions"),
    *("server", "storage"),
)


def listing(folder: Path = ROOT) -> set[str]:
    """Return what lies in the checkout, or in a copy of it."""
    return {
        path.relative_to(folder).as_posix()
        for top in folder.iterdir()
        if not top.name.startswith(ELSEWHERE)
        for path in [top, *top.rglob("*")]
        if "__pycache__" not in path.parts and path.suffix in ("", ".so", ".c", ".egg-info")
    }


def ours() -> set[str]:
    """Every module as the wheel of the server names it."""
    return sources("headrace") | {f"headrace/{name}" for name in sources(*PACKAGES)}


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
    done = build_wheel(tmp_path, ROOT, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    assert message in done.stdout + done.stderr
    (wheel,) = tmp_path.iterdir()
    assert wheel.name.endswith("-py3-none-any.whl")
    assert modules(wheel) == ours()
    assert listing() ^ before == set(), "the build wrote into the checkout"


def test_a_source_distribution_is_all_that_a_wheel_needs(tmp_path: Path) -> None:
    """It is made in a copy: setuptools collects its files beside the sources for a moment."""
    copy = tmp_path / "checkout"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*NOT_COPIED))
    before = listing(copy)
    out = tmp_path / "out"
    code = (
        "from sys import argv; from setuptools import build_meta; build_meta.build_sdist(argv[1])"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, out],
        cwd=copy,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert listing(copy) ^ before == set(), "the build wrote into the checkout"
    (archive,) = out.glob("headrace-*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(out, filter="data")
    (source,) = (path for path in out.iterdir() if path.is_dir())
    assert {each.name for each in source.glob("server/*.txt")} == {
        "link_order.txt",
        "stays_python.txt",
    }
    assert not (source / "pyspark_headrace").exists()
    wheel = only_wheel(tmp_path / "wheel", source, HEADRACE_PURE="1")
    assert modules(wheel) == ours()


@pytest.mark.parametrize("name", ["pyspark_headrace", "pytest_headrace"])
def test_it_is_a_wheel_of_its_own(tmp_path: Path, name: str) -> None:
    """It brings no server, compiles nothing, and building it leaves no trace."""
    pytest.importorskip("hatchling", reason="only with the extra `test`")
    before = listing()
    wheel = only_wheel(tmp_path, ROOT / name)
    assert wheel.name.endswith("-py3-none-any.whl")
    assert modules(wheel) == sources(name)
    assert listing() ^ before == set(), "the build wrote into the checkout"

    from headrace import __version__

    assert wheel.name.startswith(f"{name}-{__version__}-")


def lines(name: str) -> list[str]:
    """Those of a table beside the server, without what is said about them."""
    text = (ROOT / "server" / name).read_text()
    return [line for line in text.splitlines() if line and not line.startswith("#")]


STAYS_PYTHON = lines("stays_python.txt")


@pytest.mark.parametrize("pattern", STAYS_PYTHON)
def test_what_stays_python_is_there(pattern: str) -> None:
    """A pattern that fits nothing would let a module that has moved be compiled."""
    kept = [name for name in sources(*PACKAGES) if fnmatch.fnmatchcase(name, pattern)]
    assert kept
    if os.environ.get("HEADRACE_EXPECT_BUILD") == "compiled":
        compiled = {f"{name.replace('.', '/')}.py" for name in in_library()}
        assert compiled.isdisjoint(f"headrace/{name}" for name in kept)


def test_what_the_linker_puts_side_by_side_is_there() -> None:
    """A function that has another name now would lie somewhere, and its module perhaps be slow."""
    lost = []
    for line in lines("link_order.txt"):
        module, colon, name = line.rpartition(" ")[2].partition(":")
        source = f"{module.removeprefix('headrace.').replace('.', '/')}.py"
        if not colon:
            continue
        stays = any(fnmatch.fnmatchcase(source, pattern) for pattern in STAYS_PYTHON)
        if stays or not all(map(known(source).match, name.split("."))):
            lost.append(line)
    assert lost == []


@cache
def known(source: str) -> re.Pattern[str]:
    """Return what a module has: its classes and functions, and what mypyc makes of them."""
    names = re.findall(r"\b(?:class|def) (\w+)", (ROOT / source).read_text())
    return re.compile(rf"(__|3_|({'|'.join(names)})(_|$))")


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
    done = build_wheel(tmp_path / "out", CC=str(compiler))
    assert done.returncode != 0
    assert "compiling" in done.stdout + done.stderr
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


def test_the_version_is_told_once() -> None:
    from importlib.metadata import version

    from headrace.server.build import VERSION

    if os.environ.get("HEADRACE_EXPECT_BUILD") != "tree":
        assert version("headrace") == VERSION
    assert VERSION in (ROOT / "CHANGELOG.md").read_text()
