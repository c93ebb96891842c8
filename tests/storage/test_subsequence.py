"""The longest common subsequence against the table that defines it."""

from __future__ import annotations

from itertools import pairwise
from random import Random

from headrace.storage.string.subsequence import common_length, common_matches, text_of


def expected(first: bytes, second: bytes) -> list[tuple[int, int]]:
    """The pairs of offsets of Redis's subsequence, the last one first."""
    table = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for i, one in enumerate(first):
        for j, other in enumerate(second):
            same = table[i][j] + 1
            table[i + 1][j + 1] = same if one == other else max(table[i][j + 1], table[i + 1][j])
    pairs = []
    i, j = len(first), len(second)
    while i and j:
        if first[i - 1] == second[j - 1]:
            i -= 1
            j -= 1
            pairs.append((i, j))
        elif table[i - 1][j] > table[i][j - 1]:
            i -= 1
        else:
            j -= 1
    assert len(pairs) == table[-1][-1]
    return pairs


def test_by_chance() -> None:
    chance = Random(1)
    for number in range(400):
        letters = b"abcdefgh"[: chance.randrange(1, 9)] if number % 10 else bytes(range(256))
        first = bytes(chance.choices(letters, k=chance.randrange(40)))
        second = bytes(chance.choices(letters, k=chance.choice([0, 1, 7, 8, 9, 30, 90])))
        pairs = expected(first, second)
        matches = common_matches(first, second)
        found = [
            (match.first_end - back, match.second_end - back)
            for match in matches
            for back in range(match.length())
        ]
        assert found == pairs
        for match in matches:
            assert match.second_end - match.second_start + 1 == match.length()
        for one, other in pairwise(matches):  # what follows each other is one match
            before = one.first_start - 1, one.second_start - 1
            assert before != (other.first_end, other.second_end)
        assert text_of(first, matches) == bytes(first[i] for i, _ in reversed(pairs))
        assert common_length(first, second) == len(pairs)
