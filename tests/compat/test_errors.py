"""Every way in which storage refuses has its line, and every line is one line."""

from __future__ import annotations

import pkgutil
from importlib import import_module

from headrace import storage
from headrace.compat import errors
from headrace.compat.type_errors import LINES, storage_error_line
from headrace.storage.value import StorageError


def test_every_refusal_has_its_line() -> None:
    for module in pkgutil.walk_packages(storage.__path__, "headrace.storage."):
        import_module(module.name)
    kinds = StorageError.__subclasses__()
    assert kinds
    assert set(kinds) == set(LINES)
    for kind in kinds:
        assert storage_error_line(kind()).startswith(b"ERR ")


def test_a_line_has_a_code_and_no_line_end() -> None:
    lines = {
        name: text
        for name, text in vars(errors).items()
        if isinstance(text, bytes) and not name.startswith("_")
    }
    assert len(lines) > 50
    for name, text in lines.items():
        code, _, rest = text.partition(b" ")
        assert code.isupper() or code == b"", name
        assert rest or name == "SAVE_FAILED", name
        assert b"\r" not in text, name
        assert b"\n" not in text, name
