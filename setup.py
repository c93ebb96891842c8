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
import time
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from fnmatch import fnmatchcase
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

from setuptools import Command, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
PACKAGES = ("protocol", "storage", "persistence", "compat", "server")  # all are compiled
LIBRARY = "headrace.native"  # mypyc puts `__mypyc` behind it

# What runs when modules are imported: what each module and each type has, and mypyc's runtime.
RUNS_ONCE = (
    "*_____top_level__",
    "*_setup",
    "*_setup.*",
    "*_traverse",
    "CPy[A-CF-OQ-Z]*",  # neither CPyDef nor CPyPy nor CPyDunder: those are functions of ours
    "CPyDict_*",
    "CPyExec_*",
    "PyInit_*",
    "exec_*",
    "find_keyword",
    "import_librt_*",
    "init_subclass",
    "intern_strings",
    "parser_init*",
    "update_bases",
    "vgetargskeywordsfast_impl*",
)

# Modules that stay Python in the compiled build, by reason. What a request runs through is compiled
# and so is what the data of many keys runs through: loading, saving, writing anew.
STAYS_PYTHON = {
    "has no code of its own": ("*/__init__.py",),
    "runs once, at start or at the end": (
        "server/cli.py",
        "server/start.py",
        "server/process/*.py",
    ),
    "is read at start and by CONFIG": (
        "compat/config_names.py",
        "compat/parameters.py",
        "server/config/files.py",
        "server/config/kinds.py",
        "server/config/parameters.py",
        "server/config/rewrite.py",
        "server/config/tls_parameters.py",
        "server/net/tls/contexts.py",
        "server/net/tls/factory.py",
        "server/net/tls/names.py",
    ),
    "is run by name, with `python -m`": ("server/config/docs.py",),
    "documents commands: COMMAND DOCS and HELP": (
        "compat/doc_notation.py",
        "server/commands/*docs.py",
        "server/commands/documentation.py",
        "server/commands/help.py",
    ),
    "says that something is not there": (
        "server/commands/server/cluster.py",
        "server/commands/server/modules.py",
    ),
    "is for people, or for monitors that ask once a second": (
        "server/commands/replication/failover.py",
        "server/commands/server/debug.py",
        "server/commands/server/hotkeys.py",
        "server/commands/server/hotkeys_answers.py",
        "server/cluster/node_file.py",
        "server/commands/server/cluster_answers.py",
        "server/commands/server/debug_protocol.py",
        "server/commands/server/debug_structures.py",
        "server/commands/server/hotkeys.py",
        "server/commands/server/latency.py",
        "server/commands/server/lolwut.py",
        "server/commands/server/slowlog.py",
        "server/info/*section*.py",
        "server/info/latency_report.py",
    ),
    "waits in coroutines that are cancelled at the end": (
        "server/following/link.py",
        "server/regions/link.py",
    ),
    "runs while a script holds everything up, and heeds signals": ("server/net/while_busy.py",),
    "asks compiled modules to do the work": (
        "server/tools/asking.py",
        "server/tools/check.py",
        "server/tools/cli.py",
        "server/tools/columns.py",
        "server/tools/encrypting.py",
        "server/tools/progress.py",
        "server/tools/region_facts.py",
        "server/tools/regions.py",
    ),
}

# Modules that are compiled and rarely run: the compiler takes half as long where it tries less.
RARELY_RUN = (
    "compat/errors.py",
    "persistence/aof/directory.py",
    "persistence/aof/identity.py",
    "persistence/aof/manifest.py",
    "persistence/check.py",
    "persistence/errors.py",
    "persistence/forms/stream/rdb.py",
    "persistence/forms/stream/soundness.py",
    "persistence/rdb/*.py",
    "persistence/source.py",
    "server/acl/acl_file.py",
    "server/acl/commands.py",
    "server/acl/log.py",
    "server/acl/rules.py",
    "server/acl/users.py",
    "server/app.py",
    "server/commands/acl/*.py",
    "server/commands/connection/*.py",
    "server/commands/server/*.py",
    "server/commands/streams/dialect.py",
    "server/commands/streams/idle_consumers.py",
    "server/commands/streams/idmp.py",
    "server/commands/streams/info.py",
    "server/config/*.py",
    "server/cron/*.py",
    "server/dispatch/renaming.py",
    "server/durability/keeping.py",
    "server/durability/recovery.py",
    "server/durability/rewriting.py",
    "server/durability/saving.py",
    "server/durability/shutdown.py",
    "server/info/*.py",
    "server/loading/reloading.py",
    "server/loading/users.py",
    "server/loading/starting.py",
    "server/log.py",
    "server/net/listeners.py",
    "server/settings.py",
    "server/tools/*.py",
)


