"""Build: compiles our packages with mypyc where a C compiler is found, otherwise leaves Python.

``HEADRACE_PURE=1`` asks for the pure build. ``HEADRACE_BUILD_DIR`` names a folder to keep between
builds: what was compiled there is not compiled again while source, headers and options are the
same. Without it the build works in a temporary folder. Nothing is ever written beside the sources,
because a stale extension module there would shadow them.

There are three classes of modules. *Hot* ones, through which requests run, are those that
``server/link_order.txt`` names first (``make link-order`` writes it, from the benchmarks): they are
compiled with -O3. What ``server/stays_python.txt`` names is not compiled. All the rest is compiled
with -O1, which takes 40 % less time. All that is compiled lies in one library, from which
``headrace`` imports by itself (``headrace/__init__.py``); a wheel that has it leaves the sources
of these modules out. ``HEADRACE_SYMBOLS=1`` keeps the names of functions in it, which perf shows.
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
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from setuptools import setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.errors import CompileError
from setuptools.extension import Extension

ROOT = Path(__file__).resolve().parent
WINGS = ("testkit", "policies", "metrics", "console", "regions")
PACKAGES = ("protocol", "storage", "persistence", "compat", "server", *WINGS)
LIBRARY = "headrace.native"  # mypyc puts `__mypyc` behind it
HOT = ["-O3"]
COLD = ["-O1", "-fcrossjumping", "-ftree-tail-merge"]  # the code of errors is shared: 8 % less
# Old macros of the compiler would break attributes of these names. Warnings about code that mypyc
# wrote are for nobody, and to look for them takes a tenth of the time.
ALL = ["-Uunix", "-Ulinux", "-w", "-fvisibility=hidden", "-ffunction-sections"]

# What runs when modules are imported: what each module and each type has, and mypyc's runtime.
RUNS_ONCE = (  # of CPy*, neither CPyDef nor CPyPy nor CPyDunder: those are ours
    "*_____top_level__ *_setup *_setup.* *_traverse CPy[A-CF-OQ-Z]* CPyDict_* CPyExec_* PyInit_* "
    "Py_* exec_* find_keyword import_librt_* init_subclass intern_strings parser_init* "
    "update_bases vgetargskeywordsfast_impl*"
).split()


def say(text: str) -> None:
    """One line for whoever waits."""
    print(f"headrace: {text}", file=sys.stderr, flush=True)


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
    kept = Path(ROOT, "server", "stays_python.txt").read_text().splitlines()
    return {
        f"headrace.{source.removesuffix('.py').replace('/', '.')}": source
        for source in sources()
        if not any(fnmatchcase(source, pattern) for pattern in kept)
    }


def link_order() -> tuple[list[str], list[str]]:
    """The lines of ``server/link_order.txt``: what requests run through, and what a start does."""
    text = Path(ROOT, "server", "link_order.txt").read_text()
    requests, start = text.split("# What a start")
    ordered = [line for line in requests.splitlines() if not line.startswith("#")]
    return ordered, start.splitlines()[1:]


def c_names() -> list[str]:
    """What mypyc calls functions in C that ``server/link_order.txt`` calls as Python does.

    A line is a name of mypyc's runtime, or ``kind module:name``, where the kind is what the name
    in C begins with and may be empty. What is in none of the modules is left out.
    """
    from mypyc.namegen import exported_name, make_module_translation_map

    short = make_module_translation_map(list(modules_to_compile()))
    names = []
    requests, start = link_order()
    for line in [*requests, *start]:
        kind, _, place = line.rpartition(" ")
        module, colon, name = place.partition(":")
        if not colon:
            names.append(line)
        elif module in short:
            names.append(kind + exported_name(short[module] + name))
    return names


def compiles(text: str, *how: str) -> bool:
    """Whether the compiler takes a C file."""
    source = Path(build_dir, "probe.c")
    source.write_text(text)
    probe = [*COMPILER, str(source), "-o", f"{source}.o", *how]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


def missing_compiler() -> str:
    """What stands in the way of compiling, or an empty string."""
    include, program = sysconfig.get_path("include"), COMPILER[0]
    if not Path(include, "Python.h").exists():
        return f"no Python.h in {include}"
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
    lists = "".join(f"    *(.text.{name})\n" for name in [*c_names(), *RUNS_ONCE])
    script = Path(build_dir, "link_order.ld")
    script.write_text(f"SECTIONS {{ .text.frequent : {{\n{lists}}} }} INSERT BEFORE .text;\n")
    usual = shlex.split(os.environ.get("LDFLAGS", ""))
    order, short = f"-Wl,-T,{script}", "-Wl,-z,pack-relative-relocs"
    shared = compiles("int probe(void) { return 0; }\n", "-shared", "-fPIC", *usual, order)
    text = "static int at; static int *volatile to[] = {&at}; int main(void) { return *to[0]; }"
    made = compiles(text, short, "-fPIE", "-pie", *usual)
    runs = made and subprocess.run([f"{build_dir}/probe.c.o"], check=False).returncode == 0
    nameless = [] if os.environ.get("HEADRACE_SYMBOLS") == "1" else ["-Wl,-s"]
    return [order] * shared + [short] * runs + nameless


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
    settings = [f"--cache-dir={build_dir}/mypy", f"--config-file={ROOT}/pyproject.toml"]
    library = mypycify(
        [*settings, *(f"headrace/{source}" for source in modules.values())],
        opt_level="3",
        debug_level="0",
        multi_file=True,
        target_dir=f"{build_dir}/c",
        group_name=LIBRARY,
    )[0]  # behind it come modules that import it, one for each of ours: not needed
    assert isinstance(library, Extension)
    library.include_dirs.append(f"{build_dir}/c/headrace")  # headers named for the library
    library.extra_compile_args = [*library.extra_compile_args, *ALL]
    library.extra_link_args = [*library.extra_link_args, *linker_options()]
    importer = Extension("headrace.importer", ["headrace/importer.c"], extra_compile_args=["-g0"])
    return [library, importer]


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


class WithoutCompiled(build_py):
    """Takes the modules that stay Python, and all of them where nothing is compiled."""

    def find_package_modules(self, package: str, package_dir: str) -> list[tuple[str, str, str]]:
        """Return name of the package, name and file of each module."""
        found = super().find_package_modules(package, package_dir)  # type: ignore[no-untyped-call]
        return [each for each in found if f"{each[0]}.{each[1]}" not in compiled]


class ParallelBuild(build_ext):
    """Compiles on all processors."""

    def build_extension(self, ext: Extension) -> None:
        """Compile what has changed, then link."""
        Path(self.build_temp).mkdir(parents=True, exist_ok=True)
        steps = [self._step(ext, str(source)) for source in ext.sources]
        heads = [self._head(ext, level) for level in (HOT, COLD)] if len(steps) > 1 else []
        headers = [path.stat().st_mtime_ns for path in Path(build_dir).rglob("*.h")]
        newest_ns = max(headers, default=0)
        for head in heads:
            if head.is_needed(newest_ns):
                head.run()
        needed = [step for step in steps if step.is_needed(newest_ns)]
        if needed:
            run_all(sorted(needed, key=lambda step: (*rank(step.source), -step.effort())))
        objects = [step.target for step in steps]
        options = {"extra_postargs": ext.extra_link_args, "build_temp": self.build_temp}
        self.compiler.link_shared_object(objects, self.get_ext_fullpath(ext.name), **options)

    def _step(self, ext: Extension, source: str) -> Step:
        how = HOT
        if Path(source).name.startswith(OURS):
            level = COLD if rank(source)[0] else HOT
            how = [*level, "-include", f"{build_dir}/head{level[0]}.h"]
        target = f"{self.build_temp}/{source.removeprefix(build_dir).replace('/', '_')}.o"
        return self._made(ext, target, source, how)

    def _head(self, ext: Extension, level: list[str]) -> Step:
        """What compiles, once for many files, the header that all of ours begin with.

        Most of them are small, and reading what they include takes longer than all else. The
        compiler takes NAME.gch for NAME where both were made in the same way.
        """
        header = Path(build_dir, f"head{level[0]}.h")
        library = LIBRARY.rpartition(".")[2]
        text = f'#include "__native_{library}.h"\n#include "__native_internal_{library}.h"\n'
        if not header.exists() or header.read_text() != text:
            header.write_text(text)
        return self._made(ext, f"{header}.gch", str(header), level)

    def _made(self, ext: Extension, target: str, source: str, how: list[str]) -> Step:
        places = [f"-I{folder}" for folder in [*ext.include_dirs, *self.compiler.include_dirs]]
        words = [*self.compiler.compiler_so, "-c", source, "-o", target, *places]
        return Step(target, source, [*words, *ext.extra_compile_args, *how])


def rank(source: str) -> tuple[bool, bool]:
    """What is compiled first: what is hot, and mypyc's own runtime; and last: regions."""
    name = Path(source).stem.partition(OURS)[2]
    return bool(name) and name.replace("___", ".") not in HOT_MODULES, "region" in name


