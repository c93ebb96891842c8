"""The lines of a region's file that say how to count: ``AA FROM origin number``."""

from __future__ import annotations

from headrace.storage.vectors import NUMBER_MAX, BadVector, Dot, check_origin


def counting_of(words: list[bytes]) -> Dot:
    """Whose the numbered records that follow are, and the number of the first one.

    Raises:
        BadVector: the line says nothing of the kind.
    """
    if len(words) != 4:
        raise BadVector(b" ".join(words[2:])[:64])
    number = words[3]
    if not number.isdigit() or len(number) > 20 or not 0 < int(number) <= NUMBER_MAX:
        raise BadVector(number[:64])
    return check_origin(words[2]), int(number)
