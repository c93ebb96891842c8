"""Our libraries, imported without modules that only their unused features need.

asyncio and uvloop import ``ssl`` for encrypted connections: OpenSSL takes 3 ms of the start and 4
MiB. asyncio copes with a Python that has no ``ssl``. uvloop needs a module from which it takes
names, and uses these for such connections only. Both also import ``subprocess`` to run other
programs, and ``inspect``, which brings the parser of Python's own text: 1 MiB, of which two
functions and three numbers are used. asyncio's own protocol for encrypted connections is not used:
``net.tls`` has ours. msgspec takes the types of values that no block holds, and a module that
describes types. So they get modules that hold only the used names, and later imports get the real
modules. msgspec copes without ``typing_extensions``, which is only there if a tool has brought it.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping
from importlib import import_module
from types import FunctionType, GeneratorType, MethodType, ModuleType
from typing import ClassVar, Final


class Nothing(Exception):
    """No value is of this type, and it is never raised."""

    unknown: ClassVar[None] = None  # as a member of ``uuid.SafeUUID``


def is_generator(thing: object) -> bool:
    """Return the same as ``inspect.isgenerator``."""
    return isinstance(thing, GeneratorType)


def is_coroutine_function(thing: object) -> bool:
    """Return the same as ``inspect.iscoroutinefunction``, for functions and methods."""
    function = thing.__func__ if isinstance(thing, MethodType) else thing
    if not isinstance(function, FunctionType):
        return False
    return bool(function.__code__.co_flags & _CO_COROUTINE)


_CO_COROUTINE: Final = 0x80

# Names that are taken while a library is imported.
_INSPECT: Final[dict[str, object]] = {
    "isgenerator": is_generator,
    "iscoroutinefunction": is_coroutine_function,
}
_SUBPROCESS: Final[dict[str, object]] = {
    "DEVNULL": -3,
    "PIPE": -1,
    "STDOUT": -2,
    "SubprocessError": Nothing,
}
_PROGRAMS: Final[dict[str, Mapping[str, object] | None]] = {
    "inspect": _INSPECT,
    "subprocess": _SUBPROCESS,
}
_SSL: Final[dict[str, object]] = {
    "CertificateError": Nothing,
    "MemoryBIO": Nothing,
    "SSLContext": Nothing,
    "SSLError": Nothing,
    "SSLSyscallError": Nothing,
    "SSLWantReadError": Nothing,
    "SSLZeroReturnError": Nothing,
    "SSL_ERROR_SYSCALL": 0,
    "SSL_ERROR_WANT_READ": 0,
    "SSL_ERROR_WANT_WRITE": 0,
    "create_default_context": Nothing,
}
_UUID: Final[dict[str, object]] = {"SafeUUID": Nothing, "UUID": Nothing}
_DECIMAL: Final[dict[str, object]] = {"Decimal": Nothing}


def import_libraries() -> None:
    """Import the event loop and the packer of blocks, before any other module does."""
    _import_with("asyncio", {"asyncio.sslproto": {}, "ssl": None, **_PROGRAMS})
    with contextlib.suppress(ImportError):  # where it is missing, asyncio has a loop of its own
        _import_with("uvloop", {"asyncio.sslproto": {}, "ssl": _SSL, **_PROGRAMS})
    _import_with(
        "msgspec",
        {
            "decimal": _DECIMAL,
            "msgspec.inspect": {},
            "msgspec.toml": {},
            "msgspec.yaml": {},
            "typing_extensions": None,
            "uuid": _UUID,
        },
    )


def _import_with(library: str, needless: Mapping[str, Mapping[str, object] | None]) -> None:
    """Import a library while other modules hold a few names only, or are not there at all.

    ``needless`` has these modules, with their names; None for those that are not there.
    """
    modules: dict[str, ModuleType | None] = sys.modules  # type: ignore[assignment]  # None counts
    kept_out = [name for name in needless if name not in modules]
    for name in kept_out:
        names = needless[name]
        modules[name] = None if names is None else _stand_in(name, names)
    try:
        import_module(library)
    finally:
        for name in kept_out:
            del modules[name]


def _stand_in(module: str, names: Mapping[str, object]) -> ModuleType:
    """Return a module of these names; any other name is looked up in the real module."""

    def from_the_true_one(name: str) -> object:
        if sys.modules.get(module) is not made:  # the library has been imported
            return getattr(import_module(module), name)
        del sys.modules[module]
        try:
            return getattr(import_module(module), name)
        finally:
            sys.modules[module] = made

    made = ModuleType(module)
    vars(made).update(names, __getattr__=from_the_true_one)
    return made