def sources() -> list[str]:
    """All modules of the packages that are compiled, as paths from here."""
    found = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


def packages() -> dict[str, str]:
    """What the wheel holds: the name of each package and its folder here."""
    folders = {source.rpartition("/")[0] for source in sources()}
    ours = {f"headrace.{folder.replace('/', '.')}": folder for folder in folders}
    return {"headrace": "headrace", **ours}


def modules_to_compile() -> list[str]:
    """The sources mypyc compiles."""
    patterns = [pattern for group in STAYS_PYTHON.values() for pattern in group]
    return [source for source in sources() if not fits(source, patterns)]


def fits(source: str, patterns: Iterable[str]) -> bool:
    """Whether one of the patterns is for this module."""
    return any(fnmatchcase(source, pattern) for pattern in patterns)


def full_name(source: str) -> str:
    """The name by which a module is imported."""
    return f"headrace.{source.removesuffix('.py').replace('/', '.')}"


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


def compiler() -> list[str]:
    """The C compiler, as it is called."""
    return shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")


def compiles(text: str, *how: str) -> bool:
    """Whether the compiler takes a C file."""
    source = Path(build_dir, "probe.c")
    source.write_text(text)
    probe = [*compiler(), str(source), "-o", f"{source}.o", *how]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


def runs(text: str, *how: str) -> bool:
    """Whether a C program can be made in this way, runs here, and ends well."""
    program = Path(build_dir, "probe.c.o")
    return compiles(text, *how) and subprocess.run([program], check=False).returncode == 0


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
    """Flags that have the linker put side by side what requests run through, and what a start does.

    A server that was just woken then has few pages to fetch: XADD takes a tenth less time. One that
    has just started has fetched little of all the rest, and takes 2 MiB less. Where the linker
    knows no such order, as on macOS, functions stay as they come.
    """
    lines = Path(ROOT, "server", "link_order.txt").read_text().splitlines()
    modules = [full_name(source) for source in modules_to_compile()]
    names = c_names([line for line in lines if not line.startswith("#")], modules)
    wanted = "".join(f"    *(.text.{name})\n" for name in names)
    once = "".join(f"    *(.text.{pattern})\n" for pattern in RUNS_ONCE)
    script = Path(build_dir, "link_order.ld")
    sections = f"  .text.frequent :\n  {{\n{wanted}{once}  }}\n"
    script.write_text(f"SECTIONS\n{{\n{sections}}}\nINSERT BEFORE .text;\n")
    order = f"-Wl,-T,{script}"
    how = ["-shared", "-fPIC", "-ffunction-sections", *shlex.split(os.environ.get("LDFLAGS", ""))]
    return [order] if compiles("int probe(void) { return 0; }\n", *how, order) else []


def packed_relocations() -> list[str]:
    """Flags that have the linker write down shortly which addresses the loader has to adjust.

    All that it reads of the library stays in memory, and this is 1 MiB less. Old loaders cannot
    read it, and a linker that knows no such form may say no word: so a program of the kind is run.
    """
    program = "static int at; static int *volatile to[] = {&at}; int main(void) { return *to[0]; }"
    how = ["-Wl,-z,pack-relative-relocs"]
    linking = [*how, "-fPIE", "-pie", *shlex.split(os.environ.get("LDFLAGS", ""))]
    return how if runs(program, *linking) else []


def c_names(lines: list[str], modules: list[str]) -> list[str]:
    """What mypyc calls functions in C that ``server/link_order.txt`` calls as Python does.

    A line is a name of mypyc's runtime, or ``kind module:name``, where the kind is what the name
    in C begins with and may be empty. What is in none of the modules is left out.
    """
    from mypyc.namegen import exported_name, make_module_translation_map

    short = make_module_translation_map(modules)
    names = []
    for line in lines:
        kind, _, place = line.rpartition(" ")
        module, colon, name = place.partition(":")
        if not colon:
            names.append(line)
        elif module in short:
            names.append(kind + exported_name(short[module] + name))
    return names


