"""Makes a session that shows a difference as short as it can be."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from support.fuzz.steps import Step

Part = TypeVar("Part")


def smallest(parts: list[Part], fails: Callable[[list[Part]], bool]) -> list[Part]:
    """Some of the parts, in their order, that still fail; without any one of them they do not."""
    portion = max(1, len(parts) // 2)
    while True:
        start = 0
        removed = False
        while start < len(parts):
            fewer = parts[:start] + parts[start + portion :]
            if fails(fewer):
                parts = fewer
                removed = True
            else:
                start += portion
        if portion == 1 and not removed:
            return parts
        portion = max(1, portion // 2)


def shortest(steps: list[Step], fails: Callable[[list[Step]], bool]) -> list[Step]:
    """The session with as few steps, and these with as few words, as still fail."""
    steps = smallest(steps, fails)
    for place, step in enumerate(steps):

        def fails_with(words: list[bytes], place: int = place, step: Step = step) -> bool:
            if not words:
                return False
            return fails([*steps[:place], step.with_words(tuple(words)), *steps[place + 1 :]])

        if len(step.words) > 1:
            words = smallest(list(step.words), fails_with)
            steps[place] = step.with_words(tuple(words))
    return smallest(steps, fails)
