"""Build: compiles our packages with mypyc where a C compiler is at hand, otherwise leaves Python.

``HEADRACE_PURE=1`` asks for the pure build. ``HEADRACE_BUILD_DIR`` names a folder to keep between
builds, so that unchanged C files are not compiled again; without it the build works in a
temporary folder. Nothing is ever written beside the sources: a stale extension module there
would shadow them.

The wheel lays the folders of our packages below one package, ``headrace``. What looks for modules
by name, as mypyc does, is shown a tree of links in which they lie there already.
"""

from __future__ import annotations

import atexit
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

from setuptools import Command, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
PACKAGES = ("protocol", "storage", "persistence", "compat", "server")  # all are compiled

# Modules that stay Python in the compiled build, each with its reason.
EXCLUDE = {
    "server/cli.py": "runs once, at start",
    "server/config/docs.py": "run by name with `python -m headrace.server.config.docs`",
}


def link_tree(folder: Path) -> None:
    """Lay our packages below ``headrace`` in a folder, as links to the sources."""
    package = folder / "headrace"
    package.mkdir(parents=True, exist_ok=True)
    wanted = {path.name: path for path in (ROOT / "headrace").glob("*.py")}
    wanted |= {name: ROOT / name for name in PACKAGES}
    for link in package.iterdir():
        if link.name not in wanted or link.readlink() != wanted[link.name]:
            link.unlink()
    for name, source in wanted.items():
        if not (package / name).is_symlink():
            (package / name).symlink_to(source)


class LinkTree(Command):
    """``python setup.py tree``: links for mypy, editors and a look without installing."""

    description = "lay the packages below build/tree/headrace, as links"
    user_options: ClassVar[list[tuple[str, str | None, str]]] = []

    def initialize_options(self) -> None:
        """There are none."""

    def finalize_options(self) -> None:
        """There are none."""

    def run(self) -> None:
        """Make the links that lack."""
        link_tree(ROOT / "build" / "tree")


def modules_to_compile() -> list[str]:
    """The sources mypyc compiles; an ``__init__`` without code gains nothing and is left out."""
    found = []
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if path.name != "__init__.py" and name not in EXCLUDE:
                found.append(name)
    return found


def compiler() -> list[str]:
    """The C compiler, as it is called."""
    return shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")


def compiles(text: str, *how: str) -> bool:
    """Whether the compiler takes a C file."""
    source = Path(build_dir, "probe.c")
    source.write_text(text)
    probe = [*compiler(), str(source), "-o", f"{source}.o", *how]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


def missing_compiler() -> str:
    """What stands in the way of compiling, or an empty string."""
    include = sysconfig.get_path("include")
    if not Path(include, "Python.h").exists():
        return f"no Python.h in {include}"
    program = compiler()[0]
    if shutil.which(program) is None:
        return f"no C compiler ({program})"
    if not compiles("#include <Python.h>\nint main(void) { return 0; }\n", "-I", include, "-c"):
        return f"{program} cannot compile a file with Python.h"
    return ""


def link_order() -> list[str]:
    """Flags that have the linker put side by side what requests run through.

    A server that was just woken then has few pages to fetch: XADD takes a tenth less time. Where
    the linker knows no such order, as on macOS, functions stay as they come.
    """
    lines = Path(ROOT, "server", "link_order.txt").read_text().splitlines()
    names = [line for line in lines if not line.startswith("#")]
    wanted = "".join(f"    *(.text.{name})\n" for name in names)
    script = Path(build_dir, "link_order.ld")
    section = f"  .text.frequent :\n  {{\n{wanted}  }}\n"
    script.write_text(f"SECTIONS\n{{\n{section}}}\nINSERT BEFORE .text;\n")
    order = f"-Wl,-T,{script}"
    how = ["-shared", "-fPIC", "-ffunction-sections", *shlex.split(os.environ.get("LDFLAGS", ""))]
    return [order] if compiles("int probe(void) { return 0; }\n", *how, order) else []


