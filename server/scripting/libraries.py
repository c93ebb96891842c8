"""Libraries of functions, which FUNCTION LOAD adds and FCALL uses."""

from __future__ import annotations

from typing import Final

from headrace.compat import server_errors as errors
from headrace.compat.errors import CommandError
from headrace.server.scripting.errors import ScriptError
from headrace.server.scripting.interpreter import Failure, Function, Interpreter, is_name


class Library:
    """A library: its code as it was sent, and the functions that it has registered, by name."""

    def __init__(self, name: bytes, code: bytes, functions: list[Function]) -> None:
        self.name: Final = name
        self.code: Final = code
        self.functions: Final = {each.name: each for each in functions}


class Libraries:
    """The libraries of one interpreter, and all functions by their names in lower case."""

    def __init__(self) -> None:
        self.by_name: dict[bytes, Library] = {}
        self.functions: dict[bytes, Function] = {}

    def copy(self) -> Libraries:
        """Return a copy with the same libraries."""
        other = Libraries()
        other.by_name = dict(self.by_name)
        other.functions = dict(self.functions)
        return other

    def add(self, library: Library, replaces: bool, refusal: bytes) -> None:
        """Add a library, or with ``replaces`` put it in the place of one of the same name.

        Raises: CommandError, ``refusal`` for one that is there, or for a function of another one.
        """
        old = self.by_name.get(library.name)
        if not replaces:
            self.check_absent(library.name, refusal)
        olds = set() if old is None else {name.lower() for name in old.functions}
        for name in library.functions:
            if name.lower() in self.functions and name.lower() not in olds:
                raise CommandError(errors.FUNCTION_EXISTS % name)
        if old is not None:
            self.remove(old.name)
        self.by_name[library.name] = library
        for function in library.functions.values():
            self.functions[function.name.lower()] = function

    def check_absent(self, name: bytes, refusal: bytes) -> None:
        """Raise CommandError with this text if a library has this name."""
        if name in self.by_name:
            raise CommandError(refusal % name)

    def remove(self, name: bytes) -> bool:
        """Remove a library; False where there is none."""
        library = self.by_name.pop(name, None)
        if library is None:
            return False
        for function in library.functions:
            self.functions.pop(function.lower(), None)
        return True


def library_name(code: bytes) -> tuple[bytes, bytes]:
    """Return the name in the first line of a library, and the library without that line.

    Raises: CommandError, where the line is not there, or not understood.
    """
    line, end, rest = code.partition(b"\n")
    if not code.startswith(b"#!"):
        raise CommandError(errors.NO_METADATA)
    if not end or b"\0" in line:  # where it ends for C
        raise CommandError(errors.INVALID_METADATA)
    words = line[2:].split()
    engine = b"" if line[2:3].isspace() or not words else words.pop(0)
    name: bytes | None = None
    for word in words:
        option, _, value = word.partition(b"=")
        if option.lower() != b"name" or b"=" not in word:
            raise CommandError(errors.BAD_METADATA % word)
        if name is not None:
            raise CommandError(errors.NAME_TWICE)
        name = value.strip(b"\"'")
    if name is None:
        raise CommandError(errors.NO_LIBRARY_NAME)
    if not is_name(name):
        raise CommandError(b"ERR " + errors.BAD_NAME)
    if engine.lower() != b"lua":
        raise CommandError(errors.ENGINE_NOT_FOUND % engine)
    return name, b"\n" + rest


def made_library(interpreter: Interpreter, code: bytes) -> Library:
    """Return the library that a text is, with its functions. Raises: CommandError; it is none."""
    name, source = library_name(code)
    try:
        functions = interpreter.load_library(source)
    except ScriptError as error:
        raise CommandError(error.text) from None
    if isinstance(functions, Failure):
        raise CommandError(errors.NOT_REGISTERED % functions.text)
    if not functions:
        raise CommandError(errors.NO_FUNCTIONS)
    return Library(name, code, functions)
