"""The exchange with pipes in memory: what is cut, doubled or broken on the way, and refusals."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xxhash import xxh3_64_intdigest

from headrace.compat.errors import CommandError
from headrace.protocol.client import BadReply
from headrace.protocol.replies import encode
from headrace.regions.exchange.handshake import (
    BadHello,
    Hello,
    answering_code,
    asking_code,
    new_nonce,
    read_reply,
)
from headrace.regions.exchange.peer_connection import MET
from headrace.regions.exchange.pull import OUTSTANDING, OUTSTANDING_MAX
from headrace.regions.files.pieces import DEFLATED, PULL_BYTES, BadPiece, Piece, read_piece
from headrace.storage.vectors import decode_numbers
from support.pipes import BOUND, End, Pipe, record


def pair(secret: bytes = b"") -> tuple[End, End]:
    return End(1, secret), End(2, secret)


def level(one: End, two: End) -> bool:
    return one.content() == two.content() and one.region.known() == two.region.known()


def beats(pipe: Pipe) -> None:
    """Let time pass: PULLs that were sent before say what was so then."""
    for _ in range(OUTSTANDING + 1):
        pipe.beat()
        pipe.run()


# What is pulled


def test_all_that_the_other_has_is_pulled() -> None:
    one, two = pair()
    two.write(1000)
    pipe = Pipe(one, two)
    pipe.run()
    assert level(one, two)
    assert pipe.puller.state == MET
    assert pipe.puller.is_level
    assert pipe.puller.promise_ms == 77
    assert one.statistics.records == 1000
    assert one.statistics.gaps == 0


def test_who_has_pieces_that_wait_is_not_level() -> None:
    """Nor is the next connection, where they came over the one before."""
    one, two = pair()
    pipe = Pipe(one, two)
    pipe.run()
    two.write(5)
    while pipe.answer() or pipe.carry():
        pass
    assert not pipe.puller.is_level
    pipe.puller.fail("the connection was lost")
    assert not pipe.puller.is_level
    again = Pipe(one, two)
    while again.answer() or again.carry():
        pass
    assert again.puller.state == MET
    assert not again.puller.is_level
    again.run()
    assert again.puller.is_level


def test_a_pull_waits_until_something_is_written() -> None:
    one, two = pair()
    pipe = Pipe(one, two)
    pipe.run()
    assert len(pipe.requests) == OUTSTANDING
    assert pipe.puller.is_level
    for _ in range(10):
        two.write(1)
        pipe.run()
        assert level(one, two)
        assert pipe.puller.is_level
    assert one.statistics.records == 10
    assert one.statistics.doubled <= 30  # a piece may begin with what was sent before


def test_a_beat_shows_that_the_other_side_is_there() -> None:
    one, two = pair()
    pipe = Pipe(one, two)
    pipe.run()
    pipe.beat()
    pipe.run()
    assert pipe.puller.promise_ms == 78
    assert len(pipe.requests) == OUTSTANDING


def test_it_acknowledges_what_it_has() -> None:
    one, two = pair()
    two.write(5)
    pipe = Pipe(one, two)
    pipe.run()
    beats(pipe)
    assert two.acknowledged[1] == {b"2.0": 5}


def test_more_pulls_are_kept_on_their_way_where_much_is_written() -> None:
    one, two = pair()
    pipe = Pipe(one, two)
    pipe.run()
    for _ in range(2 * OUTSTANDING_MAX):
        two.write(1)
        pipe.run()
    assert len(pipe.requests) == OUTSTANDING_MAX
    assert level(one, two)
    for _ in range(OUTSTANDING_MAX):
        pipe.beat()
        pipe.run()
    assert len(pipe.requests) == OUTSTANDING


def test_both_pull_from_each_other() -> None:
    one, two = pair()
    there, back = Pipe(one, two), Pipe(two, one)
    for _ in range(5):
        one.write(3)
        two.write(4)
        there.run()
        back.run()
    assert level(one, two)


def test_records_are_read_from_files_where_memory_does_not_reach() -> None:
    one, two = pair()
    two.write(100)
    two.log.in_files[b"2.0"] = 60
    pipe = Pipe(one, two)
    pipe.run()
    assert level(one, two)
    assert pipe.files_read >= 1


def test_what_waits_to_be_applied_is_bounded() -> None:
    one, two = pair()
    two.write(2000, size=2000)
    pipe = Pipe(one, two)
    while pipe.answer() or pipe.carry():
        pass
    assert not pipe.puller.out
    held = one.inlet.most_waiting
    assert 0 < held <= (OUTSTANDING + 1) * PULL_BYTES
    pipe.run()
    assert level(one, two)


def test_a_puller_that_rests_asks_for_nothing_more() -> None:
    one, two = pair()
    two.write(2000, size=2000)
    pipe = Pipe(one, two)
    pipe.answer()
    pipe.carry()
    pipe.puller.rest(True)
    pipe.run()
    got = one.statistics.records
    assert got < 2000
    pipe.puller.rest(False)
    pipe.run()
    assert level(one, two)


def test_old_epochs_of_the_other_come_too() -> None:
    one, two = pair()
    two.write(5)
    two.region.begin_epoch(1, 1, b"another")
    two.write(7)
    pipe = Pipe(one, two)
    pipe.run()
    assert one.region.known() == {b"2.0": 5, b"2.1": 7}
    two.region.begin_epoch(4, 2, b"and another")  # while the connection lasts
    two.write(2)
    pipe.run()
    assert one.region.known() == {b"2.0": 5, b"2.1": 7, b"2.4": 2}


def test_records_of_a_third_region_come_from_it_alone() -> None:
    one, two = pair()
    two.write(2)
    two.log.add(b"3.0", 9)
    two.region.learned(b"3.0", 9)
    pipe = Pipe(one, two)
    pipe.run()
    assert b"3.0" not in one.region.known()


def test_records_of_a_third_region_are_relayed_where_it_does_not_answer() -> None:
    one, two = pair()
    two.write(2)
    two.log.add(b"3.0", 9)
    two.region.learned(b"3.0", 9)
    pipe = Pipe(one, two)
    pipe.run()
    one.silent = frozenset((3,))
    pipe.beat()
    pipe.run()
    assert pipe.puller.anew  # PULLs that were sent before do not ask for them
    pipe = Pipe(one, two)
    pipe.run()
    assert one.region.known() == {b"2.0": 2, b"3.0": 9}
    two.log.add(b"3.0", 2)
    two.region.learned(b"3.0", 11)
    pipe.run()
    assert one.region.known() == {b"2.0": 2, b"3.0": 11}


def test_what_was_lost_of_an_earlier_life_comes_back() -> None:
    one, two = pair()
    one.write(10)
    Pipe(two, one).run()
    kept = one.log.records[b"1.0"][:4]
    one.log.records[b"1.0"] = kept
    one.region.count = 4
    one.region.begin_epoch(1, 1, b"after the power was lost")
    one.write(1)
    pipe = Pipe(one, two)
    pipe.run()
    assert one.region.known() == {b"1.0": 10, b"1.1": 1}


# What goes wrong on the way


@given(st.integers(1, 200), st.integers(1, 3000), st.integers(0, 2**32))
@settings(max_examples=60)
def test_a_connection_may_be_cut_anywhere(count: int, step: int, seed: int) -> None:
    chance = random.Random(seed)
    one, two = pair(chance.choice([b"", b"secret"]))
    two.write(count, size=chance.randrange(1, 200))
    for _ in range(2000):
        pipe = Pipe(one, two)
        moved = True
        while moved and not pipe.puller.failure:
            moved = pipe.answer()
            moved = pipe.carry(chance.randrange(1, step + 1)) or moved
            if chance.random() < 0.5:
                one.inlet.apply()
            if chance.random() < 0.02:
                two.write(1)
            if chance.random() < 0.05:
                break
        pipe.puller.fail("cut")
        if chance.random() < 0.3:
            one.inlet.apply()
        if chance.random() < 0.05:
            break
    one.inlet.apply()
    Pipe(one, two).run()
    assert level(one, two)


def test_a_reply_that_is_lost_is_a_gap_and_never_skipped() -> None:
    one, two = pair()
    two.write(10)
    pipe = Pipe(one, two)
    pipe.answer()
    pipe.carry()  # HELLO
    two.write(1)
    pipe.answer()
    pipe.wire = b""
    two.write(20)
    pipe.run()
    assert "missing" in pipe.puller.failure
    assert one.statistics.gaps == 1
    assert one.region.known() == {}
    Pipe(one, two).run()
    assert level(one, two)


def test_a_reply_that_is_lost_is_noticed_even_where_nothing_follows() -> None:
    """So where records that were counted on have been dropped here before they were applied."""
    one, two = pair()
    pipe = Pipe(one, two)
    pipe.run()
    two.write(10)
    pipe.answer()
    pipe.wire = b""
    pipe.beat()
    pipe.run()
    assert "missing up to 10" in pipe.puller.failure
    assert one.statistics.gaps == 1
    Pipe(one, two).run()
    assert level(one, two)


def test_a_reply_that_comes_twice_is_skipped() -> None:
    one, two = pair()
    pipe = Pipe(one, two)
    pipe.run()
    two.write(10)
    pipe.answer()
    pipe.wire += pipe.wire
    pipe.run()
    assert level(one, two)
    assert one.statistics.doubled >= 10
    assert one.statistics.records == 10


@given(st.integers(0, 10**6), st.integers(1, 255))
@settings(max_examples=200)
def test_a_flipped_bit_is_noticed_or_does_no_harm(place: int, flip: int) -> None:
    one, two = pair()
    two.write(30)
    pipe = Pipe(one, two)
    pipe.answer()
    pipe.carry()
    pipe.answer()
    wire = bytearray(pipe.wire)
    wire[place % len(wire)] ^= flip
    pipe.wire = bytes(wire)
    try:
        pipe.carry()
    except BadReply:
        pipe.puller.fail("broken")
    one.inlet.apply()
    got = one.log.records.get(b"2.0", [])
    assert got == two.log.records[b"2.0"][: len(got)]
    assert set(one.content()) <= {b"2.0"}
    pipe.puller.fail("over")
    Pipe(one, two).run()
    assert level(one, two)


def test_a_record_that_cannot_be_applied_stops_the_link() -> None:
    one, two = pair()
    two.write(10)
    one.inlet.spoils.add((b"2.0", 7))
    pipe = Pipe(one, two)
    pipe.run()
    assert pipe.puller.refused
    assert "unknown effect" in pipe.puller.failure
    assert one.region.known() == {b"2.0": 6}


@pytest.mark.parametrize(
    "reply",
    [
        b"OK",
        5,
        [5],
        [b"END"],
        [[]],
        [[b"END"]],
        [[b"END", b"x", 1]],
        [[b"END", 1, 1]],
        [[b"END", b"2.0=1", b"1"]],
        [[b"2.0", 1, 1]],
        [[b"2.0", 1, 1, 0, 0, b"x", b"0" * 16]],
        [Piece(b"3.0", 1, 1, 0, b"x").item(False)],
        [Piece(b"1.0", 1, 1, 0, b"x").item(False)],
        [Piece(b"2.x", 1, 1, 0, b"x").item(False)],
        [Piece(b"2.0", 0, 1, 0, b"x").item(False)],
        [Piece(b"2.0", 1, 0, 0, b"x").item(False)],
        [Piece(b"2.0", 1, 2**62, 0, b"x").item(False)],
        [Piece(b"2.0", 1, 1, -1, b"x").item(False)],
        [Piece(b"2.0", 1, 1, 0, b"x" * (BOUND + 1)).item(True)],
    ],
)
def test_answers_that_no_region_gives_end_the_connection(reply: object) -> None:
    one, two = pair()
    pipe = Pipe(one, two)
    pipe.answer()
    pipe.carry()
    pipe.answer()
    pipe.wire = encode(reply)
    pipe.carry()
    assert pipe.puller.failure
    assert one.statistics.damaged == 1
    assert not one.inlet.waiting
    assert one.region.known() == {}


def test_an_answer_nobody_asked_for_ends_the_connection() -> None:
    one, two = pair()
    pipe = Pipe(one, two)
    pipe.puller.received([])
    assert pipe.puller.failure


# Refusals


def refused(asking: End, asked: End, of: int = 0) -> Pipe:
    pipe = Pipe(asking, asked, of)
    pipe.run()
    assert pipe.puller.failure
    return pipe


def test_another_version() -> None:
    one, two = pair()
    words = [b"2", b"orders", b"1", b"0", b"0", b"-", b"strict", b"-"]
    with pytest.raises(CommandError) as raised:
        two.caller().greet(words)
    assert raised.value.line.startswith(b"AAVERSION")
    assert b"region 2 has to be upgraded" in raised.value.line
    for version in (b"1", b"1-1", b"1-7"):
        assert one.caller().greet([version, b"orders", b"2", *words[3:]])


def test_a_later_version_answers() -> None:
    one, two = pair()
    pipe = Pipe(one, two)
    pipe.answer()
    pipe.wire = encode([b"2-3", *two.caller().greet([b"1", b"orders", *words_of(one)])[1:]])
    pipe.carry()
    assert pipe.puller.failure.startswith("AAVERSION region 1 speaks version 1")
    assert pipe.puller.failure.endswith("region 1 has to be upgraded")
    assert pipe.puller.refused
    pipe = Pipe(one, two)
    pipe.answer()
    pipe.wire = encode([b"1-3", *two.caller().greet([b"1", b"orders", *words_of(one)])[1:]])
    pipe.carry()
    assert pipe.puller.state == MET
    assert one.region.versions == {2: 3}
    assert one.region.unaware(3) == 0
    one.region.joined.add(4)
    assert one.region.unaware(2) == 4
    one.region.forgotten[4] = 0
    assert one.region.unaware(2) == 0


def test_another_database() -> None:
    one, two = pair()
    one.region.database = b"customers"
    assert refused(one, two).puller.failure.startswith("AADATABASE")


def test_the_same_region_twice() -> None:
    assert refused(End(1), End(1), 1).puller.failure.startswith("AATWIN")


def test_two_lives_of_one_epoch() -> None:
    one, two = pair()
    Pipe(one, two).run()
    one.region.nonce = b"a copied folder"
    pipe = refused(one, two)
    assert pipe.puller.failure.startswith("AATWIN")
    assert pipe.puller.refused
    two.region.nonce = b"another copied folder"
    assert refused(one, two).puller.failure.startswith("AATWIN")


def test_who_asks_notices_a_twin_too() -> None:
    one, two = pair()
    Pipe(one, two).run()
    two.region.nonces.clear()
    two.region.nonce = b"a copied folder"
    assert refused(one, two).puller.failure.startswith("AATWIN there is another 2.0")


def test_a_region_that_was_forgotten() -> None:
    one, two = pair()
    two.region.forgotten[1] = 3
    pipe = refused(one, two)
    assert pipe.puller.failure.startswith("AAFORGOTTEN")
    assert pipe.puller.forgotten == 3
    pipe = refused(two, one)  # it refuses the other one itself
    assert pipe.puller.failure.startswith("AAFORGOTTEN")
    assert pipe.puller.forgotten == -1
    one.region.begin_epoch(4, 0, b"new")
    Pipe(one, two).run()


def test_who_knows_more_of_a_region_than_it_does_is_told() -> None:
    one, two = pair()
    two.write(10)
    Pipe(one, two).run()
    two.log.records[b"2.0"] = two.log.records[b"2.0"][:4]
    two.region.count = 4
    pipe = refused(one, two)
    assert pipe.puller.failure.startswith("AAAHEAD")
    assert not pipe.puller.ahead  # nobody knows more of this one
    assert not pipe.puller.refused
    pipe = refused(two, one)  # and it finds out itself
    assert pipe.puller.ahead
    assert pipe.puller.known == {b"2.0": 10}


def test_a_log_that_begins_later() -> None:
    one, two = pair()
    two.write(10)
    two.log.lost[b"2.0"] = 5
    pipe = refused(one, two)
    assert pipe.puller.behind
    assert not pipe.puller.refused
    assert "AABEHIND the log of 2.0 begins with 6" in pipe.puller.failure


def test_a_log_whose_files_went_while_it_was_read() -> None:
    one, two = pair()
    two.write(10)
    two.log.in_files[b"2.0"] = 5
    pipe = Pipe(one, two)
    pipe.answer()
    pipe.carry()
    source = pipe.caller.source_or_refuse()
    source.pull([b"1000", b"FROM", b"-"])
    assert source.answer() is None
    assert source.missing == (b"2.0", 0)
    two.log.lost[b"2.0"] = 5
    with pytest.raises(CommandError) as raised:
        source.read(None)
    assert raised.value.line.startswith(b"AABEHIND")


def test_the_wrong_region_answers() -> None:
    one, _ = pair()
    pipe = refused(one, End(3), 2)
    assert "region 3 answers instead of region 2" in pipe.puller.failure


@pytest.mark.parametrize(
    "words",
    [
        [],
        [b"1"] * 7,
        [b"x", b"orders", b"1", b"0", b"0", b"-", b"strict", b"-"],
        [b"0", b"orders", b"1", b"0", b"0", b"-", b"strict", b"-"],
        [b"2-1", b"orders", b"1", b"0", b"0", b"-", b"strict", b"-"],
        [b"1-", b"orders", b"1", b"0", b"0", b"-", b"strict", b"-"],
        [b"1", b"orders", b"0", b"0", b"0", b"-", b"strict", b"-"],
        [b"1", b"orders", b"16", b"0", b"0", b"-", b"strict", b"-"],
        [b"1", b"orders", b"1", b"-1", b"0", b"-", b"strict", b"-"],
        [b"1", b"orders", b"1", b"0", b"99999999999999", b"-", b"strict", b"-"],
        [b"1", b"orders", b"1", b"0", b"0", b"n" * 65, b"strict", b"-"],
        [b"1", b"orders", b"1", b"0", b"0", b"-", b"lenient", b"-"],
        [b"1", b"orders", b"1", b"0", b"0", b"-", b"strict", b"1.0"],
        [b"1", b"o" * 257, b"1", b"0", b"0", b"-", b"strict", b"-"],
    ],
)
def test_words_that_introduce_nobody(words: list[bytes]) -> None:
    with pytest.raises(BadHello):
        Hello(words)
    with pytest.raises(CommandError):
        End(2).caller().greet(words)
    with pytest.raises(BadHello):
        read_reply([*words, b"-", b"-", b"-"])


def test_a_reply_that_introduces_nobody_ends_the_connection() -> None:
    one, two = pair()
    pipe = Pipe(one, two)
    pipe.answer()
    pipe.wire = encode([b"1", b"orders"])
    pipe.carry()
    assert "does not introduce itself" in pipe.puller.failure


def test_a_hello_says_what_is_remembered() -> None:
    one, two = pair()
    two.write(3)
    Pipe(one, two).run()
    hello = read_reply(two.caller().greet([b"1", b"orders", *words_of(one)]))
    assert hello.remembered == one.region.nonce
    assert hello.numbers == {b"2.0": 3}
    assert hello.reach == {b"2.0": 1}
    assert hello.members == [2, 9]
    assert hello.nonce == two.region.nonce


def test_who_begins_an_epoch_hears_of_those_that_left_no_record() -> None:
    one, two = pair()
    two.write(3)
    two.region.note_met(b"1.0", b"def", 1)
    two.region.note_met(b"1.700", b"abc", 1)
    words = [b"1", b"orders", *words_of(one)]
    words[5] = b"-"
    told = {b"2.0": 3, b"1.0": 0, b"1.700": 0}
    assert read_reply(two.caller().greet(words)).numbers == told


@pytest.mark.parametrize(("written", "told"), [(b"-", {b"1.700": 0}), (b"1.0=1", {})])
def test_who_has_begun_hears_of_later_ones_while_it_can_still_begin_another(
    written: bytes, told: dict[bytes, int]
) -> None:
    one, two = pair()
    two.write(3)
    two.region.note_met(b"1.700", b"abc", 1)
    two.region.learned(b"1.0", 1)
    words = [b"1", b"orders", *words_of(one)]
    words[7] = written
    answered = read_reply(two.caller().greet(words)).numbers
    assert answered == {b"2.0": 3, b"1.0": 1, **told}


def words_of(end: End) -> list[bytes]:
    return [b"%d" % end.region.id, b"0", b"0", end.region.nonce, b"strict", b"-"]


def test_pulling_begins_with_hello() -> None:
    with pytest.raises(CommandError, match="AAHELLO"):
        End(2).caller().source_or_refuse()


@pytest.mark.parametrize(
    "words",
    [
        [b"0"],
        [b"-1"],
        [b"x"],
        [b"8388609"],
        [b"1", b"FROM"],
        [b"1", b"FROM", b"x"],
        [b"1", b"ACK", b"1.0"],
        [b"1", b"ALSO", b"x"],
        [b"1", b"ALSO", b"16.0"],
        [b"1", b"WITH"],
    ],
)
def test_pulls_that_mean_nothing(words: list[bytes]) -> None:
    one, two = pair()
    caller = two.caller()
    caller.greet([b"1", b"orders", *words_of(one)])
    with pytest.raises(CommandError):
        caller.source_or_refuse().pull(words)


# The secret


def test_who_has_the_secret_may_pull() -> None:
    one, two = pair(b"open sesame")
    two.write(3)
    pipe = Pipe(one, two)
    pipe.run()
    assert level(one, two)


def test_who_has_another_secret_may_not() -> None:
    one, two = End(1, b"open sesame"), End(2, b"open says me")
    pipe = refused(one, two)
    assert pipe.puller.failure.startswith("AASECRET")
    assert not pipe.caller.proven
    one, two = End(1, b"open sesame"), End(2)
    assert refused(one, two).puller.failure.startswith("AASECRET")


def test_who_answers_has_to_show_the_secret_too() -> None:
    one, two = pair(b"open sesame")
    pipe = Pipe(one, two)
    pipe.answer()
    pipe.carry()
    (proof,) = pipe.puller.out
    pipe.puller.out.clear()
    assert proof[:3] == [b"AA", b"AUTH", b"PROOF"]
    pipe.puller.received(proof[3])  # its own code, sent back
    assert "has not shown" in pipe.puller.failure


def test_a_code_is_good_for_one_challenge() -> None:
    secret = b"open sesame"
    caller = End(2, secret).caller()
    asking = new_nonce()
    answering = caller.challenge(asking)
    with pytest.raises(CommandError, match="AASECRET"):
        caller.prove(asking_code(b"guess", asking, answering))
    with pytest.raises(CommandError, match="a nonce comes first"):
        caller.prove(asking_code(secret, asking, answering))
    again = caller.challenge(asking)
    assert again != answering
    with pytest.raises(CommandError, match="AASECRET"):
        caller.prove(asking_code(secret, asking, answering))
    again = caller.challenge(asking)
    assert caller.prove(asking_code(secret, asking, again)) == answering_code(secret, asking, again)
    assert caller.proven


@pytest.mark.parametrize("nonce", [b"", b"x", b"0" * 63, b"0" * 65])
def test_what_is_no_nonce(nonce: bytes) -> None:
    with pytest.raises(CommandError):
        End(2, b"secret").caller().challenge(nonce)


# Pieces


@given(st.binary(max_size=20_000), st.booleans())
def test_a_piece_reads_back(payload: bytes, compress: bool) -> None:
    piece = Piece(b"2.7", 5, 9, 1234, payload)
    found = read_piece(piece.item(compress), BOUND)
    assert (found.origin, found.first, found.last, found.ms) == (b"2.7", 5, 13, 1234)
    assert found.payload == payload


def test_long_payloads_are_compressed() -> None:
    payload = b"".join([record(b"2.0", number) for number in range(1000)])
    item = Piece(b"2.0", 1, 1000, 0, payload).item(True)
    assert item[4] == DEFLATED
    assert isinstance(item[5], bytes)
    assert len(item[5]) < len(payload) / 3
    one, two = pair()
    two.compress = True
    two.write(1000)
    pipe = Pipe(one, two)
    pipe.run()
    assert level(one, two)
    assert pipe.sent_bytes < len(payload) / 2


def test_a_small_piece_cannot_become_a_large_one() -> None:
    item = Piece(b"2.0", 1, 1, 0, b"x" * 10_000_000).item(True)
    assert isinstance(item[5], bytes)
    assert len(item[5]) < 100_000
    with pytest.raises(BadPiece, match="too long"):
        read_piece(item, BOUND)


def test_a_torn_piece() -> None:
    whole = Piece(b"2.0", 1, 1, 0, b"x" * 10_000).item(True)
    assert isinstance(whole[5], bytes)
    with pytest.raises(BadPiece, match="torn"):
        read_piece(flagged(whole[5][:-5], DEFLATED), BOUND)
    with pytest.raises(BadPiece, match="cannot be decompressed"):
        read_piece(flagged(b"no deflated bytes", DEFLATED), BOUND)
    with pytest.raises(BadPiece, match="flags"):
        read_piece(flagged(b"x", 2), BOUND)


def flagged(payload: bytes, flags: int) -> list[object]:
    """A piece with these flags, whatever its payload is, and a checksum that is right."""
    digest = xxh3_64_intdigest(b"2.0 1 1 0 %d\n%b" % (flags, payload))
    return [b"2.0", 1, 1, 0, flags, payload, b"%016x" % digest]


@pytest.mark.parametrize("place", range(7))
def test_no_item_of_a_piece_may_change_on_the_way(place: int) -> None:
    item = Piece(b"2.0", 5, 1, 9, b"x").item(False)
    item[place] = b"2.1" if isinstance(item[place], bytes) else 1 + int(str(item[place]))
    with pytest.raises(BadPiece, match="checksum"):
        read_piece(item, BOUND)


def test_numbers_are_shown_as_people_read_them() -> None:
    one, two = pair()
    two.write(3)
    pipe = Pipe(one, two)
    pipe.answer()
    pipe.carry()
    pull = pipe.puller.out[0]
    assert pull[:3] == [b"AA", b"PULL", b"%d" % PULL_BYTES]
    assert decode_numbers(pull[4]) == {b"2.0": 0}
