"""The order of SORT."""

from __future__ import annotations

import random

import pytest

from headrace.server.commands.sorting import in_order_of


@pytest.mark.parametrize("descending", [False, True])
def test_equal_scores_are_in_the_order_of_their_elements(descending: bool) -> None:
    chance = random.Random(7)
    for size in (0, 1, 2, 5, 300):
        elements = [b"%d" % chance.randrange(50) for _ in range(size)]
        scores = [chance.choice((-1.5, 0.0, -0.0, 2.0, float("inf"))) for _ in elements]
        pairs = sorted(zip(scores, elements, strict=True), reverse=descending)
        assert in_order_of(elements, scores, descending) == [element for _, element in pairs]