def extensions() -> list[Any]:
    """The extension modules of this build: none for a pure one."""
    if os.environ.get("HEADRACE_PURE") == "1":
        say("pure build (HEADRACE_PURE=1)")
        return []
    reason = missing_compiler()
    if reason:
        say(f"pure build, slower: {reason}")
        return []
    from mypyc.build import mypycify

    tree = Path(build_dir, "tree")
    link_tree(tree)
    os.environ["MYPYPATH"] = str(tree)  # names of modules are counted from here
    options = [f"--cache-dir={build_dir}/mypy", f"--config-file={ROOT}/pyproject.toml"]
    modules = [f"{tree}/headrace/{name}" for name in modules_to_compile()]
    say(f"compiling {len(modules)} modules: to C first, which shows nothing for some seconds")
    built = mypycify(
        options + modules,
        opt_level="3",
        debug_level="0",
        multi_file=True,
        target_dir=f"{build_dir}/c",
        group_name=LIBRARY,
    )
    ordered = link_order()
    for extension in built:
        # Old macros of the C compiler would break attributes of these names. Nobody reads the
        # warnings of code that mypyc wrote, and to look for them takes a tenth of the time.
        # All extensions share one list: what is added to it would be added for each of them.
        extension.extra_compile_args = [
            *extension.extra_compile_args,
            *("-Uunix", "-Ulinux", "-w", "-fvisibility=hidden"),
            *(["-ffunction-sections"] if ordered else []),
        ]
    library = built[0]
    library.extra_link_args = [*library.extra_link_args, *ordered, *packed_relocations()]
    library.include_dirs.append(f"{build_dir}/c/headrace")  # headers named for the library
    return built


def say(text: str) -> None:
    """One line for whoever waits."""
    print(f"headrace: {text}", file=sys.stderr, flush=True)


