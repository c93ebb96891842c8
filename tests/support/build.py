"""Which build the tests run, and how a subprocess is made to run the same one.

``HEADRACE_EXPECT_BUILD`` says what must be under test: ``compiled`` or ``pure`` (installed builds),
or ``tree`` (the checkout as it lies there, uncompiled, for a quick look while editing). Unset, any
installed build will do.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class WrongBuildError(Exception):
    """The build under test is not the one that was asked for."""


def expected() -> str:
    return os.environ.get("HEADRACE_EXPECT_BUILD", "")


def use_tree() -> bool:
    return expected() == "tree"


def location() -> Path:
    """The folder that ``import headrace`` finds, before importing it."""
    spec = importlib.util.find_spec("headrace")
    if spec is None or spec.origin is None:
        raise WrongBuildError(
            "headrace is not installed here: use `make test`, "
            "or HEADRACE_EXPECT_BUILD=tree to test the checkout as it is"
        )
    return Path(spec.origin).parent


def check() -> str:
    """Make sure that the right build is under test; say which one it is.

    Raises: WrongBuildError.
    """
    if use_tree():
        sys.path.insert(0, str(ROOT))
    found = location()
    if not use_tree() and found.is_relative_to(ROOT) and "site-packages" not in found.parts:
        raise WrongBuildError(
            f"`headrace` comes from the checkout ({found}), not from an installed build: "
            "use `make test`, or run python with -P"
        )
    from headrace.server.build import build_kind

    kind = build_kind()
    if expected() not in ("", "tree", kind):
        raise WrongBuildError(f"expected the {expected()} build, but {found} is {kind}")
    return f"headrace: {'tree, ' if use_tree() else ''}{kind} build from {found}"


def in_library() -> set[str]:
    """The names of the modules that the compiled library holds; none in a pure build."""
    try:
        library = importlib.import_module("headrace.native__mypyc")
    except ModuleNotFoundError:
        return set()
    capsules = [name for name in vars(library) if name.startswith("init_headrace___")]
    return {name.removeprefix("init_").replace("___", ".") for name in capsules}


def environment() -> dict[str, str]:
    """Environment variables for a subprocess that shall import what we import."""
    variables = dict(os.environ)
    variables.pop("PYTHONPATH", None)
    if use_tree():
        variables["PYTHONPATH"] = str(ROOT)
    variables["PYTHONSAFEPATH"] = "1"
    return variables
