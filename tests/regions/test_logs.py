"""What regions log says what to do, and is not said again and again."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from support.mesh import Mesh, RegionProcess, wait_until
from support.process import claim_port
from support.scenes import SMALL_LOGS


@pytest.mark.parametrize(
    ("options", "others", "code", "advice"),
    [
        (("--aa-secret", "a"), ("--aa-secret", "b"), "AASECRET", "Give both the same aa-secret"),
        ((), ("--aa-secret", "b"), "NOAUTH", "has an aa-secret: give both the same"),
        (("--aa-database", "a"), ("--aa-database", "b"), "AADATABASE", "look at aa-peers"),
    ],
)
def test_what_does_not_fit_is_told_once_and_with_advice(
    options: tuple[str, ...], others: tuple[str, ...], code: str, advice: str
) -> None:
    with ExitStack() as stack:
        (first, claim), (second, other_claim) = claim_port(), claim_port()
        stack.enter_context(claim)
        stack.enter_context(other_claim)
        one = RegionProcess(1, first, "--aa-peers", f"2 127.0.0.1 {second}", *options)
        two = RegionProcess(2, second, "--aa-peers", f"1 127.0.0.1 {first}", *others)
        for region in (one, two):
            stack.callback(region.discard)
            region.spawn()
        for region in (one, two):
            region.wait_until_ready()
        line = f"Region 2: {code} "
        one.wait_for_log(line)
        [told] = [each for each in one.log().splitlines() if line in each]
        assert advice in told
        one.call("AA", "RESUME", "ALL")  # it is tried again, at once
        wait_until(lambda: b"refused: " in one.state_of(2), one)
        assert one.log().count(line) == 1


def test_who_will_need_a_full_copy_is_told() -> None:
    with Mesh(2, *SMALL_LOGS) as mesh:
        one = mesh[1]
        one.xadd("s")
        mesh.wait_until_level()
        mesh.partition({1}, {2})
        for _ in range(2):
            for _ in range(800):
                one.xadd("s", "*", "field", "v" * 2000)
            one.call("BGREWRITEAOF")
            wait_until(lambda: one.info("persistence")["aof_rewrite_in_progress"] == "0", one)
        one.wait_for_log("Region 2 will need a full copy when it returns")
        assert "AA FORGET 2" in one.log()
