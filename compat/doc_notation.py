"""The documentation of a command, and the notation of its arguments.

The arguments of a command are a tree; one line of text, close to how a manual prints a command,
holds it whole:

======================  ==================================================================
``value``               a string argument; ``key`` is a key of the first key spec and
                        ``pattern`` a pattern
``seconds:integer``     an argument of another type: integer, double, key, pattern, unix-time
``newkey:key#1``        a key of the second key spec
``NX``                  a word to be typed as it is, called ``nx``
``COUNT=n:integer``     a word, then a value
``'~'=approximately``   a word that is no name, in quotes, and what to call it; no value follows
``[x]``                 may be left out
``x...``                may come several times
``X=x...+``             may come several times, each time with its word
``set(A | B)``          one of these
``pair(field value)``   all of these, in order
``x@6.2.0``             there since that version
``x!2.8.12``            deprecated since that version
``x<ip:port>``          the name to show where it differs
======================  ==================================================================

So ``EX=seconds:integer`` in ``[expiration(EX=seconds:integer | KEEPTTL@6.0.0)]`` is a word with a
number behind it, one of two that the optional argument ``expiration`` can be.
"""

from __future__ import annotations

import re
from typing import Final

_WORDS: Final = re.compile(r"'[^']*'|\.\.\.\+?|[][()|=@!#]|<[^>]*>|\w+(?:[.:-]\w+)*")
_TYPE_BY_NAME: Final = {"key": "key", "pattern": "pattern"}


class Argument:
    """One node of the tree of a command's arguments."""

    def __init__(self, name: str, kind: str, token: str) -> None:
        self.name: Final = name
        self.kind = kind  # as COMMAND DOCS spells it; "oneof" and "block" have ``arguments``
        self.token: Final = token  # the word to type before the value; "" for none
        self.display = name
        self.since = ""
        self.deprecated_since = ""
        self.key_spec = -1  # which of the command's key specs finds it; -1 for what is no key
        self.optional = False
        self.multiple = False
        self.multiple_token = False
        self.arguments: list[Argument] = []


class Doc:
    """The documentation of a command, as COMMAND DOCS says it, besides its subcommands.

    Args:
        group: the chapter of the manual it belongs to.
        since: the first Redis version that had it.
        complexity: its cost; "" where nothing is said.
        summary: what it does, one sentence.
        syntax: its arguments, in the notation of this module.

    Attributes:
        history: pairs of a version and what changed with it.
        deprecated_since: the version that advised against it; "" for none.
        replaced_by: what to use instead.
        internal: for the server's own needs rather than for applications.
    """

    def __init__(self, group: str, since: str, complexity: str, summary: str, syntax: str) -> None:
        self.group: Final = group
        self.since: Final = since
        self.complexity: Final = complexity
        self.summary: Final = summary
        self.syntax: Final = syntax
        self.history: list[tuple[str, str]] = []
        self.deprecated_since = ""
        self.replaced_by = ""
        self.internal = False
        self._arguments: list[Argument] | None = None

    def arguments(self) -> list[Argument]:
        """Return the tree of arguments, read from ``syntax`` when first asked for."""
        if self._arguments is None:
            self._arguments = parse(self.syntax)
        return self._arguments


def parse(syntax: str) -> list[Argument]:
    """Read a line of the notation. Raises: ValueError: it is not well formed."""
    words = _WORDS.findall(syntax)
    if "".join(words) != "".join(syntax.split()):
        raise ValueError(f"stray characters in syntax: {syntax}")
    return _Reader(words).arguments_until("")


def render(arguments: list[Argument]) -> str:
    """Return the arguments as a manual prints them, such as ``key [EX seconds | KEEPTTL]``."""
    return " ".join([_shown(argument) for argument in arguments])


def _shown(argument: Argument) -> str:
    if argument.kind == "oneof":
        text = " | ".join([_shown(choice) for choice in argument.arguments])
        # The brackets of an optional argument hold the choices together already.
        if argument.token or not argument.optional:
            text = f"<{text}>"
    elif argument.kind == "block":
        text = render(argument.arguments)
    elif argument.kind == "pure-token":
        text = ""
    else:
        text = argument.display
    if argument.multiple_token:
        text = f"{argument.token} {text}"
    if argument.multiple:
        text = f"{text} [{text} ...]"
    if argument.token and not argument.multiple_token:
        text = f"{argument.token} {text}" if text else argument.token
    return f"[{text}]" if argument.optional else text


class _Reader:
    def __init__(self, words: list[str]) -> None:
        self.words: Final = words
        self.at = 0
        self.alternatives = False  # whether the list read last was one of alternatives

    def peek(self) -> str:
        return self.words[self.at] if self.at < len(self.words) else ""

    def take(self) -> str:
        word = self.peek()
        if not word:
            raise ValueError("syntax ends too early")
        self.at += 1
        return word

    def skip(self, word: str) -> bool:
        if self.peek() != word:
            return False
        self.at += 1
        return True

    def arguments_until(self, end: str) -> list[Argument]:
        arguments: list[Argument] = []
        alternatives = False
        while self.peek() != end:
            if self.skip("|"):
                alternatives = True
            else:
                arguments.append(self.argument())
        self.alternatives = alternatives
        return arguments

    def argument(self) -> Argument:
        if self.skip("["):
            argument = self.argument()
            argument.optional = True
            if not self.skip("]"):
                raise ValueError("an optional argument is not closed")
            return argument
        argument = self.head()
        if self.skip("("):
            argument.arguments = self.arguments_until(")")
            argument.kind = "oneof" if self.alternatives else "block"
            self.take()
        self.suffixes(argument)
        return argument

    def head(self) -> Argument:
        word = self.take()
        if word.startswith("'"):
            if not self.skip("="):
                raise ValueError(f"{word} needs a name")
            return _new_argument(self.take(), "pure-token", word[1:-1])
        if not word[0].isalnum():
            raise ValueError(f"{word} where an argument was expected")
        token = ""
        if word.isupper():
            token = word
            if not self.skip("="):
                return _new_argument(token.lower(), "pure-token", token)
            word = self.take()
        name, _, kind = word.partition(":")
        return _new_argument(name, kind or _TYPE_BY_NAME.get(name, "string"), token)

    def suffixes(self, argument: Argument) -> None:
        while True:
            if self.skip("..."):
                argument.multiple = True
            elif self.skip("...+"):
                argument.multiple = argument.multiple_token = True
            elif self.skip("@"):
                argument.since = self.take()
            elif self.skip("!"):
                argument.deprecated_since = self.take()
            elif self.skip("#"):
                argument.key_spec = int(self.take())
            elif self.peek().startswith("<"):
                argument.display = self.take()[1:-1]
            else:
                return


def _new_argument(name: str, kind: str, token: str) -> Argument:
    argument = Argument(name, kind, token)
    if kind == "key":
        argument.key_spec = 0
    return argument
