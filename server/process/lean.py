"""Our libraries, imported without what they import for features that nobody uses here.

asyncio and uvloop import ``ssl`` because of connections that are encrypted: OpenSSL takes 3 ms of
the start and 4 MiB. asyncio copes with a Python that has none. uvloop wants a module to take names
from, which it uses for such connections only, so it gets one whose names stand for nothing.
msgspec copes without ``typing_extensions``, which is there where a tool has brought it.

Whoever imports these modules later gets the true ones.
"""

from __future__ import annotations

import contextlib
import sys
from importlib import import_module
from types import ModuleType
from typing import Final

# What uvloop takes from ``ssl``.
_CLASSES: Final = (
    "CertificateError",
    "MemoryBIO",
    "SSLContext",
    "SSLError",
    "SSLSyscallError",
    "SSLWantReadError",
    "SSLZeroReturnError",
    "create_default_context",
)
_NUMBERS: Final = ("SSL_ERROR_SYSCALL", "SSL_ERROR_WANT_READ", "SSL_ERROR_WANT_WRITE")


def import_libraries() -> None:
    """Import the event loop and what packs blocks, before anybody else does."""
    _import_without("asyncio", "ssl", None)
    with contextlib.suppress(ImportError):  # where it is missing, asyncio has a loop of its own
        _import_without("uvloop", "ssl", _ssl_for_uvloop())
    _import_without("msgspec", "typing_extensions", None)


def _import_without(library: str, module: str, instead: ModuleType | None) -> None:
    """Import a library while a module that it asks for is another one; None is none at all."""
    if module in sys.modules:
        return  # then nothing is gained
    modules: dict[str, ModuleType | None] = sys.modules  # type: ignore[assignment]  # None counts
    modules[module] = instead
    try:
        import_module(library)
    finally:
        del modules[module]


def _ssl_for_uvloop() -> ModuleType:
    instead = ModuleType("ssl")
    for name in _CLASSES:
        setattr(instead, name, type(name, (Exception,), {}))
    for name in _NUMBERS:
        setattr(instead, name, 0)
    setattr(instead, "__getattr__", _from_ssl)  # noqa: B010  (a method, in the eyes of mypy)
    return instead


def _from_ssl(name: str) -> object:
    """A name that only some other version of uvloop takes: that of the true module."""
    instead = sys.modules.pop("ssl")
    try:
        return getattr(import_module("ssl"), name)
    finally:
        sys.modules["ssl"] = instead
