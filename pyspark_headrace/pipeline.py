"""The program ``headrace-pipeline``: says what is missing, or runs a job (``cli``)."""

from __future__ import annotations

import sys


def main() -> int:
    """Run a job; the exit code."""
    try:
        from pyspark_headrace.cli import program
    except ModuleNotFoundError as missing:
        package = (missing.name or "").partition(".")[0]
        hint = "pip install pyspark-headrace"
        print(f"headrace-pipeline: {package} is not installed: {hint}", file=sys.stderr)
        return 2
    return program.main()
