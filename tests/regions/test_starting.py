"""Which epoch and generation a region starts with, and whether it may write at once."""

from __future__ import annotations

import pytest

from headrace.compat.errors import AASTART, AASYNCING
from headrace.regions.exchange.epochs import (
    ADOPTED,
    CUT,
    EPOCHS_SINCE_MS,
    HELLO_BYTES,
    MOVED,
    NONE,
    SECOND_MS,
    WHOLE,
    Answer,
    CatchUp,
    Forgotten,
    Probe,
    Start,
    Survey,
    decide,
    new_nonce,
    refusal_of,
    replaced_nonce,
)
from headrace.regions.exchange.peer_connection import PeerConnection
from headrace.regions.knowledge.region import Region, begun_in
from headrace.storage.vectors import Numbers

SECONDS = 700
NOW_MS = EPOCHS_SINCE_MS + SECONDS * SECOND_MS + 17


def a_region(epoch: int = 3, count: int = 50) -> Region:
    region = Region(1)
    region.begin_epoch(epoch, 2, b"n")
    region.count = count
    region.numbers = {b"1.0": 9, b"2.0": 30}
    return region


def knows(numbers: Numbers, remembered: bytes = b"") -> Answer:
    answer = Answer(numbers)
    answer.remembered = remembered
    return answer


def start(
    files: int, answers: dict[int, Answer], asked: list[int] | None = None, now_ms: int = NOW_MS
) -> Start:
    region = Region(1) if files in (NONE, ADOPTED) else a_region()
    return decide(region, files, sorted(answers) if asked is None else asked, answers, now_ms)


def told(found: Start) -> tuple[int, int, bytes, bool]:
    return found.epoch, found.generation, found.refusal, found.goes_on


def test_whole_files_go_on_where_all_others_confirm() -> None:
    goes_on = (3, 2, b"", True)
    assert told(start(WHOLE, {})) == goes_on
    assert told(start(WHOLE, {2: knows({b"1.3": 50, b"2.0": 99}, b"n")})) == goes_on
    assert told(start(WHOLE, {2: knows({b"1.3": 7}), 3: knows({})})) == goes_on


def test_whole_files_begin_another_epoch_where_somebody_does_not_answer() -> None:
    assert told(start(WHOLE, {2: knows({b"1.3": 50})}, [2, 3])) == (SECONDS, 2, b"", False)
    assert told(start(WHOLE, {}, [2], EPOCHS_SINCE_MS)) == (4, 2, b"", False)
    assert told(start(WHOLE, {}, [2], 0)) == (4, 2, b"", False)  # a clock that was never set


@pytest.mark.parametrize(
    "answer",
    [knows({b"1.3": 51}), knows({b"1.900": 1}), knows({b"1.3": 50}, b"another")],
)
def test_files_that_others_know_more_of_were_put_back(answer: Answer) -> None:
    found = start(WHOLE, {2: answer})
    assert told(found) == (901 if b"1.900" in answer.numbers else SECONDS, 3, AASTART, False)


def test_a_life_that_wrote_nothing_is_not_taken_again() -> None:
    met = {2: knows({}, b"nonce of an empty life"), 3: knows({})}
    assert told(start(NONE, met)) == (SECONDS, 0, AASYNCING, False)


def test_another_region_of_this_number_and_epoch() -> None:
    twin = Answer({})
    twin.is_twin = True
    assert told(start(WHOLE, {2: twin})) == (SECONDS, 3, AASTART, False)


def test_a_cut_end_is_another_epoch_and_generation() -> None:
    for answers in ({}, {2: knows({b"1.3": 50})}, {2: knows({b"1.3": 70})}):
        assert told(start(CUT, answers)) == (SECONDS, 3, b"", False)
    assert told(start(CUT, {}, [2])) == (SECONDS, 3, b"", False)


def test_copied_files_write_nothing_yet() -> None:
    for answers in ({}, {2: knows({b"1.3": 50})}):
        assert told(start(MOVED, answers, [2])) == (SECONDS, 3, AASTART, False)


def test_without_data_and_without_others_all_begins() -> None:
    assert told(start(NONE, {})) == (0, 0, b"", False)
    assert told(start(NONE, {2: knows({}), 3: knows({})})) == (0, 0, b"", False)


def test_without_data_a_region_joins_the_others() -> None:
    assert told(start(NONE, {2: knows({b"2.0": 5})})) == (0, 0, AASYNCING, False)
    assert told(start(NONE, {2: knows({b"1.7": 5})})) == (SECONDS, 0, AASYNCING, False)
    assert told(start(NONE, {2: knows({b"1.800": 5})})) == (801, 0, AASYNCING, False)
    assert told(start(NONE, {}, [2])) == (SECONDS, 0, AASYNCING, False)


