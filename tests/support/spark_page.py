"""docs/spark.md, done as a reader would: its examples one behind the other, then its jobs.

Run as a program with the port of a server and a folder, in an environment that has what
``pip install ./pyspark_headrace`` brings.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
from typing import Any, Final

from support.build import ROOT

PAGE: Final = (ROOT / "docs/spark.md").read_text()
_FENCE: Final = re.compile(r"^```(\w+(?: \w+)?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def snippets(language: str) -> list[str]:
    """The pieces of code in a language."""
    return [body for name, body in _FENCE.findall(PAGE) if name == language]


def shown_by(body: str) -> list[str]:
    """What a snippet says that it prints: behind a ``print``, and in the comments below it."""
    found: list[str] = []
    below = False
    for line in body.splitlines():
        behind = re.search(r"print\(.*\)  # (.*)$", line)
        more = re.fullmatch(r"\s+# (.*)", line)
        if behind:
            found.append(behind[1])
        elif more and below:
            found.append(more[1])
        below = bool(behind or (more and below))
    return found


def run_snippet(body: str, names: dict[str, Any], port: str, folder: str) -> list[str]:
    """Run a snippet on a server, with files in a folder; the lines that it prints."""
    code = body.replace('format("headrace")', f'format("headrace").option("port", "{port}")')
    code = code.replace('{"host": "localhost"', f'{{"port": "{port}"')
    for clause in ("OPTIONS (", "WITH ("):
        code = code.replace(clause, f"{clause}port '{port}', ")
    code = code.replace("/tmp/headrace", folder)
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        exec(compile(code, "docs/spark.md", "exec"), names)
    return shown.getvalue().splitlines()


def job_lines(folder: str) -> list[list[str]]:
    """The jobs of the page, without the program's name."""
    lines = "".join(snippets("sh")).replace("\\\n", " ").replace("/tmp/headrace", folder)
    words = map(shlex.split, lines.splitlines())
    return [each[1:] for each in words if each[:1] == ["headrace-pipeline"]]


def rights() -> dict[str, list[str]]:
    """For each role of the page the rules of ACL SETUSER."""
    (block,) = snippets("acl")
    lines = [re.split(r"\s{2,}", line.strip()) for line in block.splitlines()]
    return {role: rules.split() for role, rules in lines}


def main(port: str, folder: str) -> None:
    """Do it all.

    Raises:
        AssertionError: something else came of it than the page says.
    """
    from pyspark_headrace.cli import program

    names: dict[str, Any] = {}
    for body in snippets("python"):
        shown, expected = run_snippet(body, names, port, folder), shown_by(body)
        assert shown == expected or not expected, f"{body}{shown}"
    names["spark"].streams.removeListener(names["listener"])
    # The jobs work on what the examples have left; the archive comes back once more as it was.
    jobs = job_lines(folder)
    jobs.append(
        [*"replay --keep-ids --key rides --into rides-restored --path".split(), f"{folder}/archive"]
    )
    for words in jobs:
        assert program.main([*words, "--url", f"redis://localhost:{port}"]) == 0, words
    names["spark"].stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
