"""Build: compiles our packages with mypyc where a C compiler is found, otherwise leaves Python.

``HEADRACE_PURE=1`` asks for the pure build. ``HEADRACE_BUILD_DIR`` names a folder to keep between
builds: what was compiled there is not compiled again while source, headers and options are the
same. Without it the build works in a temporary folder. Nothing is ever written beside the sources,
because a stale extension module there would shadow them.

There are three classes of modules. *Hot* ones, through which requests run, are those that
``server/link_order.txt`` names first (``make link-order`` writes it, from the benchmarks): they are
compiled with -O3. What ``STAYS_PYTHON`` names is not compiled. All the rest is compiled with -O1,
which takes 40 % less time. All that is compiled lies in one library, from which ``headrace``
imports by itself (``headrace/__init__.py``).
"""

from __future__ import annotations

import atexit
import io
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from fnmatch import fnmatchcase
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from setuptools import setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError
from setuptools.extension import Extension

ROOT = Path(__file__).resolve().parent
PACKAGES = ("protocol", "storage", "persistence", "compat", "server")
LIBRARY = "headrace.native"  # mypyc puts `__mypyc` behind it
HOT = ["-O3"]
COLD = ["-O1", "-fcrossjumping", "-ftree-tail-merge"]  # the code of errors is shared: 8 % less

