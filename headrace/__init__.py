"""A Redis-compatible stream server. Its parts are the folders beside this one.

In the wheel they lie below this package: ``headrace.protocol``, ``headrace.storage``,
``headrace.persistence``, ``headrace.compat`` and ``headrace.server``. In a checkout the same names
are links. A compiled build has most modules in one library, from which they are imported; their
sources stay in the checkout.
"""

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final

__version__: Final = "0.2.0"


class CompiledModules:
    """Finds and makes the modules that the library holds.

    Args:
        capsules: what makes each of them, by the names that mypyc gives them.
    """

    def __init__(self, capsules: dict[str, object]) -> None:
        self._capsules = capsules

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how a module is made; None where the library does not hold it."""
        if path is None or capsule_of(name) not in self._capsules:
            return None
        source = f"{path[0]}/{name.rpartition('.')[2]}.py"
        spec = ModuleSpec(name, self, origin=source)  # type: ignore[arg-type]  # a loader by its methods
        spec.has_location = True
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Make a module, which runs it."""
        module: ModuleType = importer.run(self._capsules[capsule_of(spec.name)])
        return module

    def exec_module(self, module: ModuleType) -> None:
        """It has run."""


def capsule_of(name: str) -> str:
    """Return the name that mypyc gives to what makes a module."""
    return "init_" + name.replace(".", "___")


try:
    import headrace.native__mypyc as library
except ModuleNotFoundError:
    pass  # a pure build
else:
    import headrace.importer as importer

    sys.meta_path.insert(0, CompiledModules(vars(library)))