def test_the_call_of_who_is_asked_is_no_answer() -> None:
    """It does not say which life of this region the caller remembers."""
    region = Region(1)

    def ask(member: int) -> PeerConnection:
        return PeerConnection(Probe(region, member, b""), HELLO_BYTES, 0, lambda _: None)

    survey = Survey([2], [3], ask)
    survey.called(2, {b"2.0": 5})
    survey.called(3, {b"3.0": 5})
    assert list(survey.answers()) == [3]


def test_a_forgotten_region_comes_back_as_a_new_one_only() -> None:
    forgets = Answer({})
    forgets.forgotten = 800
    assert told(start(NONE, {2: forgets})) == (801, 0, AASYNCING, False)
    for files in (WHOLE, CUT, MOVED, ADOPTED):
        with pytest.raises(Forgotten, match="empty folder"):
            start(files, {2: forgets})


def test_the_data_of_a_single_server_is_that_of_a_new_region() -> None:
    assert told(start(ADOPTED, {})) == (0, 0, b"", False)
    assert told(start(ADOPTED, {}, [2])) == (0, 0, b"", False)
    assert told(start(ADOPTED, {2: knows({b"2.0": 5})})) == (0, 0, AASYNCING, False)
    with pytest.raises(Forgotten, match="another number"):
        start(ADOPTED, {2: knows({b"1.0": 1})})


def test_what_a_region_has_to_catch_up_with() -> None:
    region = a_region()
    region.peers = {2, 3}
    catch_up = CatchUp(region, AASTART)
    assert catch_up.lacking() == [2, 3]
    catch_up.heard(2, {b"2.0": 31, b"1.3": 60})
    catch_up.heard(2, {b"2.0": 99, b"1.3": 99})  # the first time counts
    catch_up.heard(3, {b"2.0": 30, b"1.0": 9})
    assert catch_up.lacking() == [2]
    region.begin_epoch(4, 3, b"m")
    region.learned(b"2.0", 31)
    assert catch_up.lacking() == [2]
    region.learned(b"1.3", 60)
    assert catch_up.lacking() == []


def test_what_a_member_has_lost_itself_is_not_waited_for() -> None:
    region = a_region()
    region.peers = {2, 3}
    catch_up = CatchUp(region, AASTART)
    catch_up.heard(2, {b"1.3": 60, b"2.0": 30})
    catch_up.heard(3, {b"1.3": 55})
    region.begin_epoch(4, 3, b"m")
    catch_up.heard(2, {b"2.0": 30})
    assert catch_up.lacking() == [3]
    region.learned(b"1.3", 55)
    assert catch_up.lacking() == []


def test_who_has_been_forgotten_is_not_waited_for() -> None:
    region = a_region()
    region.peers = {2, 3}
    catch_up = CatchUp(region, AASTART)
    catch_up.heard(2, {})
    region.forgotten[3] = 0
    assert catch_up.lacking() == []


@pytest.mark.parametrize("refusal", [AASTART, AASYNCING])
def test_what_a_region_lacks_is_not_forgotten_by_another_start(refusal: bytes) -> None:
    region = a_region()
    region.nonce = new_nonce(refusal, 0)
    assert refusal_of(region) == refusal
    assert told(decide(region, WHOLE, [], {}, NOW_MS)) == (3, 2, refusal, True)
    assert told(decide(region, WHOLE, [2], {}, NOW_MS)) == (SECONDS, 2, refusal, False)
    assert told(decide(region, CUT, [], {}, NOW_MS)) == (SECONDS, 3, refusal, False)
    region.caught = region.nonce
    assert refusal_of(region) == b""
    assert told(decide(region, WHOLE, [], {}, NOW_MS)) == (3, 2, b"", True)
    assert refusal_of(Region(1)) == b""
    region.nonce = new_nonce(b"", 0)
    assert refusal_of(region) == b""


def test_a_nonce_says_when_the_folder_was_empty() -> None:
    for refusal in (b"", AASTART, AASYNCING):
        nonce = new_nonce(refusal, 27_000_000)
        assert begun_in(nonce, 30_000_000) == 27_000_000
        assert begun_in(replaced_nonce(a_region_with(nonce)), 30_000_000) == 27_000_000
    for nonce in (b"", b"0f1e2d3c4b5a6978", b"0f1e2d3c4b5a6978j", b"0f1e.x"):
        assert begun_in(nonce, 5) == 5
    assert begun_in(b"0f1e.99999999999999999999", 5) == 5  # nobody was there before


def a_region_with(nonce: bytes) -> Region:
    region = a_region()
    region.nonce = nonce
    return region
