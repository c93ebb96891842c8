"""What the workers of rq import, by its name."""

from __future__ import annotations

from told import begin, tell


def job(number: int) -> int:
    begin(number)
    tell(f"done {number}")
    return number * 2