# What stays Python, by reason. What a request runs through is compiled, and so is what the data of
# many keys runs through: loading, saving, writing anew.
STAYS_PYTHON = {
    "has no code of its own": ("*/__init__.py",),
    "runs once, at start or at the end": (
        "server/cli.py",
        "server/start.py",
        "server/succession.py",
        "server/process/*",
    ),
    "is read at start and by CONFIG": (
        "compat/config_names.py",
        "compat/parameters.py",
        "server/config/docs.py",
        "server/config/files.py",
        "server/config/kinds.py",
        "server/config/parameters.py",
        "server/config/rewrite.py",
        "server/config/tls_parameters.py",
        "server/net/tls/contexts.py",
        "server/net/tls/factory.py",
        "server/net/tls/names.py",
    ),
    "documents commands: COMMAND DOCS and HELP": (
        "compat/doc_notation.py",
        "server/commands/*docs.py",
        "server/commands/documentation.py",
        "server/commands/help.py",
    ),
    "is for people, or for monitors that ask once a second": (
        "server/cluster/node_file.py",
        "server/commands/replication/failover.py",
        "server/commands/server/cluster*.py",
        "server/commands/server/debug*.py",
        "server/commands/server/hotkeys*.py",
        "server/commands/server/latency.py",
        "server/commands/server/lolwut.py",
        "server/commands/server/modules.py",
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

# What runs when modules are imported: what each module and each type has, and mypyc's runtime.
RUNS_ONCE = (  # of CPy*, neither CPyDef nor CPyPy nor CPyDunder: those are ours
    "*_____top_level__ *_setup *_setup.* *_traverse CPy[A-CF-OQ-Z]* CPyDict_* CPyExec_* PyInit_* "
    "Py_* exec_* find_keyword import_librt_* init_subclass intern_strings parser_init* "
    "update_bases vgetargskeywordsfast_impl*"
).split()


def sources() -> list[str]:
    """All modules of our packages, as paths from here."""
    found = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


def packages() -> dict[str, str]:
    """What the wheel holds: the name of each package and its folder here."""
    folders = {source.rpartition("/")[0] for source in sources()}
    ours = {f"headrace.{folder.replace('/', '.')}": folder for folder in folders}
    return {"headrace": "headrace", **ours}


def modules_to_compile() -> dict[str, str]:
    """By their names, the sources that mypyc compiles."""
    kept = [pattern for group in STAYS_PYTHON.values() for pattern in group]
    return {
        f"headrace.{source.removesuffix('.py').replace('/', '.')}": source
        for source in sources()
        if not any(fnmatchcase(source, pattern) for pattern in kept)
    }


def link_order() -> tuple[list[str], list[str]]:
    """The lines of ``server/link_order.txt``: what requests run through, and what a start does."""
    text = Path(ROOT, "server", "link_order.txt").read_text()
    requests, start = ([], [])  # type: tuple[list[str], list[str]]
    at = requests
    for line in text.splitlines():
        if line.startswith("# What a start"):
            at = start
        elif not line.startswith("#"):
            at.append(line)
    return requests, start


def hot_modules() -> set[str]:
    """The names of the modules that requests run through."""
    places = [line.rpartition(" ")[2] for line in link_order()[0]]
    return {module for module, colon, _ in (place.partition(":") for place in places) if colon}


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


def linker_options() -> list[str]:
    """Put side by side what requests run through and what a start does; write relocations shortly.

    An empty server takes 9 MiB less: the system fetches pages by the dozen, and most that are
    fetched at a start are then used. One that was just woken has few pages to fetch: XADD takes a
    tenth less time. Short relocations are 1 MiB less. Where the linker knows no such order, as on
    macOS, functions stay as they come; old loaders cannot read short relocations, and a linker that
    knows none may say no word, so a program of the kind is run.
    """
    found = []
    lists = "".join(f"    *(.text.{name})\n" for name in [*c_names(), *RUNS_ONCE])
    script = Path(build_dir, "link_order.ld")
    script.write_text(f"SECTIONS {{ .text.frequent : {{\n{lists}}} }} INSERT BEFORE .text;\n")
    usual = shlex.split(os.environ.get("LDFLAGS", ""))
    shared = ["-shared", "-fPIC", "-ffunction-sections", *usual]
    if compiles("int probe(void) { return 0; }\n", *shared, f"-Wl,-T,{script}"):
        found.append(f"-Wl,-T,{script}")
    program = "static int at; static int *volatile to[] = {&at}; int main(void) { return *to[0]; }"
    short = "-Wl,-z,pack-relative-relocs"
    made = compiles(program, short, "-fPIE", "-pie", *usual)
    if made and subprocess.run([Path(build_dir, "probe.c.o")], check=False).returncode == 0:
        found.append(short)
    return found


def c_names() -> list[str]:
    """What mypyc calls functions in C that ``server/link_order.txt`` calls as Python does.

    A line is a name of mypyc's runtime, or ``kind module:name``, where the kind is what the name
    in C begins with and may be empty. What is in none of the modules is left out.
    """
    from mypyc.namegen import exported_name, make_module_translation_map

    short = make_module_translation_map(list(modules_to_compile()))
    requests, start = link_order()
    names = []
    for line in [*requests, *start]:
        kind, _, place = line.rpartition(" ")
        module, colon, name = place.partition(":")
        if not colon:
            names.append(line)
        elif module in short:
            names.append(kind + exported_name(short[module] + name))
    return names


def extensions() -> list[Extension]:
    """The library, and what imports from it; nothing for a pure build."""
    if os.environ.get("HEADRACE_PURE") == "1":
        say("pure build (HEADRACE_PURE=1)")
        return []
    reason = missing_compiler()
    if reason:
        say(f"pure build, slower: {reason}")
        return []
    from mypyc.build import mypycify

    # From here, which every tool that builds makes the current folder: the C is the same wherever
    # the checkout lies, and tracebacks name no folder of the machine that built it.
    os.environ["MYPYPATH"] = "."
    modules = modules_to_compile()
    say(f"compiling {len(modules)} modules: to C first, which shows nothing for some seconds")
    built = mypycify(
        [
            f"--cache-dir={build_dir}/mypy",
            f"--config-file={ROOT}/pyproject.toml",
            *(f"headrace/{source}" for source in modules.values()),
        ],
        opt_level="3",
        debug_level="0",
        multi_file=True,
        target_dir=f"{build_dir}/c",
        group_name=LIBRARY,
    )
    library = built[0]  # behind it come modules that import it, one for each of ours: not needed
    assert isinstance(library, Extension)
    library.include_dirs.append(f"{build_dir}/c/headrace")  # headers named for the library
    # Old macros of the compiler would break attributes of these names. Warnings about code that
    # mypyc wrote are for nobody, and to look for them takes a tenth of the time.
    how = ["-Uunix", "-Ulinux", "-w", "-fvisibility=hidden", "-ffunction-sections"]
    library.extra_compile_args = [*library.extra_compile_args, *how]
    library.extra_link_args = [*library.extra_link_args, *linker_options()]
    return [library, Extension("headrace.importer", ["headrace/importer.c"])]


def say(text: str) -> None:
    """One line for whoever waits."""
    print(f"headrace: {text}", file=sys.stderr, flush=True)


class Progress:
    """Share done and time left: one line on a terminal, elsewhere a line now and then."""

    FORMAT = "{desc} {percentage:3.0f}% |{bar:25}| {elapsed} gone, {remaining} left"
    EVERY_S = float(os.environ.get("HEADRACE_PROGRESS_S", "5"))

    def __init__(self, what: str, total: int) -> None:
        """Begin; the total is in whatever unit ``advance`` is called with."""
        from tqdm import tqdm

        self._on_terminal = sys.stderr.isatty() and "HEADRACE_PROGRESS_S" not in os.environ
        self._bar = tqdm(
            desc=f"headrace: {what}",
            total=total,
            bar_format=self.FORMAT,
            smoothing=0,
            leave=False,
            ncols=79,
            nrows=24,
            file=sys.stderr if self._on_terminal else io.StringIO(),
        )
        self._shown_s = time.monotonic()

    def advance(self, by: int) -> None:
        """So much more is done."""
        self._bar.update(by)
        if not self._on_terminal and time.monotonic() - self._shown_s >= self.EVERY_S:
            self._shown_s = time.monotonic()
            print(self._bar, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Take the line away."""
        self._bar.close()


class Step(NamedTuple):
    """One run of the compiler."""

    target: str
    source: str
    command: list[str]

    def is_needed(self, newest_header_ns: int) -> bool:
        """Whether the target is older than what it is made of, or was made in another way."""
        target, note = Path(self.target), Path(f"{self.target}.how")
        newest_ns = max(newest_header_ns, Path(self.source).stat().st_mtime_ns)
        made = target.exists() and target.stat().st_mtime_ns > newest_ns
        return not (made and note.exists() and note.read_text() == self._how())

    def run(self) -> None:
        """Compile, and note how when that is done: what was interrupted is done again."""
        note = Path(f"{self.target}.how")
        note.unlink(missing_ok=True)
        done = subprocess.run(self.command, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            errors = [line for line in done.stderr.splitlines() if "error" in line.lower()]
            why = errors[0] if errors else f"{self.command[0]} ended with {done.returncode}"
            raise CompileError(f"{done.stderr}\n{self.source}: {why}")  # the last line says why
        note.write_text(self._how())

    def effort(self) -> int:
        """How long it takes; even an empty file takes as long as some bytes."""
        return 4_000 + Path(self.source).stat().st_size

    def _how(self) -> str:
        # Where headers lie may change with each build, and what was built may be moved.
        words = [word for word in self.command if not word.startswith("-I")]
        return shlex.join([version("mypy"), *words]).replace(build_dir, "")


class ParallelBuild(build_ext):
    """Compiles on all processors: what is hot first, and regions last."""

    def build_extension(self, ext: Extension) -> None:
        """Compile what has changed, then link."""
        Path(self.build_temp).mkdir(parents=True, exist_ok=True)
        steps = {source: self._step(ext, source) for source in map(str, ext.sources)}
        headers = [path.stat().st_mtime_ns for path in Path(build_dir).rglob("*.h")]
        newest_ns = max(headers, default=0)
        for level in (HOT, COLD):
            head = self._head(ext, level)
            if len(steps) > 1 and head.is_needed(newest_ns):
                head.run()
        needed = [step for step in steps.values() if step.is_needed(newest_ns)]
        needed.sort(key=lambda step: (*rank(step.source), -step.effort()))
        progress = Progress("compiling", sum(step.effort() for step in needed))
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            running = {pool.submit(step.run): step for step in needed}
            try:
                for future in as_completed(running):
                    future.result()
                    progress.advance(running[future].effort())
            finally:
                pool.shutdown(cancel_futures=True)
                progress.close()
        objects = [step.target for step in steps.values()]
        options = {"extra_postargs": ext.extra_link_args, "build_temp": self.build_temp}
        self.compiler.link_shared_object(objects, self.get_ext_fullpath(ext.name), **options)

    def _step(self, ext: Extension, source: str) -> Step:
        how = [*ext.extra_compile_args, *HOT]
        if Path(source).name.startswith("__native_headrace___"):
            level = COLD if rank(source)[0] else HOT
            how = [*ext.extra_compile_args, *level, "-include", self._head(ext, level).source]
        target = f"{self.build_temp}/{source.removeprefix(build_dir).replace('/', '_')}.o"
        return Step(target, source, self._command(ext, target, source, how))

    def _head(self, ext: Extension, level: list[str]) -> Step:
        """What compiles, once for many files, the header that all of ours begin with.

        Most of them are small, and reading what they include takes longer than all else. The
        compiler takes NAME.gch for NAME where both were made in the same way.
        """
        header = Path(build_dir, f"head{level[0]}.h")
        library = LIBRARY.rpartition(".")[2]
        names = (f"__native_{library}.h", f"__native_internal_{library}.h")
        text = "".join(f'#include "{name}"\n' for name in names)
        if not header.exists() or header.read_text() != text:
            header.write_text(text)
        how = [*ext.extra_compile_args, *level]
        return Step(
            f"{header}.gch", str(header), self._command(ext, f"{header}.gch", str(header), how)
        )

    def _command(self, ext: Extension, target: str, source: str, how: list[str]) -> list[str]:
        folders = [*ext.include_dirs, *self.compiler.include_dirs]
        places = [f"-I{folder}" for folder in folders]
        return [*self.compiler.compiler_so, "-c", source, "-o", target, *places, *how]


@cache
def ranks() -> dict[str, tuple[bool, bool]]:
    """By the names of the files in C: whether a module is cold, and of regions."""
    hot = hot_modules()
    return {
        f"__native_{name.replace('.', '___')}.c": (name not in hot, "region" in name)
        for name in modules_to_compile()
    }


def rank(source: str) -> tuple[bool, bool]:
    """What is compiled first; mypyc's own runtime is hot."""
    return ranks().get(Path(source).name, (False, False))


def prepare_build_dir() -> str:
    """A folder for everything the build writes; only intermediate files survive in a kept one."""
    kept = os.environ.get("HEADRACE_BUILD_DIR")
    if not kept:
        path = Path(tempfile.mkdtemp(prefix="headrace-build-"))
        atexit.register(shutil.rmtree, path, ignore_errors=True)
    else:
        path = Path(kept).resolve()
        for part in ("lib", "egg"):
            shutil.rmtree(path / part, ignore_errors=True)
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
    cmdclass={"build_ext": ParallelBuild},
    options={
        "build": {"build_base": build_dir, "build_lib": f"{build_dir}/lib"},
        "egg_info": {"egg_base": f"{build_dir}/egg"},
    },
)