class Progress:
    """Share done and time left: one line on a terminal, elsewhere a line every few seconds."""

    FORMAT = "{desc} {percentage:3.0f}% |{bar:25}| {elapsed} gone, {remaining} left"
    EVERY_S = 5

    def __init__(self, what: str, total: int) -> None:
        """Begin; the total is in whatever unit ``advance`` is called with."""
        from tqdm import tqdm

        self._meter = tqdm.format_meter
        self._what = f"headrace: {what}"
        self._total = total
        self._done = 0
        self._started_s = self._shown_s = time.monotonic()
        self._bar: Any = None
        if sys.stderr.isatty():
            # A terminal that cannot tell its size gets a line all the same.
            self._bar = tqdm(
                desc=self._what,
                total=total,
                bar_format=self.FORMAT,
                smoothing=0,
                leave=False,
                ncols=79,
                nrows=24,
            )

    def advance(self, by: int) -> None:
        """So much more is done."""
        self._done += by
        now_s = time.monotonic()
        if self._bar is not None:
            self._bar.update(by)
        elif now_s - self._shown_s >= self.EVERY_S:
            self._shown_s = now_s
            gone_s = now_s - self._started_s
            line = self._meter(
                self._done, self._total, gone_s, prefix=self._what, bar_format=self.FORMAT
            )
            print(line, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Take the line away."""
        if self._bar is not None:
            self._bar.close()


def is_newer(path: str, than_ns: int) -> bool:
    """Whether a file is there and was written after this time, in nanoseconds since 1970."""
    return Path(path).exists() and Path(path).stat().st_mtime_ns > than_ns


def flags(*calls: Any) -> list[str]:
    """How the compiler is called, except for where headers lie: that may change with each build."""
    words = [word for call in calls for word in ([call] if isinstance(call, str) else call)]
    return [str(word) for word in words if not str(word).startswith("-I")]


class Compilation:
    """One C file that is to be compiled.

    What an earlier build in the same folder compiled, and is still newer than its source and all
    headers, is not compiled again, as long as the compiler is called in the same way.
    """

    AT_LEAST = 4_000  # even an empty file takes as long as so many bytes of what mypyc writes

    def __init__(self, target: str, source: str, how: list[Any]) -> None:
        """``how`` is what else setuptools hands on: suffix, options, more options, definitions."""
        self.target = target
        self.source = source
        self.how = how
        self.effort = self.AT_LEAST + Path(source).stat().st_size
        self._note = Path(f"{target}.how")

    def add(self, *options: str) -> None:
        """Have the compiler called with these as well."""
        self.how[2] = [*self.how[2], *options]

    def is_needed(self, program: list[str], newest_header_ns: int) -> bool:
        """Whether it has to run with this compiler."""
        newest_ns = max(newest_header_ns, Path(self.source).stat().st_mtime_ns)
        same = self._note.exists() and self._note.read_text() == self._called(program)
        return not (same and is_newer(self.target, newest_ns))

    def run(self, compiler: Any) -> None:
        """Compile, and note how."""
        self._note.unlink(missing_ok=True)
        compiler._compile(self.target, self.source, *self.how)
        self._note.write_text(self._called(compiler.compiler_so))

    def _called(self, program: list[str]) -> str:
        return repr([version("mypy"), *flags(program, *self.how)])


def names_of_rarely_run() -> set[str]:
    """What mypyc calls the C files of such modules."""
    from mypyc.namegen import exported_name

    modules = [full_name(source) for source in modules_to_compile() if fits(source, RARELY_RUN)]
    return {f"__native_{exported_name(module)}.c" for module in modules}


def precompiled(name: str, included: list[str], compilations: list[Compilation]) -> Compilation:
    """Have all of these files begin with one header, which is compiled once: that is returned.

    Most C files here are small, and reading what they include takes longer than all else.
    """
    header = Path(build_dir, "heads", f"{name}.h")
    header.parent.mkdir(exist_ok=True)
    text = "".join(f"#include {each}\n" for each in included)
    if not header.exists() or header.read_text() != text:
        header.write_text(text)
    # Where the compiler is to include NAME it takes NAME.gch, if that was made in the same way.
    head = Compilation(f"{header}.gch", str(header), list(compilations[0].how))
    for each in compilations:
        each.add("-include", str(header))
    return head


class ParallelBuildExt(build_ext):
    """Compiles and links on all processors; setuptools does one thing after another."""

    LINKING = 10_000  # takes as long as compiling so many bytes

    def build_extensions(self) -> None:
        """Hear from setuptools what is to be done, then do it: the longest first."""
        compiler: Any = self.compiler
        really = compiler._compile, compiler.link
        compilations: list[Compilation] = []
        links: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
        compiler._compile = lambda target, source, *how: compilations.append(
            Compilation(target, source, list(how))
        )
        compiler.link = lambda *arguments, **options: links.append((arguments, options))
        super().build_extensions()
        compiler._compile, compiler.link = really
        if compilations:
            self._build(compiler, compilations, links)

    def _build(self, compiler: Any, compilations: list[Compilation], links: list[Any]) -> None:
        modules = [each for each in compilations if Path(each.source).name.startswith("__native")]
        rare = names_of_rarely_run()
        rarely_run = [each for each in modules if Path(each.source).name in rare]
        often_run = [each for each in modules if each not in rarely_run]
        for each in rarely_run:
            each.add("-O1")
        in_packages = [each for each in compilations if f"{build_dir}/c/headrace/" in each.source]
        shims = [each for each in in_packages if each not in modules]
        library = LIBRARY.rpartition(".")[2]
        includes = [f'"__native_{library}.h"', f'"__native_internal_{library}.h"']
        heads = [
            precompiled("often_run", includes, often_run),
            precompiled("rarely_run", includes, rarely_run),
            precompiled("shims", ["<Python.h>"], shims),
        ]
        newest_ns = max(path.stat().st_mtime_ns for path in Path(build_dir).rglob("*.h"))
        for head in heads:
            if head.is_needed(compiler.compiler_so, newest_ns):
                head.run(compiler)
        needed = [
            each
            for each in sorted(compilations, key=lambda each: -each.effort)
            if each.is_needed(compiler.compiler_so, newest_ns)
        ]
        total = sum(each.effort for each in needed) + len(links) * self.LINKING
        progress = Progress("compiling", total)
        compiled: dict[str, Future[None]] = {}

        def link(*arguments: Any, **options: Any) -> None:
            for each in arguments[1]:  # the objects
                if each in compiled:
                    compiled[each].result()
            compiler.link(*arguments, **options)

        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            for each in needed:
                compiled[each.target] = pool.submit(each.run, compiler)
            # Linking waits for what was begun before it, so the pool cannot come to a stand.
            linked = [pool.submit(link, *arguments, **options) for arguments, options in links]
            try:
                for each in needed:
                    compiled[each.target].result()
                    progress.advance(each.effort)
                for future in linked:
                    future.result()
                    progress.advance(self.LINKING)
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
            finally:
                progress.close()


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
    packages=sorted(packages()),
    package_dir=packages(),
    include_package_data=False,  # of what sdist takes, the wheel needs the modules alone, and this
    package_data={"headrace.server.scripting.lua": ["*.lua"]},
    ext_modules=extensions() if building else [],
    cmdclass={"build_ext": ParallelBuildExt, "tree": LinkTree},
    options={
        "build": {"build_base": build_dir, "build_lib": f"{build_dir}/lib"},
        "egg_info": {"egg_base": f"{build_dir}/egg"},
    },
)