def extensions() -> list[Any]:
    """The extension modules of this build: none for a pure one."""
    if os.environ.get("HEADRACE_PURE") == "1":
        print("headrace: pure build (HEADRACE_PURE=1)", file=sys.stderr)
        return []
    reason = missing_compiler()
    if reason:
        print(f"headrace: pure build, slower: {reason}", file=sys.stderr)
        return []
    from mypyc.build import mypycify

    tree = Path(build_dir, "tree")
    link_tree(tree)
    os.environ["MYPYPATH"] = str(tree)  # names of modules are counted from here
    options = [f"--cache-dir={build_dir}/mypy", f"--config-file={ROOT}/pyproject.toml"]
    modules = [f"{tree}/headrace/{name}" for name in modules_to_compile()]
    print(f"headrace: compiling {len(modules)} modules", file=sys.stderr)
    built = mypycify(
        options + modules,
        opt_level="3",
        debug_level="0",
        multi_file=True,
        target_dir=f"{build_dir}/c",
        group_name="headrace",
    )
    ordered = link_order()
    for extension in built:
        # Old macros of the C compiler would break attributes of these names; and a warning that
        # some newer compiler finds is no reason to refuse an installation.
        # All extensions share one list: what is added to it would be added for each of them.
        extension.extra_compile_args = [
            *extension.extra_compile_args,
            *("-Uunix", "-Ulinux", "-Wno-error", "-fvisibility=hidden"),
            *(["-ffunction-sections"] if ordered else []),
        ]
        extension.extra_link_args = [*extension.extra_link_args, *ordered]
    return built


def is_newer(path: str, than_ns: int) -> bool:
    """Whether a file is there and was written after this time, in nanoseconds since 1970."""
    return Path(path).exists() and Path(path).stat().st_mtime_ns > than_ns


def flags(*calls: Any) -> list[str]:
    """How the compiler is called, but for where headers lie: that may change with each build."""
    words = [word for call in calls for word in ([call] if isinstance(call, str) else call)]
    return [str(word) for word in words if not str(word).startswith("-I")]


class ParallelBuildExt(build_ext):
    """Compiles the C files of one extension side by side; setuptools takes one after another.

    What an earlier build in the same folder compiled, and is still newer than its source and all
    headers, is not compiled again, as long as the compiler is called in the same way.
    """

    def build_extensions(self) -> None:
        """Let each compilation start in a pool, and linking wait for all of them."""
        compiler: Any = self.compiler
        compile_one = compiler._compile
        link = compiler.link
        pending: list[Future[None]] = []
        headers = [path.stat().st_mtime_ns for path in Path(build_dir).rglob("*.h")]
        newest_header_ns = max(headers, default=0)

        def compile_changed(target: str, source: str, *how: Any) -> None:
            note = Path(f"{target}.how")
            told = repr([version("mypy"), *flags(compiler.compiler_so, *how)])
            newest_ns = max(newest_header_ns, Path(source).stat().st_mtime_ns)
            if is_newer(target, newest_ns) and note.exists() and note.read_text() == told:
                return
            note.unlink(missing_ok=True)
            compile_one(target, source, *how)
            note.write_text(told)

        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:

            def start(*arguments: Any) -> None:
                pending.append(pool.submit(compile_changed, *arguments))

            def link_when_compiled(*arguments: Any, **options: Any) -> None:
                for each in pending:
                    each.result()
                pending.clear()
                link(*arguments, **options)

            compiler._compile = start
            compiler.link = link_when_compiled
            super().build_extensions()


def prepare_build_dir() -> str:
    """A folder for everything the build writes; only intermediate files survive in a kept one."""
    kept = os.environ.get("HEADRACE_BUILD_DIR")
    if kept:
        path = Path(kept).resolve()
        for part in ("lib", "egg"):
            shutil.rmtree(path / part, ignore_errors=True)
    else:
        path = Path(tempfile.mkdtemp(prefix="headrace-build-"))
        atexit.register(shutil.rmtree, path, ignore_errors=True)
    (path / "egg").mkdir(parents=True, exist_ok=True)
    return str(path)


build_dir = prepare_build_dir()
building = any(word in sys.argv for word in ("bdist_wheel", "build", "build_ext"))

setup(
    ext_modules=extensions() if building else [],
    cmdclass={"build_ext": ParallelBuildExt, "tree": LinkTree},
    options={
        "build": {"build_base": build_dir, "build_lib": f"{build_dir}/lib"},
        "egg_info": {"egg_base": f"{build_dir}/egg"},
    },
)
