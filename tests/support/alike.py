"""Requests that are much like the one before."""

from __future__ import annotations


def changed(words: list[bytes], place: int, word: bytes, most: int) -> list[bytes]:
    """The next request: a word differs, or comes, or goes, or none does.

    Args:
        place: which word differs, if there is one; ``most``: ``word`` comes behind the others;
            ``most + 1``: the last one goes.
    """
    after = words.copy()
    if place < len(after):
        after[place] = word
    elif place == most:
        after.append(word)
    elif place == most + 1 and len(after) > 1:
        after.pop()
    return after
