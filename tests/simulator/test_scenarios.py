"""The texts of the scenarios are steps, and what is expected can be expected."""

from __future__ import annotations

from string import ascii_lowercase

import pytest

from simulator.scenarios import (
    SCENARIOS,
    WAITS,
    Failed,
    Refused,
    Regions,
    Scenario,
    compare,
    run,
)


class _Scripted(Regions):
    """Regions that answer from a list, and note what they are asked."""

    def __init__(self, count: int, replies: list[object]) -> None:
        self.count = count
        self.replies = replies
        self.asked: list[tuple[int, str, list[bytes]]] = []
        self.others: list[tuple[object, ...]] = []

    def call(self, region: int, client: str, words: list[bytes]) -> object:
        self.asked.append((region, client, words))
        return self.replies.pop(0)

    def reply(self, region: int, client: str) -> object:
        return self.replies.pop(0)

    def sync(self, regions: list[int]) -> None:
        self.others.append(("sync", regions))

    def resume(self) -> None:
        self.others.append(("resume",))

    def set_clock(self, region: int, ms: int) -> None:
        self.others.append(("clock", region, ms))

    def elapse(self, ms: int) -> None:
        self.others.append(("pass", ms))


def test_steps_are_run_in_order_and_bind_names() -> None:
    steps = """
    clock 1 7
    both> XADD x * f v => $a
    sync
    2:reader> XREAD BLOCK 0 STREAMS x $a => waits
    2:reader => ids $a
    pass 5
    sync 2 1
    resume
    until 2> XLEN x => 1
    quiet 1> XLEN x => 1
    """
    waited = [[b"x", [[b"7-1", [b"f", b"v"]]]]]
    scripted = _Scripted(2, [b"7-1", b"7-1", WAITS, waited, 0, 1, b"1.0=1", 1, b"1.0=1"])
    run(Scenario("T", "", 2, "strict", steps), scripted)
    assert scripted.others == [
        ("clock", 1, 7),
        ("sync", [1, 2]),
        ("pass", 5),
        ("sync", [2, 1]),
        ("resume",),
        ("pass", 100),
    ]
    assert scripted.asked[:2] == [
        (1, "client", [b"XADD", b"x", b"*", b"f", b"v"]),
        (2, "client", [b"XADD", b"x", b"*", b"f", b"v"]),
    ]
    assert scripted.asked[2] == (2, "reader", [b"XREAD", b"BLOCK", b"0", b"STREAMS", b"x", b"7-1"])


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (b"OK", "QUEUED"),
        (2, "3"),
        (Refused(b"ERR x"), "OK"),
        (b"1-1", "error ERR"),
        ([[b"1-1", [b"f", b"v"]]], "ids 1-2"),
        ([[b"1-1", []], [b"1-1", []]], "distinct 2"),
        (None, "ids 1-1"),
        ([[b"1-1", [b"f", b"v"]]], "texts w"),
        ([[b"name", b"g"]], "names"),
        ([[b"name", b"g"]], "names h"),
        ([1, b"1-1", b"1-1", []], "pending 0"),
        ([b"stable-id", b"5-0"], "field stable-id below 5-0"),
        (b"1-2", "waits"),
        (b"", "nil"),
    ],
)
def test_another_reply_is_told(reply: object, expected: str) -> None:
    assert compare(reply, expected.split(), {})


def test_a_step_that_is_none_fails() -> None:
    with pytest.raises(Failed, match="no step"):
        run(Scenario("T", "", 1, "strict", "snyc"), _Scripted(1, []))


def test_all_scenarios_of_the_specification_are_there() -> None:
    numbers = {int(name[1:].split("-")[0].rstrip(ascii_lowercase)) for name in SCENARIOS}
    assert numbers == set(range(1, 24))
