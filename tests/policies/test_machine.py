"""Servers with policies beside the model: the same answers, whatever happens in which order."""

from __future__ import annotations

import os

from support import policy_crashes
from support.policy_machine import OPTIONS, run
from support.process import ServerProcess

STEPS = 1_000_000 if os.environ.get("HEADRACE_EVERYTHING") else 24_000  # each pair once at least
ROUNDS = 300 if os.environ.get("HEADRACE_EVERYTHING") else 8


def test_a_server_answers_as_the_model_does() -> None:
    with ServerProcess(*OPTIONS) as server:
        assert run(server.client, STEPS, seed=7) >= STEPS // 200


def test_kills_lose_nothing_and_break_no_order() -> None:
    story, _ = policy_crashes.run(ROUNDS, seed=3)
    assert story.wrong == []
    assert story.done
