"""Values on the command line: each from its text, or with an error that says what is wrong."""

from __future__ import annotations

from argparse import ArgumentTypeError
from importlib.util import find_spec
from typing import Final

from pyspark_headrace.ids import parse_id

MOST_SECONDS: Final = 86_400


def some(text: str) -> str:
    """A text that is not empty."""
    if not text:
        raise ArgumentTypeError("something is wanted")
    return text


def count(text: str) -> int:
    """A number of things, none perhaps."""
    number = int(text)
    if number < 0:
        raise ArgumentTypeError(f"{text!r} is below 0")
    return number


def seconds(text: str) -> float:
    """Return how long to wait, as the command line has it."""
    number = float(text)
    if not 0 < number <= MOST_SECONDS:
        raise ArgumentTypeError(f"{text!r} is not between 0 and a day")
    return number


def option_and_value(text: str) -> tuple[str, str]:
    """An option of the source or the sink, and its value."""
    name, equals, value = text.partition("=")
    if not equals:
        raise ArgumentTypeError(f"{text!r}: NAME=VALUE is wanted")
    return name, value


def entry_id(text: str) -> str:
    """A stream ID, or nothing."""
    if text:
        try:
            parse_id(text)
        except ValueError as error:
            raise ArgumentTypeError(str(error)) from None
    return text


def report(text: str) -> str:
    """The name of a file for a report: a web page, or a drawing."""
    return text if text.endswith(".html") else drawing(text)


def drawing(text: str) -> str:
    """The name of a file to draw into."""
    if not text.endswith((".png", ".svg", ".pdf")):
        raise ArgumentTypeError(f"{text!r} ends neither in .png nor in .svg or .pdf")
    if find_spec("matplotlib") is None:
        raise ArgumentTypeError("to draw, pip install 'pyspark-headrace[drawings]'")
    return text