def run_all(steps: list[Step]) -> None:
    """Run them in parallel; one line on a terminal, elsewhere one now and then, says how far."""
    from tqdm import tqdm

    every_s = float(os.environ.get("HEADRACE_PROGRESS_S", "5"))
    on_terminal = sys.stderr.isatty() and "HEADRACE_PROGRESS_S" not in os.environ
    bar = tqdm(
        desc="headrace: compiling",
        total=sum(step.effort() for step in steps),
        bar_format="{desc} {percentage:3.0f}% |{bar:25}| {elapsed} gone, {remaining} left",
        smoothing=0,
        leave=False,
        ncols=79,
        nrows=24,
        file=sys.stderr if on_terminal else io.StringIO(),
    )
    shown_s = time.monotonic()
    with bar, ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        running = {pool.submit(step.run): step for step in steps}
        try:
            for future in as_completed(running):
                future.result()
                bar.update(running[future].effort())
                if not on_terminal and time.monotonic() - shown_s >= every_s:
                    shown_s = time.monotonic()
                    print(bar, file=sys.stderr, flush=True)
        finally:
            pool.shutdown(cancel_futures=True)


def prepare_build_dir() -> str:
    """A folder for everything the build writes; only intermediate files survive in a kept one."""
    kept = os.environ.get("HEADRACE_BUILD_DIR")
    path = Path(kept or tempfile.mkdtemp(prefix="headrace-build-")).resolve()
    if not kept:
        atexit.register(shutil.rmtree, path, ignore_errors=True)
    for part in ("lib", "egg"):
        shutil.rmtree(path / part, ignore_errors=True)
    (path / "egg").mkdir(parents=True)
    return str(path)


COMPILER = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
OURS = "__native_headrace___"  # what the names of our files in C begin with
HOT_MODULES = {
    line.rpartition(" ")[2].partition(":")[0].removeprefix("headrace.") for line in link_order()[0]
}
build_dir = prepare_build_dir()
building = any(word in sys.argv for word in ("bdist_wheel", "build", "build_ext"))
made = extensions() if building else []
compiled = modules_to_compile() if made else {}

setup(
    packages=sorted(packages()),
    package_dir=packages(),
    include_package_data=False,  # of what sdist takes, the wheel needs the modules alone, and this
    package_data={
        "": ["*.lua", "commands/*.txt", "config/*.txt", "families.txt"],
        "headrace.console": ["templates/*", "static/*"],
    },
    ext_modules=made,
    cmdclass={"build_ext": ParallelBuild, "build_py": WithoutCompiled},
    options={
        "build": {"build_base": build_dir, "build_lib": f"{build_dir}/lib"},
        "egg_info": {"egg_base": f"{build_dir}/egg"},
    },
)
